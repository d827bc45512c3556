/** Databases of the PostgreSQL server that the run was given, see `postgres-server.ts`. */
import { is } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { inject, onTestFinished } from 'vitest'
import { Failure } from '../../src/errors.ts'
import type { Database } from '../../src/storage/database.ts'
import * as schema from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { run, withDatabase } from './postgres-server.ts'

const server = given()

/** A process that a test has started is given nothing. */
function given() {
  try {
    return inject('postgres')
  } catch {
    return undefined
  }
}

export const hasPostgres = server !== undefined
export const hasPooler = server?.pooled !== undefined

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

/** What refers to others was declared after them, and comes first. */
const tables = Object.values(schema)
  .filter((value) => is(value, SQLiteTable))
  .reverse()
const emptied = tables.map((table) => `delete from ${getTableConfig(table).name};`).join('\n')

/** The same of one that only this test ever uses: it may do with it what it likes. */
export async function newPostgresUrl(): Promise<string> {
  if (!server) throw new Error('there is no PostgreSQL server: QUAYSIDE_NEEDS=postgres')
  made += 1
  const name = `${server.template}_${process.pid}_${made}`
  await run(server.url, `create database ${name} template ${server.template}`)
  return withDatabase(server.url, name)
}

/** Opens a database for a test, whose clock may be any. */
async function openAt(url: string, engine: { endsOnUnknown?: boolean; onFatal: (failure: Failure) => void }) {
  const { openPostgres } = await import('../../src/storage/postgres/open.ts')
  return openPostgres({ url, now: Date.now, clocksApartMs: Number.POSITIVE_INFINITY, ...engine })
}

/** @param url of a database; default: an empty one */
export async function openPostgresDatabase(given?: string, engine: { endsOnUnknown?: boolean } = {}) {
  const url = given ?? (await postgresUrl())
  const fatal: Failure[] = []
  const database = await openAt(url, { onFatal: (failure) => fatal.push(failure), ...engine })
  onTestFinished(() => database.close())
  return { database, url, fatal }
}

/**
 * Whether the tests of the flows run on PostgreSQL: `QUAYSIDE_ENGINE=postgres npx vitest run test/ordering`. Those about
 * SQLite's file are skipped then, and those that fix which of several things at once comes first: there reads take time.
 */
export const isOnPostgres = process.env.QUAYSIDE_ENGINE === 'postgres'

/** An empty database, used before it is open. @param given its address; default: one that tests share after each other */
export function postgresLater(given?: Promise<string>): Database {
  const opening =
    given === undefined ? openShared() : given.then(async (url) => (await openPostgresDatabase(url)).database)
  opening.catch(() => undefined)
  onTestFinished(async () => void (await opening.catch(() => undefined)))
  return {
    query: async (statement) => (await opening).query(statement),
    commit: async (changes) => (await opening).commit(changes),
    close: async () => (await opening).close(),
  }
}

/** Databases that are open and that no test uses now: new connections cost the server more than most tests do. */
const open: Database[] = []

/** A database that is emptied and stays open for the next test. To this one it is closed when the test has finished. */
async function openShared(): Promise<Database> {
  const database = open.pop() ?? (await openAt(await newPostgresUrl(), { onFatal: fail }))
  const running = new Set<Promise<unknown>>()
  let isClosed = false
  async function whileOpen<T>(act: () => Promise<T>): Promise<T> {
    if (isClosed) throw new Failure('unavailable', 'the database is closed')
    const one = act()
    running.add(one)
    return one.finally(() => running.delete(one))
  }
  onTestFinished(async () => {
    isClosed = true
    await Promise.allSettled(running)
    await database.commit(tables.map((table) => ({ statement: build.delete(table), rows: 'any' })))
    open.push(database)
  })
  return {
    query: (statement) => whileOpen(() => database.query(statement)),
    commit: (changes) => whileOpen(() => database.commit(changes)),
    close: async () => {
      isClosed = true
    },
  }
}

function fail(failure: Failure): never {
  throw failure
}
