import { formatDecimal } from './money.ts'
import type { SupplierOffer } from './placement.ts'

/** What the supplier said about one offer. Amounts in minor units of `currency`, instants in epoch milliseconds. */
export interface OfferFact {
  productId: string
  sku: string
  name: string
  category: string | null
  /** The API/VIP price of one unit. */
  costMinor: number
  basePriceMinor: number | null
  cashbackMinor: number | null
  currency: string
  localStock: number | null
  providerStock: number | null
  /** 1 when the supplier says that it can be bought, else 0. */
  available: number
  origin: string | null
  /** When it was true at the supplier. */
  asOf: number
}

/** One field in which an offer changed, as a person reads it; null for what is not there. */
export interface Difference {
  field: string
  before: string | null
  after: string | null
}

/**
 * The supplier's record as a fact of ours.
 *
 * A record cannot have changed after it was asked for: a stated instant in the future comes from a wrong clock, and
 * would shut out every later fact if it were believed.
 *
 * @param readAt when it was asked for, before the request left
 */
export const factOf = (offer: SupplierOffer, readAt: number): OfferFact => ({
  productId: offer.productId,
  sku: offer.sku,
  name: offer.name,
  category: offer.category ?? null,
  costMinor: offer.costMinor,
  basePriceMinor: offer.basePriceMinor ?? null,
  cashbackMinor: offer.cashbackMinor ?? null,
  currency: offer.currency,
  localStock: offer.localStock ?? null,
  providerStock: offer.providerStock ?? null,
  available: offer.available ? 1 : 0,
  origin: offer.origin ?? null,
  asOf: Math.min(offer.asOf ?? readAt, readAt),
})

/**
 * Whether a fact takes the place of what is stored.
 *
 * The newer as-of wins. Of two facts with one as-of (a supplier whose records do not say, or whose instant stays the
 * same when only the stock moves) the one that was asked for later wins. An offer that was marked gone takes whatever
 * was asked for since: being listed again is news, however old the record.
 */
export function supersedes(
  stored: { asOf: number; changedAt: number; goneAt: number | null },
  fact: { asOf: number },
  readAt: number,
): boolean {
  if (stored.goneAt !== null) return readAt >= stored.goneAt
  return fact.asOf > stored.asOf || (fact.asOf === stored.asOf && readAt >= stored.changedAt)
}

/** Every field in which two facts about one offer differ. */
export const differences = (before: OfferFact, after: OfferFact): Difference[] =>
  shown
    .map(([field, text]) => ({ field, before: text(before), after: text(after) }))
    .filter((difference) => difference.before !== difference.after)

/**
 * Units that can be bought: what is known of both stocks together, 0 for an unavailable offer.
 *
 * @returns null when it is available and the supplier states neither stock
 */
export function availableStock(offer: Pick<OfferFact, 'localStock' | 'providerStock' | 'available'>): number | null {
  if (offer.available !== 1) return 0
  if (offer.localStock === null && offer.providerStock === null) return null
  return (offer.localStock ?? 0) + (offer.providerStock ?? 0)
}

/** Whether a purchase that waits for stock or for a lower price has a reason to be tried again. */
export function mayEndHolds(before: OfferFact, after: OfferFact): boolean {
  // A part of a larger quantity may wait while some units are left: any rise of the stock is a reason.
  const [had, has] = [before, after].map((offer) => availableStock(offer) ?? Number.POSITIVE_INFINITY)
  return (has ?? 0) > (had ?? 0) || (after.currency === before.currency && after.costMinor < before.costMinor)
}

const shown: [field: string, text: (offer: OfferFact) => string | null][] = [
  ['sku', (offer) => offer.sku],
  ['name', (offer) => offer.name],
  ['category', (offer) => offer.category],
  ['cost', (offer) => amountText(offer.costMinor, offer)],
  ['basePrice', (offer) => amountText(offer.basePriceMinor, offer)],
  ['cashback', (offer) => amountText(offer.cashbackMinor, offer)],
  ['currency', (offer) => offer.currency],
  ['localStock', (offer) => offer.localStock?.toString() ?? null],
  ['providerStock', (offer) => offer.providerStock?.toString() ?? null],
  ['availability', (offer) => (offer.available === 1 ? 'available' : 'unavailable')],
  ['origin', (offer) => offer.origin],
]

const amountText = (minor: number | null, { currency }: OfferFact): string | null =>
  minor === null ? null : formatDecimal({ minor, currency })
