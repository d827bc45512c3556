/**
 * Sends the first purchase of an offer alone where the offer was not read of late. Its cost decides about the purchases behind it.
 * So a price that has risen meanwhile is paid once, and not by all purchases that are sent at the same time.
 */
import type { SupplierOrder } from '../domain/supplier.ts'
import type { Purchase } from '../storage/purchases.ts'
import type { Ordering } from './context.ts'

/** How long a price counts that the supplier has stated. */
export const SAID_MS = 60_000
/** A first purchase that is unanswered for this time no longer keeps the others waiting, if the offer can be read again. */
const FIRST_MS = 5_000
/** The number of prices that are remembered. Without a remembered price, one more purchase goes alone. */
const PRICES_MAX = 10_000

/** The first purchase of an offer, while it is on its way. */
interface First {
  purchaseId: string
  /** An instant of the clock that never jumps. */
  sentAt: number
  waiting: number
  /** True once the first purchase has ended without a price, or takes too long. Then the offer is to be read again. */
  isOver: boolean
  over: PromiseWithResolvers<void>
}

export interface OneFirst {
  /** The first purchases by product. */
  firsts: Map<string, First>
  /** The cost of a unit that was just bought, by product. Instants are of the wall clock. */
  prices: Map<string, { unitMinor: number; at: number }>
}

export const noFirsts = (): OneFirst => ({ firsts: new Map(), prices: new Map() })

type Ahead = Pick<Ordering, 'pace' | 'now' | 'monotonic'>
type Sent = Pick<Purchase, 'id' | 'supplierProductId'>

/**
 * Says whether a purchase that may be bought goes now, by itself or as the first purchase of its offer.
 *
 * @param readAt when the offer was read
 * @returns `later`: see `untilFirst`; `read`: the purchase goes once the offer was read again, or alone if that fails
 */
export function turnOf(ahead: Ahead, { id, supplierProductId }: Sent, readAt: number): 'now' | 'later' | 'read' {
  const { firsts } = ahead.pace.oneFirst
  const first = firsts.get(supplierProductId)
  if (isOfLate(ahead, readAt) || priceNow(ahead, supplierProductId) !== undefined) {
    if (first?.isOver) firsts.delete(supplierProductId)
    return 'now'
  }
  if (first?.isOver) return 'read'
  if (first && first.purchaseId !== id) {
    first.waiting += 1
    return 'later'
  }
  if (!first) goesFirst(ahead, { id, supplierProductId })
  return 'now'
}

export function goesFirst({ pace, monotonic }: Ahead, { id, supplierProductId }: Sent): void {
  const over = Promise.withResolvers<void>()
  const first = { purchaseId: id, sentAt: monotonic(), waiting: 0, isOver: false, over }
  pace.oneFirst.firsts.set(supplierProductId, first)
}

/** Returns a promise that resolves when a purchase that goes later is to be looked at again. */
export const untilFirst = ({ pace }: Ahead, { supplierProductId }: Sent): Promise<void> | undefined =>
  pace.oneFirst.firsts.get(supplierProductId)?.over.promise

/** Ends the turn of a purchase. The purchases that wait for it are looked at again. */
export function endTurn(ahead: Ahead, { id, supplierProductId }: Sent, wasSent: boolean): void {
  const { firsts } = ahead.pace.oneFirst
  const first = firsts.get(supplierProductId)
  if (first?.purchaseId !== id) return
  first.isOver = true
  // When no purchase waits, or when a price is known, the offer need not be read again.
  if (!wasSent || first.waiting === 0 || priceNow(ahead, supplierProductId) !== undefined)
    firsts.delete(supplierProductId)
  first.over.resolve()
}

/** Lets the purchases go on that have waited long enough for the answer to a first purchase. */
export function passSlowFirsts({ pace, monotonic }: Ahead): void {
  for (const first of pace.oneFirst.firsts.values()) {
    if (monotonic() - first.sentAt < FIRST_MS) continue
    first.isOver = true
    first.over.resolve()
  }
}

/** Remembers the cost of a unit. The amount of an open order may raise the remembered cost, and never lowers it. */
export function notePrice(ahead: Ahead, purchase: Purchase, { amountMinor = 0, currency }: SupplierOrder): void {
  const { prices } = ahead.pace.oneFirst
  const { supplierProductId, quantity } = purchase
  if (amountMinor <= 0 || (currency ?? purchase.currency) !== purchase.currency) return
  const unitMinor = Math.max(Math.ceil(amountMinor / quantity), priceNow(ahead, supplierProductId) ?? 0)
  if (prices.size >= PRICES_MAX) prices.clear()
  prices.set(supplierProductId, { unitMinor, at: ahead.now() })
}

/** Returns the cost of a unit of a product that was bought within the last minute; undefined where no unit was bought. */
export function priceNow(ahead: Ahead, productId: string): number | undefined {
  const price = ahead.pace.oneFirst.prices.get(productId)
  return price && isOfLate(ahead, price.at) ? price.unitMinor : undefined
}

/** Says whether an instant is young enough to count. An instant ahead of the clock does not count. */
const isOfLate = ({ now }: Ahead, at: number): boolean => at <= now() && now() - at <= SAID_MS
