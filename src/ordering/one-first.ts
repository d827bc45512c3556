/**
 * One first, then the rest: where an offer was not read of late, its first purchase goes alone, and what that costs decides about
 * those behind it. A price that has risen meanwhile is then paid once, and not by all that are sent at the same time.
 */
import type { SupplierOrder } from '../domain/supplier.ts'
import type { Purchase } from '../storage/purchases.ts'
import type { Ordering } from './context.ts'

/** What the supplier said of a price counts for so long. */
export const SAID_MS = 60_000
/** A first purchase that is not answered for so long keeps the others no longer, if the offer can be read again. */
const FIRST_MS = 5_000
/** Prices that are remembered; more only send one purchase more alone. */
const PRICES_MAX = 10_000

/** The first purchase of an offer is on its way. */
interface First {
  purchaseId: string
  /** On the clock that never jumps. */
  sentAt: number
  waiting: number
  /** The first purchase ended without a price, or takes too long: the offer is to be read again. */
  isOver: boolean
  over: PromiseWithResolvers<void>
}

export interface OneFirst {
  /** By the product. */
  firsts: Map<string, First>
  /** What a unit cost that was just bought, by the product. Instants of the wall clock. */
  prices: Map<string, { unitMinor: number; at: number }>
}

export const noFirsts = (): OneFirst => ({ firsts: new Map(), prices: new Map() })

type Ahead = Pick<Ordering, 'pace' | 'now' | 'monotonic'>
type Sent = Pick<Purchase, 'id' | 'supplierProductId'>

/**
 * Whether a purchase that may be bought goes now, by itself or as the first of its offer.
 *
 * @param readAt when the offer was read
 * @returns `later`: see `untilFirst`; `read`: once the offer was read again, or else alone
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

/** Resolves when a purchase that goes later is to be looked at again. */
export const untilFirst = ({ pace }: Ahead, { supplierProductId }: Sent): Promise<void> | undefined =>
  pace.oneFirst.firsts.get(supplierProductId)?.over.promise

/** The turn of a purchase has ended: those that wait for it are looked at again. */
export function endTurn(ahead: Ahead, { id, supplierProductId }: Sent, wasSent: boolean): void {
  const { firsts } = ahead.pace.oneFirst
  const first = firsts.get(supplierProductId)
  if (first?.purchaseId !== id) return
  first.isOver = true
  // Where none waits, or a price is known, nothing has to be read.
  if (!wasSent || first.waiting === 0 || priceNow(ahead, supplierProductId) !== undefined)
    firsts.delete(supplierProductId)
  first.over.resolve()
}

/** Lets those go on that have waited for long enough for the answer to a first purchase. */
export function passSlowFirsts({ pace, monotonic }: Ahead): void {
  for (const first of pace.oneFirst.firsts.values()) {
    if (monotonic() - first.sentAt < FIRST_MS) continue
    first.isOver = true
    first.over.resolve()
  }
}

/** Remembers what a unit cost. What an open order states may raise that, and never lowers it. */
export function notePrice(ahead: Ahead, purchase: Purchase, { amountMinor = 0, currency }: SupplierOrder): void {
  const { prices } = ahead.pace.oneFirst
  const { supplierProductId, quantity } = purchase
  if (amountMinor <= 0 || (currency ?? purchase.currency) !== purchase.currency) return
  const unitMinor = Math.max(Math.ceil(amountMinor / quantity), priceNow(ahead, supplierProductId) ?? 0)
  if (prices.size >= PRICES_MAX) prices.clear()
  prices.set(supplierProductId, { unitMinor, at: ahead.now() })
}

/** What a unit of a product cost that was bought within the last minute; undefined where none was. */
export function priceNow(ahead: Ahead, productId: string): number | undefined {
  const price = ahead.pace.oneFirst.prices.get(productId)
  return price && isOfLate(ahead, price.at) ? price.unitMinor : undefined
}

/** An instant ahead of the clock says nothing. */
const isOfLate = ({ now }: Ahead, at: number): boolean => at <= now() && now() - at <= SAID_MS
