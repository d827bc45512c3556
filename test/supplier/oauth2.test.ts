/**
 * OAuth2 under fire: tokens that end, that are withdrawn, that no server gives out. The servers are written from RFC 6749 and RFC 6750,
 * and from what suppliers that use them document: CodesWholesale (token fields in the query), Reloadly (JSON with `audience`, tokens of
 * another host).
 */
import type { ServerResponse } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { Secret } from '../../src/secret.ts'
import { createSupplier, orderBody, type SupplierSettings } from '../../src/supplier/client.ts'
import { sendJson, dialect as shipped, startHttp } from '../support/supplier-server.ts'
import { openTestApp } from '../support/test-app.ts'
import { CLIENT, startTokenServer } from '../support/token-server.ts'

const T = Date.parse('2026-01-02T03:04:05Z')
const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
const KEY = `${CLIENT.id}:${CLIENT.secret}`
const SANDBOX_KEY = 'sk_test_0123456789abcdef'

/** The shipped dialect, but with tokens. */
const withTokens = (auth: object = {}): Dialect =>
  dialectShape.parse({
    ...shipped,
    headers: { ...shipped.headers, apiKey: undefined },
    auth: { kind: 'oauth2_client_credentials', token: '/oauth/token', ...auth },
    paths: {
      ...{ products: '/v1/products', product: '/v1/products/{id}', placeOrder: '/v1/orders', orders: '/v1/orders' },
      ...{ order: '/v1/orders/{id}', balance: '/v1/balance', webhooks: '/v1/webhooks', openapi: null },
    },
  })

const balance = { success: true, data: { balance: '10.00', currency: 'EUR' } }
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
const request = {
  body: orderBody(shipped, { externalOrderId: 'q1.s.1', productId: 'p1', quantity: 2 }),
  idempotencyKey: 'key1',
  expected: { externalOrderId: 'q1.s.1', productId: 'p1', quantity: 2 },
  maybeCharged: false,
  deadlineMs: 30 * SECOND,
}

interface Given {
  auth?: object
  settings?: Partial<SupplierSettings>
  server?: { lastsSeconds?: number; query?: boolean; json?: boolean }
  api?: (heard: { method: string; url: string }, response: ServerResponse) => unknown
  clients?: number
}

/** A supplier with tokens, and clients of it. The supplier's clock and ours are moved by hand; each client has its own wall clock. */
async function world({ auth, settings, server: of, api, clients = 1 }: Given = {}) {
  let passed = 0
  let ahead = 0
  const server = await startTokenServer(
    api ??
      (({ method }, response) => sendJson(response, 200, method === 'POST' ? { success: true, data: order } : balance)),
    { clock: () => T + passed, ...of },
  )
  onTestFinished(server.close)
  const suppliers = Array.from({ length: clients }, () =>
    createSupplier({
      baseUrl: server.origin,
      dialect: withTokens(auth),
      apiKey: new Secret(KEY),
      now: () => T + passed + ahead,
      monotonic: () => passed,
      sleep: async (ms) => {
        passed += ms
      },
      random: () => 0,
      fetchDeadlineMs: 5_000,
      ...settings,
    }),
  )
  onTestFinished(async () => {
    await Promise.all(suppliers.map((one) => one.close()))
  })
  const [supplier = suppliers[0] as never] = suppliers
  return {
    server,
    supplier,
    suppliers,
    pass: (ms: number) => {
      passed += ms
    },
    jump: (ms: number) => {
      ahead += ms
    },
  }
}

describe('a token', () => {
  test('is asked for when it is first needed, once for all requests that wait, and carried by each', async () => {
    const { server, supplier } = await world()
    expect(server.heard).toHaveLength(0)
    await Promise.all([supplier.balance(), supplier.balance(), supplier.balance()])
    expect(server.asked).toHaveLength(1)
    expect(server.asked[0]).toMatchObject({ method: 'POST', url: '/oauth/token' })
    expect(Object.fromEntries(new URLSearchParams(server.asked[0]?.body))).toEqual({
      grant_type: 'client_credentials',
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
    })
    expect(server.refused).toBe(0)
  })

  test.each<[string, object, object]>([
    ['in HTTP Basic', { credentials: 'basic', scope: 'orders' }, {}],
    ['in the query, as CodesWholesale takes them', { send: 'query' }, { query: true }],
    ['as JSON with an audience, as Reloadly takes them', { send: 'json', fields: { audience: 'x' } }, { json: true }],
  ])('is asked for with the credentials %s', async (_, auth, of) => {
    const { server, supplier } = await world({ auth, server: of })
    await supplier.balance()
    expect([server.asked.length, server.refused]).toEqual([1, 0])
  })

  test('comes from another host where the dialect names one', async () => {
    const tokens = await startTokenServer(() => undefined, { clock: () => T })
    onTestFinished(tokens.close)
    const { server, supplier } = await world({ auth: { token: `${tokens.origin}/oauth/token` } })
    // The API believes that host.
    server.ends.set('tok_0_xxxxxxxxxxxxxxxxxxxx', T + DAY)
    await supplier.balance()
    expect([tokens.asked.length, server.asked.length]).toEqual([1, 0])
  })

  test('is renewed before it ends, by the time that passed since it was asked for, though our clock is a day off', async () => {
    const { server, supplier, pass, jump } = await world()
    await supplier.balance()
    jump(-DAY)
    await supplier.balance()
    jump(2 * DAY)
    await supplier.balance()
    expect(server.asked, 'a clock that was set says nothing').toHaveLength(1)
    pass(3_600 * SECOND - 59 * SECOND)
    await Promise.all([supplier.balance(), supplier.balance()])
    expect([server.asked.length, server.refused]).toEqual([2, 0])
  })

  test('that lasts for less than it is renewed early is not renewed for every request', async () => {
    const { server, supplier, pass } = await world({ server: { lastsSeconds: 40 } })
    for (let second = 0; second < 40; second += 1) {
      await supplier.balance()
      pass(SECOND)
    }
    expect(server.asked).toHaveLength(2)
    expect(server.refused).toBe(0)
  })

  test('that is revoked is renewed once, however many requests it was refused to, and each GET is repeated once', async () => {
    const { server, supplier, suppliers } = await world({ clients: 2 })
    await Promise.all(suppliers.map((one) => one.balance()))
    expect(server.asked, 'each process has its own').toHaveLength(2)
    server.revoke()
    const both = suppliers.flatMap((one) => [one.balance(), one.balance(), one.balance()])
    expect(await Promise.all(both)).toHaveLength(6)
    expect(server.asked).toHaveLength(4)
    expect(server.refused).toBe(6)
    expect(supplier.reach().refusesKey).toBe(false)
  })

  test('that is refused again after its renewal is no matter of tokens: the key is refused, and no more are asked for', async () => {
    const { server, supplier, pass } = await world()
    await supplier.balance()
    server.shut = true
    for (let time = 0; time < 5; time += 1) {
      await expect(supplier.balance()).rejects.toMatchObject({ reason: 'unauthorized' })
    }
    expect(server.asked).toHaveLength(2)
    expect(supplier.reach().refusesKey).toBe(true)
    pass(MINUTE)
    server.shut = false
    await supplier.balance()
    expect(supplier.reach().refusesKey).toBe(false)
  })
})

describe('an order', () => {
  test('whose token would end before its answer is sent with a new one', async () => {
    const { server, supplier, pass } = await world()
    await supplier.balance()
    pass(3_600 * SECOND - 85 * SECOND)
    await supplier.balance()
    expect(server.asked, 'good enough for a read').toHaveLength(1)
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'accepted' })
    expect(server.asked).toHaveLength(2)
  })

  test('whose token was revoked is not sent a second time; the renewal is at once, and the key counts as good', async () => {
    const { server, supplier } = await world()
    await supplier.balance()
    server.revoke()
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'not_executed', cause: 'token_ended' })
    expect(server.posts).toEqual(['/v1/orders refused'])
    expect([server.asked.length, supplier.reach().refusesKey]).toEqual([2, false])
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'accepted' })
    expect(server.posts).toEqual(['/v1/orders refused', '/v1/orders taken'])
    expect(server.asked).toHaveLength(2)
  })

  test('that may have been charged stays in doubt after a 401', async () => {
    const { server, supplier } = await world()
    await supplier.balance()
    server.revoke()
    const placed = await supplier.placeOrder({ ...request, maybeCharged: true })
    expect(placed).toMatchObject({ outcome: 'unknown', rejection: true })
    expect([server.posts.length, server.asked.length]).toEqual([1, 2])
  })

  test('is not sent while the token endpoint is away, which is asked less and less often', async () => {
    const { server, supplier, pass } = await world()
    server.endpoint = 'away'
    let placements = 0
    for (let ms = 0; ms < 10 * MINUTE; ms += 500) {
      expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'not_executed', cause: 'unreachable' })
      placements += 1
      pass(500)
    }
    expect(server.posts).toEqual([])
    expect(server.asked.length).toBeLessThan(35)
    expect(placements).toBe(1_200)
    expect(supplier.reach()).toMatchObject({ refusesKey: false, unanswered: { since: T } })
    expect(supplier.reach().unanswered?.error).toContain('its token endpoint answered 503')
    server.endpoint = 'answers'
    pass(30 * SECOND)
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'accepted' })
    expect(server.posts).toEqual(['/v1/orders taken'])
  })

  test('is not executed where the token was refused and the token endpoint is away', async () => {
    const { server, supplier } = await world()
    await supplier.balance()
    server.revoke()
    server.endpoint = 'silent'
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'not_executed', cause: 'unreachable' })
    expect(server.posts).toEqual(['/v1/orders refused'])
    expect(supplier.reach()).toMatchObject({ refusesKey: false, unanswered: expect.anything() })
  })

  test.each(['refuses', 'same'] as const)(
    'counts as refused by its key where the token endpoint %s',
    async (endpoint) => {
      const { server, supplier } = await world()
      await supplier.balance()
      server.endpoint = endpoint
      if (endpoint === 'same') server.shut = true
      else server.revoke()
      expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'not_executed', cause: 'unauthorized' })
      expect(supplier.reach().refusesKey).toBe(true)
    },
  )
})

test('a token that has not ended goes on while the token endpoint is away', async () => {
  const { server, supplier, pass } = await world()
  await supplier.balance()
  server.endpoint = 'away'
  pass(3_600 * SECOND - 50 * SECOND)
  await supplier.balance()
  expect([server.asked.length, server.refused]).toEqual([2, 0])
})

test('a webhook is not made a second time after a 401, and a person tries again with the new token', async () => {
  const { server, supplier } = await world()
  await supplier.balance()
  server.revoke()
  const made = supplier.createWebhook({ url: 'https://a.example/x', events: ['order.completed'] })
  await expect(made).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('try again') })
  expect(server.posts).toEqual(['/v1/webhooks refused'])
  expect(server.asked).toHaveLength(2)
})

test('no error, no answer and no figure has the secret, its parts, the Basic text or a token', async () => {
  const seen: unknown[] = []
  const basic = Buffer.from(KEY).toString('base64')
  const echo = (heard: object, response: ServerResponse) => {
    const { headers, url } = heard as { headers: Record<string, string>; url: string }
    const said = `${headers.authorization} ${KEY} ${basic} ${encodeURIComponent(CLIENT.secret)} ${new URLSearchParams({ x: CLIENT.secret })}`
    sendJson(response, url.includes('orders') ? 422 : 400, { success: false, error: { code: 'ODD', message: said } })
  }
  for (const send of ['form', 'json', 'query']) {
    const { server, supplier } = await world({
      auth: { send },
      server: { query: send === 'query', json: send === 'json' },
      api: echo,
      settings: { onRequest: (...one) => void seen.push(one) },
    })
    seen.push(await supplier.balance().catch((error: Error) => [error.message, error.stack, { ...error }]))
    seen.push(await supplier.placeOrder(request))
    server.endpoint = 'refuses'
    server.revoke()
    for (let time = 0; time < 2; time += 1)
      seen.push(await supplier.balance().catch((error: Error) => [error.message, error.stack, { ...error }]))
    seen.push(supplier.reach())
    expect(server.asked.length).toBeGreaterThan(1)
  }
  const text = JSON.stringify(seen)
  expect(text).toContain('[secret]')
  expect(text).toContain('invalid_client')
  for (const secret of [CLIENT.id, CLIENT.secret, basic, encodeURIComponent(CLIENT.secret), 'tok_'])
    expect(text).not.toContain(secret)
})

describe('purchases', () => {
  /** The sandbox behind a token server. */
  async function app(lastsSeconds?: number) {
    let clock = () => T
    let server: Awaited<ReturnType<typeof startTokenServer>> | undefined
    const opened = await openTestApp({
      dialect: withTokens(),
      sandboxDialect: shipped,
      apiKey: KEY,
      before: async (baseUrl) => {
        server = await startTokenServer(
          async ({ method, url, headers, body }, response) => {
            const { authorization: _, host: __, connection: ___, 'content-length': ____, ...rest } = headers
            const answer = await fetch(new URL(url, baseUrl), {
              method,
              headers: { ...(rest as Record<string, string>), 'x-api-key': SANDBOX_KEY },
              ...(method === 'POST' && { body }),
            })
            response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
          },
          { clock: () => clock(), ...(lastsSeconds === undefined ? {} : { lastsSeconds }) },
        )
        onTestFinished(server.close)
        return server.origin
      },
    })
    clock = () => opened.now()
    if (!server) throw new Error('there is no server')
    await opened.ordering.checkBalance()
    return { app: opened, server }
  }

  test('go on after a token was revoked: nothing pauses, no person is alerted, and nothing is bought twice', async () => {
    const { app: one, server } = await app()
    const { productId, sku } = await one.offer()
    one.ordering.pace.checked.set(productId, one.now())
    server.revoke()
    const { orderId } = await one.order('1001', [{ sku }])
    await one.settle()
    expect(await one.purchase(orderId)).toMatchObject({ state: 'waiting', maybeChargedAt: null })
    await one.pass(20 * SECOND, SECOND)
    expect(await one.state(orderId)).toBe('fulfilled')
    expect(server.posts).toEqual(['/v1/orders refused', '/v1/orders taken'])
    expect([await one.alerts(), server.asked.length]).toEqual([[], 2])
    one.expectLedger({ charges: 1, keys: 1 })
    expect(one.lines.join('')).not.toMatch(new RegExp(`tok_|${CLIENT.id}`))
  })

  test('wait for ten minutes without a token endpoint, which people hear of as of an outage, and then go on', async () => {
    const { app: one, server } = await app()
    server.endpoint = 'away'
    server.revoke()
    const { sku } = await one.offer()
    const { orderId } = await one.order('1001', [{ sku }])
    const before = server.asked.length
    await one.pass(10 * MINUTE, 5 * SECOND)
    expect(await one.alerts()).toEqual(['supplier_unreachable'])
    expect(await one.purchase(orderId)).toMatchObject({ maybeChargedAt: null })
    expect(server.asked.length - before).toBeLessThan(40)
    server.endpoint = 'answers'
    await one.pass(10 * MINUTE, 5 * SECOND)
    expect(await one.state(orderId)).toBe('fulfilled')
    one.expectLedger({ charges: 1, keys: 1 })
  })

  test('pause where the token endpoint refuses the key, and people hear that it is refused', async () => {
    const { app: one, server } = await app()
    server.endpoint = 'refuses'
    server.revoke()
    const { sku } = await one.offer()
    const { orderId } = await one.order('1001', [{ sku }])
    await one.pass(3 * MINUTE, 5 * SECOND)
    expect(await one.alerts()).toEqual(['unauthorized'])
    expect(server.posts.filter((post) => post.endsWith('taken'))).toEqual([])
    server.endpoint = 'answers'
    await one.pass(5 * MINUTE, 5 * SECOND)
    expect(await one.state(orderId)).toBe('fulfilled')
    one.expectLedger({ charges: 1, keys: 1 })
  })

  test('wait with an alert where every token may read and none may buy', async () => {
    const { app: one, server } = await app()
    server.mayBuy = false
    const { sku } = await one.offer()
    const { orderId } = await one.order('1001', [{ sku }])
    for (let time = 0; time < 5 * MINUTE; time += SECOND) {
      await one.pass(SECOND)
      await one.ordering.checkBalance()
    }
    expect(await one.alerts()).toEqual(['unauthorized'])
    expect(server.asked.length).toBeLessThan(10)
    server.mayBuy = true
    await one.pass(10 * MINUTE, 5 * SECOND)
    expect(await one.state(orderId)).toBe('fulfilled')
    one.expectLedger({ charges: 1, keys: 1 })
  })

  test('of tokens of a minute are bought one after the other, each once', async () => {
    const { app: one, server } = await app(60)
    const { sku } = await one.offer()
    const orders: string[] = []
    for (let number = 0; number < 10; number += 1) {
      orders.push((await one.order(String(number), [{ sku }])).orderId)
      await one.pass(20 * SECOND, 5 * SECOND)
    }
    await one.pass(MINUTE, 5 * SECOND)
    for (const orderId of orders) expect(await one.state(orderId)).toBe('fulfilled')
    expect(await one.alerts()).toEqual([])
    expect(server.posts.filter((post) => post.endsWith('refused'))).toEqual([])
    one.expectLedger({ charges: 10, keys: 10 })
  })
})

test('a token endpoint that says something else gives no token, and nothing is sent', async () => {
  for (const answer of [{}, { access_token: 7 }, { access_token: 'a b' }, { token: 'x' }, [], { access_token: '' }]) {
    const odd = await startHttp((_, response) => sendJson(response, 200, answer))
    onTestFinished(odd.close)
    const { server, supplier } = await world({ auth: { token: `${odd.origin}/token` } })
    expect(await supplier.placeOrder(request)).toMatchObject({ outcome: 'not_executed', cause: 'unreachable' })
    expect(server.heard).toEqual([])
  }
})
