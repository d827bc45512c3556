import { formatDecimal } from './money.ts'
import type { SupplierOffer } from './supplier.ts'

/**
 * Why a cost cannot be believed: not stated or not readable, zero, below zero, or in another currency than the supplier
 * sells in.
 */
export type CostFault = 'missing' | 'zero' | 'negative' | 'currency'

/** The as-of of a record whose own instant cannot be read: as old as what is stored, and older than all that is dated. */
export const UNDATED = 0

/** What the supplier said about one offer. Amounts in minor units of `currency`, instants in epoch milliseconds. */
export interface OfferFact {
  productId: string
  sku: string
  name: string
  category: string | null
  /** The API/VIP price of one unit; with a fault the last good one, 0 when there never was one. */
  costMinor: number
  costFault: CostFault | null
  basePriceMinor: number | null
  cashbackMinor: number | null
  currency: string
  localStock: number | null
  providerStock: number | null
  /** 1 when the supplier says that it can be bought, else 0. */
  available: number
  origin: string | null
  /** When it was true at the supplier; `UNDATED` where that cannot be read. */
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
  costFault: offer.costFault ?? null,
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
 * was asked for since: being listed again is news, however old the record. A record whose instant cannot be read is as old
 * as what is stored.
 *
 * An offer that a purchase found empty has the as-of of the record before: whatever was asked for before that cannot know of
 * it, however new it is, and would put it on sale again. It takes only what was asked for since, cost and all: until then
 * nothing is sold of it.
 */
export function supersedes(
  stored: Pick<OfferFact, 'asOf' | 'available' | 'localStock' | 'providerStock'> & {
    changedAt: number
    goneAt: number | null
  },
  fact: { asOf: number },
  readAt: number,
): boolean {
  if (stored.goneAt !== null) return readAt >= stored.goneAt
  if (readAt >= stored.changedAt) return fact.asOf >= stored.asOf || fact.asOf === UNDATED
  return fact.asOf > stored.asOf && !mayBeFoundEmpty(stored)
}

/** Unavailable with units left, or uncounted: what a purchase that found none leaves, and hardly any record says. */
const mayBeFoundEmpty = (stored: Pick<OfferFact, 'available' | 'localStock' | 'providerStock'>): boolean =>
  stored.available !== 1 && availableStock({ ...stored, available: 1 }) !== 0

/**
 * A fact whose instant cannot be read, as old as what is stored: dated by its request, it would shut out the dated facts
 * that follow.
 *
 * @param before what is stored; undefined for a new offer
 */
export const datedBy = (before: OfferFact | undefined, fact: OfferFact): OfferFact =>
  fact.asOf === UNDATED && before !== undefined ? { ...fact, asOf: before.asOf } : fact

/**
 * A fact whose cost cannot be believed, with the last good cost and its currency in its place.
 *
 * Base price and cashback of a record in another currency are no amounts in ours, so they stay as they were too.
 *
 * @param before what is stored; undefined for a new offer, whose cost is then 0
 */
export function withLastCost(before: OfferFact | undefined, fact: OfferFact): OfferFact {
  if (fact.costFault === null) return fact
  if (fact.costFault === 'currency') {
    const { costMinor = 0, basePriceMinor = null, cashbackMinor = null, currency = fact.currency } = before ?? {}
    return { ...fact, costMinor, basePriceMinor, cashbackMinor, currency }
  }
  return { ...fact, costMinor: before?.currency === fact.currency ? before.costMinor : 0 }
}

/** Whether two facts about one offer say the same: what `differences` finds, without the words for people. */
export const saySame = (before: OfferFact, after: OfferFact): boolean =>
  before.costMinor === after.costMinor &&
  before.localStock === after.localStock &&
  before.providerStock === after.providerStock &&
  before.available === after.available &&
  before.costFault === after.costFault &&
  before.basePriceMinor === after.basePriceMinor &&
  before.cashbackMinor === after.cashbackMinor &&
  before.sku === after.sku &&
  before.name === after.name &&
  before.category === after.category &&
  before.currency === after.currency &&
  before.origin === after.origin

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

/** Whether a purchase that waits for stock, for a lower price or for one that can be believed may be tried again. */
export function mayEndHolds(before: OfferFact, after: OfferFact): boolean {
  // A part of a larger quantity may wait while some units are left: any rise of the stock is a reason.
  const [had, has] = [before, after].map((offer) => availableStock(offer) ?? Number.POSITIVE_INFINITY)
  if ((has ?? 0) > (had ?? 0)) return true
  if (before.costFault !== null && after.costFault === null) return true
  return after.currency === before.currency && after.costMinor < before.costMinor
}

const shown: [field: string, text: (offer: OfferFact) => string | null][] = [
  ['sku', (offer) => offer.sku],
  ['name', (offer) => offer.name],
  ['category', (offer) => offer.category],
  ['cost', (offer) => amountText(offer.costMinor, offer)],
  ['costFault', (offer) => offer.costFault],
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
