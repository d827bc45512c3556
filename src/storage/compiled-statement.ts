/** What an engine makes of a statement: a text, its parameters, and the rows that come back. */
import { strict as assert } from 'node:assert'
import { Column, is, Param, Placeholder, type Query, type SQL, type SQLWrapper } from 'drizzle-orm'
import { TypedQueryBuilder } from 'drizzle-orm/query-builders/query-builder'
import { type EngineWords, isBound } from './statement.ts'

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
