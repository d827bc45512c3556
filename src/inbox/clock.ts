interface ClockWatch {
  sawFresh(): void
  sawStale(): void
  suspect(): boolean
}

interface ClockWatchOptions {
  /** Epoch milliseconds. */
  now: () => number
  onStale: () => void
  onSuspect: () => void
}

/** Long enough to hold a few deliveries of a small shop, short enough that the doubt ends soon after the clock is right. */
const WINDOW_MS = 10 * 60_000

/** One or two stale deliveries are replays or a slow queue; three, and no fresh one in the window, are a clock. */
const STALE_MIN = 3

/** A stale delivery may stand for lost ones, but a replayed one must not cost a sweep each time. */
const SWEEP_GAP_MS = 60_000

/**
 * Watches whether the clock of this machine, rather than the sender, makes deliveries stale.
 *
 * `onStale` runs at most once a minute; `onSuspect` once each time that the doubt begins.
 */
export function watchClock({ now, onStale, onSuspect }: ClockWatchOptions): ClockWatch {
  let staleAt: number[] = []
  let freshAt = Number.NEGATIVE_INFINITY
  let askedAt = Number.NEGATIVE_INFINITY
  let told = false

  function suspect(): boolean {
    const at = now()
    const since = at - WINDOW_MS
    // One that is fresh in the future came before the clock was put back.
    if (freshAt > since && freshAt <= at) return false
    return staleAt.length === STALE_MIN && staleAt.every((seenAt) => seenAt > since)
  }

  return {
    suspect,
    sawFresh() {
      freshAt = now()
      told = false
    },
    sawStale() {
      const at = now()
      staleAt = [...staleAt, at].slice(-STALE_MIN)
      if (Math.abs(at - askedAt) >= SWEEP_GAP_MS) {
        askedAt = at
        onStale()
      }
      if (!suspect()) told = false
      else if (!told) {
        told = true
        onSuspect()
      }
    },
  }
}
