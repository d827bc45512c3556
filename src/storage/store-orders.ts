import { and, asc, desc, eq, inArray, isNull, lt, ne, notExists, notInArray, sql } from 'drizzle-orm'
import { finalStates } from '../domain/purchase.ts'
import type { Change } from './database.ts'
import { licenceKeys, purchases, storeOrderLines, storeOrders } from './schema.ts'
import { bind, bindList, build, rowInsert, rowUpdate } from './statement.ts'

export type StoreOrder = typeof storeOrders.$inferSelect

const { placeholder } = sql

const byId = build
  .select()
  .from(storeOrders)
  .where(eq(storeOrders.id, placeholder('id')))
export const storeOrderById = (id: string) => bind(byId, { id })

const byReference = build
  .select()
  .from(storeOrders)
  .where(and(eq(storeOrders.store, placeholder('store')), eq(storeOrders.reference, placeholder('reference'))))
export const storeOrderByReference = (store: string, reference: string) => bind(byReference, { store, reference })

/** Orders of any store under a reference: an operator may not know the store. */
export const storeOrdersByReference = (reference: string) =>
  build.select().from(storeOrders).where(eq(storeOrders.reference, reference)).limit(10)

/** A page of orders, newest first; `before` is the id of the last one seen. */
export const listStoreOrders = (filter: { store?: string; before?: string; limit: number }) =>
  build
    .select()
    .from(storeOrders)
    .where(
      and(
        filter.store ? eq(storeOrders.store, filter.store) : undefined,
        filter.before ? lt(storeOrders.id, filter.before) : undefined,
      ),
    )
    .orderBy(desc(storeOrders.id))
    .limit(filter.limit)

const linesOf = bindList((orderIds) =>
  build
    .select()
    .from(storeOrderLines)
    .where(inArray(storeOrderLines.orderId, orderIds))
    .orderBy(asc(storeOrderLines.id)),
)
export const linesOfOrders = (orderIds: string[]) => linesOf(orderIds)

const oneLine = build
  .select()
  .from(storeOrderLines)
  .where(eq(storeOrderLines.id, placeholder('id')))
export const lineById = (id: string) => bind(oneLine, { id })

const nameOf = build
  .select({ store: storeOrders.store, reference: storeOrders.reference, line: storeOrderLines.line })
  .from(storeOrderLines)
  .innerJoin(storeOrders, eq(storeOrders.id, storeOrderLines.orderId))
  .where(eq(storeOrderLines.id, placeholder('lineId')))
/** What the keys of a line's purchases are derived from. */
export const nameOfLine = (lineId: string) => bind(nameOf, { lineId })

const nothingMoves = notExists(
  build
    .select({ id: purchases.id })
    .from(purchases)
    .where(and(eq(purchases.orderId, storeOrders.id), notInArray(purchases.state, [...finalStates]))),
)

const ended = build
  .select({ id: storeOrders.id })
  .from(storeOrders)
  .where(and(isNull(storeOrders.closedAt), nothingMoves))
  .limit(placeholder('most'))
/** Orders in which nothing moves any more and whose store has not been told so. */
export const ordersToClose = (limit: number) => bind(ended, { most: limit })

const storeOrdersRow = rowInsert(storeOrders)
export const insertStoreOrder = (row: typeof storeOrders.$inferInsert): Change => ({
  statement: storeOrdersRow(row),
  rows: 1,
})

const storeOrderLinesRow = rowInsert(storeOrderLines)
export const insertLine = (row: typeof storeOrderLines.$inferInsert): Change => ({
  statement: storeOrderLinesRow(row),
  rows: 1,
})

export const markCancelRequested = (id: string, now: number): Change => ({
  statement: build
    .update(storeOrders)
    .set({ cancelRequestedAt: now })
    .where(and(eq(storeOrders.id, id), isNull(storeOrders.cancelRequestedAt))),
  rows: 'any',
})

/** Asks for the cancellation of all purchases of an order whose keys the store lacks; unknown ones are looked up now. */
export const requestCancellation = (orderId: string, now: number): Change => ({
  statement: build
    .update(purchases)
    .set({
      cancelRequestedAt: now,
      refreshAt: sql`case when ${purchases.state} = 'unknown' then ${now} else ${purchases.refreshAt} end`,
      version: sql`${purchases.version} + 1`,
      changedAt: now,
    })
    .where(and(eq(purchases.orderId, orderId), isNull(purchases.cancelRequestedAt), ne(purchases.state, 'fulfilled'))),
  rows: 'any',
})

/** Gives a purchase the cancellation of its order, if the store has asked for one by now. */
export const carryCancellation = (purchaseId: string): Change => ({
  statement: build
    .update(purchases)
    .set({
      cancelRequestedAt: sql`(select cancel_requested_at from store_orders where id = ${purchases.orderId})`,
    })
    .where(eq(purchases.id, purchaseId)),
  rows: 1,
})

/** Guarded on being open, so that the closing is told once; and on nothing moving, since a retry may have come between. */
export const markClosed = (id: string, now: number): Change => ({
  statement: ifEnded({ closedAt: now }, { id }),
  rows: 1,
})
const ifEnded = rowUpdate(
  storeOrders,
  and(eq(storeOrders.id, placeholder('id')), isNull(storeOrders.closedAt), nothingMoves),
)

export const markReopened = (id: string): Change => ({
  statement: build.update(storeOrders).set({ closedAt: null }).where(eq(storeOrders.id, id)),
  rows: 'any',
})

export type LicenceKey = typeof licenceKeys.$inferSelect

const ofPurchase = build
  .select()
  .from(licenceKeys)
  .where(eq(licenceKeys.purchaseId, sql.placeholder('purchaseId')))
  .orderBy(asc(licenceKeys.ordinal))
export const keysOfPurchase = (purchaseId: string) => bind(ofPurchase, { purchaseId })

const ofPurchases = bindList((purchaseIds) =>
  build
    .select()
    .from(licenceKeys)
    .where(inArray(licenceKeys.purchaseId, purchaseIds))
    .orderBy(asc(licenceKeys.purchaseId), asc(licenceKeys.ordinal)),
)
export const keysOfPurchases = (purchaseIds: string[]) => ofPurchases(purchaseIds)

const ofHandOver = build
  .select()
  .from(licenceKeys)
  .where(eq(licenceKeys.handOverId, sql.placeholder('outboxId')))
  .orderBy(asc(licenceKeys.ordinal))
export const keysOfHandOver = (outboxId: string) => bind(ofHandOver, { outboxId })

const byBlindIndex = bindList((blindIndexes) =>
  build
    .select({ purchaseId: licenceKeys.purchaseId, ordinal: licenceKeys.ordinal, blindIndex: licenceKeys.blindIndex })
    .from(licenceKeys)
    .where(inArray(licenceKeys.blindIndex, blindIndexes)),
)
/** Which purchases hold one of these keys already. */
export const keysByBlindIndex = (blindIndexes: Buffer[]) => byBlindIndex(blindIndexes)

const licenceKeysRow = rowInsert(licenceKeys)
export const insertKey = (row: typeof licenceKeys.$inferInsert): Change => ({
  statement: licenceKeysRow(row),
  rows: 1,
})

/** Part of a commit that stores keys: stale when another purchase has stored one of them in the meantime. */
export const assertNotElsewhere = (purchaseId: string, blindIndexes: Buffer[]): Change => ({
  statement: elsewhere(blindIndexes, { purchaseId }),
  rows: 0,
})
const elsewhere = bindList((blindIndexes) =>
  build
    .update(licenceKeys)
    .set({ storedAt: sql`${licenceKeys.storedAt}` })
    .where(
      and(inArray(licenceKeys.blindIndex, blindIndexes), ne(licenceKeys.purchaseId, sql.placeholder('purchaseId'))),
    ),
)

/** Gives one key to a hand-over; a key is in one hand-over at most. */
export const assignKey = (purchaseId: string, ordinal: number, outboxId: string): Change => ({
  statement: build
    .update(licenceKeys)
    .set({ handOverId: outboxId })
    .where(
      and(eq(licenceKeys.purchaseId, purchaseId), eq(licenceKeys.ordinal, ordinal), isNull(licenceKeys.handOverId)),
    ),
  rows: 1,
})

export const markHandedOver = (outboxId: string, now: number): Change => ({
  statement: ofOutbox({ handedOverAt: now }, { outboxId }),
  rows: 'any',
})
const ofOutbox = rowUpdate(
  licenceKeys,
  and(eq(licenceKeys.handOverId, sql.placeholder('outboxId')), isNull(licenceKeys.handedOverAt)),
)
