import { type ListedOffer, type Listing, listingOf } from '../domain/listing.ts'
import { formatDecimal } from '../domain/money.ts'
import { Failure } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import { listOffers, offersByProduct, offersBySku } from '../storage/offers.ts'

/** What of a store its listings depend on. */
export interface ListingStore {
  /** Listing price = cost plus this; decimal text. */
  markupPercent: string
}

/** A listing as our API and callbacks show it. */
export interface ListingRecord extends Omit<Listing, 'priceMinor'> {
  /** Decimal text: `"12.99"`. */
  price: string
}

/**
 * A page of a store's listings: one for each offer that is not gone.
 *
 * @param query `after` is the `next` of the page before
 * @returns `next` undefined on the last page
 */
export async function listListings(
  db: Database,
  store: ListingStore,
  { after, limit }: { after?: string; limit: number },
): Promise<{ listings: ListingRecord[]; next: string | undefined }> {
  // One more than asked for tells whether another page follows.
  const offers = await db.query(listOffers({ limit: limit + 1, ...(after === undefined ? {} : { after }) }))
  const page = offers.slice(0, limit)
  return { listings: recordsOf(page, store), next: offers.length > limit ? page.at(-1)?.productId : undefined }
}

/**
 * The listing under a SKU; undefined when there is none.
 *
 * @throws Failure `conflict`, reason `ambiguous_sku`, naming both, when two offers have the SKU: nobody guesses
 */
export async function listingBySku(db: Database, store: ListingStore, sku: string): Promise<ListingRecord | undefined> {
  const [offer, other] = await db.query(offersBySku([sku]))
  if (!other) return recordsOf(offer ? [offer] : [], store)[0]
  throw new Failure('conflict', `the SKU ${sku} names two offers: ${offer?.productId} and ${other.productId}`, {
    reason: 'ambiguous_sku',
  })
}

/** The listings of these products as they are now, by product id; one that is gone is shown unavailable. */
export async function renderListings(
  db: Database,
  store: ListingStore,
  productIds: string[],
): Promise<ListingRecord[]> {
  const offers = productIds.length === 0 ? [] : await db.query(offersByProduct(productIds))
  offers.sort((left, right) => (left.productId < right.productId ? -1 : 1))
  return recordsOf(offers, store)
}

const recordsOf = (offers: ListedOffer[], { markupPercent }: ListingStore): ListingRecord[] =>
  offers.flatMap((offer) => {
    const listing = listingOf(offer, markupPercent)
    if (!listing) return []
    const { sku, name, category, priceMinor, currency, stock, available } = listing
    return [{ sku, name, category, price: formatDecimal({ minor: priceMinor, currency }), currency, stock, available }]
  })
