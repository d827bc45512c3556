/**
 * Decides when it is proven that the supplier has no order of a purchase.
 *
 * All instants here are milliseconds of a monotonic clock. A wall clock that is put ahead would shorten the time that a
 * request has to arrive, and a purchase repeated in that time is charged twice where the supplier has forgotten its key.
 * No jump is small enough to be harmless.
 */

export interface NotFoundRules {
  /** A request may be written for this long after its intent was stored. */
  deadlineMs: number
  /** A written request has run after this time, or never will. */
  settleMs: number
  /** A new order shows in the list after this time. */
  listLagMs: number
  /** The least time between the two scans of a proof. */
  gapMs: number
}

/** What a scan without a match proves; `waitMs` is the time from the beginning of this scan until the next scan may prove more. */
export type NotFoundVerdict =
  /** The last request may still run, or its order may not show yet. */
  | { proof: 'early'; waitMs: number }
  /** This is the first scan that counts. */
  | { proof: 'first'; waitMs: number }
  /** This scan began too soon after the first scan that counts. */
  | { proof: 'soon'; waitMs: number }
  | { proof: 'absent' }

/**
 * @param sentAt when the last intent was stored, or any later instant
 * @param absentSince when the first scan that counts began; undefined when there was no such scan since that intent
 * @param begunAt when this scan began
 */
export function judgeNotFound(
  { sentAt, absentSince, begunAt }: { sentAt: number; absentSince: number | undefined; begunAt: number },
  { deadlineMs, settleMs, listLagMs, gapMs }: NotFoundRules,
): NotFoundVerdict {
  const countsFrom = sentAt + deadlineMs + settleMs + listLagMs
  if (begunAt < countsFrom) return { proof: 'early', waitMs: countsFrom - begunAt }
  if (absentSince === undefined) return { proof: 'first', waitMs: gapMs }
  if (begunAt < absentSince + gapMs) return { proof: 'soon', waitMs: absentSince + gapMs - begunAt }
  return { proof: 'absent' }
}
