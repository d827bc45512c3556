import { raiseByPercent } from './money.ts'
import { availableStock, type OfferFact } from './offer.ts'

/** An offer as sold in one store. */
export interface Listing {
  sku: string
  name: string
  category: string | null
  /** Retail price in minor units of `currency`. */
  priceMinor: number
  currency: string
  /** Units to publish; null when it can be bought and the supplier does not say how often. */
  stock: number | null
  available: boolean
}

/** What a listing is derived from. */
export type ListedOffer = Pick<
  OfferFact,
  'sku' | 'name' | 'category' | 'costMinor' | 'currency' | 'localStock' | 'providerStock' | 'available'
>

/**
 * The largest cost, in minor units, whose retail price is exact under every markup that the configuration takes (up to
 * 9999.9999 %, a factor of 101): some 890 billion euros. Above it a record is a fault of the supplier.
 */
export const COST_MAX_MINOR = Math.floor(Number.MAX_SAFE_INTEGER / 101)

/**
 * The listing of an offer in a store that adds this percentage to the cost.
 *
 * The price is never below the cost. Nothing is available that has no unit left.
 *
 * @param markupPercent decimal text such as `"20"`, not negative
 * @returns undefined when the cost is above `COST_MAX_MINOR`
 */
export function listingOf(offer: ListedOffer, markupPercent: string): Listing | undefined {
  if (offer.costMinor > COST_MAX_MINOR) return undefined
  const stock = availableStock(offer)
  return {
    sku: offer.sku,
    name: offer.name,
    category: offer.category,
    priceMinor: raiseByPercent(offer.costMinor, markupPercent),
    currency: offer.currency,
    stock,
    available: stock !== 0,
  }
}

/** Whether the listings of an offer look different after a change, whatever the markup. */
export const mattersToListings = (before: ListedOffer, after: ListedOffer): boolean =>
  before.costMinor !== after.costMinor ||
  before.currency !== after.currency ||
  before.sku !== after.sku ||
  before.name !== after.name ||
  before.category !== after.category ||
  availableStock(before) !== availableStock(after)
