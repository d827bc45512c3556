/**
 * Pauses first sends while the supplier's answers are ambiguous, and from the first one on that cannot be read.
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
  /** Open because of an answer that could not be read. */
  unread: boolean
}

/** Whether the answer to a POST is unambiguous, leaves the outcome open, or cannot be read. */
export type AnswerQuality = 'clear' | 'ambiguous' | 'unreadable'

/** Two may be chance (a restart of the supplier); after three in a row every further send risks one more look-up. */
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
 * An answered look-up shows that the supplier works again: one first send at a time may go out.
 *
 * @param orders how many orders it read
 */
export const afterLookUp = (breaker: Breaker, orders: number): Breaker =>
  breaker.phase === 'open' && (orders > 0 || !breaker.unread)
    ? { ...breaker, phase: 'probing', unread: false }
    : breaker

/** No purchase is in doubt any more: the unreadable answer hides nothing, and one first send at a time may go out. */
export const afterDoubts = (breaker: Breaker): Breaker => afterLookUp(breaker, 1)

/** How many first sends may be in flight at once. */
export const firstSendsMax = (breaker: Breaker, usualMax: number): number =>
  breaker.phase === 'closed' ? usualMax : breaker.phase === 'probing' ? 1 : 0
