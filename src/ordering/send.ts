import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { type AnswerQuality, afterAnswer, notExecutedDelayMs, rejectedDelayMs } from '../domain/pace.ts'
import { type Answer, mayBuy, mostOf, type PurchaseInput } from '../domain/purchase.ts'
import { answerClass, isNamed, type Placement } from '../domain/supplier.ts'
import { codeOf, Failure, messageOf } from '../errors.ts'
import { type Change, first, StaleWrite } from '../storage/database.ts'
import { assertEntitled } from '../storage/entitlements.ts'
import { insertAttempt } from '../storage/evidence.ts'
import { assertNoFreeze } from '../storage/freezes.ts'
import { offersByProduct } from '../storage/offers.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import { assertWithinCap, type Purchase, type PurchaseUpdate, purchaseById } from '../storage/purchases.ts'
import { advance, type Given, type Loaded, moveBy } from './advance.ts'
import {
  assertInForce,
  deadlineMs,
  expectedOf,
  forgetIntent,
  leaseMs,
  noteIntent,
  type Ordering,
  readSince,
} from './context.ts'
import { bodyFor, capsOf, offerGuard } from './guards.ts'
import { notePrice } from './one-first.ts'

/**
 * Commits the intent to send a purchase: its lease, the row in `sending`, its attempt and its reservation. All of them are
 * durable before the first byte leaves.
 *
 * @param loaded the purchase as it was judged; a row that has changed since then is not sent
 * @param input leads to `sending` when the transition table agrees; a first send and a repeat differ only in this input
 * @returns a function that sends the purchase once; undefined when it must not be sent, or when another worker has it
 */
export async function prepareSend(
  ordering: Ordering,
  loaded: Loaded,
  input: PurchaseInput,
): Promise<(() => Promise<void>) | undefined> {
  const body = await bodyNow(ordering, loaded.purchase)
  if (body === undefined) return undefined
  const purchase = { ...loaded.purchase, body }
  const attempt = ordering.newId()
  const held = newLease(ordering, purchase)
  if ((purchase.leaseUntil ?? 0) > held.claimedAt) return undefined
  ordering.at('intending')
  const move = await moveBy(ordering, loaded, {
    input,
    set: ({ next }) => (next === 'sending' ? intentColumns(ordering, purchase, held) : { leaseEpoch: held.leaseEpoch }),
    also: ({ next }) => (next === 'sending' ? intentChanges(ordering, { ...loaded, purchase }, attempt) : []),
  })
  if (move.changes.length === 0) return undefined
  try {
    await ordering.db.commit(move.changes)
  } catch (error) {
    if (error instanceof StaleWrite && (await hasChanged(ordering, purchase))) return undefined
    throw error
  }
  move.committed()
  if (move.news) ordering.wake('outbox', move.news.store)
  if (move.moved?.decision.next !== 'sending') return undefined
  noteIntent(ordering, purchase.id, held.claimedAt)
  noteSend(ordering, purchase.sends > 0)
  return async () => {
    // If the marker cannot be written, nothing is sent, and a look-up follows. Otherwise an older copy of the database could
    // later be used unnoticed. Requests that leave together share one marker.
    await ordering.mark?.(attempt)
    ordering.at('intended')
    await transmit(ordering, held, purchase)
  }
}

/**
 * Returns the bytes to be sent. Those of a request that may have run never change. Before that, the dialect's `orderBody` is
 * filled with the price as the offer states it now, also after a request that is proven not to have run: the supplier does not
 * know its key then, and if it does know the key with other bytes, it says so, and the purchase is looked up and not repeated.
 *
 * @returns undefined when the offer, as it is stored now, must not be bought for the purchase: the guards hold it at its next turn
 */
async function bodyNow(ordering: Ordering, purchase: Purchase): Promise<string | undefined> {
  const { db, dialect } = ordering
  if (purchase.firstSentAt !== null || (!dialect.orderBody && purchase.body !== '')) return purchase.body
  const offer = await first(db, offersByProduct([purchase.supplierProductId]))
  return !offer || offerGuard(ordering, purchase, offer) ? undefined : bodyFor(ordering, purchase, offer)
}

/** Says whether nothing lets the supplier know a repeat of a request, also if its dialect was another one at the first send. */
export const isKeyless = ({ dialect }: Pick<Ordering, 'dialect'>, { body, idempotencyKey }: Purchase): boolean =>
  dialect.idempotency === 'none' || (dialect.idempotency === 'field' && !body.includes(idempotencyKey))

const hasChanged = async ({ db }: Ordering, { id, version }: Purchase): Promise<boolean> =>
  (await first(db, purchaseById(id)))?.version !== version

/** Returns what the commit of an intent writes and asserts besides the row of the purchase. */
function intentChanges(ordering: Ordering, { purchase, generations }: Loaded, attempt: string): Change[] {
  const others = generations.filter((other) => other.id !== purchase.id)
  assert(purchase.body !== '', `the bytes of the earlier request are not on record: ${purchase.externalOrderId}`)
  assert(mayBuy(others), `another generation of the part may have been charged: ${purchase.externalOrderId}`)
  return [
    sentAttempt(ordering, purchase, attempt),
    assertNoFreeze(ordering.now()),
    ...assertInForce(ordering),
    ...assertEntitled(purchase, purchase.state === 'unknown' ? 0 : readSince(ordering)),
    ...withinCaps(ordering, purchase),
  ]
}

/** Sends the intended request once, and records its answer. @see Reseller API v1.1, section 4, POST /orders, rule 1 */
async function transmit(ordering: Ordering, held: Lease, purchase: Purchase): Promise<void> {
  const placement = await ordering.supplier.placeOrder({
    body: purchase.body,
    idempotencyKey: purchase.idempotencyKey,
    expected: expectedOf(purchase),
    maybeCharged: purchase.maybeChargedAt !== null,
    deadlineMs: deadlineMs(ordering),
    // Asked right before the write: a request is written soon after its intent or not at all, even if the process slept
    // in between. The wall clock is asked too, because only that clock goes on while a machine sleeps.
    beforeWrite: () =>
      ordering.monotonic() + deadlineMs(ordering) < held.leaseEndMonotonic &&
      ordering.monotonic() < held.writeEndMonotonic &&
      Math.abs(ordering.now() - held.claimedAt) < deadlineMs(ordering),
  })
  ordering.at('answered')
  await record(ordering, held, purchase, placement)
  ordering.at('recorded')
  if (placement.outcome !== 'rejected' || placement.reason !== 'balance') return
  // The supplier called the balance too low. By a new reading, the balance guard holds the whole queue.
  await ordering.checkBalance().catch((error: unknown) => {
    ordering.log.warn('balance.unread', { error: messageOf(error) })
  })
}

/** Asserts the caps again, as another worker may have used up their room. A repeat needs no room: its money is reserved. */
function withinCaps(ordering: Ordering, purchase: Purchase): Change[] {
  if (purchase.state === 'unknown') return []
  return capsOf(ordering, purchase).map(({ scope, minor }) => assertWithinCap(purchase.id, scope, minor))
}

/** Returns further columns that the commit of the intent sets. The new epoch shuts out the worker that had the lease before. */
const intentColumns = (
  { dialect, owner }: Ordering,
  purchase: Purchase,
  { leaseEpoch, claimedAt: now }: Lease,
): PurchaseUpdate => ({
  body: purchase.body,
  leaseOwner: owner,
  leaseUntil: now + leaseMs({ dialect }),
  leaseEpoch,
  sends: purchase.sends + 1,
  firstSentAt: purchase.firstSentAt ?? now,
  lastSentAt: now,
  reservedAt: now,
  absentSince: null,
  // A day counts as 23 hours, because clocks differ: a repeat after the supplier has forgotten the key is a second charge.
  keySafeUntil:
    dialect.idempotency === 'none'
      ? null
      : (purchase.keySafeUntil ?? now + Math.floor((dialect.idempotencyMemorySeconds * 1_000 * 23) / 24)),
})

function sentAttempt({ now }: Ordering, purchase: Purchase, id: string): Change {
  return insertAttempt({
    id,
    purchaseId: purchase.id,
    kind: 'place',
    stage: 'sent',
    number: purchase.sends + 1,
    at: now(),
    requestDigest: createHash('sha256').update(purchase.body).digest('hex'),
  })
}

/** Stores the answer to a request: the evidence in any case, and the transition if the lease is still ours. */
async function record(ordering: Ordering, held: Lease, purchase: Purchase, placement: Placement): Promise<void> {
  const now = ordering.now()
  const { evidence } = placement
  const { pace } = ordering
  if (isAnswer(placement)) {
    pace.breaker = afterAnswer(pace.breaker, qualityOf(placement))
    const differs = placement.outcome === 'unknown' && placement.cause === 'disagrees'
    if (placement.outcome === 'accepted' || differs) noteAgreement(pace, purchase.id, !differs)
  }
  const attempt = insertAttempt({
    id: ordering.newId(),
    purchaseId: purchase.id,
    kind: 'place',
    stage: 'answered',
    number: purchase.sends + 1,
    at: now,
    class: placement.outcome === 'accepted' || isNamed(placement) ? null : answerClass(placement),
    status: evidence.status,
    code: evidence.code,
    requestId: evidence.requestId,
    supplierOrderId: evidence.supplierOrderId,
    answerDigest: evidence.answerDigest,
    detail: evidence.detail,
  })
  if (placement.outcome === 'accepted') forgetIntent(ordering, purchase.id)
  // The answer to a repeat may be as old as the order, so its price does not count.
  if (placement.outcome === 'accepted' && placement.agrees && purchase.maybeChargedAt === null) {
    notePrice(ordering, purchase, placement.order)
  }
  const answer = answerOf(placement, purchase.sends > 0)
  const notBefore = nextAttemptAt(ordering, purchase, placement, now)
  const unauthorized = placement.outcome === 'not_executed' && placement.cause === 'unauthorized'
  const evident = unauthorized ? [attempt, pauseUnauthorized(ordering)] : [attempt]
  const settle = (answer: Answer, known: Partial<Given>) =>
    advance(
      ordering,
      purchase.id,
      { input: { type: 'answer', answer, notBefore }, detail: evidence.detail, ...known },
      held.leaseEpoch,
    )
  const stated = placement.outcome === 'accepted' ? placement.order : undefined
  const settled = () =>
    settle(answer, { set: statedBy(placement, purchase), stated }).catch((error: unknown) => {
      if (codeOf(error) !== 'conflict' || !stated) throw error
      // The order that the answer names belongs to another purchase. A look-up finds the order of this purchase.
      return settle({ outcome: 'unknown', rejection: false, orderId: stated.id }, {})
    })
  await Promise.all([store(ordering, held, () => ordering.db.commit(evident)), store(ordering, held, settled)])
  if (unauthorized) ordering.wake('outbox')
}

/** Notes whether the supplier has made an order as we sent it. If the first one differs, buying stops until a person decides. */
export function noteAgreement(pace: Ordering['pace'], purchaseId: string, agrees: boolean): void {
  if (agrees) pace.agreed = true
  else if (!pace.agreed) pace.differs = purchaseId
}

/** Stores an answer. While the database takes nothing, this process keeps the answer, and `storeAnswers` tries again. */
async function store({ pace }: Ordering, held: Lease, act: () => Promise<unknown>): Promise<void> {
  try {
    await act()
  } catch (error) {
    if (!(error instanceof StaleWrite)) pace.unstored.push({ until: held.leaseEndMonotonic, act })
    throw error
  }
}

/** Stores answers that could not be stored before, while the leases of their purchases last. Later, a look-up replaces them. */
export async function storeAnswers({ pace, monotonic }: Pick<Ordering, 'pace' | 'monotonic'>): Promise<void> {
  for (const one of pace.unstored.splice(0)) {
    if (monotonic() >= one.until) continue
    await one.act().catch((error: unknown) => {
      // A stale commit means that the answer was stored after all, or that another process has taken the purchase.
      if (!(error instanceof StaleWrite) && codeOf(error) !== 'conflict') pace.unstored.push(one)
    })
  }
}

/** Returns the columns that an answer states. The ceiling stays reserved until the order is completed, as its amount may rise. */
function statedBy(placement: Placement, purchase: Purchase): PurchaseUpdate {
  const { currency } = purchase
  if (placement.outcome === 'rejected') return { failureCode: placement.code, failureMessage: placement.message }
  if (placement.outcome !== 'accepted' || !placement.agrees) return {}
  const { amountMinor, currency: stated = currency, statusWord } = placement.order
  if (amountMinor === undefined) return {}
  const known = { supplierStatus: statusWord }
  if (stated !== currency) return known
  const isFinal = placement.order.status === 'completed' && amountMinor > 0
  return { ...known, amountMinor, reservedMinor: isFinal ? amountMinor : Math.max(amountMinor, mostOf(purchase)) }
}

/** Says whether the supplier answered. A request that never left says nothing about how the supplier answers. */
const isAnswer = (placement: Placement): boolean =>
  placement.outcome !== 'not_executed' || placement.cause === 'rate_limited' || placement.cause === 'unauthorized'

function qualityOf(placement: Placement): AnswerQuality {
  if (placement.outcome !== 'unknown' || placement.rejection || isNamed(placement)) return 'clear'
  return placement.cause === 'unreadable' ? 'unreadable' : 'ambiguous'
}

function answerOf(placement: Placement, isRepeat: boolean): Answer {
  switch (placement.outcome) {
    case 'accepted': {
      const { order, agrees } = placement
      // The answer to a repeat may be as old as the order, so the order may not be open any more.
      return { outcome: 'accepted', orderId: order.id, agrees, isOpen: order.status === 'open' && !isRepeat }
    }
    case 'rejected':
      return { outcome: 'rejected', reason: placement.reason }
    case 'not_executed':
      return { outcome: 'not_executed' }
    case 'unknown':
      return {
        outcome: 'unknown',
        rejection: placement.rejection,
        orderId: placement.evidence.supplierOrderId ?? null,
        ...(isNamed(placement) && { isNamed: true }),
      }
  }
}

function nextAttemptAt(ordering: Ordering, purchase: Purchase, placement: Placement, now: number): number {
  if (placement.outcome === 'rejected') return now + rejectedDelayMs(purchase.generation, ordering.random())
  const wait = notExecutedDelayMs(purchase.sends, ordering.random())
  if (placement.outcome !== 'not_executed') return now + wait
  return now + Math.max(wait, placement.retryAfterMs ?? 0)
}

/** A lease. Until its end only its holder may change the purchase. The end is on a clock that does not jump. */
interface Lease {
  leaseEpoch: number
  /** An instant of the wall clock. */
  claimedAt: number
  leaseEndMonotonic: number
  /** The latest instant at which the request may be written. Look-ups rely on it to prove that an order is absent. */
  writeEndMonotonic: number
}

/** Returns the lease that the commit of an intent takes. The time of the lease runs from before that commit. */
function newLease(ordering: Ordering, purchase: Purchase): Lease {
  const start = ordering.monotonic()
  return {
    leaseEpoch: purchase.leaseEpoch + 1,
    claimedAt: ordering.now(),
    leaseEndMonotonic: start + leaseMs(ordering),
    writeEndMonotonic: start + deadlineMs(ordering),
  }
}

const WINDOW_MS = 60_000
/** Repeats per minute that are always allowed, so that an installation with few orders recovers quickly. */
const REPEATS_MIN = 6

/**
 * Says whether another repeat may leave. The limit is a tenth of the first attempts of the last minute, but at least
 * 6 repeats a minute. So a failing supplier is not flooded with repeats.
 */
export function mayRepeat({ pace, now }: Pick<Ordering, 'pace' | 'now'>): boolean {
  const { firstSends, repeats } = pace
  for (const sends of [firstSends, repeats]) forgetBefore(sends, now() - WINDOW_MS)
  return repeats.length < Math.max(REPEATS_MIN, Math.floor(firstSends.length / 10))
}

/** Counts a request that is about to leave. */
function noteSend({ pace, now }: Pick<Ordering, 'pace' | 'now'>, repeat: boolean): void {
  const sends = repeat ? pace.repeats : pace.firstSends
  sends.push(now())
  forgetBefore(sends, now() - WINDOW_MS)
}

function forgetBefore(sends: number[], since: number): void {
  const kept = sends.findIndex((at) => at > since)
  sends.splice(0, kept === -1 ? sends.length : kept)
}

/** How long buying pauses after a refused API key. Until the key is corrected, each request would be refused. */
const PAUSE_MS = 60_000

/** Pauses buying because the supplier has refused the API key. @returns the alert, at most one an hour */
export function pauseUnauthorized(ordering: Ordering): Change {
  const now = ordering.now()
  ordering.pace.pausedUntil = now + PAUSE_MS
  const payload = { note: 'the supplier refuses the API key: buying pauses until it is corrected' }
  return enqueueAlert(ordering, { type: 'unauthorized', occasion: String(Math.floor(now / 3_600_000)), payload })
}

/** Says whether a read failed because of the API key. */
export const isUnauthorized = (error: unknown): boolean => error instanceof Failure && error.reason === 'unauthorized'
