import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { Secret } from '../../src/secret.ts'
import { createSupplier, orderBody, type Supplier, type SupplierSettings } from '../../src/supplier/client.ts'
import { dialect, otherDialect, refusedOrigin, sendJson, startHttp, startTcp } from '../support/supplier-server.ts'

const T = Date.parse('2026-01-02T03:04:05Z')
const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

/** A client with a clock that its own waits move. */
function client(origin: string, more: Partial<SupplierSettings> = {}) {
  let time = T
  const slept: number[] = []
  const supplier = createSupplier({
    baseUrl: `${origin}/v1`,
    dialect,
    apiKey: new Secret('qs_api_key'),
    now: () => time,
    sleep: async (ms) => {
      slept.push(ms)
      time += ms
    },
    random: () => 0,
    fetchDeadlineMs: 2_000,
    ...more,
  })
  open.unshift(supplier.close)
  return { supplier, slept, move: (ms: number) => (time += ms) }
}

async function http(answer: Parameters<typeof startHttp>[0]) {
  const server = await startHttp(answer)
  open.push(server.close)
  return server
}

const ok = (response: ServerResponse, data: unknown, headers?: Record<string, string>) =>
  sendJson(response, 200, { success: true, data }, { 'x-request-id': 'r1', ...headers })
const fault = (response: ServerResponse, status: number, code: string, headers?: Record<string, string>) =>
  sendJson(response, status, { success: false, error: { code, message: 'why' }, request_id: 'r1' }, headers)

const product = { id: 'p1', sku: 'S', name: 'N', api_price: '1.00', currency: 'EUR', available: true }
const order = {
  id: 'o1',
  external_order_id: 'q1.s.1',
  product_id: 'p1',
  quantity: 2,
  status: 'pending',
  amount: '2.00',
  currency: 'EUR',
  keys: [],
}
const expected = { externalOrderId: 'q1.s.1', productId: 'p1', quantity: 2 }
const request = {
  body: orderBody(dialect, expected),
  idempotencyKey: 'key1',
  expected,
  maybeCharged: false,
  deadlineMs: 2_000,
}

describe('the settings of the supplier', () => {
  const baseUrl = (text: string) => () => client('', { baseUrl: text })

  it.each([
    '',
    'supplier.example/v1',
    'ftp://supplier.example/v1',
    'https://supplier.example',
    'https://supplier.example/v2',
    'https://supplier.example/v1/orders',
    'https://supplier.example/v1//',
    'https://supplier.example/v1?x=1',
    'https://supplier.example/v1?',
    'https://supplier.example/v1#x',
    'https://user:pw@supplier.example/v1',
  ])('refuse the base address %j, naming the field', (text) => {
    expect(baseUrl(text)).toThrowError(
      expect.objectContaining({ code: 'invalid', fields: [expect.objectContaining({ field: 'supplier.baseUrl' })] }),
    )
  })

  it('lose one slash at the end', async () => {
    const server = await http((_, response) => ok(response, { balance: '1.00' }))
    const { supplier } = client(server.origin, { baseUrl: `${server.origin}/api/v1/` })
    await supplier.balance()
    expect(server.heard[0]?.url).toBe('/api/v1/balance')
  })

  it.each(['', 'two words', 'line\nbreak', 'é'])('refuse the API key %j without showing it', (key) => {
    expect(() => client('http://x', { apiKey: new Secret(key) })).toThrowError(/^supplier\.apiKey must be/)
  })
})

describe('placing an order', () => {
  it('sends the stored bytes with both keys, and gives the order', async () => {
    const server = await http((_, response) => sendJson(response, 201, { success: true, data: order }))
    const { supplier } = client(server.origin)
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'accepted', order: { id: 'o1' }, agrees: true })
    expect(server.heard).toMatchObject([
      {
        method: 'POST',
        url: '/v1/orders',
        body: '{"productId":"p1","quantity":2,"external_order_id":"q1.s.1"}',
        headers: { 'x-api-key': 'qs_api_key', 'idempotency-key': 'key1', 'content-type': 'application/json' },
      },
    ])
  })

  it('uses the names of the dialect', async () => {
    const made = { no: 'o1', ref: 'q1.s.1', count: 2, phase: 'OPEN', goods: [] }
    const server = await http((_, response) => sendJson(response, 200, { result: made }, { 'x-trace': 'r9' }))
    const { supplier } = client(server.origin, { dialect: otherDialect })
    const placed = await supplier.placeOrder({ ...request, body: orderBody(otherDialect, expected) })
    expect(placed).toMatchObject({ outcome: 'accepted', evidence: { requestId: 'r9' } })
    expect(server.heard[0]).toMatchObject({
      body: '{"item":"p1","count":2,"ref":"q1.s.1"}',
      headers: { 'x-partner-token': 'qs_api_key', 'x-once': 'key1' },
    })
    expect(server.heard[0]?.headers).not.toHaveProperty('x-api-key')
  })

  it.each([500, 502, 503, 408, 307])('is not repeated after a %i', async (status) => {
    const server = await http((_, response) => response.writeHead(status, { location: '/v1/elsewhere' }).end())
    const { supplier } = client(server.origin)
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'unknown', evidence: { status } })
    expect(server.heard).toHaveLength(1)
  })

  it('is not repeated after a reset', async () => {
    const server = await startTcp((socket) => socket.resetAndDestroy())
    open.push(server.close)
    expect(await client(server.origin).supplier.placeOrder(request)).toMatchObject({ outcome: 'unknown' })
    expect(server.heard).toHaveLength(1)
  })

  it('did not happen when no server listens', async () => {
    const { supplier } = client(await refusedOrigin())
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'not_executed', cause: 'unreachable' })
  })

  it('did not happen when the check before the write says no', async () => {
    const server = await http((_, response) => ok(response, order))
    const placed = await client(server.origin).supplier.placeOrder({ ...request, beforeWrite: () => false })
    expect(placed).toMatchObject({ outcome: 'not_executed', cause: 'held_back' })
    expect(server.heard).toEqual([])
  })

  it('pauses the API key after a 429 and sends nothing until then', async () => {
    const server = await http((_, response, number) =>
      number === 0 ? fault(response, 429, 'rate_limited', { 'retry-after': '20' }) : ok(response, order),
    )
    const { supplier, move } = client(server.origin)
    expect(await supplier.placeOrder(request)).toMatchObject({ cause: 'rate_limited', retryAfterMs: 20_000 })
    expect(supplier.pausedUntil()).toBe(T + 20_000)
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'not_executed', cause: 'rate_limited' })
    expect(server.heard).toHaveLength(1)
    move(20_000)
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'accepted' })
  })

  it('does not wait for hanging reads', async () => {
    const hanging: (() => void)[] = []
    const full = Promise.withResolvers<void>()
    let placed = false
    const server = await http((heard, response) => {
      if (heard.method === 'POST') return ok(response, order)
      const answer = () => ok(response, { balance: '1.00' })
      if (placed) return answer()
      if (hanging.push(answer) === 8) full.resolve()
    })
    const { supplier } = client(server.origin)
    const reads = Array.from({ length: 12 }, () => supplier.balance())
    await full.promise
    expect(await supplier.placeOrder({ ...request, deadlineMs: 1_000 })).toMatchObject({ outcome: 'accepted' })
    placed = true
    for (const answer of hanging) answer()
    await Promise.all(reads)
  })

  it('writes the same bytes each time, with any names', () => {
    const numeric = { ...dialect, orderRequest: { productId: '9', quantity: '1', externalOrderId: '__proto__' } }
    expect(orderBody(numeric, expected)).toBe('{"9":"p1","1":2,"__proto__":"q1.s.1"}')
    expect(() => orderBody(dialect, { ...expected, quantity: 1.5 })).toThrow(/whole number/)
  })
})

describe('a list of the supplier', () => {
  it('sends page and size by their names, and does not take the count for a flag of the next page', async () => {
    const server = await http((_, response) => ok(response, { items: [product], total: 101 }))
    const { supplier } = client(server.origin)
    const page = await supplier.products({ page: 2 })
    expect(page).toMatchObject({
      items: [{ productId: 'p1' }],
      unreadable: [],
      total: 101,
      more: undefined,
      requestId: 'r1',
    })
    expect(server.heard[0]?.url).toBe('/v1/products?page=2&limit=100')
    await supplier.products({ page: 1, limit: 5_000 })
    expect(server.heard[1]?.url).toBe('/v1/products?page=1&limit=100')
  })

  it('has no count of a filtered list where the supplier counts all of its records', async () => {
    const server = await http((_, response) => ok(response, { items: [order], total: 101 }))
    const paging = { ...dialect.paging, totalFiltered: false }
    const { supplier } = client(server.origin, { dialect: { ...dialect, paging } })
    expect(await supplier.orders({ page: 1, externalOrderId: 'a b&c' })).not.toHaveProperty('total')
    expect(server.heard[0]?.url).toBe('/v1/orders?page=1&limit=100&external_order_id=a+b%26c')
    expect(await supplier.orders({ page: 1 })).toMatchObject({ total: 101 })
  })

  it('follows the paging of the dialect', async () => {
    const rows = [{ no: 'o1', ref: 'r', phase: 'DEAD', goods: null }]
    const server = await http((_, response) => sendJson(response, 200, { result: { rows, next: true } }))
    const { supplier } = client(server.origin, { dialect: otherDialect })
    const page = await supplier.orders({ page: 1, externalOrderId: 'r', from: T, to: T })
    expect(page).toMatchObject({ items: [{ id: 'o1', status: 'failed' }], more: true })
    expect(page).not.toHaveProperty('total')
    expect(server.heard[0]?.url).toBe(`/v1/orders?p=0&size=50&since=${T / 1_000}`)
  })

  it('gives the other records when one cannot be read, and names its field', async () => {
    const broken = { ...product, id: 'p2', available: 'maybe' }
    const server = await http((_, response) => ok(response, { items: [product, broken, null, product], total: 4 }))
    const page = await client(server.origin).supplier.products({ page: 1 })
    expect(page.items).toHaveLength(2)
    expect(page.unreadable).toEqual([
      { index: 1, id: 'p2', field: 'available', setting: 'product.available', seen: '"maybe"', requestId: 'r1' },
      { index: 2, field: 'id', setting: 'product.id', seen: 'nothing', requestId: 'r1' },
    ])
  })

  it.each<[string, unknown, string]>([
    ['items', { total: 1 }, 'items'],
    ['items', { items: { 0: product }, total: 1 }, 'items'],
    ['total', { items: [], total: -1 }, 'total'],
    ['total', { items: [], total: '7' }, 'total'],
    ['data', null, 'data'],
  ])('fails whole when its %s cannot be read', async (_, data, field) => {
    const server = await http((__, response) => ok(response, data))
    await expect(client(server.origin).supplier.products({ page: 1 })).rejects.toMatchObject({
      code: 'unavailable',
      reason: 'unreadable',
      message: expect.stringContaining('r1'),
      fields: [{ field }],
    })
  })
})

describe('answers that cannot be read', () => {
  /** A supplier that answers with the current value of `answer`. */
  async function answering() {
    const now: { answer: unknown } = { answer: undefined }
    const server = await http((_, response) => ok(response, now.answer))
    const { supplier, move } = client(server.origin)
    const kinds = () => supplier.unreadable().map(({ request, setting, partly }) => [request, setting, partly])
    const orders = async (items: unknown[], query: object = { externalOrderId: 'q1.s.1' }) => {
      now.answer = { items, total: items.length }
      await supplier.orders({ page: 1, ...query })
    }
    return { now, supplier, move, kinds, orders }
  }
  const broken = { ...order, quantity: 'two' }

  it('stay with request, field, value and instant until one of the same request is read', async () => {
    const { now, supplier, move, kinds, orders } = await answering()
    await orders([broken])
    move(1_000)
    await orders([{ ...broken, quantity: 'three' }])
    expect(supplier.unreadable()).toEqual([
      {
        request: 'GET /orders',
        setting: 'order.quantity',
        field: 'quantity',
        seen: '"three"',
        requestId: 'r1',
        since: T,
        partly: false,
      },
    ])
    now.answer = order
    await supplier.order('o1')
    expect(kinds()).toEqual([['GET /orders', 'order.quantity', false]])
    await orders([order])
    expect(kinds()).toEqual([])
  })

  it('of a list outlast an empty page, and end with an empty list', async () => {
    const { kinds, orders } = await answering()
    await orders([broken])
    await orders([])
    expect(kinds()).toHaveLength(1)
    await orders([], { page: 2 })
    expect(kinds()).toHaveLength(1)
    await orders([], {})
    expect(kinds()).toEqual([])
  })

  it('among readable ones are marked as partial', async () => {
    const { kinds, orders } = await answering()
    await orders([broken])
    await orders([order, broken])
    expect(kinds()).toEqual([['GET /orders', 'order.quantity', true]])
  })

  it('of one record end when the supplier no longer knows it', async () => {
    let gone = false
    const server = await http((_, response) => (gone ? fault(response, 404, 'gone') : ok(response, broken)))
    const { supplier } = client(server.origin)
    await expect(supplier.order('o1')).rejects.toMatchObject({ reason: 'unreadable' })
    expect(supplier.unreadable()).toMatchObject([{ request: 'GET /orders/{id}', id: 'o1' }])
    gone = true
    await supplier.order('o2')
    expect(supplier.unreadable()).toHaveLength(1)
    await supplier.order('o1')
    expect(supplier.unreadable()).toEqual([])
  })

  it('to an order are known by their field, and never show a licence key', async () => {
    const { now, supplier } = await answering()
    now.answer = { ...order, keys: 'ABCDE-FGHIJ-KLMNO-PQRST' }
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'unknown', cause: 'unreadable' })
    expect(supplier.unreadable()).toMatchObject([{ request: 'POST /orders', setting: 'order.keys' }])
    expect(JSON.stringify(supplier.unreadable())).not.toContain('ABCDE')
    now.answer = order
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'accepted' })
    expect(supplier.unreadable()).toEqual([])
  })

  it('that are no JSON are not shown', async () => {
    const server = await http((_, response) => response.end('<html>ABCDE-FGHIJ-KLMNO</html>'))
    const { supplier } = client(server.origin)
    await expect(supplier.balance()).rejects.toMatchObject({ reason: 'unreadable' })
    await supplier.placeOrder(request)
    expect(supplier.unreadable()).toMatchObject([
      { request: 'GET /balance', field: '(the whole answer)', seen: 'something that is no JSON' },
      { request: 'POST /orders', field: '(the whole answer)' },
    ])
  })
})

describe('one record of the supplier', () => {
  it.each(['not_found', 'gone'])('is undefined when the supplier says %s', async (code) => {
    const server = await http((_, response) => fault(response, 404, code))
    const { supplier } = client(server.origin)
    expect(await supplier.order('o1')).toBeUndefined()
    expect(await supplier.product('p1')).toBeUndefined()
  })

  it('does not count as absent when another server answers 404', async () => {
    const server = await http((_, response) => response.writeHead(404).end('<html>'))
    await expect(client(server.origin).supplier.order('o1')).rejects.toMatchObject({ reason: 'unexpected_status' })
  })

  it('must be the requested one', async () => {
    const server = await http((_, response) => ok(response, { ...order, id: 'o2' }))
    await expect(client(server.origin).supplier.order('o1')).rejects.toMatchObject({ fields: [{ field: 'id' }] })
  })

  it('is requested by an id that stays one segment of the path', async () => {
    const server = await http((_, response) => ok(response, { ...order, id: '../balance?x=/' }))
    const { supplier } = client(server.origin)
    await supplier.order('../balance?x=/')
    expect(server.heard[0]?.url).toBe('/v1/orders/..%2Fbalance%3Fx%3D%2F')
    for (const id of ['', '.', '..', 'a\nb']) {
      await expect(supplier.order(id)).rejects.toMatchObject({ code: 'invalid' })
    }
  })

  it('names the field that cannot be read and the request', async () => {
    const server = await http((_, response) => ok(response, { ...order, quantity: 'two' }))
    await expect(client(server.origin).supplier.order('o1')).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/quantity.*request r1/),
    })
  })
})

/** A supplier that answers every refusal with HTTP 200, except those of its gateway. */
const refusing200: Dialect = {
  ...dialect,
  errors: {
    ...dialect.errors,
    ...Object.fromEntries(
      (['invalid', 'unauthenticated', 'not_found', 'gone', 'limit_exceeded', 'internal'] as const).map((kind) => [
        kind,
        { codes: dialect.errors[kind]?.codes ?? [], status: 200 },
      ]),
    ),
  },
}

describe('a supplier whose refusals come as HTTP 200', () => {
  const asked = async (code: string, read: (supplier: Supplier) => Promise<unknown>) => {
    const server = await http((_, response) => fault(response, 200, code))
    const { supplier } = client(server.origin, { dialect: refusing200 })
    return { server, read: read(supplier) }
  }

  it.each(['not_found', 'gone'])('has no such record when it says %s', async (code) => {
    expect(await (await asked(code, (supplier) => supplier.product('p1'))).read).toBeUndefined()
  })

  it('has refused the API key when it says so', async () => {
    const { read } = await asked('unauthorized', (supplier) => supplier.balance())
    await expect(read).rejects.toMatchObject({ code: 'unavailable', reason: 'unauthorized' })
  })

  it('is asked again after a failure of its own', async () => {
    const { server, read } = await asked('internal_error', (supplier) => supplier.balance())
    await expect(read).rejects.toMatchObject({ code: 'unavailable', reason: 'server_error' })
    expect(server.heard).toHaveLength(3)
  })

  it('has rejected a request, and made no webhook, when it says so', async () => {
    const make = (supplier: Supplier) => supplier.createWebhook({ url: 'https://x/y', events: ['order.completed'] })
    const { read } = await asked('invalid_request', make)
    await expect(read).rejects.toMatchObject({ code: 'rejected', reason: 'supplier_rejected' })
    const { read: broken } = await asked('internal_error', make)
    await expect(broken).rejects.toMatchObject({ code: 'unknown_outcome' })
  })

  it('cannot be read when its code is one that the dialect does not have under 200', async () => {
    const { read } = await asked('out_of_stock', (supplier) => supplier.balance())
    await expect(read).rejects.toMatchObject({ code: 'unavailable', reason: 'unreadable' })
  })
})

describe('a supplier whose ids are numbers beyond 2^53', () => {
  it('has its orders placed, listed and read by the exact id', async () => {
    const id = '9007199254740993'
    const text = JSON.stringify({ success: true, data: { ...order, id: 0 } }).replace('"id":0', `"id":${id}`)
    const page = text.replace('"data":', '"data":{"total":1,"items":[').replace(/}$/, ']}}')
    const server = await http(({ url, method }, response) => {
      response.setHeader('content-type', 'application/json')
      response.end(method === 'GET' && !url.includes(id) ? page : text)
    })
    const { supplier } = client(server.origin)
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'accepted', order: { id } })
    expect((await supplier.orders({ page: 1 })).items).toMatchObject([{ id }])
    expect(await supplier.order(id)).toMatchObject({ id })
    expect(server.heard.at(-1)?.url).toBe(`/v1/orders/${id}`)
    await expect(supplier.order('9007199254740992')).rejects.toMatchObject({ reason: 'unreadable' })
  })
})

describe('a read that fails', () => {
  it.each<[string, (response: ServerResponse) => void]>([
    ['a 503', (response) => response.writeHead(503).end()],
    ['a reset', (response) => response.socket?.resetAndDestroy()],
    ['a page of a proxy', (response) => response.writeHead(200).end('<html>')],
  ])('is tried three times: %s', async (_, fail) => {
    const server = await http((__, response, number) =>
      number < 2 ? fail(response) : ok(response, { balance: '1.00' }),
    )
    const { supplier, slept } = client(server.origin)
    expect(await supplier.balance()).toEqual({ amountMinor: 100, currency: 'EUR' })
    expect(slept).toEqual([250, 500])
    expect(server.heard).toHaveLength(3)
  })

  it('is given up after the third', async () => {
    const server = await http((_, response) => fault(response, 500, 'internal_error', { 'x-request-id': 'r8' }))
    await expect(client(server.origin).supplier.balance()).rejects.toMatchObject({
      code: 'unavailable',
      reason: 'server_error',
      message: expect.stringContaining('r8'),
    })
    expect(server.heard).toHaveLength(3)
  })

  it.each<[number, string, object]>([
    [400, 'invalid_request', { code: 'rejected', reason: 'supplier_rejected' }],
    [401, 'unauthorized', { code: 'unavailable', reason: 'unauthorized' }],
    [403, 'forbidden', { code: 'unavailable', reason: 'unauthorized' }],
    [302, 'x', { code: 'unavailable', reason: 'redirect' }],
  ])('is not tried again after a %i', async (status, code, failure) => {
    const server = await http((_, response) => fault(response, status, code, { location: '/v1/x' }))
    await expect(client(server.origin).supplier.balance()).rejects.toMatchObject(failure)
    expect(server.heard).toHaveLength(1)
  })

  it('waits for a short Retry-After and no longer', async () => {
    const limited = (seconds: string) =>
      http((_, response, number) =>
        number === 0
          ? fault(response, 429, 'rate_limited', { 'retry-after': seconds })
          : ok(response, { balance: '1.00', currency: 'EUR' }),
      )
    const short = client((await limited('5')).origin)
    await short.supplier.balance()
    expect(short.slept).toEqual([5_000])
    const long = client((await limited('6')).origin)
    await expect(long.supplier.balance()).rejects.toMatchObject({ code: 'unavailable', reason: 'rate_limited' })
    expect(long.supplier.pausedUntil()).toBe(T + 6_000)
  })

  it('says that the supplier cannot be reached', async () => {
    const { supplier } = client(await refusedOrigin())
    await expect(supplier.balance()).rejects.toMatchObject({
      reason: 'unreachable',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it.each(['qs_api_key', 'sk/live+key=="quoted"'])(
    'does not repeat the API key %s where the supplier does, in whatever JSON',
    async (key) => {
      const spelt = JSON.stringify(key).slice(1, -1)
      const bodies = [spelt, spelt.replaceAll('/', '\\/')].map(
        (text) => `{"success":false,"error":{"code":"invalid_request","message":"no: ${text}."},"request_id":"r1"}`,
      )
      const server = await http((heard, response) => {
        response.writeHead(400, { 'content-type': 'application/json' }).end(bodies[heard.method === 'POST' ? 0 : 1])
      })
      const { supplier } = client(server.origin, { apiKey: new Secret(key) })
      const placed = await supplier.placeOrder(request)
      expect(placed).toMatchObject({ outcome: 'rejected', message: 'no: [secret].' })
      await expect(supplier.balance()).rejects.toThrow(/no: \[secret\]\./)
    },
  )

  it('never shows the API key', async () => {
    const server = await http((_, response) => fault(response, 401, 'unauthorized'))
    const failure = await client(server.origin).supplier.balance().catch(String)
    expect(failure).not.toContain('qs_api_key')
  })
})

describe('webhooks of the supplier', () => {
  const webhook = { id: 'w1', url: 'https://x/y', events: ['order.completed'] }
  const wanted = { url: 'https://x/y', events: ['order.completed' as const] }

  it('are listed, in pages or bare', async () => {
    const server = await http((_, response, number) => ok(response, number === 0 ? [webhook] : { items: [webhook] }))
    const { supplier } = client(server.origin)
    for (let n = 0; n < 2; n++) expect(await supplier.webhooks()).toMatchObject({ items: [{ id: 'w1' }], more: false })
    expect(server.heard[0]?.url).toBe('/v1/webhooks')
  })

  it('are made with one request, and give their secret once', async () => {
    const server = await http((_, response) => ok(response, { ...webhook, secret: 'whsec_1' }))
    const made = await client(server.origin).supplier.createWebhook(wanted)
    expect(made.secret.reveal()).toBe('whsec_1')
    expect(made.webhook).toEqual(webhook)
    expect(JSON.parse(server.heard[0]?.body ?? '')).toEqual(wanted)
  })

  it('are named as the dialect does', async () => {
    const made = { no: 1, url: 'https://x/y', topics: ['ORDER_DONE'], key: 'whsec_1' }
    const server = await http((_, response) => sendJson(response, 201, { result: made }))
    const { supplier } = client(server.origin, { dialect: otherDialect })
    expect((await supplier.createWebhook(wanted)).webhook).toMatchObject({ id: '1', events: ['order.completed'] })
    expect(server.heard[0]?.body).toBe('{"target":{"url":"https://x/y","topics":["ORDER_DONE"]}}')
  })

  it.each<[string, (response: ServerResponse) => void]>([
    ['500', (response) => response.writeHead(500).end()],
    ['a reset', (response) => response.socket?.resetAndDestroy()],
    ['an answer without the secret', (response) => ok(response, webhook)],
  ])('may have been made after %s: it is not tried again', async (_, answer) => {
    const server = await http((__, response) => answer(response))
    await expect(client(server.origin).supplier.createWebhook(wanted)).rejects.toMatchObject({
      code: 'unknown_outcome',
    })
    expect(server.heard).toHaveLength(1)
  })

  it('were not made when the supplier rejects them', async () => {
    const server = await http((_, response) => fault(response, 422, 'bad_url'))
    await expect(client(server.origin).supplier.createWebhook(wanted)).rejects.toMatchObject({
      code: 'rejected',
      reason: 'supplier_rejected',
    })
  })
})

describe('the OpenAPI description of the supplier', () => {
  it.each([
    [dialect, undefined],
    [otherDialect, 'qs_api_key'],
  ])('is read with the API key only where it is needed', async (under, key) => {
    const server = await http((_, response) => sendJson(response, 200, { openapi: '3.1.0' }))
    expect(await client(server.origin, { dialect: under }).supplier.openapi()).toEqual({ openapi: '3.1.0' })
    expect(server.heard[0]?.headers[under.headers.apiKey]).toBe(key)
  })
})

describe('closing the client', () => {
  it('lets an order in flight end, and sends nothing after', async () => {
    const arrived = Promise.withResolvers<() => void>()
    const server = await http((_, response) => arrived.resolve(() => ok(response, order)))
    const { supplier } = client(server.origin)
    const placed = supplier.placeOrder(request)
    const answer = await arrived.promise
    const closed = supplier.close()
    answer()
    expect(await placed).toMatchObject({ outcome: 'accepted' })
    await closed
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'not_executed', cause: 'unreachable' })
    open.shift()
  })
})
