/**
 * The supplier's state and decisions: no HTTP and no timers, and the clock comes in as an argument.
 *
 * Everything is synchronous and every write is a transaction, so nothing is ever half done: a charge without its order,
 * its stock, its memory of the key or its events cannot be found in the file, whenever the process is killed.
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
  /** SQLite file; memory when there is none. What it holds wins over `balanceMinor` and `seed`. */
  file?: string | undefined
  /** Seed of the licence keys. Without one it is drawn, so that a fresh sandbox never repeats the keys of an old one. */
  seed?: number | undefined
  balanceMinor: number
  /** A charge that takes the balance below this announces it. */
  balanceLowMinor: number
  completeAfterMs: number
}

/** What the parts of the world share. */
export interface Ground extends Omit<WorldOptions, 'file' | 'seed' | 'balanceMinor'> {
  db: Tables
  /** When the account was made: the age of whatever never changed. */
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
    /** Lets time pass: settles the orders that are due by the clock. Returns how many moved. */
    advance: orders.advance,
    close: (): void => {
      db.close()
    },
  }
}

/** @returns when the account was made */
function openAccount(db: Tables, { balanceMinor, seed, random, now }: WorldOptions): number {
  const keySeed = seed === undefined ? bytesFrom(random, 16).toString('hex') : String(seed)
  db.prepare(
    `insert into account (id, start_minor, balance_minor, key_seed, created_at) values (1, ?, ?, ?, ?)
     on conflict (id) do nothing`,
  ).run(balanceMinor, balanceMinor, keySeed, now())
  return db.prepare<[], { at: number }>('select created_at as at from account').get()?.at ?? now()
}
