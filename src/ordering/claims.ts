/** Claims: a licence key that does not work, and what a person gives in its place. Each claim is decided once. */
import assert from 'node:assert/strict'
import { type ClaimOutcome, claimMessage } from '../domain/claim.ts'
import { counted } from '../domain/figures.ts'
import { isTextKey, normalKey } from '../domain/licence-key.ts'
import { currentParts, hasLeft, isOfUnits } from '../domain/store-order.ts'
import { codeOf, conflict, Failure } from '../errors.ts'
import {
  type Claim,
  claimById,
  claimByNumber,
  claimsOfKey,
  endClaim,
  insertClaim,
  overdueClaims,
} from '../storage/claims.ts'
import { type Change, type Database, first, need, retryStale } from '../storage/database.ts'
import {
  changeEntitlement,
  entitlementLinesOf,
  entitlementOfOrder,
  keepDecisions,
  newestRevision,
} from '../storage/entitlements.ts'
import { attemptsOf, audited, insertTransition } from '../storage/evidence.ts'
import { assertNoFreeze, currentFreeze } from '../storage/freezes.ts'
import { keyPageOfOrder, revealsOfOrder } from '../storage/key-pages.ts'
import { assertNotElsewhere, keysByBlindIndex, keysOfPurchase } from '../storage/licence-keys.ts'
import { offersByProduct } from '../storage/offers.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import {
  changePurchase,
  insertPurchase,
  purchaseAsInserted,
  purchaseById,
  purchasesOfOrders,
} from '../storage/purchases.ts'
import { isReattaching } from '../storage/restores.ts'
import { markReopened } from '../storage/store-orders.ts'
import { auditText } from './actions.ts'
import { keyChanges, plannedPurchase } from './advance.ts'
import type { Ordering } from './context.ts'
import type { Fulfilment } from './fulfil.ts'
import { adoptOrder, ceilingOf, plannedParts } from './intake.ts'
import { orderStanding, type PurchaseSubject, subjectsOf } from './order-view.ts'

const DAY = 24 * 3_600_000
const TRIES = 5
const BATCH = 100

/**
 * Raises a claim about a key that the customer has.
 *
 * @param given `ordinal`: which key of the purchase, from 1, needed where it has several; `note`: what is wrong with it; `days`: until people are alerted
 * @returns the claim
 * @throws Failure `not_found`; `invalid` without a needed `ordinal`; `conflict`, reason `no_keys` for a key that was not delivered, reason `claimed` for a key with a claim
 */
export async function raiseClaim(
  ordering: Pick<Ordering, 'db' | 'now' | 'newId'>,
  purchaseId: string,
  given: { ordinal?: number | undefined; note: string; days: number },
  actor: string,
): Promise<Claim> {
  const { db, newId } = ordering
  const { note, days } = given
  const { orderId } = await need(db, purchaseById(purchaseId), 'purchase', purchaseId)
  const keys = await db.query(keysOfPurchase(purchaseId))
  if (given.ordinal === undefined && keys.length > 1) {
    const message = `say which of the ${keys.length} keys of the purchase does not work, from 1`
    throw new Failure('invalid', `ordinal: ${message}`, { fields: [{ field: 'ordinal', message }] })
  }
  const { ordinal = 1 } = given
  const key = keys.find((one) => one.ordinal === ordinal)
  if (!key) throw new Failure('not_found', `the purchase has no key ${ordinal}`)
  if (!hasLeft(key)) throw conflict('no_keys', 'the key was not delivered: no customer has it')
  const id = newId()
  const at = ordering.now()
  const about = { id, orderId, purchaseId, ordinal, note, raisedAt: at, raisedBy: actor, deadlineAt: at + days * DAY }
  for (let tries = 1; ; tries += 1) {
    try {
      await db.commit([
        insertClaim(about),
        audited(ordering, actor, 'claim.raise', purchaseId, `key ${ordinal}: ${note}`),
      ])
      return await need(db, claimById(id), 'claim', id)
    } catch (error) {
      if (codeOf(error) !== 'conflict') throw error
      const known = (await db.query(claimsOfKey(purchaseId, ordinal))).find(({ outcome }) => outcome !== 'refused')
      if (known) throw conflict('claimed', `claim ${known.number} is about this key`)
      // Another claim got the number at the same instant.
      if (tries === TRIES) throw error
    }
  }
}

/**
 * Buys one unit again in place of the key, as a part of its own. Where a key of the line was bought and is kept here, as after a
 * restore that lost an earlier decision, that key is given instead.
 *
 * @throws Failure as `replacing`; `conflict`, reason `frozen` while buying is frozen, reason `bought_already` where a key of the line
 *   is bought and waits for a decision
 */
export async function buyAgain(ordering: Fulfilment, number: number, actor: string, reason?: string): Promise<void> {
  const { db, now } = ordering
  await retryStale(TRIES, async () => {
    const seen = await replacing(ordering, number)
    const freeze = await currentFreeze(db)
    if (freeze) throw conflict('frozen', `buying is frozen: ${freeze.reason}`)
    const { purchase, line, name, kept, revision } = seen
    if (kept && kept.takenBackBy !== 'units') {
      const message = `purchase ${kept.id} of the line is bought and waits for a decision: hand its key over, or close it`
      throw conflict('bought_already', message)
    }
    const [offer] = await db.query(offersByProduct([purchase.supplierProductId]))
    const ceiling = offer && ceilingOf(ordering, line, offer, now())
    const plan = {
      orderId: purchase.orderId,
      lineId: line.id,
      ceilingMinor: typeof ceiling === 'number' ? ceiling : purchase.ceilingMinor,
      notBefore: null,
      plannedRevision: revision,
      claim: number,
    }
    const product = { productId: purchase.supplierProductId, currency: purchase.currency }
    await db.commit([
      ...decided(ordering, seen, { outcome: 'bought', part: kept?.part ?? name.part, actor, reason }),
      assertNoFreeze(now()),
      ...(kept ? [changePurchase(kept, { claim: number }, now())] : plannedParts(ordering, name, 1, product, plan)),
    ])
  })
  ordering.log.info('claim.bought', { count: number, actor })
  ordering.wake('place')
}

/**
 * Takes a key that the supplier gave by hand in place of the key. It is delivered as if it had been bought, at no cost.
 *
 * @param text the key in plain text. It is sealed at once
 * @throws Failure `invalid` for a text that is no key; `conflict`, reason `key_known` for a key that a purchase has already;
 *   else as `replacing`
 */
export async function adoptKey(
  ordering: Fulfilment,
  number: number,
  text: string,
  actor: string,
  reason?: string,
): Promise<void> {
  const { db, newId, now: clock, vault } = ordering
  const key = normalKey(text)
  if (!isTextKey(key)) {
    const message = 'must be one licence key, as text of at most 512 characters'
    throw new Failure('invalid', `key: ${message}`, { fields: [{ field: 'key', message }] })
  }
  const blindIndex = vault.blindIndex(key)
  await retryStale(TRIES, async () => {
    const [known] = await db.query(keysByBlindIndex([blindIndex]))
    if (known) {
      throw conflict('key_known', `purchase ${known.purchaseId} has this key already, as its key ${known.ordinal}`)
    }
    const seen = await replacing(ordering, number)
    const { purchase: replaced, line, name, revision } = seen
    const now = clock()
    const { orderId, supplierProductId, ceilingMinor, currency } = replaced
    const purchase = {
      ...plannedPurchase(ordering.dialect, { ...name, generation: 1 }, { supplierProductId, quantity: 1 }),
      ...{ id: newId(), orderId, lineId: line.id, ceilingMinor, currency, claim: number, plannedRevision: revision },
      ...{ state: 'completed' as const, amountMinor: 0, deadlineAt: now, createdAt: now, changedAt: now },
    }
    const move = { input: 'adopt_key', row: 'given_for_claim', before: 'planned', after: 'completed' } as const
    await db.commit([
      ...decided(ordering, seen, { outcome: 'adopted', part: name.part, actor, reason }),
      insertPurchase(purchase),
      insertTransition({ id: newId(), purchaseId: purchase.id, at: now, actor, ...move }),
      ...keyChanges(ordering, {
        loaded: { purchase: purchaseAsInserted(purchase), keys: [], name },
        decision: { effects: ['store_keys', 'hand_over'], set: {} },
        reading: { keys: [{ text: key, blindIndexes: [blindIndex] }] },
        now,
      }),
      assertNotElsewhere(purchase.id, [blindIndex]),
    ])
  })
  ordering.log.info('claim.adopted', { count: number, actor })
  ordering.wake('outbox')
}

/** @throws Failure `not_found`; `conflict`, reason `not_open` for a claim that has ended */
export async function refuseClaim(
  ordering: Pick<Ordering, 'db' | 'now' | 'newId'>,
  number: number,
  actor: string,
  reason: string,
): Promise<void> {
  await retryStale(TRIES, async () => {
    const claim = await openClaim(ordering, number)
    await ordering.db.commit(ended(ordering, claim, { outcome: 'refused', part: null, actor, reason }))
  })
}

/** @throws Failure `not_found` */
export async function claimNumbered({ db }: Pick<Ordering, 'db'>, number: number): Promise<Claim> {
  const claim = await first(db, claimByNumber(number))
  if (!claim) throw new Failure('not_found', `there is no claim ${number}`)
  return claim
}

async function openClaim(ordering: Pick<Ordering, 'db'>, number: number): Promise<Claim> {
  const claim = await claimNumbered(ordering, number)
  if (claim.outcome !== null) {
    throw conflict('not_open', `claim ${number} has ended: ${claim.outcome}`)
  }
  return claim
}

type Replacing = Awaited<ReturnType<typeof replacing>>

/**
 * Reads what a replacement is planned from.
 *
 * @throws Failure `not_found`; `conflict`: `not_open` for a claim that has ended, `restore_unfinished`, `order_held` while the order
 *   is not paid, `order_changed` where its customer has more keys than it has units, `order_too_old`, `withdrawn` for its page of keys
 */
async function replacing(ordering: Fulfilment, number: number) {
  const { db } = ordering
  const claim = await openClaim(ordering, number)
  if (await isReattaching(db)) {
    const message = 'it is not known yet what was bought: try again once the orders of the supplier are reattached'
    throw conflict('restore_unfinished', message)
  }
  const { orderId, purchaseId } = claim
  const { order, lines, keys } = await orderStanding(ordering, orderId)
  const ofClaim = lines.find(({ purchases }) => purchases.some(({ id }) => id === purchaseId))
  const purchase = ofClaim?.purchases.find(({ id }) => id === purchaseId)
  assert(ofClaim && purchase, 'a purchase is never deleted')
  const { line, purchases: own } = ofClaim
  const stored = await first(db, entitlementOfOrder(orderId))
  if (!stored) await adoptOrder(ordering, order)
  const row = stored ?? (await need(db, entitlementOfOrder(orderId), 'order', orderId))
  if (row.standing !== 'paid') {
    const message = `the order ${order.reference} ${row.because ?? `is ${row.standing}`}: it gets no other key`
    throw conflict('order_held', message)
  }
  const { ordersShownMs = Number.POSITIVE_INFINITY } = ordering.storeOf(order.store) ?? {}
  if (ordering.now() - order.receivedAt > ordersShownMs) {
    const days = Math.floor(ordersShownMs / DAY)
    const message = `the shop shows no order older than ${days} days, so no key can be put on it: give the customer a key yourself`
    throw conflict('order_too_old', message)
  }
  const page = await first(db, keyPageOfOrder(orderId))
  if (page?.withdrawnAt != null) {
    throw conflict('withdrawn', 'the page of keys of the order is withdrawn')
  }
  const units = await db.query(entitlementLinesOf(order.store, order.reference))
  const granted = units.find((one) => one.line === line.line)?.granted ?? 0
  const ofUnits = new Set(own.filter(isOfUnits).map(({ id }) => id))
  const left = keys.filter((key) => ofUnits.has(key.purchaseId) && hasLeft(key)).length
  if (left > granted) {
    const message = `the order has ${granted} of the line now, and its customer has ${counted(left, 'key')}`
    throw conflict('order_changed', message)
  }
  const part = Math.max(...own.map((one) => one.part)) + 1
  // A restore that lost an earlier decision finds the replacement at the supplier, as a unit that the line does not have.
  const kept = currentParts(own).find(
    (one) => one.state === 'review' && one.quantity === 1 && one.claim === null && one.cancelRequestedAt !== null,
  )
  const revision = ((await first(db, newestRevision(order.store)))?.revision ?? 0) + 1
  const name = { store: order.store, reference: order.reference, line: line.line, part }
  return { claim, purchase, line, row, revision, name, kept }
}

interface Ending {
  outcome: ClaimOutcome
  /** The part that replaces the key; null where none does. */
  part: number | null
  actor: string
  reason: string | undefined
}

/** Ends a claim with a replacement. The order gets a revision, and is compared with its purchases before anything else of it moves. */
const decided = (ordering: Ordering, { claim, row, revision }: Replacing, ending: Ending): Change[] => [
  changeEntitlement(row, { revision, settledRevision: -1, settleAt: ordering.now() }),
  keepDecisions(claim.orderId, row.revision, revision),
  ...ended(ordering, claim, ending),
  // The order may have been reported as closed. It is reported as closed again when the replacement has ended.
  markReopened(claim.orderId),
]

const ended = (
  ordering: Pick<Ordering, 'now' | 'newId'>,
  claim: Claim,
  { outcome, part, actor, reason }: Ending,
): Change[] => [
  endClaim(claim, { outcome, part, endedAt: ordering.now(), endedBy: actor, reason: reason ?? null }),
  audited(ordering, actor, `claim.${outcome}`, claim.purchaseId, auditText([`claim ${claim.number}`, reason])),
]

/** A claim with the line that it is about, and the purchase that replaces its key; null while there is none. */
export type ClaimView = Claim & Omit<PurchaseSubject, 'costMinor'> & { replacedBy: string | null }

export async function claimViews(db: Database, rows: readonly Claim[]): Promise<ClaimView[]> {
  if (rows.length === 0) return []
  const purchases = await db.query(purchasesOfOrders([...new Set(rows.map(({ orderId }) => orderId))]))
  const subjects = await subjectsOf(db, purchases)
  return rows.map((claim) => {
    const subject = subjects.get(claim.purchaseId)
    assert(subject, 'a purchase is never deleted')
    const replacements = purchases.filter((one) => one.claim === claim.number)
    return { ...claim, ...subject, replacedBy: currentParts(replacements)[0]?.id ?? null }
  })
}

/** Returns all that the supplier needs about a claim in one text, without the key. */
export async function messageOfClaim({ db }: Pick<Ordering, 'db'>, claim: Claim): Promise<string> {
  const { orderId, purchaseId, ordinal } = claim
  const purchase = await need(db, purchaseById(purchaseId), 'purchase', purchaseId)
  const [offers, attempts, keys, reveals] = await Promise.all([
    db.query(offersByProduct([purchase.supplierProductId])),
    db.query(attemptsOf([purchaseId])),
    db.query(keysOfPurchase(purchaseId)),
    db.query(revealsOfOrder(orderId)),
  ])
  return claimMessage({
    ...claim,
    purchase,
    productName: offers[0]?.name ?? null,
    deliveredAt: keys.find((key) => key.ordinal === ordinal)?.handedOverAt ?? null,
    requestIds: [...new Set(attempts.flatMap(({ requestId }) => requestId ?? []))],
    reveals: reveals.filter((one) => one.purchaseId === purchaseId && one.ordinal === ordinal),
  })
}

/** Alerts people, once for each claim, of claims that are open after their deadline. */
export async function alertOverdueClaims(ordering: Pick<Ordering, 'db' | 'now' | 'newId' | 'wake'>): Promise<void> {
  const overdue = await ordering.db.query(overdueClaims(ordering.now(), BATCH))
  if (overdue.length === 0) return
  await ordering.db.commit(
    overdue.map(({ id, number, orderId, deadlineAt, store, reference }) => {
      const note = `claim ${number} of the order ${reference} of ${store} is open since ${new Date(deadlineAt).toISOString()}, its deadline`
      const payload = { note, store, reference, claim: String(number) }
      return enqueueAlert(ordering, { type: 'claim_overdue', occasion: id, payload, orderId })
    }),
  )
  ordering.wake('outbox')
}
