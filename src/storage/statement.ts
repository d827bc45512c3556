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

/** Rows of one statement: few texts of it exist, a page of a hundred is one, and what is left of one is a handful. */
const AT_ONCE = [100, 20, 4, 1]

/**
 * The insert of many rows, in few statements of few texts. What a row leaves out gets the column's default, or null.
 *
 * @param onConflict what becomes of a row whose key is taken
 * @returns each statement with the number of its rows
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
  return (rows: T['$inferInsert'][]): { statement: Bound; rows: number }[] => {
    const inserts: { statement: Bound; rows: number }[] = []
    for (let at = 0; at < rows.length; ) {
      const count = AT_ONCE.find((size) => size <= rows.length - at) ?? 1
      inserts.push({ statement: bound(rows.slice(at, at + count)), rows: count })
      at += count
    }
    return inserts
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
      statement = make(items.map((_, place) => sql.placeholder(String(place))))
      built.set(items.length, statement)
    }
    // By number, so that it is a list and no table of a thousand names.
    return bind(statement, Object.assign([...items], values) as unknown as Record<string, unknown>)
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

/**
 * Lists of texts in one column, as JSON: an element may hold any character, also the one that another form would split at.
 */
export const listText = (list: readonly string[]): string => JSON.stringify(list)

export const listOf = (column: string): string[] => JSON.parse(column) as string[]
