/** Orders that go on changing in their shop: what the supplier is paid for, and what their customers get. */
import { describe, expect, test } from 'vitest'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { takeByHand } from '../../src/ordering/shop-orders.ts'
import { entitlementOf } from '../../src/storage/entitlements.ts'
import { shopifyThatChanges, wooCommerceThatChanges } from '../support/changing-shop.ts'
import { SHOP as WOO } from '../support/shop-app.ts'
import { SHOP as SHOPIFY } from '../support/shopify-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const shops = [
  { kind: 'WooCommerce', open: wooCommerceThatChanges },
  { kind: 'Shopify', open: shopifyThatChanges },
]

describe.each(shops)('an order of $kind whose payment fails', ({ open }) => {
  test('after one line was bought has the other one bought only once it is paid again, although it is back in stock', async () => {
    const shop = await open()
    shop.stocks(1, 0)
    const reference = shop.buys(1, 1)
    await shop.pass(5 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(1)
    shop.paymentFails(reference)
    await shop.pass(3 * MINUTE)
    shop.stocks(1, 50)
    await shop.pass(HOUR)
    expect(shop.unitsBought()).toBe(1)
    shop.paysAgain(reference)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(2)
    expect(shop.keysIn(reference)).toHaveLength(2)
  })

  test('after the supplier had only put the purchase off is not bought before it is paid again', async () => {
    const shop = await open()
    shop.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 600 })
    const reference = shop.buys(1)
    await shop.pass(2 * MINUTE)
    shop.paymentFails(reference)
    await shop.pass(HOUR)
    expect(shop.unitsBought()).toBe(0)
    shop.paysAgain(reference)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(1)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(shop.isDone(reference)).toBe(true)
  })

  test('while the supplier works on it gets its keys only once it is paid again', async () => {
    const shop = await open()
    shop.sandbox.faults.add({ fault: 'hold-open' })
    const reference = shop.buys(1)
    await shop.pass(2 * MINUTE)
    shop.paymentFails(reference)
    await shop.pass(2 * MINUTE)
    shop.completesOpen()
    await shop.pass(HOUR)
    expect(shop.unitsBought()).toBe(1)
    expect(shop.keysIn(reference)).toEqual([])
    shop.paysAgain(reference)
    await shop.pass(5 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(shop.isDone(reference)).toBe(true)
    expect(shop.unitsBought()).toBe(1)
  })
})

test.each([
  { kind: 'WooCommerce', open: wooCommerceThatChanges, store: WOO },
  { kind: 'Shopify', open: shopifyThatChanges, store: SHOPIFY },
])(
  'an order of $kind whose customer has all keys is not held for money that goes back without units',
  async ({ open, store }) => {
    const shop = await open()
    const reference = shop.buys(1, 1)
    await shop.pass(5 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(2)
    shop.refundsMoneyOf(reference, 0)
    await shop.pass(5 * MINUTE)
    const [row] = await shop.db.query(entitlementOf(store, reference))
    expect(row).toMatchObject({ standing: 'paid', because: null })
    expect(row?.refundedMinor).toBeGreaterThan(0)
  },
)

describe('an order that is not paid any more when its keys are about to be written into it', () => {
  test.each(['on-hold', 'pending', 'failed'])('gets them once it is paid again (WooCommerce, %s)', async (status) => {
    const shop = await wooCommerceThatChanges()
    const reference = shop.buys(1)
    const isMoved = shop.beforeHandOver(reference, 1, () => shop.shop.setStatus(Number(reference), status))
    await shop.pass(HOUR)
    expect(isMoved()).toBe(true)
    expect(shop.keysIn(reference)).toEqual([])
    shop.paysAgain(reference)
    await shop.pass(5 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(shop.isDone(reference)).toBe(true)
  })

  test('gets them once it is paid again (Shopify)', async () => {
    const shop = await shopifyThatChanges()
    const reference = shop.buys(1)
    shop.shop.strike({ kind: 'HandOverOrder', fault: 'meanwhile', act: () => shop.paymentFails(reference) })
    await shop.pass(HOUR)
    expect(shop.unitsBought()).toBe(1)
    expect(shop.keysIn(reference)).toEqual([])
    shop.paysAgain(reference)
    await shop.pass(5 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(shop.isDone(reference)).toBe(true)
  })
})

test('an order that Shopify takes for fraud after the supplier had put its purchase off is not bought until the merchant releases it', async () => {
  const shop = await shopifyThatChanges({ settings: { holdAtRisk: 'cancel' } })
  shop.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 600 })
  const reference = shop.buys(1)
  await shop.pass(2 * MINUTE)
  shop.shop.change(reference, (order) => {
    order.recommendation = 'CANCEL'
  })
  await shop.pass(HOUR)
  expect(shop.unitsBought()).toBe(0)
  shop.shop.tag(reference, 'quayside-retry')
  await shop.pass(30 * MINUTE)
  expect(shop.unitsBought()).toBe(1)
  expect(shop.keysIn(reference)).toHaveLength(1)
})

describe.each(shops)('a customer of $kind who gets one of three units refunded', ({ open }) => {
  test('before they are bought gets the two others, and the third is not bought', async () => {
    const shop = await open({ delayMinutes: 10 })
    const reference = shop.buys(3)
    await shop.pass(3 * MINUTE)
    shop.refundsUnits(reference, 0, 1)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(2)
    expect(shop.keysIn(reference)).toHaveLength(2)
    expect(shop.isDone(reference)).toBe(true)
    expect(await shop.alertsAbout(reference)).toEqual([])
  })

  test('while the supplier works on them gets the two others, and people are alerted once of the third', async () => {
    const shop = await open()
    shop.sandbox.faults.add({ fault: 'hold-open' })
    const reference = shop.buys(3)
    await shop.pass(2 * MINUTE)
    shop.refundsUnits(reference, 0, 1)
    await shop.pass(3 * MINUTE)
    shop.completesOpen()
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(3)
    expect(shop.keysIn(reference)).toHaveLength(2)
    expect(shop.isDone(reference)).toBe(true)
    expect(await shop.alertsAbout(reference)).toHaveLength(1)
  })
})

test('a line that is refunded whole when its keys are about to be written gets none, and people are alerted', async () => {
  const shop = await wooCommerceThatChanges()
  const reference = shop.buys(1, 1)
  const isRefunded = shop.beforeHandOver(reference, 2, () => shop.refundsUnits(reference, 0, 1))
  await shop.pass(30 * MINUTE)
  expect(isRefunded()).toBe(true)
  const lines = shop.shop.orders.get(Number(reference))?.lines ?? []
  expect(lines.map(({ meta }) => meta.some(({ key }) => key === '_quayside_keys'))).toEqual([false, true])
  expect(shop.keysIn(reference)).toHaveLength(1)
  expect(await shop.alertsAbout(reference)).not.toEqual([])
})

describe('an order whose money went back without saying what for', () => {
  test.each(shops)('is not bought for what a unit cost, and people are alerted ($kind)', async ({ open }) => {
    const shop = await open({ delayMinutes: 10 })
    const reference = shop.buys(1, 1)
    await shop.pass(3 * MINUTE)
    shop.refundsMoneyOf(reference, 0)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(0)
    expect(await shop.alertsAbout(reference)).not.toEqual([])
  })

  test('is not bought for all that WooCommerce was paid, although its status stays, and people are alerted', async () => {
    const shop = await wooCommerceThatChanges({ delayMinutes: 10 })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    shop.shop.edit(Number(reference), (order) => {
      const amount = order.lines.reduce((sum, { total }) => sum + total, 0)
      order.refunds.push({ id: 901, reason: '', amount, createdAt: shop.now(), lines: [] })
    })
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(0)
    expect(await shop.alertsAbout(reference)).not.toEqual([])
  })
})

describe('a tag that asks for one more try, and that the shop does not let be taken off', () => {
  const troubles = [
    { trouble: 'refuses', fault: { fault: 'user_error' } },
    { trouble: 'does not answer', fault: { fault: 'refused', status: 503 } },
  ] as const

  test.each(troubles)(
    'is one wish: one purchase more, and people are alerted (the shop $trouble)',
    async ({ fault }) => {
      const shop = await shopifyThatChanges()
      shop.sandbox.faults.add({ fault: 'failed-order', times: 1_000 })
      const reference = shop.buys(1)
      await shop.pass(5 * MINUTE)
      const charges = () => shop.sandbox.world.report().charges.length
      expect(charges()).toBe(1)
      const isOfTag = ({ kind, isMutation }: { kind: string; isMutation: boolean }) => isMutation && /tag/i.test(kind)
      shop.shop.strike({ ...fault, matches: isOfTag, times: Number.POSITIVE_INFINITY })
      shop.shop.tag(reference, 'quayside-retry')
      const tries = async (ms: number): Promise<number> => {
        const before = shop.shop.requests().filter(isOfTag).length
        await shop.pass(ms)
        return shop.shop.requests().filter(isOfTag).length - before
      }
      const first = await tries(HOUR)
      const second = await tries(HOUR)
      expect(charges()).toBe(2)
      expect(first).toBeGreaterThanOrEqual(3)
      expect(second).toBeLessThan(first)
      expect(await shop.alertsAbout(reference)).not.toEqual([])
      shop.shop.clearFaults()
      await shop.pass(4 * HOUR)
      expect(shop.shop.orders.get(reference)?.tags).not.toContain('quayside-retry')
      expect(charges()).toBe(2)
    },
  )
})

describe('an order that its merchant adds to', () => {
  test('gets the line that Shopify added and that is paid, also before anything of it was bought', async () => {
    const shop = await shopifyThatChanges({ delayMinutes: 10 })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    shop.shop.edit(reference, { add: [{ variant: shop.variants[1] ?? '' }] })
    shop.paysAgain(reference)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(2)
    expect(shop.keysIn(reference)).toHaveLength(2)
    expect(shop.isDone(reference)).toBe(true)
  })

  test.each([
    { when: 'before it was bought', delayMinutes: 10 },
    { when: 'after it was bought', delayMinutes: 0 },
  ])('gets the units by which Shopify raised a line and that are paid, $when', async ({ delayMinutes }) => {
    const shop = await shopifyThatChanges({ delayMinutes })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    const [line] = shop.shop.orders.get(reference)?.lines ?? []
    shop.shop.edit(reference, { set: [{ id: line?.id ?? '', quantity: 3 }] })
    shop.paysAgain(reference)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(3)
    expect(shop.keysIn(reference)).toHaveLength(3)
    expect(shop.isDone(reference)).toBe(true)
  })

  test.each(['adds a line', 'raises a line'])(
    'asks a person once where WooCommerce %s, which does not say what is paid, and names the command that buys it',
    async (deed) => {
      const shop = await wooCommerceThatChanges()
      const reference = shop.buys(1)
      await shop.pass(5 * MINUTE)
      shop.shop.edit(Number(reference), (order) => {
        const [line] = order.lines
        if (!line) throw new Error('the order has a line')
        if (deed === 'raises a line') {
          line.total *= 2
          line.quantity = 2
          return
        }
        const { product = 0, sku = '' } = shop.products[1] ?? {}
        order.lines.push({ ...line, id: 9_001, productId: product, sku, meta: [] })
      })
      await shop.pass(HOUR)
      expect(shop.unitsBought()).toBe(1)
      const alerts = await shop.alertsAbout(reference)
      expect(alerts).toHaveLength(1)
      expect(alerts[0]).toMatch(/orders take .*--line/)
    },
  )

  test('is not said to be taken where nothing of what was added is bought', async () => {
    const shop = await wooCommerceThatChanges()
    const reference = shop.buys(1)
    await shop.pass(5 * MINUTE)
    shop.shop.edit(Number(reference), ({ lines }) => {
      const { product = 0, sku = '' } = shop.products[1] ?? {}
      if (lines[0]) lines.push({ ...lines[0], id: 9_001, productId: product, sku, meta: [] })
    })
    await shop.pass(5 * MINUTE)
    const isTaken = await takeByHand(shop.ordering, WOO, reference, { take: 'all' }, 'ann').then(
      () => true,
      () => false,
    )
    await shop.pass(30 * MINUTE)
    expect(isTaken).toBe(shop.unitsBought() === 2)
  })
})

test('an order of Shopify from before the connection is not bought again once it is edited and the rest is paid, and people are alerted once', async () => {
  const shop = await shopifyThatChanges()
  const reference = shop.buys(2)
  shop.shop.change(reference, (order) => {
    const at = shop.now() - 30 * DAY
    order.createdAt = at
    order.processedAt = at
    for (const one of order.transactions) one.processedAt = at
  })
  shop.shop.fulfilByHand(reference)
  await shop.pass(5 * MINUTE)
  expect(shop.unitsBought()).toBe(0)
  shop.shop.edit(reference, { add: [{ variant: shop.variants[1] ?? '' }] })
  shop.paysAgain(reference)
  await shop.pass(HOUR)
  expect(shop.unitsBought()).toBe(0)
  expect(shop.keysIn(reference)).toEqual([])
  expect(await shop.alertsAbout(reference)).toHaveLength(1)
})

test.each(shops)(
  'an order of $kind that is read as cancelled first is not bought by an answer from before its cancellation',
  async ({ open }) => {
    const shop = await open()
    await shop.pass(2 * MINUTE)
    const reference = shop.buys(1)
    const answersLate = shop.remembers(reference)
    shop.move(30_000)
    shop.cancels(reference)
    await shop.pass(2 * MINUTE)
    answersLate()
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(0)
    expect(shop.keysIn(reference)).toEqual([])
  },
)

test.each([
  { kind: 'WooCommerce', open: wooCommerceThatChanges, store: WOO },
  { kind: 'Shopify', open: shopifyThatChanges, store: SHOPIFY },
])('an order of $kind that is read again as it was is no news', async ({ open, store }) => {
  const shop = await open({ delayMinutes: 20 })
  const reference = shop.buys(2)
  const row = async () => (await shop.db.query(entitlementOf(store, reference)))[0]
  await shop.pass(2 * MINUTE)
  const before = await row()
  await shop.pass(6 * MINUTE)
  const after = await row()
  expect(after?.readAt).toBeGreaterThan(before?.readAt ?? Number.POSITIVE_INFINITY)
  expect(after?.revision).toBe(before?.revision)
})

describe('what the API says of a purchase that its shop keeps back', () => {
  const holdOf = async (shop: Awaited<ReturnType<(typeof shops)[number]['open']>>, reference: string) => {
    const { id = '' } = (await shop.orderOf(reference)) ?? {}
    const { lines } = await viewOrder(shop.ordering, id, { keys: false })
    return lines.flatMap(({ purchases }) => purchases.map(({ holdReason }) => holdReason))
  }

  test.each(shops)('is unpaid where the payment failed ($kind)', async ({ open }) => {
    const shop = await open({ delayMinutes: 10 })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    shop.paymentFails(reference)
    await shop.pass(20 * MINUTE)
    expect(await holdOf(shop, reference)).toEqual(['unpaid'])
  })

  test('is held_by_store where Shopify takes the order for fraud', async () => {
    const shop = await shopifyThatChanges({ delayMinutes: 10, settings: { holdAtRisk: 'cancel' } })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    shop.shop.change(reference, (order) => {
      order.recommendation = 'CANCEL'
    })
    await shop.pass(20 * MINUTE)
    expect(await holdOf(shop, reference)).toEqual(['held_by_store'])
  })

  test.each(shops)('is the same purchase, of fewer units, after a refund ($kind)', async ({ open }) => {
    const shop = await open({ delayMinutes: 10 })
    const reference = shop.buys(3)
    await shop.pass(3 * MINUTE)
    const { id = '' } = (await shop.orderOf(reference)) ?? {}
    const [before] = await shop.purchases(id)
    shop.refundsUnits(reference, 0, 1)
    await shop.pass(3 * MINUTE)
    expect(await shop.purchases(id)).toMatchObject([{ id: before?.id, quantity: 2, state: 'planned' }])
  })
})
