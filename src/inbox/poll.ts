/**
 * Polling: shops are asked for the orders that changed, because no shop repeats a delivery that was lost. What is read is taken
 * as a delivery is; an order that comes both ways is taken once.
 */
import type { Context } from '../context.ts'
import { codeOf, messageOf } from '../errors.ts'
import { need } from '../storage/database.ts'
import { enqueueAlert, renewStoreUpdates } from '../storage/outbox.ts'
import { putStoreReading, type StoreReading, storeReadingOf } from '../storage/store-readings.ts'
import type { NotConfirmed, Store, StoreOrderRead } from '../stores/store.ts'
import type { StoreOrderTaken } from './supplier-events.ts'

export interface PolledStore {
  id: string
  ordersSince: NonNullable<Store['ordersSince']>
  /** A write to the store acts within this time, or never will. */
  settleMs: number
  take: (order: StoreOrderRead, readAt: number) => Promise<StoreOrderTaken>
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
/** After a shop was away for so long, what waits for it is tried soon: its next turn may lie hours ahead. */
const AWAY_MS = 5 * 60_000

/**
 * Reads the next page of the orders of a shop that changed, if that is due.
 *
 * @returns 1 when it read one, else 0
 */
export async function pollOrders(polling: Polling, store: PolledStore): Promise<number> {
  const { db, now } = polling
  const reading = await need(db, storeReadingOf(store.id), 'store', store.id)
  const wait = reading.ordersDueAt - now()
  // A longer one was set by a clock that has gone back since.
  if (wait > 0 && wait <= WAIT_MAX_MS) return 0
  const readAt = now()
  const page = await store.ordersSince(reading.ordersCursor ?? reading.connectedAt - EARLIER_MS)
  if (page.outcome !== 'read') {
    await noteFailure(polling, reading, page)
    return 0
  }
  try {
    for (const order of page.orders) await takeOne(polling, store, order, readAt)
  } catch (error) {
    if (codeOf(error) !== 'unavailable') throw error
    await noteFailure(polling, reading, { outcome: 'unavailable', mayHaveLeft: false, detail: messageOf(error) })
    return 0
  }
  const at = now()
  const { failingSince } = reading
  const ended = failingSince === null ? {} : { failingSince: null, attempts: 0, lastError: null }
  const wasAway = failingSince !== null && at - failingSince >= AWAY_MS
  const next = { ordersCursor: page.cursor, ordersReadAt: at, ordersDueAt: page.more ? at : at + POLL_MS }
  await db.commit([
    putStoreReading(store.id, { ...next, ...ended }),
    ...(wasAway ? [renewStoreUpdates(store.id, at + store.settleMs)] : []),
  ])
  if (failingSince !== null) polling.log.info('orders.read_again', { store: store.id })
  return 1
}

/**
 * An order that cannot be taken must not keep the others back: a person is alerted, and it is taken when the shop shows another
 * change of it. Where the database fails, the page is read again.
 */
async function takeOne(polling: Polling, store: PolledStore, order: StoreOrderRead, readAt: number): Promise<void> {
  const { db, log } = polling
  const { reference } = order
  try {
    await store.take(order, readAt)
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
  }
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
