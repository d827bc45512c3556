/**
 * Where an installation has its database: in a file of its data folder, or on a PostgreSQL server. Only the code of the chosen
 * engine is loaded, except for the lock of the data folder.
 */
import { Failure } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { databaseFileOf } from './data-folder.ts'
import type { Database } from './database.ts'
import { assertNotMoved, engineMove, leftBehind, movedFailure } from './engine-move.ts'
import { missingMigrations, readMigrations } from './migration-files.ts'
import type { ServerState, SharedDatabase } from './postgres/open.ts'

import { appliedMigrations } from './settings.ts'
import type { HeldDatabase } from './sqlite/open.ts'

export type { ServerState }

export interface DatabasePlace {
  dataDir: string
  /** Null: a file of SQLite. */
  databaseUrl: Secret | null
}

export interface OpenAloneOptions {
  /** Epoch ms. */
  now: () => number
  onFatal?: (failure: Failure) => void
  /** A database that is not there is a failure. Default: it is made. */
  mustExist?: boolean
  /** The lock of the database file, where the caller has it already. */
  held?: HeldDatabase | undefined
}

/** What people call the database: its file, or its server and name. */
export function placeName({ dataDir, databaseUrl }: DatabasePlace): string {
  if (databaseUrl === null) return databaseFileOf(dataDir)
  const address = databaseUrl.reveal()
  if (!URL.canParse(address)) return 'the address of the database'
  const { host, pathname } = new URL(address)
  return `${host}${pathname}`
}

/**
 * Opens the database for this process alone, and brings its tables up to date.
 *
 * @throws Failure as `openDatabase` of SQLite and `openPostgres` do, and as `assertNotMoved` does
 */
export async function openAlone(place: DatabasePlace, options: OpenAloneOptions): Promise<Database> {
  return usable(await openPlace(place, options))
}

async function openPlace({ dataDir, databaseUrl }: DatabasePlace, options: OpenAloneOptions): Promise<Database> {
  if (databaseUrl === null) {
    const { openDatabase } = await import('./sqlite/open.ts')
    return openDatabase({ file: databaseFileOf(dataDir), ...options })
  }
  const { openPostgres } = await import('./postgres/open.ts')
  return openPostgres({ url: databaseUrl.reveal(), alone: true, ...options })
}

/** The database of a service. One process alone uses a file. Several processes may share a server: one of them is the worker. */
export interface ServiceDatabase {
  db: Database
  /** Waits until this process is the worker; absent where this process has the database alone. */
  elect?: SharedDatabase['elect']
  /** Asks the server whether it answers and takes commits; absent where there is no server. */
  look?: SharedDatabase['look']
  /** What processes tell each other; absent where there is no other process. */
  others?: Pick<SharedDatabase, 'tell' | 'listen' | 'isPooled'>
}

/** Opens the database that a service works with, and brings its tables up to date. @throws Failure as `openAlone` does */
export async function openForService(place: DatabasePlace, options: OpenAloneOptions): Promise<ServiceDatabase> {
  if (place.databaseUrl === null) return { db: await openAlone(place, options) }
  const { holdDataFolder } = await import('./sqlite/open.ts')
  const held = holdDataFolder(place.dataDir)
  try {
    const { openPostgres } = await import('./postgres/open.ts')
    const url = place.databaseUrl.reveal()
    const opened = openPostgres({ url, endsOnUnknown: false, ...options }).catch(async (error: unknown) => {
      if (error instanceof Failure && error.reason === 'no_database') await assertNothingLeft(place)
      throw error
    })
    const db = await usable(await opened)
    return { db: { ...db, close: () => db.close().finally(held.free) }, elect: db.elect, look: db.look, others: db }
  } catch (error) {
    held.free()
    throw error
  }
}

/**
 * Refuses an empty server while a file in the data folder still holds the installation's database.
 *
 * @throws Failure `conflict`, reason `database_moved` while the file is being moved, `database_left` where it was never moved
 */
export async function assertNothingLeft(place: DatabasePlace): Promise<void> {
  if (place.databaseUrl === null) return
  const { databaseExists, openToRead } = await import('./sqlite/open.ts')
  const name = databaseFileOf(place.dataDir)
  if (!databaseExists(name)) return
  const file = openToRead(name)
  const move = await engineMove(file).finally(() => file.close())
  if (move === undefined) throw leftBehind(name, placeName(place))
  if (move.doneAt === null) throw movedFailure(move)
}

/**
 * Opens the database to look at it, beside a service that may run on it. The database does not change.
 *
 * @returns undefined where there is no database
 * @throws Failure `unavailable` when it cannot be opened; as `assertNotMoved` does
 */
export async function openBeside(place: DatabasePlace): Promise<ReadDatabase | undefined> {
  const db = await openPlaceToRead(place)
  return db && usable(db)
}

/** Opens the database as `openBeside` does, reads it and closes it. */
export async function readBeside<T>(
  place: DatabasePlace,
  read: (db: ReadDatabase) => Promise<T>,
): Promise<T | undefined> {
  const db = await openBeside(place)
  return db && read(db).finally(() => db.close())
}

/**
 * Returns the migrations that a database has, in order, and those of this program that it lacks. A service may be using it.
 *
 * @returns undefined where there is no database
 * @throws Failure as `openBeside` and `missingMigrations` do
 */
export async function migrationsIn(place: DatabasePlace) {
  const applied = await readBeside(place, (db) => db.query(appliedMigrations()))
  return applied && { applied, missing: missingMigrations(readMigrations(), applied) }
}

/**
 * Makes the checks of the database server that a start makes.
 *
 * @returns the version of the server; null where the database is a file
 * @throws Failure `unavailable` where the service would not start
 */
export async function checkServer({ databaseUrl }: DatabasePlace, now: () => number): Promise<string | null> {
  if (databaseUrl === null) return null
  const { checkPostgres } = await import('./postgres/open.ts')
  return checkPostgres(databaseUrl.reveal(), now)
}

/** A database that is only read, beside a service that may run on it. */
export type ReadDatabase = Pick<Database, 'query' | 'close'>

async function usable<D extends ReadDatabase>(db: D): Promise<D> {
  try {
    await assertNotMoved(db)
    return db
  } catch (error) {
    await db.close()
    throw error
  }
}

async function openPlaceToRead({ dataDir, databaseUrl }: DatabasePlace): Promise<ReadDatabase | undefined> {
  if (databaseUrl === null) {
    const { databaseExists, openToRead } = await import('./sqlite/open.ts')
    const file = databaseFileOf(dataDir)
    return databaseExists(file) ? openToRead(file) : undefined
  }
  const { openPostgresToRead } = await import('./postgres/open.ts')
  return openPostgresToRead(databaseUrl.reveal())
}

/** @throws Failure `conflict`, reason `database_in_use`, while another process has the database alone */
export async function assertFree({ dataDir, databaseUrl }: DatabasePlace): Promise<void> {
  if (databaseUrl === null) {
    const { assertFree } = await import('./sqlite/open.ts')
    return assertFree(databaseFileOf(dataDir))
  }
  const { assertPostgresFree } = await import('./postgres/open.ts')
  await assertPostgresFree(databaseUrl.reveal())
}
