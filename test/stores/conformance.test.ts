/** What every kind of store keeps, tried on each kind against a shop that really answers. */
import { describe, expect, test } from 'vitest'
import { markOfKey } from '../../src/domain/licence-key.ts'
import type { StoreListing } from '../../src/stores/store.ts'
import { STANDARD_MAIL } from '../shops/shopify-mails.ts'
import { TEST_NOW } from '../support/database.ts'
import { storeListing } from '../support/store-listing.ts'
import {
  backendWorld,
  falseAnswers,
  type StoreWorld,
  shopifyWorld,
  WEBHOOK_SECRET,
  type WooWorld,
  wooCommerceWorld,
  writeFaults,
} from '../support/store-worlds.ts'

/** The same shop, whose pages are shorter than any list that the suite makes. */
const inPagesOfThree = (open: typeof wooCommerceWorld | typeof shopifyWorld) => async (): Promise<StoreWorld> => {
  const world = await open()
  world.shop.setPageMax(3)
  return world
}

const LINK = 'https://keys.quayside.test/k/Zm9vYmFy'

/** A shop of Shopify whose customers get the link. They have the keys that it leads to once they see it. */
const byLink = async (): Promise<StoreWorld> => {
  const world = await shopifyWorld({ shop: { policy: { mailTemplate: STANDARD_MAIL } } })
  const { store, shop } = world
  const way = { by: 'link', keysUrl: LINK } as const
  return {
    ...world,
    store: {
      ...store,
      fulfil: (update) => store.fulfil({ ...update, ...way }),
      resend: async (order) => store.resend?.({ ...order, ...way }) ?? { outcome: 'confirmed' },
    },
    keysOf: (reference, keys) => {
      const marks = shop.metafieldsOf(reference).find(({ key }) => key === 'marks')?.value ?? '[]'
      return shop.seenBy(reference).links.includes(LINK) ? keys.filter((key) => JSON.parse(marks).includes(key)) : []
    },
  }
}

/** A shop of WooCommerce whose customers get the link, alone or with the keys. */
const wooBy = (by: 'link' | 'both') => async (): Promise<StoreWorld> => {
  const world = await wooCommerceWorld()
  const { store, shop } = world
  const way = { by, keysUrl: `https://keys.quayside.test/k/${'a'.repeat(43)}` } as const
  const sent = (keys: string[]) => (by === 'link' ? keys.map((key) => markOfKey(key, 1)) : keys)
  return {
    ...world,
    store: {
      ...store,
      fulfil: (update) => store.fulfil({ ...update, ...way, keys: sent(update.keys) }),
      resend: async ({ reference, lines }) => {
        const named = lines.map(({ id, keys }) => ({ id, keys: sent(keys) }))
        return store.resend?.({ reference, lines: named, ...way }) ?? { outcome: 'confirmed' }
      },
    },
    keysOf: (reference, keys) => {
      const { mails, page } = shop.customerSees(Number(reference))
      const isSent = mails.some(({ links }) => links.some((link) => link.startsWith(way.keysUrl)))
      if (!isSent || !page.links.some((link) => link.startsWith(way.keysUrl))) return []
      if (by === 'both') return world.keysOf(reference, keys)
      const stored = JSON.stringify(shop.orders.get(Number(reference))?.lines)
      return keys.filter((key) => stored.includes(markOfKey(key, 1)))
    },
  }
}

const worlds: Record<string, () => Promise<StoreWorld>> = {
  backend: backendWorld,
  woocommerce: wooCommerceWorld,
  shopify: shopifyWorld,
  'shopify, by a link,': byLink,
  'woocommerce, by a link,': wooBy('link'),
  'woocommerce, both ways,': wooBy('both'),
  'woocommerce, whose pages hold three,': inPagesOfThree(wooCommerceWorld),
  'shopify, whose pages hold three,': inPagesOfThree(shopifyWorld),
}

const at = TEST_NOW - 5_000
const publish = ({ store }: StoreWorld, listings: StoreListing[]) => store.publish({ id: 'p1', at, listings })

/** An order of one line with two units, and its updates. */
function ordered(world: StoreWorld) {
  const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 2 }])
  const about = {
    at,
    order: { store: 'demo-1', reference },
    line: { id: lines[0] ?? '', sku: 'A', quantity: 2 },
  }
  const fulfil = (id: string, keys: string[], delivered = keys.length) =>
    world.store.fulfil({ id, type: 'line.fulfilled', ...about, delivered, complete: delivered === 2, keys })
  const close = (state: 'fulfilled' | 'partly_fulfilled' | 'failed' = 'fulfilled') =>
    world.store.closeOrder({ id: 'c1', at, type: 'order.closed', order: about.order, state })
  const fail = () =>
    world.store.reportFailure({
      id: 'f1',
      type: 'line.failed',
      ...about,
      units: 1,
      state: 'failed',
      code: 'out_of_stock',
      message: 'none are left',
      advice: 'Refund this part of the order.',
    })
  return { reference, about, fulfil, close, fail, received: () => world.keysOf(reference, KEYS) }
}
const KEYS = ['AAAA-BBBB', 'CCCC-DDDD']

describe.each(Object.entries(worlds))('a %s store', (kind, open) => {
  // Every 2xx of a backend is a yes, whatever its body.
  const faults = kind === 'backend' ? writeFaults : [...writeFaults, ...falseAnswers]

  test('takes a price and stock, and says what it has then', async () => {
    const world = await open()
    const id = world.sell('A')
    expect(await publish(world, [storeListing(id)])).toEqual({
      outcome: 'answered',
      answers: [expect.objectContaining({ id, ok: true, price: '12.50', stock: 7 })],
    })
    expect(world.shelf(id)).toEqual({ price: '12.50', stock: 7 })
  })

  test('refuses one listing of several, and takes the others', async () => {
    const world = await open()
    const [a, b, c] = ['A', 'B', 'C'].map(world.sell) as [string, string, string]
    world.refuse(b)
    const result = await publish(world, [storeListing(a), storeListing(b), storeListing(c)])
    expect(result).toMatchObject({ outcome: 'answered' })
    const answers = result.outcome === 'answered' && result.answers !== 'all' ? result.answers : []
    const byId = Object.fromEntries(answers.map((answer) => [answer.id, answer.ok]))
    expect(byId).toEqual({ [a]: true, [b]: false, [c]: true })
  })

  test('names the price that it has instead of the one that was sent', async () => {
    const world = await open()
    const id = world.sell('A')
    world.keepPrice(id, '8.00')
    expect(await publish(world, [storeListing(id)])).toMatchObject({ answers: [{ id, ok: true, price: '8.00' }] })
  })

  test.each(faults)('throws nothing at %s, and takes the listing again', async (fault) => {
    const world = await open()
    const id = world.sell('A')
    world.strike(fault)
    const result = await publish(world, [storeListing(id)])
    expect(['refused', 'unavailable']).toContain(result.outcome)
    if (fault.startsWith('lost')) expect(result).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
    expect(await publish(world, [storeListing(id)])).toMatchObject({ outcome: 'answered' })
    expect(world.shelf(id)).toEqual({ price: '12.50', stock: 7 })
  })

  test('is unavailable while it is down, and no byte has left', async () => {
    const world = await open()
    const id = world.sell('B')
    const order = ordered(world)
    await world.stop()
    const down = { outcome: 'unavailable', mayHaveLeft: false }
    expect(await publish(world, [storeListing(id)])).toMatchObject(down)
    expect(await order.fulfil('u1', KEYS)).toMatchObject(down)
    expect(await order.close()).toMatchObject(down)
    expect(await world.store.test()).toMatchObject([
      { state: 'failed', detail: expect.stringContaining('nothing listens') },
    ])
    await world.start()
    expect(await order.fulfil('u1', KEYS)).toEqual({ outcome: 'confirmed' })
  })

  test.each([undefined, ...faults])(
    'hands each key over once, where the first attempt met %s and is repeated',
    async (fault) => {
      const world = await open()
      const order = ordered(world)
      if (fault) world.strike(fault)
      const first = await order.fulfil('u1', KEYS)
      if (fault) expect(['refused', 'unavailable']).toContain(first.outcome)
      expect(JSON.stringify(first)).not.toMatch(/AAAA|CCCC/)
      expect(await order.fulfil('u1', KEYS)).toEqual({ outcome: 'confirmed' })
      expect(await order.fulfil('u1', KEYS)).toEqual({ outcome: 'confirmed' })
      if (fault) world.strike(fault)
      await order.close()
      expect(await order.close()).toEqual({ outcome: 'confirmed' })
      expect(await order.close()).toEqual({ outcome: 'confirmed' })
      expect(order.received()).toEqual(KEYS)
    },
  )

  test('hands over the keys of a line in parts', async () => {
    const world = await open()
    const order = ordered(world)
    expect(await order.fulfil('u1', KEYS.slice(0, 1), 1)).toEqual({ outcome: 'confirmed' })
    expect(await order.fulfil('u2', KEYS.slice(1), 2)).toEqual({ outcome: 'confirmed' })
    expect(await order.fulfil('u1', KEYS.slice(0, 1), 1)).toEqual({ outcome: 'confirmed' })
    expect(await order.close()).toEqual({ outcome: 'confirmed' })
    expect(order.received()).toEqual(KEYS)
  })

  test('hands over what came of an order that ends with less', async () => {
    const world = await open()
    const order = ordered(world)
    await order.fulfil('u1', KEYS.slice(0, 1), 1)
    await order.fail()
    expect(await order.close('partly_fulfilled')).toEqual({ outcome: 'confirmed' })
    expect(await order.close('partly_fulfilled')).toEqual({ outcome: 'confirmed' })
    expect(order.received()).toEqual(KEYS.slice(0, 1))
  })

  test('confirms an update without keys', async () => {
    expect(await ordered(await open()).fulfil('u1', [], 2)).toEqual({ outcome: 'confirmed' })
  })

  test.each([undefined, 'lost_before', 'lost_after'] as const)(
    'reports a failure, a hold and its end once each, where each met %s and is repeated',
    async (fault) => {
      const world = await open()
      const { about, fail, reference } = ordered(world)
      const { reportHeld, reportResumed } = world.store
      const hold = { reason: 'out_of_stock', message: 'none are left' } as const
      for (const report of [
        fail,
        () => reportHeld?.({ id: 'h1', type: 'line.held', ...about, units: 1, ...hold }),
        () => reportResumed?.({ id: 'r1', type: 'line.resumed', ...about, units: 1 }),
      ]) {
        if (fault) world.strike(fault)
        await report()
        expect(await report()).toEqual({ outcome: 'confirmed' })
        expect(await report()).toEqual({ outcome: 'confirmed' })
      }
      expect(world.reports(reference)).toBe(3)
    },
  )
})

/** What a backend has no place for: it sends its orders by the API, and lists nothing. */
describe.each([
  ['woocommerce', wooCommerceWorld, 'orders.get'],
  ['shopify', shopifyWorld, 'HandOverOrder'],
] as const)('a push to a shop of %s that answers slowly', (_kind, openWorld, kind) => {
  test('writes nothing after the time in which it is over, so that no other one runs beside it', async () => {
    const world = await openWorld()
    const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 1 }])
    const line = { id: lines[0] ?? '', sku: 'A', quantity: 1 }
    const update = { type: 'line.fulfilled', order: { store: 'demo-1', reference }, line } as const
    const fulfil = () =>
      world.store.fulfil({ id: 'u1', at: TEST_NOW, ...update, delivered: 1, complete: true, keys: ['AAAA-1'] })
    const { pushMs = 0, settleMs = 0 } = world.store
    expect(pushMs).toBeGreaterThan(100_000)
    expect(settleMs).toBeGreaterThan(0)
    world.shop.strike({
      fault: 'echo',
      kind,
      change: (json: unknown) => {
        world.clock.now += pushMs
        return json
      },
    })
    expect(await fulfil()).toMatchObject({ outcome: 'unavailable', mayHaveLeft: false })
    expect(world.shop.requests().filter(({ kind: one }) => /update|PutKeys|CreateFulfillment/.test(one))).toEqual([])
    expect(await fulfil()).toEqual({ outcome: 'confirmed' })
  })
})

const NOT_OF_A_BACKEND = ['variants', 'create', 'verify', 'readOrder', 'ordersSince', 'provision', 'resend'] as const

test('a backend store lacks these methods, so that their claims are not tried on it', async () => {
  const { store } = await backendWorld()
  expect(NOT_OF_A_BACKEND.filter((method) => store[method] !== undefined)).toEqual([])
})

test.each([
  ['woocommerce', wooCommerceWorld],
  ['shopify', shopifyWorld],
])('a %s store sends no examples: each would be a mail to a customer', async (_kind, open) => {
  expect((await open()).store.sendExample).toBeUndefined()
})

/** The methods that only some kinds have. */
function methodsOf({ store }: StoreWorld) {
  const { variants, create, verify, readOrder, ordersSince, provision, resend } = store
  if (!variants || !create || !verify || !readOrder || !ordersSince || !provision || !resend) {
    throw new Error('this kind of store has all methods')
  }
  return { variants, create, verify, readOrder, ordersSince, provision, resend }
}

const ADDRESS = 'https://quayside.test/webhooks/demo'

/** What a shop sends after its webhook was made: one delivery for each order that changed. */
async function deliveriesOf(world: WooWorld) {
  await methodsOf(world).provision(ADDRESS)
  world.shop.takeDeliveries()
  const order = ordered(world)
  const [delivery] = world.shop.takeDeliveries()
  if (!delivery) throw new Error('the shop sends an order')
  const headers = Object.fromEntries(Object.entries(delivery.headers).map(([name, value]) => [name, [value]]))
  return { order, request: { headers, body: Buffer.from(delivery.body) } }
}

describe('a store of kind shopify', () => {
  test('keeps keys here of an order that was refunded or cancelled meanwhile, unless some of them are on it', async () => {
    const world = await shopifyWorld()
    const order = ordered(world)
    expect(await order.fulfil('u1', KEYS.slice(0, 1))).toEqual({ outcome: 'confirmed' })
    world.shop.cancel(order.about.order.reference)
    expect(await order.fulfil('u2', KEYS.slice(1))).toMatchObject({ outcome: 'not_entitled', standing: 'cancelled' })
    expect(order.received()).toEqual(KEYS.slice(0, 1))
    expect(await order.fulfil('u3', KEYS), 'one of its keys is there').toEqual({ outcome: 'confirmed' })
  })
})

describe('a woocommerce store that sends its orders', () => {
  test('is known by its signature, by which a repeat has the same id', async () => {
    const world = await wooCommerceWorld()
    const { request } = await deliveriesOf(world)
    const { verify } = methodsOf(world)
    const verified = verify(request)
    expect(verified).toMatchObject({ outcome: 'authentic' })
    expect(verify(request)).toEqual(verified)
    const forged = { ...request, body: Buffer.from(request.body.toString().replace('processing', 'completed')) }
    expect(verify(forged)).toMatchObject({ outcome: 'not_authentic' })
  })

  test('pings once when its webhook is made', async () => {
    const world = await wooCommerceWorld()
    await methodsOf(world).provision(ADDRESS)
    const [ping] = world.shop.takeDeliveries()
    const headers = { 'content-type': [ping?.headers['content-type'] ?? ''] }
    expect(methodsOf(world).verify({ headers, body: Buffer.from(ping?.body ?? '') })).toEqual({ outcome: 'ping' })
  })

  test('is asked for the order, of which the delivery is not believed', async () => {
    const world = await wooCommerceWorld()
    const { order, request } = await deliveriesOf(world)
    const body = JSON.parse(request.body.toString())
    const cheaper = { ...body, total: '0.01', line_items: [{ ...body.line_items[0], quantity: 99, total: '0.01' }] }
    const read = await methodsOf(world).readOrder(Buffer.from(JSON.stringify(cheaper)))
    expect(read).toMatchObject({
      outcome: 'order',
      order: { reference: order.reference, standing: 'paid', lines: [{ sku: 'A', quantity: 2, unitPrice: '9.00' }] },
    })
  })

  test('is not its copy: an order that only the copy has, or has otherwise, is ignored', async () => {
    const world = await wooCommerceWorld()
    const { order, request } = await deliveriesOf(world)
    const { readOrder } = methodsOf(world)
    const body = JSON.parse(request.body.toString())
    const readBody = (change: object) => readOrder(Buffer.from(JSON.stringify({ ...body, ...change })))
    expect(await readBody({ order_key: 'wc_order_of_the_copy' })).toMatchObject({ outcome: 'ignored' })
    expect(await readBody({ id: 4711 })).toEqual({ outcome: 'ignored', detail: 'the shop has no order 4711' })
    expect(await readBody({})).toMatchObject({ outcome: 'order', order: { reference: order.reference } })
    expect(await readOrder(Buffer.from('{"id":10,"sku":"A"}'))).toMatchObject({ outcome: 'ignored' })
    expect(await readOrder(Buffer.from('{"id":'))).toMatchObject({ outcome: 'unreadable' })
  })

  test('has refunds, which are no units to buy', async () => {
    const world = await wooCommerceWorld()
    const { order, request } = await deliveriesOf(world)
    const line = { id: Number(order.about.line.id), quantity: 1, total: '9.00' }
    world.shop.refund(Number(order.reference), { amount: '9.00', lines: [line] })
    const read = await methodsOf(world).readOrder(request.body)
    expect(read).toMatchObject({ order: { standing: 'paid', lines: [{ quantity: 1, unitPrice: '9.00' }] } })
  })

  test('has one webhook for our address, active and with our secret, however often it is set up', async () => {
    const world = await wooCommerceWorld()
    const { provision } = methodsOf(world)
    await provision('https://another.test/webhooks')
    const [other] = world.shop.webhooks.values()
    if (other) Object.assign(other, { status: 'paused', secret: 'theirs' })
    expect(await provision(ADDRESS)).toMatchObject({ outcome: 'confirmed', detail: expect.any(String) })
    expect(await provision(ADDRESS)).toEqual({ outcome: 'confirmed', detail: null })
    const ours = [...world.shop.webhooks.values()].filter(({ deliveryUrl }) => deliveryUrl === ADDRESS)
    expect(ours).toHaveLength(1)
    if (ours[0]) ours[0].status = 'disabled'
    expect(await provision(ADDRESS)).toMatchObject({ detail: expect.stringContaining('active again') })
    expect(ours[0]).toMatchObject({ status: 'active', secret: WEBHOOK_SECRET })
    expect(other).toMatchObject({ status: 'paused', secret: 'theirs' })
  })
})

describe('the changed orders of a woocommerce store', () => {
  /** Reads until there is no more; `between` runs after each page. */
  async function readAll(world: WooWorld, cursor: string | number, between: (page: number) => void = () => {}) {
    const { ordersSince } = methodsOf(world)
    const seen: string[] = []
    for (let page = 1, since = cursor; ; page += 1) {
      const read = await ordersSince(since)
      if (read.outcome !== 'read') throw new Error(read.detail)
      seen.push(...read.orders.map(({ reference }) => reference))
      since = read.cursor
      if (!read.more) return { seen, cursor: since }
      between(page)
    }
  }
  function placed(world: WooWorld, count: number, apartMs: number): number[] {
    const product = Number(world.sell('A'))
    return Array.from({ length: count }, () => {
      world.clock.now += apartMs
      return world.shop.buy({ lines: [{ product }] }).id
    })
  }

  test('come all, also where orders change while pages are read', async () => {
    const world = await wooCommerceWorld()
    const ids = placed(world, 250, 1000)
    const { seen } = await readAll(world, TEST_NOW, (page) => {
      world.clock.now += 1000
      world.shop.edit(ids[page * 7] ?? 0, () => {})
      world.shop.edit(ids[150 + page] ?? 0, () => {})
    })
    expect(new Set(seen)).toEqual(new Set(ids.map(String)))
  })

  test('come all, also where more than a page changed in one second and some leave it meanwhile', async () => {
    const world = await wooCommerceWorld()
    const ids = placed(world, 250, 0)
    world.clock.now += 3_600_000
    const { seen } = await readAll(world, TEST_NOW - 60_000, (page) => {
      if (page < 5) world.shop.edit(ids[page] ?? 0, () => {})
    })
    expect(new Set(seen)).toEqual(new Set(ids.map(String)))
  })

  test('come again for ten minutes, so that one that was saved late is not missed', async () => {
    const world = await wooCommerceWorld()
    const ids = placed(world, 3, 60_000)
    const { cursor } = await readAll(world, TEST_NOW)
    const late = world.shop.buy({ lines: [{ product: 10 }] })
    late.modifiedAt = TEST_NOW + 90_000
    const { seen } = await readAll(world, cursor)
    expect(seen).toEqual(expect.arrayContaining([...ids, late.id].map(String)))
  })
})

describe('the products of a woocommerce store', () => {
  const product = (sku: string) => ({
    sku,
    name: `Game ${sku}`,
    category: 'Games & more',
    description: 'A <b>game</b>',
    image: 'https://pictures.test/a.png',
    isPublished: true,
  })

  test.each([undefined, 'lost_after', 'truncated'] as const)(
    'are created once, where the first answer met %s',
    async (fault) => {
      const world = await wooCommerceWorld()
      const { create } = methodsOf(world)
      if (fault) world.shop.strike({ kind: 'products.batch', fault })
      await create([product('A'), product('B,1')])
      const again = await create([product('A'), product('B,1')])
      const made = [...world.shop.products.values()]
      expect(made.map(({ sku }) => sku).sort()).toEqual(['A', 'B,1'])
      expect(again).toMatchObject({ outcome: 'answered' })
      expect(again.outcome === 'answered' && again.answers).toEqual(
        expect.arrayContaining(made.map(({ id, sku }) => ({ sku, id: String(id), isNew: false }))),
      )
      expect(made[0]).toMatchObject({
        virtual: true,
        downloadable: false,
        regularPrice: '',
        description: 'A &lt;b&gt;game&lt;/b&gt;',
      })
    },
  )

  test('are created with a request for each category in a run, and not in each batch', async () => {
    const world = await wooCommerceWorld()
    const { create } = methodsOf(world)
    const named = Array.from({ length: 60 }, (_, at) => ({ ...product(`S${at}`), category: `Games ${at % 3}` }))
    await create(named.slice(0, 40))
    await create(named.slice(40))
    expect(world.shop.products.size).toBe(60)
    expect(world.shop.counts()).toMatchObject({ 'categories.list': 3, 'categories.create': 3 })
    world.clock.now += 2 * 3_600_000
    await create([product('LATER')])
    expect(world.shop.counts()['categories.list'], 'another run').toBe(4)
  })

  test('are read with their variations, which are priced and found by their SKU', async () => {
    const world = await wooCommerceWorld()
    const simple = world.sell('A')
    const parent = world.shop.addProduct({ name: 'Suite', type: 'variable', sku: 'SUITE' })
    const attributes = [{ name: 'Edition', option: 'Home' }]
    const variation = world.shop.addVariation(parent.id, { sku: 'HOME', regular_price: '30.00', attributes })
    const id = `${parent.id}:${variation.id}`
    const { variants, create } = methodsOf(world)
    const items = []
    for (let cursor: string | null = null; ; ) {
      const page = await variants(cursor)
      if (page.outcome !== 'read') throw new Error(page.detail)
      items.push(...page.items)
      cursor = page.next
      if (cursor === null) break
    }
    expect(items).toEqual([
      { id: simple, sku: 'A', name: 'Game A', price: '9.00' },
      { id, sku: 'HOME', name: 'Suite - Home', price: '30.00' },
    ])
    expect(await publish(world, [storeListing(id, { price: '33.00' }), storeListing(simple)])).toMatchObject({
      answers: expect.arrayContaining([expect.objectContaining({ id, ok: true, price: '33.00', stock: 7 })]),
    })
    expect(await create([{ ...product('HOME'), category: null }])).toMatchObject({
      answers: [{ sku: 'HOME', id, isNew: false }],
    })
  })

  test('get no price in another currency, and disappear when they are gone', async () => {
    const world = await wooCommerceWorld()
    const [a, b] = ['A', 'B'].map(world.sell) as [string, string]
    const listings = [
      storeListing(a, { currency: 'USD' }),
      storeListing(b, { stock: 0, available: false, isGone: true }),
    ]
    expect(await publish(world, listings)).toMatchObject({
      answers: [
        { id: a, ok: false, reason: 'the shop sells in EUR, the price is in USD' },
        { id: b, ok: true, stock: 0 },
      ],
    })
    expect(world.shelf(a)?.price).toBe('9.00')
    expect(world.shop.products.get(Number(b))?.status).toBe('draft')
  })
})

describe('the test of a woocommerce store', () => {
  const failed = async (given: Parameters<typeof wooCommerceWorld>[0]) => {
    const findings = await (await wooCommerceWorld(given)).store.test()
    return findings.filter(({ state }) => state !== 'ok').map(({ detail, fix }) => `${detail} ${fix}`)
  }

  test.each([
    ['https', false],
    ['https', true],
    ['http', false],
  ] as const)('finds nothing over %s, where the header is taken away: %s', async (scheme, hidesAuthorization) => {
    expect(await failed({ scheme, hidesAuthorization })).toEqual([])
  })

  test('names the cause of each 401', async () => {
    expect(await failed({ key: 'ck_other' })).toEqual([expect.stringContaining('Compare the consumer key')])
    expect(await failed({ secret: 'cs_other' })).toEqual([expect.stringContaining('Compare the consumer secret')])
    expect(await failed({ permissions: 'read' })).toEqual([
      expect.stringContaining('the key may read, and may not write products'),
      expect.stringContaining('the key may read, and may not write orders'),
    ])
  })

  test('names another currency than the configured one', async () => {
    const currency = 'USD'
    const settings = { settings: { currency } }
    expect(await failed(settings)).toEqual([expect.stringContaining('it sells in EUR, the configuration says USD')])
  })
})
