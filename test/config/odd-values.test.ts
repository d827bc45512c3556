/** What people put in the place of a setting by mistake: each is taken, or refused by a sentence that names the setting. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { checkedConfig } from '../../src/config/config.ts'
import { Failure } from '../../src/errors.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'quayside-odd-'))
afterAll(() => rmSync(folder, { recursive: true }))
mkdirSync(path.join(folder, 'config'))
const file = path.join(folder, 'config', 'quayside.json')

const env = {
  QUAYSIDE_API_KEY: 'key',
  QUAYSIDE_KEY_ENCRYPTION_KEY: 'kek',
  QUAYSIDE_ALERT_HOOK: 'https://a.example/hook',
  QUAYSIDE_ALERT_MAIL: 'smtps://mail.example',
  QUAYSIDE_STORE_WOO_K3J9X2P7: 'ck_1234:cs_1234',
  QUAYSIDE_STORE_SHOPIFY_K3J9X2P7: 'id-1:shpss_1',
}

const selling = {
  currency: 'USD',
  pricing: {
    markup: { percent: '20', flat: '1' },
    bands: [{ upTo: '10', percent: '30' }, { percent: '10' }],
    categories: { Games: { percent: '12', flat: '1' } },
    products: { 'SKU-1': { percent: '8' }, 'SKU-2': { fixed: '9.99' } },
    margin: { percent: '1', flat: '0.1' },
    rounding: { step: '0.05', endings: null as string[] | null, direction: 'up' },
    compareAt: { percent: '25' },
    jumpPercent: '50',
  },
  stock: { source: 'both', buffer: 1, cap: 10, zeroUnder: 2 },
  listings: {
    mode: 'all',
    categories: ['Games'],
    text: 'key',
    costMin: '1',
    costMax: '100',
    inStockOnly: true,
  },
}
const ofShop = { create: 'draft', whenGone: 'keep', delayMinutes: 1, growth: 'ask' }
/** Every setting, with a value that is right. */
const ALL = {
  supplier: { baseUrl: 'https://supplier.example/v1', dialect: 'reseller-v1.1' },
  stores: [
    {
      id: 'main-k3j9x2p7',
      kind: 'backend',
      name: 'Main',
      callbackUrl: 'https://shop.example/',
      selling: 'paused',
      ...selling,
    },
    {
      id: 'woo-k3j9x2p7',
      kind: 'woocommerce',
      name: 'Woo',
      url: 'https://woo.example',
      statuses: ['processing'],
      handOver: { by: 'note', complete: true, label: 'Key' },
      ...ofShop,
    },
    {
      id: 'shopify-k3j9x2p7',
      kind: 'shopify',
      name: 'Shopify',
      url: 'https://shop.myshopify.com',
      apiVersion: '2026-07',
      location: '1',
      otherLocations: 'warn',
      holdAtRisk: 'cancel',
      metafieldNamespace: 'quayside',
      retryTag: 'retry',
      buyTestOrders: false,
      ...ofShop,
    },
  ],
  rates: [
    { from: 'EUR', to: 'USD', rate: '1.1', validFrom: '2026-01-31', validUntil: '2027-01-31' },
    { from: 'USD', to: 'EUR', rate: '0.9' },
  ],
  listen: { host: '127.0.0.1', port: 8080 },
  console: { listen: { host: '127.0.0.1', port: 8081 }, url: 'https://console.example' },
  publicUrl: 'https://quayside.example',
  dataDir: '../data/run',
  database: { url: 'postgres://quayside@127.0.0.1/quayside' },
  syncCron: '*/30 * * * *',
  balanceCron: '*/5 * * * *',
  sweepCron: '*/15 * * * *',
  ordering: {
    tickSeconds: 2,
    inFlight: 4,
    offerFreshnessSeconds: 1_800,
    entitlementSeconds: 60,
    deadlineHours: 72,
    ceilingPercent: '10',
    minMarginPercent: '0',
  },
  backups: { cron: '20 2 * * *', folder: 'backups', keep: 14, keepDays: 30 },
  spendCaps: { order: '100', hour: '200', day: '300' },
  alerts: {
    channels: {
      hook: { kind: 'webhook', least: 'warning' },
      mail: { kind: 'email', least: 'critical', from: 'a@shop.example', to: ['b@shop.example'] },
    },
    repeatHours: 24,
    balanceBelow: '100',
    balanceDays: 3,
    syncStaleHours: 3,
    diskFreeMb: 500,
  },
  logLevel: 'info',
  identity: { supplier: 'https://supplier.example/v1', stores: ['gone-k3j9x2p7'] },
}

const ODD: Record<string, unknown> = {
  'an address without a scheme': 'shop.example',
  'an address without a scheme, with a port': 'shop.example:8080',
  'an address with a mistyped scheme': 'htps://shop.example',
  'an address without a name': 'https://',
  'an address with a password': 'https://anna:hunter22@shop.example/v1',
  'an address with a space': 'https://shop example/v1',
  'an address in quotes': '"https://shop.example/v1"',
  'a postgres address without a host': 'postgres://',
  empty: '',
  spaces: '   ',
  'an emoji': '🛒',
  'a very long text': 'x'.repeat(5_000),
  'a negative number': -1,
  zero: 0,
  'a fraction': 1.5,
  'a number beyond all bounds': 1e300,
  'a number as text': '8080',
  'a negative number as text': '-1',
  'a comma as decimal sign': '12,5',
  'an amount with its currency': '12.50 EUR',
  'a percentage with its sign': '20%',
  'nothing (null)': null,
  'a list': [],
  'a list of lists': [[]],
  'an object': {},
  'a yes': true,
  'a yes as text': 'yes',
  'the path of a file': '/etc/passwd',
  'a path upwards': '../../x.json',
  'a byte order mark': '\ufeffUSD',
  'a newline at the end': 'USD\n',
  'a null character': 'a\u0000b',
  'a name of JavaScript': '__proto__',
  'a cron expression': '61 25 * * *',
  'a day that is none': '2026-02-31',
  'a day as people write it': '31.01.2026',
  'a number with a sign for thousands': '1,000.50',
  'a number in other digits': '١٢',
  'a number in hexadecimal': '0x1F90',
  'infinity as text': 'Infinity',
  'a text that is written backwards': 'USD\u202eDSU',
  'a path of Windows': 'C:\\quayside\\data',
  'a word that stands for nothing': 'null',
}

type Path = (string | number)[]

/** Every value of the settings, the objects and lists as well. */
function pathsIn(value: unknown, at: Path = []): Path[] {
  const below =
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, inner]) => pathsIn(inner, [...at, key]))
      : []
  return at.length === 0 ? below : [at, ...below]
}

function withValue(at: Path, value: unknown): unknown {
  const settings = structuredClone(ALL)
  let place = settings as unknown as Record<string, unknown>
  for (const key of at.slice(0, -1)) place = place[key] as Record<string, unknown>
  place[String(at.at(-1))] = value
  return settings
}

/** What zod and JavaScript say, and no person. */
const NO_SENTENCE = /invalid|expected|received|undefined|\[object|unrecognized|regex|NaN/i

test('every setting is right in the example', () => {
  expect(() => checkedConfig(file, ALL, env)).not.toThrow()
})

const texts = Object.entries(ODD).filter((one): one is [string, string] => typeof one[1] === 'string')

test.each(texts)('%s in the place of any secret', (_, odd) => {
  const faults: string[] = []
  const { database: _url, ...others } = ALL
  for (const name of [...Object.keys(env), 'QUAYSIDE_DATABASE_URL']) {
    try {
      checkedConfig(file, others, { ...env, [name]: odd })
    } catch (error) {
      const said = error instanceof Failure ? error.fields : []
      const text = said.map(({ field, message }) => `${field}: ${message}`).join('\n')
      if (!said.some(({ field }) => field === name)) faults.push(`${name} is not named: ${text || error}`)
      else if (NO_SENTENCE.test(text)) faults.push(`${name} gets no sentence: ${text}`)
      else if (text.includes('hunter22')) faults.push(`${name} shows a password: ${text}`)
    }
  }
  expect(faults).toEqual([])
})

test.each(['db.example/quayside', 'https://anna:hunter22@db.example/quayside', 'quayside'])(
  'the address %s of a database was refused without its name, when it was opened',
  (address) => {
    const { database: _url, ...others } = ALL
    const load = () => checkedConfig(file, others, { ...env, QUAYSIDE_DATABASE_URL: address })
    expect(load).toThrow(/QUAYSIDE_DATABASE_URL: must be an address such as postgres:\/\/user:password@host\/database$/)
  },
)

test.each(Object.entries(ODD))('%s in the place of any setting', (_, odd) => {
  const faults: string[] = []
  for (const at of pathsIn(ALL)) {
    const setting = at.join('.')
    try {
      checkedConfig(file, withValue(at, odd), env)
    } catch (error) {
      const said = error instanceof Failure ? error.fields : []
      const text = said.map(({ field, message }) => `${field}: ${message}`).join('\n')
      // What does not fit to another setting may be said of that one.
      const names =
        said.some(({ field }) => field.startsWith(setting) || setting.startsWith(`${field}.`)) ||
        text.includes(String(at.at(-1)))
      if (!(error instanceof Failure)) faults.push(`${setting} crashes: ${error}`)
      else if (!names) faults.push(`${setting} is not named: ${text || error.message}`)
      else if (NO_SENTENCE.test(text)) faults.push(`${setting} gets no sentence: ${text}`)
      else if (text.includes('hunter22')) faults.push(`${setting} shows a password: ${text}`)
    }
  }
  expect(faults).toEqual([])
})
