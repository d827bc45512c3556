/** What most flows work with, documented once: a function takes the `Pick` of it that it needs. */
import type { Log } from './log.ts'
import type { Database } from './storage/database.ts'
import type { Vault } from './vault/vault.ts'

export interface Context {
  db: Database
  vault: Vault
  /** Epoch milliseconds of the wall clock. */
  now: () => number
  /** Milliseconds of a clock that never jumps. Leases and not-found proofs are measured on it. */
  monotonic: () => number
  /** A number in [0, 1). */
  random: () => number
  /** A new id; ids sort by the time at which they were made. */
  newId: () => string
  log: Log
}
