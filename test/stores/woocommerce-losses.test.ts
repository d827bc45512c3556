/** What a shop may do that would cost money: each time nothing is bought that is not paid for, and no paid order is forgotten. */

import { describe, expect, test } from 'vitest'
import { storeSource } from '../../src/inbox/sources.ts'
import { decidePurchase } from '../../src/ordering/decide.ts'
import { beforeAsking, takeByHand, takeFromShop } from '../../src/ordering/shop-orders.ts'
import { listingsOfVariants } from '../../src/storage/listings.ts'
import { putOffer } from '../../src/storage/offers.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { enqueuePublications, publishingOf } from '../../src/storage/publications.ts'
import { insertSyncRun } from '../../src/storage/runs.ts'
import { linesOfOrders } from '../../src/storage/store-orders.ts'
import type { StoreOrderRead } from '../../src/stores/store.ts'
import { orderRead } from '../support/order-read.ts'
import { openShopApp, SHOP, type ShopApp } from '../support/shop-app.ts'
import { wooCommerceWorld } from '../support/store-worlds.ts'
import { first } from '../support/test-app.ts'

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
    expect(purchases.map(({ state }) => state).toSorted()).toEqual(['accepted', 'cancelled'])
    expect(app.sandbox.world.report().charges).toHaveLength(1)
  })

  test.each([
    ['before it is known whether the supplier has the order', 'error-before'],
    ['while the supplier works on it', 'hold-open'],
  ] as const)('is handed over although it was cancelled %s', async (_, fault) => {
    const app = await openShopApp()
    const [one] = await app.sell()
    app.sandbox.faults.add({ fault })
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.settle()
    app.shop.setStatus(Number(reference), 'cancelled')
    await app.pass(70_000)
    const bought = async () => app.purchases((await app.orderOf(reference))?.id ?? '')
    expect(await bought()).toMatchObject([{ takenBackBy: 'standing', cancelRequestedAt: expect.anything() }])
    app.shop.setStatus(Number(reference), 'processing')
    await app.pass(65_000)
    expect(await bought()).toMatchObject([{ takenBackBy: null, cancelRequestedAt: null }])
    if (fault === 'hold-open') app.sandbox.world.orders.complete(first(app.sandbox.world.orders.known(1)))
    await app.pass(30 * MINUTE)
    expect(app.keysOf(reference)).toHaveLength(1)
    expect(app.statusOf(reference)).toBe('completed')
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
    expect(await app.alerts()).toContain('order_changed')
  })
})

test('a refund that the merchant deletes is alerted with the command that buys its units, and nothing else buys them', async () => {
  const app = await openShopApp({ delayMinutes: 10 })
  const [one, two] = await app.sell(2)
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }, { product: two?.product ?? 0 }] })
  await app.pass(2 * MINUTE)
  app.shop.edit(Number(reference), (order) => {
    const line = first(order.lines)
    const refunded = { id: 900, line, quantity: 1, total: line.total }
    order.refunds.push({ id: 901, reason: '', amount: line.total, createdAt: app.now(), lines: [refunded] })
  })
  await app.pass(2 * MINUTE)
  expect(await app.alerts()).not.toContain('order_changed')
  app.shop.edit(Number(reference), (order) => {
    order.refunds = []
  })
  await app.pass(2 * MINUTE)
  expect(await app.alerts()).toContain('order_changed')
  app.shop.setStatus(Number(reference), 'on-hold')
  await app.pass(2 * MINUTE)
  app.shop.setStatus(Number(reference), 'processing')
  await app.pass(20 * MINUTE)
  expect(app.sandbox.world.report().charges).toHaveLength(1)
  const [line] = app.shop.orders.get(Number(reference))?.lines ?? []
  const command = `quayside orders take ${reference} --line ${line?.id}`
  expect(await app.alertsAbout(reference)).toContainEqual(expect.stringContaining(command))
  await takeByHand(app.ordering, SHOP, reference, { take: { line: String(line?.id) } }, 'ann')
  await app.pass(5 * MINUTE)
  expect(app.sandbox.world.report().charges).toHaveLength(2)
  expect(app.statusOf(reference)).toBe('completed')
})

describe('an order that the shop cancels while the hand-over of its keys has no answer', () => {
  test('waits for a person once the shop shows that it has none of them, who gives it up', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    app.shop.strike({ fault: 'lost_before', kind: 'orders.update' })
    await app.pass(30_000, 1_000)
    app.shop.setStatus(Number(reference), 'cancelled')
    await app.pass(5 * MINUTE)
    const [bought] = await app.purchases((await app.orderOf(reference))?.id ?? '')
    expect(bought).toMatchObject({ state: 'review', note: 'cancelled before the keys were handed over' })
    expect(app.keysOf(reference)).toEqual([])
    const because = { actor: 'test', reason: 'refunded' }
    await decidePurchase(app.runtime.ordering, bought?.id ?? '', { type: 'close' }, because)
    expect((await app.purchases((await app.orderOf(reference))?.id ?? ''))[0]?.state).toBe('cancelled')
  })
})

describe('an order that the shop cancels', () => {
  const notesOf = async (app: ShopApp) =>
    (await app.db.query(listOutbox({ kind: 'alert', limit: 100 })))
      .filter(({ type }) => type === 'order_changed')
      .map(({ payload }) => JSON.stringify(payload))

  test('after it refused its keys is said to be one whose customer may have them', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    app.shop.strike({
      fault: 'refused',
      kind: 'orders.update',
      status: 403,
      code: 'woocommerce_rest_cannot_edit',
      times: 2,
    })
    await app.pass(30_000, 1_000)
    app.shop.setStatus(Number(reference), 'cancelled')
    await app.pass(2 * MINUTE)
    expect(await notesOf(app)).toEqual([
      expect.stringContaining('1 key of line 1 (99.00 EUR) was delivered, or may have been'),
    ])
  })

  test('after it confirmed its keys is alerted of as one whose customer has them', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(5 * MINUTE)
    expect(app.keysOf(reference)).toHaveLength(1)
    app.shop.setStatus(Number(reference), 'cancelled')
    await app.pass(2 * MINUTE)
    expect(await notesOf(app)).toEqual([expect.stringContaining('1 key of line 1 (99.00 EUR) was delivered')])
  })
})

describe('an order that is set back to paid after its purchase was given up', () => {
  test('is not bought a second time by itself, and a person is alerted', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    app.shop.strike({ fault: 'lost_before', kind: 'orders.update' })
    await app.pass(30_000, 1_000)
    app.shop.setStatus(Number(reference), 'cancelled')
    await app.pass(5 * MINUTE)
    const [bought] = await app.purchases((await app.orderOf(reference))?.id ?? '')
    const because = { actor: 'test', reason: 'refunded' }
    await decidePurchase(app.runtime.ordering, bought?.id ?? '', { type: 'close' }, because)
    app.shop.setStatus(Number(reference), 'processing')
    await app.pass(10 * MINUTE)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
    expect(await app.alerts()).toContain('order_changed')
  })
})

describe('keys that an operator hands over for an order that the shop has cancelled', () => {
  test('come back to a person, who can give them up', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    app.shop.strike({ fault: 'lost_before', kind: 'orders.update' })
    await app.pass(30_000, 1_000)
    app.shop.setStatus(Number(reference), 'cancelled')
    await app.pass(5 * MINUTE)
    const now = async () => (await app.purchases((await app.orderOf(reference))?.id ?? ''))[0]
    const because = { actor: 'test', reason: 'asked for' }
    await decidePurchase(app.runtime.ordering, (await now())?.id ?? '', { type: 'hand_over' }, because)
    await app.pass(5 * MINUTE)
    expect(await now()).toMatchObject({ state: 'review' })
    await decidePurchase(app.runtime.ordering, (await now())?.id ?? '', { type: 'close' }, because)
    expect(await now()).toMatchObject({ state: 'cancelled' })
  })
})

test('a key for a unit whose key the order has already, which is not on record, waits for a person, who gives it up', async () => {
  const app = await openShopApp()
  const [one] = await app.sell()
  app.sandbox.faults.add({ fault: 'hold-open' })
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
  await app.pass(2 * MINUTE)
  // As after a lost database: another key of an earlier hand-over is in the order.
  app.shop.edit(Number(reference), ({ lines }) => {
    first(lines).meta.push({ id: 900, key: '_quayside_keys', value: JSON.stringify(['LOST-KEY']) })
  })
  app.sandbox.world.orders.complete(first(app.sandbox.world.orders.known(1)))
  await app.pass(30 * MINUTE)
  const now = async () => (await app.purchases((await app.orderOf(reference))?.id ?? ''))[0]
  expect(await now()).toMatchObject({ state: 'review', note: expect.stringContaining('has 1 of line 1 now') })
  expect(await app.alertsAbout(reference)).not.toEqual([])
  expect(app.keysOf(reference)).toEqual([])
  const because = { actor: 'test', reason: 'the customer has a key' }
  await decidePurchase(app.runtime.ordering, (await now())?.id ?? '', { type: 'close' }, because)
  expect(await now()).toMatchObject({ state: 'cancelled' })
})

test('keys for two lines whose keys the order has already wait for a person once, and do not come and go', async () => {
  const app = await openShopApp()
  const sold = await app.sell(2)
  app.sandbox.faults.add({ fault: 'hold-open', times: 2 })
  const reference = app.customerBuys({ lines: sold.map(({ product }) => ({ product })) })
  await app.pass(2 * MINUTE)
  app.shop.edit(Number(reference), ({ lines }) => {
    for (const [at, { meta }] of lines.entries()) {
      meta.push({ id: 900 + at, key: '_quayside_keys', value: JSON.stringify([`LOST-KEY-${at}`]) })
    }
  })
  for (const order of app.sandbox.world.orders.known(2)) app.sandbox.world.orders.complete(order)
  await app.pass(10 * MINUTE)
  const alerted = async () => (await app.alerts()).filter((type) => type === 'taken_back_before_hand_over').length
  expect(await alerted()).toBe(2)
  await app.pass(30 * MINUTE)
  // Without a surplus, so that a person who hands over gives all that came: nothing was given, and the line counted as done.
  const waiting = { state: 'review', surplus: 0, takenBackBy: null }
  expect(await app.purchases((await app.orderOf(reference))?.id ?? '')).toMatchObject([waiting, waiting])
  expect(await alerted()).toBe(2)
})

describe('the products of a shop', () => {
  test('are not read again and again after a clock that was ahead goes back', async () => {
    const app = await openShopApp()
    await app.sell()
    await app.settle()
    const finishedAt = app.now() + 2 * DAY
    await app.db.commit([
      insertSyncRun({
        id: 'a',
        cause: 'test',
        state: 'complete',
        startedAt: finishedAt,
        finishedAt,
        cursor: 0,
        offersNew: 1,
      }),
    ])
    const before = app.shop.counts()['products.list'] ?? 0
    await app.pass(5 * MINUTE)
    expect((app.shop.counts()['products.list'] ?? 0) - before).toBeLessThan(2)
  })
})

describe('orders that are polled', () => {
  test('are taken although one beside them cannot be read, of which a person is alerted', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    const broken = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    const sound = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    const brokenOf = (order: { id: number }) => (order.id === Number(broken) ? { ...order, line_items: null } : order)
    app.shop.strike({
      fault: 'echo',
      matches: ({ kind }) => kind === 'orders.list' || kind === 'orders.get',
      times: 1_000,
      change: (json) => (Array.isArray(json) ? json.map(brokenOf) : brokenOf(json as { id: number })),
    })
    await app.pass(5 * MINUTE)
    expect(app.keysOf(sound)).toHaveLength(1)
    expect(app.keysOf(broken)).toEqual([])
    expect(await app.alerts()).toContain('order_unread')
    app.shop.clearFaults()
    await app.pass(15 * MINUTE)
    expect(app.keysOf(broken)).toHaveLength(1)
  })

  test.each([0.5, -1])('lose no line where a quantity is %d', async (quantity) => {
    const app = await openShopApp({ delayMinutes: 10 })
    const [one] = await app.sell()
    await app.settle()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(2 * MINUTE)
    app.shop.strike({
      fault: 'echo',
      kind: 'orders.list',
      times: 1_000,
      change: (json) => JSON.parse(JSON.stringify(json).replace(/"quantity":\d+/g, `"quantity":${quantity}`)),
    })
    app.shop.edit(Number(reference), () => {})
    await app.pass(5 * MINUTE)
    expect(await app.alerts()).toEqual(['order_refused'])
    app.shop.clearFaults()
    await app.pass(15 * MINUTE)
    expect(app.keysOf(reference)).toHaveLength(1)
  })

  test('are bought once their refunds are given, although they were refused when the order was read', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    const { id: empty } = app.sandbox.faults.add({ fault: 'out-of-stock', times: 1_000 })
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(5 * MINUTE)
    const refused = { status: 403, code: 'woocommerce_rest_cannot_view', times: Number.POSITIVE_INFINITY }
    app.shop.strike({ fault: 'refused', kind: 'refunds.list', ...refused })
    app.shop.refund(Number(reference), { amount: '0.10' })
    // So long that the poll lists it no more.
    for (let later = 0; later < 2; later += 1) {
      await app.pass(15 * MINUTE)
      app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    }
    app.shop.clearFaults()
    app.sandbox.faults.remove(empty)
    await app.pass(6 * 60 * MINUTE)
    expect(app.keysOf(reference)).toHaveLength(1)
  })

  test('are taken although the refunds of one before them are never given, which is read again by itself', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    const stuck = app.customerBuys({ lines: [{ product: one?.product ?? 0, quantity: 2 }] })
    app.shop.edit(Number(stuck), (order) => {
      order.refunds.push({ id: 901, reason: '', amount: 1, createdAt: app.now(), lines: [] })
    })
    app.shop.strike({ fault: 'refused', kind: 'refunds.list', status: 500, code: 'internal', times: 1_000 })
    app.move(2_000)
    const sound = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    await app.pass(10 * MINUTE)
    expect(app.keysOf(sound)).toHaveLength(1)
    expect(app.keysOf(stuck)).toEqual([])
    expect(await app.alerts()).toContain('order_unread')
    // So long that the poll lists it no more.
    for (let later = 0; later < 4; later += 1) {
      await app.pass(10 * MINUTE)
      app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
    }
    app.shop.clearFaults()
    await app.pass(20 * MINUTE)
    expect(app.keysOf(stuck)).toHaveLength(2)
  })

  test('are alerted of again where another cause keeps them from being bought once the first is gone', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    const { name, sku, costMinor, currency, localStock, providerStock } = await app.offer()
    const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }], total: '1.00' })
    await app.pass(3 * MINUTE)
    const twin = { productId: 'twin', sku, name, costMinor, currency, localStock, providerStock, available: true }
    await app.db.commit([putOffer({ ...twin, asOf: app.now(), changedAt: app.now() })])
    app.shop.edit(Number(reference), (order) => {
      order.totalOverride = null
    })
    await app.pass(3 * MINUTE)
    expect((await app.alerts()).filter((type) => type === 'order_refused')).toHaveLength(2)
    expect(app.notesOf(reference).flatMap(({ note }) => (note.startsWith('Quayside') ? [note] : []))).toEqual([
      expect.stringContaining('does not fit its lines'),
      expect.stringContaining('names two offers'),
    ])
    await app.pass(15 * MINUTE)
    expect((await app.alerts()).filter((type) => type === 'order_refused')).toHaveLength(2)
    expect(app.sandbox.world.report().charges).toEqual([])
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

  test('are all taken where a plug-in gives fewer of them a page than are asked for', async () => {
    const app = await openShopApp()
    app.shop.setPageMax(3)
    const products = await app.sell(5)
    await app.settle()
    const references = products.map(({ product }) => app.customerBuys({ lines: [{ product }] }))
    app.move(2_000)
    references.push(...products.map(({ product }) => app.customerBuys({ lines: [{ product }] })))
    await app.pass(5 * MINUTE)
    expect(references.filter((reference) => app.keysOf(reference).length !== 1)).toEqual([])
    expect(app.sandbox.world.report().charges).toHaveLength(10)
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

test('keys whose note left are not taken back where the shop goes down before their line is marked', async () => {
  const world = await wooCommerceWorld({ settings: { handOver: { by: 'note', complete: true, label: 'Licence key' } } })
  const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 1 }])
  const update = {
    type: 'line.fulfilled',
    order: { store: 'demo-1', reference },
    line: { id: lines[0] ?? '', sku: 'A', quantity: 1 },
    delivered: 1,
    complete: true,
  } as const
  world.shop.strike({
    fault: 'echo',
    kind: 'notes.create',
    change: (json) => {
      setImmediate(() => void world.stop())
      return json
    },
  })
  const result = await world.store.fulfil({ id: 'u1', at: 0, ...update, keys: ['AAAA-1'] })
  expect(world.keysOf(reference, ['AAAA-1'])).toHaveLength(1)
  expect(result).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
})

test('an order that the shop put on hold or whose payment failed is not completed by its keys', async () => {
  const world = await wooCommerceWorld()
  const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 1 }])
  const order = { store: 'demo-1', reference }
  const update = { type: 'line.fulfilled', order, delivered: 1, complete: true } as const
  const line = { id: lines[0] ?? '', sku: 'A', quantity: 1 }
  await world.store.fulfil({ id: 'u1', at: 0, ...update, line, keys: ['AAAA-1'] })
  for (const status of ['on-hold', 'failed', 'pending']) {
    world.shop.setStatus(Number(reference), status)
    const closed = await world.store.closeOrder({ id: 'c1', at: 0, type: 'order.closed', order, state: 'fulfilled' })
    expect(closed).toMatchObject({
      outcome: 'not_entitled',
      detail: expect.stringContaining(`is ${status} in the shop now`),
    })
    expect(world.shop.orders.get(Number(reference))?.status).toBe(status)
  }
  world.shop.setStatus(Number(reference), 'processing')
  await world.store.closeOrder({ id: 'c1', at: 0, type: 'order.closed', order, state: 'fulfilled' })
  expect(world.shop.orders.get(Number(reference))?.status).toBe('completed')
})

test('an order that was read as paid before its cancellation, and comes in after it, is not bought again', async () => {
  const app = await openShopApp({ delayMinutes: 10 })
  const [one] = await app.sell()
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
  await app.pass(3 * MINUTE)
  const known = await app.orderOf(reference)
  const order = orderRead({ reference, paidAt: app.now(), lines: await linesNow(app, reference) })
  const cancelled = orderRead({ ...order, standing: 'cancelled', fullyPaid: false })
  // What the shop says when it is read once more, because of two readings of one instant.
  let now = cancelled
  const store = { order: async () => ({ outcome: 'order' as const, order: now }) }
  const shop = { id: SHOP, connectedAt: 0, delayMs: 0, store }
  const asked = await beforeAsking(app.ordering, SHOP)
  app.move(MINUTE)
  await takeFromShop(app.ordering, shop, cancelled, await beforeAsking(app.ordering, SHOP))
  await takeFromShop(app.ordering, shop, order, asked)
  const purchases = await app.purchases(known?.id ?? '')
  expect(purchases.map(({ state }) => state)).toEqual(['cancelled'])
  now = order
  await takeFromShop(app.ordering, shop, order, await beforeAsking(app.ordering, SHOP))
  expect(await app.purchases(known?.id ?? '')).toHaveLength(2)
})

test('an order that a delivery read before it was paid, and comes in after the poll took it as paid, is not cancelled', async () => {
  const app = await openShopApp({ delayMinutes: 10 })
  const [one] = await app.sell()
  await app.settle()
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }], payment: 'waiting' })
  const readOrder = async () => {
    const order = orderRead({ reference, standing: 'unpaid' })
    app.move(2 * MINUTE)
    app.shop.pay(Number(reference))
    await app.settle()
    app.move(MINUTE)
    return { outcome: 'order' as const, order }
  }
  const store = app.ordering.storeOf(SHOP)
  if (!store) throw new Error('the shop is configured')
  const asking = async () => {
    const asked = await beforeAsking(app.ordering, SHOP)
    return (order: StoreOrderRead) =>
      takeFromShop(app.ordering, { id: SHOP, connectedAt: 0, delayMs: 0, store }, order, asked)
  }
  const delivered = storeSource(SHOP, { verify: () => ({ outcome: 'ping' }), readOrder }, asking)?.read(Buffer.of())
  if (delivered?.kind !== 'store_order') throw new Error('the shop sends its orders')
  expect(await delivered.take()).toEqual({ outcome: 'taken' })
  const { id = '' } = (await app.orderOf(reference)) ?? {}
  expect((await app.purchases(id)).map(({ cancelRequestedAt }) => cancelRequestedAt)).toEqual([null])
})

const linesNow = async (app: ShopApp, reference: string): Promise<StoreOrderRead['lines']> =>
  (await app.db.query(linesOfOrders([(await app.orderOf(reference))?.id ?? '']))).map(({ line, sku, quantity }) => ({
    id: line,
    variant: null,
    sku,
    quantity,
    unitPrice: '99.00',
    currency: 'EUR',
  }))

describe('listings of a shop', () => {
  test('go on being pushed where the shop has given the SKU of a new offer to a product that is linked already', async () => {
    const app = await openShopApp({ products: { create: 'draft' } })
    const [one] = await app.sell()
    await app.settle()
    const product = app.shop.products.get(one?.product ?? 0)
    if (product) product.sku = 'BRAND-NEW'
    const offer = await app.offer()
    const { productId, name, costMinor, currency, localStock, providerStock } = offer
    const own = { name, costMinor, currency, localStock, providerStock, available: true }
    const dates = { asOf: app.now(), changedAt: app.now() }
    await app.db.commit([
      putOffer({ ...own, ...dates, productId: 'brand-new', sku: 'BRAND-NEW' }),
      ...enqueuePublications([{ id: SHOP }], ['brand-new', productId], {
        newId: () => `${app.now()}`,
        now: app.now(),
        cause: 'test',
      }),
    ])
    await app.settle()
    expect(await app.db.query(listingsOfVariants(SHOP, ['new:BRAND-NEW']))).toMatchObject([{ state: 'failed' }])
  })

  test('go on being pushed where the shop creates no products, which it is asked for less and less often', async () => {
    const app = await openShopApp({ products: { create: 'draft' } })
    const [one] = await app.sell()
    const product = app.shop.products.get(one?.product ?? 0)
    app.shop.strike({
      fault: 'refused',
      status: 500,
      code: 'internal',
      times: 1_000,
      matches: ({ fields }) => 'create' in fields,
    })
    await app.settle()
    expect(product?.regularPrice, 'what the shop has is pushed').not.toBe('99.00')
    const asked = () => app.shop.requests().filter(({ fields }) => 'create' in fields).length
    expect(asked()).toBe(1)
    expect(await app.db.query(publishingOf(SHOP))).toMatchObject([{ pausedUntil: null }])
    await app.pass(60 * MINUTE)
    expect(asked()).toBeLessThan(15)
    app.shop.clearFaults()
    await app.pass(3 * 60 * MINUTE)
    const offers = await app.offers()
    const skus = [...app.shop.products.values()].map(({ sku }) => sku)
    expect(offers.filter(({ sku }) => !skus.includes(sku))).toEqual([])
    expect(new Set(skus).size).toBe(skus.length)
  })

  /** The cost of the product that the shop has changes, so that its price is pushed. */
  async function changeCost(app: ShopApp, percent: number): Promise<void> {
    const { productId, sku, name, costMinor, currency, localStock, providerStock } = await app.offer()
    const own = { productId, sku, name, currency, localStock, providerStock, available: true }
    const cause = { newId: () => `p${app.now()}`, now: app.now(), cause: 'test' }
    await app.db.commit([
      putOffer({
        ...own,
        costMinor: Math.round((costMinor * (100 + percent)) / 100),
        asOf: app.now(),
        changedAt: app.now(),
      }),
      ...enqueuePublications([{ id: SHOP }], [productId], cause),
    ])
  }
  const createsNothing = (app: ShopApp) => {
    const isCreation = ({ fields }: { fields: object }) => 'create' in fields
    app.shop.strike({ fault: 'lost_before', times: 1_000, matches: isCreation })
    return () => app.shop.requests().filter(isCreation).length
  }

  test('are created within minutes where the shop takes prices again after hours without a creation', async () => {
    const app = await openShopApp({ products: { create: 'draft' } })
    await app.sell()
    createsNothing(app)
    await app.pass(3 * 60 * MINUTE)
    app.shop.clearFaults()
    await changeCost(app, 5)
    await app.pass(10 * MINUTE)
    const skus = [...app.shop.products.values()].map(({ sku }) => sku)
    expect((await app.offers()).map(({ sku }) => sku).filter((sku) => !skus.includes(sku))).toEqual([])
    expect(new Set(skus).size).toBe(skus.length)
  })

  test('are asked for less and less often where the shop takes prices all the time and creates nothing', async () => {
    const app = await openShopApp({ products: { create: 'draft' } })
    await app.sell()
    const asked = createsNothing(app)
    const inHour: number[] = []
    for (let hour = 0; hour < 6; hour += 1) {
      const before = asked()
      for (let minute = 0; minute < 60; minute += 5) {
        await changeCost(app, minute % 10 === 0 ? 1 : -1)
        await app.pass(5 * MINUTE)
      }
      inHour.push(asked() - before)
    }
    expect(inHour[0]).toBeLessThan(15)
    expect(inHour[5]).toBeLessThan(5)
  })

  test('are begun for an offer whose SKU is the id of another product', async () => {
    const app = await openShopApp({ products: { create: 'draft' } })
    const [one] = await app.sell()
    const { name, costMinor, currency, localStock, providerStock } = await app.offer()
    const sku = String(one?.product)
    const own = { productId: 'other', sku, name, costMinor, currency, localStock, providerStock, available: true }
    await app.db.commit([putOffer({ ...own, asOf: app.now(), changedAt: app.now() })])
    await app.settle()
    expect([...app.shop.products.values()].filter((product) => product.sku === sku)).toHaveLength(1)
  })

  test('go on being pushed while the list of its products cannot be read', async () => {
    const app = await openShopApp()
    const [one] = await app.sell()
    await app.settle()
    app.shop.strike({ fault: 'refused', kind: 'products.list', status: 500, code: 'internal', times: 1_000 })
    app.move(7 * 60 * MINUTE)
    await app.settle()
    const offer = await app.offer()
    const before = app.shop.products.get(one?.product ?? 0)?.regularPrice
    const { name, currency, localStock, providerStock, productId, sku } = offer
    await app.db.commit([
      putOffer({
        productId,
        sku,
        name,
        currency,
        localStock,
        providerStock,
        available: true,
        costMinor: Math.round(offer.costMinor * 1.2),
        asOf: app.now(),
        changedAt: app.now(),
      }),
      ...enqueuePublications([{ id: SHOP }], [productId], { newId: () => 'p1', now: app.now(), cause: 'test' }),
    ])
    await app.settle()
    expect(Number(app.shop.products.get(one?.product ?? 0)?.regularPrice)).toBeGreaterThan(Number(before))
  })
})

test('keys whose write acted without an answer while the merchant completed the order reach the customer', async () => {
  const { shop, sell, customerBuys, settle, pass, keysOf } = await openShopApp()
  const [one] = await sell()
  await settle()
  const reference = customerBuys({ lines: [{ product: one?.product ?? 0 }], email: 'c@shop.test' })
  // The merchant completes it between our read and our write, and the answer to the write is lost.
  let done = false
  shop.strike({
    fault: 'lost_after',
    matches: ({ method, path, fields }) => {
      const isWrite = !done && method === 'PUT' && path.endsWith(`/orders/${reference}`) && 'line_items' in fields
      if (isWrite) {
        done = true
        shop.setStatus(Number(reference), 'completed')
      }
      return isWrite
    },
  })
  await settle()
  await pass(60 * 60_000)
  const keys = keysOf(reference)
  expect(done).toBe(true)
  expect(keys.map((key) => shop.mailsWith(key).length)).toEqual([1])
})

test('a paid order that comes before the catalogue is read waits for it, and is not taken for one of other products', async () => {
  const app = await openShopApp()
  const { id: product } = app.shop.addProduct({
    name: 'Rail Empire 4',
    sku: 'GAM-RAIL4',
    regular_price: '99.00',
    virtual: true,
  })
  await app.settle()
  const reference = app.customerBuys({ lines: [{ product }] })
  await app.pass(3 * 60_000)
  expect(await app.orderOf(reference)).toBeUndefined()
  await app.offers()
  await app.pass(15 * 60_000)
  expect(app.keysOf(reference)).toHaveLength(1)
})

test('a SKU that the shop takes for another one, as by its case, is not linked to the product of that one', async () => {
  const world = await wooCommerceWorld()
  const other = world.sell('game-a')
  const own = world.sell('GAME-B')
  const { shop } = world
  const taken = (id: string) => ({ id: 0, error: { code: 'product_invalid_sku', data: { resource_id: Number(id) } } })
  shop.strike({ fault: 'echo', kind: 'products.list', change: () => [] })
  shop.strike({ fault: 'echo', kind: 'products.batch', change: () => ({ create: [taken(other), taken(own)] }) })
  const lacking = { category: null, description: null, image: null, isPublished: true }
  const made = await world.store.create?.(['GAME-A', 'GAME-B'].map((sku) => ({ ...lacking, sku, name: sku })))
  expect(made).toEqual({
    outcome: 'answered',
    answers: [
      { sku: 'GAME-A', refusal: `the shop takes it for the SKU of product ${other}, which is another one` },
      { sku: 'GAME-B', id: own, isNew: false },
    ],
  })
})
