import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { expect, test } from 'vitest'
import { putOffer } from '../../src/storage/offers.ts'
import { putSetting } from '../../src/storage/settings.ts'
import { takeSnapshot } from '../../src/storage/sqlite/snapshot.ts'
import { databaseFile, fileDatabase, TEST_NOW } from '../support/database.ts'
import { offerRow } from '../support/publish-world.ts'

const CANARY = 'never-leaves-the-database'

test('a snapshot has the tables of the catalogue and the listings, and nothing of any other', async () => {
  const file = databaseFile()
  const db = fileDatabase(file)
  await db.commit([
    putOffer(offerRow('p1')),
    putSetting('epoch', '{"epoch":1}', TEST_NOW),
    putSetting('unheld', CANARY, TEST_NOW),
  ])
  // A row with the canary in each other table, whatever its columns.
  const connection = new Connection(file)
  connection.pragma('foreign_keys = OFF')
  const tablesOf = (of: Connection.Database) =>
    of.prepare("select name from sqlite_schema where type = 'table'").pluck().all() as string[]
  const copied = ['offers', 'listings', 'publications', 'publishing', 'settings', 'schema_migrations']
  const others = tablesOf(connection).filter((table) => !copied.includes(table))
  for (const table of others) {
    const columns = connection.pragma(`table_info(${table})`) as { name: string; type: string }[]
    const values = columns.map(({ type }) => (type === 'INTEGER' ? 1 : type === 'BLOB' ? Buffer.from(CANARY) : CANARY))
    connection.prepare(`insert into ${table} values (${columns.map(() => '?').join(', ')})`).run(...values)
  }
  connection.close()

  const copy = path.join(path.dirname(file), 'dry-run.db')
  await takeSnapshot(file, copy, () => TEST_NOW).close()
  const snapshot = new Connection(copy, { readonly: true })
  const filled = tablesOf(snapshot).filter((table) => snapshot.prepare(`select 1 from ${table}`).get() !== undefined)
  expect(others.length).toBeGreaterThan(15)
  expect(filled.toSorted()).toEqual(['offers', 'schema_migrations', 'settings'])
  expect(snapshot.prepare('select name from settings').pluck().all()).toEqual(['epoch'])
  expect(snapshot.prepare('select product_id from offers').pluck().all()).toEqual(['p1'])
  snapshot.close()
  expect(readFileSync(copy).includes(CANARY)).toBe(false)
  expect(statSync(copy).mode & 0o777).toBe(0o600)
})
