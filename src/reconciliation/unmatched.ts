import { counted } from '../domain/figures.ts'
import { isOver } from '../domain/purchase.ts'
import { moneyIsOut, type SupplierOrder } from '../domain/supplier.ts'
import { SKEW_MS } from '../domain/sweep.ts'
import { advance } from '../ordering/advance.ts'
import type { Ordering } from '../ordering/context.ts'
import { freezeForOrphans } from '../ordering/freeze.ts'
import { type Part, partsOf, unattachedOf } from '../ordering/parts.ts'
import { wasShown } from '../ordering/read-order.ts'
import { reportDuplicate } from '../ordering/reattach.ts'
import { clearSuspicion, suspectAccounts } from '../storage/balance.ts'
import { type Change, first } from '../storage/database.ts'
import { insertDiscrepancy, knownDuplicates, knownOrphans, reportDiscrepancy } from '../storage/discrepancies.ts'
import { setFreeze } from '../storage/freezes.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import { type Purchase, purchaseById, purchasesOfPart } from '../storage/purchases.ts'
import { isReattaching } from '../storage/restores.ts'

/**
 * Records orders of the supplier that carry a reference of our stores and have no purchase. Causes are a lost or restored
 * database, a second installation with our stores' ids, or another client that buys in our name.
 *
 * Each order is recorded once, and a sweep raises one alert for all new orders. An order for a part that is known here is a
 * duplicate charge and freezes buying.
 *
 * @returns the orphans, without the orders that were shown to a person beside the purchases of their part
 */
export async function recordOrphans(
  ordering: Ordering,
  sweepId: string,
  orders: SupplierOrder[],
): Promise<SupplierOrder[]> {
  if (orders.length === 0) return []
  const { db } = ordering
  const shown = await reportDuplicates(ordering, orders)
  const orphans = orders.filter(({ id }) => !shown.has(id))
  const noted = await db.query(knownOrphans(orphans.map(({ id }) => id)))
  const known = new Set(noted.map(({ subject }) => subject))
  const fresh = orphans.filter(({ id }) => !known.has(id))
  if (fresh.length === 0) return orphans
  const now = ordering.now()
  const freezes = await freezeForOrphans(ordering, fresh)
  const note = 'orders at the supplier carry references of our stores and have no purchase here'
  await db.commit([
    ...fresh.map((order) =>
      insertDiscrepancy({
        id: ordering.newId(),
        kind: 'orphan',
        subject: order.id,
        supplierOrderId: order.id,
        externalOrderId: order.externalOrderId ?? null,
        foundAt: now,
        detail: `${order.externalOrderId} is ${order.statusWord} at the supplier and has no purchase here`,
      }),
    ),
    enqueueAlert(ordering, { type: 'orphan', occasion: sweepId, payload: { note } }),
    ...freezes,
  ])
  ordering.wake('outbox')
  return orphans
}

/**
 * Reports as duplicate charges the orders that were bought for parts which have purchases here. Orders that a restore has
 * noted are left out, because they may still be reattached.
 *
 * @returns ids of the orders that a person is or was shown beside a purchase of their part
 */
async function reportDuplicates(ordering: Ordering, orders: SupplierOrder[]): Promise<Set<string>> {
  const { db } = ordering
  const parts = await partsOf(
    ordering,
    orders.map(({ externalOrderId }) => externalOrderId ?? ''),
  )
  if (parts.size === 0) return new Set()
  const seconds = await db.query(knownDuplicates(orders.map(({ id }) => id)))
  const shown = new Set(seconds.map(({ supplierOrderId }) => supplierOrderId))
  const reattaching = await isReattaching(db)
  for (const order of orders) {
    const { part, generation } = parts.get(order.externalOrderId ?? '') ?? {}
    if (!part || generation === undefined || shown.has(order.id)) continue
    const rows = await db.query(purchasesOfPart(part.lineId, part.part))
    const newest = rows.find(({ state }) => !isOver(state)) ?? rows.at(-1)
    if (wasShown(rows, order.id)) shown.add(order.id)
    else if (newest && !reattaching && moneyIsOut(order.status) && !(await isNoted(ordering, part, order.id))) {
      await db.commit(reportDuplicate(ordering, newest, generation, order))
      ordering.wake('outbox')
      shown.add(order.id)
    }
  }
  return shown
}

const isNoted = async (ordering: Ordering, part: Part, id: string): Promise<boolean> =>
  (await unattachedOf(ordering, part)).some(({ supplierOrderId }) => supplierOrderId === id)

/** Returns the earliest instant after which the balance may have fallen unexplained; undefined without such a fall. */
export async function suspectedFrom({ db }: Ordering): Promise<number | undefined> {
  const instants = (await db.query(suspectAccounts())).map(({ suspectFrom }) => suspectFrom).filter((at) => at !== null)
  return instants.length === 0 ? undefined : Math.min(...instants)
}

/** Says whether an order may be the reason of an unexplained fall after that instant. */
export const maySpend = (order: SupplierOrder, suspectFrom: number): boolean =>
  moneyIsOut(order.status) && (order.createdAt === undefined || order.createdAt >= suspectFrom - SKEW_MS)

/**
 * Returns the changes at the end of a sweep for an unexplained fall. An order of our stores without a purchase freezes all buying.
 *
 * @param count how many such orders the sweep found; at 0 the fall stays an alert, because another client may use the API key
 */
export function afterSuspicion(ordering: Ordering, begunAt: number, suspectFrom: number, count: number): Change[] {
  if (count === 0) return [clearSuspicion(suspectFrom, begunAt)]
  const what = counted(count, 'order of our stores', 'orders of our stores')
  const reason = `the balance fell by more than our orders explain, and ${what} at the supplier ${count === 1 ? 'has' : 'have'} no purchase here`
  return [
    clearSuspicion(suspectFrom, begunAt),
    setFreeze({ reason, actor: 'quayside', at: ordering.now() }),
    enqueueAlert(ordering, { type: 'freeze', occasion: `balance:${suspectFrom}`, payload: { note: reason } }),
  ]
}

/**
 * Asks the supplier for one order that is missing from a complete list. The answer decides, not the list.
 *
 * @returns `missing`, recorded with an alert; `notListed` when the supplier knows the order; `moved` when the
 *   purchase no longer waits for that order
 */
export async function checkUnlisted(
  ordering: Ordering,
  purchaseId: string,
  supplierOrderId: string,
): Promise<'missing' | 'notListed' | 'moved'> {
  const purchase = await waiting(ordering, purchaseId, supplierOrderId)
  if (!purchase) return 'moved'
  if (await ordering.supplier.order(supplierOrderId)) return 'notListed'
  const now = await waiting(ordering, purchaseId, supplierOrderId)
  if (!now) return 'moved'
  if (now.state === 'accepted') await advance(ordering, purchaseId, { input: { type: 'missing' }, detail: 'sweep' })
  else await recordMissing(ordering, now, supplierOrderId)
  return 'missing'
}

async function waiting({ db }: Ordering, purchaseId: string, supplierOrderId: string): Promise<Purchase | undefined> {
  const purchase = await first(db, purchaseById(purchaseId))
  const waits = purchase?.state === 'accepted' || purchase?.state === 'completed'
  return waits && purchase.supplierOrderId === supplierOrderId ? purchase : undefined
}

/** Records that the order of a completed purchase is gone, and alerts people. The purchase has its keys and goes on. */
async function recordMissing(ordering: Ordering, purchase: Purchase, supplierOrderId: string) {
  const { id: purchaseId, orderId, externalOrderId } = purchase
  const changes = reportDiscrepancy(ordering, {
    kind: 'missing',
    subject: purchaseId,
    supplierOrderId,
    detail: `${externalOrderId} in ${purchase.state}`,
    alert: { occasion: `${purchaseId}:${supplierOrderId}`, orderId, payload: { purchaseId, note: null } },
  })
  await ordering.db.commit(changes)
  ordering.wake('outbox')
}
