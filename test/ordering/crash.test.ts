import { describe, expect, test } from 'vitest'
import type { CrashPoint } from '../../src/ordering/context.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { changePurchase } from '../../src/storage/purchases.ts'
import { openTestApp, type TestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const points: CrashPoint[] = ['intending', 'intended', 'answered', 'recorded']

const charges = (app: TestApp) => app.sandbox.world.report().charges.length

describe('a process that dies', () => {
  test.each(points)('at "%s" leaves one charge and every key once', async (point) => {
    const app = await openTestApp()
    app.crash.at = point
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.runUntilDeath()
    expect(charges(app)).toBe(point === 'answered' || point === 'recorded' ? 1 : 0)
    await app.restart()
    await app.pass(20 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 2 })
  })

  test.each(points)('at "%s" of a repeat leaves one charge', async (point) => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.crash.at = point
    await Promise.race([app.died(), app.pass(10 * MINUTE)])
    await app.restart()
    await app.pass(20 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(new Set(app.sent.map(({ idempotencyKey, body }) => idempotencyKey + body)).size).toBe(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('right after the store has its keys closes the order at its next start, not at its next look', async () => {
    const app = await openTestApp()
    app.crash.at = 'noted'
    await app.buy('1001')
    await Promise.race([app.died(), app.pass(MINUTE)])
    expect(app.callbacks('line.fulfilled')).toHaveLength(1)
    await app.restart()
    await app.pass(10_000)
    expect(app.callbacks('order.closed')).toHaveLength(1)
    expect(app.callbacks('line.fulfilled')).toHaveLength(1)
  })

  test('ten times in a row leaves one charge', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    for (let time = 0; time < 10; time += 1) {
      app.crash.at = points[time % points.length] as CrashPoint
      await Promise.race([app.died(), app.pass(MINUTE)])
      await app.restart()
    }
    await app.pass(HOUR)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('leaves its purchase to another worker once its lease is over', async () => {
    const app = await openTestApp()
    app.crash.at = 'answered'
    const orderId = await app.buy('1001')
    await app.runUntilDeath()
    const other = await app.openProcess('other')
    app.move(170_000)
    await other.round()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'sending' })
    app.move(20_000)
    for (let minute = 0; minute < 5; minute += 1) {
      app.sandbox.advance()
      await other.round()
      app.move(MINUTE)
    }
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('with many orders open does not ask about all of them at its next start', async () => {
    const app = await openTestApp()
    const { sku } = await app.offer()
    const lines = Array.from({ length: 60 }, () => ({ sku }))
    app.sandbox.faults.add({ fault: 'hold-open', times: 60 })
    app.sandbox.world.topUp(1_000_000)
    await app.ordering.checkBalance()
    app.sandbox.world.offers.change((await app.offer()).productId, { stock: 100 })
    const { orderId } = await app.order('1001', lines)
    await app.settle()
    await app.db.commit(
      (await app.purchases(orderId)).map((purchase) => changePurchase(purchase, { refreshAt: 1 }, app.now())),
    )
    await app.restart()
    app.move(5_000)
    expect(await refreshDue(app.ordering)).toBeLessThan(25)
  })
})
