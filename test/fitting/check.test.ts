/** `quayside dialect check`: the answers of a supplier, field by field, and the candidates for unreadable fields. */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { checkText } from '../../src/cli/dialect.ts'
import { type Dialect, dialectShape, putAt } from '../../src/dialect/dialect.ts'
import { checkDialect } from '../../src/fitting/check.ts'
import { readSample, type Sample } from '../../src/fitting/sample.ts'
import { type DialectFinding, isFault, type SettingVerdict } from '../../src/fitting/verdicts.ts'
import { openapiOf } from '../../src/sandbox/openapi.ts'
import { Secret } from '../../src/secret.ts'
import { run, temporaryFolder, widest } from '../support/cli-run.ts'
import { contrary, leavesOf, standard } from '../support/dialect-pair.ts'
import { wordy } from '../support/dialect-wordy.ts'
import { openSandbox } from '../support/sandbox-caller.ts'
import { refusedOrigin, sendJson, startHttp } from '../support/supplier-server.ts'

const API_KEY = 'test-api-key'

/** Facts that neither an answer to a GET nor an OpenAPI document states. */
const silent = [
  ...['headers.retryAfter', 'signature.encoding', 'signature.prefix', 'signature.separator'],
  ...['signature.timestamp', 'signature.timestampUnit', 'signature.toleranceSeconds', 'flags.inStock', 'stock'],
  ...['paging.totalFiltered', 'paging.listMax'],
  ...['idempotencyMemorySeconds', 'settleSeconds', 'listLagSeconds', 'scanGapSeconds'],
]

/** A sandbox with orders in three states and a webhook. */
async function usedAccount(dialect: Dialect) {
  const sandbox = await openSandbox({ dialect })
  onTestFinished(() => sandbox.close())
  const products = sandbox.world.offers.list({}, 0, 3).items
  sandbox.faults.add({ fault: 'failed-order' })
  for (const [place, { id }] of products.entries()) {
    await sandbox.order(`k${place}`, { productId: id, externalOrderId: `q1.shop-4f7k2m9q.${place}.1.1.1` })
  }
  await sandbox.pass(1_000)
  await sandbox.order('k9', { productId: products[0]?.id ?? '', quantity: 2 })
  const webhook = {}
  putAt(webhook, dialect.webhookRequest.url, 'https://shop.example/webhooks/supplier')
  putAt(webhook, dialect.webhookRequest.events, [dialect.event.names['order.completed']])
  await sandbox.post('/webhooks', webhook)
  return sandbox
}

const sampleOf = (baseUrl: string, dialect: Dialect, document?: unknown): Promise<Sample> =>
  readSample({
    baseUrl,
    dialect,
    apiKey: new Secret(API_KEY),
    now: () => 1_767_225_601_000,
    sleep: () => Promise.resolve(),
    ...(document === undefined ? {} : { document }),
  })

const check = async (baseUrl: string, dialect: Dialect, document?: unknown) =>
  checkDialect(dialect, await sampleOf(baseUrl, dialect, document))

const of = (findings: DialectFinding[], fact: string) => findings.find((finding) => finding.fact === fact)
const facts = (findings: DialectFinding[], ...verdicts: SettingVerdict[]): string[] =>
  findings.filter(({ verdict }) => verdicts.includes(verdict)).map(({ fact }) => fact)
const faults = (findings: DialectFinding[]): string[] => findings.filter(isFault).map(({ fact }) => fact)

/** The settings of a dialect by the names of the check. */
function settingsOf(dialect: Dialect): string[] {
  const paths = [...leavesOf(dialect).keys()].map((at) => at.replaceAll('/', '.'))
  const whole = paths.map((at) => at.replace(/^(signature\.timestamp|money\.representation|flags\.\w+)\..*/, '$1'))
  return [...new Set(whole)].filter((fact) => fact !== 'name' && fact !== 'about')
}

describe('a dialect that fits its supplier', () => {
  test.each([standard, contrary])(
    'is read in everything that an answer or a document can say ($name)',
    async (dialect) => {
      const sandbox = await usedAccount(dialect)
      const findings = await check(sandbox.baseUrl, dialect)
      expect(findings.map(({ fact }) => fact).sort()).toEqual(settingsOf(dialect).sort())
      expect(faults(findings)).toEqual([])
      expect(facts(findings, 'missing', 'no_sample')).toEqual([])
      const statuses = /^errors\..*\.status$/
      const open = facts(findings, 'not_shown').filter((fact) => !statuses.test(fact))
      expect(open.filter((fact) => !silent.includes(fact))).toEqual([])
      for (const group of ['product', 'order', 'balance'] as const) {
        const paths: Record<string, string | null> = { ...dialect[group] }
        // The path inside a key is null where a key is plain text, which can be read all the same.
        for (const key of Object.keys(paths)) {
          if (paths[key] === null && key !== 'keyText') {
            expect(of(findings, `${group}.${key}`), key).toMatchObject({ verdict: 'none' })
            continue
          }
          expect(of(findings, `${group}.${key}`), key).toMatchObject({
            verdict: 'read',
            value: expect.stringMatching(/./),
          })
        }
      }
    },
  )

  test('a new account has no orders: the check says what it could not check, and finds no fault', async () => {
    const sandbox = await openSandbox()
    onTestFinished(() => sandbox.close())
    const findings = await check(sandbox.baseUrl, standard)
    expect(faults(findings)).toEqual([])
    const unseen = facts(findings, 'no_sample')
    expect(unseen).toEqual(expect.arrayContaining(['order.id', 'order.keys', 'order.failureCode', 'webhook.id']))
    const text = checkText({ dialect: 'd', supplier: 's', findings, products: [] }, 80)
    expect(text.replaceAll(/\s+/g, ' ')).toContain(
      'No order yet: these fields could not be checked order.id, order.ext',
    )
    expect(text).toContain('No webhook yet: these fields could not be checked')
    expect(text).toMatch(/ facts fit, 0 are wrong\.\n$/)
  })
})

describe('a dialect that does not fit', () => {
  /** Facts that only a request of the dialect itself can show, not the recorded answers. */
  const byRequest = /^(paging\.(page|limit|first|limitMax)|orders\.\w+|headers\.apiKey|openapiNeedsKey)$/

  test('every wrong setting that an answer shows is found, and the right path is named', async () => {
    const sandbox = await usedAccount(standard)
    const sample = await sampleOf(sandbox.baseUrl, standard, {})
    const shown = facts(checkDialect(standard, sample), 'read').filter((fact) => !byRequest.test(fact))
    expect(shown.length).toBeGreaterThan(50)
    const unseen: string[] = []
    const unnamed: string[] = []
    for (const fact of shown.filter((one) => !one.startsWith('orderStatuses.'))) {
      const [right, wrong] = [settingAt(standard, fact), settingAt(contrary, fact)]
      if (JSON.stringify(right) === JSON.stringify(wrong)) continue
      const findings = checkDialect(withSetting(standard, fact, wrong), sample)
      const noticed = findings.filter((one) => isFault(one) || one.verdict === 'missing')
      if (noticed.length === 0 && !expectedNull(wrong, findings, fact)) unseen.push(fact)
      const record = /^(product|order|balance)\.(?!keyText)/.test(fact) && typeof wrong === 'string'
      const named = of(findings, fact)?.candidates?.map((one) => one.path) ?? []
      if (record && !named.includes(String(right))) unnamed.push(`${fact}: ${named}`)
    }
    // A supplier may know more events, and take more units, than the dialect says.
    expect({ unseen, unnamed }).toEqual({ unseen: ['event.names.order.completed', 'quantityMax'], unnamed: [] })
  })

  test.each([
    [standard, contrary],
    [contrary, standard],
  ])('all of it at once: the lists and records are found all the same ($name)', async (dialect, theirs) => {
    const sandbox = await usedAccount(theirs)
    const findings = await check(sandbox.baseUrl, dialect, {})
    expect(facts(findings, 'read')).toEqual([])
    expect(of(findings, 'headers.apiKey')?.value).toContain(theirs.headers.apiKey)
    expect(of(findings, 'openapiNeedsKey')).toMatchObject({ verdict: 'not_shown' })
    const named = (fact: string) => of(findings, fact)?.candidates?.[0]?.path
    expect(named('envelope.data')).toBe(theirs.envelope.data)
    for (const fact of ['product.id', 'product.sku', 'product.name', 'product.cost', 'product.available']) {
      expect(named(fact), fact).toBe(settingAt(theirs, fact))
    }
    for (const fact of ['order.id', 'order.externalOrderId', 'order.quantity', 'order.status', 'balance.amount']) {
      expect(named(fact), fact).toBe(settingAt(theirs, fact))
    }
  })

  test('a value in another writing is shown with the setting that would read it', async () => {
    const sandbox = await usedAccount(contrary)
    const wrong: Dialect = {
      ...contrary,
      money: { ...contrary.money, representation: 'decimal' },
      instants: 'iso',
      flags: { ...contrary.flags, available: null },
      orderStatuses: { FRESH: 'open' },
      order: { ...contrary.order, keyText: null },
    }
    const findings = await check(sandbox.baseUrl, wrong, {})
    expect(of(findings, 'product.cost')).toMatchObject({
      verdict: 'unreadable',
      hint: 'money.representation: "number" (1899 JPY) or "minor" (1899 JPY) would read it',
    })
    expect(of(findings, 'product.updatedAt')?.hint).toContain('instants: "epoch_ms"')
    expect(of(findings, 'product.available')?.hint).toContain('flags.available: {"yes": true, "no": false}')
    expect(of(findings, 'orderStatuses.SERVED')).toMatchObject({ verdict: 'differs', dialect: null })
    expect(faults(findings)).toContain('orderStatuses.BROKEN')
    // With these words no order counts as completed, so no key is checked.
    expect(of(findings, 'order.keys')).toMatchObject({ verdict: 'no_sample', value: 'no completed order yet' })
    const keyText = await check(sandbox.baseUrl, { ...contrary, order: { ...contrary.order, keyText: null } }, {})
    expect(of(keyText, 'order.keyText')).toMatchObject({ candidates: [{ path: 'letters', value: 'a text' }] })
  })

  test('keys of other types are judged by what the dialect says that they are', async () => {
    const sandbox = await usedAccount(standard)
    const typed = (keys: object, order = {}) =>
      check(sandbox.baseUrl, dialectShape.parse({ ...standard, order: { ...standard.order, ...order }, keys }), {})
    expect(of(await typed({ path: null }), 'keys.text')).toMatchObject({ verdict: 'read', value: 'what each key is' })
    const pictures = of(await typed({ path: null, type: 'image' }), 'keys.text')
    expect(pictures).toMatchObject({ verdict: 'unreadable', value: 'a text that is no base64' })
    const later = await typed({ path: '/orders/{id}/keys' }, { keys: '' })
    expect(of(later, 'keys.path')).toMatchObject({ verdict: 'differs', value: 'it answered 404' })
    expect(faults(later)).toEqual(['keys.path'])
  })

  test('an amount with an exponent is never read without it', async () => {
    const representation = { amount: 'amount', exponent: 'exponent', counts: 'decimals' } as const
    const theirs: Dialect = { ...standard, money: { ...standard.money, representation } }
    const sandbox = await usedAccount(theirs)
    const plain = await check(sandbox.baseUrl, standard, {})
    const read = `money.representation: ${JSON.stringify(representation)} (18.99 EUR) would read it`
    expect(of(plain, 'product.cost')).toMatchObject({ verdict: 'unreadable', hint: read })
    const minor: Dialect = {
      ...standard,
      money: { ...standard.money, representation: 'minor' },
      product: { ...standard.product, cost: 'api_price.amount' },
    }
    expect(of(await check(sandbox.baseUrl, minor, {}), 'product.cost')).toMatchObject({
      verdict: 'unreadable',
      hint: `it has an exponent next to it: product.cost: api_price and ${read}`,
    })
    expect(of(await check(sandbox.baseUrl, theirs, {}), 'product.cost')).toMatchObject({
      verdict: 'read',
      value: 'an object with amount, exponent = 18.99 EUR',
    })
  })

  test('a refused page size is distinguished from unknown parameters', async () => {
    const sandbox = await openSandbox()
    onTestFinished(() => sandbox.close())
    const large: Dialect = { ...standard, paging: { ...standard.paging, limitMax: 500 } }
    const findings = await check(sandbox.baseUrl, large, {})
    expect(of(findings, 'paging.limitMax')?.value).toBe('asked for 500, it answered 400; 20 is taken')
    expect(of(findings, 'paging.page')).toMatchObject({ verdict: 'read' })
    const unknown: Dialect = { ...standard, paging: { ...standard.paging, limit: 'size' } }
    expect(of(await check(sandbox.baseUrl, unknown, {}), 'paging.limit')?.value).toContain(
      'only without page=1 and size=20',
    )
  })

  test('shows no licence key and no secret, wherever the paths lead', async () => {
    const sandbox = await usedAccount(standard)
    const keys = sandbox.world.orders.known(10).flatMap(({ id }) => sandbox.world.orders.keysOf(id))
    expect(keys.length).toBeGreaterThan(1)
    const paths = ['keys', 'status', 'nowhere', 'id', 'external_order_id']
    for (const at of paths) {
      const order = {
        ...standard.order,
        keys: at,
        status: 'keys',
        failureCode: 'keys',
        externalOrderId: at,
        amount: at,
      }
      const findings = await check(
        sandbox.baseUrl,
        { ...standard, order, webhook: { ...standard.webhook, url: at } },
        {},
      )
      const said = JSON.stringify(findings) + checkText({ dialect: 'd', supplier: 's', findings, products: [] }, 80)
      for (const key of [...keys, API_KEY]) expect(said).not.toContain(key)
    }
  })
})

/** A hand-written supplier that fits none of our dialects. */
function strangeSupplier(changes: { clamp?: number; document?: object; orders?: number; stuck?: true } = {}) {
  const words = ['yes', 'no']
  const products = Array.from({ length: 137 }, (_, place) => ({
    productNo: 5_000 + place,
    article: `ART-${place}`,
    caption: `Product ${place}`,
    prices: { net: { amount: `${place + 1}.50` }, list: { amount: '99.00' } },
    available: words[place % 2],
    pieces: place,
  }))
  type Order = (typeof orders)[number]
  const orders = [
    {
      no: 'o-1',
      customer_reference: 'q1.a',
      productNo: 5_001,
      units: 1,
      state: 'DONE',
      charged: '2.50',
      serials: ['K'],
    },
    {
      no: 'o-2',
      customer_reference: null,
      productNo: 5_002,
      units: 3,
      state: 'WAITING',
      charged: '10.50',
      serials: [],
    },
  ]
  for (let no = 3; no <= (changes.orders ?? 0); no += 1) orders.push({ ...orders[1], no: `o-${no}` } as Order)
  return startHttp(({ url, headers }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://supplier')
    const answer = (status: number, body: object) => sendJson(response, status, body, { 'x-request-id': 'r' })
    if (headers['x-api-key'] !== API_KEY) return answer(401, { error: { code: 'no_key', message: 'Who are you?' } })
    const [, , kind, id] = pathname.split('/')
    if (kind === 'balance') return answer(200, { data: { deposit: '1000.00' } })
    if (kind === 'webhooks') return answer(200, { data: { items: [] } })
    if (kind === 'openapi' && changes.document) return answer(200, changes.document)
    const rows: Record<string, unknown>[] = kind === 'products' ? products : kind === 'orders' ? orders : []
    if (id !== undefined) {
      const found = rows.find((row) => String(row.productNo ?? row.no) === id || row.no === id)
      return found ? answer(200, { data: found }) : answer(404, { error: { code: 'gone_away', message: 'No.' } })
    }
    if (rows.length === 0) return answer(404, { error: { code: 'gone_away', message: 'No.' } })
    const page = Number(searchParams.get('page') ?? 1)
    const limit = Math.min(Number(searchParams.get('limit') ?? 20), changes.clamp ?? 1_000)
    const isStuck = changes.stuck && kind === 'orders'
    const from = isStuck ? 0 : Number(searchParams.get('offset') ?? (page - 1) * limit)
    answer(200, { data: { items: rows.slice(from, from + limit), total: rows.length } })
  })
}

/** The default dialect, unchanged. */
const begun: Dialect = { ...standard, envelope: { success: null, data: 'data' } }

describe('a supplier with a foreign implementation', () => {
  test('gets GETs only, and its answers are shown', async () => {
    const supplier = await strangeSupplier()
    onTestFinished(() => supplier.close())
    const findings = await check(`${supplier.origin}/v1`, begun)
    expect(new Set(supplier.heard.map(({ method }) => method))).toEqual(new Set(['GET']))
    expect(supplier.heard.length).toBeLessThan(25)
    expect(of(findings, 'product.available')).toMatchObject({
      verdict: 'unreadable',
      value: '"yes" is not yes or no as the dialect says',
      hint: 'flags.available: {"yes": true, "no": false} would read it',
    })
    const meant = (fact: string) => of(findings, fact)?.candidates?.map((one) => one.path)
    expect(meant('product.id')?.[0]).toBe('productNo')
    expect(meant('product.sku')).toContain('article')
    expect(meant('product.cost')).toContain('prices.net.amount')
    expect(meant('order.externalOrderId')).toContain('customer_reference')
    expect(meant('order.status')).toContain('state')
    expect(of(findings, 'errors.not_found.codes')).toMatchObject({
      verdict: 'differs',
      value: expect.stringMatching(/gone_away/),
    })
    expect(of(findings, 'errors.unauthenticated.codes')).toMatchObject({ verdict: 'differs' })
  })

  test('that cuts larger pages, ignores a filter or counts pages from 0 is found out', async () => {
    const supplier = await strangeSupplier({ clamp: 50 })
    onTestFinished(() => supplier.close())
    const baseUrl = `${supplier.origin}/v1`
    const order = { ...standard.order, id: 'no', externalOrderId: 'customer_reference' }
    const findings = await check(baseUrl, { ...begun, order })
    expect(of(findings, 'paging.limitMax')).toMatchObject({
      verdict: 'differs',
      value: 'asked for 100, 50 came, of 137',
    })
    expect(of(findings, 'orders.externalOrderId')).toMatchObject({
      verdict: 'differs',
      hint: expect.stringMatching(/ignores it/),
    })
    expect(of(findings, 'paging.first')).toMatchObject({ verdict: 'read' })
    const paging = { ...begun.paging, limitMax: 50 }
    expect(of(await check(baseUrl, { ...begun, paging }), 'paging.limitMax')).toMatchObject({ verdict: 'read' })
    const other = { ...begun.paging, page: 'p', limitMax: 50 }
    expect(of(await check(baseUrl, { ...begun, paging: other }), 'paging.first')).toMatchObject({
      verdict: 'differs',
      hint: expect.stringContaining('does not know the parameter p'),
    })
  })
})

describe('the second page', () => {
  const order = { ...standard.order, id: 'no', externalOrderId: 'customer_reference' }
  const product = { ...standard.product, id: 'productNo' }
  const judged = async (paging: Partial<Dialect['paging']>, changes: Parameters<typeof strangeSupplier>[0] = {}) => {
    const supplier = await strangeSupplier({ orders: 9, ...changes })
    onTestFinished(() => supplier.close())
    return check(`${supplier.origin}/v1`, { ...begun, order, product, paging: { ...begun.paging, ...paging } })
  }

  test.each([0, 1])('is found to overlap the first where paging.page counts records, from %i', async (first) => {
    expect(of(await judged({ page: 'offset', first }), 'paging.page')).toMatchObject({
      verdict: 'differs',
      value: expect.stringMatching(/^page two of the products, 3 on each, begins with number [23] of them$/),
      hint: expect.stringContaining('offset counts records'),
    })
    expect(of(await judged({}), 'paging.page')).toMatchObject({ verdict: 'read' })
  })

  test('of the orders is compared too: their list may ignore its page', async () => {
    expect(of(await judged({}, { stuck: true }), 'paging.page')).toMatchObject({
      verdict: 'differs',
      value: 'page two of the orders, 3 on each, begins with number 1 of them',
      hint: expect.stringContaining('stays unknown'),
    })
  })
})

describe('the filter by reference', () => {
  const judged = async (account: Awaited<ReturnType<typeof usedAccount>>) =>
    of(await check(account.baseUrl, standard), 'orders.externalOrderId')

  test('works where it finds an existing order', async () => {
    expect(await judged(await usedAccount(standard))).toMatchObject({ verdict: 'read', value: 'it works' })
  })

  test('that finds no order is wrong, although it finds none for an unknown reference', async () => {
    const account = await usedAccount(standard)
    account.faults.add({ fault: 'filter-misses', times: 10 })
    expect(await judged(account)).toMatchObject({
      verdict: 'differs',
      value: 'an order that is there was not found by it',
      hint: expect.stringContaining('null lets Quayside page through'),
    })
  })

  test('that finds another order is wrong', async () => {
    const account = await usedAccount(standard)
    const sample = await sampleOf(account.baseUrl, standard)
    const mixed = sample.filters.map((one) => (one.reference === undefined ? one : { ...one, reference: 'q1.another' }))
    expect(of(checkDialect(standard, { ...sample, filters: mixed }), 'orders.externalOrderId')).toMatchObject({
      verdict: 'differs',
    })
  })

  test('is not proven where no order carries a reference', async () => {
    const sandbox = await openSandbox({ dialect: standard })
    onTestFinished(() => sandbox.close())
    const none = of(await check(sandbox.baseUrl, standard), 'orders.externalOrderId')
    expect(none?.verdict).not.toBe('read')
    const [product] = sandbox.world.offers.list({}, 0, 1).items
    const request = { productId: product?.id ?? '', quantity: 1, externalOrderId: null }
    sandbox.world.orders.place('k', 'k', request)
    expect(of(await check(sandbox.baseUrl, standard), 'orders.externalOrderId')).toMatchObject({
      verdict: expect.stringMatching(/no_sample|documented/),
    })
  })
})

describe('the document of a supplier', () => {
  test('gives no findings without exact statements, and its sentences are not read', async () => {
    const prose = {
      openapi: '3.1.0',
      info: { title: 'Sold by cents', version: '1' },
      paths: {
        '/products': {
          get: { description: 'limit: at most 7 a page. Prices are numbers in price.cents.', responses: {} },
        },
        '/orders': { post: { description: 'Send product_number. The key is remembered for 3 days.', responses: {} } },
      },
    }
    const sandbox = await usedAccount(standard)
    const sample = await sampleOf(sandbox.baseUrl, standard, prose)
    for (const document of [
      prose,
      undefined,
      'text',
      {},
      { paths: { '/orders': 7 } },
      { openapi: '3.1.0', paths: {} },
    ]) {
      const findings = checkDialect(standard, { ...sample, document })
      expect(faults(findings)).toEqual([])
      expect(facts(findings, 'documented')).toEqual([])
    }
  })

  test('counts for facts that no answer shows: words, bounds and names in requests', async () => {
    const sandbox = await openSandbox()
    onTestFinished(() => sandbox.close())
    const sample = await sampleOf(sandbox.baseUrl, standard, openapiOf(contrary))
    const findings = checkDialect(standard, sample)
    const { orderStatuses } = contrary
    const worded = checkDialect(standard, { ...sample, document: openapiOf({ ...standard, orderStatuses }) })
    expect(of(worded, 'orderStatuses.SERVED')).toMatchObject({ verdict: 'differs', dialect: null })
    expect(of(worded, 'orderStatuses.failed')).toMatchObject({ verdict: 'differs', dialect: 'failed' })
    expect(of(findings, 'orderRequest.productId')?.value).toBe('the document lists article, pieces, your_ref')
    expect(of(findings, 'orderRequired')?.value).toBe('the document requires article, pieces, your_ref')
    expect(of(findings, 'headers.idempotencyKey')?.value).toContain('x-once')
    expect(of(findings, 'product.cost'), 'an answer has the last word').toMatchObject({ verdict: 'read' })
    const bounds = openapiOf({ ...standard, quantityMax: 5, paging: { ...standard.paging, limitMax: 7 } })
    const bounded = checkDialect(standard, { ...sample, document: bounds })
    expect(of(bounded, 'paging.limitMax')).toMatchObject({ verdict: 'differs', value: 'the document says 7' })
  })

  test('may have references that lead in circles', () => {
    const loop = { $ref: '#/components/schemas/Loop' }
    const tree = { type: 'object', properties: { child: { $ref: '#/components/schemas/Tree' } } }
    const content = { 'application/json': { schema: { $ref: '#/components/schemas/Tree' } } }
    const get = { responses: { 200: { content }, 400: loop } }
    const document = { components: { schemas: { Loop: loop, Tree: tree } }, paths: { '/orders/{id}': { get } } }
    const answer = { request: 'GET /', status: 500, headers: {}, json: undefined }
    const nothing = {
      products: answer,
      absent: answer,
      keyless: answer,
      balance: answer,
      webhooks: answer,
      orders: answer,
    }
    const sample: Sample = {
      now: 0,
      keyHeader: 'x',
      limit: 1,
      refused: undefined,
      order: [],
      filters: [],
      document,
      ...nothing,
    }
    expect(checkDialect(standard, sample).length).toBeGreaterThan(100)
  })
})

describe('quayside dialect check', () => {
  async function configFor(baseUrl: string) {
    const folder = temporaryFolder()
    const config = path.join(folder, 'quayside.json')
    const stores = [{ id: 'main-k3j9x2p7', kind: 'backend', name: 'Main', callbackUrl: 'http://127.0.0.1:9/' }]
    writeFileSync(config, JSON.stringify({ supplier: { baseUrl }, stores }))
    const key = Buffer.alloc(32, 'kek').toString('base64')
    return { config, folder, env: { QUAYSIDE_API_KEY: API_KEY, QUAYSIDE_KEY_ENCRYPTION_KEY: key } }
  }

  test('ends with 0 and shows what was read, within 80 columns', async () => {
    const sandbox = await usedAccount(standard)
    const { config, env } = await configFor(sandbox.baseUrl)
    const { exitCode, stdout, stderr } = await run(['dialect', 'check', '--config', config], { env, terminal: true })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(/^FACT +DIALECT +READ$/m)
    expect(stdout).toMatch(/^product\.cost +api_price +"18\.99"$/m)
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
      'money rests on these stock (promise), idempotencyMemorySeconds (86,400)',
    )
    expect(stdout).toMatch(/^3 products as Quayside reads them\. Are name, cost and stock right\?\nNAME +COST +STOCK$/m)
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    const charged = sandbox.world.orders.known(100).length
    expect(charged, 'nothing was bought').toBe(4)
  })

  test('ends with 1 and names what is wrong and what could be meant, on a screen and as JSON', async () => {
    const sandbox = await usedAccount(contrary)
    const { config, env, folder } = await configFor(sandbox.baseUrl)
    const argv = ['dialect', 'check', '--config', config]
    const { exitCode, stdout } = await run(argv, { env, terminal: true })
    expect(exitCode).toBe(1)
    expect(stdout).toMatch(
      /^ {2}product\.cost \(api_price\)\n {4}nothing is there\n {4}-> could be price\.vip {2}1899$/m,
    )
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    const saved = path.join(folder, 'openapi.json')
    writeFileSync(saved, JSON.stringify(openapiOf(contrary)))
    const json = await run([...argv, '--json', '--document', saved], { env })
    const result = JSON.parse(json.stdout) as { fits: boolean; findings: DialectFinding[] }
    expect(result).toMatchObject({ dialect: 'reseller-v1.1', supplier: sandbox.baseUrl, fits: false })
    expect(of(result.findings, 'paging.limitMax')).toMatchObject({ dialect: 100 })
    const named = await run([...argv, '--json', '--dialect', 'contrary'], { env })
    expect(JSON.parse(named.stdout)).toMatchObject({ dialect: 'contrary', fits: true })
  })

  test('needs no configuration: an address, a key and a dialect are enough', async () => {
    const sandbox = await usedAccount(contrary)
    const folder = temporaryFolder()
    const file = path.join(folder, 'key.txt')
    writeFileSync(file, `${API_KEY}\n`)
    const argv = ['dialect', 'check', '--json', '--base-url', sandbox.baseUrl]
    const env = { QUAYSIDE_CONFIG: '/nowhere.json' }
    const fits = await run([...argv, '--api-key-file', file, '--dialect', 'contrary'], { env })
    expect(JSON.parse(fits.stdout)).toMatchObject({ dialect: 'contrary', fits: true, products: [{}, {}, {}] })
    const begun = await run(argv, { env: { ...env, QUAYSIDE_API_KEY: API_KEY } })
    expect(JSON.parse(begun.stdout)).toMatchObject({ dialect: 'reseller-v1.1', fits: false, products: [] })
    expect(await run(argv, { env })).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--api-key-file') })
    const wrong = await run(['dialect', 'check', '--base-url', 'supplier.example', '--api-key-file', file], { env })
    expect(wrong.exitCode).toBe(2)
  })

  test('names the address and the next step where the supplier does not answer', async () => {
    const baseUrl = `${await refusedOrigin()}/v1`
    const { config, env } = await configFor(baseUrl)
    const { exitCode, stderr } = await run(['dialect', 'check', '--config', config], { env, terminal: true })
    expect(exitCode).toBe(1)
    expect(stderr.replaceAll(/\s+/g, ' ')).toBe(
      `quayside: ${baseUrl}: GET /balance: no answer (ECONNREFUSED). Check the address (supplier.baseUrl in the ` +
        'configuration), and that this machine may connect to it. More: docs/troubleshooting.md#unreachable ',
    )
    expect(widest(stderr)).toBeLessThanOrEqual(80)
  })

  test('with a key that lacks a part says that the key is wrong: it doubted the connection', async () => {
    const folder = temporaryFolder()
    const [key, file] = [path.join(folder, 'key.txt'), path.join(folder, 'wordy.json')]
    writeFileSync(key, 'only-an-id\n')
    writeFileSync(file, JSON.stringify({ ...wordy, auth: { kind: 'basic' } }))
    const address = ['--base-url', 'https://supplier.example/api', '--api-key-file', key]
    const { stderr } = await run(['dialect', 'check', ...address, '--dialect', file])
    expect(stderr).toContain('must be id:secret')
    expect(stderr).toContain('the key (--api-key-file')
    expect(stderr).not.toContain('connect')
  })

  test('says why nothing can be checked', async () => {
    const sandbox = await openSandbox()
    onTestFinished(() => sandbox.close())
    const { config, env } = await configFor(sandbox.baseUrl)
    const refused = await run(['dialect', 'check', '--config', config], {
      env: { ...env, QUAYSIDE_API_KEY: 'another-key' },
    })
    expect(refused.exitCode).toBe(1)
    expect(refused.stderr).toContain('GET /balance answered 401')
    expect(refused.stderr).not.toContain('another-key')
    const unread = await run(['dialect', 'check', '--config', config, '--document', '/nowhere'], { env })
    expect(unread).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('/nowhere') })
    const none = await run(['dialect', 'check', '--config', '/nowhere.json'], { env })
    expect(none.exitCode).not.toBe(0)
  })
})

function settingAt(dialect: Dialect, fact: string): unknown {
  const names = fact.startsWith('event.names.') ? ['event', 'names', fact.slice(12)] : fact.split('.')
  return names.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], dialect)
}

function withSetting(dialect: Dialect, fact: string, value: unknown): Dialect {
  const copy = structuredClone(dialect) as unknown as Record<string, unknown>
  putAt(copy, fact, value)
  return copy as unknown as Dialect
}

/** A null is no fault: the dialect then says that the supplier has no such thing, and the check what is there. */
const expectedNull = (value: unknown, findings: DialectFinding[], fact: string): boolean =>
  value === null && (of(findings, fact)?.candidates ?? []).length > 0
