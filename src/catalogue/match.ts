import { type ImportFilter, passesFilter } from '../domain/listing.ts'
import type { Match } from '../domain/publication.ts'
import type { ListingRow } from '../storage/listings.ts'
import type { Offer } from '../storage/offers.ts'

/** What a match is found among. */
export interface Surroundings {
  /** Offers by product id, those that are gone included. */
  byProduct: ReadonlyMap<string, Offer>
  /** Offers that the supplier still has, by SKU. */
  bySku: ReadonlyMap<string, Offer[]>
  /** What the store sells, by the SKU that the store has for it. */
  listed: ReadonlyMap<string, Linked[]>
}

/** What of a listing its match depends on. */
export type Linked = Pick<ListingRow, 'variant' | 'sku' | 'linkedBy' | 'productId' | 'state'>

/**
 * Finds the offer of a listing: the one that a person or a file has linked, else the only one under its SKU, letter by
 * letter. Where there are several, or where several variants share the SKU, nobody guesses.
 */
export function matchListing(listing: Linked, around: Surroundings, filter: ImportFilter): Match {
  const { sku, linkedBy, productId } = listing
  if (listing.state === 'ignored') return { outcome: 'ignored' }
  const offer = productId === null ? undefined : around.byProduct.get(productId)
  if (linkedBy !== 'sku' && productId !== null) {
    if (!offer) return { outcome: 'missing', detail: `the supplier has no product ${productId}` }
    return offer.goneAt === null ? { outcome: 'matched', offer } : { outcome: 'gone' }
  }
  const candidates = around.bySku.get(sku) ?? []
  const [candidate, other] = candidates
  if (!candidate) return { ...withoutOffer(listing, offer) }
  if (linkedBy === 'sku' && !candidates.some((one) => passesFilter(one, filter))) return { outcome: 'filtered' }
  if (other) {
    const ids = candidates.map((one) => one.productId).join(', ')
    return { outcome: 'ambiguous_sku', detail: `the SKU ${sku} is of ${candidates.length} products: ${ids}` }
  }
  const twins =
    productId === null ? (around.listed.get(sku) ?? []).filter((one) => one.variant !== listing.variant) : []
  if (twins.some(({ state }) => state !== 'ignored')) {
    const variants = twins.map(({ variant }) => variant).join(', ')
    return { outcome: 'duplicate_sku', detail: `the store has the SKU ${sku} for other variants too: ${variants}` }
  }
  return { outcome: 'matched', offer: candidate }
}

function withoutOffer({ sku, linkedBy, productId }: Linked, offer: Offer | undefined): Match {
  if (offer && offer.goneAt !== null) return { outcome: 'gone' }
  if (offer) {
    const detail = `no product has the SKU ${sku} now; product ${offer.productId} has the SKU ${offer.sku}`
    return { outcome: 'missing', detail }
  }
  if (linkedBy === 'sku' && productId === null) return { outcome: 'unlinked' }
  return { outcome: 'missing', detail: `no product of the supplier has the SKU ${sku}` }
}

/** SKUs under which a store begins to list offers of its own accord: offers that pass its filters and that it has not. */
export const newSkus = (offers: Offer[], taken: ReadonlySet<string>, filter: ImportFilter): string[] => [
  ...new Set(
    offers
      .filter((offer) => offer.goneAt === null && !taken.has(offer.sku) && passesFilter(offer, filter))
      .map(({ sku }) => sku),
  ),
]
