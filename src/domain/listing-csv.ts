/**
 * How listings stand in a CSV file: which columns there are, what a line of them says, and how a cell is written so that
 * a spreadsheet shows it and never runs it.
 */
import type { LinkedBy, ListingState } from './listing.ts'

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

/** A line in the words of its header, or why it has none. */
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
    line,
    variant,
    sku: cellOf('sku') ?? '',
    product: cellOf('product') ?? '',
    variation: cellOf('variation') ?? null,
    action: action === '' ? null : (action as LineAction),
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

/** What of a listing and of offers the outcome of a line depends on. */
export interface LineFacts {
  /** Under the variant of the line. */
  listing: ListedVariant | undefined
  /** Under the product of the line; one that is gone too. */
  product: NamedOffer | undefined
  /** All that the supplier has under the SKU of the line. */
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
  /** Null: the supplier has it. */
  goneAt: number | null
}

export type LineOutcome =
  | { outcome: 'unchanged' }
  | ({ outcome: 'refused' } & LineProblem)
  | { outcome: 'link'; productId: string; sku: string | undefined; variation: string | null | undefined }
  | { outcome: 'ignore' | 'unlink' }

/** What becomes of one line, its listing and the offers being as they are. Where several offers may be meant, none is. */
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

/** Whether a listing is already as a line says; what the line leaves open may be anything. */
const saysWhatIs = (line: ListingLine, { sku, productId, variation }: ListedVariant): boolean =>
  (line.sku === '' || line.sku === sku) &&
  (line.product === '' || line.product === productId) &&
  (line.variation === null || line.variation === (variation ?? ''))

function offerOfProduct(line: ListingLine, { product: offer, bySku }: LineFacts): NamedOffer | LineOutcome {
  const { product, sku } = line
  if (!offer) return refused(line, 'product', `the supplier has no product ${product}`)
  if (offer.goneAt !== null) return refused(line, 'product', `the supplier does not sell product ${product} any more`)
  // A SKU of the store's own is no SKU of the supplier; one of another product means that a cell is wrong.
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

/** Characters of a text: as many as everywhere in the API. */
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
