/** When what a process says again and again means nothing any more, because it is not said any more. */

const SILENT_MS = 30_000
/** The same in ticks, where they are rare: a process says it at each of its own, and another reads it at each of its own. */
const SILENT_TICKS = 3

/** @param tickMs between two ticks of a process */
export const silentAfterMs = (tickMs: number): number => Math.max(SILENT_MS, SILENT_TICKS * tickMs)
