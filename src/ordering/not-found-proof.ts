import type { Purchase } from '../storage/purchases.ts'
import type { Ordering } from './ordering.ts'

/**
 * What this process remembers of a purchase's last request, in milliseconds of the monotonic clock. It ends with the process,
 * because that clock does.
 */
export interface LastRequest {
  /** `lastSentAt` of the row at that time: a newer value means another request. */
  lastSentAt: number | null
  /** When its intent was stored, or when this process first read it, which was later. */
  sentAt: number
  /** When the first valid scan that found nothing began. */
  absentSince?: number
}

/** A purchase that is open for longer waits for something else. If it is forgotten here, its proof starts over. */
const KEPT_MS = 48 * 3_600_000

/** Remembers that the intent to send a purchase was stored just now. @param lastSentAt the wall clock, as in the row */
export function noteIntent({ pace, monotonic }: Ordering, purchaseId: string, lastSentAt: number | null): LastRequest {
  const now = monotonic()
  for (const [id, { sentAt }] of pace.lastRequests) {
    if (now - sentAt < KEPT_MS) break
    pace.lastRequests.delete(id)
  }
  const noted: LastRequest = { lastSentAt, sentAt: now }
  // Deleted first, so that the map stays in order of age.
  pace.lastRequests.delete(purchaseId)
  pace.lastRequests.set(purchaseId, noted)
  return noted
}

/** Forgets an answered request: no order has to be found for it. */
export const forgetIntent = ({ pace }: Ordering, purchaseId: string): void => void pace.lastRequests.delete(purchaseId)

/**
 * What is remembered of the last request of a purchase.
 *
 * A request of another process counts as sent now. It left earlier, but the instant in its row is of a clock that may have
 * been put ahead since. This delays a purchase whose process died by some minutes, and prevents a second charge.
 */
export function rememberedOf(ordering: Ordering, { id, lastSentAt }: Pick<Purchase, 'id' | 'lastSentAt'>): LastRequest {
  const known = ordering.pace.lastRequests.get(id)
  return known?.lastSentAt === lastSentAt ? known : noteIntent(ordering, id, lastSentAt)
}

/** The rounds of reattaching orders after a restore as this process knows them, on the monotonic clock. */
export interface Rounds {
  epoch: number
  /** When this process first read of the restore. */
  restoredAt: number
  roundAt: number | null
}

/** The wait starts over in a new process, because a request that left before the restore may still be on its way. */
export function roundsOf({ pace, monotonic }: Pick<Ordering, 'pace' | 'monotonic'>, epoch: number): Rounds {
  if (pace.rounds?.epoch !== epoch) pace.rounds = { epoch, restoredAt: monotonic(), roundAt: null }
  return pace.rounds
}
