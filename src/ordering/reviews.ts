import { reviewsByCancellation } from '../domain/purchase-accepted.ts'
import type { Change } from '../storage/database.ts'
import { lastUnfreeze, reviewedSince } from '../storage/evidence.ts'
import { oweAlert } from '../storage/outbox.ts'
import { listPurchases } from '../storage/purchases.ts'
import { setFreeze } from '../storage/settings.ts'
import type { Ordering } from './context.ts'

const HOUR = 3_600_000
/** Three may be three bad orders; a fourth within the hour is a fault that the next purchase would meet too. */
const HOURLY_MAX = 3
/** The slow kind of the same: one purchase in twenty. */
const RECENT = 100
const RECENT_MAX = 5

/**
 * Stops all buying when too many purchases come into review: changes for the commit that brings one more.
 *
 * Reviews are counted since an operator last let buying go on, so that the same ones do not stop it again. A review that
 * a cancellation of the store caused does not count: it leaves no money in doubt.
 *
 * @param row of the transition table that brings the purchase into review
 */
export async function freezeForReviews(ordering: Ordering, purchaseId: string, row: string): Promise<Change[]> {
  if (reviewsByCancellation.includes(row)) return []
  const { db } = ordering
  const now = ordering.now()
  const [unfrozen] = await db.query(lastUnfreeze())
  const since = unfrozen?.at ?? 0
  const [hourly, reviewed, recent] = await Promise.all([
    db.query(reviewedSince(Math.max(since, now - HOUR), reviewsByCancellation)),
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
  return [
    // More of them are no new cause: each is decided for itself.
    setFreeze({ reason, actor: 'quayside', at: now }, 'reviews'),
    oweAlert(ordering, { type: 'freeze', occasion: `reviews:${since}`, payload: { note: reason } }),
  ]
}
