import { existsSync, statSync } from 'node:fs'
import Connection from 'better-sqlite3'
import { Failure, messageOf } from '../errors.ts'
import type { Database } from './database.ts'
import { holdDatabase, makePrivate } from './lock.ts'
import { migrate, readMigrations } from './migrate.ts'
import { type EngineOptions, sqliteDatabase } from './sqlite.ts'

export interface OpenOptions extends Partial<EngineOptions> {
  /** Path of the database file; `:memory:` for one that ends with the process. */
  file: string
  /** A file that is not there, or has no tables, is a failure. Default: it is made. */
  mustExist?: boolean
  /** Epoch ms. */
  now: () => number
}

/**
 * Opens the database file for this process alone, brings its tables up to date and makes sure that an acknowledged
 * commit survives a power cut.
 *
 * `close` of what it returns frees the file for the next process. Without `onFatal` a failing disk is an uncaught
 * error, which ends the process too.
 *
 * @throws Failure `conflict` when another process uses the file
 * @throws Failure `not_found`, reason `no_database`, when it must exist and does not
 * @throws Failure `invalid` when the database is newer than the program
 * @throws Failure `unavailable` when the file cannot be opened, is no database, or SQLite does not take the settings
 */
export function openDatabase(options: OpenOptions): Database {
  const { file, now, mustExist = false, onFatal = throwUncaught, ...engine } = options
  if (file === ':memory:') return sqliteDatabase(makeReady(file, now), { onFatal, ...engine })
  if (mustExist && !existsSync(file)) throw noDatabase(file)
  const held = holdDatabase(file)
  try {
    makePrivate(held.file)
    const database = sqliteDatabase(makeReady(held.file, now, mustExist), { onFatal, ...engine })
    return { ...database, close: () => database.close().finally(held.free) }
  } catch (error) {
    held.free()
    throw error
  }
}

/**
 * Opens the database file of an installation to look at it, whether or not a service runs on it. Nothing of it changes:
 * beside it SQLite leaves an empty log and its index, which the next start takes over.
 *
 * @throws Failure `unavailable` when there is none, or it cannot be opened
 */
export function openToRead(file: string): Pick<Database, 'query' | 'close'> {
  try {
    const connection = new Connection(file, { readonly: true, fileMustExist: true, timeout: 1_000 })
    const { query } = sqliteDatabase(connection, { onFatal: throwUncaught })
    return {
      query,
      close: async () => {
        connection.close()
      },
    }
  } catch (cause) {
    throw new Failure('unavailable', `the database ${file} cannot be opened: ${messageOf(cause)}`, { cause })
  }
}

/** Whether there is a database with tables; a file that a crash left empty is none. */
export function databaseExists(file: string): boolean {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return false
  const connection = new Connection(file, { readonly: true, fileMustExist: true, timeout: 1_000 })
  try {
    return hasTables(connection)
  } catch (cause) {
    throw new Failure('unavailable', `the database ${file} cannot be read: ${messageOf(cause)}`, { cause })
  } finally {
    connection.close()
  }
}

const hasTables = (connection: Connection.Database): boolean =>
  connection.prepare("select 1 from sqlite_schema where name = 'schema_migrations'").get() !== undefined

const noDatabase = (file: string): Failure =>
  new Failure('not_found', `there is no database at ${file}, and the service makes none`, { reason: 'no_database' })

/** Older ones have a fault in the reset of the write-ahead log that can corrupt the file. */
const SQLITE_MIN = [3, 51, 3] as const

/** What is set at every opening, and what SQLite answers when it has taken it. */
const PRAGMAS: Record<string, { set: string; answer: string | number }> = {
  journal_mode: { set: 'WAL', answer: 'wal' },
  // Not the default in WAL: without it a power cut takes back commits that were acknowledged.
  synchronous: { set: 'FULL', answer: 2 },
  foreign_keys: { set: 'ON', answer: 1 },
  // Milliseconds. Nobody else should hold the file, so a wait that is longer than a hiccup is not worth a stopped loop.
  busy_timeout: { set: '250', answer: 250 },
  // 64 MiB: the log shrinks back to it after one large commit.
  journal_size_limit: { set: String(64 * 1024 * 1024), answer: 64 * 1024 * 1024 },
  secure_delete: { set: 'ON', answer: 1 },
  trusted_schema: { set: 'OFF', answer: 0 },
  // Savepoints and sorts spill to memory: a container with a read-only root has no folder for temporary files.
  temp_store: { set: 'MEMORY', answer: 2 },
}

function makeReady(file: string, now: () => number, mustExist = false): Connection.Database {
  const connection = new Connection(file)
  try {
    if (mustExist && !hasTables(connection)) throw noDatabase(file)
    assertVersion(String(connection.prepare('select sqlite_version()').pluck().get()))
    for (const [name, { set }] of Object.entries(PRAGMAS)) connection.pragma(`${name} = ${set}`)
    const version = migrate(connection, readMigrations(new URL('migrations/', import.meta.url)), now)
    // Always a write, also when there was nothing to migrate: a file that cannot be written must fail here, and some
    // settings show their true value only after the first write.
    connection.pragma(`user_version = ${version}`)
    assertPragmas(connection)
    // What a process that was killed had overwritten, such as a key that was rotated away, lies in the log until then.
    connection.pragma('wal_checkpoint(TRUNCATE)')
    return connection
  } catch (error) {
    connection.close()
    if (error instanceof Failure) throw error
    throw new Failure('unavailable', `the database ${file} cannot be opened: ${messageOf(error)}`, { cause: error })
  }
}

function assertVersion(version: string): void {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  const difference = major - SQLITE_MIN[0] || minor - SQLITE_MIN[1] || patch - SQLITE_MIN[2]
  if (difference < 0)
    throw new Failure('unavailable', `SQLite ${version} is too old: ${SQLITE_MIN.join('.')} is needed`)
}

function assertPragmas(connection: Connection.Database): void {
  for (const [name, { answer }] of Object.entries(PRAGMAS)) {
    const expected = name === 'journal_mode' && connection.memory ? 'memory' : answer
    const actual = connection.pragma(name, { simple: true })
    if (actual === expected) continue
    throw new Failure('unavailable', `SQLite did not take ${name}: it is ${String(actual)} instead of ${expected}`)
  }
}

function throwUncaught(error: Failure): void {
  setImmediate(() => {
    throw error
  })
}
