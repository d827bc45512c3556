/** What most flows work with, documented once. Each function takes a `Pick` with the fields that it needs. */
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

let hook: ((point: string) => void) | undefined

/**
 * Registers a function that the service calls at its crash points. Tests kill the process there: they load a module with
 * `--import`, which calls this function. This file imports only types, so that module loads no other part of the program.
 */
export const registerAt = (at: (point: string) => void): void => {
  hook = at
}

export const registeredAt = (): ((point: string) => void) | undefined => hook
