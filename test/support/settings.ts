/** Changes of the smallest table, for the tests of engines. */
import { type SQLWrapper, sql } from 'drizzle-orm'
import type { Change, Database } from '../../src/storage/database.ts'
import { settings } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { TEST_NOW } from './database.ts'

export const insert = (name: string, value = ''): Change => ({
  statement: build.insert(settings).values({ name, value, changedAt: TEST_NOW }),
  rows: 1,
})

/** Adds to the end of a value, or makes it. */
export const put = (name: string, value: string): Change => ({
  statement: sql`insert into settings (name, value, changed_at) values (${name}, ${value}, 1)
    on conflict (name) do update set value = settings.value || excluded.value`,
  rows: 'any',
})

export const change = (statement: SQLWrapper, rows: number | 'any'): Change => ({ statement, rows })

export const namesIn = async (database: Database): Promise<string[]> =>
  (await database.query(build.select().from(settings).orderBy(settings.name))).map(({ name }) => name)
