import type Connection from 'better-sqlite3'
import { Failure, messageOf } from '../../errors.ts'
import { type Migration, missingMigrations } from '../migration-files.ts'

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
