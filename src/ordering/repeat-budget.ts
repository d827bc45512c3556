import type { Ordering } from './context.ts'

const WINDOW_MS = 60_000
/** Repeats per minute that are always allowed, so that a quiet shop recovers quickly. */
const REPEATS_MIN = 6

/**
 * Whether another repeat may leave: repeats stay under a tenth of the first attempts of the last minute, but never
 * under 6 a minute. A supplier in trouble is not buried under repeats.
 */
export function mayRepeat({ pace, now }: Pick<Ordering, 'pace' | 'now'>): boolean {
  const since = now() - WINDOW_MS
  pace.firstSends = pace.firstSends.filter((at) => at > since)
  pace.repeats = pace.repeats.filter((at) => at > since)
  return pace.repeats.length < Math.max(REPEATS_MIN, Math.floor(pace.firstSends.length / 10))
}

/** Counts a request that is about to leave. */
export function noteSend({ pace, now }: Pick<Ordering, 'pace' | 'now'>, repeat: boolean): void {
  const sends = repeat ? pace.repeats : pace.firstSends
  sends.push(now())
}
