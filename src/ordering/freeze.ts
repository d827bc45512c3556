/** Freezes all buying: for a person, for many reviews, for many orphans. `actions.ts` lifts freezes, and releases purchases. */

import { reviewsByCancellation } from '../domain/purchase.ts'
import { carriesStore } from '../domain/purchase-keys.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import { type Change, first } from '../storage/database.ts'
import { orphansFoundAfter } from '../storage/discrepancies.ts'
import { audited, lastUnfreeze, reviewedSince } from '../storage/evidence.ts'
import { type Freeze, setFreeze } from '../storage/freezes.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import { listPurchases } from '../storage/purchases.ts'
import { currentEpoch, restoreHold } from '../storage/restores.ts'
import type { Ordering } from './context.ts'

const HOUR_MS = 3_600_000

/** Stops all buying: first sends and repeats. Reads and look-ups go on. A second freeze is a second cause. */
export async function freeze(ordering: Ordering, reason: string, actor: string): Promise<void> {
  const at = ordering.now()
  await ordering.db.commit([
    setFreeze({ reason, actor, at }, `${actor}: ${reason}`),
    audited(ordering, actor, 'freeze', 'buying', reason),
  ])
  ordering.log.warn('frozen', { actor, reason })
}

/** Three reviews may be three bad orders. A fourth review within the hour shows a fault that the next purchase would have. */
const HOURLY_MAX = 3
/** Five reviews among the last hundred purchases freeze buying too, even if they are spread over days. */
const RECENT = 100
const RECENT_MAX = 5

/**
 * Stops all buying when too many purchases come into review.
 *
 * Only reviews since the last unfreeze count, so that the same reviews do not stop buying again. A review after a cancellation
 * does not count, because it leaves no money in doubt.
 *
 * @param row the row of the transition table that brings the purchase into review
 * @returns changes for the commit that brings this purchase into review
 */
export async function freezeForReviews(ordering: Ordering, purchaseId: string, row: string): Promise<Change[]> {
  if (reviewsByCancellation.some((way) => way === row)) return []
  const { db } = ordering
  const now = ordering.now()
  const unfrozen = await first(db, lastUnfreeze())
  const since = unfrozen?.at ?? 0
  const [hourly, reviewed, recent] = await Promise.all([
    db.query(reviewedSince(Math.max(since, now - HOUR_MS), reviewsByCancellation)),
    db.query(reviewedSince(since, reviewsByCancellation)),
    db.query(listPurchases({ limit: RECENT })),
  ])
  const withThis = (list: { purchaseId: string }[]) => new Set([purchaseId, ...list.map((one) => one.purchaseId)])
  const all = withThis(reviewed)
  const share = recent.filter((purchase) => purchase.createdAt > since && all.has(purchase.id)).length
  const inHour = withThis(hourly).size
  if (inHour <= HOURLY_MAX && share < RECENT_MAX) return []
  const count = inHour > HOURLY_MAX ? `${inHour} purchases within an hour` : `${share} of the last ${RECENT} purchases`
  const reason = `${count} need a person's decision`
  // More reviews are the same cause of the freeze, as a person decides on each review anyway.
  return frozenFor(ordering, { reason, at: now }, 'reviews', since)
}

/** Freezes buying and alerts people. @param unfrozenAt the last unfreeze; after each unfreeze, people are alerted once */
const frozenFor = (
  ordering: Ordering,
  { reason, at }: Pick<Freeze, 'reason' | 'at'>,
  cause: string,
  unfrozenAt: number,
): Change[] => [
  setFreeze({ reason, actor: 'quayside', at }, cause),
  enqueueAlert(ordering, { type: 'freeze', occasion: `${cause}:${unfrozenAt}`, payload: { note: reason } }),
]

/** Two orphans may be left over from an accident. A third orphan within the hour means that the accident goes on. */
const ORPHANS_MAX = 3

/**
 * Stops all buying when many orphans of one store are new within an hour, because another client then buys for this store.
 *
 * Only orphans since the last unfreeze count. No orphan counts while the orders of a restore are being reattached.
 *
 * @returns changes for the commit that records the orphans
 */
export async function freezeForOrphans(ordering: Ordering, fresh: SupplierOrder[]): Promise<Change[]> {
  const { db, dialect, storeIds } = ordering
  if (await restoreHold(db)) return []
  const now = ordering.now()
  const [[unfrozen], epoch] = await Promise.all([db.query(lastUnfreeze()), currentEpoch(db)])
  const since = Math.max(now - HOUR_MS, unfrozen?.at ?? 0, epoch?.reattachedAt ?? 0)
  const earlier = await db.query(orphansFoundAfter(since))
  const references = [...earlier, ...fresh].map(({ externalOrderId }) => externalOrderId ?? '')
  return storeIds.flatMap((id) => {
    const count = references.filter((reference) => carriesStore(reference, id, dialect.externalOrderIdMax)).length
    if (count < ORPHANS_MAX) return []
    const reason = `${count} orders at the supplier, new within an hour, carry references of store ${id} and have no purchase here`
    return frozenFor(ordering, { reason, at: now }, `orphans:${id}`, unfrozen?.at ?? 0)
  })
}
