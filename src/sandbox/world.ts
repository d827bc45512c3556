/**
 * The supplier's state and decisions, without HTTP and without timers. The clock is an argument.
 *
 * Everything is synchronous and every write is a transaction. So after a kill, each charge in the file also has its order, its
 * change of stock, the record of its idempotency key, and its events.
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
  /** Epoch milliseconds. */
  now: () => number
  /** Returns a number in [0, 1). */
  random: () => number
  /** The SQLite file; without it the world ends with the process. The contents of the file win over `balanceMinor` and `seed`. */
  file?: string | undefined
  /** The seed of the licence keys. If it is left out, it is random, so that a new sandbox never repeats an old one's keys. */
  seed?: number | undefined
  /** The first balance, in minor units of the dialect's currency. */
  balanceMinor: number
  /** A charge that takes the balance below this amount sends `balance.low`. */
  balanceLowMinor: number
  /** How long an order stays open. */
  completeAfterMs: number
}

export interface Ground extends Omit<WorldOptions, 'file' | 'seed' | 'balanceMinor'> {
  db: Tables
  /** When the account was created. Every product that never changed has this instant. */
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
    entriesOf: ledger.entriesOf,
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
