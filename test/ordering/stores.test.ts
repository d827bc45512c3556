import { describe, expect, test } from 'vitest'
import { deliverDue } from '../../src/ordering/fulfil.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { StaleWrite } from '../../src/storage/database.ts'
import { listOutbox, redeliverEffect } from '../../src/storage/outbox.ts'
import { first, openHarbour } from '../support/harbour.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

describe('pushing to the store', () => {
  test('waits while the store is down, and delivers once when it is back', async () => {
    const harbour = await openHarbour()
    harbour.shop.answerNext(503, 3)
    const orderId = await harbour.buy('1001')
    await harbour.pass(10_000)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'completed' })
    harbour.expectLedger({ charges: 1, keys: 0 })
    await harbour.pass(5 * HOUR, 5 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.callbacks('line.fulfilled')).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('ends in a dead letter after three days, which is delivered once when it is put back', async () => {
    const harbour = await openHarbour()
    harbour.shop.answerNext(500, 10)
    const orderId = await harbour.buy('1001')
    await harbour.pass(10_000)
    await harbour.pass(5 * DAY, HOUR)
    const [letter] = await harbour.db.query(listOutbox({ state: 'dead', limit: 10 }))
    expect(letter).toMatchObject({ type: 'line.fulfilled', attempts: 10, lastError: expect.stringContaining('500') })
    expect(await harbour.alerts()).toContain('dead_letter')
    harbour.expectLedger({ charges: 1, keys: 0 })
    await harbour.db.commit([redeliverEffect(letter?.id ?? '', harbour.now())])
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    await expect(harbour.db.commit([redeliverEffect(letter?.id ?? '', harbour.now())])).rejects.toThrow(StaleWrite)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('repeats a message whose answer was lost under the same id', async () => {
    const harbour = await openHarbour()
    harbour.shop.answerNext(500, 1, 'recorded')
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.shop.repeated()).toBe(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('is noted after a crash between the answer of the store and the note', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.move(2_000)
    harbour.sandbox.advance()
    await refreshDue(harbour.ordering)
    harbour.crash.at = 'pushed'
    await harbour.runUntilDeath()
    expect(harbour.callbacks('line.fulfilled')).toHaveLength(1)
    await harbour.restart()
    await harbour.pass(MINUTE)
    expect(harbour.shop.repeated()).toBe(1)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('ends in a closed order after a crash between the note and the purchase', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.move(2_000)
    harbour.sandbox.advance()
    await refreshDue(harbour.ordering)
    harbour.crash.at = 'noted'
    await harbour.runUntilDeath()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'completed' })
    await harbour.restart()
    await harbour.pass(HOUR)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.callbacks('order.closed')).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('says once that the order is closed, after all of its lines', async () => {
    const harbour = await openHarbour()
    const [one, two] = await harbour.offers()
    harbour.sandbox.faults.add({ fault: 'failed-order', match: { productId: two?.productId ?? '' } })
    await harbour.order('1001', [{ sku: one?.sku ?? '' }, { sku: two?.sku ?? '' }])
    await harbour.pass(HOUR)
    const types = harbour.shop.received().map(({ type }) => type)
    expect(types.toSorted()).toEqual(['line.failed', 'line.fulfilled', 'order.closed'])
    expect(types.at(-1)).toBe('order.closed')
    expect(first(harbour.callbacks('order.closed')).data.state).toBe('partly_fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('goes on for one order while it fails for another', async () => {
    const harbour = await openHarbour()
    const orders = [await harbour.buy('1001'), await harbour.buy('1002'), await harbour.buy('1003')]
    harbour.shop.answerNext(500, 1)
    await harbour.pass(3_000)
    expect(harbour.callbacks('line.fulfilled')).toHaveLength(2)
    await harbour.pass(MINUTE)
    for (const order of orders) expect(await harbour.state(order)).toBe('fulfilled')
    harbour.expectLedger({ charges: 3, keys: 3 })
  })

  test('waits for a store that is not configured', async () => {
    const harbour = await openHarbour()
    const { storeOf } = harbour.ordering
    harbour.ordering.storeOf = () => undefined
    const orderId = await harbour.buy('1001')
    await harbour.pass(2 * HOUR)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'completed' })
    harbour.ordering.storeOf = storeOf
    await harbour.pass(HOUR)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(await deliverDue(harbour.ordering)).toBe(0)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})
