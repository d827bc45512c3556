/** A backward jump of this much, or a forward one of that much, is no drift: times taken before it mean nothing. */
const JUMP_BACK_MS = 60_000
const JUMP_AHEAD_MS = 600_000

/**
 * Watches the wall clock against one that never jumps.
 *
 * @returns asks whether the clock has jumped since the last call
 */
export function watchClock(now: () => number, monotonic: () => number): () => boolean {
  let wall = now()
  let steady = monotonic()
  return () => {
    const drift = now() - wall - (monotonic() - steady)
    wall = now()
    steady = monotonic()
    return drift < -JUMP_BACK_MS || drift > JUMP_AHEAD_MS
  }
}
