/**
 * Polling asks shops for the orders that changed, because no shop repeats a delivery that was lost. An order that polling reads
 * is taken in like an order that a delivery names. An order that comes both ways is taken in once.
 *
 * An order that the shop lists but does not give is late. The other orders of the page go on. The late order is read again by
 * itself until the shop gives it.
 */
import type { Context } from '../context.ts'
import { codeOf, messageOf } from '../errors.ts'
import { need } from '../storage/database.ts'
import { enqueueAlert, hastenFailed, renewStoreUpdates } from '../storage/outbox.ts'
import { endPause } from '../storage/publications.ts'
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
} from '../storage/stores.ts'
import { isAway, type NotConfirmed, type Store, type StoreOrderRead } from '../stores/store.ts'
import type { StoreOrderTaken, TakeOrder } from './sources.ts'

export interface PolledStore {
  id: string
  ordersSince: NonNullable<Store['ordersSince']>
  /** Reads one order; a store without this function gives all orders of a page or none. */
  order?: Store['order']
  /** A push to the store that has begun takes effect within this time or never. */
  actsMs: number
  /** Called before the shop is asked. The returned function takes in an order that was read after this call. */
  asking: () => Promise<TakeOrder>
}

type Polling = Pick<Context, 'db' | 'now' | 'newId' | 'log'>

/** The first reading begins this long before the connection, so that it finds orders that a lost database has left unbought. */
const EARLIER_MS = 7 * 24 * 60 * 60_000
/** The time between two readings of a shop whose orders are all read. */
const POLL_MS = 60_000
/** The longest wait before a shop that refuses its orders is asked again. A shop that is away is asked each minute. */
const WAIT_MAX_MS = 5 * 60_000
/** People are alerted of a shop that gives no orders for this long: nothing that its customers pay for is bought. */
const ALERT_MS = 15 * 60_000
/** The longest wait before a late order is read again. */
const LATE_WAIT_MAX_MS = 15 * 60_000
/** After this number of tries, some four minutes, people are alerted of a late order. */
const LATE_ALERT_TRIES = 3
/** A shop with more late orders than this counts as a shop that gives no orders: its next page waits. */
const LATE_MAX = 500
/** After a shop was away for this long, messages to the shop are tried soon. Otherwise their next try may be hours ahead. */
const AWAY_MS = 5 * 60_000

export const storesDue = (now: number) => storesToPoll(now, now + WAIT_MAX_MS, now + LATE_WAIT_MAX_MS)

/**
 * Reads the next page of changed orders of a shop, if a page is due. Otherwise reads a late order that is due.
 *
 * @returns 1 when a page or a late order was read, else 0
 */
export async function pollOrders(polling: Polling, store: PolledStore): Promise<number> {
  const { db, now } = polling
  const reading = await need(db, storeReadingOf(store.id), 'store', store.id)
  const wait = reading.ordersDueAt - now()
  // A wait of more than `WAIT_MAX_MS` was set before the clock was put back, and does not count.
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
    await noteFailure(polling, reading, away(error))
    return 0
  }
  const news = unread.filter(({ reference }) => !late.has(reference))
  if (news.length > 0 && late.size + news.length > LATE_MAX) {
    const detail = `${late.size + news.length} of its orders cannot be read: ${news[0]?.detail}`
    await noteFailure(polling, reading, { outcome: 'refused', status: 200, detail })
    return 0
  }
  const at = now()
  const { failingSince } = reading
  const ended = failingSince === null ? {} : { failingSince: null, attempts: 0, lastError: null }
  const wasAway = failingSince !== null && at - failingSince >= AWAY_MS
  // A shop that lists orders but gives no order of the list is not asked for the next page at once.
  const isNextDue = page.more && (page.orders.length > 0 || news.length === 0)
  const next = { ordersCursor: page.cursor, ordersReadAt: at, ordersDueAt: isNextDue ? at : at + POLL_MS }
  await db.commit([
    putStoreReading(store.id, { ...next, ...ended }),
    ...(wasAway
      ? [renewStoreUpdates(store.id, at + store.actsMs), hastenLateOrders(store.id, at)]
      : [hastenFailed(store.id, at)]),
    ...(failingSince === null ? [] : [endPause(store.id, at)]),
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
 * Takes an order. An order that cannot be taken must not keep the other orders back: people are alerted, and the order is taken
 * when the shop shows another change of it. Where the database fails, the page is read again.
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

/** Reads a late order again, if a late order is due. @returns 1 when it read an order, else 0 */
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
  const result = read.outcome === 'order' ? await takeOne(polling, store, read.order, take).catch(away) : read
  if (result.outcome === 'taken' || result.outcome === 'ignored') {
    await db.commit([dropLateOrder(store.id, reference)])
    log.info('order.read_late', { store: store.id, reference, attempts: late.attempts + 1 })
  } else {
    await postpone(polling, late, result.detail)
  }
  return 1
}

function away(error: unknown) {
  if (codeOf(error) !== 'unavailable') throw error
  return { outcome: 'unavailable' as const, mayHaveLeft: false, detail: messageOf(error) }
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

async function noteFailure(polling: Polling, reading: StoreReading, failure: NotConfirmed): Promise<void> {
  const { db, now, log } = polling
  const { store } = reading
  const at = now()
  const failingSince = reading.failingSince ?? at
  const attempts = reading.attempts + 1
  const wait = isAway(failure) ? POLL_MS : Math.min(POLL_MS * 2 ** (attempts - 1), WAIT_MAX_MS)
  const note = `${store} has given no orders since ${new Date(failingSince).toISOString()}: ${failure.detail}`
  const alert = enqueueAlert(polling, {
    type: 'store_unreachable',
    occasion: `${store}:${failingSince}`,
    payload: { note, store },
  })
  await db.commit([
    putStoreReading(store, { failingSince, attempts, lastError: failure.detail, ordersDueAt: at + wait }),
    ...(at - failingSince >= ALERT_MS ? [alert] : []),
  ])
  log.warn('orders.unread', { store, outcome: failure.outcome, attempts, detail: failure.detail })
}
