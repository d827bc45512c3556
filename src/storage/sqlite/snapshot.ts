import { closeSync, openSync, rmSync } from 'node:fs'
import Connection from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { Failure, messageOf } from '../../errors.ts'
import type { Database } from '../database.ts'
import type { ListingRow } from '../listings.ts'
import { readMigrations } from '../migration-files.ts'
import { statement } from '../statement.ts'
import { makePrivate, migrate } from './open.ts'
import { sqliteDatabase } from './sqlite.ts'

/** How much of a snapshot SQLite keeps in memory before it writes to the snapshot's file, as KiB with a minus sign. */
const CACHE_KIB = -16_384

/** The tables whose rows a snapshot has. Licence keys, bodies of messages and tokens, among others, are never copied. */
const COPIED: Record<string, string> = {
  offers: '',
  listings: '',
  publications: '',
  publishing: '',
  settings: "where name in ('epoch', 'catalogue_page_size')",
}

/**
 * Copies the tables of the catalogue and the listings, as of one instant, into a database of their own. That database has
 * every other table too, but empty. Nothing makes the copy survive a crash.
 *
 * It takes 1.4 s for a million offers and as many listings, and so belongs into a thread of its own. The service goes on
 * meanwhile: a reader of a database in WAL mode keeps no writer waiting.
 *
 * @param source file of the database
 * @param file where the copy goes; what is there is overwritten, and the caller removes the copy at the end
 * @throws Failure `unavailable` when the copy cannot be made
 */
export function takeSnapshot(source: string, file: string, now: () => number): Database {
  let connection: Connection.Database | undefined
  try {
    rmSync(file, { force: true })
    makePrivate(file)
    connection = new Connection(file)
    // The journal serves only savepoints. After a crash the copy is not used again, so nothing has to be rolled back.
    connection.pragma('journal_mode = MEMORY')
    connection.pragma('synchronous = OFF')
    connection.pragma('temp_store = MEMORY')
    // A row may refer to a row that was not copied.
    connection.pragma('foreign_keys = OFF')
    connection.pragma(`cache_size = ${CACHE_KIB}`)
    migrate(connection, readMigrations(), now)
    copyTables(connection, source)
    keepFirstImages(connection)
  } catch (error) {
    connection?.close()
    throw new Failure('unavailable', `the copy ${file} cannot be made: ${messageOf(error)}`, { cause: error })
  }
  return sqliteDatabase(connection, { onFatal: () => {} })
}

/**
 * Copies a whole database, as of one instant, into a new file that only its owner may read. A service may use the database.
 *
 * @throws whatever SQLite and the file system do
 */
export function copyDatabase(source: string, file: string): void {
  // The copy's file is made first, so that other users can never read the copy. VACUUM INTO accepts an empty file.
  closeSync(openSync(file, 'wx', 0o600))
  const connection = new Connection(source, { readonly: true, fileMustExist: true, timeout: 5_000 })
  try {
    connection.prepare('vacuum into ?').run(file)
  } finally {
    connection.close()
  }
}

/** Copies rows: between tables of the same shape, SQLite copies whole records, also those of indexes, and keeps the rowids. */
function copyTables(connection: Connection.Database, source: string): void {
  connection.prepare('attach ? as source').run(source)
  connection.exec('begin')
  for (const [table, where] of Object.entries(COPIED)) {
    connection.exec(`insert into main.${table} select * from source.${table} ${where}`)
  }
  connection.exec('commit')
  connection.exec('detach source')
}

/** Makes triggers that keep a listing as it was before its first change or its deletion. A new listing is kept with version 0. */
function keepFirstImages(connection: Connection.Database): void {
  const columns = connection.prepare("select name from pragma_table_info('listings')").pluck().all() as string[]
  const unlessKept = (row: string) =>
    `where not exists (select 1 from listings_before where store = ${row}.store and variant = ${row}.variant)`
  const before = columns.map((name) => `old.${name}`).join(', ')
  connection.exec(`
    create table listings_before as select * from listings limit 0;
    create unique index listings_before_variant on listings_before (store, variant);
    create trigger listing_changed after update on listings begin
      insert into listings_before select ${before} ${unlessKept('old')};
    end;
    create trigger listing_dropped after delete on listings begin
      insert into listings_before select ${before} ${unlessKept('old')};
    end;
    create trigger listing_made after insert on listings begin
      insert into listings_before (store, variant, version) select new.store, new.variant, 0 ${unlessKept('new')};
    end;`)
}

/** Listings of a snapshot that were changed since, as they were before, in the order of the changes; `after` is a rowid. */
export const listingsBefore = statement(
  (after: number, limit: number) =>
    sql<RawListing & { rowid: number }>`select rowid, * from listings_before where rowid > ${after}
      order by rowid limit ${limit}`,
)

/** A row of `listings_before`, which is no table of the schema: the flags arrive as they are stored. */
type RawListing = Omit<ListingRow, 'knownAvailable' | 'knownGone'> & {
  knownAvailable: number | null
  knownGone: number | null
}
