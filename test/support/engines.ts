/** The engines that the tests of the storage port run on. PostgreSQL is left out, by its name, where no server is. */
import { describe } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { sqliteInMemory } from './database.ts'
import { hasPooler, hasPostgres, openPostgresDatabase, pooled, postgresUrl } from './postgres.ts'

const engines = [
  { name: 'SQLite', isHere: true, open: async () => sqliteInMemory() },
  { name: 'PostgreSQL', isHere: hasPostgres, open: async () => (await openPostgresDatabase()).database },
  {
    name: 'PostgreSQL behind pgbouncer',
    isHere: hasPooler,
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
