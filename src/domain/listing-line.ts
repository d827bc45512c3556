import type { LinkedBy, ListingState } from './listing.ts'
import type { LineColumn, LineProblem, ListingLine } from './listing-csv.ts'

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
