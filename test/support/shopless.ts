/** An installation to which its first shop is still to be added. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { loadConfig } from '../../src/config/config.ts'
import { openSetUp } from '../../src/installation.ts'
import { databaseFileOf } from '../../src/storage/data-folder.ts'
import { putOffer } from '../../src/storage/offers.ts'
import { changeSyncRun, insertSyncRun } from '../../src/storage/runs.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { type RunOptions, run, temporaryFolder } from './cli-run.ts'

export interface ShoplessOptions {
  publicUrl?: string | null
  rates?: object[]
}

/** @param key of the shop, as a file has it */
export function openShopless(kind: string, key: string, { publicUrl = null, rates = [] }: ShoplessOptions = {}) {
  const folder = temporaryFolder()
  const file = path.join(folder, 'config', 'quayside.json')
  const secrets = path.join(folder, 'config', 'secrets')
  mkdirSync(secrets, { recursive: true, mode: 0o700 })
  const write = (name: string, text: string) => writeFileSync(path.join(secrets, name), text, { mode: 0o600 })
  write('api-key', 'key-of-the-reseller')
  write('key-encryption-key', Buffer.alloc(32, 'kek').toString('base64'))
  const supplier = { baseUrl: 'http://127.0.0.1:9/v1' }
  writeFileSync(file, JSON.stringify({ supplier, stores: [], publicUrl, rates, logLevel: 'warn' }))
  const keyFile = path.join(folder, 'given-key')
  writeFileSync(keyFile, `${key}\n`)
  const add = (more: string[] = [], options: RunOptions = {}) =>
    run(['stores', 'add', kind, '--config', file, ...more], options)
  const files = () => ({ names: readdirSync(path.join(folder, 'config'), { recursive: true }).sort(), text: text() })
  const text = () => readFileSync(file, 'utf8')
  /** What is written without the folder, whose name may be long. */
  const shown = (written: string) => written.replaceAll(folder, '')
  return { folder, file, secrets, keyFile, add, files, shown }
}

/** The catalogue as a whole reading of the supplier left it. */
export async function readCatalogue(file: string, skus: string[]) {
  await (await openSetUp(file, {})).close()
  const db = openDatabase({ file: databaseFileOf(loadConfig(file, {}).dataDir), now: () => Date.now() })
  const offer = { name: 'Game', costMinor: 900, currency: 'EUR', localStock: 1, providerStock: 0, available: true }
  await db.commit([
    insertSyncRun({ id: 'run-1', cause: 'start', state: 'running', startedAt: 1, cursor: 1 }),
    ...skus.map((sku, index) => putOffer({ ...offer, productId: `p${index}`, sku, asOf: 1, changedAt: 1 })),
  ])
  await db.commit([changeSyncRun({ id: 'run-1', cursor: 1 }, { state: 'complete', finishedAt: 2 })])
  await db.close()
}
