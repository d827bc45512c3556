import { afterLookUp } from '../domain/pace.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import { comparison, isOurs, NIGHTLY_MS, nightlyFrom, nightlyOverdue, RECENT_MS, SKEW_MS } from '../domain/sweep.ts'
import { Failure, messageOf } from '../errors.ts'
import { idBound } from '../ids.ts'
import { advance } from '../ordering/advance.ts'
import type { Ordering } from '../ordering/context.ts'
import { foundOrders } from '../ordering/read-order.ts'
import { boughtBefore } from '../ordering/reattach.ts'
import { noteFailure } from '../ordering/recover.ts'
import { pagesSince } from '../ordering/scan.ts'
import { first } from '../storage/database.ts'
import {
  hintPurchase,
  oldestWrittenOff,
  type Purchase,
  purchasesByExternalId,
  purchasesBySupplierOrder,
  purchasesToBeListed,
} from '../storage/purchases.ts'
import { changeSweep, forgetSweeps, insertSweep, lastSweepOver, type Sweep, sweepAsInserted } from '../storage/runs.ts'
import { afterSuspicion, checkUnlisted, maySpend, recordOrphans, suspectedFrom } from './unmatched.ts'

/** The most pages of a sweep: a million orders at a hundred a page. */
const PAGES_MAX = 10_000

/** The most purchases whose order is expected in the list: memory holds them. The orders of others are only read one by one. */
const LISTED_MAX = 10_000

/** The most orders that are asked for one by one when the list lacks them. A list that lacks more orders cannot be believed. */
const ASKED_MAX = 200

const KEPT_MS = 90 * 24 * 3_600_000

/**
 * Compares all orders of the supplier since an instant with our purchases, both ways. It finds what deliveries and polling
 * missed, orders of our stores that have no purchase, and purchases whose order is gone.
 *
 * Orders are matched by their external reference, page by page, so that memory does not grow with their number. An order
 * of the list counts at once. The absence of an order counts only when the whole list was read.
 *
 * @param from epoch milliseconds; 0 reads the supplier's orders from the beginning
 * @returns the counts, as they are stored too
 * @throws Failure `unavailable` when the list could not be read as a whole; what was matched before stays applied
 */
export async function sweep(ordering: Ordering, from = ordering.now() - RECENT_MS, cause = 'schedule'): Promise<Swept> {
  return runSweep(ordering, await beginSweep(ordering, from, cause))
}

/** Stores a running sweep, so that people see it while it runs. */
export async function beginSweep({ db, now, newId }: Ordering, from: number, cause: string): Promise<Sweep> {
  const fromAt = Math.max(0, from)
  const begun = sweepAsInserted({ id: newId(), cause, state: 'running', fromAt, startedAt: now() })
  await db.commit([insertSweep(begun)])
  return begun
}

/**
 * Runs a sweep that was begun.
 *
 * @param to orders that were made after this instant are left out, so that the list does not change while it is read
 * @throws Failure `unavailable`, see `sweep`
 */
export async function runSweep(ordering: Ordering, begun: Sweep, to?: number): Promise<Swept> {
  const startedAt = ordering.monotonic()
  const { state: _state, finishedAt: _finishedAt, error: _error, ...swept } = { ...begun }
  let outcome: Pick<Sweep, 'state' | 'error'> = { state: 'complete', error: null }
  try {
    const suspectFrom = await suspectedFrom(ordering)
    const state: SweepState = { swept, unseen: await mustBeListed(ordering, begun), suspectFrom, spenders: 0 }
    await compareList(ordering, state, to)
    await askForUnseen(ordering, state)
    if (suspectFrom !== undefined && begun.fromAt <= Math.max(0, suspectFrom - SKEW_MS)) {
      await ordering.db.commit(afterSuspicion(ordering, begun.startedAt, suspectFrom, state.spenders))
      ordering.wake('outbox')
    }
    return swept
  } catch (error) {
    outcome = { state: ordering.signal?.aborted ? 'interrupted' : 'failed', error: messageOf(error) }
    throw error
  } finally {
    if (swept.refreshed > 0) ordering.wake('refresh')
    await conclude(ordering, swept, outcome, ordering.monotonic() - startedAt)
  }
}

/** Returns the purchases that were sent within the window of the list. Their orders must be in the list. */
async function mustBeListed({ db, dialect }: Ordering, { fromAt, startedAt }: Sweep): Promise<Map<string, string>> {
  const sentFrom = fromAt === 0 ? undefined : fromAt + SKEW_MS
  const acceptedBefore = startedAt - dialect.listLagSeconds * 1_000
  const listed = await db.query(purchasesToBeListed(sentFrom, acceptedBefore, LISTED_MAX))
  return new Map(listed.map(({ id, supplierOrderId }) => [supplierOrderId ?? '', id]))
}

async function compareList(ordering: Ordering, state: SweepState, to: number | undefined): Promise<void> {
  const { swept } = state
  const pages = pagesSince(ordering, swept.fromAt, {
    pagesMax: PAGES_MAX,
    // An unreadable order makes the sweep incomplete, but must not keep the sweep from reading older orders.
    onUnreadable: (rows) => {
      swept.unreadable += rows.length
    },
    ...(to === undefined ? {} : { to }),
  })
  for await (const orders of pages) {
    if (ordering.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
    swept.pages += 1
    await comparePage(ordering, state, orders)
  }
  // A list that was read counts as an answered look-up: the supplier works again.
  ordering.pace.breaker = afterLookUp(ordering.pace.breaker, swept.orders)
  if (swept.unreadable === 0) return
  throw new Failure('unavailable', `${swept.unreadable} orders in the supplier's list cannot be read`)
}

async function askForUnseen(ordering: Ordering, { swept, unseen }: SweepState): Promise<void> {
  for (const [supplierOrderId, purchaseId] of [...unseen].slice(0, ASKED_MAX)) {
    try {
      const answer = await checkUnlisted(ordering, purchaseId, supplierOrderId)
      if (answer !== 'moved') swept[answer] += 1
    } catch (error) {
      await noteFailure(ordering, purchaseId, error)
      swept.errors += 1
    }
  }
  if (unseen.size <= ASKED_MAX) return
  throw new Failure('unavailable', `the supplier's order list lacks ${unseen.size} of our orders`)
}

async function conclude(
  { db, log, now }: Ordering,
  swept: Swept,
  { state, error }: Pick<Sweep, 'state' | 'error'>,
  durationMs: number,
): Promise<void> {
  const { id, cause, fromAt: _fromAt, startedAt: _startedAt, ...counts } = swept
  await db
    .commit([changeSweep(id, { ...counts, state, error, finishedAt: now() }), forgetSweeps(idBound(now() - KEPT_MS))])
    // The database may be closed because the service stops. The next start marks the sweep as interrupted.
    .catch((fault: unknown) => log.warn('sweep.unrecorded', { id, error: messageOf(fault) }))
  const line = { id, cause, ...counts, durationMs: Math.round(durationMs) }
  if (state === 'complete') log.info('sweep.complete', line)
  else log.warn(`sweep.${state}`, { ...line, error })
}

/** The counts of a sweep so far. `orders` is the sum of `matched`, `orphans` and `foreign`. */
export type Swept = Omit<Sweep, 'state' | 'finishedAt' | 'error'>

export interface SweepState {
  swept: Swept
  /** Purchases whose order must be in the list and was not seen yet, by the supplier's id of the order. */
  unseen: Map<string, string>
  /** The balance fell after this instant, and no order of ours explains the fall. */
  suspectFrom: number | undefined
  /** The number of our orders without a purchase that may be the reason of the fall. */
  spenders: number
}

/** Compares one page of the supplier's orders with our purchases, and counts the orders. */
async function comparePage(ordering: Ordering, state: SweepState, orders: SupplierOrder[]): Promise<void> {
  if (orders.length === 0) return
  const { dialect, storeIds } = ordering
  const { swept, unseen, suspectFrom } = state
  const known = await compareKnown(ordering, swept, orders)
  const unmatched = orders.filter(({ id }) => !known.has(id))
  const ours = unmatched.filter((order) => isOurs(order.externalOrderId, storeIds, dialect.externalOrderIdMax))
  const orphans = await recordOrphans(ordering, swept.id, ours)
  for (const { id } of orders) unseen.delete(id)
  swept.orders += orders.length
  // An order that a person was shown beside the purchases of its part counts as matched.
  swept.matched += orders.length - unmatched.length + ours.length - orphans.length
  swept.orphans += orphans.length
  swept.foreign += unmatched.length - ours.length
  if (suspectFrom !== undefined) state.spenders += ours.filter((order) => maySpend(order, suspectFrom)).length
}

/** @returns the ids of the orders that belong to our purchases */
async function compareKnown(ordering: Ordering, swept: Swept, orders: SupplierOrder[]): Promise<Set<string | null>> {
  const { db } = ordering
  const references = orders.map((order) => order.externalOrderId).filter((reference) => reference !== undefined)
  const [byReference, byOrder] = await Promise.all([
    db.query(purchasesByExternalId(references)),
    db.query(purchasesBySupplierOrder(orders.map(({ id }) => id))),
  ])
  // Orders are also matched by id: a list may have no references, and an adopted order may not have the purchase's reference.
  const known = new Set(byOrder.map(({ supplierOrderId }) => supplierOrderId))
  const ordersOf = Map.groupBy(orders, ({ externalOrderId }) => externalOrderId)
  const referred = new Set(byReference.map(({ id }) => id))
  for (const purchase of [...byReference, ...byOrder.filter(({ id }) => !referred.has(id))]) {
    const carrying = ordersOf.get(purchase.externalOrderId) ?? []
    for (const { id } of carrying) known.add(id)
    const adopted = orders.filter((order) => order.id === purchase.supplierOrderId && !carrying.includes(order))
    const own = [...carrying, ...adopted]
    try {
      if (await compare(ordering, purchase, own)) swept.refreshed += 1
    } catch (error) {
      await noteFailure(ordering, purchase.id, error)
      swept.errors += 1
    }
  }
  return known
}

/** @returns whether the purchase differs from its orders and was moved, or is to be read again */
async function compare(ordering: Ordering, purchase: Purchase, orders: SupplierOrder[]): Promise<boolean> {
  const said = comparison(purchase, orders)
  if (said === 'agrees') return false
  if (said === 'found') {
    // After a restore the orders of a part are reattached together, the latest generation first.
    if (purchase.firstSentAt === null && (await boughtBefore(ordering, purchase))) return false
    const found = await foundOrders(ordering, purchase, orders)
    const given = { input: { type: 'found' as const, orders: found }, detail: 'sweep' }
    return (await advance(ordering, purchase.id, given)) !== undefined
  }
  await ordering.db.commit([hintPurchase(purchase.id, ordering.now())])
  return true
}

/** Returns from which instant the nightly sweep reads: thirty days ago, or before that for a written-off purchase. */
export async function wholeFrom({ db, now }: Pick<Ordering, 'db' | 'now'>): Promise<number> {
  const oldest = await first(db, oldestWrittenOff(now() - NIGHTLY_MS))
  return nightlyFrom(now(), oldest?.sentAt ?? null)
}

/** Says whether the latest nightly sweep did not come to its end, or whether the service was down at the hour of the sweep. */
async function isOverdue({ db, now }: Pick<Ordering, 'db' | 'now'>): Promise<boolean> {
  const [[complete], [begun]] = await Promise.all([
    db.query(lastSweepOver(NIGHTLY_MS, 'complete')),
    db.query(lastSweepOver(NIGHTLY_MS)),
  ])
  return nightlyOverdue(now(), complete?.startedAt ?? null, begun?.startedAt ?? null)
}

export type SweepRunner = ReturnType<typeof createSweepRunner>

interface Underway {
  from: number
  begun: Promise<Sweep>
  ended: Promise<void>
}

/** Creates the runner of sweeps. A caller joins a sweep under way that looks back at least as far as the caller wants. */
export function createSweepRunner(ordering: Ordering) {
  const running = new Set<Underway>()

  const run = (from: number, cause: string, still: boolean): Underway => {
    if (ordering.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
    const joined = [...running].find((one) => one.from <= from)
    if (joined) return joined
    const begun = beginSweep(ordering, from, cause)
    // `runSweep` stores and logs how the sweep ended; a caller only waits for the end.
    const ended = begun
      .then((sweep) => runSweep(ordering, sweep, still ? sweep.startedAt : undefined))
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => running.delete(one))
    const one: Underway = { from, begun, ended }
    running.add(one)
    return one
  }
  const whole = async (cause: string) => run(await wholeFrom(ordering), cause, true)
  return {
    /**
     * Starts a sweep of thirty days, or joins a sweep under way, and returns the sweep as it stands now.
     *
     * @throws Failure `unavailable` while the service is being stopped
     */
    start: async (cause: string) => (await whole(cause)).begun,
    /** Sweeps the last two days, or thirty when the nightly sweep did not come to its end. Resolves when the sweep has ended. */
    recent: async (cause: string) => {
      const overdue = await isOverdue(ordering)
      const one = overdue ? await whole(cause) : run(ordering.now() - RECENT_MS, cause, false)
      await one.ended
    },
    /** Starts a sweep from an instant on, without waiting for its end. Starts no sweep when the instant is undefined. */
    behind: (from: number | undefined, cause: string) => {
      if (from !== undefined && !ordering.signal?.aborted) run(from - SKEW_MS, cause, false)
    },
    idle: async () => {
      await Promise.all([...running].map(({ ended }) => ended))
    },
  }
}
