import {
  and,
  asc,
  between,
  desc,
  eq,
  exists,
  getTableColumns,
  inArray,
  isNotNull,
  isNull,
  lte,
  ne,
  notExists,
  notInArray,
  type SQL,
  sql,
} from 'drizzle-orm'
import { finalStates } from '../domain/purchase.ts'
import type { OrderState } from '../domain/store-order.ts'
import { entitlements, licenceKeys, purchases, storeOrderLines, storeOrders } from './schema.ts'
import { build, change, inWhole, notByIndex, statement } from './statement.ts'
import {
  beginning,
  columnsBy,
  countBy,
  insertInto,
  newestFirst,
  type Place,
  page,
  pageBy,
  rowsBy,
  setBy,
  setOne,
  someBy,
  stampOnce,
  within,
} from './table.ts'

export type StoreOrder = typeof storeOrders.$inferSelect
export type Line = typeof storeOrderLines.$inferSelect

export const storeOrderById = rowsBy(storeOrders, ['id'])

export const storeOrderByReference = rowsBy(storeOrders, ['store', 'reference'])

/** True for every order. It names all stores that have orders, so that SQLite can use the index on store and reference. */
const anyStore = sql`${storeOrders.store} in (
  with recursive stores (store) as (
    select min(store) from store_orders
    union all
    select (select min(store) from store_orders where store > stores.store) from stores where stores.store is not null
  )
  select store from stores
)`

/** Orders of any store under a reference: an operator may not know the store. */
export const storeOrdersByReference = statement((reference: string) =>
  build
    .select()
    .from(storeOrders)
    .where(and(anyStore, eq(storeOrders.reference, reference)))
    .limit(10),
)

/** Orders of any store under a number of theirs. A `#` at its beginning may be left out. */
export const storeOrdersByNumber = statement((number: string) =>
  build.select().from(storeOrders).where(sql`${storeOrders.number} in (${number}, '#' || ${number})`).limit(10),
)

/** Orders whose reference (or number) begins with a text, in small letters and without a `#`. */
export const ordersByReference = beginning(storeOrders, sql`ltrim(lower(${storeOrders.reference}), '#')`)
export const ordersByNumber = beginning(storeOrders, sql`ltrim(lower(${storeOrders.number}), '#')`, {
  where: isNotNull(storeOrders.number),
})

/** Lists orders, newest first. A filter may ask for a store, or for the state that was reported to the store. */
export const listStoreOrders = page(storeOrders, ['store', 'closedState'])

/** Counts all orders by the state that was reported to their store; null: the order is open. Reads a million rows in a second. */
export const countStoreOrders = countBy(storeOrders, ['closedState'])

export interface OrderFilter extends Place {
  store?: string | undefined
  /** Only orders with this SKU in one of their lines. */
  sku?: string | undefined
}

const newestOrders = ({ store, sku, ...place }: OrderFilter, state: SQL | undefined) =>
  build
    .select()
    .from(storeOrders)
    .where(
      and(
        state,
        // Not by the index of the store, because the index of the state finds fewer orders.
        store === undefined ? undefined : sql`${notByIndex(storeOrders.store)} = ${store}`,
        sku === undefined
          ? undefined
          : sql`exists (select 1 from store_order_lines where sku = ${sku} and order_id = ${storeOrders.id})`,
        within(storeOrders.id, place),
      ),
    )
    .orderBy(newestFirst(storeOrders.id, place))
    .limit(place.limit)

/** A page of the orders that are not closed, oldest first. */
export const openOrders = pageBy(storeOrders, 'id', [], isNull(storeOrders.closedAt))

/** Orders that are not closed, newest first. */
export const listOpenOrders = statement((filter: OrderFilter) => newestOrders(filter, isNull(storeOrders.closedAt)))

/** Orders that were closed in a state other than `fulfilled`, newest first. */
export const listUnfulfilledOrders = statement((state: OrderState, filter: OrderFilter) =>
  newestOrders(
    filter,
    // SQLite uses the partial index of unfulfilled orders only where the value is written out, and not bound.
    and(sql`${storeOrders.closedState} <> 'fulfilled'`, eq(storeOrders.closedState, state)),
  ),
)

/** Orders that a name leads to: the store's reference or number, the supplier's order, or an id or reference of ours. */
export const storeOrdersNamed = statement((name: string) =>
  build
    .select()
    .from(storeOrders)
    .where(
      inArray(
        storeOrders.id,
        sql`(
          select id from store_orders where ${anyStore} and reference = ${name}
          union all select id from store_orders where number in (${name}, '#' || ${name})
          union all select ${name}
          union all select order_id from purchases where supplier_order_id = ${name}
          union all select order_id from purchases where external_order_id = ${name}
          union all select order_id from purchases where id = ${name}
        )`,
      ),
    )
    .orderBy(desc(storeOrders.id))
    .limit(10),
)

/**
 * Orders with a SKU in one of their lines, newest first.
 *
 * @param filter `closedState` may only be the state of most orders. `listUnfulfilledOrders` is for the rare states
 */
export const ordersOfSku = statement(
  (
    sku: string,
    { store, closedState, ...place }: Omit<OrderFilter, 'sku'> & { closedState?: 'fulfilled' | undefined },
  ) =>
    build
      .select(getTableColumns(storeOrders))
      .from(storeOrderLines)
      // Each line has its order: to count reads no order, because SQLite leaves out a left join that nothing uses.
      .leftJoin(storeOrders, eq(storeOrders.id, storeOrderLines.orderId))
      .where(
        and(
          eq(storeOrderLines.sku, sku),
          // An order whose lines share a SKU comes once.
          sql`not exists (
            select 1 from store_order_lines earlier
            where earlier.sku = ${sku} and earlier.order_id = ${storeOrderLines.orderId} and earlier.id < ${storeOrderLines.id}
          )`,
          within(storeOrderLines.orderId, place),
          store === undefined ? undefined : sql`${notByIndex(storeOrders.store)} = ${store}`,
          closedState === undefined ? undefined : sql`${notByIndex(storeOrders.closedState)} = ${closedState}`,
        ),
      )
      .orderBy(newestFirst(storeOrderLines.orderId, place))
      .limit(place.limit) as unknown as ReturnType<typeof newestOrders>,
)

/** The references of orders in their stores. */
export const referencesOfOrders = columnsBy(storeOrders, ['id', 'reference'], ['id in'])

export const linesOfOrders = rowsBy(storeOrderLines, ['orderId in'], storeOrderLines.id)

export const lineById = rowsBy(storeOrderLines, ['id'])

/** What lines are called in their stores: the names that the idempotency keys of their purchases are derived from. */
export const namesOfLines = statement((lineIds: string[]) =>
  build
    .select({
      lineId: storeOrderLines.id,
      store: storeOrders.store,
      reference: storeOrders.reference,
      line: storeOrderLines.line,
      sku: storeOrderLines.sku,
    })
    .from(storeOrderLines)
    .innerJoin(storeOrders, eq(storeOrders.id, storeOrderLines.orderId))
    .where(inArray(storeOrderLines.id, lineIds)),
)

/**
 * The orders that `mayClose` of `domain/store-order.ts` allows: each purchase is in a final state, and the store has confirmed
 * each key that began to leave.
 */
const closable = [
  notExists(
    build
      .select({ id: purchases.id })
      .from(purchases)
      .where(and(eq(purchases.orderId, storeOrders.id), notInArray(purchases.state, [...finalStates]))),
  ),
  notExists(
    build
      .select({ id: purchases.id })
      .from(purchases)
      .innerJoin(licenceKeys, eq(licenceKeys.purchaseId, purchases.id))
      .where(
        and(eq(purchases.orderId, storeOrders.id), isNotNull(licenceKeys.begunAt), isNull(licenceKeys.handedOverAt)),
      ),
  ),
]

/** Orders that may be closed and are not reported as closed, oldest first. */
export const ordersToClose = someBy(storeOrders, [isNull(storeOrders.closedAt), ...closable], storeOrders.id)

interface LateFilter {
  stores: string[]
  since: number
  before: number
  unsaid: boolean
  limit: number
}

/**
 * Open orders of these stores that are paid since this instant or longer, that have a purchase which was planned between `since`
 * and then, goes on and is not to be cancelled, and that were not reported as late yet. `unsaid`: a purchase counts only where its store
 * has heard of no hold of it.
 */
export const lateOrders = statement(({ stores, since, before, unsaid, limit }: LateFilter) =>
  build
    .select({
      id: storeOrders.id,
      store: storeOrders.store,
      receivedAt: storeOrders.receivedAt,
      paidSince: entitlements.standingSince,
    })
    .from(storeOrders)
    .innerJoin(entitlements, eq(entitlements.orderId, storeOrders.id))
    .where(
      and(
        isNull(storeOrders.closedAt),
        isNull(storeOrders.cancelRequestedAt),
        lte(storeOrders.receivedAt, before),
        eq(entitlements.standing, 'paid'),
        lte(entitlements.standingSince, before),
        inWhole(notByIndex(storeOrders.store), stores),
        exists(
          build
            .select({ id: purchases.id })
            .from(purchases)
            .where(
              and(
                eq(purchases.orderId, storeOrders.id),
                notInArray(purchases.state, [...finalStates]),
                isNull(purchases.cancelRequestedAt),
                isNull(purchases.takenBackBy),
                isNull(purchases.claim),
                between(purchases.createdAt, since, before),
                unsaid ? isNull(purchases.holdReported) : undefined,
              ),
            ),
        ),
        sql`not exists (select 1 from outbox where dedupe_key = 'late:' || ${storeOrders.id})`,
      ),
    )
    .orderBy(asc(storeOrders.id))
    .limit(limit),
)

export const insertStoreOrder = insertInto(storeOrders)

export const insertLine = insertInto(storeOrderLines)

export const markCancelRequested = stampOnce('any', storeOrders, ['id'], 'cancelRequestedAt')

const askCancellation = (of: SQL | undefined, now: number) =>
  build
    .update(purchases)
    .set({
      cancelRequestedAt: now,
      refreshAt: sql`case when ${purchases.state} = 'unknown' then ${now} else ${purchases.refreshAt} end`,
      version: sql`${purchases.version} + 1`,
      changedAt: now,
    })
    .where(and(of, isNull(purchases.cancelRequestedAt), ne(purchases.state, 'fulfilled')))

/** Asks for the cancellation of all purchases of an order that are not fulfilled. Unknown purchases are looked up now. */
export const requestCancellation = change('any', (orderId: string, now: number) =>
  askCancellation(eq(purchases.orderId, orderId), now),
)

/** Asks for the cancellation of one purchase. */
export const cancelPurchase = change('any', (id: string, now: number) => askCancellation(eq(purchases.id, id), now))

/** Sets how many units of a line were ordered in all. */
export const changeQuantity = setOne('any', storeOrderLines, ['id'], 'quantity')

/** Sets what the customer pays for a unit of a line now. */
export const changeUnitPrice = change('any', (lineId: string, unitPriceMinor: number | null, currency: string | null) =>
  build.update(storeOrderLines).set({ unitPriceMinor, currency }).where(eq(storeOrderLines.id, lineId)),
)

/** Gives a purchase the cancellation of its order, if the store has asked for one by now. */
export const carryCancellation = setBy(1, purchases, ['id'], {
  cancelRequestedAt: sql`(select cancel_requested_at from store_orders where id = ${purchases.orderId})`,
})

/** Marks an order as closed. Stale when the order is closed already, or may no longer be closed because a retry came between. */
export const markClosed = change(1, (id: string, state: OrderState, now: number) =>
  build
    .update(storeOrders)
    .set({ closedAt: now, closedState: state })
    .where(and(eq(storeOrders.id, id), isNull(storeOrders.closedAt), ...closable)),
)

export const markReopened = setBy('any', storeOrders, ['id'], { closedAt: null, closedState: null })
