import { describe, expect, test } from 'vitest'
import { afterClockJump } from '../../src/ordering/recover.ts'
import { openTestApp } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

describe('a clock that was put back by two hours', () => {
  const back = -2 * HOUR

  test('does not keep an order that is open at the supplier from being read', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.pass(10 * MINUTE)
    const { refreshAt, supplierOrderId } = await app.purchase(orderId)
    app.jump(back)
    expect(refreshAt).toBeGreaterThan(app.now() + HOUR)
    await afterClockJump(app.ordering)
    const order = app.sandbox.world.orders.get(supplierOrderId ?? '')
    if (order) app.sandbox.world.orders.complete(order)
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('does not keep a purchase that waits from being bought', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 60 })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'waiting' })
    app.jump(back)
    await afterClockJump(app.ordering)
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('does not keep a callback from its store', async () => {
    const app = await openTestApp()
    app.shop.answerNext(500, 2)
    const orderId = await app.buy('1001')
    await app.pass(30 * SECOND)
    expect(app.callbacks('line.fulfilled')).toEqual([])
    app.jump(back)
    await afterClockJump(app.ordering)
    await app.pass(10 * SECOND)
    expect(app.callbacks('line.fulfilled')).toHaveLength(1)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('while nothing ran is met at the next start, and not at the one after that', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
    app.jump(back)
    await app.restart()
    await app.restart()
    expect(app.lines.filter((line) => line.includes('clock.jumped'))).toHaveLength(1)
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    expect(app.sent).toHaveLength(1)
  })

  test('has a purchase in doubt looked up and never sent again by itself: its key may be forgotten', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
    app.jump(back)
    await afterClockJump(app.ordering)
    expect(await app.purchase(orderId)).toMatchObject({
      lastSentAt: app.now(),
      refreshAt: app.now(),
      absentSince: null,
    })
    await app.pass(HOUR, 30 * SECOND)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review', sends: 1 })
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('does not lift the pause of a service that ends', async () => {
    const app = await openTestApp()
    app.ordering.pace.pausedUntil = Number.POSITIVE_INFINITY
    app.jump(back)
    await afterClockJump(app.ordering)
    await app.buy('1001')
    await app.pass(MINUTE)
    expect(app.sent).toEqual([])
  })
})
