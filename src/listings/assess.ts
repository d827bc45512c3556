import { type ImportFilter, passesFilter, type StorePolicy } from '../domain/listing.ts'
import { priceTexts } from '../domain/money.ts'
import {
  decideListing,
  type ListingContent,
  type ListingDecision,
  type ListingFacts,
  type Match,
} from '../domain/publication.ts'
import type { Database } from '../storage/database.ts'
import { type ListingRow, listingsOfProducts, listingsOfSkus, listingsOfVariants } from '../storage/listings.ts'
import { type Offer, offersByProduct, offersBySku } from '../storage/offers.ts'
import type { StoreListing } from '../stores/store.ts'

/** A store as its listings see it. */
export interface SellingStore {
  id: string
  policy: StorePolicy
}

/** One listing, stored or about to be, and what is to become of it. */
export interface Assessed {
  /** As it is stored; version 0 for a new one. */
  row: ListingRow
  match: Match<Offer>
  decision: ListingDecision
}

/**
 * Reads everything that the listings of some offers depend on, and decides on each: a handful of reads, however many.
 *
 * @param offers with those that are gone
 * @param rows listings to decide on beside those of the offers
 */
export async function assess(
  db: Pick<Database, 'query'>,
  store: SellingStore,
  { offers, rows = [] }: { offers: Offer[]; rows?: ListingRow[] },
  at: number,
): Promise<Assessed[]> {
  const { listings, around } = await gather(db, store.id, offers, rows)
  const { filter } = store.policy
  return [...listings, ...newListings(store, offers, listings, at)].map((row) => {
    const match = matchListing(row, around, filter)
    return { row, match, decision: decideListing(match, factsOf(row), store.policy, at) }
  })
}

async function gather(db: Pick<Database, 'query'>, store: string, offers: Offer[], rows: ListingRow[]) {
  const skus = unique(offers.map(({ sku }) => sku))
  const productIds = offers.map(({ productId }) => productId)
  const reads = [listingsOfProducts(store, productIds), listingsOfVariants(store, skus), listingsOfSkus(store, skus)]
  const found = offers.length === 0 ? [] : await Promise.all(reads.map((read) => db.query(read)))
  const listings = byVariant([...rows, ...found.flat()])
  const bySkuAlone = listings.filter(({ linkedBy, productId }) => linkedBy === 'sku' || productId === null)
  const asked = unique([...skus, ...bySkuAlone.map(({ sku }) => sku)])
  const known = new Set(productIds)
  const others = unique(
    listings.flatMap(({ productId }) => (productId === null || known.has(productId) ? [] : [productId])),
  )
  const lone = unique(
    bySkuAlone.filter((row) => row.productId === null && !skus.includes(row.sku)).map(({ sku }) => sku),
  )
  const [candidates, linked, twins] = await Promise.all([
    asked.length === 0 ? [] : db.query(offersBySku(asked)),
    others.length === 0 ? [] : db.query(offersByProduct(others)),
    lone.length === 0 ? [] : db.query(listingsOfSkus(store, lone)),
  ])
  const around: Surroundings = {
    byProduct: new Map([...linked, ...offers].map((offer) => [offer.productId, offer])),
    bySku: Map.groupBy(candidates, ({ sku }) => sku),
    listed: Map.groupBy(byVariant([...twins, ...listings]), ({ sku }) => sku),
  }
  return { listings, around }
}

/** Listings that the store begins of its own accord: under the SKU, or to be created where it has products of its own. */
function newListings({ id, policy }: SellingStore, offers: Offer[], listings: ListingRow[], at: number): ListingRow[] {
  const { products, filter } = policy
  if (products && products.create === null) return []
  // Where the store has products of its own, their ids are no SKUs.
  const taken = new Set(listings.flatMap(({ variant, sku }) => (products ? [sku] : [variant, sku])))
  return newSkus(offers, taken, filter).map((sku) => {
    const variant = products ? variantToCreate(sku) : sku
    return newListing(id, { variant, sku, linkedBy: 'sku' }, at)
  })
}

/** Begins the variant of a listing that the store has no product for yet; no store makes such ids. */
const TO_CREATE = 'new:'

/** The variant of the listing of a SKU for which the store has no product yet. */
export const variantToCreate = (sku: string): string => `${TO_CREATE}${sku}`

/** Whether the product of this listing must be created in the store first. */
export const isToCreate = ({ variant, linkedBy }: Pick<ListingRow, 'variant' | 'linkedBy'>): boolean =>
  linkedBy === 'sku' && variant.startsWith(TO_CREATE)

/** A listing as it is to be now, as our API shows it to its store. */
export type ListingRecord = Omit<StoreListing, 'revision' | 'isGone' | 'stockAlone'>

export const listingRecord = (
  { variant, sku }: Pick<ListingRow, 'variant' | 'sku'>,
  { name, category, stock, available, isGone: _, ...price }: ListingContent,
): ListingRecord => ({
  id: variant,
  sku,
  name,
  category,
  ...priceTexts(price),
  currency: price.currency,
  stock,
  available,
})

/** The offer that it is sold from, or was. */
export const productOf = ({ row, match }: Pick<Assessed, 'row' | 'match'>): string | null =>
  match.outcome === 'matched' ? match.offer.productId : row.productId

/** Nothing is under way to the store. */
export const notSent = {
  sentPriceMinor: null,
  sentCompareAtMinor: null,
  sentCurrency: null,
  sentName: null,
  sentCategory: null,
}

/** A listing that was never pushed. */
export const newListing = (
  store: string,
  named: Pick<ListingRow, 'variant' | 'sku' | 'linkedBy'> & Partial<Pick<ListingRow, 'productId' | 'variation'>>,
  at: number,
): ListingRow => ({
  store,
  productId: null,
  variation: null,
  state: 'pending',
  reason: null,
  detail: null,
  attempts: 0,
  nextTryAt: null,
  knownPriceMinor: null,
  knownCompareAtMinor: null,
  knownCurrency: null,
  knownStock: null,
  knownAvailable: null,
  knownName: null,
  knownCategory: null,
  knownGone: null,
  knownCostMinor: null,
  pushedAt: null,
  wantedPriceMinor: null,
  approvedPriceMinor: null,
  revision: 0,
  version: 0,
  changedAt: at,
  ...notSent,
  ...named,
})

export function factsOf(row: ListingRow): ListingFacts {
  const [known, sent] = [knownOf(row), sentOf(row)]
  const differs = (row.reason === 'echo_differs' || row.reason === 'sale_price') && row.attempts > 0
  return {
    known,
    sent,
    approvedPriceMinor: row.approvedPriceMinor,
    settled: row.state !== 'pending' && row.state !== 'failed',
    failing: row.attempts > 0,
    // A store that has answered what it has instead has nothing else until the next push.
    open: sent !== null && !(differs && row.state === 'failed'),
    jumpFrom: isForeign(row) ? sent : known,
  }
}

/**
 * Whether the store has made a price of its own of the pushed one. No cost of ours is behind it, and no jump is measured
 * from it, whatever became of the listing since: the pushed price is kept until the store takes a price of ours.
 */
export const isForeign = (row: ListingRow): boolean =>
  row.knownPriceMinor !== null && row.knownCostMinor === null && row.sentPriceMinor !== null

/** What was pushed and the store has not confirmed. */
function sentOf(row: ListingRow): ListingContent | null {
  const { sentPriceMinor: priceMinor, sentCurrency: currency, sentName: name, sentCategory: category } = row
  if (priceMinor === null || currency === null || name === null) return null
  return {
    priceMinor,
    compareAtMinor: row.sentCompareAtMinor,
    currency,
    stock: 0,
    available: false,
    name,
    category,
    isGone: false,
  }
}

/** What the store has confirmed last, or said that it has; null when it did neither. */
export function knownOf(row: ListingRow): ListingContent | null {
  const { knownPriceMinor, knownCurrency, knownName } = row
  if (knownPriceMinor === null || knownCurrency === null || knownName === null) return null
  return {
    priceMinor: knownPriceMinor,
    compareAtMinor: row.knownCompareAtMinor,
    currency: knownCurrency,
    stock: row.knownStock,
    available: row.knownAvailable === true,
    name: knownName,
    category: row.knownCategory,
    isGone: row.knownGone === true,
  }
}

const unique = (texts: string[]): string[] => [...new Set(texts)]

/** Each listing of a store once. */
export const byVariant = (rows: ListingRow[]): ListingRow[] => [
  ...new Map(rows.map((row) => [row.variant, row])).values(),
]

/** What a match is found among. */
export interface Surroundings {
  /** Offers by product id, those that are gone included. */
  byProduct: ReadonlyMap<string, Offer>
  /** Offers that the supplier still has, by SKU. */
  bySku: ReadonlyMap<string, Offer[]>
  /** What the store sells, by the SKU that the store has for it. */
  listed: ReadonlyMap<string, Linked[]>
}

/** What of a listing its match depends on. */
export type Linked = Pick<ListingRow, 'variant' | 'sku' | 'linkedBy' | 'productId' | 'state'>

/**
 * Finds the offer of a listing: the one that a person or a file has linked, else the only one under its SKU, letter by
 * letter. Where there are several, or where several variants share the SKU, the match is ambiguous.
 */
function matchListing(listing: Linked, around: Surroundings, filter: ImportFilter): Match<Offer> {
  const { sku, linkedBy, productId } = listing
  if (listing.state === 'ignored') return { outcome: 'ignored' }
  const offer = productId === null ? undefined : around.byProduct.get(productId)
  if (linkedBy !== 'sku' && productId !== null) {
    if (!offer) return { outcome: 'missing', detail: `the supplier has no product ${productId}` }
    return offer.goneAt === null ? { outcome: 'matched', offer } : { outcome: 'gone' }
  }
  const candidates = around.bySku.get(sku) ?? []
  const [candidate, other] = candidates
  if (!candidate) return { ...withoutOffer(listing, offer) }
  if (linkedBy === 'sku' && !candidates.some((one) => passesFilter(one, filter))) return { outcome: 'filtered' }
  if (other) {
    const ids = candidates.map((one) => one.productId).join(', ')
    return { outcome: 'ambiguous_sku', detail: `the SKU ${sku} is of ${candidates.length} products: ${ids}` }
  }
  const twins =
    productId === null ? (around.listed.get(sku) ?? []).filter((one) => one.variant !== listing.variant) : []
  if (twins.some(({ state }) => state !== 'ignored')) {
    const variants = twins.map(({ variant }) => variant).join(', ')
    return { outcome: 'duplicate_sku', detail: `the store has the SKU ${sku} for other variants too: ${variants}` }
  }
  return { outcome: 'matched', offer: candidate }
}

function withoutOffer({ sku, linkedBy, productId }: Linked, offer: Offer | undefined): Match<Offer> {
  if (offer && offer.goneAt !== null) return { outcome: 'gone' }
  if (offer) {
    const detail = `no product has the SKU ${sku} now; product ${offer.productId} has the SKU ${offer.sku}`
    return { outcome: 'missing', detail }
  }
  if (linkedBy === 'sku' && productId === null) return { outcome: 'unlinked' }
  return { outcome: 'missing', detail: `no product of the supplier has the SKU ${sku}` }
}

/** SKUs under which a store begins to list offers of its own accord: offers that pass its filters and that it has not. */
function newSkus(offers: Offer[], taken: ReadonlySet<string>, filter: ImportFilter): string[] {
  const begun = offers.filter((offer) => offer.goneAt === null && !taken.has(offer.sku) && passesFilter(offer, filter))
  return unique(begun.map(({ sku }) => sku))
}
