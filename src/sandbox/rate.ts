/** What a bucket says after a request: whether it may run, what is left, when it is full again. */
export interface Allowance {
  allowed: boolean
  limit: number
  remaining: number
  /** Epoch milliseconds. */
  fullAt: number
  /** Until the next request may run; 0 when one may run now. */
  waitMs: number
}

/**
 * A token bucket for each caller: a minute's worth at once, refilled evenly.
 *
 * Callers are the one API key and everybody else, so there are never more than two buckets.
 */
export function createBuckets(perMinute: number, now: () => number): (caller: string) => Allowance {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const msPerToken = 60_000 / perMinute
  return (caller) => {
    const at = now()
    const bucket = buckets.get(caller) ?? { tokens: perMinute, at }
    // A clock that was put back refills nothing, and takes nothing away either.
    const filled = Math.min(perMinute, bucket.tokens + Math.max(0, at - bucket.at) / msPerToken)
    const allowed = filled >= 1
    const tokens = allowed ? filled - 1 : filled
    buckets.set(caller, { tokens, at })
    return {
      allowed,
      limit: perMinute,
      remaining: Math.floor(tokens),
      fullAt: at + Math.ceil((perMinute - tokens) * msPerToken),
      waitMs: tokens >= 1 ? 0 : Math.ceil((1 - tokens) * msPerToken),
    }
  }
}
