import { holdLabels } from '../domain/labels.ts'
import { finalStates, heldAlertMs, holdReasons } from '../domain/purchase.ts'
import { holdToReport } from '../domain/store-update.ts'
import { type Change, commitUnlessStale } from '../storage/database.ts'
import { enqueueAlert, enqueueUpdate, type UpdateEffect } from '../storage/outbox.ts'
import { changePurchase, heldUnsaid, type Purchase } from '../storage/purchases.ts'
import { lateOrders } from '../storage/store-orders.ts'
import { load, pushUpdate, unitsAgain } from './advance.ts'
import type { Ordering } from './context.ts'
import type { Fulfilment } from './fulfil.ts'
import { type OrderStanding, standingOf } from './order-view.ts'

/** The most orders that one call finds late, and the most purchases of one reason that it alerts of. The next call finds the others. */
const BATCH = 100
const MINUTE = 60_000
/** Later than this after it became late, an order is no news: such an order waited before Quayside reported late orders. */
const DAY = 24 * 3_600_000

/**
 * Has the customers of orders that are paid and wait for too long learn of it, once for each order. A shop that can writes to its
 * customer. A backend writes to its customers itself: it learns of the lines that wait, except those of whose hold it has heard.
 */
export async function reportLate(ordering: Fulfilment): Promise<void> {
  const { db, now, storeOf } = ordering
  const { lateMs } = ordering.policy
  if (lateMs === null) return
  const before = now() - lateMs
  const stores = ordering.stores.map(({ id }) => ({ id, store: storeOf(id) }))
  const shops = stores.filter(({ store }) => store?.reportLate)
  const backends = stores.filter(({ store }) => store && !store.order)
  for (const { kind, unsaid } of [
    { kind: shops, unsaid: false },
    { kind: backends, unsaid: true },
  ]) {
    const asked = { stores: kind.map(({ id }) => id), since: before - DAY, before, unsaid, limit: BATCH }
    const late = kind.length === 0 ? [] : await db.query(lateOrders(asked))
    for (const order of late) await db.commit(await lateness(ordering, order, lateMs, unsaid))
    if (late.length > 0) ordering.wake('outbox')
  }
}

interface LateOrder {
  id: string
  store: string
  receivedAt: number
  paidSince: number
}

async function lateness(ordering: Fulfilment, order: LateOrder, lateMs: number, isBackend: boolean): Promise<Change[]> {
  const { newId, now } = ordering
  const at = now()
  // The merchant has a paid order wait for so long before it is bought.
  const { delayMinutes = 0 } = ordering.stores.find(({ id }) => id === order.store) ?? {}
  const since = Math.max(order.receivedAt, order.paidSince) + delayMinutes * MINUTE
  const notBefore = Math.max(at, since + lateMs)
  const late = lateUnits(await standingOf(ordering, order), { unsaid: isBackend, before: at - lateMs })
  return (isBackend ? late : late.slice(0, 1)).map(({ purchase: { id: purchaseId }, units }, index) => {
    const effect: UpdateEffect = isBackend
      ? { kind: 'callback', type: 'line.held', payload: { purchaseId, units, reason: 'late' } }
      : { kind: 'callback', type: 'order.late', payload: { purchaseId } }
    const dedupeKey = index === 0 ? `late:${order.id}` : `late:${order.id}:${index}`
    return enqueueUpdate(effect, { id: newId(), store: order.store, orderId: order.id, dedupeKey, at, notBefore })
  })
}

/**
 * Returns the units that an order still waits for: of each line with such units how many, and a purchase that is to bring them.
 *
 * @param which `unsaid`: only purchases of which the store has heard of no hold; `before`: only those planned before this instant
 */
export function lateUnits(
  { lines }: Pick<OrderStanding, 'lines'>,
  { unsaid = false, before = Number.POSITIVE_INFINITY }: { unsaid?: boolean; before?: number } = {},
): { purchase: Purchase; units: number }[] {
  return lines.flatMap(({ purchases, delivered, wanted }) => {
    const purchase = purchases.find(
      ({ state, claim, cancelRequestedAt, takenBackBy, holdReported, createdAt }) =>
        !finalStates.includes(state) &&
        claim === null &&
        createdAt <= before &&
        cancelRequestedAt === null &&
        takenBackBy === null &&
        !(unsaid && holdReported !== null),
    )
    return purchase && wanted > delivered ? [{ purchase, units: wanted - delivered }] : []
  })
}

/** Counts the keys of an order that its store has, and the units that it still waits for. */
export const countLate = (standing: OrderStanding) => ({
  here: standing.lines.reduce((sum, { delivered }) => sum + delivered, 0),
  coming: lateUnits(standing).reduce((sum, { units }) => sum + units, 0),
})

/** Alerts people and stores, once for each hold, of purchases that are held longer than the reason of the hold should take. */
export async function alertHeld(ordering: Pick<Ordering, 'db' | 'now' | 'newId' | 'wake'>): Promise<void> {
  const { db, now } = ordering
  for (const reason of holdReasons) {
    const after = heldAlertMs[reason]
    if (after === null) continue
    const held = await db.query(heldUnsaid(reason, now() - after, BATCH))
    for (const { id } of held) await alertOne(ordering, id)
    if (held.length > 0) ordering.wake('outbox')
  }
}

async function alertOne(ordering: Pick<Ordering, 'db' | 'now' | 'newId'>, id: string): Promise<void> {
  const { db, now } = ordering
  const loaded = await load(ordering, id)
  if (!loaded?.purchase.holdReason) return
  const { store, reference } = loaded.name
  const { orderId, holdReason: reason, holdReported, heldAt, note } = loaded.purchase
  const words = `the paid order ${reference} of ${store} waits since ${new Date(heldAt ?? 0).toISOString()}: ${note ?? holdLabels[reason].means}`
  const payload = { note: words, store, reference, purchaseId: id, reason }
  const alert = enqueueAlert(ordering, { type: 'order_held', occasion: `${id}:${reason}:${heldAt}`, payload, orderId })
  const unsaid = holdToReport(holdReported, reason, true)
  if (unsaid === undefined) return void (await db.commit([alert]))
  const held = { purchaseId: id, units: unitsAgain(loaded), reason: unsaid }
  // Stale: the purchase has just gone on, or is held for another reason. The next call sees its new state.
  await commitUnlessStale(db, [
    alert,
    changePurchase(loaded.purchase, { holdReported: unsaid }, now()),
    pushUpdate(ordering, { loaded, now: now() }, { type: 'line.held', payload: held }),
  ])
}
