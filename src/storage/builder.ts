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

/** Rows of one statement: enough to spare most calls, few enough for the variables that a statement may bind. */
const ROWS_AT_ONCE = 50

/**
 * The insert of many rows, as few statements as may be. Full batches share one text and the rest goes row by row, so that
 * two texts are compiled, whatever the counts.
 *
 * @param onConflict what becomes of a row whose key is taken
 */
export function rowsInsert<T extends SQLiteTable>(
  table: T,
  onConflict: (insert: ReturnType<typeof insertOf>) => SQLWrapper = (insert) => insert,
) {
  const columns = Object.entries(getTableColumns(table))
  const built = new Map<number, SQLWrapper>()
  const statementFor = (count: number): SQLWrapper => {
    const known = built.get(count)
    if (known) return known
    const holder = (row: number, column: number) => sql.placeholder(String(row * columns.length + column))
    const rows = Array.from({ length: count }, (_, row) =>
      Object.fromEntries(columns.map(([name], column) => [name, holder(row, column)])),
    )
    const statement = onConflict(insertOf(table, rows))
    built.set(count, statement)
    return statement
  }
  const bound = (rows: T['$inferInsert'][]): Bound => {
    const values: unknown[] = []
    for (const row of rows) {
      const given = row as Record<string, unknown>
      for (const [name, column] of columns) values.push(given[name] ?? column.default ?? null)
    }
    // By number, so that it is a list and no table of a thousand names.
    return bind(statementFor(rows.length), values as unknown as Record<string, unknown>)
  }
  return (rows: T['$inferInsert'][]): Bound[] => {
    const whole = rows.length - (rows.length % ROWS_AT_ONCE)
    const batches = Array.from({ length: whole / ROWS_AT_ONCE }, (_, batch) =>
      bound(rows.slice(batch * ROWS_AT_ONCE, (batch + 1) * ROWS_AT_ONCE)),
    )
    return [...batches, ...rows.slice(whole).map((row) => bound([row]))]
  }
}

const insertOf = (table: SQLiteTable, rows: Record<string, unknown>[]) => build.insert(table).values(rows)

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
