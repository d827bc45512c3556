/** Rows in every table, with values that engines keep in different ways. */
import Connection from 'better-sqlite3'
import { is } from 'drizzle-orm'
import { getTableConfig, type SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import * as schema from '../../src/storage/schema.ts'

/** Texts that are ordered, encoded or counted in more than one way. */
const TEXTS = ['', '\0', '\u0001', '\u0001\u0002\0', 'Ä', 'z', 'é', '日本', '\u{1F511}', 'it\'s \\ "q"', '\r\n\t', 'ÿ￿']
const NUMBERS = [0, 1, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2_147_483_648]
const BYTES = [[], [0], [255, 0, 1], [92, 39, 34, 0]]

/** @param rows of each table */
export function fillTables(file: string, rows: number): void {
  const connection = new Connection(file)
  connection.pragma('foreign_keys = OFF')
  for (const table of Object.values(schema).filter((value) => is(value, SQLiteTable))) fill(connection, table, rows)
  connection.close()
}

function fill(connection: Connection.Database, table: SQLiteTable, rows: number): void {
  const { name, columns, foreignKeys, primaryKeys } = getTableConfig(table)
  const keys = primaryKeys.flatMap((key) => key.columns.map((column) => column.name))
  const parents = foreignKeys.flatMap((key) => key.reference().columns.map((column) => column.name))
  const insert = connection.prepare(`insert into ${name} values (${columns.map(() => '?').join(', ')})`)
  connection.transaction(() => {
    for (let row = 0; row < rows; row += 1) {
      insert.run(
        columns.map((column, index) =>
          parents.includes(column.name) ? named('id', row) : cellOf(column, index, row, keys.includes(column.name)),
        ),
      )
    }
  })()
}

/** A row is found under its number, and what refers to it has the same. */
const named = (column: string, row: number): string => `${column}-${row} ${TEXTS[row % TEXTS.length]}`

function cellOf(column: SQLiteColumn, index: number, row: number, isOfKey: boolean): unknown {
  if (!column.notNull && (index + row) % 3 === 0) return null
  if (column.getSQLType() === 'blob') return Buffer.from([...(BYTES[row % BYTES.length] ?? []), row >> 8, row & 255])
  if (column.getSQLType() === 'integer') {
    // No worker runs.
    if (column.name === 'ends_at') return 1
    if (column.primary || isOfKey || ['generation', 'part', 'number'].includes(column.name)) return row
    return column.dataType === 'boolean' ? row % 2 : NUMBERS[(index + row) % NUMBERS.length]
  }
  // As no column would write it.
  return column.dataType === 'json' ? `[ "${row}",\n1.50 ]` : named(column.name, row)
}
