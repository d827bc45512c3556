/**
 * Decisions of a sweep: which of the supplier's orders are ours, what they mean for their purchase, and how far back the
 * sweep reads. One page proves that an order exists; only a scan that is valid as a whole proves that one is absent.
 */
import { isOver, type PurchaseState } from './purchase.ts'
import { carriesStore } from './purchase-keys.ts'
import { moneyIsOut, type OrderStatus } from './supplier.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** A sweep reads orders from this much earlier than it needs to, because the clocks of two machines differ. */
export const SKEW_MS = 10 * 60_000

/** How far back a sweep reads every quarter of an hour: two days are longer than an order stays open, and take few pages. */
export const RECENT_MS = 2 * DAY

/** How far back the nightly sweep reads: it finds late charges of purchases that were written off. */
export const NIGHTLY_MS = 30 * DAY

/** A nightly sweep is overdue this long after the last complete one. Two nightly sweeps begin at least an hour apart. */
const NIGHTLY_OVERDUE_MS = 26 * HOUR
const NIGHTLY_AGAIN_MS = HOUR

/** What a purchase knows about its supplier orders. */
export interface Counterpart {
  state: PurchaseState
  supplierOrderId: string | null
  /** The supplier's word for the order's status, as last read. */
  supplierStatus: string | null
  /** Orders that a person was shown or decided on. */
  ordersSeen: readonly string[]
}

/**
 * Compares a purchase with the orders under its reference.
 *
 * `found`: an order is news, and the transition table decides. `reread`: the purchase's own order seems to have changed, and must
 * be read by its id, because a list may be older than the last read. `agrees`: nothing to do.
 */
export function comparison(
  purchase: Counterpart,
  orders: readonly { id: string; status: OrderStatus; statusWord: string }[],
): 'agrees' | 'found' | 'reread' {
  const { supplierOrderId: own } = purchase
  const news = orders.filter((order) => isNews(purchase, order))
  if (news.some((order) => order.id !== own)) return 'found'
  const mine = isOver(purchase.state) ? news : orders
  return mine.some((order) => order.id === own && order.statusWord !== purchase.supplierStatus) ? 'reread' : 'agrees'
}

/** Whether an order may change its purchase: no person was shown it, and it was charged if the purchase is over. */
export const isNews = (
  { state, ordersSeen }: Pick<Counterpart, 'state' | 'ordersSeen'>,
  order: { id: string; status: OrderStatus },
): boolean => !ordersSeen.includes(order.id) && (!isOver(state) || moneyIsOut(order.status))

/** Whether an order without a purchase was placed for one of our stores. All other orders on the API key are foreign. */
export const isOurs = (reference: string | undefined, storeIds: readonly string[], lengthMax: number): boolean =>
  reference !== undefined && storeIds.some((id) => carriesStore(reference, id, lengthMax))

/**
 * Returns from when the nightly sweep reads: thirty days ago, or since the oldest recently written-off purchase was sent.
 *
 * @param writtenOffSentAt first send of the oldest purchase that was written off within thirty days
 */
export const nightlyFrom = (now: number, writtenOffSentAt: number | null): number =>
  Math.min(now - NIGHTLY_MS, writtenOffSentAt ?? now) - SKEW_MS

/**
 * Whether a nightly sweep is due outside its hour, because the last one failed or the service was down.
 *
 * @param completeAt when the last complete sweep began; null when there was no complete sweep
 * @param begunAt when the last sweep began, however it ended
 */
export function nightlyOverdue(now: number, completeAt: number | null, begunAt: number | null): boolean {
  if (begunAt !== null && now - begunAt < NIGHTLY_AGAIN_MS) return false
  return completeAt === null || now - completeAt >= NIGHTLY_OVERDUE_MS
}
