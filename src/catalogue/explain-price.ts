import { type PublishedOffer, passesFilter } from '../domain/listing.ts'
import { explainPrice } from '../domain/price-steps.ts'
import type { Priced } from '../domain/pricing.ts'
import { explainStock, type PublishedStock, type StockStep } from '../domain/stock.ts'
import { Failure } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import { type ListingRow, listingsOfProducts, listingsOfSkus, listingsOfVariants } from '../storage/listings.ts'
import { offersBySku } from '../storage/offers.ts'
import type { SellingStore } from './assess.ts'

/** How the price and the stock of an offer come about in one store. */
export interface Explanation {
  offer: PublishedOffer & { productId: string }
  price: Priced
  stock: PublishedStock & { steps: StockStep[] }
  /** What the store has of it, by variant: the price above need not be there. */
  listings: ListingRow[]
  /** Why none is begun for it, however well it passes: this listing of something else stands under its SKU. */
  takenBy: Pick<ListingRow, 'variant' | 'productId'> | null
  /** Whether the store would begin to list it of its own accord. */
  passes: boolean
}

/**
 * Explains what a store sells the offer of this SKU for, as of an instant, and how many units it shows.
 *
 * @throws Failure `not_found` when no offer that the supplier still has is under the SKU
 * @throws Failure `conflict`, reason `ambiguous_sku`, when two are
 */
export async function explainOffer(db: Database, store: SellingStore, sku: string, at: number): Promise<Explanation> {
  const [offer, other] = await db.query(offersBySku([sku]))
  if (!offer) throw new Failure('not_found', `the supplier sells nothing under the SKU ${sku}`)
  if (other) {
    const message = `the SKU ${sku} names two offers: ${offer.productId} and ${other.productId}`
    throw new Failure('conflict', message, { reason: 'ambiguous_sku' })
  }
  const { pricing, stock, filter } = store.terms
  const [linked, named, under] = await Promise.all([
    db.query(listingsOfProducts(store.id, [offer.productId])),
    db.query(listingsOfSkus(store.id, [sku])),
    db.query(listingsOfVariants(store.id, [sku])),
  ])
  const own = named.filter(({ productId }) => productId === null || productId === offer.productId)
  const listings = [...new Map([...linked, ...own].map((row) => [row.variant, row])).values()]
  const takenBy = listings.length === 0 ? ([...under, ...named][0] ?? null) : null
  const explained = { price: explainPrice(offer, pricing, at), stock: explainStock(offer, stock) }
  return { offer, ...explained, listings, takenBy, passes: passesFilter(offer, filter) }
}
