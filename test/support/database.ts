/** Databases for tests: fresh, migrated, and closed when the test that asked for them ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Connection from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import type { Failure } from '../../src/errors.ts'
import { type Database, throwUncaught } from '../../src/storage/database.ts'
import { readMigrations } from '../../src/storage/migration-files.ts'
import { settings } from '../../src/storage/schema.ts'
import { migrate, openDatabase } from '../../src/storage/sqlite/open.ts'
import { sqliteDatabase } from '../../src/storage/sqlite/sqlite.ts'
import { build } from '../../src/storage/statement.ts'
import { emptyDatabase } from './empty-database.ts'
import { isOnPostgres, postgresLater, postgresUrl } from './postgres.ts'

/** An instant for tests that do not care which: 2023-11-14T22:13:20Z, epoch ms. */
export const TEST_NOW = 1_700_000_000_000

/**
 * An empty database in memory, or on PostgreSQL where `QUAYSIDE_ENGINE` says so. Call it inside a test or a beforeEach: it is
 * closed when that test has finished.
 */
export const memoryDatabase = (): Database => (isOnPostgres ? postgresLater() : sqliteInMemory())

export function sqliteInMemory(): Database {
  const connection = new Connection(emptyDatabase())
  connection.pragma('foreign_keys = ON')
  return closedInTheEnd(sqliteDatabase(connection, { onFatal: throwUncaught }))
}

/** A database in a file, which tests may close and open again; on PostgreSQL the file is only its name. */
export function fileDatabase(file: string = databaseFile(), now: () => number = () => TEST_NOW): Database {
  if (!isOnPostgres) return closedInTheEnd(openDatabase({ file, now }))
  const url = urls.get(file) ?? postgresUrl()
  urls.set(file, url)
  return postgresLater(url)
}

const urls = new Map<string, Promise<string>>()

/** Path of a database that does not exist yet, in a folder of its own that goes when the test has finished. */
export function databaseFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'quayside-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'quayside.db')
}

/** The bare engine over a connection that records every SQL text SQLite runs, and every failure that is fatal. */
export function tracedDatabase(file = ':memory:') {
  const trace: string[] = []
  const fatal: Failure[] = []
  const connection = new Connection(file, { timeout: 0, verbose: (text) => trace.push(String(text)) })
  connection.pragma('journal_mode = WAL')
  migrate(connection, readMigrations(), () => TEST_NOW)
  const database = closedInTheEnd(sqliteDatabase(connection, { onFatal: (failure) => fatal.push(failure) }))
  trace.length = 0
  return {
    database,
    connection,
    trace,
    fatal,
    /** Names of the stored settings, in the order they were stored. */
    names: async () => (await database.query(build.select().from(settings))).map(({ name }) => name),
    /** How often SQLite ran exactly this text. */
    count: (text: string) => trace.filter((line) => line.toLowerCase() === text).length,
  }
}

function closedInTheEnd(database: Database): Database {
  onTestFinished(() => database.close())
  return database
}
