import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { isSameProduct, type PurchaseInput } from '../domain/purchase.ts'
import { generationOf } from '../domain/purchase-keys.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import { isOurs } from '../domain/sweep.ts'
import { codeOf, conflict, Failure } from '../errors.ts'
import { type Discrepancy, discrepanciesOf } from '../storage/discrepancies.ts'
import { attemptsOf, audited } from '../storage/evidence.ts'
import { redeliverEffect } from '../storage/outbox.ts'
import { purchasesByExternalId, purchasesBySupplierOrder } from '../storage/purchases.ts'
import { isReattaching } from '../storage/restores.ts'
import { CAPS_OVERRIDDEN } from './actions.ts'
import { advance, handedOverIn, type Loaded, load, ordersOf } from './advance.ts'
import { type DecisionType, type LineRoom, refusalOf, roomFor } from './choices.ts'
import type { Ordering } from './context.ts'
import { confirmHandOver } from './fulfil.ts'
import { unattachedOf } from './parts.ts'
import { distinctKeys, foundOrders } from './read-order.ts'

/** The decisions that a person can take on a purchase in `review`, and on a purchase that is `accepted`. */
export type Decision =
  /** Take the supplier's order with this id as the order that was bought. */
  | { type: 'adopt'; orderId: string }
  /** Hand over the keys that came, at most the quantity. */
  | { type: 'hand_over' }
  /** End the purchase; nothing is bought. */
  | { type: 'close' }
  /** Write the purchase off and buy its part again; beyond the spend caps if an operator says so. */
  | { type: 'buy_again'; overrideSpendCap?: boolean }

export interface DecidedBy {
  /** Who decides, as the audit shows it. */
  actor: string
  /** Why the person decides so, in the person's own words. The audit keeps the reason, and stores never see it. */
  reason: string
  /**
   * The version of the evidence that was shown to that person. Without a version, the decision is based on the purchase as
   * it is now. That is only right for a caller that has just read the purchase.
   */
  evidenceVersion?: string
}

/**
 * Carries out a person's decision, with its entry in the audit, in one commit.
 *
 * The decision holds for the evidence that the person was shown. When that evidence has changed since, the decision is refused
 * and nothing happens. A freeze refuses no decision, but a purchase that is bought again waits until the freeze ends.
 *
 * @throws Failure `not_found`; `conflict`, with a reason for machines, when the state does not allow the decision, and for a
 * decision that hands keys over while the supplier's orders are reattached after a restore; `invalid` for a text that cannot
 * be an order id; `unavailable` when an order that is to be adopted cannot be read
 */
export async function decidePurchase(
  ordering: Ordering,
  purchaseId: string,
  decision: Decision,
  { actor, reason, evidenceVersion }: DecidedBy,
): Promise<void> {
  const seen = await existing(ordering, purchaseId)
  assertDecidable(seen, decision.type, ordering.now(), await roomFor(ordering, seen))
  if ((decision.type === 'hand_over' || decision.type === 'adopt') && (await isReattaching(ordering.db))) {
    const message =
      "after a restore the supplier's orders are reattached first, in some minutes: until then the store may have keys that are not on record"
    throw conflict('restore_unfinished', message)
  }
  if (evidenceVersion !== undefined && evidenceVersion !== (await versionNow(ordering, seen))) {
    throw changed(seen, evidenceVersion)
  }
  const input = await inputOf(ordering, seen, decision)
  const done = await advance(ordering, purchaseId, async (loaded) => {
    const room = await roomFor(ordering, loaded)
    if (decisiveFacts(seen) !== decisiveFacts(loaded) || refusalOf(loaded, decision.type, room)) return undefined
    return {
      input,
      actor,
      detail: whatOf(seen, decision),
      set: { note: noteOf(decision) },
      nextGeneration: overridesCap(decision) ? { spendCapOverriddenAt: ordering.now() } : {},
      also: [
        audited(ordering, actor, `purchase.${decision.type}`, purchaseId, auditText(decision, reason)),
        // A hand-over that waited for this decision is sent now, not at its next try.
        ...waitingHandOvers(loaded.keys).map((id) => ({
          ...redeliverEffect(id, ordering.now()),
          rows: 'any' as const,
        })),
        ...(decision.type === 'buy_again' ? (room?.asSeen ?? []) : []),
      ],
    }
  }).catch((error: unknown) => {
    // A unique key refused the commit: another caller has adopted the order or planned the generation first.
    if (codeOf(error) === 'conflict') return undefined
    throw error
  })
  if (!done) {
    const present = await existing(ordering, purchaseId)
    assertDecidable(present, decision.type, ordering.now(), await roomFor(ordering, present))
    throw changed(present)
  }
  const { supplierOrderId } = seen.purchase
  ordering.log.info('purchase.decided', { purchaseId, actor, type: decision.type, supplierOrderId })
  // The store may have all keys of the purchase already. Then no confirmation comes any more, so the purchase ends here.
  if (decision.type === 'hand_over') await confirmHandOver(ordering, purchaseId)
}

/** @throws Failure `not_found` */
export async function existing(ordering: Pick<Ordering, 'db'>, purchaseId: string): Promise<Loaded> {
  const loaded = await load(ordering, purchaseId)
  if (!loaded) throw new Failure('not_found', `there is no purchase with the id ${purchaseId}`)
  return loaded
}

function assertDecidable(loaded: Loaded, type: DecisionType, now: number, room?: LineRoom): void {
  const { leaseUntil } = loaded.purchase
  if (leaseUntil !== null && leaseUntil > now) {
    throw conflict('busy', 'the purchase is being worked on: look again in a few minutes')
  }
  const refusal = refusalOf(loaded, type, room)
  if (refusal) throw conflict(refusal.reason, refusal.message)
}

async function inputOf(ordering: Ordering, seen: Loaded, decision: Decision): Promise<PurchaseInput> {
  if (decision.type !== 'adopt') return { type: decision.type }
  const order = await orderToAdopt(ordering, seen, decision.orderId)
  const [found] = await foundOrders(ordering, seen.purchase, [order])
  assert(found, 'one order was read')
  return { type: 'adopt', order: found }
}

/** An id may contain blanks. Blanks alone and invisible characters are typing errors. */
const ORDER_ID = /^(?!\.{1,2}$)(?=.*\S)[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u

/**
 * Returns the order as the supplier shows it now, when it can be this purchase's order.
 *
 * An order that was seen for the purchase may differ from what was sent: the person decides on that difference. An order
 * that was not seen must not carry another reference or another product. Otherwise a typing error would hand over the keys
 * of a stranger's order.
 */
async function orderToAdopt(ordering: Ordering, loaded: Loaded, orderId: string): Promise<SupplierOrder> {
  const { purchase, keys } = loaded
  if (!ORDER_ID.test(orderId)) {
    const message = 'must be the id of an order at the supplier'
    throw new Failure('invalid', `orderId: ${message}`, { fields: [{ field: 'orderId', message }] })
  }
  const [owner] = (await ordering.db.query(purchasesBySupplierOrder([orderId]))).filter(({ id }) => id !== purchase.id)
  if (owner) throw taken(orderId, `purchase ${owner.id}`)
  const order = await ordering.supplier.order(orderId)
  if (!order) throw conflict('order_unknown', `the supplier knows no order ${orderId}`)
  // The supplier's list may show one order under two ids. If all stored keys are in this order, it is the same order.
  const indexes = distinctKeys(ordering, order).flatMap(({ blindIndexes }) => blindIndexes)
  const ofOrder = new Set(indexes.map((index) => index.toString('hex')))
  const isTheirOrder = keys.every(({ blindIndex }) => ofOrder.has(blindIndex.toString('hex')))
  if (purchase.supplierOrderId !== orderId && !isTheirOrder) {
    const message = `keys of order ${purchase.supplierOrderId} came already: those of another order cannot be mixed with them`
    throw conflict('keys_of_another_order', message)
  }
  const reference = order.externalOrderId
  if (reference === purchase.externalOrderId) return order
  const [named] = reference === undefined ? [] : await ordering.db.query(purchasesByExternalId([reference]))
  if (named) throw taken(orderId, `purchase ${named.id}`)
  if (reference !== undefined && isOfAnotherPart(ordering, loaded, reference))
    throw taken(orderId, `reference ${reference}`)
  const known = ordersOf(loaded, await ordering.db.query(attemptsOf([purchase.id])))
  const strange =
    reference !== undefined || !isSameProduct(order.productId ?? purchase.supplierProductId, purchase.supplierProductId)
  if (strange && !known.includes(orderId)) {
    const message = `order ${orderId} carries another reference or product, and was never seen for this purchase`
    throw conflict('order_foreign', message)
  }
  return order
}

/** Whether a reference is of another order, line or part of our stores, whose purchase the database need not have. */
function isOfAnotherPart({ storeIds, dialect }: Ordering, { name, purchase }: Loaded, reference: string): boolean {
  // Some suppliers cut references.
  if (purchase.externalOrderId.startsWith(reference)) return false
  const lengthMax = dialect.externalOrderIdMax
  const ofPart = generationOf(reference, { ...name, part: purchase.part }, lengthMax)
  return ofPart === undefined && isOurs(reference, storeIds, lengthMax)
}

const taken = (orderId: string, owner: string): Failure =>
  conflict('order_taken', `order ${orderId} belongs to ${owner}`)

/** @param version of the evidence that the person was shown */
function changed(loaded: Loaded, version = ''): Failure {
  const { state, supplierOrderId, quantity } = loaded.purchase
  const [shown = ''] = version.split('-')
  const before = shown === '' || shown === state ? '' : `was ${shown} and `
  const order = supplierOrderId === null ? 'no order of its own' : `order ${supplierOrderId}`
  const now = `${before}is ${state} now, with ${order} and ${loaded.keys.length} of ${quantity} keys`
  const message = `the purchase has changed since it was shown: it ${now}; look at it again, then decide`
  return conflict('evidence_changed', message)
}

const waitingHandOvers = (keys: Loaded['keys']): string[] => [
  ...new Set(keys.flatMap((key) => (key.handOverId !== null && key.handedOverAt === null ? [key.handOverId] : []))),
]

const overridesCap = (decision: Decision): boolean =>
  decision.type === 'buy_again' && decision.overrideSpendCap === true

function auditText(decision: Decision, reason: string): string {
  if (decision.type === 'adopt') return `order ${decision.orderId}: ${reason}`
  return overridesCap(decision) ? `${CAPS_OVERRIDDEN}: ${reason}` : reason
}

/** Says for the timeline what happened. The reason is left out, because stores see the timeline too. */
function whatOf(loaded: Loaded, decision: Decision): string {
  if (decision.type === 'adopt') return `a person adopted order ${decision.orderId}`
  if (decision.type === 'hand_over')
    return `a person handed over ${handedOverIn(loaded)} of ${loaded.purchase.quantity}`
  if (decision.type === 'close') return 'a person closed it'
  const beyond = overridesCap(decision) ? ' beyond the spend caps' : ''
  return `a person wrote it off and bought again${beyond}`
}

/** Returns the note that a reader of the ended purchase needs. */
function noteOf({ type }: Decision): string | null {
  if (type === 'close') return 'closed by a person'
  return type === 'buy_again' ? 'written off by a person and bought again' : null
}

/**
 * Returns as one text the facts of a purchase that matter for a decision. Equal texts are the same version. Reads that
 * brought no news do not change the text.
 */
const decisiveFacts = ({ purchase, keys, generations }: Loaded): string =>
  JSON.stringify([
    ...[purchase.state, purchase.supplierOrderId, purchase.ordersSeen, purchase.cancelRequestedAt],
    ...[purchase.handOverBegunAt, purchase.handOverHeldAt, purchase.supplierStatus],
    ...[keys.map((key) => [key.ordinal, key.handOverId, key.begunAt]), generations.map(({ id, state }) => [id, state])],
  ])

/**
 * Returns the version of the evidence. A caller that decides sends the version back, and a decision on outdated evidence is
 * refused. The version begins with the state of the purchase, for people.
 *
 * @param around ids of the supplier's orders that a person is shown, and the differences
 */
export function versionOf(loaded: Loaded, around: { orders: string[]; discrepancies: Discrepancy[] }): string {
  const { orders, discrepancies } = around
  const all = [decisiveFacts(loaded), orders.toSorted(), discrepancies.map(({ id }) => id).toSorted()]
  const digest = createHash('sha256').update(JSON.stringify(all)).digest('hex')
  return `${loaded.purchase.state}-${digest.slice(0, 12)}`
}

/** Returns the version of the evidence as it would be shown now. */
async function versionNow({ db, dialect }: Pick<Ordering, 'db' | 'dialect'>, loaded: Loaded): Promise<string> {
  const { purchase, name } = loaded
  const [attempts, discrepancies, unattached] = await Promise.all([
    db.query(attemptsOf([purchase.id])),
    db.query(discrepanciesOf(purchase.id)),
    unattachedOf({ db, dialect }, { ...name, part: purchase.part }),
  ])
  const orders = [...ordersOf(loaded, attempts), ...unattached.map(({ supplierOrderId }) => supplierOrderId)]
  return versionOf(loaded, { orders: [...new Set(orders)], discrepancies })
}
