import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { afterAnswer } from '../domain/breaker.ts'
import { notExecutedDelayMs, rejectedDelayMs } from '../domain/pace.ts'
import { answerClass, type Placement } from '../domain/placement.ts'
import { type Answer, mayBuy, type PurchaseInput, type Transition } from '../domain/purchase.ts'
import { type Change, StaleWrite } from '../storage/database.ts'
import { insertAttempt } from '../storage/evidence.ts'
import { oweEffect } from '../storage/outbox.ts'
import { claimPurchase, type Purchase, type PurchaseUpdate } from '../storage/purchases.ts'
import { assertNoFreeze } from '../storage/settings.ts'
import { advance, type Loaded } from './advance.ts'
import type { Ordering } from './context.ts'

/** A lease: until when this process alone may change the purchase, on a clock that does not jump. */
export interface Claim {
  purchaseId: string
  epoch: number
  leaseEndMonotonic: number
}

/** The API key was refused: somebody must mend it, and until then each request would be refused again. */
const UNAUTHORIZED_PAUSE_MS = 60_000

/** The answer must be here long before a request may count as run: a third of the time that the supplier needs to settle. */
const deadlineMs = ({ dialect }: Ordering): number => (dialect.settleSeconds * 1_000) / 3

/** Longer than everything that can happen to one request, so that a lease never ends under a request. */
const leaseMs = ({ dialect }: Ordering): number => dialect.settleSeconds * 2_000

/**
 * Takes the lease of a purchase, in a commit of its own.
 *
 * @returns undefined when another holds it or the row has changed since it was read
 */
export async function claim(ordering: Ordering, purchase: Purchase): Promise<Claim | undefined> {
  const now = ordering.now()
  const leaseEndMonotonic = ordering.monotonic() + leaseMs(ordering)
  ordering.at('claiming')
  try {
    await ordering.db.commit([claimPurchase(purchase, ordering.owner, now + leaseMs(ordering), now)])
  } catch (error) {
    if (error instanceof StaleWrite) return undefined
    throw error
  }
  ordering.at('claimed')
  return { purchaseId: purchase.id, epoch: purchase.leaseEpoch + 1, leaseEndMonotonic }
}

/**
 * Commits the intent to send and sends: the row in `sending`, its attempt and its reservation are durable before the
 * first byte leaves, and the answer is recorded after.
 *
 * @param input leads to `sending` when the table agrees; a first send and a repeat differ only in it
 * @returns whether the purchase was sent
 * @see Reseller API v1.1, section 4, POST /orders, rule 1
 */
export async function send(
  ordering: Ordering,
  held: Claim,
  input: (loaded: Loaded) => PurchaseInput | undefined,
): Promise<boolean> {
  ordering.at('intending')
  let intended: Loaded | undefined
  const also = (loaded: Loaded, decision: Transition): Change[] => {
    if (decision.next !== 'sending') return []
    const others = loaded.generations.filter((other) => other.id !== loaded.purchase.id)
    assert(mayBuy(others), `another generation of the part may have been charged: ${loaded.purchase.externalOrderId}`)
    intended = loaded
    return [sentAttempt(ordering, loaded.purchase), assertNoFreeze(ordering.now())]
  }
  const decision = await advance(ordering, held.purchaseId, input, {
    epoch: held.epoch,
    also,
    columns: ({ purchase }, { next }) => (next === 'sending' ? intentColumns(purchase, ordering, ordering.now()) : {}),
  })
  if (decision?.next !== 'sending' || !intended) return false
  ordering.at('intended')
  const { purchase } = intended
  const placement = await ordering.supplier.placeOrder({
    body: purchase.body,
    idempotencyKey: purchase.idempotencyKey,
    expected: {
      externalOrderId: purchase.externalOrderId,
      productId: purchase.supplierProductId,
      quantity: purchase.quantity,
    },
    maybeCharged: purchase.maybeChargedAt !== null,
    deadlineMs: deadlineMs(ordering),
    // Checked right before the write: a process that slept through its lease sends nothing.
    beforeWrite: () => ordering.monotonic() + deadlineMs(ordering) < held.leaseEndMonotonic,
  })
  ordering.at('answered')
  await record(ordering, held, purchase, placement)
  ordering.at('recorded')
  return true
}

/** Columns that the commit of the intent sets beside the state. */
const intentColumns = (purchase: Purchase, { dialect }: Ordering, now: number): PurchaseUpdate => ({
  sends: purchase.sends + 1,
  firstSentAt: purchase.firstSentAt ?? now,
  lastSentAt: now,
  absentSince: null,
  // A day that is stated is used as 23 hours: clocks differ, and a key forgotten early is a second charge.
  keySafeUntil: purchase.keySafeUntil ?? now + Math.floor((dialect.idempotencyMemorySeconds * 1_000 * 23) / 24),
})

function sentAttempt({ newId, now }: Ordering, purchase: Purchase): Change {
  return insertAttempt({
    id: newId(),
    purchaseId: purchase.id,
    kind: 'place',
    stage: 'sent',
    number: purchase.sends + 1,
    at: now(),
    requestDigest: createHash('sha256').update(purchase.body).digest('hex'),
  })
}

/** Writes down what came back: the evidence in any case, the transition if the lease is still ours. */
async function record(ordering: Ordering, held: Claim, purchase: Purchase, placement: Placement): Promise<void> {
  const now = ordering.now()
  const { evidence } = placement
  const { pace } = ordering
  pace.breaker = afterAnswer(pace.breaker, placement.outcome === 'unknown' && !placement.rejection)
  const attempt = insertAttempt({
    id: ordering.newId(),
    purchaseId: purchase.id,
    kind: 'place',
    stage: 'answered',
    number: purchase.sends + 1,
    at: now,
    class: placement.outcome === 'accepted' ? null : answerClass(placement),
    status: evidence.status,
    code: evidence.code,
    requestId: evidence.requestId,
    supplierOrderId: evidence.supplierOrderId,
    answerDigest: evidence.answerDigest,
    detail: evidence.detail,
  })
  const answer = answerOf(placement)
  const notBefore = nextAttemptAt(ordering, purchase, placement, now)
  const alsoAlert = placement.outcome === 'not_executed' && placement.cause === 'unauthorized'
  if (alsoAlert) pace.pausedUntil = now + UNAUTHORIZED_PAUSE_MS
  const rejected = placement.outcome === 'rejected'
  await Promise.all([
    ordering.db.commit(alsoAlert ? [attempt, unauthorizedAlert(ordering, now)] : [attempt]),
    advance(ordering, purchase.id, () => ({ type: 'answer', answer, notBefore }), {
      epoch: held.epoch,
      detail: evidence.detail,
      ...(rejected ? { columns: { failureCode: placement.code, failureMessage: placement.message } } : {}),
    }),
  ])
}

function answerOf(placement: Placement): Answer {
  switch (placement.outcome) {
    case 'accepted':
      return { outcome: 'accepted', orderId: placement.order.id, agrees: placement.agrees }
    case 'rejected':
      return { outcome: 'rejected', reason: placement.reason }
    case 'not_executed':
      return { outcome: 'not_executed' }
    case 'unknown':
      return { outcome: 'unknown', rejection: placement.rejection }
  }
}

function nextAttemptAt(ordering: Ordering, purchase: Purchase, placement: Placement, now: number): number {
  if (placement.outcome === 'rejected') return now + rejectedDelayMs(purchase.generation, ordering.random())
  const wait = notExecutedDelayMs(purchase.sends, ordering.random())
  if (placement.outcome !== 'not_executed') return now + wait
  return now + Math.max(wait, placement.retryAfterMs ?? 0)
}

/** One an hour: the person who mends the key needs no second one. */
function unauthorizedAlert({ newId }: Ordering, now: number): Change {
  return oweEffect({
    id: newId(),
    kind: 'alert',
    type: 'unauthorized',
    dedupeKey: `alert:unauthorized:${Math.floor(now / 3_600_000)}`,
    payload: JSON.stringify({ note: 'the supplier refuses the API key: buying pauses until it is mended' }),
    state: 'due',
    notBefore: now,
    createdAt: now,
  })
}
