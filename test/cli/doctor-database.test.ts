/** What `doctor` finds by looking into the database of an installation: the key that it is under, and what rules name. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import type { RunState } from '../../src/domain/labels.ts'
import { nearestName } from '../../src/domain/pricing-rules.ts'
import { Failure } from '../../src/errors.ts'
import { openSetUp } from '../../src/installation.ts'
import { putOffers } from '../../src/storage/offers.ts'
import { insertSyncRun } from '../../src/storage/runs.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { run, temporaryFolder } from '../support/cli-run.ts'
import { wordy } from '../support/dialect-wordy.ts'
import { hasPostgres, newPostgresUrl } from '../support/postgres.ts'
import { run as runSql } from '../support/postgres-server.ts'
import { refusedOrigin } from '../support/supplier-server.ts'

const KEY = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')
const OTHER_KEY = Buffer.from('fedcba9876543210fedcba9876543210').toString('base64')
const ZEROS = Buffer.alloc(32).toString('base64')
const MISSING = 'GAM-NONE'

/** An installation whose supplier, service and store are not there: only its files are looked at. */
async function install(selling: object = {}) {
  const origin = await refusedOrigin()
  const folder = temporaryFolder()
  const secrets = path.join(folder, 'secrets')
  mkdirSync(secrets, { mode: 0o700 })
  for (const [name, text] of Object.entries({ 'api-key': 'a-key', 'key-encryption-key': KEY })) {
    writeFileSync(path.join(secrets, name), text, { mode: 0o600 })
  }
  const config = path.join(folder, 'quayside.json')
  const store = { id: 'shop-4f7k2m9q', kind: 'backend', name: 'Shop', callbackUrl: `${origin}/callbacks`, ...selling }
  const place = { supplier: { baseUrl: `${origin}/v1` }, listen: { port: Number(new URL(origin).port) } }
  writeFileSync(config, JSON.stringify({ ...place, stores: [store], dataDir: path.join(folder, 'run') }))
  return { config, secrets, database: path.join(folder, 'run', 'quayside.db') }
}

/** The findings of one check. */
async function findings(config: string, check: string, env: Record<string, string> = {}) {
  const { stdout } = await run(['doctor', '--json', '--config', config], { env })
  const all = (JSON.parse(stdout) as { findings: Record<string, string>[] }).findings
  return all.filter((finding) => finding.check === check)
}

const setKey = (key: string) => ({ QUAYSIDE_KEY_ENCRYPTION_KEY: key })
const made = async (config: string) => (await openSetUp(config, {})).close()

/** What the start says of these keys. */
async function startFault(config: string, env: Record<string, string>): Promise<string> {
  try {
    await (await openSetUp(config, env)).close()
  } catch (error) {
    if (error instanceof Failure) return error.message
    throw error
  }
  return 'it starts'
}

describe('http:// to a remote address', () => {
  it('is warned of, for the supplier and for callbacks, before anything is sent there', async () => {
    const { config } = await install({ callbackUrl: 'http://store.invalid/callbacks' })
    const settings = JSON.parse(readFileSync(config, 'utf8'))
    expect(await findings(config, 'encryption'), 'the supplier is on this machine').toMatchObject([
      { level: 'warn', message: expect.stringContaining('http://store.invalid/') },
    ])
    writeFileSync(config, JSON.stringify({ ...settings, supplier: { baseUrl: 'http://supplier.invalid/v1' } }))
    expect(await findings(config, 'encryption')).toMatchObject([
      { level: 'warn', message: expect.stringContaining('http://supplier.invalid/v1'), fix: expect.any(String) },
      { level: 'warn', message: expect.stringContaining('http://store.invalid/callbacks') },
    ])
  })
})

describe('a data folder without a database', () => {
  it('is a fault, because the service does not start and creates none', async () => {
    const { config, database } = await install()
    const folder = path.dirname(database)
    expect(await findings(config, 'database')).toMatchObject([
      { level: 'fail', message: expect.stringContaining(folder), fix: expect.stringContaining('database create') },
    ])
    await made(config)
    expect(await findings(config, 'database')).toEqual([])
  })
})

describe('a key with which the service does not start', () => {
  it.each([
    ['abc, without a database', 'abc', false],
    ['abc', 'abc', true],
    ['32 zero bytes', ZEROS, true],
    ['the key of another database', OTHER_KEY, true],
  ])('is a fault that doctor words like the start: %s', async (_what, key, exists) => {
    const { config } = await install()
    if (exists) await made(config)
    const [found, ...more] = await findings(config, 'secret', setKey(key))
    expect(more).toEqual([])
    expect(found).toMatchObject({ level: 'fail', fix: expect.stringMatching(/^(make one with|set QUAYSIDE_)/) })
    expect(`${found?.message}: ${found?.fix}`).toBe(
      `the service does not start: ${await startFault(config, setKey(key))}`,
    )
    expect(JSON.stringify(found)).not.toContain(key === 'abc' ? '"abc"' : key)
  })

  it('is none where the next key opens the database, which doctor says', async () => {
    const { config, secrets } = await install()
    await made(config)
    writeFileSync(path.join(secrets, 'next-key-encryption-key'), KEY, { mode: 0o600 })
    expect(await findings(config, 'secret', setKey(OTHER_KEY))).toMatchObject([
      { level: 'warn', message: expect.stringContaining('only the next key-encryption key') },
    ])
    expect(await findings(config, 'secret')).toMatchObject([{ level: 'ok' }])
  })
})

describe('the database that doctor looks into', () => {
  it('is not made where there is none', async () => {
    const { config, database } = await install()
    expect(await findings(config, 'secret')).toMatchObject([{ level: 'ok' }])
    expect(existsSync(path.dirname(database))).toBe(false)
  })

  it('stays as it is, byte for byte, and the service can start on it', async () => {
    const { config, database } = await install()
    await made(config)
    const digest = () => createHash('sha256').update(readFileSync(database)).digest('hex')
    const before = digest()
    await findings(config, 'secret')
    await findings(config, 'secret', setKey(OTHER_KEY))
    expect(digest()).toBe(before)
    expect(await startFault(config, {})).toBe('it starts')
  })

  it('may be in use by a service, which goes on writing to it', async () => {
    const { config, database } = await install()
    await made(config)
    const db = openDatabase({ file: database, now: () => 1 })
    onTestFinished(() => db.close())
    await db.commit([insertSyncRun({ id: 'a', cause: 'test', state: 'running', startedAt: 1, cursor: 1 })])
    expect(await findings(config, 'secret')).toMatchObject([{ level: 'ok' }])
    await db.commit([insertSyncRun({ id: 'b', cause: 'test', state: 'failed', startedAt: 1, cursor: 1 })])
  })

  it('is a thing to know about where it cannot be read, and the other checks go on', async () => {
    const { config, database } = await install()
    mkdirSync(path.dirname(database))
    writeFileSync(database, 'this is no database, but a text that is long enough to be taken for one')
    expect(await findings(config, 'database')).toMatchObject([{ level: 'warn' }])
    expect(await findings(config, 'disk')).toHaveLength(1)
  })
})

describe.runIf(hasPostgres)('a database on a PostgreSQL server', () => {
  /** @returns what doctor says of it, and whether it fails */
  async function examined(url: string) {
    const { config, secrets, database } = await install()
    writeFileSync(path.join(secrets, 'database-url'), url, { mode: 0o600 })
    const found = (await findings(config, 'database')).map(({ level, message, fix }) => ({ level, message, fix }))
    return { found, place: `${new URL(url).host}${new URL(url).pathname}`, folder: path.dirname(database) }
  }

  it('had no line of its own', async () => {
    const url = await newPostgresUrl()
    await runSql(url, "insert into settings (name, value, changed_at) values ('a', 'b', 1)")
    const { found, place } = await examined(url)
    expect(found).toEqual([
      { level: 'ok', message: expect.stringMatching(/^\S+, PostgreSQL \d+\.\d+$/), fix: undefined },
    ])
    expect(found[0]?.message).toContain(`${place}, `)
  })

  it('that cannot be opened, or that may lose commits, was a thing to know about, and nothing failed', async () => {
    const away = new URL(await newPostgresUrl())
    away.port = new URL(await refusedOrigin()).port
    const fails = (text: string) => [{ level: 'fail', message: expect.stringContaining(text), fix: undefined }]
    expect((await examined(away.href)).found).toEqual(fails('the service does not start: '))
    const url = await newPostgresUrl()
    await runSql(url, `alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off`)
    expect((await examined(url)).found).toEqual(fails('synchronous_commit = off'))
  })

  it('without tables was missed in the data folder', async () => {
    const url = await newPostgresUrl()
    await runSql(url, 'drop schema public cascade; create schema public')
    const { found, place, folder } = await examined(url)
    expect(found).toMatchObject([{ level: 'fail', fix: expect.stringContaining('database create') }])
    expect(found[0]?.message).toContain(place)
    expect(JSON.stringify(found)).not.toContain(folder)
    expect(JSON.stringify(found)).not.toContain('volume')
  })
})

const offer = (sku: string, category: string | null, goneAt: number | null = null) => ({
  productId: `p-${sku}`,
  sku,
  name: sku,
  category,
  costMinor: 100,
  currency: 'EUR',
  available: true,
  asOf: 1,
  changedAt: 1,
  goneAt,
})

/** An installation that has read a catalogue of games and software. */
async function withCatalogue(selling: object, state: RunState = 'complete') {
  const { config } = await install(selling)
  await made(config)
  const db = openDatabase({ file: path.join(loadConfig(config, {}).dataDir, 'quayside.db'), now: () => 1 })
  await db.commit([
    ...putOffers([offer('GAM-1', 'Games'), offer('GAM-2', 'Games'), offer('SOF-1', 'Software'), offer('X', null)]),
    ...putOffers([offer('OLD-1', 'Films', 1)]),
    insertSyncRun({ id: 'r', cause: 'test', state, startedAt: 1, finishedAt: 2, cursor: 1 }),
  ])
  await db.close()
  return config
}

describe('a catalogue that could not be read', () => {
  const first = { field: 'product.available', path: 'available', value: '"yes"' }
  const unread = { offersUnreadable: 137, firstUnreadable: first }
  const error = 'the supplier listed nothing that can be read: nothing was counted as missing'

  /** What doctor says after these runs, the oldest first. */
  async function afterRuns(...runs: Partial<Parameters<typeof insertSyncRun>[0]>[]) {
    const { config, database } = await install()
    await made(config)
    const db = openDatabase({ file: database, now: () => 1 })
    for (const [place, fields] of runs.entries()) {
      const base = { id: `run${place}`, cause: 'test', startedAt: 1, finishedAt: 2, cursor: 0 }
      await db.commit([insertSyncRun({ ...base, state: 'complete', ...fields })])
    }
    await db.close()
    return findings(config, 'catalogue')
  }

  it('left doctor saying that nothing fails', async () => {
    const [found, ...more] = await afterRuns({ offersSeen: 9 }, { state: 'failed', error, ...unread })
    expect(more).toEqual([])
    expect(found).toMatchObject({ level: 'fail', fix: expect.stringContaining('dialect check') })
    expect(found?.message).toMatch(/^the last sync failed, 1970-01-01 .*nothing that can be read/)
    expect(found?.message).toContain(
      '137 offers could not be read; the first by product.available, at available: "yes"',
    )
  })

  it('is a failure for whatever reason, with the way to look at it, until a run completes', async () => {
    const broken = { state: 'failed', error: 'page 1: the supplier refused the API key with 401' } as const
    const fix = 'see `npx quayside sync show run0`'
    expect(await afterRuns(broken)).toMatchObject([
      { level: 'fail', message: expect.stringMatching(/refused the API key/), fix },
    ])
    expect(await afterRuns(broken, { offersSeen: 140 })).toMatchObject([
      { level: 'ok', message: expect.stringMatching(/^140 offers, read/) },
    ])
    expect(await afterRuns(broken, { state: 'running', finishedAt: null })).toMatchObject([{ level: 'fail' }])
  })

  it('in part is a thing to know, and one that was never read is not judged', async () => {
    expect(await afterRuns({ offersSeen: 3, ...unread })).toMatchObject([
      { level: 'warn', message: expect.stringMatching(/^137 offers/) },
    ])
    expect(await afterRuns()).toEqual([])
  })
})

const PERCENT = { percent: '10' }

describe('a misspelt rule that would do nothing', () => {
  it('is named with its store, its place and the category that is meant', async () => {
    const config = await withCatalogue({
      pricing: {
        categories: { gamez: PERCENT, Games: PERCENT, games: PERCENT, Music: PERCENT, Films: PERCENT },
        products: { 'GAM-1': PERCENT, 'OLD-1': PERCENT, [MISSING]: { fixed: '9.99' }, 'gam-1': PERCENT },
      },
      listings: { categories: ['Gaames', 'Software'] },
    })
    const found = await findings(config, 'rules')
    expect(found.map(({ level, message, fix }) => [level, message, fix])).toEqual([
      [
        'warn',
        'pricing.categories of shop-4f7k2m9q: no offer has the category "gamez"',
        'write "Games", if that is meant',
      ],
      [
        'warn',
        'pricing.categories of shop-4f7k2m9q: no offer has the category "games"',
        'write "Games", if that is meant',
      ],
      [
        'warn',
        'pricing.categories of shop-4f7k2m9q: no offer has the category "Music"',
        'there are "Games", "Software"',
      ],
      [
        'warn',
        'pricing.categories of shop-4f7k2m9q: no offer has the category "Films"',
        'there are "Games", "Software"',
      ],
      [
        'warn',
        `pricing.products of shop-4f7k2m9q: no offer has the SKU "${MISSING}"`,
        expect.stringMatching(/^write it/),
      ],
      ['warn', 'pricing.products of shop-4f7k2m9q: no offer has the SKU "gam-1"', expect.stringMatching(/same case/)],
      [
        'warn',
        'listings.categories of shop-4f7k2m9q: no offer has the category "Gaames"',
        'write "Games", if that is meant',
      ],
    ])
  })

  it('is counted where there are many', async () => {
    const products = Object.fromEntries(Array.from({ length: 1_234 }, (_, place) => [`NO-${place}`, PERCENT]))
    const found = await findings(await withCatalogue({ pricing: { products } }), 'rules')
    expect(found).toHaveLength(11)
    expect(found.at(-1)?.message).toBe('and 1224 more names that no offer has')
  })

  it('is not looked for before a catalogue was read, or where no rule names anything', async () => {
    const rules = { pricing: { categories: { gamez: PERCENT } } }
    expect(await findings(await withCatalogue(rules, 'failed'), 'rules')).toEqual([])
    expect(await findings(await withCatalogue({}), 'rules')).toEqual([])
    const linked = { listings: { mode: 'linked', categories: ['Gaames'] } }
    expect(await findings(await withCatalogue(linked), 'rules')).toEqual([])
  })

  it('is none where the catalogue has all that is named', async () => {
    const rules = { pricing: { categories: { Games: PERCENT }, products: { 'SOF-1': PERCENT } } }
    expect(await findings(await withCatalogue(rules), 'rules')).toMatchObject([{ level: 'ok' }])
  })
})

describe('the name that is meant', () => {
  const known = ['DLC', 'Games', 'Gift cards', 'Software']
  it.each([
    ['games', 'Games'],
    ['Gmaes', 'Games'],
    ['Giftcards', 'Gift cards'],
    ['Softwares', 'Software'],
    ['DVD', undefined],
    ['Films', undefined],
    ['', undefined],
  ])('%s is %s', (name, meant) => expect(nearestName(name, known)).toBe(meant))
})

describe('the words of a dialect that only an order can prove', () => {
  it('are named until an order is complete, then with what that order proves and what it leaves open', async () => {
    const { config, secrets, database } = await install()
    expect(await findings(config, 'first order')).toEqual([])
    const dialect = path.join(path.dirname(config), 'wordy.json')
    writeFileSync(dialect, JSON.stringify(wordy))
    const settings = JSON.parse(readFileSync(config, 'utf8'))
    writeFileSync(config, JSON.stringify({ ...settings, supplier: { ...settings.supplier, dialect } }))
    writeFileSync(path.join(secrets, 'api-key'), 'id:a-secret-of-a-client')
    await made(config)
    expect(await findings(config, 'first order')).toEqual([
      {
        check: 'first order',
        level: 'warn',
        message: 'not proven until an order is complete: paths.placeOrder, orderBody, orderAnswer, idempotency, keys',
      },
    ])
    const body = { channel: 'wholesale', products: [{ code: 'p-1', qty: '2', price: 1.5 }], ref: 'q1.a' }
    const row = {
      ...{ id: 'p1', order_id: 'o', line_id: 'l', part: 1, generation: 1, state: 'fulfilled', sends: 1 },
      ...{ idempotency_key: 'k', external_order_id: 'q1.a', body: JSON.stringify(body), supplier_product_id: 'p-1' },
      ...{ quantity: 2, ceiling_minor: 400, amount_minor: 330, currency: 'EUR', supplier_order_id: 'sup-1' },
      ...{ deadline_at: 9, created_at: 1, changed_at: 1_767_225_601_000 },
    }
    const connection = new Connection(database)
    connection.pragma('foreign_keys = OFF')
    const names = Object.keys(row)
    connection.prepare(`insert into purchases (${names}) values (${names.map((name) => `@${name}`)})`).run(row)
    connection.close()
    const said = (await findings(config, 'first order')).map(({ level, message }) => `${level} ${message}`)
    expect(said).toEqual([
      expect.stringMatching(/^ok the order sup-1 at .* proves paths\.placeOrder, orderAnswer$/),
      expect.stringMatching(/^warn .* does not prove orderBody: .*1\.50 EUR for each of 2, and 3\.30 EUR was charged$/),
      expect.stringMatching(/^warn .* does not prove idempotency: it was sent once/),
      expect.stringMatching(/^warn .* does not prove keys: 0 came for 2$/),
    ])
  })
})
