import type { Dialect } from '../dialect/dialect.ts'
import { Failure } from '../errors.ts'
import { type Headers, headerText } from './request.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/**
 * Returns the wait of a Retry-After header in milliseconds, at least 1 s and at most 1 h.
 *
 * A shorter wait would depend on the clocks of two machines. With a longer wait, a wrong number would stop the shop for days.
 * The caller adds its jitter.
 *
 * @param text seconds, `"30"`, or an HTTP date, `"Tue, 14 Nov 2023 22:13:20 GMT"`; a fraction of a second, which the RFC
 *   does not have, is rounded up
 * @returns undefined when the text is neither
 * @see RFC 9110, sections 5.6.7 and 10.2.3
 */
export function retryAfterMs(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined
  const ms = /^\d{1,6}(\.\d+)?$/.test(text) ? Math.ceil(Number(text)) * SECOND : sinceDate(text, nowMs)
  return ms === undefined ? undefined : Math.min(Math.max(ms, SECOND), HOUR)
}

const HTTP_DATE =
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/

function sinceDate(text: string, nowMs: number): number | undefined {
  const at = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : at - nowMs
}

export interface RateHint {
  /** Requests in a window, when stated. */
  limit: number | undefined
  /** Requests left in this window. */
  remaining: number
  /** When the window ends, epoch milliseconds. */
  resetAt: number
}

/**
 * Reads the rate-limit headers. They are hints: senseless numbers are ignored, because they must neither stop the shop nor
 * let it run into avoidable refusals.
 *
 * @returns undefined when the headers are absent or absurd: no numbers, a fraction in a count, more left than the limit, a window
 *   that is over or longer than an hour
 */
export function rateHint(headers: Headers, dialect: Dialect, nowMs: number): RateHint | undefined {
  const limit = wholeNumber(headerText(headers, dialect.headers.rateLimit))
  const remaining = wholeNumber(headerText(headers, dialect.headers.rateRemaining))
  const reset = numberUp(headerText(headers, dialect.headers.rateReset))
  if (remaining === undefined || reset === undefined) return undefined
  if (limit !== undefined && (limit === 0 || remaining > limit)) return undefined
  const resetAt = { epoch_s: reset * SECOND, epoch_ms: reset, left_s: nowMs + reset * SECOND }[dialect.rateResetUnit]
  if (resetAt <= nowMs || resetAt > nowMs + HOUR) return undefined
  return { limit, remaining, resetAt }
}

const wholeNumber = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,13}$/.test(text) ? Number(text) : undefined

/** Reads the number that says when a window ends. A fraction is rounded up: by then the window is over in any case. */
const numberUp = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,13}(\.\d+)?$/.test(text) ? Math.ceil(Number(text)) : undefined

export type Pacer = ReturnType<typeof createPacer>

/** A read that would have to wait for longer than this fails at once: no caller should wait for an hour. */
const WAIT_MAX_MS = MINUTE

/** Reads are spread out once only a fifth of the window's requests is left: the fifth is kept for orders, which do not wait. */
const LOW_SHARE = 0.2

/** Reads are spread out from this many requests left, when the supplier does not state how many a window has. */
const LOW_COUNT = 10

/** A clock that goes back by this much was set back; going back by less is drift. */
const JUMP_BACK_MS = MINUTE

/** If this many waits in a row end in a new pause, the supplier refuses everything, and the read fails. */
const WAITS_MAX = 5

const PAUSE_MS = 5 * SECOND
const PAUSE_MAX_MS = 5 * MINUTE

/**
 * Delays reads so that steady use gets no 429, and pauses the whole API key after a 429.
 *
 * @param random a number in [0, 1); up to 20 % of a pause are added, so that several processes do not return as one
 */
export function createPacer(clock: { now: () => number; sleep: (ms: number) => Promise<void>; random: () => number }) {
  const { sleep, random } = clock
  let seenAt = 0
  let hint: RateHint | undefined
  let lastTurnAt = 0
  let pauseEndsAt = 0
  let refusals = 0

  /** Forgets the stored instants once the clock is set back. Else a pause would be longer by as much as the clock is set back. */
  const now = (): number => {
    const at = clock.now()
    if (at < seenAt - JUMP_BACK_MS) {
      hint = undefined
      lastTurnAt = 0
      pauseEndsAt = 0
    }
    seenAt = at
    return at
  }

  const nextTurnAt = (): number => {
    const earliest = Math.max(now(), pauseEndsAt)
    if (!hint || hint.resetAt <= earliest) return earliest
    const low = hint.remaining <= (hint.limit === undefined ? LOW_COUNT : hint.limit * LOW_SHARE)
    if (!low) return earliest
    if (hint.remaining < 1) return hint.resetAt
    return Math.max(earliest, lastTurnAt + (hint.resetAt - earliest) / hint.remaining)
  }

  return {
    /**
     * Waits until one read may be sent.
     *
     * @throws Failure `unavailable`, reason `rate_limited`, when the read would have to wait for more than a minute
     */
    async turn(): Promise<void> {
      for (let waits = 0; waits < WAITS_MAX; waits++) {
        const at = nextTurnAt()
        if (at - now() > WAIT_MAX_MS) throw rateLimited(at - now())
        lastTurnAt = at
        // The last answer stated how many requests are left. Each read since then is subtracted.
        if (hint && hint.remaining > 0) hint = { ...hint, remaining: hint.remaining - 1 }
        if (at > now()) await sleep(at - now())
        if (now() >= pauseEndsAt) return
      }
      throw rateLimited(pauseEndsAt - now())
    },
    /** Takes the rate-limit headers of an answer into account. */
    observe(seen: RateHint | undefined): void {
      // Answers overtake each other: within one window only the lower count is news.
      if (seen && !(hint && hint.resetAt === seen.resetAt && hint.remaining < seen.remaining)) hint = seen
    },
    /** Stops the whole API key after a 429. Without `ms`: 5 s, doubled for each 429 in a row, at most 5 min. */
    pause(ms: number | undefined): void {
      const at = now()
      const base = ms ?? Math.min(PAUSE_MS * 2 ** refusals, PAUSE_MAX_MS)
      refusals = Math.min(refusals + 1, 10)
      pauseEndsAt = Math.max(pauseEndsAt, at + Math.ceil(base * (1 + 0.2 * random())))
    },
    /** Notes that a request got an answer that is no 429. */
    resumed(): void {
      refusals = 0
    },
    /** The rate limit's present window, as the last answers stated it; undefined when no answer stated one, or it is over. */
    quota: (): RateHint | undefined => (hint && hint.resetAt > now() ? hint : undefined),
    /** Until when the API key is paused, epoch milliseconds; undefined when the key is not paused. */
    pausedUntil: (): number | undefined => (now() < pauseEndsAt ? pauseEndsAt : undefined),
  }
}

export const rateLimited = (waitMs: number): Failure =>
  new Failure('unavailable', `the supplier's rate limit is used up; try again in ${Math.ceil(waitMs / SECOND)} s`, {
    reason: 'rate_limited',
  })
