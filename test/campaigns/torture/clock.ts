/**
 * Preloaded into a service under torture: shifts its wall clock by the milliseconds in the file that `TORTURE_CLOCK`
 * names, and ends the process with the one that started it. The monotonic clock and the timers stay as they are.
 */
import { readFileSync } from 'node:fs'

/** A jump takes effect within this time. */
const READ_MS = 20

const file = process.env.TORTURE_CLOCK ?? ''
const parent = process.ppid
const TrueDate = Date
let offsetMs = readOffset()

function readOffset(): number {
  try {
    return Number(readFileSync(file, 'utf8')) || 0
  } catch {
    return 0
  }
}

setInterval(() => {
  offsetMs = readOffset()
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL')
}, READ_MS).unref()

globalThis.Date = new Proxy(TrueDate, {
  construct: (target, given: [], newTarget) =>
    given.length === 0
      ? Reflect.construct(target, [TrueDate.now() + offsetMs], newTarget)
      : Reflect.construct(target, given, newTarget),
  apply: () => new TrueDate(TrueDate.now() + offsetMs).toString(),
  get: (target, name) => {
    if (name === 'now') return () => TrueDate.now() + offsetMs
    return Reflect.get(target, name) as unknown
  },
})
