import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { valueAt } from '../../src/dialect/dialect.ts'
import { type Answer, exchange } from '../support/raw-http.ts'
import { openSandbox, productOf, startAt } from '../support/sandbox-caller.ts'

let sandbox: Awaited<ReturnType<typeof openSandbox>>
beforeEach(async () => {
  sandbox = await openSandbox()
})
afterEach(() => sandbox.close())

const listOf = (value: unknown) => value as Record<string, unknown>[]

describe('GET /products', () => {
  it('pages through the whole catalogue without repeating or losing a product', async () => {
    const seen: unknown[] = []
    for (let page = 1; page <= 4; page += 1) {
      const reply = await sandbox.get(`/products?page=${page}&limit=20`)
      expect(reply.status).toBe(200)
      expect(reply.at('data.total')).toBe(61)
      seen.push(...listOf(reply.at('data.items')).map(({ id }) => id))
    }
    expect(seen).toHaveLength(61)
    expect(new Set(seen).size).toBe(61)
  })

  it('shows every attribute of a product, money as decimal text', async () => {
    const reply = await sandbox.get('/products?q=NRS-OFF24-PP')
    expect(listOf(reply.at('data.items'))).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        sku: 'NRS-OFF24-PP',
        name: 'Norrsken Office 2024 Professional Plus',
        category: 'office',
        api_price: '79.37',
        base_price: '109.00',
        cashback: '1.09',
        currency: 'EUR',
        local_stock: 112,
        provider_stock: 0,
        available: true,
        fulfillment_origin: 'local',
        updated_at: new Date(startAt).toISOString(),
      },
    ])
  })

  it('filters by text, category and stock', async () => {
    const games = await sandbox.get('/products?category=games&limit=100')
    expect(new Set(listOf(games.at('data.items')).map(({ category }) => category))).toEqual(new Set(['games']))
    const inStock = await sandbox.get('/products?category=games&in_stock=true&limit=100')
    expect(inStock.at('data.total')).toBe((games.at('data.total') as number) - 1)
    expect(listOf(inStock.at('data.items')).every(({ available }) => available === true)).toBe(true)
    const found = await sandbox.get('/products?q=sentrybird')
    expect(found.at('data.total')).toBe(4)
  })

  it.each(['page=0', 'limit=0', 'limit=101', 'limit=ten', 'in_stock=maybe', 'colour=red', 'page=1&page=2'])(
    'refuses %s and names the parameter',
    async (query) => {
      const reply = await sandbox.get(`/products?${query}`)
      expect(reply.status).toBe(400)
      expect(reply.at('error.code')).toBe('invalid_request')
      expect(reply.at('error.message')).toContain(query.split('=')[0])
    },
  )

  it('omits a withdrawn product, and its address says that it is gone', async () => {
    const { id } = productOf(sandbox, 'GAM-DEEPHARB')
    await sandbox.control('POST', `/offers/${id}`, { withdrawn: true })
    expect((await sandbox.get('/products')).at('data.total')).toBe(60)
    expect((await sandbox.get(`/products/${id}`)).at('error.code')).toBe('gone')
    expect((await sandbox.order('k', { productId: id })).at('error.code')).toBe('gone')
  })
})

describe('one product, the balance and the orders', () => {
  it('reads one product, and answers 404 for an unknown one', async () => {
    const { id } = productOf(sandbox, 'GAM-DEEPHARB')
    expect((await sandbox.get(`/products/${id}`)).at('data.sku')).toBe('GAM-DEEPHARB')
    expect((await sandbox.get('/products/nothing')).status).toBe(404)
  })

  it('reads balance, tier and limits', async () => {
    expect((await sandbox.get('/balance')).body).toEqual({
      success: true,
      data: {
        balance: '2500.00',
        currency: 'EUR',
        vip_tier: 'gold',
        limits: { requests_per_minute: 600, max_quantity: 100 },
      },
    })
  })

  it('lists orders newest first and filters by reference, status and instants', async () => {
    const { id: productId } = productOf(sandbox, 'GAM-DEEPHARB')
    for (const key of ['a', 'b', 'c']) {
      await sandbox.order(key, { productId })
      sandbox.clock.now += 1000
    }
    sandbox.advance()
    await sandbox.order('d', { productId })
    const references = async (query: string) =>
      listOf((await sandbox.get(`/orders?${query}`)).at('data.items')).map((order) => order.external_order_id)
    expect(await references('')).toEqual(['ref-d', 'ref-c', 'ref-b', 'ref-a'])
    expect(await references('page=2&limit=3')).toEqual(['ref-a'])
    expect(await references('external_order_id=ref-b')).toEqual(['ref-b'])
    expect(await references('status=pending')).toEqual(['ref-d'])
    expect(await references('status=completed')).toEqual(['ref-c', 'ref-b', 'ref-a'])
    const [from, to] = [startAt + 1000, startAt + 2000].map((at) => new Date(at).toISOString())
    expect(await references(`from=${from}&to=${to}`)).toEqual(['ref-c', 'ref-b'])
    expect((await sandbox.get('/orders?from=yesterday')).at('error.message')).toContain('from')
    expect((await sandbox.get('/orders?status=lost')).status).toBe(400)
  })

  it.each([
    [{ quantity: 1 }, 'productId'],
    [{ productId: 'x', quantity: 1 }, 'productId'],
    [{ productId: '00000000-0000-4000-8000-000000000000' }, 'quantity'],
    [{ productId: '00000000-0000-4000-8000-000000000000', quantity: 0 }, 'quantity'],
    [{ productId: '00000000-0000-4000-8000-000000000000', quantity: 1.5 }, 'quantity'],
    [{ productId: '00000000-0000-4000-8000-000000000000', quantity: 1, external_order_id: 5 }, 'external_order_id'],
    [{ productId: '00000000-0000-4000-8000-000000000000', quantity: 1, price: '0.01' }, 'price'],
  ])('refuses the order %j and names %s', async (body, field) => {
    const reply = await sandbox.post('/orders', body, { 'idempotency-key': 'k' })
    expect(reply.status).toBe(400)
    expect(reply.at('error.message')).toContain(`${field}:`)
  })

  it('refuses an order without an idempotency key, without JSON, or of another content type', async () => {
    const { id: productId } = productOf(sandbox, 'GAM-DEEPHARB')
    expect((await sandbox.post('/orders', { productId, quantity: 1 })).at('error.message')).toContain('idempotency-key')
    expect((await sandbox.post('/orders', '{"productId":', { 'idempotency-key': 'k' })).status).toBe(400)
    const asText = { 'idempotency-key': 'k', 'content-type': 'text/plain' }
    expect((await sandbox.post('/orders', '{}', asText)).status).toBe(415)
  })
})

describe('webhooks', () => {
  it('shows the secret once', async () => {
    const made = await sandbox.post('/webhooks', { url: 'https://shop.example/hook', events: ['order.completed'] })
    expect(made.status).toBe(201)
    expect(made.at('data.secret')).toMatch(/^whsec_[0-9a-f]{64}$/)
    const listed = await sandbox.get('/webhooks')
    expect(listOf(listed.at('data.items'))).toEqual(
      [{ ...(made.at('data') as object), secret: undefined }].map(({ secret: _secret, ...rest }) => rest),
    )
    expect(JSON.stringify(listed.body)).not.toContain('whsec_')
  })

  it.each([
    [{ events: ['order.completed'] }, 'url'],
    [{ url: 'ftp://shop.example', events: ['order.completed'] }, 'url'],
    [{ url: 'https://shop.example', events: [] }, 'events'],
    [{ url: 'https://shop.example', events: ['order.lost'] }, 'events'],
  ])('refuses %j and names %s', async (body, field) => {
    const reply = await sandbox.post('/webhooks', body)
    expect(reply.status).toBe(400)
    expect(reply.at('error.message')).toContain(`${field}:`)
  })
})

describe('every response', () => {
  it('carries a request id of its own and the rate-limit headers, with any content', async () => {
    const replies = [
      await sandbox.get('/balance'),
      await sandbox.get('/balance', {}),
      await sandbox.get('/nowhere'),
      await sandbox.post('/balance', {}),
      await sandbox.get('/../elsewhere'),
    ]
    expect(replies.map(({ status }) => status)).toEqual([200, 401, 404, 405, 404])
    for (const { headers } of replies) {
      expect(headers.get('x-ratelimit-limit')).toBe('600')
      expect(headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/)
      expect(headers.get('x-ratelimit-reset')).toMatch(/^\d{10}$/)
    }
    for (const { body, headers } of replies.slice(1)) {
      expect(body).toEqual({
        success: false,
        error: { code: expect.any(String), message: expect.any(String) },
        request_id: headers.get('x-request-id'),
      })
    }
    expect(new Set(replies.map(({ headers }) => headers.get('x-request-id'))).size).toBe(replies.length)
  })

  it('says which methods an address answers', async () => {
    const reply = await sandbox.post('/balance', {})
    expect(reply.headers.get('allow')).toBe('GET')
  })

  it('refuses a wrong key', async () => {
    const reply = await sandbox.get('/balance', { 'x-api-key': 'guess' })
    expect(reply.status).toBe(401)
    expect(reply.at('error.code')).toBe('unauthorized')
  })

  it('answers 413 in the envelope when a body is too large', async () => {
    const reply = await sandbox.post('/webhooks', { url: 'x'.repeat(100_000) })
    expect(reply.status).toBe(413)
    expect(reply.at('success')).toBe(false)
  })
})

describe('the rate limit', () => {
  it('answers 429 with Retry-After when the minute is used up, and refills with time', async () => {
    const small = await openSandbox({ requestsPerMinute: 3 })
    try {
      const first = await small.get('/balance')
      expect(first.headers.get('x-ratelimit-remaining')).toBe('2')
      expect(first.headers.get('x-ratelimit-reset')).toBe(String(startAt / 1000 + 20))
      expect(first.at('data.limits.requests_per_minute')).toBe(3)
      await small.get('/balance')
      await small.get('/balance')
      const over = await small.get('/balance')
      expect(over.status).toBe(429)
      expect(over.at('error.code')).toBe('rate_limited')
      expect(over.headers.get('retry-after')).toBe('20')
      small.clock.now += 20_000
      expect((await small.get('/balance')).status).toBe(200)
    } finally {
      await small.close()
    }
  })
})

describe('a request that HTTP itself refuses', () => {
  it.each([
    ['nonsense', 'NONSENSE\r\n\r\n', 400],
    ['headers that are too large', `GET /v1/products HTTP/1.1\r\nhost: a\r\nx: ${'a'.repeat(40_000)}\r\n\r\n`, 431],
  ])('was answered without a body: %s', async (_, bytes, status) => {
    const port = Number(new URL(sandbox.baseUrl).port)
    const answer = (await exchange(port, Buffer.from(bytes))) as Answer
    expect(answer.status).toBe(status)
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
    const said = { code: 'invalid_request', message: 'The request cannot be read.' }
    const requestId = answer.headers[sandbox.dialect.headers.requestId]
    expect(requestId).toMatch(/^req/)
    expect(valueAt(JSON.parse(answer.body), sandbox.dialect.error.code)).toBe(said.code)
    expect(valueAt(JSON.parse(answer.body), sandbox.dialect.error.message)).toBe(said.message)
    expect(answer.body).toContain(requestId)
  })
})
