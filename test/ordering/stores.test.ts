import { describe, expect, test } from 'vitest'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { StaleWrite } from '../../src/storage/database.ts'
import { listOutbox, redeliverEffect } from '../../src/storage/outbox.ts'
import { deliverAll } from '../support/deliver-all.ts'
import { first, openTestApp, STORE } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

describe('pushing to the store', () => {
  test('waits while the store is down, and delivers once when it is back', async () => {
    const app = await openTestApp()
    app.shop.answerNext(503, 3)
    const orderId = await app.buy('1001')
    await app.pass(10_000)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'completed' })
    app.expectLedger({ charges: 1, keys: 0 })
    await app.pass(5 * HOUR, 5 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.callbacks('line.fulfilled')).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('ends in a dead letter after three days, which is delivered once when it is put back', async () => {
    const app = await openTestApp()
    app.shop.answerNext(500, 10)
    const orderId = await app.buy('1001')
    await app.pass(10_000)
    await app.pass(5 * DAY, HOUR)
    const [letter] = await app.db.query(listOutbox({ state: 'dead', limit: 10 }))
    expect(letter).toMatchObject({ type: 'line.fulfilled', attempts: 10, lastError: expect.stringContaining('500') })
    expect(await app.alerts()).toContain('dead_letter')
    app.expectLedger({ charges: 1, keys: 0 })
    await app.db.commit([redeliverEffect(letter?.id ?? '', app.now())])
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    await expect(app.db.commit([redeliverEffect(letter?.id ?? '', app.now())])).rejects.toThrow(StaleWrite)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('repeats a message whose answer was lost under the same id', async () => {
    const app = await openTestApp()
    app.shop.answerNext(500, 1, 'recorded')
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.shop.repeated()).toBe(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('is noted after a crash between the answer of the store and the note', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await app.settle()
    app.move(2_000)
    app.sandbox.advance()
    await refreshDue(app.ordering)
    app.crash.at = 'pushed'
    await app.runUntilDeath()
    expect(app.callbacks('line.fulfilled')).toHaveLength(1)
    await app.restart()
    await app.pass(MINUTE)
    expect(app.shop.repeated()).toBe(1)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('ends in a closed order after a crash between the note and the closing', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await app.settle()
    app.move(2_000)
    app.sandbox.advance()
    await refreshDue(app.ordering)
    app.crash.at = 'noted'
    await app.runUntilDeath()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    expect(app.callbacks('order.closed')).toEqual([])
    await app.restart()
    await app.pass(HOUR)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.callbacks('order.closed')).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('says once that the order is closed, after all of its lines', async () => {
    const app = await openTestApp()
    const [one, two] = await app.offers()
    app.sandbox.faults.add({ fault: 'failed-order', match: { productId: two?.productId ?? '' } })
    await app.order('1001', [{ sku: one?.sku ?? '' }, { sku: two?.sku ?? '' }])
    await app.pass(HOUR)
    const types = app.shop.received().map(({ type }) => type)
    expect(types.toSorted()).toEqual(['line.failed', 'line.fulfilled', 'order.closed'])
    expect(types.at(-1)).toBe('order.closed')
    expect(first(app.callbacks('order.closed')).data.state).toBe('partly_fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('goes on for one order while it fails for another', async () => {
    const app = await openTestApp()
    const orders = [await app.buy('1001'), await app.buy('1002'), await app.buy('1003')]
    app.shop.answerNext(500, 1)
    await app.pass(3_000)
    expect(app.callbacks('line.fulfilled').length).toBeGreaterThanOrEqual(2)
    await app.pass(MINUTE)
    for (const order of orders) expect(await app.state(order)).toBe('fulfilled')
    app.expectLedger({ charges: 3, keys: 3 })
  })

  test('of a store that the configuration lacks were bought, and their keys could go nowhere', async () => {
    const app = await openTestApp()
    const { stores } = app.ordering
    app.ordering.stores = []
    const orders = [await app.buy('1001'), await app.buy('1002')]
    await app.pass(HOUR)
    const note = `the configuration of the process that buys has no store ${STORE}: it is bought once that has it`
    for (const order of orders)
      expect(await app.purchase(order)).toMatchObject({ state: 'planned', holdReason: null, note })
    expect(app.sent).toHaveLength(0)
    const said = app.lines.filter((line) => line.includes('purchase.postponed') && line.includes(note))
    expect(said, 'once of each').toHaveLength(2)
    expect(app.lines.filter((line) => line.includes('"event":"alert"') && line.includes(note))).toHaveLength(1)
    app.ordering.stores = stores
    await app.pass(5 * MINUTE)
    for (const order of orders) {
      expect(await app.state(order)).toBe('fulfilled')
      expect(await app.purchase(order)).toMatchObject({ note: null })
    }
    app.expectLedger({ charges: 2, keys: 2 })
  })

  test('waits for a store that is not configured', async () => {
    const app = await openTestApp()
    const { storeOf } = app.ordering
    app.ordering.storeOf = () => undefined
    const orderId = await app.buy('1001')
    await app.pass(2 * HOUR)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'completed' })
    app.ordering.storeOf = storeOf
    await app.pass(HOUR)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(await deliverAll(app.ordering)).toBe(0)
    app.expectLedger({ charges: 1, keys: 1 })
  })
})
