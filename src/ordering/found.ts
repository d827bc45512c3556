import type { SupplierOrder } from '../domain/placement.ts'
import type { FoundOrder } from '../domain/purchase.ts'
import { listOf } from '../storage/lists.ts'
import { type Purchase, purchasesBySupplierOrder } from '../storage/purchases.ts'
import type { Ordering } from './context.ts'

/** Whether a person was shown the order, or decided on it, at one of these purchases. */
export const wasShown = (rows: readonly Purchase[], supplierOrderId: string): boolean =>
  rows.some(({ ordersSeen }) => listOf(ordersSeen).includes(supplierOrderId))

/** Orders of the supplier that carry a purchase's reference, in the terms of the transition table. */
export async function foundOrders(
  { db, supplier }: Ordering,
  purchase: Purchase,
  orders: SupplierOrder[],
): Promise<FoundOrder[]> {
  if (orders.length === 0) return []
  const seen = new Set(listOf(purchase.ordersSeen))
  const owners = await db.query(purchasesBySupplierOrder(orders.map((order) => order.id)))
  return orders.map((order) => ({
    id: order.id,
    status: order.status,
    agrees: supplier.agrees(order, {
      externalOrderId: purchase.externalOrderId,
      productId: purchase.supplierProductId,
      quantity: purchase.quantity,
    }),
    ofAnotherLine: owners.some((owner) => owner.supplierOrderId === order.id && owner.id !== purchase.id),
    // What was shown to a person once is that person's: it neither freezes again nor moves the purchase by itself.
    decided: seen.has(order.id),
  }))
}
