import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { inspect as inspectText } from 'node:util'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { backupFolder } from '../../src/backup/backup.ts'
import { readPlace } from '../../src/cli/client.ts'
import { loadConfig } from '../../src/config/config.ts'
import { settingsInForce } from '../../src/config/settings-in-force.ts'
import { Failure } from '../../src/errors.ts'
import { placeName } from '../../src/storage/database-place.ts'
import { connectionOf } from '../../src/storage/postgres/open.ts'
import { databaseFile } from '../support/database.ts'

const GOOD = {
  supplier: { baseUrl: 'https://supplier.example/v1' },
  stores: [{ id: 'main-k3j9x2p7', kind: 'backend', name: 'Main', callbackUrl: 'https://shop.example/' }],
}
const SECRETS = { QUAYSIDE_API_KEY: 'key', QUAYSIDE_KEY_ENCRYPTION_KEY: 'kek' }

function load(settings: unknown, env: Record<string, string> = SECRETS) {
  const file = path.join(path.dirname(databaseFile()), 'quayside.json')
  writeFileSync(file, JSON.stringify(settings))
  return loadConfig(file, env)
}

/** Every fault by its field. */
function faultsOf(settings: unknown, env?: Record<string, string>): Record<string, string> {
  try {
    load(settings, env)
  } catch (error) {
    if (error instanceof Failure) return Object.fromEntries(error.fields.map(({ field, message }) => [field, message]))
    throw error
  }
  return {}
}

describe('the configuration', () => {
  test('needs no more than a supplier and a store', () => {
    expect(load(GOOD)).toMatchObject({ listen: { host: '127.0.0.1', port: 8080 } })
  })

  test('has its data, backups and dialect where the file says, also when the service starts in another folder', () => {
    const folder = path.join(path.dirname(databaseFile()), 'config')
    const file = path.join(folder, 'quayside.json')
    mkdirSync(folder)
    const dialectFile = path.join(folder, 'mine.json')
    copyFileSync(new URL('../../config/dialects/contrary.json', import.meta.url), dialectFile)
    const settings = { ...GOOD, supplier: { ...GOOD.supplier, dialect: './mine.json' } }
    const places = (more: object = {}) => {
      writeFileSync(file, JSON.stringify({ ...settings, ...more }))
      const config = loadConfig(path.relative(process.cwd(), file), SECRETS)
      return [config.dataDir, backupFolder(config), config.dialectFile]
    }
    const parent = path.dirname(folder)
    const data = path.join(parent, 'data/run')
    expect(places()).toEqual([data, path.join(data, 'backups'), dialectFile])
    const given = { dataDir: 'run', backups: { folder: '../safe' } }
    expect(places(given)).toEqual([path.join(folder, 'run'), path.join(parent, 'safe'), dialectFile])
    expect(places({ dataDir: '/srv/quayside' })[0]).toBe('/srv/quayside')
    expect(readPlace(file).dataDir).toBe('/srv/quayside')
    expect(places()[0]).toBe(readPlace(path.relative(process.cwd(), file)).dataDir)
  })

  test('has its public address without a slash at its end, so that paths can follow', () => {
    expect(load({ ...GOOD, publicUrl: 'https://a.example/quayside//' }).publicUrl).toBe('https://a.example/quayside')
    expect(load(GOOD).publicUrl).toBeNull()
  })

  test('says how keys reach customers by a link only where there is an address for the link', () => {
    const [store] = GOOD.stores
    const stores = (deliver: string) => ({ ...GOOD, stores: [{ ...store, deliver }] })
    for (const deliver of ['link', 'both']) {
      expect(faultsOf(stores(deliver))).toEqual({
        'stores.0.deliver': `"${deliver}" needs publicUrl, because customers open the link there: set publicUrl, or use "keys"`,
      })
      const given = { ...stores(deliver), publicUrl: 'https://a.example' }
      expect(load(given).stores.map((one) => one.deliver)).toEqual([deliver])
    }
    expect(faultsOf(stores('keys'))).toEqual({})
    expect(faultsOf({ ...stores('mail'), publicUrl: 'https://a.example' })).toHaveProperty(['stores.0.deliver'])
  })

  test('names every fault at once, each with what would be right', () => {
    const faults = faultsOf(
      {
        supplier: { baseUrl: 'https://supplier.example/api', dialct: 'x' },
        stores: [{ ...GOOD.stores[0], id: 'x', kind: 'shop', pricing: { markup: { percent: 20 } } }],
        listen: { port: 99_999 },
        ordering: { inFlight: 9 },
        syncCron: 'often',
        spendCaps: { day: 'much' },
        logLevel: 'loud',
        colour: 'blue',
      },
      {},
    )
    expect(faults).toEqual({
      'supplier.baseUrl': 'an address that ends in /v1',
      'supplier.dialct': 'unknown; did you mean `dialect`?',
      'stores.0.id': expect.stringContaining('quayside init'),
      'stores.0.kind': 'must be one of backend, woocommerce, shopify',
      'stores.0.pricing.markup.percent': 'must be text, in quotes',
      'listen.port': 'must be at most 65535',
      'ordering.inFlight': 'must be at most 4',
      syncCron: expect.stringContaining('cron expression'),
      'spendCaps.day': expect.stringContaining('250.00'),
      logLevel: 'must be one of debug, info, warn, error',
      colour: expect.stringContaining('unknown; known are supplier, stores,'),
      QUAYSIDE_API_KEY: expect.stringContaining('not set'),
      QUAYSIDE_KEY_ENCRYPTION_KEY: expect.stringContaining('not set'),
    })
  })

  test('refuses one shop under two ids: every order would be bought twice', () => {
    const shop = (id: string, url: string) => ({ id, kind: 'woocommerce', name: 'Shop', url })
    const env = { ...SECRETS, QUAYSIDE_STORE_ONE_K3J9X2P7: 'ck_1:cs_1', QUAYSIDE_STORE_TWO_K3J9X2P7: 'ck_1:cs_1' }
    const both = (one: string, two: string) => ({
      ...GOOD,
      stores: [...GOOD.stores, shop('one-k3j9x2p7', one), shop('two-k3j9x2p7', two)],
    })
    expect(faultsOf(both('https://shop.example', 'http://www.shop.example/'), env)).toEqual({
      'stores.2.url': 'the same shop as stores.1: every order would be bought twice',
    })
    expect(faultsOf(both('https://shop.example/de', 'https://shop.example/fr'), env)).toEqual({})
    expect(load({ ...GOOD, stores: [] }).stores).toEqual([])
  })

  test('takes a shop of Shopify, whose credentials are two or three parts', () => {
    const shop = { id: 'one-k3j9x2p7', kind: 'shopify', name: 'Shop', url: 'https://shop.myshopify.com' }
    const withText = (text: string) => ({ ...SECRETS, QUAYSIDE_STORE_ONE_K3J9X2P7: text })
    const settings = (set: object = {}) => ({ ...GOOD, stores: [{ ...shop, ...set }] })
    expect(faultsOf(settings(), withText('id-1:shpss_1'))).toEqual({})
    expect(faultsOf(settings(), withText('shpat_1:shpss_1:shpss_0'))).toEqual({})
    for (const text of ['id-1', 'id-1:a:b:c', 'id-1::shpss_0', 'id 1:shpss_1']) {
      expect(faultsOf(settings(), withText(text)), text).toEqual({
        QUAYSIDE_STORE_ONE_K3J9X2P7: expect.stringContaining('client id and the client secret'),
      })
    }
    expect(faultsOf(settings(), withText('shpss_1:id-1'))).toEqual({})
    const woo = { ...GOOD, stores: [{ ...shop, kind: 'woocommerce' }] }
    expect(faultsOf(woo, withText('cs_1234:ck_1234'))).toEqual({
      QUAYSIDE_STORE_ONE_K3J9X2P7:
        'the two are swapped: it must be consumer key and consumer secret, ck_… and cs_…, joined by a colon',
    })
    const wrong = { apiVersion: '2026-01', location: 'gid://shopify/Location/1', holdAtRisk: 'accept', retryTag: 'a b' }
    expect(Object.keys(faultsOf(settings(wrong), withText('id-1:shpss_1'))).toSorted()).toEqual(
      ['apiVersion', 'holdAtRisk', 'location', 'retryTag'].map((name) => `stores.0.${name}`),
    )
  })

  test('keeps the console on loopback, unless people reach it through TLS', () => {
    const open = { host: '0.0.0.0' }
    expect(load(GOOD).console).toEqual({ listen: { host: '127.0.0.1', port: 8081 }, url: null })
    expect(faultsOf({ ...GOOD, console: { listen: null } })).toEqual({})
    expect(faultsOf({ ...GOOD, console: { listen: { host: '::1', port: 0 } } })).toEqual({})
    expect(faultsOf({ ...GOOD, console: { listen: open, url: 'https://console.example' } })).toEqual({})
    const refused = faultsOf({ ...GOOD, console: { listen: open } })
    expect(refused['console.listen.host']).toContain('put a proxy that speaks TLS before it')
    for (const url of ['http://console.example', 'https://console.example/quayside', 'https://a@console.example']) {
      expect(faultsOf({ ...GOOD, console: { url } })['console.url'], url).toMatch(/https:\/\/|without a user/)
    }
  })

  test('takes secrets from the variable, the named file or the folder next to it, but not from one that others can read', () => {
    const folder = path.dirname(databaseFile())
    const file = path.join(folder, 'quayside.json')
    writeFileSync(file, JSON.stringify(GOOD))
    mkdirSync(path.join(folder, 'secrets'))
    writeFileSync(path.join(folder, 'secrets', 'api-key'), 'from-folder', { mode: 0o600 })
    writeFileSync(path.join(folder, 'kek'), 'from-file', { mode: 0o600 })
    const config = loadConfig(file, { QUAYSIDE_KEY_ENCRYPTION_KEY_FILE: path.join(folder, 'kek') })
    expect([config.apiKey.reveal(), config.keyEncryptionKey.reveal()]).toEqual(['from-folder', 'from-file'])
    expect(JSON.stringify(config)).not.toContain('from-f')
    writeFileSync(path.join(folder, 'open'), 'x', { mode: 0o644 })
    expect(() => loadConfig(file, { QUAYSIDE_KEY_ENCRYPTION_KEY_FILE: path.join(folder, 'open') })).toThrow('chmod 600')
  })
})

describe('a file with a byte order mark', () => {
  test('was "not JSON", as a configuration and as a dialect', () => {
    const folder = path.dirname(databaseFile())
    const [file, dialect] = [path.join(folder, 'quayside.json'), path.join(folder, 'mine.json')]
    const shipped = readFileSync(new URL('../../config/dialects/contrary.json', import.meta.url), 'utf8')
    writeFileSync(dialect, `\ufeff${shipped}`)
    writeFileSync(file, `\ufeff${JSON.stringify({ ...GOOD, supplier: { ...GOOD.supplier, dialect: 'mine.json' } })}`)
    expect(loadConfig(file, SECRETS).dialectFile).toBe(dialect)
    writeFileSync(path.join(folder, 'kek'), '\ufeffkek\r\n', { mode: 0o600 })
    const env = { QUAYSIDE_API_KEY: 'key', QUAYSIDE_KEY_ENCRYPTION_KEY_FILE: path.join(folder, 'kek') }
    expect(loadConfig(file, env).keyEncryptionKey.reveal()).toBe('kek')
  })
})

describe('the price rules', () => {
  const selling = (store: object, more: object = {}) =>
    faultsOf({ ...GOOD, ...more, stores: [{ ...GOOD.stores[0], ...store }] })

  test('are a markup of 20 percent, and nothing else, by default', () => {
    const [store] = load(GOOD).stores
    expect(store).toMatchObject({ currency: 'EUR', stock: { source: 'both', buffer: 0 }, listings: { mode: 'all' } })
    expect(store?.policy.pricing).toMatchObject({ currency: 'EUR', rates: [] })
    expect(store?.policy.pricing.rules).toMatchObject({
      markup: { millionths: 200_000, flatMinor: 0 },
      margin: { millionths: 0, flatMinor: 0 },
      bands: [],
      rounding: { patterns: [] },
      compareAt: null,
      jumpMillionths: 500_000,
    })
  })

  test('are checked as a whole: every fault at once, by its key, with what would be right', () => {
    const pricing = {
      markup: { percent: '20', flat: '0.005' },
      bands: [{ upTo: '10', percent: '30' }, { upTo: '5', flat: '1.005' }, { percent: '9' }, { upTo: '20' }],
      categories: { Games: {} },
      products: { 'SKU-1': { fixed: '9.99', percent: '5' }, 'SKU-2': { fixed: '0' }, 'SKU-3': {} },
      margin: { flat: '0.001' },
      rounding: { step: '0', endings: ['.999', '9.99', 'x'] },
    }
    expect(selling({ pricing, stock: { cap: 2, zeroUnder: 3 }, listings: { costMin: '2', costMax: '1.999' } })).toEqual(
      {
        'stores.0.pricing.markup.flat': 'not an amount in EUR: 0.005',
        'stores.0.pricing.bands.1.upTo': 'must be above that of the band before',
        'stores.0.pricing.bands.1.flat': 'not an amount in EUR: 1.005',
        'stores.0.pricing.bands.2.upTo': 'missing: only the last band has none',
        'stores.0.pricing.bands.3': 'names percent, flat or both',
        'stores.0.pricing.bands.3.upTo': expect.stringContaining('the last band has none'),
        'stores.0.pricing.categories.Games': 'names percent, flat or both',
        'stores.0.pricing.products.SKU-1': 'names either fixed, or percent and flat',
        'stores.0.pricing.products.SKU-2.fixed': 'not an amount above 0 in EUR: 0',
        'stores.0.pricing.products.SKU-3': 'names percent, flat or both',
        'stores.0.pricing.margin.flat': 'not an amount in EUR: 0.001',
        'stores.0.pricing.rounding': 'names either step or endings',
        'stores.0.pricing.rounding.step': 'not an amount in EUR above 0: 0',
        'stores.0.pricing.rounding.endings.0': expect.stringContaining('such as ".99"'),
        'stores.0.pricing.rounding.endings.2': expect.stringContaining('such as ".99"'),
        'stores.0.stock.cap': expect.stringContaining('nothing would ever be in stock'),
        'stores.0.listings.costMax': 'not an amount in EUR: 1.999',
      },
    )
  })

  test('are checked in the currency of the store', () => {
    const pricing = { markup: { flat: '1.50' }, rounding: { endings: ['.99'] } }
    const rates = [{ from: 'JPY', to: 'EUR', rate: '0.00617' }]
    expect(selling({ currency: 'JPY', pricing }, { rates })).toEqual({
      'stores.0.currency': expect.stringContaining('add one from EUR to JPY to `rates`'),
      'stores.0.pricing.markup.flat': 'not an amount in JPY: 1.50',
      'stores.0.pricing.rounding.endings.0': expect.stringContaining('such as "80"'),
    })
    const both = [...rates, { from: 'EUR', to: 'JPY', rate: '161.5' }]
    expect(selling({ currency: 'JPY', pricing: { rounding: { endings: ['80'] } } }, { rates: both })).toEqual({})
  })

  test('name unknown keys and wrong values with what is known', () => {
    const pricing = {
      compareAt: 'cost',
      jumpPercent: '50%',
      categories: { Games: { percnt: '5' } },
      rounding: { to: 1 },
    }
    expect(selling({ currency: 'Euro', pricing, stock: { source: 'all', cap: 0 } })).toEqual({
      'stores.0.currency': 'an ISO 4217 code, such as "EUR"',
      'stores.0.pricing.compareAt': 'must be "base_price", {"percent": "25"} or null',
      'stores.0.pricing.jumpPercent': 'a percentage such as "12.5", without a sign',
      'stores.0.pricing.categories.Games.percnt': 'unknown; did you mean `percent`?',
      'stores.0.pricing.rounding.to': 'unknown; known are step, endings, direction',
      'stores.0.stock.source': 'must be one of both, local, provider',
      'stores.0.stock.cap': 'must be at least 1',
    })
  })

  test('need different, valid rates', () => {
    const rate = { from: 'EUR', to: 'USD', rate: '1.1' }
    const rates = [
      { ...rate, rate: '0.0' },
      { ...rate, validFrom: 'today' },
    ]
    expect(faultsOf({ ...GOOD, rates })).toEqual({
      'rates.0.rate': 'a rate above 0 as text, such as "1.0834"',
      'rates.1.validFrom': expect.stringContaining('"2026-01-31"'),
    })
    const twice = [
      { ...rate, validFrom: '2026-01-01' },
      { ...rate, validFrom: '2026-01-01T00:00:00Z' },
      { ...rate, to: 'EUR' },
      { ...rate, validFrom: '2026-03-01', validUntil: '2026-03-01' },
    ]
    expect(faultsOf({ ...GOOD, rates: twice })).toEqual({
      'rates.1': 'begins at the same time as rates.0',
      'rates.2.to': 'must be another currency than EUR',
      'rates.3.validUntil': 'must be after validFrom',
    })
  })
})

describe('the address of a database server', () => {
  const ADDRESS = 'postgres://quayside@db.example/books?sslmode=require'
  const withUrl = (url: string) => ({ ...GOOD, database: { url } })

  test('may be in the file, and its password is a secret of its own', () => {
    expect(load(GOOD).databaseUrl).toBeNull()
    expect(load(withUrl(ADDRESS)).databaseUrl?.reveal()).toBe(ADDRESS)
    const config = load(withUrl(ADDRESS), { ...SECRETS, QUAYSIDE_DATABASE_PASSWORD: 'p@ss w+rd/%25' })
    const address = config.databaseUrl?.reveal() ?? ''
    expect(connectionOf(address)).toMatchObject({ connectionString: expect.stringContaining('sslmode=require') })
    const { password, user, host, database } = new pg.Client(connectionOf(address))
    expect({ password, user, host, database }).toEqual({
      password: 'p@ss w+rd/%25',
      user: 'quayside',
      host: 'db.example',
      database: 'books',
    })
    expect(config.backups.cron).toBeNull()
  })

  test('takes its password along to a socket, which has no host', () => {
    const socket = withUrl('postgres:///books?host=/run/postgresql&user=quayside')
    const config = load(socket, { ...SECRETS, QUAYSIDE_DATABASE_PASSWORD: 'secret' })
    const { password, host } = new pg.Client(connectionOf(config.databaseUrl?.reveal() ?? ''))
    expect({ password, host }).toEqual({ password: 'secret', host: '/run/postgresql' })
  })

  test.each(['postgres://quayside:hunter2@db.example/books', 'postgres://quayside@db.example/books?password=hunter2'])(
    'is refused in the file when it has a password: %s',
    (url) => {
      const faults = faultsOf(withUrl(url))
      expect(faults).toEqual({ 'database.url': expect.stringContaining('secrets/database-password') })
      expect(JSON.stringify(faults)).not.toContain('hunter2')
      expect(() => load(withUrl(url))).toThrow(/^(?!.*hunter2)/s)
    },
  )

  test('is given once, and so is its password', () => {
    const url = 'postgres://quayside:hunter2@db.example/books'
    expect(faultsOf(withUrl(ADDRESS), { ...SECRETS, QUAYSIDE_DATABASE_URL: url })).toEqual({
      'database.url': expect.stringContaining('keep one of the two'),
    })
    const twice = { ...SECRETS, QUAYSIDE_DATABASE_URL: url, QUAYSIDE_DATABASE_PASSWORD: 'other' }
    expect(faultsOf(GOOD, twice)).toEqual({ QUAYSIDE_DATABASE_PASSWORD: expect.stringContaining('keep one') })
    expect(faultsOf(withUrl('mysql://db.example/books'))).toHaveProperty(['database.url'])
  })

  test('is shown without user, password and options', () => {
    const env = { ...SECRETS, QUAYSIDE_DATABASE_PASSWORD: 'hunter2' }
    const config = load(withUrl(ADDRESS), env)
    const shown = settingsInForce(config)
    expect(shown).toContainEqual({ name: 'database.url', value: 'postgres://db.example/books', isDefault: false })
    const said = [shown, config, placeName(config), inspectText(config)].map((value) => JSON.stringify(value)).join()
    expect(said).not.toContain('hunter2')
  })
})
