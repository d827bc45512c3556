import assert from 'node:assert/strict'
import { counted, duration } from '../domain/figures.ts'
import { clicksOf } from '../domain/key-page.ts'
import { chargesOf, type HoldReason, isStandingHold } from '../domain/purchase.ts'
import {
  currentParts,
  delivered,
  hasLeft,
  type LineState,
  lineState,
  type OrderState,
  orderState,
  unitsWanted,
} from '../domain/store-order.ts'
import { Failure } from '../errors.ts'
import { type Database, first } from '../storage/database.ts'
import { type Attempt, attemptsOf, type TransitionRow, transitionsOf } from '../storage/evidence.ts'
import { countHandedOver, keysOfPurchases, type LicenceKey } from '../storage/licence-keys.ts'
import { type Offer, offersByProduct } from '../storage/offers.ts'
import { type Outage, openOutage } from '../storage/outages.ts'
import { type OutboxRow, outboxOfOrder } from '../storage/outbox.ts'
import { type Purchase, purchasesOfOrder, purchasesOfOrders } from '../storage/purchases.ts'
import type { Found } from '../storage/statement.ts'
import {
  type Line,
  linesOfOrders,
  listOpenOrders,
  listStoreOrders,
  listUnfulfilledOrders,
  namesOfLines,
  type OrderFilter,
  ordersOfSku,
  type StoreOrder,
  storeOrderById,
  storeOrderByReference,
  storeOrdersByNumber,
  storeOrdersByReference,
  storeOrdersNamed,
} from '../storage/store-orders.ts'
import { pageFor, shownKey } from './advance.ts'
import type { Ordering } from './context.ts'
import type { NewOrder } from './intake.ts'
import { keysPageOf, type Opening } from './keys-page.ts'
import { outagesDuring } from './outages.ts'

/** A store order as it is now. The state is derived from its purchases and keys. Instants are in epoch milliseconds. */
export interface OrderView
  extends Pick<StoreOrder, 'store' | 'reference' | 'number' | 'receivedAt' | 'cancelRequestedAt' | 'closedAt'> {
  state: OrderState
  lines: LineView[]
  /** The page on which the customer opens the keys; undefined for an order without one. */
  keysPage: { madeAt: number; withdrawnAt: number | null } | undefined
  timeline: Entry[]
}

interface Entry {
  /** Decides the order of entries of one millisecond. */
  id: string
  at: number
  what: string
  detail: string | null
}

export interface LineProgress {
  /** The store's own id of the line. */
  id: string
  sku: string
  quantity: number
  state: LineState
  delivered: number
}

export interface LineView extends LineProgress {
  name: string | null
  keys?: string[]
  /** The same keys with their types; absent where all are plain text. */
  typedKeys?: ShownKey[]
  /** The keys that the customer opened on the page. */
  keysOpened: Opening[]
  purchases: Purchase[]
}

/** Returns the orders under a reference; where there is none, those under a number by which people know them. */
export async function ordersCalled(db: Database, store: string | undefined, name: string): Promise<StoreOrder[]> {
  const found = await db.query(store === undefined ? storeOrdersByReference(name) : storeOrderByReference(store, name))
  if (found.length > 0) return found
  return (await db.query(storeOrdersByNumber(name))).filter((order) => store === undefined || order.store === store)
}

/** Returns the one order of this name. @throws Failure `not_found`; `conflict`, reason `ambiguous_reference`, where several have it */
export async function orderCalled(db: Database, store: string | undefined, name: string): Promise<StoreOrder> {
  const found = await ordersCalled(db, store, name)
  const [order] = found
  if (!order) throw new Failure('not_found', 'no order has this reference')
  if (found.length === 1) return order
  const stores = found.map((one) => one.store).join(', ')
  throw new Failure('conflict', `several stores have an order under this reference; name one with ?store=: ${stores}`, {
    reason: 'ambiguous_reference',
  })
}

/** Returns the states of an order and of its lines, as an update of a store needs them. @throws Failure `not_found` */
export async function orderStanding({ db }: Pick<Ordering, 'db'>, orderId: string): Promise<Standing> {
  const [order, rows] = await Promise.all([first(db, storeOrderById(orderId)), standingRows(db, orderId)])
  if (!order) throw new Failure('not_found', `there is no order with the id ${orderId}`)
  return { order, ...standingBy(rows) }
}

/** Returns the standing of an order whose row was just read. */
export const standingOf = async <O extends { id: string }>({ db }: Pick<Ordering, 'db'>, order: O) => ({
  order,
  ...standingBy(await standingRows(db, order.id)),
})

/** The rows of an order from which its standing follows. */
export interface StandingRows {
  lines: Line[]
  purchases: Purchase[]
  keys: LicenceKey[]
}

export async function standingRows(db: Database, orderId: string): Promise<StandingRows> {
  const [lines, purchases] = await Promise.all([
    db.query(linesOfOrders([orderId])),
    db.query(purchasesOfOrder(orderId)),
  ])
  const ids = purchases.map((purchase) => purchase.id)
  return { lines, purchases, keys: ids.length > 0 ? await db.query(keysOfPurchases(ids)) : [] }
}

export function standingBy({ lines, purchases, keys }: StandingRows) {
  const standing = lines.map((line) => {
    const own = purchases.filter((purchase) => purchase.lineId === line.id)
    const parts = own.map((purchase) => ({ ...purchase, handedOver: handedOver(keys, purchase.id).length }))
    const units = { delivered: delivered(parts), wanted: unitsWanted(parts) }
    return { line, purchases: own, parts, state: lineState(parts), ...units }
  })
  return { lines: standing, keys, state: orderState(standing) }
}

/** The states of an order and of its lines, with the rows that they follow from. */
export type OrderStanding = ReturnType<typeof standingBy>
export type Standing = OrderStanding & { order: StoreOrder }

/** Returns the keys of an order for which `isOne` holds, by line. Lines without such keys are left out. */
export const keysByLine = ({ lines, keys }: OrderStanding, isOne: (key: LicenceKey) => boolean) =>
  lines.flatMap(({ line, purchases }) => {
    const own = new Set(purchases.map(({ id }) => id))
    const found = keys.filter((key) => own.has(key.purchaseId) && isOne(key))
    return found.length === 0 ? [] : [{ line: line.line, keys: found }]
  })

/** An order in a list, with the facts that people want before they open the order. */
export interface ListedOrder extends StoreOrder {
  state: OrderState
  lines: ListedLine[]
  /** What all purchases of the order cost, without what came back or is owed back, in minor units; null before it is known. */
  costMinor: number | null
  /** The currency of the supplier; null without a purchase. */
  currency: string | null
  /** When the store last confirmed a key of the order. */
  lastKeyAt: number | null
}

export interface ListedLine extends LineProgress {
  name: string | null
  /** What the customer paid for one unit; null where the store does not say. */
  unitPriceMinor: number | null
  /** The currency of the unit price. */
  currency: string | null
  /** What the line waits for: an operator's decision, or the end of a hold. */
  waitsFor: HoldReason | 'review' | null
  /** The purchases of the line: those that were bought, and those that are to be bought. */
  purchases: Purchase[]
  /** What these purchases cost, as for the order. */
  costMinor: number | null
  /** When the store last confirmed a key of the line. */
  lastKeyAt: number | null
}

export interface AskedOrders extends Omit<OrderFilter, 'sku'> {
  /** As it was reported to the store; an order is `open` until then. */
  state?: OrderState | undefined
  /** What names an order; a text that names none is taken for a SKU. */
  search?: string | undefined
}

/** Returns the statement that lists the orders which are asked for, newest first; or the few orders that the search names. */
export async function askOrders(db: Database, { state, search, ...filter }: AskedOrders): Promise<Found<StoreOrder>> {
  const named = search === undefined ? [] : await db.query(storeOrdersNamed(search))
  if (named.length > 0) return ordersIn(named, { ...filter, state })
  if (state === 'open') return listOpenOrders({ ...filter, sku: search })
  if (state !== undefined && state !== 'fulfilled') return listUnfulfilledOrders(state, { ...filter, sku: search })
  return search === undefined
    ? listStoreOrders({ ...filter, closedState: state })
    : ordersOfSku(search, { ...filter, closedState: state })
}

/** Keeps the orders that a filter lets through. */
function ordersIn(
  orders: StoreOrder[],
  { store, state, before, after, from }: Omit<AskedOrders, 'search'>,
): StoreOrder[] {
  const kept = orders.filter(
    (order) =>
      (store === undefined || order.store === store) &&
      (state === undefined || (order.closedState ?? 'open') === state) &&
      (before === undefined || order.id < before) &&
      (after === undefined || order.id > after) &&
      (from === undefined || order.id >= from),
  )
  return after === undefined ? kept : kept.reverse()
}

/** Derives the states of a page of orders and of their lines. This takes four reads, however many orders the page has. */
export async function statesOfOrders(db: Database, orders: StoreOrder[]): Promise<ListedOrder[]> {
  const ids = orders.map((order) => order.id)
  if (ids.length === 0) return []
  const [lines, parts, confirmed] = await Promise.all([
    db.query(linesOfOrders(ids)),
    db.query(purchasesOfOrders(ids)),
    db.query(countHandedOver(ids)),
  ])
  const products = [...new Set(lines.flatMap(({ productId }) => (productId === null ? [] : [productId])))]
  const offers = products.length > 0 ? await db.query(offersByProduct(products)) : []
  const names = new Map(offers.map(({ productId, name }) => [productId, name]))
  const keys = new Map(confirmed.map((one) => [one.purchaseId, one]))
  const partsOf = Map.groupBy(parts, (part) => part.lineId)
  const linesOf = Map.groupBy(lines, (line) => line.orderId)
  return orders.map((order) => {
    const facts = (linesOf.get(order.id) ?? []).map((line) => {
      const own = (partsOf.get(line.id) ?? []).map((part) => ({ ...part, handedOver: keys.get(part.id)?.total ?? 0 }))
      const { line: id, sku, quantity, productId, unitPriceMinor, currency } = line
      return {
        id,
        sku,
        name: productId === null ? null : (names.get(productId) ?? null),
        quantity,
        unitPriceMinor,
        currency,
        state: lineState(own),
        delivered: delivered(own),
        waitsFor: waitsFor(own),
        purchases: own,
        costMinor: own.some(({ amountMinor }) => amountMinor !== null) ? chargesOf(own).costMinor : null,
        lastKeyAt: newestOf(own.map(({ id }) => keys.get(id)?.lastAt ?? null)),
      }
    })
    return {
      ...order,
      state: orderState(facts),
      lines: facts,
      costMinor: sumOf(facts.map(({ costMinor }) => costMinor)),
      currency: facts.flatMap(({ purchases }) => purchases)[0]?.currency ?? null,
      lastKeyAt: newestOf(facts.map(({ lastKeyAt }) => lastKeyAt)),
    }
  })
}

/** Adds up the amounts that are known; null where no amount is known. */
function sumOf(amounts: (number | null)[]): number | null {
  const known = amounts.filter((amount) => amount !== null)
  return known.length === 0 ? null : known.reduce((sum, amount) => sum + amount, 0)
}

function newestOf(instants: (number | null)[]): number | null {
  const known = instants.filter((instant) => instant !== null)
  return known.length === 0 ? null : Math.max(...known)
}

/** Says what a line waits for. A review comes before a hold, because only a decision moves a purchase in review. */
function waitsFor(purchases: Purchase[]): ListedLine['waitsFor'] {
  const current = currentParts(purchases)
  if (current.some(({ state }) => state === 'review')) return 'review'
  return current.find(isHeld)?.holdReason ?? null
}

/** Says whether a purchase is held. Once the supplier has its order, only the state of the store order can hold it. */
export const isHeld = ({ state, holdReason }: Pick<Purchase, 'state' | 'holdReason'>): boolean =>
  holdReason !== null && (state === 'planned' || state === 'waiting' || isStandingHold(holdReason))

/** The order line that a purchase is for, as a list shows it. */
export interface PurchaseSubject {
  order: { store: string; reference: string; line: string }
  sku: string
  name: string | null
  /** What one unit costs now; null when the offer is unknown, has a cost fault, or is not in the currency of the purchase. */
  costMinor: number | null
}

/** Returns the subjects of a page of purchases, by the ids of the purchases. */
export async function subjectsOf(db: Database, purchases: Purchase[]): Promise<Map<string, PurchaseSubject>> {
  if (purchases.length === 0) return new Map()
  const [names, offers] = await Promise.all([
    db.query(namesOfLines([...new Set(purchases.map(({ lineId }) => lineId))])),
    db.query(offersByProduct([...new Set(purchases.map(({ supplierProductId }) => supplierProductId))])),
  ])
  return new Map(
    purchases.map(({ id, lineId, supplierProductId, currency }) => {
      const line = names.find((one) => one.lineId === lineId)
      assert(line, 'a purchase has its line and its order')
      const offer = offers.find(({ productId }) => productId === supplierProductId)
      const costMinor = offer?.currency === currency && offer.costFault === null ? offer.costMinor : null
      const { lineId: _id, sku, ...order } = line
      return [id, { order, sku, name: offer?.name ?? null, costMinor }]
    }),
  )
}

/** @param show `keys`: open the licence keys that were handed over @throws Failure `not_found` */
export async function viewOrder(
  ordering: Pick<Ordering, 'db' | 'vault'> & Parameters<typeof pageFor>[0],
  orderId: string,
  show: { keys: boolean },
): Promise<OrderView> {
  const { db } = ordering
  const standing = await orderStanding(ordering, orderId)
  const purchases = standing.lines.flatMap((line) => line.purchases)
  const ids = purchases.map(({ id }) => id)
  const products = standing.lines.map(({ line }) => line.productId).filter((id) => id !== null)
  const [{ keysPage, openings }, effects, attempts, transitions, offers] = await Promise.all([
    keysPageOf(db, orderId),
    db.query(outboxOfOrder(orderId)),
    ids.length > 0 ? db.query(attemptsOf(ids)) : [],
    ids.length > 0 ? db.query(transitionsOf(ids)) : [],
    products.length > 0 ? db.query(offersByProduct(products)) : [],
  ])
  const outages = await outagesDuring(ordering, purchases, transitions)
  const { order, keys, state } = standing
  const page = show.keys ? await pageFor(ordering, orderId, keys) : undefined
  const openKeys = (purchases: Purchase[]) => {
    // A key is not shown before its hand-over has begun, because a cancellation can still keep the key from the store.
    const shown = purchases.flatMap((one) => keys.filter((key) => key.purchaseId === one.id && hasLeft(key)))
    return shown.map((key) => shownKey(ordering, key, page))
  }
  const timeline: Entry[] = [
    takenEntry(order, standing.lines.length),
    ...purchaseEntries(
      attempts.filter((one) => one.kind === 'place'),
      transitions.filter((one) => one.row !== 'none' && one.row !== 'released'),
    ),
    ...effects.filter((one) => one.kind === 'callback').map(updateEntry),
    ...clicksOf(openings).map(({ purchaseId: id, at, network }) => {
      return { id, at, what: 'customer opened keys', detail: `from the network ${network}` }
    }),
    ...outages.flatMap((outage) => outageEntries(outage, order)),
    // Ids sort by the time at which they were made. So entries of one millisecond are in the order in which they happened.
  ].sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
  const lines = lineViews(standing, { offers, openings }, show.keys ? openKeys : undefined)
  return { ...order, state, lines, keysPage, timeline: folded(timeline) }
}

/** Returns the view of an order that was taken just now: it has no key, and no history of its own. */
export async function viewTaken(
  { db, newPage }: Pick<Ordering, 'db' | 'newPage'>,
  { order, offers, ...rows }: NewOrder,
  show: { keys: boolean },
): Promise<OrderView> {
  const outages = await db.query(openOutage())
  const standing = standingBy({ ...rows, keys: [] })
  const timeline = [takenEntry(order, rows.lines.length), ...outages.flatMap((outage) => outageEntries(outage, order))]
  const lines = lineViews(standing, { offers, openings: [] }, show.keys ? () => [] : undefined)
  const keysPage = newPage ? { madeAt: order.receivedAt, withdrawnAt: null } : undefined
  return { ...order, state: standing.state, lines, keysPage, timeline }
}

const takenEntry = ({ id, receivedAt }: StoreOrder, lines: number): Entry => ({
  id,
  at: receivedAt,
  what: 'order taken',
  detail: counted(lines, 'line'),
})

/** @param keysOf opens the keys of purchases; undefined when keys are not shown */
const lineViews = (
  { lines }: OrderStanding,
  { offers, openings }: { offers: readonly Offer[]; openings: readonly Opening[] },
  keysOf: ((purchases: Purchase[]) => ShownKey[]) | undefined,
): LineView[] =>
  lines.map(({ line, purchases, state, delivered }) => ({
    id: line.line,
    sku: line.sku,
    name: offers.find((offer) => offer.productId === line.productId)?.name ?? null,
    quantity: line.quantity,
    state,
    delivered,
    purchases,
    ...(keysOf && keysIn(keysOf(purchases))),
    keysOpened: openings.filter(({ purchaseId }) => purchases.some(({ id }) => id === purchaseId)),
  }))

type ShownKey = ReturnType<typeof shownKey>
/** Returns keys as texts, and with their types where one is no plain text. */
const keysIn = (keys: ShownKey[]) => ({
  keys: keys.map(({ text }) => text),
  ...(keys.some(({ type }) => type !== 'text') && { typedKeys: keys }),
})

const handedOver = (keys: LicenceKey[], purchaseId: string): LicenceKey[] =>
  keys.filter((key) => key.purchaseId === purchaseId && key.handedOverAt !== null)

/**
 * Makes the entries of purchases. A request that left has two entries: one for its sending, and one for the purchase's move.
 * A request that never left has one entry, because a purchase that waits for its next try is no news.
 */
function purchaseEntries(attempts: Attempt[], transitions: TransitionRow[]): Entry[] {
  const answers = attempts.filter(({ stage }) => stage === 'answered')
  const unsent = answers.filter(neverLeft)
  const requests = attempts.flatMap((one) => {
    const own = one.stage === 'sent' ? answers.find((answer) => isSameTry(answer, one)) : one
    if (one.stage === 'sent') return own && neverLeft(own) ? [] : [{ ...one, word: own ? 'sent' : 'sending' }]
    if (neverLeft(one)) return [{ ...one, word: 'not sent' }]
    if (transitions.some((moved) => followed(one, moved))) return []
    return [{ ...one, word: one.status === null ? 'unanswered' : 'answered' }]
  })
  const moves = transitions
    // The entry of the attempt already says that the request was sent, or that it never left.
    .filter((one) => one.after !== 'sending' && !unsent.some((attempt) => followed(attempt, one)))
    .map((one) => ({ ...one, word: one.after, detail: one.detail ?? one.row }))
  return [...requests, ...moves].map(({ id, at, word, detail }) => ({ id, at, what: `purchase ${word}`, detail }))
}

const isSameTry = (one: Attempt, other: Attempt): boolean =>
  one.purchaseId === other.purchaseId && one.number === other.number

/** Says whether a request never left. A request without an answer may have left, unless it was not executed. */
const neverLeft = (answer: Attempt): boolean => answer.status === null && answer.class === 'not_executed'

/** An answer and the move that it causes are written within this time, with the same words. A further try comes later. */
const AT_ONCE_MS = 1_000

const followed = (answer: Attempt, moved: TransitionRow): boolean =>
  moved.input === 'answer' &&
  moved.purchaseId === answer.purchaseId &&
  moved.detail === answer.detail &&
  Math.abs(moved.at - answer.at) < AT_ONCE_MS

/** Joins equal consecutive tries that never left into one entry, with their count and the time of the last try. */
function folded(timeline: Entry[]): Entry[] {
  const runs: Entry[][] = []
  for (const entry of timeline) {
    // The entry of an outage does not end a run of tries, because the outage begins during the run.
    const run = runs.findLast(([one]) => one?.what !== AWAY)
    const first = run?.[0]
    if (first?.what === NOT_SENT && entry.what === NOT_SENT && first.detail === entry.detail) run?.push(entry)
    else runs.push([entry])
  }
  return runs.flatMap((run) => {
    const [first, last] = [run[0], run.at(-1)]
    if (!first || !last || first === last) return run
    const [from, until] = [first, last].map(({ at }) => new Date(at).toISOString().slice(0, 19).replace('T', ' '))
    const time = from?.slice(0, 10) === until?.slice(0, 10) ? until?.slice(11) : until
    return [{ ...first, detail: `${run.length} tries until ${time}: ${first.detail}` }]
  })
}

const NOT_SENT = 'purchase not sent'
const AWAY = 'supplier away'

/** Returns the entries of an outage: when it began while the order waited, and when it ended. */
function outageEntries({ id, beganAt, endedAt, error }: Outage, order: StoreOrder): Entry[] {
  const what = AWAY
  const began =
    beganAt >= order.receivedAt
      ? { id, at: beganAt, what, detail: error }
      : // This id sorts right after the id of the order.
        { id: `${order.id}~`, at: order.receivedAt, what, detail: `since ${new Date(beganAt).toISOString()}: ${error}` }
  if (endedAt === null) return [began]
  const after = `after ${duration(endedAt - beganAt)}`
  return [began, { id, at: endedAt, what: 'supplier answers again', detail: after }]
}

function updateEntry({ id, type, state, attempts, createdAt, doneAt, lastError }: OutboxRow): Entry {
  // An update that its store had no need of any more has no attempts.
  const done = attempts === 0 ? 'left out' : 'confirmed by the store'
  if (doneAt !== null) return { id, at: doneAt, what: `${type} ${done}`, detail: null }
  const what = `${type} ${state === 'dead' ? 'not delivered' : 'queued'}`
  return { id, at: createdAt, what, detail: lastError ?? 'waits to be sent' }
}
