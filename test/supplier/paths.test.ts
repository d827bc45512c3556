/**
 * Suppliers with other paths, addresses, credentials and constant headers, with the habits that their documents name: Tremendous
 * (`/api/v2`, Bearer), Bamboo (Basic), Kinguin (`/v1/order`, `/v2/order`), G2A (`Authorization: hash, key`), Runa (dated version
 * headers), Reloadly (no version in the address, a version in Accept).
 */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { Secret } from '../../src/secret.ts'
import { createSupplier, orderBody } from '../../src/supplier/client.ts'
import { startCheckedSandbox } from '../support/checked-sandbox.ts'
import { run, temporaryFolder } from '../support/cli-run.ts'
import { sendJson, dialect as shipped, startHttp } from '../support/supplier-server.ts'

const SANDBOX_KEY = 'sk_test_0123456789abcdef'
const HASH = '74026b3dc2c6db6a30a73e71cdb138b1e1b5eb7a97ced46689e2d28db1050875'

/** The paths of a supplier whose operations are in three versions at once. */
const PATHS = {
  products: '/v1/catalogue/list?withText=yes',
  product: '/v1/catalogue/{id}/details?withText=yes',
  placeOrder: '/v2/order',
  orders: '/v1/orders',
  order: '/v2/order/{id}',
  balance: '/accounts/current',
  webhooks: null,
  openapi: null,
}

/** The shipped dialect with other ways to the supplier. */
function dialectWith(more: Partial<Record<keyof Dialect, unknown>>): Dialect {
  const { webhook: _, webhookRequest: __, ...rest } = shipped
  const isByHand = (more.paths as typeof PATHS | undefined)?.webhooks === null
  const headers = { ...shipped.headers, ...(more.auth ? { apiKey: undefined } : {}) }
  return dialectShape.parse({ ...(isByHand ? rest : shipped), headers, ...more })
}

function client(origin: string, dialect: Dialect, apiKey = 'key-of-the-reseller', names: string[] = []) {
  const supplier = createSupplier({
    baseUrl: origin,
    dialect,
    apiKey: new Secret(apiKey),
    now: () => 0,
    sleep: async () => undefined,
    random: () => 0,
    onRequest: (name) => void names.push(name),
  })
  onTestFinished(supplier.close)
  return supplier
}

async function http(answer: Parameters<typeof startHttp>[0] = (_, response) => sendJson(response, 500, {})) {
  const server = await startHttp(answer)
  onTestFinished(server.close)
  return server
}

const expected = { externalOrderId: 'q1.s.1', productId: 'p1', quantity: 2 }
const request = {
  ...{ body: orderBody(shipped, expected), idempotencyKey: 'key1', expected, maybeCharged: false, deadlineMs: 2_000 },
}

describe('a dialect with paths', () => {
  test('sends every operation there, under a base address of any version or none, and keeps our names of requests', async () => {
    const server = await http()
    for (const base of ['', '/', '/api/v2', '/api/v2/']) {
      const names: string[] = []
      const supplier = client(server.origin + base, dialectWith({ paths: PATHS }), undefined, names)
      const calls = [
        ...[() => supplier.products({ page: 2 }), () => supplier.product('p/1')],
        ...[() => supplier.orders({ page: 1, externalOrderId: 'q1' }), () => supplier.order('o 1'), supplier.balance],
        () => supplier.placeOrder(request),
      ]
      server.heard.length = 0
      for (const call of calls) await call().catch(() => undefined)
      const at = base.replace(/\/$/, '')
      expect([...new Set(server.heard.map(({ method, url }) => `${method} ${url}`))]).toEqual([
        `GET ${at}/v1/catalogue/list?withText=yes&page=2&limit=100`,
        `GET ${at}/v1/catalogue/p%2F1/details?withText=yes`,
        `GET ${at}/v1/orders?page=1&limit=100&external_order_id=q1`,
        `GET ${at}/v2/order/o%201`,
        `GET ${at}/accounts/current`,
        `POST ${at}/v2/order`,
      ])
      expect([...new Set(names)]).toEqual([
        ...['GET /products', 'GET /products/{id}', 'GET /orders', 'GET /orders/{id}', 'GET /balance', 'POST /orders'],
      ])
    }
  })

  test('without webhooks and a description says so, and sends nothing for them', async () => {
    const server = await http()
    const supplier = client(server.origin, dialectWith({ paths: PATHS }))
    const byHand = { code: 'rejected', message: expect.stringContaining('webhooks add --secret-file') }
    await expect(supplier.webhooks()).rejects.toMatchObject(byHand)
    await expect(
      supplier.createWebhook({ url: 'https://a.example', events: ['order.completed'] }),
    ).rejects.toMatchObject(byHand)
    await expect(supplier.openapi()).rejects.toMatchObject({ code: 'rejected' })
    expect(server.heard).toEqual([])
  })

  test.each([
    ['https://supplier.example/?a=1', 'query'],
    ['https://supplier.example/#a', 'query'],
    ['ftp://supplier.example/', 'https://'],
    ['https://u:p@supplier.example/', 'user name'],
  ])('does not take the address %s', (address, message) => {
    expect(() => client(address, dialectWith({ paths: PATHS }))).toThrow(message)
  })

  test('is needed for an address that does not end in /v1', () => {
    expect(() => client('https://supplier.example/api/v2', shipped)).toThrow('must end in /v1')
  })
})

test.each<[string, Partial<Record<keyof Dialect, unknown>>, string]>([
  ['a path of one record without its id', { paths: { ...PATHS, order: '/v2/order' } }, 'must have {id} once'],
  ['a path of a list with an id', { paths: { ...PATHS, orders: '/v1/orders/{id}' } }, 'without {}'],
  ['a path with another place', { paths: { ...PATHS, order: '/v2/{order}' } }, 'with {id}'],
  ['no path of an operation', { paths: { ...PATHS, balance: undefined } }, 'paths'],
  ['the API key in a header and auth', { auth: { kind: 'basic' }, headers: shipped.headers }, 'and not both'],
  [
    'a template of something else',
    { auth: { kind: 'header', headers: { a: 'Bearer {token}' } } },
    '{apiKey}, {id} and {secret}',
  ],
  ['another kind', { auth: { kind: 'digest' } }, 'kind'],
  [
    'tokens that travel in clear text',
    { auth: { kind: 'oauth2_client_credentials', token: 'http://auth.supplier.example/token' } },
    'https',
  ],
])('is a fault of the dialect: %s', (_, more, message) => {
  expect(() => dialectWith({ paths: PATHS, ...more })).toThrow(message)
})

describe('credentials', () => {
  test.each<[string, Partial<Record<keyof Dialect, unknown>>, string, Record<string, string>]>([
    [
      'a Bearer token that does not change (Tremendous)',
      { auth: { kind: 'header', headers: { authorization: 'Bearer {apiKey}' } } },
      'TEST_abcdefgh',
      { authorization: 'Bearer TEST_abcdefgh' },
    ],
    [
      'HTTP Basic (Bamboo)',
      { auth: { kind: 'basic' } },
      'Aladdin:open:sesame',
      { authorization: 'Basic QWxhZGRpbjpvcGVuOnNlc2FtZQ==' },
    ],
    [
      'hash and key with a blank between them (G2A)',
      { auth: { kind: 'header', headers: { authorization: '{id}, {secret}' } } },
      `qdaiciDiyMaTjxMt:${HASH}`,
      { authorization: `qdaiciDiyMaTjxMt, ${HASH}` },
    ],
    [
      'two headers, and constants, which may replace Accept',
      {
        auth: { kind: 'header', headers: { 'x-api-id': '{id}', 'x-api-secret': '{secret}' } },
        constantHeaders: { accept: 'application/com.reloadly.giftcards-v1+json', 'x-api-version': '2024-02-05' },
      },
      'client-1:secret-1',
      {
        'x-api-id': 'client-1',
        'x-api-secret': 'secret-1',
        accept: 'application/com.reloadly.giftcards-v1+json',
        'x-api-version': '2024-02-05',
      },
    ],
    [
      'the key alone, with constants (Runa)',
      { constantHeaders: { 'x-execution-mode': 'async' } },
      'a:b',
      { 'x-api-key': 'a:b', 'x-execution-mode': 'async', accept: 'application/json' },
    ],
  ])('go with a GET and a POST: %s', async (_, more, key, headers) => {
    const server = await http()
    const supplier = client(server.origin, dialectWith({ paths: PATHS, ...more }), key)
    await supplier.balance().catch(() => undefined)
    await supplier.placeOrder(request)
    expect(server.heard.at(0)?.headers).toMatchObject(headers)
    expect(server.heard.at(-1)).toMatchObject({
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': 'key1' },
    })
  })

  test.each<[string, object]>([
    ['basic', { kind: 'basic' }],
    ['a template of two parts', { kind: 'header', headers: { authorization: '{id}, {secret}' } }],
    ['OAuth2', { kind: 'oauth2_client_credentials', token: '/oauth/token' }],
  ])('of %s need a key of two parts, and a key without a colon is a fault before any request', async (_, auth) => {
    const server = await http()
    for (const key of ['no-colon-at-all', ':secret-alone', 'id-alone:']) {
      const open = () => client(server.origin, dialectWith({ paths: PATHS, auth }), key)
      expect(open).toThrow('supplier.apiKey must be id:secret')
      expect(open).not.toThrow(key)
    }
    expect(server.heard).toEqual([])
  })

  test.each<[string, object]>([
    ['x-api-id', { auth: { kind: 'header', headers: { 'x-api-id': '{id}' } } }],
    ['authorization', { auth: { kind: 'basic' } }],
    ['idempotency-key', {}],
    ['transfer-encoding', {}],
  ])('and what Quayside writes are no constant: %s', (name, more) => {
    const parse = () => dialectWith({ paths: PATHS, constantHeaders: { [name]: 'other' }, ...more })
    expect(parse).toThrow('is written by Quayside')
  })

  test('are in no error, also where a supplier repeats them in its answer, whole or in part', async () => {
    const server = await http(({ headers }, response) =>
      sendJson(response, 400, {
        success: false,
        error: { code: 'ODD', message: `${headers.authorization} user-0815 pass-4711 user-0815:pass-4711` },
      }),
    )
    const supplier = client(
      server.origin,
      dialectWith({ paths: PATHS, auth: { kind: 'basic' } }),
      'user-0815:pass-4711',
    )
    await expect(supplier.balance()).rejects.toMatchObject({
      message: expect.stringContaining('Basic [secret] [secret] [secret] [secret]'),
    })
  })
})

test.each(['basic', 'header'])(
  'an account with the name of the store does not garble its orders, with auth %s',
  async (kind) => {
    const record = {
      id: 'ord_1',
      external_order_id: 'q1.gamestore-ab12cd34.1001.1.1.1',
      productId: 'p1',
      quantity: 1,
      status: 'completed',
      amount: '1.00',
      keys: [],
    }
    const server = await http((_, response) => sendJson(response, 200, { success: true, data: record }))
    const headers = { 'x-user': '{id}', 'x-password': '{secret}' }
    const auth = kind === 'basic' ? { kind } : { kind, headers }
    const supplier = client(server.origin, dialectWith({ paths: PATHS, auth }), 'gamestore:pass-4711')
    expect(await supplier.order('ord_1')).toMatchObject({ externalOrderId: record.external_order_id })
  },
)

describe('the commands', () => {
  /** The sandbox, reached only by other paths and Basic. */
  async function setUp() {
    const sandbox = await startCheckedSandbox({ dialect: shipped, apiKey: SANDBOX_KEY, offers: 5, automatic: false })
    onTestFinished(() => sandbox.close())
    const { origin } = new URL(sandbox.baseUrl)
    const ours: [RegExp, string][] = [
      [/^\/api\/v1\/catalogue\/list\?withText=yes&?/, '/v1/products?'],
      [/^\/api\/v1\/catalogue\/([^/]+)\/details.*/, '/v1/products/$1'],
      [/^\/api\/v1\/orders/, '/v1/orders'],
      [/^\/api\/v2\/order/, '/v1/orders'],
      [/^\/api\/accounts\/current/, '/v1/balance'],
    ]
    const server = await http(async ({ method, url, headers, body }, response) => {
      const [from, to] = ours.find(([pattern]) => pattern.test(url)) ?? []
      if (!from || to === undefined) return sendJson(response, 404, { message: 'no such page' })
      const isKnown = headers.authorization === `Basic ${Buffer.from('user-0815:pass-4711').toString('base64')}`
      const answer = await fetch(origin + url.replace(from, to), {
        method,
        headers: { ...(isKnown ? { 'x-api-key': SANDBOX_KEY } : {}), 'content-type': 'application/json' },
        ...(method === 'POST' && { body }),
      })
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
    })
    const folder = temporaryFolder()
    const dialect = path.join(folder, 'other.json')
    const { webhook: _, webhookRequest: __, headers, ...rest } = shipped
    const { apiKey: ___, ...others } = headers
    writeFileSync(
      dialect,
      JSON.stringify({ ...rest, name: 'other', headers: others, paths: PATHS, auth: { kind: 'basic' } }),
    )
    const keyFile = path.join(folder, 'key')
    writeFileSync(keyFile, 'user-0815:pass-4711', { mode: 0o600 })
    const supplier = ['--base-url', `${server.origin}/api`, '--dialect', dialect, '--api-key-file', keyFile]
    return { folder, server, supplier, keyFile, baseUrl: `${server.origin}/api` }
  }

  test('check the dialect by the same requests, and ask for no webhooks and no description', async () => {
    const { server, supplier } = await setUp()
    const { stdout, stderr } = await run(['dialect', 'check', ...supplier, '--json'])
    expect(stderr).toBe('')
    const { findings, products } = JSON.parse(stdout)
    expect(products.length).toBeGreaterThan(0)
    const wrong = findings.filter(
      ({ verdict }: { verdict: string }) => verdict === 'unreadable' || verdict === 'differs',
    )
    expect(wrong).toEqual([])
    expect(findings).toContainEqual(expect.objectContaining({ fact: 'auth.kind', verdict: 'read' }))
    expect(server.heard.filter(({ url }) => /webhooks|openapi/.test(url))).toEqual([])
    expect(stdout).not.toMatch(/pass-4711|user-0815/)
  })

  test('set up such a supplier and look after it, without a webhook', async () => {
    const { folder, server, supplier } = await setUp()
    const file = path.join(folder, 'config', 'quayside.json')
    const made = await run(['init', '--config', file, ...supplier, '--public-url', 'http://127.0.0.1:9', '--yes'])
    expect({ exitCode: made.exitCode, stderr: made.stderr }).toEqual({ exitCode: 0, stderr: '' })
    const doctor = await run(['doctor', '--config', file])
    expect(doctor.stdout).toMatch(/API key: accepted/)
    expect(doctor.stdout).toMatch(/products: are they right/)
    expect(doctor.stdout).not.toMatch(/revision/)
    expect(server.heard.filter(({ url }) => /webhooks|openapi/.test(url))).toEqual([])
    writeFileSync(path.join(folder, 'config', 'secrets', 'api-key'), 'no-colon-at-all', { mode: 0o600 })
    const faulty = await run(['doctor', '--config', file])
    expect(faulty.stdout + faulty.stderr).toContain('must be id:secret')
  })

  test('name an address that does not fit its dialect, and a key that does not', async () => {
    const { supplier, keyFile, baseUrl } = await setUp()
    const check = await run(['dialect', 'check', '--base-url', baseUrl, '--api-key-file', keyFile])
    expect(check.stderr).toContain('must end in /v1')
    writeFileSync(keyFile, 'no-colon-at-all', { mode: 0o600 })
    expect((await run(['dialect', 'check', ...supplier])).stderr).toContain('must be id:secret')
  })
})
