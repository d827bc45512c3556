import type { Context } from '../context.ts'
import type { Dialect } from '../dialect/dialect.ts'
import type { CountActivity } from '../domain/activity.ts'
import type { StorePolicy } from '../domain/listing.ts'
import { type Breaker, closedBreaker } from '../domain/pace.ts'
import type { PurchaseState } from '../domain/purchase.ts'
import type { Rate } from '../domain/rates.ts'
import type { ExpectedOrder } from '../domain/supplier.ts'
import type { Change } from '../storage/database.ts'
import type { Outage } from '../storage/outages.ts'
import type { Purchase } from '../storage/purchases.ts'
import { assertNewestRevision } from '../storage/settings.ts'
import type { Supplier } from '../supplier/client.ts'
import { noFirsts, type OneFirst } from './one-first.ts'

export type OrderingSupplier = Pick<
  Supplier,
  'placeOrder' | 'order' | 'orders' | 'differs' | 'unreadable' | 'setAside' | 'reach' | 'quota' | 'pausedUntil'
>

/** Named instants at which a test may end the process: before and after each commit, send and answer. */
export type CrashPoint =
  | 'intending'
  | 'intended'
  | 'answered'
  | 'recorded'
  /** A look-up was answered; its answer is not noted yet. */
  | 'looked_up'
  /** An order was read; its contents are not applied yet. */
  | 'read'
  /** Keys are marked as leaving; the store does not have them. */
  | 'pushing'
  /** The store has confirmed; its confirmation is not noted yet. */
  | 'pushed'
  /** The keys are marked as handed over, and the purchase has ended if they were its last. */
  | 'noted'

/** Workers that are woken early; the tick wakes all of them anyway. */
export type WorkerName = 'inbox' | 'poll' | 'read' | 'place' | 'refresh' | 'outbox' | 'publish'

/** Returns the guard of a commit that buys by the settings: while settings are in the database, no other may be newer. */
export const assertInForce = ({ policy: { revision } }: Pick<Ordering, 'policy'>): Change[] =>
  revision == null ? [] : [assertNewestRevision(revision)]

/** Policy of ordering. Amounts are in minor units of the supplier's currency. */
export interface OrderingPolicy {
  /** The revision of the settings. Absent or null where the file is their home. */
  revision?: number | null
  inFlight: number
  /** An offer that was read within this time is not read again before a purchase. */
  offerFreshnessMs: number
  deadlineMs: number
  /** How old the reading of a shop's order may be at the first send of a purchase of that order. */
  entitlementMs: number
  /** Once a paid unit has waited so long, the customer learns of it; null: never. */
  lateMs: number | null
  ceilingPercent: string
  minMarginPercent: string
  /** The rates that turn a unit price into the supplier's currency. */
  rates: Rate[]
  caps: { order: number | null; hour: number | null; day: number | null }
}

/** A store that orders may come from, with a filter of the offers that it lists; without a policy it lists all offers. */
export interface OrderingStore {
  id: string
  policy?: { filter: StorePolicy['filter'] }
  /** What happens to units that a shop's order gains. Default: a person is asked, unless the shop states that they are paid. */
  growth?: 'buy' | 'ask' | undefined
  /** How long a paid order waits before it is bought. Default: 0. */
  delayMinutes?: number
  /** How a merchant asks for a retry of ended purchases. True: by setting the order back to paid. False: by a tag. */
  wishesByStanding?: boolean
}

/** What placing remembers between its runs. A restart loses this memory, which does no harm as no request is under way then. */
export interface Pace {
  breaker: Breaker
  /** Whether the supplier has made an order exactly as we sent it since this process began. Until then, orders go one by one. */
  agreed: boolean
  /** The purchase whose order differed from what we sent while `agreed` was false. Buying stops until a person decides on it. */
  differs?: string | undefined
  /** After the API key was refused, no first send and no repeat leaves before this instant. */
  pausedUntil: number
  /** The kinds of unreadable answers of which people were alerted. */
  alerted: ReadonlySet<string>
  /** The earliest instant at which unreadable answers are asked for again, on the clock that never jumps. */
  readAgainAt: number
  /** The outage of the supplier that is not over; null when there is none. Absent until it is read from the database. */
  outage?: (Outage & { isAlerted?: true }) | null
  /** When the first sends and the repeats of the last minute left. */
  firstSends: number[]
  repeats: number[]
  /** Maps a product to the instant at which its offer was last confirmed with the supplier. */
  checked: Map<string, number>
  /** The first purchases of offers, which go alone, and the prices that the supplier charged for them. */
  oneFirst: OneFirst
  /** What the supplier's deliveries about orders have shown. */
  watch: {
    /** Purchases whose orders a delivery named, and whose orders were not read since then. */
    announced: Set<string>
    /** The number of orders in a row that were over before a delivery named them; undefined while no delivery has come. */
    unannounced: number | undefined
  }
  /** Maps a purchase, or a supplier's order, to the instant of the first reading that other sources did not confirm. */
  doubted: Map<string, number>
  /** Stores to which the last update failed. */
  failing: Set<string>
  /** Maps an update whose store may still act on it to when it no longer can, on the clock that never jumps. */
  acting: Map<string, number>
  /** When this process took over the work of an earlier one, on the clock that never jumps. */
  resumedAt: number
  /** Maps a purchase to its last request, oldest first. */
  lastRequests: Map<string, LastRequest>
  /** Whether the filter by reference has found an order in this process. Until then, its empty answers prove nothing. */
  referenceFilter: 'untried' | 'finds' | 'misses'
  /** Whether the list of orders has named a cursor in this process. Until then, a list without one may have further pages. */
  cursorNamed: boolean
  /** Answers of the supplier that are not stored yet. Each is kept until an instant of the clock that never jumps. */
  unstored: { until: number; act: () => Promise<unknown> }[]
  /** Rounds of reattaching orders after a restore; absent without a restore. */
  rounds?: Rounds
  /** When the database may next be compared with the supplier's orders, on the clock that never jumps; absent at the start. */
  compareAt?: number
}

/**
 * What this process remembers of a purchase's last request, in milliseconds of the monotonic clock. Another process has another
 * clock, so it cannot take over this memory.
 */
export interface LastRequest {
  /** `lastSentAt` of the purchase's row when the request was noted. A newer value in the row means another request. */
  lastSentAt: number | null
  /** When the intent of the request was stored, or the later instant at which this process first read that intent. */
  sentAt: number
  /** When the first valid scan that missed the order began; only scans since the request count. */
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
  acting: new Map(),
  resumedAt: 0,
  lastRequests: new Map(),
  alerted: new Set(),
  readAgainAt: 0,
  referenceFilter: 'untried',
  cursorNamed: false,
  unstored: [],
})

export interface Ordering extends Context {
  supplier: OrderingSupplier
  dialect: Dialect
  policy: OrderingPolicy
  pace: Pace
  /** Name of this process in leases. */
  owner: string
  /** The stores that we sell through. */
  stores: readonly OrderingStore[]
  /** Ids of all stores that there ever were. A supplier order that carries none of them is another client's. */
  storeIds: readonly string[]
  /** @param store wakes only the queue of this store */
  wake: (worker: WorkerName, store?: string) => void
  /** Counts what a commit has stored, for the hourly counts of `domain/activity`. */
  count: CountActivity
  /** Reads one offer from the supplier again. */
  refreshOffer: (productId: string) => Promise<void>
  checkBalance: () => Promise<void>
  /**
   * Notes an attempt in the marker file, before the request leaves, so that an older copy of the database is recognised.
   * Absent for a database in memory, which cannot be restored.
   */
  mark?: (attempt: string) => Promise<void>
  /** Writes the marker of a new epoch. Absent whenever `mark` is absent. */
  beginEpoch?: (epoch: number) => Promise<void>
  /** Returns the change that gives a new order its page of keys. Absent where there is no public address for such pages. */
  newPage?: ((orderId: string) => Change) | undefined
  /** Called at each named instant; does nothing outside tests. */
  at: (point: CrashPoint) => void
  /** Once the signal is aborted, a sweep stops after the page that it is reading. */
  signal?: AbortSignal
}

export const expectedOf = ({
  externalOrderId,
  supplierProductId: productId,
  quantity,
}: Pick<Purchase, 'externalOrderId' | 'supplierProductId' | 'quantity'>): ExpectedOrder => ({
  externalOrderId,
  productId,
  quantity,
})

/** Returns the oldest instant of a reading of a shop's order that still counts when a purchase is first sent. */
export const readSince = ({ now, policy }: Pick<Ordering, 'now' | 'policy'>): number => now() - policy.entitlementMs

/** Deadline of a request: a third of the supplier's settle time. So the outcome is recorded long before the settle time ends. */
export const deadlineMs = ({ dialect }: Pick<Ordering, 'dialect'>): number => (dialect.settleSeconds * 1_000) / 3

/** Returns the length of a lease in milliseconds. It is longer than one request can take, so no lease ends during a request. */
export const leaseMs = ({ dialect }: Pick<Ordering, 'dialect'>): number => dialect.settleSeconds * 2_000

/** Returns how long a request may still run, and how long its order may be missing from the list, in milliseconds. */
export const gapsOf = ({ settleSeconds, listLagSeconds }: Ordering['dialect']) => ({
  settleMs: settleSeconds * 1_000,
  listLagMs: listLagSeconds * 1_000,
})

/**
 * Handles a list of items with some workers at once, in the order of the list.
 *
 * @param each handles one item; it catches what goes wrong, so that the others go on
 * @param mayTake is asked before each item whether this worker, counted from 0, may take one; on false the worker ends
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

/** How long a request is remembered. For a purchase that stays open longer, the not-found proof only starts over. */
const KEPT_MS = 48 * 3_600_000

/** Remembers that the intent to send a purchase was stored just now. @param lastSentAt the wall clock, as in the row */
export function noteIntent({ pace, monotonic }: Ordering, purchaseId: string, lastSentAt: number | null): LastRequest {
  const now = monotonic()
  for (const [id, { sentAt }] of pace.lastRequests) {
    if (now - sentAt < KEPT_MS) break
    pace.lastRequests.delete(id)
  }
  const noted: LastRequest = { lastSentAt, sentAt: now }
  // The old entry is deleted first, because the map must stay in order of age.
  pace.lastRequests.delete(purchaseId)
  pace.lastRequests.set(purchaseId, noted)
  return noted
}

/** Forgets an answered request, because no order has to be found for that request any more. */
export const forgetIntent = ({ pace }: Ordering, purchaseId: string): void => void pace.lastRequests.delete(purchaseId)

/**
 * Returns what is remembered of the last request of a purchase.
 *
 * A request of another process counts as sent now. It left earlier, but the row has only the wall clock of that time, which may
 * have been put ahead since. Counting from now delays the proof by some minutes, and prevents a second charge.
 */
export function rememberedOf(ordering: Ordering, { id, lastSentAt }: Pick<Purchase, 'id' | 'lastSentAt'>): LastRequest {
  const known = ordering.pace.lastRequests.get(id)
  return known?.lastSentAt === lastSentAt ? known : noteIntent(ordering, id, lastSentAt)
}

/* While deliveries arrive, they decide when an order is read, and the schedule only catches late orders. */

/** After so many unannounced ends in a row, deliveries no longer count as arriving. A single delivery may be late or lost. */
const UNANNOUNCED_MAX = 3
/** The most announced purchases that are remembered. Some of them are never read, so the set must have a limit. */
const ANNOUNCED_MAX = 10_000

/** Notes that a delivery has named the order of this purchase. */
export function noteAnnounced({ pace: { watch } }: Pick<Ordering, 'pace'>, purchaseId: string): void {
  if (watch.announced.size >= ANNOUNCED_MAX) watch.announced.clear()
  watch.announced.add(purchaseId)
  watch.unannounced = 0
}

/**
 * Notes that a read of the order begins. A delivery that comes from now on needs another read.
 *
 * @param before the purchase as it was when it became due
 */
export function beginRead({ pace: { watch } }: Pick<Ordering, 'pace'>, before: Purchase) {
  const { announced } = watch
  const wasAnnounced = announced.delete(before.id)
  return {
    /** @param next the state of the purchase afterwards; undefined when nothing has changed */
    ended: (next: PurchaseState | undefined): void => {
      const isOver = before.state === 'accepted' && next !== undefined && next !== 'accepted'
      if (!isOver) return
      const isAnnounced = announced.delete(before.id) || wasAnnounced
      if (!isAnnounced && watch.unannounced !== undefined) watch.unannounced += 1
    },
    failed: (): void => {
      if (wasAnnounced) announced.add(before.id)
    },
  }
}

/** Says whether deliveries about orders can be counted on. */
export const deliveriesArrive = ({ pace: { watch } }: Pick<Ordering, 'pace'>): boolean =>
  watch.unannounced !== undefined && watch.unannounced < UNANNOUNCED_MAX
