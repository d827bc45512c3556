import { hasLeft } from '../domain/store-order.ts'
import { StaleWrite } from '../storage/database.ts'
import { oweEffect } from '../storage/outbox.ts'
import { markClosed, ordersToClose } from '../storage/store-orders.ts'
import { completionsOf } from './completion.ts'
import type { Ordering } from './context.ts'
import { orderStanding, type Standing } from './order-view.ts'

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
  // Keys that were leaving when their purchase was given up still count: the store is told once it has them.
  if (!standing || standing.state === 'open' || keysOnTheWay(standing)) return false
  const { order, state } = standing
  const now = ordering.now()
  const completions = await completionsOf(ordering, standing)
  try {
    await ordering.db.commit([
      markClosed(orderId, now),
      ...completions,
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

const keysOnTheWay = ({ keys }: Standing): boolean => keys.some((key) => key.handedOverAt === null && hasLeft(key))
