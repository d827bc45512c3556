/**
 * What a store is told about a listing, decided from what it is known to have. Rows are tried from the top:
 *
 *   | the listing                                    | stock told             | stands as
 *   | ignored                                        | nothing is told        | ignored
 *   | its SKU is ambiguous, missing, a duplicate     | 0, at the known price  | held, by that reason
 *   | its offer is gone, filtered out, unlinked      | 0, at the known price  | synced; held when it was never told
 *   | no price can be said: a cost fault, no rate    | 0, at the known price  | held, by that reason
 *   | the store may sell it under the floor, since   | 0, at the known price  | failed, as it stood
 *   |   it did not take what it was told last        |                        |
 *   | its price jumps, the known one clears the floor| as usual, known price  | held, price_jump
 *   | its price jumps, the known one does not        | 0, at the known price  | held, price_jump
 *   | it is withdrawn, and its known price still too | 0, at the new price    | pending: the stock follows
 *   |   low for a store that did not take the new one|                        |
 *   | anything else                                  | as usual, new price    | synced
 *
 * Nothing is told to a store that cannot have the listing, save by the last row; and nothing that it is known to have. One
 * that was told and has not confirmed may have it: where no price is known, the one that was told last stands for it.
 */
import type { PublishedOffer, StorePolicy } from './listing.ts'
import { isJump, priceOf } from './pricing.ts'
import { publishedStock } from './stock.ts'

/** What a store has, or is to have, under one variant. Amounts in minor units of `currency`. */
export interface ListingContent {
  priceMinor: number
  compareAtMinor: number | null
  currency: string
  /** Units that can be bought; null when nobody counts them. */
  stock: number | null
  available: boolean
  name: string
  category: string | null
}

/** Why a person must say which offer a variant is. */
export const unclear = ['ambiguous_sku', 'missing', 'duplicate_sku'] as const
export type Unclear = (typeof unclear)[number]

/** What a variant stands for. */
export type Match =
  | { outcome: 'matched'; offer: PublishedOffer & { productId: string } }
  | { outcome: Unclear; detail: string }
  /** There is nothing to sell, and nothing to decide. */
  | { outcome: 'gone' }
  | { outcome: 'filtered' }
  | { outcome: 'unlinked' }
  | { outcome: 'ignored' }

export interface ListingFacts {
  /** What the store has confirmed last, or said that it has; null when it did neither. */
  known: ListingContent | null
  /** What it was told and has not confirmed, with no stock; null when there is none. */
  sent: ListingContent | null
  /** Whether the store may have that in place of what is known. */
  open: boolean
  /** Whether the store answered and did not take what it was told last. */
  failing: boolean
  /** The price that a jump is measured from. */
  jumpFrom: { priceMinor: number; currency: string } | null
  /** False while it is open whether the last telling arrived: then the store is told again, whatever is known. */
  settled: boolean
  /** A price that a person has let pass, however large its jump. */
  approvedPriceMinor: number | null
}

export interface ListingDecision {
  /** How it stands once the store has been told. */
  state: 'synced' | 'held' | 'ignored' | 'failed' | 'pending'
  reason: string | null
  /** A sentence for people. */
  detail: string | null
  /** The price that waits for a person. */
  wantedPriceMinor: number | null
  /** The cost behind the price of `content` where it is a new price, in minor units of the supplier's currency. */
  costMinor: number | null
  /** What it may not be sold under; null when nothing can be said. In minor units of `content`, were it a new price. */
  floorMinor: number | null
  /** What the store is to have; null when it never had the listing and must not get it now. */
  content: ListingContent | null
  /** Whether the store is to be told so. */
  tell: boolean
}

const said: Record<'gone' | 'filtered' | 'unlinked', string> = {
  gone: 'the supplier has taken it out of its catalogue',
  filtered: 'it does not pass the import filters of the store any more',
  unlinked: 'it is linked to no offer any more',
}

/** @param at when it is to hold, epoch milliseconds: rates have a validity */
export function decideListing(match: Match, facts: ListingFacts, policy: StorePolicy, at: number): ListingDecision {
  const { known } = facts
  const none = { reason: null, detail: null, wantedPriceMinor: null, costMinor: null, floorMinor: null }
  if (match.outcome === 'ignored') return { ...none, state: 'ignored', content: null, tell: false }
  if (match.outcome === 'gone' || match.outcome === 'filtered' || match.outcome === 'unlinked') {
    const state = known === null && facts.sent === null ? 'held' : 'synced'
    return withdrawn({ ...none, state, reason: match.outcome, detail: said[match.outcome] }, facts)
  }
  if ('detail' in match) {
    return withdrawn({ ...none, state: 'held', reason: match.outcome, detail: match.detail }, facts)
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
      return told({ ...next, state: 'synced', content: wanted }, facts)
    }
    // The stock goes out with the next telling: only once the store has taken the price.
    return told({ ...next, state: 'pending', content: { ...wanted, ...nothing } }, facts)
  }
  const held = { ...none, floorMinor, state: 'held', reason: 'price_jump', wantedPriceMinor: priceMinor } as const
  if (known.currency !== currency || known.priceMinor < floorMinor) {
    return withdrawn({ ...held, detail: 'the price that the store has would be under cost and margin' }, facts)
  }
  const content = { ...wanted, priceMinor: known.priceMinor, compareAtMinor: known.compareAtMinor }
  return told({ ...held, detail: 'the store keeps the price that it has', content }, facts)
}

type Standing = Omit<ListingDecision, 'content' | 'tell'>

const nothing = { stock: 0, available: false } as const

/** Nothing of it can be bought now. */
function withdrawn(standing: Standing, facts: ListingFacts): ListingDecision {
  const content = facts.known ?? facts.sent
  return content === null
    ? { ...standing, content: null, tell: false }
    : told({ ...standing, content: { ...content, ...nothing } }, facts)
}

interface Floor {
  priceMinor: number
  currency: string
}

/** Whether a store may be selling a listing under its floor, or at a price that cannot be compared with it. */
export const mayUndersell = (
  { known, sent, open }: Pick<ListingFacts, 'known' | 'sent' | 'open'>,
  floor: Floor,
): boolean =>
  (known !== null && canBeBought(known) && isUnder(known, floor)) || (open && sent !== null && isUnder(sent, floor))

export const canBeBought = ({ stock, available }: ListingContent): boolean => stock !== 0 || available

const isUnder = ({ priceMinor, currency }: ListingContent, floor: Floor): boolean =>
  currency !== floor.currency || priceMinor < floor.priceMinor

const told = (decision: Standing & { content: ListingContent }, { known, settled }: ListingFacts): ListingDecision => ({
  ...decision,
  tell: !settled || known === null || !isSame(known, decision.content),
})

const isSame = (one: ListingContent, other: ListingContent): boolean =>
  one.priceMinor === other.priceMinor &&
  one.compareAtMinor === other.compareAtMinor &&
  one.currency === other.currency &&
  one.stock === other.stock &&
  one.available === other.available &&
  one.name === other.name &&
  one.category === other.category
