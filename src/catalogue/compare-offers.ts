import { mattersToListings } from '../domain/listing.ts'
import {
  type Difference,
  datedBy,
  differences,
  mayEndHolds,
  type OfferFact,
  saySame,
  supersedes,
  withLastCost,
} from '../domain/offer.ts'
import type { NewOffer, Offer } from '../storage/offers.ts'
import type { Catalogue } from './context.ts'
import type { Seen } from './seen.ts'

/** Facts that were read together. */
export interface FactsRead {
  facts: OfferFact[]
  /** When they were asked for, epoch milliseconds. */
  readAt: number
  /** The sync run that reads them; null for an event. */
  runId: string | null
  /** What that run has seen so far, and what is added to once the facts are stored. */
  seen?: Seen
  /** How many new offers may still be recorded one by one; all of them unless told. */
  nameNewMax?: number
  /** Facts that were asked for earlier are stored later: what is found unchanged is written down too. */
  outOfTurn?: boolean
}

/** An offer as it is stored, and where. */
export type StoredOffer = Offer & { place: number }

/** What facts change about the offers that are stored. */
export interface Comparison {
  added: NewOffer[]
  changed: { before: StoredOffer; row: NewOffer; found: Difference[] }[]
  /** Found unchanged, and to be written down all the same. */
  confirmed: { before: StoredOffer; fact: OfferFact }[]
  /** Missed before, and on the list again: with an older fact than the stored one, which stays. */
  listed: string[]
  /** Products that this run had not seen yet. */
  fresh: number
  /** Products whose listings look different now. */
  listingsChanged: string[]
  /** Products that came back in stock, cost less, or whose cost can be believed again. */
  freed: string[]
  /** Where the offers stand that were stored before. */
  places: number[]
}

/** The facts by product: a record that came twice on one page counts once; the later one stands. */
export const factsByProduct = (facts: OfferFact[]): Map<string, OfferFact> =>
  new Map(facts.map((fact) => [fact.productId, fact]))

/**
 * Compares facts with what is stored; whoever reads the catalogue decides by it, whether it then stores anything or not.
 *
 * @param stored the offers of these facts, by product
 * @param reads products that are being asked for one by one
 */
export function compareOffers(
  facts: ReadonlyMap<string, OfferFact>,
  stored: ReadonlyMap<string, StoredOffer>,
  read: FactsRead,
  { now, reads }: { now: number; reads: Catalogue['reads'] },
): Comparison {
  const { readAt, runId, seen } = read
  const found: Comparison = {
    ...{ added: [], changed: [], confirmed: [], listed: [], fresh: 0, listingsChanged: [], freed: [], places: [] },
  }
  for (const [productId, told] of facts) {
    const before = stored.get(productId)
    if (before === undefined) {
      found.fresh += 1
      found.listingsChanged.push(productId)
      found.added.push({ ...withLastCost(undefined, told), seenRunId: runId, changedAt: now })
      continue
    }
    found.places.push(before.place)
    if (!seen?.has(before.place) && (runId === null || before.seenRunId !== runId)) found.fresh += 1
    if (!supersedes(before, told, readAt)) {
      if (runId !== null && before.missedRuns > 0 && before.goneAt === null) found.listed.push(productId)
      continue
    }
    const dated = datedBy(before, told)
    const fact = dated.costFault === null ? dated : withLastCost(before, dated)
    if (before.goneAt === null && saySame(before, fact)) {
      if (mustConfirm(before, fact, read, reads)) found.confirmed.push({ before, fact })
      continue
    }
    const fields = differences(before, fact)
    if (before.goneAt !== null) fields.push({ field: 'presence', before: 'gone', after: 'listed' })
    const row = { ...fact, ...(runId === null ? {} : { seenRunId: runId }), changedAt: now }
    found.changed.push({ before, row, found: fields })
    if (before.goneAt !== null || looksDifferent(before, fact)) found.listingsChanged.push(productId)
    if (mayEndHolds(before, fact)) found.freed.push(productId)
  }
  return found
}

const looksDifferent = (before: OfferFact, after: OfferFact): boolean =>
  before.costFault !== after.costFault || mattersToListings(before, after)

/**
 * Whether an offer that was found unchanged must be written down all the same.
 *
 * Its as-of moves on only where an older fact could come after it. That is a record whose own instant moved; or an
 * answer to somebody who asked for the same offer earlier and is still waiting, and no such answer outlives the process.
 * So a page on which nothing changed writes nothing.
 */
function mustConfirm(before: Offer, fact: OfferFact, read: FactsRead, reads: Catalogue['reads']): boolean {
  const { readAt, runId, outOfTurn = false } = read
  if (before.missedRuns > 0) return true
  if (fact.asOf <= before.asOf) return false
  return runId === null || outOfTurn || fact.asOf < readAt || reads.has(fact.productId)
}
