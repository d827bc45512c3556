import { and, asc, eq, gt, sql } from 'drizzle-orm'
import { lateOrders, storeReadings } from './schema.ts'
import { build, change, statement } from './statement.ts'

export type StoreReading = typeof storeReadings.$inferSelect
export type LateOrder = typeof lateOrders.$inferSelect

export const storeReadingOf = statement((store: string) =>
  build.select().from(storeReadings).where(eq(storeReadings.store, store)),
)

export const allStoreReadings = statement(() => build.select().from(storeReadings))

/**
 * Stores whose orders are to be read now.
 *
 * @param latest a later instant was set by a clock that has gone back since
 */
export const storesToPoll = statement(
  (now: number, latest: number, latestLate: number) => sql<{ store: string }>`
    select store from store_readings where orders_due_at <= ${now} or orders_due_at > ${latest}
    union select store from late_orders where not_before <= ${now} or not_before > ${latestLate}`,
)

/** A store is connected once; a second note of it changes nothing. */
export const connectStore = change('any', (store: string, now: number) =>
  build.insert(storeReadings).values({ store, connectedAt: now, ordersDueAt: now }).onConflictDoNothing(),
)

export const putStoreReading = change(1, (store: string, set: Partial<Omit<StoreReading, 'store' | 'connectedAt'>>) =>
  build.update(storeReadings).set(set).where(eq(storeReadings.store, store)),
)

/** Lets the products of all stores count as read no later than this, so that they are read again earlier. */
export const ageVariants = change('any', (readAt: number) =>
  build.update(storeReadings).set({ variantsReadAt: readAt }).where(gt(storeReadings.variantsReadAt, readAt)),
)

const ofStore = ({ store, reference }: Pick<LateOrder, 'store' | 'reference'>) =>
  and(eq(lateOrders.store, store), eq(lateOrders.reference, reference))

export const lateOrdersOf = statement((store: string) =>
  build.select().from(lateOrders).where(eq(lateOrders.store, store)).orderBy(asc(lateOrders.notBefore)),
)

export const lateOrderOf = statement((store: string, reference: string) =>
  build.select().from(lateOrders).where(ofStore({ store, reference })),
)

/** An order that is late already stays as it is. */
export const insertLateOrder = change('any', (row: LateOrder) =>
  build.insert(lateOrders).values(row).onConflictDoNothing(),
)

export const postponeLateOrder = change('any', ({ store, reference, ...set }: LateOrder) =>
  build.update(lateOrders).set(set).where(ofStore({ store, reference })),
)

export const dropLateOrder = change('any', (store: string, reference: string) =>
  build.delete(lateOrders).where(ofStore({ store, reference })),
)

/** None of the late orders of a store waits longer than until this instant. */
export const hastenLateOrders = change('any', (store: string, at: number) =>
  build
    .update(lateOrders)
    .set({ notBefore: at })
    .where(and(eq(lateOrders.store, store), gt(lateOrders.notBefore, at))),
)
