/**
 * If an offer was not read lately, sends its first purchase alone. The cost of that purchase decides about those behind it. So a
 * price that has risen meanwhile is paid once, and not by all purchases that are sent at the same time.
 */
import type { SupplierOrder } from '../domain/supplier.ts'
import type { Purchase } from '../storage/purchases.ts'
import type { Ordering } from './context.ts'

/** How long a price that the supplier has stated counts. */
export const SAID_MS = 60_000
/** How long an unanswered purchase that was sent ahead delays the others of its offer, if the offer can be read again. */
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
 * Says whether a purchase that passes the guards is sent now. It may be the first purchase of its offer.
 *
 * @param readAt when the offer was read
 * @returns `later`: after `untilFirst`; `read`: once the offer is read again, or alone if the offer cannot be read
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

/** Returns a promise for the purchases that wait for the first of their offer: it resolves when they are to be tried again. */
export const untilFirst = ({ pace }: Ahead, { supplierProductId }: Sent): Promise<void> | undefined =>
  pace.oneFirst.firsts.get(supplierProductId)?.over.promise

/** Ends the turn of a first purchase. The purchases that wait for it are tried again. */
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

/** Ends the wait for first purchases that are unanswered for too long. */
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

/** Says whether an instant is at most `SAID_MS` ago. An instant ahead of the clock does not count. */
const isOfLate = ({ now }: Ahead, at: number): boolean => at <= now() && now() - at <= SAID_MS
