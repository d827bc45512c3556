import { and, eq, gt, inArray, or, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { finalStates, purchaseStates } from '../domain/purchase.ts'
import { balanceReadings, deliveries, entitlements, listings, offers, outbox, publishing, purchases } from './schema.ts'
import { build, change, statement } from './statement.ts'

/*
 * Instants that rows wait for, after a jump of the clock. One that was taken before a clock was put back may lie hours or
 * days ahead: whatever waits for one is tried now, and waits again when there is still a reason to.
 */

export const refreshesDueNow = change('any', (now: number) =>
  build.update(purchases).set({ refreshAt: now }).where(gt(purchases.refreshAt, now)),
)

export const placementsDueNow = change('any', (now: number) =>
  build
    .update(purchases)
    .set({ notBefore: now })
    .where(and(inArray(purchases.state, ['planned', 'waiting']), gt(purchases.notBefore, now))),
)

export const settlementsDueNow = change('any', (now: number) =>
  build.update(entitlements).set({ settleAt: now }).where(gt(entitlements.settleAt, now)),
)

export const untagsDueNow = change('any', (now: number) =>
  build.update(entitlements).set({ untagAt: now }).where(gt(entitlements.untagAt, now)),
)

export const effectsDueNow = change('any', (now: number) =>
  build
    .update(outbox)
    .set({ notBefore: now })
    .where(and(eq(outbox.state, 'due'), gt(outbox.notBefore, now))),
)

export const deliveriesDueNow = change('any', (now: number) =>
  build
    .update(deliveries)
    .set({ notBefore: now })
    .where(and(inArray(deliveries.state, ['stored', 'retry', 'orphan']), gt(deliveries.notBefore, now))),
)

export const listingsDueNow = change('any', (now: number) =>
  build.update(listings).set({ nextTryAt: now }).where(gt(listings.nextTryAt, now)),
)

export const publishingDueNow = change('any', (now: number) =>
  build.update(publishing).set({ pausedUntil: now }).where(gt(publishing.pausedUntil, now)),
)

/** A reading from the future would count as the newest one until that day comes, whatever was paid in meanwhile. */
export const forgetReadingsAfter = change('any', (now: number) =>
  build.delete(balanceReadings).where(gt(balanceReadings.readAt, now)),
)

const notAfter = (column: SQLiteColumn, now: number): SQL =>
  sql`case when ${column} > ${now} then ${now} else ${column} end`

/** A fact from the future would shut out every later one. */
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

/** What counts from an instant in the future would begin to count only then: keys that are short, an order that is late. */
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

/** Those that move still: they are few, and found by their state however many there are in all. */
const unfinished = purchaseStates.filter((state) => !finalStates.includes(state))

/** A purchase that moves still was written at an instant after this one; none when none was. */
export const writtenAfter = statement((at: number) =>
  build
    .select({ id: purchases.id })
    .from(purchases)
    .where(and(inArray(purchases.state, unfinished), gt(purchases.changedAt, at)))
    .limit(1),
)

/** What was written in a future that turned out to be none counts as written now, so that not each start finds it. */
export const writtenNow = change('any', (now: number) =>
  build
    .update(purchases)
    .set({ changedAt: now })
    .where(and(inArray(purchases.state, unfinished), gt(purchases.changedAt, now))),
)

/** A reading was taken after this instant; none when none was. */
export const readAfter = statement((at: number) =>
  build.select({ id: balanceReadings.id }).from(balanceReadings).where(gt(balanceReadings.readAt, at)).limit(1),
)
