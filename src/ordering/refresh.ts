import { dueRefreshes, lostSends, type Purchase, purchaseById } from '../storage/purchases.ts'
import { advance } from './advance.ts'
import type { Ordering } from './context.ts'
import { confirmHandOver } from './hand-over.ts'
import { lookUp } from './look-up.ts'
import { readOrder } from './read-order.ts'
import { reschedule } from './reschedule.ts'
import { noteTrouble } from './trouble.ts'
import { alertUnreadable } from './unreadable.ts'

const BATCH = 100
/** Reads side by side; reads have connections of their own, so that they are never starved by orders. */
const AT_ONCE = 4

/**
 * Reads or looks up every purchase that is due for it, whether a hint, the schedule or a crash made it due.
 *
 * @returns how many were handled
 */
export async function refreshDue(ordering: Ordering): Promise<number> {
  const now = ordering.now()
  for (const purchase of await ordering.db.query(lostSends(now, BATCH))) {
    try {
      await advance(ordering, purchase.id, () => ({ type: 'lost' }))
    } catch (error) {
      await noteTrouble(ordering, purchase.id, error)
    }
  }
  const queue = await ordering.db.query(dueRefreshes(now, BATCH))
  const handled = queue.length
  const worker = async (): Promise<void> => {
    for (let purchase = queue.shift(); purchase; purchase = queue.shift()) {
      try {
        await refresh(ordering, purchase)
        const [after] = await ordering.db.query(purchaseById(purchase.id))
        if (after?.version === purchase.version) await reschedule(ordering, purchase)
      } catch (error) {
        await noteTrouble(ordering, purchase.id, error)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  await alertUnreadable(ordering)
  return handled
}

/** What is known by an order id is read; everything else is looked up by its reference. */
async function refresh(ordering: Ordering, purchase: Purchase): Promise<void> {
  if (purchase.supplierOrderId === null) return lookUp(ordering, purchase)
  // A process that ended between the store's yes and this row left only the keys marked.
  if (purchase.state === 'completed' && (await confirmHandOver(ordering, purchase.id))) return
  await readOrder(ordering, purchase, purchase.supplierOrderId)
}
