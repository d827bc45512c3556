/** A WooCommerce shop connected to Quayside: what its customers and its merchant get, whatever the shop does meanwhile. */

import { eq } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { priceOf as offerPrice } from '../../src/domain/pricing.ts'
import { retryPurchase } from '../../src/ordering/actions.ts'
import { alertHeld } from '../../src/ordering/late.ts'
import { resendKeys } from '../../src/ordering/resend.ts'
import { beforeAsking, takeFromShop } from '../../src/ordering/shop-orders.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { listingsOfVariants, pricesOfListing } from '../../src/storage/listings.ts'
import type { Offer } from '../../src/storage/offers.ts'
import { enqueuePublications } from '../../src/storage/publications.ts'
import { offers } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { putStoreReading } from '../../src/storage/stores.ts'
import { TEST_NOW } from '../support/database.ts'
import { orderRead } from '../support/order-read.ts'
import { sellingPolicy } from '../support/selling.ts'
import { openShopApp, SHOP } from '../support/shop-app.ts'
import { first } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

describe('a customer of a WooCommerce shop', () => {
  test('gets the keys in the lines of the order, in one mail, and the order is completed', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0, quantity: 2 }] })
    await app.pass(3 * MINUTE)
    const keys = app.keysOf(reference)
    expect(keys).toHaveLength(2)
    expect(app.statusOf(reference)).toBe('completed')
    for (const key of keys) expect(app.shop.mailsWith(key)).toHaveLength(1)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
  })

  test('who has not paid, or pays cash on delivery, gets nothing until the money is there', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const cash = app.customerBuys({ lines: [{ product: one?.product ?? 0 }], payment: 'on_delivery' })
    const transfer = app.customerBuys({ lines: [{ product: one?.product ?? 0 }], payment: 'waiting' })
    await app.pass(5 * MINUTE)
    expect([app.keysOf(cash), app.keysOf(transfer)]).toEqual([[], []])
    expect(app.sandbox.world.report().charges).toEqual([])
    app.shop.pay(Number(transfer))
    await app.pass(3 * MINUTE)
    expect(app.keysOf(transfer)).toHaveLength(1)
    expect(app.keysOf(cash)).toEqual([])
  })

  test('who paid before the shop was connected is not sold the same again', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const before = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    app.shop.edit(Number(before), (order) => {
      order.paidAt = app.now() - HOUR
    })
    await app.pass(3 * MINUTE)
    expect(app.keysOf(before)).toEqual([])
    expect(await app.orderOf(before)).toBeUndefined()
  })

  test('of a mixed cart gets the keys, and the other lines are left alone', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const shirt = app.shop.addProduct({ name: 'Shirt', sku: 'SHIRT', regular_price: '20.00' })
    const reference = app.customerBuys({ lines: [{ product: shirt.id }, { product: one?.product ?? 0 }] })
    await app.pass(3 * MINUTE)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
    const issued = first(Object.values(app.sandbox.world.report().keysIssued).flat())
    expect(app.shop.mailsWith(issued)).toHaveLength(1)
    expect(app.statusOf(reference), 'the shirt is not sent yet').toBe('processing')
  })

  test('of a mixed cart has each key by one mail, and a guest finds it on the tracking page, also once the shirt was sent', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const shirt = app.shop.addProduct({ name: 'Shirt', sku: 'SHIRT', regular_price: '20.00' })
    const email = 'guest@shop.test'
    const reference = app.customerBuys({ lines: [{ product: shirt.id }, { product: one?.product ?? 0 }], email })
    const timesOnPage = () => app.shop.trackingPage(Number(reference), email)?.split(issued()).length
    const issued = () => first(Object.values(app.sandbox.world.report().keysIssued).flat())
    await app.pass(3 * MINUTE)
    expect(timesOnPage(), 'once').toBe(2)
    app.shop.setStatus(Number(reference), 'completed')
    await app.pass(HOUR, MINUTE)
    expect(app.shop.mailsWith(issued()).map(({ kind }) => kind)).toEqual(['customer_note'])
    expect(
      app.shop.mails().map(({ kind }) => kind),
      'the mail about the shirt',
    ).toContain('completed')
    expect(timesOnPage(), 'once').toBe(2)
  })

  /** An order of two lines: the supplier has a key for the first one, and none for the second one yet. */
  async function halfReady(fault: 'out-of-stock' | 'hold-open' | 'partial-keys' = 'out-of-stock') {
    const app = await openShopApp()
    const [ready, waiting] = await app.sell(2)
    await app.settle()
    const offer = (await app.offers()).find(({ sku }) => sku === waiting?.sku)
    const match = { productId: offer?.productId ?? '' }
    const { id } = app.sandbox.faults.add({
      fault,
      times: fault === 'hold-open' ? 1 : 1_000,
      match,
      first: 0,
      delayMs: 20 * HOUR,
    })
    await app.pass(50_000)
    const reference = app.customerBuys({
      lines: [{ product: ready?.product ?? 0 }, { product: waiting?.product ?? 0 }],
      email: 'guest@shop.test',
    })
    const issued = () => Object.values(app.sandbox.world.report().keysIssued).flat()
    const mailed = () => issued().map((key) => app.shop.mailsWith(key).map(({ kind }) => kind))
    const customerNotes = () => app.notesOf(reference).filter(({ isForCustomer }) => isForCustomer)
    const comes = () => {
      app.sandbox.faults.remove(id)
      const { orders } = app.sandbox.world
      for (const order of orders.known(10).filter(({ status }) => status === 'open')) orders.complete(order)
    }
    return { app, reference, issued, mailed, customerNotes, comes }
  }

  test('of two products gets the key that is ready within two minutes, and the other one when it comes, each by one mail', async () => {
    const { app, reference, issued, mailed, customerNotes, comes } = await halfReady()
    await app.pass(MINUTE, 5_000)
    expect(issued()).toHaveLength(1)
    await app.pass(2 * MINUTE, 5_000)
    expect(mailed()).toEqual([['customer_note']])
    await app.pass(HOUR)
    expect(mailed(), 'no second time').toEqual([['customer_note']])
    expect(app.statusOf(reference)).toBe('processing')
    comes()
    await app.pass(2 * HOUR)
    expect(app.statusOf(reference)).toBe('completed')
    expect(mailed()).toEqual([['customer_note'], ['completed']])
    expect(customerNotes()).toHaveLength(1)
  })

  test.each([
    ['stock', 'out-of-stock', 'planned'],
    ['the supplier', 'hold-open', 'accepted'],
    ['a person, who decides on its review', 'partial-keys', 'review'],
  ] as const)(
    'gets the key that is ready within two minutes while the other line waits for %s',
    async (_, fault, state) => {
      const { app, reference, mailed } = await halfReady(fault)
      await app.pass(2 * MINUTE, 5_000)
      expect(mailed()).toEqual([['customer_note']])
      await app.pass(3 * HOUR, 5 * MINUTE)
      expect(mailed()).toEqual([['customer_note']])
      const purchases = await app.purchases((await app.orderOf(reference))?.id ?? '')
      expect(purchases.map((one) => one.state)).toContain(state)
    },
  )

  test('of two products that are ready within the same minute gets one mail with both keys, and no note', async () => {
    const { app, reference, issued, mailed, customerNotes, comes } = await halfReady('hold-open')
    while (issued().length === 0) await app.pass(1_000)
    comes()
    await app.pass(MINUTE, 5_000)
    expect(app.statusOf(reference)).toBe('completed')
    await app.pass(HOUR)
    expect(app.statusOf(reference)).toBe('completed')
    expect(mailed()).toEqual([['completed'], ['completed']])
    expect(customerNotes()).toEqual([])
  })

  test('gets no second mail of a key that was ready early, although the shop did not answer when it was mailed', async () => {
    for (const kind of ['notes.create', 'orders.update']) {
      const { app, reference, mailed, comes } = await halfReady()
      await app.pass(MINUTE, 5_000)
      app.shop.strike({ fault: kind === 'notes.create' ? 'lost_after' : 'lost_before', kind, times: 3 })
      await app.pass(MINUTE, 5_000)
      comes()
      await app.pass(2 * HOUR)
      expect(app.statusOf(reference)).toBe('completed')
      expect(
        mailed().map((mails) => mails.length),
        kind,
      ).toEqual([1, 1])
    }
  })

  test('whose money for a line went back before its key was mailed gets no note with that key', async () => {
    const { app, reference, mailed } = await halfReady()
    while (app.keysOf(reference).length === 0) await app.pass(1_000)
    const line = first(app.shop.orders.get(Number(reference))?.lines ?? [])
    app.shop.refund(Number(reference), { amount: '1.00', lines: [{ id: line.id, quantity: 1, total: '1.00' }] })
    await app.pass(10 * MINUTE)
    expect(mailed().flat()).not.toContain('customer_note')
  })

  test('of an order that is put on hold gets a key that is ready only once it is paid again, and none of a cancelled one', async () => {
    const held = await halfReady()
    const cancelled = await halfReady()
    for (const { app } of [held, cancelled]) await app.pass(MINUTE, 5_000)
    held.app.shop.setStatus(Number(held.reference), 'on-hold')
    cancelled.app.shop.setStatus(Number(cancelled.reference), 'cancelled')
    for (const { app, mailed } of [held, cancelled]) {
      await app.pass(10 * MINUTE)
      expect(mailed().flat()).not.toContain('customer_note')
    }
    held.app.shop.setStatus(Number(held.reference), 'processing')
    await held.app.pass(3 * MINUTE)
    expect(held.mailed().flat()).toContain('customer_note')
  })

  test('who paid before the shop was down for an hour gets the keys within minutes of its return, and not hours', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    app.shop.strike({
      fault: 'lost_before',
      times: Number.POSITIVE_INFINITY,
      matches: ({ method }) => method === 'PUT',
    })
    await app.pass(2 * MINUTE)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
    await app.running.stop()
    await app.pass(HOUR)
    app.shop.clearFaults()
    await app.running.start()
    // The attempts that failed because the shop was away do not count: another failure is soon made good.
    app.shop.strike({ fault: 'maintenance', kind: 'orders.update' })
    await app.pass(10 * MINUTE)
    expect(app.keysOf(reference)).toHaveLength(1)
    expect(app.shop.mailsWith(first(app.keysOf(reference)))).toHaveLength(1)
  })

  test('who pays while the shop is down for an hour gets the keys once it is back, each once', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    const references = Array.from({ length: 5 }, () => app.customerBuys({ lines: [{ product: one?.product ?? 0 }] }))
    await app.running.stop()
    await app.pass(HOUR)
    expect(await app.alerts()).toContain('store_unreachable')
    await app.running.start()
    await app.pass(10 * MINUTE)
    for (const reference of references) {
      expect(app.keysOf(reference)).toHaveLength(1)
      expect(app.shop.mailsWith(first(app.keysOf(reference)))).toHaveLength(1)
    }
    expect(app.sandbox.world.report().charges).toHaveLength(5)
  })
})

test('an order that changes while a delivery and the poll take it is taken once, and the change is followed', async () => {
  const app = await openShopApp({ delayMinutes: 10 })
  const [one] = await app.sell()
  await app.settle()
  const line = { id: '1', variant: String(one?.product), sku: one?.sku ?? '', unitPrice: '99.00', currency: 'EUR' }
  const read = (quantity: number) => orderRead({ reference: '77', paidAt: app.now(), lines: [{ ...line, quantity }] })
  const { ordering } = app.runtime
  const store = { order: async () => ({ outcome: 'order' as const, order: read(1) }) }
  const shop = { id: SHOP, connectedAt: 0, delayMs: 600_000, store }
  const asked = await beforeAsking(ordering, SHOP)
  const both = await Promise.all([
    takeFromShop(ordering, shop, read(2), asked),
    takeFromShop(ordering, shop, read(1), asked),
  ])
  expect(both).toEqual([{ outcome: 'taken' }, { outcome: 'taken' }])
  const { id = '' } = (await app.orderOf('77')) ?? {}
  expect(await app.purchases(id)).toMatchObject([{ state: 'planned', quantity: 1 }])
})

test('orders of a shop that two processes on one database read and work on are bought once, and their keys mailed once', async () => {
  const app = await openShopApp()
  const products = await app.sell(3)
  await app.settle()
  const other = await app.app.openProcess('other')
  const references = Array.from({ length: 12 }, (_, index) =>
    app.customerBuys({ lines: [{ product: products[index % 3]?.product ?? 0 }] }),
  )
  for (let minute = 0; minute < 8; minute += 1) {
    app.move(MINUTE)
    for (let round = 0; round < 10; round += 1) {
      await Promise.all([app.runtime, other.runtime].map(({ work }) => work.poll()))
      await Promise.all([app.round(), other.round()])
      app.sandbox.advance()
    }
  }
  const issued = Object.values(app.sandbox.world.report().keysIssued).flat()
  expect(app.sandbox.world.report().charges).toHaveLength(12)
  expect(issued.map((key) => app.shop.mailsWith(key).length)).toEqual(issued.map(() => 1))
  for (const reference of references) {
    expect(app.keysOf(reference)).toHaveLength(1)
    expect(app.statusOf(reference)).toBe('completed')
    expect(app.notesOf(reference).filter(({ note }) => note.startsWith('Quayside'))).toEqual([])
  }
  expect(await app.alerts()).toEqual([])
})

test('the deliveries that a shop makes of what Quayside writes to its orders cost no request, and the next change is read', async () => {
  const app = await openShopApp()
  const [one] = await app.sell()
  await app.settle()
  const deliver = await app.connectWebhook()
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
  await deliver()
  await app.pass(2 * MINUTE)
  expect(app.statusOf(reference)).toBe('completed')
  const reads = () => app.shop.counts()['orders.get']
  const before = reads()
  const echoes = app.shop.takeDeliveries()
  expect(echoes.map(({ topic }) => topic)).toEqual(['order.updated'])
  await deliver(echoes)
  expect(reads(), 'the shop is asked for nothing').toBe(before)
  app.move(MINUTE)
  app.shop.refund(Number(reference), { amount: '0.50' })
  await deliver()
  expect(reads()).toBe((before ?? 0) + 1)
  expect(await app.alertsAbout(reference)).toEqual([expect.stringContaining('0.50 EUR')])
})

describe('an order that brought less than its units cost', () => {
  test.each([
    ['a gift card paid', (price: number) => ({ fees: [{ name: 'Gift card', total: `-${(price - 1).toFixed(2)}` }] })],
    ['a coupon of 100 % paid', (price: number) => ({ coupon: { code: 'FREE', discount: price.toFixed(2) } })],
  ])('because %s is held, says so in the shop, and alerts people after an hour', async (_, less) => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    const product = one?.product ?? 0
    const price = Number(app.shop.products.get(product)?.regularPrice)
    const reference = app.customerBuys({ lines: [{ product }], ...less(price) })
    await app.pass(10 * MINUTE)
    expect(app.sandbox.world.report().charges).toEqual([])
    expect(app.notesOf(reference).map(({ note }) => note)).toContainEqual(expect.stringContaining('above what'))
    for (let quarter = 0; quarter < 8; quarter += 1) {
      await app.pass(15 * MINUTE)
      await alertHeld(app.ordering)
    }
    expect(await app.alertsAbout(reference)).toEqual([expect.stringContaining(reference)])
    expect((await app.alerts()).filter((type) => type === 'order_held')).toHaveLength(1)
  })
})

describe('keys that a customer has lost', () => {
  test('are sent again by the shop when an operator asks for it, and the audit says who did', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0, quantity: 2 }] })
    await app.pass(3 * MINUTE)
    const order = await app.orderOf(reference)
    await expect(resendKeys(app.runtime.ordering, order?.id ?? '', 'anna')).resolves.toEqual({ keys: 2, detail: null })
    for (const key of app.keysOf(reference)) expect(app.shop.mailsWith(key)).toHaveLength(2)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
    const audit = await app.db.query(auditOf(order?.id ?? ''))
    expect(audit.at(-1)).toMatchObject({ actor: 'anna', action: 'order.resend', subject: order?.id, detail: '2 keys' })
  })

  test('are sent again without those of a line that was refunded before they came', async () => {
    const app = await openShopApp()
    const [one, two] = await app.sell(2)
    const offer = (await app.offers()).find(({ sku }) => sku === two?.sku)
    app.sandbox.faults.add({ fault: 'hold-open', match: { productId: offer?.productId } })
    const lines = [one, two].map((sold) => ({ product: sold?.product ?? 0 }))
    const reference = app.customerBuys({ lines })
    await app.pass(3 * MINUTE)
    const [, second] = app.shop.orders.get(Number(reference))?.lines ?? []
    app.shop.refund(Number(reference), {
      amount: '99.00',
      lines: [{ id: second?.id ?? 0, quantity: 1, total: '99.00' }],
    })
    await app.pass(3 * MINUTE)
    for (const open of app.sandbox.world.orders.known(9, 'open')) app.sandbox.world.orders.complete(open)
    await app.pass(10 * MINUTE)
    const order = await app.orderOf(reference)
    expect(app.sandbox.world.report().charges).toHaveLength(2)
    await expect(resendKeys(app.runtime.ordering, order?.id ?? '', 'anna')).resolves.toEqual({ keys: 1, detail: null })
  })

  test('are not sent again while they came and wait for an order that is on hold', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(3 * MINUTE)
    app.shop.setStatus(Number(reference), 'on-hold')
    await app.pass(2 * MINUTE)
    for (const open of app.sandbox.world.orders.known(9, 'open')) app.sandbox.world.orders.complete(open)
    await app.pass(10 * MINUTE)
    const order = await app.orderOf(reference)
    expect(Object.values(app.sandbox.world.report().keysIssued).flat()).toHaveLength(1)
    await expect(resendKeys(app.runtime.ordering, order?.id ?? '', 'anna')).rejects.toMatchObject({ reason: 'no_keys' })
  })

  test('are sent again in a note that names the product of each line', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(3 * MINUTE)
    const order = await app.orderOf(reference)
    await resendKeys(app.runtime.ordering, order?.id ?? '', 'anna')
    const [key = ''] = app.keysOf(reference)
    const notes = app.shop.orders.get(Number(reference))?.notes.filter(({ note }) => note.includes(key))
    expect(notes).toEqual([expect.objectContaining({ note: expect.stringContaining(`(${one?.sku})`) })])
  })

  test('are not sent before they are handed over, nor by a backend, which writes to its customers itself', async () => {
    const app = await openShopApp({ delayMinutes: 10 })
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(2 * MINUTE)
    const order = await app.orderOf(reference)
    await expect(resendKeys(app.runtime.ordering, order?.id ?? '', 'anna')).rejects.toMatchObject({ reason: 'no_keys' })
    const backendOrder = await app.buy('1001')
    await expect(resendKeys(app.runtime.ordering, backendOrder, 'anna')).rejects.toMatchObject({ reason: 'no_resend' })
  })
})

describe('a merchant', () => {
  test('who cancels an order before it is bought keeps it from being bought', async () => {
    const app = await openShopApp({ delayMinutes: 10 })
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(5 * MINUTE)
    const bought = async () => app.purchases((await app.orderOf(reference))?.id ?? '')
    expect(await bought()).toMatchObject([{ state: 'planned' }])
    app.shop.setStatus(Number(reference), 'cancelled')
    await app.pass(10 * MINUTE)
    expect(app.sandbox.world.report().charges).toEqual([])
    expect(await bought()).toMatchObject([{ state: 'cancelled' }])
  })

  test('whose fraud check speaks within the delay has nothing bought until the order is paid again', async () => {
    const app = await openShopApp({ delayMinutes: 10 })
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(5 * MINUTE)
    app.shop.setStatus(Number(reference), 'on-hold')
    await app.pass(HOUR, 5 * MINUTE)
    expect(app.sandbox.world.report().charges).toEqual([])
    app.shop.setStatus(Number(reference), 'processing')
    await app.pass(5 * MINUTE)
    expect(app.keysOf(reference)).toHaveLength(1)
  })

  test('sets a failed order on hold and back, and learns that a person buys it again: its money may not have come back', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    app.sandbox.faults.add({ fault: 'failed-order' })
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(5 * MINUTE)
    expect(app.keysOf(reference)).toEqual([])
    const notes = app
      .notesOf(reference)
      .filter(({ isForCustomer, note }) => !isForCustomer && note.includes('will not come'))
    expect(notes.map(({ note }) => note)).toEqual([expect.stringContaining('could not fulfil the order. Refund')])
    app.shop.setStatus(Number(reference), 'on-hold')
    await app.pass(3 * MINUTE)
    app.shop.setStatus(Number(reference), 'processing')
    await app.pass(5 * MINUTE)
    expect(app.keysOf(reference)).toEqual([])
    const [failed] = await app.purchases((await app.orderOf(reference))?.id ?? '')
    expect(await app.alertsAbout(reference)).toContainEqual(
      expect.stringContaining(`quayside purchases retry ${failed?.id}`),
    )
    await retryPurchase(app.ordering, failed?.id ?? '', 'ann')
    await app.pass(5 * MINUTE)
    expect(app.keysOf(reference)).toHaveLength(1)
    expect(app.statusOf(reference)).toBe('completed')
  })

  test('who adds units to a paid order or refunds some is alerted, and nothing more is bought', async () => {
    const app = await openShopApp({ delayMinutes: 10 })
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0, quantity: 2 }] })
    await app.pass(3 * MINUTE)
    app.shop.edit(Number(reference), (order) => {
      for (const line of order.lines) line.quantity = 5
    })
    await app.pass(20 * MINUTE)
    expect(await app.alerts()).toContain('order_changed')
    expect(app.sandbox.world.report().charges).toHaveLength(1)
    const issued = Object.values(app.sandbox.world.report().keysIssued).flat()
    expect(issued).toHaveLength(2)
    for (const key of issued) expect(app.shop.mailsWith(key)).toHaveLength(1)
    expect(app.statusOf(reference), 'three units are not handed over').toBe('processing')
  })

  test('reads in the shop, once, why nothing is bought for a paid order', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }], total: '1.00' })
    const many = app.customerBuys({ lines: [{ product: one?.product ?? 0, quantity: 500_000 }] })
    await app.pass(15 * MINUTE)
    const words = (order: string) => app.notesOf(order).filter(({ note }) => note.startsWith('Quayside'))
    const notes = [...words(reference), ...words(many)]
    expect(notes.map(({ note }) => note.replace(/ \[quayside .*/, ''))).toEqual([
      'Quayside: nothing is bought for this order: the total of the order does not fit its lines. Once that is put right, save the order.',
      expect.stringMatching(
        /^Quayside: nothing is bought for this order: line 1 makes too many purchases: .* save the order\.$/,
      ),
    ])
    expect(notes.filter(({ isForCustomer }) => isForCustomer)).toEqual([])
    expect(app.sandbox.world.report().charges).toEqual([])
  })

  test('is alerted with the reason that nothing is bought for an order whose total does not fit', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }], total: '1.00' })
    await app.pass(3 * MINUTE)
    expect(await app.alerts()).toContain('order_refused')
    expect(app.sandbox.world.report().charges).toEqual([])
    expect(app.keysOf(reference)).toEqual([])
  })
})

describe('the products of a WooCommerce shop', () => {
  test('are linked by SKU and get price and stock; others are left alone', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const other = app.shop.addProduct({ name: 'Mug', sku: 'MUG', regular_price: '7.00' })
    await app.settle()
    const product = app.shop.products.get(one?.product ?? 0)
    expect(product?.regularPrice).not.toBe('99.00')
    expect(app.shop.products.get(other.id)?.regularPrice).toBe('7.00')
    const [listing] = await app.db.query(listingsOfVariants(SHOP, [String(one?.product)]))
    expect(listing).toMatchObject({ state: 'synced', sku: one?.sku })
    expect(await app.db.query(listingsOfVariants(SHOP, [String(other.id)]))).toEqual([])
  })

  /** The merchant has a product on sale, which the supplier offers too. */
  async function onSale(sale: (ours: number) => number) {
    const app = await openShopApp()
    const [one] = await app.sell()
    const product = first([...app.shop.products.values()].filter(({ id }) => id === one?.product))
    const ours = priceOf(await app.offer())
    app.shop.editProduct(product.id, { regular_price: '5000.00', sale_price: sale(ours).toFixed(2) })
    const listing = async () => first(await app.db.query(listingsOfVariants(SHOP, [String(product.id)])))
    const shown = () => ({ price: product.regularPrice, sale: product.salePrice, stock: product.stockQuantity })
    return { app, product, listing, shown, ours }
  }
  const priceOf = (offer: Offer): number => {
    const priced = offerPrice(offer, sellingPolicy().pricing, TEST_NOW)
    if (priced.outcome === 'held') throw new Error(priced.detail)
    return priced.priceMinor / 100
  }

  test('keep a sale price of the merchant that is below cost and margin, have no stock, and the listing says so', async () => {
    const { app, product, listing, shown, ours } = await onSale((price) => price / 2)
    const sale = (ours / 2).toFixed(2)
    const kept = { price: ours.toFixed(2), sale, stock: 0 }
    for (let minute = 0; minute < 60; minute += 1) {
      await app.pass(MINUTE)
      expect(shown()).toEqual(kept)
    }
    expect(await listing()).toMatchObject({
      state: 'failed',
      reason: 'sale_price',
      detail: expect.stringContaining(`a sale price of ${sale} EUR`),
    })
    expect(await app.alerts()).toContain('listing_failed')
    app.shop.editProduct(product.id, { sale_price: '' })
    await app.pass(3 * HOUR)
    expect(await listing()).toMatchObject({ state: 'synced', reason: null, attempts: 0 })
    expect(shown()).toMatchObject({ price: ours.toFixed(2), sale: '' })
    expect(product.stockQuantity).toBeGreaterThan(0)
  })

  test('keep a lower sale price of the merchant that covers cost and margin, are on sale, and the listing says so', async () => {
    const { app, product, listing, shown, ours } = await onSale((price) => price - 0.01)
    await app.pass(HOUR)
    expect(shown()).toMatchObject({ price: ours.toFixed(2), sale: (ours - 0.01).toFixed(2) })
    expect(product.stockQuantity).toBeGreaterThan(0)
    expect(await listing()).toMatchObject({
      state: 'synced',
      reason: 'sale_price',
      detail: expect.stringContaining(`a sale price of ${(ours - 0.01).toFixed(2)} EUR`),
    })
    expect(await app.alerts()).toEqual([])
    const writes = () => app.shop.counts()['products.batch']
    const before = writes()
    await app.pass(7 * HOUR, 30 * MINUTE)
    expect(writes(), 'what the shop has is pushed no more').toBe(before)
  })

  test('have a price that the merchant changed by hand put right at the next reading, and their history says it', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    const product = first([...app.shop.products.values()].filter(({ id }) => id === one?.product))
    const ours = product.regularPrice
    app.shop.editProduct(product.id, { regular_price: '1.00' })
    await app.pass(6 * HOUR + 2 * MINUTE, 30 * MINUTE)
    expect(product.regularPrice).toBe(ours)
    expect(product.stockQuantity).toBeGreaterThan(0)
    expect(first(await app.db.query(listingsOfVariants(SHOP, [String(product.id)])))).toMatchObject({ state: 'synced' })
    const history = (await app.db.query(pricesOfListing(SHOP, String(product.id), 10))).map(({ priceMinor, cause }) => [
      (priceMinor / 100).toFixed(2),
      cause,
    ])
    expect(history).toEqual([
      [ours, 'shop'],
      ['1.00', 'shop'],
      [ours, 'first'],
    ])
    expect(await app.alerts()).toEqual([])
    const writes = () => app.shop.counts()['products.batch']
    const before = writes()
    await app.pass(13 * HOUR, 30 * MINUTE)
    expect(writes(), 'a price that stands is pushed no more').toBe(before)
  })

  test('keep the prices of the merchant when their offer is gone: their stock alone is taken out', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    const product = first([...app.shop.products.values()].filter(({ id }) => id === one?.product))
    app.shop.editProduct(product.id, { regular_price: '123.00', sale_price: '120.00' })
    const { productId } = await app.offer()
    await app.db.commit([
      { statement: build.update(offers).set({ goneAt: app.now() }).where(eq(offers.productId, productId)), rows: 1 },
      ...enqueuePublications([{ id: SHOP }], [productId], { newId: () => 'p1', now: app.now(), cause: 'test' }),
    ])
    await app.settle()
    expect(product).toMatchObject({ regularPrice: '123.00', salePrice: '120.00', stockQuantity: 0 })
  })

  test('that were read before the catalogue of the supplier were linked six hours later', async () => {
    const app = await openShopApp()
    const [offer] = app.sandbox.world.offers.list({}, 0, 1).items
    const { id } = app.shop.addProduct({ name: 'Game', sku: offer?.sku ?? '', regular_price: '99.00' })
    const lists = () => app.shop.counts()['products.list']
    await app.settle()
    expect(lists()).toBe(1)
    app.move(MINUTE)
    await app.runtime.syncs.finish('test')
    await app.settle()
    expect(app.shop.products.get(id)?.regularPrice).not.toBe('99.00')
    app.move(MINUTE)
    await app.runtime.syncs.finish('test')
    await app.settle()
    expect(lists(), 'a run without new offers reads nothing').toBe(2)
  })

  test('that wait for an offer of which the supplier sends an event were linked six hours later', async () => {
    const app = await openShopApp()
    const [offer] = app.sandbox.world.offers.list({}, 0, 1).items
    const { id } = app.shop.addProduct({ name: 'Game', sku: offer?.sku ?? '', regular_price: '99.00' })
    const lists = () => app.shop.counts()['products.list']
    await app.settle()
    await app.pass(2 * MINUTE)
    await app.ordering.refreshOffer(offer?.id ?? '')
    await app.pass(20 * MINUTE)
    expect(app.shop.products.get(id)?.regularPrice).not.toBe('99.00')
    await app.pass(HOUR)
    expect(lists(), 'one event is one more reading').toBe(2)
  })

  test('that the shop lacks are created once as drafts, also where the answer was lost', async () => {
    const app = await openShopApp({ products: { create: 'draft' } })
    app.shop.strike({ fault: 'lost_after', kind: 'products.batch' })
    const offers = await app.offers()
    await app.settle()
    await app.pass(10 * MINUTE)
    const made = [...app.shop.products.values()].filter(({ sku }) => sku === offers[0]?.sku)
    expect(made).toHaveLength(1)
    expect(made[0]).toMatchObject({ status: 'draft', virtual: true })
    const skus = [...app.shop.products.values()].map(({ sku }) => sku)
    expect(new Set(skus).size).toBe(skus.length)
    expect(made[0]?.regularPrice).not.toBe('')
  })

  test('that were made without an answer, and are read before they are asked for again, are no duplicates', async () => {
    const app = await openShopApp({ products: { create: 'draft' } })
    app.shop.strike({ fault: 'lost_after', kind: 'products.batch' })
    await app.offers()
    await app.settle()
    expect(app.shop.products.size).toBeGreaterThan(0)
    await app.db.commit([putStoreReading(SHOP, { variantsReadAt: null })])
    await app.settle()
    await app.pass(10 * MINUTE)
    for (const { regularPrice } of app.shop.products.values()) expect(regularPrice).not.toBe('')
  })
})
