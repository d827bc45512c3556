import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { cancelOrder } from '../../src/ordering/actions.ts'
import { backendStore } from '../../src/stores/backend/backend.ts'
import type { Pushed } from '../../src/stores/store.ts'
import { decide } from '../support/reviews.ts'
import { defaultDialect, openTestApp, type TestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const cancel = (app: TestApp, orderId: string) => cancelOrder(app.ordering, orderId, 'shop')

/** From now on nothing listens where the store is; what it returns brings the store back. */
async function closeStore(app: TestApp): Promise<() => void> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  const { now } = app
  const newId = app.ordering.newId
  const closed = backendStore({
    id: 'demo-1',
    callbackUrl: `http://127.0.0.1:${port}/`,
    secretsOf: () => [Buffer.alloc(32)],
    now,
    newId,
  })
  onTestFinished(() => closed.close())
  const { storeOf } = app.ordering
  app.ordering.storeOf = () => closed
  return () => {
    app.ordering.storeOf = storeOf
  }
}

/** What leaves for the store, as text, attempt by attempt. */
function overhear(app: TestApp): { id: string; type: string; data: string }[] {
  const left: { id: string; type: string; data: string }[] = []
  const noted =
    <Update extends { type: string }, Result>(push: (update: Pushed<Update>) => Promise<Result>) =>
    (update: Pushed<Update>) => {
      // What is known as of one attempt alone is no part of what is said.
      const said = { ...update, deliveredNow: undefined, mayBeSent: undefined }
      left.push({ id: update.id, type: update.type, data: JSON.stringify(said) })
      return push(update)
    }
  const { store } = app
  app.ordering.storeOf = () => ({
    ...store,
    fulfil: noted(store.fulfil),
    reportFailure: noted(store.reportFailure),
    closeOrder: noted(store.closeOrder),
  })
  return left
}

describe('a hand-over has begun when a byte of it may have left', () => {
  test('and not when the store refused the connection: a later cancellation keeps the keys', async () => {
    const app = await openTestApp()
    const reopen = await closeStore(app)
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'completed', handOverBegunAt: null })
    await cancel(app, orderId)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    reopen()
    await app.pass(HOUR)
    expect(app.callbacks('line.fulfilled')).toEqual([])
    app.expectLedger({ charges: 1, keys: 0 })
    await decide(app, orderId, { type: 'hand_over' })
    await app.pass(HOUR)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('and when the store took it and its answer was lost: the cancellation comes too late', async () => {
    const app = await openTestApp()
    app.shop.answerNext(500, 1, 'recorded')
    const orderId = await app.buy('1001')
    await app.pass(3_000, 1_000)
    await cancel(app, orderId)
    const reopen = await closeStore(app)
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId), 'a refused repeat takes nothing back').toMatchObject({ state: 'completed' })
    reopen()
    await app.pass(HOUR)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('and when the process died between the note and the first byte', async () => {
    const app = await openTestApp()
    app.crash.at = 'pushing'
    const orderId = await app.buy('1001')
    await Promise.race([app.died(), app.pass(MINUTE)])
    await app.restart()
    await cancel(app, orderId)
    await app.pass(HOUR)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('each for itself: a cancellation keeps the keys of a second hand-over that was refused', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 30 * MINUTE })
    const orderId = await app.buy('1001', { quantity: 3 })
    await app.pass(MINUTE)
    const reopen = await closeStore(app)
    await app.pass(50 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'completed' })
    await cancel(app, orderId)
    reopen()
    await app.pass(HOUR)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    app.expectLedger({ charges: 1, keys: 1 })
    await decide(app, orderId, { type: 'close' })
    await app.pass(HOUR)
    expect(app.callbacks('line.failed').map(({ data }) => data.quantity)).toEqual([2])
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('callbacks under one id', () => {
  const parts = { ...defaultDialect(), quantityMax: 1 }

  test('say the same each time, and a store that keeps the first of each sees complete in the end', async () => {
    const app = await openTestApp({ dialect: parts })
    const left = overhear(app)
    // The keys of the first part are recorded and its answer is lost; those of the second are confirmed before it is repeated.
    app.shop.answerNext(500, 1, 'recorded')
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.pass(HOUR)
    expect(await app.state(orderId)).toBe('fulfilled')
    const bodies = Map.groupBy(left, ({ id }) => id)
    expect([...bodies.values()].filter((all) => all.length > 1)).toHaveLength(1)
    for (const all of bodies.values()) expect(new Set(all.map(({ data }) => data)).size).toBe(1)
    const kept = app.callbacks('line.fulfilled').map(({ data }) => data)
    expect(kept.map(({ keys, delivered, complete }) => [(keys as string[]).length, delivered, complete])).toEqual([
      [1, 1, false],
      [1, 1, false],
      [0, 2, true],
    ])
    expect(
      app.shop
        .received()
        .map(({ type }) => type)
        .at(-1),
    ).toBe('order.closed')
    app.expectLedger({ charges: 2, keys: 2, perPart: 1 })
  })

  test('say complete once where nothing is repeated', async () => {
    const app = await openTestApp({ dialect: parts })
    await app.buy('1001', { quantity: 2 })
    await app.pass(HOUR)
    const kept = app.callbacks('line.fulfilled').map(({ data }) => [data.delivered, data.complete])
    expect(kept).toEqual([
      [1, false],
      [2, true],
    ])
  })

  test('say complete also when the process died before it could tell so', async () => {
    const app = await openTestApp({ dialect: parts })
    app.shop.answerNext(500, 1, 'recorded')
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.pass(10_000, 1_000)
    app.crash.at = 'noted'
    await Promise.race([app.died(), app.pass(10 * MINUTE)])
    await app.restart()
    await app.pass(HOUR)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.callbacks('line.fulfilled').map(({ data }) => data.complete)).toEqual([false, false, true])
  })

  test('keep the reason that a store was given for a line when the order is cancelled before it is repeated', async () => {
    const app = await openTestApp({ balanceMinor: 0, policy: { deadlineMs: HOUR } })
    const left = overhear(app)
    const orderId = await app.buy('1001')
    await app.pass(HOUR - MINUTE, MINUTE)
    app.shop.answerNext(500, 1, 'recorded')
    await app.pass(MINUTE)
    await cancel(app, orderId)
    await app.pass(HOUR)
    const failed = left.filter(({ type }) => type === 'line.failed').map(({ data }) => data)
    expect(failed).toHaveLength(2)
    expect(new Set(failed).size).toBe(1)
    expect(failed[0]).toContain('"code":"deadline"')
  })
})
