import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SandboxOptions } from '../../src/sandbox/server.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { startCheckedSandbox } from '../support/checked-sandbox.ts'
import { type Answers, run, startService, temporaryFolder, widest } from '../support/cli-run.ts'
import { dialect, refusedOrigin, sendJson, startHttp } from '../support/supplier-server.ts'

const API_KEY = 'key-of-the-reseller-0123456789'
const KEY = Buffer.from('0123456789abcdef0123456789abcdef')

const healthy: Answers = {
  'GET /status': () => ({}),
  'GET /webhooks': () => ({ items: [], next: null }),
  'GET /livez': () => ({ status: 'alive' }),
}

/** A whole set-up: the sandbox as the supplier, a service, a store's backend, and the files that lead to them. */
async function startSetUp(changes: { answers?: Answers; sandbox?: Partial<SandboxOptions>; config?: object } = {}) {
  const sandbox = await startCheckedSandbox({ dialect, apiKey: API_KEY, automatic: false, ...changes.sandbox })
  onTestFinished(() => sandbox.close())
  const service = await startService({ ...healthy, ...changes.answers })
  const store = await startHttp((_heard, response) => sendJson(response, 200, {}))
  onTestFinished(() => store.close())
  const { hostname: host, port } = new URL(service.origin)
  const folder = temporaryFolder()
  const secrets = path.join(folder, 'secrets')
  mkdirSync(secrets, { mode: 0o700 })
  writeFileSync(path.join(secrets, 'api-key'), API_KEY, { mode: 0o600 })
  writeFileSync(path.join(secrets, 'key-encryption-key'), KEY.toString('base64'), { mode: 0o600 })
  const config = path.join(folder, 'quayside.json')
  writeFileSync(
    config,
    JSON.stringify({
      supplier: { baseUrl: sandbox.baseUrl },
      stores: [{ id: 'shop-4f7k2m9q', kind: 'backend', name: 'Shop', callbackUrl: `${store.origin}/callbacks` }],
      listen: { host, port: Number(port) },
      dataDir: path.dirname(service.tokenFile),
      ...changes.config,
    }),
  )
  const file = path.join(path.dirname(service.tokenFile), 'quayside.db')
  await openDatabase({ file, now: Date.now }).close()
  return { sandbox, service, store, config, secrets }
}

/** Runs doctor and gives its findings. */
async function examine(config: string, options: Parameters<typeof run>[1] = {}) {
  const { exitCode, stdout } = await run(['doctor', '--json', '--config', config], options)
  const { healthy: well, findings } = JSON.parse(stdout) as { healthy: boolean; findings: Record<string, string>[] }
  expect(exitCode).toBe(well ? 0 : 1)
  return {
    exitCode,
    order: findings.map(({ check }) => check),
    failed: findings.filter(({ level }) => level === 'fail').map(({ check, message }) => `${check}: ${message}`),
    of: (check: string) => findings.filter((finding) => finding.check === check),
  }
}

describe('doctor', () => {
  it('finds nothing wrong with a set-up that works, and looks in the order of causes', async () => {
    const { config, store } = await startSetUp()
    const { exitCode, failed, order } = await examine(config)
    expect({ exitCode, failed }).toEqual({ exitCode: 0, failed: [] })
    expect(order).toEqual([
      ...['Node', 'configuration', 'dialect', 'file modes', 'secret', 'supplier', 'API key', 'revision', 'clock'],
      ...[
        'rate limit',
        'products',
        'orders',
        'lists',
        'webhooks',
        'public address',
        'service',
        'freeze',
        'listings',
        'dead letters',
        'alerts',
        'callbacks',
        'disk',
      ],
    ])
    expect(store.heard).toEqual([])
  })

  it('prints each finding within 80 columns as it is made', async () => {
    const { config } = await startSetUp()
    const { stdout } = await run(['doctor', '--config', config], { terminal: true })
    expect(stdout).toMatch(/^ok {4}Node: /m)
    expect(stdout).toContain('nothing was sent')
    expect(stdout).toMatch(/Nothing fails, \d+ to know about\.\n$/)
    const sentences = stdout.split('\n').filter((line) => !/\/\w+\/.*\//.test(line))
    expect(widest(sentences.join('\n'))).toBeLessThanOrEqual(80)
  })

  it('lists every fault of the configuration, and goes on with what it can', async () => {
    const faults = { supplier: { baseUrl: 'http://127.0.0.1:1/api' }, logLevel: 'loud', syncCron: 'never' }
    const { config } = await startSetUp({ config: faults })
    const { failed, of } = await examine(config)
    expect(failed.join('\n')).toMatch(/supplier.baseUrl: (.|\n)*syncCron: (.|\n)*logLevel: /)
    expect(of('service')).toMatchObject([{ level: 'ok' }])
  })

  it('names a dialect that cannot be read', async () => {
    const { config } = await startSetUp({ config: { supplier: { baseUrl: 'http://127.0.0.1:1/v1', dialect: 'nope' } } })
    expect((await examine(config)).failed).toEqual([expect.stringContaining('nope.json')])
  })

  it('names secrets that others can read', async () => {
    const { config, secrets } = await startSetUp()
    chmodSync(path.join(secrets, 'key-encryption-key'), 0o644)
    chmodSync(secrets, 0o755)
    const { of } = await examine(config)
    expect(of('file modes').map(({ fix }) => fix)).toEqual([
      `chmod 600 ${path.join(secrets, 'key-encryption-key')}`,
      `chmod 700 ${secrets}`,
    ])
  })

  it('tells a supplier that cannot be reached from one that refuses the key', async () => {
    const refused = await refusedOrigin()
    const unreachable = await startSetUp({ config: { supplier: { baseUrl: `${refused}/v1` } } })
    expect((await examine(unreachable.config)).failed).toEqual([expect.stringMatching(/^supplier: .*ECONNREFUSED/)])

    const { config, secrets } = await startSetUp()
    writeFileSync(path.join(secrets, 'api-key'), 'another-key', { mode: 0o600 })
    const { failed, of } = await examine(config)
    expect(of('supplier')).toMatchObject([{ level: 'ok' }])
    expect(failed[0]).toMatch(/^API key: /)
    expect(of('API key')).toMatchObject([{ fix: expect.stringContaining('ask the supplier for a good key') }])
  })

  describe("looks at the supplier's lists and", () => {
    const paged = (paging: Partial<typeof dialect.paging>) => ({ ...dialect, paging: { ...dialect.paging, ...paging } })
    const always = { times: 1_000, match: { path: '/products' } }
    const ofLists = async (config: string) =>
      (await examine(config)).of('lists').map(({ level, message, fix }) => [level, message, fix])

    it.each([
      [
        'pages that are shorter than was asked for',
        { fault: 'short-pages' as const, most: 10, ...always },
        [
          'warn',
          'pages of products have 10 records where 100 were asked for',
          'put paging.limitMax to 10 in the dialect',
        ],
      ],
      [
        'a count that is capped',
        { fault: 'capped-total' as const, most: 50, ...always },
        ['warn', 'the supplier counts 50 products and lists more', expect.stringContaining('paging.total to null')],
      ],
    ])('names %s', async (_, fault, finding) => {
      const { config, sandbox } = await startSetUp()
      sandbox.faults.add(fault)
      expect(await ofLists(config)).toEqual([finding])
    })

    it('names lists that end before their count, and those that go on behind the end that the dialect states', async () => {
      const ending = await startSetUp({ sandbox: { offers: 150, dialect: paged({ listMax: 100 }) } })
      expect(await ofLists(ending.config)).toEqual([
        ['fail', expect.stringMatching(/lists fewer: page 2 is empty/), expect.stringContaining('paging.listMax')],
      ])
      const folder = temporaryFolder()
      const file = path.join(folder, 'ending.json')
      writeFileSync(file, JSON.stringify(paged({ listMax: 100 })))
      const { config, sandbox } = await startSetUp({ sandbox: { offers: 150 } })
      const settings = JSON.parse(readFileSync(config, 'utf8'))
      settings.supplier = { baseUrl: sandbox.baseUrl, dialect: file }
      writeFileSync(config, JSON.stringify(settings))
      expect(await ofLists(config)).toEqual([
        ['warn', 'the products go on behind 100', expect.stringContaining('listMax')],
      ])
    })

    it('proves the filter by reference with the newest order that carries one', async () => {
      const { config, sandbox } = await startSetUp()
      const untried = ['ok', expect.stringMatching(/page; .* not proven yet: no order to try it with$/), undefined]
      expect(await ofLists(config)).toEqual([untried])
      const productId = sandbox.world.offers.list({ inStock: true }, 0, 1).items[0]?.id ?? ''
      sandbox.world.orders.place('k1', 'k1', { productId, quantity: 1, externalOrderId: null })
      expect(await ofLists(config)).toEqual([untried])
      sandbox.world.orders.place('k2', 'k2', { productId, quantity: 1, externalOrderId: 'r' })
      expect(await ofLists(config)).toEqual([['ok', expect.stringMatching(/on the first page$/), undefined]])
      const id = sandbox.world.orders.known(9).find((order) => order.externalOrderId === 'r')?.id
      sandbox.faults.add({ fault: 'filter-misses', times: 10 })
      expect(await ofLists(config)).toEqual([
        [
          'fail',
          `the filter external_order_id does not find order ${id} by its reference`,
          'find the right name of orders.externalOrderId in the dialect, or put it to null',
        ],
      ])
      expect((await examine(config)).exitCode).toBe(1)
    })

    it.each([
      ['of all orders', false, true, 'fail'],
      ['of the filtered list', true, false, 'warn'],
    ])('names a count that is %s where the dialect says otherwise', async (_, theirs, ours, level) => {
      const sandboxDialect = paged({ totalFiltered: theirs })
      const { config, sandbox } = await startSetUp({ sandbox: { dialect: sandboxDialect } })
      const file = path.join(temporaryFolder(), 'other.json')
      writeFileSync(file, JSON.stringify(paged({ totalFiltered: ours })))
      const settings = JSON.parse(readFileSync(config, 'utf8'))
      settings.supplier = { baseUrl: sandbox.baseUrl, dialect: file }
      writeFileSync(config, JSON.stringify(settings))
      expect(await ofLists(config), 'no order, nothing to tell by').toMatchObject([
        ['ok', expect.anything(), undefined],
      ])
      const productId = sandbox.world.offers.list({ inStock: true }, 0, 1).items[0]?.id ?? ''
      sandbox.world.orders.place('k', 'k', { productId, quantity: 1, externalOrderId: 'r' })
      expect(await ofLists(config)).toEqual([
        [level, expect.any(String), `put paging.totalFiltered to ${theirs} in the dialect`],
      ])
    })
  })

  it('measures the clock against the tolerance of signatures', async () => {
    const { config } = await startSetUp()
    const ahead = (ms: number) => ({ now: () => Date.now() + ms })
    expect((await examine(config, ahead(400_000))).of('clock')).toMatchObject([{ level: 'fail' }])
    expect((await examine(config, ahead(150_000))).of('clock')).toMatchObject([{ level: 'warn' }])
  })

  it('blamed the clock, and the dialect for a rate limit that was over, when a later request took long', async () => {
    let now = Date.parse('2026-08-02T14:00:00Z')
    const supplier = await startHttp(({ url }, response) => {
      if (url.endsWith('/openapi')) now += 400_000
      response.setHeader('date', new Date(now).toUTCString())
      response.setHeader('x-ratelimit-remaining', '599')
      response.setHeader('x-ratelimit-reset', String(now / 1_000 + 30))
      sendJson(response, 404, {})
    })
    onTestFinished(() => supplier.close())
    const { config } = await startSetUp({ config: { supplier: { baseUrl: `${supplier.origin}/v1` } } })
    const { of } = await examine(config, { now: () => now })
    expect(of('clock')).toMatchObject([{ level: 'ok', message: expect.stringMatching(/^equal to/) }])
    expect(of('rate limit')).toMatchObject([{ level: 'ok', message: '599 requests left, for 30 s' }])
  })

  it('names the field by which products or orders cannot be read, before anything is bought', async () => {
    const { sandbox, config } = await startSetUp()
    const [offer] = sandbox.world.offers.list({}, 0, 1).items
    sandbox.world.orders.place('k', 'k', { productId: offer?.id ?? '', quantity: 1, externalOrderId: null })
    const read = await examine(config)
    expect(read.of('products')).toMatchObject([
      { level: 'ok', message: expect.stringMatching(/^are they right\? .*, cost \d+\.\d\d EUR, stock \d/) },
    ])
    expect(read.of('orders')).toMatchObject([{ level: 'ok', message: 'the newest 1 order can be read' }])

    const file = path.join(path.dirname(config), 'mine.json')
    const settings = { ...JSON.parse(readFileSync(config, 'utf8')) }
    writeFileSync(config, JSON.stringify({ ...settings, supplier: { ...settings.supplier, dialect: file } }))
    const examined = async (changes: object) => {
      writeFileSync(file, JSON.stringify({ ...dialect, name: 'mine', ...changes }))
      const { of } = await examine(config)
      return { products: of('products')[0], orders: of('orders')[0] }
    }
    const misnamed = await examined({ order: { ...dialect.order, id: 'failure' } })
    expect(misnamed.orders).toMatchObject({
      level: 'fail',
      message: '1 of 1 cannot be read: order.id of the dialect is failure, and nothing is there',
      fix: expect.stringContaining('dialect check'),
    })
    const [order] = sandbox.world.orders.known(9)
    if (order) sandbox.world.orders.complete(order)
    const keyless = await examined({ order: { ...dialect.order, keys: 'licences' } })
    expect(keyless.orders).toMatchObject({
      level: 'fail',
      message:
        'the answer to GET /orders/{id} cannot be read: licences (order.keys of the dialect) has no key of a completed order there',
      fix: expect.stringContaining('dialect check'),
    })
    const unpriced = await examined({ money: { ...dialect.money, representation: 'minor' } })
    expect(unpriced.products).toMatchObject({
      level: 'fail',
      message: expect.stringMatching(/^none has a cost that can be read: .*, cost cannot be read, stock/),
    })
  })

  it('names a webhook that is gone at the supplier, and one whose secret is not held', async () => {
    const own = { id: 'wh_gone', url: 'https://quayside.example/webhooks/supplier', events: [] }
    const { sandbox, service, config } = await startSetUp({ answers: { 'GET /webhooks': () => ({ items: [own] }) } })
    const settings = { ...JSON.parse(readFileSync(config, 'utf8')), publicUrl: service.origin }
    writeFileSync(config, JSON.stringify(settings))
    await fetch(`${sandbox.baseUrl}/webhooks`, {
      method: 'POST',
      headers: { 'x-api-key': API_KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ url: `${service.origin}/webhooks/supplier`, events: ['order.completed'] }),
    })
    const { of } = await examine(config)
    expect(of('webhooks')).toMatchObject([
      { level: 'fail', message: expect.stringContaining('wh_gone') },
      { level: 'warn', message: expect.stringContaining('secret is not held') },
    ])
    expect(of('public address')).toMatchObject([{ level: 'ok' }])
  })

  it('warns where keys may be pictures, and no page could show them', async () => {
    const { config } = await startSetUp()
    const file = path.join(path.dirname(config), 'pictures.json')
    const keys = { path: null, type: { path: 'type', words: { T: 'text', I: 'image' } } }
    writeFileSync(file, JSON.stringify({ ...dialect, name: 'pictures', keys }))
    const settings = JSON.parse(readFileSync(config, 'utf8'))
    writeFileSync(config, JSON.stringify({ ...settings, supplier: { ...settings.supplier, dialect: file } }))
    expect((await examine(config)).of('public address')).toMatchObject([
      {
        level: 'warn',
        message: expect.stringContaining('waits for a person'),
        fix: expect.stringContaining('publicUrl'),
      },
    ])
  })

  it('says nothing of a webhook that delivers or is retired, and advises no other one where one of ours is there', async () => {
    const url = 'https://quayside.example/webhooks/supplier'
    const items = [
      { id: 'wh_old', url: `${url}/old`, state: 'retired', lastReceivedAt: null },
      { id: 'wh_own', url, state: 'live', lastReceivedAt: new Date().toISOString() },
    ]
    const { sandbox, service, config } = await startSetUp({ answers: { 'GET /webhooks': () => ({ items }) } })
    const settings = { ...JSON.parse(readFileSync(config, 'utf8')), publicUrl: service.origin }
    writeFileSync(config, JSON.stringify(settings))
    expect((await examine(config)).of('webhooks')).toMatchObject([{ level: 'ok' }])
    sandbox.world.webhooks.create(`${service.origin}/webhooks/supplier/lost`, ['order.completed'])
    expect((await examine(config)).of('webhooks')).toMatchObject([
      { level: 'warn', fix: 'remove this one in the pages of the supplier' },
    ])
  })

  it('names a channel that takes no alerts, and says where there is none', async () => {
    const alertChannels = [{ channel: 'duty', failingSince: '2026-08-02T14:00:00.000Z', error: 'answered 503' }]
    const { config, secrets } = await startSetUp({ answers: { 'GET /status': () => ({ counts: {}, alertChannels }) } })
    expect((await examine(config)).of('alerts')).toMatchObject([
      { level: 'warn', message: 'no channel is configured: no person is notified' },
    ])
    const settings = JSON.parse(readFileSync(config, 'utf8'))
    writeFileSync(config, JSON.stringify({ ...settings, alerts: { channels: { duty: { kind: 'webhook' } } } }))
    writeFileSync(path.join(secrets, 'alert-duty'), 'http://127.0.0.1:9/', { mode: 0o600 })
    expect((await examine(config)).of('alerts')).toMatchObject([
      { level: 'warn', message: expect.stringMatching(/^alerts are not sent by duty since .*: answered 503/) },
    ])
  })

  it('names a freeze and what waits for a person', async () => {
    const freeze = { reason: 'prices look wrong', actor: 'anna', at: '2026-08-02T14:00:00.000Z' }
    const counts = { purchases: { review: 2 }, deliveries: { dead: 1 }, callbacks: { dead: 3 }, alerts: {} }
    const { config } = await startSetUp({ answers: { 'GET /status': () => ({ freeze, counts }) } })
    const { of } = await examine(config)
    expect(of('freeze')).toMatchObject([{ level: 'fail', message: expect.stringContaining('prices look wrong') }])
    expect(of('dead letters').map(({ message }) => message)).toEqual([
      '2 purchases in review',
      '1 dead delivery',
      '3 dead callbacks',
    ])
  })

  it('lists held and failed listings by the store that they are of, where there are several', async () => {
    const stores = [
      { store: 'shop-4f7k2m9q', listings: { held: 1, failed: 2 } },
      { store: 'other-7k2m9q4f', listings: { held: 3, synced: 9 } },
    ]
    const counts = { purchases: {}, listings: { held: 4, failed: 2 }, deliveries: {}, callbacks: {}, alerts: {} }
    const status = (of: object[]) => ({ 'GET /status': () => ({ freeze: null, counts, stores: of }) })
    const several = await examine((await startSetUp({ answers: status(stores) })).config)
    expect(several.of('listings').map(({ message, fix }) => [message, fix])).toEqual([
      ['1 listing held', 'npx quayside listings list --state held --store shop-4f7k2m9q'],
      ['3 listings held', 'npx quayside listings list --state held --store other-7k2m9q4f'],
      ['2 listings not taken', 'npx quayside listings list --state failed --store shop-4f7k2m9q'],
    ])
    const one = await examine((await startSetUp({ answers: status(stores.slice(1)) })).config)
    expect(one.of('listings')).toMatchObject([{ fix: 'npx quayside listings list --state held' }])
  })

  it('warns of a shop that is not proven, with the command that proves it, and fails for none', async () => {
    const shop = { store: 'shop-4f7k2m9q', listings: {}, needsProof: true }
    const examined = async (proven: object | null) =>
      examine(
        (await startSetUp({ answers: { 'GET /status': () => ({ freeze: null, stores: [{ ...shop, proven }] }) } }))
          .config,
      )
    const { of } = await examined(null)
    expect(of('proof')).toMatchObject([{ level: 'warn', fix: expect.stringContaining('stores test shop-4f7k2m9q') }])
    expect((await examined({ at: '2026-03-01T09:30:00.000Z', by: 'page' })).of('proof')).toEqual([])
  })

  it('does not call a service well that could not read the catalogue', async () => {
    const failure = { run: 'run-1', at: '2026-08-02T14:00:00.000Z', error: 'the supplier cannot be reached' }
    const freshness = { catalogueAt: null, catalogueFailure: failure, balanceAt: null }
    const counts = { purchases: {}, deliveries: {}, callbacks: {}, alerts: {} }
    const { config } = await startSetUp({ answers: { 'GET /status': () => ({ freeze: null, counts, freshness }) } })
    expect((await examine(config)).of('service')).toMatchObject([
      {
        level: 'warn',
        message: expect.stringMatching(/could not read the catalogue, .*: the supplier cannot be reached$/),
        fix: 'see `npx quayside sync show run-1`',
      },
    ])
  })

  it('works without a running service and says how to start it', async () => {
    const { config, service } = await startSetUp()
    const elsewhere = await refusedOrigin()
    const { exitCode, of } = await examine(config, { env: { QUAYSIDE_URL: elsewhere } })
    expect(exitCode).toBe(0)
    expect(of('service')).toMatchObject([{ level: 'warn', fix: expect.stringContaining('npx quayside serve') }])
    expect(of('freeze')).toEqual([])
    expect(service.heard).toEqual([])
  })

  it('names rates that are not in force, end soon, or are there in one direction alone', async () => {
    const store = { kind: 'backend', name: 'Shop', callbackUrl: 'http://127.0.0.1:9/' }
    const stores = ['USD', 'GBP', 'PLN'].map((currency) => ({
      ...store,
      id: `${currency.toLowerCase()}-4f7k2m9q`,
      currency,
    }))
    const rate = { from: 'EUR', rate: '1.1' }
    const rates = [
      { ...rate, to: 'USD', validUntil: '2026-01-05' },
      { ...rate, to: 'GBP', validUntil: '2026-01-15' },
      { ...rate, to: 'PLN' },
      ...stores.slice(1).map(({ currency }) => ({ from: currency, to: 'EUR', rate: '0.9' })),
    ]
    const { config } = await startSetUp({ config: { stores, rates } })
    const { of } = await examine(config, { now: () => Date.parse('2026-01-10') })
    expect(of('rates').map(({ level, message, fix }) => [level, message?.split(':')[0], fix])).toEqual([
      ['fail', 'usd-4f7k2m9q has no prices', 'add one from EUR to USD to `rates`'],
      ['warn', 'orders of usd-4f7k2m9q that name prices in USD are refused', 'add one from USD to EUR to `rates`'],
      ['warn', 'gbp-4f7k2m9q has no prices in a week', 'add one from EUR to GBP to `rates`'],
      ['ok', '1 EUR is 1.1 PLN for pln-4f7k2m9q', undefined],
    ])
  })

  it('names a store that takes no connection', async () => {
    const callbackUrl = `${await refusedOrigin()}/callbacks`
    const stores = [{ id: 'shop-4f7k2m9q', kind: 'backend', name: 'Shop', callbackUrl }]
    const { config } = await startSetUp({ config: { stores } })
    expect((await examine(config)).failed).toEqual([expect.stringMatching(/^callbacks: .*ECONNREFUSED/)])
  })

  it('failed before the first start, for a service and a backend that are not there yet', async () => {
    const callbackUrl = `${await refusedOrigin()}/callbacks`
    const stores = [{ id: 'shop-4f7k2m9q', kind: 'backend', name: 'Shop', callbackUrl }]
    const { config, service } = await startSetUp({ config: { stores } })
    await service.close()
    const { exitCode, failed, of } = await examine(config)
    expect({ exitCode, failed }).toEqual({ exitCode: 0, failed: [] })
    expect(of('service')).toMatchObject([{ level: 'warn', fix: expect.stringContaining('npm start') }])
    expect(of('callbacks')).toMatchObject([
      {
        level: 'warn',
        message: expect.stringContaining('ECONNREFUSED'),
        fix: expect.stringContaining('quayside listen'),
      },
    ])
  })

  it('does not ask for a backend where a shop takes no connection, and says what tries the key of one that does', async () => {
    const shop = { kind: 'woocommerce', name: 'Shop' }
    const away = await refusedOrigin()
    const { config, secrets, sandbox } = await startSetUp({
      config: { stores: [{ ...shop, id: 'woo-4f7k2m9q', url: away }] },
    })
    writeFileSync(path.join(secrets, 'store-woo-4f7k2m9q'), `ck_${'1'.repeat(40)}:cs_${'2'.repeat(40)}`, {
      mode: 0o600,
    })
    expect((await examine(config)).of('shop')).toEqual([
      {
        check: 'shop',
        level: 'fail',
        message: expect.stringContaining('takes no connection (ECONNREFUSED)'),
        fix: 'is this the address of the shop, and is it reachable from here?',
      },
    ])
    const settings = JSON.parse(readFileSync(config, 'utf8'))
    settings.stores[0].url = new URL(sandbox.baseUrl).origin
    writeFileSync(config, JSON.stringify(settings))
    const [reachable] = (await examine(config)).of('shop')
    expect((await examine(config)).of('keys')).toMatchObject([
      {
        level: 'warn',
        message: expect.stringMatching(/^woo-4f7k2m9q .*plain text/),
        fix: expect.stringContaining('"link"'),
      },
    ])
    settings.stores[0].deliver = 'keys'
    writeFileSync(config, JSON.stringify(settings))
    expect((await examine(config)).of('keys')).toEqual([])
    expect(reachable).toMatchObject({ level: 'ok', message: expect.stringContaining('stores test woo-4f7k2m9q') })
  })
})
