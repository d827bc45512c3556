import assert from 'node:assert/strict'
import type { AlertKind } from '../domain/alert-kinds.ts'
import { markOfKey, needsPage, normalKey, partsOfPair, type StoredKeyType } from '../domain/licence-key.ts'
import { amountText } from '../domain/money.ts'
import { type Effect, isStandingHold, mostOf, type Transition } from '../domain/purchase.ts'
import { externalOrderId, idempotencyKey, type PurchaseName } from '../domain/purchase-keys.ts'
import { hasLeft } from '../domain/store-order.ts'
import { holdToReport, type LineFulfilled, type ReportedHold } from '../domain/store-update.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import type { Change } from '../storage/database.ts'
import { reportDiscrepancy } from '../storage/discrepancies.ts'
import type { Attempt } from '../storage/evidence.ts'
import { setFreeze } from '../storage/freezes.ts'
import { assignKey, insertKey, type LicenceKey, takeBackKeys } from '../storage/licence-keys.ts'
import { holdOffer, markOutOfStock } from '../storage/offers.ts'
import { enqueueAlert, enqueueUpdate, type UpdateEffect, withdrawEffect } from '../storage/outbox.ts'
import { enqueuePublications } from '../storage/publications.ts'
import { changePurchase, insertPurchase, type NewPurchase, type Purchase } from '../storage/purchases.ts'
import { markReopened } from '../storage/store-orders.ts'
import { orderBody } from '../supplier/client.ts'
import type { Loaded } from './advance.ts'
import type { Ordering } from './context.ts'

/** An order as it was read from the supplier, with its keys. Each key is in the list once. */
export interface Reading {
  order: SupplierOrder
  keys: ReadKey[]
}

interface ReadKey {
  /** The key in its normal form. */
  text: string
  /** What it is; absent: a text. */
  type?: StoredKeyType | undefined
  /** Blind indexes of the normal form and of the forms in which the key came: an older version stored the index of the latter. */
  blindIndexes: [Buffer, ...Buffer[]]
}

/** A decision about a purchase, and the facts that it was made from. */
export interface Decided {
  loaded: Loaded
  decision: Transition
  now: number
  reading?: Reading | undefined
  /** The order as the answer to POST /orders states it. Default: the order as it was read. */
  stated?: SupplierOrder | undefined
  /** Columns of the next generation, if the decision plans one. */
  nextGeneration?: Partial<NewPurchase> | undefined
}

/**
 * Turns the effects of a decision into changes of the same commit, before and after the change of the purchase's row, and into
 * further columns of that row.
 */
export function effectChanges(ordering: Ordering, decided: Decided) {
  const { loaded, decision, now, reading, stated = reading?.order } = decided
  const { purchase } = loaded
  const has = (effect: Effect) => decision.effects.includes(effect)
  const hold = holdToReport(purchase.holdReported, decision.set.holdReason)
  const isResumed = resumes(purchase, decision)
  const open = { purchaseId: purchase.id, units: unitsOpen(decided) }
  return {
    before: has('cancel_later') ? laterCancelled(decided) : [],
    after: [
      ...(has('cancel_later') ? [markReopened(purchase.orderId)] : []),
      ...(has('withdraw') ? withdrawal(loaded) : []),
      ...(has('store_keys') || has('hand_over') ? keyChanges(ordering, decided) : []),
      ...(hold === undefined ? [] : [heldUpdate(ordering, decided, purchase.id, hold)]),
      ...(isResumed ? [pushUpdate(ordering, decided, { type: 'line.resumed', payload: open })] : []),
      ...(has('notify_failed') ? [failedUpdate(ordering, decided)] : []),
      ...decision.effects.flatMap((effect) => {
        if (typeof effect === 'string') return []
        return 'plan' in effect ? planChanges(ordering, decided, effect) : discrepancyChanges(ordering, decided, effect)
      }),
      ...(has('freeze') ? freezeChanges(ordering, decided) : []),
      ...(decision.alert === null ? [] : [alert(ordering, decided, decision.alert, purchase.version)]),
      ...(stated ? overCeiling(ordering, decided, stated) : []),
    ],
    set: {
      ...(hold !== undefined && { holdReported: hold }),
      ...(isResumed && { holdReported: null }),
      ...(has('notify_failed') && { failureNotifiedAt: now }),
    },
  }
}

/** The columns of a generation that ends because the order of another generation was found. */
export const NOT_NEEDED = { state: 'cancelled', holdReason: null, notBefore: null } as const

/** Cancels later generations that were never sent: the order of an earlier attempt was found, so they are not needed. */
function laterCancelled({ loaded: { purchase, generations }, now }: Decided): Change[] {
  const note = 'not needed: the order of an earlier attempt was found'
  return generations
    .filter(({ generation, firstSentAt }) => generation > purchase.generation && firstSentAt === null)
    .filter(({ state }) => ['planned', 'waiting', 'review'].includes(state))
    .map((one) => changePurchase(one, { ...NOT_NEEDED, note }, now))
}

/** Enqueues an update for the store. @param dedupeKey default: the id of the update, for an update that can come only once */
export function pushUpdate(
  { newId }: Pick<Ordering, 'newId'>,
  { loaded, now }: Pick<Decided, 'loaded' | 'now'>,
  update: Update,
  dedupeKey?: string,
): Change {
  const id = newId()
  const { store } = loaded.name
  const { orderId } = loaded.purchase
  return enqueueUpdate({ kind: 'callback', ...update }, { id, store, orderId, dedupeKey: dedupeKey ?? id, at: now })
}

type Update = UpdateEffect extends infer U ? (U extends UpdateEffect ? Omit<U, 'kind'> : never) : never

function heldUpdate(ordering: Ordering, decided: Decided, purchaseId: string, reason: ReportedHold): Change {
  return pushUpdate(ordering, decided, {
    type: 'line.held',
    payload: { purchaseId, units: unitsOpen(decided), reason },
  })
}

function failedUpdate(ordering: Ordering, decided: Decided): Change {
  const { loaded, decision } = decided
  const { id, quantity, version } = loaded.purchase
  const units = decision.effects.includes('hand_over') ? quantity - handedOverIn(loaded) : unitsOpen(decided)
  const payload = { purchaseId: id, units, row: decision.row }
  return pushUpdate(ordering, decided, { type: 'line.failed', payload }, `failed:${id}:${version}`)
}

const unitsOpen = ({ loaded }: Pick<Decided, 'loaded'>): number => loaded.purchase.quantity - unitsLeft(loaded)

function planChanges(ordering: Ordering, decided: Decided, effect: PlanEffect): Change[] {
  const { loaded, now, nextGeneration } = decided
  const { supplierProductId, holdReported, orderId } = loaded.purchase
  const next = plannedNext(ordering, loaded, effect, now)
  const held = holdToReport(holdReported, effect.plan)
  return [
    // An offer that the supplier has just refused is not for sale until the supplier says that it is in stock.
    ...(effect.plan === 'out_of_stock' ? outOfStock(ordering, decided, supplierProductId) : []),
    insertPurchase({ ...next, holdReported: held ?? holdReported, ...nextGeneration }),
    ...(held === undefined ? [] : [heldUpdate(ordering, decided, next.id, held)]),
    // The order may have been reported as closed. It is reported as closed again when this purchase has ended.
    markReopened(orderId),
  ]
}

function outOfStock({ newId, stores }: Ordering, { loaded, now }: Decided, productId: string): Change[] {
  const because = { newId, now, cause: `purchase ${loaded.purchase.id}` }
  return [markOutOfStock(productId, now), ...enqueuePublications(stores, [productId], because)]
}

function discrepancyChanges(
  ordering: Ordering,
  decided: Decided,
  { discrepancy: kind, orderId }: DiscrepancyEffect,
): Change[] {
  const { id, externalOrderId, state } = decided.loaded.purchase
  return reportDiscrepancy(ordering, {
    kind,
    subject: id,
    supplierOrderId: orderId,
    detail: `${externalOrderId} in ${state}`,
    alert: about(decided, `${id}:${orderId}`),
  })
}

function freezeChanges(ordering: Ordering, decided: Decided): Change[] {
  const { loaded, decision, now } = decided
  const { id } = loaded.purchase
  const reason = `purchase ${id}: ${decision.set.note ?? 'a second order of the supplier was found for it'}`
  return [setFreeze({ reason, actor: 'quayside', at: now, purchaseId: id }), alert(ordering, decided, 'freeze', now)]
}

/** @param occasion tells this alert from other alerts of the purchase */
function alert(ordering: Ordering, decided: Decided, type: AlertKind, occasion: number): Change {
  return enqueueAlert(ordering, { type, ...about(decided, `${decided.loaded.purchase.id}:${occasion}`) })
}

const about = ({ loaded: { purchase }, decision }: Decided, occasion: string) => ({
  occasion,
  payload: { purchaseId: purchase.id, note: decision.set.note ?? null },
  orderId: purchase.orderId,
})

/** Holds the offer of an order that cost more than the ceiling, until a person releases it. The customer gets the keys anyway. */
function overCeiling(ordering: Ordering, decided: Decided, order: SupplierOrder): Change[] {
  const { purchase } = decided.loaded
  const foreign = order.currency !== undefined && order.currency !== purchase.currency
  if (order.amountMinor === undefined) return []
  if (!foreign && order.amountMinor <= mostOf(purchase)) return []
  // Only a new amount counts: an offer that a person has released is not held again by the same purchase.
  const news = foreign ? order.statusWord !== purchase.supplierStatus : order.amountMinor !== purchase.amountMinor
  if (!news) return []
  return [
    holdOffer(purchase.supplierProductId, decided.now),
    ...reportDiscrepancy(ordering, {
      kind: 'over_ceiling',
      subject: purchase.id,
      supplierOrderId: order.id,
      alert: about(decided, purchase.id),
      detail: `charged ${amountText(order.amountMinor, order.currency ?? purchase.currency)}, the ceiling of one is ${amountText(purchase.ceilingMinor, purchase.currency)}`,
    }),
  ]
}

/** What is decided about the keys of a purchase. */
interface DecidedKeys {
  loaded: Omit<Loaded, 'generations'>
  decision: Pick<Transition, 'effects' | 'set'>
  reading?: Pick<Reading, 'keys'> | undefined
  now: number
}

/** Stores new keys, sealed. Makes one hand-over of all keys that are in no hand-over yet, up to the quantity. */
export function keyChanges(
  { vault, newId }: Pick<Ordering, 'vault' | 'newId'>,
  { loaded: { purchase, keys, name }, decision: { effects, set }, reading, now }: DecidedKeys,
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
        type: key.type ?? 'text',
      }),
    )
  }
  if (assigned === 0) return changes
  const payload = { purchaseId: purchase.id, count: assigned }
  const dedupeKey = `keys:${purchase.id}:${outboxId}`
  const address = { id: outboxId, store: name.store, orderId: purchase.orderId, dedupeKey, at: now }
  return [...changes, enqueueUpdate({ kind: 'callback', type: 'line.fulfilled', payload }, address)]
}

/** Opens a stored licence key and returns its text in normal form. */
export const openKey = (
  { vault }: Pick<Ordering, 'vault'>,
  key: { purchaseId: string; ordinal: number; ciphertext: Buffer; keyId: number },
): string => {
  const place = { table: 'licence_keys', row: key.purchaseId, ordinal: key.ordinal }
  return normalKey(vault.open(place, key.ciphertext, key.keyId).toString('utf8'))
}

/** Returns a key as people read it: a picture or a file is the address of the page of keys, so that no content is ever a text. */
export const shownKey = (
  ordering: Pick<Ordering, 'vault'>,
  key: Parameters<typeof openKey>[1] & { type: StoredKeyType },
  page: string | undefined,
) => {
  const { type } = key
  if (needsPage(key)) return { type, text: page ?? NO_PAGE }
  const text = openKey(ordering, key)
  return { type, text, ...(type === 'pair' && { parts: partsOfPair(text) }) }
}
const NO_PAGE = 'a picture or a file, which the page of keys shows: set publicUrl'

/** Returns the address of an order's page of keys where one of its keys needs it. */
export const pageFor = async (
  { keysUrl }: { keysUrl?: ((orderId: string) => Promise<string>) | undefined },
  orderId: string,
  keys: readonly { type: StoredKeyType }[],
): Promise<string | undefined> => (keys.some(needsPage) ? keysUrl?.(orderId) : undefined)

/** Returns keys as their store takes them: the licence keys in plain text, or their marks where customers get a link alone. */
export const keysFor = (
  ordering: Pick<Ordering, 'vault'>,
  by: LineFulfilled['by'],
  keys: readonly (Parameters<typeof openKey>[1] & { type: StoredKeyType })[],
  purchases: readonly Pick<Purchase, 'id' | 'externalOrderId'>[],
): string[] =>
  keys.map((key) => {
    if (by !== 'link' && !needsPage(key)) return openKey(ordering, key)
    const purchase = purchases.find(({ id }) => id === key.purchaseId)
    assert(purchase, 'a purchase is never deleted')
    return markOfKey(purchase.externalOrderId, key.ordinal)
  })

/** Takes back the hand-overs that have not begun to leave. If one of them begins first, the commit is stale. */
function withdrawal({ purchase, keys }: Loaded): Change[] {
  const waiting = keysWaiting(keys)
  if (waiting.length === 0) return []
  const effects = new Set(waiting.map(({ handOverId }) => handOverId))
  return [takeBackKeys(purchase.id, waiting.length), ...[...effects].map(withdrawEffect)]
}

/** Returns the keys of hand-overs that have not begun to leave. */
export const keysWaiting = <K extends Pick<LicenceKey, 'handOverId' | 'begunAt'>>(
  keys: readonly K[],
): (K & { handOverId: string })[] =>
  keys.filter((key): key is K & { handOverId: string } => key.handOverId !== null && key.begunAt === null)

export function keysToStore(reading: Pick<Reading, 'keys'>, stored: { blindIndex: Buffer }[]): Reading['keys'] {
  const isStored = (index: Buffer) => stored.some(({ blindIndex }) => blindIndex.equals(index))
  return reading.keys.filter(({ blindIndexes }) => !blindIndexes.some(isStored))
}

type PlanEffect = Extract<Effect, { plan: unknown }>
type DiscrepancyEffect = Extract<Effect, { discrepancy: unknown }>

/** Returns the next generation: the same purchase under a new idempotency key, for the units whose keys the store lacks. */
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
    claim: purchase.claim,
    plannedRevision: purchase.plannedRevision,
    heldAt: holdReason === null ? null : now,
    // A refused purchase cost nothing, so the caps that an operator has overridden stay overridden.
    spendCapOverriddenAt: holdReason === null ? null : purchase.spendCapOverriddenAt,
    // A retry by a person gives the purchase the full time again. An automatic next try keeps the deadline.
    deadlineAt: holdReason === null ? now + policy.deadlineMs : purchase.deadlineAt,
    createdAt: now,
    changedAt: now,
  }
}

/**
 * Returns the columns that follow from a purchase's name and product: idempotency key, reference, and the bytes to be sent. The
 * bytes are empty where they have the price: they are made when it is first sent.
 */
export function plannedPurchase(
  dialect: Ordering['dialect'],
  name: PurchaseName,
  { supplierProductId, quantity }: { supplierProductId: string; quantity: number },
) {
  const reference = externalOrderId(name, dialect.externalOrderIdMax)
  const key = idempotencyKey(name)
  const expected = { productId: supplierProductId, quantity, externalOrderId: reference }
  return {
    part: name.part,
    generation: name.generation,
    state: 'planned' as const,
    idempotencyKey: key,
    externalOrderId: reference,
    body: orderBody(dialect, expected, { idempotencyKey: key }),
    supplierProductId,
    quantity,
  }
}

/** Returns the supplier's orders that were adopted, shown to a person or named by an answer: the purchase's own order first. */
export function ordersOf(
  { purchase }: Pick<Loaded, 'purchase'>,
  attempts: Pick<Attempt, 'supplierOrderId'>[],
): string[] {
  const all = [purchase.supplierOrderId, ...purchase.ordersSeen, ...attempts.map((one) => one.supplierOrderId)]
  return [...new Set(all.filter((id): id is string => id !== null && id !== ''))]
}

/** Says whether units that were reported as held go on: the supplier has the order, and no hold keeps the units. */
function resumes(purchase: Loaded['purchase'], { next, row, set }: Transition): boolean {
  if (purchase.holdReported === null) return false
  const isHeld = isStandingHold(set.holdReason === undefined ? purchase.holdReason : set.holdReason)
  return !isHeld && (next === 'accepted' || (row === 'shop_paid' && next === 'completed') || row === 'paid_again')
}

/** Counts the units whose keys the store has, or is getting right now. */
export const unitsLeft = ({ keys }: Pick<Loaded, 'keys'>): number => keys.filter(hasLeft).length

/** Counts the keys that the store will have once all keys that came are handed over: at most the quantity. */
export const handedOverIn = ({ purchase, keys }: Loaded): number =>
  Math.min(keys.length, purchase.quantity - purchase.surplus)
