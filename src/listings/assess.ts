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
import {
  type ListingRow,
  listingAsInserted,
  listingsOfProducts,
  listingsOfSkus,
  listingsOfVariants,
} from '../storage/listings.ts'
import { type Offer, offersByProduct, offersBySku } from '../storage/offers.ts'
import type { StoreListing } from '../stores/store.ts'

export interface SellingStore {
  id: string
  policy: StorePolicy
}

/** A listing that is stored or about to be stored, with the decision on it. */
export interface Assessed {
  /** The listing as it is stored. A new listing has version 0. */
  row: ListingRow
  match: Match<Offer>
  decision: ListingDecision
}

/**
 * Reads everything that the listings of some offers depend on, and decides on each listing. More offers need no more reads.
 *
 * @param offers the offers, including offers that are gone
 * @param rows more listings to decide on, beside the listings of the offers
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

/** Returns the listings that a store begins by itself. In a store with products of its own, the product is created first. */
function newListings({ id, policy }: SellingStore, offers: Offer[], listings: ListingRow[], at: number): ListingRow[] {
  const { products, filter } = policy
  if (products && products.create === null) return []
  // In a store with products of its own, the variants are ids and no SKUs.
  const taken = new Set(listings.flatMap(({ variant, sku }) => (products ? [sku] : [variant, sku])))
  return newSkus(offers, taken, filter).map((sku) => {
    const variant = products ? variantToCreate(sku) : sku
    return newListing(id, { variant, sku, linkedBy: 'sku' }, at)
  })
}

/** The variant of a listing begins with this text while the store has no product for it. No store makes such ids. */
const TO_CREATE = 'new:'

export const variantToCreate = (sku: string): string => `${TO_CREATE}${sku}`

/** Whether the product of this listing must be created in the store first. */
export const isToCreate = ({ variant, linkedBy }: Pick<ListingRow, 'variant' | 'linkedBy'>): boolean =>
  linkedBy === 'sku' && variant.startsWith(TO_CREATE)

/** A listing as the store should have it now, in the form in which our API shows it to the store. */
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

/** Returns the product id of the offer that the listing is sold from, or was sold from last. */
export const productOf = ({ row, match }: Pick<Assessed, 'row' | 'match'>): string | null =>
  match.outcome === 'matched' ? match.offer.productId : row.productId

/** These fields say that nothing of a listing is under way to the store. */
export const notSent = {
  sentPriceMinor: null,
  sentCompareAtMinor: null,
  sentCurrency: null,
  sentName: null,
  sentCategory: null,
}

const NEW = listingAsInserted({ store: '', variant: '', sku: '', linkedBy: 'sku', state: 'pending', changedAt: 0 })

export const newListing = (
  store: string,
  named: Pick<ListingRow, 'variant' | 'sku' | 'linkedBy'> & Partial<Pick<ListingRow, 'productId' | 'variation'>>,
  at: number,
): ListingRow => ({ ...NEW, store, changedAt: at, ...named })

export function factsOf(row: ListingRow): ListingFacts {
  const [known, sent] = [knownOf(row), sentOf(row)]
  const differs = (row.reason === 'echo_differs' || row.reason === 'sale_price') && row.attempts > 0
  return {
    known,
    sent,
    approvedPriceMinor: row.approvedPriceMinor,
    settled: row.state !== 'pending' && row.state !== 'failed',
    failing: row.attempts > 0,
    // A push is open while the store may still have taken it. An answer that the store has something else closes the push.
    open: sent !== null && !(differs && row.state === 'failed'),
    jumpFrom: isForeign(row) ? sent : known,
  }
}

/**
 * Whether the store has set a price of its own over the pushed price. No cost of ours belongs to the store's price, so a jump is
 * not measured from that price but from the pushed one. The pushed price is kept until the store takes a price of ours.
 */
export const isForeign = (row: ListingRow): boolean =>
  row.knownPriceMinor !== null && row.knownCostMinor === null && row.sentPriceMinor !== null

/** Returns what was pushed and not confirmed by the store; null when there is no such push. */
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

/** Returns the content that the store has, as it confirmed or said last; null when the store did neither. */
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

export const byVariant = (rows: ListingRow[]): ListingRow[] => [
  ...new Map(rows.map((row) => [row.variant, row])).values(),
]

export interface Surroundings {
  /** Offers by product id, including offers that are gone. */
  byProduct: ReadonlyMap<string, Offer>
  /** Offers that the supplier still has, by SKU. */
  bySku: ReadonlyMap<string, Offer[]>
  /** Listings of the store, by the SKU that the store has for each. */
  listed: ReadonlyMap<string, Linked[]>
}

export type Linked = Pick<ListingRow, 'variant' | 'sku' | 'linkedBy' | 'productId' | 'state'>

/**
 * Finds the offer of a listing: the offer that a person or a file has linked, else the only offer with the SKU of the listing,
 * letter by letter. The match is ambiguous where several offers have the SKU, or where several variants share it.
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

/** Returns the SKUs of the offers that a store begins to list by itself: they pass its filters and have no listing yet. */
function newSkus(offers: Offer[], taken: ReadonlySet<string>, filter: ImportFilter): string[] {
  const begun = offers.filter((offer) => offer.goneAt === null && !taken.has(offer.sku) && passesFilter(offer, filter))
  return unique(begun.map(({ sku }) => sku))
}
