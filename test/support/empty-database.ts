/** A migrated, empty database as bytes: made once in each process of tests, because nearly every test begins with one. */
import Connection from 'better-sqlite3'
import { readMigrations } from '../../src/storage/migration-files.ts'
import { migrate } from '../../src/storage/sqlite/open.ts'

let bytes: Buffer | undefined

export function emptyDatabase(): Buffer {
  if (bytes) return bytes
  const connection = new Connection(':memory:')
  migrate(connection, readMigrations(), () => 0)
  bytes = connection.serialize()
  connection.close()
  return bytes
}
