/**
 * The configuration: settings and secrets, checked together, then frozen. What belongs to a process is in one JSON file and the
 * environment. What belongs to the installation has one home: the same file, or the newest revision in the database.
 */

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import path from 'node:path'
import { validate as validCron } from 'node-cron'
import { z } from 'zod'
import { type Dialect, keyFault, readDialect, valueAt } from '../dialect/dialect.ts'
import { faultsOf, sayWhatIsRight } from '../dialect/file-faults.ts'
import { parseDecimal } from '../domain/money.ts'
import { sendsLinks } from '../domain/store-update.ts'
import { conflict, Failure, type FieldFault, messageOf, systemFailure } from '../errors.ts'
import { Secret } from '../secret.ts'
import { type ConfiguredStore, kindOf, type StoreSettings, storeShape } from '../stores/kinds.ts'
import type { ShopAccess, ShopCredentials } from '../stores/store-kind.ts'
import {
  amount,
  everyStore,
  isLoopback,
  languageTag,
  percent,
  ratesShape,
  section,
  sellingFaults,
  siteAddress,
  storePolicy,
  webAddress,
} from '../stores/store-settings.ts'
import { alertsShape, type ChannelAddress, channelAddress, channelSource } from './alert-settings.ts'

/** An address without a path, because the links and the cookie of the console begin at the root of its host. */
const consoleAddress = webAddress.refine(
  (url) => /^https:\/\/[^/?#@]+\/?$/.test(url),
  'an address that starts with https:// and has no path, such as "https://console.example"',
)
const cron = z.string().refine(validCron, 'a cron expression, such as "*/30 * * * *"')
const network = z.string().refine(isNetwork, 'an address or a network of a proxy, such as "127.0.0.1" or "10.0.0.0/8"')
/** Markdown. A page may show it several times, and weighs little. */
const markdown = z.string().min(1).max(2_000)
const folder = z.string().regex(/^[^\0]*[^\0\s][^\0]*$/, 'the path of a folder')
const host = z.string().regex(/^[\w.:-]+$/, 'the address of this machine to listen at, such as "127.0.0.1"')
const port = z.number().int().min(0).max(65535)
/** From `config/quayside.json`, this is `data/run` next to `config`. */
export const DATA_DIR = '../data/run'

export const configShape = z.strictObject({
  supplier: z.strictObject({
    /** Base address of the supplier's API. `baseUrlFault` checks it by the dialect. */
    baseUrl: webAddress,
    /** Name of a file in config/dialects, or path of a dialect file. */
    dialect: z
      .string()
      .regex(/^[^\0:]+$/, 'the name of a dialect, or the path of its file')
      .default('reseller-v1.1'),
  }),
  /** The list is empty until the first store is added. */
  stores: z.array(storeShape),
  /** Exchange rates, from the supplier's currency to that of a store and back. No rate is derived from another rate. */
  rates: ratesShape,
  listen: section({ host: host.default('127.0.0.1'), port: port.default(8080) }),
  /** The pages for people, on a listener of their own. */
  console: section({
    /** Where the console listens; null: there is no console. */
    listen: z
      .strictObject({ host: host.default('127.0.0.1'), port: port.default(8081) })
      .nullable()
      .prefault({}),
    /** The address of the proxy with TLS through which people reach the console; null: they use loopback. */
    url: consoleAddress.nullable().default(null),
  }),
  /** Where the supplier and shops reach this service, without a slash at its end; null: polling only. */
  publicUrl: siteAddress
    .transform((url) => url.replace(/\/+$/, ''))
    .nullable()
    .default(null),
  /** The folder of the database. Relative paths, here and below, start at the folder of the configuration file. */
  dataDir: folder.default(DATA_DIR),
  /** A PostgreSQL server instead of a file in `dataDir`. */
  database: section({
    /** The address of the server, without a password. Either the password or the whole address is kept among the secrets. */
    url: z
      .string()
      .refine(isServerAddress, 'an address such as "postgres://user@host/database"')
      .refine(
        hasNoPassword,
        'it has a password, and others may read this file: leave the password out and write it to secrets/database-password',
      )
      .nullable()
      .default(null),
  }),
  /** The pages on which customers open their keys. */
  keys: section({
    /** For how many days after an order its page shows keys. */
    pageDays: z.number().int().min(1).max(3_650).default(365),
    /** The proxies whose `X-Forwarded-For` is believed, to know the network of a customer. */
    proxies: z.array(network).default([]),
    /** How keys are redeemed: of one product by the supplier's id, of a category, or of all. */
    redeem: z
      .array(
        z.strictObject({
          product: z.string().min(1).optional(),
          category: z.string().min(1).optional(),
          text: z.union([markdown, z.record(languageTag, markdown)]),
        }),
      )
      .default([]),
    /** For how many days the claim that a key does not work may be open before people are alerted. */
    claimDays: z.number().int().min(1).max(365).default(3),
    /** Once a paid unit has waited for so many minutes, the customer learns of it; 0: never. */
    lateMinutes: z.number().int().min(0).max(43_200).default(30),
  }),
  /** When the catalogue is read, in full. */
  syncCron: cron.default('*/30 * * * *'),
  /** When GET /balance is read. */
  balanceCron: cron.default('*/5 * * * *'),
  /** When the supplier's recent orders are compared with ours. */
  sweepCron: cron.default('*/15 * * * *'),
  ordering: section({
    /** The time between two looks for due work. Most work is begun before the next look, because an event wakes its worker. */
    tickSeconds: z.number().int().min(1).max(60).default(2),
    /** Purchases in progress at once. */
    inFlight: z.number().int().min(1).max(4).default(4),
    /** An offer that was read within this time is not read again before it is bought; 0: it is always read again. */
    offerFreshnessSeconds: z.number().int().min(0).max(86_400).default(1_800),
    /** How old the reading of a shop's order may be when a purchase for that order is first sent. */
    entitlementSeconds: z.number().int().min(1).max(3_600).default(60),
    /** A purchase that could not be sent for this long is cancelled. */
    deadlineHours: z.number().positive().max(720).default(72),
    /** The ceiling of a line without a unit price is its cost at intake plus this percentage. */
    ceilingPercent: percent.default('10'),
    /** The ceiling of a line with a unit price is that price less this margin. */
    minMarginPercent: percent.default('0'),
  }),
  backups: section({
    /** When a backup is made; null: only on request. */
    cron: cron.nullable().default('20 2 * * *'),
    /** Where the backups are kept; null: `backups` in the data folder. */
    folder: folder.nullable().default(null),
    /** How many backups are kept, and for how many days. The newest backup is always kept. */
    keep: z.number().int().min(1).max(10_000).default(14),
    keepDays: z.number().int().min(1).max(3_650).default(30),
  }),
  /** The most that may be reserved or spent, in the supplier's currency; null: no cap. */
  spendCaps: section({
    order: amount.nullable().default(null),
    hour: amount.nullable().default(null),
    day: amount.nullable().default(null),
  }),
  /** What is watched, and how people are notified. */
  alerts: alertsShape.prefault({}),
  logLevel: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  /** What purchase keys are derived from: a lost database and a backup are recognised by it. Quayside writes it. */
  identity: section({
    /** The address of the supplier's API. */
    supplier: webAddress.nullable().default(null),
    /** The permanent ids of all stores that there ever were. */
    stores: z.array(everyStore.id).default([]),
  }),
})

export type Settings = z.infer<typeof configShape>

/** The settings that belong to a process: they are in the file, and its `keys` has `proxies` alone. */
export const processKeys = {
  listen: true,
  console: true,
  dataDir: true,
  database: true,
  backups: true,
  logLevel: true,
  identity: true,
} as const
const processShape = configShape.pick(processKeys).strip()

/** The settings of the installation as a revision has them. */
export interface StoredSettings {
  revision: number
  document: Record<string, unknown>
  /** Maps the name of a secret to its text. The names are those of the files: `api-key`, `store-<id>`, `alert-<channel>`. */
  secrets: ReadonlyMap<string, Secret>
}

/** What a process needs to open its database. */
export interface ProcessConfig extends z.infer<typeof processShape> {
  /** The path of the configuration file. */
  file: string
  /** Where the settings of the installation are. */
  home: 'file' | 'database'
  keyEncryptionKey: Secret
  /** The address of a PostgreSQL database; null: the database is a file in `dataDir`. */
  databaseUrl: Secret | null
  /**
   * Reads the next key-encryption key, again at each call; undefined when there is no such key.
   *
   * @throws Failure `invalid` when other users can read the file of the key, or the file is empty
   */
  nextKeyEncryptionKey: () => Secret | undefined
}

export interface Config extends Omit<Settings, 'stores'>, ProcessConfig {
  stores: ConfiguredStore[]
  /** The number of the revision of the settings; null where the file is their home. */
  revision: number | null
  /** The settings of the installation as they were written, without defaults. */
  document: Record<string, unknown>
  /**
   * Returns this configuration with other settings of the installation. Where the file is their home, its secrets stay.
   *
   * @throws Failure `invalid` with every fault
   */
  withSettings: (stored: StoredSettings) => Config
  dialectFile: string
  dialectFacts: Dialect
  apiKey: Secret
  /** Where each channel of alerts sends to, by its name. */
  alertAddresses: ReadonlyMap<string, ChannelAddress>
}

/** Returns the permanent ids of all stores that there ever were: orders at the supplier carry them, and backups name them. */
export const storeIdsOf = ({ stores, identity }: StoreIds): string[] => [
  ...new Set([...(identity?.stores ?? []), ...stores.map(({ id }) => id)]),
]
export interface StoreIds {
  stores: readonly { id: string }[]
  identity?: { stores: readonly string[] }
}

/** Where each secret is read from: the variable, the file that the variable with `_FILE` names, or a file in `secrets`. */
export const SECRETS = {
  apiKey: { variable: 'QUAYSIDE_API_KEY', file: 'api-key' },
  keyEncryptionKey: { variable: 'QUAYSIDE_KEY_ENCRYPTION_KEY', file: 'key-encryption-key' },
  /** For `quayside keys rotate`. May be absent. */
  nextKeyEncryptionKey: { variable: 'QUAYSIDE_NEXT_KEY_ENCRYPTION_KEY', file: 'next-key-encryption-key' },
  /** The address of a PostgreSQL database. The address may hold a password. May be absent. */
  databaseUrl: { variable: 'QUAYSIDE_DATABASE_URL', file: 'database-url' },
  /** The password for an address without one. May be absent. */
  databasePassword: { variable: 'QUAYSIDE_DATABASE_PASSWORD', file: 'database-password' },
} as const

export type SecretSource = { variable: string; file: string }
type Env = Record<string, string | undefined>

/**
 * Reads and checks the whole configuration at once.
 *
 * @param stored the newest revision of the settings; undefined where the database has none
 * @throws Failure `invalid` with every fault of the file, the dialect and the secrets
 * @throws Failure `conflict`, reason `two_homes` where file and database both have settings of the installation; reason
 *   `no_settings` where neither has
 */
export function loadConfig(file: string, env: Env, stored?: StoredSettings): Config {
  const json = readJson(file)
  if (homeOf(json) === 'database' && !stored) throw noSettings(file)
  return checkedConfig(file, json, env, { stored })
}

/** What a file says of an installation. Where its settings are in the database, `stores` is empty, and `ordering` absent. */
export type OwnConfig = ProcessConfig & Pick<Config, 'stores'> & Partial<Pick<Config, 'ordering'>>

/**
 * Reads what the file itself says of an installation, for work on its database.
 *
 * @throws Failure as `loadConfig` does
 */
export function loadOwn(file: string, env: Env): OwnConfig {
  return homeOf(readJson(file)) === 'file' ? loadConfig(file, env) : { ...loadProcess(file, env), stores: [] }
}

/** The failure of a start where neither the file nor the database has the settings of the installation. */
export const noSettings = (file: string): Failure =>
  conflict(
    'no_settings',
    `${file} has neither supplier nor stores, so the settings are in the database, and it has none yet: apply a document of them by \`quayside settings apply\``,
  )

/** The settings of the installation are in a file that has any of the two without which there is no installation. */
const homeOf = (json: unknown): Config['home'] =>
  isObject(json) && !('supplier' in json || 'stores' in json) ? 'database' : 'file'

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Reads what a process needs to open its database, whatever the settings of the installation are.
 *
 * @throws Failure `invalid` with the faults of these settings and secrets
 */
export function loadProcess(file: string, env: Env): ProcessConfig {
  const json = readJson(file)
  const result = processShape.safeParse(json, { error: sayWhatIsRight })
  const faults: FieldFault[] = result.success
    ? []
    : result.error.issues.flatMap((issue) => faultsOf(processShape, issue, json))
  const read = processOf(result.data ?? processShape.parse({}), json, file, env, faults)
  if (faults.length > 0) throw faulty(`the configuration ${file}`, faults)
  return read
}

function processOf(
  settings: z.infer<typeof processShape>,
  json: unknown,
  file: string,
  env: Env,
  faults: FieldFault[],
  made?: Secret,
): ProcessConfig {
  const folder = path.dirname(path.resolve(file))
  const keyEncryptionKey = readSecret(SECRETS.keyEncryptionKey, folder, env, faults, made)
  const databaseUrl = readDatabaseUrl(settings.database.url, folder, env, faults)
  const { backups } = settings
  return {
    ...settings,
    dataDir: path.resolve(folder, settings.dataDir),
    backups: {
      ...backups,
      folder: backups.folder === null ? null : path.resolve(folder, backups.folder),
      // The operator of a PostgreSQL database makes its backups.
      ...(databaseUrl && { cron: null }),
    },
    file,
    home: homeOf(json),
    keyEncryptionKey,
    databaseUrl,
    nextKeyEncryptionKey: () => {
      const { nextKeyEncryptionKey: next } = SECRETS
      return isGiven(next, folder, env) ? readOneSecret(next, folder, env) : undefined
    },
  }
}

function faulty(what: string, faults: FieldFault[]): Failure {
  const list = faults.map((fault) => `  ${fault.field}: ${fault.message}`).join('\n')
  return new Failure('invalid', `${what} has faults:\n${list}`, { fields: faults })
}

/** Puts the settings of a process and those of the installation together. Notes each that is not in its place. */
function joined(json: unknown, { document }: StoredSettings, file: string, faults: FieldFault[]): unknown {
  if (!isObject(json)) return json
  const [own, given] = [partsOf(json), partsOf(document)]
  const inDatabase = `the settings are in the database, which has it too: take it out of ${file}`
  const inFile = `it belongs to a process, and stays in ${file}`
  const strays = namesIn(own.document).filter((name) => (name.split('.')[0] ?? '') in configShape.shape)
  faults.push(...strays.map((field) => ({ field, message: inDatabase })))
  faults.push(...namesIn(given.process).map((field) => ({ field, message: inFile })))
  return besides({ ...own.document, ...own.process }, given.document)
}

/** Divides settings into those of a process and those of the installation. `keys` has both. */
export function partsOf(json: unknown): Record<'process' | 'document', Record<string, unknown>> {
  if (!isObject(json)) return { process: {}, document: {} }
  const entries = Object.entries(json).filter(([name]) => name !== 'keys' || !isObject(json.keys))
  const { proxies, ...pages } = isObject(json.keys) ? json.keys : {}
  const part = (isOfProcess: boolean, keys: object) => ({
    ...Object.fromEntries(entries.filter(([name]) => name in processKeys === isOfProcess)),
    ...(Object.keys(keys).length > 0 && { keys }),
  })
  return { process: part(true, proxies === undefined ? {} : { proxies }), document: part(false, pages) }
}

/** Puts two parts of settings together, of which both may have `keys`. */
const besides = (one: Record<string, unknown>, other: Record<string, unknown>) => ({
  ...one,
  ...other,
  ...((one.keys !== undefined || other.keys !== undefined) && { keys: { ...Object(other.keys), ...Object(one.keys) } }),
})

const namesIn = ({ keys, ...others }: Record<string, unknown>): string[] => [
  ...Object.keys(others),
  ...Object.keys(Object(keys)).map((name) => `keys.${name}`),
]

/**
 * Checks settings that need not be in the file yet, and reads their secrets and their dialect.
 *
 * @param made secrets that are not in their files yet
 * @param made.stored settings of the installation from the database: all their secrets are among them
 * @throws Failure `invalid` and reason `two_homes`, see `loadConfig`
 */
export function checkedConfig(
  file: string,
  json: unknown,
  env: Env,
  made: {
    apiKey?: Secret | undefined
    keyEncryptionKey?: Secret | undefined
    /** Credentials of shops, by the id of the store. */
    stores?: Record<string, Secret>
    stored?: StoredSettings | undefined
  } = {},
): Config {
  const { stored } = made
  if (stored && homeOf(json) === 'file') throw twoHomes(file, stored.revision)
  const strays: FieldFault[] = []
  const whole = stored ? joined(json, stored, file, strays) : json
  const settings = readSettings(whole)
  const faults: FieldFault[] = [...strays, ...settings.faults]
  const folder = path.dirname(path.resolve(file))
  const secretOf = (source: SecretSource, given?: Secret): Secret =>
    stored ? storedSecret(stored, source, faults) : readSecret(source, folder, env, faults, given)
  const apiKey = secretOf(SECRETS.apiKey, made.apiKey)
  const process = processOf(settings.value ?? processShape.parse({}), json, file, env, faults, made.keyEncryptionKey)
  const dialect = readDialectOf(whole, folder, settings.value ? faults : [])
  faults.unshift(...baseUrlFaults(whole, dialect?.facts))
  const credentials = new Map(
    settings.value?.stores.map((store) => {
      const given = made.stores?.[store.id]
      return [store.id, readCredentials(store, (source) => secretOf(source, given), faults, stored !== undefined)]
    }),
  )
  const alertAddresses = settings.value
    ? readAlertAddresses(settings.value, secretOf, faults, stored !== undefined)
    : new Map()
  if (settings.value && dialect) {
    const { stores, rates } = settings.value
    const message = apiKey.reveal() === '' ? undefined : keyFault(dialect.facts, apiKey.reveal())
    if (message !== undefined)
      faults.push({ field: stored ? fieldOf(SECRETS.apiKey) : SECRETS.apiKey.variable, message })
    checkCaps(settings.value, dialect.facts, faults)
    checkConsole(settings.value, faults)
    checkLinks(settings.value, faults)
    faults.push(...sellingFaults(stores, rates, dialect.facts.money.currency))
  }
  if (faults.length > 0 || !settings.value || !dialect) {
    throw faulty(stored ? `revision ${stored.revision} of the settings` : `the configuration ${file}`, faults)
  }
  const { rates } = settings.value
  const { currency } = dialect.facts.money
  return Object.freeze({
    ...settings.value,
    ...process,
    stores: settings.value.stores.map((store) => ({
      ...store,
      currency: store.currency ?? currency,
      policy: storePolicy(store, rates, currency),
      address: kindOf(store).addressOf(store),
      credentials: credentials.get(store.id),
    })),
    revision: stored?.revision ?? null,
    document: stored?.document ?? partsOf(json).document,
    withSettings: (next: StoredSettings) =>
      stored
        ? checkedConfig(file, json, env, { stored: next })
        : checkedConfig(file, besides(partsOf(json).process, next.document), env, made),
    dialectFile: dialect.file,
    dialectFacts: dialect.facts,
    apiKey,
    alertAddresses,
  })
}

/** The failure of settings that are in the file and in the database. */
export const twoHomes = (file: string, revision: number): Failure =>
  conflict(
    'two_homes',
    `the settings of the installation are in two places: ${file} has supplier or stores, and the database has revision ${revision} of them. To use the database, finish the move by \`quayside settings adopt\`, which takes them out of the file`,
  )

/** Where the secrets are read from that belong to the installation. In the database they have the names of these files. */
export const secretSourcesOf = ({ stores, alerts }: Pick<Config, 'stores' | 'alerts'>): SecretSource[] => [
  SECRETS.apiKey,
  ...stores.filter(({ credentials }) => credentials).map(({ id }) => credentialsSource(id)),
  ...Object.keys(alerts.channels).map(channelSource),
]

/** Names the field of a secret that is kept in the database: `secrets.api-key`. */
const fieldOf = ({ file }: SecretSource): string => `secrets.${file}`

function storedSecret({ secrets }: StoredSettings, source: SecretSource, faults: FieldFault[]): Secret {
  const secret = secrets.get(source.file)
  if (!secret) faults.push({ field: fieldOf(source), message: 'not set: give it together with the settings' })
  return secret ?? new Secret('')
}

/**
 * Returns the API key that the service will use: a key in the environment wins over the given key.
 *
 * @throws Failure `invalid` where there is no key
 */
export const readApiKey = (file: string, env: Env, given: Secret | undefined): Secret =>
  readOneSecret(SECRETS.apiKey, path.dirname(path.resolve(file)), env, given)

export const credentialsSource = (store: string) => ({
  variable: `QUAYSIDE_STORE_${store.toUpperCase().replaceAll('-', '_')}`,
  file: `store-${store}`,
})

function readCredentials(
  store: StoreSettings,
  secretOf: (source: SecretSource) => Secret,
  faults: FieldFault[],
  isStored: boolean,
): ShopCredentials | undefined {
  const { shop } = kindOf(store)
  if (!shop) return undefined
  const source = credentialsSource(store.id)
  const before = faults.length
  const text = secretOf(source).reveal()
  const credentials = shop.readCredentials(text)
  if (!credentials && faults.length === before) {
    faults.push({ field: isStored ? fieldOf(source) : source.variable, message: credentialsFault(shop, text) })
  }
  return credentials
}

/** Says what the credentials must be. @param text the credentials that cannot be read */
export function credentialsFault({ credentials, readCredentials }: ShopAccess, text: string): string {
  const [key, secret, ...more] = text.split(':')
  const areSwapped = readCredentials([secret, key, ...more].join(':')) !== undefined
  return `${areSwapped ? 'the two are swapped: it ' : ''}must be ${credentials}, joined by a colon`
}

function isServerAddress(address: string): boolean {
  return URL.canParse(address) && /^postgres(ql)?:$/.test(new URL(address).protocol)
}

function hasNoPassword(address: string): boolean {
  if (!URL.canParse(address)) return true
  const { password, searchParams } = new URL(address)
  return password === '' && !searchParams.has('password')
}

/** Returns the address of the PostgreSQL server; null: the database is a file. @param setting `database.url` */
function readDatabaseUrl(setting: string | null, folder: string, env: Env, faults: FieldFault[]): Secret | null {
  const { databaseUrl, databasePassword } = SECRETS
  const given = isGiven(databaseUrl, folder, env) ? readSecret(databaseUrl, folder, env, faults) : null
  if (given !== null && given.reveal() !== '' && !isServerAddress(given.reveal())) {
    const message = 'must be an address such as postgres://user:password@host/database'
    faults.push({ field: databaseUrl.variable, message })
  }
  if (given !== null && setting !== null) {
    const message = `${databaseUrl.variable} (or secrets/${databaseUrl.file}) names a database too: keep one of the two`
    faults.push({ field: 'database.url', message })
  }
  const address = given?.reveal() ?? setting
  if (address === null || !isGiven(databasePassword, folder, env))
    return given ?? (address === null ? null : new Secret(address))
  const password = readSecret(databasePassword, folder, env, faults)
  if (!hasNoPassword(address)) {
    const message = `the address in ${databaseUrl.variable} has a password already: keep one of the two`
    faults.push({ field: databasePassword.variable, message })
  }
  if (!URL.canParse(address)) return given
  const url = new URL(address)
  // The address of a socket has no host before which a password could stand. In the query, every address takes a password.
  url.searchParams.set('password', password.reveal())
  return new Secret(url.href)
}

function readAlertAddresses(
  { alerts }: Settings,
  secretOf: (source: SecretSource) => Secret,
  faults: FieldFault[],
  isStored: boolean,
) {
  const addresses = new Map<string, ChannelAddress>()
  for (const [name, { kind }] of Object.entries(alerts.channels)) {
    const source = channelSource(name)
    const before = faults.length
    const address = channelAddress(kind, secretOf(source).reveal())
    if (typeof address !== 'string') addresses.set(name, address)
    else if (faults.length === before)
      faults.push({ field: isStored ? fieldOf(source) : source.variable, message: address })
  }
  return addresses
}

/** Says whether the API key is set. @param folder the folder of the configuration */
export const hasApiKey = (folder: string, env: Env): boolean => isGiven(SECRETS.apiKey, folder, env)

/** Says whether a secret that may be absent is set. @param folder the folder of the configuration */
export const isGiven = ({ variable, file }: SecretSource, folder: string, env: Env): boolean =>
  Boolean(env[variable] || env[`${variable}_FILE`]) || existsSync(path.join(folder, 'secrets', file))

/** Reads a secret from a file that only its owner may read. @throws Failure `invalid` */
export function readSecretFile(file: string): Secret {
  const faults: FieldFault[] = []
  const secret = readSecret({ variable: file, file }, '', { [`${file}_FILE`]: file }, faults)
  const [fault] = faults
  if (fault) throw new Failure('invalid', fault.message)
  return secret
}

/** @throws Failure that says why the file cannot be read */
export function readText(file: string): string {
  try {
    // Editors of Windows begin a file with a byte order mark.
    return readFileSync(file, 'utf8').replace(/^\ufeff/, '')
  } catch (error) {
    throw systemFailure(error, file) ?? error
  }
}

/** @throws Failure as `readText` does; also `invalid`, where the text is not JSON */
export function readJson(file: string): unknown {
  const text = readText(file)
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Failure('invalid', `${file} is not JSON: ${messageOf(cause)}`, { cause })
  }
}

function readSettings(json: unknown): { value?: Settings; faults: FieldFault[] } {
  const result = configShape.safeParse(json, { error: sayWhatIsRight })
  if (!result.success) {
    const faults = result.error.issues.flatMap((issue) => faultsOf(configShape, issue, json))
    return { faults: faults.map(({ field, message }) => ({ field, message })) }
  }
  const ids = result.data.stores.map((store) => store.id)
  const twice = ids.find((id, index) => ids.indexOf(id) !== index)
  return {
    value: result.data,
    faults: [
      ...(twice ? [{ field: 'stores', message: `two stores have the id ${twice}` }] : []),
      ...shopsTwice(result.data.stores),
    ],
  }
}

/** Refuses a shop under two ids: each store buys for all orders that it reads, so every order would be bought twice. */
function shopsTwice(stores: StoreSettings[]): FieldFault[] {
  const places = stores.map((store) => {
    const { shop, addressOf } = kindOf(store)
    return shop ? placeOfShop(addressOf(store)) : undefined
  })
  return places.flatMap((place, index) => {
    const before = place === undefined ? index : places.indexOf(place)
    if (before === index) return []
    const message = `the same shop as stores.${before}: every order would be bought twice`
    return [{ field: `stores.${index}.url`, message }]
  })
}

/** Returns host and folder: a shop is the same by http and https, and with or without `www`. */
function placeOfShop(url: string): string {
  const { host, pathname } = new URL(url)
  return host.replace(/^www\./, '') + pathname.replace(/\/+$/, '')
}

/** @throws Failure `invalid` where it is not set, or cannot be read */
export function readOneSecret(source: SecretSource, folder: string, env: Env, made?: Secret): Secret {
  const faults: FieldFault[] = []
  const secret = readSecret(source, folder, env, faults, made)
  const [fault] = faults
  if (fault) throw new Failure('invalid', `${fault.field}: ${fault.message}`, { fields: faults })
  return secret
}

function readSecret(source: SecretSource, folder: string, env: Env, faults: FieldFault[], made?: Secret): Secret {
  const direct = env[source.variable]
  if (direct) return new Secret(direct.trim())
  const named = env[`${source.variable}_FILE`]
  if (named === undefined && made) return made
  const file = named ?? path.join(folder, 'secrets', source.file)
  const fault = (message: string): Secret => {
    faults.push({ field: source.variable, message })
    return new Secret('')
  }
  try {
    const facts = statSync(file, { throwIfNoEntry: false })
    if (!facts) return fault(`not set: set it, or ${source.variable}_FILE, or write the file ${file}`)
    if ((facts.mode & 0o077) !== 0) return fault(`others can read ${file}: chmod 600 ${file}`)
    const text = readText(file).trim()
    return text === '' ? fault(`the file ${file} is empty`) : new Secret(text)
  } catch (error) {
    return fault(messageOf(error))
  }
}

const DIALECTS = path.join(import.meta.dirname, '../../config/dialects')

/** Returns the file that `supplier.dialect` names. @param folder where the configuration is */
export const dialectFileOf = (name: string, folder: string): string =>
  name.endsWith('.json') ? path.resolve(folder, name) : path.join(DIALECTS, `${name}.json`)

/** The dialects that come with the program, without those for tests. */
export const shippedDialects = (): Dialect[] =>
  readdirSync(DIALECTS)
    .filter((file) => file.endsWith('.json'))
    .map((file) => readDialect(path.join(DIALECTS, file)))
    .filter(({ about }) => !about.startsWith('For tests only'))

/** Reads the dialect that is named, also where other settings are wrong, so that every fault is named at once. */
function readDialectOf(json: unknown, folder: string, faults: FieldFault[]) {
  const name = supplierShape.dialect.safeParse(valueAt(json, 'supplier.dialect'))
  if (!name.success) return undefined
  const file = dialectFileOf(name.data, folder)
  try {
    return { file, facts: readDialect(file) }
  } catch (error) {
    faults.push({ field: 'supplier.dialect', message: messageOf(error) })
    return undefined
  }
}

const { shape: supplierShape } = configShape.shape.supplier

function baseUrlFaults(json: unknown, dialect: Dialect | undefined): FieldFault[] {
  const address = supplierShape.baseUrl.safeParse(valueAt(json, 'supplier.baseUrl'))
  const message = address.success && dialect ? baseUrlFault(address.data, dialect) : undefined
  return message === undefined ? [] : [{ field: 'supplier.baseUrl', message }]
}

/** Says what is wrong with an address for a dialect: that of the Reseller API ends in /v1, one with paths of its own need not. */
export function baseUrlFault(address: string, { paths }: Pick<Dialect, 'paths'>): string | undefined {
  if (paths) return /[?#]/.test(address) ? 'an address without ? and #' : undefined
  return /^[^?#]*[^/]\/v1\/?$/.test(address) ? undefined : 'an address that ends in /v1'
}

/** Refuses a console beyond loopback without TLS: it would send sessions and licence keys in clear text. */
function checkConsole({ console: { listen, url } }: Settings, faults: FieldFault[]): void {
  if (listen === null || url !== null || isLoopback(listen.host)) return
  const message = `${listen.host} is not loopback: put a proxy that speaks TLS before it and set console.url to its https address, or use 127.0.0.1`
  faults.push({ field: 'console.listen.host', message })
}

function isNetwork(text: string): boolean {
  const [address = '', bits = '1', more] = text.split('/')
  const version = isIP(address)
  const most = version === 4 ? 32 : 128
  return version !== 0 && more === undefined && /^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= most
}

function checkLinks({ publicUrl, stores }: Settings, faults: FieldFault[]): void {
  if (publicUrl !== null) return
  for (const [index, store] of stores.entries()) {
    if (!sendsLinks(store)) continue
    const message = `"${store.deliver}" needs publicUrl, because customers open the link there: set publicUrl, or use "keys"`
    faults.push({ field: `stores.${index}.deliver`, message })
  }
}

function checkCaps(settings: Settings, dialect: Dialect, faults: FieldFault[]): void {
  const { currency } = dialect.money
  const checkAmount = (field: string, text: string | null): void => {
    if (text === null || parseDecimal(text, currency) !== undefined) return
    faults.push({ field, message: `not an amount in ${currency}: ${text}` })
  }
  for (const [name, cap] of Object.entries(settings.spendCaps)) checkAmount(`spendCaps.${name}`, cap)
  checkAmount('alerts.balanceBelow', settings.alerts.balanceBelow)
}

/**
 * What a process does. Several processes may share a database: `web` takes deliveries and orders, and serves the API and the
 * console. `worker` buys, reads, syncs, publishes and hands over; one process at a time does so. `all` does both.
 */
export const roles = ['all', 'web', 'worker'] as const
export type Role = (typeof roles)[number]
