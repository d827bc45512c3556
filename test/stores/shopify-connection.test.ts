/** What a shop of Shopify is asked, and what a person learns of a shop that does not work. */
import { request } from 'undici'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../src/secret.ts'
import { openShop } from '../../src/stores/shopify/client.ts'
import { tryShop } from '../../src/stores/shopify/findings.ts'
import type { NewVariant } from '../../src/stores/store.ts'
import { shopifyApp } from '../shops/shopify-shop.ts'
import { TEST_NOW } from '../support/database.ts'
import { newVariant } from '../support/new-variant.ts'
import { storeListing } from '../support/store-listing.ts'
import { type ShopifyWorld, shopifySettings, shopifyWorld } from '../support/store-worlds.ts'

let pushes = 0
const publish = (world: ShopifyWorld, ids: string[], set: Parameters<typeof storeListing>[1] = {}) => {
  pushes += 1
  const listings = ids.map((id) => storeListing(id, set))
  return world.store.publish({ id: `s${pushes}`, at: TEST_NOW, listings })
}
const variables = ({ shop }: ShopifyWorld, kind: string) =>
  shop.requests().flatMap((request) => (request.kind === kind ? [request.variables] : []))

describe('the access token of a Shopify shop', () => {
  const DAY = 86_399_000

  test('is used for its last five minutes where no new one comes, and not after its end', async () => {
    const world = await shopifyWorld()
    const read = async () => (await world.store.variants?.(null))?.outcome
    expect(await read()).toBe('read')
    world.clock.now += DAY - 300_001
    await read()
    expect(world.shop.counts().token).toBe(1)
    world.clock.now += 1
    world.shop.strike({ kind: 'token', fault: 'maintenance', times: 2 })
    expect([await read(), world.shop.counts().token]).toEqual(['read', 2])
    world.clock.now += 300_000
    expect([await read(), world.shop.counts().token]).toEqual(['unavailable', 3])
    expect([await read(), world.shop.counts().token]).toEqual(['read', 4])
  })

  test('that is refused is renewed once for all requests that met it', async () => {
    const world = await shopifyWorld()
    await world.store.variants?.(null)
    world.shop.revokeTokens()
    const read = await Promise.all([1, 2, 3].map(() => world.store.variants?.(null)))
    expect(read.map((one) => one?.outcome)).toEqual(['read', 'read', 'read'])
    expect(world.shop.counts().token).toBe(2)
  })
})

describe('a request to Shopify', () => {
  test.each([200, 429] as const)(
    'that is throttled with %i is made again after a second, three times in all',
    async (status) => {
      const world = await shopifyWorld()
      await world.store.variants?.(null)
      const took = async (times: number) => {
        const { now } = world.clock
        const before = world.shop.counts().VariantPage ?? 0
        world.shop.strike({ kind: 'VariantPage', fault: 'throttled', status, times })
        const result = await world.store.variants?.(null)
        return [result?.outcome, (world.shop.counts().VariantPage ?? 0) - before, world.clock.now - now >= 1_000]
      }
      expect(await took(2)).toEqual(['read', 3, true])
      expect(await took(3)).toEqual(['unavailable', 3, true])
    },
  )

  test('that is throttled waits for the points that it costs, where these take longer than a second', async () => {
    const world = await shopifyWorld({ shop: { bucket: { maximum: 1_000, restoreRate: 50 } } })
    const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 1 }])
    const about = {
      at: TEST_NOW,
      order: { store: 'demo-1', reference },
      line: { id: lines[0] ?? '', sku: 'A', quantity: 1 },
    }
    const resumed = (id: string) => world.store.reportResumed?.({ id, ...about, units: 1, type: 'line.resumed' })
    await world.store.variants?.(null)
    await resumed('r1')
    world.clock.now += 60_000
    const took = async (kind: string, act: () => unknown) => {
      world.shop.strike({ kind, fault: 'throttled' })
      const { now } = world.clock
      await act()
      return world.clock.now - now
    }
    expect(await took('VariantPage', () => world.store.variants?.(null))).toBeGreaterThan(5_000)
    world.clock.now += 60_000
    const ms = await took('OrderNote', () => resumed('r2'))
    expect(ms).toBeGreaterThanOrEqual(1_000)
    expect(ms).toBeLessThan(2_000)
  })

  describe('that must wait', () => {
    /** A shop that others ask five things while Quayside waits. @returns with the requests of Quayside that came in each wait */
    async function watched(given: Parameters<typeof shopifyWorld>[0] = {}) {
      const ofQuayside = () => world.shop.requests().filter(({ kind }) => kind !== 'unknown').length
      const inWaits: number[] = []
      const meanwhile = async () => {
        const before = ofQuayside()
        for (let others = 0; others < 5; others += 1) {
          const { body } = await request(`${world.running.url}/pages/about`, { dispatcher: world.running.connections })
          await body.dump()
        }
        inWaits.push(ofQuayside() - before)
      }
      const world = await shopifyWorld({ ...given, meanwhile })
      return { ...world, inWaits }
    }

    test('because the shop wants fewer does not reach it before the second is over', async () => {
      const world = await watched()
      await world.store.variants?.(null)
      world.shop.strike({ kind: 'VariantPage', fault: 'refused', status: 429, times: 2 })
      expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'read' })
      expect(world.inWaits).toEqual([0, 0])
    })

    test('for its points does not reach the shop before they are there', async () => {
      const world = await watched({ shop: { bucket: { maximum: 1_000, restoreRate: 50 } } })
      for (let count = 0; count < 250; count += 1) world.sell(`S${count}`)
      for (let count = 0; count < 5; count += 1) {
        expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'read' })
      }
      expect(world.inWaits.length).toBeGreaterThan(2)
      expect(world.inWaits.filter((count) => count > 0)).toEqual([])
    })

    test('for prices that the shop writes by itself asks how far it is once for each wait, and not in it', async () => {
      const world = await watched({ shop: { bulkMs: 60_000, bucket: { maximum: 20_000, restoreRate: 1_000 } } })
      const ids = Array.from({ length: 250 }, (_, index) => world.sell(`S${index}`))
      await publish(world, ids, { price: '13.00' })
      expect(world.inWaits.length).toBeGreaterThan(2)
      expect(world.shop.counts().BulkOperation).toBe(world.inWaits.length)
      expect(world.inWaits.filter((count) => count > 0)).toEqual([])
    })
  })

  test('has not acted where it only reads', async () => {
    const world = await shopifyWorld()
    await world.store.variants?.(null)
    for (const fault of ['lost_after', 'maintenance', 'login_page'] as const) {
      world.shop.strike({ kind: 'VariantPage', fault })
      expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'unavailable', mayHaveLeft: false })
    }
  })
})

test('a Shopify shop takes a thousand prices, fifty products and fifty orders at once', async () => {
  const { store } = await shopifyWorld()
  const sizes = { batchSize: 1_000, productsMax: 1_000, createSize: 50, ordersNowSize: 50 }
  expect(store).toMatchObject({ ...sizes, settleMs: 60_000, pushMs: 120_000 })
})

describe('a test of a Shopify shop', () => {
  const found = async (world: ShopifyWorld, what: string) =>
    (await world.store.test()).filter(({ check }) => check === what)

  test.each([
    ['ahead of', 7_200_000],
    ['behind', -7_200_000],
  ])('whose clock is two hours %s that of this machine says just that of its clock', async (where, ms) => {
    const world = await shopifyWorld()
    world.shop.correctClock(ms)
    expect(await found(world, 'clock')).toMatchObject([{ detail: `its clock is 2 h ${where} that of this machine` }])
  })

  test('counts the orders that wait on a page, and says that there may be more', async () => {
    const world = await shopifyWorld()
    const variant = world.sell('A')
    for (let count = 0; count < 3; count += 1) world.shop.buy({ lines: [{ variant }], payment: 'authorized' })
    const said = async () => (await found(world, 'payments'))[0]?.detail
    expect(await said()).toContain('not captured: 3, ')
    world.shop.setPageMax(2)
    expect(await said()).toContain('not captured: 2+, ')
  })

  test('takes every currency where none is configured yet', async () => {
    const { running } = await shopifyWorld()
    const { url, connections } = running
    const credentials = { key: new Secret(shopifyApp.clientId), secret: new Secret(shopifyApp.secret) }
    const found = await tryShop(
      openShop({
        url,
        credentials,
        apiVersion: '2026-07',
        now: () => TEST_NOW,
        connections,
        settings: { ...shopifySettings, currency: null },
      }),
    )
    expect(found[1]).toMatchObject({ check: 'currency', state: 'ok', detail: 'it sells in EUR' })
  })

  test('looks at the location whose stock is written, and counts the others whose stock the shop sells', async () => {
    const world = await shopifyWorld()
    const [first] = world.shop.locations.values()
    const said = async () => (await found(world, 'location'))[0]
    expect((await said())?.detail).toMatch(/^stock is written at the location .* \(\d+\)$/)
    world.shop.addLocation({ name: 'Closed', isActive: false })
    world.shop.addLocation({ name: 'Till', fulfillsOnlineOrders: false })
    expect((await said())?.detail).not.toContain('other')
    world.shop.addLocation({ name: 'Second' })
    world.shop.addLocation({ name: 'Third' })
    expect((await said())?.detail).toContain('the shop sells what 2 other locations have, too')
    if (first) first.isActive = false
    expect((await said())?.detail).toMatch(/location Second .* 1 other location has/)
  })

  test.each([
    ['a service that fulfils', { isFulfillmentService: true }],
    ['one that is closed', { isActive: false }],
    ['one for a till alone', { fulfillsOnlineOrders: false }],
  ])('takes no stock to %s by itself, and doubts one that is configured', async (_, set) => {
    const world = await shopifyWorld()
    const [first] = world.shop.locations.values()
    if (!first) throw new Error('the shop has a location')
    Object.assign(first, set)
    expect(await found(world, 'location')).toMatchObject([
      { state: 'failed', detail: 'it has no location for online orders' },
    ])
    expect(await publish(world, [world.sell('A')])).toMatchObject({ outcome: 'refused', status: 404 })
    const configured = await shopifyWorld({ settings: { location: first.id } })
    const [same] = configured.shop.locations.values()
    if (same) Object.assign(same, set, { id: first.id })
    const [doubtful] = await found(configured, 'location')
    expect(doubtful?.state).not.toBe('ok')
  })
})

describe('the prices and the stock of a Shopify shop', () => {
  test('cost one question for its currency and its locations an hour', async () => {
    const world = await shopifyWorld()
    const ids = [world.sell('A')]
    const asked = async (after: number) => {
      world.clock.now += after
      await publish(world, ids)
      return [world.shop.counts().Shop, world.shop.counts().Locations]
    }
    expect([await asked(0), await asked(3_500_000), await asked(200_000), await asked(1)]).toEqual([
      [1, 1],
      [1, 1],
      [2, 2],
      [2, 2],
    ])
  })

  test('have keys under which Shopify does the same once: one for each push, each try and each stock', async () => {
    const world = await shopifyWorld()
    const [a, b] = [world.sell('A'), world.sell('B')]
    const twice = { id: 'same', at: TEST_NOW, listings: [storeListing(a, { stock: 8 })] }
    await world.store.publish(twice)
    world.shop.setStock(a, 5)
    await world.store.publish(twice)
    world.shop.setStock(a, 5)
    await publish(world, [a], { stock: 8 })
    world.shop.setStock(a, 5)
    await publish(world, [b], { stock: 8 })
    const keys = variables(world, 'SetStock').map(({ key }) => key)
    expect(keys).toHaveLength(4)
    expect(keys[1]).toBe(keys[0])
    expect(new Set(keys).size).toBe(3)
  })

  test('of what customers bought meanwhile are written under another key', async () => {
    const world = await shopifyWorld()
    const id = world.sell('A')
    for (const stock of [4, 3]) {
      world.shop.strike({ kind: 'SetStock', fault: 'meanwhile', act: () => world.shop.setStock(id, stock) })
    }
    await publish(world, [id])
    const keys = variables(world, 'SetStock').map(({ key }) => key)
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(3)
    expect(world.shelf(id)?.stock).toBe(7)
  })

  test('are written again under another key where Shopify lost an attempt, and each product is stocked under one of its own', async () => {
    const world = await shopifyWorld()
    const ids = [world.sell('A'), world.sell('B')]
    world.shop.strike({ kind: 'SetStock', fault: 'user_error', code: 'IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED' })
    expect(await publish(world, ids)).toMatchObject({ answers: [{ ok: true }, { ok: true }] })
    const tried = variables(world, 'SetStock').map(({ key }) => key)
    expect([tried.length, new Set(tried).size]).toEqual([2, 2])
    for (const id of ids) world.shop.variants.get(id)?.item.levels.clear()
    expect(await publish(world, ids)).toMatchObject({ answers: [{ ok: true }, { ok: true }] })
    const stocked = variables(world, 'ActivateStock').map(({ key }) => key)
    expect([stocked.length, new Set(stocked).size]).toEqual([2, 2])
    expect(ids.map((id) => world.shelf(id)?.stock)).toEqual([7, 7])
  })

  test('wait for no bulk operation that reads, nor for one that has ended', async () => {
    const world = await shopifyWorld()
    const nodes = [
      { id: 'gid://shopify/BulkOperation/1', status: 'RUNNING', type: 'QUERY' },
      { id: 'gid://shopify/BulkOperation/2', status: 'COMPLETED', type: 'MUTATION' },
    ]
    world.shop.strike({
      kind: 'BulkOperations',
      fault: 'echo',
      change: (json) => ({ ...json, data: { bulkOperations: { nodes } } }),
    })
    expect(await publish(world, [world.sell('A')])).toMatchObject({ answers: [{ ok: true }] })
    expect(world.shop.counts().CancelBulk).toBeUndefined()
  })

  test('are not raised where the price is refused, and taken out all the same', async () => {
    const world = await shopifyWorld()
    const id = world.sell('A')
    world.refuse(id)
    await publish(world, [id], { stock: 9 })
    expect(world.shelf(id)).toEqual({ price: '9.00', stock: 5 })
    world.refuse(id)
    await publish(world, [id], { stock: 2 })
    expect(world.shelf(id)).toEqual({ price: '9.00', stock: 2 })
  })

  test('that are not counted are none, and none is sold where it cannot be bought', async () => {
    const world = await shopifyWorld()
    const id = world.sell('A')
    expect(await publish(world, [id], { stock: null })).toMatchObject({ answers: [{ ok: true, stock: null }] })
    expect(await publish(world, [id], { stock: null, available: false })).toMatchObject({ answers: [{ stock: null }] })
    expect(world.shelf(id)?.stock).toBe(0)
    expect(await publish(world, [id], { available: false })).toMatchObject({ answers: [{ ok: true, stock: 0 }] })
  })

  test('of what is gone make a draft of it once', async () => {
    const world = await shopifyWorld()
    const id = world.sell('A')
    for (const _of of [1, 2]) await publish(world, [id], { stock: 0, available: false, isGone: true })
    expect(world.shop.counts().UpdateProduct).toBe(1)
    expect(world.isShown(id)).toBe(false)
  })
})

describe('a product that a Shopify shop lacks', () => {
  const create = async ({ store }: ShopifyWorld, ...all: NewVariant[]) => {
    const result = await store.create?.(all)
    return result?.outcome === 'answered' ? result.answers : []
  }

  test.each([
    ['publish', true, 'ACTIVE', 1],
    ['publish', false, 'DRAFT', 0],
    ['draft', true, 'DRAFT', 0],
  ] as const)('is made, with create "%s" and published: %s, as %s', async (setting, isPublished, status, published) => {
    const world = await shopifyWorld({ settings: { create: setting } })
    const [made] = await create(world, newVariant('A', { isPublished }))
    expect(made).toMatchObject({ sku: 'A', isNew: true })
    expect([...world.shop.products.values()].map((one) => one.status)).toEqual([status])
    expect(world.shop.counts().PublishProduct ?? 0).toBe(published)
  })

  test('is none where the shop has its SKU in the same case, and the merchant’s own product is not published', async () => {
    const world = await shopifyWorld()
    const id = world.sell('A')
    world.sell('b')
    const made = await create(world, newVariant('A'), newVariant('B'))
    expect(made[0]).toEqual({ sku: 'A', id, isNew: false })
    expect(made[1]).toMatchObject({ sku: 'B', isNew: true })
    expect(world.shop.counts().PublishProduct).toBe(1)
    const again = await create(world, newVariant('B'), newVariant('A', { isPublished: false }))
    expect(again).toMatchObject([
      { sku: 'B', isNew: false },
      { sku: 'A', id },
    ])
  })

  test('is none where a product of its handle has another SKU', async () => {
    const world = await shopifyWorld()
    const [made] = await create(world, newVariant('A'))
    const variant = made && 'id' in made ? world.shop.variants.get(made.id) : undefined
    if (!variant) throw new Error('it was made')
    variant.sku = 'CHANGED'
    expect(await create(world, newVariant('A'))).toEqual([
      { sku: 'A', refusal: expect.stringContaining('another SKU') },
    ])
  })
})

test('the webhooks of other apps and addresses stay as they are, also where their topics are ours', async () => {
  const world = await shopifyWorld()
  const fields = (uri: string) => [...world.shop.webhooks.values()].filter((one) => one.uri === uri)
  await world.store.provision?.('https://another.test/x')
  for (const one of fields('https://another.test/x')) one.includeFields = ['id']
  await world.store.provision?.('https://quayside.test/x')
  expect(fields('https://another.test/x').map(({ includeFields }) => includeFields)).toEqual(Array(8).fill(['id']))
  expect(fields('https://quayside.test/x')).toHaveLength(8)
  world.shop.strike({ kind: 'Webhooks', fault: 'maintenance' })
  expect(await world.store.provision?.('https://quayside.test/x')).toMatchObject({ outcome: 'unavailable' })
})
