import { strict as assert } from 'node:assert'
import {
  Column,
  getTableColumns,
  is,
  Param,
  Placeholder,
  type Query,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm'
import { TypedQueryBuilder } from 'drizzle-orm/query-builders/query-builder'
import {
  BaseSQLiteDatabase,
  type IndexColumn,
  type SQLiteColumn,
  type SQLiteSession,
  SQLiteSyncDialect,
  type SQLiteTable,
} from 'drizzle-orm/sqlite-core'
import type { Change, Database, RowCount, RowOf } from './database.ts'

/**
 * The query builder, without a connection. Table modules write statements with it; only an engine runs them.
 *
 * `build.select().from(offers)` is data until it is given to `Database.query` or `Database.commit`.
 */
export const build = new BaseSQLiteDatabase('sync', new SQLiteSyncDialect(), {} as NoSession, undefined)
type NoSession = SQLiteSession<'sync', never, Record<string, never>, Record<string, never>>

/** A statement that is built once, with the values of one use. */
export interface Bound<S extends SQLWrapper = SQLWrapper> extends SQLWrapper {
  statement: S
  /** The name of a placeholder is the index of its value in this list. */
  values: unknown[]
  /** Distinguishes this statement from all others. */
  name: string
  /** Returns this statement with its placeholders numbered from `first`. */
  numberedFrom(first: number): S
}

export const isBound = (value: unknown): value is Bound =>
  typeof value === 'object' && value !== null && 'numberedFrom' in value

/** What a list is read from: a statement; or rows that were read already, because they are few. */
export type Found<Row> = Bound<SQLWrapper & { readonly _: { readonly result: Row[] } }> | Row[]

export const foundRows = async <Row>(db: Pick<Database, 'query'>, found: Found<Row>): Promise<Row[]> =>
  isBound(found) ? db.query(found) : found

/**
 * Makes a named statement. Compiling a statement costs more than running it, so the builder runs once and is given placeholders
 * in place of the values. The builder passes the placeholders on and never computes with them.
 *
 * The builder may depend on how long a list is, and on which arguments, or properties of an object, are undefined: it runs
 * once for each such shape. The new value of a column may itself be a statement, for an expression over the row.
 *
 * @example
 * const purchasesOfPart = statement((lineId: string, part: number) =>
 *   build.select().from(purchases).where(and(eq(purchases.lineId, lineId), eq(purchases.part, part))),
 * )
 * await db.query(purchasesOfPart('l', 1))
 */
export function statement<A extends unknown[], S extends SQLWrapper>(
  make: (...values: A) => S,
): (...values: A) => Bound<S> {
  statements += 1
  const id = statements
  const built = new Map<string, S>()
  return (...args) => {
    const values: unknown[] = []
    let shape = ''
    for (const arg of args) shape += shapeOf(arg, values)
    const numberedFrom = (first: number) => make(...(placeholdersFor(args, first) as A))
    let known = built.get(shape)
    if (!known) {
      known = numberedFrom(0)
      built.set(shape, known)
    }
    const compiled = known
    return { statement: compiled, values, name: `${id}(${shape})`, numberedFrom, getSQL: () => compiled.getSQL() }
  }
}

let statements = 0

/**
 * A named change of a commit; see `statement`.
 *
 * @param rows how many rows the change must touch, or how that number follows from the arguments
 */
export function change<A extends unknown[]>(
  rows: RowCount | ((...values: A) => RowCount),
  make: (...values: A) => SQLWrapper,
): (...values: A) => Change {
  const bound = statement(make)
  const rowsOf = typeof rows === 'function' ? rows : () => rows
  return (...values) => ({ statement: bound(...values), rows: rowsOf(...values) })
}

/** Returns a database that runs each read once: the same statement with the same values gets the first answer again. */
export function rememberingReads(db: Database): Database {
  const answers = new Map<string, Promise<unknown[]>>()
  function query<S extends SQLWrapper>(asked: S): Promise<RowOf<S>[]> {
    if (!isBound(asked)) return db.query(asked)
    const key = `${asked.name}${JSON.stringify(asked.values)}`
    const answer = answers.get(key) ?? db.query(asked)
    answers.set(key, answer)
    return answer as Promise<RowOf<S>[]>
  }
  return { ...db, query }
}

const isRow = (value: object): value is Record<string, unknown> => Object.getPrototypeOf(value) === Object.prototype

/** Adds the values of an argument to `values`. @returns the shape of the argument: all that the builder may depend on */
function shapeOf(arg: unknown, values: unknown[]): string {
  if (arg === undefined) return 'u'
  if (typeof arg !== 'object' || arg === null) {
    values.push(arg)
    return '?'
  }
  if (Array.isArray(arg)) {
    for (const item of arg) values.push(item)
    return `[${arg.length}]`
  }
  if (!isRow(arg)) {
    values.push(arg)
    return '?'
  }
  let shape = '{'
  for (const key in arg) {
    const value = arg[key]
    if (value === undefined) continue
    if (isBound(value)) {
      for (const one of value.values) values.push(one)
      shape += `${key}=${value.name},`
    } else {
      values.push(value)
      shape += `${key},`
    }
  }
  return `${shape}}`
}

/** Returns placeholders in place of the values, numbered in the order in which `shapeOf` lists the values. */
function placeholdersFor(args: unknown[], first: number): unknown[] {
  let next = first
  const holder = () => {
    next += 1
    return placeholder(next - 1)
  }
  const column = (value: unknown) => {
    if (!isBound(value)) return holder()
    const expression = value.numberedFrom(next)
    next += value.values.length
    return expression
  }
  return args.map((arg) => {
    if (arg === undefined) return undefined
    if (Array.isArray(arg)) return arg.map(holder)
    if (typeof arg !== 'object' || arg === null || !isRow(arg)) return holder()
    const given = Object.entries(arg).filter(([, value]) => value !== undefined)
    return Object.fromEntries(given.map(([key, value]) => [key, column(value)]))
  })
}

function placeholder(index: number) {
  const computed = (): never => {
    throw new TypeError('a statement computes with a value that is not known when the statement is built')
  }
  return Object.assign(sql.placeholder(String(index)), { [Symbol.toPrimitive]: computed, toJSON: computed })
}

/**
 * SQL that differs between the engines. A statement has one of these names where such SQL stands, and the compiler of each engine
 * writes its own SQL there. No table or column has these names.
 */
export type EngineWords = Record<
  '<position of>' | '<not by index>' | '<one of a list>' | '<end of the list>' | '<by bytes>',
  string
>
const word = (name: keyof EngineWords) => sql.identifier(name)

/** The position of the second text in the first text; 0 where the first text does not have it. */
export const positionIn = (text: SQLWrapper, part: SQL) => sql`${word('<position of>')}(${text}, ${part})`

/** Keeps SQLite from using the index of a column, because that index would find too many rows. */
export const notByIndex = (column: SQLWrapper) => sql`${word('<not by index>')}${column}`

/** A value in small letters as the index of a column has it, whatever the language of the database. */
export const smallOf = (value: string) => sql`lower(${value}${word('<by bytes>')})`

/** The columns of a unique key: a conflict names them without their table. */
export const uniqueKey = (...columns: SQLiteColumn[]): IndexColumn[] =>
  columns.map(({ name }) => sql.identifier(name)) as unknown as IndexColumn[]

/** Encodes a list as one value. An engine that encodes lists in another way recognises them by this encoder. */
export const wholeList = { mapToDriverValue: (list: readonly (string | number)[]): unknown => JSON.stringify(list) }

/**
 * Makes `column in (…)` for a list of any length; the text of the statement is the same for every length. The caller passes the
 * list as a property of an object, because `statement` splits a list that is itself an argument.
 */
export const inWhole = (column: SQLWrapper, list: readonly (string | number)[]) =>
  sql`${column}${word('<one of a list>')}${sql.param(list, wholeList)}${word('<end of the list>')}`

/** What an update sets: values, or expressions over the row. A column that is undefined stays as it is. */
export type RowUpdate<T extends SQLiteTable> = { [K in keyof T['$inferInsert']]?: T['$inferInsert'][K] | Bound }

/** The columns to set, as the builder of an update takes them. */
export const columnsOf = <T extends SQLiteTable>(set: RowUpdate<T>): Partial<T['$inferInsert']> => set as never

/** Counting stops at this number: to count a million rows takes a second, in which nothing else runs. */
export const COUNT_MAX = 10_000

/**
 * How many rows there are of each kind, up to `COUNT_MAX`; kinds without rows are left out.
 *
 * @param kinds the values that are selected for each kind, as they are
 * @param rowsOf the rows of a kind, from their table on; an index must find them
 */
export const countUpTo = <K extends Record<string, string | null>>(kinds: readonly K[], rowsOf: (kind: K) => SQL) => {
  const counts = kinds.map((kind) => {
    const names = Object.entries(kind).map(([name, value]) => sql`${sql.param(value)} as ${sql.identifier(name)}`)
    const rows = sql`select 1 from ${rowsOf(kind)} limit ${sql.raw(String(COUNT_MAX))}`
    return sql`select ${sql.join(names, sql`, `)}, count(*) as total from (${rows}) counted`
  })
  return sql<K & { total: number }>`select * from (${sql.join(counts, sql` union all `)}) counts where total > 0`
}

const counts = new WeakMap<SQLWrapper, SQL<{ total: number }>>()
const countOfRows = (rows: SQLWrapper) => sql<{ total: number }>`select count(*) as total from ${rows} counted`

/** Counts the rows of a read up to its limit, without reading more of them than its conditions and its order need. */
export function countOf({ statement: rows, values, name, numberedFrom }: Bound): Bound<SQL<{ total: number }>> {
  const count = counts.get(rows) ?? countOfRows(rows)
  counts.set(rows, count)
  return {
    statement: count,
    values,
    name: `count of ${name}`,
    numberedFrom: (first) => countOfRows(numberedFrom(first)),
    getSQL: () => count.getSQL(),
  }
}

/** How many rows an insert may have. Few sizes mean few texts to prepare. A page of a hundred rows is one insert. */
const AT_ONCE = [100, 20, 4, 1]

/**
 * Inserts many rows, in few statements of few texts. A column that a row leaves out gets its default, or null.
 *
 * @param touches whether each insert must store all its rows, or may leave some out
 * @param onConflict what becomes of a row whose key is taken
 */
export function insertMany<T extends SQLiteTable>(
  table: T,
  touches: 'all' | 'any' = 'all',
  onConflict: (insert: ReturnType<typeof insertOf>) => SQLWrapper = (insert) => insert,
) {
  const columns = Object.entries(getTableColumns(table))
  const insertCells = statement((cells: unknown[]) =>
    onConflict(
      insertOf(
        table,
        Array.from({ length: cells.length / columns.length }, (_, row) =>
          Object.fromEntries(columns.map(([name], column) => [name, cells[row * columns.length + column]])),
        ),
      ),
    ),
  )
  return (given: T['$inferInsert'][]): Change[] => {
    const changes: Change[] = []
    for (let at = 0; at < given.length; ) {
      const count = AT_ONCE.find((size) => size <= given.length - at) ?? 1
      const cells: unknown[] = []
      for (const row of given.slice(at, at + count) as Record<string, unknown>[]) {
        for (const [name, column] of columns) cells.push(row[name] ?? column.default ?? null)
      }
      changes.push({ statement: insertCells(cells), rows: touches === 'all' ? count : 'any' })
      at += count
    }
    return changes
  }
}

const insertOf = (table: SQLiteTable, rows: Record<string, unknown>[]) => build.insert(table).values(rows)

/** What an engine makes of a statement. */
export interface CompiledStatement {
  sql: string
  params: unknown[]
}

interface Dialect {
  sqlToQuery(statement: SQL): Query
  /** Called without `this`. */
  escapeName(name: string): string
}

/**
 * Returns a compiler of statements to SQL for one engine. It compiles each statement once, whatever the values.
 *
 * @param words the SQL that this engine has for each of the `EngineWords`
 * @param paramOf turns a parameter into what the engine takes. Default: the parameter as it is
 */
export function statementCompiler(
  dialect: Dialect,
  words: EngineWords,
  paramOf: (param: unknown) => unknown = (param) => param,
): (statement: SQLWrapper) => CompiledStatement {
  const { escapeName } = dialect
  dialect.escapeName = (name) => words[name as keyof EngineWords] ?? escapeName(name)
  const compileOnce = (statement: SQLWrapper): CompiledStatement => {
    const { sql, params } = dialect.sqlToQuery(statement.getSQL())
    return { sql, params: params.map(paramOf) }
  }
  /** Shared by all connections: a statement compiles to the same text on each. */
  const compiled = new WeakMap<SQLWrapper, { sql: string; slots: Slot[] }>()

  function fill(statement: SQLWrapper, values: unknown[]): CompiledStatement {
    let known = compiled.get(statement)
    if (!known) {
      const { sql, params } = compileOnce(statement)
      known = { sql, slots: params.map(slotOf) }
      compiled.set(statement, known)
    }
    return { sql: known.sql, params: known.slots.map((slot) => slot(values)) }
  }

  return (statement) => {
    const whole = isBound(statement) ? fill(statement.statement, statement.values) : compileOnce(statement)
    if (!whole.params.every(isBindable)) {
      throw new TypeError(`a statement is given a value that no column holds: ${whole.sql}`)
    }
    return whole
  }
}

/** Returns one parameter of a compiled statement: the value of a placeholder, or a constant. */
type Slot = (values: unknown[]) => unknown

function slotOf(param: unknown): Slot {
  const holder = is(param, Param) ? param.value : param
  if (!is(holder, Placeholder)) return () => param
  const index = Number(holder.name)
  const encode = is(param, Param) ? (value: unknown) => param.encoder.mapToDriverValue(value) : undefined
  return (values) => {
    const value = values[index]
    return value === null || encode === undefined ? value : encode(value)
  }
}

/** Undefined and NaN are refused, because both are bugs of the caller, and an engine would silently bind them as null. */
const isBindable = (value: unknown): boolean =>
  value === null ||
  typeof value === 'string' ||
  typeof value === 'bigint' ||
  (typeof value === 'number' && Number.isFinite(value)) ||
  value instanceof Uint8Array

/**
 * Returns a function that makes a row into an object. The builder's selection names the properties; without one, the columns do.
 *
 * `select({ orderId: storeOrders.id })` compiles to a column called `id`; only the builder knows of `orderId`.
 *
 * @param columns the names of what comes back, in camelCase
 */
export function rowReader(statement: SQLWrapper, columns: string[]): RowReader {
  const built = isBound(statement) ? statement.statement : statement
  if (!is(built, TypedQueryBuilder)) return readerOf(columns, [])
  const known = readers.get(built)
  if (known) return known
  const selected = built._.selectedFields as Record<string, unknown>
  const names = Object.keys(selected)
  assert(names.length === columns.length, 'the selection of a join names its columns one by one')
  const reader = readerOf(names, Object.values(selected).map(decoderOf))
  readers.set(built, reader)
  return reader
}

type RowReader = (values: unknown[]) => Record<string, unknown>
type Decoder = (value: unknown) => unknown

const readers = new WeakMap<SQLWrapper, RowReader>()

/** The decoder of a column; undefined where the value that the engine returns needs no decoding. */
const decoderOf = (field: unknown): Decoder | undefined =>
  is(field, Column) && field.mapFromDriverValue !== Column.prototype.mapFromDriverValue
    ? (value) => (value === null ? null : field.mapFromDriverValue(value))
    : undefined

function readerOf(names: string[], decoders: (Decoder | undefined)[]): RowReader {
  return (values) => {
    const row: Record<string, unknown> = {}
    for (let i = 0; i < names.length; i++) {
      const decode = decoders[i]
      row[names[i] as string] = decode ? decode(values[i]) : values[i]
    }
    return row
  }
}

/** Returns the property for a column: `orderId` for `order_id`. */
export const camelCase = (name: string): string =>
  name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
