/** Every statement that the program has, run against the migrated database: a misspelt column fails here by its name. */
import type { SQLWrapper } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { type Change, type Database, StaleWrite } from '../../src/storage/database.ts'
import { sqliteInMemory } from '../support/database.ts'
import { hasPostgres, newPostgresUrl, openPostgresDatabase } from '../support/postgres.ts'
import { buildersOf, calls, everyStatement, noArguments, others } from '../support/statement-calls.ts'

/** @returns the rows of a read, sorted; how many rows a change touched; `stale` for one that found another number */
async function run(db: Database, statement: unknown): Promise<unknown> {
  if (Array.isArray(statement)) {
    const results: unknown[] = []
    for (const one of statement) results.push(await run(db, one))
    return results
  }
  if (typeof statement === 'object' && statement !== null && 'rows' in statement) {
    // Whether it finds its row is the business of other tests; here the database has to understand it.
    return db.commit([statement as Change]).catch((error: unknown) => {
      if (error instanceof StaleWrite) return 'stale'
      throw error
    })
  }
  const rows = await db.query(statement as SQLWrapper)
  return rows.map((row) => JSON.stringify(row)).sort()
}

/** Runs all of them. @returns the answer to each, and the failure of each that was not understood */
async function runAll(db: Database) {
  const answers: Record<string, unknown> = {}
  const refused: string[] = []
  for (const [name, statement] of await everyStatement()) {
    answers[name] = await run(db, statement).catch((error: unknown) => {
      refused.push(`${name}: ${String(error)}`)
    })
  }
  return { answers, refused }
}

describe('the statements', () => {
  test('are all understood by the migrated database', async () => {
    expect((await runAll(sqliteInMemory())).refused).toEqual([])
  })

  test('are all known to this test', async () => {
    const builders = await buildersOf()
    const known = [...Object.keys(calls), ...noArguments, ...others]
    expect([...builders.keys()].filter((name) => !known.includes(name))).toEqual([])
    expect(known.filter((name) => !builders.has(name))).toEqual([])
  })
})

describe.runIf(hasPostgres)('the statements, on PostgreSQL', () => {
  test('are all understood, and answered as on SQLite', async () => {
    // Of its own: the numbers of its rows begin at 1.
    const { database } = await openPostgresDatabase(await newPostgresUrl())
    const { answers, refused } = await runAll(database)
    expect(refused).toEqual([])
    // Each database was migrated at an instant of its own.
    const shown = (all: Record<string, unknown>) => JSON.stringify(all).replaceAll(/\\"appliedAt\\":\d+/g, 'then')
    expect(JSON.parse(shown(answers))).toEqual(JSON.parse(shown((await runAll(sqliteInMemory())).answers)))
  })
})
