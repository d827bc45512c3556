import type { Database } from '../../src/storage/database.ts'
import { first } from '../../src/storage/database.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { purchasesOfOrder } from '../../src/storage/purchases.ts'
import { storeOrderByReference } from '../../src/storage/store-orders.ts'

/** What people were alerted to about an order of a store, by whatever kind of alert: each sentence once, oldest first. */
export async function alertsAbout(db: Database, store: string, reference: string): Promise<string[]> {
  const order = await first(db, storeOrderByReference(store, reference))
  const ours = order ? (await db.query(purchasesOfOrder(order.id))).map(({ id }) => id) : []
  const alerts = await db.query(listOutbox({ kind: 'alert', limit: 100 }))
  const notes = alerts.flatMap(({ id, type, orderId, payload }) => {
    const about: Record<string, unknown> = { ...payload }
    const isOurs =
      (order && orderId === order.id) ||
      (about.store === store && about.reference === reference) ||
      ours.includes(String(about.purchaseId))
    return isOurs ? [{ id, note: String(about.note ?? type) }] : []
  })
  return [...new Set(notes.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(({ note }) => note))]
}
