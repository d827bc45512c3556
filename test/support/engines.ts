/** The engines that the tests of the storage port run on. PostgreSQL is left out, by its name, where no server is. */
import { describe, expect, onTestFinished } from 'vitest'
import type { Failure } from '../../src/errors.ts'
import type { Database } from '../../src/storage/database.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { TEST_NOW } from './database.ts'
import { hasPooler, hasPostgres, openPostgresDatabase, pooled, postgresUrl } from './postgres.ts'

function openSqlite() {
  const fatal: Failure[] = []
  const onFatal = (failure: Failure) => fatal.push(failure)
  const database = openDatabase({ file: ':memory:', now: () => TEST_NOW, onFatal })
  onTestFinished(() => database.close())
  return { database, fatal }
}

const engines = [
  { name: 'SQLite', isHere: true, open: async () => openSqlite() },
  { name: 'PostgreSQL', isHere: hasPostgres, open: () => openPostgresDatabase() },
  {
    name: 'PostgreSQL behind pgbouncer',
    isHere: hasPooler,
    open: async () => openPostgresDatabase(pooled(await postgresUrl())),
  },
]

/**
 * Runs tests on each engine. None may end with a failure after which the process must end.
 *
 * @param tests `open` gives an empty database, closed and gone when the test that asked for it ends
 */
export function onEachEngine(tests: (open: () => Promise<Database>) => void): void {
  for (const { name, isHere, open } of engines) {
    const opened = async () => {
      const { database, fatal } = await open()
      onTestFinished(() => expect(fatal).toEqual([]))
      return database
    }
    describe.runIf(isHere)(`on ${name}`, () => tests(opened))
  }
}
