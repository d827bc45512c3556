import { describe, expect, test } from 'vitest'
import { afterClockJump } from '../../src/ordering/recover.ts'
import { openHarbour } from '../support/harbour.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

describe('a clock that was put back by two hours', () => {
  const back = -2 * HOUR

  test('does not keep an order that is open at the supplier from being read', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(10 * MINUTE)
    const { refreshAt, supplierOrderId } = await harbour.purchase(orderId)
    harbour.jump(back)
    expect(refreshAt).toBeGreaterThan(harbour.now() + HOUR)
    await afterClockJump(harbour.ordering)
    const order = harbour.sandbox.world.orders.get(supplierOrderId ?? '')
    if (order) harbour.sandbox.world.orders.complete(order)
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('does not keep a purchase that waits from being bought', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 60 })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'waiting' })
    harbour.jump(back)
    await afterClockJump(harbour.ordering)
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('does not keep a store from being told', async () => {
    const harbour = await openHarbour()
    harbour.shop.answerNext(500, 2)
    const orderId = await harbour.buy('1001')
    await harbour.pass(30 * SECOND)
    expect(harbour.callbacks('line.fulfilled')).toEqual([])
    harbour.jump(back)
    await afterClockJump(harbour.ordering)
    await harbour.pass(10 * SECOND)
    expect(harbour.callbacks('line.fulfilled')).toHaveLength(1)
    expect(await harbour.state(orderId)).toBe('fulfilled')
  })

  test('while nothing ran is met at the next start, and not at the one after that', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'unknown' })
    harbour.jump(back)
    await harbour.restart()
    await harbour.restart()
    expect(harbour.lines.filter((line) => line.includes('clock.jumped'))).toHaveLength(1)
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    expect(harbour.sent).toHaveLength(1)
  })

  test('does not lift the pause of a service that ends', async () => {
    const harbour = await openHarbour()
    harbour.ordering.pace.pausedUntil = Number.POSITIVE_INFINITY
    harbour.jump(back)
    await afterClockJump(harbour.ordering)
    await harbour.buy('1001')
    await harbour.pass(MINUTE)
    expect(harbour.sent).toEqual([])
  })
})
