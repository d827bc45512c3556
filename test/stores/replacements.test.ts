/** A key that does not work, in a shop: the customer gets another one by the ways that the shop has, and no further unit. */
import { describe, expect, test } from 'vitest'
import { buyAgain, raiseClaim } from '../../src/ordering/claims.ts'
import { resendKeys } from '../../src/ordering/resend.ts'
import { entitlementOf } from '../../src/storage/entitlements.ts'
import { openShopApp } from '../support/shop-app.ts'
import { openShopifyApp } from '../support/shopify-app.ts'
import type { TestApp } from '../support/test-app.ts'

const MINUTE = 60_000

/** Has the first key of an order replaced by one that is bought again. */
async function replaceFirst({ ordering, purchases }: Pick<TestApp, 'ordering' | 'purchases'>, orderId: string) {
  const [purchase] = await purchases(orderId)
  const given = { ordinal: 1, note: 'it was redeemed before', days: 3 }
  const { number } = await raiseClaim(ordering, purchase?.id ?? '', given, 'ann')
  await buyAgain(ordering, number, 'ann')
}

async function shopifyOrder(quantity: number) {
  const app = await openShopifyApp()
  const variant = await app.sell()
  await app.settle()
  const { id } = app.shop.buy({ lines: [{ variant, quantity }] })
  await app.pass(5 * MINUTE)
  const keys = () =>
    app.shop
      .metafieldsOf(id)
      .filter(({ key }) => key.startsWith('keys_'))
      .flatMap(({ value }) => value.split('\n').slice(1))
  const mails = () => app.shop.mails().filter(({ order, kind }) => order === id && kind.startsWith('shipping'))
  return { app, id, orderId: (await app.orderOf(id))?.id ?? '', keys, mails }
}

describe('a customer of Shopify', () => {
  test('is written to again with the new key, and the merchant reads why', async () => {
    const { app, id, orderId, keys, mails } = await shopifyOrder(1)
    expect([keys().length, mails().length]).toEqual([1, 1])
    await replaceFirst(app, orderId)
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect([keys().length, mails().length]).toEqual([2, 2])
    expect(app.keysOf(id), 'the newest mail has the new key').toContain(keys().at(-1))
    expect(app.shop.orders.get(id)?.note).toContain('did not work, and another one came in its place')
    expect(await app.alerts(), 'no setting of the shop is at fault').not.toContain('order_fulfilled_early')
    expect(app.sandbox.world.report().charges).toHaveLength(2)
    await app.pass(60 * MINUTE)
    expect([keys().length, mails().length]).toEqual([2, 2])
    expect(await app.alertsAbout(id)).toEqual([])
  })

  test('has units that come later fulfilled, as many as there are', async () => {
    const { app, id, orderId, keys } = await shopifyOrder(1)
    await replaceFirst(app, orderId)
    await app.pass(10 * MINUTE)
    const [line] = app.shop.orders.get(id)?.lines ?? []
    app.shop.edit(id, { set: [{ id: line?.id ?? '', quantity: 3 }] })
    app.shop.pay(id)
    await app.pass(10 * MINUTE)
    expect(keys()).toHaveLength(4)
    const fulfilled = app.shop.orders.get(id)?.fulfilments.flatMap(({ lines }) => lines.map((one) => one.quantity))
    expect(fulfilled, 'a key in place of another one fulfils no unit').toEqual([1, 2])
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('whose order is so old that Shopify does not show it gets no other key by Quayside, and keeps the page', async () => {
    const { app, id, orderId } = await shopifyOrder(1)
    app.move(60 * 24 * 60 * MINUTE)
    await expect(replaceFirst(app, orderId)).rejects.toMatchObject({ code: 'conflict', reason: 'order_too_old' })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(await app.alertsAbout(id)).toEqual([])
  })

  test('has fewer units than keys, and gets no other key for one of them', async () => {
    const { app, id, orderId } = await shopifyOrder(2)
    const [line] = app.shop.orders.get(id)?.lines ?? []
    app.shop.refund(id, { lines: [{ id: line?.id ?? '', quantity: 1 }] })
    await app.pass(10 * MINUTE)
    await expect(replaceFirst(app, orderId)).rejects.toMatchObject({ code: 'conflict', reason: 'order_changed' })
    expect(app.sandbox.world.report().charges).toHaveLength(1)
  })

  test('who gets one of two units refunded meanwhile gets no other key for it', async () => {
    const { app, id, orderId, keys } = await shopifyOrder(2)
    await replaceFirst(app, orderId)
    const [line] = app.shop.orders.get(id)?.lines ?? []
    app.shop.refund(id, { lines: [{ id: line?.id ?? '', quantity: 1 }] })
    await app.pass(10 * MINUTE)
    expect(keys()).toHaveLength(2)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
  })
})

describe('a customer of WooCommerce', () => {
  test('gets the new key by note, also where the order was completed before', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0, quantity: 2 }] })
    await app.pass(5 * MINUTE)
    const orderId = (await app.orderOf(reference))?.id ?? ''
    expect(app.statusOf(reference)).toBe('completed')
    await replaceFirst(app, orderId)
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    const issued = Object.values(app.sandbox.world.report().keysIssued).flat()
    expect(issued).toHaveLength(3)
    const noted = app.notesOf(reference).filter(({ isForCustomer }) => isForCustomer)
    const fresh = noted.flatMap(({ note }) => issued.filter((key) => note.includes(key)))
    expect(fresh, 'one note, with the new key alone').toHaveLength(1)
    expect(app.shop.mailsWith(fresh[0] ?? '')).toHaveLength(1)
    expect(app.statusOf(reference)).toBe('completed')
    expect(await app.alertsAbout(reference)).toEqual([])
    // The key that does not work is not among those that an operator has sent again.
    expect(await resendKeys(app.runtime.ordering, orderId, 'ann')).toMatchObject({ keys: 2 })
    const again = app.notesOf(reference).filter(({ isForCustomer }) => isForCustomer)
    const dead = issued.filter((key) => again.every(({ note }) => !note.includes(key)))
    expect(again).toHaveLength(noted.length + 1)
    expect(dead).toHaveLength(1)
  })

  test('finds no order completed of which a paid unit was never bought: a key in place of another one is no unit', async () => {
    const app = await openShopApp()
    const sold = await app.sell(2)
    const offer = (await app.offers()).find(({ sku }) => sku === sold[1]?.sku)
    app.sandbox.faults.add({ fault: 'hold-open', match: { productId: offer?.productId } })
    const reference = app.customerBuys({ lines: sold.map(({ product }) => ({ product })) })
    await app.pass(5 * MINUTE)
    const [line] = app.shop.orders.get(Number(reference))?.lines ?? []
    if (line) line.quantity = 2
    for (const status of ['on-hold', 'processing']) app.shop.setStatus(Number(reference), status)
    await app.pass(2 * MINUTE)
    await replaceFirst(app, (await app.orderOf(reference))?.id ?? '')
    await app.pass(10 * MINUTE)
    for (const open of app.sandbox.world.orders.known(9, 'open')) app.sandbox.world.orders.complete(open)
    await app.pass(10 * MINUTE)
    expect(await app.alertsAbout(reference)).toEqual([expect.stringContaining('is ordered and not bought')])
    expect(await app.orderOf(reference)).toMatchObject({ closedState: 'fulfilled' })
    expect(app.sandbox.world.report().charges).toHaveLength(3)
    expect(app.statusOf(reference)).toBe('processing')
  })

  test('who gets a unit refunded before the new key has left keeps what was delivered, and gets no other key', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(5 * MINUTE)
    const order = await app.orderOf(reference)
    await replaceFirst(app, order?.id ?? '')
    const [line] = app.shop.orders.get(Number(reference))?.lines ?? []
    app.shop.refund(Number(reference), { amount: '99.00', lines: [{ id: line?.id ?? 0, quantity: 1 }] })
    await app.pass(10 * MINUTE)
    expect(await app.db.query(entitlementOf(order?.store ?? '', reference))).toMatchObject([{ standing: 'cancelled' }])
    const states = (await app.purchases(order?.id ?? '')).map(({ part, state }) => `${part} ${state}`)
    expect(states).toEqual(['1 fulfilled', '2 cancelled'])
    expect(app.sandbox.world.report().charges).toHaveLength(1)
  })
})
