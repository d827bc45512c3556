/**
 * Keys of a WooCommerce shop that may come by two mails, which Quayside cannot avoid: a write of keys fails, or the merchant
 * completes the order while a hand-over moves its keys from the lines into a note. The mail of a completed order prints what the
 * lines show at that moment. Other keys of the same order, and of the same line, are in no doubt.
 */

/** A hand-over makes its next request within this time; milliseconds. */
const UNDER_WAY_MS = 2_000
/** The service has stored what an answer means within this time; milliseconds. */
const STORED_MS = 100

export interface Doubts {
  keys: ReadonlySet<string>
  /** The service reads the order. */
  read: (order: number) => void
  /** The service writes into a note or into lines. @param keys those that this brings there, or takes away */
  written: (order: number, keys: readonly string[], isStruck: boolean) => void
  completedByMerchant: (order: number) => void
  /** From now on the service hears no answer, and may not have stored the last ones. */
  interrupted: () => void
  /** The end of one interruption; others may go on. */
  resumed: () => void
}

export interface DoubtsOptions {
  /** Milliseconds of a monotonic clock. */
  now: () => number
  /** Whether the shop shows that the hand-over of a key has a request to come. */
  isHalfDone: (order: number, key: string) => boolean
}

export function createDoubts({ now, isHalfDone }: DoubtsOptions): Doubts {
  const keys = new Set<string>()
  const readAt = new Map<number, number>()
  const writtenAt = new Map<number, number>()
  /** When the merchant completed an order of which a hand-over may have been under way. */
  const crossedAt = new Map<number, number>()
  /** The last write of each key. */
  const writes = new Map<string, { order: number; at: number }>()
  let interruptions = 0
  const isWithin = (ms: number, at: number | undefined): boolean => at !== undefined && now() - at < ms
  const isRecent = (at: number | undefined): boolean => isWithin(UNDER_WAY_MS, at)
  return {
    keys,
    read: (order) => readAt.set(order, now()),
    written: (order, own, isStruck) => {
      writtenAt.set(order, now())
      for (const key of own) {
        writes.set(key, { order, at: now() })
        if (isStruck || interruptions > 0 || isRecent(crossedAt.get(order))) keys.add(key)
      }
    },
    completedByMerchant: (order) => {
      if (isRecent(readAt.get(order)) || isRecent(writtenAt.get(order))) crossedAt.set(order, now())
    },
    interrupted: () => {
      interruptions += 1
      for (const [key, { order, at }] of writes) {
        if (isWithin(STORED_MS, at) || (isRecent(at) && isHalfDone(order, key))) keys.add(key)
      }
    },
    resumed: () => {
      interruptions -= 1
    },
  }
}
