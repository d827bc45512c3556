import { and, desc, eq, gt, gte, inArray, isNotNull, isNull, lt, or, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import {
  balanceAccounts,
  balanceMovements,
  balanceReadings,
  discrepancies,
  offers,
  purchases,
  storeOrders,
} from './schema.ts'
import { build, change, statement } from './statement.ts'
import { changeSeen, countBy, deleteBy, firstBy, insertInto, page, rowsBy, setBy } from './table.ts'

export type BalanceAccount = typeof balanceAccounts.$inferSelect
export type BalanceMovement = typeof balanceMovements.$inferSelect
export type BalanceReading = typeof balanceReadings.$inferSelect

export const balanceAccount = rowsBy(balanceAccounts, ['currency'])

export const allBalanceAccounts = rowsBy(balanceAccounts, [])

export const listMovements = page(balanceMovements, ['currency'])

/** Counts purchases whose request may be on its way, or whose outcome is not known yet. */
export const countOpenOutcomes = countBy(purchases, [], inArray(purchases.state, ['sending', 'unknown']))

/** Purchases with a supplier order whose charge is not counted in a balance account yet. */
const uncounted = and(isNotNull(purchases.supplierOrderId), isNull(purchases.countedAt))

/**
 * Counts orders with an uncounted charge that a balance reading may or may not include: they were placed after it began, or
 * their amount is still to be read.
 *
 * @param youngFrom an order that was placed before this instant and has no amount yet will never get one
 */
export const countUncertainCharges = statement((readAt: number, youngFrom: number) =>
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
    ),
)

const chargedBefore = (readAt: number) => and(uncounted, lt(purchases.acceptedAt, readAt))
/** An amount is only ever stored in the purchase's own currency. */
const priced = (currency: string) => and(isNotNull(purchases.amountMinor), eq(purchases.currency, currency))

/** Of the uncounted orders placed before a reading, sums up the known charges, and the most that the others may cost. */
export const chargesBefore = statement((readAt: number, currency: string) =>
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
    .where(chargedBefore(readAt)),
)

/** Failed orders. The money that is owed back for them is not counted in a balance account yet. */
const failed = and(sql`${purchases.state} = 'failed'`, isNull(purchases.returnedAt))
/** Completed orders that the supplier took back. The money owed back for them is not counted in a balance account yet. */
const reversed = and(
  inArray(
    purchases.id,
    build.select({ id: discrepancies.subject }).from(discrepancies).where(eq(discrepancies.kind, 'reversed')),
  ),
  isNull(purchases.returnedAt),
)
const owedBack = { failed, reversed } as const
export type OwedBack = keyof typeof owedBack

const returnsOf = (kind: OwedBack) =>
  statement((readAt: number) =>
    build
      .select({
        count: sql<number>`count(*)`.as('count'),
        returnsMinor: sql<number>`coalesce(sum(${purchases.amountMinor}), 0)`.as('returns_minor'),
      })
      .from(purchases)
      .where(and(owedBack[kind], lt(purchases.acceptedAt, readAt))),
  )
const returns = { failed: returnsOf('failed'), reversed: returnsOf('reversed') }
export const returnsBefore = (kind: OwedBack, readAt: number) => returns[kind](readAt)

/** The most that purchases in review may have cost. Purchases whose supplier order is known do not count. */
export const unsettledMinor = statement(() =>
  build
    .select({
      total:
        sql<number>`coalesce(sum(case when ${purchases.supplierOrderId} is null then ${purchases.reservedMinor} else 0 end), 0)`.as(
          'total',
        ),
    })
    .from(purchases)
    .where(eq(purchases.state, 'review')),
)

/** Marks the charges of `chargesBefore` as counted. Stale when their number has changed. */
export const countCharges = change(
  (_readAt, _now, count) => count,
  (readAt: number, now: number, _count: number | 'any') =>
    build.update(purchases).set({ countedAt: now }).where(chargedBefore(readAt)),
)

/** Marks the returns of `returnsBefore` as counted. Stale when their number has changed. */
export const countReturns = (kind: OwedBack, readAt: number, now: number, count: number | 'any'): Change => ({
  statement: returned[kind](readAt, now),
  rows: count,
})
const markReturned = (kind: OwedBack) =>
  statement((readAt: number, now: number) =>
    build
      .update(purchases)
      .set({ returnedAt: now })
      .where(and(owedBack[kind], lt(purchases.acceptedAt, readAt))),
  )
const returned = { failed: markReturned('failed'), reversed: markReturned('reversed') }

export const insertAccount = insertInto(balanceAccounts)

/** Changes an account. Stale when another balance reading has changed the account since it was read. */
export const changeAccount = (seen: BalanceAccount, set: Partial<BalanceAccount>): Change =>
  changeAsRead(seen, { ...set, version: seen.version + 1 })
const changeAsRead = changeSeen(1, balanceAccounts, ['currency', 'version'])

export const insertMovement = insertInto(balanceMovements)

export const forgetMovements = deleteBy(balanceMovements, ['id <'])

/** Accounts with an unexplained fall of the balance whose cause no sweep has looked for yet. */
export const suspectAccounts = rowsBy(balanceAccounts, [isNotNull(balanceAccounts.suspectFrom)])

/** Notes that a sweep looked for the cause of falls since an instant. A fall judged after the sweep began stays suspect. */
export const clearSuspicion = setBy('any', balanceAccounts, ['suspectFrom >=', 'judgedAt <='], {
  suspectFrom: null,
  version: sql`${balanceAccounts.version} + 1`,
})

const newestReading = [desc(balanceReadings.readAt), desc(balanceReadings.id)]

export const latestBalance = firstBy(balanceReadings, [], ...newestReading)

/** The newest balance reading that states the VIP tier; not every reading states one. */
export const latestTier = firstBy(balanceReadings, [isNotNull(balanceReadings.tier)], ...newestReading)

export const insertBalance = insertInto(balanceReadings)

/** Forgets balance readings before an instant, those after another (a clock was ahead), and all but the newest `keptMax`. */
export const forgetBalanceReadings = change('any', (before: number, after: number, keptMax: number) =>
  build
    .delete(balanceReadings)
    .where(
      or(
        lt(balanceReadings.readAt, before),
        gt(balanceReadings.readAt, after),
        lt(
          balanceReadings.readAt,
          sql`(select r.read_at from ${balanceReadings} r order by r.read_at desc limit 1 offset ${keptMax} - 1)`,
        ),
      ),
    ),
)

/** SQLite uses the partial index of unsent purchases only where its condition is written out. */
const waitsForMoney = sql`${purchases.state} in ('planned', 'waiting') and ${purchases.holdReason} = 'balance'`
const isCostKnown = and(eq(offers.productId, purchases.supplierProductId), eq(offers.currency, purchases.currency))
const needsMinor = sql<number>`${offers.costMinor} * ${purchases.quantity}`

/** What purchases that wait for money need by the present cost of their offers, by currency. */
export const neededMoney = statement(() =>
  build
    .select({
      currency: purchases.currency,
      needsMinor: sql<number>`coalesce(sum(${needsMinor}), 0)`.as('needs_minor'),
      orders: sql<number>`count(distinct ${purchases.orderId})`.as('orders'),
    })
    .from(purchases)
    .innerJoin(offers, isCostKnown)
    .where(waitsForMoney)
    .groupBy(purchases.currency),
)

const subject = {
  id: purchases.id,
  store: storeOrders.store,
  reference: storeOrders.reference,
  number: storeOrders.number,
  sku: offers.sku,
  name: offers.name,
  currency: purchases.currency,
}

/** The purchases that wait for money, those that have waited longest first. */
export const waitingForMoney = statement((limit: number) =>
  build
    .select({ ...subject, since: purchases.createdAt, amountMinor: needsMinor.as('amount_minor') })
    .from(purchases)
    .innerJoin(storeOrders, eq(storeOrders.id, purchases.orderId))
    .innerJoin(offers, isCostKnown)
    .where(waitsForMoney)
    .orderBy(purchases.id)
    .limit(limit),
)

/** Failed purchases whose charge is owed back, but not counted as that in a balance account yet. */
export const uncountedReturns = statement((currency: string) =>
  build
    .select({ total: sql<number>`coalesce(sum(${purchases.amountMinor}), 0)`.as('total') })
    .from(purchases)
    .where(and(failed, eq(purchases.currency, currency))),
)

/** Purchases that failed after they were charged, newest first. */
export const failedCharges = statement((currency: string, limit: number) =>
  build
    .select({
      ...subject,
      supplierOrderId: purchases.supplierOrderId,
      since: purchases.changedAt,
      amountMinor: sql<number>`${purchases.amountMinor}`.as('amount_minor'),
    })
    .from(purchases)
    .innerJoin(storeOrders, eq(storeOrders.id, purchases.orderId))
    .leftJoin(offers, eq(offers.productId, purchases.supplierProductId))
    // SQLite uses the partial index only where its condition is written out.
    .where(and(sql`${purchases.state} = 'failed' and ${purchases.amountMinor} > 0`, eq(purchases.currency, currency)))
    .orderBy(desc(purchases.id))
    .limit(limit),
)
