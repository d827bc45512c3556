import type pg from 'pg'
import { Failure, messageOf } from '../../errors.ts'
import { type Migration, missingMigrations } from '../migration-files.ts'
import { migrationText, types } from './translation.ts'

/**
 * Brings a database up to the newest migration, in one transaction together with the rows that record the migrations. Of
 * several processes that start together, one process migrates and the others wait.
 *
 * @param now epoch ms
 * @throws Failure `invalid`, reason `database_newer` or `migration_changed`; nothing is changed
 * @throws Failure `internal` when a migration fails; nothing is changed
 */
export async function migrate(client: pg.Client, migrations: Migration[], now: () => number): Promise<void> {
  await client.query('begin')
  try {
    await client.query(`select pg_advisory_xact_lock(${LOCK})`)
    await client.query(LEDGER)
    const { rows } = await client.query<Migration>({
      text: 'select version, name, digest from schema_migrations order by version',
      types,
    })
    for (const migration of missingMigrations(migrations, rows)) await apply(client, migration, now())
    await client.query('commit')
  } catch (error) {
    // The first error is the one to report; the transaction ends with the connection at the latest.
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}

/** Any number that other programs on the server do not take: the word `quayside` on a telephone. */
const LOCK = 78_297_433

const LEDGER = `create table if not exists schema_migrations (
  version bigint not null primary key,
  name text not null,
  digest text not null,
  applied_at bigint not null
)`

async function apply(client: pg.Client, { version, name, sql, digest }: Migration, at: number): Promise<void> {
  try {
    await client.query(migrationText(sql))
    await client.query('insert into schema_migrations values ($1, $2, $3, $4)', [version, name, digest, at])
  } catch (cause) {
    throw new Failure('internal', `migration "${name}" failed: ${messageOf(cause)}`, { cause })
  }
}
