/**
 * How listings stand in a CSV file: which columns there are, what a line of them says, and how a cell is written so that
 * a spreadsheet shows it and never runs it.
 */

/** What a file says of a listing. */
export const lineColumns = ['variant', 'sku', 'product', 'variation', 'action'] as const
/** What an export shows beside it, for people; an import leaves these unread. */
export const shownColumns = ['name', 'state', 'reason', 'price', 'currency', 'stock'] as const
export type LineColumn = (typeof lineColumns)[number]

const lineActions = ['link', 'ignore', 'unlink'] as const
export type LineAction = (typeof lineActions)[number]

/** One line of a file, its cells as they came. */
export interface ListingLine {
  /** Where it begins; the first line of the file is 1. */
  line: number
  variant: string
  /** Empty: not said. */
  sku: string
  product: string
  /** Null: the file has no such column. */
  variation: string | null
  /** Null: the cell is empty. A file without the column links every line. */
  action: LineAction | null
}

/** What is wrong with a line, or was not understood of it. */
export interface LineProblem {
  line: number
  /** Null when it is about the whole line. */
  column: string | null
  message: string
}

/** Where the columns of a file are. */
export interface CsvHeader {
  places: ReadonlyMap<LineColumn, number>
  /** Cells that a line may have. */
  width: number
  /** Names that say nothing here. */
  unknown: string[]
}

const delimiters = [',', ';', '\t'] as const
export type Delimiter = (typeof delimiters)[number]

/** Names of columns are read however they are written. */
const nameOf = (cell: string): string =>
  cell
    .trim()
    .replace(/^"(.*)"$/, '$1')
    .trim()
    .toLowerCase()
const isLineColumn = (name: string): name is LineColumn => (lineColumns as readonly string[]).includes(name)

/** What the cells of a file are divided by: whichever makes most names of columns out of its first line. */
export function delimiterOf(firstLine: string): Delimiter {
  const known = (delimiter: Delimiter) => firstLine.split(delimiter).filter((cell) => isLineColumn(nameOf(cell))).length
  return delimiters.reduce((best, one) => (known(one) > known(best) ? one : best))
}

/** @returns a sentence, when nobody can say what the lines below would mean */
export function readHeader(cells: string[]): CsvHeader | string {
  const names = cells.map(nameOf)
  const places = new Map<LineColumn, number>()
  for (const [place, name] of names.entries()) {
    if (!isLineColumn(name)) continue
    if (places.has(name)) return `the column ${name} is there twice`
    places.set(name, place)
  }
  if (!places.has('variant')) {
    return `the first line must name the columns, ${lineColumns.join(', ')}: the column variant is missing`
  }
  if (!places.has('sku') && !places.has('product') && !places.has('action')) {
    return 'the columns sku, product and action are missing: one of them must say what becomes of a variant'
  }
  const known: readonly string[] = [...lineColumns, ...shownColumns]
  const unknown = [...new Set(names.filter((name) => name !== '' && !known.includes(name)))]
  return { places, width: cells.length, unknown }
}

/** A line in the terms of its header, or why it has none. */
export function readLine({ places, width }: CsvHeader, line: number, cells: string[]): ListingLine | LineProblem {
  if (cells.slice(width).some((cell) => cell !== '')) {
    const message = `the line has ${cells.length} cells, the first line has ${width}: is a value with a delimiter not in quotes?`
    return { line, column: null, message }
  }
  const cellOf = (column: LineColumn) => {
    const place = places.get(column)
    return place === undefined ? undefined : plainCell(cells[place] ?? '')
  }
  const variant = cellOf('variant') ?? ''
  if (variant === '')
    return { line, column: 'variant', message: "the cell is empty: it is the store's own reference of what it sells" }
  const action = cellOf('action')?.trim().toLowerCase() ?? 'link'
  if (action !== '' && !(lineActions as readonly string[]).includes(action)) {
    return { line, column: 'action', message: `the cell must be one of ${lineActions.join(', ')}, or empty` }
  }
  return {
    ...{ line, variant, sku: cellOf('sku') ?? '', product: cellOf('product') ?? '' },
    ...{ variation: cellOf('variation') ?? null, action: action === '' ? null : (action as LineAction) },
  }
}

/**
 * What a spreadsheet takes for a formula, or would once an apostrophe is taken off. The wide forms of the signs are typed
 * where Chinese and Japanese are. The second line of a cell counts too: a program that divides the file at its line breaks
 * takes it for a line of its own.
 */
const SIGNS = '=+\\-@\\t\\uff1d\\uff0b\\uff0d\\uff20'
const FORMULA = `(?='*[${SIGNS}])`
const UNESCAPED = new RegExp(`^(?='*[${SIGNS}\\r\\n])|(?<=[\\r\\n])${FORMULA}`, 'g')
const ESCAPED = new RegExp(`^'(?='*[${SIGNS}\\r\\n])|(?<=[\\r\\n])'${FORMULA}`, 'g')

/** A cell as it is written: an apostrophe before a formula makes it text. `=1+1` becomes `'=1+1`. */
export const escapedCell = (text: string): string => text.replace(UNESCAPED, "'")

/** The text of a cell as it was written: takes off what `escapedCell` puts there. `'=1+1` becomes `=1+1`. */
export const plainCell = (cell: string): string => cell.replace(ESCAPED, '')
