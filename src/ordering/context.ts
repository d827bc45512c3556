import type { Context } from '../context.ts'
import type { Dialect } from '../dialect/dialect.ts'
import type { CountActivity } from '../domain/activity.ts'
import type { StorePolicy } from '../domain/listing.ts'
import { type Breaker, closedBreaker } from '../domain/pace.ts'
import type { Rate } from '../domain/rates.ts'
import type { ExpectedOrder } from '../domain/supplier.ts'
import type { Outage } from '../storage/outages.ts'
import type { Purchase } from '../storage/purchases.ts'
import type { Supplier } from '../supplier/client.ts'
import { noFirsts, type OneFirst } from './one-first.ts'

export type OrderingSupplier = Pick<
  Supplier,
  'placeOrder' | 'order' | 'orders' | 'differs' | 'unreadable' | 'setAside' | 'reach' | 'quota' | 'pausedUntil'
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
  /** The keys are marked as handed over, and the purchase has ended if they were its last. */
  | 'noted'

/** Workers that are woken early; the tick wakes all of them anyway. */
export type WorkerName = 'inbox' | 'poll' | 'read' | 'place' | 'refresh' | 'outbox' | 'publish'

/** Policy of ordering, amounts in minor units of the supplier's currency. */
export interface OrderingPolicy {
  inFlight: number
  /** An offer that was read within this time is not read again before a purchase. */
  offerFreshnessMs: number
  deadlineMs: number
  /** How old the reading of a shop's order may be when a purchase of it is sent first. */
  entitlementMs: number
  ceilingPercent: string
  minMarginPercent: string
  /** Turn a unit price into the supplier's currency. */
  rates: Rate[]
  caps: { order: number | null; hour: number | null; day: number | null }
}

/** A store that orders may come from, with the offers that it lists by itself; without a policy all of them. */
export interface OrderingStore {
  id: string
  policy?: { filter: StorePolicy['filter'] }
  /** How units that an order of the shop gains are taken. Default: a person is asked, unless the shop states that they are paid. */
  growth?: 'buy' | 'ask' | undefined
  /** A merchant has ended purchases tried again by setting the order back to paid; else by a tag. */
  wishesByStanding?: boolean
}

/** What placing remembers between its runs; lost at a restart, when nothing is under way. */
export interface Pace {
  breaker: Breaker
  /** An order was made in this process as it was sent: until then the first ones go alone. */
  agreed: boolean
  /** The purchase whose order differed before one agreed: nothing more is bought until it is decided. */
  differs?: string | undefined
  /** No first send or replay before this instant: the API key was refused. */
  pausedUntil: number
  /** Kinds of answers that cannot be read and that people were alerted to. */
  alerted: ReadonlySet<string>
  /** When such answers are asked for again at the earliest, on the clock that never jumps. */
  readAgainAt: number
  /** The outage of the supplier that is not over; null: there is none. Absent until it is read. */
  outage?: (Outage & { isAlerted?: true }) | null
  /** Instants of the first sends and of the repeats of the last minute. */
  firstSends: number[]
  repeats: number[]
  /** Product -> when it was last confirmed with the supplier. */
  checked: Map<string, number>
  /** The first purchases of offers, which show a price to those behind them, and what they showed. */
  oneFirst: OneFirst
  /** What the deliveries about orders have said. */
  watch: {
    /** Purchases whose orders a delivery named and that were not read since. */
    announced: Set<string>
    /** Orders in a row that were over before any delivery named them; undefined: no delivery has come since the start. */
    unannounced: number | undefined
  }
  /** Purchase, or order of the supplier -> when that order was first read as failed without anything that bears it out. */
  doubted: Map<string, number>
  /** Stores to which the last update failed. */
  failing: Set<string>
  /** Purchase -> its last request, oldest first. */
  lastRequests: Map<string, LastRequest>
  /** Whether the filter by reference has found an order in this process: only then does its empty answer prove anything. */
  referenceFilter: 'untried' | 'finds' | 'misses'
  /** Answers of the supplier that the database has not taken yet, each until an instant of the clock that never jumps. */
  unstored: { until: number; act: () => Promise<unknown> }[]
  /** Rounds of reattaching orders after a restore; absent without a restore. */
  rounds?: Rounds
  /** When a new database may be compared again, on the clock that never jumps; absent before the first time. */
  compareAt?: number
}

/**
 * What this process remembers of a purchase's last request, in milliseconds of the monotonic clock. It ends with the process,
 * because that clock does.
 */
export interface LastRequest {
  /** `lastSentAt` of the row at that time: a newer value means another request. */
  lastSentAt: number | null
  /** When its intent was stored, or when this process first read it, which was later. */
  sentAt: number
  /** When the first valid scan that found nothing began. */
  absentSince?: number
}

/** The rounds of reattaching orders after a restore as this process knows them, on the monotonic clock. */
export interface Rounds {
  epoch: number
  /** When this process first read of the restore. */
  restoredAt: number
  roundAt: number | null
}

export const freshPace = (): Pace => ({
  breaker: closedBreaker,
  agreed: false,
  pausedUntil: 0,
  firstSends: [],
  repeats: [],
  checked: new Map(),
  oneFirst: noFirsts(),
  watch: { announced: new Set(), unannounced: undefined },
  doubted: new Map(),
  failing: new Set(),
  lastRequests: new Map(),
  alerted: new Set(),
  readAgainAt: 0,
  referenceFilter: 'untried',
  unstored: [],
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
  /** Counts what happened for the plots of the hour, after its commit. */
  count: CountActivity
  /** Reads one offer from the supplier again. */
  refreshOffer: (productId: string) => Promise<void>
  /** Reads the balance again. */
  checkBalance: () => Promise<void>
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

/** The supplier's order of a purchase, as it was asked for. */
export const expectedOf = ({
  externalOrderId,
  supplierProductId: productId,
  quantity,
}: Pick<Purchase, 'externalOrderId' | 'supplierProductId' | 'quantity'>): ExpectedOrder => ({
  externalOrderId,
  productId,
  quantity,
})

/** A shop's order that was read before this instant is read again before a first send of it. */
export const readSince = ({ now, policy }: Pick<Ordering, 'now' | 'policy'>): number => now() - policy.entitlementMs

/** Deadline of a request: a third of the supplier's settle time, so that its outcome is recorded long before that ends. */
export const deadlineMs = ({ dialect }: Ordering): number => (dialect.settleSeconds * 1_000) / 3

/** Longer than everything that can happen to one request, so that a lease never ends under a request. In milliseconds. */
export const leaseMs = ({ dialect }: Pick<Ordering, 'dialect'>): number => dialect.settleSeconds * 2_000

/** How long a request may still run, and how long its order may be missing from the list, in milliseconds. */
export const gapsOf = ({ settleSeconds, listLagSeconds }: Ordering['dialect']) => ({
  settleMs: settleSeconds * 1_000,
  listLagMs: listLagSeconds * 1_000,
})

/**
 * Handles a list of items with some workers at once, in the order of the list.
 *
 * @param each handles one item; it catches what goes wrong, so that the others go on
 * @param mayTake whether this worker, counted from 0, takes another item; it ends where it may not
 */
export async function inParallel<T>(
  items: readonly T[],
  workers: number,
  each: (item: T) => Promise<void>,
  mayTake: (worker: number) => boolean = () => true,
): Promise<void> {
  let next = 0
  const work = async (worker: number): Promise<void> => {
    while (next < items.length && mayTake(worker)) {
      next += 1
      await each(items[next - 1] as T)
    }
  }
  await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)))
}
