import { StaleWrite } from '../storage/database.ts'
import { oweEffect } from '../storage/outbox.ts'
import { markClosed, ordersToClose } from '../storage/store-orders.ts'
import type { Ordering } from './context.ts'
import { orderStanding } from './order-view.ts'

const BATCH = 100

/**
 * Tells the stores which of their orders are closed: nothing of them moves any more.
 *
 * Looked for rather than caused, so that two purchases that end at the same instant, or a crash between, miss nothing.
 *
 * @returns how many orders were closed
 */
export async function closeOrders(ordering: Ordering): Promise<number> {
  let closed = 0
  for (const { id } of await ordering.db.query(ordersToClose(BATCH))) {
    if (await closeOrder(ordering, id)) closed += 1
  }
  if (closed > 0) ordering.wake('outbox')
  return closed
}

async function closeOrder(ordering: Ordering, orderId: string): Promise<boolean> {
  const standing = await orderStanding(ordering, orderId)
  if (!standing || standing.state === 'open') return false
  const { order, state } = standing
  const now = ordering.now()
  try {
    await ordering.db.commit([
      markClosed(orderId, now),
      oweEffect({
        id: ordering.newId(),
        kind: 'callback',
        type: 'order.closed',
        store: order.store,
        orderId,
        dedupeKey: `closed:${orderId}:${now}`,
        payload: JSON.stringify({ state }),
        state: 'due',
        notBefore: now,
        createdAt: now,
      }),
    ])
  } catch (error) {
    if (error instanceof StaleWrite) return false
    throw error
  }
  ordering.log.info('order.closed', { id: orderId, store: order.store, reference: order.reference, state })
  return true
}
