import { mattersToListings } from '../domain/listing.ts'
import { differences, mayEndHolds, type OfferFact, supersedes } from '../domain/offer.ts'
import { Failure } from '../errors.ts'
import { type Change, StaleWrite } from '../storage/database.ts'
import { confirmOffers, insertOfferChange, type Offer, offersByProduct, putOffer } from '../storage/offers.ts'
import { oweEffect } from '../storage/outbox.ts'
import type { Catalogue } from './context.ts'

/** Facts that were read together. */
export interface FactsRead {
  facts: OfferFact[]
  /** When they were asked for, epoch milliseconds. */
  readAt: number
  /** The sync run that reads them; null for an event. */
  runId: string | null
}

/** What the facts change, and the changes that store it. */
export interface OfferPlan {
  changes: Change[]
  offersNew: number
  offersChanged: number
  /** Products that this run had not seen yet. */
  fresh: number
  /** Products whose listings look different now. */
  listingsChanged: string[]
  /** Products that came back in stock or cost less. */
  freed: string[]
}

/** Somebody else changed the same offer between read and commit; three times in a row is no coincidence. */
const TRIES_MAX = 3

/**
 * Stores what differs, in one commit with the changes that `rest` adds, and wakes the holds that may end by it.
 *
 * @throws Failure `conflict` when somebody else keeps changing the same rows; nothing is stored
 */
export async function applyOffers(
  catalogue: Catalogue,
  read: FactsRead,
  rest: (plan: OfferPlan) => Change[],
): Promise<OfferPlan> {
  for (let tries = 1; ; tries += 1) {
    const plan = await planOffers(catalogue, read)
    try {
      await catalogue.db.commit([...plan.changes, ...rest(plan)])
      if (plan.freed.length > 0) catalogue.wake('holds', plan.freed)
      return plan
    } catch (error) {
      if (!(error instanceof StaleWrite)) throw error
      if (tries < TRIES_MAX) continue
      throw new Failure('conflict', 'the same offers or the same sync run are being changed elsewhere', {
        cause: error,
      })
    }
  }
}

/** Tells every store that these listings changed; what they look like is read when it is sent. */
export const oweListings = (
  { stores, newId }: Catalogue,
  productIds: string[],
  { key, now }: { key: string; now: number },
): Change[] =>
  productIds.length === 0
    ? []
    : stores.map(({ id: store }) =>
        oweEffect({
          ...{ id: newId(), kind: 'callback', type: 'listing.changed', store },
          ...{ dedupeKey: `listings:${key}:${store}`, payload: JSON.stringify({ productIds }) },
          ...{ state: 'due', notBefore: now, createdAt: now },
        }),
      )

async function planOffers({ db, now: clock, newId }: Catalogue, read: FactsRead): Promise<OfferPlan> {
  const { readAt, runId } = read
  // A record that came twice on one page counts once; the later one stands.
  const facts = [...new Map(read.facts.map((fact) => [fact.productId, fact])).values()]
  const stored = await storedOffers(db, facts)
  const now = clock()
  const plan: OfferPlan = {
    ...{ changes: [], offersNew: 0, offersChanged: 0, fresh: 0, listingsChanged: [], freed: [] },
  }
  const confirmed: OfferFact[] = []
  for (const fact of facts) {
    const { productId } = fact
    const before = stored.get(productId)
    if (before === undefined || before.seenRunId !== runId) plan.fresh += 1
    const record = (field: string, was: string | null, is: string | null) =>
      plan.changes.push(
        insertOfferChange({ id: newId(), runId, productId, field, before: was, after: is, changedAt: now }),
      )
    if (before === undefined) {
      plan.offersNew += 1
      plan.listingsChanged.push(productId)
      plan.changes.push(putOffer({ ...fact, seenRunId: runId, changedAt: now }))
      record('presence', null, 'listed')
      continue
    }
    if (!supersedes(before, fact, readAt)) continue
    const found = differences(before, fact)
    if (before.goneAt !== null) found.push({ field: 'presence', before: 'gone', after: 'listed' })
    if (found.length === 0) {
      if (fact.asOf > before.asOf || before.missedRuns > 0) confirmed.push(fact)
      continue
    }
    plan.offersChanged += 1
    plan.changes.push(putOffer({ ...fact, changedAt: now }, before))
    for (const difference of found) record(difference.field, difference.before, difference.after)
    if (before.goneAt !== null || mattersToListings(before, fact)) plan.listingsChanged.push(productId)
    if (mayEndHolds(before, fact)) plan.freed.push(productId)
  }
  for (const [asOf, group] of Map.groupBy(confirmed, (fact) => fact.asOf)) {
    plan.changes.push(confirmOffers(group.map(idOf), asOf))
  }
  return plan
}

async function storedOffers(db: Catalogue['db'], facts: OfferFact[]): Promise<Map<string, Offer>> {
  const rows = facts.length === 0 ? [] : await db.query(offersByProduct(facts.map(idOf)))
  return new Map(rows.map((offer) => [offer.productId, offer]))
}

const idOf = ({ productId }: OfferFact): string => productId
