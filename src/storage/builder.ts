import { getTableColumns, type SQLWrapper, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'

/**
 * The query builder over no connection: table modules write statements with it, and only an engine runs them.
 *
 * `build.select().from(offers)` is data until it is given to `Database.query` or `Database.commit`.
 */
export const build = drizzle.mock()

/** A statement that is built and compiled once, with the values of its placeholders for one use. */
export interface Bound<S extends SQLWrapper = SQLWrapper> extends SQLWrapper {
  statement: S
  values: Record<string, unknown>
}

/**
 * Gives a statement the values of its placeholders. Compiling a statement costs more than running it: what runs for
 * every delivery or purchase is built once at the top of its module and bound here.
 */
export const bind = <S extends SQLWrapper>(statement: S, values: Record<string, unknown>): Bound<S> => ({
  statement,
  values,
  getSQL: () => statement.getSQL(),
})

export const isBound = (statement: SQLWrapper): statement is Bound => 'values' in statement && 'statement' in statement

/**
 * The insert of whole rows into a table, built once. What a row leaves out gets the column's default, or null.
 *
 * @param quietly a row whose unique key is taken already changes nothing
 */
export function rowInsert<T extends SQLiteTable>(table: T, quietly?: 'quietly') {
  const columns = Object.entries(getTableColumns(table))
  const holders = Object.fromEntries(columns.map(([name]) => [name, sql.placeholder(name)]))
  const insert = build.insert(table).values(holders as T['$inferInsert'])
  const statement = quietly ? insert.onConflictDoNothing() : insert
  return (row: T['$inferInsert']): Bound => {
    const given = row as Record<string, unknown>
    return bind(
      statement,
      Object.fromEntries(columns.map(([name, column]) => [name, given[name] ?? column.default ?? null])),
    )
  }
}
