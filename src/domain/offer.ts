import { beginning } from './free-text.ts'
import { formatDecimal } from './money.ts'
import type { StockedOffer } from './stock.ts'
import type { SupplierOffer } from './supplier.ts'

/** Why a cost is invalid: missing or unreadable, zero, negative, or in another currency than the supplier sells in. */
export type CostFault = 'missing' | 'zero' | 'negative' | 'currency'

/** The as-of of a record whose instant cannot be read. It counts as old as the stored fact, or as oldest if none is stored. */
export const UNDATED = 0

/** The same record with null, in place of undefined, for each field that is not stated. */
type Stated<T> = { [K in keyof T]-?: undefined extends T[K] ? Exclude<T[K], undefined> | null : T[K] }

/** The supplier's facts about one offer. Amounts in minor units of `currency`, instants in epoch milliseconds. */
export interface OfferFact extends Stated<Omit<SupplierOffer, 'asOf' | 'unread'>> {
  /** What one unit costs us (the API/VIP price). With a `costFault`, the last good price, or 0 when there never was one. */
  costMinor: number
  /** When this fact was true at the supplier; `UNDATED` where that instant cannot be read. */
  asOf: number
}

/** A changed field of an offer, as text for people; null for a missing value. */
export interface Difference {
  field: string
  before: string | null
  after: string | null
}

/**
 * The supplier's record as a fact.
 *
 * An as-of after the request comes from a wrong clock and would block every later fact, so the instant of the request
 * replaces it.
 *
 * @param readAt instant before the request left
 */
export const factOf = (offer: SupplierOffer, readAt: number): OfferFact => ({
  productId: offer.productId,
  sku: offer.sku,
  name: offer.name,
  category: offer.category ?? null,
  description: offer.description || null,
  image: offer.image || null,
  costMinor: offer.costMinor,
  costFault: offer.costFault ?? null,
  basePriceMinor: offer.basePriceMinor ?? null,
  cashbackMinor: offer.cashbackMinor ?? null,
  currency: offer.currency,
  localStock: offer.localStock ?? null,
  providerStock: offer.providerStock ?? null,
  available: offer.available,
  origin: offer.origin ?? null,
  asOf: Math.min(offer.asOf ?? readAt, readAt),
})

/**
 * Whether a fact replaces the stored one.
 *
 * The newer as-of wins. If both are equal (records have no as-of, or a change of the stock leaves it as it is), the later request
 * wins. A record with an unreadable instant counts as old as the stored fact. For an offer that was marked gone, any later
 * request wins: the offer is listed again, however old its record is.
 *
 * If a purchase found the offer out of stock, only a later request counts, and the offer is not sold until then. An earlier
 * request does not know that the stock is used up, and would put the offer on sale again.
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

/** Whether an offer is unavailable although its stock is not zero. A purchase that found no stock marks it so; few records do. */
const mayBeFoundEmpty = (stored: StockedOffer): boolean =>
  !stored.available && availableStock({ ...stored, available: true }) !== 0

/**
 * Gives a fact with an unreadable instant the as-of of the stored fact. If the fact had the instant of its request, it would
 * block the dated facts that follow.
 *
 * @param before the stored fact; undefined for a new offer
 */
export const datedBy = (before: OfferFact | undefined, fact: OfferFact): OfferFact =>
  fact.asOf === UNDATED && before !== undefined ? { ...fact, asOf: before.asOf } : fact

/**
 * Replaces an invalid cost by the last good cost.
 *
 * If the record is in another currency, its base price and cashback cannot be used either, and the stored amounts stay.
 *
 * @param before the stored fact; undefined for a new offer, whose cost is then 0
 */
export function withLastCost(before: OfferFact | undefined, fact: OfferFact): OfferFact {
  if (fact.costFault === null) return fact
  if (fact.costFault === 'currency') {
    const { costMinor = 0, basePriceMinor = null, cashbackMinor = null, currency = fact.currency } = before ?? {}
    return { ...fact, costMinor, basePriceMinor, cashbackMinor, currency }
  }
  return { ...fact, costMinor: before?.currency === fact.currency ? before.costMinor : 0 }
}

/** Whether two facts about one offer are equal; `differences` names the fields. */
export const saySame = (before: OfferFact, after: OfferFact): boolean =>
  shown.every(([, column]) => before[column] === after[column])

/** Longest text that is stored of a change. A description is up to fifty times as long. */
const CHANGE_MAX = 200

export const differences = (before: OfferFact, after: OfferFact): Difference[] =>
  shown
    .map(([field, column, text = plain(column)]) => ({ field, before: text(before), after: text(after) }))
    .filter((difference) => difference.before !== difference.after)
    .map(({ field, ...texts }) => ({ field, before: changeText(texts.before), after: changeText(texts.after) }))

const changeText = (text: string | null): string | null =>
  text === null || text.length <= CHANGE_MAX ? text : `${beginning(text, CHANGE_MAX - 1)}…`

/**
 * Units that can be bought: the sum of the stated stocks, 0 for an unavailable offer.
 *
 * @returns null when the offer is available and the supplier states neither stock
 */
export function availableStock(offer: StockedOffer): number | null {
  if (!offer.available) return 0
  if (offer.localStock === null && offer.providerStock === null) return null
  return (offer.localStock ?? 0) + (offer.providerStock ?? 0)
}

/** Whether a purchase that waits for stock, a lower cost or a valid cost may be tried again. */
export function mayEndHolds(before: OfferFact, after: OfferFact): boolean {
  // A part may wait for more units than are left: any rise of the stock may be enough.
  const [had, has] = [before, after].map((offer) => availableStock(offer) ?? Number.POSITIVE_INFINITY)
  if ((has ?? 0) > (had ?? 0)) return true
  if (before.costFault !== null && after.costFault === null) return true
  return after.currency === before.currency && after.costMinor < before.costMinor
}

type Text = (offer: OfferFact) => string | null

const plain =
  (column: keyof OfferFact): Text =>
  (offer) =>
    offer[column]?.toString() ?? null

const amount =
  (column: 'costMinor' | 'basePriceMinor' | 'cashbackMinor'): Text =>
  ({ [column]: minor, currency }) =>
    minor === null ? null : formatDecimal({ minor, currency })

/** The compared columns, each under its name for people. */
const shown: [field: string, column: keyof OfferFact, text?: Text][] = [
  ['sku', 'sku'],
  ['name', 'name'],
  ['category', 'category'],
  ['description', 'description'],
  ['image', 'image'],
  ['cost', 'costMinor', amount('costMinor')],
  ['costFault', 'costFault'],
  ['basePrice', 'basePriceMinor', amount('basePriceMinor')],
  ['cashback', 'cashbackMinor', amount('cashbackMinor')],
  ['currency', 'currency'],
  ['localStock', 'localStock'],
  ['providerStock', 'providerStock'],
  ['availability', 'available', (offer) => (offer.available ? 'available' : 'unavailable')],
  ['origin', 'origin'],
]
