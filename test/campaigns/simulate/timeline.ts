/**
 * Virtual time: what happens later is a list of things to do, and the clock is where the list stands.
 *
 * Between two of them everything that was set off runs to its end, as it would while real time passes: promises here,
 * and the two things that real code leaves to the event loop (a group of commits, a stream).
 */
import { setImmediate as turn } from 'node:timers/promises'

export interface Timeline {
  /** Epoch milliseconds, whole. */
  now(): number
  /** Does something that much later; what it returns calls it off. */
  after(ms: number, act: () => void): () => void
  sleep(ms: number): Promise<void>
  /** Runs a flush of the database once whatever runs now has come to rest. */
  defer(flush: () => void): void
  /** Something is under way that only turns of the event loop finish; what it returns says that it is over. */
  underway(): () => void
  /** Does all that is due up to an instant, and stands there. */
  runUntil(at: number): Promise<void>
}

interface Planned {
  at: number
  place: number
  act: (() => void) | undefined
}

/** Far above what a run of days needs: a loop that does not let time pass ends here. */
const EVENTS_MAX = 400_000

export function createTimeline(startAt: number): Timeline {
  const heap: Planned[] = []
  let clock = startAt
  let places = 0
  let events = 0
  let flushed = false
  let turns = 0

  /** Lets everything that needs no time happen. A tick runs after all promises that are settled by then. */
  async function rest(): Promise<void> {
    do {
      flushed = false
      await new Promise<void>((resolve) => process.nextTick(resolve))
      if (turns > 0) await turn()
      // Who waited for a flush goes on after this line: it takes one more tick to see what they set off.
    } while (flushed || turns > 0)
  }

  return {
    now: () => clock,
    after: (ms, act) => {
      const planned: Planned = { at: clock + Math.max(0, Math.round(ms)), place: places++, act }
      push(heap, planned)
      return () => {
        planned.act = undefined
      }
    },
    sleep(ms) {
      return new Promise((resolve) => this.after(ms, resolve))
    },
    defer: (flush) => {
      flushed = true
      process.nextTick(() => {
        flushed = true
        flush()
      })
    },
    underway: () => {
      turns += 1
      return () => {
        turns -= 1
      }
    },
    runUntil: async (at) => {
      for (;;) {
        await rest()
        const next = heap[0]
        if (!next || next.at > at) break
        pop(heap)
        if (!next.act) continue
        clock = Math.max(clock, next.at)
        next.act()
        events += 1
        if (events > EVENTS_MAX) throw new Error(`no rest after ${EVENTS_MAX} events`)
      }
      clock = Math.max(clock, at)
    },
  }
}

const isBefore = (left: Planned, right: Planned): boolean =>
  left.at === right.at ? left.place < right.place : left.at < right.at

function push(heap: Planned[], planned: Planned): void {
  let index = heap.push(planned) - 1
  while (index > 0) {
    const above = (index - 1) >> 1
    const other = heap[above] as Planned
    if (isBefore(other, planned)) break
    heap[index] = other
    index = above
  }
  heap[index] = planned
}

function pop(heap: Planned[]): void {
  const last = heap.pop()
  if (!last || heap.length === 0) return
  let index = 0
  for (;;) {
    const left = 2 * index + 1
    if (left >= heap.length) break
    const right = left + 1
    const lower = right < heap.length && isBefore(heap[right] as Planned, heap[left] as Planned) ? right : left
    const other = heap[lower] as Planned
    if (isBefore(last, other)) break
    heap[index] = other
    index = lower
  }
  heap[index] = last
}
