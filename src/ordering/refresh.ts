import { judgeNotFound, type NotFoundVerdict } from '../domain/not-found-proof.ts'
import { afterLookUp, readTogetherAt } from '../domain/pace.ts'
import { type FoundOrder, LATE_MS, type PurchaseInput, type PurchaseState } from '../domain/purchase.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import { SKEW_MS } from '../domain/sweep.ts'
import { messageOf } from '../errors.ts'
import { first } from '../storage/database.ts'
import { entitledNow } from '../storage/entitlements.ts'
import { currentFreeze } from '../storage/freezes.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import { dueRefreshes, lostSends, type Purchase, purchaseById, purchasesByExternalId } from '../storage/purchases.ts'
import { isReattaching } from '../storage/restores.ts'
import { advance, load } from './advance.ts'
import {
  beginRead,
  deadlineMs,
  expectedOf,
  gapsOf,
  inParallel,
  type LastRequest,
  type Ordering,
  rememberedOf,
} from './context.ts'
import { confirmHandOver } from './fulfil.ts'
import { applyOrder, foundOrders, lookAttempt, readSupplierOrder, reschedule } from './read-order.ts'
import { boughtBefore } from './reattach.ts'
import { noteFailure } from './recover.ts'
import { pagesSince, scanFor } from './scan.ts'
import { isKeyless, mayRepeat, noteAgreement, prepareSend } from './send.ts'
import { alertUnreadable } from './unreadable-answers.ts'

const BATCH = 100
/** The number of reads side by side. Reads have their own connections, so that new orders never delay them. */
const AT_ONCE = 4

/**
 * Reads or looks up every purchase that is due, whether a hint, the schedule or a crash made the purchase due.
 *
 * While the supplier answers nothing, one purchase finds out whether that is over. The others stay due, and go on as soon as it is.
 *
 * @returns how many purchases were handled
 */
export async function refreshDue(ordering: Ordering): Promise<number> {
  const now = ordering.now()
  for (const { id } of await ordering.db.query(lostSends(now, BATCH))) {
    const lost = advance(ordering, id, { input: { type: 'lost' } })
    await lost.catch((error: unknown) => noteFailure(ordering, id, error))
  }
  const isSilent = () => ordering.supplier.reach().unanswered !== undefined
  const due = await ordering.db.query(dueRefreshes(now, isSilent() ? 1 : BATCH))
  const open = await openOrders(ordering, due)
  const readOne = async (purchase: Purchase) => {
    const read = beginRead(ordering, purchase)
    try {
      const next = await refresh(ordering, purchase, open)
      read.ended(next)
      if (next === undefined) await reschedule(ordering, purchase)
    } catch (error) {
      read.failed()
      await noteFailure(ordering, purchase.id, error)
    }
  }
  const handled = due.length
  // The list that `openOrders` reads may be what the supplier does not answer alone.
  if (isSilent()) for (const purchase of due.splice(0, 1)) await readOne(purchase)
  await inParallel(due, AT_ONCE, readOne, () => !isSilent())
  if (ordering.supplier.unreadable().length > 0 || ordering.pace.alerted.size > 0) await alertUnreadable(ordering)
  return isSilent() ? 0 : handled
}

/**
 * Reads a purchase whose order id is known. Looks up every other purchase by its reference.
 *
 * @returns the state of the purchase afterwards; undefined when nothing has changed
 */
async function refresh(
  ordering: Ordering,
  purchase: Purchase,
  open: ReadonlyMap<string, SupplierOrder>,
): Promise<PurchaseState | undefined> {
  const { id, supplierOrderId, version } = purchase
  if (supplierOrderId === null) {
    await lookUp(ordering, purchase)
    const after = await first(ordering.db, purchaseById(id))
    return after?.version === version ? undefined : after?.state
  }
  // A purchase that could not end when its last keys were marked as handed over ends here.
  if (purchase.state === 'completed' && (await confirmHandOver(ordering, id))) return 'fulfilled'
  const order = open.get(supplierOrderId)
  const moved = order
    ? await applyOrder(ordering, purchase, order, listedAgainAt(purchase, ordering.now()))
    : await readSupplierOrder(ordering, purchase, supplierOrderId)
  return moved?.decision.next
}

/**
 * Looks a purchase up at the supplier: first by the order id that an answer named, then by the reference among all orders.
 *
 * A found order is believed at once. The absence of an order is believed only after two valid scans, far enough apart. Both
 * scans must begin so late that the last request has run and its order would show. After both, an `unknown` purchase is sent
 * again with the same key and bytes, or ends as the transition table says.
 */
export async function lookUp(ordering: Ordering, purchase: Purchase): Promise<void> {
  const { namedOrderId } = purchase
  if (purchase.state !== 'unknown' || namedOrderId === null) return scan(ordering, purchase)
  if ((await readNamed(ordering, purchase, namedOrderId)) === 'decided') return
  const after = await first(ordering.db, purchaseById(purchase.id))
  if (after?.state === 'unknown') await scan(ordering, after)
}

/**
 * Reads the order that a doubtful answer named, and lets the transition table decide by the contents of the order.
 *
 * @returns `open` when the order cannot be read, is not known, or belongs to another purchase: then only a scan can answer
 */
async function readNamed(ordering: Ordering, purchase: Purchase, orderId: string): Promise<'decided' | 'open'> {
  const { db, pace } = ordering
  let order: SupplierOrder | undefined
  let detail = `order ${orderId}, named by an answer, is not known`
  try {
    order = await ordering.supplier.order(orderId)
    ordering.at('read')
    pace.breaker = afterLookUp(pace.breaker, order ? 1 : 0)
    if (order) detail = `order ${orderId}, named by an answer, is ${order.statusWord}`
  } catch (error) {
    detail = messageOf(error)
  }
  await db.commit([lookAttempt(ordering, purchase, 'read', { supplierOrderId: orderId, detail })])
  if (!order) return 'open'
  const isYoung = ordering.now() - (purchase.unknownAt ?? 0) < LATE_MS
  const isBare = isYoung && order.status === 'open' && order.externalOrderId === undefined
  if (isBare && ordering.dialect.orderAnswer === 'id') {
    // Some suppliers show what was ordered only once the order is complete. A list of orders shows no more until then.
    await reschedule(ordering, purchase, {})
    return 'decided'
  }
  const [found] = await foundOrders(ordering, purchase, [order])
  if (!found) return 'open'
  const { externalOrderId: reference } = order
  const named = reference === undefined ? [] : await db.query(purchasesByExternalId([reference]))
  const ofAnotherLine = found.ofAnotherLine || named.some(({ id }) => id !== purchase.id)
  if (ordering.dialect.orderAnswer === 'id' && !ofAnotherLine) noteAgreement(pace, purchase.id, found.agrees)
  if (found.differs && pace.differs === purchase.id) found.differs += '; nothing more is bought until this is decided'
  const moved = await advance(ordering, purchase.id, (loaded) =>
    loaded.purchase.namedOrderId === orderId
      ? { input: { type: 'named_read', order: { ...found, ofAnotherLine } }, detail }
      : undefined,
  )
  return moved && moved.decision.next !== 'unknown' ? 'decided' : 'open'
}

async function scan(ordering: Ordering, purchase: Purchase): Promise<void> {
  const begunAt = ordering.now()
  const begun = ordering.monotonic()
  const lastRequest = purchase.state === 'unknown' ? rememberedOf(ordering, purchase) : undefined
  const verdict = lastRequest && verdictOf(ordering, purchase, lastRequest, begun)
  let found: FoundOrder[] | undefined
  let detail: string
  try {
    const orders = await scanFor(ordering, purchase, { proves: verdict !== undefined && verdict.proof !== 'early' })
    ordering.at('looked_up')
    found = await foundOrders(ordering, purchase, orders)
    detail = found.length === 0 ? 'not found' : `found ${found.map((order) => order.id).join(', ')}`
    ordering.pace.breaker = afterLookUp(ordering.pace.breaker, orders.length)
  } catch (error) {
    detail = messageOf(error)
  }
  await ordering.db.commit([lookAttempt(ordering, purchase, 'look_up', { detail })])
  if (!found) {
    // Only an `unknown` purchase ends here by its deadline. Others are looked up after a restore, and may have been sent.
    const overdue = await advance(ordering, purchase.id, ({ purchase: { state } }) =>
      state === 'unknown' ? { input: { type: 'clock' } } : undefined,
    )
    if (!overdue) await lookUpAgain(ordering, purchase, begunAt, detail)
  } else if (found.length > 0) {
    const orders = found
    const moved = await advance(ordering, purchase.id, { input: { type: 'found', orders }, detail })
    if (!moved) await reschedule(ordering, purchase, { scannedAt: begunAt })
  } else if (lastRequest && verdict) {
    await notFound(ordering, purchase, { begunAt, begun, lastRequest, verdict })
  } else {
    await reschedule(ordering, purchase, { scannedAt: begunAt })
  }
}

/** People are alerted when look-ups fail for so long: a restart of the supplier, or a list that moved, is over by then. */
const UNSETTLED_MS = 10 * 60_000
/** The wait after a look-up that hung while the supplier came back. */
const SOON_MS = 5_000

/** Handles a scan that was not valid. Alerts people after ten minutes without a valid scan, unless the supplier is away. */
async function lookUpAgain(ordering: Ordering, purchase: Purchase, begunAt: number, why: string): Promise<void> {
  const { db, now, supplier } = ordering
  const { id, state, unknownAt, scannedAt } = purchase
  const alertAt = Math.max(unknownAt ?? 0, scannedAt ?? 0) + UNSETTLED_MS
  const cameBack = (supplier.reach().answered?.since ?? 0) > begunAt
  const notLaterThan = cameBack ? now() + SOON_MS : alertAt > now() ? alertAt : undefined
  await reschedule(ordering, purchase, {}, notLaterThan)
  if (state !== 'unknown' || now() < alertAt || supplier.reach().unanswered) return
  const note = `it may have been charged, and no look-up could tell for ten minutes: ${why}`
  const occasion = `${id} ${unknownAt}`
  await db.commit([enqueueAlert(ordering, { type: 'look_ups_fail', occasion, payload: { note, purchaseId: id } })])
  ordering.wake('outbox')
}

/**
 * Judges what a scan that finds nothing proves.
 *
 * @param begun when the scan began, on the clock that never jumps; only this clock counts here
 */
function verdictOf(ordering: Ordering, purchase: Purchase, lastRequest: LastRequest, begun: number): NotFoundVerdict {
  const { dialect } = ordering
  // A restore resets the `absentSince` of the row. Then the first scan that this process remembers does not count either.
  const absentSince = purchase.absentSince === null ? undefined : lastRequest.absentSince
  return judgeNotFound(
    { sentAt: lastRequest.sentAt, absentSince, begunAt: begun },
    // The intent is stored before the request leaves. The request may leave as late as its deadline.
    { deadlineMs: deadlineMs(ordering), ...gapsOf(dialect), gapMs: dialect.scanGapSeconds * 1_000 },
  )
}

interface Scan {
  /** When the scan began: `begunAt` on the wall clock, for the row and for people; `begun` on the clock that never jumps. */
  begunAt: number
  begun: number
  /** The last request, as it was remembered when the scan began, and what the scan proves about it. */
  lastRequest: LastRequest
  verdict: NotFoundVerdict
}

/** Handles a valid scan without the order. The scan is the first or the second of a pair, or too early to count. */
async function notFound(ordering: Ordering, purchase: Purchase, scan: Scan): Promise<void> {
  const { begunAt, begun, lastRequest, verdict } = scan
  if (verdict.proof === 'absent') return provenAbsent(ordering, purchase, begunAt)
  const counts = verdict.proof === 'first'
  if (counts) lastRequest.absentSince = begun
  const set = counts ? { scannedAt: begunAt, absentSince: begunAt } : { scannedAt: begunAt }
  await reschedule(ordering, purchase, set, begunAt + Math.ceil(verdict.waitMs))
}

/** The wait of a purchase proven absent, while orders are reattached or compared. Nothing shortens it if the process ends then. */
const ABSENT_AGAIN_MS = 60_000

async function provenAbsent(ordering: Ordering, purchase: Purchase, begunAt: number): Promise<void> {
  const later = (at?: number) => reschedule(ordering, purchase, { scannedAt: begunAt }, at)
  // The part may have been bought as a later generation, which shows only once the orders are reattached.
  if (await isReattaching(ordering.db)) return later(begunAt + ABSENT_AGAIN_MS)
  const frozen = (await currentFreeze(ordering.db)) !== undefined
  const order = await first(ordering.db, entitledNow(purchase.id))
  // An order that changed is compared with its purchases within moments, which may make room.
  if (order?.isSettled === 0 && purchase.cancelRequestedAt === null) return later(begunAt + ABSENT_AGAIN_MS)
  const hasRoom = !order || Boolean(order.isWithin || order.isDecided)
  const input: PurchaseInput = { type: 'absent', frozen, keyless: isKeyless(ordering, purchase), hasRoom }
  const repeats = !frozen && purchase.cancelRequestedAt === null
  if (repeats && !mayRepeat(ordering)) return later(begunAt + 10_000)
  if (repeats && (await boughtBefore(ordering, purchase))) return later()
  // The proof holds for the row as it was scanned. A request that was sent since then makes the proof void.
  const loaded = await load(ordering, purchase.id, false)
  const isAsScanned = loaded?.purchase.version === purchase.version
  const send = isAsScanned ? await prepareSend(ordering, loaded, input) : undefined
  if (send) return send()
  await later()
}

/* Without deliveries, one page of the supplier's list shows many orders at once. */

/** Returns when an order that a page showed is looked at again: after half its present age, so older orders cost less. */
const listedAgainAt = ({ acceptedAt }: Purchase, now: number): number =>
  readTogetherAt(now + Math.max(LISTED_EVERY_MS, (now - (acceptedAt ?? now)) / 2))

const LISTED_EVERY_MS = 2_000

/** The fewest orders for which pages are read. Fewer orders are read by id: that costs no more, and brings the keys too. */
const LISTED_MIN = 4
/** An order that stays open for longer than this is read by its id, in case the list lags behind the order. */
const LISTED_FOR_MS = 15 * 60_000
/** One page of the list is read for each group of so many orders. */
const ORDERS_A_PAGE = 8

/**
 * Reads the orders of due purchases from pages of the supplier's list, where that costs less than to read each order.
 *
 * @returns the open orders by the supplier's id. All others are read by their ids: orders that the list lacks, orders that differ
 *   from what was asked for, and orders that are over, because only a read by id brings the keys
 */
async function openOrders(ordering: Ordering, due: readonly Purchase[]): Promise<Map<string, SupplierOrder>> {
  const { announced } = ordering.pace.watch
  const oldest = ordering.now() - LISTED_FOR_MS
  const watched = due.filter(
    ({ id, state, supplierOrderId, acceptedAt }) =>
      state === 'accepted' && supplierOrderId !== null && (acceptedAt ?? 0) > oldest && !announced.has(id),
  )
  const open = new Map<string, SupplierOrder>()
  if (watched.length < LISTED_MIN) return open
  const missing = new Map(watched.map((purchase) => [purchase.supplierOrderId, purchase]))
  const from = Math.min(...watched.map(({ firstSentAt, createdAt }) => firstSentAt ?? createdAt)) - SKEW_MS
  let pagesLeft = Math.ceil(watched.length / ORDERS_A_PAGE)
  try {
    for await (const page of pagesSince(ordering, from, { onUnreadable: () => {}, onListEnd: () => {} })) {
      for (const order of page) {
        const purchase = missing.get(order.id)
        missing.delete(order.id)
        const isOpen = order.status === 'open' && purchase && !ordering.supplier.differs(order, expectedOf(purchase))
        if (isOpen) open.set(order.id, order)
      }
      pagesLeft -= 1
      if (missing.size === 0 || pagesLeft === 0) break
    }
  } catch (error) {
    ordering.log.warn('orders.unlisted', { count: missing.size, error: messageOf(error) })
  }
  return open
}
