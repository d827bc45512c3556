import type { Purchase } from '../storage/purchases.ts'
import type { Ordering } from './ordering.ts'

/**
 * What one process remembers of one request, on the clock that never jumps: it is gone with the process, because that
 * clock begins anew with the next one.
 */
export interface Absence {
  /** The instant on the wall clock that the row names for the request: tells it from one that was sent since. */
  lastSentAt: number | null
  /** When its intent was stored, or when this process first heard of it, which was later. */
  sentAt: number
  /** When the first scan began that counts and found nothing. */
  absentSince?: number
}

/** What is open for longer than this waits for something else; forgotten, it is counted anew. */
const KEPT_MS = 48 * 3_600_000

/** Remembers that the intent to send a purchase was stored just now, under that instant of the wall clock. */
export function noteIntent({ pace, monotonic }: Ordering, purchaseId: string, lastSentAt: number | null): Absence {
  const now = monotonic()
  for (const [id, { sentAt }] of pace.absences) {
    if (now - sentAt < KEPT_MS) break
    pace.absences.delete(id)
  }
  const noted: Absence = { lastSentAt, sentAt: now }
  // Taken out first: the oldest ones stay in front.
  pace.absences.delete(purchaseId)
  pace.absences.set(purchaseId, noted)
  return noted
}

/** The request was answered: nothing is looked for. */
export const forgetIntent = ({ pace }: Ordering, purchaseId: string): void => void pace.absences.delete(purchaseId)

/**
 * What is remembered of the last request of a purchase.
 *
 * One that another process sent, or the one before this, counts as sent now: it left before, and nobody can say by how
 * much, since the instant in its row is of a clock that may have been put ahead since. That costs some minutes for each
 * purchase whose process died, and no second charge.
 */
export function rememberedOf(ordering: Ordering, { id, lastSentAt }: Pick<Purchase, 'id' | 'lastSentAt'>): Absence {
  const known = ordering.pace.absences.get(id)
  return known?.lastSentAt === lastSentAt ? known : noteIntent(ordering, id, lastSentAt)
}

/** The rounds of the mapping after one restore as this process knows them, on the clock that never jumps. */
export interface Rounds {
  epoch: number
  /** When this process first met the restore, which is later than it was. */
  restoredAt: number
  roundAt: number | null
}

/** A mapping that is half done when a process starts waits anew: what left before the restore may be on its way still. */
export function roundsOf({ pace, monotonic }: Pick<Ordering, 'pace' | 'monotonic'>, epoch: number): Rounds {
  if (pace.rounds?.epoch !== epoch) pace.rounds = { epoch, restoredAt: monotonic(), roundAt: null }
  return pace.rounds
}
