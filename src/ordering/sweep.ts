import type { SupplierOrder } from '../domain/placement.ts'
import { hintPurchase, type Purchase, purchasesByExternalId } from '../storage/purchases.ts'
import { advance } from './advance.ts'
import type { Ordering } from './context.ts'
import { foundOrders } from './found.ts'
import { pagesSince } from './scan.ts'

/** A sweep looks back two days: longer than any order stays open, short enough for every quarter of an hour. */
export const SWEEP_WINDOW_MS = 48 * 3_600_000

export interface Swept {
  orders: number
  matched: number
  hinted: number
}

/**
 * Compares the supplier's recent orders with our purchases: what deliveries missed is found here.
 *
 * @throws Failure `unavailable` when the list could not be read as a whole; what was matched before stays applied
 */
export async function sweep(ordering: Ordering, from = ordering.now() - SWEEP_WINDOW_MS): Promise<Swept> {
  const startedAt = ordering.monotonic()
  const swept: Swept = { orders: 0, matched: 0, hinted: 0 }
  for await (const orders of pagesSince(ordering, from)) {
    swept.orders += orders.length
    const references = orders.map((order) => order.externalOrderId).filter((reference) => reference !== undefined)
    if (references.length === 0) continue
    for (const purchase of await ordering.db.query(purchasesByExternalId(references))) {
      swept.matched += 1
      const own = orders.filter((order) => order.externalOrderId === purchase.externalOrderId)
      if (await compare(ordering, purchase, own)) swept.hinted += 1
    }
  }
  const durationMs = Math.round(ordering.monotonic() - startedAt)
  ordering.log.info('sweep.complete', { count: swept.orders, durationMs, detail: `${swept.hinted} to read again` })
  if (swept.hinted > 0) ordering.wake('refresh')
  return swept
}

/** @returns whether the purchase differs from its orders and was moved, or is to be read again */
async function compare(ordering: Ordering, purchase: Purchase, orders: SupplierOrder[]): Promise<boolean> {
  const known = purchase.supplierOrderId
  if (known === null || orders.some((order) => order.id !== known)) {
    const found = await foundOrders(ordering, purchase, orders)
    return (
      (await advance(ordering, purchase.id, () => ({ type: 'found', orders: found }), { detail: 'sweep' })) !==
      undefined
    )
  }
  if (orders.every((order) => order.statusWord === purchase.supplierStatus)) return false
  await ordering.db.commit([hintPurchase(purchase.id, ordering.now())])
  return true
}
