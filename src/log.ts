import { pino } from 'pino'
import { plain } from './domain/text-layout.ts'

/**
 * The fields that a log line may carry. A field that is not listed does not compile, and is dropped at run time. A list
 * of forbidden fields would leak each field that it lacks. Never add a field that may hold a key, a body or a token.
 */
const fieldNames = [
  'actor',
  'address',
  'after',
  'attempts',
  'before',
  'cause',
  'class',
  'code',
  'costFaults',
  'count',
  'cursor',
  'deliveryId',
  'detail',
  'durationMs',
  'epoch',
  'error',
  'errors',
  'fieldsUnreadable',
  'file',
  'foreign',
  'generation',
  'id',
  'input',
  'kind',
  'line',
  'matched',
  'method',
  'missing',
  'notListed',
  'offersChanged',
  'offersGone',
  'offersNew',
  'offersSeen',
  'offersUnreadable',
  'orders',
  'orphans',
  'outcome',
  'pages',
  'pagesBroken',
  'path',
  'purchaseId',
  'reason',
  'reference',
  'refreshed',
  'requestId',
  'requests',
  'role',
  'row',
  'runId',
  'settings',
  'state',
  'status',
  'store',
  'subject',
  'supplierOrderId',
  'type',
  'unreadable',
] as const

export type LogFields = Partial<Record<(typeof fieldNames)[number], string | number | boolean | null | undefined>>

/** One wide line per unit of work. `error`: someone must act now. `warn`: the fault is over, or the work will be tried again. */
export interface Log {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

const allowed: ReadonlySet<string> = new Set(fieldNames)

export interface LogRecord {
  /** ISO 8601, UTC. */
  time: string
  event: string
  level: keyof Log
  fields: LogFields
}

export interface LogOptions {
  /** The least level that is written. */
  level: 'debug' | keyof Log
  /** Takes one finished line. When `write` fails, the work that logs goes on. */
  write: (line: string) => void
  /** How a record becomes a line (default: JSON). */
  lineOf?: (record: LogRecord) => string
}

export function createLog({ level: least, write, lineOf }: LogOptions): Log {
  const logger = pino(
    {
      level: least,
      base: null,
      // pino begins a line with the level; people look for the time and the event first.
      formatters: { level: () => ({}) },
      timestamp: () => `"time":"${new Date().toISOString()}"`,
    },
    { write: (text) => write(lineOf === undefined ? text : `${lineOf(recordIn(text))}\n`) },
  )
  const line =
    (level: keyof Log) =>
    (event: string, fields: LogFields = {}): void => {
      try {
        logger[level]({ event, level, ...kept(fields) })
      } catch {
        // Work goes on without its log line: a broken pipe must not stop a purchase.
      }
    }
  return { info: line('info'), warn: line('warn'), error: line('error') }
}

function recordIn(text: string): LogRecord {
  const { time, event, level, ...fields } = JSON.parse(text) as Omit<LogRecord, 'fields'>
  return { time, event, level, fields }
}

/** Returns the fields that are listed, without those that hold objects. */
function kept(fields: LogFields): LogFields {
  const shown: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (allowed.has(name) && value !== undefined && (value === null || typeof value !== 'object')) shown[name] = value
  }
  return shown as LogFields
}

export const recordOf = (level: keyof Log, event: string, fields: LogFields): LogRecord => ({
  time: new Date().toISOString(),
  event,
  level,
  fields: kept(fields),
})

const DIM = 2
const COLOURS = { info: 32, warn: 33, error: 31 }

/** Writes a record for a terminal: `2026-08-02 14:03:11Z info  sync.complete pages=1 offersSeen=61`. Empty fields are left out. */
export const terminalLine =
  ({ colours }: { colours: boolean }) =>
  ({ time, event, level, fields }: LogRecord): string => {
    const paint = (colour: number, text: string) => (colours ? `\u001b[${colour}m${text}\u001b[0m` : text)
    const shown = Object.entries(fields)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => `${paint(DIM, `${name}=`)}${valueText(String(value))}`)
    const at = paint(DIM, `${time.slice(0, 19).replace('T', ' ')}Z`)
    return [at, paint(COLOURS[level], level.padEnd(5)), event, ...shown].join(' ')
  }

/** Returns a text without control characters: with them, a path or a message from outside could overwrite earlier lines. */
function valueText(text: string): string {
  const shown = plain(text)
  return /^[^\s"=]+$/.test(shown) ? shown : JSON.stringify(shown)
}

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
