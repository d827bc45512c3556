import { setImmediate as turn } from 'node:timers/promises'
import type { StorePolicy } from '../domain/listing.ts'
import {
  addPreview,
  noPreviews,
  type PreviewKind,
  type PreviewTotals,
  type PricePreview,
  previewPrice,
} from '../domain/price-preview.ts'
import type { Database } from '../storage/database.ts'
import { first } from '../storage/database.ts'
import { lastPlaceOfOffers, type Offer, offersBySku, offersFromPlace } from '../storage/offers.ts'
import { assess, factsOf, type SellingStore } from './assess.ts'

/** The preview of one listing. */
export interface PreviewedListing extends PricePreview {
  id: string
  sku: string
  name: string
  /** Whether the store has the listing, or begins it next. */
  listed: boolean
}

export interface PreviewQuery {
  /** Whether all listings are looked at, or a sample that is quick to answer. */
  whole: boolean
  kind: PreviewKind
  /** How many changed listings of this kind are skipped, and how many are returned at most. */
  skip: number
  limit: number
}

export interface PreviewedPrices {
  totals: PreviewTotals
  listings: PreviewedListing[]
}

/** How many offers are looked at before other work has its turn. */
const BATCH = 100
/** The sample: the products with rules of their own, and as many offers at places that lie evenly across the catalogue. */
const SAMPLE_PLACES = 10
const SAMPLE_AT_EACH = 8
const SAMPLE_NAMED = 20

/**
 * Computes what other rules would do to the prices of a store, from what is stored: nothing is read from the supplier, and nothing is
 * changed. Listings that the store ignores, or that have no offer, are left out.
 *
 * @param after how the store would sell
 * @param at epoch milliseconds: the rates of this instant count
 */
export async function previewPrices(
  db: Pick<Database, 'query'>,
  store: SellingStore,
  after: StorePolicy,
  { whole, kind, skip, limit }: PreviewQuery,
  at: number,
): Promise<PreviewedPrices> {
  const totals = noPreviews()
  const listings: PreviewedListing[] = []
  const policies = { before: store.policy, after }
  for await (const offers of whole ? allOffers(db) : sampleOf(db, after)) {
    const read = new Set(offers.map(({ productId }) => productId))
    for (const { row, match } of await assess(db, store, { offers }, at)) {
      // A listing comes once: with its offer.
      if (match.outcome !== 'matched' || !read.has(match.offer.productId)) continue
      const preview = previewPrice(match.offer, factsOf(row), policies, at)
      addPreview(totals, preview)
      if (!preview.kinds.includes(kind)) continue
      const place = totals.changed[kind] - 1
      if (place < skip || place >= skip + limit) continue
      listings.push({ ...preview, id: row.variant, sku: row.sku, name: match.offer.name, listed: row.version > 0 })
    }
  }
  return { totals, listings }
}

async function* allOffers(db: Pick<Database, 'query'>): AsyncGenerator<Offer[]> {
  for (let after = 0; ; ) {
    const offers = await db.query(offersFromPlace(after, BATCH))
    if (offers.length > 0) yield offers
    if (offers.length < BATCH) return
    after = offers.at(-1)?.rowid ?? after
    // A read of a file takes no turn of the event loop.
    await turn()
  }
}

async function* sampleOf(db: Pick<Database, 'query'>, { pricing }: StorePolicy): AsyncGenerator<Offer[]> {
  const named = [...pricing.rules.products.keys()].slice(-SAMPLE_NAMED)
  const last = (await first(db, lastPlaceOfOffers()))?.last ?? 0
  const places = Array.from({ length: SAMPLE_PLACES }, (_, index) => Math.floor((last * index) / SAMPLE_PLACES))
  const found = await Promise.all([
    named.length === 0 ? [] : db.query(offersBySku(named)),
    ...places.map((place) => db.query(offersFromPlace(place, SAMPLE_AT_EACH))),
  ])
  yield [...new Map(found.flat().map((offer) => [offer.productId, offer])).values()]
}
