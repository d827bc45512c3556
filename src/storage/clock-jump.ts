import { and, eq, gt, inArray, or, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { finalStates, purchaseStates } from '../domain/purchase.ts'
import { balanceReadings, deliveries, entitlements, listings, offers, outbox, publishing, purchases } from './schema.ts'
import { build, change, statement } from './statement.ts'
import { bringForward, deleteBy } from './table.ts'

/*
 * Brings forward the instants that rows wait for, after a jump of the clock. An instant that was set before a clock was put back
 * may lie hours or days ahead. A row that waits for such an instant is tried now, and waits again when it still has a reason to.
 */

export const refreshesDueNow = bringForward(purchases, [], 'refreshAt')

/** A worker that died leaves its lease behind. A worker that lives holds its lease for no longer than a lease lasts. */
export const leasesEndBy = bringForward(purchases, [], 'leaseUntil')

const notSent = inArray(purchases.state, ['planned', 'waiting'])
export const placementsDueNow = bringForward(purchases, [notSent], 'notBefore')

export const settlementsDueNow = bringForward(entitlements, [], 'settleAt')

export const untagsDueNow = bringForward(entitlements, [], 'untagAt')

export const effectsDueNow = bringForward(outbox, [eq(outbox.state, 'due')], 'notBefore')

const isOpen = inArray(deliveries.state, ['stored', 'retry', 'orphan'])
export const deliveriesDueNow = bringForward(deliveries, [isOpen], 'notBefore')

export const listingsDueNow = bringForward(listings, [], 'nextTryAt')

export const publishingDueNow = bringForward(publishing, [], 'pausedUntil')

/** Forgets readings from the future: they would count as the newest until that day comes, whatever was paid in meanwhile. */
export const forgetReadingsAfter = deleteBy(balanceReadings, ['readAt >'])

const notAfter = (column: SQLiteColumn, now: number): SQL =>
  sql`case when ${column} > ${now} then ${now} else ${column} end`

/** Dates facts from the future back to now: such a fact would shut out every later fact. */
export const offersAsOfNow = change('any', (now: number) =>
  build
    .update(offers)
    .set({
      asOf: notAfter(offers.asOf, now),
      goneAt: notAfter(offers.goneAt, now),
      changedAt: notAfter(offers.changedAt, now),
    })
    .where(or(gt(offers.asOf, now), gt(offers.goneAt, now), gt(offers.changedAt, now))),
)

/** Dates back to now what counts from an instant in the future and would begin to count only then: short keys, late orders. */
export const countingFromNow = change('any', (now: number) =>
  build
    .update(purchases)
    .set({
      keysShortSince: notAfter(purchases.keysShortSince, now),
      acceptedAt: notAfter(purchases.acceptedAt, now),
      version: sql`${purchases.version} + 1`,
    })
    .where(or(gt(purchases.keysShortSince, now), gt(purchases.acceptedAt, now))),
)

/** The states of purchases that still move. Such purchases are few, and found by their state however many purchases there are. */
const unfinished = purchaseStates.filter((state) => !finalStates.includes(state))

/** Finds a purchase that still moves and was written after this instant; no row when there is no such purchase. */
export const writtenAfter = statement((at: number) =>
  build
    .select({ id: purchases.id })
    .from(purchases)
    .where(and(inArray(purchases.state, unfinished), gt(purchases.changedAt, at)))
    .limit(1),
)

/** Dates purchases that were written in a false future back to now, so that `writtenAfter` does not find them at each start. */
export const writtenNow = bringForward(purchases, [inArray(purchases.state, unfinished)], 'changedAt')

/** Finds a reading that was taken after this instant; no row when there is no such reading. */
export const readAfter = statement((at: number) =>
  build.select({ id: balanceReadings.id }).from(balanceReadings).where(gt(balanceReadings.readAt, at)).limit(1),
)
