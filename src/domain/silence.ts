/** Decides when a repeated message of a process means nothing any more, because the process has stopped repeating it. */

const SILENT_MS = 30_000
/** The same in ticks, where ticks are rare: a process repeats its message once a tick, and another process reads it once a tick. */
const SILENT_TICKS = 3

/** @param tickMs the time between two ticks of a process */
export const silentAfterMs = (tickMs: number): number => Math.max(SILENT_MS, SILENT_TICKS * tickMs)
