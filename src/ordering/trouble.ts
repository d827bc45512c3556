import { codeOf, messageOf } from '../errors.ts'
import { StaleWrite } from '../storage/database.ts'
import { changePurchase, purchaseById } from '../storage/purchases.ts'
import { advance } from './advance.ts'
import type { Ordering } from './context.ts'

/** Equal internal errors in a row before a person must look: a passing fault is over by then, a poisonous row is not. */
const ERRORS_MAX = 8
/** Between two tries of a row that failed. */
const TRY_AGAIN_MS = 5_000

/**
 * Notes that one purchase could not be handled, so that the others go on.
 *
 * A failing supplier or a lost race is no error of the row. `sending` is left as it is: only a look-up can tell.
 */
export async function noteTrouble(ordering: Ordering, purchaseId: string, error: unknown): Promise<void> {
  const text = messageOf(error).slice(0, 300)
  const passing = error instanceof StaleWrite || codeOf(error) === 'unavailable'
  if (passing) ordering.log.warn('purchase.trouble', { purchaseId, error: text })
  else ordering.log.error('purchase.trouble', { purchaseId, error: text })
  try {
    const [purchase] = await ordering.db.query(purchaseById(purchaseId))
    if (!purchase || purchase.state === 'sending') return
    const now = ordering.now()
    const errorCount = passing ? 0 : purchase.errorText === text ? purchase.errorCount + 1 : 1
    const later = now + TRY_AGAIN_MS
    const placing = purchase.state === 'planned' || purchase.state === 'waiting'
    await ordering.db.commit([
      changePurchase(
        purchase,
        {
          errorText: passing ? null : text,
          errorCount,
          ...(placing ? { notBefore: later } : { refreshAt: later }),
          ...(purchase.leaseOwner === ordering.owner ? { leaseOwner: null, leaseUntil: null } : {}),
        },
        now,
      ),
    ])
    if (errorCount >= ERRORS_MAX) await advance(ordering, purchaseId, () => ({ type: 'poison', error: text }))
  } catch (second) {
    ordering.log.warn('purchase.trouble', { purchaseId, error: messageOf(second) })
  }
}
