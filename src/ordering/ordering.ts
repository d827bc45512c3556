import type { Context } from '../context.ts'
import type { Dialect } from '../dialect/dialect.ts'
import { type Breaker, closedBreaker } from '../domain/breaker.ts'
import type { Rate } from '../domain/rates.ts'
import type { Change } from '../storage/database.ts'
import { insertAudit } from '../storage/evidence.ts'
import type { Supplier } from '../supplier/client.ts'
import type { OrderingStore } from './intake.ts'
import type { LastRequest, Rounds } from './not-found-proof.ts'

export type OrderingSupplier = Pick<
  Supplier,
  'placeOrder' | 'order' | 'orders' | 'agrees' | 'unreadable' | 'pausedUntil'
>

/** Named instants at which a test may end the process: before and after each commit, send and answer. */
export type CrashPoint =
  | 'claiming'
  | 'claimed'
  | 'intending'
  | 'intended'
  | 'answered'
  | 'recorded'
  /** A look-up was answered; nothing of it is noted. */
  | 'looked_up'
  /** An order was read; nothing of it is applied. */
  | 'read'
  /** Keys are marked as leaving; the store does not have them. */
  | 'pushing'
  /** The store has confirmed; that is not noted yet. */
  | 'pushed'
  /** The keys are marked as handed over; the purchase does not know yet. */
  | 'noted'

/** Workers that are woken early; the tick wakes all of them anyway. */
export type WorkerName = 'inbox' | 'place' | 'refresh' | 'outbox' | 'publish'

/** Policy of ordering, amounts in minor units of the supplier's currency. */
export interface OrderingPolicy {
  inFlight: number
  deadlineMs: number
  ceilingPercent: string
  minMarginPercent: string
  /** Turn a unit price into the supplier's currency. */
  rates: Rate[]
  caps: { order: number | null; hour: number | null; day: number | null }
}

/** What placing remembers between its runs; lost at a restart, when nothing is under way. */
export interface Pace {
  breaker: Breaker
  /** No first send or replay before this instant: the API key was refused. */
  pausedUntil: number
  /** Kinds of answers that cannot be read and that people were alerted to. */
  alerted: ReadonlySet<string>
  /** When such answers are asked for again at the earliest, on the clock that never jumps. */
  readAgainAt: number
  /** Instants of the first sends and of the repeats of the last minute. */
  firstSends: number[]
  repeats: number[]
  /** Product -> when it was last confirmed with the supplier. */
  checked: Map<string, number>
  /** Purchase -> its last request, oldest first. */
  lastRequests: Map<string, LastRequest>
  /** Whether the filter by reference has found an order in this process: only then does its empty answer prove anything. */
  referenceFilter: 'untried' | 'finds' | 'misses'
  /** Rounds of reattaching orders after a restore; absent without a restore. */
  rounds?: Rounds
  /** When a new database may be compared again, on the clock that never jumps; absent before the first time. */
  compareAt?: number
}

export const freshPace = (): Pace => ({
  breaker: closedBreaker,
  pausedUntil: 0,
  firstSends: [],
  repeats: [],
  checked: new Map(),
  lastRequests: new Map(),
  alerted: new Set(),
  readAgainAt: 0,
  referenceFilter: 'untried',
})

/** What every ordering flow needs. */
export interface Ordering extends Context {
  supplier: OrderingSupplier
  dialect: Dialect
  policy: OrderingPolicy
  pace: Pace
  /** Name of this process in leases. */
  owner: string
  /** The stores that we sell through. A supplier order that carries none of their ids is another client's. */
  stores: readonly OrderingStore[]
  wake: (worker: WorkerName) => void
  /** Reads one offer from the supplier again. */
  refreshOffer: (productId: string) => Promise<void>
  /** Reads the balance again. */
  readBalance: () => Promise<void>
  /**
   * Notes an attempt in the marker file, before the request leaves, so that an older copy of the database is recognised.
   * Absent for a database in memory, which cannot be restored.
   */
  mark?: (attempt: string) => Promise<void>
  /** Writes the marker of a new epoch. Absent where `mark` is. */
  beginEpoch?: (epoch: number) => Promise<void>
  /** Called at each named instant; does nothing outside tests. */
  at: (point: CrashPoint) => void
  /** Once aborted, a sweep stops after the page it is at. */
  signal?: AbortSignal
}

/** Deadline of a request: a third of the supplier's settle time, so that its outcome is recorded long before that ends. */
export const deadlineMs = ({ dialect }: Ordering): number => (dialect.settleSeconds * 1_000) / 3

/** How long a request may still run, and how long its order may be missing from the list, in milliseconds. */
export const gapsOf = ({ settleSeconds, listLagSeconds }: Ordering['dialect']) => ({
  settleMs: settleSeconds * 1_000,
  listLagMs: listLagSeconds * 1_000,
})

/** The text of a stored licence key. */
export const openKey = (
  { vault }: Pick<Ordering, 'vault'>,
  key: { purchaseId: string; ordinal: number; ciphertext: Buffer; keyId: number },
): string => {
  const place = { table: 'licence_keys', row: key.purchaseId, ordinal: key.ordinal }
  return vault.open(place, key.ciphertext, key.keyId).toString('utf8')
}

/** The line of the audit for what a person or a store asked for. */
export const audited = (
  { newId, now }: Pick<Ordering, 'newId' | 'now'>,
  actor: string,
  action: string,
  subject: string,
  detail?: string,
): Change => insertAudit({ id: newId(), at: now(), actor, action, subject, detail: detail ?? null })
