import { and, desc, eq, gte, inArray, isNotNull, isNull, lt, lte, or, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { balanceAccounts, balanceMovements, balanceReadings, discrepancies, purchases } from './schema.ts'
import { build } from './statement.ts'

export type BalanceAccount = typeof balanceAccounts.$inferSelect
export type BalanceMovement = typeof balanceMovements.$inferSelect

export const balanceAccount = (currency: string) =>
  build.select().from(balanceAccounts).where(eq(balanceAccounts.currency, currency))

export const allBalanceAccounts = () => build.select().from(balanceAccounts)

/** The newest movements; `before` is the id of the last one seen. */
export const listMovements = (filter: { currency: string; before?: string; limit: number }) =>
  build
    .select()
    .from(balanceMovements)
    .where(
      and(
        eq(balanceMovements.currency, filter.currency),
        filter.before ? lt(balanceMovements.id, filter.before) : undefined,
      ),
    )
    .orderBy(desc(balanceMovements.id))
    .limit(filter.limit)

/** Purchases whose request may be on its way, or whose outcome nobody knows yet. */
export const countOpenOutcomes = () =>
  build
    .select({ total: sql<number>`count(*)`.as('total') })
    .from(purchases)
    .where(inArray(purchases.state, ['sending', 'unknown']))

/** Orders of ours whose charge no account has. */
const uncounted = and(isNotNull(purchases.supplierOrderId), isNull(purchases.countedAt))

/**
 * Uncounted orders that a reading may or may not know of: placed since it began, or so young that their amount was not
 * read yet.
 *
 * @param youngFrom an order that was placed before and has no amount still will not get one
 */
export const countUncertainCharges = (readAt: number, youngFrom: number) =>
  build
    .select({ total: sql<number>`count(*)`.as('total') })
    .from(purchases)
    .where(
      and(
        uncounted,
        gte(purchases.acceptedAt, youngFrom),
        or(
          gte(purchases.acceptedAt, readAt),
          and(eq(purchases.state, 'accepted'), isNull(purchases.amountMinor), isNull(purchases.supplierStatus)),
        ),
      ),
    )

const chargedBefore = (readAt: number) => and(uncounted, lt(purchases.acceptedAt, readAt))
/** An amount is only ever stored in the purchase's own currency. */
const priced = (currency: string) => and(isNotNull(purchases.amountMinor), eq(purchases.currency, currency))

/** Orders placed before a reading: how many, what they cost, and at most where the supplier does not say. */
export const chargesBefore = (readAt: number, currency: string) =>
  build
    .select({
      count: sql<number>`count(*)`.as('count'),
      chargesMinor:
        sql<number>`coalesce(sum(case when ${priced(currency)} then ${purchases.amountMinor} else 0 end), 0)`.as(
          'charges_minor',
        ),
      unpricedMinor:
        sql<number>`coalesce(sum(case when ${purchases.amountMinor} is null then ${purchases.reservedMinor} else 0 end), 0)`.as(
          'unpriced_minor',
        ),
    })
    .from(purchases)
    .where(chargedBefore(readAt))

/** What must come back of orders that failed, as far as no account has it. */
const failed = and(sql`${purchases.state} = 'failed'`, isNull(purchases.returnedAt))
/** The same of orders that were taken back after they had completed. */
const reversed = and(
  inArray(
    purchases.id,
    build.select({ id: discrepancies.subject }).from(discrepancies).where(eq(discrepancies.kind, 'reversed')),
  ),
  isNull(purchases.returnedAt),
)
const owedBack = { failed, reversed } as const
export type OwedBack = keyof typeof owedBack

export const returnsBefore = (kind: OwedBack, readAt: number) =>
  build
    .select({
      count: sql<number>`count(*)`.as('count'),
      returnsMinor: sql<number>`coalesce(sum(${purchases.amountMinor}), 0)`.as('returns_minor'),
    })
    .from(purchases)
    .where(and(owedBack[kind], lt(purchases.acceptedAt, readAt)))

/** What purchases may have cost whose outcome waits for a person. */
export const unsettledMinor = () =>
  build
    .select({
      total:
        sql<number>`coalesce(sum(case when ${purchases.supplierOrderId} is null then ${purchases.reservedMinor} else 0 end), 0)`.as(
          'total',
        ),
    })
    .from(purchases)
    .where(eq(purchases.state, 'review'))

/** Marks the charges of `chargesBefore` as counted; stale when they are no longer as many. */
export const countCharges = (readAt: number, now: number, count: number | 'any'): Change => ({
  statement: build.update(purchases).set({ countedAt: now }).where(chargedBefore(readAt)),
  rows: count,
})

/** Marks what `returnsBefore` gave as counted; stale when it is no longer as many. */
export const countReturns = (kind: OwedBack, readAt: number, now: number, count: number | 'any'): Change => ({
  statement: build
    .update(purchases)
    .set({ returnedAt: now })
    .where(and(owedBack[kind], lt(purchases.acceptedAt, readAt))),
  rows: count,
})

export const insertAccount = (row: typeof balanceAccounts.$inferInsert): Change => ({
  statement: build.insert(balanceAccounts).values(row),
  rows: 1,
})

/** Changes the account as it was read, and only so: two readings are never taken into it at once. */
export const changeAccount = (
  { currency, version }: Pick<BalanceAccount, 'currency' | 'version'>,
  set: Partial<BalanceAccount>,
): Change => ({
  statement: build
    .update(balanceAccounts)
    .set({ ...set, version: version + 1 })
    .where(and(eq(balanceAccounts.currency, currency), eq(balanceAccounts.version, version))),
  rows: 1,
})

export const insertMovement = (row: typeof balanceMovements.$inferInsert): Change => ({
  statement: build.insert(balanceMovements).values(row),
  rows: 1,
})

/** @param beforeId see `idBound` */
export const forgetMovements = (beforeId: string): Change => ({
  statement: build.delete(balanceMovements).where(lt(balanceMovements.id, beforeId)),
  rows: 'any',
})

/** Falls that no sweep has looked behind yet. */
export const suspectAccounts = () => build.select().from(balanceAccounts).where(isNotNull(balanceAccounts.suspectFrom))

/** A sweep has looked behind the falls since that instant; not behind one that was judged after the sweep began. */
export const clearSuspicion = (suspectFrom: number, begunAt: number): Change => ({
  statement: build
    .update(balanceAccounts)
    .set({ suspectFrom: null, version: sql`${balanceAccounts.version} + 1` })
    .where(and(gte(balanceAccounts.suspectFrom, suspectFrom), lte(balanceAccounts.judgedAt, begunAt))),
  rows: 'any',
})

/** The VIP tier as last stated: a reading without one says nothing about it. */
export const latestTier = () =>
  build
    .select({ tier: balanceReadings.tier })
    .from(balanceReadings)
    .where(isNotNull(balanceReadings.tier))
    .orderBy(desc(balanceReadings.readAt), desc(balanceReadings.id))
    .limit(1)

/** Forgets readings before an instant, and those beyond the newest `keptMax`. */
export const forgetBalanceReadings = (before: number, keptMax: number): Change => ({
  statement: build
    .delete(balanceReadings)
    .where(
      or(
        lt(balanceReadings.readAt, before),
        lt(
          balanceReadings.readAt,
          sql`(select r.read_at from ${balanceReadings} r order by r.read_at desc limit 1 offset ${keptMax - 1})`,
        ),
      ),
    ),
  rows: 'any',
})
