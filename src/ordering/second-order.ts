import type { SupplierOrder } from '../domain/placement.ts'
import type { Change } from '../storage/database.ts'
import { insertDiscrepancy } from '../storage/evidence.ts'
import { oweEffect } from '../storage/outbox.ts'
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
  { newId, now: clock }: Ordering,
  purchase: Purchase,
  generation: number,
  order: SupplierOrder,
): Change[] {
  const now = clock()
  const what = `order ${order.id} at the supplier is ${order.statusWord} and was bought for the same part as generation ${generation}`
  const reason = `purchase ${purchase.id}: ${what}, which has no purchase here`
  const alert = (type: string, dedupeKey: string): Change =>
    oweEffect({
      ...{ id: newId(), kind: 'alert', type, orderId: purchase.orderId, dedupeKey },
      ...{ payload: JSON.stringify({ purchaseId: purchase.id, note: reason }), state: 'due' },
      ...{ notBefore: now, createdAt: now },
    })
  return [
    insertDiscrepancy({
      ...{ id: newId(), kind: 'double_charge', subject: purchase.id, supplierOrderId: order.id, foundAt: now },
      detail: `${order.externalOrderId} is ${order.statusWord} at the supplier beside ${purchase.externalOrderId} in ${purchase.state}`,
    }),
    dropOrphan(order.id),
    setFreeze({ reason, actor: 'quayside', at: now, purchaseId: purchase.id }),
    alert('double_charge', `alert:double_charge:${purchase.id}:${order.id}`),
    alert('freeze', `alert:freeze:${purchase.id}:${now}`),
  ]
}
