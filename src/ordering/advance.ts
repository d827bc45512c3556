/**
 * Ordering: from a store order to licence keys, each part bought once.
 *
 * Every flow here does the same three things: it reads, lets `domain/purchase` decide, and stores the decision with its
 * effects in one commit. After a stale commit the flow begins again. Nothing is sent before its intent is durable. Facts
 * that only the supplier knows are asked of the supplier, never guessed.
 */
import assert from 'node:assert/strict'
import type { AlertKind } from '../domain/alert-kinds.ts'
import { markOfKey, needsPage, normalKey, partsOfPair, type StoredKeyType } from '../domain/licence-key.ts'
import { amountText } from '../domain/money.ts'
import { nextReadAt } from '../domain/pace.ts'
import {
  type Effect,
  finalStates,
  isOver,
  isStandingHold,
  mostOf,
  type PurchaseFacts,
  type PurchaseInput,
  provesUncharged,
  type Transition,
  transition,
} from '../domain/purchase.ts'
import { externalOrderId, idempotencyKey, type PurchaseName } from '../domain/purchase-keys.ts'
import { hasLeft } from '../domain/store-order.ts'
import { holdToReport, type LineFulfilled, type ReportedHold } from '../domain/store-update.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import { type Change, first, retryStale } from '../storage/database.ts'
import { reportDiscrepancy } from '../storage/discrepancies.ts'
import { earningsChanged } from '../storage/earnings.ts'
import { entitlementOfOrder, settleFirst, settleSoon } from '../storage/entitlements.ts'
import { type Attempt, insertTransition } from '../storage/evidence.ts'
import { setFreeze } from '../storage/freezes.ts'
import { assignKey, insertKey, keysOfPurchase, type LicenceKey, takeBackKeys } from '../storage/licence-keys.ts'
import { holdOffer, markOutOfStock } from '../storage/offers.ts'
import { enqueueAlert, enqueueUpdate, type UpdateEffect, withdrawEffect } from '../storage/outbox.ts'
import { enqueuePublications } from '../storage/publications.ts'
import {
  changePurchase,
  generationsOf,
  hintPurchase,
  insertPurchase,
  type NewPurchase,
  type Purchase,
  type PurchaseUpdate,
  refreshUnlessHinted,
} from '../storage/purchases.ts'
import { markReopened } from '../storage/store-orders.ts'
import { orderBody } from '../supplier/client.ts'
import { deliveriesArrive, type Ordering } from './context.ts'
import { freezeForReviews } from './freeze.ts'

/** A purchase with the other facts that a decision about it needs: its other generations and its keys. */
export interface Loaded {
  purchase: Purchase
  /** All generations of the part, oldest first, this one included. */
  generations: Purchase[]
  keys: LicenceKey[]
  /** The parts of the name from which the idempotency key and the reference of the purchase are derived. */
  name: { store: string; reference: string; line: string }
}

/** An input that moves a purchase, with all that belongs to it. */
export interface Given {
  input: PurchaseInput
  /** Further columns of the purchase to set, after those of the decision. */
  set?: PurchaseUpdate | ((decision: Transition) => PurchaseUpdate) | undefined
  /** Changes that go into the same commit. */
  also?: Change[] | ((decision: Transition) => Change[])
  /** Columns of the next generation, if the decision plans one. */
  nextGeneration?: Partial<NewPurchase>
  /** The order and its keys, as they were just read from the supplier. */
  reading?: Reading
  /** The order as the answer to POST /orders states it. */
  stated?: SupplierOrder | undefined
  /** The purchase as it was when the reading began. A hint since then asks for another reading. */
  readFor?: Pick<Purchase, 'refreshAt'>
  /** The person who decided; absent when no person did. */
  actor?: string
  /** A sentence for the evidence. */
  detail?: string
}

export interface Moved {
  /** The purchase as it was before the move. */
  loaded: Loaded
  decision: Transition
}

/** The number of tries when other workers change the purchase's row first. At most three writers work on one row. */
const STALE_MAX = 5

/** Inputs that are tried on every tick. Without a change they leave no evidence. */
const ROUTINE: ReadonlySet<PurchaseInput['type']> = new Set(['clock', 'released', 'due', 'shop_pays', 'shop_cancels'])

/** Rows of the transition table that match on every poll. They leave no evidence. */
const UNREMARKABLE = new Set(['still_open'])

/**
 * Moves one purchase by one input, with all effects, in one commit.
 *
 * @param given the input, or a function that returns the input for the purchase as it is now, and undefined when none applies
 * @param leaseEpoch the epoch of the caller's own lease; without a lease, a purchase that a worker holds is only marked as due
 * @returns the move that was committed; undefined when nothing matched, or while another worker has the row
 * @throws StaleWrite after five races in a row
 */
export async function advance(
  ordering: Ordering,
  purchaseId: string,
  given: Given | ((loaded: Loaded) => Given | undefined | Promise<Given | undefined>),
  leaseEpoch?: number,
): Promise<Moved | undefined> {
  const { db, now } = ordering
  return retryStale(STALE_MAX, async () => {
    const loaded = await load(ordering, purchaseId, leaseEpoch === undefined)
    if (!loaded) return undefined
    const { purchase } = loaded
    if (leaseEpoch === undefined && purchase.leaseUntil !== null && purchase.leaseUntil > now()) {
      await db.commit([hintPurchase(purchaseId, now())])
      return undefined
    }
    if (leaseEpoch !== undefined && purchase.leaseEpoch !== leaseEpoch) return undefined
    const known = typeof given === 'function' ? await given(loaded) : given
    const move = known && (await moveBy(ordering, loaded, known))
    if (!move || move.changes.length === 0) return undefined
    await db.commit(move.changes)
    move.committed()
    if (move.news) ordering.wake('outbox', move.news.store)
    return move.moved
  })
}

export interface Move {
  /** Undefined where no row of the transition table matches. Then `changes` is empty, or has only the record of the input. */
  moved: Moved | undefined
  changes: Change[]
  /** To be called once the changes are committed. */
  committed: () => void
  /** Set when the outbox may have work: after a message, a person's decision or an end. `store`: only for that store. */
  news?: { store?: string } | undefined
}

/** Decides about one purchase and returns the changes, so that several decisions can share a commit. Writes nothing. */
export async function moveBy(ordering: Ordering, loaded: Loaded, given: Given): Promise<Move> {
  const { purchase } = loaded
  const { reading, also } = given
  const now = ordering.now()
  const input = asDecidedNow(given.input, loaded)
  const decision = transition(factsOf(loaded), input, now)
  const evidence = insertTransition({
    id: ordering.newId(),
    purchaseId: purchase.id,
    at: now,
    input: input.type,
    row: decision?.row ?? 'none',
    before: purchase.state,
    after: decision?.next ?? purchase.state,
    actor: given.actor ?? null,
    detail: given.detail ?? null,
  })
  if (!decision) {
    const same = reading !== undefined && reading.order.statusWord === purchase.supplierStatus
    return { moved: undefined, changes: same || ROUTINE.has(input.type) ? [] : [evidence], committed: () => {} }
  }
  const decided = await decidedColumns(ordering, loaded, input)
  const nextGeneration = { ...decided, ...given.nextGeneration }
  const effects = effectChanges(ordering, { ...given, loaded, decision, now, nextGeneration })
  const entersReview = decision.next === 'review' && purchase.state !== 'review'
  const set = {
    ...stamps(loaded, decision, { ...given, now, areAnnounced: deliveriesArrive(ordering) }),
    ...effects.set,
    // When a purchase ends or is opened again, an earlier decision of a person no longer stands.
    ...(isOver(decision.next) !== isOver(purchase.state) && { decidedRevision: null }),
    ...decided,
    ...(typeof given.set === 'function' ? given.set(decision) : given.set),
  }
  return {
    moved: { loaded, decision },
    changes: [
      ...effects.before,
      changePurchase(purchase, set, now),
      ...effects.after,
      ...((typeof also === 'function' ? also(decision) : also) ?? []),
      ...(entersReview ? await freezeForReviews(ordering, purchase.id, decision.row) : []),
      ...settlesAgain(purchase, decision, now),
      ...(changesMoney(purchase, set) ? [earningsChanged(purchase.orderId)] : []),
      ...(UNREMARKABLE.has(decision.row) ? [] : [evidence]),
    ],
    committed: () => {
      countSpend(ordering, purchase, set)
      announce(ordering, purchase, decision)
    },
    news: newsOf(loaded, decision, {
      hasEffects: entersReview || effects.before.length + effects.after.length > 0,
      isDecided: given.actor !== undefined,
    }),
  }
}

function newsOf(
  { name: { store } }: Loaded,
  decision: Transition,
  { hasEffects, isDecided }: { hasEffects: boolean; isDecided: boolean },
): Move['news'] {
  if (isDecided || finalStates.includes(decision.next)) return {}
  if (!hasEffects) return undefined
  const isKeysAlone = decision.effects.includes('hand_over') && decision.alert === null && !isLoud(decision)
  return isKeysAlone ? { store } : {}
}

/** Whether a change concerns what a purchase was charged, or what came back or is owed back of it. */
const changesMoney = (before: Purchase, set: PurchaseUpdate): boolean =>
  (['amountMinor', 'refundedAt', 'writtenOffAt'] as const).some(
    (name) => (set[name] ?? before[name]) !== before[name],
  ) ||
  (set.state !== before.state && (set.state === 'failed' || before.state === 'failed'))

/** Decisions of a person that outweigh the state of the store order, until a newer reading takes units from the order. */
const AGAINST_THE_ORDER: ReadonlySet<PurchaseInput['type']> = new Set(['retry', 'hand_over', 'close', 'buy_again'])

async function decidedColumns(
  { db }: Ordering,
  { purchase }: Loaded,
  { type }: PurchaseInput,
): Promise<{ decidedRevision?: number }> {
  if (!AGAINST_THE_ORDER.has(type)) return {}
  const order = await first(db, entitlementOfOrder(purchase.orderId))
  return order ? { decidedRevision: order.revision } : {}
}

/** Has the store order compared with its purchases again: after an end or a review, and when `sending` becomes `waiting`. */
function settlesAgain({ state, orderId }: Purchase, { next, row }: Transition, now: number): Change[] {
  if (next === 'accepted' && (isOver(state) || state === 'review')) return [settleFirst(orderId, now)]
  const isEnd = next !== state && next !== 'fulfilled' && (isOver(next) || isOver(state) || state === 'review')
  const isBack = (state === 'sending' && next === 'waiting') || row === 'absent_and_fewer'
  return isEnd || isBack ? [settleSoon(orderId, now)] : []
}

/** @param mayHaveKeys false for a purchase that is being sent: its order is not known, and no key has come */
export async function load({ db }: Pick<Ordering, 'db'>, id: string, mayHaveKeys = true): Promise<Loaded | undefined> {
  const [generations, keys] = await Promise.all([
    db.query(generationsOf(id)),
    mayHaveKeys ? db.query(keysOfPurchase(id)) : [],
  ])
  const purchase = generations.find((one) => one.id === id)
  if (!purchase) return undefined
  const { store, reference, line } = purchase
  return { purchase, generations, keys, name: { store, reference, line } }
}

/** Marks the orders on which a person has decided since they were found. */
function asDecidedNow(input: PurchaseInput, { purchase }: Loaded): PurchaseInput {
  if (input.type !== 'found') return input
  const seen = new Set(purchase.ordersSeen)
  return { ...input, orders: input.orders.map((order) => ({ ...order, decided: seen.has(order.id) })) }
}

/** Returns the facts of a purchase in the words of the transition table. */
export function factsOf({
  purchase,
  generations,
  keys,
}: Pick<Loaded, 'purchase' | 'generations' | 'keys'>): PurchaseFacts {
  const later = generations.filter((other) => other.generation > purchase.generation)
  return {
    ...purchase,
    lastClass: purchase.lastClass as PurchaseFacts['lastClass'],
    keysStored: keys.length,
    keysWaiting: keysWaiting(keys).length,
    keysLeft: unitsLeft({ keys }),
    ordersSeen: purchase.ordersSeen,
    // A generation that was cancelled before it was sent bought nothing, and does not count.
    newest: later.every((other) => other.state === 'cancelled' && other.firstSentAt === null),
    laterSent: later.some((other) => other.firstSentAt !== null),
  }
}

/** Counts the cost of a purchase when the supplier first states it. A later statement counts only the difference. */
function countSpend(
  { count }: Ordering,
  { amountMinor: before, currency }: Purchase,
  { amountMinor }: PurchaseUpdate,
): void {
  if (typeof amountMinor === 'number') count('spend', amountMinor - (before ?? 0), currency)
}

const LOUD: ReadonlySet<Effect> = new Set<Effect>(['alert', 'freeze'])

const isLoud = ({ effects }: Transition): boolean =>
  effects.some((effect) => LOUD.has(effect) || (typeof effect === 'object' && 'discrepancy' in effect))

function announce(ordering: Ordering, purchase: Purchase, decision: Transition): void {
  if (decision.next !== purchase.state || decision.row === 'held' || isLoud(decision)) {
    ordering.log.info(`purchase.${decision.next}`, {
      purchaseId: purchase.id,
      generation: purchase.generation,
      before: purchase.state,
      row: decision.row,
      reason: decision.set.holdReason ?? decision.set.note,
      supplierOrderId: decision.set.supplierOrderId ?? purchase.supplierOrderId,
    })
  }
  if (decision.effects.includes('read_now')) ordering.wake('refresh')
  if (decision.effects.some((effect) => typeof effect === 'object' && 'plan' in effect)) {
    ordering.wake('place')
    // If the offer is out of stock, its stores must stop selling it.
    ordering.wake('publish')
  }
}

/** Returns the columns that follow from a transition: state, instants, the next refresh, the lease and the reservation. */
export function stamps(
  { purchase }: Loaded,
  decision: Transition,
  {
    input,
    now,
    areAnnounced,
    reading,
    readFor = purchase,
  }: Pick<Given, 'input' | 'reading' | 'readFor'> & { now: number; areAnnounced: boolean },
): PurchaseUpdate {
  const { next, set, effects, row } = decision
  const entered = next !== purchase.state
  const update: PurchaseUpdate = { ...set, state: next }
  // Every try begins with a release. If a release reset the errors, they would never add up.
  if (purchase.errorCount > 0 && row !== 'released') Object.assign(update, { errorCount: 0, errorText: null })
  if (set.holdReason !== undefined && set.holdReason !== purchase.holdReason) {
    update.heldAt = set.holdReason === null ? null : now
  }
  // The note about a hold ends with the hold.
  if (set.holdReason === null && purchase.holdReason !== null && set.note === undefined) update.note = null
  if (entered && next === 'unknown') Object.assign(update, { unknownAt: now, absentSince: null })
  // The order that an answer named is by now the purchase's own order, or one of `ordersSeen`.
  if (entered && purchase.state === 'unknown') update.namedOrderId = null
  // The request is proven not to have run. So the supplier does not know its idempotency key.
  if (entered && next === 'waiting') Object.assign(update, { firstSentAt: null, keySafeUntil: null })
  if (entered && next === 'accepted') update.acceptedAt = purchase.acceptedAt ?? now
  // After a restore, the order may be one that this database never sent. It counts as sent, so a second order is a duplicate.
  if (entered && next === 'accepted' && purchase.firstSentAt === null) update.firstSentAt = now
  if (row !== 'released' && next !== 'sending') Object.assign(update, { leaseOwner: null, leaseUntil: null })
  Object.assign(update, refresh())
  if (reading) Object.assign(update, amounts(reading, purchase.currency))
  Object.assign(update, reservation())
  return update

  function refresh(): PurchaseUpdate {
    if (effects.includes('read_now')) return { refreshAt: now, refreshes: 0 }
    // Inputs of the shop come every two minutes and say nothing of the supplier's order. They must not put off its next reading.
    if (!entered && input.type.startsWith('shop_')) return {}
    const refreshes = entered ? 0 : purchase.refreshes
    const readAt = nextReadAt(next, refreshes, now, areAnnounced)
    if (readAt !== null) {
      // A hint that came during the request had to wait for the end of the request.
      const refreshAt =
        purchase.state === 'sending'
          ? refreshUnlessHinted(purchase, Math.min(purchase.refreshAt ?? readAt, readAt))
          : refreshUnlessHinted(readFor, readAt)
      return { refreshAt, refreshes: refreshes + 1 }
    }
    if (finalStates.includes(next)) return { refreshAt: entered ? null : refreshUnlessHinted(readFor, null) }
    // A repeat needs no look-up now. In other states `refreshAt` can only be a hint, which waits for the end of the request.
    return next === 'sending' && purchase.state === 'unknown' ? { refreshAt: null } : {}
  }

  /** Reserves the ceiling until the order is completed, then its cost. A purchase that is proven uncharged reserves nothing. */
  function reservation(): PurchaseUpdate {
    const most = mostOf(purchase)
    if (next === 'sending') return { reservedMinor: most }
    if (provesUncharged(purchase, decision)) return { reservedMinor: 0 }
    // A failed order may state another amount. The money that comes back is known once the supplier states it.
    const amount = reading && next !== 'failed' ? (amountOf(reading, purchase.currency) ?? 0) : 0
    if (reading && amount > 0) {
      // The amount that an open order states may rise until the order is completed.
      const isFinal = reading.order.status === 'completed'
      return { reservedMinor: isFinal ? amount : Math.max(amount, purchase.reservedMinor) }
    }
    // After a restore, the order may be one that this database never sent, so nothing is reserved yet.
    const isFound = entered && (next === 'accepted' || set.ordersSeen !== undefined)
    return isFound && purchase.reservedMinor === 0 ? { reservedMinor: most, reservedAt: now } : {}
  }
}

/** Returns what the order cost; undefined for an amount in another currency than the purchase's. */
const amountOf = ({ order }: Reading, currency: string): number | undefined =>
  order.currency === undefined || order.currency === currency ? order.amountMinor : undefined

function amounts(reading: Reading, currency: string): PurchaseUpdate {
  const { order } = reading
  const update: PurchaseUpdate = { supplierStatus: order.statusWord }
  const amountMinor = amountOf(reading, currency)
  if (amountMinor !== undefined) update.amountMinor = amountMinor
  if (order.failureCode !== undefined) update.failureCode = order.failureCode
  if (order.failureMessage !== undefined) update.failureMessage = order.failureMessage
  return update
}

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
  const { holdReason } = decision.set
  const hold = holdReason == null ? undefined : holdToReport(purchase.holdReported, holdReason)
  const isResumed = resumes(purchase, decision)
  const open = { purchaseId: purchase.id, units: unitsAgain(loaded) }
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
  const units = unitsAgain(decided.loaded)
  return pushUpdate(ordering, decided, { type: 'line.held', payload: { purchaseId, units, reason } })
}

function failedUpdate(ordering: Ordering, decided: Decided): Change {
  const { loaded, decision } = decided
  const { id, version } = loaded.purchase
  const lacking = unitsOrdered(loaded.purchase) - handedOverIn(loaded)
  const units = decision.effects.includes('hand_over') ? lacking : unitsAgain(loaded)
  const payload = { purchaseId: id, units, row: decision.row }
  return pushUpdate(ordering, decided, { type: 'line.failed', payload }, `failed:${id}:${version}`)
}

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
  const quantity = asked ?? unitsAgain(loaded)
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

/** Counts the units that the store lacks. Units that the order took back do not count, unless it lacks no others. */
export function unitsAgain({ purchase, keys }: Pick<Loaded, 'purchase' | 'keys'>): number {
  const open = purchase.quantity - unitsLeft({ keys })
  return open > purchase.surplus ? open - purchase.surplus : open
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

/** Counts the keys that the store will have once a person hands over all that came. */
export const handedOverIn = ({ purchase, keys }: Loaded): number => Math.min(keys.length, unitsOrdered(purchase))

/** Counts the units that the order did not take back. If it took all of them back, all count: a person may still hand them over. */
export const unitsOrdered = ({ quantity, surplus }: Pick<Purchase, 'quantity' | 'surplus'>): number =>
  surplus < quantity ? quantity - surplus : quantity
