/**
 * Decides when it is proven that the supplier has no order of a purchase.
 *
 * All instants here are milliseconds of a monotonic clock. If a wall clock were put ahead, the proof would come before a
 * late request has arrived. The purchase would be repeated, and charged twice if the supplier has forgotten its key. Even
 * a small jump could do this.
 */

export interface NotFoundRules {
  /** Quayside stores that it will send a request. For this long after that, the request may be written. */
  deadlineMs: number
  /** After this time, a written request has run at the supplier, or never will. */
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
 * @param sentAt when Quayside last stored that it will send the request, or any later instant
 * @param absentSince when the first scan that counts began; undefined when there was none since `sentAt`
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
