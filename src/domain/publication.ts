/**
 * What is pushed to a store about a listing, decided from what the store is known to have. Rows are tried from the top:
 *
 *   | the listing                                    | pushed stock           | state
 *   | ignored                                        | nothing is pushed      | ignored
 *   | its SKU is ambiguous, missing, a duplicate     | 0, at the known price  | held, by that reason
 *   | its offer is gone, filtered out, unlinked      | 0, at the known price  | synced; held if never pushed
 *   | the store is paused                            | 0, at the known price  | synced; held if never pushed
 *   | it has no price: a cost fault, no rate         | 0, at the known price  | held, by that reason
 *   | the store may sell it under the floor, because | 0, at the known price  | failed, as before
 *   |   it did not take the last push                |                        |
 *   | its price jumps, the known one clears the floor| as usual, known price  | held, price_jump
 *   | its price jumps, the known one does not        | 0, at the known price  | held, price_jump
 *   | the store did not take the new price, and the  | 0, at the new price    | pending: the stock follows
 *   |   known one is under the floor                 |                        |
 *   | anything else                                  | as usual, new price    | synced
 *
 * There is no push if the store is known to have its content. Only the last row brings a listing to a store for the first
 * time. A store may take a push without confirming it: if no price is known, the last pushed price counts as known.
 */

import type { ListingReason } from './labels.ts'
import type { PublishedOffer, StorePolicy } from './listing.ts'
import { isJump, priceOf } from './pricing.ts'
import { publishedStock } from './stock.ts'

/** What a store has, or should have, under one variant. Amounts in minor units of `currency`. */
export interface ListingContent {
  priceMinor: number
  compareAtMinor: number | null
  currency: string
  /** Units that can be bought; null when they are not counted. */
  stock: number | null
  available: boolean
  name: string
  category: string | null
  /** The listing is hidden, or is to be: the supplier no longer sells it, and the merchant wants such listings hidden. */
  isGone: boolean
}

/** Why a person must link a variant. */
export const unclear = ['ambiguous_sku', 'missing', 'duplicate_sku'] as const
export type Unclear = (typeof unclear)[number]

type MatchedOffer = PublishedOffer & { productId: string }

/** The offer of a variant, or why it has none. */
export type Match<O extends MatchedOffer = MatchedOffer> =
  | { outcome: 'matched'; offer: O }
  | { outcome: Unclear; detail: string }
  /** There is nothing to sell, and nothing to decide. */
  | { outcome: 'gone' }
  | { outcome: 'filtered' }
  | { outcome: 'unlinked' }
  | { outcome: 'ignored' }

export interface ListingFacts {
  /** What the store last confirmed or stated in an answer; null when it did neither. */
  known: ListingContent | null
  /** The unconfirmed push, without its stock; null when there is none. */
  sent: ListingContent | null
  /** Whether the store may have taken `sent`, and so no longer have `known`. */
  open: boolean
  /** Whether the store answered the last push and did not take it. */
  failing: boolean
  jumpFrom: { priceMinor: number; currency: string } | null
  /** False while it is not known whether the last push arrived. The push is then repeated, even if it equals `known`. */
  settled: boolean
  /** A price that a person has approved, however large its jump. */
  approvedPriceMinor: number | null
}

export interface ListingDecision {
  /** The state of the listing once the push has succeeded. */
  state: 'synced' | 'held' | 'ignored' | 'failed' | 'pending'
  reason: ListingReason | null
  /** A sentence for people. */
  detail: string | null
  /** The price that waits for a person's approval. */
  wantedPriceMinor: number | null
  /** The cost behind a new price in `content`, in minor units of the supplier's currency; null when the price is not new. */
  costMinor: number | null
  /** The lowest allowed price, in minor units of the currency of a new price; null when there is no floor. */
  floorMinor: number | null
  /** What the store should have; null when it never had the listing and must not get it now. */
  content: ListingContent | null
  push: boolean
  /** The listing is withdrawn: `content` repeats the price that the store has, and only the stock changes. */
  stockAlone?: boolean
}

const withdrawalTexts: Record<'gone' | 'filtered' | 'unlinked', string> = {
  gone: 'the supplier has taken it out of its catalogue',
  filtered: 'it does not pass the import filters of the store any more',
  unlinked: 'it is linked to no offer any more',
}

/** @param at epoch milliseconds: the rates of this instant count */
export function decideListing(match: Match, facts: ListingFacts, policy: StorePolicy, at: number): ListingDecision {
  const { known } = facts
  const none = { reason: null, detail: null, wantedPriceMinor: null, costMinor: null, floorMinor: null }
  if (match.outcome === 'ignored') return { ...none, state: 'ignored', content: null, push: false }
  if (match.outcome === 'gone' || match.outcome === 'filtered' || match.outcome === 'unlinked') {
    const state = known === null && facts.sent === null ? 'held' : 'synced'
    const isGone = match.outcome === 'gone' && policy.products?.unpublishGone === true
    return withdrawn({ ...none, state, reason: match.outcome, detail: withdrawalTexts[match.outcome] }, facts, isGone)
  }
  if ('detail' in match) {
    return withdrawn({ ...none, state: 'held', reason: match.outcome, detail: match.detail }, facts)
  }
  if (policy.isPaused) {
    const state = known === null && facts.sent === null ? 'held' : 'synced'
    return withdrawn({ ...none, state, reason: 'paused', detail: 'the store is paused, and sells nothing' }, facts)
  }
  const { offer } = match
  const priced = priceOf(offer, policy.pricing, at)
  if (priced.outcome === 'held') {
    return withdrawn({ ...none, state: 'held', reason: priced.reason, detail: priced.detail }, facts)
  }
  const { priceMinor, compareAtMinor, floorMinor, currency } = priced
  const wanted = {
    priceMinor,
    compareAtMinor,
    currency,
    ...publishedStock(offer, policy.stock),
    name: offer.name,
    category: offer.category,
    isGone: false,
  }
  const floor = { priceMinor: floorMinor, currency }
  if (facts.failing && mayUndersell(facts, floor)) return withdrawn({ ...none, floorMinor, state: 'failed' }, facts)
  const { jumpFrom } = facts
  const jumps =
    known !== null &&
    jumpFrom !== null &&
    jumpFrom.currency === currency &&
    facts.approvedPriceMinor !== priceMinor &&
    isJump(jumpFrom.priceMinor, priceMinor, policy.pricing.rules)
  if (!jumps) {
    const next = { ...none, floorMinor, costMinor: offer.costMinor }
    if (!facts.failing || known === null || !isUnder(known, floor)) {
      return pushed({ ...next, state: 'synced', content: wanted }, facts)
    }
    // The stock follows with the next push, once the store has taken the price.
    return pushed({ ...next, state: 'pending', content: { ...wanted, ...nothing } }, facts)
  }
  const held = { ...none, floorMinor, state: 'held', reason: 'price_jump', wantedPriceMinor: priceMinor } as const
  if (known.currency !== currency || known.priceMinor < floorMinor) {
    return withdrawn({ ...held, detail: 'the price that the store has would be under cost and margin' }, facts)
  }
  const content = { ...wanted, priceMinor: known.priceMinor, compareAtMinor: known.compareAtMinor }
  return pushed({ ...held, detail: 'the store keeps the price that it has', content }, facts)
}

type DecisionBase = Omit<ListingDecision, 'content' | 'push'>

const nothing = { stock: 0, available: false } as const

/** Withdraws a listing: the store gets no stock, at the price that it has. */
function withdrawn(base: DecisionBase, facts: ListingFacts, isGone = false): ListingDecision {
  const content = facts.known ?? facts.sent
  return content === null
    ? { ...base, content: null, push: false }
    : { ...pushed({ ...base, content: { ...content, ...nothing, isGone } }, facts), stockAlone: true }
}

type Floor = Pick<ListingContent, 'priceMinor' | 'currency'>

/** Whether a store may be selling a listing under its floor, or at a price that cannot be compared with the floor. */
export const mayUndersell = (
  { known, sent, open }: Pick<ListingFacts, 'known' | 'sent' | 'open'>,
  floor: Floor,
): boolean =>
  (known !== null && canBeBought(known) && isUnder(known, floor)) || (open && sent !== null && isUnder(sent, floor))

export const canBeBought = ({ stock, available }: ListingContent): boolean => stock !== 0 || available

const isUnder = ({ priceMinor, currency }: ListingContent, floor: Floor): boolean =>
  currency !== floor.currency || priceMinor < floor.priceMinor

const pushed = (
  decision: DecisionBase & { content: ListingContent },
  { known, settled }: ListingFacts,
): ListingDecision => ({ ...decision, push: !settled || known === null || !isSame(known, decision.content) })

const isSame = (one: ListingContent, other: ListingContent): boolean =>
  (Object.keys(other) as (keyof ListingContent)[]).every((field) => one[field] === other[field])
