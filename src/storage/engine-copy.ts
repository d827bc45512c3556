/**
 * Copies all tables from one database into another of any engine, and compares them row by row.
 *
 * Rows are copied as they are stored: no column decodes or encodes them in between. Batches follow the primary key, whose order
 * is the same in every engine. Each batch is one commit, so that the last key in the copy says how far the copy is.
 */
import { createHash } from 'node:crypto'
import { is, type SQL, sql } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { Failure } from '../errors.ts'
import { type Change, type Database, first } from './database.ts'
import { MOVE_SETTING } from './engine-move.ts'
import * as schema from './schema.ts'
import { change } from './statement.ts'

type Cell = string | number | Uint8Array | null
type Reader = Pick<Database, 'query'>

interface CopiedTable {
  name: string
  columns: string[]
  /** Columns of the primary key, by their index among the columns. */
  key: number[]
  batch: number
}

/** The most values in one statement. PostgreSQL takes 65,535. */
const CELLS_MAX = 30_000
const ROWS_MAX = 1_000
/** The most rows of a batch where a column holds bytes: one such row may be as long as a whole delivery. */
const BYTES_ROWS_MAX = 100

/** All tables, each after the tables that its foreign keys refer to: a copied row finds the rows that it refers to. */
const tables: CopiedTable[] = referredFirst(Object.values(schema).filter((value) => is(value, SQLiteTable))).map(
  copiedTable,
)

function referredFirst(all: SQLiteTable[]): SQLiteTable[] {
  const ordered = new Set<SQLiteTable>()
  const add = (table: SQLiteTable): void => {
    for (const key of getTableConfig(table).foreignKeys) add(key.reference().foreignTable as SQLiteTable)
    ordered.add(table)
  }
  for (const table of all) add(table)
  return [...ordered]
}

function copiedTable(table: SQLiteTable): CopiedTable {
  const { name, columns, primaryKeys } = getTableConfig(table)
  const keys = primaryKeys[0]?.columns ?? columns.filter(({ primary }) => primary)
  const most = columns.some((column) => column.getSQLType() === 'blob') ? BYTES_ROWS_MAX : ROWS_MAX
  return {
    name,
    columns: columns.map((column) => column.name),
    key: keys.map((column) => columns.findIndex(({ name }) => name === column.name)),
    batch: Math.min(most, Math.floor(CELLS_MAX / columns.length)),
  }
}

/** How far a copy or a comparison is. */
export interface CopyProgress {
  step: 'copy' | 'compare'
  table: string
  /** How many rows of all tables are done, and how many there are. */
  rows: number
  total: number
}

type Watch = (progress: CopyProgress) => void

/** Copies the rows that the copy lacks. A second run goes on where the first was cut short. */
export async function copyTables(from: Reader, to: Database, watch: Watch = () => undefined): Promise<void> {
  const total = await countRows(from)
  let rows = 0
  for (const table of tables) {
    const insertRows = insertOf(table)
    const [last] = await rowsBackwards(to, table)
    let after = last && keyOf(table, last)
    if (after) rows += await countRows(from, [table], after)
    for (;;) {
      watch({ step: 'copy', table: table.name, rows, total })
      const batch = await rowsAfter(from, table, after)
      const newest = batch.at(-1)
      if (newest === undefined) break
      for (const row of batch) assertSafe(table, row)
      await to.commit([insertRows(batch.flat())])
      rows += batch.length
      after = keyOf(table, newest)
    }
  }
}

export interface ComparedTable {
  table: string
  rows: number
  /** SHA-256 over the digests of the table's rows, in the order of their keys; hex. */
  digest: string
}

/**
 * Reads both databases again and compares every row.
 *
 * @throws Failure `conflict`, reason `copy_differs`, with the key of the first row that differs in each table
 */
export async function compareTables(
  from: Reader,
  to: Reader,
  watch: Watch = () => undefined,
): Promise<ComparedTable[]> {
  const total = await countRows(from)
  const compared: ComparedTable[] = []
  const differences: { field: string; message: string }[] = []
  let rows = 0
  for (const table of tables) {
    const digest = createHash('sha256')
    let after: Cell[] | undefined
    let count = 0
    for (;;) {
      watch({ step: 'compare', table: table.name, rows: rows + count, total })
      const [ours, theirs] = await Promise.all([rowsAfter(from, table, after), rowsAfter(to, table, after)])
      const difference = differenceOf(table, ours, theirs, digest)
      if (difference !== undefined) {
        differences.push({ field: table.name, message: difference })
        break
      }
      count += ours.length
      const newest = ours.at(-1)
      if (newest === undefined || ours.length < table.batch) break
      after = keyOf(table, newest)
    }
    rows += count
    compared.push({ table: table.name, rows: count, digest: digest.digest('hex') })
  }
  if (differences.length === 0) return compared
  const list = differences.map(({ field, message }) => `${field} ${message}`).join('; ')
  throw new Failure('conflict', `the copy differs: ${list}`, { fields: differences, reason: 'copy_differs' })
}

/** @returns the names of the tables that have rows */
export async function tablesWithRows(db: Reader): Promise<string[]> {
  const filled: string[] = []
  for (const table of tables) if ((await rowsBackwards(db, table)).length > 0) filled.push(table.name)
  return filled
}

/** Returns the first difference between two batches that begin after the same key. Adds the equal rows to the digest. */
function differenceOf(
  table: CopiedTable,
  ours: Cell[][],
  theirs: Cell[][],
  digest: ReturnType<typeof createHash>,
): string | undefined {
  for (let index = 0; index < Math.max(ours.length, theirs.length); index += 1) {
    const [our, their] = [ours[index], theirs[index]]
    const [one, other] = [our && rowDigest(our), their && rowDigest(their)]
    if (one !== undefined && other?.equals(one)) {
      digest.update(one)
      continue
    }
    const [key, otherKey] = [our && keyText(table, our), their && keyText(table, their)]
    if (key !== undefined && key === otherKey) return `${key} is another row`
    const isMissing = their === undefined || (our !== undefined && compareKeys(table, our, their) < 0)
    return isMissing ? `${key} is missing` : `${otherKey} is too much`
  }
  return undefined
}

/** SHA-256 over the cells, each with its type and length, so that different rows give different bytes. */
function rowDigest(row: Cell[]): Buffer {
  const digest = createHash('sha256')
  for (const cell of row) {
    const bytes = bytesOf(cell)
    digest.update(`${cell === null ? 'null' : typeof cell} ${bytes.length} `).update(bytes)
  }
  return digest.digest()
}

const bytesOf = (cell: Cell): Uint8Array => (cell instanceof Uint8Array ? cell : Buffer.from(String(cell ?? '')))

const keyOf = (table: CopiedTable, row: Cell[]): Cell[] => table.key.map((index) => row[index] ?? null)

const keyText = (table: CopiedTable, row: Cell[]): string =>
  keyOf(table, row)
    .map((cell) => (cell instanceof Uint8Array ? Buffer.from(cell).toString('hex') : String(cell)))
    .join(' ')

/** Compares two keys in the order of both engines: numbers by their value, texts and bytes by their bytes. */
function compareKeys(table: CopiedTable, one: Cell[], other: Cell[]): number {
  for (const index of table.key) {
    const [a = null, b = null] = [one[index], other[index]]
    const order = typeof a === 'number' && typeof b === 'number' ? a - b : Buffer.compare(bytesOf(a), bytesOf(b))
    if (order !== 0) return order
  }
  return 0
}

/** Refuses a number that is too large: SQLite would return it rounded, and reading it from PostgreSQL would fail. */
function assertSafe(table: CopiedTable, row: Cell[]): void {
  const index = row.findIndex((cell) => typeof cell === 'number' && !Number.isSafeInteger(cell))
  if (index < 0) return
  const where = `${table.name} ${keyText(table, row)}: ${table.columns[index]}`
  throw new Failure('invalid', `${where} is a number that no database keeps exactly`)
}

/* Statements. */

const list = (names: string[], order = sql``): SQL =>
  sql.join(
    names.map((name) => sql`${sql.identifier(name)}${order}`),
    sql`, `,
  )

const keyNames = ({ key, columns }: CopiedTable): string[] => key.map((index) => columns[index] ?? '')

/** The rows of a table that are copied; with `after`, only the rows after that key. */
function copiedRows(table: CopiedTable, after?: Cell[]): SQL {
  const values = after?.map((cell) => sql`${cell}`)
  const conditions = [
    ...(values ? [sql`(${list(keyNames(table))}) > (${sql.join(values, sql`, `)})`] : []),
    ...(table.name === 'settings' ? [sql`name <> ${MOVE_SETTING}`] : []),
  ]
  const where = conditions.length === 0 ? sql`` : sql` where ${sql.join(conditions, sql` and `)}`
  return sql`from ${sql.identifier(table.name)}${where}`
}

const cellsOf = (rows: unknown[]): Cell[][] => rows.map((row) => Object.values(row as Record<string, Cell>))

const rowsAfter = async (db: Reader, table: CopiedTable, after: Cell[] | undefined): Promise<Cell[][]> =>
  cellsOf(
    await db.query(
      sql`select ${list(table.columns)} ${copiedRows(table, after)} order by ${list(keyNames(table))} limit ${table.batch}`,
    ),
  )

/** The row with the last key; no row for an empty table. */
const rowsBackwards = async (db: Reader, table: CopiedTable): Promise<Cell[][]> =>
  cellsOf(
    await db.query(
      sql`select ${list(table.columns)} ${copiedRows(table)} order by ${list(keyNames(table), sql` desc`)} limit 1`,
    ),
  )

/** @param after counts only the rows of one table up to this key */
async function countRows(db: Reader, counted = tables, after?: Cell[]): Promise<number> {
  let rows = 0
  for (const table of counted) {
    const all = await first(db, sql<{ total: number }>`select count(*) as total ${copiedRows(table)}`)
    const left =
      after && (await first(db, sql<{ total: number }>`select count(*) as total ${copiedRows(table, after)}`))
    rows += (all?.total ?? 0) - (left?.total ?? 0)
  }
  return rows
}

function insertOf({ name, columns }: CopiedTable): (cells: Cell[]) => Change {
  const width = columns.length
  return change(
    (cells: Cell[]) => cells.length / width,
    (cells: Cell[]) => {
      const rows = Array.from({ length: cells.length / width }, (_, row) => {
        const values = cells.slice(row * width, (row + 1) * width).map((cell) => sql`${cell}`)
        return sql`(${sql.join(values, sql`, `)})`
      })
      return sql`insert into ${sql.identifier(name)} (${list(columns)}) values ${sql.join(rows, sql`, `)}`
    },
  )
}
