import { accessSync, closeSync, constants, existsSync, openSync, statSync } from 'node:fs'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { conflict, Failure, messageOf } from '../../errors.ts'
import { fileSystemOf, fileSystemType, realFileOf } from '../data-folder.ts'
import { type Database, throwUncaught } from '../database.ts'
import { makeFolder } from '../files.ts'
import { type Migration, missingMigrations, readMigrations } from '../migration-files.ts'
import { type EngineOptions, sqliteDatabase } from './sqlite.ts'

export interface OpenOptions extends Partial<EngineOptions> {
  /** Path of the database file; `:memory:` for a database that ends with the process. */
  file: string
  /** A file that is not there, or has no tables, is a failure. Default: the file and its tables are made. */
  mustExist?: boolean
  /** Epoch ms. */
  now: () => number
  /** The lock of the file, where the caller has it already. `close` frees it. */
  held?: HeldDatabase | undefined
}

/**
 * Opens the database file for this process alone, brings its tables up to date and makes sure that an acknowledged
 * commit survives a power cut.
 *
 * `close` of the returned database frees the file for the next process. Without `onFatal` a failing disk is an uncaught
 * error, which ends the process too.
 *
 * @throws Failure `conflict` when another process uses the file
 * @throws Failure `not_found`, reason `no_database`, when the file must exist but does not
 * @throws Failure `invalid` when the database is newer than the program
 * @throws Failure `unavailable` when the file cannot be opened, is no database, or SQLite does not take the settings
 */
export function openDatabase(options: OpenOptions): Database {
  const { file, now, mustExist = false, onFatal = throwUncaught, held: given, ...engine } = options
  if (file === ':memory:') return sqliteDatabase(makeReady(file, now), { onFatal, ...engine })
  if (mustExist && !existsSync(file)) throw noDatabase(file)
  const held = given ?? holdDatabase(file)
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
 * Opens the database file of an installation to look at it, whether or not a service runs on it. The file does not change.
 * Beside it SQLite leaves an empty log and an index of the log, which the next start takes over.
 *
 * @throws Failure `unavailable` when there is no such file, or it cannot be opened
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
    throw new Failure('unavailable', `the database ${file} cannot be opened: ${whyNot(file, cause)}`, { cause })
  }
}

/** Whether there is a database with tables; a file that a crash left empty is no database. */
export function databaseExists(file: string): boolean {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return false
  let connection: Connection.Database | undefined
  try {
    connection = new Connection(file, { readonly: true, fileMustExist: true, timeout: 1_000 })
    return hasTables(connection)
  } catch (cause) {
    throw new Failure('unavailable', `the database ${file} cannot be read: ${whyNot(file, cause)}`, { cause })
  } finally {
    connection?.close()
  }
}

const hasTables = (connection: Connection.Database): boolean =>
  connection.prepare("select 1 from sqlite_schema where name = 'schema_migrations'").get() !== undefined

const noDatabase = (file: string): Failure =>
  new Failure('not_found', `there is no database at ${file}, and the service makes none`, { reason: 'no_database' })

/** Versions of SQLite before this one have a fault in the reset of the write-ahead log that can corrupt the file. */
const SQLITE_MIN = [3, 51, 3] as const

/** The settings that are made at each opening, each with the answer by which SQLite shows that it has taken the setting. */
const PRAGMAS: Record<string, { set: string; answer: string | number }> = {
  journal_mode: { set: 'WAL', answer: 'wal' },
  // This is not the default in WAL: without it, a power cut takes back acknowledged commits.
  synchronous: { set: 'FULL', answer: 2 },
  foreign_keys: { set: 'ON', answer: 1 },
  // Milliseconds. No other process should hold the file, so a longer wait would only block the event loop.
  busy_timeout: { set: '250', answer: 250 },
  // 64 MiB: after one large commit, the log shrinks back to this size.
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
    const version = migrate(connection, readMigrations(), now)
    // This writes even when there was nothing to migrate. A file that cannot be written must fail here, and some settings
    // show their true value only after the first write.
    connection.pragma(`user_version = ${version}`)
    assertPragmas(connection)
    // Until this checkpoint the log holds what a killed process had overwritten, such as a key that was rotated away.
    connection.pragma('wal_checkpoint(TRUNCATE)')
    return connection
  } catch (error) {
    connection.close()
    if (error instanceof Failure) throw error
    throw new Failure('unavailable', `the database ${file} cannot be opened: ${messageOf(error, file)}`, {
      cause: error,
    })
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

export interface HeldDatabase {
  /** The real file, see `databaseFileOf`. */
  file: string
  /** Frees the file for the next process; calling this twice is harmless. */
  free: () => void
}

/**
 * Makes this process the only one that uses a database file, as long as the process lives. Every command that opens the
 * file to change it comes through here, and each path to the file leads to the same lock.
 *
 * The lock is an exclusive transaction on an empty SQLite file beside the database file. The kernel frees the lock however
 * the process ends, kill -9 included, and no lease or process id has to be judged stale. The lock file itself stays.
 *
 * @param typeOf returns the file system of a folder, see `fileSystemOf`
 * @throws Failure `conflict`, reason `database_in_use`, when another process (or this one) holds the file; reason
 *   `network_file_system` where neither locks nor fsync can be relied on
 * @throws Failure `unavailable` when its folder or the lock file cannot be made
 */
export function holdDatabase(file: string, typeOf = fileSystemType): HeldDatabase {
  const real = realFileOf(file)
  assertLocal(path.dirname(real), typeOf)
  makePrivate(`${real}.lock`)
  const connection = new Connection(`${real}.lock`, { timeout: 0 })
  try {
    // Nothing is ever written to the lock file. A journal on disk would only be one more file that a crash leaves behind.
    connection.pragma('journal_mode = MEMORY')
    connection.exec('begin exclusive')
  } catch (cause) {
    connection.close()
    if (!(cause instanceof Connection.SqliteError) || !cause.code.startsWith('SQLITE_BUSY')) throw cause
    throw new Failure('conflict', `another Quayside process uses ${real}: stop it first`, {
      cause,
      reason: 'database_in_use',
    })
  }
  return {
    file: real,
    free: () => {
      connection.close()
    },
  }
}

/**
 * Holds a data folder whose database is on a server, because the owner token in the folder belongs to one process. The lock of
 * the old database file stays free, for an installation that was moved to the server.
 *
 * @throws Failure as `holdDatabase` does
 */
export function holdDataFolder(dataDir: string): HeldDatabase {
  try {
    return holdDatabase(path.join(dataDir, 'process'))
  } catch (cause) {
    if (!(cause instanceof Failure) || cause.reason !== 'database_in_use') throw cause
    const message = `another Quayside process uses the data folder ${dataDir}: give each its own`
    throw new Failure('conflict', message, { cause, reason: 'database_in_use' })
  }
}

function assertLocal(folder: string, typeOf: (folder: string) => number): void {
  const { name, use } = fileSystemOf(typeOf(folder))
  if (use !== 'refused') return
  const message = `${folder} is on ${name}: its locks and its fsync cannot be relied on; move dataDir to a disk of this machine`
  throw conflict('network_file_system', message)
}

/** Throws what `holdDatabase` would throw; makes no file. */
export function assertFree(file: string): void {
  assertLocal(path.dirname(realFileOf(file)), fileSystemType)
  // Without a lock file, no process has ever opened the database.
  if (existsSync(`${realFileOf(file)}.lock`)) holdDatabase(file).free()
}

/**
 * Makes a file and its folder, which only their owner may read. SQLite gives the log the mode of the file.
 *
 * `wx` never opens a file that exists: closing a file that this process has open in SQLite would drop SQLite's locks.
 */
export function makePrivate(file: string): void {
  try {
    makeFolder(path.dirname(file))
    closeSync(openSync(file, 'wx', 0o600))
  } catch (cause) {
    const fault = existsSync(file) ? accessFault(file) : cause
    if (fault !== undefined) throw new Failure('unavailable', messageOf(fault, file), { cause: fault })
  }
}

/** Says why this user cannot use a file, in the words of the operating system, because SQLite says little. */
function accessFault(file: string): unknown {
  try {
    accessSync(file, constants.R_OK | constants.W_OK)
    return statSync(file).isDirectory() ? Object.assign(new Error('a folder'), { code: 'EISDIR' }) : undefined
  } catch (error) {
    return error
  }
}

const whyNot = (file: string, cause: unknown): string => messageOf(accessFault(file) ?? cause, file)

/**
 * Brings a database up to the newest migration. Each migration is one transaction with the row that records it.
 *
 * @param now epoch ms
 * @returns the version that the database has now
 * @throws Failure `invalid`, reason `database_newer` or `migration_changed`, before anything is changed
 * @throws Failure `internal` when a migration fails; the database is left as the migration before made it
 */
export function migrate(connection: Connection.Database, migrations: Migration[], now: () => number): number {
  connection.exec(LEDGER)
  const applied = connection.prepare('select version, name, digest from schema_migrations order by version').all()
  for (const migration of missingMigrations(migrations, applied as Migration[])) apply(connection, migration, now())
  return migrations.length
}

const LEDGER = `create table if not exists schema_migrations (
  version integer not null primary key,
  name text not null,
  digest text not null,
  applied_at integer not null
) strict`

function apply(connection: Connection.Database, { version, name, sql, digest }: Migration, at: number): void {
  connection.exec('begin immediate')
  try {
    connection.exec(sql)
    connection.prepare('insert into schema_migrations values (?, ?, ?, ?)').run(version, name, digest, at)
    connection.exec('commit')
  } catch (cause) {
    if (connection.inTransaction) connection.exec('rollback')
    throw new Failure('internal', `migration "${name}" failed: ${messageOf(cause, connection.name)}`, { cause })
  }
}
