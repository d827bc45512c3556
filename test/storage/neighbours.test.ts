/**
 * Neighbouring versions on one database: the statements of the last release run on the tables of this version, and this version
 * on what the release has written. `npm run release-snapshot` takes this version for the released one.
 */
import Connection from 'better-sqlite3'
import pg from 'pg'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Migration, readMigrations } from '../../src/storage/migration-files.ts'
import { migrate as migratePostgres } from '../../src/storage/postgres/open.ts'
import { encodeValue } from '../../src/storage/postgres/translation.ts'
import { migrate as migrateSqlite } from '../../src/storage/sqlite/open.ts'
import {
  earlierVersion,
  presentVersion,
  type StatementTexts,
  type Text,
  writeEarlierVersion,
} from '../support/earlier-version.ts'
import { hasPostgres, newPostgresUrl } from '../support/postgres.ts'
import { run as runSql } from '../support/postgres-server.ts'

if (process.env.QUAYSIDE_WRITE_SNAPSHOT) beforeAll(writeEarlierVersion)

interface Engine {
  migrate(migrations: Migration[]): Promise<unknown>
  run(text: Text): Promise<unknown>
  textsOf(statement: StatementTexts): Text[]
}

async function sqlite(): Promise<Engine> {
  const connection = new Connection(':memory:')
  connection.pragma('foreign_keys = ON')
  onTestFinished(() => void connection.close())
  return {
    migrate: async (migrations) => migrateSqlite(connection, migrations, () => 1),
    run: async ({ sql, params }) => {
      const statement = connection.prepare(sql)
      return statement.reader ? statement.all(...params) : statement.run(...params)
    },
    textsOf: (statement) => statement.sqlite,
  }
}

async function postgres(): Promise<Engine> {
  const url = await newPostgresUrl()
  await runSql(url, 'drop schema public cascade; create schema public')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  return {
    migrate: (migrations) => migratePostgres(client, migrations, () => 1),
    run: ({ sql, params }) => client.query(sql, params.map(encodeValue)),
    textsOf: (statement) => statement.postgres,
  }
}

/** A row that is there already, on SQLite and on PostgreSQL: two versions ran what one would run once. */
const isTaken = (error: unknown): boolean =>
  /^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY)$/.test(String((error as { code?: string }).code)) ||
  (error as { code?: string }).code === '23505'

/** @returns what is refused, by the names of the statements */
async function refusedOf(engine: Engine, statements: StatementTexts[], mayBeTaken = false): Promise<string[]> {
  const refused: string[] = []
  for (const statement of statements) {
    for (const text of engine.textsOf(statement)) {
      await engine.run(text).catch((error: unknown) => {
        if (!mayBeTaken || !isTaken(error)) refused.push(`${statement.name}: ${String(error)}`)
      })
    }
  }
  return refused
}

const earlier = earlierVersion
const migrationsOf = ({ migrations }: ReturnType<typeof earlierVersion>) => readMigrations().slice(0, migrations.length)

/** What no process of the release may be running beside: each is refused by the names of its statements. */
const seeded: [what: string, sql: string, named: RegExp][] = [
  ['a column that is dropped', 'alter table offers drop column origin;', /^putOffers: /],
  ['a column that is renamed', 'alter table outbox rename column last_error to error;', /^listOutbox: /],
  ['a table that is dropped', 'drop table late_orders;', /^insertLateOrder: /],
  [
    'a new column that every row must have',
    `drop table late_orders;
create table late_orders (
  store text not null,
  reference text not null,
  attempts integer not null,
  not_before integer not null,
  last_error text not null,
  cause text not null,
  primary key (store, reference)
) strict;`,
    /^insertLateOrder: /,
  ],
]

const withSeeded = (sql: string): Migration[] => {
  const migrations = readMigrations()
  return [...migrations, { version: migrations.length + 1, name: 'seeded', sql, digest: 'seeded' }]
}

describe.each([
  { name: 'SQLite', open: sqlite, isHere: true },
  { name: 'PostgreSQL', open: postgres, isHere: hasPostgres },
])('neighbouring versions on $name', ({ open, isHere }) => {
  test.runIf(isHere)('the statements of the release run on the tables of this version', async () => {
    const engine = await open()
    await engine.migrate(readMigrations())
    expect(await refusedOf(engine, earlier().statements)).toEqual([])
  })

  test.runIf(isHere)(
    'this version runs on what the release has written, and the release goes on beside it',
    async () => {
      const engine = await open()
      await engine.migrate(migrationsOf(earlier()))
      expect(await refusedOf(engine, earlier().statements)).toEqual([])
      await engine.migrate(readMigrations())
      expect(await refusedOf(engine, (await presentVersion('')).statements, true)).toEqual([])
      expect(await refusedOf(engine, earlier().statements, true)).toEqual([])
    },
  )

  test.runIf(isHere).each(seeded)('%s is noticed', async (_, sql, named) => {
    const engine = await open()
    await engine.migrate(withSeeded(sql))
    const refused = await refusedOf(engine, earlier().statements)
    expect(refused.filter((line) => named.test(line))).not.toEqual([])
  })

  test.runIf(isHere)('a new column that may be empty, a new table and a new index are no hindrance', async () => {
    const engine = await open()
    const sql = `alter table offers add column colour text;
alter table purchases add column weight integer not null default 0;
create table colours (
  name text not null primary key
) strict;
create index offers_colour on offers (colour);`
    await engine.migrate(withSeeded(sql))
    expect(await refusedOf(engine, earlier().statements)).toEqual([])
  })
})

describe('the snapshot of the release', () => {
  test('has migrations that are still as they were released', () => {
    const { migrations } = earlier()
    const kept = migrationsOf(earlier()).map(({ sql: _, ...migration }) => migration)
    expect(kept).toEqual(migrations)
  })
})
