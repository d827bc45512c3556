import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type Connection from 'better-sqlite3'
import { Failure, messageOf } from '../../errors.ts'

/** One file of the migrations folder. */
export interface Migration {
  /** Its number: 1, 2, 3 without gaps. */
  version: number
  name: string
  sql: string
  /** SHA-256 of the file, hex: an applied migration is never edited. */
  digest: string
}

/**
 * Brings a database up to the newest migration, each in one transaction with the row that records it.
 *
 * @param now epoch ms
 * @returns the version that the database has now
 * @throws Failure `invalid`, reason `database_newer` or `migration_changed`, before anything is changed
 * @throws Failure `internal` when a migration fails; the database is left as the one before made it
 */
export function migrate(connection: Connection.Database, migrations: Migration[], now: () => number): number {
  connection.exec(LEDGER)
  const applied = connection.prepare('select version, name, digest from schema_migrations order by version').all()
  const known = new Map(migrations.map((migration) => [migration.version, migration]))
  for (const { version, name, digest } of applied as Migration[]) assertKnown(known.get(version), name, digest)
  for (const migration of migrations.slice(applied.length)) apply(connection, migration, now())
  return migrations.length
}

/** Reads the migrations of a folder, `0001-tables.sql` first, in order. */
export function readMigrations(folder: URL): Migration[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'))
  return files.sort().map((file, index) => {
    const match = /^(\d{4})-([a-z0-9-]+)\.sql$/.exec(file)
    if (Number(match?.[1]) !== index + 1) throw new Failure('internal', `migration ${file} is out of order`)
    const sql = readFileSync(new URL(file, folder), 'utf8')
    return { version: index + 1, name: match?.[2] ?? '', sql, digest: createHash('sha256').update(sql).digest('hex') }
  })
}

const LEDGER = `create table if not exists schema_migrations (
  version integer not null primary key,
  name text not null,
  digest text not null,
  applied_at integer not null
) strict`

function assertKnown(migration: Migration | undefined, name: string, digest: string): void {
  if (!migration) {
    const message = `the database was made by a newer Quayside (migration "${name}"): start that version or a later one`
    throw new Failure('invalid', message, { reason: 'database_newer' })
  }
  if (migration.digest === digest) return
  const message = `migration "${name}" differs from the one that made this database: use the files of the release`
  throw new Failure('invalid', message, { reason: 'migration_changed' })
}

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
