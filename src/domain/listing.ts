import { availableStock } from './offer.ts'
import type { PricedOffer, PricingPolicy } from './pricing.ts'
import type { StockedOffer, StockPolicy } from './stock.ts'

/**
 * How a listing stands: the store has what it is to have; that is being told or will be; a person must decide; the store
 * refused it; it is none of ours.
 */
export const listingStates = ['synced', 'pending', 'held', 'failed', 'ignored'] as const
export type ListingState = (typeof listingStates)[number]

/** Who said which offer it is: its SKU, a person, or an imported file. */
export const linkers = ['sku', 'person', 'csv'] as const
export type LinkedBy = (typeof linkers)[number]

/** What of an offer a listing depends on. */
export interface PublishedOffer extends PricedOffer, StockedOffer {
  name: string
}

/** Which offers a store lists of itself, under their SKUs. */
export interface ImportFilter {
  /** `linked`: only those that a person or a file has linked. */
  mode: 'all' | 'linked'
  /** Only these; null: any. */
  categories: string[] | null
  /** Only those with this in their name or SKU, however it is written; null: any. */
  text: string | null
  /** Bounds of the cost, both allowed, in minor units of the supplier's currency; null: none. */
  costMinMinor: number | null
  costMaxMinor: number | null
  inStockOnly: boolean
}

/** What a store sells by. */
export interface StorePolicy {
  pricing: PricingPolicy
  stock: StockPolicy
  filter: ImportFilter
}

/** Whether a store lists an offer that nobody linked. */
export function passesFilter(offer: PublishedOffer, filter: ImportFilter): boolean {
  const { categories, text, costMinMinor, costMaxMinor } = filter
  if (filter.mode === 'linked') return false
  if (categories !== null && !categories.includes(offer.category ?? '')) return false
  if (text !== null && !`${offer.name}\n${offer.sku}`.toLowerCase().includes(text.toLowerCase())) return false
  if (costMinMinor !== null && offer.costMinor < costMinMinor) return false
  if (costMaxMinor !== null && offer.costMinor > costMaxMinor) return false
  return !filter.inStockOnly || availableStock(offer) !== 0
}

/** Whether the listings of an offer may look different after a change, whatever the policy of a store. */
export const mattersToListings = (before: PublishedOffer, after: PublishedOffer): boolean =>
  before.costMinor !== after.costMinor ||
  before.costFault !== after.costFault ||
  before.basePriceMinor !== after.basePriceMinor ||
  before.currency !== after.currency ||
  before.sku !== after.sku ||
  before.name !== after.name ||
  before.category !== after.category ||
  before.localStock !== after.localStock ||
  before.providerStock !== after.providerStock ||
  before.available !== after.available
