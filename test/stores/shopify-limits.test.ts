/** What Shopify lets an app ask: access scopes and points, judged by what the adapter asks of a shop and not by what it computes. */
import { describe, expect, test } from 'vitest'
import { scopesFor } from '../../src/stores/shopify/findings.ts'
import { TEST_NOW } from '../support/database.ts'
import { storeListing } from '../support/store-listing.ts'
import { type ShopifyWorld, shopifyWorld } from '../support/store-worlds.ts'

const ADDRESS = 'https://quayside.test/webhooks/stores/demo'
const RETRY_TAG = 'quayside-retry'

const lineOf = (world: ShopifyWorld, quantity = 1) => {
  const { reference, lines } = world.buy([{ id: world.sell('B'), quantity }])
  const line = { id: lines[0] ?? '', sku: 'B', quantity }
  const about = { at: TEST_NOW, order: { store: 'demo-1', reference }, line }
  const fulfil = (id: string, keys: string[]) =>
    world.store.fulfil({ id, type: 'line.fulfilled', ...about, delivered: keys.length, complete: true, keys })
  return { reference, line, about, fulfil }
}

/** Does all that a store does for Quayside. @returns what the shop did not let it do, by the name of the method */
async function notLet(world: ShopifyWorld): Promise<string[]> {
  const { store, shop } = world
  const kept = new Set<string>()
  const tried = async (name: string, doing: Promise<{ outcome: string; failure?: unknown } | undefined>) => {
    const result = await doing
    const isDone = ['confirmed', 'read', 'answered', 'order'].includes(result?.outcome ?? 'absent')
    const answers = (result as { answers?: object[] }).answers ?? []
    const refused = answers.some((one) => ('ok' in one && !one.ok) || 'refusal' in one || 'notice' in one)
    if (!isDone || result?.failure || refused) kept.add(name)
  }
  const variant = world.sell('A')
  const second = shop.addLocation({ name: 'Second' })
  shop.stockAt(variant, second.id, 40)
  const drafted = { sku: 'NEW', name: 'New', category: null, description: null, image: null, isPublished: true }
  await tried('create', store.create?.([drafted]) ?? Promise.resolve(undefined))
  await tried('variants', store.variants?.(null) ?? Promise.resolve(undefined))
  const listings = [storeListing(variant), storeListing(world.sell('C'), { stock: 0, available: false, isGone: true })]
  await tried('publish', store.publish({ id: 'p1', at: TEST_NOW, listings }))
  await tried('provision', store.provision?.(ADDRESS) ?? Promise.resolve(undefined))

  const { reference, about, line, fulfil } = lineOf(world)
  const part = `gid://shopify/FulfillmentOrder/${shop.orders.get(reference)?.fulfilmentOrders[0]?.id}`
  const released = Buffer.from(JSON.stringify({ fulfillment_order: { id: part } }))
  await tried('readOrder', store.readOrder?.(released) ?? Promise.resolve(undefined))
  await tried('ordersSince', store.ordersSince?.(TEST_NOW - 60_000) ?? Promise.resolve(undefined))
  await tried('ordersNow', store.ordersNow?.([reference]) ?? Promise.resolve(undefined))
  await tried('fulfil', fulfil('u1', ['AAAA-1111']))
  const late = lineOf(world)
  shop.fulfilByHand(late.reference)
  await tried('fulfil late', late.fulfil('u2', ['BBBB-1111']))
  await tried(
    'resend',
    store.resend?.({ reference, lines: [{ id: line.id, keys: ['AAAA-1111'] }] }) ?? Promise.resolve(undefined),
  )
  const failed = { type: 'line.failed', units: 1, state: 'failed', code: 'c', message: 'm', advice: 'a' } as const
  await tried('reportFailure', store.reportFailure({ id: 'f1', ...about, ...failed }))
  const closed = { id: 'c1', at: TEST_NOW, type: 'order.closed', order: about.order, state: 'failed' } as const
  await tried('closeOrder', store.closeOrder(closed))
  const risky = shop.buy({ lines: [{ variant }], recommendation: 'CANCEL' }).id
  shop.tag(risky, RETRY_TAG)
  await tried('retryTaken', store.retryTaken?.(risky) ?? Promise.resolve(undefined))
  shop.refund(lineOf(world, 2).reference, { amount: '0.50' })
  return [...kept]
}

describe('the access scopes of the app of a Shopify shop', () => {
  const open = (scopes: string[], create: 'publish' | 'draft' = 'publish') =>
    shopifyWorld({ shop: { app: { scopes } }, settings: { create, otherLocations: 'own', holdAtRisk: 'cancel' } })

  test.each(['publish', 'draft'] as const)(
    'are enough for all that is done, with products made to %s',
    async (create) => {
      const world = await open(scopesFor(create), create)
      expect(await notLet(world)).toEqual([])
      expect((await world.store.test()).filter(({ state }) => state !== 'ok')).toEqual([])
    },
  )

  test.each(scopesFor('publish'))('are needed, each of them, and named where they lack: %s', async (scope) => {
    const world = await open(scopesFor('publish').filter((one) => one !== scope))
    expect(await notLet(world)).not.toEqual([])
    const findings = (await world.store.test()).filter(
      ({ check, state }) => check === 'permissions' && state === 'failed',
    )
    expect(findings).toMatchObject([{ detail: `the app lacks the access scope ${scope}` }])
  })
})

interface Asked {
  kind: string
  cost: number
  available: number
  isThrottled: boolean
}

/** Notes what each document that is sent costs, and what is left then. */
function countPoints({ shop }: ShopifyWorld): Asked[] {
  const asked: Asked[] = []
  shop.strike({
    fault: 'echo',
    matches: ({ path }) => path.endsWith('/graphql.json'),
    times: Number.POSITIVE_INFINITY,
    change: (json) => {
      const { cost } = json.extensions as {
        cost: { requestedQueryCost: number; throttleStatus: Record<string, number> }
      }
      asked.push({
        kind: shop.requests().at(-1)?.kind ?? '',
        cost: cost.requestedQueryCost,
        available: cost.throttleStatus.currentlyAvailable ?? 0,
        isThrottled: JSON.stringify(json.errors ?? '').includes('THROTTLED'),
      })
      return json
    },
  })
  return asked
}

describe('the points that a Shopify shop is asked for', () => {
  const BUCKET = { maximum: 1_000, restoreRate: 50 }
  const listings = (world: ShopifyWorld, count: number) =>
    Array.from({ length: count }, (_, index) => storeListing(world.sell(`S${index}`)))

  test('are never more than one document may cost, however much there is to ask for', async () => {
    const world = await shopifyWorld({ settings: { otherLocations: 'own' } })
    const asked = countPoints(world)
    const many = listings(world, 260)
    const places = Array.from({ length: 4 }, (_, index) => world.shop.addLocation({ name: `Place ${index}` }).id)
    for (const { id } of many.slice(0, 12)) for (const place of places) world.shop.stockAt(id, place, 3)
    const result = await world.store.publish({ id: 'p1', at: TEST_NOW, listings: many })
    expect(result).toMatchObject({ outcome: 'answered' })
    expect(result.outcome === 'answered' && result.failure).toBeUndefined()
    const items = many.slice(0, 14).map(({ id }) => ({ id, quantity: 1 }))
    const { reference, lines } = world.buy(items)
    for (const line of lines.slice(1)) world.shop.fulfilByHand(reference, { line, quantity: 1 })
    const line = { id: lines[0] ?? '', sku: 'S0', quantity: 1 }
    const about = { at: TEST_NOW, order: { store: 'demo-1', reference }, line, delivered: 1, complete: true }
    const keys = ['AAAA-1111']
    expect(await world.store.fulfil({ id: 'u1', type: 'line.fulfilled', ...about, keys })).toEqual({
      outcome: 'confirmed',
    })
    const references = Array.from(
      { length: world.store.ordersNowSize ?? 0 },
      () => world.buy(items.slice(0, 1)).reference,
    )
    const now = await world.store.ordersNow?.(references)
    expect(now?.outcome === 'read' && now.orders).toHaveLength(references.length)
    const most = Math.max(...asked.map(({ cost }) => cost))
    expect(most).toBeGreaterThan(800)
    expect(most).toBeLessThanOrEqual(1_000)
  })

  test('are waited for before they are asked for: nothing is refused that was asked for before', async () => {
    const world = await shopifyWorld({ shop: { bucket: BUCKET } })
    const asked = countPoints(world)
    const all = listings(world, 60)
    for (const price of ['13.00', '14.00', '15.00']) {
      await world.store.publish({ id: price, at: TEST_NOW, listings: all.map((one) => ({ ...one, price })) })
    }
    expect(asked.filter(({ kind }) => kind === 'UpdateVariants')).toHaveLength(180)
    expect(asked.filter(({ isThrottled }) => isThrottled)).toEqual([])
  })

  test('are left, a quarter of them, to what concerns orders, which waits for no prices', async () => {
    const world = await shopifyWorld({ shop: { bucket: BUCKET } })
    const all = listings(world, 60)
    const { about } = lineOf(world)
    const publish = (price: string) =>
      world.store.publish({ id: price, at: TEST_NOW, listings: all.map((one) => ({ ...one, price })) })
    await publish('13.00')
    const asked = countPoints(world)
    await publish('14.00')
    const least = Math.min(...asked.map(({ available }) => available))
    expect(least).toBeGreaterThanOrEqual(BUCKET.maximum / 4 - 50)
    expect(least).toBeLessThan(BUCKET.maximum / 2)
    const at = world.clock.now
    const failed = { type: 'line.failed', units: 1, state: 'failed', code: 'c', message: 'm', advice: 'a' } as const
    expect(await world.store.reportFailure({ id: 'f1', ...about, ...failed })).toEqual({ outcome: 'confirmed' })
    expect(world.clock.now).toBe(at)
  })
})
