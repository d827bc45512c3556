/**
 * The few differences between the SQL of SQLite and of PostgreSQL. Statements and migrations are written once, in SQL that both
 * engines read. A test runs every statement on both.
 */
import { is, Param } from 'drizzle-orm'
import { PgDialect } from 'drizzle-orm/pg-core'
import type pg from 'pg'
import { statementCompiler, wholeList } from '../statement.ts'

/** A list reaches PostgreSQL as an array. The array has the type of the column that it is compared with. */
function listAsArray(param: unknown): unknown {
  if (!is(param, Param) || param.encoder !== wholeList) return param
  return new Param(param.value, { mapToDriverValue: arrayText })
}

const arrayText = (list: readonly (string | number)[]): string => `{${list.map((item) => elementText(item)).join(',')}}`

const elementText = (item: string | number): string =>
  typeof item === 'number' ? String(item) : `"${item.replace(/["\\]/g, '\\$&')}"`

/** Compiles statements to PostgreSQL's SQL. SQLite writes `<not by index>` as a plus, which PostgreSQL does not take for text. */
export const compile = statementCompiler(
  new PgDialect(),
  {
    '<position of>': 'strpos',
    '<not by index>': '',
    '<one of a list>': ' = any(',
    '<end of the list>': ')',
    '<by bytes>': ' collate "C"',
  },
  listAsArray,
)

/**
 * Translates the text of a migration. Text is ordered by its bytes, as SQLite orders it and as ids and ranges of SKUs need it. A
 * column of `integer` becomes a `bigint`, because it holds 64 bits in SQLite.
 */
export const migrationText = (text: string): string =>
  text
    .replaceAll(/--.*$/gm, '')
    .replaceAll(/\binstr\(/g, 'strpos(')
    .replaceAll(/^\) strict;/gm, ');')
    .replaceAll(/\binteger\b/g, 'bigint')
    .replaceAll(/\bblob\b/g, 'bytea')
    .replaceAll(/\btext\b/g, 'text collate "C"')
    .replaceAll(/json_extract\(([a-z_.]+), '\$\.([a-z]+)'\)/g, "($1::json ->> '$2')")
    // SQLite numbers the rows of a table by itself. Only the numbers of offers are used: see `offersWithRowid`.
    .replace(/^create table offers \(/m, '$&\n  rowid bigint generated always as identity unique,')

/**
 * Encodes a value as it is sent.
 *
 * PostgreSQL holds no U+0000 in a text, but names and error texts of other systems may have one. U+0000 is stored as U+0001
 * U+0001, and U+0001 as U+0001 U+0002. Every text has one stored form, no two texts share a form, and their order stays.
 */
export function encodeValue(value: unknown): string | Buffer | null {
  if (value === null) return null
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return String(value).replaceAll('\u0001', '\u0001\u0002').replaceAll('\0', '\u0001\u0001')
}

const decodeText = (stored: string): string =>
  stored.includes('\u0001') ? stored.replaceAll('\u0001\u0001', '\0').replaceAll('\u0001\u0002', '\u0001') : stored

/** Reads a whole number. An int8 arrives as text, and so does a numeric, which is the type of a sum of int8. */
function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`the database holds a number that is not safe: ${text}`)
  return value
}

/** The parser of each type, by the oid of the type. */
const parsers: Record<number, (text: string) => unknown> = {
  16: (text) => (text === 'f' ? 0 : 1),
  17: (text) => Buffer.from(text.slice(2), 'hex'),
  20: wholeNumber,
  21: wholeNumber,
  23: wholeNumber,
  25: decodeText,
  701: Number,
  1700: wholeNumber,
}

/** Reads values as SQLite gives them. */
export const types: pg.CustomTypesConfig = { getTypeParser: (oid: number) => parsers[oid] ?? unknownType }

function unknownType(): never {
  throw new TypeError('a statement returns a type that no column has')
}
