import { isSameProduct } from '../domain/purchase.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import { messageOf } from '../errors.ts'
import { discrepanciesOf } from '../storage/discrepancies.ts'
import { attemptsOf, auditOf, enteredAt, type TransitionRow, transitionsOf } from '../storage/evidence.ts'
import { currentFreeze } from '../storage/freezes.ts'
import { keysByBlindIndex } from '../storage/licence-keys.ts'
import { type Purchase, purchasesByExternalId, purchasesBySupplierOrder } from '../storage/purchases.ts'
import { ordersOf, unitsLeft } from './advance.ts'
import { choicesOf, roomFor } from './choices.ts'
import type { Ordering } from './context.ts'
import { existing, versionOf } from './decide.ts'
import { unattachedOf } from './parts.ts'

/** A transition, or an input that changed nothing. It came `times` in a row, the last time at `lastAt`. */
export interface RepeatedTransition extends TransitionRow {
  times: number
  lastAt: number
}

type Viewing = Pick<Ordering, 'db' | 'supplier' | 'dialect'>

/** The most orders that one view reads. Each read counts against the rate limit. */
const READ_MAX = 5

/**
 * Returns all that a person needs to decide on one purchase: what happened, what is at the supplier, and what each decision
 * would do. Licence keys are counted and never shown. Instants are in epoch milliseconds.
 *
 * @param read whether to read the orders that were seen from the supplier, at most five of them; the view
 * says why an order cannot be read
 * @throws Failure `not_found`
 */
export async function viewEvidence(ordering: Viewing, purchaseId: string, { read }: { read: boolean }) {
  const { db } = ordering
  const loaded = await existing(ordering, purchaseId)
  const { purchase, generations, keys, name } = loaded
  const [attempts, transitions, discrepancies, audit, [entered], holders, freeze, room] = await Promise.all([
    db.query(attemptsOf([purchaseId])),
    db.query(transitionsOf([purchaseId])),
    db.query(discrepanciesOf(purchaseId)),
    db.query(auditOf(purchaseId)),
    db.query(enteredAt([purchaseId])),
    keys.length > 0 ? db.query(keysByBlindIndex(keys.map((key) => key.blindIndex))) : [],
    currentFreeze(db),
    roomFor(ordering, loaded),
  ])
  const elsewhere = [...new Set(holders.map((key) => key.purchaseId).filter((id) => id !== purchaseId))]
  const unattached = await unattachedOf(ordering, { ...name, part: purchase.part })
  const generationOf = new Map(unattached.map((one) => [one.supplierOrderId, one.generation]))
  const ids = [...new Set([...ordersOf(loaded, attempts), ...generationOf.keys()])]
  const evidenceVersion = versionOf(loaded, { orders: ids, discrepancies })
  return {
    purchase,
    name,
    attempts,
    discrepancies,
    audit,
    freeze,
    evidenceVersion,
    transitions: together(transitions),
    since: entered?.at ?? purchase.createdAt,
    // `left`: the store has these keys, or is being given them. `elsewhere`: other purchases that hold one of the keys.
    keys: { stored: keys.length, left: unitsLeft(loaded), elsewhere },
    orders: await Promise.all(
      ids.map(async (id, index) => ({
        ...(await seenOrder(ordering, purchase, id, read && index < READ_MAX)),
        // Set for an order that a restore found, while no purchase here has its generation; otherwise null.
        generation: generationOf.get(id) ?? null,
      })),
    ),
    generations: generations.filter((other) => other.id !== purchaseId),
    choices: choicesOf(loaded, { orders: ids, unattached, elsewhere, frozen: freeze !== undefined, room }),
  }
}

/** Joins equal entries that follow each other. A sweep repeats its entry every quarter of an hour, and a reader needs it once. */
export function together(rows: TransitionRow[]): RepeatedTransition[] {
  const entries: RepeatedTransition[] = []
  const same = (row: TransitionRow) => [row.input, row.row, row.before, row.after, row.actor, row.detail].join('\n')
  for (const row of rows) {
    const last = entries.at(-1)
    if (last && same(last) === same(row)) Object.assign(last, { times: last.times + 1, lastAt: row.at })
    else entries.push({ ...row, times: 1, lastAt: row.at })
  }
  return entries
}

/** @returns the order as the supplier shows it now; without a reading, `unread` says why there is none */
async function seenOrder({ db, supplier }: Viewing, purchase: Purchase, id: string, read: boolean) {
  const order = read ? await supplier.order(id).catch(messageOf) : 'the supplier was not asked'
  const isRead = typeof order === 'object'
  const reference = isRead ? order.externalOrderId : undefined
  const owners = await db.query(purchasesBySupplierOrder([id]))
  const named = reference === undefined ? [] : await db.query(purchasesByExternalId([reference]))
  return {
    id,
    own: id === purchase.supplierOrderId,
    takenBy: [...owners, ...named].find((owner) => owner.id !== purchase.id)?.id ?? null,
    reading: isRead ? readingOf(purchase, order) : null,
    unread: isRead ? null : (order ?? 'the supplier knows no such order'),
  }
}

function readingOf(purchase: Purchase, order: SupplierOrder) {
  const differs: ('reference' | 'product' | 'quantity')[] = []
  if (order.externalOrderId !== purchase.externalOrderId) differs.push('reference')
  if (!isSameProduct(order.productId ?? purchase.supplierProductId, purchase.supplierProductId)) differs.push('product')
  if ((order.quantity ?? purchase.quantity) !== purchase.quantity) differs.push('quantity')
  return {
    status: order.status,
    statusWord: order.statusWord,
    keys: order.keys.length,
    differs,
    amountMinor: order.amountMinor ?? null,
    currency: order.currency ?? purchase.currency,
    quantity: order.quantity ?? null,
    createdAt: order.createdAt ?? null,
  }
}
