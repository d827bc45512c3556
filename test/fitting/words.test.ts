/**
 * `quayside dialect check` and the words that suppliers other than the Reseller API v1.1 need: each is proven by a GET where one
 * can show it, and listed as not proven where only an order can. The supplier has habits of several public documents:
 * `continuationToken` and tokens (CodesWholesale), `qty` and keys by a second read (Kinguin), an Accept header with a version (Reloadly).
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { checkText } from '../../src/cli/dialect.ts'
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { checkDialect, orderWords, provenBy } from '../../src/fitting/check.ts'
import { readSample } from '../../src/fitting/sample.ts'
import { type DialectFinding, isFault } from '../../src/fitting/verdicts.ts'
import { Secret } from '../../src/secret.ts'
import { standard } from '../support/dialect-pair.ts'
import { wordy } from '../support/dialect-wordy.ts'
import { sendJson } from '../support/supplier-server.ts'
import { CLIENT, startTokenServer } from '../support/token-server.ts'

const KEYS = ['AAAAA-BBBBB-CCCCC', 'DDDDD-EEEEE-FFFFF']

/** The dialect of the supplier below. */
const fitting: Dialect = dialectShape.parse({
  ...wordy,
  constantHeaders: { accept: 'application/vnd.shelf.v2+json' },
  auth: { kind: 'oauth2_client_credentials', token: '/oauth/token' },
  envelope: { success: null, data: '' },
  error: { success: null, code: 'kind', message: 'detail', requestId: 'trace' },
  errors: {
    ...wordy.errors,
    not_found: { codes: ['NotFound'], status: 404 },
    unauthenticated: { codes: ['invalid_token'], status: 401 },
  },
  paging: {
    ...{ kind: 'cursor', next: 'continuationToken', page: 'continuationToken', limit: 'size', first: 1, limitMax: 10 },
    ...{ limitDefault: 10, items: 'list', total: null, more: null, totalFiltered: true, listMax: null },
  },
  orders: { externalOrderId: null, status: null, from: null, to: null },
  product: {
    ...{ id: 'productId', sku: 'productId', name: 'name', category: null, cost: 'price', basePrice: null },
    ...{ cashback: null, currency: null, localStock: null, providerStock: 'qty', available: 'qty', origin: null },
    updatedAt: null,
  },
  money: { representation: 'number', currency: 'EUR' },
  order: {
    ...{ id: 'orderId', externalOrderId: 'orderExternalId', productId: null, quantity: null, status: 'status' },
    ...{ amount: 'totalPrice', currency: null, keyText: null, failureCode: null, failureMessage: null },
    ...{ createdAt: null, updatedAt: null },
  },
  orderStatuses: { processing: 'open', completed: 'completed' },
  keys: {
    ...{ path: '/v2/order/{id}/keys', items: '', text: 'serial' },
    type: { path: 'type', words: { 'text/plain': 'text', 'image/jpeg': 'image' } },
  },
  balance: { amount: 'balance', currency: null, tier: null, requestsPerMinute: null, quantityMax: null },
  paths: { ...wordy.paths, webhooks: null },
  webhook: undefined,
  webhookRequest: undefined,
})

interface Habits {
  lastsSeconds?: number
  /** Orders that the account has; default: two, one of them completed. */
  orders?: number
  /** What the second read answers. */
  keys?: { status: number; body: object }
  /** Every page is the first one. */
  stuck?: 'products' | 'orders'
}

async function supplierWith(habits: Habits = {}) {
  const products = Array.from({ length: 12 }, (_, index) => ({
    productId: `p-${index}`,
    name: `Game ${index}`,
    price: index + 0.5,
    qty: index,
  }))
  const orders = Array.from({ length: habits.orders ?? 2 }, (_, index) => ({
    orderId: `o-${index}`,
    orderExternalId: `q1.shop.${index}`,
    status: index === 0 ? 'completed' : 'processing',
    totalPrice: 3.5,
  }))
  const keys = KEYS.map((serial) => ({ serial, type: 'text/plain', name: 'Game 1' }))
  const server = await startTokenServer(
    ({ url, headers }, response) => {
      const { pathname, searchParams } = new URL(url, 'http://supplier')
      const none = () => sendJson(response, 404, { kind: 'NotFound', detail: 'no such thing', trace: 't' })
      if (headers.accept !== 'application/vnd.shelf.v2+json')
        return sendJson(response, 406, { kind: 'NotAcceptable', detail: 'which version?', trace: 't' })
      const list = (rows: object[], what: Habits['stuck']) => {
        const size = Number(searchParams.get('size') ?? 10)
        const from = Number(Buffer.from(searchParams.get('continuationToken') ?? '', 'base64').toString() || 0)
        const at = habits.stuck === what ? 0 : from
        const behind = from + size
        const next = behind < rows.length ? Buffer.from(String(behind)).toString('base64') : null
        return sendJson(response, 200, { list: rows.slice(at, at + size), continuationToken: next })
      }
      const [, id] = /^\/v\d\/(?:products|order)\/([^/]+)/.exec(pathname) ?? []
      if (pathname === '/v1/balance') return sendJson(response, 200, { balance: 120.5 })
      if (pathname === '/v1/products') return searchParams.has('withText') ? list(products, 'products') : none()
      if (pathname === '/v1/order') return list(orders, 'orders')
      if (/^\/v2\/order\/o-0\/keys$/.test(pathname)) {
        const { status, body } = habits.keys ?? { status: 200, body: keys }
        return sendJson(response, status, body)
      }
      const one = [...products, ...orders].find((row) => Object.values(row).includes(id ?? ''))
      return one ? sendJson(response, 200, one) : none()
    },
    { clock: () => 0, ...(habits.lastsSeconds && { lastsSeconds: habits.lastsSeconds }) },
  )
  onTestFinished(() => server.close())
  return server
}

async function checked(dialect: Dialect, habits: Habits = {}) {
  const server = await supplierWith(habits)
  const apiKey = new Secret(`${CLIENT.id}:${CLIENT.secret}`)
  const source = { baseUrl: server.origin, dialect, apiKey, now: () => 1_767_225_601_000 }
  const sample = await readSample({ ...source, sleep: () => Promise.resolve() })
  const findings = checkDialect(dialect, sample)
  const text = checkText({ dialect: 'd', supplier: 's', findings, products: [] }, 80)
  return { findings, text, server }
}

const of = (findings: DialectFinding[], fact: string) => findings.find((one) => one.fact === fact)
const faults = (findings: DialectFinding[]) => findings.filter(isFault).map(({ fact, value }) => `${fact}: ${value}`)
const by = (findings: DialectFinding[], verdict: string) =>
  findings.filter((one) => one.verdict === verdict).map(({ fact }) => fact)

describe('a supplier with other paths, tokens, cursors and keys by a second read', () => {
  test('is read in each word that a GET can show, by GETs and token requests alone', async () => {
    const { findings, server } = await checked(fitting)
    expect(faults(findings)).toEqual([])
    for (const fact of ['products', 'product', 'orders', 'order', 'balance'])
      expect(of(findings, `paths.${fact}`), fact).toMatchObject({ verdict: 'read', value: 'it answers' })
    expect(of(findings, 'constantHeaders.accept')).toMatchObject({ verdict: 'read', value: 'accepted' })
    expect(of(findings, 'auth.token')?.value).toBe('fetched and renewed: both tokens are accepted')
    expect(of(findings, 'auth.expiresIn')?.value).toBe('a token lasts 3600 s')
    for (const fact of ['paging.kind', 'paging.next', 'flags.available', 'keys.path', 'keys.items', 'keys.text'])
      expect(of(findings, fact), fact).toMatchObject({ verdict: 'read' })
    expect(of(findings, 'keys.items')?.value).toBe('2 keys')
    expect(of(findings, 'keys.type.words.text/plain')).toMatchObject({ verdict: 'read', value: 'a key has it' })
    expect(server.issued).toHaveLength(2)
    expect(server.heard.filter(({ method, url }) => method !== 'GET' && url !== '/oauth/token')).toEqual([])
  })

  test('has what only an order proves listed apart, each value of the body by itself', async () => {
    const { findings, text } = await checked(fitting)
    const later = by(findings, 'needs_order')
    expect(later).toEqual(
      expect.arrayContaining([
        ...['paths.placeOrder', 'orderBody.channel', 'orderBody.products.0.code', 'orderBody.products.0.qty'],
        ...['orderBody.products.0.price', 'orderBody.ref', 'orderAnswer', 'idempotency', 'event.header'],
        ...['signature.string', 'signature.mac', 'signature.secret', 'keys.type.words.image/jpeg'],
      ]),
    )
    const flat = text.replaceAll(/\s+/g, ' ')
    expect(flat).toContain('Not proven until the first order: a check sends GETs alone, and only an order')
    expect(flat).toContain('orderBody.products.0.qty ({quantity:text})')
    expect(text).toMatch(new RegExp(`${later.length} not proven until the first order\\.\\n$`))
    // No person is asked for a setting in whose place another word stands.
    expect(by(findings, 'not_shown')).not.toEqual(expect.arrayContaining(['headers.apiKey']))
    expect(flat).not.toMatch(/headers\.apiKey|orderRequest|webhookRequest/)
  })

  test('without an order yet: the keys are not proven either', async () => {
    const { findings } = await checked(fitting, { orders: 0 })
    expect(faults(findings)).toEqual([])
    expect(by(findings, 'needs_order')).toEqual(
      expect.arrayContaining(['keys.path', 'keys.text', 'keys.type.path', 'keys.type.words.text/plain']),
    )
    expect(of(findings, 'paths.order')).toMatchObject({ verdict: 'no_sample' })
  })

  test('has null as the cure of a flag that no answer has: the advice was to ask the supplier', async () => {
    const { findings } = await checked({ ...fitting, envelope: { success: 'success', data: '' } })
    expect(of(findings, 'envelope.success')).toMatchObject({
      verdict: 'unreadable',
      hint: 'null lets Quayside do without it',
    })
    expect(of(findings, 'balance.amount')?.verdict).toBe('read')
  })

  test('has no question about webhooks, which no request makes, nor about repeats, which are not sent', async () => {
    const { headers, ...rest } = fitting
    const none = { ...rest, headers: { ...headers, idempotencyKey: '' }, idempotency: 'none' as const }
    const { findings, text } = await checked(none, { orders: 0 })
    expect(text).not.toMatch(/webhook\.|idempotency \(none\)/)
    expect(of(findings, 'idempotency')?.verdict).toBe('none')
    expect(orderWords(none)).not.toContain('idempotency')
  })

  test('with a wrong path of products: no list is proposed that is not there', async () => {
    const { paths } = fitting
    if (!paths) throw new Error('the dialect has paths')
    const { text } = await checked({ ...fitting, paths: { ...paths, products: '/v9/articles' } })
    expect(text).toContain('no list of records came')
    expect(text).not.toContain('undefined')
  })

  test('with a wrong path of the balance: the path is named, and the key is not doubted', async () => {
    const { paths } = fitting
    if (!paths) throw new Error('the dialect has paths')
    const asked = checked({ ...fitting, paths: { ...paths, balance: '/v9/purse' } })
    await expect(asked).rejects.toThrow('GET /balance answered 404: below it the dialect has the balance at /v9/purse')
  })

  test('no line is wider than a terminal of 80 columns', async () => {
    const { text } = await checked(fitting)
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([])
  })

  test('shows neither a key nor a secret, whatever the paths of keys lead to', async () => {
    const { keys } = fitting
    if (!keys) throw new Error('the dialect has keys')
    const wrong: Dialect['keys'][] = [
      { ...keys, text: 'nowhere' },
      { ...keys, type: { path: 'serial', words: {} } },
      { ...keys, type: 'image' },
      { ...keys, items: 'serial' },
      { ...keys, second: { path: 'name', labels: ['Serial', 'PIN'] } },
    ]
    for (const one of [keys, ...wrong]) {
      const { findings, text } = await checked({ ...fitting, keys: one })
      const said = JSON.stringify(findings) + text
      for (const secret of [...KEYS, CLIENT.secret, 'tok_']) expect(said).not.toContain(secret)
    }
  })
})

describe('a word that the supplier contradicts is a fault', () => {
  const { paths, keys } = fitting
  if (!paths || !keys) throw new Error('the dialect has both')
  test.each<[what: string, dialect: Dialect, habits: Habits, fault: string]>([
    ['a path', { ...fitting, paths: { ...paths, orders: '/v3/order' } }, {}, 'paths.orders: it answered 404'],
    ['a short token', fitting, { lastsSeconds: 30 }, 'auth.renewBeforeSeconds: a token lasts 30 s'],
    [
      'pages that are all the first',
      fitting,
      { stuck: 'products' },
      'paging.page: page two of the products, 3 on each, begins with number 1 of them',
    ],
    [
      'pages of orders that are all the first',
      fitting,
      { stuck: 'orders', orders: 9 },
      'paging.page: page two of the orders, 3 on each, begins with number 1 of them',
    ],
    ['the path of the keys', fitting, { keys: { status: 404, body: {} } }, 'keys.path: it answered 404'],
    [
      'where the keys are',
      fitting,
      { keys: { status: 200, body: { codes: [] } } },
      'keys.items: a completed order has an object with codes there',
    ],
    [
      'a type of key',
      { ...fitting, keys: { ...keys, type: { path: 'type', words: { serial: 'text' } } } },
      {},
      'keys.type.path: "text/plain"',
    ],
    ['the text of a key', { ...fitting, keys: { ...keys, text: 'code' } }, {}, 'keys.text: nothing'],
  ])('%s', async (_, dialect, habits, fault) => {
    expect(faults((await checked(dialect, habits)).findings)).toContain(fault)
  })

  test('a supplier that gives the same token again is no fault, and it is said', async () => {
    const server = await supplierWith()
    server.endpoint = 'same'
    const apiKey = new Secret(`${CLIENT.id}:${CLIENT.secret}`)
    const source = { baseUrl: server.origin, dialect: fitting, apiKey, now: () => 1_767_225_601_000 }
    const findings = checkDialect(fitting, await readSample({ ...source, sleep: () => Promise.resolve() }))
    expect(of(findings, 'auth.token')).toMatchObject({ verdict: 'missing', value: expect.stringContaining('no other') })
  })
})

describe('the first order', () => {
  const body = JSON.stringify({ channel: 'wholesale', products: [{ code: 'p-1', qty: '2', price: 1.5 }], ref: 'q1.a' })
  const bought = { body, quantity: 2, currency: 'EUR', amountMinor: 300, sends: 1, keys: 2 }
  const ORDER = 'orderBody: the body stated'

  test('has words to prove only under a dialect that has such words', () => {
    expect(orderWords(standard)).toEqual([])
    expect(orderWords(fitting)).toEqual(['paths.placeOrder', 'orderBody', 'orderAnswer', 'idempotency', 'keys'])
  })

  test('proves the body, the answer, the keys and the price, and a repeat only where there was one', () => {
    expect(provenBy(fitting, bought)).toEqual({
      proven: ['paths.placeOrder', 'orderBody', 'orderAnswer', 'keys', 'price charged = price stated'],
      open: ['idempotency: it was sent once, and no repeat was answered'],
    })
    expect(provenBy(fitting, { ...bought, sends: 2 }).open).toEqual([])
  })

  test.each<[what: string, changes: Partial<typeof bought> | { amountMinor: null }, open: string]>([
    ['another amount', { amountMinor: 330 }, `${ORDER} 1.50 EUR for each of 2, and 3.30 EUR was charged`],
    ['the amount of one', { amountMinor: 150 }, `${ORDER} 1.50 EUR for each of 2, and 1.50 EUR was charged`],
    ['no amount', { amountMinor: null }, 'orderAnswer: it shows no amount at order.amount'],
    ['a key too few', { keys: 1 }, 'keys: 1 came for 2'],
    [
      'a body of another dialect',
      { body: '{"productId":"p-1","quantity":2}' },
      'orderBody: it was sent with another body',
    ],
    [
      'a price that is none',
      { body: body.replace('1.5', '"x"') },
      `${ORDER} no price for each of 2, and 3.00 EUR was charged`,
    ],
  ])('with %s says which is not proven', (_, changes, open) => {
    const judged = provenBy(fitting, { ...bought, ...changes })
    expect(judged.open).toContain(open)
    expect(judged.proven).not.toContain(open.split(':')[0])
  })
})
