import { RECENT_MS, SKEW_MS } from './domain/sweep.ts'
import { Failure } from './errors.ts'
import type { Ordering } from './ordering/context.ts'
import { isOverdue, wholeFrom } from './ordering/nightly.ts'
import { beginSweep, runSweep } from './ordering/sweep.ts'
import type { Sweep } from './storage/sweeps.ts'

export interface SweepRunner {
  /**
   * Starts a sweep of thirty days, or joins one under way, and returns it as it stands now.
   *
   * @throws Failure `unavailable` while the service is being stopped
   */
  start: (cause: string) => Promise<Sweep>
  /** Sweeps the last two days; thirty, when the night's sweep did not come to its end. Resolves when it has ended. */
  recent: (cause: string) => Promise<void>
  /** Looks behind an instant, without waiting for it. */
  behind: (from: number | undefined, cause: string) => void
  idle: () => Promise<void>
}

interface Underway {
  from: number
  begun: Promise<Sweep>
  ended: Promise<void>
}

/** Sees to it that nobody waits for a sweep twice: one under way that looks back as far is joined. */
export function createSweepRunner(ordering: Ordering): SweepRunner {
  const running = new Set<Underway>()

  const run = (from: number, cause: string, still: boolean): Underway => {
    if (ordering.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
    const joined = [...running].find((one) => one.from <= from)
    if (joined) return joined
    const begun = beginSweep(ordering, from, cause)
    // `runSweep` stores and logs how it ended; whoever waits wants to know that it has.
    const ended = begun
      .then((sweep) => runSweep(ordering, sweep, still ? sweep.startedAt : undefined))
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => running.delete(one))
    const one: Underway = { from, begun, ended }
    running.add(one)
    return one
  }
  const whole = async (cause: string) => run(await wholeFrom(ordering), cause, true)
  return {
    start: async (cause) => (await whole(cause)).begun,
    recent: async (cause) => {
      const overdue = await isOverdue(ordering)
      const one = overdue ? await whole(cause) : run(ordering.now() - RECENT_MS, cause, false)
      await one.ended
    },
    behind: (from, cause) => {
      if (from !== undefined && !ordering.signal?.aborted) run(from - SKEW_MS, cause, false)
    },
    idle: async () => {
      await Promise.all([...running].map(({ ended }) => ended))
    },
  }
}
