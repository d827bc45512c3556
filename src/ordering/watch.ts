/**
 * Watches accepted orders until they are over, with few requests. While deliveries arrive, they decide when an order is read, and
 * the schedule only catches late orders. Without deliveries, one page of the supplier's list shows many orders at once.
 */
import { readTogetherAt } from '../domain/pace.ts'
import type { PurchaseState } from '../domain/purchase.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import { SKEW_MS } from '../domain/sweep.ts'
import { messageOf } from '../errors.ts'
import type { Purchase } from '../storage/purchases.ts'
import { expectedOf, type Ordering } from './context.ts'
import { pagesSince } from './scan.ts'

/** After so many unannounced ends in a row, deliveries no longer count as arriving. A single delivery may be late or lost. */
const UNANNOUNCED_MAX = 3
/** The most announced purchases that are remembered. Some of them are never read, so the set must have a limit. */
const ANNOUNCED_MAX = 10_000

type Watching = Pick<Ordering, 'pace'>

/** Notes that a delivery has named the order of this purchase. */
export function noteAnnounced({ pace: { watch } }: Watching, purchaseId: string): void {
  if (watch.announced.size >= ANNOUNCED_MAX) watch.announced.clear()
  watch.announced.add(purchaseId)
  watch.unannounced = 0
}

/**
 * Notes that a read of the order begins. A delivery that comes from now on needs another read.
 *
 * @param before the purchase as it was when it became due
 */
export function beginRead({ pace: { watch } }: Watching, before: Purchase) {
  const { announced } = watch
  const wasAnnounced = announced.delete(before.id)
  return {
    /** @param next the state of the purchase afterwards; undefined when nothing has changed */
    ended: (next: PurchaseState | undefined): void => {
      const isOver = before.state === 'accepted' && next !== undefined && next !== 'accepted'
      if (!isOver) return
      const isAnnounced = announced.delete(before.id) || wasAnnounced
      if (!isAnnounced && watch.unannounced !== undefined) watch.unannounced += 1
    },
    failed: (): void => {
      if (wasAnnounced) announced.add(before.id)
    },
  }
}

/** Says whether deliveries about orders can be counted on. */
export const deliveriesArrive = ({ pace: { watch } }: Watching): boolean =>
  watch.unannounced !== undefined && watch.unannounced < UNANNOUNCED_MAX

/** Returns when an order that a page showed is looked at again: after half its present age, so older orders cost less. */
export const listedAgainAt = ({ acceptedAt }: Purchase, now: number): number =>
  readTogetherAt(now + Math.max(LISTED_EVERY_MS, (now - (acceptedAt ?? now)) / 2))

const LISTED_EVERY_MS = 2_000

/** The fewest orders for which pages are read. Fewer orders are read by id: that costs no more, and brings the keys too. */
const LISTED_MIN = 4
/** An order that stays open for longer than this is read by its id, in case the list lags behind the order. */
const LISTED_FOR_MS = 15 * 60_000
/** One page of the list is read for each group of so many orders. */
const ORDERS_A_PAGE = 8

/**
 * Reads the orders of due purchases from pages of the supplier's list, where that costs less than to read each order.
 *
 * @returns the open orders by the supplier's id. All others are read by their ids: orders that the list lacks, orders that differ
 *   from what was asked for, and orders that are over, because only a read by id brings the keys
 */
export async function openOrders(ordering: Ordering, due: readonly Purchase[]): Promise<Map<string, SupplierOrder>> {
  const { announced } = ordering.pace.watch
  const oldest = ordering.now() - LISTED_FOR_MS
  const watched = due.filter(
    ({ id, state, supplierOrderId, acceptedAt }) =>
      state === 'accepted' && supplierOrderId !== null && (acceptedAt ?? 0) > oldest && !announced.has(id),
  )
  const open = new Map<string, SupplierOrder>()
  if (watched.length < LISTED_MIN) return open
  const missing = new Map(watched.map((purchase) => [purchase.supplierOrderId, purchase]))
  const from = Math.min(...watched.map(({ firstSentAt, createdAt }) => firstSentAt ?? createdAt)) - SKEW_MS
  let pagesLeft = Math.ceil(watched.length / ORDERS_A_PAGE)
  try {
    for await (const page of pagesSince(ordering, from, { onUnreadable: () => {}, onListEnd: () => {} })) {
      for (const order of page) {
        const purchase = missing.get(order.id)
        missing.delete(order.id)
        const isOpen = order.status === 'open' && purchase && !ordering.supplier.differs(order, expectedOf(purchase))
        if (isOpen) open.set(order.id, order)
      }
      pagesLeft -= 1
      if (missing.size === 0 || pagesLeft === 0) break
    }
  } catch (error) {
    ordering.log.warn('orders.unlisted', { count: missing.size, error: messageOf(error) })
  }
  return open
}
