import { StaleWrite } from '../storage/database.ts'
import { beginHandOver } from '../storage/purchases.ts'
import { advance } from './advance.ts'
import type { Ordering } from './context.ts'

/**
 * Notes that keys of a purchase are about to leave: after this a cancellation comes too late.
 *
 * @returns false when a person must look first, or a cancellation came before; then nothing may leave
 */
export async function mayHandOver(ordering: Ordering, purchaseId: string): Promise<boolean> {
  try {
    await ordering.db.commit([beginHandOver(purchaseId, ordering.now())])
    return true
  } catch (error) {
    if (!(error instanceof StaleWrite)) throw error
    // A cancellation is looked at here too: whoever asked for it may have ended before it was.
    await advance(ordering, purchaseId, () => ({ type: 'clock' }))
    return false
  }
}

/**
 * Once the store has every key that a completed purchase owes it, the purchase is fulfilled: as many as were ordered, or
 * all that came, where a person handed over fewer.
 *
 * @returns whether it is
 */
export async function confirmHandOver(ordering: Ordering, purchaseId: string): Promise<boolean> {
  const decision = await advance(ordering, purchaseId, ({ purchase, keys }) => {
    const owed = Math.min(keys.length, purchase.quantity)
    const all = owed > 0 && keys.filter((key) => key.handedOverAt !== null).length === owed
    return all && purchase.state === 'completed' ? { type: 'confirmed' } : undefined
  })
  return decision !== undefined
}
