import { insertDiscrepancy } from '../storage/evidence.ts'
import { oweAlert } from '../storage/outbox.ts'
import { type Purchase, purchaseById } from '../storage/purchases.ts'
import { advance } from './advance.ts'
import type { Ordering } from './context.ts'

/**
 * Asks for one order of ours that a whole list did not hold.
 *
 * The list only raises the question: what the supplier says of the order itself decides.
 *
 * @returns `missing`, recorded with an alert; `unlisted` when the supplier knows it all the same; `moved` when the
 *   purchase no longer waits for that order
 */
export async function checkUnlisted(
  ordering: Ordering,
  purchaseId: string,
  supplierOrderId: string,
): Promise<'missing' | 'unlisted' | 'moved'> {
  const purchase = await waiting(ordering, purchaseId, supplierOrderId)
  if (!purchase) return 'moved'
  if (await ordering.supplier.order(supplierOrderId)) return 'unlisted'
  const now = await waiting(ordering, purchaseId, supplierOrderId)
  if (!now) return 'moved'
  if (now.state === 'accepted') await advance(ordering, purchaseId, () => ({ type: 'missing' }), { detail: 'sweep' })
  else await recordMissing(ordering, now, supplierOrderId)
  return 'missing'
}

async function waiting({ db }: Ordering, purchaseId: string, supplierOrderId: string): Promise<Purchase | undefined> {
  const [purchase] = await db.query(purchaseById(purchaseId))
  const waits = purchase?.state === 'accepted' || purchase?.state === 'completed'
  return waits && purchase.supplierOrderId === supplierOrderId ? purchase : undefined
}

/** A completed purchase has its keys and goes on; that its order is gone is for a person to know. */
async function recordMissing(ordering: Ordering, purchase: Purchase, supplierOrderId: string) {
  const { db, newId, now: clock, wake } = ordering
  const { id: purchaseId, orderId, externalOrderId } = purchase
  const now = clock()
  await db.commit([
    insertDiscrepancy({
      ...{ id: newId(), kind: 'missing', subject: purchaseId, supplierOrderId, foundAt: now },
      detail: `${externalOrderId} in ${purchase.state}`,
    }),
    oweAlert(ordering, {
      ...{ type: 'missing', occasion: `${purchaseId}:${supplierOrderId}`, orderId },
      payload: { purchaseId, note: null },
    }),
  ])
  wake('outbox')
}
