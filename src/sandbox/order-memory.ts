import type { Decision } from './orders.ts'
import type { Tables } from './tables.ts'

/**
 * What each idempotency key led to, for as long as the dialect says, counted from its first use.
 *
 * The sandbox has one account, so a key needs no owner. Orders and refusals are kept; malformed requests never get here.
 */
export function createMemory(db: Tables, memoryMs: number) {
  const find = db.prepare<[string], { fingerprint: string; decision: string; at: number }>(
    'select fingerprint, decision, at from idempotency where key = ?',
  )
  const put = db.prepare('insert or replace into idempotency (key, fingerprint, decision, at) values (?, ?, ?, ?)')
  const forget = db.prepare('delete from idempotency where at <= ?')
  return {
    /** @param fingerprint equal for equal requests only */
    recall: (key: string, fingerprint: string, now: number): Decision | undefined => {
      const row = find.get(key)
      if (!row || now - row.at >= memoryMs) return undefined
      if (row.fingerprint === fingerprint) return JSON.parse(row.decision) as Decision
      const message = 'The idempotency key was used before with a different request.'
      return { kind: 'refused', error: 'key_reused', message }
    },
    keep: (key: string, fingerprint: string, decision: Decision, now: number): void =>
      void put.run(key, fingerprint, JSON.stringify(decision), now),
    forget: (now: number): void => void forget.run(now - memoryMs),
  }
}
