/** A release puts the migrations that were never released into one: `test/release/squash.ts`. */
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import Connection from 'better-sqlite3'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Migration, readMigrations } from '../../src/storage/migration-files.ts'
import { migrate as migratePostgres } from '../../src/storage/postgres/open.ts'
import { migrate as migrateSqlite } from '../../src/storage/sqlite/open.ts'
import { fileOf, squashFolder } from '../release/squash.ts'
import { hasPostgres, newPostgresUrl } from '../support/postgres.ts'
import { run as runSql } from '../support/postgres-server.ts'

interface Engine {
  migrate(migrations: Migration[], at?: number): Promise<unknown>
  rows(sql: string): Promise<Record<string, unknown>[]>
  /** Everything that the engine says of tables, columns, keys and indexes. */
  tables(): Promise<unknown[]>
}

async function sqlite(): Promise<Engine> {
  const connection = new Connection(':memory:')
  onTestFinished(() => void connection.close())
  const rows = async (sql: string) => connection.prepare(sql).all() as Record<string, unknown>[]
  return {
    migrate: async (migrations, at = 1) => migrateSqlite(connection, migrations, () => at),
    rows,
    tables: () => rows('select type, name, tbl_name, sql from sqlite_schema order by type, name'),
  }
}

async function postgres(): Promise<Engine> {
  const url = await newPostgresUrl()
  await runSql(url, 'drop schema public cascade; create schema public')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  const rows = async (sql: string) => (await client.query(sql)).rows as Record<string, unknown>[]
  return {
    migrate: (migrations, at = 1) => migratePostgres(client, migrations, () => at),
    rows,
    tables: async () => [
      ...(await rows(`select table_name, column_name, ordinal_position, data_type, is_nullable, column_default, collation_name
        from information_schema.columns where table_schema = 'public' order by table_name, ordinal_position`)),
      ...(await rows("select indexdef from pg_indexes where schemaname = 'public' order by indexdef")),
      ...(await rows(`select conrelid::regclass::text as of, pg_get_constraintdef(oid) as text from pg_constraint
        where connamespace = 'public'::regnamespace order by 1, 2`)),
    ],
  }
}

/** A folder with the migrations of this version. */
function folderOf(): URL {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-migrations-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  cpSync(new URL('../../src/storage/migrations/', import.meta.url), folder, { recursive: true })
  return pathToFileURL(`${folder}/`)
}

/** The migrations of this version and, as `0.2.0` releases them, in one file. */
function releases() {
  const folder = folderOf()
  const before = withMore(folder)
  const { made, gone } = squashFolder(folder, [], '0.2.0')
  expect({ made, gone }).toEqual({ made: '0001-v0-2-0.sql', gone: before.map(fileOf) })
  return { folder, before, after: readMigrations(folder) }
}

/** Adds a migration, so that there are always several that were not released. */
function withMore(folder: URL, name = 'colours'): Migration[] {
  const version = readdirSync(folder).length + 1
  const sql = `create table ${name} (\n  name text not null primary key\n) strict;\n`
  writeFileSync(new URL(fileOf({ version, name }), folder), sql)
  return readMigrations(folder)
}

const LEDGER = 'select version, name, digest from schema_migrations order by version'
const recorded = (migrations: Migration[]) => migrations.map(({ version, name, digest }) => ({ version, name, digest }))
const asNumbers = (rows: Record<string, unknown>[]) => rows.map((row) => ({ ...row, version: Number(row.version) }))

describe.each([
  { name: 'SQLite', open: sqlite, isHere: true },
  { name: 'PostgreSQL', open: postgres, isHere: hasPostgres },
])('the migrations of a release on $name', ({ open, isHere }) => {
  test.runIf(isHere)('make the tables that those in its place make one by one', async () => {
    const { before, after } = releases()
    const [one, other] = [await open(), await open()]
    await one.migrate(before)
    await other.migrate(after)
    expect(await other.tables()).toEqual(await one.tables())
    expect(asNumbers(await other.rows(LEDGER))).toEqual(recorded(after))
  })

  test.runIf(isHere)('take a database with all that they replace, and leave its rows', async () => {
    const { before, after } = releases()
    const engine = await open()
    await engine.migrate(before)
    await engine.rows("insert into colours values ('green') returning name")
    const tables = await engine.tables()
    await engine.migrate(after)
    expect(asNumbers(await engine.rows(LEDGER))).toEqual(recorded(after))
    expect(await engine.rows('select * from colours')).toEqual([{ name: 'green' }])
    expect(await engine.tables()).toEqual(tables)
    await engine.migrate(after, 2)
    const times = await engine.rows('select applied_at from schema_migrations')
    expect(times.map((row) => Number(row.applied_at))).toEqual([1])
  })

  test.runIf(isHere)('take it two releases later too, and one that was made between them', async () => {
    const { folder, before, after } = releases()
    withMore(folder, 'shapes')
    const between = withMore(folder, 'sounds')
    const second = squashFolder(folder, after.map(fileOf), '0.3.0')
    expect(second).toEqual({ made: '0002-v0-3-0.sql', gone: ['0002-shapes.sql', '0003-sounds.sql'] })
    const latest = readMigrations(folder)
    const fresh = await open()
    await fresh.migrate(latest)
    for (const made of [before, after, between]) {
      const engine = await open()
      await engine.migrate(made)
      await engine.migrate(latest)
      expect(asNumbers(await engine.rows(LEDGER))).toEqual(recorded(latest))
      expect(await engine.tables()).toEqual(await fresh.tables())
    }
  })

  test.runIf(isHere)('refuse a database with some of what they replace, and leave it as it is', async () => {
    const { before, after } = releases()
    const engine = await open()
    await engine.migrate(before.slice(0, 3))
    const [ledger, tables] = [await engine.rows(LEDGER), await engine.tables()]
    await expect(engine.migrate(after)).rejects.toMatchObject({
      code: 'invalid',
      reason: 'migration_changed',
      message:
        `the database has 3 of the ${before.length} migrations that "v0-2-0" replaces: ` +
        'start the last commit before that release once, then this version',
    })
    expect([await engine.rows(LEDGER), await engine.tables()]).toEqual([ledger, tables])
    await engine.migrate(before)
    await engine.migrate(after)
    expect(asNumbers(await engine.rows(LEDGER))).toEqual(recorded(after))
  })

  test.runIf(isHere)('refuse a database of other files, and of a clone with more', async () => {
    const { folder, before, after } = releases()
    const refused = { code: 'invalid', reason: 'migration_changed' }
    const edited = await open()
    await edited.migrate([...before.slice(0, -1), { ...(before.at(-1) as Migration), digest: 'edited' }])
    await expect(edited.migrate(after)).rejects.toMatchObject(refused)
    const more = await open()
    const version = before.length + 1
    await more.migrate([...before, { version, name: 'more', sql: 'create table more (name text);', digest: 'more' }])
    await expect(more.migrate(after)).rejects.toMatchObject(refused)
    // A clone from before the release says so too of a database that a release has taken.
    const later = await open()
    await later.migrate(readMigrations(folder))
    await expect(later.migrate(before)).rejects.toMatchObject(refused)
  })
})

describe('a folder of migrations', () => {
  test('keeps one that is new, and those that were released', () => {
    const folder = folderOf()
    const present = readMigrations(folder).map(fileOf)
    expect(squashFolder(folder, present, '0.2.0')).toEqual({ gone: [] })
    withMore(folder)
    expect(squashFolder(folder, present, '0.2.0')).toEqual({ gone: [] })
    expect(readdirSync(folder).length).toBe(present.length + 1)
  })
})
