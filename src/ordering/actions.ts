/** The actions that people and stores ask of ordering. The audit records each action in the commit that carries it out. */

import { counted } from '../domain/figures.ts'
import { finalStates, isStandingHold, keepsMoney } from '../domain/purchase.ts'
import { conflict, Failure } from '../errors.ts'
import { type Change, type Database, first, need } from '../storage/database.ts'
import { earningsChanged } from '../storage/earnings.ts'
import { cancelEntitlement } from '../storage/entitlements.ts'
import { audited } from '../storage/evidence.ts'
import { clearFreeze, currentFreeze, RESTORE_CAUSE } from '../storage/freezes.ts'
import { releaseOffer } from '../storage/offers.ts'
import {
  changePurchase,
  heldPurchases,
  hintPurchase,
  type Purchase,
  purchaseById,
  purchasesInState,
  purchasesOfOrder,
} from '../storage/purchases.ts'
import { clearRestoreHold, currentEpoch, isReattaching, START_ACTOR } from '../storage/restores.ts'
import { markCancelRequested, requestCancellation, storeOrderById } from '../storage/store-orders.ts'
import { forgetStoreReading, underWayAt } from '../storage/stores.ts'
import { allTokens, revokeToken } from '../storage/tokens.ts'
import { advance, factsOf, type Given, type Loaded } from './advance.ts'
import { beyondLine, otherMayBeCharged, roomFor } from './choices.ts'
import type { Ordering } from './context.ts'
import { type Waits, waitingLines } from './waiting.ts'

/**
 * Cancels a store order. Purchases that were never sent end at once. The others are flagged: the transition table ends them.
 *
 * A second cancellation by the store also covers purchases that an operator retried, bought again or handed over meanwhile.
 *
 * @param reason why, in the caller's words, for the audit
 * @throws Failure `not_found`
 */
export async function cancelOrder(ordering: Ordering, orderId: string, actor: string, reason?: string): Promise<void> {
  const order = await need(ordering.db, storeOrderById(orderId), 'order', orderId)
  const isFirst = order.cancelRequestedAt === null
  const uncancelled = (await ordering.db.query(purchasesOfOrder(orderId))).filter(
    ({ cancelRequestedAt, state }) => cancelRequestedAt === null && state !== 'fulfilled',
  )
  if (isFirst || uncancelled.length > 0) {
    const now = ordering.now()
    const references = uncancelled.map(({ externalOrderId }) => externalOrderId).join(', ')
    const again = isFirst ? undefined : `cancelled again, with ${references}`.slice(0, AUDITED_MAX)
    await ordering.db.commit([
      cancelEntitlement(orderId, now),
      markCancelRequested(orderId, now),
      requestCancellation(orderId, now),
      earningsChanged(orderId),
      audited(ordering, actor, 'order.cancel', orderId, auditText([again, reason])),
    ])
    // A look-up may have proven already that an `unknown` purchase has no order. Its next look-up, woken here, ends the purchase.
    ordering.wake('refresh')
  }
  const purchases = await ordering.db.query(purchasesOfOrder(orderId))
  // Until the restore has reattached all orders, nothing proves that a purchase was never sent.
  if (await isReattaching(ordering.db)) return
  for (const { id } of purchases) await advance(ordering, id, { input: { type: 'clock' }, actor })
}

/** Joins what was done and why into one text; undefined when there is nothing to say. */
export const auditText = (parts: readonly (string | undefined)[]): string | undefined =>
  parts.filter((part) => part !== undefined && part !== '').join('; ') || undefined

/**
 * Plans the next generation of a purchase that ended, for the units whose keys the store lacks. The money of this purchase is
 * written off, and so is the money of earlier generations that failed.
 *
 * @throws Failure `not_found`; `conflict` while the purchase has not ended, when a later generation exists, or where the line has its
 * units without it
 */
export async function retryPurchase(
  ordering: Ordering,
  purchaseId: string,
  actor: string,
  reason?: string,
): Promise<void> {
  const purchase = await existing(ordering, purchaseId)
  const given = async (loaded: Loaded): Promise<Given> => {
    const { generations } = loaded
    const room = await roomFor(ordering, loaded)
    const others = generations.filter(({ id }) => id !== purchaseId)
    const beyond = factsOf(loaded).newest ? beyondLine(loaded, room) : undefined
    const refusal = otherMayBeCharged(others.filter((one) => !keepsMoney(one))) ?? beyond
    if (refusal) throw conflict(refusal.reason, refusal.message)
    const now = ordering.now()
    const writtenOff = others.filter(keepsMoney).map((one) => changePurchase(one, { writtenOffAt: now }, now))
    if (writtenOff.length > 0) writtenOff.push(earningsChanged(purchase.orderId))
    const audit = audited(ordering, actor, 'purchase.retry', purchaseId, reason)
    return { input: { type: 'retry' }, actor, also: [audit, ...writtenOff, ...(room?.asSeen ?? [])] }
  }
  const moved = await advance(ordering, purchaseId, given).catch((error: unknown) => {
    // Another caller has planned this generation meanwhile, so a unique key of the database refuses our commit.
    if (error instanceof Failure && error.code === 'conflict' && error.reason === undefined) return undefined
    throw error
  })
  if (moved) return
  const message = `the purchase is ${purchase.state}: only the newest rejected, failed or cancelled one can be retried`
  throw conflict('not_retriable', message)
}

/** The words of the audit for a purchase that may exceed the spend caps. */
export const CAPS_OVERRIDDEN = 'spend caps overridden'

/**
 * Lifts the hold of a purchase; the guards run again at once.
 *
 * @param change a new ceiling for one unit, in minor units of its currency, and whether the purchase may exceed the spend caps
 * @throws Failure `not_found`; `conflict` when the purchase is not held
 */
export async function releasePurchase(
  ordering: Ordering,
  purchaseId: string,
  { ceilingMinor, overrideSpendCap = false }: { ceilingMinor?: number; overrideSpendCap?: boolean },
  actor: string,
  reason?: string,
): Promise<void> {
  const purchase = await existing(ordering, purchaseId)
  await assertReleasable(ordering, purchase)
  const changes = [
    ...(ceilingMinor === undefined ? [] : [`ceiling ${purchase.ceilingMinor} -> ${ceilingMinor}`]),
    ...(overrideSpendCap ? [CAPS_OVERRIDDEN] : []),
  ].join('; ')
  const moved = await advance(ordering, purchaseId, {
    input: { type: 'released', by: 'operator', ...(ceilingMinor === undefined ? {} : { ceilingMinor }) },
    actor,
    detail: changes || 'released by hand',
    set: {
      note: null,
      spendCapOverriddenAt: overrideSpendCap ? ordering.now() : undefined,
      ceilingDecidedAt: ceilingMinor === undefined ? undefined : ordering.now(),
    },
    also: [
      audited(ordering, actor, 'purchase.release', purchaseId, auditText([changes, reason])),
      releaseOffer(purchase.supplierProductId),
    ],
  })
  if (!moved) throw conflict('not_held', `the purchase is ${purchase.state} and not held`)
  // Other purchases may be held for the same offer.
  await releaseHeld(ordering, 'ceiling', purchase.supplierProductId)
  ordering.wake('place')
}

/**
 * Tries a held purchase again now, or looks up or reads the order of a sent one now, and not at its next time. No rule is lifted:
 * all guards run again, under the ceiling that the purchase has. A hold of its offer stays.
 *
 * @throws Failure `not_found`; `conflict` when the purchase has ended, or when its freeze or its order holds it
 */
export async function checkPurchase(ordering: Ordering, purchaseId: string, actor: string): Promise<void> {
  const purchase = await existing(ordering, purchaseId)
  await assertReleasable(ordering, purchase)
  const audit = audited(ordering, actor, 'purchase.check', purchaseId)
  if (finalStates.includes(purchase.state)) {
    throw conflict('ended', `the purchase is ${purchase.state}: nothing of it is under way`)
  }
  if (purchase.state === 'planned' || purchase.state === 'waiting') {
    await advance(ordering, purchaseId, {
      input: { type: 'released', by: 'cause' },
      actor,
      set: { note: null },
      also: [audit],
    })
    ordering.wake('place')
    return
  }
  await ordering.db.commit([hintPurchase(purchaseId, ordering.now()), audit])
  ordering.wake('refresh')
}

/** @throws Failure `conflict` when only the end of the freeze, or the order in its shop, can release the purchase */
async function assertReleasable({ db }: Pick<Ordering, 'db'>, { holdReason, note }: Purchase): Promise<void> {
  if (holdReason === 'frozen' && (await currentFreeze(db))) {
    throw conflict('frozen', 'buying is frozen: lift the freeze with quayside unfreeze')
  }
  if (isStandingHold(holdReason)) {
    const message = `it waits for its order, which ${note ?? 'is not paid'}: see to it in the shop, then quayside orders release`
    throw conflict('order_held', message)
  }
}

/**
 * Lifts causes of a freeze. When no cause is left, buying resumes: the purchases that were held are released, and their guards
 * run again.
 *
 * The first call lifts the causes of a freeze. A later call lifts the hold of a restore. That hold also ends by itself.
 *
 * @param causes ids of the causes that the person has seen; a newer cause stays. Default: all causes
 * @throws Failure `conflict`, reason `restore_unfinished`, while the supplier's orders are not reattached after a restore;
 * reason `new_database_uncompared` while the orders that an earlier database may have placed are not read;
 * reason `changed` when buying is frozen for other causes only
 */
export async function unfreeze(ordering: Ordering, actor: string, causes?: readonly string[]): Promise<void> {
  const { db } = ordering
  const standing = (await currentFreeze(db))?.causes ?? []
  const freezes = standing.filter(({ id }) => id !== RESTORE_CAUSE)
  const named = (freezes.length > 0 ? freezes : standing).filter(({ id }) => causes?.includes(id) ?? true)
  if (standing.length > 0 && named.length === 0) {
    const why = reasonsOf(freezes.length > 0 ? freezes : standing)
    throw conflict('changed', `these causes are lifted already, and buying is frozen for another one: ${why}`)
  }
  const restored = named.some(({ id }) => id === RESTORE_CAUSE)
  // A person may lift the hold of a start: where the supplier's orders cannot be read, only people know of a restore.
  const isStart = named.some(({ actor }) => actor === START_ACTOR)
  if (restored && !isStart && (await isReattaching(db))) throw await unproven(db, named)
  const why = auditText([reasonsOf(named).slice(0, AUDITED_MAX)])
  await db.commit([
    restored ? clearRestoreHold() : clearFreeze(named.map(({ id }) => id)),
    audited(ordering, actor, 'unfreeze', restored ? 'buying after a restore' : 'buying', why),
  ])
  ordering.log.warn('unfrozen', { actor })
  await resumeBuying(ordering)
}

/** Says why an operator cannot lift the hold of a restore yet: the orders that may be bought twice are not known. */
async function unproven(db: Database, holds: readonly { reason: string }[]): Promise<Failure> {
  const epoch = await currentEpoch(db)
  if (epoch?.restoredAt !== null) {
    const message = "after a restore nothing is bought until the supplier's orders are reattached, in some minutes"
    return conflict('restore_unfinished', message)
  }
  const message = `nothing is bought until the supplier's whole order list was read, which is tried every few seconds (${reasonsOf(holds)}); if it cannot be read, quayside doctor says what to do`
  return conflict('new_database_uncompared', message)
}

/** Says why buying was frozen, for people and for the audit. */
const reasonsOf = (causes: readonly { reason: string }[]): string => causes.map(({ reason }) => reason).join('; ')

const AUDITED_MAX = 2_000

/** Releases the purchases that a freeze held, unless another freeze is in force. */
export async function resumeBuying(ordering: Ordering): Promise<void> {
  if (await currentFreeze(ordering.db)) return
  await releaseHeld(ordering, 'frozen')
  const waiting = await ordering.db.query(purchasesInState('unknown', 1_000))
  await ordering.db.commit(waiting.map(({ id }) => hintPurchase(id, ordering.now())))
  ordering.wake('refresh')
}

/** Releases the purchases that are held for offers that are back in stock or cost less. */
export async function releaseForOffers(ordering: Ordering, productIds: readonly string[]): Promise<void> {
  for (const productId of productIds) {
    await releaseHeld(ordering, 'out_of_stock', productId)
    await releaseHeld(ordering, 'ceiling', productId)
  }
}

/** Releases purchases that are held for a cause that is gone. The guards run again, so a needless release does no harm. */
export async function releaseHeld(
  ordering: Ordering,
  reason: 'out_of_stock' | 'balance' | 'ceiling' | 'frozen',
  productId?: string,
): Promise<void> {
  for (;;) {
    const held = await ordering.db.query(heldPurchases(reason, RELEASED_AT_ONCE, productId))
    let released = 0
    for (const { id } of held) {
      if (await advance(ordering, id, { input: { type: 'released', by: 'cause' }, set: { note: null } })) released += 1
    }
    if (released > 0) ordering.wake('place')
    // A batch that is not full was the last one. When no purchase of a batch was released, other workers have them all.
    if (held.length < RELEASED_AT_ONCE || released === 0) return
  }
}

const RELEASED_AT_ONCE = 500

const existing = ({ db }: Ordering, purchaseId: string): Promise<Purchase> =>
  need(db, purchaseById(purchaseId), 'purchase', purchaseId)

/**
 * Counts what of a store is under way.
 *
 * @param sells whether it is a shop whose products are on sale
 * @throws Failure `conflict`, reason `store_under_way`
 */
export async function assertIdle(ordering: Waits, store: string, sells: boolean): Promise<void> {
  if (sells) {
    const message = 'this shop sells: pause it first, so that its customers do not pay for what is not bought any more'
    throw conflict('store_under_way', message)
  }
  const [counts, lines] = await Promise.all([first(ordering.db, underWayAt(store)), waitingLines(ordering)])
  const waiting = new Set(lines.filter((line) => line.store === store).map(({ reference }) => reference)).size
  const { orders = 0, purchases = 0, callbacks = 0, unread = 0 } = counts ?? {}
  const said = [
    orders > 0 && counted(orders, 'open order'),
    purchases > 0 && counted(purchases, 'purchase under way', 'purchases under way'),
    callbacks > 0 && counted(callbacks, 'callback to be sent', 'callbacks to be sent'),
    unread > 0 && counted(unread, 'delivery to be read', 'deliveries to be read'),
    waiting > 0 && counted(waiting, 'order whose customer waits', 'orders whose customers wait'),
  ].filter((one) => one !== false)
  if (said.length === 0) return
  const message = `the store ${store} stays: it has ${said.join(', ')}. Pause it, let these end, then remove it`
  throw conflict('store_under_way', message)
}

/** Returns what ends the access of a store; its orders and keys stay. @throws Failure as `assertIdle` does */
export async function retireStore(
  ordering: Waits & Pick<Ordering, 'newId'>,
  store: string,
  sells: boolean,
  actor: string,
  reason: string,
): Promise<Change[]> {
  const { db, now } = ordering
  await assertIdle(ordering, store, sells)
  const good = (await db.query(allTokens())).filter((token) => token.store === store && token.revokedAt === null)
  return [
    ...good.flatMap(({ id }) => [revokeToken(id, now()), audited(ordering, actor, 'token.revoke', id)]),
    forgetStoreReading(store),
    audited(ordering, actor, 'store.remove', store, reason),
  ]
}
