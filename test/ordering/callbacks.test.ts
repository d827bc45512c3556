import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { cancelOrder } from '../../src/ordering/actions.ts'
import { backendStore } from '../../src/stores/backend/backend.ts'
import type { Pushed, PushResult } from '../../src/stores/store.ts'
import { defaultDialect, type Harbour, openHarbour } from '../support/harbour.ts'
import { decide } from '../support/reviews.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const cancel = (harbour: Harbour, orderId: string) => cancelOrder(harbour.ordering, orderId, 'shop')

/** From now on nothing listens where the store is; what it returns brings the store back. */
async function closeStore(harbour: Harbour): Promise<() => void> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  const { now } = harbour
  const newId = harbour.ordering.newId
  const closed = backendStore({
    callbackUrl: `http://127.0.0.1:${port}/`,
    secrets: () => [Buffer.alloc(32)],
    now,
    newId,
  })
  onTestFinished(() => closed.close())
  const { storeOf } = harbour.ordering
  harbour.ordering.storeOf = () => closed
  return () => {
    harbour.ordering.storeOf = storeOf
  }
}

/** What leaves for the store, as text, attempt by attempt. */
function overhear(harbour: Harbour): { id: string; type: string; data: string }[] {
  const left: { id: string; type: string; data: string }[] = []
  const noted =
    <Update extends { type: string }>(push: (update: Pushed<Update>) => Promise<PushResult>) =>
    (update: Pushed<Update>) => {
      left.push({ id: update.id, type: update.type, data: JSON.stringify(update) })
      return push(update)
    }
  const { store } = harbour
  harbour.ordering.storeOf = () => ({
    ...store,
    fulfil: noted(store.fulfil),
    reportFailure: noted(store.reportFailure),
    closeOrder: noted(store.closeOrder),
  })
  return left
}

describe('a hand-over has begun when a byte of it may have left', () => {
  test('and not when the store refused the connection: a later cancellation keeps the keys', async () => {
    const harbour = await openHarbour()
    const reopen = await closeStore(harbour)
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'completed', handOverBegunAt: null })
    await cancel(harbour, orderId)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    reopen()
    await harbour.pass(HOUR)
    expect(harbour.callbacks('line.fulfilled')).toEqual([])
    harbour.expectLedger({ charges: 1, keys: 0 })
    await decide(harbour, orderId, { type: 'hand_over' })
    await harbour.pass(HOUR)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('and when the store took it and its answer was lost: the cancellation comes too late', async () => {
    const harbour = await openHarbour()
    harbour.shop.answerNext(500, 1, 'recorded')
    const orderId = await harbour.buy('1001')
    await harbour.pass(3_000, 1_000)
    await cancel(harbour, orderId)
    const reopen = await closeStore(harbour)
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId), 'a refused repeat takes nothing back').toMatchObject({ state: 'completed' })
    reopen()
    await harbour.pass(HOUR)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('and when the process died between the note and the first byte', async () => {
    const harbour = await openHarbour()
    harbour.crash.at = 'pushing'
    const orderId = await harbour.buy('1001')
    await Promise.race([harbour.died(), harbour.pass(MINUTE)])
    await harbour.restart()
    await cancel(harbour, orderId)
    await harbour.pass(HOUR)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('each for itself: a cancellation keeps the keys of a second hand-over that was refused', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 30 * MINUTE })
    const orderId = await harbour.buy('1001', { quantity: 3 })
    await harbour.pass(MINUTE)
    const reopen = await closeStore(harbour)
    await harbour.pass(50 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'completed' })
    await cancel(harbour, orderId)
    reopen()
    await harbour.pass(HOUR)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    harbour.expectLedger({ charges: 1, keys: 1 })
    await decide(harbour, orderId, { type: 'close' })
    await harbour.pass(HOUR)
    expect(harbour.callbacks('line.failed').map(({ data }) => data.quantity)).toEqual([2])
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('callbacks under one id', () => {
  const parts = { ...defaultDialect(), quantityMax: 1 }

  test('say the same each time, and a store that keeps the first of each sees complete in the end', async () => {
    const harbour = await openHarbour({ dialect: parts })
    const left = overhear(harbour)
    // The keys of the first part are recorded and its answer is lost; those of the second are confirmed before it is repeated.
    harbour.shop.answerNext(500, 1, 'recorded')
    const orderId = await harbour.buy('1001', { quantity: 2 })
    await harbour.pass(HOUR)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    const bodies = Map.groupBy(left, ({ id }) => id)
    expect([...bodies.values()].filter((all) => all.length > 1)).toHaveLength(1)
    for (const all of bodies.values()) expect(new Set(all.map(({ data }) => data)).size).toBe(1)
    const kept = harbour.callbacks('line.fulfilled').map(({ data }) => data)
    expect(kept.map(({ keys, delivered, complete }) => [(keys as string[]).length, delivered, complete])).toEqual([
      [1, 1, false],
      [1, 1, false],
      [0, 2, true],
    ])
    expect(
      harbour.shop
        .received()
        .map(({ type }) => type)
        .at(-1),
    ).toBe('order.closed')
    harbour.expectLedger({ charges: 2, keys: 2, perPart: 1 })
  })

  test('say complete once where nothing is repeated', async () => {
    const harbour = await openHarbour({ dialect: parts })
    await harbour.buy('1001', { quantity: 2 })
    await harbour.pass(HOUR)
    const kept = harbour.callbacks('line.fulfilled').map(({ data }) => [data.delivered, data.complete])
    expect(kept).toEqual([
      [1, false],
      [2, true],
    ])
  })

  test('say complete also when the process died before it could tell so', async () => {
    const harbour = await openHarbour({ dialect: parts })
    harbour.shop.answerNext(500, 1, 'recorded')
    const orderId = await harbour.buy('1001', { quantity: 2 })
    await harbour.pass(10_000, 1_000)
    harbour.crash.at = 'noted'
    await Promise.race([harbour.died(), harbour.pass(10 * MINUTE)])
    await harbour.restart()
    await harbour.pass(HOUR)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.callbacks('line.fulfilled').map(({ data }) => data.complete)).toEqual([false, false, true])
  })

  test('keep the reason that a store was given for a line when the order is cancelled before it is repeated', async () => {
    const harbour = await openHarbour({ balanceMinor: 0, policy: { deadlineMs: HOUR } })
    const left = overhear(harbour)
    harbour.shop.answerNext(500, 1, 'recorded')
    const orderId = await harbour.buy('1001')
    await harbour.pass(HOUR, MINUTE)
    await cancel(harbour, orderId)
    await harbour.pass(HOUR)
    const failed = left.filter(({ type }) => type === 'line.failed').map(({ data }) => data)
    expect(failed).toHaveLength(2)
    expect(new Set(failed).size).toBe(1)
    expect(failed[0]).toContain('"code":"deadline"')
  })
})
