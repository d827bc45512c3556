import { formatDecimal } from '../domain/money.ts'
import type { CostFault } from '../domain/offer.ts'
import { rejectedDelayMs } from '../domain/pace.ts'
import type { HoldReason } from '../domain/purchase.ts'
import { latestBalance } from '../storage/evidence.ts'
import { type Offer, offersByProduct } from '../storage/offers.ts'
import { type Purchase, reservedBeyondReading, reservedForOrder, reservedSince } from '../storage/purchases.ts'
import { currentFreeze } from '../storage/settings.ts'
import type { Ordering } from './context.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** An offer confirmed within this time is not read again before a purchase: bursts of one product cost one request. */
const CONFIRMED_MS = MINUTE
/** Products whose confirmation is remembered; more only cost a request each. */
const CONFIRMED_MAX = 10_000

export interface GuardResult {
  guard: HoldReason
  /** When to look again by itself; null waits for a person. */
  notBefore: number | null
  /** What a person reads. */
  note: string
}

/**
 * The first guard that a purchase fails, cheapest first: freeze, stock, ceiling, spend caps, balance.
 *
 * Reads the offer anew unless it was confirmed within the last minute.
 *
 * @returns undefined when it may be bought now
 */
export async function firstFailingGuard(ordering: Ordering, purchase: Purchase): Promise<GuardResult | undefined> {
  const freeze = await currentFreeze(ordering.db)
  if (freeze) {
    // Lifting the freeze releases what it holds; a crash in the middle of that must not hold the rest for ever.
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
  const [offer] = await ordering.db.query(offersByProduct([productId]))
  return offer
}

function stockGuard(ordering: Ordering, purchase: Purchase, offer: Offer | undefined): GuardResult | undefined {
  const stocks = [offer?.localStock, offer?.providerStock].filter((stock) => typeof stock === 'number')
  // A supplier whose stock is only a hint sells beyond it: there the figure says no more than whether there are any.
  const needed = ordering.dialect.stock === 'promise' ? purchase.quantity : 1
  const short = stocks.length > 0 && stocks.reduce((sum, stock) => sum + stock, 0) < needed
  if (offer && offer.goneAt === null && offer.available === 1 && !short) return undefined
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

async function capGuard(ordering: Ordering, purchase: Purchase): Promise<GuardResult | undefined> {
  const { db, policy } = ordering
  const now = ordering.now()
  const needed = purchase.ceilingMinor * purchase.quantity
  const caps = [
    {
      name: 'order',
      cap: policy.caps.order,
      read: () => reservedForOrder(purchase.orderId),
      notBefore: now + 15 * MINUTE,
    },
    { name: 'hour', cap: policy.caps.hour, read: () => reservedSince(now - HOUR), notBefore: now + MINUTE },
    { name: 'day', cap: policy.caps.day, read: () => reservedSince(now - 24 * HOUR), notBefore: now + 5 * MINUTE },
  ]
  for (const { name, cap, read, notBefore } of caps) {
    if (cap === null) continue
    const [sum] = await db.query(read())
    if ((sum?.total ?? 0) + needed <= cap) continue
    const text = formatDecimal({ minor: cap, currency: purchase.currency })
    return { guard: 'spend_cap', notBefore, note: `would exceed the spend cap of ${text} per ${name}` }
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
  const [reading] = await db.query(latestBalance())
  if (!reading) return undefined
  const [reserved] = await db.query(reservedBeyondReading(reading.readAt))
  const { currency, readAt, amountMinor } = reading
  return { currency, readAt, freeMinor: amountMinor - (reserved?.total ?? 0) }
}
