/** Tables: records below each other, no wider than the terminal. */
import { columnsOf, cut, plain, sentence, wrap } from '../domain/text-layout.ts'
import type { Call } from './command.ts'
import { ageOf, cell, timeText } from './words.ts'

/** Columns by their titles. A column is a field that is printed as it is, a function that makes the text, or a `Column`. */
export type Columns<R extends object> = Record<string, (keyof R & string) | CellText<R> | Column<R>>

type CellText<R> = (row: R, now: number) => string

export interface Column<R extends object> {
  of: CellText<R>
  right?: true
  /** Set for columns such as ids, which people copy from the screen. They are cut only when all other columns are short. */
  keep?: true
}

type With<K extends string> = Record<K, unknown>

export const key = <K extends string>(field: K): Column<With<K>> => ({ of: (row) => cell(row[field]), keep: true })

export const number = <K extends string>(field: K): Column<With<K>> => ({ of: (row) => cell(row[field]), right: true })

export const ago = <K extends string>(field: K): Column<With<K>> => right((row, now) => ageOf(row[field], now))

export const right = <R extends object>(of: CellText<R>): Column<R> => ({ of, right: true })

export const time = <K extends string>(field: K): Column<With<K>> => ({ of: (row) => timeText(row[field]), keep: true })

export const GAP = '  '

/** How many characters a column needs to say anything at all. */
const COLUMN_MIN = 4

/**
 * Writes a table that is no wider than `width`, as lines with line ends.
 *
 * Columns are as wide as their content. While the table is too wide, the widest column that may be cut loses a character.
 * Cells that no longer fit end in `…`.
 *
 * @param width the width of the terminal; Infinity where the output goes to a file or a pipe
 * @param now the present time, for columns of ages
 */
export function table<R extends object>(rows: R[], columns: Columns<R>, width: number, now = 0): string {
  const shown = Object.values(columns).map((column): Column<R> => {
    if (typeof column === 'string') return { of: (row) => cell(row[column]) }
    return typeof column === 'function' ? { of: column } : column
  })
  const lines = [Object.keys(columns), ...rows.map((row) => shown.map((column) => column.of(row, now)))]
  const cells = lines.map((line) => line.map(plain))
  const widths = shown.map((_, index) => Math.max(...cells.map((line) => columnsOf(line[index] ?? ''))))
  narrow(widths, shown, width - GAP.length * (shown.length - 1))
  return cells
    .map((line) => line.map((text, index) => padded(text, widths[index] ?? 0, shown[index]?.right ?? false)))
    .map((line) => `${line.join(GAP).trimEnd()}\n`)
    .join('')
}

function narrow(widths: number[], columns: { keep?: true }[], width: number): void {
  for (let total = widths.reduce((sum, each) => sum + each, 0); total > width; total -= 1) {
    const cuttable = columns.map((column, index) => (column.keep ? 0 : (widths[index] ?? 0)))
    const from = Math.max(...cuttable) > COLUMN_MIN ? cuttable : widths
    const widest = from.indexOf(Math.max(...from))
    if ((widths[widest] ?? 0) <= 1) return
    widths[widest] = (widths[widest] ?? 0) - 1
  }
}

function padded(text: string, width: number, right: boolean): string {
  const shown = columnsOf(text) > width ? cut(text, width) : text
  const space = ' '.repeat(width - columnsOf(shown))
  return right ? space + shown : shown + space
}

/** The table is cut so that the sentences beside it get at least this width. */
const WHY_MIN = 30

/**
 * Writes a table with a sentence beside each row. The sentence is wrapped below its own beginning, and never cut.
 *
 * @returns the header, then each row
 */
export function reasonedRows<R extends object>(
  rows: R[],
  columns: Columns<R>,
  why: (row: R) => string,
  width: number,
): string[] {
  const left = table(rows, columns, width - WHY_MIN - GAP.length).split('\n')
  const indent = Math.max(...left.map(columnsOf)) + GAP.length
  return ['WHY', ...rows.map(why)].map((text, index) => {
    const before = left[index] ?? ''
    const lines = wrap(plain(text), width - indent)
    return `${before}${' '.repeat(indent - columnsOf(before))}${lines.join(`\n${' '.repeat(indent)}`)}\n`
  })
}

/** Writes a table, or the sentence `empty` when there are no rows. */
export function tableOr<R extends object>(empty: string, rows: R[], columns: Columns<R>, { width, io }: Call): string {
  return rows.length > 0 ? table(rows, columns, width, io.now()) : empty && sentence(empty, width)
}
