import type { AlertKind } from '../domain/alert-kinds.ts'
import { type Entitlement, type PlannedPart, type SettleNotice, type Step, settle } from '../domain/entitlement.ts'
import { counted, units as unitText } from '../domain/figures.ts'
import { amountText } from '../domain/money.ts'
import { isOver, keepsMoney, mayBuy } from '../domain/purchase.ts'
import { mayBeForgotten } from '../domain/restore.ts'
import { currentParts } from '../domain/store-order.ts'
import { codeOf } from '../errors.ts'
import { type Change, first, retryStale } from '../storage/database.ts'
import { earningsChanged } from '../storage/earnings.ts'
import {
  ALWAYS_FRESH,
  changeEntitlement,
  dueSettlements,
  type EntitlementRow,
  entitlementLinesOf,
  entitlementOf,
} from '../storage/entitlements.ts'
import { countKeys } from '../storage/licence-keys.ts'
import { offersByProduct } from '../storage/offers.ts'
import { enqueueAlert, hastenHandOver } from '../storage/outbox.ts'
import { type Purchase, type PurchaseUpdate, purchasesOfOrder } from '../storage/purchases.ts'
import { currentEpoch, isReattaching } from '../storage/restores.ts'
import {
  cancelPurchase,
  changeQuantity,
  changeUnitPrice,
  insertLine,
  type Line,
  linesOfOrders,
  markReopened,
  type StoreOrder,
  storeOrderById,
} from '../storage/store-orders.ts'
import { insertLateOrder } from '../storage/stores.ts'
import { type Given, load, type Move, moveBy, plannedPurchase } from './advance.ts'
import type { Ordering } from './context.ts'
import { ceilingOf, offerOfLine, plannedParts, type Sold } from './intake.ts'

export interface LineNow extends Sold {
  unitPriceMinor: number | null
  currency: string | null
}

/** The state of an order with which its purchases are compared. */
export interface OrderNow {
  order: StoreOrder
  row: Pick<EntitlementRow, 'store' | 'reference' | 'revision' | 'readAt' | 'standingSince'>
  entitlement: Entitlement
  /** A decision of a person outweighs the order if it was made at this revision of the order. */
  decidedAt: number
  /** The lines by the store's own ids. When absent, no price counts as changed, and an order with units to plan is read again. */
  lines?: ReadonlyMap<string, LineNow>
  wishesByStanding: boolean
  /** Says whether an operator asks just now to buy the units of a line, even units that a person had closed earlier. */
  takes?: (line: string) => boolean
  /** True when the order was read because the shop refused a delivery. Then its other deliveries are not tried at once. */
  isForDelivery?: boolean
}

type PurchaseStep = Exclude<Step, { step: 'grow' }>

/** Once an order is unpaid or held for this time, its waiting purchases end. */
const EXPIRES_MS = 30 * 24 * 3_600_000
/** The wait between two tries to settle an order while a worker holds one of its purchases. */
const AGAIN_MS = 2_000
/** Columns of the row that has an order read again by its id. */
const LATE = { attempts: 0, lastError: 'it has units that are planned once it is read again' }
const STALE_MAX = 5
const BATCH = 50

type Moves = Pick<Move, 'changes' | 'committed'>

const UNMOVED: Moves = { changes: [], committed: () => {} }

/**
 * Returns the changes by which the purchases of an order follow the standing of the order.
 *
 * @returns `isSettled`: false when a worker holds a purchase that is to change, or when the order must be read again;
 * `settleAt`: when the order is compared again; null: not before the order changes
 */
export async function settlementOf(ordering: Ordering, now: OrderNow) {
  const at = ordering.now()
  const { order, entitlement, row } = now
  const { standing } = entitlement
  // Until the supplier's orders are reattached, it is not known what was bought.
  if (await isReattaching(ordering.db)) return { ...UNMOVED, isSettled: false, settleAt: at + AGAIN_MS }
  const books = await readBooks(ordering, now, at)
  const { purchases, lines } = books
  const ofLines = [...Map.groupBy(purchases, ({ lineId }) => lineId).values()]
  const parts = ofLines.flatMap((own) => currentParts(own).map((newest) => partOf(books, newest, own)))
  const waits = standing === 'unpaid' || standing === 'held'
  const expiresAt = row.standingSince + EXPIRES_MS
  const hasExpired = waits && at >= expiresAt
  const settled = settle(parts, entitlement, { hasExpired, wishesByStanding: now.wishesByStanding })
  const moves: Moves[] = []
  const ofPurchases = new Map<string, PurchaseStep>()
  for (const step of settled.steps) {
    if (step.step === 'grow') moves.push(await grown(books, step))
    else ofPurchases.set(step.id, step)
  }
  for (const part of parts) moves.push(await moved(books, part, ofPurchases.get(part.id)))
  const notices = settled.notices.map((notice) => alertOf(books, notice))
  // New units are planned from a fresh reading. After a restore that reading is lost, so the order is read again by its id.
  const isToBeRead = !now.lines && row.readAt !== ALWAYS_FRESH && settled.steps.some(({ step }) => step === 'grow')
  const late = { ...LATE, store: order.store, reference: order.reference, notBefore: at }
  return {
    changes: [
      ...lines.flatMap((line) => {
        const units = unitsOf(books, line)
        return units > line.quantity ? [changeQuantity(line.id, units)] : []
      }),
      ...moves.flatMap(({ changes }) => changes),
      ...notices,
      ...(isToBeRead ? [insertLateOrder(late)] : []),
    ],
    isSettled: !settled.isOpen && !isToBeRead,
    settleAt: settled.isOpen ? at + AGAIN_MS : waits && !hasExpired && parts.length > 0 ? expiresAt : null,
    committed: () => {
      for (const { committed } of moves) committed()
      if (moves.some(({ changes }) => changes.length > 0)) ordering.wake('place')
      if (moves.length + notices.length > 0) ordering.wake('outbox')
    },
  }
}

type Books = Awaited<ReturnType<typeof readBooks>>

/** Reads the rows with which an order is compared, as the database has them at this instant. */
async function readBooks(ordering: Ordering, now: OrderNow, at: number) {
  const { db } = ordering
  const { order } = now
  const [purchases, keys, lines, epoch] = await Promise.all([
    db.query(purchasesOfOrder(order.id)),
    db.query(countKeys(order.id)),
    db.query(linesOfOrders([order.id])),
    currentEpoch(db),
  ])
  // A restore may have lost purchases of the order.
  const isForgotten =
    epoch?.restoredAt != null &&
    mayBeForgotten(order.receivedAt, {
      restoredAt: epoch.restoredAt,
      unknownFrom: epoch.unknownFrom,
      isCutOff: epoch.listEnd !== null,
    })
  const keysOf = new Map(keys.map((one) => [one.purchaseId, one]))
  const lineOf = new Map(lines.map((one) => [one.id, one]))
  return { ordering, now, at, purchases, lines, lineOf, keysOf, epoch, isForgotten }
}

function partOf(
  { now, at, lineOf, keysOf, isForgotten }: Books,
  newest: Purchase,
  own: readonly Purchase[],
): PlannedPart {
  const ofPart = own.filter(({ part }) => part === newest.part)
  const left = (one: Purchase) => keysOf.get(one.id)?.left ?? 0
  const { state, decidedRevision, takenBackBy } = newest
  const line = lineOf.get(newest.lineId)?.line ?? ''
  const isWanted = now.takes?.(line) ?? false
  const isTaken = isWanted && state === 'cancelled' && takenBackBy !== null && decidedRevision !== null
  return {
    ...newest,
    line,
    isUnsent: newest.sends === 0 && newest.firstSentAt === null && !isForgotten,
    isMaybeCharged: !isTaken && newest.maybeChargedAt !== null,
    isUnrefunded: keepsMoney(newest),
    isRefundedBefore: mayBuy(ofPart.filter((one) => one !== newest)),
    isCancelled: newest.cancelRequestedAt !== null,
    left: left(newest),
    leftBefore: ofPart.reduce((sum, one) => sum + (one === newest ? 0 : left(one)), 0),
    waiting: keysOf.get(newest.id)?.waiting ?? 0,
    hasKeys: (keysOf.get(newest.id)?.stored ?? 0) >= newest.quantity,
    isDecided: !isTaken && decidedRevision !== null && decidedRevision === now.decidedAt,
    isClosed: !isTaken && ((state === 'cancelled' && decidedRevision !== null) || now.order.cancelRequestedAt !== null),
    isWanted,
    isLeased: state === 'sending' || (newest.leaseUntil ?? 0) > at,
    isReplacement: newest.claim !== null,
  }
}

/** Counts the units of a line. After a restore, its purchases may have more units than the line has in the backup. */
function unitsOf({ purchases }: Books, { id, quantity }: Line): number {
  const own = purchases.filter(({ lineId, state, claim }) => lineId === id && !isOver(state) && claim === null)
  const found = own.reduce((sum, one) => sum + one.quantity, 0)
  return Math.max(quantity, found)
}

async function moved(books: Books, part: PlannedPart, step: PurchaseStep | undefined): Promise<Moves> {
  const { ordering, now, at } = books
  const { row, entitlement } = now
  const { set, price } = await boughtNow(books, part, step?.step === 'shop_resizes' ? step.quantity : undefined)
  if (!step && !set) return UNMOVED
  const why = entitlement.because === null ? entitlement.standing : `the order ${entitlement.because}`
  const nextGeneration = { plannedRevision: row.revision }
  const { id } = part
  // A backend that cancelled its order is to hear of the end of each purchase. So the purchase is only flagged, and ends later.
  if (row.readAt === ALWAYS_FRESH && (step?.step === 'shop_ends' || step?.step === 'shop_cancels')) {
    if (part.state !== 'completed') return { changes: [cancelPurchase(id, at)], committed: () => {} }
    // If no hand-over of its keys waits, nothing would come to the purchase later.
    const loaded = await load(ordering, id)
    if (!loaded) return UNMOVED
    const flagged = { ...loaded, purchase: { ...loaded.purchase, cancelRequestedAt: at } }
    return moveBy(ordering, flagged, { input: { type: 'clock' }, set: { cancelRequestedAt: at } })
  }
  const givenBy = (): Given => {
    switch (step?.step) {
      case 'shop_ends': {
        const columns = { ...set, note: 'the shop took it back before it was bought' }
        return { input: { type: step.step, by: step.by, rest: step.rest }, set: columns, nextGeneration }
      }
      case 'shop_holds':
        return { input: { type: step.step, reason: step.reason }, set: { ...set, note: why }, detail: why }
      case 'shop_cancels':
        return { input: { type: step.step, by: step.by }, detail: why }
      case 'shop_pays': {
        const also = now.isForDelivery ? [] : [hastenHandOver(id, at)]
        return { input: { type: step.step }, set: { ...set, note: null }, also }
      }
      case 'shop_limits': {
        // If the store already has all units that the order is entitled to, the purchase ends at its next read, due now.
        // Keys of a closed order that are released now may wait in the shop for its closing: it is closed again after them.
        const also = part.state === 'fulfilled' ? [markReopened(now.order.id)] : []
        return { input: { type: step.step, surplus: step.surplus }, set: { refreshAt: at }, also }
      }
      case 'again':
        return { input: { type: step.step, quantity: step.quantity }, nextGeneration }
      default: {
        const detail = `for ${counted(set?.quantity ?? part.quantity, 'unit of it', 'units of it')}`
        return { input: { type: 'shop_resizes' }, set, detail }
      }
    }
  }
  const loaded = await load(ordering, id)
  const { changes, committed } = loaded ? await moveBy(ordering, loaded, givenBy()) : UNMOVED
  return { changes: [...changes, ...price], committed }
}

/** Returns the new quantity and ceiling of an unsent purchase, where these change in place, under the same idempotency key. */
async function boughtNow({ ordering, now, purchases, lineOf }: Books, part: PlannedPart, units: number | undefined) {
  const { order } = now
  const purchase = purchases.find(({ id }) => id === part.id)
  const line = purchase && lineOf.get(purchase.lineId)
  if (!purchase || !line || purchase.state !== 'planned' || !part.isUnsent || part.isLeased) return { price: [] }
  const quantity = units ?? purchase.quantity
  const sold = now.lines?.get(part.line)
  const isPriced =
    sold !== undefined && (sold.unitPriceMinor !== line.unitPriceMinor || sold.currency !== line.currency)
  if (quantity === purchase.quantity && !isPriced) return { price: [] }
  const set: PurchaseUpdate & { quantity?: number } = {}
  if (quantity !== purchase.quantity) {
    const { store, reference } = order
    const name = { store, reference, line: part.line, part: part.part, generation: purchase.generation }
    const { body } = plannedPurchase(ordering.dialect, name, { ...purchase, quantity })
    Object.assign(set, { quantity, body })
  }
  if (isPriced && purchase.ceilingDecidedAt === null) {
    const [offer] = await ordering.db.query(offersByProduct([purchase.supplierProductId]))
    const ceiling = offer && ceilingOf(ordering, sold, offer, order.receivedAt)
    if (typeof ceiling === 'number') set.ceilingMinor = ceiling
  }
  return {
    set,
    price: isPriced ? [changeUnitPrice(line.id, sold.unitPriceMinor, sold.currency), earningsChanged(order.id)] : [],
  }
}

/** Plans new parts of a line. The whole line may be new in the order. */
async function grown(books: Books, { line: id, units }: Extract<Step, { step: 'grow' }>): Promise<Moves> {
  const { ordering, now, at, purchases, lines } = books
  const { order, row } = now
  const known = lines.find(({ line }) => line === id)
  const sold = now.lines?.get(id)
  if (!sold) return UNMOVED
  const found = await offerOfLine(ordering, order.store, sold)
  const offer = found === 'ambiguous' ? undefined : found
  const ceiling = offer && ceilingOf(ordering, sold, offer, at)
  if (!offer || typeof ceiling !== 'number') {
    const why = offer ? 'its price cannot be compared with the cost' : 'its SKU is ambiguous'
    return {
      ...UNMOVED,
      changes: [alert(books, 'grow', id, `${unitText(units)} of line ${id} came later and ${why}: take them by hand`)],
    }
  }
  const lineId = known?.id ?? ordering.newId()
  const highest = Math.max(0, ...purchases.filter((one) => one.lineId === lineId).map(({ part }) => part))
  const name = { store: order.store, reference: order.reference, line: id, part: highest + 1 }
  const plan = { orderId: order.id, lineId, ceilingMinor: ceiling, notBefore: null, plannedRevision: row.revision }
  const { sku, unitPriceMinor, currency } = sold
  const line = {
    id: lineId,
    orderId: order.id,
    line: id,
    sku,
    quantity: units,
    productId: offer.productId,
    unitPriceMinor,
    currency,
  }
  return {
    changes: [
      known ? changeQuantity(lineId, unitsOf(books, known) + units) : insertLine(line),
      ...plannedParts(ordering, name, units, offer, plan),
      markReopened(order.id),
    ],
    committed: () => ordering.log.info('order.grown', { id: order.id, reference: order.reference, count: units }),
  }
}

function alert({ ordering, now }: Books, what: string, subject: string, words: string): Change {
  const { id, store, reference } = now.order
  const note = `the order ${reference} of ${store} was changed in the shop: ${words}`
  const occasion = `${store}:${reference}:${what}:${subject}:${words}`
  return orderAlert(ordering, 'order_changed', { store, reference, orderId: id }, occasion, note)
}

export const orderAlert = (
  ordering: Ordering,
  type: AlertKind,
  { orderId = null, store, reference }: { orderId?: string | null; store: string; reference: string },
  occasion: string,
  note: string,
): Change => enqueueAlert(ordering, { type, occasion, payload: { note, store, reference }, orderId })

function alertOf(books: Books, notice: SettleNotice): Change {
  const { now, lines, epoch } = books
  if (notice.notice === 'charged') {
    const words = `it is to be tried again, and its purchase ${notice.id} may have been charged before it ended: quayside purchases retry ${notice.id} buys it once more`
    return alert(books, 'charged', notice.id, words)
  }
  const { line, units } = notice
  const known = lines.find((one) => one.line === line)
  const { unitPriceMinor = null, currency = null, sku = now.lines?.get(line)?.sku } = known ?? {}
  const worth = unitPriceMinor === null || !currency ? '' : ` (${amountText(units * unitPriceMinor, currency)})`
  const some = `${unitText(units)} of line ${line}${sku ? ` (${sku})` : ''}`
  const is = units === 1 ? 'is' : 'are'
  const words = {
    ask: `${some} ${is} ordered and not bought (added later, closed here, or listed under another SKU): quayside orders take ${now.order.reference} --line ${line}`,
    too_late: `${counted(units, 'key')} of line ${line}${worth} ${units === 1 ? 'was' : 'were'} delivered, or may have been, and ${is} not paid for any more`,
    surplus: `${some} ${is} bought already and not ordered any more: ${units === 1 ? 'its key stays' : 'their keys stay'} here`,
  }[notice.notice]
  // People are asked again when the same unit is added again, and after a restore, which forgets what a person has taken.
  const again = `${line}:${now.row.revision}:${epoch?.epoch ?? 1}`
  return alert(books, notice.notice, notice.notice === 'ask' ? again : line, words)
}

/** Compares the orders that are due with their purchases. @returns how many orders were due */
export async function settleDue(ordering: Ordering): Promise<number> {
  const due = await ordering.db.query(dueSettlements(ordering.now(), BATCH))
  for (const { store, reference } of due) {
    try {
      await settleOrder(ordering, store, reference)
    } catch (error) {
      ordering.log.warn('order.unsettled', { store, reference, error: codeOf(error) })
    }
  }
  return due.length
}

/** Compares one order, as it was last read, with its purchases. */
export async function settleOrder(ordering: Ordering, store: string, reference: string): Promise<void> {
  await retryStale(STALE_MAX, async () => {
    const { db } = ordering
    const [[row], units] = await Promise.all([
      db.query(entitlementOf(store, reference)),
      db.query(entitlementLinesOf(store, reference)),
    ])
    const order = row?.orderId ? await first(db, storeOrderById(row.orderId)) : undefined
    if (!row) return
    if (!order) {
      await db.commit([changeEntitlement(row, { settleAt: null, settledRevision: row.revision })])
      return
    }
    const { changes, isSettled, settleAt, committed } = await settlementOf(ordering, {
      order,
      row,
      entitlement: entitlementIn(row, units),
      decidedAt: row.revision,
      wishesByStanding: ordering.stores.find(({ id }) => id === store)?.wishesByStanding ?? false,
    })
    const settledRevision = isSettled ? row.revision : row.settledRevision
    await db.commit([...changes, changeEntitlement(row, { settleAt, settledRevision })])
    committed()
  })
}

export const entitlementIn = (
  row: EntitlementRow,
  lines: readonly { line: string; units: number; granted: number; most: number }[],
): Entitlement => ({
  ...row,
  lines: new Map(lines.map(({ line, units, granted, most }) => [line, { units, granted, most }])),
})
