import type { Purchase } from '../storage/purchases.ts'
import type { LastRequest, Ordering } from './context.ts'

/** How long a request is remembered. For a purchase that stays open longer, the not-found proof only starts over. */
const KEPT_MS = 48 * 3_600_000

/** Remembers that the intent to send a purchase was stored just now. @param lastSentAt the wall clock, as in the row */
export function noteIntent({ pace, monotonic }: Ordering, purchaseId: string, lastSentAt: number | null): LastRequest {
  const now = monotonic()
  for (const [id, { sentAt }] of pace.lastRequests) {
    if (now - sentAt < KEPT_MS) break
    pace.lastRequests.delete(id)
  }
  const noted: LastRequest = { lastSentAt, sentAt: now }
  // The old entry is deleted first, because the map must stay in order of age.
  pace.lastRequests.delete(purchaseId)
  pace.lastRequests.set(purchaseId, noted)
  return noted
}

/** Forgets an answered request, because no order has to be found for that request any more. */
export const forgetIntent = ({ pace }: Ordering, purchaseId: string): void => void pace.lastRequests.delete(purchaseId)

/**
 * Returns what is remembered of the last request of a purchase.
 *
 * A request of another process counts as sent now. It left earlier, but the row has only the wall clock of that time, which may
 * have been put ahead since. Counting from now delays the proof by some minutes, and prevents a second charge.
 */
export function rememberedOf(ordering: Ordering, { id, lastSentAt }: Pick<Purchase, 'id' | 'lastSentAt'>): LastRequest {
  const known = ordering.pace.lastRequests.get(id)
  return known?.lastSentAt === lastSentAt ? known : noteIntent(ordering, id, lastSentAt)
}
