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
  like,
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
/** A read that returns rows of this type. */
type Read<R> = SQLWrapper & { readonly _: { readonly result: R[] } }

type Comparison = 'in' | 'like' | '>' | '>=' | '<' | '<='
const comparisons: Record<Comparison | '=', (column: SQLiteColumn, value: never) => SQL> = {
  '=': eq,
  in: inArray,
  like,
  '>': gt,
  '>=': gte,
  '<': lt,
  '<=': lte,
}

/**
 * The conditions by which rows are found. Each takes one argument: `sku` means equal to it, `sku in` one of its values,
 * `endsAt >` greater than it. An expression of SQL takes no argument.
 */
type By<T extends SQLiteTable> = readonly (ColumnOf<T> | `${ColumnOf<T>} ${Comparison}` | SQL)[]
type ValueOf<R, C> = C extends keyof R
  ? NonNullable<R[C]>
  : C extends `${infer N extends string & keyof R} ${infer By}`
    ? By extends 'in'
      ? NonNullable<R[N]>[]
      : NonNullable<R[N]>
    : never
/** The arguments that these conditions take. */
type ValuesOf<T extends SQLiteTable, K extends readonly unknown[]> = K extends readonly [infer C, ...infer Others]
  ? [...(C extends string ? [ValueOf<Row<T>, C>] : []), ...ValuesOf<T, Others>]
  : []

const columnOf = (table: SQLiteTable, name: string): SQLiteColumn => {
  const column = (getTableColumns(table) as Record<string, SQLiteColumn>)[name]
  if (!column) throw new TypeError(`there is no column ${name}`)
  return column
}

function matching(table: SQLiteTable, by: readonly (string | SQL)[], values: readonly unknown[]): SQL | undefined {
  const rest = values.values()
  const conditions = by.map((one) => {
    if (typeof one !== 'string') return one
    const [name = '', comparison = '='] = one.split(' ')
    return comparisons[comparison as Comparison](columnOf(table, name), rest.next().value as never)
  })
  return and(...conditions)
}

/** Names columns to be read, each as the table names it. */
export const pick = <T extends SQLiteTable, N extends ColumnOf<T>>(table: T, ...names: N[]) =>
  columnsNamed(table, names) as Pick<T['_']['columns'], N>

const found = (
  table: SQLiteTable,
  by: readonly (string | SQL)[],
  values: readonly unknown[],
  order: SQLWrapper[],
  columns: Record<string, SQLiteColumn> = getTableColumns(table),
) =>
  build
    .select(columns)
    .from(table)
    .where(matching(table, by, values))
    .orderBy(...(order as SQL[]))

/** The rows of a table that meet these conditions; all rows where there is no condition. */
export const rowsBy = <T extends SQLiteTable, const K extends By<T>>(table: T, by: K, ...order: SQLWrapper[]) =>
  statement((...values: ValuesOf<T, K>) => found(table, by, values, order) as SQLWrapper as Read<Row<T>>)

/** Some columns of the rows that meet these conditions. */
export const columnsBy = <T extends SQLiteTable, N extends ColumnOf<T>, const K extends By<T>>(
  table: T,
  names: readonly N[],
  by: K,
  ...order: SQLWrapper[]
) => {
  const columns = columnsNamed(table, names)
  return statement((...values: ValuesOf<T, K>) => {
    return found(table, by, values, order, columns) as SQLWrapper as Read<Pick<Row<T>, N>>
  })
}

/** The first of the rows that meet these conditions. */
export const firstBy = <T extends SQLiteTable, const K extends By<T>>(table: T, by: K, ...order: SQLWrapper[]) =>
  statement((...values: ValuesOf<T, K>) => found(table, by, values, order).limit(1) as SQLWrapper as Read<Row<T>>)

/** The rows that meet these conditions, up to a limit, which is the last argument. */
export const someBy = <T extends SQLiteTable, const K extends By<T>>(table: T, by: K, ...order: SQLWrapper[]) =>
  statement((...values: [...ValuesOf<T, K>, limit: number]) => {
    const rows = found(table, by, values, order).limit(values.at(-1) as number)
    return rows as SQLWrapper as Read<Row<T>>
  })

/**
 * The rows whose value begins with a text, in the order of the value: those of the range from the text to `before`. The value is an
 * expression as an index has it.
 *
 * @param columns the columns that are read (default: all)
 * @param where the condition of a partial index
 */
export const beginning = <T extends SQLiteTable, C = ColumnOf<T>>(
  table: T,
  value: SQLWrapper,
  { columns = getTableColumns(table), where }: { columns?: Record<string & C, SQLiteColumn>; where?: SQL } = {},
) =>
  statement((text: string, before: string, limit: number) => {
    const rows = build
      .select(columns as Record<string, SQLiteColumn>)
      .from(table as SQLiteTable)
      .where(and(where, gte(value as SQL, text), lt(value as SQL, before)))
      .orderBy(asc(value))
      .limit(limit)
    return rows as SQLWrapper as Read<Pick<Row<T>, C & keyof Row<T>>>
  })

/** Of the rows whose value in a column lies in a range, skips some in the order of the value, and returns the next value. */
export const valueAfter = <T extends SQLiteTable, K extends ColumnOf<T>>(table: T, name: K) =>
  statement((from: Row<T>[K], before: Row<T>[K], skipped: number) => {
    const rows = build
      .select({ [name]: columnOf(table, name) })
      .from(table as SQLiteTable)
      .where(matching(table, [`${name} >=`, `${name} <`], [from, before]))
      .orderBy(asc(columnOf(table, name)))
      .limit(1)
      .offset(skipped)
    return rows as SQLWrapper as Read<Pick<Row<T>, K>>
  })

interface PageOptions<W, C> {
  /** A column that the returned rows lack. */
  without?: W
  /** A condition that all rows of the list meet. */
  where?: SQL
  /** Named expressions whose value a filter may require, as it may require the value of a column. */
  computed?: C
}

/** The values that a filter may require in columns; undefined: any value. */
type Asked<T extends SQLiteTable, K extends ColumnOf<T>> = { [C in K]?: Row<T>[C] | undefined }

/** Where a page of a list stands by the ids of its rows: each bound is an id, or what `idBound` returns. */
export interface Place {
  before?: string | undefined
  /** Asks for the rows after this id, the least id first: the page is read backwards. */
  after?: string | undefined
  /** Rows with a smaller id are left out. */
  from?: string | undefined
  limit: number
}

export const within = (id: SQLiteColumn, { before, after, from }: Place): SQL | undefined =>
  and(
    before === undefined ? undefined : lt(id, before),
    after === undefined ? undefined : gt(id, after),
    from === undefined ? undefined : gte(id, from),
  )

export const newestFirst = (id: SQLiteColumn, { after }: Place): SQL => (after === undefined ? desc(id) : asc(id))

/** A page of a table, newest first; with `after` the other way round. @param equal columns whose value a filter may require */
export function page<
  T extends SQLiteTable & { id: SQLiteColumn },
  K extends ColumnOf<T> = never,
  W extends ColumnOf<T> = never,
  C extends Record<string, SQL> = Record<never, SQL>,
>(table: T, equal: readonly K[] = [], { without, where, computed }: PageOptions<W, C> = {}) {
  type Computed = { [N in keyof C]?: (C[N] extends SQL<infer V> ? V : never) | undefined }
  type Filter = Asked<T, K> & Computed & Place
  const filters = { ...columnsNamed(table, equal), ...computed }
  const columns = Object.entries<SQLiteColumn>(getTableColumns(table))
  const selected = Object.fromEntries(columns.filter(([name]) => name !== without))
  return statement((filter: Filter) => {
    const select = build
      .select(selected)
      .from(table as SQLiteTable)
      .where(and(where, ...asked(filters, filter), within(table.id, filter)))
      .orderBy(newestFirst(table.id, filter))
      .limit(filter.limit)
    return select as SQLWrapper as Read<Omit<Row<T>, W>>
  })
}

/**
 * A page of a table by a column whose values are all different, the least value first; `after` is the last value seen.
 *
 * @param equal columns whose value a filter may require
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

/** Returns a row as the database has it once these values are inserted: other columns have their default, or null. */
export const rowOf = <T extends SQLiteTable>(table: T, values: T['$inferInsert']): Row<T> =>
  Object.fromEntries(
    Object.entries(getTableColumns(table)).map(([name, column]) => [
      name,
      (values as Record<string, unknown>)[name] ?? column.default ?? null,
    ]),
  )

/** For an insert that meets an existing row: sets all columns but these to the values that were to be inserted. */
export const asInserted = (table: SQLiteTable, except: readonly string[]): Record<string, SQL> =>
  Object.fromEntries(
    Object.entries(getTableColumns(table))
      .filter(([name]) => !except.includes(name))
      .map(([name, column]) => [name, sql.raw(`excluded.${column.name}`)]),
  )

/** Sets the given columns in the rows that meet these conditions. */
export const changeBy = <T extends SQLiteTable, const K extends By<T>>(rows: RowCount, table: T, by: K) =>
  change(rows, (...args: [...ValuesOf<T, K>, set: RowUpdate<T>]) =>
    build
      .update(table as SQLiteTable)
      .set(columnsOf(args.at(-1) as RowUpdate<T>))
      .where(matching(table, by, args)),
  )

/** Sets the given columns in a row that was read before, if the columns `by` still have the values that were read. */
export const changeSeen = <T extends SQLiteTable, K extends ColumnOf<T>>(
  rows: RowCount,
  table: T,
  by: readonly K[],
  where?: SQL,
) =>
  change(rows, (seen: Pick<Row<T>, K>, set: RowUpdate<T>) => {
    const asSeen = matching(
      table,
      by,
      by.map((name) => seen[name]),
    )
    return build
      .update(table as SQLiteTable)
      .set(columnsOf(set))
      .where(and(asSeen, where))
  })

/** Sets the same values in all rows that meet these conditions. */
export const setBy = <T extends SQLiteTable, const K extends By<T>>(
  rows: RowCount,
  table: T,
  by: K,
  set: { [C in ColumnOf<T>]?: Row<T>[C] | SQL },
) =>
  change(rows, (...values: ValuesOf<T, K>) =>
    build
      .update(table as SQLiteTable)
      .set(set)
      .where(matching(table, by, values)),
  )

/** Sets an instant in the rows that meet these conditions and do not have the instant yet. */
export const stampOnce = <T extends SQLiteTable, const K extends By<T>>(
  rows: RowCount,
  table: T,
  by: K,
  instant: ColumnOf<T>,
) => setOne(rows, table, by, instant, {}, isNull)

/** Brings an instant forward, in the rows that meet these conditions and have a later instant than the given one. */
export const bringForward = <T extends SQLiteTable, const K extends By<T>>(table: T, by: K, instant: ColumnOf<T>) =>
  setOne('any', table, by, instant, {}, gt)

/**
 * Sets a column to the last argument, in the rows that meet these conditions.
 *
 * @param set further columns, with the same values in all rows
 * @param where a condition on the column itself, as the row has it, and the last argument
 */
export const setOne = <T extends SQLiteTable, const K extends By<T>, N extends ColumnOf<T>>(
  rows: RowCount,
  table: T,
  by: K,
  name: N,
  set: { [C in ColumnOf<T>]?: Row<T>[C] | SQL } = {},
  where?: (column: SQLiteColumn, value: unknown) => SQL,
) =>
  change(rows, (...args: [...ValuesOf<T, K>, value: NonNullable<Row<T>[N]>]) =>
    build
      .update(table as SQLiteTable)
      .set({ ...set, [name]: args.at(-1) })
      .where(and(matching(table, by, args), where?.(columnOf(table, name), args.at(-1)))),
  )

/** Deletes the rows that meet these conditions; all rows where there is no condition. */
export const deleteBy = <T extends SQLiteTable, const K extends By<T>>(table: T, by: K, rows: RowCount = 'any') =>
  change(rows, (...values: ValuesOf<T, K>) => build.delete(table).where(matching(table, by, values)))
