import { chmodSync, rmSync } from 'node:fs'
import Connection from 'better-sqlite3'
import { Failure, messageOf } from '../../errors.ts'
import type { Database } from '../database.ts'
import { migrate, readMigrations } from './migrate.ts'
import { sqliteDatabase } from './sqlite.ts'

/** Pages that SQLite keeps in memory before it writes to the file, as KiB with a minus sign. */
const CACHE_KIB = -16_384

/**
 * An empty database of all tables for what is worked out and then thrown away: in a file, so that it may be larger than
 * the memory, with nothing that makes it survive anything. `close` removes the file, and so does the next opening.
 *
 * @param file `:memory:` for one that is small
 * @throws Failure `unavailable` when the file cannot be made
 */
export function openScratch(file: string, now: () => number): Database {
  if (file !== ':memory:') rmSync(file, { force: true })
  let connection: Connection.Database | undefined
  try {
    connection = new Connection(file)
    if (file !== ':memory:') chmodSync(file, 0o600)
    // Savepoints are taken back from memory: of a crash nothing has to be taken back.
    connection.pragma('journal_mode = MEMORY')
    connection.pragma('synchronous = OFF')
    connection.pragma('temp_store = MEMORY')
    // A row may name one that is in the database alone.
    connection.pragma('foreign_keys = OFF')
    connection.pragma(`cache_size = ${CACHE_KIB}`)
    migrate(connection, readMigrations(new URL('../migrations/', import.meta.url)), now)
  } catch (error) {
    connection?.close()
    throw new Failure('unavailable', `the file ${file} cannot be made: ${messageOf(error)}`, { cause: error })
  }
  // What fails here fails the work that it is for, and nothing else: whoever commits is told.
  const database = sqliteDatabase(connection, { onFatal: () => {} })
  const close = async () => {
    await database.close()
    if (file !== ':memory:') rmSync(file, { force: true })
  }
  return { ...database, close }
}
