import { refreshDelayMs } from '../domain/pace.ts'
import { codeOf, messageOf } from '../errors.ts'
import { StaleWrite } from '../storage/database.ts'
import { changePurchase, type Purchase, type PurchaseUpdate, purchaseById } from '../storage/purchases.ts'
import { advance } from './advance.ts'
import type { Ordering } from './context.ts'

/** Equal internal errors in a row before a person must look: a passing fault is over by then, a poisonous row is not. */
const ERRORS_MAX = 8
/** Between two tries of a row that failed; eight of them are over in less than a minute. */
const TRY_AGAIN_MS = 5_000

/**
 * Notes that one purchase could not be handled, so that the others go on.
 *
 * A failing supplier or a lost race is no error of the row. `sending` is left as it is: only a look-up can tell. So is a
 * row under a lease: its holder goes on, or the lease ends.
 */
export async function noteTrouble(ordering: Ordering, purchaseId: string, error: unknown): Promise<void> {
  const text = messageOf(error).slice(0, 300)
  const passing = error instanceof StaleWrite || codeOf(error) === 'unavailable'
  if (passing) ordering.log.warn('purchase.trouble', { purchaseId, error: text })
  else ordering.log.error('purchase.trouble', { purchaseId, error: text })
  try {
    const [purchase] = await ordering.db.query(purchaseById(purchaseId))
    const now = ordering.now()
    if (!purchase || purchase.state === 'sending' || (purchase.leaseUntil ?? 0) > now) return
    const errorCount = passing ? 0 : purchase.errorText === text ? purchase.errorCount + 1 : 1
    await ordering.db.commit([
      changePurchase(
        purchase,
        {
          errorText: passing ? null : text,
          errorCount,
          ...nextTry(purchase, now, passing),
        },
        now,
      ),
    ])
    if (errorCount >= ERRORS_MAX) await advance(ordering, purchaseId, () => ({ type: 'poison', error: text }))
  } catch (second) {
    ordering.log.warn('purchase.trouble', { purchaseId, error: messageOf(second) })
  }
}

/** A supplier that is away is asked as seldom as one that has no news, or a long outage would be hammered. */
function nextTry({ state, refreshes }: Purchase, now: number, passing: boolean): PurchaseUpdate {
  if (state === 'planned' || state === 'waiting') return { notBefore: now + TRY_AGAIN_MS }
  const wait = passing ? Math.max(TRY_AGAIN_MS, refreshDelayMs(refreshes)) : TRY_AGAIN_MS
  return { refreshAt: now + wait, refreshes: refreshes + 1 }
}
