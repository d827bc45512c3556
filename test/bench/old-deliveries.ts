/** Deliveries that are older than any is kept, stored quickly, for the benches that forget them. */
import Connection from 'better-sqlite3'
import { loadConfig } from '../../src/config/config.ts'
import { idBound } from '../../src/ids.ts'
import { databaseFileOf } from '../../src/storage/data-folder.ts'
import { addBenchWebhook } from './bench-webhook.ts'

const DAY_MS = 86_400_000

/**
 * Of an installation that does not run: a webhook whose secret the loads know, and old deliveries until there are so many. They
 * lie in the places of the indexes that real ones have: of ids, digests and purchases that are not in the order of their time.
 *
 * @returns the database file
 */
export async function storeOldDeliveries(configFile: string, wanted: number): Promise<string> {
  const config = loadConfig(configFile, {})
  await addBenchWebhook(config)
  const file = databaseFileOf(config.dataDir)
  const db = new Connection(file)
  const missing = wanted - countOld(db)
  if (missing > 0) {
    db.pragma('synchronous = OFF')
    db.pragma('cache_size = -1000000')
    const indexes = db
      .prepare<[], { name: string; sql: string }>(
        "select name, sql from sqlite_schema where type = 'index' and tbl_name = 'deliveries' and sql is not null",
      )
      .all()
    for (const { name } of indexes) db.exec(`drop index ${name}`)
    const at = Date.now() - 120 * DAY_MS
    db.exec(`
      with recursive numbers(i) as (select 0 union all select i + 1 from numbers where i < ${missing - 1})
      insert into deliveries (id, source, delivery_id, body_hmac, mac, signed_at, received_at, ciphertext, key_id, state, attempts,
        not_before, event, supplier_order_id, purchase_id, last_error, finished_at)
      select '${idBound(at)}' || printf('%016d', i), 'supplier', 'dlv_' || lower(hex(randomblob(12))), randomblob(32), randomblob(32),
        ${at}, ${at}, randomblob(1050), 1, 'applied', 1, ${at}, 'order.completed', printf('so_%09d', i),
        'p' || hex(randomblob(12)), null, ${at}
      from numbers`)
    for (const { sql } of indexes) db.exec(sql)
    db.pragma('wal_checkpoint(TRUNCATE)')
  }
  db.close()
  return file
}

/** How many deliveries are older than any is kept. */
export function countOld(db: Connection.Database): number {
  const count = db.prepare<[string], { old: number }>('select count(*) as old from deliveries where id < ?')
  return count.get(idBound(Date.now() - 90 * DAY_MS))?.old ?? Number.NaN
}
