/** Makes one migration of those that were never released. */
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import Connection from 'better-sqlite3'
import { type Migration, readMigrations } from '../../src/storage/migration-files.ts'
import { migrate } from '../../src/storage/sqlite/open.ts'

/** @returns the name of the file of a migration, such as `0001-tables.sql` */
export const fileOf = ({ version, name }: Pick<Migration, 'version' | 'name'>): string =>
  `${String(version).padStart(4, '0')}-${name}.sql`

/**
 * Returns the migration that takes the place of others. It runs what they ran, in their order: a new database gets the same
 * tables, and what they moved between tables is not there yet. Its first lines name them, for the databases that have them.
 *
 * @param release such as `0.2.0`, after which the migration is named
 */
export function squashed(migrations: Migration[], release: string): Pick<Migration, 'version' | 'name' | 'sql'> {
  const [first] = migrations
  if (first === undefined) throw new Error('there is no migration to put into one file')
  const replaces = migrations.map((one) => `-- replaces ${fileOf(one).slice(0, -'.sql'.length)} ${one.digest}`)
  const texts = migrations.map((one) => `-- ${one.name}\n\n${one.sql.trim()}`)
  const sql = `${replaces.join('\n')}\n\n${texts.join('\n\n')}\n`
  return { version: first.version, name: `v${release.replaceAll('.', '-')}`, sql }
}

/**
 * Puts the migrations of a folder that were never released into one file, where there are several.
 *
 * @param released the names of the files that the last release has
 * @returns the names of the files that are gone, and of the one that is there for them; none when nothing changed
 * @throws Error when the tables would not be the same; nothing is changed then
 */
export function squashFolder(folder: URL, released: string[], release: string): { gone: string[]; made?: string } {
  const before = readMigrations(folder)
  const gone = unreleased(folder, released)
  if (gone.length < 2) return { gone: [] }
  const kept = before.slice(0, -gone.length)
  const one = squashed(before.slice(-gone.length), release)
  const made = fileOf(one)
  if (tablesOf([...kept, { ...one, digest: made }]) !== tablesOf(before)) {
    throw new Error(`${made} would not make the tables that ${gone.join(', ')} make: put them into one file by hand`)
  }
  for (const file of gone) rmSync(new URL(file, folder))
  writeFileSync(new URL(made, folder), one.sql)
  return { gone, made }
}

/** The names of the files of a folder that no release has. */
export const unreleased = (folder: URL, released: string[]): string[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.sql') && !released.includes(file))
    .sort()

/** Everything that SQLite has of the tables and indexes that migrations make, as one text. */
function tablesOf(migrations: Migration[]): string {
  const connection = new Connection(':memory:')
  try {
    migrate(connection, migrations, () => 1)
    return JSON.stringify(connection.prepare('select type, name, tbl_name, sql from sqlite_schema order by 1, 2').all())
  } finally {
    connection.close()
  }
}
