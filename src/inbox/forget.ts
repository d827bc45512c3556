import { idBound } from '../ids.ts'
import type { Database } from '../storage/database.ts'
import { forgetBodies, forgetDeliveries } from '../storage/deliveries.ts'
import { forgetListingPrices, thinListingPrices } from '../storage/listing-prices.ts'

const DAY_MS = 24 * 3_600_000

/** Long enough to replay what a mistake of ours made of a delivery; after that a body is only a risk. */
const BODIES_MS = 30 * DAY_MS
/** Suppliers come again for days, not for months: until then a repeat is known as one. */
const ROWS_MS = 90 * DAY_MS

/** Every price that a store had for a month, then one a day for a year: as far back as a question about an order goes. */
const PRICES_MS = 30 * DAY_MS
const DAILY_PRICES_MS = 365 * DAY_MS
/** What is thinned each night: a week of it, should the service have been down. */
const THINNED_MS = 7 * DAY_MS

/**
 * Forgets what deliveries carried after 30 days, and that they came after 90; thins the prices of listings, of which the
 * one that holds is kept for ever.
 */
export async function forgetOld({ db, now }: { db: Database; now: () => number }): Promise<void> {
  await db.commit([forgetDeliveries(idBound(now() - ROWS_MS)), forgetBodies(idBound(now() - BODIES_MS))])
  const daily = now() - PRICES_MS
  await db.commit([thinListingPrices(daily - THINNED_MS, daily), forgetListingPrices(now() - DAILY_PRICES_MS)])
}
