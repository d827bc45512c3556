/**
 * After each start nothing is bought until the supplier's newest orders are compared with the database. If the database lacks
 * an order of our stores, the database was put back, by whatever means.
 *
 * After a restore nothing is bought until the supplier's orders are reattached to the purchases they were bought for.
 *
 * ```
 * restored ─ settle + list lag ─► scan, reattach ─ gap ─► scan, reattach, sweep ─► done: buying resumes by itself
 *                                                                              └─► on hold while orders of our stores
 *                                                                                  have no purchase: the store hands
 *                                                                                  them in again, or an operator
 *                                                                                  unfreezes
 * ```
 *
 * The purchase of an order is found by the reference that the purchase would have. All generations are tried, because a part
 * may have been refused many times since the backup.
 */

import type { Context } from '../context.ts'
import { counted } from '../domain/figures.ts'
import { LATE_ORDERS_MS, nextRoundAt, SCANS_MIN } from '../domain/restore.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import { isNews, isOurs } from '../domain/sweep.ts'
import { Failure, messageOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { resumeBuying } from '../ordering/actions.ts'
import { gapsOf, type Ordering, type Rounds } from '../ordering/context.ts'
import { type Part, partsOf, unattachedOf } from '../ordering/parts.ts'
import { reattachOrder } from '../ordering/reattach.ts'
import { PROOF_SKEW_MS, pagesSince } from '../ordering/scan.ts'
import { type Change, type Database, first } from '../storage/database.ts'
import { settleUngranted } from '../storage/entitlements.ts'
import { insertAudit } from '../storage/evidence.ts'
import type { Marker } from '../storage/marker.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import { purchasesByExternalId } from '../storage/purchases.ts'
import {
  attemptById,
  clearRestoreHold,
  countUnattached,
  currentEpoch,
  distrustSends,
  dropMatched,
  type Epoch,
  forgetAccounts,
  type ListEnd,
  lastInstants,
  notedAsUnattached,
  noteUnattached,
  RESTORE_ACTOR,
  restoreHold,
  START_ACTOR,
  setEpoch,
  setRestoreHold,
  storesMade,
  unattachedPage,
} from '../storage/restores.ts'
import { noteServer, type WorkerLease, workerDatabase } from '../storage/worker.ts'
import { sweep } from './sweep.ts'

/** The most pages of a scan. A scan reads as many as a sweep: the whole list, if need be. */
const PAGES_MAX = 10_000

/** After buying has resumed, the time between two tries to reattach the orders that are left. */
const LATER_MS = 15 * 60_000

/** The number of noted orders whose parts are looked up together. */
const BATCH = 100

/**
 * Runs the next round of reattaching, if a round is due. Before the first round, compares the supplier's orders (see `compare`).
 *
 * @returns `over` when there is nothing to reattach and nothing on hold; `done` after a round; `due` while a round must wait
 * @throws Failure `unavailable` when the supplier's list could not be read as a whole; the next round tries again
 */
export async function reattachOrders(ordering: Ordering): Promise<'over' | 'due' | 'done'> {
  const { db, dialect, now: clock } = ordering
  const stored = await currentEpoch(db)
  if (!stored) return 'over'
  const hold = await restoreHold(db)
  if (hold?.actor === START_ACTOR) return compare(ordering, newest, hold.unknownFrom ?? 0)
  if (stored.restoredAt === null) return hold ? compare(ordering, whole, 0) : 'over'
  const now = clock()
  // The clock may have been put back since the previous round. That round counts as begun now, or the next would wait too long.
  const epoch = { ...stored, roundAt: stored.roundAt === null ? null : Math.min(stored.roundAt, now) }
  if (epoch.roundAt !== stored.roundAt) await db.commit([setEpoch(epoch, now)])
  const held = hold !== undefined
  if (epoch.reattachedAt !== null && !held && !(await mayStillReattach(ordering, stored.restoredAt))) return 'over'
  const gaps = {
    ...gapsOf(dialect),
    gapMs: epoch.reattachedAt === null || held ? dialect.scanGapSeconds * 1_000 : LATER_MS,
  }
  // If the clock was ahead at the restore, the wall clock cannot time the wait for this round. The monotonic clock below does so.
  const restoredAt = stored.restoredAt > now ? 0 : stored.restoredAt
  if (now < nextRoundAt({ ...epoch, restoredAt }, gaps)) return 'due'
  // The wait by the monotonic clock begins after the wait by the wall clock. Only the wall clock knows rounds of other processes.
  // But it may have been put ahead while a request from before the restore is still on its way. Waiting twice also finds orders
  // that a list shows later than the dialect says. When both waits ran at the same time, a part was bought again.
  const rounds = roundsOf(ordering, epoch.epoch)
  const steady = ordering.monotonic()
  if (steady < nextRoundAt(rounds, gaps)) return 'due'
  rounds.roundAt = steady
  const begun: Epoch = { ...epoch, roundAt: now }
  await db.commit([setEpoch(begun, now)])
  let after: Epoch
  try {
    after = epoch.reattachedAt === null ? await scanned(ordering, begun) : begun
    await reattachParts(ordering)
  } catch (error) {
    await updateReason(ordering, begun, [`the last try failed: ${messageOf(error)}`])
    throw error
  }
  if (after.scans >= SCANS_MIN && after.reattachedAt === null) {
    await sweep(ordering, fromOf(after), 'restore').catch((error: unknown) => {
      // The sweep only counts and reports for people. The scans have reattached or noted every order.
      ordering.log.warn('restore.unswept', { error: messageOf(error) })
    })
    after.reattachedAt = clock()
  }
  await db.commit([setEpoch(after, clock())])
  await conclude(ordering, after)
  return 'done'
}

/** Returns this process's own times of rounds. A new process waits again, because an old request may still be on its way. */
function roundsOf({ pace, monotonic }: Pick<Ordering, 'pace' | 'monotonic'>, epoch: number): Rounds {
  if (pace.rounds?.epoch !== epoch) pace.rounds = { epoch, restoredAt: monotonic(), roundAt: null }
  return pace.rounds
}

/** Whether orders may still be reattached, after a store hands in their store order or an operator's decision frees the part. */
async function mayStillReattach({ db, now }: Ordering, restoredAt: number): Promise<boolean> {
  if (now() - restoredAt > LATE_ORDERS_MS) return false
  const unattached = await first(db, countUnattached())
  return (unattached?.total ?? 0) > 0
}

const fromOf = ({ unknownFrom }: Epoch): number => Math.max(0, unknownFrom - PROOF_SKEW_MS)

/** Notes the orders of our stores that no purchase has as its own, page by page. */
async function scanned(ordering: Ordering, epoch: Epoch): Promise<Epoch> {
  const { pages, hidden } = readList(ordering, fromOf(epoch))
  let ours = 0
  for await (const orders of pages) ours += await noteNews(ordering, orders)
  const { unreadable, listMax } = hidden
  const listEnd = listMax === undefined ? null : { listMax, ours }
  return { ...epoch, scans: epoch.scans + 1, unreadable, listEnd }
}

/**
 * Reads the supplier's orders since an instant, page by page.
 *
 * @returns `hidden`: counts what the list has not shown, and is complete once all pages are read; `listMax`: where the list ended
 */
function readList(ordering: Ordering, from: number) {
  const hidden: { unreadable: number; listMax: number | undefined } = { unreadable: 0, listMax: undefined }
  const options: Parameters<typeof pagesSince>[2] = {
    pagesMax: PAGES_MAX,
    onUnreadable: (rows) => {
      hidden.unreadable += rows.length
    },
    onListEnd: (most) => {
      hidden.listMax = most
    },
  }
  async function* pages(): AsyncGenerator<SupplierOrder[], void> {
    for await (const orders of pagesSince(ordering, from, options)) {
      if (ordering.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
      yield orders
    }
  }
  return { pages: pages(), hidden }
}

/** @returns how many of the orders were placed for our stores */
async function noteNews({ db, dialect, storeIds, now }: Ordering, orders: SupplierOrder[]): Promise<number> {
  const ours = orders.filter((order) => isOurs(order.externalOrderId, storeIds, dialect.externalOrderIdMax))
  if (ours.length === 0) return 0
  const rows = await db.query(purchasesByExternalId(ours.map((order) => order.externalOrderId ?? '')))
  const byReference = new Map(rows.map((row) => [row.externalOrderId, row]))
  const news = ours.filter((order) => {
    const row = byReference.get(order.externalOrderId ?? '')
    return !row || (row.supplierOrderId !== order.id && isNews(row, order))
  })
  await db.commit(
    news.map(({ id, externalOrderId, status }) =>
      noteUnattached({ supplierOrderId: id, reference: externalOrderId ?? '', status, seenAt: now() }),
    ),
  )
  return ours.length
}

/** Reattaches the noted orders to the parts that the database has, a part at a time. */
async function reattachParts(ordering: Ordering): Promise<void> {
  const { db } = ordering
  const seen = new Set<string>()
  for (let after = ''; ; ) {
    const noted = await db.query(unattachedPage({ after, limit: BATCH }))
    const last = noted.at(-1)
    if (!last) return
    // Noted orders that meanwhile belong to a purchase are settled.
    if (after === '') await db.commit([dropMatched()])
    after = last.supplierOrderId
    const parts = await partsOf(
      ordering,
      noted.map(({ reference }) => reference),
    )
    for (const { part } of parts.values()) {
      const key = `${part.lineId} ${part.part}`
      if (seen.has(key)) continue
      seen.add(key)
      // The latest generation comes first. It was sent only after the generations before it had failed or were written off.
      for (const { generation, supplierOrderId } of (await unattachedOf(ordering, part)).toReversed()) {
        if (ordering.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
        await reattachOne(ordering, part, generation, supplierOrderId)
      }
    }
  }
}

/** Reattaches one order. An order that cannot be read or decided now stays noted for the next round, and the others go on. */
async function reattachOne(ordering: Ordering, part: Part, generation: number, supplierOrderId: string): Promise<void> {
  const { store, reference, line } = part
  const about = { supplierOrderId, store, reference, line, generation }
  try {
    const outcome = await reattachOrder(ordering, part, generation, supplierOrderId)
    ordering.log.info('restore.reattach', { ...about, outcome })
  } catch (error) {
    ordering.log.warn('restore.reattach', { ...about, outcome: 'open', error: messageOf(error) })
  }
}

/** Resumes buying when no question is left for a person; otherwise the hold names the questions. */
async function conclude(ordering: Ordering, epoch: Epoch): Promise<void> {
  const { db, newId, now: clock, log } = ordering
  if (epoch.reattachedAt === null)
    return updateReason(ordering, epoch, [`${epoch.scans} of ${SCANS_MIN} scans are done`])
  const unattached = await first(db, countUnattached())
  const questions = questionsOf(unattached?.total ?? 0, epoch, ordering.dialect)
  if (questions.length > 0) return updateReason(ordering, epoch, questions)
  if (!(await restoreHold(db))) return
  const now = clock()
  const subject = `epoch ${epoch.epoch}`
  await db.commit([
    clearRestoreHold(),
    settleUngranted(now),
    insertAudit({ id: newId(), at: now, actor: 'quayside', action: 'restore.reattached', subject }),
  ])
  log.warn('restore.reattached', { count: epoch.epoch })
  await resumeBuying(ordering)
}

/** Updates the reason of the hold: how far the reattaching is, or what it waits for. */
async function updateReason({ db, now }: Ordering, epoch: Epoch, why: string[]): Promise<void> {
  const hold = await restoreHold(db)
  if (!hold) return
  const what = epoch.reattachedAt === null ? "the supplier's orders are being reattached" : 'reattached'
  const reason = `restored, epoch ${epoch.epoch}; ${what}: ${why.join('; ')}`
  if (reason !== hold.reason) await db.commit([setRestoreHold({ ...hold, reason }, now())])
}

function questionsOf(
  unattached: number,
  { unreadable, listEnd }: Epoch,
  { idempotency }: Ordering['dialect'],
): string[] {
  return [
    ...(unattached > 0
      ? [
          `${counted(unattached, 'supplier order has', 'supplier orders have')} no matching purchase: run quayside discrepancies list, and let the stores hand in again the orders that the database lacks`,
        ]
      : []),
    ...(unreadable > 0 ? [`${counted(unreadable, 'order')} in the supplier's list cannot be read`] : []),
    ...(listEnd ? [notShown(listEnd)] : []),
    ...(idempotency === 'none' ? [NO_KEY] : []),
  ]
}

const NO_KEY =
  "the supplier takes no idempotency key, so only its list shows what was bought before: compare the purchases that are to be sent with the supplier's own account, then quayside unfreeze"

/** Says how many orders the list could show, and what only a person can find out. */
function notShown({ listMax, ours }: ListEnd): string {
  const those = ours === 0 ? 'none' : `${ours}`
  const are = ours < 2 ? 'is' : 'are'
  return `the supplier's order list ends at ${listMax} orders (paging.listMax), and ${those} of those ${listMax} ${are} of its stores; older orders are not shown: look for older orders of these stores in the supplier's own account, then quayside unfreeze`
}

type EpochParts = Pick<Context, 'db' | 'now' | 'newId'>

interface StartParts extends EpochParts {
  log: Log
  /** Ids of all stores that there ever were. */
  storeIds: readonly string[]
}

/**
 * Finds out at the start whether the database is the one that was used last, before anything else is done with it.
 *
 * The database counts as restored when it lacks the attempt that the marker names, or when its epoch is before the marker's.
 * It also counts as restored when there is no marker, because then only the database was copied here.
 *
 * A new database buys nothing before the supplier's orders were compared (see `compare`), unless all stores were made with
 * this database. Any other database buys nothing before the supplier's newest orders were compared.
 *
 * @returns whether a restore was recognised; then the database is now in a new epoch with buying on hold
 */
export async function recogniseRestore(parts: StartParts & { marker: Marker }): Promise<boolean> {
  const { db, marker, log } = parts
  const [marked, epoch] = [marker.read(), await currentEpoch(db)]
  const why = await reasonOf(db, marked, epoch)
  if (why !== undefined) {
    const begun = await noteRestore(parts, { cause: why, epochMin: marked?.epoch ?? 0, actor: 'quayside' })
    await marker.begin({ epoch: begun.epoch, attempt: null })
    log.warn('restore.recognised', { reason: why, count: begun.epoch })
    return true
  }
  if (!epoch) {
    // The marker is written first. After a crash in between, the marker names no attempt, so the database need not have one.
    await marker.begin({ epoch: 1, attempt: null })
    await db.commit(await beginningOf(parts))
    return false
  }
  if (!marked || marked.epoch !== epoch.epoch) await marker.begin({ epoch: epoch.epoch, attempt: null })
  else await marker.begin(marked)
  await db.commit(await heldFromStart(parts))
  return false
}

/**
 * Holds buying until the newest orders are compared. A hold of a restore or a new database stays: more must be compared. When
 * such a hold waits for a person, the orders are reattached again: the database may be a copy from before that person's answer.
 */
async function heldFromStart({ db, now }: StartParts): Promise<Change[]> {
  const [hold, epoch] = [await restoreHold(db), await currentEpoch(db)]
  if (hold?.actor === RESTORE_ACTOR && epoch?.reattachedAt != null) {
    const reason = `restored, epoch ${epoch.epoch}; after the start the supplier's orders are being reattached again`
    const again = { ...epoch, scans: 0, roundAt: null, reattachedAt: null }
    return [setEpoch(again, now()), setRestoreHold({ ...hold, reason }, now())]
  }
  if (hold) return []
  // Only instants that a worker writes count, because stores may hand in lost orders again before the comparison.
  const last = await first(db, lastInstants())
  // A clock that was ahead for a while has noted instants that have not come yet.
  const unknownFrom = Math.min(now(), Math.max(last?.sentAt ?? 0, last?.readAt ?? 0))
  return [setRestoreHold({ reason: newest.reason, actor: START_ACTOR, at: now(), unknownFrom }, now())]
}

/**
 * Does what `recogniseRestore` does, for a database on a server. In the place of a marker stands what the server says of itself.
 * A worker begins only on the database that the previous worker had, or in a new epoch.
 */
export async function recogniseServer(parts: StartParts & { lease: WorkerLease }): Promise<boolean> {
  const { db, lease, now, log } = parts
  const { server, serverBefore, database } = lease
  const noted = [noteServer(lease), workerDatabase.put(database, now())]
  if (!(await currentEpoch(db))) {
    await db.commit([...noted, ...(await beginningOf(parts))])
    return false
  }
  const databaseBefore = (await workerDatabase.read(db)) ?? database
  if (serverBefore === null || (serverBefore === server && databaseBefore === database)) {
    await db.commit([...noted, ...(await heldFromStart(parts))])
    return false
  }
  const cause = 'the database is on another server, or was put back: it may lack what was bought last'
  // Only instants that a worker writes count, because other processes may have taken store orders since.
  const last = await first(db, lastInstants())
  const unknownFrom = Math.max(0, last?.sentAt ?? 0, last?.readAt ?? 0)
  const begun = await noteRestore(parts, { cause, epochMin: 0, actor: 'quayside', unknownFrom, also: noted })
  const [before, after] = [`${serverBefore}/${databaseBefore}`, `${server}/${database}`]
  log.warn('restore.recognised', { reason: cause, before, after, count: begun.epoch })
  return true
}

/** Returns the first changes of a database that no start has marked yet. */
async function beginningOf({ db, now, storeIds }: StartParts): Promise<Change[]> {
  const made = await storesMade(db)
  const begun = setEpoch(firstEpoch, now())
  if (storeIds.every((id) => made.includes(id))) return [begun]
  return [begun, setRestoreHold({ reason: whole.reason, actor: RESTORE_ACTOR, at: now() }, now())]
}

const firstEpoch: Epoch = {
  epoch: 1,
  restoredAt: null,
  unknownFrom: 0,
  scans: 0,
  roundAt: null,
  unreadable: 0,
  listEnd: null,
  reattachedAt: null,
}

async function reasonOf(
  db: Database,
  marked: ReturnType<Marker['read']>,
  epoch: Epoch | undefined,
): Promise<string | undefined> {
  if (!marked) return epoch && 'the database was put here without the marker that lay beside it'
  if (marked.epoch > (epoch?.epoch ?? 1)) return 'the database is older than its last restore'
  // A restore that stopped before it wrote the marker is already noted in the database, and no work was done since.
  if (epoch && marked.epoch < epoch.epoch && epoch.scans === 0 && epoch.reattachedAt === null) return undefined
  if (marked.attempt === null) return undefined
  const known = await first(db, attemptById(marked.attempt))
  return known ? undefined : 'the database is an older copy: it lacks what was bought last'
}

/**
 * Notes that the database was put back. Begins a new epoch, and holds buying until the supplier's orders are reattached.
 * Purchases with an open outcome count as sent just now, because the database does not know when they were sent.
 *
 * @param noted.epochMin the highest epoch that the caller knows of; the new epoch is higher
 * @param noted.unknownFrom the instant from which the database knows nothing; default: the latest instant that it has noted
 * @param noted.also changes that go into the same commit
 */
export async function noteRestore(
  { db, now: clock, newId }: EpochParts,
  {
    cause,
    epochMin,
    actor,
    unknownFrom,
    also = [],
  }: { cause: string; epochMin: number; actor: string; unknownFrom?: number; also?: Change[] },
): Promise<Epoch> {
  const now = clock()
  const before = await currentEpoch(db)
  const known = before?.epoch ?? 1
  const next = Math.max(known, Number.isFinite(epochMin) ? epochMin : known) + 1
  const last = await first(db, lastInstants())
  const latest = unknownFrom ?? Math.max(0, last?.sentAt ?? 0, last?.receivedAt ?? 0, last?.readAt ?? 0)
  // Orders that the restore before has not reattached are still unknown. A new database knows no order before it is compared.
  const pending = before && (await restoreHold(db))?.actor === RESTORE_ACTOR && before.reattachedAt === null
  const from = pending ? Math.min(before.unknownFrom, latest) : latest
  const epoch: Epoch = { ...firstEpoch, epoch: next, restoredAt: now, unknownFrom: from }
  const reason = `${cause}; nothing is bought until the supplier's orders are reattached, some minutes from now`
  await db.commit([
    setEpoch(epoch, now),
    setRestoreHold({ reason, actor: RESTORE_ACTOR, at: now }, now),
    distrustSends(now),
    forgetAccounts(),
    insertAudit({ id: newId(), at: now, actor, action: 'restore', subject: `epoch ${next}`, detail: cause }),
    enqueueAlert({ newId, now: clock }, { type: 'restored', occasion: String(next), payload: { note: reason } }),
    ...also,
  ])
  return epoch
}

/** The wait before a list that could not be read is tried again. */
const AGAIN_MS = 15_000

/** A search of the supplier's orders that must end before anything is bought. */
interface Comparison {
  /** The reason of the hold during the search, and the actor who set the hold. */
  reason: string
  actor: string
  /** @returns why the database counts as a restore; undefined where nothing speaks for a restore */
  causeOf(ordering: Ordering, unknownFrom: number): Promise<string | undefined>
}

/**
 * Searches for orders of our stores, which a new database cannot know. If there is such an order, an earlier database was lost,
 * or the data folder is wrong. All orders of the supplier are searched, because the database knows nothing from before its start.
 */
const whole: Comparison = {
  reason: "the database is new: the supplier's orders are searched for orders of its stores first",
  actor: RESTORE_ACTOR,
  causeOf: foreignCause,
}

/** Searches for our orders that the database lacks. The marker proves nothing: a copy of a machine or folder has it too. */
const newest: Comparison = {
  reason: "the service has started: the supplier's newest orders are compared with the database first",
  actor: START_ACTOR,
  causeOf: lackingCause,
}

/**
 * Searches the supplier's orders. If they speak for a restore, the database counts as restored from then on.
 *
 * @param unknownFrom the database may know nothing after this instant
 * @returns `due` when another search runs or has failed just now; else `done`: buying goes on, or is held as after a restore
 * @throws Failure `unavailable` when the list could not be read; buying stays on hold, and the next search tries again
 */
async function compare(
  ordering: Ordering,
  { reason, actor, causeOf }: Comparison,
  unknownFrom: number,
): Promise<'due' | 'done'> {
  const { db, log, monotonic, now, pace } = ordering
  if ((pace.compareAt ?? 0) > monotonic()) return 'due'
  pace.compareAt = Number.POSITIVE_INFINITY
  try {
    const cause = await causeOf(ordering, unknownFrom)
    if (cause === undefined) {
      await db.commit([clearRestoreHold()])
      log.info('database.compared')
      await resumeBuying(ordering)
      ordering.wake('place')
      return 'done'
    }
    const { epoch } = await noteRestore(ordering, { cause, epochMin: 1, actor: 'quayside', unknownFrom })
    await ordering.beginEpoch?.(epoch)
    log.warn('restore.recognised', { reason: cause, count: epoch })
    ordering.wake('outbox')
    return 'done'
  } catch (error) {
    const why = `${reason}; the last try failed: ${messageOf(error)}`
    await db.commit([setRestoreHold({ reason: why, actor, at: now(), unknownFrom }, now())])
    throw error
  } finally {
    pace.compareAt = monotonic() + AGAIN_MS
  }
}

/**
 * Searches for a lost order. Lost orders were bought last, so in a list with the newest first, the first page with ours decides.
 *
 * @returns why the database counts as a restore; undefined when it has all of our orders that it should have
 */
async function lackingCause(ordering: Ordering, unknownFrom: number): Promise<string | undefined> {
  const { db, dialect, storeIds } = ordering
  const { pages } = readList(ordering, Math.max(0, unknownFrom - PROOF_SKEW_MS))
  for await (const orders of pages) {
    const ours = orders.filter((order) => isOurs(order.externalOrderId, storeIds, dialect.externalOrderIdMax))
    const lacking = await lackingOf(db, ours)
    if (lacking) return `the database is an older copy: it lacks order ${lacking.id}, which was bought for its stores`
    if (ours.length > 0 && isNewestFirst(orders)) return undefined
  }
  return undefined
}

/**
 * Returns an order that none of our purchases has sent: there is no purchase with its reference, or that purchase was never sent.
 * Orders that an earlier restore has noted are left out.
 */
async function lackingOf(db: Database, ours: SupplierOrder[]): Promise<SupplierOrder | undefined> {
  const rows = await db.query(purchasesByExternalId(ours.map((order) => order.externalOrderId ?? '')))
  const noted = new Set((await db.query(notedAsUnattached(ours.map(({ id }) => id)))).map((one) => one.supplierOrderId))
  return ours.find(({ id, externalOrderId }) => {
    const row = rows.find((one) => one.externalOrderId === externalOrderId)
    const wasSent =
      row !== undefined && (row.firstSentAt !== null || row.supplierOrderId !== null || row.ordersSeen.includes(id))
    return !wasSent && !noted.has(id)
  })
}

function isNewestFirst(orders: readonly SupplierOrder[]): boolean {
  const times = orders.map(({ createdAt }) => createdAt ?? Number.NaN)
  const isSorted = times.every((time, place) => place === 0 || time <= (times[place - 1] ?? 0))
  return isSorted && (times.length === 1 || (times.at(-1) ?? 0) < (times[0] ?? 0))
}

/**
 * Searches for an order of our stores. A list that does not show all orders proves nothing, however often it is read. Then the
 * database counts as a restore, and an operator lifts the hold once the orders that the list shows are reattached.
 *
 * @returns why the database counts as a restore; undefined when the supplier has no order of its stores
 */
async function foreignCause(ordering: Ordering): Promise<string | undefined> {
  const { dialect, storeIds } = ordering
  const { pages, hidden } = readList(ordering, 0)
  for await (const orders of pages) {
    const ours = orders.find((order) => isOurs(order.externalOrderId, storeIds, dialect.externalOrderIdMax))
    if (ours) return `the database is new, and the supplier has order ${ours.id} of its stores`
  }
  const { unreadable, listMax } = hidden
  if (listMax !== undefined) {
    return `the database is new, and the supplier's order list ends at ${listMax} orders (paging.listMax): older orders are not shown`
  }
  if (unreadable === 0) return undefined
  return `the database is new, and ${unreadable} orders in the supplier's list cannot be read`
}
