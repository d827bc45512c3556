interface ClockWatch {
  sawFresh(): void
  /** @param mac of the delivery; one that was counted before is not counted again: it is a replay */
  sawStale(mac: Buffer): 'counted' | 'repeated'
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

/** One or two stale deliveries are replays or a slow queue; three different ones, and no fresh one in the window, are a clock. */
const STALE_MIN = 3

/** A stale delivery may stand for lost ones; many at once are one reason to sweep. */
const SWEEP_GAP_MS = 60_000

/** A wrong clock makes every delivery stale: one alert says so. */
const ALERT_GAP_MS = 3_600_000

/**
 * How many counted deliveries are remembered; the oldest go first. A sender who replays captured deliveries needs more
 * than this number of them to have one counted twice. Together they take about 1 MB.
 */
const COUNTED_MAX = 10_000

/**
 * Watches whether the clock of this machine, rather than the sender, makes deliveries stale.
 *
 * Each delivery counts once. `onStale` runs at most once a minute, `onSuspect` at most once an hour.
 */
export function watchClock({ now, onStale, onSuspect }: ClockWatchOptions): ClockWatch {
  const counted = new Set<string>()
  let staleAt: number[] = []
  let freshAt = Number.NEGATIVE_INFINITY
  let sweptAt = Number.NEGATIVE_INFINITY
  let alertedAt = Number.NEGATIVE_INFINITY

  function suspect(): boolean {
    const at = now()
    const since = at - WINDOW_MS
    // One that is fresh in the future came before the clock was put back.
    if (freshAt > since && freshAt <= at) return false
    return staleAt.length === STALE_MIN && staleAt.every((seenAt) => seenAt > since)
  }

  function countOnce(mac: Buffer): boolean {
    const key = mac.toString('base64')
    if (counted.has(key)) return false
    counted.add(key)
    for (const oldest of counted) {
      if (counted.size <= COUNTED_MAX) break
      counted.delete(oldest)
    }
    return true
  }

  return {
    suspect,
    sawFresh() {
      freshAt = now()
    },
    sawStale(mac) {
      if (!countOnce(mac)) return 'repeated'
      const at = now()
      staleAt = [...staleAt, at].slice(-STALE_MIN)
      // A clock that was put back must not silence either of them until it has caught up.
      if (Math.abs(at - sweptAt) >= SWEEP_GAP_MS) {
        sweptAt = at
        onStale()
      }
      if (suspect() && Math.abs(at - alertedAt) >= ALERT_GAP_MS) {
        alertedAt = at
        onSuspect()
      }
      return 'counted'
    },
  }
}
