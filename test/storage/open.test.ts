import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Connection from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { readMigrations } from '../../src/storage/migration-files.ts'
import { settings } from '../../src/storage/schema.ts'
import { migrate, openDatabase } from '../../src/storage/sqlite/open.ts'
import { build } from '../../src/storage/statement.ts'
import { databaseFile, fileDatabase, TEST_NOW } from '../support/database.ts'

/** What a second process runs: it opens the file, says so, and commits until it is killed, printing what is acknowledged. */
const WRITER = `
  import { writeSync } from 'node:fs'
  import { build } from '${new URL('../../src/storage/statement.ts', import.meta.url)}'
  import { openDatabase } from '${new URL('../../src/storage/sqlite/open.ts', import.meta.url)}'
  import { settings } from '${new URL('../../src/storage/schema.ts', import.meta.url)}'
  const database = openDatabase({ file: process.argv[1], now: Date.now })
  writeSync(1, 'open\\n')
  async function store(name) {
    await database.commit([{ statement: build.insert(settings).values({ name, value: '', changedAt: 1 }), rows: 1 }])
    writeSync(1, name + '\\n')
  }
  for (let round = 0; ; round++) await Promise.all([0, 1, 2, 3].map((n) => store(round + '.' + n)))
`

/** Starts the writer and waits until it has printed as many lines; `lines` goes on growing. */
async function startWriter(file: string, linesMin: number): Promise<{ child: ChildProcess; text: () => string }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', WRITER, file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    text += chunk
    if (text.split('\n').length > linesMin) break
  }
  if (text.split('\n').length <= linesMin) throw new Error(`the writer ended early: ${errors}`)
  child.stdout.on('data', (chunk) => {
    text += chunk
  })
  return { child, text: () => text }
}

describe('a database file', () => {
  test('is refused to a second process while the first one lives', async () => {
    const file = databaseFile()
    const { child } = await startWriter(file, 1)
    const refusal = await failureOf(() => openDatabase({ file, now: () => TEST_NOW }))
    expect(refusal.code).toBe('conflict')
    expect(refusal.message).toContain('another Quayside process uses')
    expect(refusal.message).toContain('stop it first')
    child.kill('SIGKILL')
    await once(child, 'close')
    fileDatabase(file)
  })

  test('is refused to the process that has it open, and free after close', async () => {
    const file = databaseFile()
    const database = fileDatabase(file)
    expect((await failureOf(() => openDatabase({ file, now: () => TEST_NOW }))).reason).toBe('database_in_use')
    await database.close()
    fileDatabase(file)
  })

  test('has every acknowledged commit after kill -9', async () => {
    const file = databaseFile()
    const { child, text } = await startWriter(file, 200)
    child.kill('SIGKILL')
    await once(child, 'close')
    const acknowledged = text().split('\n').slice(1, -1)
    expect(acknowledged.length).toBeGreaterThanOrEqual(199)
    const rows = await fileDatabase(file).query(build.select({ name: settings.name }).from(settings))
    const stored = new Set(rows.map(({ name }) => name))
    expect(acknowledged.filter((name) => !stored.has(name))).toEqual([])
  })

  test('keeps nothing in its log that a process before has overwritten: a start empties what a kill -9 left', async () => {
    const file = databaseFile()
    const { child } = await startWriter(file, 2)
    child.kill('SIGKILL')
    await once(child, 'close')
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(0)
    fileDatabase(file)
    expect(statSync(`${file}-wal`).size).toBe(0)
  })

  test('is readable by its owner alone, as are its folder, its log and its lock', () => {
    const file = join(databaseFile(), '..', 'new', 'folder', 'quayside.db')
    fileDatabase(file)
    const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
    expect(mode(join(file, '..'))).toBe('700')
    expect([file, `${file}-wal`, `${file}-shm`, `${file}.lock`].map(mode)).toEqual(['600', '600', '600', '600'])
  })

  test('is one file again after close', async () => {
    const file = databaseFile()
    const database = fileDatabase(file)
    expect(existsSync(`${file}-wal`)).toBe(true)
    await database.close()
    expect([`${file}-wal`, `${file}-shm`].filter(existsSync)).toEqual([])
  })

  test('runs with the settings that make an acknowledged commit durable', async () => {
    const database = fileDatabase()
    const answers = {
      synchronous: 2,
      foreign_keys: 1,
      busy_timeout: 250,
      journal_size_limit: 67_108_864,
      secure_delete: 1,
      trusted_schema: 0,
    }
    for (const [name, answer] of Object.entries(answers)) {
      const [row] = (await database.query(sql.raw(`pragma ${name}`))) as object[]
      expect([name, ...Object.values(row ?? {})]).toEqual([name, answer])
    }
  })

  test('that is no database is refused with a sentence, and left free', async () => {
    const file = databaseFile()
    writeFileSync(file, 'these are not the bytes of a database '.repeat(100))
    for (let n = 0; n < 2; n++) {
      const refusal = await failureOf(() => openDatabase({ file, now: () => TEST_NOW }))
      expect(refusal).toMatchObject({ code: 'unavailable', message: expect.stringContaining('is no SQLite database') })
    }
  })
})

describe('migrations', () => {
  const memory = () => {
    const connection = new Connection(':memory:')
    onTestFinished(() => void connection.close())
    return connection
  }
  const step = (version: number, sql: string) => ({ version, name: `step-${version}`, sql, digest: sql })

  test('run once', () => {
    const connection = memory()
    const migrations = readMigrations()
    expect(migrate(connection, migrations, () => 1)).toBe(migrations.length)
    expect(migrate(connection, migrations, () => 2)).toBe(migrations.length)
    const rows = connection.prepare('select distinct applied_at from schema_migrations').all()
    expect(rows).toEqual([{ applied_at: 1 }])
  })

  test('that failed leave the database as it was, and run again', () => {
    const connection = memory()
    const good = step(1, 'create table a (id text)')
    const bad = step(2, 'create table b (id text); create table a (id text)')
    expect(() => migrate(connection, [good, bad], () => 1)).toThrow('migration "step-2" failed: table a already exists')
    expect(migrate(connection, [good, step(2, 'create table b (id text)')], () => 1)).toBe(2)
  })

  test('that were edited after they ran stop the start', async () => {
    const connection = memory()
    migrate(connection, [step(1, 'create table a (id text)')], () => 1)
    const refusal = await failureOf(() => migrate(connection, [step(1, 'create table a (id integer)')], () => 1))
    expect(refusal).toMatchObject({ code: 'invalid', reason: 'migration_changed' })
  })

  test('of a newer program stop the start', async () => {
    const connection = memory()
    const first = step(1, 'create table a (id text)')
    migrate(connection, [first, step(2, 'create table b (id text)')], () => 1)
    const refusal = await failureOf(() => migrate(connection, [first], () => 1))
    expect(refusal).toMatchObject({ code: 'invalid', reason: 'database_newer' })
  })
})

async function failureOf(action: () => unknown): Promise<Failure> {
  try {
    await action()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
  throw new Error('nothing failed')
}
