import type { SupplierOrder } from '../domain/placement.ts'
import { comparison, isOurs } from '../domain/sweep.ts'
import { listOf } from '../storage/lists.ts'
import { hintPurchase, type Purchase, purchasesByExternalId, purchasesBySupplierOrder } from '../storage/purchases.ts'
import type { Sweep } from '../storage/sweeps.ts'
import { advance } from './advance.ts'
import type { Ordering } from './context.ts'
import { foundOrders } from './found.ts'
import { maySpend, recordOrphans } from './orphans.ts'
import { noteTrouble } from './trouble.ts'

/** Where a sweep stands; `orders` are `matched`, `orphans` and `others` together. */
export type Swept = Omit<Sweep, 'state' | 'finishedAt' | 'error'>

/** What one sweep has in hand. */
export interface Pass {
  swept: Swept
  /** Supplier order -> purchase that must be in the list and was not seen yet. */
  unseen: Map<string, string>
  /** Behind this instant the balance fell for no reason that we know. */
  suspectFrom: number | undefined
  /** Orders of ours without a purchase that may be the reason. */
  spenders: number
}

/** Compares one page of the supplier's orders with our purchases, and counts it. */
export async function comparePage(ordering: Ordering, pass: Pass, orders: SupplierOrder[]): Promise<void> {
  if (orders.length === 0) return
  const { dialect, stores } = ordering
  const { swept, unseen, suspectFrom } = pass
  const known = await compareKnown(ordering, swept, orders)
  const strangers = orders.filter(({ id }) => !known.has(id))
  const ours = strangers.filter((order) => isOurs(order.externalOrderId, stores, dialect.externalOrderIdMax))
  const orphans = await recordOrphans(ordering, swept.id, ours)
  for (const { id } of orders) unseen.delete(id)
  swept.orders += orders.length
  // One that was shown to a person beside the purchases of its part is no question any more.
  swept.matched += orders.length - strangers.length + ours.length - orphans.length
  swept.orphans += orphans.length
  swept.others += strangers.length - ours.length
  if (suspectFrom !== undefined) pass.spenders += ours.filter((order) => maySpend(order, suspectFrom)).length
}

/** @returns the ids of the orders that are purchases of ours */
async function compareKnown(ordering: Ordering, swept: Swept, orders: SupplierOrder[]): Promise<Set<string | null>> {
  const { db } = ordering
  const references = orders.map((order) => order.externalOrderId).filter((reference) => reference !== undefined)
  const [byReference, byOrder] = await Promise.all([
    references.length > 0 ? db.query(purchasesByExternalId(references)) : [],
    db.query(purchasesBySupplierOrder(orders.map(({ id }) => id))),
  ])
  // A supplier may list no references, and a person may have adopted an order of another one.
  const known = new Set(byOrder.map(({ supplierOrderId }) => supplierOrderId))
  const ordersOf = Map.groupBy(orders, ({ externalOrderId }) => externalOrderId)
  const referred = new Set(byReference.map(({ id }) => id))
  for (const purchase of [...byReference, ...byOrder.filter(({ id }) => !referred.has(id))]) {
    const carrying = ordersOf.get(purchase.externalOrderId) ?? []
    for (const { id } of carrying) known.add(id)
    const adopted = orders.filter((order) => order.id === purchase.supplierOrderId && !carrying.includes(order))
    const own = [...carrying, ...adopted]
    try {
      if (await compare(ordering, purchase, own)) swept.hinted += 1
    } catch (error) {
      await noteTrouble(ordering, purchase.id, error)
      swept.troubled += 1
    }
  }
  return known
}

/** @returns whether the purchase differs from its orders and was moved, or is to be read again */
async function compare(ordering: Ordering, purchase: Purchase, orders: SupplierOrder[]): Promise<boolean> {
  const said = comparison({ ...purchase, ordersSeen: listOf(purchase.ordersSeen) }, orders)
  if (said === 'agrees') return false
  if (said === 'found') {
    const found = await foundOrders(ordering, purchase, orders)
    const decision = await advance(ordering, purchase.id, () => ({ type: 'found', orders: found }), { detail: 'sweep' })
    return decision !== undefined
  }
  await ordering.db.commit([hintPurchase(purchase.id, ordering.now())])
  return true
}
