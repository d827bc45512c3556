/** The mock of Kinguin answers as its documents do: see kinguin.md. Quayside has no part in these tests. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Kinguin, type KinguinOptions, startKinguin } from './kinguin.ts'

interface Json {
  results?: unknown[]
  item_count?: number
  orderId?: string
}

async function open(options: KinguinOptions = {}) {
  const kinguin = await startKinguin({ deliverMs: null, ...options })
  onTestFinished(kinguin.close)
  const ask = async (method: string, route: string, body?: unknown, key = kinguin.apiKey) => {
    const answer = await fetch(`${kinguin.baseUrl}${route}`, {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.status, json: (await answer.json()) as Json }
  }
  return {
    kinguin,
    ask,
    get: (route: string) => ask('GET', route),
    post: (body: unknown) => ask('POST', '/v2/order', body),
  }
}

/** An order of the product at a place of the catalogue, at its own price. */
function orderOf(kinguin: Kinguin, { place = 0, qty = 1, cents = 0, reference = 'r1', keyType = 'text' } = {}) {
  const product = kinguin.ledger.products[place]
  if (!product) throw new Error('no such product')
  const price = (kinguin.ledger.figuresOf(product).price + cents) / 100
  return { products: [{ productId: product.productId, qty, price, keyType }], orderExternalId: reference }
}

describe('the documented API', () => {
  test('lists products by pages of 25, at most 100, with the count of all that match', async () => {
    const { get } = await open({ products: 150 })
    const page = async (query: string) => {
      const { json } = await get(`/v1/products${query}`)
      return { rows: json.results?.length, count: json.item_count }
    }
    expect(await page('')).toEqual({ rows: 25, count: 150 })
    expect(await page('?limit=100&page=2')).toEqual({ rows: 50, count: 150 })
    expect(await page('?limit=100&isPreorder=no&withText=yes')).toEqual({ rows: 100, count: 147 })
    expect((await get('/v1/products?limit=101')).status).toBe(400)
    expect((await get('/v1/products?name=ga')).json).toMatchObject({
      kind: 'ConstraintViolation',
      propertyPath: 'name',
    })
  })

  test('charges an order once it answers 201, and gives its keys by another read', async () => {
    const { kinguin, get, post } = await open()
    const { status, json } = await post(orderOf(kinguin, { qty: 2 }))
    expect({ status, json }).toMatchObject({
      status: 201,
      json: { status: 'processing', orderExternalId: 'r1', paymentPrice: 3.98, totalQty: 2 },
    })
    expect(kinguin.ledger.charges).toMatchObject([{ reference: 'r1', amount: 398 }])
    const order = kinguin.ledger.order(json.orderId ?? '')
    if (!order) throw new Error('no order')
    kinguin.deliver(order, 1)
    expect((await get(`/v2/order/${order.orderId}/keys`)).json).toMatchObject([{ type: 'text/plain' }])
    kinguin.deliver(order)
    expect((await get(`/v1/order/${order.orderId}`)).json).toMatchObject({ status: 'completed' })
    expect((await get(`/v2/order/${order.orderId}/keys?limit=1&page=2`)).json).toHaveLength(1)
    expect((await get('/v1/order?orderExternalId=r1')).json).toMatchObject({ item_count: 1 })
    expect((await get('/v1/order?orderExternalId=r2')).json).toEqual({ results: [], item_count: 0 })
  })

  test('takes several offers for one order, and says so line by line', async () => {
    const { kinguin, post } = await open()
    for (const offer of kinguin.ledger.products[1]?.offers ?? []) offer.texts = 3
    const { json } = await post(orderOf(kinguin, { place: 1, qty: 5 }))
    expect(json).toMatchObject({ totalQty: 5, products: [{ qty: 3 }, { qty: 2 }] })
  })

  test.each([
    ['a price below the cheapest offer', { cents: -1 }, 404, 'ProductUnavailable'],
    ['more units than a person may order of an offer', { qty: 10 }, 400, 'ConstraintViolation'],
    ['a key type with a pre-order', { place: 49 }, 400, 'Preorder'],
  ])('refuses %s without a charge', async (_, wanted, status, kind) => {
    const { kinguin, post } = await open({ products: 50 })
    expect(await post(orderOf(kinguin, wanted))).toMatchObject({ status, json: { kind, status, method: 'POST' } })
    expect(kinguin.ledger.charges).toEqual([])
  })

  test('refuses what the balance does not cover, a wrong key, and an order that it does not know', async () => {
    const { kinguin, ask, get, post } = await open({ balance: 100 })
    expect((await post(orderOf(kinguin))).json).toMatchObject({ kind: 'InsufficientBalance' })
    expect(await ask('GET', '/v1/balance', undefined, 'wrong')).toEqual({
      status: 401,
      json: { kind: 'Authorization', status: 401, detail: 'Invalid authentication data.', type: 'Unauthorized' },
    })
    expect(await get('/v1/order/PUNKNOWN')).toMatchObject({ status: 404, json: { kind: 'OrderNotFound' } })
    expect((await get('/v1/balance')).json).toEqual({ balance: 1 })
  })

  test.each([
    ['accepted', 201, 2],
    ['refused', 400, 1],
  ] as const)('a second order with the same reference is %s, as is said', async (secondReference, status, charges) => {
    const { kinguin, post } = await open({ facts: { secondReference } })
    await post(orderOf(kinguin))
    expect((await post(orderOf(kinguin))).status).toBe(status)
    expect(kinguin.ledger.charges).toHaveLength(charges)
  })

  test.each([
    ['lost before', 0],
    ['lost after', 1],
    ['cut', 1],
  ] as const)('an answer that is %s leaves the books true', async (fault, charges) => {
    const { kinguin, post } = await open()
    kinguin.orderFaults.push(fault)
    await expect(post(orderOf(kinguin))).rejects.toThrow()
    expect(kinguin.ledger.charges).toHaveLength(charges)
    expect((await post(orderOf(kinguin))).status).toBe(201)
  })

  test('gives pictures in base64 where it does not obey the key type', async () => {
    const { kinguin, get, post } = await open({ products: 7, facts: { keyType: 'ignored' } })
    const product = kinguin.ledger.products[6]
    if (!product) throw new Error('no product')
    for (const offer of product.offers) Object.assign(offer, { texts: 0, pictures: 5 })
    const { json } = await post(orderOf(kinguin, { place: 6, qty: 3 }))
    kinguin.deliver(kinguin.ledger.orders[0] as never)
    const keys = (await get(`/v2/order/${json.orderId}/keys`)).json as unknown as { type: string; serial: string }[]
    const starts = keys.map(({ type, serial }) => [
      type,
      Buffer.from(serial, 'base64').subarray(0, 3).toString('latin1'),
    ])
    expect(new Map(starts as [string, string][])).toEqual(
      new Map([
        ['image/gif', 'GIF'],
        ['image/jpeg', '\xff\xd8\xff'],
        ['image/png', '\x89PN'],
      ]),
    )
  })
})
