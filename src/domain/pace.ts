/** When to try again: pure arithmetic over attempts, with the random number as an argument. */

import type { PurchaseState } from './purchase.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

/**
 * Full jitter: a random wait between 0 and base x 2^attempt, at most `capMs`.
 *
 * @param attempt 0 for the first wait
 * @param random a number in [0, 1)
 */
export const fullJitter = (baseMs: number, attempt: number, capMs: number, random: number): number =>
  Math.ceil(random * Math.min(capMs, baseMs * 2 ** Math.min(attempt, 40)))

/**
 * Waits before the reads and look-ups of a purchase. They are short at first, because most orders complete in seconds. They end
 * at 15 minutes, because a purchase that is not final must be read that often.
 */
const REFRESH_MS = [2 * SECOND, 5 * SECOND, 15 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE]

/** Waits while the supplier's webhooks announce the end of an order. The reads then only make up for late or lost deliveries. */
const ANNOUNCED_MS = [15 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE]

/**
 * @param refreshes reads or look-ups made since the state was entered
 * @param areAnnounced the supplier's webhooks announce the end of an order
 */
export function refreshDelayMs(refreshes: number, areAnnounced = false): number {
  const waits = areAnnounced ? ANNOUNCED_MS : REFRESH_MS
  return waits[Math.min(refreshes, waits.length - 1)] as number
}

/** Orders whose reads fall into one second are read together. */
export const readTogetherAt = (at: number): number => Math.ceil(at / SECOND) * SECOND

/** A purchase that waits for its hand-over or for a person is not urgent, so it is read at the longest interval. */
const REREAD_MS = 15 * MINUTE

/**
 * Returns when a purchase is read or looked up next.
 *
 * @param refreshes reads or look-ups made since the state was entered
 * @param areAnnounced the supplier's webhooks announce the end of an order
 * @returns null in the states in which there is nothing to read: not sent yet, being sent, or final
 */
export function nextReadAt(state: PurchaseState, refreshes: number, now: number, areAnnounced: boolean): number | null {
  if (state === 'unknown') return now + refreshDelayMs(refreshes)
  if (state === 'accepted') return readTogetherAt(now + refreshDelayMs(refreshes, areAnnounced))
  return state === 'completed' || state === 'review' ? now + REREAD_MS : null
}

/** The wait after a request that never left: 1 s x 2^n with full jitter, at most 5 minutes, to spare a supplier that is down. */
export const notExecutedDelayMs = (attempt: number, random: number): number =>
  SECOND + fullJitter(SECOND, attempt, 5 * MINUTE - SECOND, random)

/** The wait when stock or balance is low: 1 min x 2^n with full jitter, at most an hour. A restock event ends the wait earlier. */
export const rejectedDelayMs = (generation: number, random: number): number =>
  10 * SECOND + fullJitter(MINUTE, generation - 1, 60 * MINUTE - 10 * SECOND, random)

/** Waits between the attempts of a callback, after the Standard Webhooks table: 5 s to 24 h, 75 h in all. */
const CALLBACK_MS = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * 60 * MINUTE,
  5 * 60 * MINUTE,
  10 * 60 * MINUTE,
  14 * 60 * MINUTE,
  20 * 60 * MINUTE,
  24 * 60 * MINUTE,
]

/** @returns undefined when the attempts are used up and the message becomes a dead letter */
export function callbackDelayMs(attempts: number, random: number): number | undefined {
  const wait = CALLBACK_MS[attempts - 1]
  return wait === undefined ? undefined : Math.round(wait * (1 + random * 0.2))
}

/** The longest of these waits is two hours: what a store refuses rarely changes without a person. */
const PUBLICATION_MS = CALLBACK_MS.slice(0, 4)
/** A store that is away is asked this often, with a single product, so that its prices are right soon after its return. */
const AWAY_MS = [5 * SECOND, 50 * SECOND]

/**
 * Returns the wait after a failed push of listings. The pushes never end, because a listing is wrong until its push succeeds.
 *
 * @param attempts how many pushes failed in a row, from 1
 * @param isAway the store gave no answer of its own
 */
export function publicationDelayMs(attempts: number, random: number, isAway = false): number {
  const waits = isAway ? AWAY_MS : PUBLICATION_MS
  return Math.round((waits[Math.min(attempts, waits.length) - 1] as number) * (1 + random * 0.2))
}

/** How many of these tries take some five minutes: then people hear of it. */
export const publicationTriesOf = (pause: PublicationPause): number => (wasAway(pause) ? 7 : 3)

interface PublicationPause {
  attempts: number
  pausedUntil: number | null
  changedAt: number
}

/** Whether the store was away at its last try: the waits after a refusal are longer, but for the first one. */
export const wasAway = ({ attempts, pausedUntil, changedAt }: PublicationPause): boolean =>
  attempts > 1 && pausedUntil !== null && pausedUntil - changedAt <= MINUTE

/**
 * Longest wait before products are created again in a store that failed to create them, but has taken prices since. It is a
 * minute for each failure in a row: a store that creates nothing is asked less and less often.
 */
export const creationDelayMs = (attempts: number): number => Math.max(1, attempts) * MINUTE

/** The wait before a delivery is processed again: ten attempts within about ten hours, then undefined. */
export function deliveryDelayMs(attempts: number, random: number): number | undefined {
  return attempts >= 10 ? undefined : Math.round(SECOND * 3 ** Math.min(attempts, 9) * (1 + random * 0.2))
}

/**
 * Pauses first sends (new purchases) while the supplier's answers are ambiguous, and after a single answer that cannot be read.
 *
 *   closed ──3 ambiguous answers in a row──► open ──a look-up succeeds──► probing ──an unambiguous answer──► closed
 *          ──or one that cannot be read───►   ▲                              │
 *                                             └──────an ambiguous answer─────┘
 *
 * After an unreadable answer a look-up succeeds only when it reads an order: an empty list does not show how the supplier
 * writes its orders.
 */
export interface Breaker {
  phase: 'closed' | 'open' | 'probing'
  ambiguousInRow: number
  /** The breaker is open because an answer could not be read. */
  unread: boolean
}

/** Whether the answer to a POST is unambiguous, leaves the outcome open, or cannot be read. */
export type AnswerQuality = 'clear' | 'ambiguous' | 'unreadable'

/** Two ambiguous answers may be chance (a restart of the supplier). After three in a row, each send risks one more look-up. */
const AMBIGUOUS_MAX = 3

export const closedBreaker: Breaker = { phase: 'closed', ambiguousInRow: 0, unread: false }

export function afterAnswer(breaker: Breaker, answer: AnswerQuality): Breaker {
  if (answer === 'clear') return closedBreaker
  const ambiguousInRow = breaker.ambiguousInRow + 1
  const unread = breaker.unread || answer === 'unreadable'
  const opens = breaker.phase !== 'closed' || unread || ambiguousInRow >= AMBIGUOUS_MAX
  return { phase: opens ? 'open' : 'closed', ambiguousInRow, unread }
}

/**
 * An answered look-up shows that the supplier works again: one new purchase at a time may be sent.
 *
 * @param orders how many orders the look-up read
 */
export const afterLookUp = (breaker: Breaker, orders: number): Breaker =>
  breaker.phase === 'open' && (orders > 0 || !breaker.unread)
    ? { ...breaker, phase: 'probing', unread: false }
    : breaker

/** Once no purchase is in doubt, the unreadable answer cannot hide an order: one new purchase at a time may be sent. */
export const afterDoubts = (breaker: Breaker): Breaker => afterLookUp(breaker, 1)

/** How many new purchases may be in flight at once. */
export const firstSendsMax = (breaker: Breaker, usualMax: number): number =>
  breaker.phase === 'closed' ? usualMax : breaker.phase === 'probing' ? 1 : 0

/** How often a store's products are read at least: a product that the merchant adds is linked within this time. */
export const VARIANTS_EVERY_MS = 6 * 3_600_000
/** After new offers, a store's products are read this soon: one may wait for its offer. Offers that come together cost one. */
export const VARIANTS_SOON_MS = 15 * 60_000
