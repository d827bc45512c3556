import { type PublishedOffer, passesFilter } from '../domain/listing.ts'
import { explainPrice } from '../domain/pricing.ts'
import { explainStock } from '../domain/stock.ts'
import { conflict, Failure } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import { listingsOfProducts, listingsOfSkus, listingsOfVariants, pricesOfListing } from '../storage/listings.ts'
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
 * Finds a listing by its variant, else by its SKU; undefined when there is no such listing.
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
  if (match.outcome === 'ambiguous_sku') throw conflict('ambiguous_sku', match.detail)
  return recordsOf(found)[0]
}

export type ListingHistory = Awaited<ReturnType<typeof viewListing>>

/** How many prices are shown. With one change a day they span more than a quarter of a year. */
const PRICES_MAX = 100

/**
 * Returns a listing, what the store should have of it now, and the prices that the store has confirmed, newest first.
 *
 * @throws Failure `not_found`
 */
export async function viewListing(db: Database, store: SellingStore, variant: string, at: number) {
  const rows = await db.query(listingsOfVariants(store.id, [variant]))
  const [row] = rows
  if (!row) throw new Failure('not_found', `the store has no listing ${variant}`)
  const [assessed, prices] = await Promise.all([
    assess(db, store, { offers: [], rows }, at),
    db.query(pricesOfListing(store.id, variant, PRICES_MAX)),
  ])
  const [{ decision, match } = {}] = assessed
  // Null while the listing has no offer.
  const explained = match?.outcome === 'matched' ? explainFor(store, match.offer, at) : null
  return { row, prices, wanted: decision?.content ?? null, explained }
}

const recordsOf = ({ row, decision: { content } }: Assessed): ListingRecord[] =>
  content === null ? [] : [listingRecord(row, content)]

/** How the price and the stock of an offer come about in one store. */
export type OfferExplanation = ReturnType<typeof explainFor>

const explainFor = ({ policy }: SellingStore, offer: PublishedOffer & { productId: string }, at: number) => ({
  offer,
  price: explainPrice(offer, policy.pricing, at),
  stock: explainStock(offer, policy.stock),
})

export type Explanation = Awaited<ReturnType<typeof explainOffer>>

/**
 * Explains the price at which a store sells the offer of this SKU at an instant, and how many units the store shows.
 *
 * @throws Failure `not_found` when the supplier has no offer under the SKU now
 * @throws Failure `conflict`, reason `ambiguous_sku`, when two offers are under the SKU
 */
export async function explainOffer(db: Database, store: SellingStore, sku: string, at: number) {
  const [offer, other] = await db.query(offersBySku([sku]))
  if (!offer) throw new Failure('not_found', `the supplier sells nothing under the SKU ${sku}`)
  if (other) {
    throw conflict('ambiguous_sku', `the SKU ${sku} names two offers: ${offer.productId} and ${other.productId}`)
  }
  const [linked, named, under] = await Promise.all([
    db.query(listingsOfProducts(store.id, [offer.productId])),
    db.query(listingsOfSkus(store.id, [sku])),
    db.query(listingsOfVariants(store.id, [sku])),
  ])
  // A listing with this SKU that is linked to another offer has the price of that offer, so it is left out.
  const own = named.filter(({ productId }) => productId === null || productId === offer.productId)
  const listings = byVariant([...linked, ...own])
  // If the offer has no listing, the listing of something else that has the offer's SKU may be the cause.
  const takenBy = listings.length === 0 ? ([...under, ...named][0] ?? null) : null
  const passes = passesFilter(offer, store.policy.filter)
  return { ...explainFor(store, offer, at), listings, takenBy, passes }
}
