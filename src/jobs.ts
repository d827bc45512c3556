/**
 * When things run: workers that are woken, a tick that wakes them all the same, and node-cron for times of the day.
 */
import { type ScheduledTask, schedule } from 'node-cron'
import { messageOf } from './errors.ts'
import type { Log } from './log.ts'

/** Runs its work whenever there may be some, never twice at once. */
export interface Worker {
  /** Asks for a run: starts one, or another one after the one under way. */
  wake(): void
  /** Resolves when nothing runs any more. */
  idle(): Promise<void>
}

/**
 * Makes a worker of a function that does a batch of what is due and returns how much that was.
 *
 * It is called again at once while it found work, and once more when it was woken meanwhile. An error ends the run, is
 * logged, and the next wake tries again.
 */
export function createWorker(
  name: string,
  run: () => Promise<number>,
  { log, stopped }: { log: Log; stopped: () => boolean },
): Worker {
  let running: Promise<void> | undefined
  let again = false
  const loop = async (): Promise<void> => {
    do {
      again = false
      try {
        while (!stopped() && (await run()) > 0) again = false
      } catch (error) {
        log.warn('worker.failed', { kind: name, error: messageOf(error) })
      }
    } while (again && !stopped())
  }
  return {
    wake() {
      if (stopped()) return
      if (running !== undefined) {
        again = true
        return
      }
      running = loop().finally(() => {
        running = undefined
        if (again) this.wake()
      })
    },
    idle: async () => {
      while (running !== undefined) await running
    },
  }
}

/** Several workers as one. */
export const together = (workers: Worker[]): Worker => ({
  wake: () => {
    for (const worker of workers) worker.wake()
  },
  idle: async () => {
    await Promise.all(workers.map((worker) => worker.idle()))
  },
})

/** Work at the times of a cron expression. */
export interface Schedule {
  /** Computes its next time again. After a jump of the clock the timer that was set before waits too long. */
  rearm(): void
  /** Ends it; resolves when a run under way is over. */
  end(): Promise<void>
}

/** Runs work at the times of a cron expression, never overlapping itself. */
export function every(expression: string, name: string, work: () => Promise<unknown>, log: Log): Schedule {
  const run = onePass(name, work, log)
  const arm = (): ScheduledTask => schedule(expression, run.start, { name, noOverlap: true })
  let task = arm()
  return {
    rearm: () => {
      void task.destroy()
      task = arm()
    },
    end: async () => {
      await task.destroy()
      await run.idle()
    },
  }
}

/**
 * Runs work every so many seconds, never overlapping itself, whatever is done to the clock meanwhile: it is what notices
 * that.
 *
 * @returns ends it and resolves when a run under way is over
 */
export function everySeconds(
  seconds: number,
  name: string,
  work: () => Promise<unknown>,
  log: Log,
): () => Promise<void> {
  const run = onePass(name, work, log)
  const timer = setInterval(run.start, seconds * 1_000)
  return async () => {
    clearInterval(timer)
    await run.idle()
  }
}

/** Work that is started by timers: a start while it runs is left out, an error is logged and the next start tries again. */
function onePass(name: string, work: () => Promise<unknown>, log: Log) {
  let running: Promise<unknown> | undefined
  return {
    start: async (): Promise<void> => {
      running ??= work()
        .catch((error: unknown) => log.warn('schedule.failed', { kind: name, error: messageOf(error) }))
        .finally(() => {
          running = undefined
        })
      await running
    },
    idle: async (): Promise<void> => {
      await running
    },
  }
}

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
