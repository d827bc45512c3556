/**
 * Watches accepted orders until they are over, with few requests. While deliveries arrive they say when an order is read, and the
 * schedule catches only what is late. Without them many orders are looked at through one page of the supplier's list.
 */
import { readTogetherAt } from '../domain/pace.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import { SKEW_MS } from '../domain/sweep.ts'
import { messageOf } from '../errors.ts'
import type { Purchase } from '../storage/purchases.ts'
import { expectedOf, type Ordering } from './context.ts'
import { pagesSince } from './scan.ts'

/** Orders that end unannounced, in a row, before deliveries no longer count as arriving. One is late or lost by chance. */
const UNANNOUNCED_MAX = 3
/** Announced orders that are not ours are never read, so that the set must have an end. */
const ANNOUNCED_MAX = 10_000

type Watching = Pick<Ordering, 'pace'>

/** A delivery has named the order of this purchase. */
export function noteAnnounced({ pace: { watch } }: Watching, purchaseId: string): void {
  if (watch.announced.size >= ANNOUNCED_MAX) watch.announced.clear()
  watch.announced.add(purchaseId)
  watch.unannounced = 0
}

/**
 * A read of the order begins: a delivery that comes from here on is not answered by it.
 *
 * @param before the purchase as it was when it became due
 */
export function beginRead({ pace: { watch } }: Watching, before: Purchase) {
  const { announced } = watch
  const wasAnnounced = announced.delete(before.id)
  return {
    ended: (after: Purchase | undefined): void => {
      const isOver = before.state === 'accepted' && after !== undefined && after.state !== 'accepted'
      if (!isOver) return
      const isAnnounced = announced.delete(before.id) || wasAnnounced
      if (!isAnnounced && watch.unannounced !== undefined) watch.unannounced += 1
    },
    failed: (): void => {
      if (wasAnnounced) announced.add(before.id)
    },
  }
}

/** Whether deliveries about orders can be counted on. */
export const deliveriesArrive = ({ pace: { watch } }: Watching): boolean =>
  watch.unannounced !== undefined && watch.unannounced < UNANNOUNCED_MAX

/** An order that is seen on a page costs little: it is looked at again when it is half as old again. */
export const listedAgainAt = ({ acceptedAt }: Purchase, now: number): number =>
  readTogetherAt(now + Math.max(LISTED_EVERY_MS, (now - (acceptedAt ?? now)) / 2))

const LISTED_EVERY_MS = 2_000

/** Fewer orders cost no more requests when each is read by its id, which brings the keys as well. */
const LISTED_MIN = 4
/** An order that stays open for longer is read by its id, in case the list lags behind it. */
const LISTED_FOR_MS = 15 * 60_000
/** A page of the list for so many orders. */
const ORDERS_A_PAGE = 8

/**
 * Reads the orders of due purchases from pages of the supplier's list, where that costs less than to read each.
 *
 * @returns the open ones by the supplier's id. All others are read by their ids: what the list lacks, what differs there from
 *   what was ordered, and what is over, because only that read brings its keys
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
