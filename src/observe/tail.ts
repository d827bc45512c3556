import { type Log, type LogFields, type LogRecord, recordOf } from '../log.ts'

/** How many events wait for a slow watcher. When more come, the oldest event is dropped and only counted. */
const WAITING_MAX = 1_000
/** The most watchers at once: each watcher costs memory and a connection. */
export const WATCHERS_MAX = 20

export type Tail = ReturnType<typeof createTail>

interface Watcher {
  take: (record: LogRecord) => void
  end: () => void
}

/** A watcher gets `tail.idle` after this time without a record, because proxies and clients cut a silent connection. */
const IDLE_MS = 30_000

/** Lets people watch the log as it is written. No record is kept for later watchers. */
export function createTail(log: Log, { idleMs = IDLE_MS } = {}) {
  const watchers = new Set<Watcher>()
  const level =
    (name: keyof Log) =>
    (event: string, fields: LogFields = {}): void => {
      log[name](event, fields)
      if (watchers.size === 0) return
      const record = recordOf(name, event, fields)
      for (const { take } of watchers) take(record)
    }

  /** Gives the records of `before`, then all records from now on. Returns undefined where there are too many watchers already. */
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
    /** Writes to the log and to all watchers. */
    log: { info: level('info'), warn: level('warn'), error: level('error') } satisfies Log,
    watch,
    watchers: () => watchers.size,
    end: () => {
      for (const { end } of [...watchers]) end()
    },
  }
}
