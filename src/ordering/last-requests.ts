import type { Purchase } from '../storage/purchases.ts'
import type { LastRequest, Ordering } from './context.ts'

/** A purchase that is open for longer waits for something else. If its request is forgotten here, its proof starts over. */
const KEPT_MS = 48 * 3_600_000

/** Remembers that the intent to send a purchase was stored just now. @param lastSentAt the wall clock, as in the row */
export function noteIntent({ pace, monotonic }: Ordering, purchaseId: string, lastSentAt: number | null): LastRequest {
  const now = monotonic()
  for (const [id, { sentAt }] of pace.lastRequests) {
    if (now - sentAt < KEPT_MS) break
    pace.lastRequests.delete(id)
  }
  const noted: LastRequest = { lastSentAt, sentAt: now }
  // The old entry is deleted first, so that the map stays in order of age.
  pace.lastRequests.delete(purchaseId)
  pace.lastRequests.set(purchaseId, noted)
  return noted
}

/** Forgets an answered request, because no order has to be found for that request any more. */
export const forgetIntent = ({ pace }: Ordering, purchaseId: string): void => void pace.lastRequests.delete(purchaseId)

/**
 * Returns what is remembered of the last request of a purchase.
 *
 * A request of another process counts as sent now. It left earlier, but the instant in its row is of a clock that may have
 * been put ahead since. This rule delays a purchase whose process died by some minutes, and prevents a second charge.
 */
export function rememberedOf(ordering: Ordering, { id, lastSentAt }: Pick<Purchase, 'id' | 'lastSentAt'>): LastRequest {
  const known = ordering.pace.lastRequests.get(id)
  return known?.lastSentAt === lastSentAt ? known : noteIntent(ordering, id, lastSentAt)
}
