import { StaleWrite } from '../storage/database.ts'
import { claimPurchase, freeLease, type Purchase } from '../storage/purchases.ts'
import type { Ordering } from './context.ts'

/** A lease: until when its holder alone may change the purchase, on a clock that does not jump. */
export interface Claim {
  purchaseId: string
  epoch: number
  leaseEndMonotonic: number
  /** Until when a request may be written: look-ups count from then, so that none leaves later. */
  writeEndMonotonic: number
}

/** The answer must be here long before a request may count as run: a third of the time that the supplier needs to settle. */
export const deadlineMs = ({ dialect }: Ordering): number => (dialect.settleSeconds * 1_000) / 3

/** How long a request may still run, and how long its order may be missing from the list, in milliseconds. */
export const gapsOf = ({ settleSeconds, listLagSeconds }: Ordering['dialect']) => ({
  settleMs: settleSeconds * 1_000,
  listLagMs: listLagSeconds * 1_000,
})

/** Longer than everything that can happen to one request, so that a lease never ends under a request. */
const leaseMs = ({ dialect }: Ordering): number => dialect.settleSeconds * 2_000

/**
 * Takes the lease of a purchase, in a commit of its own.
 *
 * @returns undefined when another holds it or the row has changed since it was read
 */
export async function claim(ordering: Ordering, purchase: Purchase): Promise<Claim | undefined> {
  const now = ordering.now()
  const start = ordering.monotonic()
  ordering.at('claiming')
  try {
    await ordering.db.commit([claimPurchase(purchase, ordering.owner, now + leaseMs(ordering), now)])
  } catch (error) {
    if (error instanceof StaleWrite) return undefined
    throw error
  }
  ordering.at('claimed')
  return {
    purchaseId: purchase.id,
    epoch: purchase.leaseEpoch + 1,
    leaseEndMonotonic: start + leaseMs(ordering),
    writeEndMonotonic: start + deadlineMs(ordering),
  }
}

/** Gives back the lease of a purchase that was not sent after all, so that nobody waits for its end. */
export async function release({ db }: Pick<Ordering, 'db'>, held: Claim): Promise<void> {
  await db.commit([freeLease(held.purchaseId, held.epoch)])
}
