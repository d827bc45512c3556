/** What a shop of Shopify does beside what every store does: each exchange is also held against Shopify's own schema. */
import '@shopify/shopify-api/adapters/node'
import { ApiVersion, LogSeverity, shopifyApi } from '@shopify/shopify-api'
import { describe, expect, test } from 'vitest'
import type { ChangedOrders, StoreListing, StoreOrderRead } from '../../src/stores/store.ts'
import { shopifyApp } from '../shops/shopify-shop.ts'
import { TEST_NOW } from '../support/database.ts'
import { type ShopifyWorld, shopifyWorld } from '../support/store-worlds.ts'

const shopify = shopifyApi({
  apiKey: shopifyApp.clientId,
  apiSecretKey: shopifyApp.secret,
  apiVersion: ApiVersion.July26,
  hostName: 'quayside.test',
  isEmbeddedApp: false,
  logger: { level: LogSeverity.Error, log: async () => {} },
})
const KEYS = ['AAAA-BBBB', 'CCCC-DDDD']
const ADDRESS = 'https://quayside.test/webhooks/stores/demo'

function ordered(world: ShopifyWorld, quantity = 2) {
  const { reference, lines } = world.buy([{ id: world.sell('A'), quantity }])
  const line = { id: lines[0] ?? '', sku: 'A', quantity }
  const about = { at: TEST_NOW, order: { store: 'demo-1', reference }, line }
  const fulfil = (id: string, keys = KEYS) =>
    world.store.fulfil({ id, type: 'line.fulfilled', ...about, delivered: keys.length, complete: true, keys })
  const order = () => {
    const found = world.shop.orders.get(reference)
    if (!found) throw new Error('the shop has the order')
    return found
  }
  const mails = () => world.shop.mails().filter((mail) => mail.order === reference && mail.kind.startsWith('shipping'))
  const units = () =>
    order()
      .fulfilments.flatMap(({ lines: of }) => of.map((one) => one.quantity))
      .reduce((sum, one) => sum + one, 0)
  const keys = () => world.shop.metafieldsOf(reference).filter(({ key }) => key.startsWith('keys_'))
  return { reference, line, fulfil, order, mails, units, keys }
}

describe('a customer of Shopify', () => {
  test('gets one mail, which has the keys, and the order is fulfilled', async () => {
    const world = await shopifyWorld()
    const { fulfil, mails, units, keys } = ordered(world)
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(mails()).toHaveLength(1)
    expect(mails()[0]?.text).toContain(KEYS.join('\n'))
    expect(keys().map(({ value }) => value)).toEqual([`Game A (A)\n${KEYS.join('\n')}`])
    expect(units()).toBe(2)
  })

  test.each(['DefineKeys', 'PutKeys', 'CreateFulfillment'])(
    'gets one mail and each unit once, where the answer to %s was lost',
    async (kind) => {
      const world = await shopifyWorld()
      const { fulfil, mails, units, keys } = ordered(world)
      world.shop.strike({ kind, fault: 'lost_after' })
      expect(await fulfil('u1')).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
      expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
      expect([mails().length, units(), keys().length]).toEqual([1, 2, 1])
    },
  )

  test('has no unit fulfilled whose key has not come, where the answer for the others was lost', async () => {
    const world = await shopifyWorld()
    const { fulfil, units } = ordered(world, 5)
    world.shop.strike({ kind: 'CreateFulfillment', fault: 'lost_after' })
    await fulfil('u1')
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(units()).toBe(2)
    expect(await fulfil('u2', ['EEEE-FFFF'])).toEqual({ outcome: 'confirmed' })
    expect(units()).toBe(3)
  })

  test('has the keys of each hand-over in a metafield of its own, of which the first three are pinned', async () => {
    const world = await shopifyWorld()
    const { fulfil, keys, units } = ordered(world, 5)
    const handOvers = ['K-1', 'K-2', 'K-3', 'K-4', 'K-5']
    for (const key of handOvers) {
      const before = keys().map(({ value, updatedAt }) => [value, updatedAt])
      world.clock.now += 1_000
      world.shop.strike({ kind: 'PutKeys', fault: 'lost_after' })
      await fulfil(`u${key}`, [key])
      expect(await fulfil(`u${key}`, [key])).toEqual({ outcome: 'confirmed' })
      expect(keys().map(({ value, updatedAt }) => [value, updatedAt])).toEqual([
        ...before,
        [`Game A (A)\n${key}`, world.clock.now],
      ])
    }
    expect(keys().map(({ key }) => key)).toEqual(['keys_1', 'keys_2', 'keys_3', 'keys_4', 'keys_5'])
    const definitions = [...world.shop.definitions.values()]
    expect(definitions.map(({ key, pinnedPosition }) => [key, pinnedPosition !== null])).toEqual([
      ['keys_1', true],
      ['keys_2', true],
      ['keys_3', true],
      ['keys_4', false],
      ['keys_5', false],
    ])
    expect(units()).toBe(5)
  })

  test('gets each unit once where two processes hand over the same keys at once', async () => {
    const world = await shopifyWorld()
    const { fulfil, keys, units, mails } = ordered(world, 5)
    await Promise.all([fulfil('u1'), fulfil('u1')])
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect([keys().length, units(), mails().length]).toEqual([1, 2, 1])
  })

  test('gets each unit once where two processes hand over different keys of a line at once', async () => {
    const world = await shopifyWorld()
    const { fulfil, keys, units } = ordered(world, 5)
    const both = () => Promise.all([fulfil('u1'), fulfil('u2', ['EEEE-FFFF'])])
    await both()
    expect(await both()).toEqual([{ outcome: 'confirmed' }, { outcome: 'confirmed' }])
    expect([keys().length, units()]).toEqual([2, 3])
  })

  test('has no more units fulfilled by a hand-over than it has keys, while another one is under way', async () => {
    const world = await shopifyWorld()
    const { fulfil, units } = ordered(world, 5)
    world.shop.strike({ kind: 'CreateFulfillment', fault: 'lost_before' })
    await fulfil('u1')
    expect(await fulfil('u2', ['EEEE-FFFF'])).toEqual({ outcome: 'confirmed' })
    expect(units()).toBe(1)
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(units()).toBe(3)
  })

  test('has keys on the order where it is fulfilled by hand at that instant, and the merchant reads so', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, units, keys, order } = ordered(world)
    const act = () => void world.shop.fulfilByHand(reference)
    world.shop.strike({ kind: 'CreateFulfillment', fault: 'meanwhile', act })
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect([units(), keys().length]).toEqual([2, 1])
    expect(order().note).toMatch(/^Quayside: the shop had nothing left to fulfil/)
  })

  test('gets no keys on an order that has no metafield to spare', async () => {
    const world = await shopifyWorld({ settings: { metafieldNamespace: 'quayside' } })
    const { fulfil, reference } = ordered(world)
    for (let other = 0; other < 250; other += 1) {
      world.shop.putMetafield(reference, 'quayside', `other_${other}`, 'x')
    }
    expect(await fulfil('u1')).toMatchObject({ outcome: 'refused', status: 409 })
  })

  test('gets the units of a line that the merchant has split over two fulfilment orders', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, line, units, mails } = ordered(world, 3)
    world.shop.splitFulfilment(reference, line.id, 1)
    expect(await fulfil('u1', ['K-1', 'K-2', 'K-3'])).toEqual({ outcome: 'confirmed' })
    expect(units()).toBe(3)
    expect(mails().at(-1)?.text).toContain('K-3')
  })

  test('has keys on the order although it was fulfilled by hand before, and the merchant reads so once', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, order, units, keys } = ordered(world)
    world.shop.fulfilByHand(reference)
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect([units(), keys().length]).toEqual([2, 1])
    expect(order().note?.match(/Quayside: /g)).toHaveLength(1)
  })

  test.each(['ON_HOLD', 'SCHEDULED'] as const)('gets no keys while the order is %s', async (status) => {
    const world = await shopifyWorld()
    const { fulfil, reference, keys } = ordered(world)
    world.shop.setFulfilmentStatus(reference, status)
    expect(await fulfil('u1')).toMatchObject({ outcome: 'refused', status: 409 })
    expect(keys()).toEqual([])
    world.shop.setFulfilmentStatus(reference, 'OPEN')
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
  })

  test('gets keys once Shopify has prepared the fulfilment', async () => {
    const world = await shopifyWorld({ shop: { fulfilmentDelayMs: 30_000 } })
    const { fulfil, keys } = ordered(world)
    expect(await fulfil('u1')).toMatchObject({ outcome: 'unavailable', mayHaveLeft: false })
    expect(keys()).toEqual([])
    world.clock.now += 30_000
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
  })

  test('gets no keys of an order that was cancelled', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, keys } = ordered(world)
    world.shop.cancel(reference)
    expect(await fulfil('u1')).toMatchObject({ outcome: 'refused', status: 409 })
    expect(keys()).toEqual([])
  })

  test('gets no keys of a line that was refunded or removed, which is said, and those that are there stay', async () => {
    const world = await shopifyWorld()
    const [a, b] = ['A', 'B'].map(world.sell) as [string, string]
    const { reference, lines } = world.buy([
      { id: a, quantity: 2 },
      { id: b, quantity: 1 },
    ])
    const line = { id: lines[0] ?? '', sku: 'A', quantity: 2 }
    const about = { at: TEST_NOW, order: { store: 'demo-1', reference }, line, delivered: 2, complete: true }
    const fulfil = (id: string, keys: string[]) => world.store.fulfil({ id, type: 'line.fulfilled', ...about, keys })
    const keys = () => world.shop.metafieldsOf(reference).filter(({ key }) => key.startsWith('keys_'))
    world.shop.refund(reference, { lines: [{ id: line.id, quantity: 2 }] })
    expect(await fulfil('u1', KEYS)).toEqual({
      outcome: 'refused',
      status: 409,
      detail: `the line ${line.id} of the order ${reference} was refunded or removed in the shop: its keys stay here`,
      isCancelled: 'line',
    })
    expect(keys()).toEqual([])
    expect(world.shop.orders.get(reference)?.note ?? '').toBe('')
    world.shop.putMetafield(reference, '$app:quayside', 'keys_1', `Game A (A)\n${KEYS[0]}`)
    expect(await fulfil('u2', KEYS.slice(0, 1))).toEqual({ outcome: 'confirmed' })
    expect(await fulfil('u1', KEYS)).not.toHaveProperty('isCancelled')
  })

  test('gets no keys while the line is in no fulfilment order, and it is not said that there is none', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, keys, order } = ordered(world)
    world.shop.change(reference, (one) => {
      for (const { lines } of one.fulfilmentOrders) lines.splice(0)
    })
    expect(order().fulfilmentOrders).toHaveLength(1)
    expect(await fulfil('u1')).toMatchObject({
      outcome: 'unavailable',
      mayHaveLeft: false,
      detail: expect.stringContaining('has its line'),
    })
    expect(keys()).toEqual([])
  })

  test("loses no keys of another writer, and the merchant's note stays", async () => {
    const world = await shopifyWorld({ settings: { metafieldNamespace: 'quayside' } })
    const { fulfil, reference, keys, order } = ordered(world)
    world.shop.change(reference, (one) => {
      one.note = 'Gift wrap!'
    })
    const act = () => void world.shop.putMetafield(reference, 'quayside', 'keys_1', 'Game Z\nZZZZ')
    world.shop.strike({ kind: 'PutKeys', fault: 'meanwhile', act })
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(keys().map(({ value }) => value)).toEqual(['Game Z\nZZZZ', `Game A (A)\n${KEYS.join('\n')}`])
    await world.store.closeOrder({
      id: 'c1',
      at: TEST_NOW,
      type: 'order.closed',
      order: { store: 'x', reference },
      state: 'partly_fulfilled',
    })
    expect(order().note).toMatch(/^Gift wrap!\nQuayside: some licence keys .* \[quayside c1\]$/)
  })

  test.each(['PINNED_LIMIT_REACHED', 'TAKEN'])(
    'gets keys where the shop answers %s to their definition',
    async (code) => {
      const world = await shopifyWorld()
      const { fulfil, mails } = ordered(world)
      world.shop.strike({ kind: 'DefineKeys', fault: 'user_error', code })
      expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
      expect(mails()).toHaveLength(1)
      expect([...world.shop.definitions.values()].map(({ pinnedPosition }) => pinnedPosition)).toEqual(
        code === 'TAKEN' ? [] : [null],
      )
    },
  )

  test('gets no mail of keys that an app of the shop has changed', async () => {
    const world = await shopifyWorld()
    const { fulfil, mails } = ordered(world)
    world.shop.strike({
      kind: 'PutKeys',
      fault: 'echo',
      change: (json) => JSON.parse(JSON.stringify(json).replaceAll('AAAA', 'aaaa')),
    })
    expect(await fulfil('u1')).toMatchObject({
      outcome: 'refused',
      detail: expect.stringContaining('changed the keys'),
    })
    expect(mails()).toEqual([])
  })

  test('gets the keys again by another mail', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, line, mails } = ordered(world)
    const again = () => world.store.resend?.({ reference, lines: [{ id: line.id, keys: KEYS }] })
    expect(await again()).toMatchObject({ outcome: 'refused' })
    await fulfil('u1')
    expect(await again()).toEqual({ outcome: 'confirmed' })
    expect(mails().map(({ text }) => text.includes(KEYS[1] ?? ''))).toEqual([true, true])
  })
})

describe('a customer of Shopify whose keys the merchant deleted', () => {
  test.each([[['keys_1']], [['keys_1', 'units']]])(
    'gets them again (%j), and no unit is fulfilled later whose key has not come',
    async (deleted) => {
      const world = await shopifyWorld()
      const { fulfil, reference, line, units, mails } = ordered(world, 5)
      await fulfil('u1')
      for (const key of deleted) world.shop.removeMetafield(reference, '$app:quayside', key)
      const again = await world.store.resend?.({ reference, lines: [{ id: line.id, keys: KEYS }] })
      expect(again).toEqual({ outcome: 'confirmed' })
      expect(mails().at(-1)?.text).toContain(KEYS.join('\n'))
      world.shop.strike({ kind: 'CreateFulfillment', fault: 'lost_after' })
      await fulfil('u2', ['EEEE-FFFF'])
      expect(await fulfil('u2', ['EEEE-FFFF'])).toEqual({ outcome: 'confirmed' })
      expect(units()).toBe(3)
    },
  )
})

const listing = (id: string, set: Partial<StoreListing> = {}): StoreListing => ({
  id,
  sku: 'A',
  name: 'Game A',
  category: null,
  price: '12.50',
  compareAt: null,
  currency: 'EUR',
  stock: 7,
  available: true,
  revision: 1,
  ...set,
})
let pushes = 0
const publish = ({ store }: ShopifyWorld, listings: StoreListing[]) => {
  pushes += 1
  return store.publish({ id: `p${pushes}`, at: TEST_NOW, listings })
}

describe('the catalogue of Shopify', () => {
  test('is written only where it differs', async () => {
    const world = await shopifyWorld()
    const id = world.sell('A')
    await publish(world, [listing(id)])
    await publish(world, [listing(id)])
    expect(world.shop.counts()).toMatchObject({ UpdateVariants: 1, SetStock: 1 })
  })

  test('takes a stock of which a customer bought meanwhile', async () => {
    const world = await shopifyWorld()
    const id = world.sell('A')
    const act = () => void world.buy([{ id, quantity: 2 }])
    world.shop.strike({ kind: 'SetStock', fault: 'meanwhile', act })
    expect(await publish(world, [listing(id)])).toMatchObject({ answers: [{ ok: true, stock: 7 }] })
    expect(world.shop.stockOf(id)).toBe(7)
    expect(world.shop.counts().SetStock).toBe(2)
  })

  test('takes the stock of the others where one is refused', async () => {
    const world = await shopifyWorld()
    const [a, b] = ['A', 'B'].map(world.sell) as [string, string]
    const item = world.shop.variants.get(a)?.item.id
    const fails = (one: Record<string, unknown>) => one.inventoryItemId === `gid://shopify/InventoryItem/${item}`
    world.shop.strike({ kind: 'SetStock', fault: 'items', fails, code: 'NON_MUTABLE_INVENTORY_ITEM' })
    const result = await publish(world, [listing(a), listing(b)])
    expect(result).toMatchObject({
      answers: [
        { id: a, ok: false, reason: 'the shop refused it (NON_MUTABLE_INVENTORY_ITEM)' },
        { id: b, ok: true },
      ],
    })
    expect(world.shop.stockOf(b)).toBe(7)
  })

  test('stocks an item at the location, and counts it, where the merchant did not', async () => {
    const world = await shopifyWorld()
    const id = world.shop.addProduct({ title: 'Game', sku: 'A', price: '1.00', stock: null }).variants[0]?.id ?? ''
    world.shop.variants.get(id)?.item.levels.clear()
    expect(await publish(world, [listing(id)])).toMatchObject({ answers: [{ ok: true, stock: 7 }] })
    expect(world.shop.stockOf(id)).toBe(7)
    expect(world.shop.variants.get(id)?.item.tracked).toBe(true)
  })

  test('sells out a product whose price Shopify refuses', async () => {
    const world = await shopifyWorld()
    const id = world.sell('A')
    world.refuse(id)
    expect(await publish(world, [listing(id, { stock: 0, available: false })])).toMatchObject({
      answers: [{ ok: false }],
    })
    expect(world.shop.stockOf(id)).toBe(0)
  })

  test('makes a draft of a product that is gone, gets no price in another currency, and has no unknown variant', async () => {
    const world = await shopifyWorld()
    const [a, b] = ['A', 'B'].map(world.sell) as [string, string]
    const gone = listing(b, { stock: 0, available: false, isGone: true })
    expect(await publish(world, [listing(a, { currency: 'USD' }), gone, listing('99')])).toMatchObject({
      answers: expect.arrayContaining([
        { id: a, ok: false, reason: 'the shop sells in EUR, the price is in USD' },
        { id: '99', ok: false, reason: 'the shop has no variant 99' },
        expect.objectContaining({ id: b, ok: true, stock: 0 }),
      ]),
    })
    expect(world.shop.variants.get(b)?.product.status).toBe('DRAFT')
  })

  const product = (sku: string, image: string | null = null) => ({
    sku,
    name: `Game ${sku}`,
    category: 'Games',
    description: 'A <b>game</b>',
    image,
    isPublished: true,
  })

  test.each([undefined, 'lost_after', 'truncated'] as const)(
    'gets each product once, where the first answer met %s and the search lags',
    async (fault) => {
      const world = await shopifyWorld({ shop: { searchLagMs: 60_000 } })
      if (fault) world.shop.strike({ kind: 'CreateProduct', fault })
      await world.store.create?.([product('A'), product("B'1")])
      const again = await world.store.create?.([product('A'), product("B'1")])
      const made = [...world.shop.products.values()]
      expect(made.map(({ variants }) => variants[0]?.sku).toSorted()).toEqual(['A', "B'1"])
      expect(again).toMatchObject({ outcome: 'answered' })
      expect(made[0]).toMatchObject({
        status: 'ACTIVE',
        descriptionHtml: 'A &lt;b&gt;game&lt;/b&gt;',
        productType: 'Games',
      })
      const [online] = world.shop.publications.values()
      expect([...(made[0]?.publications ?? [])]).toContain(online?.id)
      expect(made[0]?.variants[0]).toMatchObject({
        inventoryPolicy: 'DENY',
        item: { tracked: true, requiresShipping: false },
      })
    },
  )

  test('is read with the names and SKUs of its variants, to its end', async () => {
    const world = await shopifyWorld()
    const simple = world.sell('A')
    const suite = world.shop.addProduct({
      title: 'Suite',
      variants: [
        { title: 'Home', sku: 'H' },
        { title: 'Pro', sku: null },
      ],
    })
    expect(await world.store.variants?.(null)).toEqual({
      outcome: 'read',
      items: [
        { id: simple, sku: 'A', name: 'Game A' },
        { id: suite.variants[0]?.id, sku: 'H', name: 'Suite - Home' },
        { id: suite.variants[1]?.id, sku: null, name: 'Suite - Pro' },
      ],
      next: null,
    })
  })

  test('waits for what Shopify allows, and loses nothing', async () => {
    const world = await shopifyWorld({ shop: { bucket: { maximum: 1000, restoreRate: 50 } } })
    const ids = Array.from({ length: 50 }, (_, index) => world.sell(`S${index}`))
    const listings = ids.map((id) => listing(id))
    for (const price of ['13.00', '14.00', '15.00', '16.00']) {
      const result = await publish(
        world,
        listings.map((one) => ({ ...one, price })),
      )
      const answers = result.outcome === 'answered' && result.answers !== 'all' ? result.answers : []
      expect(answers.filter(({ ok }) => ok)).toHaveLength(50)
    }
    expect(world.clock.now).toBeGreaterThan(TEST_NOW)
  })
})

/** Whether Shopify's own library takes a delivery for one of Shopify. */
async function validated(rawBody: string, headers: Record<string, string>): Promise<boolean> {
  const { valid } = await shopify.webhooks.validate({ rawBody, rawRequest: { headers }, rawResponse: {} })
  return valid
}

describe('the orders of Shopify', () => {
  const read = async (world: ShopifyWorld, body: unknown): Promise<StoreOrderRead | undefined> => {
    const result = await world.store.readOrder?.(Buffer.from(JSON.stringify(body)))
    return result?.outcome === 'order' ? result.order : undefined
  }
  const named = (reference: string) => ({ admin_graphql_api_id: `gid://shopify/Order/${reference}` })

  test('are read by the id alone, also above 2^53, with all of their lines', async () => {
    const world = await shopifyWorld({ shop: { firstId: '9007199254740993000' } })
    const items = Array.from({ length: 60 }, (_, index) => ({ id: world.sell(`S${index}`), quantity: 1 }))
    const { reference, lines } = world.buy(items)
    const order = await read(world, { ...named(reference), total_price: '0.01' })
    expect(order).toMatchObject({ reference, state: 'paid' })
    expect(order?.lines.map(({ id }) => id)).toEqual(lines)
    expect(order?.lines[0]).toMatchObject({
      variant: items[0]?.id,
      sku: 'S0',
      quantity: 1,
      unitPrice: '9.00',
      currency: 'EUR',
    })
  })

  test('that only another shop has are ignored', async () => {
    const world = await shopifyWorld()
    expect(await world.store.readOrder?.(Buffer.from(JSON.stringify(named('4711'))))).toEqual({
      outcome: 'ignored',
      detail: 'the shop has no order 4711',
    })
  })

  test('held at risk wait until the merchant sets the tag, which is taken off', async () => {
    const world = await shopifyWorld({ settings: { holdAtRisk: 'cancel' } })
    const { id } = world.shop.buy({ lines: [{ variant: world.sell('A') }], recommendation: 'CANCEL' })
    expect(await read(world, named(id))).toMatchObject({ state: 'waiting' })
    world.shop.tag(id, 'quayside-retry')
    expect(await read(world, named(id))).toMatchObject({ state: 'waiting', retry: true })
    expect(await world.store.retryTaken?.(id)).toEqual({ outcome: 'confirmed' })
    expect(await world.store.retryTaken?.(id)).toEqual({ outcome: 'confirmed' })
    const order = await read(world, named(id))
    expect(order).toMatchObject({ state: 'paid' })
    expect(order?.retry).toBeUndefined()
  })

  test('come all, also where orders change while pages are read and more than a page changed at one instant', async () => {
    const world = await shopifyWorld()
    const variant = world.sell('A')
    const ids = Array.from({ length: 120 }, (_, index) => {
      if (index > 60) world.clock.now += 1_000
      return world.shop.buy({ lines: [{ variant }] }).id
    })
    const seen = new Set<string>()
    let cursor: string | number = TEST_NOW
    for (let page = 1, more = true; more; page += 1) {
      const result: ChangedOrders | undefined = await world.store.ordersSince?.(cursor)
      if (result?.outcome !== 'read') throw new Error('the orders are read')
      for (const { reference } of result.orders) seen.add(reference)
      cursor = result.cursor
      more = result.more
      if (page < 3) world.shop.tag(ids[page * 7] ?? '', 'seen')
    }
    expect(seen).toEqual(new Set(ids))
  })

  test('come from the first page again where Shopify refuses the cursor that is stored', async () => {
    const world = await shopifyWorld()
    const variant = world.sell('A')
    const { id } = world.shop.buy({ lines: [{ variant }] })
    const stored = JSON.stringify({ from: TEST_NOW, after: 'of another version' })
    expect(await world.store.ordersSince?.(stored)).toMatchObject({
      outcome: 'read',
      orders: [{ reference: id }],
      more: false,
    })
    expect(await world.store.variants?.('of another version')).toMatchObject({ items: [{ id: variant }] })
    world.shop.setScopes([])
    expect(await world.store.ordersSince?.(stored)).toMatchObject({ outcome: 'refused' })
  })

  test('come all and each once, where the shop fails at one request in ten', async () => {
    const world = await shopifyWorld()
    const variant = world.sell('A')
    const placed = Array.from({ length: 60 }, () => world.shop.buy({ lines: [{ variant }] }).id)
    let requests = 0
    const isTenth = () => {
      requests += 1
      return requests % 10 === 0
    }
    world.shop.strike({ fault: 'maintenance', times: Number.POSITIVE_INFINITY, matches: isTenth })
    const came: string[] = []
    const readLate = async (reference: string): Promise<string> => {
      const late = await world.store.order?.(reference)
      return late?.outcome === 'order' ? late.order.reference : readLate(reference)
    }
    let cursor: string | number = TEST_NOW - 60_000
    let failures = 0
    for (let more = true; more; ) {
      const result: ChangedOrders | undefined = await world.store.ordersSince?.(cursor)
      if (result?.outcome === 'read') {
        came.push(...result.orders.map(({ reference }) => reference))
        for (const { reference } of result.unread) came.push(await readLate(reference))
        cursor = result.cursor
        more = result.more
      } else {
        failures += 1
        expect(failures).toBeLessThan(10)
      }
    }
    expect(came.toSorted()).toEqual(placed.toSorted())
  })

  test('are sent to one address by five webhooks, which are made again where they are gone or changed', async () => {
    const world = await shopifyWorld()
    const { provision } = world.store
    await provision?.('https://another.test/webhooks')
    expect(await provision?.(ADDRESS)).toMatchObject({
      detail: 'they were missing, and are made: the shop sends its orders from now on',
    })
    expect(await provision?.(ADDRESS)).toEqual({ outcome: 'confirmed', detail: null })
    const ours = () => [...world.shop.webhooks.values()].filter(({ uri }) => uri === ADDRESS)
    expect(ours()).toHaveLength(5)
    const [gone, changed] = ours()
    world.shop.webhooks.delete(gone?.id ?? '')
    if (changed) changed.includeFields = []
    expect(await provision?.(ADDRESS)).toMatchObject({ detail: expect.stringContaining('gone or changed') })
    expect(ours()).toHaveLength(5)
    expect(changed?.id && world.shop.webhooks.get(changed.id)?.includeFields).toHaveLength(3)
    expect(world.shop.webhooks.size).toBe(10)
  })

  test('are sent without anything of the customer, and each delivery names its order', async () => {
    const world = await shopifyWorld()
    await world.store.provision?.(ADDRESS)
    const { reference, line } = ordered(world)
    world.shop.refund(reference, { lines: [{ id: line.id, quantity: 1 }] })
    world.shop.cancel(reference)
    const deliveries = world.shop.takeDeliveries()
    expect(new Set(deliveries.map(({ topic }) => topic))).toEqual(
      new Set(['orders/paid', 'orders/updated', 'orders/cancelled', 'refunds/create']),
    )
    for (const { body, headers } of deliveries) {
      const request = {
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])),
        body: Buffer.from(body),
      }
      expect(world.store.verify?.(request)).toMatchObject({ outcome: 'authentic' })
      expect(await validated(body, headers)).toBe(true)
      expect(await validated(body.replace('}', ',"a":1}'), headers)).toBe(false)
      expect(body).not.toContain('@')
      expect(await read(world, JSON.parse(body))).toMatchObject({ reference })
    }
  })

  test('signed with the secret before a rotation count for an hour', async () => {
    const world = await shopifyWorld({ credentials: { secret: 'shpss_new', previousSecret: shopifyApp.secret } })
    const { headers, body } = world.shop.signed('ORDERS_PAID', ADDRESS, '{"id":1}')
    const request = {
      headers: { 'x-shopify-hmac-sha256': [headers['x-shopify-hmac-sha256'] ?? ''] },
      body: Buffer.from(body),
    }
    expect(world.store.verify?.(request)).toMatchObject({ outcome: 'authentic' })
    world.clock.now += 3_600_000
    expect(world.store.verify?.(request)).toMatchObject({ outcome: 'not_authentic' })
  })
})

describe('the connection to Shopify', () => {
  test('gets one access token for many requests, and a new one before it ends or where it is refused', async () => {
    const world = await shopifyWorld()
    const tokens = () => world.shop.counts().token
    await Promise.all([world.store.variants?.(null), world.store.variants?.(null)])
    expect(tokens()).toBe(1)
    world.clock.now += 86_399_000 - 299_000
    await world.store.variants?.(null)
    expect(tokens()).toBe(2)
    world.shop.revokeTokens()
    expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'read' })
    expect(tokens()).toBe(3)
  })

  test('takes an admin token as it is', async () => {
    const world = await shopifyWorld({ credentials: { key: shopifyApp.staticToken ?? '' } })
    expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'read' })
    expect(world.shop.counts().token).toBeUndefined()
  })

  const failed = async (given: Parameters<typeof shopifyWorld>[0]) => {
    const findings = await (await shopifyWorld(given)).store.test()
    return findings.filter(({ state }) => state !== 'ok').map(({ detail, fix }) => `${detail} ${fix}`)
  }

  test('is tried, and nothing is found', async () => {
    expect(await failed({})).toEqual([])
    expect(await failed({ credentials: { key: shopifyApp.staticToken ?? '' } })).toEqual([])
  })

  test.each([
    ['wrong credentials', { credentials: { secret: 'shpss_other' } }, 'does not accept the client secret of the app'],
    ['a wrong token', { credentials: { key: 'shpat_other' } }, 'does not accept the access token'],
    ['another currency', { settings: { currency: 'USD' } }, 'it sells in EUR, the configuration says USD'],
    ['an unknown location', { settings: { location: '4711' } }, 'it has no location 4711'],
    [
      'a version that is over',
      { shop: { versions: ['2026-07', '2026-10'] }, apiVersion: '2026-04' },
      'another version',
    ],
    [
      'missing scopes',
      { shop: { app: { scopes: ['write_products', 'read_orders', 'read_locations'] } } },
      'write_inventory, write_orders, write_merchant_managed_fulfillment_orders, write_publications',
    ],
  ])('is tried, and %s are named', async (_what, given, words) => {
    const found = (await failed(given)).filter((text) => !text.startsWith('its clock'))
    expect(found).toEqual([expect.stringContaining(words)])
  })
})
