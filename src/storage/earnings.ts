/** Earnings: what orders brought and cost, by the time at which they were taken. `domain/earnings` says what counts. */
import { and, asc, gte, lt, lte, sql } from 'drizzle-orm'
import { hourOf } from '../domain/activity.ts'
import type { EarningSums } from '../domain/earnings.ts'
import { instantOfId } from '../ids.ts'
import type { Change } from './database.ts'
import { earnings, monthlyEarnings, staleEarnings } from './schema.ts'
import { build, change, inWhole, statement, uniqueKey } from './statement.ts'
import { deleteBy, firstBy, insertOnce } from './table.ts'

export type StaleTime = typeof staleEarnings.$inferSelect

/** Sums of a store or of one of its products. */
export interface StoreSums extends EarningSums {
  store: string
}
export interface ProductSums extends StoreSums {
  productId: string
}

/**
 * Marks a time as out of date. A process that sums this time at the same moment waits for this commit, or its own commit is stale:
 * both change the same row.
 */
export const markStale = change(1, (row: StaleTime) =>
  build
    .insert(staleEarnings)
    .values(row)
    .onConflictDoUpdate({
      target: uniqueKey(staleEarnings.at, staleEarnings.endAt),
      set: { dueAt: sql`excluded.due_at`, changes: sql`${staleEarnings.changes} + 1` },
    }),
)

/** Belongs into each commit that changes what an order brought or cost. */
export const earningsChanged = (orderId: string): Change => {
  const at = hourOf(instantOfId(orderId))
  return markStale({ at, endAt: at + 3_600_000, dueAt: 0, changes: 1 })
}

/** Marks a time that is to be summed again later, unless it is marked already. */
export const markLater = insertOnce(staleEarnings)

/** The times to be summed now, the newest first. */
export const dueStale = statement((now: number, limit: number) =>
  build
    .select()
    .from(staleEarnings)
    .where(lte(staleEarnings.dueAt, now))
    .orderBy(sql`${staleEarnings.at} desc`)
    .limit(limit),
)

/** The oldest time of a span that is to be summed now. */
export const staleBetween = firstBy(staleEarnings, ['endAt >', 'at <', 'dueAt <='], asc(staleEarnings.at))

/** Takes the mark of a time away. Stale when an order of that time has changed since the mark was read. */
export const takeMark = deleteBy(staleEarnings, ['at', 'endAt', 'changes'], 1)

/** A row of a day that was summed as a whole. */
export const sumOfDay = firstBy(earnings, ['at', 'endAt'])

const columns = sql.raw(
  'store, product_id, currency, keys, unpriced, revenue_minor, charged_minor, refunded_minor, owed_back_minor',
)

/** Sums the orders of a time, by store, product and currency. @param from the least id of such an order; `to`: the least id after */
export const sumOrders = change(
  'any',
  ({ at, until, from, to }: { at: number; until: number; from: string; to: string }) =>
    sql`insert into earnings (at, end_at, ${columns})
  select cast(${at} as bigint), cast(${until} as bigint), store, product_id, currency,
    sum(keys), sum(unpriced), sum(revenue), sum(charged), sum(refunded), sum(owed_back)
  from (
    select store, product_id, currency, keys, case when price is null then keys else 0 end as unpriced,
      coalesce(keys * price, 0) as revenue, 0 as charged, 0 as refunded, 0 as owed_back
    from (
      select o.store, coalesce(l.product_id, had.product_id) as product_id, l.unit_price_minor as price,
        coalesce(case when l.unit_price_minor is not null then l.currency end, had.currency) as currency,
        case when e.standing in ('cancelled', 'unpaid') then 0 when el.units < had.keys then el.units else had.keys end as keys
      from (
        select p.order_id, p.line_id, min(p.supplier_product_id) as product_id, min(p.currency) as currency, count(*) as keys
        from purchases p join licence_keys k on k.purchase_id = p.id
        where p.order_id >= ${from} and p.order_id < ${to} and p.claim is null and k.handed_over_at is not null
        group by p.order_id, p.line_id
      ) had
      join store_orders o on o.id = had.order_id
      join store_order_lines l on l.id = had.line_id
      left join entitlements e on e.order_id = had.order_id
      left join entitlement_lines el on el.store = o.store and el.reference = o.reference and el.line = l.line
    ) sold
    union all
    select o.store, coalesce(l.product_id, p.supplier_product_id), p.currency, 0, 0, 0, p.amount_minor,
      case when p.refunded_at is not null then p.amount_minor else 0 end,
      case when p.state = 'failed' and p.refunded_at is null and p.written_off_at is null then p.amount_minor else 0 end
    from purchases p join store_orders o on o.id = p.order_id join store_order_lines l on l.id = p.line_id
    where p.order_id >= ${from} and p.order_id < ${to} and p.amount_minor <> 0
  ) all_of_it
  group by store, product_id, currency
  having sum(keys) <> 0 or sum(charged) <> 0`,
)

/** Sums the products of each store, once `sumOrders` has summed the orders of the time. */
export const sumProducts = change(
  'any',
  (at: number, until: number) =>
    sql`insert into earnings (at, end_at, ${columns})
  select at, end_at, store, '', currency, sum(keys), sum(unpriced), sum(revenue_minor), sum(charged_minor), sum(refunded_minor), sum(owed_back_minor)
  from earnings where at = ${at} and end_at = ${until} and product_id <> ''
  group by at, end_at, store, currency`,
)

const names = ['keys', 'unpriced', 'revenue_minor', 'charged_minor', 'refunded_minor', 'owed_back_minor']
const moved = (sign: '+' | '-') =>
  change(
    'any',
    (month: number, at: number, until: number) =>
      sql`insert into monthly_earnings (at, ${columns})
    select cast(${month} as bigint), store, product_id, currency, ${sql.raw(names.map((name) => `${sign}sum(${name})`).join(', '))}
    from earnings where at >= ${at} and at < ${until} and product_id <> ''
    group by store, product_id, currency
    on conflict (at, store, product_id, currency) do update set
      ${sql.raw(names.map((name) => `${name} = monthly_earnings.${name} + excluded.${name}`).join(', '))}`,
  )
/** Adds the products of a time to their month, and takes them away again before the time is summed again. */
export const addToMonth = moved('+')
export const takeFromMonth = moved('-')

export const forgetSums = deleteBy(earnings, ['at >=', 'at <'])

const sums = {
  keys: sql<number>`sum(${earnings.keys})`.as('keys'),
  unpriced: sql<number>`sum(${earnings.unpriced})`.as('unpriced'),
  revenueMinor: sql<number>`sum(${earnings.revenueMinor})`.as('revenue_minor'),
  chargedMinor: sql<number>`sum(${earnings.chargedMinor})`.as('charged_minor'),
  refundedMinor: sql<number>`sum(${earnings.refundedMinor})`.as('refunded_minor'),
  owedBackMinor: sql<number>`sum(${earnings.owedBackMinor})`.as('owed_back_minor'),
}

/** What stores earned on each day between two instants. */
export const earnedByDay = statement((from: number, to: number, store?: string) =>
  build
    .select({
      day: sql<number>`${earnings.at} - ${earnings.at} % 86400000`.as('day'),
      store: earnings.store,
      currency: earnings.currency,
      ...sums,
    })
    .from(earnings)
    .where(
      and(
        sql`${earnings.productId} = ''`,
        gte(earnings.at, from),
        lt(earnings.at, to),
        store === undefined ? undefined : sql`${earnings.store} = ${store}`,
      ),
    )
    .groupBy(sql`1`, earnings.store, earnings.currency),
)

interface Asked {
  /** Only this store. */
  store?: string | undefined
  limit: number
  offset: number
}

const ofStore = (store: string | undefined) => (store === undefined ? sql`` : sql`and store = ${store}`)
const isSomething = sql.raw('(keys <> 0 or charged_minor <> 0)')
const byMargin = sql.raw(
  'order by (revenue_minor - charged_minor + refunded_minor + owed_back_minor) desc, product_id desc, store desc, currency desc',
)

/** What products earned in a calendar month, the largest margin first. */
export const productsOfMonth = statement(
  ({ month, store, limit, offset }: Asked & { month: number }) =>
    sql<ProductSums>`select ${columns} from monthly_earnings where at = ${month} ${ofStore(store)} and ${isSomething}
    ${byMargin} limit ${limit} offset ${offset}`,
)

/** All currencies in which some products earned something in a calendar month. */
export const monthOfProducts = statement(({ month, ids }: { month: number; ids: readonly string[] }) =>
  build
    .select()
    .from(monthlyEarnings)
    .where(and(sql`${monthlyEarnings.at} = ${month}`, inWhole(monthlyEarnings.productId, ids))),
)

const productsBetween = (from: number, to: number, where = sql``) => sql`
  select store, product_id, currency, ${sql.raw(names.map((name) => `sum(${name}) as ${name}`).join(', '))} from earnings
  where at >= ${from} and at < ${to} and product_id <> '' ${where} group by store, product_id, currency`

/** What products earned between two beginnings of days, the largest margin first. */
export const productsOfSpan = statement(
  ({ from, to, store, limit, offset }: Asked & { from: number; to: number }) =>
    sql<ProductSums>`select * from (${productsBetween(from, to, ofStore(store))}) spans where ${isSomething}
    ${byMargin} limit ${limit} offset ${offset}`,
)

/** All currencies in which some products earned something between two beginnings of days. */
export const spanOfProducts = statement(
  ({ from, to, ids }: { from: number; to: number; ids: readonly string[] }) =>
    sql<ProductSums>`${productsBetween(from, to, sql`and ${inWhole(earnings.productId, ids)}`)}`,
)
