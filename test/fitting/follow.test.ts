/** A made-up supplier: what `dialect check` says is done, again and again, until it finds nothing wrong. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Dialect, dialectShape, putAt, valueAt } from '../../src/dialect/dialect.ts'
import { checkDialect } from '../../src/fitting/check.ts'
import { readSample } from '../../src/fitting/sample.ts'
import { type DialectFinding, isFault } from '../../src/fitting/verdicts.ts'
import { Secret } from '../../src/secret.ts'
import type { StatedOrder } from '../support/changed-answers.ts'
import { standard } from '../support/dialect-pair.ts'
import { openSandbox } from '../support/sandbox-caller.ts'
import { sendJson, startHttp } from '../support/supplier-server.ts'
import { openTestApp } from '../support/test-app.ts'

const MINUTE = 60_000

/** It has words of its own, and neither a tier nor limits, a count of its lists, or an id of a request in its errors. */
const theirs: Dialect = {
  ...standard,
  name: 'made-up',
  headers: { ...standard.headers, apiKey: 'x-caller-key' },
  error: { ...standard.error, code: 'fault.word', message: 'fault.says' },
  errors: {
    ...standard.errors,
    not_found: { codes: ['NO_SUCH_THING'], status: 410 },
    unauthenticated: { codes: ['WHO_ARE_YOU'], status: 403 },
  },
  money: { ...standard.money, representation: 'number' },
  flags: { ...standard.flags, available: { yes: true, no: false } },
  instants: 'epoch_s',
  paging: { ...standard.paging, items: 'list', total: null, limitMax: 50 },
  orders: { ...standard.orders, from: null, to: null },
  product: {
    ...standard.product,
    id: 'nr',
    sku: 'article',
    name: 'caption',
    category: null,
    cost: 'price.net',
    basePrice: null,
    cashback: null,
    origin: null,
    available: 'buyable',
  },
  order: { ...standard.order, id: 'order_nr', status: 'state', amount: 'sum', failureCode: null, failureMessage: null },
  balance: { ...standard.balance, amount: 'summa.amount', tier: null, requestsPerMinute: null, quantityMax: null },
}

/** The ids of products are in capitals in its orders, quantities are text. */
function stated(order: StatedOrder & { product_id?: string }): void {
  order.product_id = order.product_id?.toUpperCase() ?? ''
  ;(order as { quantity: unknown }).quantity = String(order.quantity)
}

/** The supplier for the check: each kind of answer is a 503 at first, and there are no webhooks and no rate-limit headers. */
async function startSupplier(): Promise<string> {
  const sandbox = await openSandbox({ dialect: theirs })
  onTestFinished(() => sandbox.close())
  const { origin, pathname } = new URL(sandbox.baseUrl)
  const failed = new Set<string>()
  const server = createServer(async ({ url = '', headers }, response) => {
    const kind = url.replace(/\?.*/, '')
    if (!failed.has(kind)) {
      failed.add(kind)
      return response.writeHead(503).end('busy')
    }
    if (kind.endsWith('/webhooks') || kind.endsWith('/openapi')) return response.writeHead(404).end('no such page')
    const key = headers['x-caller-key']
    const answer = await fetch(`${origin}${url}`, { headers: key === undefined ? {} : { 'x-caller-key': String(key) } })
    const json = (await answer.json()) as { data?: StatedOrder & { list?: StatedOrder[] } }
    if (kind.startsWith(`${pathname}/orders`)) for (const one of json.data?.list ?? [json.data]) if (one) stated(one)
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const [one, two, three, four] = sandbox.world.offers.list({}, 0, 4).items
  for (const [place, offer] of [one, two, three, four].entries()) {
    await sandbox.order(`k${place}`, { productId: offer?.id ?? '', externalOrderId: `q1.shop.${place}` })
  }
  await sandbox.pass(1_000)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`
}

const check = async (baseUrl: string, dialect: Dialect): Promise<DialectFinding[]> => {
  const now = () => 1_767_225_601_000
  const sleep = () => Promise.resolve()
  return checkDialect(dialect, await readSample({ baseUrl, dialect, apiKey: new Secret('test-api-key'), now, sleep }))
}

/** Does what a finding says, and nothing that it does not say. */
function follow(dialect: Dialect, { fact, hint = '', candidates = [], value = '' }: DialectFinding): Dialect {
  const settings: [fact: string, to: unknown][] = [...hint.matchAll(/(\w+(?:\.\w+)*): (null|"[^"]*"|\{.*?\})/g)].map(
    ([, setting = '', to = '']) => [setting, JSON.parse(to)],
  )
  const to = /^put it to ([^:]+)/.exec(hint)?.[1]
  if (to !== undefined) settings.push([fact, JSON.parse(to)])
  const [first] = candidates
  if (settings.length === 0 && first) settings.push([fact, first.path])
  if (settings.length === 0 && hint.startsWith('null ')) settings.push([fact, null])
  const code = /answered "(\w+)" with/.exec(value)?.[1]
  if (hint.includes('put the code') && code) settings.push([fact, [...(valueAt(dialect, fact) as string[]), code]])
  if (settings.length === 0) throw new Error(`no cure: ${fact}: ${value} ${hint}`)
  const next = structuredClone(dialect)
  for (const [setting, value] of settings) putAt(next, setting, value)
  return dialectShape.parse(next)
}

test('whose ids are in capitals and whose quantities are text is connected by following `dialect check` alone', async () => {
  const baseUrl = await startSupplier()
  let dialect: Dialect = { ...standard, name: 'followed' }
  let faults: DialectFinding[] = []
  for (let round = 1; round <= 40; round += 1) {
    faults = (await check(baseUrl, dialect)).filter(isFault)
    const [fault] = faults
    if (!fault) break
    dialect = follow(dialect, fault)
  }
  expect(faults).toEqual([])

  const app = await openTestApp({ dialect, sandboxDialect: theirs, stated })
  const orderIds = [await app.buy('1001'), await app.buy('1002', { quantity: 2 })]
  await app.pass(2 * MINUTE)
  expect(await Promise.all(orderIds.map(app.state))).toEqual(['fulfilled', 'fulfilled'])
  app.expectLedger({ charges: 2, keys: 3 })
  expect(await app.alerts()).toEqual([])
})

test('every finding that something is wrong or missing has a cure, and none that the dialect refuses', async () => {
  const findings = (await check(await startSupplier(), standard)).filter(
    (one) => isFault(one) || one.verdict === 'missing',
  )
  expect(findings.length).toBeGreaterThan(10)
  for (const finding of findings) {
    const { fact, hint = '', candidates = [] } = finding
    expect(hint + candidates.map(({ path }) => path).join(), `the cure of ${fact}`).toMatch(/./)
    if (hint.startsWith('null ')) expect(() => follow(standard, { ...finding, candidates: [] }), fact).not.toThrow()
  }
  const of = (fact: string) => findings.find((one) => one.fact === fact)
  expect(of('headers.rateLimit')?.hint).toBe('leave it, if the supplier has no such thing')
  for (const fact of ['balance.tier', 'balance.quantityMax', 'paging.total']) {
    const { hint, candidates = [] } = of(fact) ?? {}
    expect({ hint, candidates }, fact).toEqual({ hint: 'null lets Quayside do without it', candidates: [] })
  }
})

test('a supplier that answers 503 again and again is not called wrong: the check ends and names the request', async () => {
  const supplier = await startHttp((_heard, response) => sendJson(response, 503, {}))
  onTestFinished(() => supplier.close())
  await expect(check(`${supplier.origin}/v1`, standard)).rejects.toThrow(
    'GET /balance answered 503, three times: check again later',
  )
})

describe('a supplier that cannot be sold from', () => {
  /** A page follows the one before by a cursor, and a number of a page is ignored. */
  const rows = (what: string, count: number, record: (n: number) => object) =>
    Array.from({ length: count }, (_, n) => ({ id: `${what}-${n}`, ...record(n) }))
  const product = (n: number) => ({ sku: `S-${n}`, name: `Game ${n}`, api_price: '9.00', available: true })
  const PNG = Buffer.from('\x89PNG\r\n\x1a\n and so on', 'latin1').toString('base64')

  async function startOther(keys: unknown): Promise<DialectFinding[]> {
    const order = (n: number) => ({
      ...{ external_order_id: `q1.shop.${n}`, product_id: 'product-1', quantity: 1, amount: '9.00', currency: 'EUR' },
      ...{ status: 'completed', keys, created_at: '2025-12-31T00:00:00Z', updated_at: '2025-12-31T00:00:00Z' },
    })
    const lists: Record<string, object[]> = { products: rows('product', 9, product), orders: rows('order', 9, order) }
    const supplier = await startHttp(({ url, headers }, response) => {
      const { pathname, searchParams } = new URL(url, 'http://supplier')
      const [, , kind = '', id] = pathname.split('/')
      const answer = (status: number, body: object) => sendJson(response, status, body)
      const refuse = (status: number, code: string) =>
        answer(status, { success: false, error: { code, message: '' }, request_id: 'r' })
      if (headers['x-api-key'] === undefined) return refuse(401, 'unauthorized')
      if (kind === 'balance') return answer(200, { success: true, data: { balance: '100.00', currency: 'EUR' } })
      const list = lists[kind]
      if (!list) return refuse(404, 'not_found')
      const found = list.find((one) => 'id' in one && one.id === id)
      if (id !== undefined) return found ? answer(200, { success: true, data: found }) : refuse(404, 'not_found')
      const from = Number(searchParams.get('cursor') ?? 0)
      const items = list.slice(from, from + Number(searchParams.get('limit') ?? 20))
      answer(200, { success: true, data: { items, total: list.length, next_cursor: String(from + items.length) } })
    })
    onTestFinished(() => supplier.close())
    return (await check(`${supplier.origin}/v1`, standard)).filter(isFault)
  }

  test('is refused where its pages follow a cursor', async () => {
    const findings = await startOther(['AAAAA-BBBBB-CCCC1'])
    expect(findings.find(({ fact }) => fact === 'paging.page')).toMatchObject({
      value: 'page two of the orders, 3 on each, begins with number 1 of them',
    })
  })

  test.each([
    ['are pictures', [{ type: 'IMAGE', content: PNG }]],
    ['are at a second address', [{ type: 'TEXT', href: '/codes/1' }]],
    ['are pictures in place of a text', [PNG]],
  ])('is refused where its keys %s, and no other text of them is offered', async (_, keys) => {
    const finding = (await startOther(keys)).find(({ fact }) => fact === 'order.keyText')
    expect(finding).toMatchObject({
      verdict: 'unreadable',
      candidates: [],
      hint: expect.stringContaining('cannot be sold'),
    })
  })

  test('is refused where its completed orders have no keys', async () => {
    const finding = (await startOther([])).find(({ fact }) => fact === 'order.keys')
    expect(finding).toMatchObject({ verdict: 'unreadable', value: 'a completed order has an empty list there' })
  })
})
