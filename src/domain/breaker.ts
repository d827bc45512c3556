/**
 * Pauses first sends while the supplier's answers are ambiguous, and from the first one on that cannot be read.
 *
 *   closed ──3 ambiguous answers in a row──► open ──a look-up succeeds──► probing ──an unambiguous answer──► closed
 *          ──or one that cannot be read───►   ▲                              │
 *                                             └──────an ambiguous answer─────┘
 *
 * After an answer that cannot be read a look-up succeeds only when it reads an order: an empty list shows nothing of how
 * the supplier writes its orders.
 */
export interface Breaker {
  phase: 'closed' | 'open' | 'probing'
  ambiguousInRow: number
  /** Open because of an answer that could not be read. */
  unread: boolean
}

/** What the answer to a POST says of the supplier: it is as it should be, leaves open what happened, cannot be read. */
export type AnswerQuality = 'clear' | 'ambiguous' | 'unreadable'

/** Two may be chance (a restart at the supplier's); with three in a row every further send risks one more look-up. */
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
 * A look-up that was answered shows that the supplier is there again: one first send at a time may go out.
 *
 * @param orders how many orders it read
 */
export const afterLookUp = (breaker: Breaker, orders: number): Breaker =>
  breaker.phase === 'open' && (orders > 0 || !breaker.unread)
    ? { ...breaker, phase: 'probing', unread: false }
    : breaker

/** No purchase is in doubt any more: what could not be read hides nothing, and one first send at a time may go out. */
export const afterDoubts = (breaker: Breaker): Breaker => afterLookUp(breaker, 1)

/** How many first sends may be under way at once. */
export const firstSendsMax = (breaker: Breaker, usualMax: number): number =>
  breaker.phase === 'closed' ? usualMax : breaker.phase === 'probing' ? 1 : 0
