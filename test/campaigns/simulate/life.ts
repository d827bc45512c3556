import type { Timeline } from './timeline.ts'

/**
 * The life of one simulated process: whatever comes to it, an answer or an instant, waits while it is paused and is
 * never heard of once it is dead.
 */
export interface Life {
  /** Nothing keeps it from going on. */
  isOpen(): boolean
  /** Resolves when it may go on; never for a dead one. */
  opened(): Promise<void>
  after(ms: number, act: () => void): () => void
  sleep(ms: number): Promise<void>
  /** Something from outside reaches it, now or when it is awake again. */
  reach(act: () => void): void
  isDead(): boolean
  isPaused(): boolean
  /** When the pause began that ends at this very instant; now when none does. */
  pausedFrom(): number
  die(): void
  pause(ms: number): void
}

export function createLife(timeline: Timeline): Life {
  let dead = false
  let awakeAt = 0
  let asleepAt = 0
  let waiting: (() => void)[] = []

  const isPaused = (): boolean => awakeAt > timeline.now()
  const reach = (act: () => void): void => {
    if (dead) return
    if (isPaused() || waiting.length > 0) waiting.push(act)
    else act()
  }
  const wake = (): void => {
    if (dead || isPaused()) return
    const acts = waiting
    waiting = []
    for (const act of acts) reach(act)
  }
  const after = (ms: number, act: () => void) => timeline.after(ms, () => reach(act))
  return {
    isOpen: () => !dead && !isPaused() && waiting.length === 0,
    opened: () => new Promise((resolve) => reach(resolve)),
    after,
    sleep: (ms) => new Promise((resolve) => after(ms, resolve)),
    reach,
    isDead: () => dead,
    isPaused,
    pausedFrom: () => (awakeAt === timeline.now() ? asleepAt : timeline.now()),
    die: () => {
      dead = true
      waiting = []
    },
    pause: (ms) => {
      // A pause that begins at the end of another one goes on with it.
      if (awakeAt < timeline.now()) asleepAt = timeline.now()
      awakeAt = Math.max(awakeAt, timeline.now() + ms)
      timeline.after(ms, wake)
    },
  }
}
