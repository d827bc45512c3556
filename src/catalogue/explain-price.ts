import type { PublishedOffer } from '../domain/listing.ts'
import { explainPrice } from '../domain/price-steps.ts'
import type { Priced } from '../domain/pricing.ts'
import { explainStock, type PublishedStock, type StockStep } from '../domain/stock.ts'
import { Failure } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import { offersBySku } from '../storage/offers.ts'
import type { SellingStore } from './assess.ts'

/** How the price and the stock of an offer come about in one store. */
export interface Explanation {
  offer: PublishedOffer & { productId: string }
  price: Priced
  stock: PublishedStock & { steps: StockStep[] }
}

/**
 * Explains what a store sells the offer of this SKU for, as of an instant, and how many units it shows.
 *
 * @throws Failure `not_found` when no offer that the supplier still has is under the SKU
 * @throws Failure `conflict`, reason `ambiguous_sku`, when two are
 */
export async function explainOffer(
  db: Database,
  store: Pick<SellingStore, 'terms'>,
  sku: string,
  at: number,
): Promise<Explanation> {
  const [offer, other] = await db.query(offersBySku([sku]))
  if (!offer) throw new Failure('not_found', `the supplier sells nothing under the SKU ${sku}`)
  if (other) {
    const message = `the SKU ${sku} names two offers: ${offer.productId} and ${other.productId}`
    throw new Failure('conflict', message, { reason: 'ambiguous_sku' })
  }
  const { pricing, stock } = store.terms
  return { offer, price: explainPrice(offer, pricing, at), stock: explainStock(offer, stock) }
}
