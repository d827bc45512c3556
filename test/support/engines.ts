/** The engines that the tests of the storage port run on. PostgreSQL is left out, by its name, where no server is. */
import { is } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { describe, inject, onTestFinished } from 'vitest'
import type { Failure } from '../../src/errors.ts'
import type { Database } from '../../src/storage/database.ts'
import * as schema from '../../src/storage/schema.ts'
import { memoryDatabase, TEST_NOW } from './database.ts'
import { run, withDatabase } from './postgres-server.ts'

const server = inject('postgres')

export const hasPostgres = server !== undefined

const engines = [
  { name: 'SQLite', isHere: true, open: async () => memoryDatabase() },
  { name: 'PostgreSQL', isHere: hasPostgres, open: async () => (await openPostgresDatabase()).database },
  {
    name: 'PostgreSQL behind pgbouncer',
    isHere: server?.pooled !== undefined,
    open: async () => (await openPostgresDatabase(pooled(await postgresUrl()))).database,
  },
]

/**
 * Runs tests on each engine.
 *
 * @param tests `open` gives an empty database, closed and gone when the test that asked for it ends
 */
export function onEachEngine(tests: (open: () => Promise<Database>) => void): void {
  for (const { name, isHere, open } of engines) describe.runIf(isHere)(`on ${name}`, () => tests(open))
}

/** The address of the same database through pgbouncer. */
export function pooled(url: string): string {
  const address = new URL(url)
  address.host = new URL(server?.pooled ?? url).host
  return address.href
}

/** Databases that no test uses now: to make one takes longer than most tests. */
const free: string[] = []
let made = 0

/** The address of an empty database of the server, for this test alone. */
export async function postgresUrl(): Promise<string> {
  const url = free.pop() ?? (await newPostgresUrl())
  onTestFinished(async () => {
    await run(url, `set synchronous_commit = off; ${emptied}`)
    free.push(url)
  })
  return url
}

/** What refers to others was declared after them. */
const emptied = Object.values(schema)
  .filter((value) => is(value, SQLiteTable))
  .map((table) => `delete from ${getTableConfig(table).name};`)
  .reverse()
  .join('\n')

/** The same of one that only this test ever uses: it may do with it what it likes. */
export async function newPostgresUrl(): Promise<string> {
  if (!server) throw new Error('there is no PostgreSQL server: QUAYSIDE_NEEDS=postgres')
  made += 1
  const name = `${server.template}_${process.pid}_${made}`
  await run(server.url, `create database ${name} template ${server.template}`)
  return withDatabase(server.url, name)
}

/** @param url of a database; default: an empty one */
export async function openPostgresDatabase(given?: string) {
  const url = given ?? (await postgresUrl())
  const fatal: Failure[] = []
  const { openPostgres } = await import('../../src/storage/postgres/open.ts')
  const database = await openPostgres({
    url,
    now: () => TEST_NOW,
    clocksApartMs: Number.POSITIVE_INFINITY,
    onFatal: (failure) => fatal.push(failure),
  })
  onTestFinished(() => database.close())
  return { database, url, fatal }
}
