import { and, eq, gt, inArray, or, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { finalStates, purchaseStates } from '../domain/purchase.ts'
import { balanceReadings, deliveries, entitlements, listings, offers, outbox, publishing, purchases } from './schema.ts'
import { build, change, statement } from './statement.ts'
import { bringForward, deleteBy } from './table.ts'

/*
 * These changes are for a clock that was put back. Instants that were set before may then lie hours or days ahead. The changes
 * bring such instants forward to now. A row that still has a reason to wait then gets a new instant.
 */

export const refreshesDueNow = bringForward(purchases, [], 'refreshAt')

/** Lets no lease of a purchase end later than this instant. The lease of a worker that died may lie far ahead. */
export const leasesEndBy = bringForward(purchases, [], 'leaseUntil')

const notSent = inArray(purchases.state, ['planned', 'waiting'])
export const placementsDueNow = bringForward(purchases, [notSent], 'notBefore')

export const settlementsDueNow = bringForward(entitlements, [], 'settleAt')

export const untagsDueNow = bringForward(entitlements, [], 'untagAt')

export const effectsDueNow = bringForward(outbox, [eq(outbox.state, 'due')], 'notBefore')

/** Lets no try of an update act for longer than until this instant: the other updates of its order wait for that. */
export const actsEndBy = bringForward(outbox, [inArray(outbox.state, ['due', 'dead'])], 'actsUntil')

const isOpen = inArray(deliveries.state, ['stored', 'retry', 'orphan'])
export const deliveriesDueNow = bringForward(deliveries, [isOpen], 'notBefore')

export const listingsDueNow = bringForward(listings, [], 'nextTryAt')

export const publishingDueNow = bringForward(publishing, [], 'pausedUntil')

/** Forgets balance readings from the future: such a reading would count as the newest until its instant comes. */
export const forgetReadingsAfter = deleteBy(balanceReadings, ['readAt >'])

const notAfter = (column: SQLiteColumn, now: number): SQL =>
  sql`case when ${column} > ${now} then ${now} else ${column} end`

/** Dates facts about offers from the future back to now. Otherwise every fact from before that instant would count as older. */
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

/** Dates two instants of purchases from the future back to now: the waits for missing keys and late orders start at them. */
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

/** The states of purchases that can still change. Such purchases are few, and an index finds them by their state. */
const unfinished = purchaseStates.filter((state) => !finalStates.includes(state))

/** Finds one unfinished purchase that was written after this instant; no row when there is no such purchase. */
export const writtenAfter = statement((at: number) =>
  build
    .select({ id: purchases.id })
    .from(purchases)
    .where(and(inArray(purchases.state, unfinished), gt(purchases.changedAt, at)))
    .limit(1),
)

/** Dates unfinished purchases from the future back to now. Otherwise `writtenAfter` would find them again at each start. */
export const writtenNow = bringForward(purchases, [inArray(purchases.state, unfinished)], 'changedAt')

/** Finds a balance reading that was taken after this instant; no row when there is no such reading. */
export const readAfter = statement((at: number) =>
  build.select({ id: balanceReadings.id }).from(balanceReadings).where(gt(balanceReadings.readAt, at)).limit(1),
)
