/** A shop of Shopify connected to Quayside: what its customers get, and what its merchant asks for. */
import { describe, expect, test } from 'vitest'
import { testStore } from '../../src/http/api/store-test.ts'
import { newPage, pageOfToken, pathOfOrder } from '../../src/keys/key-pages.ts'
import { ordersCalled } from '../../src/ordering/order-view.ts'
import { takeByHand } from '../../src/ordering/shop-orders.ts'
import { first } from '../../src/storage/database.ts'
import { listingsOfVariants } from '../../src/storage/listings.ts'
import { storeOrderByReference } from '../../src/storage/store-orders.ts'
import { openShopifyApp, SHOP } from '../support/shopify-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
type App = Awaited<ReturnType<typeof openShopifyApp>>

test('a customer of Shopify gets the keys in one mail, bought once, and the order is fulfilled', async () => {
  const app = await openShopifyApp()
  const variant = await app.sell()
  await app.settle()
  expect(app.shop.variants.get(variant)?.price).not.toBe(9_900)
  const { id } = app.shop.buy({ lines: [{ variant, quantity: 2 }] })
  await app.pass(5 * MINUTE)
  expect(app.keysOf(id)).toHaveLength(2)
  expect(app.sandbox.world.report().charges).toHaveLength(1)
  expect(app.shop.orders.get(id)?.fulfilments).toHaveLength(1)
  expect(app.shop.mails().filter(({ kind }) => kind === 'shipping_confirmation')).toHaveLength(1)
})

test('an order of Shopify is found, and named to its customer, by the number of its mails', async () => {
  const app = await openShopifyApp()
  const { id } = app.shop.buy({ lines: [{ variant: await app.sell(), quantity: 1 }] })
  await app.pass(5 * MINUTE)
  const number = app.shop.orders.get(id)?.name ?? ''
  expect(number).toMatch(/^#\d{4}$/)
  for (const name of [id, number, number.slice(1)]) {
    expect(await ordersCalled(app.db, SHOP, name)).toMatchObject([{ reference: id, number }])
  }
  expect(await ordersCalled(app.db, undefined, number.slice(1))).toHaveLength(1)
  expect(await ordersCalled(app.db, 'another', number)).toEqual([])
  const { vault } = app.ordering
  const [order] = await ordersCalled(app.db, SHOP, id)
  await app.db.commit([newPage({ vault, now: app.now }, order?.id ?? '')])
  const path = (await pathOfOrder({ db: app.db, vault }, order?.id ?? '')) ?? ''
  const pages = { ...app.ordering, pageDays: 365, sendsLinks: () => true }
  expect((await pageOfToken(pages, path.slice('/k/'.length)))?.number).toBe(number)
})

test('an offer that the shop of Shopify lacks is created, and then priced', async () => {
  const app = await openShopifyApp({ settings: { create: 'publish' } })
  app.shop.strike({ fault: 'lost_after', kind: 'CreateProduct' })
  await app.offers()
  await app.pass(10 * MINUTE)
  const made = [...app.shop.variants.values()]
  expect(made.length).toBeGreaterThan(0)
  expect(new Set(made.map(({ sku }) => sku)).size).toBe(made.length)
  expect(made.filter(({ price }) => price > 0)).toHaveLength(made.length)
})

describe('a merchant of Shopify', () => {
  async function failedOrder(app: App, quantity = 1): Promise<string> {
    const variant = await app.sell()
    app.sandbox.faults.add({ fault: 'failed-order' })
    const { id } = app.shop.buy({ lines: [{ variant, quantity }] })
    await app.pass(5 * MINUTE)
    expect(app.keysOf(id)).toEqual([])
    expect(app.shop.orders.get(id)?.note).toContain('will not come')
    return id
  }

  test('tags an order, and what failed is bought again, once', async () => {
    const app = await openShopifyApp()
    const id = await failedOrder(app)
    app.shop.tag(id, 'vip', 'quayside-retry')
    await app.pass(5 * MINUTE)
    expect(app.keysOf(id)).toHaveLength(1)
    expect(app.shop.orders.get(id)?.tags).toEqual(['vip'])
    await app.pass(15 * MINUTE)
    expect(Object.values(app.sandbox.world.report().keysIssued).flat()).toHaveLength(1)
  })

  test('tags an order of which one of several units was refunded, and only the others are bought', async () => {
    const app = await openShopifyApp()
    const id = await failedOrder(app, 3)
    const [line] = app.shop.orders.get(id)?.lines ?? []
    app.shop.refund(id, { lines: [{ id: line?.id ?? '', quantity: 1 }] })
    app.shop.tag(id, 'quayside-retry')
    await app.pass(5 * MINUTE)
    expect(app.keysOf(id)).toHaveLength(2)
    await app.pass(15 * MINUTE)
    expect(Object.values(app.sandbox.world.report().keysIssued).flat()).toHaveLength(2)
    expect(app.shop.orders.get(id)?.tags).toEqual([])
  })

  test('tags an order, and a tag that cannot be taken off has it read again', async () => {
    const app = await openShopifyApp()
    const id = await failedOrder(app)
    app.shop.strike({ kind: 'RemoveTags', fault: 'maintenance', times: 3 })
    app.shop.tag(id, 'quayside-retry')
    await app.pass(MINUTE)
    expect(app.shop.orders.get(id)?.tags).toEqual(['quayside-retry'])
    await app.pass(20 * MINUTE)
    expect(app.shop.orders.get(id)?.tags).toEqual([])
    expect(app.keysOf(id)).toHaveLength(1)
  })

  test('tags an order that is held at risk, and it is bought', async () => {
    const app = await openShopifyApp({ settings: { holdAtRisk: 'investigate' } })
    const variant = await app.sell()
    const { id } = app.shop.buy({ lines: [{ variant }], recommendation: 'INVESTIGATE' })
    await app.pass(5 * MINUTE)
    expect(app.sandbox.world.report().charges).toEqual([])
    app.shop.tag(id, 'quayside-retry')
    await app.pass(5 * MINUTE)
    expect(app.keysOf(id)).toHaveLength(1)
    expect(app.shop.orders.get(id)?.tags).toEqual(['quayside-released'])
  })

  test('cancels an order before it is bought, and nothing is bought', async () => {
    const app = await openShopifyApp()
    const variant = await app.sell()
    const { id } = app.shop.buy({ lines: [{ variant }] })
    app.shop.cancel(id)
    await app.pass(5 * MINUTE)
    expect(app.sandbox.world.report().charges).toEqual([])
    expect(app.shop.metafieldsOf(id)).toEqual([])
  })

  test('puts units back that were removed, and they are bought once', async () => {
    const app = await openShopifyApp({ delayMinutes: 10 })
    const variant = await app.sell()
    const { id, lines } = app.shop.buy({ lines: [{ variant }] })
    const put = (units: number) =>
      app.shop.change(id, () => {
        for (const line of lines) line.currentQuantity = units
      })
    await app.pass(2 * MINUTE)
    put(0)
    await app.pass(2 * MINUTE)
    put(1)
    await app.pass(12 * MINUTE)
    expect(app.keysOf(id)).toHaveLength(1)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
    expect(await app.alertsAbout(id)).toEqual([])
  })
})

test('a line that is refunded while its keys are bought waits for a person, and the others are handed over', async () => {
  const app = await openShopifyApp()
  const [variant, other] = [await app.sell(), await app.sell()]
  await app.settle()
  const { id, lines } = app.shop.buy({ lines: [{ variant }, { variant: other }] })
  const line = { id: lines[0]?.id ?? '', quantity: 1 }
  app.shop.strike({ kind: 'HandOverOrder', fault: 'meanwhile', act: () => void app.shop.refund(id, { lines: [line] }) })
  await app.pass(10 * MINUTE)
  expect(app.keysOf(id)).toHaveLength(1)
  const { id: orderId = '' } = (await first(app.db, storeOrderByReference(SHOP, id))) ?? {}
  const states = (await app.purchases(orderId)).map(({ state, note }) => [state, note])
  expect(states.toSorted()).toEqual([
    ['fulfilled', null],
    ['review', 'the shop took it back before the keys were delivered'],
  ])
})

describe('stock that other locations of Shopify have', () => {
  async function stockedTwice(settings: NonNullable<Parameters<typeof openShopifyApp>[0]>['settings'] = {}) {
    const app = await openShopifyApp({ settings })
    const [offer] = await app.offers()
    const product = { title: offer?.name ?? '', sku: offer?.sku ?? '', price: '99.00', stock: 50 }
    const variant = app.shop.addProduct(product).variants[0]?.id ?? ''
    await app.settle()
    const second = app.shop.addLocation({ name: 'Second' }).id
    const sellOut = async () => {
      app.sandbox.world.offers.change(offer?.productId ?? '', { stock: 0 })
      await app.ordering.refreshOffer(offer?.productId ?? '')
      await app.pass(2 * MINUTE)
    }
    const listed = async () => (await app.db.query(listingsOfVariants(SHOP, [variant])))[0]
    const named = async () => {
      const { store } = app
      const findings = await testStore(app.db, SHOP, { ...store, test: async () => [] }, null)
      return findings.filter(({ check, state }) => check === 'listings' && state === 'doubtful')
    }
    return { app, variant, second, sellOut, listed, named }
  }

  test('is named, where the supplier is sold out and the shop sells on, until the merchant has taken it out', async () => {
    const { app, variant, second, sellOut, listed, named } = await stockedTwice()
    app.shop.stockAt(variant, second, 40)
    await sellOut()
    expect([app.shop.stockOf(variant), app.shop.stockOf(variant, second)]).toEqual([0, 40])
    expect(await listed()).toMatchObject({ state: 'synced', reason: 'stock_elsewhere', knownStock: 0, attempts: 0 })
    expect(await named()).toEqual([expect.objectContaining({ detail: expect.stringContaining('sells 40 more') })])
    const logged = app.lines.filter((line) => line.includes('listings.noticed'))
    expect(logged).toHaveLength(1)
    await app.pass(7 * HOUR, 20 * MINUTE)
    expect(await listed()).toMatchObject({ reason: 'stock_elsewhere' })
    app.shop.stockAt(variant, second, 0)
    await app.pass(7 * HOUR, 20 * MINUTE)
    expect(await listed()).toMatchObject({ state: 'synced', reason: null, detail: null })
    expect(await named()).toEqual([])
  })

  test('is named within six hours where it comes while nothing else changes', async () => {
    const { app, variant, second, listed } = await stockedTwice()
    expect(await listed()).toMatchObject({ state: 'synced', reason: null })
    app.shop.stockAt(variant, second, 40)
    await app.pass(7 * HOUR, 20 * MINUTE)
    expect(await listed()).toMatchObject({ state: 'synced', reason: 'stock_elsewhere' })
  })

  test('is set to 0 where Quayside owns it, when the supplier is sold out and when it comes later', async () => {
    const { app, variant, second, sellOut, listed } = await stockedTwice({ otherLocations: 'own' })
    app.shop.stockAt(variant, second, 40)
    await sellOut()
    expect([app.shop.stockOf(variant), app.shop.stockOf(variant, second)]).toEqual([0, 0])
    expect(await listed()).toMatchObject({ state: 'synced', reason: null })
    app.shop.stockAt(variant, second, 40)
    await app.pass(7 * HOUR, 20 * MINUTE)
    expect(app.shop.stockOf(variant, second)).toBe(0)
  })
})

describe('orders of Shopify that are polled', () => {
  test('are taken although one beside them cannot be read, of which a person is alerted', async () => {
    const app = await openShopifyApp()
    const variant = await app.sell()
    await app.settle()
    const broken = app.shop.buy({ lines: [{ variant }] }).id
    const sound = app.shop.buy({ lines: [{ variant }] }).id
    app.shop.strike({
      fault: 'echo',
      kind: 'Order',
      times: 1_000,
      matches: ({ variables }) => variables.id === `gid://shopify/Order/${broken}`,
      change: (json) => {
        const { order } = json.data as { order: object }
        return { ...json, data: { order: { ...order, processedAt: null } } }
      },
    })
    await app.pass(5 * MINUTE)
    expect(app.keysOf(sound)).toHaveLength(1)
    expect(app.keysOf(broken)).toEqual([])
    expect(await app.alerts()).toContain('order_unread')
    app.shop.clearFaults()
    await app.pass(15 * MINUTE)
    expect(app.keysOf(broken)).toHaveLength(1)
  })

  test('are taken although one before them is never given, which is read again by itself', async () => {
    const app = await openShopifyApp()
    const variant = await app.sell()
    await app.settle()
    const stuck = app.shop.buy({ lines: [{ variant }] }).id
    const isStuck = ({ variables }: { variables: Record<string, unknown> }) =>
      variables.id === `gid://shopify/Order/${stuck}`
    app.shop.strike({ fault: 'maintenance', kind: 'Order', times: 1_000, matches: isStuck })
    app.move(2_000)
    const sound = app.shop.buy({ lines: [{ variant }] }).id
    await app.pass(10 * MINUTE)
    expect(app.keysOf(sound)).toHaveLength(1)
    expect(await app.alerts()).toContain('order_unread')
    // So long that the poll lists it no more.
    for (let later = 0; later < 4; later += 1) {
      await app.pass(10 * MINUTE)
      app.shop.buy({ lines: [{ variant }] })
    }
    app.shop.clearFaults()
    await app.pass(20 * MINUTE)
    expect(app.keysOf(stuck)).toHaveLength(1)
  })

  test('are taken although the tag of one before them cannot be taken off', async () => {
    const app = await openShopifyApp()
    const variant = await app.sell()
    app.sandbox.faults.add({ fault: 'failed-order' })
    const tagged = app.shop.buy({ lines: [{ variant }] }).id
    await app.pass(5 * MINUTE)
    app.shop.strike({ kind: 'RemoveTags', fault: 'maintenance', times: 1_000 })
    app.shop.tag(tagged, 'quayside-retry')
    app.move(2_000)
    const sound = app.shop.buy({ lines: [{ variant }] }).id
    await app.pass(10 * MINUTE)
    expect(app.keysOf(sound)).toHaveLength(1)
    expect(await app.alertsAbout(tagged)).toEqual([expect.stringContaining('keeps its tag')])
    app.shop.clearFaults()
    await app.pass(20 * MINUTE)
    expect(app.shop.orders.get(tagged)?.tags).toEqual([])
    expect(app.keysOf(tagged)).toHaveLength(1)
  })

  test('lose no line where a quantity cannot be read', async () => {
    const app = await openShopifyApp({ delayMinutes: 10 })
    const variant = await app.sell()
    await app.settle()
    const { id } = app.shop.buy({ lines: [{ variant }] })
    await app.pass(2 * MINUTE)
    app.shop.strike({
      fault: 'echo',
      kind: 'Order',
      times: 1_000,
      change: (json) => JSON.parse(JSON.stringify(json).replace(/"currentQuantity":\d+/g, '"currentQuantity":null')),
    })
    app.shop.tag(id, 'vip')
    await app.pass(5 * MINUTE)
    expect(await app.alerts()).toContain('order_unread')
    app.shop.clearFaults()
    await app.pass(15 * MINUTE)
    expect(app.keysOf(id)).toHaveLength(1)
  })

  test('and were paid before the shop was connected are bought when an operator takes them', async () => {
    const app = await openShopifyApp()
    const variant = await app.sell()
    const { id } = app.shop.buy({ lines: [{ variant }] })
    app.shop.change(id, (order) => {
      for (const transaction of order.transactions) transaction.processedAt = app.now() - 60 * MINUTE
    })
    await app.pass(5 * MINUTE)
    expect(await app.alerts()).toContain('order_before_connection')
    await takeByHand(app.ordering, SHOP, id, { take: 'all' }, 'ann')
    await app.pass(5 * MINUTE)
    expect(app.keysOf(id)).toHaveLength(1)
    for (const reference of ['4711', '1:2']) {
      await expect(takeByHand(app.ordering, SHOP, reference, { take: 'all' }, 'ann')).rejects.toMatchObject({
        code: 'not_found',
      })
    }
  })

  test('and were paid and fulfilled before the shop was connected are not reported as open', async () => {
    const app = await openShopifyApp()
    const variant = await app.sell()
    const placed = app.shop.buy({ lines: [{ variant }] }).id
    app.shop.fulfilByHand(placed)
    app.shop.change(placed, (order) => {
      for (const transaction of order.transactions) transaction.processedAt = app.now() - 60 * MINUTE
    })
    await app.pass(5 * MINUTE)
    expect(app.sandbox.world.report().charges).toEqual([])
    expect(await app.alerts()).not.toContain('order_before_connection')
  })
})
