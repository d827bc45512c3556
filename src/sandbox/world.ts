/**
 * The supplier's state and decisions, without HTTP and timers; the clock is an argument.
 *
 * Everything is synchronous and every write is a transaction: after a kill the file never has a charge without its order,
 * its stock, the record of its key or its events.
 */
import type { Dialect } from '../dialect/dialect.ts'
import type { Catalogue } from './catalogue.ts'
import { bytesFrom } from './chance.ts'
import type { Faults } from './faults.ts'
import { keepLedger } from './ledger.ts'
import { keepOffers } from './offers.ts'
import { keepOrders } from './orders.ts'
import { openTables, type Tables } from './tables.ts'
import { keepWebhooks } from './webhooks.ts'

export interface WorldOptions {
  dialect: Dialect
  catalogue: Catalogue
  faults: Faults
  now: () => number
  random: () => number
  /** SQLite file; memory without one. Its contents win over `balanceMinor` and `seed`. */
  file?: string | undefined
  /** Seed of the licence keys. Without one it is random, so that a new sandbox never repeats the keys of an old one. */
  seed?: number | undefined
  balanceMinor: number
  /** A charge that takes the balance below this sends `balance.low`. */
  balanceLowMinor: number
  completeAfterMs: number
}

/** The shared parts of the world. */
export interface Ground extends Omit<WorldOptions, 'file' | 'seed' | 'balanceMinor'> {
  db: Tables
  /** When the account was created: the instant of every record that never changed. */
  startedAt: number
}

export type World = ReturnType<typeof openWorld>

export function openWorld(options: WorldOptions) {
  const db = openTables(options.file)
  const ground: Ground = { ...options, db, startedAt: openAccount(db, options) }
  const webhooks = keepWebhooks(ground)
  const ledger = keepLedger(ground, webhooks)
  const offers = keepOffers(ground, webhooks)
  const orders = keepOrders(ground, ledger, offers, webhooks)
  return {
    webhooks,
    offers,
    orders,
    balanceMinor: ledger.balanceMinor,
    topUp: db.transaction(ledger.topUp),
    report: ledger.report,
    summary: ledger.summary,
    /** Settles the orders that are due by the clock. Returns how many moved. */
    advance: orders.advance,
    close: (): void => {
      db.close()
    },
  }
}

/** @returns when the account was created */
function openAccount(db: Tables, { balanceMinor, seed, random, now }: WorldOptions): number {
  const keySeed = seed === undefined ? bytesFrom(random, 16).toString('hex') : String(seed)
  db.prepare(
    `insert into account (id, start_minor, balance_minor, key_seed, created_at) values (1, ?, ?, ?, ?)
     on conflict (id) do nothing`,
  ).run(balanceMinor, balanceMinor, keySeed, now())
  return db.prepare<[], { at: number }>('select created_at as at from account').get()?.at ?? now()
}
