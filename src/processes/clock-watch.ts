/** A clock that moves by more than this, back or ahead, has jumped. Times that were read before a jump cannot be used. */
const JUMP_BACK_MS = 60_000
const JUMP_AHEAD_MS = 600_000

/**
 * Compares the wall clock with a clock that never jumps.
 *
 * @returns a function that says whether the wall clock has jumped since the last call
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
