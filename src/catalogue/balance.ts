import type { SupplierBalance } from '../domain/placement.ts'
import { forgetBalanceReadings, latestTier } from '../storage/balance-readings.ts'
import { type BalanceReading, insertBalance } from '../storage/evidence.ts'
import type { Catalogue } from './context.ts'

/** Long enough to look back over a month's bills. */
const KEPT_MS = 30 * 24 * 3_600_000

/** A reading every five minutes makes 8,640 in that time; events and purchases add some. */
const KEPT_MAX = 10_000

/**
 * Reads the API balance, VIP tier and limits, and keeps the reading.
 *
 * Another tier means other prices: it asks for a sync run, before the reading is stored, so that a crash in between
 * asks again.
 *
 * @returns the reading; `readAt` is the instant before the request left, because a purchase that was sent while it was
 *   under way may be missing from the answer
 * @throws Failure `unavailable` or `rejected` when the supplier does not answer, or not readably
 */
export async function readBalance({ db, supplier, now, newId, log, requestSync }: Catalogue): Promise<BalanceReading> {
  const readAt = now()
  const balance = await supplier.balance()
  const reading: BalanceReading = {
    ...{ id: newId(), readAt, amountMinor: balance.amountMinor, currency: balance.currency },
    ...{ tier: balance.tier ?? null, limits: limitsText(balance) },
  }
  const [known] = await db.query(latestTier())
  if (known && reading.tier !== null && known.tier !== reading.tier) {
    log.info('balance.tier_changed', { before: known.tier, after: reading.tier })
    requestSync('tier_changed')
  }
  await db.commit([insertBalance(reading), forgetBalanceReadings(readAt - KEPT_MS, KEPT_MAX)])
  return reading
}

function limitsText({ requestsPerMinute, quantityMax }: SupplierBalance): string | null {
  if (requestsPerMinute === undefined && quantityMax === undefined) return null
  return JSON.stringify({ requestsPerMinute, quantityMax })
}
