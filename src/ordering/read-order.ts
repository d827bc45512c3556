import type { SupplierOrder } from '../domain/placement.ts'
import type { PurchaseInput } from '../domain/purchase.ts'
import { insertAttempt } from '../storage/evidence.ts'
import { keysByBlindIndex } from '../storage/licence-keys.ts'
import type { Purchase } from '../storage/purchases.ts'
import { advance, load } from './advance.ts'
import type { Ordering } from './context.ts'
import type { Reading } from './effects.ts'
import { foundOrders } from './found.ts'

/**
 * Reads a purchase's order from the supplier and applies it: where deliveries, polling and sweeps all end.
 *
 * A delivery is only a hint that something happened; what the order says when it is read is what counts.
 *
 * @throws Failure `unavailable` when the supplier cannot be read
 */
export async function readOrder(ordering: Ordering, purchase: Purchase, supplierOrderId: string): Promise<void> {
  const order = await ordering.supplier.order(supplierOrderId)
  if (!order) {
    await advance(ordering, purchase.id, () => ({ type: 'missing' }))
    return
  }
  await applyOrder(ordering, purchase, order)
}

/** Applies an order of the supplier as it was just read. */
export async function applyOrder(ordering: Ordering, purchase: Purchase, order: SupplierOrder): Promise<void> {
  const [found] = await foundOrders(ordering, purchase, [order])
  const over = ['rejected', 'failed', 'cancelled'].includes(purchase.state)
  if (!found?.agrees || found.ofAnotherLine || over) {
    const orders = found ? [found] : []
    await advance(ordering, purchase.id, () => ({ type: 'found', orders }), {
      detail: `order ${order.id} is ${order.status}`,
    })
    return
  }
  const { reading, keysElsewhere } = await readKeys(ordering, purchase, order)
  const input: PurchaseInput = {
    type: 'read',
    status: order.status,
    keys: order.keys.length,
    newKeys: reading.newKeys.length,
    keysElsewhere,
  }
  const decision = await advance(ordering, purchase.id, () => input, {
    reading,
    detail: `order ${order.id} is ${order.statusWord}`,
  })
  if (decision && decision.row !== 'still_open') {
    await ordering.db.commit([
      insertAttempt({
        ...{ id: ordering.newId(), purchaseId: purchase.id, kind: 'read', stage: 'answered' },
        ...{ number: purchase.refreshes + 1, at: ordering.now(), supplierOrderId: order.id },
        detail: `${order.statusWord}, ${order.keys.length} of ${purchase.quantity} keys`,
      }),
    ])
  }
}

/** Which keys of the order are new, and whether one of them was seen on another purchase. */
async function readKeys(
  ordering: Ordering,
  purchase: Purchase,
  order: SupplierOrder,
): Promise<{ reading: Reading; keysElsewhere: boolean }> {
  if (order.keys.length === 0) return { reading: { order, newKeys: [] }, keysElsewhere: false }
  const came = order.keys.map((key) => {
    const text = key.reveal()
    return { text, blindIndex: ordering.vault.blindIndex(text) }
  })
  const [known, loaded] = await Promise.all([
    ordering.db.query(keysByBlindIndex(came.map((key) => key.blindIndex))),
    load(ordering, purchase.id),
  ])
  const stored = new Set(loaded?.keys.map((key) => key.blindIndex.toString('hex')))
  const newKeys = came.filter((key, place) => {
    const digest = key.blindIndex.toString('hex')
    const first = came.findIndex((other) => other.blindIndex.equals(key.blindIndex)) === place
    return first && !stored.has(digest)
  })
  return { reading: { order, newKeys }, keysElsewhere: known.some((key) => key.purchaseId !== purchase.id) }
}
