import { existsSync } from 'node:fs'
import type { Inspection } from './cli/doctor-database.ts'
import type { Config } from './config.ts'
import { namesInRules } from './domain/rule-names.ts'
import { Failure } from './errors.ts'
import { checkKeys } from './keys.ts'
import type { Database } from './storage/database.ts'
import { nameOfKey } from './storage/key-encryption-key.ts'
import { databaseFileOf } from './storage/lock.ts'
import { categoriesOfOffers, skusOfOffers } from './storage/offers.ts'
import { openToRead } from './storage/open.ts'
import { lastCompleteSync, lastEndedSync } from './storage/sync-runs.ts'

/**
 * Looks at the database of an installation for `quayside doctor`, beside a service that may run on it; writes nothing.
 *
 * @throws Failure `unavailable` when it cannot be read
 */
export async function inspect(config: Config): Promise<Inspection> {
  const file = databaseFileOf(config.dataDir)
  const db = existsSync(file) ? openToRead(file) : undefined
  try {
    return {
      key: await keyOf(config, db),
      lastSync: db && (await db.query(lastEndedSync()))[0],
      catalogue: db && (await catalogueOf(config, db)),
    }
  } finally {
    await db?.close()
  }
}

async function keyOf(config: Config, db: Pick<Database, 'query'> | undefined): Promise<Inspection['key']> {
  try {
    if (db) return { ...(await checkKeys(config, db)), opened: true }
    return { name: nameOfKey(config.keyEncryptionKey), next: false, opened: false }
  } catch (error) {
    if (error instanceof Failure && error.code === 'invalid') return { fault: error.message }
    throw error
  }
}

/** Well below the most values that SQLite takes in one statement. */
const SKUS_AT_ONCE = 500

/** Reads no more than the rules name: the categories only where a rule names one. */
async function catalogueOf({ stores }: Config, db: Pick<Database, 'query'>): Promise<Inspection['catalogue']> {
  const [run] = await db.query(lastCompleteSync())
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
