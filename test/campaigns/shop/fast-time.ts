/**
 * Preloaded into the service: its wall clock and its monotonic clock run as the file that `SHOP_CLOCK` names says. Its timers
 * stay as they are.
 */
import { readFileSync } from 'node:fs'

/** The clock is put ahead within this time. */
const READ_MS = 20

const file = process.env.SHOP_CLOCK ?? ''
const TrueDate = Date
let since = read()

function read(): { real: number; shown: number; speed: number } {
  return JSON.parse(readFileSync(file, 'utf8'))
}

const now = (): number => Math.floor(since.shown + (TrueDate.now() - since.real) * since.speed)
const startedAt = now()

setInterval(() => {
  since = read()
}, READ_MS).unref()

globalThis.Date = new Proxy(TrueDate, {
  construct: (target, given: [], newTarget) =>
    given.length === 0 ? Reflect.construct(target, [now()], newTarget) : Reflect.construct(target, given, newTarget),
  apply: () => new TrueDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : (Reflect.get(target, name) as unknown)),
})

performance.now = () => now() - startedAt
