import { getTableColumns, type Placeholder, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
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

/**
 * A statement that takes a list, built once for each length of it.
 *
 * @example
 * const byIds = bindList((ids) => build.select().from(offers).where(inArray(offers.productId, ids)))
 * byIds(['a', 'b'])
 */
export function bindList<S extends SQLWrapper>(make: (items: Placeholder[]) => S) {
  const built = new Map<number, S>()
  return (items: readonly unknown[], values: Record<string, unknown> = {}): Bound<S> => {
    let statement = built.get(items.length)
    if (!statement) {
      statement = make(items.map((_, place) => sql.placeholder(`item${place}`)))
      built.set(items.length, statement)
    }
    return bind(statement, { ...values, ...Object.fromEntries(items.map((item, place) => [`item${place}`, item])) })
  }
}

/** A new value of a column that SQL computes from the row; `name` tells one such expression from another. */
export interface Expression {
  name: string
  sql: SQL
  /** Values of the placeholders in `sql`. */
  values: Record<string, unknown>
}

/** What an update sets: values, or expressions over the row. What is undefined stays as it is. */
export type RowUpdate<T extends SQLiteTable> = { [K in keyof T['$inferInsert']]?: T['$inferInsert'][K] | Expression }

const isExpression = (value: unknown): value is Expression =>
  typeof value === 'object' && value !== null && 'sql' in value && 'values' in value

/** The update of some columns where `where` holds, built once for each set of columns. */
export function rowUpdate<T extends SQLiteTable>(table: T, where: SQL | undefined) {
  const built = new Map<string, SQLWrapper>()
  return (set: RowUpdate<T>, values: Record<string, unknown>): Bound => {
    const entries = Object.entries<unknown>(set).filter(([, value]) => value !== undefined)
    const key = entries.map(([column, value]) => (isExpression(value) ? `${column}=${value.name}` : column)).join()
    let statement = built.get(key)
    if (!statement) {
      const columns = entries.map(([column, value]) => [
        column,
        isExpression(value) ? value.sql : sql.placeholder(`set ${column}`),
      ])
      statement = build.update(table).set(Object.fromEntries(columns)).where(where)
      built.set(key, statement)
    }
    const filled: Record<string, unknown> = { ...values }
    for (const [column, value] of entries) {
      if (isExpression(value)) Object.assign(filled, value.values)
      else filled[`set ${column}`] = value
    }
    return bind(statement, filled)
  }
}
