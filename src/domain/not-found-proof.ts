/**
 * When it may be believed that the supplier has no order of a purchase.
 *
 * All instants here are milliseconds of a clock that never jumps. A wall clock that is put ahead would cut short the time
 * that a request has to arrive, and a purchase repeated in that time is charged twice wherever the supplier has forgotten
 * its key: no jump is small enough to be harmless, so that none is measured here at all.
 */

export interface NotFoundRules {
  /** A request may be written for so long after its intent was stored. */
  deadlineMs: number
  /** A request that was written has run by then, or never will. */
  settleMs: number
  /** An order that was made shows in the list by then. */
  listLagMs: number
  /** Two scans that prove something are at least so far apart. */
  gapMs: number
}

/** What a scan that found nothing is worth; `waitMs` is when the next one may be worth more, from its begin. */
export type Verdict =
  /** What was sent last may still run, or not show yet. */
  | { proof: 'early'; waitMs: number }
  /** The first one that counts. */
  | { proof: 'first'; waitMs: number }
  /** It counts, but comes too soon after the first. */
  | { proof: 'soon'; waitMs: number }
  | { proof: 'absent' }

/**
 * @param sentAt when the last intent was stored, or any later instant
 * @param absentSince when the first scan that counts began; undefined when there was none since that intent
 * @param begunAt when this scan began
 */
export function judgeNotFound(
  { sentAt, absentSince, begunAt }: { sentAt: number; absentSince: number | undefined; begunAt: number },
  { deadlineMs, settleMs, listLagMs, gapMs }: NotFoundRules,
): Verdict {
  const countsFrom = sentAt + deadlineMs + settleMs + listLagMs
  if (begunAt < countsFrom) return { proof: 'early', waitMs: countsFrom - begunAt }
  if (absentSince === undefined) return { proof: 'first', waitMs: gapMs }
  if (begunAt < absentSince + gapMs) return { proof: 'soon', waitMs: absentSince + gapMs - begunAt }
  return { proof: 'absent' }
}
