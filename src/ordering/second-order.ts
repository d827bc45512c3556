import type { SupplierOrder } from '../domain/placement.ts'
import type { Change } from '../storage/database.ts'
import { insertDiscrepancy } from '../storage/evidence.ts'
import { oweAlert } from '../storage/outbox.ts'
import type { Purchase } from '../storage/purchases.ts'
import { dropOrphan } from '../storage/restores.ts'
import { setFreeze } from '../storage/settings.ts'
import type { Ordering } from './context.ts'

/**
 * What an order of the supplier leaves that was bought for a part which has purchases here, but none under its reference:
 * a double charge, or one to be as soon as the part is bought here. All buying is frozen until a person has seen it.
 *
 * @param purchase the one of the part that a person is shown with it
 * @param generation of the part whose reference the order carries
 */
export function reportSecond(
  ordering: Ordering,
  purchase: Purchase,
  generation: number,
  order: SupplierOrder,
): Change[] {
  const now = ordering.now()
  const what = `order ${order.id} at the supplier is ${order.statusWord} and was bought for the same part as generation ${generation}`
  const reason = `purchase ${purchase.id}: ${what}, which has no purchase here`
  const about = { payload: { purchaseId: purchase.id, note: reason }, orderId: purchase.orderId }
  const alert = (type: string, occasion: string): Change => oweAlert(ordering, { type, occasion, ...about })
  return [
    insertDiscrepancy({
      ...{ id: ordering.newId(), kind: 'double_charge', subject: purchase.id, supplierOrderId: order.id, foundAt: now },
      detail: `${order.externalOrderId} is ${order.statusWord} at the supplier beside ${purchase.externalOrderId} in ${purchase.state}`,
    }),
    dropOrphan(order.id),
    setFreeze({ reason, actor: 'quayside', at: now, purchaseId: purchase.id }),
    alert('double_charge', `${purchase.id}:${order.id}`),
    alert('freeze', `${purchase.id}:${now}`),
  ]
}
