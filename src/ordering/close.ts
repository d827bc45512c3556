import assert from 'node:assert/strict'
import { mayClose } from '../domain/store-order.ts'
import { isComplete } from '../domain/store-update.ts'
import { type Change, StaleWrite } from '../storage/database.ts'
import { enqueueUpdate, type OutboxRow, outboxOfOrder, withdrawWaitingKeys } from '../storage/outbox.ts'
import { markClosed, ordersToClose, type StoreOrder } from '../storage/store-orders.ts'
import type { Ordering } from './context.ts'
import { orderStanding, type Standing, standingOf } from './order-view.ts'

const BATCH = 100

/**
 * Closes the orders that may be closed, and enqueues an update for their stores.
 *
 * The function searches for these orders. The code that ends a purchase does not call it. So no order stays open when two
 * purchases end at the same instant, or when the process dies in between.
 *
 * @returns how many orders were closed
 */
export async function closeOrders(ordering: Ordering): Promise<number> {
  const found = await ordering.db.query(ordersToClose(BATCH))
  // The orders are closed together, so that they share a commit.
  const closed = (await Promise.all(found.map((order) => closeOrder(ordering, order)))).filter(Boolean).length
  if (closed > 0) ordering.wake('outbox')
  return closed
}

async function closeOrder(ordering: Ordering, order: StoreOrder): Promise<boolean> {
  const standing = await standingOf(ordering, order)
  if (!mayClose(standing.lines, standing.keys)) return false
  const { state } = standing
  const orderId = order.id
  const now = ordering.now()
  const completions = await completionsOf(ordering, standing)
  try {
    await ordering.db.commit([
      markClosed(orderId, state, now),
      withdrawWaitingKeys(orderId),
      ...completions,
      enqueueUpdate(
        { kind: 'callback', type: 'order.closed', payload: { state } },
        { id: ordering.newId(), store: order.store, orderId, dedupeKey: `closed:${orderId}:${now}`, at: now },
      ),
    ])
  } catch (error) {
    if (error instanceof StaleWrite) return false
    throw error
  }
  ordering.log.info('order.closed', { id: orderId, store: order.store, reference: order.reference, state })
  return true
}

/**
 * Reports a line as complete where no update with keys did.
 *
 * The content of an update is fixed when it is first sent. Two updates of one line may be sent before either is confirmed. Then
 * neither update says `complete`. This function enqueues a further update that says so, without keys.
 */
export async function announceCompletion(ordering: Ordering, { orderId }: Pick<OutboxRow, 'orderId'>): Promise<void> {
  const changes = await completionsOf(ordering, await orderStanding(ordering, orderId ?? ''))
  if (changes.length === 0) return
  await ordering.db.commit(changes)
  ordering.wake('outbox')
}

/** Enqueues an update for each line that the store has all keys of and that was not reported as complete; once for each line. */
async function completionsOf(ordering: Ordering, { order, lines }: Standing): Promise<Change[]> {
  const whole = lines.filter(({ delivered, wanted }) => delivered > 0 && delivered >= wanted)
  if (whole.length === 0) return []
  const at = ordering.now()
  const sent = (await ordering.db.query(outboxOfOrder(order.id))).map(({ sentUpdate }) => sentUpdate)
  const complete = new Set(sent.filter((update) => update !== null && isComplete(update)).map(({ line }) => line.id))
  return whole
    .filter(({ line }) => !complete.has(line.line))
    .map(({ line, purchases }) => {
      const last = purchases.at(-1)
      assert(last, 'a line with keys has a purchase')
      return enqueueUpdate(
        { kind: 'callback', type: 'line.fulfilled', payload: { purchaseId: last.id, count: 0 } },
        { id: ordering.newId(), store: order.store, orderId: order.id, dedupeKey: `complete:${line.id}`, at },
      )
    })
}
