import { describe, expect, test } from 'vitest'
import { purchases, storeOrders } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { type ApiWorld, OTHER_STORE, openApi } from '../support/api-world.ts'
import { defaultDialect, STORE } from '../support/test-app.ts'

async function skuOf(world: ApiWorld): Promise<string> {
  const [offer] = await world.offers()
  if (!offer) throw new Error('the sandbox sells nothing')
  return offer.sku
}

const orderOf = (sku: string, reference = '1001') => ({
  reference,
  lines: [{ id: '1', sku, quantity: 2, unitPrice: '999.90', currency: 'EUR' }],
})

const rowsOf = async ({ db }: ApiWorld) => ({
  orders: (await db.query(build.select().from(storeOrders))).length,
  purchases: (await db.query(build.select().from(purchases))).length,
})

describe('handing in an order', () => {
  test('takes it with 202 once, and answers 200 for the same one in other words', async () => {
    const world = await openApi()
    const token = world.tokens.store
    const sku = await skuOf(world)
    const first = await world.ask('POST', '/orders', { token, body: orderOf(sku) })
    expect(first.status).toBe(202)
    expect(first.body.data).toMatchObject({ store: STORE, reference: '1001', state: 'open', cancelRequestedAt: null })
    expect(first.headers.get('x-request-id')).toBeTruthy()

    const raw = `{"lines":[{"currency":"EUR","unitPrice":"999.9","quantity":2.0,"sku":${JSON.stringify(sku)},"id":"1"}],"reference":"1001"}`
    const again = await world.ask('POST', '/orders', { token, raw })
    expect(again.status).toBe(200)
    expect(await rowsOf(world)).toEqual({ orders: 1, purchases: 1 })
  })

  test('gives one order to many who hand it in at the same instant', async () => {
    const world = await openApi()
    const body = orderOf(await skuOf(world))
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => world.ask('POST', '/orders', { token: world.tokens.store, body })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 200, 200, 202])
    expect(await rowsOf(world)).toEqual({ orders: 1, purchases: 1 })
  })

  test('refuses another order under a used reference and leaves the first alone', async () => {
    const world = await openApi()
    const token = world.tokens.store
    const body = orderOf(await skuOf(world))
    await world.ask('POST', '/orders', { token, body })
    const changed = { ...body, lines: body.lines.map((line) => ({ ...line, quantity: 3 })) }
    const answer = await world.ask('POST', '/orders', { token, body: changed })
    expect(answer.status).toBe(409)
    expect(answer.body).toMatchObject({ success: false, error: { code: 'reference_reused' } })
    expect(answer.body.request_id).toBe(answer.headers.get('x-request-id'))
    expect(await rowsOf(world)).toEqual({ orders: 1, purchases: 1 })
  })

  test('keeps the references of two stores apart', async () => {
    const world = await openApi()
    const body = orderOf(await skuOf(world))
    expect((await world.ask('POST', '/orders', { token: world.tokens.store, body })).status).toBe(202)
    expect((await world.ask('POST', '/orders', { token: world.tokens.other, body })).status).toBe(202)
    expect(await rowsOf(world)).toEqual({ orders: 2, purchases: 2 })
  })

  test('refuses an order of 10,000 units that the supplier sells one by one, and names the field', async () => {
    const world = await openApi({ dialect: { ...defaultDialect(), quantityMax: 1 } })
    const sku = await skuOf(world)
    const order = (...quantities: number[]) => ({
      reference: '1001',
      lines: quantities.map((quantity, place) => ({ id: `${place}`, sku, quantity })),
    })
    const post = (body: object) => world.ask('POST', '/orders', { token: world.tokens.store, body })
    const huge = await post(order(10_000))
    expect(huge.status).toBe(400)
    expect(huge.body.error).toMatchObject({
      code: 'too_many_purchases',
      fields: [{ field: 'lines.0.quantity', message: expect.stringContaining('at most 1000') }],
    })
    const twoLines = await post(order(600, 401))
    expect(twoLines.body.error).toMatchObject({ fields: [{ field: 'lines.1.quantity' }] })
    expect(await rowsOf(world)).toEqual({ orders: 0, purchases: 0 })
    expect((await post(order(600, 400))).status).toBe(202)
    expect(await rowsOf(world)).toEqual({ orders: 1, purchases: 1_000 })
  })

  test('refuses an order without a line that is a listing', async () => {
    const world = await openApi()
    const answer = await world.ask('POST', '/orders', { token: world.tokens.store, body: orderOf('NO-SUCH-SKU') })
    expect(answer.status).toBe(422)
    expect(answer.body.error).toMatchObject({ code: 'no_known_sku', fields: [{ field: 'lines.0.sku' }] })
    expect(await rowsOf(world)).toEqual({ orders: 0, purchases: 0 })
  })
})

describe('seeing an order', () => {
  test('shows the licence keys to a token with the scope keys, and to no other', async () => {
    const world = await openApi()
    const body = orderOf(await skuOf(world))
    await world.ask('POST', '/orders', { token: world.tokens.store, body })
    await world.pass(10_000)
    const seen = async (token: string) => (await world.ask('GET', '/orders/1001', { token })).body.data
    const own = await seen(world.tokens.store)
    expect(own).toMatchObject({ state: 'fulfilled', lines: [{ delivered: 2, keys: world.shop.keys().get('1001/1') }] })
    expect(world.shop.keys().get('1001/1')).toHaveLength(2)
    for (const token of [world.tokens.ordersOnly, world.tokens.viewer, world.tokens.owner]) {
      const data = await seen(token)
      expect(data).toMatchObject({ state: 'fulfilled', lines: [{ delivered: 2 }] })
      expect(JSON.stringify(data)).not.toContain('"keys"')
    }
  })

  test('finds the order of a reference that needs encoding', async () => {
    const world = await openApi()
    const reference = '#10/01 ä?&%'
    const body = orderOf(await skuOf(world), reference)
    expect((await world.ask('POST', '/orders', { token: world.tokens.store, body })).status).toBe(202)
    const answer = await world.ask('GET', `/orders/${encodeURIComponent(reference)}`)
    expect(answer.status).toBe(200)
    expect(answer.body.data).toMatchObject({ reference })
  })

  test('asks a person for the store when two stores have the reference, and names them', async () => {
    const world = await openApi()
    const body = orderOf(await skuOf(world))
    await world.ask('POST', '/orders', { token: world.tokens.store, body })
    expect((await world.ask('GET', '/orders/1001')).status).toBe(200)
    await world.ask('POST', '/orders', { token: world.tokens.other, body })
    const answer = await world.ask('GET', '/orders/1001')
    expect(answer.status).toBe(409)
    expect(answer.body.error.code).toBe('ambiguous_reference')
    expect(answer.body.error.message).toContain(STORE)
    expect(answer.body.error.message).toContain(OTHER_STORE)
    const named = await world.ask('GET', `/orders/1001?store=${OTHER_STORE}`)
    expect(named.body.data).toMatchObject({ store: OTHER_STORE })
  })

  test('hides the orders of other stores from a store token', async () => {
    const world = await openApi()
    await world.ask('POST', '/orders', { token: world.tokens.store, body: orderOf(await skuOf(world)) })
    expect((await world.ask('GET', '/orders/1001', { token: world.tokens.other })).status).toBe(404)
    expect((await world.ask('POST', '/orders/1001/cancel', { token: world.tokens.other })).status).toBe(404)
    const named = await world.ask('GET', `/orders/1001?store=${STORE}`, { token: world.tokens.other })
    expect(named.status).toBe(403)
  })

  test('lists orders newest first, in pages that neither skip nor repeat', async () => {
    const world = await openApi()
    const sku = await skuOf(world)
    for (const number of [1, 2, 3, 4, 5]) {
      await world.ask('POST', '/orders', { token: world.tokens.store, body: orderOf(sku, `r${number}`) })
      world.move(1_000)
    }
    const references: unknown[] = []
    for (let before = ''; ; ) {
      const { body } = await world.ask('GET', `/orders?limit=2${before}`, { token: world.tokens.viewer })
      references.push(...body.data.items.map((item) => item.reference))
      if (body.data.next === null) break
      before = `&before=${body.data.next}`
    }
    expect(references).toEqual(['r5', 'r4', 'r3', 'r2', 'r1'])
    const other = await world.ask('GET', `/orders?store=${OTHER_STORE}`)
    expect(other.body.data).toEqual({ items: [], next: null, previous: null })
  })

  test('lists a store its own orders with their lines, to compare with its own books, and no other order', async () => {
    const world = await openApi()
    const sku = await skuOf(world)
    await world.ask('POST', '/orders', { token: world.tokens.store, body: orderOf(sku) })
    await world.ask('POST', '/orders', { token: world.tokens.other, body: orderOf(sku, 'theirs') })
    await world.pass(10_000)
    const own = await world.ask('GET', '/orders', { token: world.tokens.store })
    expect(own.body.data).toMatchObject({
      items: [{ reference: '1001', lines: [{ id: '1', sku, quantity: 2, state: 'fulfilled', delivered: 2 }] }],
      next: null,
    })
    expect(own.body.data.items).toHaveLength(1)
    const named = await world.ask('GET', `/orders?store=${OTHER_STORE}`, { token: world.tokens.store })
    expect(named.status).toBe(403)
  })

  test('lists the same states as the orders themselves have', async () => {
    const world = await openApi()
    const sku = await skuOf(world)
    const take = (reference: string) =>
      world.ask('POST', '/orders', { token: world.tokens.store, body: orderOf(sku, reference) })
    await take('done')
    await world.pass(10_000)
    await take('gone')
    await world.ask('POST', '/orders/gone/cancel', { token: world.tokens.store })
    await take('fresh')
    const { body } = await world.ask('GET', '/orders')
    const states = Object.fromEntries(body.data.items.map(({ reference, state }) => [reference, state]))
    expect(states).toEqual({ done: 'fulfilled', gone: 'cancelled', fresh: 'open' })
    for (const [reference, state] of Object.entries(states)) {
      expect((await world.ask('GET', `/orders/${reference}`)).body.data.state).toBe(state)
    }
  })
})

describe('cancelling an order', () => {
  test.each(['store', 'operator'] as const)('ends what was not bought, asked for by a %s', async (role) => {
    const world = await openApi()
    await world.ask('POST', '/orders', { token: world.tokens.store, body: orderOf(await skuOf(world)) })
    const answer = await world.ask('POST', '/orders/1001/cancel', { token: world.tokens[role] })
    expect(answer.status).toBe(200)
    expect(answer.body.data).toMatchObject({
      state: 'cancelled',
      cancelRequestedAt: new Date(world.now()).toISOString(),
    })
    expect((await world.ask('POST', '/orders/1001/cancel', { token: world.tokens[role] })).status).toBe(200)
    await world.pass(10_000)
    expect(world.shop.keys().size).toBe(0)
  })
})

describe('listings', () => {
  test('are paged without a repeat, each with a price in its currency, and each is found under its SKU', async () => {
    const world = await openApi()
    const { sku } = (await world.offers())[0] ?? {}
    const token = world.tokens.store
    const skus: unknown[] = []
    for (let after = ''; ; ) {
      const { body } = await world.ask('GET', `/listings?limit=5${after}`, { token })
      skus.push(...body.data.items.map((item) => item.sku))
      if (body.data.next === null) break
      after = `&after=${encodeURIComponent(body.data.next)}`
    }
    expect(skus).toHaveLength(new Set(skus).size)
    expect(skus).toContain(sku)
    const one = await world.ask('GET', `/listings/${encodeURIComponent(String(sku))}`, { token })
    expect(one.body.data).toMatchObject({ sku, price: expect.stringMatching(/^\d+\.\d\d$/), currency: 'EUR' })
    expect((await world.ask('GET', '/listings/NO-SUCH-SKU', { token })).status).toBe(404)
  })
})
