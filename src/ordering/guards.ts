import { amountText } from '../domain/money.ts'
import type { CostFault } from '../domain/offer.ts'
import { rejectedDelayMs } from '../domain/pace.ts'
import { type HoldReason, mostOf } from '../domain/purchase.ts'
import { Failure, messageOf } from '../errors.ts'
import { latestBalance } from '../storage/balance.ts'
import { first } from '../storage/database.ts'
import { entitledNow } from '../storage/entitlements.ts'
import { currentFreeze } from '../storage/freezes.ts'
import { type Offer, offersByProduct } from '../storage/offers.ts'
import { type CapScope, type Purchase, reservedBeyondReading, reservedUnder } from '../storage/purchases.ts'
import { lastCompleteSync } from '../storage/runs.ts'
import { orderBody } from '../supplier/client.ts'
import { deadlineMs, expectedOf, gapsOf, type Ordering } from './context.ts'
import { goesFirst, priceNow, SAID_MS, turnOf } from './one-first.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** An offer that cannot be read is asked for again after this time, or up to twice this time. */
const UNREADABLE_MS = 5_000
/** The most products whose last confirmation is remembered. When more come, all are forgotten: that only costs requests. */
const CONFIRMED_MAX = 10_000

export type Guarding = Pick<
  Ordering,
  'db' | 'now' | 'monotonic' | 'random' | 'policy' | 'dialect' | 'pace' | 'refreshOffer' | 'checkBalance'
>

export interface GuardResult {
  guard: HoldReason
  /** When the purchase is tried again by itself; null when a person decides. */
  notBefore: number | null
  /** The explanation that a person reads. */
  note: string
}

/**
 * Returns the first guard that a purchase fails. The cheapest guard is asked first: order, freeze, stock, ceiling, caps, balance.
 *
 * Reads the offer again if its last reading is older than `offerFreshness`; before the offer holds the purchase, than a minute.
 *
 * @returns undefined when the purchase may be bought now; `later` when the first purchase of its offer must show the price
 */
export async function firstFailingGuard(
  ordering: Guarding,
  purchase: Purchase,
): Promise<GuardResult | 'later' | undefined> {
  const [order, freeze] = await Promise.all([orderGuard(ordering, purchase), currentFreeze(ordering.db)])
  if (order) return order
  if (freeze) {
    // Lifting the freeze releases its purchases. After a crash in the middle of that, the rest is released by time.
    const notBefore = ordering.now() + 5 * MINUTE
    return { guard: 'frozen', notBefore, note: `buying is frozen: ${freeze.reason}` }
  }
  const priced = priceGuard(ordering, purchase)
  if (priced) return priced
  const read = await readForPurchase(ordering, purchase)
  if ('guard' in read) return read
  if (read.turn === 'later') return 'later'
  return (
    (await capGuard(ordering, purchase, 0)) ??
    (read.offer ? await balanceGuard(ordering, purchase, read.offer) : undefined)
  )
}

/** Reads the offer of a purchase. Returns the offer and whether the purchase may go now, or the guard that holds the purchase. */
async function readForPurchase(ordering: Guarding, purchase: Purchase) {
  const { supplierProductId } = purchase
  try {
    let read = await offerReadWithin(ordering, supplierProductId, freshnessMs(ordering, purchase))
    if (offerGuard(ordering, purchase, read.offer)) read = await offerReadWithin(ordering, supplierProductId, SAID_MS)
    let turn = turnOf(ordering, purchase, read.readAt)
    if (turn === 'read') {
      const again = await offerReadWithin(ordering, supplierProductId, SAID_MS).catch(() => undefined)
      if (again) read = again
      else goesFirst(ordering, purchase)
      turn = 'now'
    }
    return priceGuard(ordering, purchase) ?? offerGuard(ordering, purchase, read.offer) ?? { ...read, turn }
  } catch (error) {
    if (!(error instanceof Failure) || error.reason === 'unauthorized') throw error
    const notBefore = ordering.now() + Math.round(UNREADABLE_MS * (1 + ordering.random()))
    return { guard: 'offer_unreadable' as const, notBefore, note: `the offer cannot be read: ${messageOf(error)}` }
  }
}

/** The wait while an order has changed and its purchases are not compared with it yet, which takes moments. */
const UNSETTLED_MS = 5_000

/** Checks that the order, as it was last read, is paid and has room for the purchase. The commit checks the same once more. */
async function orderGuard({ db, now }: Guarding, { id }: Purchase): Promise<GuardResult | undefined> {
  const order = await first(db, entitledNow(id))
  if (!order || order.isDecided) return undefined
  if (order.standing === 'paid' && order.isSettled && order.isWithin) return undefined
  const note =
    order.standing === 'paid'
      ? 'the order in the shop has fewer units of it now than are planned'
      : `the order ${order.because ?? `is ${order.standing}`}`
  return { guard: 'not_entitled', notBefore: now() + (order.isSettled ? MINUTE : UNSETTLED_MS), note }
}

/**
 * Says whether a purchase passes all guards together with other purchases that are ready, but whose intents are not stored yet.
 * Nothing is read from the supplier here, because those other purchases would have to wait for the answer.
 *
 * @param besideMinor what the other purchases may cost, in minor units
 * @returns `later`: see `firstFailingGuard`
 */
export async function passesBeside(
  ordering: Guarding,
  purchase: Purchase,
  besideMinor: number,
): Promise<boolean | 'later'> {
  const [freeze, order, { offer, readAt }] = await Promise.all([
    currentFreeze(ordering.db),
    orderGuard(ordering, purchase),
    offerAsRead(ordering, purchase.supplierProductId),
  ])
  if (freeze || order) return false
  if (!offer || !isWithin(ordering, readAt, freshnessMs(ordering, purchase))) return false
  if (offerGuard(ordering, purchase, offer)) return false
  if (await capGuard(ordering, purchase, besideMinor)) return false
  const known = await freeBalance(ordering)
  const needed = offer.costMinor * purchase.quantity + besideMinor
  if (known?.currency !== purchase.currency || known.freeMinor < needed) return false
  const turn = turnOf(ordering, purchase, readAt)
  // The first purchase of the offer may have shown the price while the database was asked.
  return turn === 'later' ? turn : turn === 'now' && !priceGuard(ordering, purchase)
}

export const offerGuard = (ordering: Guarding, purchase: Purchase, offer: Offer | undefined): GuardResult | undefined =>
  stockGuard(ordering, purchase, offer) ??
  (offer && (ceilingGuard(ordering, purchase, offer) ?? bodyGuard(ordering, purchase, offer)))

/** Returns the offer as it is stored, and the instant at which the supplier last confirmed it. */
async function offerAsRead({ db, pace }: Guarding, productId: string) {
  const [[offer], [run]] = await Promise.all([db.query(offersByProduct([productId])), db.query(lastCompleteSync())])
  // A sync run without an error has read every offer whose `missedRuns` is 0.
  const isListed = run?.error === null && offer?.missedRuns === 0 && offer.goneAt === null
  const listedAt = isListed ? run.startedAt : undefined
  const readAt = Math.max(listedAt ?? Number.NEGATIVE_INFINITY, pace.checked.get(productId) ?? Number.NEGATIVE_INFINITY)
  return { offer, readAt }
}

/** Says whether a reading is at most `ms` old. A reading from an instant ahead of the clock does not count. */
const isWithin = ({ now }: Guarding, readAt: number, ms: number): boolean => readAt <= now() && now() - readAt <= ms

/** How old a reading of the offer may be. A price that the request is to state is one of the last minute: an older one is refused. */
const freshnessMs = ({ policy }: Guarding, { body }: Purchase): number =>
  body === '' ? Math.min(SAID_MS, policy.offerFreshnessMs) : policy.offerFreshnessMs

async function offerReadWithin(ordering: Guarding, productId: string, ms: number) {
  const { checked } = ordering.pace
  const now = ordering.now()
  const stored = await offerAsRead(ordering, productId)
  if (isWithin(ordering, stored.readAt, ms)) return stored
  await ordering.refreshOffer(productId)
  if (checked.size >= CONFIRMED_MAX) checked.clear()
  checked.set(productId, now)
  return { offer: await first(ordering.db, offersByProduct([productId])), readAt: now }
}

function stockGuard(ordering: Guarding, purchase: Purchase, offer: Offer | undefined): GuardResult | undefined {
  const stocks = [offer?.localStock, offer?.providerStock].filter((stock) => typeof stock === 'number')
  // A supplier whose stock figures are only a hint sells more units. There the figures only show whether the stock is empty.
  const needed = ordering.dialect.stock === 'promise' ? purchase.quantity : 1
  const short = stocks.length > 0 && stocks.reduce((sum, stock) => sum + stock, 0) < needed
  if (offer && offer.goneAt === null && offer.available && !short) return undefined
  const notBefore = ordering.now() + rejectedDelayMs(purchase.generation, ordering.random())
  const note = offer?.goneAt
    ? 'the supplier no longer has the product'
    : 'the supplier has too little of it at the moment'
  return { guard: 'out_of_stock', notBefore, note }
}

const CEILING_AGAIN_MS = 15 * MINUTE

/** Checks the ceiling against the price that the supplier charged for the same product within the last minute. */
function priceGuard(ordering: Guarding, purchase: Purchase): GuardResult | undefined {
  const costMinor = priceNow(ordering, purchase.supplierProductId) ?? 0
  if (costMinor <= purchase.ceilingMinor) return undefined
  const notBefore = ordering.now() + CEILING_AGAIN_MS
  return { guard: 'ceiling', notBefore, note: aboveCeiling(costMinor, purchase) }
}

function ceilingGuard(ordering: Guarding, purchase: Purchase, offer: Offer): GuardResult | undefined {
  const notBefore = ordering.now() + CEILING_AGAIN_MS
  if (offer.costFault !== null) return { guard: 'ceiling', notBefore, note: faultNotes[offer.costFault] }
  if (offer.currency !== purchase.currency) {
    const note = `the supplier now asks ${offer.currency}, the ceiling is in ${purchase.currency}`
    return { guard: 'ceiling', notBefore, note }
  }
  if (offer.heldAt !== null) {
    const note = 'an earlier purchase of this offer cost more than its ceiling: release it when the price is right'
    return { guard: 'ceiling', notBefore, note }
  }
  if (offer.costMinor <= purchase.ceilingMinor) return undefined
  return { guard: 'ceiling', notBefore, note: aboveCeiling(offer.costMinor, purchase) }
}

/** Returns the bytes of the request for a purchase at the price of an offer; empty when they cannot be written. */
export const bodyFor = ({ dialect }: Guarding, purchase: Purchase, { costMinor: minor, currency }: Offer): string =>
  orderBody(dialect, expectedOf(purchase), { idempotencyKey: purchase.idempotencyKey, price: { minor, currency } })

/** Checks that the dialect's `orderBody` can be filled for the purchase. */
function bodyGuard(ordering: Guarding, purchase: Purchase, offer: Offer): GuardResult | undefined {
  if (!ordering.dialect.orderBody || bodyFor(ordering, purchase, offer) !== '') return undefined
  const note = `orderBody of the dialect has the product id as a number, and ${purchase.supplierProductId} is none: correct the dialect`
  return { guard: 'offer_unreadable', notBefore: ordering.now() + CEILING_AGAIN_MS, note }
}

const aboveCeiling = (costMinor: number, { ceilingMinor, currency }: Purchase): string =>
  `one unit costs ${amountText(costMinor, currency)}, the ceiling is ${amountText(ceilingMinor, currency)}`

const faultNotes: Record<CostFault, string> = {
  missing: 'the supplier states no cost that can be read: ask the supplier; it is bought once the cost is right',
  zero: 'the supplier states a cost of 0: ask the supplier; it is bought once the cost is right',
  negative: 'the supplier states a cost below 0: ask the supplier; it is bought once the cost is right',
  currency: 'the supplier states the cost in another currency: ask the supplier; it is bought once the cost is right',
}

export interface Cap {
  name: 'order' | 'hour' | 'day'
  scope: CapScope
  minor: number
  /** The wait before a purchase that this cap holds is tried again. */
  againMs: number
}

/**
 * Returns the spend caps that a purchase must keep; no cap once an operator has overridden the caps for the purchase.
 *
 * A request may be charged until it has settled. So the hour and the day of a cap are longer by the settle time. Then
 * the supplier never charges more than the cap within an hour or a day.
 */
export function capsOf(ordering: Guarding, { orderId, spendCapOverriddenAt }: Purchase): Cap[] {
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

async function capGuard(ordering: Guarding, purchase: Purchase, besideMinor: number): Promise<GuardResult | undefined> {
  const needed = mostOf(purchase) + besideMinor
  for (const { name, scope, minor, againMs } of capsOf(ordering, purchase)) {
    const sum = await first(ordering.db, reservedUnder(scope))
    if ((sum?.total ?? 0) + needed <= minor) continue
    const note = `would exceed the spend cap of ${amountText(minor, purchase.currency)} per ${name}`
    return { guard: 'spend_cap', notBefore: ordering.now() + againMs, note }
  }
  return undefined
}

async function balanceGuard(ordering: Guarding, purchase: Purchase, offer: Offer): Promise<GuardResult | undefined> {
  const needed = offer.costMinor * purchase.quantity
  let known = await freeBalance(ordering)
  // A low balance is read again, once a minute for all purchases, so that a top-up ends their holds without a person.
  if (!known || (known.freeMinor < needed && ordering.now() - known.readAt >= MINUTE)) {
    await ordering.checkBalance()
    known = await freeBalance(ordering)
  }
  if (!known || known.currency !== purchase.currency || known.freeMinor >= needed) return undefined
  const free = amountText(Math.max(0, known.freeMinor), known.currency)
  const note = `needs ${amountText(needed, purchase.currency)}, the balance has ${free}: top it up`
  return { guard: 'balance', notBefore: ordering.now() + MINUTE, note }
}

/** Returns the balance as it was last read, less the reserved money that this reading cannot include. */
async function freeBalance({ db }: Guarding) {
  const reading = await first(db, latestBalance())
  if (!reading) return undefined
  const reserved = await first(db, reservedBeyondReading(reading.readAt))
  const { currency, readAt, amountMinor } = reading
  return { currency, readAt, freeMinor: amountMinor - (reserved?.total ?? 0) }
}
