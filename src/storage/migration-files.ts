/** Reads the migrations, whose SQL every engine understands, and checks which migrations a database lacks. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { Failure } from '../errors.ts'

/** One file of the migrations folder. */
export interface Migration {
  /** The number of the migration: 1, 2, 3 without gaps. */
  version: number
  name: string
  sql: string
  /** SHA-256 of the file, hex. It shows whether an applied migration was edited. */
  digest: string
}

/** Reads the migrations of the program, `0001-tables.sql` first, in order. */
export function readMigrations(folder = new URL('./migrations/', import.meta.url)): Migration[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'))
  return files.sort().map((file, index) => {
    const match = /^(\d{4})-([a-z0-9-]+)\.sql$/.exec(file)
    if (Number(match?.[1]) !== index + 1) throw new Failure('internal', `migration ${file} is out of order`)
    const sql = readFileSync(new URL(file, folder), 'utf8')
    return { version: index + 1, name: match?.[2] ?? '', sql, digest: createHash('sha256').update(sql).digest('hex') }
  })
}

/**
 * The migrations that a database does not have yet.
 *
 * @param applied the migrations that the database records as applied, in order
 * @throws Failure `invalid`, reason `database_newer` or `migration_changed`
 */
export function missingMigrations(
  migrations: Migration[],
  applied: Pick<Migration, 'version' | 'name' | 'digest'>[],
): Migration[] {
  const known = new Map(migrations.map((migration) => [migration.version, migration]))
  for (const { version, name, digest } of applied) assertKnown(known.get(version), name, digest)
  return migrations.slice(applied.length)
}

function assertKnown(migration: Migration | undefined, name: string, digest: string): void {
  if (!migration) {
    const message = `the database was made by a newer Quayside (migration "${name}"): start that version or a later one`
    throw new Failure('invalid', message, { reason: 'database_newer' })
  }
  if (migration.digest === digest) return
  const message = `migration "${name}" differs from the one that made this database: use the files of the release`
  throw new Failure('invalid', message, { reason: 'migration_changed' })
}
