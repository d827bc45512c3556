import { createHash } from 'node:crypto'
import { attemptsOf, type Discrepancy, discrepanciesOf } from '../storage/evidence.ts'
import type { Loaded } from './advance.ts'
import { ordersOf } from './choices.ts'
import type { Ordering } from './context.ts'
import { unclaimedOf } from './part-of.ts'

/** Orders and differences that stand in the evidence beside the purchase itself. */
export interface Beside {
  /** Ids of the supplier's orders that a person is shown. */
  orders: readonly string[]
  discrepancies: readonly Pick<Discrepancy, 'id'>[]
}

/**
 * What of a purchase bears on a decision, as one text: equal texts are the same basis. Reads that brought no news do not
 * count.
 */
export const factsOfBasis = ({ purchase, keys, generations }: Loaded): string =>
  JSON.stringify([
    ...[purchase.state, purchase.supplierOrderId, purchase.ordersSeen, purchase.cancelRequestedAt],
    ...[purchase.handOverBegunAt, purchase.handOverHeldAt, purchase.supplierStatus],
    ...[keys.map((key) => [key.ordinal, key.handOverId, key.begunAt]), generations.map(({ id, state }) => [id, state])],
  ])

/**
 * A short name for all that a decision is taken on: whoever decides hands it back, so that nobody decides on what is no
 * longer so, however long ago it was shown. It begins with the state, for people.
 */
export function basisOf(loaded: Loaded, { orders, discrepancies }: Beside): string {
  const all = [factsOfBasis(loaded), orders.toSorted(), discrepancies.map(({ id }) => id).toSorted()]
  const digest = createHash('sha256').update(JSON.stringify(all)).digest('hex')
  return `${loaded.purchase.state}-${digest.slice(0, 12)}`
}

/** The basis of a decision as it would be shown now. */
export async function basisNow({ db, dialect }: Pick<Ordering, 'db' | 'dialect'>, loaded: Loaded): Promise<string> {
  const { purchase, name } = loaded
  const [attempts, discrepancies, unclaimed] = await Promise.all([
    db.query(attemptsOf([purchase.id])),
    db.query(discrepanciesOf(purchase.id)),
    unclaimedOf({ db, dialect }, { ...name, part: purchase.part }),
  ])
  const orders = [...ordersOf(loaded, attempts), ...unclaimed.map(({ supplierOrderId }) => supplierOrderId)]
  return basisOf(loaded, { orders: [...new Set(orders)], discrepancies })
}
