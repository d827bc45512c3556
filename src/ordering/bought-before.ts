import { externalOrderId } from '../domain/purchase-keys.ts'
import { generationsToAsk, mayBeForgotten } from '../domain/restore.ts'
import { type Purchase, purchasesOfPart } from '../storage/purchases.ts'
import { currentEpoch } from '../storage/restores.ts'
import { nameOfLine, storeOrderById } from '../storage/store-orders.ts'
import { claimOrder } from './claim-order.ts'
import type { Ordering } from './context.ts'
import { type Part, unclaimedOf } from './part-of.ts'
import { ordersUnder } from './scan.ts'

/**
 * Looks, right before a purchase is sent, whether a database that was replaced by a restore has bought its part before.
 *
 * Orders that the mapping found and nobody claimed are known by their references. A part whose store order is older than
 * the restore is looked up at the supplier as well, under the references of its next ten generations; so is one that
 * comes in the weeks after it, where the supplier's list did not show all orders.
 *
 * @returns true when the purchase is not to be sent now: it has moved on, or waits for the mapping or for a person
 * @throws Failure `unavailable` when the supplier cannot be read
 */
export async function boughtBefore(ordering: Ordering, purchase: Purchase): Promise<boolean> {
  const epoch = await currentEpoch(ordering.db)
  if (!epoch || epoch.restoredAt === null) return false
  const { restoredAt, unknownFrom, listEnd } = epoch
  if (epoch.mappedAt === null) return true
  const [[name], [order]] = await Promise.all([
    ordering.db.query(nameOfLine(purchase.lineId)),
    ordering.db.query(storeOrderById(purchase.orderId)),
  ])
  if (!name || !order) return true
  const part: Part = { ...name, lineId: purchase.lineId, part: purchase.part }
  const found = new Map((await unclaimedOf(ordering, part)).map((one) => [one.supplierOrderId, one.generation]))
  if (mayBeForgotten(order.receivedAt, { restoredAt, unknownFrom, isCutOff: listEnd !== null })) {
    const rows = await ordering.db.query(purchasesOfPart(part.lineId, part.part))
    for (const [id, generation] of await askedFor(ordering, part, generationsToAsk(rows))) found.set(id, generation)
  }
  let stop = false
  for (const [id, generation] of [...found].sort(([, a], [, b]) => a - b)) {
    if ((await claimOrder(ordering, part, generation, id)) !== 'none') stop = true
  }
  return stop
}

/**
 * The supplier's orders under the references of these generations, one question for each.
 *
 * Without a filter by reference, or where it is not honoured, there is nothing to ask: the mapping has read the whole
 * list twice, and noted what it found. Where that list did not show all orders, an operator has looked for the others.
 *
 * @returns pairs of a supplier order and its generation
 */
async function askedFor(
  ordering: Ordering,
  part: Part,
  generations: number[],
): Promise<[id: string, generation: number][]> {
  const found: [string, number][] = []
  for (const generation of generations) {
    const reference = externalOrderId({ ...part, generation }, ordering.dialect.externalOrderIdMax)
    const orders = await ordersUnder(ordering, reference)
    if (!orders) return found
    for (const { id } of orders) found.push([id, generation])
  }
  return found
}
