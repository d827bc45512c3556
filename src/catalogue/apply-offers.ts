import type { Difference } from '../domain/offer.ts'
import { Failure } from '../errors.ts'
import { type Change, StaleWrite } from '../storage/database.ts'
import {
  confirmOffers,
  insertOfferChanges,
  markListed,
  offersWithPlace,
  putOffer,
  putOffers,
} from '../storage/offers.ts'
import { owePublications } from '../storage/publications.ts'
import { type Comparison, compareOffers, type FactsRead, factsByProduct, type StoredOffer } from './compare-offers.ts'
import type { Catalogue } from './context.ts'

/** What the facts change, and the changes that store it. */
export interface OfferPlan extends Pick<Comparison, 'fresh' | 'listingsChanged' | 'freed' | 'places'> {
  changes: Change[]
  offersNew: number
  offersChanged: number
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
      for (const place of plan.places) read.seen?.add(place)
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

/**
 * Owes every store a look at these products; what their listings are is read when it is told.
 *
 * @param key names what changed them
 */
export const oweListings = (
  { stores, newId }: Catalogue,
  productIds: string[],
  { key, now }: { key: string; now: number },
): Change[] => owePublications(stores, productIds, { newId, now, cause: key })

async function planOffers(catalogue: Catalogue, read: FactsRead): Promise<OfferPlan> {
  const { db, now: clock, newId, reads } = catalogue
  const { runId, nameNewMax = Number.POSITIVE_INFINITY } = read
  const facts = factsByProduct(read.facts)
  const stored = await storedOffers(db, [...facts.keys()])
  const now = clock()
  const { added, changed, confirmed, listed, fresh, listingsChanged, freed, places } = compareOffers(
    facts,
    stored,
    read,
    {
      now,
      reads,
    },
  )
  const recorded: Parameters<typeof insertOfferChanges>[0] = []
  const record = (productId: string, { field, before, after }: Difference) =>
    recorded.push({ id: newId(), runId, productId, field, before, after, changedAt: now })
  for (const { productId } of added.slice(0, Math.max(0, nameNewMax))) record(productId, BEGINS)
  for (const { before, found } of changed) for (const difference of found) record(before.productId, difference)
  const changes = changed.map(({ row, before }) => putOffer(row, before))
  changes.push(...putOffers(added), ...insertOfferChanges(recorded))
  for (const [asOf, group] of Map.groupBy(confirmed, ({ fact }) => fact.asOf)) {
    const ids = group.map(({ fact }) => fact.productId)
    changes.push(confirmOffers(ids, asOf))
  }
  if (listed.length > 0) changes.push(markListed(listed))
  const counts = { offersNew: added.length, offersChanged: changed.length, fresh }
  return { ...counts, changes, listingsChanged, freed, places }
}

/** How a new offer is recorded. */
const BEGINS: Difference = { field: 'presence', before: null, after: 'listed' }

/** The stored offers of these products. */
export async function storedOffers(
  db: Pick<Catalogue['db'], 'query'>,
  productIds: string[],
): Promise<Map<string, StoredOffer>> {
  const rows = productIds.length === 0 ? [] : await db.query(offersWithPlace(productIds))
  return new Map(rows.map((offer) => [offer.productId, offer as StoredOffer]))
}
