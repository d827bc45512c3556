import type { SupplierOrder } from '../domain/placement.ts'
import { SKEW_MS } from '../domain/sweep.ts'
import { clearSuspicion, suspectAccounts } from '../storage/balance-accounts.ts'
import type { Change } from '../storage/database.ts'
import { insertDiscrepancy } from '../storage/evidence.ts'
import { oweEffect } from '../storage/outbox.ts'
import { setFreeze } from '../storage/settings.ts'
import { knownOrphans } from '../storage/sweeps.ts'
import type { Ordering } from './context.ts'

/**
 * Records orders of the supplier that carry a reference of our stores and have no purchase: a lost or restored database,
 * a second installation under our stores' ids, or somebody who buys in our name.
 *
 * Each is recorded once; a sweep that finds new ones alerts once, however many they are.
 */
export async function recordOrphans(ordering: Ordering, sweepId: string, orders: SupplierOrder[]): Promise<void> {
  if (orders.length === 0) return
  const known = new Set((await ordering.db.query(knownOrphans(orders.map(({ id }) => id)))).map(({ id }) => id))
  const fresh = orders.filter(({ id }) => !known.has(id))
  if (fresh.length === 0) return
  const now = ordering.now()
  const note = 'orders at the supplier carry references of our stores and have no purchase here'
  await ordering.db.commit([
    ...fresh.map((order) =>
      insertDiscrepancy({
        ...{ id: ordering.newId(), kind: 'orphan', subject: order.id, supplierOrderId: order.id, foundAt: now },
        detail: `${order.externalOrderId} is ${order.statusWord} at the supplier and has no purchase here`,
      }),
    ),
    alert(ordering, 'orphan', sweepId, note),
  ])
  ordering.wake('outbox')
}

/** The earliest instant behind which an unexplained fall of the balance lies, if there is one. */
export async function suspectedFrom({ db }: Ordering): Promise<number | undefined> {
  const instants = (await db.query(suspectAccounts())).map(({ suspectFrom }) => suspectFrom).filter((at) => at !== null)
  return instants.length === 0 ? undefined : Math.min(...instants)
}

/** Whether an order may be what an unexplained fall after that instant was spent on. */
export const maySpend = ({ status, createdAt }: SupplierOrder, suspectFrom: number): boolean =>
  (status === 'open' || status === 'completed') && (createdAt === undefined || createdAt >= suspectFrom - SKEW_MS)

/**
 * What a sweep that looked behind an unexplained fall leaves: an order of ours without a purchase freezes all buying.
 *
 * @param count how many such orders it found; without one the fall stays an alert, because the money of others who use
 *   the same API key is not ours to stop
 */
export function afterSuspicion(ordering: Ordering, begunAt: number, suspectFrom: number, count: number): Change[] {
  if (count === 0) return [clearSuspicion(suspectFrom, begunAt)]
  const what = count === 1 ? '1 order of our stores' : `${count} orders of our stores`
  const reason = `the balance fell by more than our orders explain, and ${what} at the supplier ${count === 1 ? 'has' : 'have'} no purchase here`
  return [
    clearSuspicion(suspectFrom, begunAt),
    setFreeze({ reason, actor: 'quayside', at: ordering.now() }),
    alert(ordering, 'freeze', `balance:${suspectFrom}`, reason),
  ]
}

function alert({ newId, now: clock }: Ordering, type: string, occasion: string, note: string): Change {
  const now = clock()
  return oweEffect({
    ...{ id: newId(), kind: 'alert', type, dedupeKey: `alert:${type}:${occasion}` },
    ...{ payload: JSON.stringify({ note }), state: 'due', notBefore: now, createdAt: now },
  })
}
