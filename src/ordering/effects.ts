import type { AlertKind } from '../domain/alert-kinds.ts'
import { isStandingHold } from '../domain/hold.ts'
import { normalKey } from '../domain/licence-key.ts'
import { amountText } from '../domain/money.ts'
import { type Effect, mostOf, type Transition } from '../domain/purchase.ts'
import { externalOrderId, idempotencyKey, type PurchaseName } from '../domain/purchase-keys.ts'
import { hasLeft } from '../domain/store-order.ts'
import { holdToReport, type ReportedHold } from '../domain/store-update.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import type { Change } from '../storage/database.ts'
import { reportDiscrepancy } from '../storage/discrepancies.ts'
import type { Attempt } from '../storage/evidence.ts'
import { setFreeze } from '../storage/freezes.ts'
import { assignKey, insertKey, type LicenceKey, takeBackKeys } from '../storage/licence-keys.ts'
import { holdOffer, markOutOfStock } from '../storage/offers.ts'
import { enqueueAlert, enqueueUpdate, type UpdateEffect, withdrawEffect } from '../storage/outbox.ts'
import { enqueuePublications } from '../storage/publications.ts'
import { changePurchase, insertPurchase, type NewPurchase, type PurchaseUpdate } from '../storage/purchases.ts'
import { markReopened } from '../storage/store-orders.ts'
import { orderBody } from '../supplier/client.ts'
import type { Loaded } from './advance.ts'
import type { Ordering } from './context.ts'

/** An order as read from the supplier, with its keys, each once. */
export interface Reading {
  order: SupplierOrder
  keys: ReadKey[]
}

export interface ReadKey {
  /** In its normal form. */
  text: string
  /** Of that form, and of the ones in which it came: keys that were stored as they came are known by them. */
  blindIndexes: [Buffer, ...Buffer[]]
}

export interface EffectChanges {
  /** Must come before the row's own change. */
  before: Change[]
  after: Change[]
  /** Columns of the row itself. */
  set: PurchaseUpdate
}

/** Turns the effects of a decision into the changes of its commit. */
export function effectChanges(
  ordering: Ordering,
  loaded: Loaded,
  decision: Transition,
  now: number,
  {
    reading,
    stated = reading?.order,
    nextGeneration,
  }: {
    reading?: Reading | undefined
    stated?: SupplierOrder | undefined
    nextGeneration?: Partial<NewPurchase> | undefined
  } = {},
): EffectChanges {
  const { purchase, generations } = loaded
  const changes: EffectChanges = { before: [], after: [], set: {} }
  const { after } = changes
  const has = (effect: Effect) => decision.effects.includes(effect)
  if (has('cancel_later')) {
    const later = generations.filter((other) => other.generation > purchase.generation)
    const unsent = later.filter(
      (one) => one.firstSentAt === null && ['planned', 'waiting', 'review'].includes(one.state),
    )
    for (const other of unsent) {
      const note = 'not needed: the order of an earlier attempt was found'
      changes.before.push(changePurchase(other, { state: 'cancelled', holdReason: null, notBefore: null, note }, now))
    }
    after.push(markReopened(purchase.orderId))
  }
  if (has('withdraw')) after.push(...withdrawal(loaded))
  if (has('store_keys') || has('hand_over')) after.push(...keyChanges(ordering, loaded, decision, reading, now))
  const hold = holdToReport(purchase.holdReported, decision.set.holdReason)
  if (hold !== undefined) {
    changes.set.holdReported = hold
    after.push(heldUpdate(purchase.id, hold))
  }
  if (resumes(purchase, decision)) {
    changes.set.holdReported = null
    const payload = { purchaseId: purchase.id, units: purchase.quantity - unitsLeft(loaded) }
    after.push(push({ kind: 'callback', type: 'line.resumed', payload }))
  }
  if (has('notify_failed')) {
    changes.set.failureNotifiedAt = now
    const units = purchase.quantity - (has('hand_over') ? handedOverIn(loaded) : unitsLeft(loaded))
    const payload = { purchaseId: purchase.id, units, row: decision.row }
    const dedupeKey = `failed:${purchase.id}:${purchase.version}`
    after.push(push({ kind: 'callback', type: 'line.failed', payload }, dedupeKey))
  }
  for (const effect of decision.effects) {
    if (typeof effect === 'string') continue
    if ('plan' in effect) {
      // What the supplier has just refused is not offered for sale until it says otherwise.
      if (effect.plan === 'out_of_stock') after.push(...outOfStock(purchase.supplierProductId))
      const next = plannedNext(ordering, loaded, effect, now)
      const held = holdToReport(purchase.holdReported, effect.plan)
      after.push(insertPurchase({ ...next, holdReported: held ?? purchase.holdReported, ...nextGeneration }))
      if (held !== undefined) after.push(heldUpdate(next.id, held))
      // The order may be reported as closed. It is reported again when this purchase has ended.
      after.push(markReopened(purchase.orderId))
    } else {
      const { discrepancy: kind, orderId } = effect
      after.push(
        ...reportDiscrepancy(ordering, {
          kind,
          subject: purchase.id,
          supplierOrderId: orderId,
          detail: `${purchase.externalOrderId} in ${purchase.state}`,
          alert: about(`${purchase.id}:${orderId}`),
        }),
      )
    }
  }
  if (has('freeze')) {
    const reason = `purchase ${purchase.id}: ${decision.set.note ?? 'a second order of the supplier was found for it'}`
    const freeze = { reason, actor: 'quayside', at: now, purchaseId: purchase.id }
    after.push(setFreeze(freeze), alert('freeze', `${purchase.id}:${now}`))
  }
  if (decision.alert !== null) after.push(alert(decision.alert, `${purchase.id}:${purchase.version}`))
  if (stated) after.push(...overCeiling(stated))
  return changes

  function push(update: UpdateEffect, dedupeKey?: string): Change {
    const id = ordering.newId()
    return enqueueUpdate(update, {
      id,
      store: loaded.name.store,
      orderId: purchase.orderId,
      dedupeKey: dedupeKey ?? id,
      at: now,
    })
  }

  function heldUpdate(purchaseId: string, reason: ReportedHold): Change {
    const payload = { purchaseId, units: purchase.quantity - unitsLeft(loaded), reason }
    return push({ kind: 'callback', type: 'line.held', payload })
  }

  function outOfStock(productId: string): Change[] {
    const because = { newId: ordering.newId, now, cause: `purchase ${purchase.id}` }
    return [markOutOfStock(productId, now), ...enqueuePublications(ordering.stores, [productId], because)]
  }

  function about(occasion: string) {
    const payload = { purchaseId: purchase.id, note: decision.set.note ?? null }
    return { occasion, payload, orderId: purchase.orderId }
  }

  function alert(type: AlertKind, occasion: string): Change {
    return enqueueAlert(ordering, { type, ...about(occasion) })
  }

  /** Above the ceiling the money is spent and the customer gets the keys; the offer waits for a person. */
  function overCeiling(order: SupplierOrder): Change[] {
    const foreign = order.currency !== undefined && order.currency !== purchase.currency
    if (order.amountMinor === undefined) return []
    if (!foreign && order.amountMinor <= mostOf(purchase)) return []
    // Only a new amount counts: an offer that a person has released is not held again by the same purchase.
    const news = foreign ? order.statusWord !== purchase.supplierStatus : order.amountMinor !== purchase.amountMinor
    if (!news) return []
    return [
      holdOffer(purchase.supplierProductId, now),
      ...reportDiscrepancy(ordering, {
        kind: 'over_ceiling',
        subject: purchase.id,
        supplierOrderId: order.id,
        alert: about(purchase.id),
        detail: `charged ${amountText(order.amountMinor, order.currency ?? purchase.currency)}, the ceiling of one is ${amountText(purchase.ceilingMinor, purchase.currency)}`,
      }),
    ]
  }
}

/** New keys, sealed; and one hand-over for all that are not in one yet, at most the quantity. */
function keyChanges(
  { vault, newId }: Ordering,
  { purchase, keys, name }: Loaded,
  { effects, set }: Transition,
  reading: Reading | undefined,
  now: number,
): Change[] {
  const changes: Change[] = []
  const outboxId = newId()
  const first = keys.reduce((most, key) => Math.max(most, key.ordinal), 0) + 1
  const isFree = (key: LicenceKey) => key.handOverId === null || (effects.includes('withdraw') && !hasLeft(key))
  let room = purchase.quantity - (set.surplus ?? purchase.surplus) - keys.filter((key) => !isFree(key)).length
  let assigned = 0
  const take = (): boolean => {
    if (!effects.includes('hand_over') || room <= 0) return false
    room -= 1
    assigned += 1
    return true
  }
  for (const key of keys) {
    if (isFree(key) && take()) changes.push(assignKey(purchase.id, key.ordinal, outboxId))
  }
  const fresh = reading && effects.includes('store_keys') ? keysToStore(reading, keys) : []
  for (const [offset, key] of fresh.entries()) {
    const ordinal = first + offset
    const sealed = vault.seal({ table: 'licence_keys', row: purchase.id, ordinal }, key.text)
    changes.push(
      insertKey({
        purchaseId: purchase.id,
        ordinal,
        blindIndex: key.blindIndexes[0],
        storedAt: now,
        ciphertext: sealed.ciphertext,
        keyId: sealed.keyId,
        handOverId: take() ? outboxId : null,
      }),
    )
  }
  if (assigned === 0) return changes
  const update: UpdateEffect = {
    kind: 'callback',
    type: 'line.fulfilled',
    payload: { purchaseId: purchase.id, count: assigned },
  }
  const dedupeKey = `keys:${purchase.id}:${outboxId}`
  const { orderId } = purchase
  return [...changes, enqueueUpdate(update, { id: outboxId, store: name.store, orderId, dedupeKey, at: now })]
}

/** The text of a stored licence key, in its normal form. */
export const openKey = (
  { vault }: Pick<Ordering, 'vault'>,
  key: { purchaseId: string; ordinal: number; ciphertext: Buffer; keyId: number },
): string => {
  const place = { table: 'licence_keys', row: key.purchaseId, ordinal: key.ordinal }
  return normalKey(vault.open(place, key.ciphertext, key.keyId).toString('utf8'))
}

/** Hand-overs that have not begun to leave stay here; stale when one of them begins in between. */
function withdrawal({ purchase, keys }: Loaded): Change[] {
  const waiting = keysWaiting(keys)
  if (waiting.length === 0) return []
  const effects = new Set(waiting.map(({ handOverId }) => handOverId))
  return [takeBackKeys(purchase.id, waiting.length), ...[...effects].map(withdrawEffect)]
}

/** Keys of hand-overs that have not begun to leave. */
export const keysWaiting = <K extends Pick<LicenceKey, 'handOverId' | 'begunAt'>>(
  keys: readonly K[],
): (K & { handOverId: string })[] =>
  keys.filter((key): key is K & { handOverId: string } => key.handOverId !== null && key.begunAt === null)

/** The keys of a reading that are not stored yet. */
export function keysToStore(reading: Reading, stored: { blindIndex: Buffer }[]): Reading['keys'] {
  const isStored = (index: Buffer) => stored.some(({ blindIndex }) => blindIndex.equals(index))
  return reading.keys.filter(({ blindIndexes }) => !blindIndexes.some(isStored))
}

type PlanEffect = Extract<Effect, { plan: unknown }>

/** The next generation of a part: the same purchase under keys of its own, for what the store has no keys of yet. */
function plannedNext(
  { newId, dialect, policy }: Ordering,
  loaded: Loaded,
  { plan: holdReason, notBefore, quantity: asked }: PlanEffect,
  now: number,
): NewPurchase {
  const { purchase, name, generations } = loaded
  const generation = Math.max(...generations.map((other) => other.generation)) + 1
  const open = purchase.quantity - unitsLeft(loaded)
  const quantity = asked ?? (open > purchase.surplus ? open - purchase.surplus : open)
  return {
    ...plannedPurchase(dialect, { ...name, part: purchase.part, generation }, { ...purchase, quantity }),
    id: newId(),
    orderId: purchase.orderId,
    lineId: purchase.lineId,
    holdReason,
    notBefore,
    ceilingMinor: purchase.ceilingMinor,
    ceilingDecidedAt: purchase.ceilingDecidedAt,
    currency: purchase.currency,
    plannedRevision: purchase.plannedRevision,
    heldAt: holdReason === null ? null : now,
    // A refused purchase cost nothing, so the caps that an operator has overridden stay overridden.
    spendCapOverriddenAt: holdReason === null ? null : purchase.spendCapOverriddenAt,
    // A person who retries gives it the full time again; the machine's own next try keeps the deadline.
    deadlineAt: holdReason === null ? now + policy.deadlineMs : purchase.deadlineAt,
    createdAt: now,
    changedAt: now,
  }
}

/** The columns that follow from a purchase's name and what it buys: keys, and the exact bytes that will be sent. */
export function plannedPurchase(
  dialect: Ordering['dialect'],
  name: PurchaseName,
  { supplierProductId, quantity }: { supplierProductId: string; quantity: number },
) {
  const reference = externalOrderId(name, dialect.externalOrderIdMax)
  return {
    part: name.part,
    generation: name.generation,
    state: 'planned' as const,
    idempotencyKey: idempotencyKey(name),
    externalOrderId: reference,
    body: orderBody(dialect, { productId: supplierProductId, quantity, externalOrderId: reference }),
    supplierProductId,
    quantity,
  }
}

/** Supplier orders that were seen for a purchase, its own first: adopted, shown to a person, or named by an answer. */
export function ordersOf(
  { purchase }: Pick<Loaded, 'purchase'>,
  attempts: Pick<Attempt, 'supplierOrderId'>[],
): string[] {
  const all = [purchase.supplierOrderId, ...purchase.ordersSeen, ...attempts.map((one) => one.supplierOrderId)]
  return [...new Set(all.filter((id): id is string => id !== null && id !== ''))]
}

/** Whether units that waited go on: the supplier has the order, and nothing else keeps them. */
function resumes(purchase: Loaded['purchase'], { next, row, set }: Transition): boolean {
  if (purchase.holdReported === null) return false
  const isHeld = isStandingHold(set.holdReason === undefined ? purchase.holdReason : set.holdReason)
  return !isHeld && (next === 'accepted' || (row === 'shop_paid' && next === 'completed') || row === 'paid_again')
}

/** Units of it that the store has keys for, or is being given them right now. */
export const unitsLeft = ({ keys }: Pick<Loaded, 'keys'>): number => keys.filter(hasLeft).length

/** Keys that the store has once all that came are handed over: at most the quantity. */
export const handedOverIn = ({ purchase, keys }: Loaded): number =>
  Math.min(keys.length, purchase.quantity - purchase.surplus)
