/** The orders whose customers may wait for keys, and what `domain/waiting` needs to know of them. */
import { and, eq, sql } from 'drizzle-orm'
import { ALWAYS_FRESH } from './entitlements.ts'
import { entitlementLines, entitlements, outbox, storeOrderLines, storeOrders } from './schema.ts'
import { build, inWhole, statement } from './statement.ts'

/**
 * Whether an order that is paid, or held in its shop, has a line with fewer keys at the store than its customer is entitled to.
 * An order that was fulfilled in the shop before it was read does not count. In the statement `o` is the order.
 */
const lacksKeys = sql`exists (
  select 1 from entitlements e
  join entitlement_lines el on el.store = e.store and el.reference = e.reference
  join store_order_lines sl on sl.order_id = o.id and sl.line = el.line
  where e.order_id = o.id and e.standing in ('paid', 'held') and e.is_for_person = 0 and sl.product_id is not null
    and el.units > (
      select count(*) from purchases p join licence_keys k on k.purchase_id = p.id
      where p.line_id = sl.id and p.claim is null and k.handed_over_at is not null
    )
)`

/** Whether something of an order is out of the ordinary. */
const isTroubled = sql`(
  exists (
    select 1 from purchases p where p.order_id = o.id
      and (p.hold_reason is not null or p.state in ('unknown', 'review', 'rejected', 'failed', 'cancelled'))
  )
  or exists (select 1 from outbox u where u.order_id = o.id and u.attempts > 0 and u.state <> 'done')
)`

/** Of so many closed orders without all keys it is looked up whether the shop has refunded them: that takes milliseconds. */
const CLOSED_MAX = 2_000

export interface WaitingFilter {
  /** Of closed orders, only those of these stores count: a reading of their orders shows refunds. */
  shops: readonly string[]
  /** Closed orders with a smaller id are left out. */
  from: string
  /** An open order that came in later counts only where something of it is out of the ordinary. */
  before: number
  limit: number
}

/**
 * The orders whose customers may wait, the oldest first:
 *
 * - open orders, by their index;
 * - orders of shops that were closed without all keys, the newest `CLOSED_MAX`, by their index, which also has the stores;
 * - orders whose store does not know yet that units will not come, by the index of such updates;
 * - orders with units that no person has agreed to buy, by the index of such lines.
 *
 * So no fulfilled order is read, however many there are.
 */
export const ordersWaiting = statement(({ shops, from, before, limit }: WaitingFilter) => {
  const some = (rows: ReturnType<typeof sql>) => sql`select * from (${rows} limit ${limit}) part`
  const open = sql`select o.id from store_orders o
    where o.closed_at is null and (o.received_at <= ${before} or ${isTroubled}) and ${lacksKeys} order by o.id`
  // SQLite uses the partial indexes only where their conditions are written out, and not bound.
  const closed = sql`select o.id from (
      select id, store from store_orders
      where closed_state <> 'fulfilled' and closed_state in ('failed', 'partly_fulfilled', 'cancelled') and id >= ${from}
      order by id desc limit ${sql.raw(String(CLOSED_MAX))}
    ) o where ${inWhole(sql`o.store`, shops)} and ${lacksKeys} order by o.id`
  const untold = sql`select o.id from outbox u join store_orders o on o.id = u.order_id
    where u.type = 'line.failed' and u.state <> 'done' and ${lacksKeys}`
  const added = sql`select o.id from entitlement_lines g
    join entitlements ge on ge.store = g.store and ge.reference = g.reference
    join store_orders o on o.id = ge.order_id
    where g.units > g.granted and ${lacksKeys}`
  return sql<{ id: string }>`select id from (
    ${some(open)} union ${some(closed)} union ${some(untold)} union ${some(added)}
  ) found order by id limit ${limit}`
})

/** The lines of orders that are listings, each with its order, and with what its customer is entitled to. */
export const entitledLines = statement(({ orders }: { orders: readonly string[] }) =>
  build
    .select({
      orderId: storeOrders.id,
      store: storeOrders.store,
      reference: storeOrders.reference,
      number: storeOrders.number,
      receivedAt: storeOrders.receivedAt,
      standing: entitlements.standing,
      standingSince: entitlements.standingSince,
      because: entitlements.because,
      isForPerson: entitlements.isForPerson,
      isBackend:
        sql<number>`(case when ${entitlements.readAt} = ${sql.raw(String(ALWAYS_FRESH))} then 1 else 0 end)`.as(
          'is_backend',
        ),
      lineId: storeOrderLines.id,
      line: storeOrderLines.line,
      sku: storeOrderLines.sku,
      productId: storeOrderLines.productId,
      unitPriceMinor: storeOrderLines.unitPriceMinor,
      currency: storeOrderLines.currency,
      units: entitlementLines.units,
      granted: entitlementLines.granted,
    })
    .from(storeOrders)
    .innerJoin(entitlements, eq(entitlements.orderId, storeOrders.id))
    .innerJoin(storeOrderLines, eq(storeOrderLines.orderId, storeOrders.id))
    .innerJoin(
      entitlementLines,
      and(
        eq(entitlementLines.store, entitlements.store),
        eq(entitlementLines.reference, entitlements.reference),
        eq(entitlementLines.line, storeOrderLines.line),
      ),
    )
    .where(and(inWhole(storeOrders.id, orders), sql`${storeOrderLines.productId} is not null`))
    .orderBy(storeOrders.id, storeOrderLines.id),
)

/** The updates of orders that their store has not taken, and those by which it knows that units will not come. */
export const updatesOfWaiting = statement(({ orders }: { orders: readonly string[] }) =>
  build
    .select({
      id: outbox.id,
      type: outbox.type,
      payload: outbox.payload,
      state: outbox.state,
      attempts: outbox.attempts,
      notBefore: outbox.notBefore,
      lastError: outbox.lastError,
    })
    .from(outbox)
    .where(and(inWhole(outbox.orderId, orders), sql`(${outbox.state} <> 'done' or ${outbox.type} = 'line.failed')`))
    .orderBy(outbox.id),
)
