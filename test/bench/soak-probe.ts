/**
 * Loaded by `--import` before the service: tells the bench of the soak what the process holds. `collect` collects its memory
 * first; `forget` forgets old rows now instead of at night, and answers when that is over.
 */
import { readdirSync } from 'node:fs'
import { constants, monitorEventLoopDelay, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
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
  /** Milliseconds that forgetting took. */
  forgotMs?: number
}

type Collection = PerformanceEntry & { detail: { kind: number } }

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()
let heap = process.memoryUsage().heapUsed
new PerformanceObserver((list) => {
  const isWhole = list
    .getEntries()
    .some((entry) => (entry as Collection).detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR)
  if (isWhole) heap = process.memoryUsage().heapUsed
}).observe({ entryTypes: ['gc'] })

function read(): Reading {
  const resources = process.getActiveResourcesInfo()
  const timers = resources.filter((name) => name === 'Timeout').length
  const blockedMs = delays.max / 1e6
  delays.reset()
  return {
    rss: process.memoryUsage.rss(),
    heap,
    descriptors: readdirSync('/proc/self/fd').length,
    timers,
    handles: resources.filter((name) => name !== 'Timeout' && name !== 'Immediate').length,
    blockedMs,
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
