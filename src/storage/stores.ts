import { sql } from 'drizzle-orm'
import { finalStates } from '../domain/purchase.ts'
import type { Change, Database } from './database.ts'
import { callbackSecrets, lateOrders, settings, storeReadings } from './schema.ts'
import { build, change, statement } from './statement.ts'
import { bringForward, changeBy, deleteBy, insertInto, insertOnce, rowsBy } from './table.ts'

export type StoreReading = typeof storeReadings.$inferSelect
export type LateOrder = typeof lateOrders.$inferSelect

export const storeReadingOf = rowsBy(storeReadings, ['store'])

export const allStoreReadings = rowsBy(storeReadings, [])

/** Stores whose orders are to be read now. @param latest an instant after this was set by a clock that has gone back since */
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

/** How it was first proven that customers of a store get at their keys: one opened a page, or a person confirmed a mail. */
export interface StoreProof {
  at: number
  by: 'page' | 'mail'
  /** The store's own number of the order. */
  order: string
  /** The person who confirmed the mail. */
  actor?: string
}

const PREFIX = 'proof:'

const insertProof = insertOnce(settings)

const proofsWithin = rowsBy(settings, ['name >', 'name <'])

/** Stores the proof of a store. The first proof counts: a later one changes nothing. */
export const proveStore = (store: string, proof: StoreProof): Change =>
  insertProof({ name: `${PREFIX}${store}`, value: JSON.stringify(proof), changedAt: proof.at })

/** Reads the proofs of all stores, by the ids of the stores. */
export async function readProofs(db: Pick<Database, 'query'>): Promise<Map<string, StoreProof>> {
  // A semicolon sorts right after a colon.
  const rows = await db.query(proofsWithin(PREFIX, 'proof;'))
  return new Map(rows.map(({ name, value }) => [name.slice(PREFIX.length), JSON.parse(value) as StoreProof]))
}

export type CallbackSecret = typeof callbackSecrets.$inferSelect

/** Rotations of the callback secrets of all stores, oldest first; a store whose secret was never changed has none. */
export const allCallbackSecrets = rowsBy(callbackSecrets, [], callbackSecrets.store, callbackSecrets.generation)

/** Stores a rotation. A unique key refuses a second rotation of the store to the same generation. */
export const insertCallbackSecret = insertInto(callbackSecrets)

/** Ends a store's earlier secrets at this instant, where rotations left them valid for longer. */
export const endCallbackSecrets = bringForward(callbackSecrets, ['store'], 'previousUntil')

/**
 * Counts what is under way for a store: its open orders, its purchases that are not in a final state, its callbacks that are to be
 * sent, and its orders and deliveries that are still to be read.
 */
export const underWayAt = statement(
  (store: string) => sql<{ orders: number; purchases: number; callbacks: number; unread: number }>`select
    (select count(*) from store_orders where store = ${store} and closed_at is null) as orders,
    (
      select count(*) from purchases p join store_orders o on o.id = p.order_id
      where o.store = ${store} and p.state not in ${[...finalStates]}
    ) as purchases,
    (select count(*) from outbox where store = ${store} and state = 'due') as callbacks,
    (select count(*) from late_orders where store = ${store})
      + (select count(*) from deliveries where source = 'stores/' || ${store} and state in ('stored', 'retry')) as unread`,
)

/** Forgets when a store was connected and how far its orders were read. If it is connected again, it counts as new. */
export const forgetStoreReading = deleteBy(storeReadings, ['store'])
