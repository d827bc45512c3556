import { describe, expect, test } from 'vitest'
import type { CrashPoint } from '../../src/ordering/ordering.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { changePurchase } from '../../src/storage/purchases.ts'
import { type Harbour, openHarbour } from '../support/harbour.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const points: CrashPoint[] = ['claiming', 'claimed', 'intending', 'intended', 'answered', 'recorded']

const charges = (harbour: Harbour) => harbour.sandbox.world.report().charges.length

describe('a process that dies', () => {
  test.each(points)('at "%s" leaves one charge and every key once', async (point) => {
    const harbour = await openHarbour()
    harbour.crash.at = point
    const orderId = await harbour.buy('1001', { quantity: 2 })
    await harbour.runUntilDeath()
    expect(charges(harbour)).toBe(point === 'answered' || point === 'recorded' ? 1 : 0)
    await harbour.restart()
    await harbour.pass(20 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 2 })
  })

  test.each(points)('at "%s" of a repeat leaves one charge', async (point) => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.crash.at = point
    await Promise.race([harbour.died(), harbour.pass(10 * MINUTE)])
    await harbour.restart()
    await harbour.pass(20 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(new Set(harbour.sent.map(({ idempotencyKey, body }) => idempotencyKey + body)).size).toBe(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('right after the store has its keys closes the order at its next start, not at its next look', async () => {
    const harbour = await openHarbour()
    harbour.crash.at = 'noted'
    await harbour.buy('1001')
    await Promise.race([harbour.died(), harbour.pass(MINUTE)])
    expect(harbour.callbacks('line.fulfilled')).toHaveLength(1)
    await harbour.restart()
    await harbour.pass(10_000)
    expect(harbour.callbacks('order.closed')).toHaveLength(1)
    expect(harbour.callbacks('line.fulfilled')).toHaveLength(1)
  })

  test('ten times in a row leaves one charge', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    for (let time = 0; time < 10; time += 1) {
      harbour.crash.at = points[time % points.length] as CrashPoint
      await Promise.race([harbour.died(), harbour.pass(MINUTE)])
      await harbour.restart()
    }
    await harbour.pass(HOUR)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('leaves its purchase to another worker once its lease is over', async () => {
    const harbour = await openHarbour()
    harbour.crash.at = 'answered'
    const orderId = await harbour.buy('1001')
    await harbour.runUntilDeath()
    const other = await harbour.openProcess('other')
    harbour.move(170_000)
    await other.round()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'sending' })
    harbour.move(20_000)
    for (let minute = 0; minute < 5; minute += 1) {
      harbour.sandbox.advance()
      await other.round()
      harbour.move(MINUTE)
    }
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('with many orders open does not ask about all of them at its next start', async () => {
    const harbour = await openHarbour()
    const { sku } = await harbour.offer()
    const lines = Array.from({ length: 60 }, () => ({ sku }))
    harbour.sandbox.faults.add({ fault: 'hold-open', times: 60 })
    harbour.sandbox.world.topUp(1_000_000)
    await harbour.ordering.readBalance()
    harbour.sandbox.world.offers.change((await harbour.offer()).productId, { stock: 100 })
    const { orderId } = await harbour.order('1001', lines)
    await harbour.settle()
    await harbour.db.commit(
      (await harbour.purchases(orderId)).map((purchase) => changePurchase(purchase, { refreshAt: 1 }, harbour.now())),
    )
    await harbour.restart()
    harbour.move(5_000)
    expect(await refreshDue(harbour.ordering)).toBeLessThan(25)
  })
})
