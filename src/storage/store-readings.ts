import { sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { lateOrders, storeReadings } from './schema.ts'
import { build, change, statement } from './statement.ts'
import { bringForward, changeBy, deleteBy, insertOnce, rowsBy } from './table.ts'

export type StoreReading = typeof storeReadings.$inferSelect
export type LateOrder = typeof lateOrders.$inferSelect

export const storeReadingOf = rowsBy(storeReadings, ['store'])

export const allStoreReadings = rowsBy(storeReadings, [])

/**
 * Stores whose orders are to be read now.
 *
 * @param latest an instant after this was set by a clock that has gone back since
 */
export const storesToPoll = statement(
  (now: number, latest: number, latestLate: number) => sql<{ store: string }>`
    select store from store_readings where orders_due_at <= ${now} or orders_due_at > ${latest}
    union select store from late_orders where not_before <= ${now} or not_before > ${latestLate}`,
)

/** Notes when a store was connected. A second call changes nothing. */
export const connectStore = change('any', (store: string, now: number) =>
  build.insert(storeReadings).values({ store, connectedAt: now, ordersDueAt: now }).onConflictDoNothing(),
)

export const putStoreReading = changeBy(1, storeReadings, ['store'])

/** Dates the last reading of each store's products back to this instant, so that the products are read again sooner. */
export const ageVariants = bringForward(storeReadings, [], 'variantsReadAt')

export const lateOrdersOf = rowsBy(lateOrders, ['store'], lateOrders.notBefore)

export const lateOrderOf = rowsBy(lateOrders, ['store', 'reference'])

/** Notes a late order. An order that is noted already stays as it is. */
export const insertLateOrder = insertOnce(lateOrders)

export const postponeLateOrder = ({ store, reference, ...set }: LateOrder): Change =>
  putLateOrder(store, reference, set)
const putLateOrder = changeBy('any', lateOrders, ['store', 'reference'])

export const dropLateOrder = deleteBy(lateOrders, ['store', 'reference'])

/** Makes the late orders of a store wait no longer than until this instant. */
export const hastenLateOrders = bringForward(lateOrders, ['store'], 'notBefore')
