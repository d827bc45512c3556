/**
 * What a sweep decides: which of the supplier's orders are ours, what one of them says about its purchase, and how far
 * back to look. FOUND is believed from one look; that an order is absent, only from a scan that is valid as a whole.
 */

import { isOver, type PurchaseState } from './purchase.ts'
import { carriesStore } from './purchase-keys.ts'
import { moneyIsOut, type OrderStatus } from './supplier.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** A sweep begins this long before the instant it is about, because the clocks of two machines differ. */
export const SKEW_MS = 10 * 60_000

/** Every quarter of an hour: two days are longer than an order stays open, and take few pages. */
export const RECENT_MS = 2 * DAY

/** Once a night: a charge that comes late for what was written off is still seen. */
export const NIGHTLY_MS = 30 * DAY

/** A night that was missed is made up for once it is this late, and a try that failed is repeated at most so often. */
const NIGHTLY_OVERDUE_MS = 26 * HOUR
const NIGHTLY_AGAIN_MS = HOUR

/** What a purchase knows of its order. */
export interface Counterpart {
  state: PurchaseState
  supplierOrderId: string | null
  /** The supplier's word for the order's status, as last read. */
  supplierStatus: string | null
  /** Orders that a person was shown or decided on. */
  ordersSeen: readonly string[]
}

/**
 * What the orders under a purchase's reference ask for.
 *
 * `found`: one of them is news, and the transition table decides. `reread`: its own order has changed, which only a read
 * of the order itself can tell, because a list may be older than what was read before. `agrees`: nothing is to be done.
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

/** What is over stays so unless money moved after all; what a person decided on is that person's. */
export const isNews = (
  { state, ordersSeen }: Pick<Counterpart, 'state' | 'ordersSeen'>,
  order: { id: string; status: OrderStatus },
): boolean => !ordersSeen.includes(order.id) && (!isOver(state) || moneyIsOut(order.status))

/** Whether an order that no purchase knows was placed for one of our stores; all others on the API key are not ours. */
export const isOurs = (reference: string | undefined, stores: readonly { id: string }[], lengthMax: number): boolean =>
  reference !== undefined && stores.some(({ id }) => carriesStore(reference, id, lengthMax))

/**
 * Where the nightly sweep begins: thirty days ago, or earlier when something that was written off since was sent earlier.
 *
 * @param writtenOffSentAt when the oldest purchase that was written off within those days was sent first
 */
export const nightlyFrom = (now: number, writtenOffSentAt: number | null): number =>
  Math.min(now - NIGHTLY_MS, writtenOffSentAt ?? now) - SKEW_MS

/**
 * Whether a sweep of thirty days is due beside its hour: the last one failed, or the service was down.
 *
 * @param completeAt when the last complete one began; null when there was none
 * @param begunAt when the last one began, however it ended
 */
export function nightlyOverdue(now: number, completeAt: number | null, begunAt: number | null): boolean {
  if (begunAt !== null && now - begunAt < NIGHTLY_AGAIN_MS) return false
  return completeAt === null || now - completeAt >= NIGHTLY_OVERDUE_MS
}
