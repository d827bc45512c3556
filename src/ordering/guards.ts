import { formatDecimal } from '../domain/money.ts'
import type { CostFault } from '../domain/offer.ts'
import { afterDoubts, firstSendsMax, rejectedDelayMs } from '../domain/pace.ts'
import type { HoldReason } from '../domain/purchase.ts'
import { reviewsByCancellation } from '../domain/purchase-table.ts'
import { Failure } from '../errors.ts'
import { latestBalance } from '../storage/balance.ts'
import { type Change, first } from '../storage/database.ts'
import { lastUnfreeze, reviewedSince } from '../storage/evidence.ts'
import { currentFreeze, setFreeze } from '../storage/freezes.ts'
import { type Offer, offersByProduct } from '../storage/offers.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import {
  type CapScope,
  listPurchases,
  type Purchase,
  purchasesInState,
  reservedBeyondReading,
  reservedUnder,
} from '../storage/purchases.ts'
import type { UnreadableAnswer } from '../supplier/read.ts'
import { deadlineMs, gapsOf, type Ordering } from './ordering.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** An offer confirmed within this time is not read again before a purchase: bursts of one product cost one request. */
const CONFIRMED_MS = MINUTE
/** Products whose confirmation is remembered; more only cost a request each. */
const CONFIRMED_MAX = 10_000

export interface GuardResult {
  guard: HoldReason
  /** When it is tried again by itself; null: a person decides. */
  notBefore: number | null
  /** What a person reads. */
  note: string
}

/**
 * The first guard that a purchase fails, cheapest first: freeze, stock, ceiling, spend caps, balance.
 *
 * Reads the offer again unless it was confirmed within the last minute.
 *
 * @returns undefined when it may be bought now
 */
export async function firstFailingGuard(ordering: Ordering, purchase: Purchase): Promise<GuardResult | undefined> {
  const freeze = await currentFreeze(ordering.db)
  if (freeze) {
    // Lifting the freeze releases its purchases. After a crash in the middle of that, the rest is released by time.
    const notBefore = ordering.now() + 5 * MINUTE
    return { guard: 'frozen', notBefore, note: `buying is frozen: ${freeze.reason}` }
  }
  const offer = await confirmedOffer(ordering, purchase.supplierProductId)
  return (
    stockGuard(ordering, purchase, offer) ??
    (offer ? ceilingGuard(ordering, purchase, offer) : undefined) ??
    (await capGuard(ordering, purchase)) ??
    (offer ? await balanceGuard(ordering, purchase, offer) : undefined)
  )
}

async function confirmedOffer(ordering: Ordering, productId: string): Promise<Offer | undefined> {
  const { checked } = ordering.pace
  const now = ordering.now()
  if (now - (checked.get(productId) ?? Number.NEGATIVE_INFINITY) > CONFIRMED_MS) {
    await ordering.refreshOffer(productId)
    if (checked.size >= CONFIRMED_MAX) checked.clear()
    checked.set(productId, now)
  }
  const offer = await first(ordering.db, offersByProduct([productId]))
  return offer
}

function stockGuard(ordering: Ordering, purchase: Purchase, offer: Offer | undefined): GuardResult | undefined {
  const stocks = [offer?.localStock, offer?.providerStock].filter((stock) => typeof stock === 'number')
  // A supplier whose stock is only a hint sells beyond it: there the figure says no more than whether there are any.
  const needed = ordering.dialect.stock === 'promise' ? purchase.quantity : 1
  const short = stocks.length > 0 && stocks.reduce((sum, stock) => sum + stock, 0) < needed
  if (offer && offer.goneAt === null && offer.available && !short) return undefined
  const notBefore = ordering.now() + rejectedDelayMs(purchase.generation, ordering.random())
  const note = offer?.goneAt
    ? 'the supplier no longer has the product'
    : 'the supplier has too little of it at the moment'
  return { guard: 'out_of_stock', notBefore, note }
}

function ceilingGuard(ordering: Ordering, purchase: Purchase, offer: Offer): GuardResult | undefined {
  const notBefore = ordering.now() + 15 * MINUTE
  if (offer.costFault !== null) return { guard: 'ceiling', notBefore, note: faultNotes[offer.costFault] }
  const ceiling = formatDecimal({ minor: purchase.ceilingMinor, currency: purchase.currency })
  const cost = formatDecimal({ minor: offer.costMinor, currency: offer.currency })
  if (offer.currency !== purchase.currency) {
    const note = `the supplier now asks ${offer.currency}, the ceiling is in ${purchase.currency}`
    return { guard: 'ceiling', notBefore, note }
  }
  if (offer.heldAt !== null) {
    const note = 'an earlier purchase of this offer cost more than its ceiling: release it when the price is right'
    return { guard: 'ceiling', notBefore, note }
  }
  if (offer.costMinor <= purchase.ceilingMinor) return undefined
  return { guard: 'ceiling', notBefore, note: `one unit costs ${cost} ${offer.currency}, the ceiling is ${ceiling}` }
}

const faultNotes: Record<CostFault, string> = {
  missing: 'the supplier states no cost that can be read: ask the supplier; it is bought once the cost is right',
  zero: 'the supplier states a cost of 0: ask the supplier; it is bought once the cost is right',
  negative: 'the supplier states a cost below 0: ask the supplier; it is bought once the cost is right',
  currency: 'the supplier states the cost in another currency: ask the supplier; it is bought once the cost is right',
}

/** A spend cap for one purchase. */
export interface Cap {
  name: 'order' | 'hour' | 'day'
  scope: CapScope
  minor: number
  /** Wait before a purchase that it holds is tried again. */
  againMs: number
}

/**
 * The spend caps that a purchase must keep; none once an operator has overridden them for it.
 *
 * A request may be charged until it has settled, so an hour reaches that much further back: no hour at the supplier has
 * more in it than the cap.
 */
export function capsOf(ordering: Ordering, { orderId, spendCapOverriddenAt }: Purchase): Cap[] {
  if (spendCapOverriddenAt !== null) return []
  const { caps } = ordering.policy
  const began = ordering.now() - deadlineMs(ordering) - gapsOf(ordering.dialect).settleMs
  const all = [
    { name: 'order' as const, minor: caps.order, scope: { orderId }, againMs: 15 * MINUTE },
    { name: 'hour' as const, minor: caps.hour, scope: { since: began - HOUR }, againMs: MINUTE },
    { name: 'day' as const, minor: caps.day, scope: { since: began - 24 * HOUR }, againMs: 5 * MINUTE },
  ]
  return all.flatMap(({ minor, ...cap }) => (minor === null ? [] : [{ ...cap, minor }]))
}

async function capGuard(ordering: Ordering, purchase: Purchase): Promise<GuardResult | undefined> {
  const needed = purchase.ceilingMinor * purchase.quantity
  for (const { name, scope, minor, againMs } of capsOf(ordering, purchase)) {
    const sum = await first(ordering.db, reservedUnder(scope))
    if ((sum?.total ?? 0) + needed <= minor) continue
    const text = formatDecimal({ minor, currency: purchase.currency })
    const note = `would exceed the spend cap of ${text} per ${name}`
    return { guard: 'spend_cap', notBefore: ordering.now() + againMs, note }
  }
  return undefined
}

async function balanceGuard(ordering: Ordering, purchase: Purchase, offer: Offer): Promise<GuardResult | undefined> {
  const needed = offer.costMinor * purchase.quantity
  let known = await freeBalance(ordering)
  // A top-up ends the hold by itself: what does not cover the purchase is read again, once a minute for all of them.
  if (!known || (known.freeMinor < needed && ordering.now() - known.readAt >= MINUTE)) {
    await ordering.readBalance()
    known = await freeBalance(ordering)
  }
  if (!known || known.currency !== purchase.currency || known.freeMinor >= needed) return undefined
  const free = known.freeMinor
  const text = (minor: number) => formatDecimal({ minor, currency: purchase.currency })
  const note = `needs ${text(needed)} ${purchase.currency}, the balance has ${text(Math.max(0, free))}: top it up`
  return { guard: 'balance', notBefore: ordering.now() + MINUTE, note }
}

/** The balance as last read, less what that reading cannot know of. */
async function freeBalance({ db }: Ordering) {
  const reading = await first(db, latestBalance())
  if (!reading) return undefined
  const reserved = await first(db, reservedBeyondReading(reading.readAt))
  const { currency, readAt, amountMinor } = reading
  return { currency, readAt, freeMinor: amountMinor - (reserved?.total ?? 0) }
}

const WINDOW_MS = 60_000
/** Repeats per minute that are always allowed, so that a quiet shop recovers quickly. */
const REPEATS_MIN = 6

/**
 * Whether another repeat may leave: repeats stay under a tenth of the first attempts of the last minute, but never
 * under 6 a minute. A failing supplier is not flooded with repeats.
 */
export function mayRepeat({ pace, now }: Pick<Ordering, 'pace' | 'now'>): boolean {
  const since = now() - WINDOW_MS
  pace.firstSends = pace.firstSends.filter((at) => at > since)
  pace.repeats = pace.repeats.filter((at) => at > since)
  return pace.repeats.length < Math.max(REPEATS_MIN, Math.floor(pace.firstSends.length / 10))
}

/** Counts a request that is about to leave. */
export function noteSend({ pace, now }: Pick<Ordering, 'pace' | 'now'>, repeat: boolean): void {
  const sends = repeat ? pace.repeats : pace.firstSends
  sends.push(now())
}

/** Each request would be refused until the key is corrected. */
const PAUSE_MS = 60_000

/**
 * Pauses buying because the supplier has refused the API key.
 *
 * @returns the alert, at most one an hour
 */
export function pauseUnauthorized(ordering: Ordering): Change {
  const now = ordering.now()
  ordering.pace.pausedUntil = now + PAUSE_MS
  const payload = { note: 'the supplier refuses the API key: buying pauses until it is corrected' }
  return enqueueAlert(ordering, { type: 'unauthorized', occasion: String(Math.floor(now / 3_600_000)), payload })
}

/** Whether a read failed because of the API key. */
export const isUnauthorized = (error: unknown): boolean => error instanceof Failure && error.reason === 'unauthorized'

const REVIEWS_WITHIN = 3_600_000
/** Three may be three bad orders. A fourth within the hour is a fault that the next purchase would have, too. */
const HOURLY_MAX = 3
/** The same at a lower rate: one purchase in twenty. */
const RECENT = 100
const RECENT_MAX = 5

/**
 * Stops all buying when too many purchases come into review.
 *
 * Only reviews since the last unfreeze count, so that the same ones do not stop buying again. A review after a cancellation
 * does not count, because it leaves no money in doubt.
 *
 * @returns changes for the commit that brings one more
 *
 * @param row of the transition table that brings the purchase into review
 */
export async function freezeForReviews(ordering: Ordering, purchaseId: string, row: string): Promise<Change[]> {
  if (reviewsByCancellation.includes(row)) return []
  const { db } = ordering
  const now = ordering.now()
  const unfrozen = await first(db, lastUnfreeze())
  const since = unfrozen?.at ?? 0
  const [hourly, reviewed, recent] = await Promise.all([
    db.query(reviewedSince(Math.max(since, now - REVIEWS_WITHIN), reviewsByCancellation)),
    db.query(reviewedSince(since, reviewsByCancellation)),
    db.query(listPurchases({ limit: RECENT })),
  ])
  const withThis = (list: { purchaseId: string }[]) => new Set([purchaseId, ...list.map((one) => one.purchaseId)])
  const all = withThis(reviewed)
  const share = recent.filter((purchase) => purchase.createdAt > since && all.has(purchase.id)).length
  const inHour = withThis(hourly).size
  if (inHour <= HOURLY_MAX && share < RECENT_MAX) return []
  const count = inHour > HOURLY_MAX ? `${inHour} purchases within an hour` : `${share} of the last ${RECENT} purchases`
  const reason = `${count} need a person's decision`
  return [
    // More of them are no new cause: each is decided for itself.
    setFreeze({ reason, actor: 'quayside', at: now }, 'reviews'),
    enqueueAlert(ordering, { type: 'freeze', occasion: `reviews:${since}`, payload: { note: reason } }),
  ]
}

/** Answers that pause buying are asked for again this often: once they are read, buying goes on. */
const READ_AGAIN_MS = 60_000

/** Requests by whose answers alone a charge is found again. While one of them cannot be read, no new order is sent. */
const OF_ORDERS: readonly string[] = ['GET /orders', 'GET /orders/{id}']

const blinds = ({ request, partly }: UnreadableAnswer): boolean => OF_ORDERS.includes(request) && !partly

/**
 * Whether an answer that cannot be read keeps first sends back: none leaves while orders cannot be read, and one at a time,
 * each after a look-up that read an order, while the answers to new orders cannot be.
 */
export const pausesBuying = (answer: UnreadableAnswer): boolean => blinds(answer) || answer.request === 'POST /orders'

/** One sentence for people. */
export const unreadableText = ({ request, field, setting, seen }: UnreadableAnswer): string =>
  `the answer to ${request} cannot be read: ${field} (${setting} of the dialect) has ${seen} there`

/** How many first sends may be under way at once. */
export const firstSendsNow = ({ pace, policy, supplier }: Ordering): number =>
  supplier.unreadable().some(blinds) ? 0 : firstSendsMax(pace.breaker, policy.inFlight)

/** Alerts people to each kind of answer that cannot be read, once while it lasts and at most once an hour. */
export async function alertUnreadable(ordering: Ordering): Promise<void> {
  const { pace, supplier, db, log } = ordering
  const standing = supplier.unreadable()
  if (standing.length === 0 && pace.alerted.size === 0) return
  const news = standing.filter((answer) => !pace.alerted.has(kindOf(answer)))
  const alerts = news.map((answer) => {
    const { request, field, setting, seen: value, requestId = null, since } = answer
    const next = pausesBuying(answer) ? '; nothing new is bought until one is read' : ''
    const note = `${unreadableText(answer)}${next}`
    return enqueueAlert(ordering, {
      type: 'unreadable_answer',
      occasion: `${kindOf(answer)} ${Math.floor(since / HOUR)}`,
      payload: { note, request, field, setting, value, requestId },
    })
  })
  if (alerts.length > 0) {
    await db.commit(alerts)
    ordering.wake('outbox')
  }
  for (const answer of news) {
    log.warn('supplier.unreadable', { detail: unreadableText(answer), requestId: answer.requestId })
  }
  pace.alerted = new Set(standing.map(kindOf))
}

const kindOf = ({ request, setting }: UnreadableAnswer): string => `${request} ${setting}`

/**
 * Finds out whether buying may go on: asks again for the answers that pause it, and ends the pause after an answer to an
 * order that could not be read once no purchase is in doubt.
 */
export async function endPause(ordering: Ordering): Promise<void> {
  const { pace, supplier, db } = ordering
  if (pace.breaker.unread) {
    const open = await Promise.all([db.query(purchasesInState('sending', 1)), db.query(purchasesInState('unknown', 1))])
    if (open.every((rows) => rows.length === 0)) pace.breaker = afterDoubts(pace.breaker)
  }
  const pausing = supplier.unreadable().filter(blinds)
  if (pausing.length === 0) pace.readAgainAt = 0
  if (pausing.length === 0 || ordering.monotonic() < pace.readAgainAt) return
  // The first try waits a while: other reads that are due may succeed before.
  const isNew = pace.readAgainAt === 0
  pace.readAgainAt = ordering.monotonic() + READ_AGAIN_MS
  if (isNew) return
  await Promise.allSettled(
    pausing.map(({ id }) => (id === undefined ? supplier.orders({ page: 1 }) : supplier.order(id))),
  )
}
