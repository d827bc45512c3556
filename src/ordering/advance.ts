/**
 * Ordering: from a store order to licence keys, each part bought once.
 *
 * Every flow here does the same three things: it reads, lets `domain/purchase` decide, and stores the decision with its
 * effects in one commit. After a stale commit the flow begins again. Nothing is sent before its intent is durable. Facts
 * that only the supplier knows are asked of the supplier, never guessed.
 */
import { nextReadAt } from '../domain/pace.ts'
import {
  type Effect,
  finalStates,
  isOver,
  mostOf,
  type PurchaseFacts,
  type PurchaseInput,
  provesUncharged,
  type Transition,
  transition,
} from '../domain/purchase.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import { type Change, first, retryStale } from '../storage/database.ts'
import { earningsChanged } from '../storage/earnings.ts'
import { entitlementOfOrder, settleFirst, settleSoon } from '../storage/entitlements.ts'
import { insertTransition } from '../storage/evidence.ts'
import { keysOfPurchase, type LicenceKey } from '../storage/licence-keys.ts'
import {
  changePurchase,
  generationsOf,
  hintPurchase,
  type NewPurchase,
  type Purchase,
  type PurchaseUpdate,
  refreshUnlessHinted,
} from '../storage/purchases.ts'
import type { Ordering } from './context.ts'
import { effectChanges, keysWaiting, type Reading, unitsLeft } from './effects.ts'
import { freezeForReviews } from './freeze.ts'
import { deliveriesArrive } from './watch.ts'

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
  given: Given | ((loaded: Loaded) => Given | undefined),
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
    const known = typeof given === 'function' ? given(loaded) : given
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
