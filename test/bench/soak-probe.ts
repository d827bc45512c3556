/**
 * Loaded by `--import` before the service: tells the bench of the soak what the process holds. `collect` collects its memory
 * first; `forget` forgets old rows now instead of at night, and answers when that is over.
 */
import { readdirSync } from 'node:fs'
import { constants, monitorEventLoopDelay, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Connection from 'better-sqlite3'
import { getTasks } from 'node-cron'

export interface Reading {
  /** Bytes. */
  rss: number
  /** After the last whole collection, forced or not. */
  heap: number
  descriptors: number
  timers: number
  /** Sockets, servers, channels and requests under way. */
  handles: number
  /** The longest that the event loop was kept since the reading before, milliseconds by the clock. */
  blockedMs: number
  /** The longest of each of its causes: a COMMIT with the checkpoint it may make, another statement, folding the log, a collection of memory. */
  commitMs: number
  statementMs: number
  foldMs: number
  collectionMs: number
  /** Milliseconds that forgetting took. */
  forgotMs?: number
}

type Collection = PerformanceEntry & { detail: { kind: number } }

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as NodeJS.GCFunction
/** As V8 collects when memory runs out: else it keeps the pages that its young objects had for the next ones. */
const collect = (): void => gc({ type: 'major', flavor: 'last-resort' })
const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()
let heap = process.memoryUsage().heapUsed
const none = { commitMs: 0, statementMs: 0, foldMs: 0, collectionMs: 0 }
const longest = { ...none }
new PerformanceObserver((list) => {
  const entries = list.getEntries() as Collection[]
  longest.collectionMs = Math.max(longest.collectionMs, ...entries.map(({ duration }) => duration))
  const isWhole = entries.some(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR)
  if (isWhole) heap = process.memoryUsage().heapUsed
}).observe({ entryTypes: ['gc'] })

/** The same function, which notes how long it took. */
function timed<A extends unknown[], R>(cause: keyof typeof none, execute: (...args: A) => R) {
  return function measured(this: unknown, ...args: A): R {
    const startedAt = performance.now()
    try {
      return execute.apply(this, args)
    } finally {
      longest[cause] = Math.max(longest[cause], performance.now() - startedAt)
    }
  }
}

const { prepare, pragma } = Connection.prototype
Connection.prototype.pragma = timed('foldMs', pragma)
Connection.prototype.prepare = function prepareTimed(this: Connection.Database, text: string) {
  const statement = prepare.call(this, text)
  const cause = text === 'commit' ? 'commitMs' : 'statementMs'
  return Object.assign(statement, { run: timed(cause, statement.run), all: timed(cause, statement.all) })
} as typeof prepare

function read(): Reading {
  const resources = process.getActiveResourcesInfo()
  const timers = resources.filter((name) => name === 'Timeout').length
  const blockedMs = delays.max / 1e6
  delays.reset()
  const causes = { ...longest }
  Object.assign(longest, none)
  return {
    rss: process.memoryUsage.rss(),
    heap,
    descriptors: readdirSync('/proc/self/fd').length,
    timers,
    handles: resources.filter((name) => name !== 'Timeout' && name !== 'Immediate').length,
    blockedMs,
    ...causes,
  }
}

process.on('message', async (asked) => {
  if (asked !== 'read' && asked !== 'collect' && asked !== 'forget') return
  if (asked === 'collect') {
    collect()
    heap = process.memoryUsage().heapUsed
  }
  if (asked !== 'forget') return void process.send?.(read())
  read()
  const startedAt = performance.now()
  await [...getTasks().values()].find(({ name }) => name === 'forget')?.execute()
  const forgotMs = performance.now() - startedAt
  process.send?.({ ...read(), forgotMs })
})
// The channel to the bench must not keep a service alive that has stopped.
process.channel?.unref()
