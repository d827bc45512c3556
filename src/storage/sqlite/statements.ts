import { strict as assert } from 'node:assert'
import type Connection from 'better-sqlite3'
import { Column, is, Param, Placeholder, type SQLWrapper } from 'drizzle-orm'
import { TypedQueryBuilder } from 'drizzle-orm/query-builders/query-builder'
import { SQLiteSyncDialect } from 'drizzle-orm/sqlite-core'
import { type Bound, isBound } from '../statement.ts'

export interface Prepared {
  statement: Connection.Statement<unknown[]>
  /** The columns that come back, in camelCase; undefined when the statement returns no rows. */
  names: string[] | undefined
}

/**
 * Most prepared statements kept. The program has some 150 texts; a multi-row insert has one per number of rows, and
 * those may push each other out. A statement is a few KiB, so that the whole cache stays under 4 MiB.
 */
const STATEMENTS_MAX = 500

const dialect = new SQLiteSyncDialect()
/** What a statement compiles to is the same for every connection. */
const compiled = new WeakMap<SQLWrapper, { sql: string; slots: Slot[] }>()

/** Compiles statements and keeps them prepared by their SQL text; the one that was used longest ago goes first. */
export function statementCache(
  connection: Connection.Database,
): (statement: SQLWrapper) => { prepared: Prepared; params: unknown[] } {
  const cache = new Map<string, Prepared>()

  function preparedFor(text: string): Prepared {
    const known = cache.get(text)
    const prepared = known ?? prepareText(connection, text)
    if (known) cache.delete(text)
    cache.set(text, prepared)
    if (cache.size > STATEMENTS_MAX) cache.delete(cache.keys().next().value as string)
    return prepared
  }

  function fill({ statement, values }: Bound): { sql: string; params: unknown[] } {
    let known = compiled.get(statement)
    if (!known) {
      const { sql, params } = dialect.sqlToQuery(statement.getSQL())
      known = { sql, slots: params.map(slotOf) }
      compiled.set(statement, known)
    }
    return { sql: known.sql, params: known.slots.map((slot) => slot(values)) }
  }

  return (statement) => {
    const { sql, params } = isBound(statement) ? fill(statement) : dialect.sqlToQuery(statement.getSQL())
    if (!params.every(isBindable)) throw new TypeError(`a statement is given a value that no column holds: ${sql}`)
    return { prepared: preparedFor(sql), params }
  }
}

/** Gives one parameter of a compiled statement, from the values of its placeholders or by itself. */
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

/**
 * Reads rows: under the property names that a builder's selection promises its reader, else the columns'. Each value as its column reads it.
 *
 * `select({ orderId: storeOrders.id })` compiles to a column called `id`; only the builder knows of `orderId`.
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

/** Undefined where the column holds its values as they are read. */
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

/**
 * SQLite plans a statement again at each run when its planner has looked at a bound value, which with ORDER BY or LIMIT it
 * does: 60 µs for a read of 8. It does not look behind a unary plus, and a plus changes no value.
 */
const steady = (text: string): string => (text.startsWith('select') ? text.replaceAll('?', '+?') : text)

function prepareText(connection: Connection.Database, text: string): Prepared {
  const statement = connection.prepare<unknown[]>(steady(text))
  if (!statement.reader) return { statement, names: undefined }
  return { statement: statement.raw(true), names: statement.columns().map(({ name }) => camelCase(name)) }
}

const camelCase = (name: string): string => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

/** SQLite would bind undefined and NaN as null without a word; both are bugs of the caller. */
const isBindable = (value: unknown): boolean =>
  value === null ||
  typeof value === 'string' ||
  typeof value === 'bigint' ||
  (typeof value === 'number' && Number.isFinite(value)) ||
  value instanceof Uint8Array
