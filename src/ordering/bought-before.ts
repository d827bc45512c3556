import type { SupplierOrder } from '../domain/placement.ts'
import { externalOrderId, type PurchaseName } from '../domain/purchase-keys.ts'
import { GENERATIONS } from '../domain/restore.ts'
import type { Purchase } from '../storage/purchases.ts'
import { currentEpoch, unclaimedUnder } from '../storage/restores.ts'
import { nameOfLine, storeOrderById } from '../storage/store-orders.ts'
import { claimOrder, type Part } from './claim-order.ts'
import type { Ordering } from './context.ts'

/** References of all generations of a part that are looked for, the first one first. */
export const referencesOf = (
  { externalOrderIdMax }: Ordering['dialect'],
  name: Omit<PurchaseName, 'generation'>,
): string[] =>
  Array.from({ length: GENERATIONS }, (_, place) =>
    externalOrderId({ ...name, generation: place + 1 }, externalOrderIdMax),
  )

/**
 * Looks, right before a purchase is sent, whether a database that was replaced by a restore has bought its part before.
 *
 * Orders that the mapping found and nobody claimed are known by their references. A part whose store order is older than
 * the restore is looked up at the supplier as well, under the references of ten generations.
 *
 * @returns true when the purchase is not to be sent now: it has moved on, or waits for the mapping or for a person
 * @throws Failure `unavailable` when the supplier cannot be read
 */
export async function boughtBefore(ordering: Ordering, purchase: Purchase): Promise<boolean> {
  const epoch = await currentEpoch(ordering.db)
  if (!epoch || epoch.restoredAt === null) return false
  if (epoch.mappedAt === null) return true
  const [[name], [order]] = await Promise.all([
    ordering.db.query(nameOfLine(purchase.lineId)),
    ordering.db.query(storeOrderById(purchase.orderId)),
  ])
  if (!name || !order) return true
  const part: Part = { ...name, lineId: purchase.lineId, part: purchase.part }
  const references = referencesOf(ordering.dialect, part)
  const noted = await ordering.db.query(unclaimedUnder(references))
  const found = new Map(noted.map((one) => [one.supplierOrderId, one.reference]))
  if (order.receivedAt <= epoch.restoredAt) {
    for (const one of await ordersUnder(ordering, references)) found.set(one.id, one.externalOrderId ?? '')
  }
  let stop = false
  const byGeneration = [...found].map(([id, reference]) => ({ id, generation: references.indexOf(reference) + 1 }))
  for (const { id, generation } of byGeneration.toSorted((a, b) => a.generation - b.generation)) {
    if ((await claimOrder(ordering, part, generation, id)) !== 'none') stop = true
  }
  return stop
}

/**
 * The supplier's orders under these references, one question for each.
 *
 * Without a filter by reference, or where it is not honoured, there is nothing to ask: the mapping has read the whole
 * list twice, and noted what it found.
 */
async function ordersUnder({ supplier, dialect }: Ordering, references: string[]): Promise<SupplierOrder[]> {
  if (dialect.orders.externalOrderId === null) return []
  const found: SupplierOrder[] = []
  for (const externalOrderId of references) {
    const { items, unreadable, more } = await supplier.orders({ page: 1, externalOrderId })
    const honoured = items.every((order) => order.externalOrderId === externalOrderId)
    if (!honoured || unreadable.length > 0 || more === true) return found
    found.push(...items)
  }
  return found
}
