/** What a shop may do that would cost money: each time nothing is bought that is not paid for, and no paid order is forgotten. */
import { describe, expect, test } from 'vitest'
import { openShopApp } from '../support/shop-app.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

describe('an order that a merchant sets back to paid', () => {
  test('has only the lines bought that are not refunded', async () => {
    const app = await openShopApp({ delayMinutes: 10 })
    const [one, two] = await app.sell(2)
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }, { product: two?.product ?? 0 }] })
    await app.pass(3 * MINUTE)
    app.shop.setStatus(Number(reference), 'on-hold')
    await app.pass(3 * MINUTE)
    app.shop.edit(Number(reference), (order) => {
      const [line] = order.lines
      if (!line) throw new Error('it has two lines')
      const refunded = { id: 900, line, quantity: 1, total: line.total }
      order.refunds.push({ id: 901, reason: '', amount: line.total, createdAt: app.now(), lines: [refunded] })
    })
    app.shop.setStatus(Number(reference), 'processing')
    await app.pass(5 * MINUTE)
    const purchases = await app.purchases((await app.orderOf(reference))?.id ?? '')
    expect(purchases.filter(({ generation }) => generation > 1)).toHaveLength(1)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
  })

  test('is not bought where its total no longer fits, and a person is alerted', async () => {
    const app = await openShopApp({ delayMinutes: 10 })
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(3 * MINUTE)
    app.shop.setStatus(Number(reference), 'cancelled')
    await app.pass(3 * MINUTE)
    app.shop.edit(Number(reference), (order) => {
      order.totalOverride = 1
    })
    app.shop.setStatus(Number(reference), 'processing')
    await app.pass(15 * MINUTE)
    expect(app.sandbox.world.report().charges).toEqual([])
    expect(await app.alerts()).toContain('order_refused')
  })

  test('is not bought where all of its money went back', async () => {
    const app = await openShopApp({ delayMinutes: 10 })
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(3 * MINUTE)
    app.shop.edit(Number(reference), (order) => {
      const amount = order.lines.reduce((sum, { total }) => sum + total, 0)
      order.refunds.push({ id: 901, reason: '', amount, createdAt: app.now(), lines: [] })
    })
    app.shop.setStatus(Number(reference), 'refunded')
    await app.pass(3 * MINUTE)
    app.shop.setStatus(Number(reference), 'processing')
    await app.pass(15 * MINUTE)
    expect(app.sandbox.world.report().charges).toEqual([])
    expect(await app.alerts()).toContain('order_refused')
  })
})

describe('orders that are polled', () => {
  test('are taken although one beside them cannot be read, of which a person is alerted', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    const broken = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    const sound = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    app.shop.strike({
      fault: 'echo',
      kind: 'orders.list',
      times: 1_000,
      change: (json) =>
        (json as { id: number }[]).map((order) =>
          order.id === Number(broken) ? { ...order, line_items: null } : order,
        ),
    })
    await app.pass(5 * MINUTE)
    expect(app.keysOf(sound)).toHaveLength(1)
    expect(app.keysOf(broken)).toEqual([])
    expect(await app.alerts()).toContain('order_refused')
  })

  test('are not skipped after one whose change the shop dates into the future', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const ahead = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    app.shop.edit(Number(ahead), (order) => {
      order.modifiedAt = app.now() + DAY
    })
    const dated = app.shop.orders.get(Number(ahead))
    if (dated) dated.modifiedAt = app.now() + DAY
    await app.pass(5 * MINUTE)
    if (dated) dated.modifiedAt = app.now() + DAY
    await app.pass(2 * MINUTE)
    const next = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(5 * MINUTE)
    expect(app.keysOf(next)).toHaveLength(1)
  })

  test('are read although the clock went back by a day', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    app.jump(DAY)
    await app.pass(2 * MINUTE)
    app.jump(-DAY)
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(20 * MINUTE)
    expect(app.keysOf(reference)).toHaveLength(1)
  })
})
