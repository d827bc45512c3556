/**
 * Listings as a CSV file: its columns, the outcome of each line, and how a cell is written so that a spreadsheet shows it
 * and never runs it.
 */
import type { LinkedBy, ListingState } from './listing.ts'

export const lineColumns = ['variant', 'sku', 'product', 'variation', 'action'] as const
/** Further columns of an export, for people; an import ignores them. */
export const shownColumns = ['name', 'state', 'reason', 'price', 'currency', 'stock'] as const
export type LineColumn = (typeof lineColumns)[number]

const lineActions = ['link', 'ignore', 'unlink'] as const
export type LineAction = (typeof lineActions)[number]

/** One line of a file, its cells unchanged. */
export interface ListingLine {
  /** The number of its first line in the file, from 1. */
  line: number
  variant: string
  /** Empty when the line names no SKU. */
  sku: string
  product: string
  /** Null: the file has no such column. */
  variation: string | null
  /** Null: the cell is empty. A file without the column links every line. */
  action: LineAction | null
}

export interface LineProblem {
  line: number
  /** Null when the problem is about the whole line. */
  column: string | null
  message: string
}

/** The limits of a file. A listing has under 100 bytes, so only unusual files reach the limit of bytes first. */
export const fileLimits = { bytesMax: 20 * 1024 * 1024, linesMax: 200_000, lineBytesMax: 64 * 1024 }

const delimiters = [',', ';', '\t'] as const
export type Delimiter = (typeof delimiters)[number]

/** Column names are compared without case, blanks and quotes. */
const nameOf = (cell: string): string =>
  cell
    .trim()
    .replace(/^"(.*)"$/, '$1')
    .trim()
    .toLowerCase()
const isLineColumn = (name: string): name is LineColumn => (lineColumns as readonly string[]).includes(name)

/** Returns the delimiter of a file: the delimiter that finds the most column names in the first line. */
export function delimiterOf(firstLine: string): Delimiter {
  const known = (delimiter: Delimiter) => firstLine.split(delimiter).filter((cell) => isLineColumn(nameOf(cell))).length
  return delimiters.reduce((best, one) => (known(one) > known(best) ? one : best))
}

/** @returns `width`: how many cells a line may have; a sentence for people when the header does not say what the lines mean */
export function readHeader(cells: string[]) {
  const names = cells.map(nameOf)
  const positions = new Map<LineColumn, number>()
  for (const [position, name] of names.entries()) {
    if (!isLineColumn(name)) continue
    if (positions.has(name)) return `the column ${name} is there twice`
    positions.set(name, position)
  }
  if (!positions.has('variant')) {
    return `the first line must name the columns, ${lineColumns.join(', ')}: the column variant is missing`
  }
  if (!positions.has('sku') && !positions.has('product') && !positions.has('action')) {
    return 'the columns sku, product and action are missing: one of them must say what becomes of a variant'
  }
  const known: readonly string[] = [...lineColumns, ...shownColumns]
  const unknown = [...new Set(names.filter((name) => name !== '' && !known.includes(name)))]
  return { positions, width: cells.length, unknown }
}

type CsvHeader = Exclude<ReturnType<typeof readHeader>, string>

export function readLine({ positions, width }: CsvHeader, line: number, cells: string[]): ListingLine | LineProblem {
  if (cells.slice(width).some((cell) => cell !== '')) {
    const message = `the line has ${cells.length} cells, the first line has ${width}: is a value with a delimiter not in quotes?`
    return { line, column: null, message }
  }
  const cellOf = (column: LineColumn) => {
    const position = positions.get(column)
    return position === undefined ? undefined : plainCell(cells[position] ?? '')
  }
  const variant = cellOf('variant') ?? ''
  if (variant === '')
    return { line, column: 'variant', message: "the cell is empty: it is the store's own reference of what it sells" }
  const action = cellOf('action')?.trim().toLowerCase() ?? 'link'
  if (action !== '' && !(lineActions as readonly string[]).includes(action)) {
    return { line, column: 'action', message: `the cell must be one of ${lineActions.join(', ')}, or empty` }
  }
  return {
    line,
    variant,
    sku: cellOf('sku') ?? '',
    product: cellOf('product') ?? '',
    variation: cellOf('variation') ?? null,
    action: action === '' ? null : (action as LineAction),
  }
}

/**
 * A spreadsheet takes a cell that begins with one of these signs for a formula, also behind apostrophes. Chinese and
 * Japanese keyboards type the wide forms of the signs. Later lines of a cell are escaped too, because a program that
 * splits the file at line breaks takes them for lines of the file.
 */
const SIGNS = '=+\\-@\\t\\uff1d\\uff0b\\uff0d\\uff20'
const FORMULA = `(?='*[${SIGNS}])`
const UNESCAPED = new RegExp(`^(?!-\\d+\\.\\d+$)(?='*[${SIGNS}\\r\\n])|(?<=[\\r\\n])${FORMULA}`, 'g')
const ESCAPED = new RegExp(`^'(?='*[${SIGNS}\\r\\n])|(?<=[\\r\\n])'${FORMULA}`, 'g')

/** Puts an apostrophe before a formula, which makes it text: `=1+1` becomes `'=1+1`. A negative amount, as `-5.00`, stays a number. */
export const escapedCell = (text: string): string => text.replace(UNESCAPED, "'")

/** Removes the apostrophe of `escapedCell`: `'=1+1` becomes `=1+1`. */
export const plainCell = (cell: string): string => cell.replace(ESCAPED, '')

export interface LineFacts {
  listing: ListedVariant | undefined
  /** The offer of the line's product, even if that offer is gone. */
  product: NamedOffer | undefined
  bySku: NamedOffer[]
}

export interface ListedVariant {
  sku: string
  productId: string | null
  variation: string | null
  linkedBy: LinkedBy
  state: ListingState
}

export interface NamedOffer {
  productId: string
  sku: string
  /** Null while the supplier lists the offer. */
  goneAt: number | null
}

export type LineOutcome =
  | { outcome: 'unchanged' }
  | ({ outcome: 'refused' } & LineProblem)
  | { outcome: 'link'; productId: string; sku: string | undefined; variation: string | null | undefined }
  | { outcome: 'ignore' | 'unlink' }

/** Decides one line. Where several offers may be meant, the line is refused. */
export function decideLine(line: ListingLine, facts: LineFacts): LineOutcome {
  const { listing } = facts
  if (listing && line.action === null && saysWhatIs(line, listing)) return { outcome: 'unchanged' }
  const fault = textFault(line)
  if (fault) return fault
  if (line.action === 'ignore') return { outcome: listing?.state === 'ignored' ? 'unchanged' : 'ignore' }
  if (line.action === 'unlink') {
    if (!listing) return refused(line, 'variant', `the store has no listing ${line.variant}`)
    return { outcome: listing.linkedBy === 'sku' ? 'unchanged' : 'unlink' }
  }
  const offer = line.product === '' ? offerOfSku(line, facts) : offerOfProduct(line, facts)
  if ('outcome' in offer) return offer
  const { productId } = offer
  const isLinked = listing && listing.linkedBy !== 'sku' && listing.state !== 'ignored'
  if (isLinked && saysWhatIs({ ...line, product: productId }, listing)) return { outcome: 'unchanged' }
  const variation = line.variation === null ? undefined : line.variation || null
  return { outcome: 'link', productId, sku: line.sku || undefined, variation }
}

/** Whether a listing already is as the line says. Empty cells of the line do not count. */
const saysWhatIs = (line: ListingLine, { sku, productId, variation }: ListedVariant): boolean =>
  (line.sku === '' || line.sku === sku) &&
  (line.product === '' || line.product === productId) &&
  (line.variation === null || line.variation === (variation ?? ''))

function offerOfProduct(line: ListingLine, { product: offer, bySku }: LineFacts): NamedOffer | LineOutcome {
  const { product, sku } = line
  if (!offer) return refused(line, 'product', `the supplier has no product ${product}`)
  if (offer.goneAt !== null) return refused(line, 'product', `the supplier does not sell product ${product} any more`)
  // A SKU that no offer has may be the store's own. A SKU of another product means that a cell is wrong.
  if (bySku.length === 0 || bySku.some(({ productId }) => productId === product)) return offer
  const message = `the SKU ${sku} is of ${productsOf(bySku)}, not of product ${product}: leave one of the two empty`
  return refused(line, 'sku', message)
}

function offerOfSku(line: ListingLine, { bySku }: LineFacts): NamedOffer | LineOutcome {
  const { sku } = line
  if (sku === '') return refused(line, 'sku', 'the cell is empty, and so is product: one of them must name the offer')
  const [offer, other] = bySku
  if (!offer) return refused(line, 'sku', `no product of the supplier has the SKU ${sku}`)
  if (!other) return offer
  return refused(line, 'sku', `the SKU ${sku} is of ${productsOf(bySku)}: name one of them in the column product`)
}

const productsOf = (offers: NamedOffer[]): string =>
  `product${offers.length > 1 ? 's' : ''} ${offers.map(({ productId }) => productId).join(' and ')}`

const refused = (line: ListingLine, column: LineColumn, message: string): LineOutcome & LineProblem => ({
  outcome: 'refused',
  line: line.line,
  column,
  message,
})

/** A text has at most this many characters, as everywhere in the API. */
const TEXT_MAX = 200

function textFault(line: ListingLine): LineOutcome | undefined {
  const texts = { variant: line.variant, sku: line.sku, product: line.product, variation: line.variation ?? '' }
  for (const [column, text] of Object.entries(texts) as [LineColumn, string][]) {
    if (line.action !== null && line.action !== 'link' && column !== 'variant') continue
    if ([...text].length > TEXT_MAX) return refused(line, column, `the cell is longer than ${TEXT_MAX} characters`)
    if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text)) {
      return refused(line, column, 'the cell has control characters or line ends in it')
    }
    if (/^[\p{Cf}\p{Z}]|[\p{Cf}\p{Z}]$/u.test(text)) {
      return refused(line, column, 'the cell begins or ends with a space or an invisible character')
    }
  }
  return undefined
}
