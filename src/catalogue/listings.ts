import type { ListingContent } from '../domain/publication.ts'
import { Failure } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import { type ListingPrice, pricesOfListing } from '../storage/listing-prices.ts'
import { type ListingRow, listingsOfSkus, listingsOfVariants } from '../storage/listings.ts'
import { listOffers, offersBySku } from '../storage/offers.ts'
import { type Assessed, assess, type ListingRecord, listingRecord, productOf, type SellingStore } from './assess.ts'

/**
 * A page of what a store can sell, by product: offers that are gone, and what waits to be decided and was never told, are
 * left out.
 *
 * @param query `after` is the `next` of the page before
 * @returns `next` undefined on the last page
 */
export async function listListings(
  db: Database,
  store: SellingStore,
  { after, limit }: { after?: string | undefined; limit: number },
  at: number,
): Promise<{ listings: ListingRecord[]; next: string | undefined }> {
  // One more than asked for tells whether another page follows.
  const offers = await db.query(listOffers({ limit: limit + 1, after }))
  const page = offers.slice(0, limit)
  const places = new Map(page.map(({ productId }, place) => [productId, place]))
  const placeOf = (one: Assessed) => places.get(productOf(one) ?? '') ?? -1
  const listed = (await assess(db, store, { offers: page }, at))
    .filter((one) => placeOf(one) >= 0)
    .sort((one, other) => placeOf(one) - placeOf(other) || (one.row.variant < other.row.variant ? -1 : 1))
  return { listings: listed.flatMap(recordsOf), next: offers.length > limit ? page.at(-1)?.productId : undefined }
}

/**
 * The listing under a variant of the store, else under a SKU; undefined when there is none.
 *
 * @throws Failure `conflict`, reason `ambiguous_sku`, when nobody can say which offer it is
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

/** One listing with what it is to be now and the prices that the store has confirmed, newest first. */
export interface ListingHistory {
  row: ListingRow
  wanted: ListingContent | null
  prices: ListingPrice[]
}

/** Prices that are shown: a change a day makes more than a quarter of a year. */
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
  return { row, prices, wanted: assessed[0]?.decision.content ?? null }
}

const recordsOf = ({ row, decision: { content } }: Assessed): ListingRecord[] =>
  content === null ? [] : [listingRecord(row, content)]
