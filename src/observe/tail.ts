import { type Log, type LogFields, type LogRecord, recordOf } from '../log.ts'

/** Events that are kept for a watcher that reads more slowly than they happen; older events are only counted. */
const WAITING_MAX = 1_000
/** Watchers at once: each costs memory and a connection. */
export const WATCHERS_MAX = 20

export interface Tail {
  /** Writes to the log and to all that watch. */
  log: Log
  /** Records from now on, after these; undefined where too many watch already. */
  watch: (before?: LogRecord[]) => AsyncIterableIterator<LogRecord, void> | undefined
  /** How many watch. */
  watchers: () => number
  /** Ends all that watch. */
  end: () => void
}

interface Watcher {
  take: (record: LogRecord) => void
  end: () => void
}

/** After so long without a record a watcher gets `tail.idle`: a silent connection is cut by proxies and clients. */
const IDLE_MS = 30_000

/** Lets people watch the log as it is written. Nothing is kept for those who come later. */
export function createTail(log: Log, { idleMs = IDLE_MS } = {}): Tail {
  const watchers = new Set<Watcher>()
  const level =
    (name: keyof Log) =>
    (event: string, fields: LogFields = {}): void => {
      log[name](event, fields)
      if (watchers.size === 0) return
      const record = recordOf(name, event, fields)
      for (const { take } of watchers) take(record)
    }

  function watch(before: LogRecord[] = []): AsyncIterableIterator<LogRecord, void> | undefined {
    if (watchers.size >= WATCHERS_MAX) return undefined
    const waiting = [...before]
    let skipped = 0
    let isOver = false
    let wake = (): void => {}
    const watcher: Watcher = {
      take: (record) => {
        if (waiting.length === WAITING_MAX) {
          waiting.shift()
          skipped += 1
        }
        waiting.push(record)
        wake()
      },
      end: () => {
        isOver = true
        watchers.delete(watcher)
        wake()
      },
    }
    watchers.add(watcher)
    return {
      [Symbol.asyncIterator]() {
        return this
      },
      async next() {
        if (waiting.length === 0 && !isOver) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, idleMs)
            wake = () => {
              clearTimeout(timer)
              resolve()
            }
          })
        }
        if (waiting.length === 0 && !isOver) return { done: false, value: recordOf('info', 'tail.idle', {}) }
        if (skipped > 0) {
          const value = recordOf('warn', 'tail.skipped', { count: skipped })
          skipped = 0
          return { done: false, value }
        }
        const value = waiting.shift()
        return value ? { done: false, value } : { done: true, value: undefined }
      },
      async return() {
        watcher.end()
        return { done: true, value: undefined }
      },
    }
  }

  return {
    log: { info: level('info'), warn: level('warn'), error: level('error') },
    watch,
    watchers: () => watchers.size,
    end: () => {
      for (const { end } of [...watchers]) end()
    },
  }
}
