import assert from 'node:assert/strict'
import { mayClose } from '../domain/store-order.ts'
import { isComplete, type StoreUpdate } from '../domain/store-update.ts'
import { type Change, commitUnlessStale } from '../storage/database.ts'
import { enqueueUpdate, type OutboxRow, outboxOfOrder, withdrawWaitingKeys } from '../storage/outbox.ts'
import { markClosed, ordersToClose, type StoreOrder } from '../storage/store-orders.ts'
import type { Ordering } from './context.ts'
import { type OrderStanding, orderStanding, standingOf } from './order-view.ts'

const BATCH = 100

/**
 * Closes the orders that may be closed, and enqueues an update for their stores.
 *
 * A query finds these orders. If instead the end of a purchase closed its order, the order could stay open when two purchases
 * end at the same instant, or when the process dies in between.
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
  const changes = await closing(ordering, order, standing)
  if (changes.length === 0) return false
  if (!(await commitUnlessStale(ordering.db, changes))) return false
  logClosed(ordering, order, standing)
  return true
}

type Closing = Pick<StoreOrder, 'id' | 'store' | 'reference'>

/**
 * Returns the changes that close an order and enqueue an update for its store; none while the order may not be closed.
 *
 * @param confirmed an update of the order that its store has just confirmed
 * @param keysMayWait whether the order's store is one that can keep keys back until the rest of the order has come
 */
export async function closing(
  ordering: Ordering,
  order: Closing,
  standing: OrderStanding,
  confirmed?: StoreUpdate,
  keysMayWait = true,
): Promise<Change[]> {
  const { state } = standing
  if (!mayClose(standing.lines, standing.keys)) return []
  const completions = await completionsOf(ordering, order, standing, confirmed)
  const at = ordering.now()
  return [
    markClosed(order.id, state, at),
    ...(keysMayWait ? [withdrawWaitingKeys(order.id)] : []),
    ...completions,
    enqueueUpdate(
      { kind: 'callback', type: 'order.closed', payload: { state } },
      { id: ordering.newId(), store: order.store, orderId: order.id, dedupeKey: `closed:${order.id}:${at}`, at },
    ),
  ]
}

export function logClosed({ log }: Ordering, { id, store, reference }: Closing, { state }: OrderStanding): void {
  log.info('order.closed', { id, store, reference, state })
}

/**
 * Reports a line as complete if no update with keys has said so.
 *
 * The content of an update is fixed when it is first sent. Two updates of one line may be sent before either is confirmed. Then
 * neither update says `complete`. This function enqueues one more update, without keys, that says `complete`.
 */
export async function announceCompletion(ordering: Ordering, { orderId }: Pick<OutboxRow, 'orderId'>): Promise<void> {
  const standing = await orderStanding(ordering, orderId ?? '')
  const changes = await completionsOf(ordering, standing.order, standing)
  if (changes.length === 0) return
  await ordering.db.commit(changes)
  ordering.wake('outbox')
}

/** Enqueues one update for each line whose keys the store has completely, and that was not reported as complete yet. */
async function completionsOf(
  ordering: Ordering,
  order: Pick<StoreOrder, 'id' | 'store'>,
  { lines }: OrderStanding,
  confirmed?: StoreUpdate,
): Promise<Change[]> {
  const knows = (sent: (StoreUpdate | null | undefined)[], { line: { line } }: (typeof lines)[number]) =>
    sent.some((update) => update && isComplete(update) && !update.replaces && update.line.id === line)
  const whole = lines.filter((one) => one.delivered > 0 && one.delivered >= one.wanted && !knows([confirmed], one))
  if (whole.length === 0) return []
  const at = ordering.now()
  const sent = (await ordering.db.query(outboxOfOrder(order.id))).map(({ sentUpdate }) => sentUpdate)
  return whole
    .filter((one) => !knows(sent, one))
    .map(({ line, purchases }) => {
      // Not one in place of a key that does not work: its updates bring the line no unit.
      const last = purchases.findLast(({ claim }) => claim === null)
      assert(last, 'a line with keys has a purchase of its own')
      return enqueueUpdate(
        { kind: 'callback', type: 'line.fulfilled', payload: { purchaseId: last.id, count: 0 } },
        { id: ordering.newId(), store: order.store, orderId: order.id, dedupeKey: `complete:${line.id}`, at },
      )
    })
}
