/**
 * The statements that most tables have: their rows by the values of some columns, a page of them, a new row, an instant that
 * is set once. A statement of another shape is written out in the module of its table.
 */
import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  isNull,
  lt,
  lte,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { RowCount } from './database.ts'
import { build, change, columnsOf, type RowUpdate, statement } from './statement.ts'

type Row<T extends SQLiteTable> = T['$inferSelect']
type ColumnOf<T extends SQLiteTable> = string & keyof Row<T>
type ValuesOf<T extends SQLiteTable, K extends readonly ColumnOf<T>[]> = {
  -readonly [I in keyof K]: NonNullable<Row<T>[K[I]]>
}
/** A read that gives such rows. */
type Read<R> = SQLWrapper & { readonly _: { readonly result: R[] } }

const columnOf = (table: SQLiteTable, name: string): SQLiteColumn => {
  const column = (getTableColumns(table) as Record<string, SQLiteColumn>)[name]
  if (!column) throw new TypeError(`there is no column ${name}`)
  return column
}

/** The first column equals the first value, the second column the second value, and so on. */
const equal = (table: SQLiteTable, by: readonly string[], values: readonly unknown[]): SQL | undefined =>
  and(...by.map((name, index) => eq(columnOf(table, name), values[index])))

/** Rows of a table, by the values of these columns: all rows where no column is named. */
export const rowsBy = <T extends SQLiteTable, const K extends readonly ColumnOf<T>[]>(
  table: T,
  by: K,
  ...order: SQLWrapper[]
) =>
  statement((...values: ValuesOf<T, K>) => {
    const rows = build.select().from(table as SQLiteTable)
    return rows.where(equal(table, by, values)).orderBy(...(order as SQL[])) as SQLWrapper as Read<Row<T>>
  })

/** Rows of a table with one of several values in this column. */
export const rowsIn = <T extends SQLiteTable, K extends ColumnOf<T>>(table: T, name: K, ...order: SQLWrapper[]) =>
  statement((values: NonNullable<Row<T>[K]>[]) => {
    const rows = build.select().from(table as SQLiteTable)
    const found = rows.where(inArray(columnOf(table, name), values)).orderBy(...(order as SQL[]))
    return found as SQLWrapper as Read<Row<T>>
  })

/** Rows whose instant has come, the oldest instant first. The arguments: the values of the columns `by`, then now, then a limit. */
export const dueBy = <T extends SQLiteTable, const K extends readonly ColumnOf<T>[]>(
  table: T,
  at: ColumnOf<T>,
  by: K,
) =>
  statement((...values: [...ValuesOf<T, K>, now: number, limit: number]) => {
    const [now, limit] = values.slice(by.length) as [number, number]
    const due = and(equal(table, by, values), lte(columnOf(table, at), now))
    const rows = build
      .select()
      .from(table as SQLiteTable)
      .where(due)
      .orderBy(asc(columnOf(table, at)))
      .limit(limit)
    return rows as SQLWrapper as Read<Row<T>>
  })

interface PageOptions<W, C> {
  /** A column that is left out. */
  without?: W
  /** What all rows of the list have in common. */
  where?: SQL
  /** Expressions that a filter may ask for too. */
  computed?: C
}

/** A value that a filter may ask for; undefined: any. */
type Asked<T extends SQLiteTable, K extends ColumnOf<T>> = { [C in K]?: Row<T>[C] | undefined }

/**
 * A page of a table, newest first; `before` is the id of the last row seen, `from` the least id that counts.
 *
 * @param equal columns that a filter may ask for
 */
export function page<
  T extends SQLiteTable & { id: SQLiteColumn },
  K extends ColumnOf<T> = never,
  W extends ColumnOf<T> = never,
  C extends Record<string, SQL> = Record<never, SQL>,
>(table: T, equal: readonly K[] = [], { without, where, computed }: PageOptions<W, C> = {}) {
  type Computed = { [N in keyof C]?: (C[N] extends SQL<infer V> ? V : never) | undefined }
  type Filter = Asked<T, K> & Computed & { before?: string | undefined; from?: string | undefined; limit: number }
  const filters = { ...columnsNamed(table, equal), ...computed }
  const columns = Object.entries<SQLiteColumn>(getTableColumns(table))
  const selected = Object.fromEntries(columns.filter(([name]) => name !== without))
  return statement((filter: Filter) => {
    const select = build
      .select(selected)
      .from(table as SQLiteTable)
      .where(
        and(
          where,
          ...asked(filters, filter),
          filter.before === undefined ? undefined : lt(table.id, filter.before),
          filter.from === undefined ? undefined : gte(table.id, filter.from),
        ),
      )
      .orderBy(desc(table.id))
      .limit(filter.limit)
    return select as SQLWrapper as Read<Omit<Row<T>, W>>
  })
}

/**
 * A page of a table by a column whose values are all different, the least value first; `after` is the last value seen.
 *
 * @param equal columns that a filter may ask for
 */
export function pageBy<T extends SQLiteTable, B extends ColumnOf<T>, K extends ColumnOf<T> = never>(
  table: T,
  by: B,
  equal: readonly K[] = [],
  where?: SQL,
) {
  const key = columnOf(table, by)
  const filters = columnsNamed(table, equal)
  return statement((filter: Asked<T, K> & { after?: string | undefined; limit: number }) => {
    const select = build
      .select()
      .from(table as SQLiteTable)
      .where(and(where, ...asked(filters, filter), filter.after === undefined ? undefined : gt(key, filter.after)))
      .orderBy(asc(key))
      .limit(filter.limit)
    return select as SQLWrapper as Read<Row<T>>
  })
}

const columnsNamed = (table: SQLiteTable, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, columnOf(table, name)]))

const asked = (filters: Record<string, SQLWrapper>, filter: Record<string, unknown>): SQL[] =>
  Object.entries(filters).flatMap(([name, of]) => (filter[name] === undefined ? [] : [eq(of as SQL, filter[name])]))

/** How many rows have each combination of values in these columns; where no column is named, one count of all rows. */
export const countBy = <T extends SQLiteTable, const K extends readonly ColumnOf<T>[]>(
  table: T,
  by: K,
  where?: SQL,
) => {
  const columns = by.map((name) => columnOf(table, name))
  return statement(() => {
    const named = Object.fromEntries(by.map((name, index) => [name, columns[index] as SQLiteColumn]))
    const counts = build.select({ ...named, total: sql<number>`count(*)`.as('total') }).from(table as SQLiteTable)
    return counts.where(where).groupBy(...columns) as SQLWrapper as Read<Pick<Row<T>, K[number]> & { total: number }>
  })
}

/** Inserts a new row, which must not be there yet. */
export const insertInto = <T extends SQLiteTable>(table: T) =>
  change(1, (row: T['$inferInsert']) => build.insert(table as SQLiteTable).values(row))

/** Stores a row once: where another row has its unique key, that other row stays. */
export const insertOnce = <T extends SQLiteTable>(table: T) =>
  change('any', (row: T['$inferInsert']) =>
    build
      .insert(table as SQLiteTable)
      .values(row)
      .onConflictDoNothing(),
  )

/** Sets the given columns in the rows that have these values in the columns `by`. */
export const changeBy = <T extends SQLiteTable, const K extends readonly ColumnOf<T>[]>(
  rows: RowCount,
  table: T,
  by: K,
) =>
  change(rows, (...args: [...ValuesOf<T, K>, set: RowUpdate<T>]) =>
    build
      .update(table as SQLiteTable)
      .set(columnsOf(args.at(-1) as RowUpdate<T>))
      .where(equal(table, by, args)),
  )

/** Sets an instant in the rows with these values that do not have the instant yet. */
export const stampOnce = <T extends SQLiteTable, const K extends readonly ColumnOf<T>[]>(
  rows: RowCount,
  table: T,
  by: K,
  instant: ColumnOf<T>,
) =>
  change(rows, (...args: [...ValuesOf<T, K>, at: number]) =>
    build
      .update(table as SQLiteTable)
      .set({ [instant]: args.at(-1) })
      .where(and(equal(table, by, args), isNull(columnOf(table, instant)))),
  )

/** Brings an instant forward: then no row with these values has a later instant than this. */
export const bringForward = <T extends SQLiteTable, const K extends readonly ColumnOf<T>[]>(
  table: T,
  by: K,
  instant: ColumnOf<T>,
  where?: SQL,
) =>
  change('any', (...args: [...ValuesOf<T, K>, at: number]) =>
    build
      .update(table as SQLiteTable)
      .set({ [instant]: args.at(-1) })
      .where(and(where, equal(table, by, args), gt(columnOf(table, instant), args.at(-1)))),
  )

/** Deletes the rows with these values; all rows where no column is named. */
export const deleteBy = <T extends SQLiteTable, const K extends readonly ColumnOf<T>[]>(table: T, by: K) =>
  change('any', (...values: ValuesOf<T, K>) => build.delete(table).where(equal(table, by, values)))

/** Deletes the rows with an earlier instant, or an id of an earlier instant: see `idBound`. */
export const deleteBefore = <T extends SQLiteTable, K extends ColumnOf<T>>(table: T, name: K) =>
  change('any', (before: NonNullable<Row<T>[K]>) => build.delete(table).where(lt(columnOf(table, name), before)))
