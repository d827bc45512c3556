/** Decides when a process counts as silent: it has not repeated its message to the other processes for this long. */

const SILENT_MS = 30_000
/** Rare ticks need a longer limit, because a process writes its message once a tick, and another reads it once a tick. */
const SILENT_TICKS = 3

/** @param tickMs the time between two ticks of a process */
export const silentAfterMs = (tickMs: number): number => Math.max(SILENT_MS, SILENT_TICKS * tickMs)
