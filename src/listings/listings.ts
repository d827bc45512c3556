import { type PublishedOffer, passesFilter } from '../domain/listing.ts'
import { explainPrice, type Priced } from '../domain/pricing.ts'
import type { ListingContent } from '../domain/publication.ts'
import { explainStock, type PublishedStock, type StockStep } from '../domain/stock.ts'
import { Failure } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import {
  type ListingPrice,
  type ListingRow,
  listingsOfProducts,
  listingsOfSkus,
  listingsOfVariants,
  pricesOfListing,
} from '../storage/listings.ts'
import { listOffers, offersBySku } from '../storage/offers.ts'
import {
  type Assessed,
  assess,
  byVariant,
  type ListingRecord,
  listingRecord,
  productOf,
  type SellingStore,
} from './assess.ts'

/**
 * Returns a page of what a store can sell, by product. Offers that are gone are left out, and so are listings that wait to be
 * decided and were never pushed.
 *
 * @param query its `after` is the `next` of the page before
 * @returns `next` undefined on the last page
 */
export async function listListings(
  db: Database,
  store: SellingStore,
  { after, limit }: { after?: string | undefined; limit: number },
  at: number,
): Promise<{ listings: ListingRecord[]; next: string | undefined }> {
  // One offer more than asked for shows whether another page follows.
  const offers = await db.query(listOffers({ limit: limit + 1, after }))
  const page = offers.slice(0, limit)
  const positions = new Map(page.map(({ productId }, index) => [productId, index]))
  const positionOf = (one: Assessed) => positions.get(productOf(one) ?? '') ?? -1
  const listed = (await assess(db, store, { offers: page }, at))
    .filter((one) => positionOf(one) >= 0)
    .sort((one, other) => positionOf(one) - positionOf(other) || (one.row.variant < other.row.variant ? -1 : 1))
  return { listings: listed.flatMap(recordsOf), next: offers.length > limit ? page.at(-1)?.productId : undefined }
}

/**
 * Returns the listing whose variant this is, else the listing whose SKU this is; undefined when there is no such listing.
 *
 * @throws Failure `conflict`, reason `ambiguous_sku`, when the listing may be of any of several offers
 */
export async function listingBySku(
  db: Database,
  store: SellingStore,
  sku: string,
  at: number,
): Promise<ListingRecord | undefined> {
  const [rows, others, offers] = await Promise.all([
    db.query(listingsOfVariants(store.id, [sku])),
    db.query(listingsOfSkus(store.id, [sku])),
    db.query(offersBySku([sku])),
  ])
  const listed = await assess(db, store, { offers, rows: [...rows, ...others] }, at)
  const found = listed.find(({ row }) => row.variant === sku) ?? listed.find(({ row }) => row.sku === sku)
  if (!found) return undefined
  const { match } = found
  if (match.outcome === 'ambiguous_sku') throw new Failure('conflict', match.detail, { reason: 'ambiguous_sku' })
  return recordsOf(found)[0]
}

/** A listing, what the store should have of it now, and the prices that the store has confirmed, newest first. */
export interface ListingHistory {
  row: ListingRow
  wanted: ListingContent | null
  /** How the price and the stock of the listing come about; null while the listing has no offer. */
  explained: OfferExplanation | null
  prices: ListingPrice[]
}

/** How many prices are shown. With one change a day they span more than a quarter of a year. */
const PRICES_MAX = 100

/** @throws Failure `not_found` */
export async function viewListing(
  db: Database,
  store: SellingStore,
  variant: string,
  at: number,
): Promise<ListingHistory> {
  const rows = await db.query(listingsOfVariants(store.id, [variant]))
  const [row] = rows
  if (!row) throw new Failure('not_found', `the store has no listing ${variant}`)
  const [assessed, prices] = await Promise.all([
    assess(db, store, { offers: [], rows }, at),
    db.query(pricesOfListing(store.id, variant, PRICES_MAX)),
  ])
  const [{ decision, match } = {}] = assessed
  const explained = match?.outcome === 'matched' ? explainFor(store, match.offer, at) : null
  return { row, prices, wanted: decision?.content ?? null, explained }
}

const recordsOf = ({ row, decision: { content } }: Assessed): ListingRecord[] =>
  content === null ? [] : [listingRecord(row, content)]

/** How the price and the stock of an offer come about in one store. */
export interface OfferExplanation {
  offer: PublishedOffer & { productId: string }
  price: Priced
  stock: PublishedStock & { steps: StockStep[] }
}

const explainFor = <O extends OfferExplanation['offer']>({ policy }: SellingStore, offer: O, at: number) => ({
  offer,
  price: explainPrice(offer, policy.pricing, at),
  stock: explainStock(offer, policy.stock),
})

/** An explanation of an offer, with what the store has of that offer. */
export interface Explanation extends OfferExplanation {
  /** The store's listings of the offer, by variant. The store need not have the explained price. */
  listings: ListingRow[]
  /** A listing of something else that has the offer's SKU. It keeps the store from beginning a listing of the offer. */
  takenBy: Pick<ListingRow, 'variant' | 'productId'> | null
  /** Whether the offer passes the filters under which the store lists offers by itself. */
  passes: boolean
}

/**
 * Explains the price at which a store sells the offer of this SKU at an instant, and how many units the store shows.
 *
 * @throws Failure `not_found` when the supplier has no offer under the SKU now
 * @throws Failure `conflict`, reason `ambiguous_sku`, when two offers are under the SKU
 */
export async function explainOffer(db: Database, store: SellingStore, sku: string, at: number): Promise<Explanation> {
  const [offer, other] = await db.query(offersBySku([sku]))
  if (!offer) throw new Failure('not_found', `the supplier sells nothing under the SKU ${sku}`)
  if (other) {
    const message = `the SKU ${sku} names two offers: ${offer.productId} and ${other.productId}`
    throw new Failure('conflict', message, { reason: 'ambiguous_sku' })
  }
  const [linked, named, under] = await Promise.all([
    db.query(listingsOfProducts(store.id, [offer.productId])),
    db.query(listingsOfSkus(store.id, [sku])),
    db.query(listingsOfVariants(store.id, [sku])),
  ])
  const own = named.filter(({ productId }) => productId === null || productId === offer.productId)
  const listings = byVariant([...linked, ...own])
  const takenBy = listings.length === 0 ? ([...under, ...named][0] ?? null) : null
  return { ...explainFor(store, offer, at), listings, takenBy, passes: passesFilter(offer, store.policy.filter) }
}
