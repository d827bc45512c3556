/** What every kind of shop keeps that lists products, tried on each kind against a shop that really answers. */
import { describe, expect, test } from 'vitest'
import type { StoreListing } from '../../src/stores/store.ts'
import { TEST_NOW } from '../support/database.ts'
import { storeListing } from '../support/store-listing.ts'
import { type ShopWorld, shopifyWorld, wooCommerceWorld } from '../support/store-worlds.ts'

const worlds: [kind: string, open: () => Promise<ShopWorld & Played>][] = [
  ['woocommerce', wooCommerceWorld],
  ['shopify', shopifyWorld],
]

/** What both worlds have of a shop. */
interface Played {
  shop: { setPageMax: (items: number) => void; setCurrency: (code: string) => void }
  clock: { now: number }
}

/** Pushes listings. @returns by id what became of each, in words */
async function pushed({ store }: ShopWorld, listings: StoreListing[]): Promise<Record<string, string>> {
  const result = await store.publish({ id: 'p1', at: TEST_NOW, listings })
  if (result.outcome !== 'answered' || result.answers === 'all') throw new Error('the shop answers for each listing')
  expect(result.failure).toBeUndefined()
  expect(result.answers).toHaveLength(listings.length)
  return Object.fromEntries(
    result.answers.map((one) => [one.id, one.ok ? `${one.price}, ${one.stock} in stock` : String(one.reason)]),
  )
}

describe.each(worlds)('a product of a %s shop with several variants', (_kind, open) => {
  /** A price and a stock for each, which no other one has. */
  const listingsOf = (ids: string[]) =>
    ids.map((id, index) => storeListing(id, { price: `${12 + index}.00`, stock: 20 + index }))

  test.each([0, 1, 2])(
    'of which number %i is gone has the others at their prices, and that one is named',
    async (gone) => {
      const world = await open()
      const ids = world.sellVariants(['A', 'B', 'C'])
      const lost = ids[gone] ?? ''
      world.removeVariant(lost)
      const answers = await pushed(world, listingsOf(ids))
      for (const [index, id] of ids.entries()) {
        if (index === gone) continue
        expect(answers[id]).toBe(`${12 + index}.00, ${20 + index} in stock`)
        expect(world.shelf(id)).toEqual({ price: `${12 + index}.00`, stock: 20 + index })
      }
      expect(answers[lost]).toMatch(/^the shop has no (product|variant) /)
    },
  )

  test.each([0, 1, 2])('of which number %i is refused has the others at their prices', async (refused) => {
    const world = await open()
    const ids = world.sellVariants(['A', 'B', 'C'])
    world.refuse(ids[refused] ?? '')
    const answers = await pushed(world, listingsOf(ids))
    const taken = ids.map((id) => /in stock$/.test(answers[id] ?? ''))
    expect(taken).toEqual(ids.map((_, index) => index !== refused))
    const prices = ids.map((id) => world.shelf(id)?.price)
    expect(prices).toEqual(['12.00', '13.00', '14.00'].map((price, index) => (index === refused ? '9.00' : price)))
  })

  test('that is gone as a whole keeps no other product from its price', async () => {
    const world = await open()
    const ids = world.sellVariants(['A', 'B'])
    const others = [world.sell('C'), ...world.sellVariants(['D', 'E'])]
    world.removeProductOf(ids[0] ?? '')
    const answers = await pushed(world, listingsOf([...ids, ...others]))
    for (const id of ids) expect(answers[id]).toMatch(/^the shop has no (product|variant) /)
    expect(others.map((id) => world.shelf(id)?.price)).toEqual(['14.00', '15.00', '16.00'])
  })

  test('of which the supplier sells one no more has the others on sale as before', async () => {
    const world = await open()
    const [a = '', b = '', c = ''] = world.sellVariants(['A', 'B', 'C'])
    await pushed(world, [
      storeListing(a),
      storeListing(b, { stock: 0, available: false, isGone: true }),
      storeListing(c),
    ])
    expect([a, b, c].map((id) => world.shelf(id)?.stock)).toEqual([7, 0, 7])
    expect([a, c].map(world.isShown)).toEqual([true, true])
  })
})

/** Reads a list to its end. */
async function all<Item>(
  page: (cursor: string | null) => Promise<{ outcome: string; items?: Item[]; next?: string | null }>,
): Promise<Item[]> {
  const items: Item[] = []
  for (let cursor: string | null = null, pages = 0; pages < 100; pages += 1) {
    const read = await page(cursor)
    items.push(...(read.items ?? []))
    if (read.next === null) return items
    cursor = read.next ?? null
  }
  throw new Error('the list has no end')
}

describe.each(worlds)('what a %s shop sells, whose pages hold three', (_kind, open) => {
  test('is read to its end: products, and the variants of each that has several', async () => {
    const world = await open()
    const sold = [
      world.sell('A'),
      ...world.sellVariants(['B', 'C', 'D', 'E', 'F', 'G', 'H']),
      ...world.sellVariants(['I', 'J']),
      world.sell('K'),
      world.sell('L'),
      ...world.sellVariants(['M', 'N', 'O', 'P']),
      world.sell('Q'),
    ]
    world.shop.setPageMax(3)
    const read = await all((cursor) => world.store.variants?.(cursor) ?? Promise.reject(new Error('it lists nothing')))
    expect(read.map(({ id }) => id).toSorted()).toEqual(sold.toSorted())
    expect(
      read
        .map(({ sku }) => sku)
        .toSorted()
        .join(''),
    ).toBe('ABCDEFGHIJKLMNOPQ')
  })

  test('gets no price in the currency that the shop has left', async () => {
    const world = await open()
    const id = world.sell('A')
    expect(await pushed(world, [storeListing(id)])).toEqual({ [id]: '12.50, 7 in stock' })
    world.shop.setCurrency('USD')
    world.clock.now += 2 * 3_600_000
    expect(await pushed(world, [storeListing(id, { price: '13.00' })])).toEqual({
      [id]: 'the shop sells in USD, the price is in EUR',
    })
    expect(world.shelf(id)?.price).toBe('12.50')
  })

  test('is made without its picture where the shop does not take that', async () => {
    const world = await open()
    const made = (sku: string, image: string | null) => ({
      sku,
      name: `Game ${sku}`,
      category: null,
      description: null,
      image,
      isPublished: true,
    })
    world.refusePictures()
    const result = await world.store.create?.([made('A', 'https://pictures.test/a.png'), made('B', null)])
    if (result?.outcome !== 'answered') throw new Error('the shop answers')
    expect(
      result.answers
        .map((one) => ('id' in one ? `${one.sku} is ${one.isNew ? 'new' : 'old'}` : one.refusal))
        .toSorted(),
    ).toEqual(['A is new', 'B is new'])
  })
})

describe('keys of a woocommerce order that the merchant wrote down in a note of their own', () => {
  test('are sent to the customer all the same', async () => {
    const handOver = { by: 'note', complete: true, label: 'Licence key' } as const
    const world = await wooCommerceWorld({ settings: { handOver } })
    const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 1 }])
    const line = { id: lines[0] ?? '', sku: 'A', quantity: 1 }
    world.shop.edit(Number(reference), ({ notes }) => {
      notes.push({
        id: 900,
        note: 'asked for\nAAAA-1111',
        isForCustomer: false,
        createdAt: TEST_NOW,
        author: 'merchant',
      } as never)
    })
    const about = { at: TEST_NOW, order: { store: 'demo-1', reference }, line, delivered: 1, complete: true }
    const keys = ['AAAA-1111']
    const fulfil = () => world.store.fulfil({ id: 'u1', type: 'line.fulfilled', ...about, keys })
    expect(await fulfil()).toEqual({ outcome: 'confirmed' })
    expect(world.keysOf(reference, keys)).toEqual(keys)
  })
})

test.each(['products', 'orders'])(
  'a key of woocommerce that may not write %s is named so, and for nothing else',
  async (what) => {
    const world = await wooCommerceWorld()
    world.shop.strike({
      fault: 'refused',
      status: 403,
      code: 'woocommerce_rest_cannot_batch',
      matches: ({ method, path }) => method === 'POST' && path.endsWith(`/${what}/batch`),
    })
    const failed = (await world.store.test()).filter(({ state }) => state !== 'ok').map(({ detail }) => detail)
    expect(failed).toEqual([`the key may read, and may not write ${what}`])
  },
)

test.each([
  ['ahead of', 7_200_000],
  ['behind', -7_200_000],
])(
  'a woocommerce shop whose clock is two hours %s that of this machine has just that said of its clock',
  async (where, ms) => {
    const world = await wooCommerceWorld()
    world.shop.setClockError(ms)
    const doubtful = (await world.store.test()).filter(({ state }) => state !== 'ok')
    expect(doubtful).toMatchObject([{ check: 'clock', detail: `its clock is 2 h ${where} that of this machine` }])
  },
)

test('keys of a woocommerce order that were stored as the merchant completed it may be with the customer, whatever fails then', async () => {
  const world = await wooCommerceWorld()
  const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 1 }])
  const line = { id: lines[0] ?? '', sku: 'A', quantity: 1 }
  const isKeys = ({ method, path }: { method: string; path: string }) => method === 'PUT' && /\/orders\/\d+$/.test(path)
  world.shop.strike({
    fault: 'echo',
    matches: isKeys,
    change: (json) => {
      world.shop.setStatus(Number(reference), 'completed')
      world.shop.strike({ fault: 'too_many', matches: ({ path }) => path.endsWith('/notes') })
      return { ...(json as object), status: 'completed' }
    },
  })
  const about = { at: TEST_NOW, order: { store: 'demo-1', reference }, line, delivered: 1, complete: true }
  const fulfil = () => world.store.fulfil({ id: 'u1', type: 'line.fulfilled', ...about, keys: ['AAAA-1111'] })
  expect(await fulfil()).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
})

describe('a product of a woocommerce shop', () => {
  test('whose variations have no address any more keeps no other product from its price', async () => {
    const world = await wooCommerceWorld()
    const [a = ''] = world.sellVariants(['A'])
    const others = [...world.sellVariants(['B']), world.sell('C')]
    const [parent] = a.split(':')
    const code = 'woocommerce_rest_product_invalid_id'
    const path = `/products/${parent}/variations/batch`
    world.shop.strike({ fault: 'refused', status: 404, code, matches: (request) => request.path.endsWith(path) })
    const answers = await pushed(
      world,
      [a, ...others].map((id) => storeListing(id)),
    )
    expect(answers[a]).toBe(`the shop has no product ${parent}`)
    expect(others.map((id) => world.shelf(id)?.price)).toEqual(['12.50', '12.50'])
  })

  test('is not said to be gone where there is no WooCommerce at the address', async () => {
    const world = await wooCommerceWorld()
    const a = world.sell('A')
    world.shop.strike({ kind: 'products.batch', fault: 'refused', status: 404, code: 'rest_no_route' })
    const result = await world.store.publish({ id: 'p1', at: TEST_NOW, listings: [storeListing(a)] })
    expect(result).toMatchObject({ outcome: 'refused', status: 404 })
  })
})

describe.each(worlds)('a line of a %s order of which one of several units is refunded', (_kind, open) => {
  const KEYS = ['AAAA-1111', 'BBBB-2222', 'CCCC-3333']

  async function refunded() {
    const world = await open()
    const { reference, lines } = world.buy([
      { id: world.sell('A'), quantity: 3 },
      { id: world.sell('B'), quantity: 1 },
    ])
    const line = { id: lines[0] ?? '', sku: 'A', quantity: 3 }
    const order = { store: 'demo-1', reference }
    const fulfil = (id: string, keys: string[], delivered = keys.length) =>
      world.store.fulfil({ id, type: 'line.fulfilled', at: TEST_NOW, order, line, delivered, complete: true, keys })
    const close = () =>
      world.store.closeOrder({ id: 'c1', at: TEST_NOW, type: 'order.closed', order, state: 'fulfilled' })
    const refund = () => world.refundUnits(reference, line.id, 1)
    const read = async () => {
      const result = await world.store.order?.(reference)
      if (result?.outcome !== 'order') throw new Error('the shop has the order')
      return result.order
    }
    return { world, fulfil, close, refund, read, received: () => world.keysOf(reference, KEYS) }
  }

  test('has the units that are left, and no money that names none', async () => {
    const { refund, read } = await refunded()
    refund()
    const order = await read()
    expect(order).toMatchObject({ standing: 'paid', lines: [{ quantity: 2 }, { quantity: 1 }] })
    expect(order).not.toHaveProperty('refundedAmount')
    expect(order).not.toHaveProperty('fault')
    refund()
    expect((await read()).lines.map(({ quantity }) => quantity)).toEqual([1, 1])
  })

  test('gets the keys of the units that are left, each once, at another attempt', async () => {
    const { world, fulfil, close, refund, received } = await refunded()
    refund()
    expect(await fulfil('u1', KEYS)).toMatchObject({ outcome: 'not_entitled', standing: 'paid', units: 2 })
    expect(received()).toEqual([])
    world.strike('lost_after')
    expect(await fulfil('u2', KEYS.slice(0, 2))).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
    for (const _attempt of [1, 2]) expect(await fulfil('u2', KEYS.slice(0, 2))).toEqual({ outcome: 'confirmed' })
    expect(await fulfil('u3', KEYS.slice(2), 3)).toMatchObject({ outcome: 'not_entitled', units: 2 })
    await close()
    expect(received()).toEqual(KEYS.slice(0, 2))
  })
})

const ADDRESS = 'https://quayside.test/webhooks/stores/demo'

describe('the webhook of a shop', () => {
  const requestOf = ({ headers, body }: { headers: Record<string, string>; body: string }) => ({
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])),
    body: Buffer.from(body),
  })

  test.each(['active', 'paused', 'disabled'] as const)(
    'of woocommerce that is %s, with the secret of an earlier installation, sends what counts from then on',
    async (status) => {
      const world = await wooCommerceWorld()
      await world.store.provision?.(ADDRESS)
      const [webhook] = world.shop.webhooks.values()
      if (!webhook) throw new Error('it was made')
      Object.assign(webhook, { status, secret: 'of-an-earlier-installation' })
      expect(await world.store.provision?.(ADDRESS)).toMatchObject({ outcome: 'confirmed' })
      expect(world.shop.webhooks.size).toBe(1)
      world.shop.takeDeliveries()
      world.buy([{ id: world.sell('A'), quantity: 1 }])
      const deliveries = world.shop.takeDeliveries().map(requestOf)
      expect(deliveries).not.toEqual([])
      for (const one of deliveries) expect(world.store.verify?.(one)).toMatchObject({ outcome: 'authentic' })
    },
  )

  test.each([
    ['in another format', { format: 'XML' }],
    ['for some orders alone', { filter: 'total_price:>=100.00' }],
    ['with other fields', { includeFields: ['id', 'email'] }],
    ['with fewer fields', { includeFields: ['id'] }],
  ])(
    'of shopify that was changed to send %s is put right where it is, and the others are left alone',
    async (_, set) => {
      const world = await shopifyWorld()
      await world.store.provision?.(ADDRESS)
      const all = () => [...world.shop.webhooks.values()].map(({ updatedAt: _at, ...one }) => one)
      const asMade = structuredClone(all())
      const paid = [...world.shop.webhooks.values()].find(({ topic }) => topic === 'ORDERS_PAID')
      Object.assign(paid ?? {}, set)
      expect(await world.store.provision?.(ADDRESS)).toMatchObject({
        detail: expect.stringContaining('missing or changed'),
      })
      expect(all().map((one) => ({ ...one, filter: one.filter || null }))).toEqual(asMade)
      expect(world.shop.counts().UpdateWebhook).toBe(1)
    },
  )

  test('of shopify sends with the secret that the app has got since, and with none of another app', async () => {
    const world = await shopifyWorld({ credentials: { secret: 'shpss_new', previousSecret: 'shpss_before' } })
    world.shop.rotateSecret('shpss_new')
    await world.store.provision?.(ADDRESS)
    const outcomes = ['shpss_new', 'shpss_before', 'shpss_of_another_app'].map((signing) => {
      world.shop.rotateSecret('shpss_new', signing)
      const { id } = world.shop.buy({ lines: [{ variant: world.sell('A') }] })
      const [delivery] = world.shop.takeDeliveries()
      return delivery && id ? world.store.verify?.(requestOf(delivery)).outcome : undefined
    })
    expect(outcomes).toEqual(['authentic', 'authentic', 'not_authentic'])
  })
})

describe('a shopify shop whose pages hold three', () => {
  const inPages = async (given: Parameters<typeof shopifyWorld>[0] = {}) => {
    const world = await shopifyWorld(given)
    world.shop.setPageMax(3)
    return world
  }

  test('has its webhooks found and not made a second time, behind those of others', async () => {
    const world = await inPages()
    await world.store.provision?.('https://another.test/webhooks')
    await world.store.provision?.(ADDRESS)
    const made = world.shop.webhooks.size
    expect(await world.store.provision?.(ADDRESS)).toEqual({ outcome: 'confirmed', detail: null })
    expect(world.shop.webhooks.size).toBe(made)
  })

  test('has its stock written at the one location that serves online orders, behind those that serve none', async () => {
    const world = await inPages()
    for (const one of world.shop.locations.values()) one.fulfillsOnlineOrders = false
    for (const name of ['One', 'Two', 'Three', 'Four']) world.shop.addLocation({ name, fulfillsOnlineOrders: false })
    const { id: location } = world.shop.addLocation({ name: 'Last' })
    const id = world.sell('A')
    expect(await pushed(world, [storeListing(id)])).toEqual({ [id]: '12.50, 7 in stock' })
    expect(world.shop.stockOf(id, location)).toBe(7)
    expect(await world.store.test()).toContainEqual(expect.objectContaining({ check: 'location', state: 'ok' }))
  })
})

describe('a shopify shop', () => {
  test.each([
    ['with', true, '10.00'],
    ['without', false, '11.44'],
  ])(
    'that has prices %s their tax says what was refunded beyond the units, and no tax of these',
    async (_, isIncluded, amount) => {
      const world = await shopifyWorld()
      const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 3 }])
      world.shop.refund(reference, { lines: [{ id: lines[0] ?? '', quantity: 1 }], amount })
      const answers = (kind: string, part: RegExp, words: string) =>
        world.shop.strike({
          kind,
          fault: 'echo',
          change: (json) => {
            const text = JSON.stringify(json)
            expect(text).toMatch(part)
            return JSON.parse(text.replace(part, words))
          },
        })
      answers('Order', /"taxesIncluded":(true|false)/, `"taxesIncluded":${isIncluded}`)
      // A unit costs 9.00.
      answers('OrderRefunds', /("totalTaxSet":\{"shopMoney":\{"amount":)"[^"]*"/, '$1"1.44"')
      const read = await world.store.order?.(reference)
      expect(read).toMatchObject({ order: { refundedAmount: '1.00', lines: [{ quantity: 2 }] } })
    },
  )

  test('that has one SKU on several variants has none of them taken for it', async () => {
    const world = await shopifyWorld()
    const variants = ['Home', 'Pro'].map((title) => ({ title, sku: 'TWICE', price: '9.00', stock: 5 }))
    world.shop.addProduct({ title: 'Suite', variants })
    const drafted = { sku: 'TWICE', name: 'Game', category: null, description: null, image: null, isPublished: true }
    const result = await world.store.create?.([drafted])
    expect(result).toMatchObject({ answers: [{ sku: 'TWICE', refusal: expect.stringContaining('several variants') }] })
    expect(world.shop.products.size).toBe(1)
  })

  test('whose merchant undid a fulfilment has the units fulfilled again with their keys', async () => {
    const world = await shopifyWorld()
    const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 2 }])
    const line = { id: lines[0] ?? '', sku: 'A', quantity: 2 }
    const { id: undone } = world.shop.fulfilByHand(reference)
    world.shop.cancelFulfilment(undone)
    const about = { at: TEST_NOW, order: { store: 'demo-1', reference }, line, delivered: 2, complete: true }
    const keys = ['AAAA-1111', 'BBBB-2222']
    expect(await world.store.fulfil({ id: 'u1', type: 'line.fulfilled', ...about, keys })).toEqual({
      outcome: 'confirmed',
    })
    expect(world.keysOf(reference, keys)).toEqual(keys)
    const standing = world.shop.orders.get(reference)?.fulfilments.filter(({ status }) => status === 'SUCCESS')
    expect(standing?.flatMap((one) => one.lines.map(({ quantity }) => quantity))).toEqual([2])
  })
})
