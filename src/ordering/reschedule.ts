import { refreshDelayMs } from '../domain/pace.ts'
import { finalStates } from '../domain/purchase.ts'
import { changePurchase, type Purchase, purchaseById, refreshUnlessHinted } from '../storage/purchases.ts'
import type { Ordering } from './context.ts'

/** What is not urgent is read every 15 minutes. */
const REREAD_MS = 15 * 60_000

/**
 * Sets when a purchase is read or looked up next, after a look that changed nothing else.
 *
 * Does nothing when the row has moved on meanwhile or is another's for now; never overwrites a hint.
 *
 * @param notLaterThan an instant that decides something and must not be overshot
 */
export async function reschedule(
  ordering: Pick<Ordering, 'db' | 'now'>,
  purchase: Purchase,
  set: { scannedAt?: number; absentSince?: number } = {},
  notLaterThan = Number.POSITIVE_INFINITY,
): Promise<void> {
  const now = ordering.now()
  const [fresh] = await ordering.db.query(purchaseById(purchase.id))
  // What was sent since is not what was looked for.
  if (!fresh || fresh.state !== purchase.state || fresh.lastSentAt !== purchase.lastSentAt) return
  if (fresh.leaseUntil !== null && fresh.leaseUntil > now) return
  const urgent = purchase.state === 'unknown' || purchase.state === 'accepted'
  const usual = urgent ? refreshDelayMs(purchase.refreshes) : REREAD_MS
  const waits = [...finalStates, 'planned', 'waiting'].includes(purchase.state)
  const next = waits ? null : Math.max(now + 1, Math.min(now + usual, notLaterThan))
  const columns = { ...set, refreshes: purchase.refreshes + 1, refreshAt: refreshUnlessHinted(purchase, next) }
  await ordering.db.commit([changePurchase(fresh, columns, now)])
}
