import { idBound } from '../ids.ts'
import type { Database } from '../storage/database.ts'
import { forgetBodies, forgetDeliveries } from '../storage/deliveries.ts'

const DAY_MS = 24 * 3_600_000

/** Long enough to replay what a mistake of ours made of a delivery; after that a body is only a risk. */
const BODIES_MS = 30 * DAY_MS
/** Suppliers come again for days, not for months: until then a repeat is known as one. */
const ROWS_MS = 90 * DAY_MS

/** Forgets what deliveries carried after 30 days, and that they came after 90. */
export async function forgetOld({ db, now }: { db: Database; now: () => number }): Promise<void> {
  await db.commit([forgetDeliveries(idBound(now() - ROWS_MS)), forgetBodies(idBound(now() - BODIES_MS))])
}
