/** Handles answers of the supplier that cannot be read: the pause of buying, and the alerts. */

import { afterDoubts, firstSendsMax } from '../domain/pace.ts'
import { finalStates } from '../domain/purchase.ts'
import { first } from '../storage/database.ts'
import { newestKey } from '../storage/licence-keys.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import { purchaseById, purchasesBySupplierOrder, purchasesInState } from '../storage/purchases.ts'
import { NO_KEYS, OF_KEYS, type UnreadableAnswer, unreadableText } from '../supplier/client.ts'
import type { Ordering } from './context.ts'

const HOUR_MS = 3_600_000

/** How often answers that pause buying are asked for again. Once such an answer can be read, buying goes on. */
const READ_AGAIN_MS = 60_000

/** Missing keys are alerted after this time, because some suppliers complete an order a moment before its keys show. */
const NO_KEYS_MS = 150_000

/** Only the answers to these requests show a lost charge. While such an answer cannot be read, no new order is sent. */
const OF_ORDERS: readonly string[] = ['GET /orders', 'GET /orders/{id}']

const blinds = ({ request, partly }: UnreadableAnswer): boolean => OF_ORDERS.includes(request) && !partly

/**
 * Says whether an unreadable answer keeps first sends back. No first send leaves while orders cannot be read. While answers to
 * new orders cannot be read, one first send leaves at a time, each after a look-up that read an order.
 */
export const pausesBuying = (answer: UnreadableAnswer): boolean => blinds(answer) || answer.request === 'POST /orders'

/** Returns how many first sends may be under way at once. */
export const firstSendsNow = ({ pace, policy, supplier }: Ordering): number =>
  pace.differs !== undefined || supplier.unreadable().some(blinds)
    ? 0
    : firstSendsMax(pace.breaker, pace.agreed ? policy.inFlight : 1)

/** Alerts people of each kind of answer that cannot be read, once until it can be read, and at most once an hour. */
export async function alertUnreadable(ordering: Ordering): Promise<void> {
  const { pace, supplier, db, log } = ordering
  const isLasting = ({ seen, since }: UnreadableAnswer) => seen !== NO_KEYS || ordering.now() - since >= NO_KEYS_MS
  const standing = supplier.unreadable().filter(isLasting)
  const news = standing.filter((answer) => !pace.alerted.has(kindOf(answer)))
  const alerts = news.map((answer) => {
    const { request, field, setting, seen: value, requestId = null, since } = answer
    const next = pausesBuying(answer) ? '; nothing new is bought until one is read' : ''
    const note = `${unreadableText(answer)}${next}`
    return enqueueAlert(ordering, {
      type: 'unreadable_answer',
      occasion: `${kindOf(answer)} ${Math.floor(since / HOUR_MS)}`,
      payload: { note, request, field, setting, value, requestId },
    })
  })
  if (alerts.length > 0) {
    await db.commit(alerts)
    ordering.wake('outbox')
  }
  for (const answer of news) {
    log.warn('supplier.unreadable', { detail: unreadableText(answer), requestId: answer.requestId })
  }
  pace.alerted = new Set(standing.map(kindOf))
}

const kindOf = ({ request, setting }: UnreadableAnswer): string => `${request} ${setting}`

/**
 * Finds out whether buying may go on. Asks again for the answers that pause buying. After an unreadable answer to a new
 * order, ends the pause once no purchase is in doubt.
 */
export async function endPause(ordering: Ordering): Promise<void> {
  const { pace, supplier, db } = ordering
  if (pace.breaker.unread) {
    const open = await Promise.all([db.query(purchasesInState('sending', 1)), db.query(purchasesInState('unknown', 1))])
    if (open.every((rows) => rows.length === 0)) pace.breaker = afterDoubts(pace.breaker)
  }
  const differing = pace.differs === undefined ? undefined : await first(db, purchaseById(pace.differs))
  if (differing && !['sending', 'unknown', 'review'].includes(differing.state)) pace.differs = undefined
  for (const { setting, id } of supplier.unreadable()) {
    if (!OF_KEYS.test(setting) || id == null) continue
    const purchases = await db.query(purchasesBySupplierOrder([id]))
    if (purchases.every(({ state }) => finalStates.includes(state))) supplier.setAside(id)
  }
  const pausing = supplier.unreadable().filter(blinds)
  if (pausing.length === 0) pace.readAgainAt = 0
  if (pausing.length === 0 || ordering.monotonic() < pace.readAgainAt) return
  // The first try waits a while, because other reads that are due may succeed before it.
  const isNew = pace.readAgainAt === 0
  pace.readAgainAt = ordering.monotonic() + READ_AGAIN_MS
  if (isNew) return
  const read = (id: string | null | undefined) => (id == null ? supplier.orders({ page: 1 }) : supplier.order(id))
  await Promise.allSettled(pausing.map(({ id }) => read(id)))
  // Reading another order, which had keys, shows whether the dialect or the unreadable order is at fault.
  if (!pausing.some(({ setting }) => OF_KEYS.test(setting))) return
  const [key] = await db.query(newestKey())
  const known = key && (await first(db, purchaseById(key.purchaseId)))
  if (known?.supplierOrderId) await Promise.allSettled([read(known.supplierOrderId)])
}
