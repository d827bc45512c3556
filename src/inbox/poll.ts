/**
 * Polling: shops are asked for the orders that changed, because no shop repeats a delivery that was lost. What is read is taken
 * as a delivery is; an order that comes both ways is taken once.
 *
 * An order that the shop does not give with the others of its page is late: the others go on, and it is read again by itself
 * until the shop gives it.
 */
import type { Context } from '../context.ts'
import { codeOf, messageOf } from '../errors.ts'
import { need } from '../storage/database.ts'
import { enqueueAlert, hastenFailed, renewStoreUpdates } from '../storage/outbox.ts'
import {
  dropLateOrder,
  hastenLateOrders,
  insertLateOrder,
  type LateOrder,
  lateOrdersOf,
  postponeLateOrder,
  putStoreReading,
  type StoreReading,
  storeReadingOf,
  storesToPoll,
} from '../storage/store-readings.ts'
import type { NotConfirmed, Store, StoreOrderRead } from '../stores/store.ts'
import type { StoreOrderTaken, TakeOrder } from './supplier-events.ts'

export interface PolledStore {
  id: string
  ordersSince: NonNullable<Store['ordersSince']>
  /** Reads one order; a store without it gives all orders of a page or none. */
  order?: Store['order']
  /** A push to the store that has begun acts within this time, or never will. */
  actsMs: number
  /** Called before the shop is asked: what it returns takes an order that was read after that. */
  asking: () => Promise<TakeOrder>
}

type Polling = Pick<Context, 'db' | 'now' | 'newId' | 'log'>

/** The first reading begins so long before the connection: orders that a lost database has left unbought are seen then. */
const EARLIER_MS = 7 * 24 * 60 * 60_000
/** Between two readings of a shop whose orders are all read. */
const POLL_MS = 60_000
/** Longest wait for a shop that gives no orders. */
const WAIT_MAX_MS = 5 * 60_000
/** A shop that gives no orders for so long is a matter for a person: nothing that its customers pay for is bought. */
const ALERT_MS = 15 * 60_000
/** Longest wait before a late order is read again. */
const LATE_WAIT_MAX_MS = 15 * 60_000
/** Tries after which people are alerted of a late order: some four minutes. */
const LATE_ALERT_TRIES = 3
/** With more late orders than that the shop counts as one that gives none: its next page waits. */
const LATE_MAX = 500
/** After a shop was away for so long, what waits for it is tried soon: its next turn may lie hours ahead. */
const AWAY_MS = 5 * 60_000

/** The stores for which `pollOrders` has something to do. */
export const storesDue = (now: number) => storesToPoll(now, now + WAIT_MAX_MS, now + LATE_WAIT_MAX_MS)

/**
 * Reads the next page of the orders of a shop that changed, if that is due, else a late order that is.
 *
 * @returns 1 when it read one, else 0
 */
export async function pollOrders(polling: Polling, store: PolledStore): Promise<number> {
  const { db, now } = polling
  const reading = await need(db, storeReadingOf(store.id), 'store', store.id)
  const wait = reading.ordersDueAt - now()
  // A longer one was set by a clock that has gone back since.
  if (wait > 0 && wait <= WAIT_MAX_MS) return reading.failingSince === null ? readLateOrder(polling, store) : 0
  const take = await store.asking()
  const page = await store.ordersSince(reading.ordersCursor ?? reading.connectedAt - EARLIER_MS)
  if (page.outcome !== 'read') {
    await noteFailure(polling, reading, page)
    return 0
  }
  const late = new Set((await db.query(lateOrdersOf(store.id))).map(({ reference }) => reference))
  const unread = [...page.unread]
  try {
    for (const order of page.orders) {
      const taken = await takeOne(polling, store, order, take)
      if (taken.outcome === 'unfinished') unread.push({ reference: order.reference, detail: taken.detail })
      else if (late.has(order.reference)) await db.commit([dropLateOrder(store.id, order.reference)])
    }
  } catch (error) {
    if (codeOf(error) !== 'unavailable') throw error
    await noteFailure(polling, reading, { outcome: 'unavailable', mayHaveLeft: false, detail: messageOf(error) })
    return 0
  }
  const news = unread.filter(({ reference }) => !late.has(reference))
  if (news.length > 0 && late.size + news.length > LATE_MAX) {
    const detail = `${late.size + news.length} of its orders cannot be read: ${news[0]?.detail}`
    await noteFailure(polling, reading, { outcome: 'unavailable', mayHaveLeft: false, detail })
    return 0
  }
  const at = now()
  const { failingSince } = reading
  const ended = failingSince === null ? {} : { failingSince: null, attempts: 0, lastError: null }
  const wasAway = failingSince !== null && at - failingSince >= AWAY_MS
  // A shop that gives a list and none of its orders is not asked for the next page at once.
  const isNextDue = page.more && (page.orders.length > 0 || news.length === 0)
  const next = { ordersCursor: page.cursor, ordersReadAt: at, ordersDueAt: isNextDue ? at : at + POLL_MS }
  await db.commit([
    putStoreReading(store.id, { ...next, ...ended }),
    ...(wasAway
      ? [renewStoreUpdates(store.id, at + store.actsMs), hastenLateOrders(store.id, at)]
      : [hastenFailed(store.id, at)]),
    ...news.map(({ reference, detail }) =>
      insertLateOrder({ store: store.id, reference, attempts: 1, notBefore: at + POLL_MS, lastError: detail }),
    ),
  ])
  for (const { reference, detail } of news) {
    polling.log.warn('order.late', { store: store.id, reference, attempts: 1, detail })
  }
  if (failingSince !== null) polling.log.info('orders.read_again', { store: store.id })
  return 1
}

/**
 * An order that cannot be taken must not keep the others back: a person is alerted, and it is taken when the shop shows another
 * change of it. Where the database fails, the page is read again.
 */
async function takeOne(
  polling: Polling,
  store: PolledStore,
  order: StoreOrderRead,
  take: TakeOrder,
): Promise<StoreOrderTaken> {
  const { db, log } = polling
  const { reference } = order
  try {
    return await take(order)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'unavailable' || code === 'unknown_outcome') throw error
    const why = messageOf(error)
    log.error('order.not_taken', { store: store.id, reference, error: why })
    const note = `the order ${reference} of ${store.id} cannot be taken: ${why}; save it in the shop once the cause is gone`
    const payload = { note, store: store.id, reference }
    await db.commit([
      enqueueAlert(polling, { type: 'order_refused', occasion: `${store.id}:${reference}:${why}`, payload }),
    ])
    return { outcome: 'ignored', detail: why }
  }
}

/** Reads a late order again, if one is due. @returns 1 when it read one, else 0 */
async function readLateOrder(polling: Polling, store: PolledStore): Promise<number> {
  const { db, now, log } = polling
  const readAt = now()
  const late = (await db.query(lateOrdersOf(store.id))).find(
    ({ notBefore }) => notBefore <= readAt || notBefore > readAt + LATE_WAIT_MAX_MS,
  )
  if (!late || !store.order) return 0
  const { reference } = late
  const take = await store.asking()
  const read = await store.order(reference)
  const result = read.outcome === 'order' ? await takeLate(polling, store, read.order, take) : read
  if (result.outcome === 'taken' || result.outcome === 'ignored') {
    await db.commit([dropLateOrder(store.id, reference)])
    log.info('order.read_late', { store: store.id, reference, attempts: late.attempts + 1 })
  } else {
    await postpone(polling, late, result.detail)
  }
  return 1
}

async function takeLate(polling: Polling, store: PolledStore, order: StoreOrderRead, take: TakeOrder) {
  try {
    return await takeOne(polling, store, order, take)
  } catch (error) {
    if (codeOf(error) !== 'unavailable') throw error
    return { outcome: 'unavailable' as const, detail: messageOf(error) }
  }
}

async function postpone(polling: Polling, late: LateOrder, detail: string): Promise<void> {
  const { db, now, log } = polling
  const { store, reference } = late
  const attempts = late.attempts + 1
  const wait = Math.min(POLL_MS * 2 ** (attempts - 1), LATE_WAIT_MAX_MS)
  const note = `the order ${reference} of ${store} cannot be read, and what its customer paid for may not be bought: ${detail}`
  const payload = { note, store, reference }
  const alert = enqueueAlert(polling, { type: 'order_unread', occasion: `${store}:${reference}:${detail}`, payload })
  await db.commit([
    postponeLateOrder({ ...late, attempts, notBefore: now() + wait, lastError: detail }),
    ...(attempts >= LATE_ALERT_TRIES ? [alert] : []),
  ])
  log.warn('order.late', { store, reference, attempts, detail })
}

async function noteFailure(polling: Polling, reading: StoreReading, { outcome, detail }: NotConfirmed): Promise<void> {
  const { db, now, log } = polling
  const { store } = reading
  const at = now()
  const failingSince = reading.failingSince ?? at
  const attempts = reading.attempts + 1
  const wait = Math.min(POLL_MS * 2 ** (attempts - 1), WAIT_MAX_MS)
  const note = `${store} has given no orders since ${new Date(failingSince).toISOString()}: ${detail}`
  const alert = enqueueAlert(polling, {
    type: 'store_unreachable',
    occasion: `${store}:${failingSince}`,
    payload: { note, store },
  })
  await db.commit([
    putStoreReading(store, { failingSince, attempts, lastError: detail, ordersDueAt: at + wait }),
    ...(at - failingSince >= ALERT_MS ? [alert] : []),
  ])
  log.warn('orders.unread', { store, outcome, attempts, detail })
}
