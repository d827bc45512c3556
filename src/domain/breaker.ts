/**
 * Pauses first sends while the supplier's answers are ambiguous.
 *
 *   closed ──3 ambiguous answers in a row──► open ──a look-up succeeds──► probing ──an unambiguous answer──► closed
 *                                             ▲                              │
 *                                             └──────an ambiguous answer─────┘
 */
export interface Breaker {
  phase: 'closed' | 'open' | 'probing'
  ambiguousInRow: number
}

/** Two may be chance (a restart at the supplier's); with three in a row every further send risks one more look-up. */
const AMBIGUOUS_MAX = 3

export const closedBreaker: Breaker = { phase: 'closed', ambiguousInRow: 0 }

/** @param ambiguous whether the answer to a POST left open what happened */
export function afterAnswer(breaker: Breaker, ambiguous: boolean): Breaker {
  if (!ambiguous) return closedBreaker
  const ambiguousInRow = breaker.ambiguousInRow + 1
  const opens = breaker.phase !== 'closed' || ambiguousInRow >= AMBIGUOUS_MAX
  return { phase: opens ? 'open' : 'closed', ambiguousInRow }
}

/** A look-up that was answered shows that the supplier is there again: one first send at a time may go out. */
export const afterLookUp = (breaker: Breaker): Breaker =>
  breaker.phase === 'open' ? { ...breaker, phase: 'probing' } : breaker

/** How many first sends may be under way at once. */
export const firstSendsMax = (breaker: Breaker, usualMax: number): number =>
  breaker.phase === 'closed' ? usualMax : breaker.phase === 'probing' ? 1 : 0
