/** Reads the migrations, whose SQL every engine understands, and checks which migrations a database lacks. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { Failure } from '../errors.ts'

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

/** What a database records of a migration that it has. */
type Applied = Pick<Migration, 'version' | 'name' | 'digest'>

/**
 * The migrations that a database does not have yet.
 *
 * A release puts the migrations that were never released into one file, whose first lines name them:
 * `-- replaces 0001-tables <digest>`. A database that was made with all of them, by a clone before the release, has the tables
 * already: for it, the migration only takes their place in the records.
 *
 * @param applied the migrations that the database records as applied, in order
 * @throws Failure `invalid`, reason `database_newer` or `migration_changed`
 */
export function missingMigrations(migrations: Migration[], applied: Applied[]): Migration[] {
  for (const [index, migration] of migrations.entries()) {
    const [row, ...later] = applied.slice(index)
    if (row === undefined) return migrations.slice(index)
    if (row.digest === migration.digest) continue
    assertReplaced(migration, [row, ...later])
    const sql = `delete from schema_migrations where version >= ${migration.version}`
    return [{ ...migration, sql }, ...migrations.slice(index + 1)]
  }
  const newer = applied[migrations.length]
  if (newer === undefined) return []
  const message = `the database was made by a newer Quayside (migration "${newer.name}"): start that version or a later one`
  throw new Failure('invalid', message, { reason: 'database_newer' })
}

function assertReplaced({ name, sql }: Migration, rows: Applied[]): void {
  const digests = [...sql.matchAll(/^-- replaces \S+ ([0-9a-f]{64})$/gm)].map(([, digest]) => digest)
  const isPart = rows.every(({ digest }, index) => digest === digests[index])
  if (isPart && rows.length === digests.length) return
  const some = `the database has ${rows.length} of the ${digests.length} migrations that "${name}" replaces`
  const message = isPart
    ? `${some}: start the last commit before that release once, then this version`
    : `migration "${rows[0]?.name}" differs from the one that made this database: use the files of the release`
  throw new Failure('invalid', message, { reason: 'migration_changed' })
}
