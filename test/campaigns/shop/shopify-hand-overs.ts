/**
 * Hand-overs of a Shopify shop as its requests show them, and the keys that may go without mail and note, which Quayside cannot avoid:
 * they are on their order, the merchant fulfilled their line before the service did, and another request of their hand-over failed or
 * was not answered. The next try finds the keys on the order and the line fulfilled, as after one that came to its end.
 *
 * The service hands over one line of an order at a time. Each try begins with a look at the order and the line.
 */
import type { CountedRequest } from '../../shops/shopify-shop.ts'

/** A hand-over makes its next request within this time; milliseconds. */
const UNDER_WAY_MS = 2_000

interface HandOver {
  order: string
  line: string
  askedAt: number
  /** It has read what is fulfilled. */
  isPlanned: boolean
  /** It has read that before the merchant fulfilled the line. */
  isCrossed: boolean
  /** A request failed, or its answer may not have been heard. */
  hasFailed: boolean
  /** Those that it wrote. */
  keys: Set<string>
}

export interface HandOversOptions {
  /** Milliseconds of a monotonic clock. */
  now: () => number
  isOnOrder: (order: string, key: string) => boolean
}

export type HandOvers = ReturnType<typeof createHandOvers>

export function createHandOvers({ now, isOnOrder }: HandOversOptions) {
  /** By `order/line`: those that have not come to their end. */
  const open = new Map<string, HandOver>()
  /** By order: the line that was asked about last. */
  const lineOf = new Map<string, string>()
  const silent = new Set<string>()
  let interruptions = 0

  const settle = ({ order, isCrossed, hasFailed, keys }: HandOver): void => {
    if (isCrossed && hasFailed) for (const key of keys) if (isOnOrder(order, key)) silent.add(key)
  }
  const current = (order: string): HandOver | undefined => open.get(`${order}/${lineOf.get(order)}`)

  /** A further try of a hand-over, or the first one. */
  const begin = (order: string, line: string): void => {
    const before = open.get(`${order}/${line}`)
    if (before) settle(before)
    if (before && !(before.isCrossed && before.hasFailed)) return
    const begun = {
      order,
      line,
      askedAt: 0,
      isPlanned: false,
      isCrossed: false,
      hasFailed: false,
      keys: new Set<string>(),
    }
    open.set(`${order}/${line}`, begun)
  }
  const failUnderWay = (): void => {
    for (const one of open.values()) if (now() - one.askedAt < UNDER_WAY_MS) one.hasFailed = true
  }

  return {
    /** @param order that it is about @param drawn what befalls it */
    requested: (order: string, { kind, variables }: CountedRequest, drawn: string | undefined): void => {
      if (!KINDS.includes(kind)) return
      if (kind === 'HandOverOrder') {
        const line = /(\d+)$/.exec(String(variables.line))?.[1] ?? ''
        lineOf.set(order, line)
        begin(order, line)
      }
      const one = current(order)
      if (!one) return
      one.askedAt = now()
      if (kind === 'OrderFulfillments') one.isPlanned = true
      if (kind === 'PutKeys') for (const key of keysIn(variables)) one.keys.add(key)
      if ((drawn !== undefined && !GOES_ON.includes(drawn)) || interruptions > 0) one.hasFailed = true
      else if (drawn === undefined && isLast(kind, one)) open.delete(`${order}/${one.line}`)
    },
    /** The merchant fulfils what is left of a line. */
    fulfilledByMerchant: (order: string, line: string): void => {
      const one = open.get(`${order}/${line}`)
      if (one?.isPlanned) one.isCrossed = true
    },
    /** Those that are under way fail, as without a token. */
    failUnderWay,
    /** From now on the service hears no answer: what is under way does not come to its end. */
    interrupted: (): void => {
      interruptions += 1
      failUnderWay()
    },
    resumed: (): void => {
      interruptions -= 1
    },
    /** The keys that may have gone without mail and note. */
    silent: (): ReadonlySet<string> => {
      for (const one of open.values()) settle(one)
      return silent
    },
  }
}

/** After the mail of the fulfilment, or the one that the shop sends again, no word is missing. */
const isLast = (kind: string, { isCrossed }: HandOver): boolean =>
  kind === 'NotifyAgain' || (kind === 'CreateFulfillment' && !isCrossed)

/** What befalls a request, and the hand-over goes on all the same. */
const GOES_ON = ['overtaken', 'stale']

/** Requests of a hand-over. */
const KINDS = [
  'HandOverOrder',
  'OrderFulfillments',
  'FulfillmentOrderLines',
  'FulfilledLines',
  'PutKeys',
  'CreateFulfillment',
  'OrderNote',
  'PutNote',
  'FulfillmentTracking',
  'NotifyAgain',
]

/** Keys that a request puts on its order. The first line of their text names the product. */
function keysIn({ metafields }: CountedRequest['variables']): string[] {
  const written = Array.isArray(metafields) ? (metafields as { key: string; value: string }[]) : []
  return written.flatMap(({ key, value }) => (/^keys_\d+$/.test(key) ? value.split('\n').slice(1) : []))
}
