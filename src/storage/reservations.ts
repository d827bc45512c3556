/** What counts against the spend caps and the balance: what purchases may cost, and what they did cost. */
import { and, eq, gt, gte, inArray, or, type SQL, sql } from 'drizzle-orm'
import { bind, build } from './builder.ts'
import type { Change } from './database.ts'
import { purchases } from './schema.ts'

const { placeholder } = sql

const reserved = { total: sql<number>`coalesce(sum(${purchases.reservedMinor}), 0)`.as('total') }

/** A request may be on its way, or be repeated at any time: it counts however long ago it was sent. */
const openOutcome = inArray(purchases.state, ['sending', 'unknown'])

/** Where a spend cap counts: all purchases of one store order, or all that were sent since an instant. */
export type CapScope = { orderId: string } | { since: number }

const whereOf = (scope: CapScope): SQL | undefined =>
  'orderId' in scope ? eq(purchases.orderId, scope.orderId) : or(gt(purchases.reservedAt, scope.since), openOutcome)

/** Reserved or spent under a cap, in minor units. */
export const reservedUnder = (scope: CapScope) => build.select(reserved).from(purchases).where(whereOf(scope))

/** Part of a commit that buys: stale when with it more is reserved than the cap allows, so that none slips in between. */
export const assertWithinCap = (purchaseId: string, scope: CapScope, capMinor: number): Change => ({
  statement: build
    .update(purchases)
    .set({ reservedMinor: sql`${purchases.reservedMinor}` })
    .where(
      and(
        eq(purchases.id, purchaseId),
        sql`(select coalesce(sum(reserved_minor), 0) from purchases where ${whereOf(scope)}) <= ${capMinor}`,
      ),
    ),
  rows: 1,
})

const beyondReading = build
  .select(reserved)
  .from(purchases)
  .where(
    and(
      gt(purchases.reservedMinor, 0),
      // Sent in the same millisecond counts too: too much held back is cured by the next reading.
      or(gte(purchases.lastSentAt, placeholder('readAt')), openOutcome),
    ),
  )
/** What the balance reading of that instant does not know yet: sent since, or with an open outcome. */
export const reservedBeyondReading = (readAt: number) => bind(beyondReading, { readAt })
