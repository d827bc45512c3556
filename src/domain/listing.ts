import { availableStock } from './offer.ts'
import type { PricedOffer, PricingPolicy } from './pricing.ts'
import type { StockedOffer, StockPolicy } from './stock.ts'

/**
 * `synced`: the store has confirmed the wanted state. `pending`: a push is under way or queued. `held`: a person must
 * decide. `failed`: the store did not take the last push. `ignored`: a person has excluded the listing.
 */
export const listingStates = ['synced', 'pending', 'held', 'failed', 'ignored'] as const
export type ListingState = (typeof listingStates)[number]

/** What links a listing to its offer: the SKU, a person, or an imported file. */
export const linkers = ['sku', 'person', 'csv'] as const
export type LinkedBy = (typeof linkers)[number]

/** The fields of an offer that a listing depends on. */
export interface PublishedOffer extends PricedOffer, StockedOffer {
  name: string
}

/** Which offers a store lists by itself, under their SKUs. */
export interface ImportFilter {
  /** `linked`: only offers that a person or a file has linked. */
  mode: 'all' | 'linked'
  /** Only offers of these categories; null: of any category. */
  categories: string[] | null
  /** Only offers with this text in their name or SKU, in upper or lower case; null: any offer. */
  text: string | null
  /** The lowest and the highest cost that pass, in minor units of the supplier's currency; null: no bound. */
  costMinMinor: number | null
  costMaxMinor: number | null
  inStockOnly: boolean
}

export interface StorePolicy {
  pricing: PricingPolicy
  stock: StockPolicy
  filter: ImportFilter
  /**
   * For a store with products of its own. `create`: how a product that the store lacks is created; null: not at all.
   * `unpublishGone`: a product is hidden once the supplier no longer sells it. Absent for a store that takes every offer by SKU.
   */
  products?: { create: 'draft' | 'publish' | null; unpublishGone: boolean }
  /** The store sells nothing: each listing is shown without stock. Absent while it sells, so that it changes no digest. */
  isPaused?: true
}

/** Whether a store lists an offer by itself, without a link. */
export function passesFilter(offer: PublishedOffer, filter: ImportFilter): boolean {
  const { categories, text, costMinMinor, costMaxMinor } = filter
  if (filter.mode === 'linked') return false
  if (categories !== null && !categories.includes(offer.category ?? '')) return false
  if (text !== null && !`${offer.name}\n${offer.sku}`.toLowerCase().includes(text.toLowerCase())) return false
  if (costMinMinor !== null && offer.costMinor < costMinMinor) return false
  if (costMaxMinor !== null && offer.costMinor > costMaxMinor) return false
  return !filter.inStockOnly || availableStock(offer) !== 0
}

/** Whether a change of an offer may change one of its listings. */
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
