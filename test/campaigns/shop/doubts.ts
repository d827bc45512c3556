/**
 * Orders of a WooCommerce shop whose keys may come by two mails, which Quayside cannot avoid: a write of keys fails, or the merchant
 * completes the order while a hand-over moves its keys from the lines into a note. The mail of a completed order prints what the
 * lines show at that moment.
 */

/** A hand-over makes its next request within this time, and has stored what the shop answered; milliseconds. */
const UNDER_WAY_MS = 2_000

export interface Doubts {
  orders: ReadonlySet<number>
  /** The service reads the order. */
  read: (order: number) => void
  /** The service writes keys into a note or into lines. */
  written: (order: number, isStruck: boolean) => void
  completedByMerchant: (order: number) => void
  /** From now on the service may not know what it wrote a moment ago. */
  interrupted: () => void
}

/** @param now milliseconds of a monotonic clock */
export function createDoubts(now: () => number): Doubts {
  const orders = new Set<number>()
  const readAt = new Map<number, number>()
  const writtenAt = new Map<number, number>()
  /** When the merchant completed an order of which a hand-over may have been under way. */
  const crossedAt = new Map<number, number>()
  const isRecent = (at: number | undefined): boolean => at !== undefined && now() - at < UNDER_WAY_MS
  return {
    orders,
    read: (order) => readAt.set(order, now()),
    written: (order, isStruck) => {
      if (isStruck || isRecent(crossedAt.get(order))) orders.add(order)
      writtenAt.set(order, now())
    },
    completedByMerchant: (order) => {
      if (isRecent(readAt.get(order)) || isRecent(writtenAt.get(order))) crossedAt.set(order, now())
    },
    interrupted: () => {
      for (const [order, at] of writtenAt) if (isRecent(at)) orders.add(order)
    },
  }
}
