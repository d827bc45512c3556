import type { Context } from '../context.ts'
import { type Dialect, type EventName, eventNames, valueAt } from '../dialect/dialect.ts'
import type { Change } from '../storage/database.ts'
import type { Delivery } from '../storage/deliveries.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import { hintPurchase, type Purchase, purchasesNamed } from '../storage/purchases.ts'
import type { StoreOrderRead } from '../stores/store.ts'
import { readJson, textAt } from '../supplier/records.ts'

/** The part of a delivery that is believed: the event, and the ids of the order or product that it is about. */
export type DeliveryReading =
  | { kind: 'order'; event: EventName; supplierOrderId: string | undefined; externalOrderId: string | undefined }
  | { kind: 'product'; event: EventName; productId: string }
  | { kind: 'balance'; event: EventName }
  /** An event of a product, without the id of the product. */
  | { kind: 'nameless'; event: EventName }
  /** An order of a store. `take` reads the order from the store and takes it. */
  | { kind: 'store_order'; event: string; take: () => Promise<StoreOrderTaken> }
  | { kind: 'unknown_event' }
  | { kind: 'unreadable'; why: string }

/** `unfinished`: the readings of the order do not agree yet, so the order must be read again. */
export type StoreOrderTaken =
  | { outcome: 'taken' }
  | { outcome: 'ignored' | 'unreadable' | 'unfinished'; detail: string }

export type TakeOrder = (order: StoreOrderRead) => Promise<StoreOrderTaken>

/** The next state of a delivery, and the changes that are committed together with it. */
export interface DeliveryVerdict {
  set: Partial<Delivery> & Pick<Delivery, 'state'>
  changes: Change[]
}

export type HandlerDeps = Pick<Context, 'db' | 'now' | 'newId'>

/**
 * Reads the event and the ids from the body of an authentic delivery, and nothing else. A status, an amount or a key in the
 * body is ignored, because a GET request to the supplier decides.
 *
 * @param named the value of the header that names the event, where the dialect has one
 */
export function readDelivery(body: Buffer, { event: paths }: Dialect, named?: string | null): DeliveryReading {
  const json = readJson(body)
  if (json === undefined) return { kind: 'unreadable', why: 'the body is not JSON' }
  const name = paths.header === undefined ? textAt(json, paths.name) : named
  if (!name) return { kind: 'unreadable', why: `no event at ${paths.header ?? paths.name}` }
  const event = eventNames.find((known) => paths.names[known] === name)
  if (event === undefined) return { kind: 'unknown_event' }
  if (event === 'balance.low') return { kind: 'balance', event }

  const read = (event.startsWith('order.') ? [paths.orderId, paths.externalOrderId] : [paths.productId]).filter(
    (path) => path !== null,
  )
  const fault = read.find((path) => isPresent(json, path) && textAt(json, path) === undefined)
  if (fault !== undefined) return { kind: 'unreadable', why: `no id at ${fault}` }
  if (event.startsWith('order.')) {
    const supplierOrderId = textAt(json, paths.orderId)
    const externalOrderId = textAt(json, paths.externalOrderId)
    if (supplierOrderId === undefined && externalOrderId === undefined) {
      return { kind: 'unreadable', why: `no id at ${read.join(' nor at ')}` }
    }
    return { kind: 'order', event, supplierOrderId, externalOrderId }
  }
  // The dialect says that these events do not name their product: the next sync run reads what changed.
  if (paths.productId === null) return { kind: 'nameless', event }
  const productId = textAt(json, paths.productId)
  return productId === undefined
    ? { kind: 'unreadable', why: `no id at ${paths.productId}` }
    : { kind: 'product', event, productId }
}

const isPresent = (json: unknown, path: string): boolean => (valueAt(json, path) ?? null) !== null

/**
 * Joins an order event to our purchase and asks for a read of the purchase.
 *
 * The ids are first matched with our own rows. A delivery whose ids belong to different purchases changes no purchase, because
 * an order of another line must not bring its keys to this line.
 */
export async function joinOrder(
  { db, newId, now }: HandlerDeps,
  row: Delivery,
  { event, supplierOrderId, externalOrderId }: Extract<DeliveryReading, { kind: 'order' }>,
): Promise<DeliveryVerdict> {
  const [found, other] = await db.query(purchasesNamed(supplierOrderId ?? '', externalOrderId ?? ''))
  const read = { event, supplierOrderId: supplierOrderId ?? null, externalOrderId: externalOrderId ?? null }
  if (!found) return orphan(row, { newId, now }, read, 'no purchase of ours has this order id or reference')

  const agrees = (purchase: Purchase): boolean =>
    (externalOrderId === undefined || purchase.externalOrderId === externalOrderId) &&
    (supplierOrderId === undefined || (purchase.supplierOrderId ?? supplierOrderId) === supplierOrderId)
  if (other || !agrees(found)) {
    const verdict = orphan(row, { newId, now }, read, 'order id and reference do not belong to one purchase')
    const note = `a delivery names this purchase and another order or reference: ${supplierOrderId ?? 'no order id'}`
    const payload = { note, purchaseId: found.id, delivery: row.id }
    const mismatch = enqueueAlert({ newId, now }, { type: 'order_mismatch', occasion: found.id, payload })
    return { ...verdict, changes: [...verdict.changes, mismatch] }
  }
  return {
    set: { ...read, state: 'applied', purchaseId: found.id, finishedAt: now(), lastError: null },
    changes: [hintPurchase(found.id, now())],
  }
}

/** An event may come before its order is stored, or after a restore has lost the order. An orphan of a day was never ours. */
const ORPHAN_MAX_MS = 24 * 60 * 60_000

/** People are alerted of a delivery that is an orphan for this long. A delivery that only came too early is joined earlier. */
const ORPHAN_ALERT_MS = 15 * 60_000

function orphan(
  row: Delivery,
  { newId, now }: Pick<HandlerDeps, 'newId' | 'now'>,
  read: Partial<Delivery>,
  lastError: string,
): DeliveryVerdict {
  const at = now()
  const ageMs = at - row.receivedAt
  if (ageMs >= ORPHAN_MAX_MS) return { set: { ...read, state: 'ignored', finishedAt: at, lastError }, changes: [] }
  const note = 'the supplier announced an order that no purchase of ours knows'
  const payload = { note, source: row.source, delivery: row.id }
  // The occasion names the hour of receipt, so that an orphan causes one alert, and not one for each hour that it waits.
  const occasion = hourly(row.source, row.receivedAt)
  const late = enqueueAlert({ newId, now }, { type: 'orphan_delivery', occasion, payload })
  return {
    set: { ...read, state: 'orphan', notBefore: at + orphanDelayMs(ageMs), lastError },
    changes: ageMs >= ORPHAN_ALERT_MS ? [late] : [],
  }
}

/** An orphan waits for half its age: 5 s at first, 15 minutes from half an hour on. These are some 110 tries in a day. */
const orphanDelayMs = (ageMs: number): number => Math.min(Math.max(ageMs / 2, 5_000), 15 * 60_000)

/** Returns the verdict after the supplier was read. Of what the delivery says, only the event is kept. */
export const applied = ({ now }: Pick<HandlerDeps, 'now'>, event: string): DeliveryVerdict => ({
  set: { event, state: 'applied', finishedAt: now(), lastError: null },
  changes: [],
})

/** Returns the verdict on a low balance after the balance was read and recorded. Adds an alert, since only people can pay. */
export function balanceLow({ newId, now }: HandlerDeps, row: Delivery, event: EventName): DeliveryVerdict {
  const note = 'the supplier says that the balance is low'
  const payload = { note, delivery: row.id }
  const low = enqueueAlert({ newId, now }, { type: 'balance_low', occasion: hourly(row.source, now()), payload })
  return { ...applied({ now }, event), changes: [low] }
}

/** Returns the occasion of an alert that comes at most once an hour for one source. */
export const hourly = (source: string, at: number): string => `${source}:${Math.floor(at / 3_600_000)}`
