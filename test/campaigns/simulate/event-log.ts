import { createHash } from 'node:crypto'

/** What happened, in order: one JSON line for each thing, and a digest over all of them. */
export interface EventLog {
  add(who: string, what: string, fields?: object): void
  /** SHA-256 of all lines so far, hex. */
  digest(): string
  /** The newest lines. */
  tail(): string[]
  /** Called with each line as it is added. */
  listeners: Set<(what: string, fields: Record<string, unknown>) => void>
}

/** Enough to see what led to a red run without scrolling for minutes. */
const TAIL_MAX = 60

/**
 * @param now epoch milliseconds; lines carry the milliseconds since the first call
 * @param write takes every line, when all of them are wanted
 */
export function createEventLog(now: () => number, write?: (line: string) => void): EventLog {
  const startAt = now()
  const hash = createHash('sha256')
  let tail: string[] = []
  const listeners: EventLog['listeners'] = new Set()
  return {
    listeners,
    add: (who, what, fields) => {
      const line = JSON.stringify({ at: now() - startAt, who, what, ...fields })
      hash.update(line).update('\n')
      write?.(line)
      tail.push(line)
      if (tail.length > 4 * TAIL_MAX) tail = tail.slice(-TAIL_MAX)
      for (const tell of listeners) tell(what, (fields ?? {}) as Record<string, unknown>)
    },
    digest: () => hash.copy().digest('hex'),
    tail: () => tail.slice(-TAIL_MAX),
  }
}
