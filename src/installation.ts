import { randomBytes } from 'node:crypto'
import { accessSync, constants, existsSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLink } from './access/sessions.ts'
import { createToken, tokenOfStore } from './access/tokens.ts'
import type { Config, ProcessConfig, StoredSettings } from './config/config.ts'
import { namesInRules } from './domain/pricing-rules.ts'
import { conflict, Failure, messageOf } from './errors.ts'
import { createIds } from './ids.ts'
import { createWebhook, storeWebhookUrl } from './inbox/webhooks.ts'
import { retireStore } from './ordering/actions.ts'
import { Secret } from './secret.ts'
import { differences, documentShape } from './settings/document.ts'
import { revisionChanges } from './settings/settings.ts'
import { readConfig, vaultBeside } from './settings/stored.ts'
import { databaseFileOf } from './storage/data-folder.ts'
import { type Database, first } from './storage/database.ts'
import {
  assertFree,
  assertNothingLeft,
  checkServer,
  type DatabasePlace,
  openAlone,
  openBeside,
  placeName,
  readBeside,
} from './storage/database-place.ts'
import { forget, makeFolder, undoOfFolder, writeText } from './storage/files.ts'
import { SET_UP, setFreeze } from './storage/freezes.ts'
import { keysOfPurchase } from './storage/licence-keys.ts'
import { categoriesOfOffers, countOffers, offersBySku, skusOfOffers } from './storage/offers.ts'
import { listPurchases } from './storage/purchases.ts'
import { setStoresMade } from './storage/restores.ts'
import { lastCompleteSync, lastEndedSync } from './storage/runs.ts'
import { keyEncryptionKeyName } from './storage/settings.ts'
import { allWebhooks } from './storage/webhooks.ts'
import { openCallbackSecrets, secretText } from './stores/backend/signature.ts'
import { kindOf } from './stores/kinds.ts'
import { createSupplier } from './supplier/client.ts'
import { checkKeys } from './vault/keys.ts'
import { assertKeyOpens, nameOfKey, openVault, parseKey } from './vault/vault.ts'

/**
 * Finds out whether `setUpOf` would succeed; leaves nothing behind.
 *
 * @param besideFile true: accepts an empty server even if the data folder has a database file
 * @throws Failure `conflict`, reason `database_in_use`, while a service runs; reason `wrong_key` where another
 *   key-encryption key opens the database
 * @throws Failure `invalid` for a malformed key-encryption key, `unavailable` where the data folder cannot be written to
 */
export async function checkSetUp(config: ProcessConfig, besideFile = false): Promise<void> {
  parseKey(config.keyEncryptionKey)
  assertWritable(config.dataDir)
  await assertFree(config)
  const db = await openBeside(config)
  if (!db) return besideFile ? undefined : assertNothingLeft(config)
  try {
    await assertKeyOpens(db, config.keyEncryptionKey)
  } catch (error) {
    if (!(error instanceof Failure) || error.reason !== 'wrong_key') throw error
    const name = (await keyEncryptionKeyName(db)) ?? 'that it was made with'
    const message = `${placeName(config)} is a database under the key-encryption key ${name}: set that key, or move the database away`
    throw new Failure('conflict', message, { cause: error, reason: 'wrong_key' })
  } finally {
    await db.close()
  }
}

/**
 * Creates the database of a configured installation, for `quayside database create`.
 *
 * @throws Failure `conflict`, reason `database_exists`, where there is a database; other failures as `checkSetUp`
 */
export async function createDatabase(config: ProcessConfig, besideFile = false): Promise<{ database: string }> {
  const database = placeName(config)
  if (await hasDatabase(config)) {
    throw conflict('database_exists', `the database ${database} exists already`)
  }
  await checkSetUp(config, besideFile)
  const opened = await openOrDiscard(config, Date.now, await discardOf(config))
  await opened.db.close()
  return { database }
}

/** Returns whether there is a database. A service may be using it. @throws Failure as `openBeside` does */
export async function hasDatabase(place: DatabasePlace): Promise<boolean> {
  const there = await openBeside(place)
  await there?.close()
  return there !== undefined
}

/** Makes the folder and writes a file there, because permissions do not prove that this works. Then removes what it has made. */
function assertWritable(folder: string): void {
  const proof = path.join(folder, '.proof')
  const undoFolder = undoOfFolder(folder)
  try {
    makeFolder(folder)
    // The folder is checked before the file is written, so that the error names the folder and not the file.
    accessSync(folder, constants.W_OK | constants.X_OK)
    writeText(proof, 'Quayside can write to this folder.\n', 0o600)
  } catch (cause) {
    throw new Failure('unavailable', `the data folder ${folder} cannot be written to: ${messageOf(cause)}`, { cause })
  } finally {
    forget(proof)
    undoFolder()
  }
}

/** An opened installation whose service does not run. */
export type SetUp = Awaited<ReturnType<typeof setUpOf>>

/** Opens an installation that does not run. @throws Failure as `setUpOf` and `loadConfig` do */
export const openSetUp = async (configFile: string, env: Record<string, string | undefined>): Promise<SetUp> =>
  setUpOf(await readConfig(configFile, env))

/**
 * Opens an installation that does not run, for `quayside init`, and creates its database where there is none.
 *
 * @param made stores whose permanent ids were made just now
 * @throws Failure `conflict`, reason `database_in_use`, while a service runs; every failure leaves nothing behind
 */
export async function setUpOf(config: Config, made: readonly string[] = []) {
  const now = () => Date.now()
  const newId = createIds(now, randomBytes)
  const discard = await discardOf(config)
  const { db, vault } = await openOrDiscard(config, now, discard)
  if (made.length > 0) await db.commit([setStoresMade(made, now())])
  const supplier = createSupplier({
    baseUrl: config.supplier.baseUrl,
    dialect: config.dialectFacts,
    apiKey: config.apiKey,
    now,
    random: Math.random,
    sleep: (ms) => sleep(ms),
  })
  const close = async (): Promise<void> => {
    await supplier.close()
    await db.close()
  }
  return {
    /**
     * Creates the supplier's webhook under the configured public address, and keeps its secret sealed. If a webhook under this
     * address exists already and its secret is held, returns that webhook and creates none.
     */
    createWebhook: async (): Promise<{ id: string; url: string }> => {
      if (config.publicUrl === null) throw new Failure('invalid', 'the configuration has no publicUrl')
      const wanted = `${config.publicUrl}/webhooks/supplier`
      const known = (await db.query(allWebhooks())).find(({ url }) => url === wanted)
      const dialect = config.dialectFacts
      return known ?? createWebhook({ db, vault, supplier, now, newId, dialect }, config.publicUrl, 'init')
    },
    /** Makes a token of role `store` with the scopes `orders` and `keys`. */
    createStoreToken: async (store: string, name: string): Promise<Secret> =>
      (await createToken({ db, now, newId, randomBytes }, tokenOfStore(store, name), 'init')).token,
    /** Stores the first settings, and stops buying until the set-up is ended by the only person who may go on with it. */
    beginSetUp: async (person: string, settings: StoredSettings): Promise<void> => {
      const freeze = { reason: 'the set-up is not finished', actor: person, at: now() }
      const changes = differences(null, documentShape.parse(settings.document))
      const entry = { actor: person, why: 'set-up: supplier', undoes: null, changes }
      await db.commit([...revisionChanges({ vault, now, newId }, settings, entry), setFreeze(freeze, SET_UP)])
    },
    /** Makes a link that signs a person in to the console, once. */
    signInLink: async (person: string): Promise<Secret> =>
      (await createLink({ db, now, newId, randomBytes }, { name: person, role: 'admin' }, 'set-up')).link,
    /** The secret that callbacks to this store are signed with, `whsec_…`. */
    callbackSecret: async (store: string): Promise<Secret> => {
      const [newest] = (await openCallbackSecrets({ db, vault, now, newId })).of(store)
      if (newest === undefined) throw new Failure('internal', `the store ${store} has no callback secret`)
      return new Secret(secretText(newest))
    },
    /** Ends the access of a store of which nothing is under way. @throws Failure `conflict`, reason `store_under_way` */
    retireStore: async (id: string, reason: string): Promise<void> => {
      const { stores } = config
      const shops = stores.filter((store) => kindOf(store).shop)
      const storeOf = (one: string) => (shops.some((shop) => shop.id === one) ? { order: true } : undefined)
      const sells = shops.some((shop) => shop.id === id && shop.selling === 'on')
      const parts = { db, now, newId, supplier, stores, storeOf }
      await db.commit(await retireStore(parts, id, sells, 'command line', reason))
    },
    close,
    /** Closes the installation, and removes the database if this set-up created it. */
    discard: async (): Promise<void> => {
      await close()
      await discard()
    },
  }
}

/** Opens the database and its vault. After a failure, discards the database, but never one that another process holds. */
async function openOrDiscard(config: ProcessConfig, now: () => number, discard: () => Promise<void>) {
  let db: Database | undefined
  try {
    db = await openAlone(config, { now })
    return { db, vault: await openVault({ database: db, keyEncryptionKey: config.keyEncryptionKey, now }) }
  } catch (error) {
    await db?.close()
    if (!(error instanceof Failure) || error.reason !== 'database_in_use') await discard()
    throw error
  }
}

/** @returns a function that removes the database and the folder of its file, if this call finds that they do not exist yet */
async function discardOf(place: DatabasePlace): Promise<() => Promise<void>> {
  if (place.databaseUrl !== null) {
    const url = place.databaseUrl.reveal()
    const there = await hasDatabase(place)
    const { dropTables } = await import('./storage/postgres/open.ts')
    return async () => {
      if (!there) await dropTables(url)
    }
  }
  const file = databaseFileOf(place.dataDir)
  if (existsSync(file)) return async () => {}
  const undoFolder = undoOfFolder(path.dirname(file))
  return async () => {
    for (const suffix of ['', '-wal', '-shm', '.lock']) forget(file + suffix)
    undoFolder()
  }
}

/** What the database of an installation says about the configuration. */
export type Inspection = Awaited<ReturnType<typeof inspect>>

/**
 * Looks at the database of an installation for `quayside doctor`, while a service may be using it; writes nothing.
 *
 * @throws Failure `unavailable` when the database cannot be read, or when the server is not fit for the service
 */
export async function inspect(config: Config) {
  const version = await checkServer(config, () => Date.now())
  const db = await openBeside(config)
  if (!db) await assertNothingLeft(config)
  try {
    return {
      /** The PostgreSQL server, and whether the database has tables; null: the database is a file. */
      server: version === null ? null : { version, hasTables: db !== undefined },
      key: await keyOf(config, db),
      /** The newest sync that ended; undefined before any sync ended. */
      lastSync: db && (await db.query(lastEndedSync()))[0],
      catalogue: db && (await catalogueOf(config, db)),
      bought: db && (await boughtOf(db)),
    }
  } finally {
    await db?.close()
  }
}

/**
 * Counts the offers of each of these SKUs, for `quayside stores add`. SKUs without an offer are left out.
 *
 * @returns undefined before the catalogue was read for the first time
 */
export const offersOfSkus = (config: DatabasePlace, skus: readonly string[]) =>
  readBeside(config, async (db) => {
    if (!(await first(db, lastCompleteSync()))) return undefined
    const bySku = new Map<string, number>()
    for (let from = 0; from < skus.length; from += SKUS_AT_ONCE) {
      const found = await db.query(offersBySku(skus.slice(from, from + SKUS_AT_ONCE)))
      for (const { sku } of found) bySku.set(sku, (bySku.get(sku) ?? 0) + 1)
    }
    return { bySku, total: (await first(db, countOffers()))?.total ?? 0 }
  })

/**
 * Returns the secrets `whsec_…` that callbacks to a store are signed with now, the newest first. Writes nothing; a service may be
 * using the database.
 *
 * @throws Failure `not_found` without a database; `invalid`, reason `wrong_key`
 */
export async function callbackSecretsOf(config: Config, store: string): Promise<Secret[]> {
  const now = () => Date.now()
  const read = await openBeside(config)
  if (!read) throw new Failure('not_found', `there is no database in ${placeName(config)}`)
  const refused = () => Promise.reject(new Failure('internal', `${placeName(config)} is only read here`))
  const db: Database = { query: read.query, commit: refused, close: read.close }
  try {
    const vault = await vaultBeside(config, read)
    const secrets = await openCallbackSecrets({ db, vault, now, newId: createIds(now, randomBytes) })
    return secrets.of(store).map((secret) => new Secret(secretText(secret)))
  } finally {
    await db.close()
  }
}

/** Returns the address to which a shop sends its orders; null without a public address. */
export const webhookOfShop = ({ publicUrl }: Pick<Config, 'publicUrl'>, store: string): string | null =>
  publicUrl === null ? null : storeWebhookUrl(publicUrl, store)

/** Reads the newest purchase that was sent and is fulfilled, with its number of keys; undefined before any. */
async function boughtOf(db: Pick<Database, 'query'>) {
  const newest = await db.query(listPurchases({ state: 'fulfilled', limit: 50 }))
  const purchase = newest.find(({ sends, supplierOrderId }) => sends > 0 && supplierOrderId !== null)
  return purchase && { purchase, keys: (await db.query(keysOfPurchase(purchase.id))).length }
}

type KeyFound = { name: string; next: boolean; opened: boolean } | { fault: string }

/**
 * Returns the key that opens the database, or why the service would not start.
 *
 * @returns `next`: the configuration still calls it the next key, because a rotation is done. `opened`: false without a database
 */
async function keyOf(config: Config, db: Pick<Database, 'query'> | undefined): Promise<KeyFound> {
  try {
    if (db) return { ...(await checkKeys(config, db)), opened: true }
    return { name: nameOfKey(config.keyEncryptionKey), next: false, opened: false }
  } catch (error) {
    if (error instanceof Failure && error.code === 'invalid') return { fault: error.message }
    throw error
  }
}

/** This number is well below the most values that SQLite takes in one statement. */
const SKUS_AT_ONCE = 500

/**
 * Reads only the SKUs that rules name, and the categories only where a rule names one.
 *
 * @returns the categories are sorted; undefined before the first complete sync run
 */
async function catalogueOf({ stores }: Config, db: Pick<Database, 'query'>) {
  const run = await first(db, lastCompleteSync())
  if (!run) return undefined
  const names = namesInRules(stores)
  const rows = names.some(({ kind }) => kind !== 'SKU') ? await db.query(categoriesOfOffers()) : []
  const wanted = [...new Set(names.filter(({ kind }) => kind === 'SKU').map(({ name }) => name))]
  const skus = new Set<string>()
  for (let from = 0; from < wanted.length; from += SKUS_AT_ONCE) {
    const known = await db.query(skusOfOffers(wanted.slice(from, from + SKUS_AT_ONCE)))
    for (const { sku } of known) skus.add(sku)
  }
  return { categories: rows.flatMap(({ category }) => (category === null ? [] : [category])).sort(), skus }
}
