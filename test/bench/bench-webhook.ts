/** A webhook whose secret the loads know. */
import type { Config } from '../../src/config/config.ts'
import { openAlone } from '../../src/storage/database-place.ts'
import { allWebhooks, insertWebhook } from '../../src/storage/webhooks.ts'
import { openVault } from '../../src/vault/vault.ts'
import { BENCH_SECRET } from './deliveries.ts'

export const BENCH_PATH = '/webhooks/supplier/bench'

/** Of an installation that does not run. One that has it already keeps it. */
export async function addBenchWebhook(config: Config): Promise<void> {
  const now = Date.now
  const db = await openAlone(config, { now })
  const vault = await openVault({ database: db, keyEncryptionKey: config.keyEncryptionKey, now })
  const { ciphertext, keyId } = vault.seal({ table: 'webhooks', row: 'bench' }, BENCH_SECRET)
  const url = `http://127.0.0.1${BENCH_PATH}`
  const row = { id: 'bench', path: 'bench', url, events: [], secret: ciphertext, keyId, createdAt: now() }
  if ((await db.query(allWebhooks())).every(({ id }) => id !== row.id)) await db.commit([insertWebhook(row)])
  await db.close()
}
