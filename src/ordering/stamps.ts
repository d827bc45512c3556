import { refreshDelayMs } from '../domain/pace.ts'
import { finalStates, provesUncharged, type Transition } from '../domain/purchase.ts'
import { listText } from '../storage/lists.ts'
import type { PurchaseUpdate } from '../storage/purchases.ts'
import { refreshUnlessHinted } from '../storage/purchases.ts'
import type { Loaded } from './advance.ts'
import type { Reading } from './effects.ts'

/** Nothing that is not final goes unread for longer. */
const REREAD_MS = 15 * 60_000

/**
 * The columns that follow from a transition: state, instants, the next refresh, the lease and the reservation.
 */
export function stamps({ purchase }: Loaded, decision: Transition, now: number, reading?: Reading): PurchaseUpdate {
  const { next, set, effects, row } = decision
  const { ordersSeen, ...columns } = set
  const entered = next !== purchase.state
  const update: PurchaseUpdate = { ...columns, state: next }
  // A release happens before every try: it does not show that the row is well.
  if (purchase.errorCount > 0 && row !== 'released') Object.assign(update, { errorCount: 0, errorText: null })
  // What a person read about a hold is over with it, also when the purchase is cancelled in the middle of one.
  if (set.holdReason === null && purchase.holdReason !== null && set.note === undefined) update.note = null
  if (ordersSeen) update.ordersSeen = listText(ordersSeen)
  if (entered && next === 'unknown') Object.assign(update, { unknownAt: now, absentSince: null })
  // Once it is no longer unknown, the order that an answer named is its own, or among those that were seen.
  if (entered && purchase.state === 'unknown') update.namedOrderId = null
  // Proven not to have run: the memory of the key has not begun to count.
  if (entered && next === 'waiting') Object.assign(update, { firstSentAt: null, keySafeUntil: null })
  if (entered && next === 'accepted') update.acceptedAt = purchase.acceptedAt ?? now
  // Found before it was sent, after a restore: it was sent all the same, and a later order of its part is a second one.
  if (entered && next === 'accepted' && purchase.firstSentAt === null) update.firstSentAt = now
  if (row !== 'released' && next !== 'sending') Object.assign(update, { leaseOwner: null, leaseUntil: null })
  Object.assign(update, refresh())
  if (reading) Object.assign(update, amounts(reading, purchase.currency))
  Object.assign(update, reservation())
  return update

  function refresh(): PurchaseUpdate {
    if (effects.includes('read_now')) return { refreshAt: now, refreshes: 0 }
    if (finalStates.includes(next)) return { refreshAt: entered ? null : refreshUnlessHinted(purchase, null) }
    // These three have no schedule: an instant here is a hint, and it waits until the request that is under way is over.
    if (next === 'planned' || next === 'waiting') return {}
    if (next === 'sending') return purchase.state === 'unknown' ? { refreshAt: null } : {}
    if (entered && next === 'unknown') {
      const hintedAt = purchase.state === 'sending' ? purchase.refreshAt : null
      return { refreshAt: Math.min(hintedAt ?? now + refreshDelayMs(0), now + refreshDelayMs(0)), refreshes: 1 }
    }
    if (entered && next !== 'accepted') return { refreshAt: refreshUnlessHinted(purchase, now + REREAD_MS) }
    const wait = next === 'accepted' ? refreshDelayMs(purchase.refreshes) : REREAD_MS
    return { refreshAt: refreshUnlessHinted(purchase, now + wait), refreshes: purchase.refreshes + 1 }
  }

  /** The ceiling while it is open what it costs, the amount once known, nothing once that is proven. */
  function reservation(): PurchaseUpdate {
    const most = purchase.ceilingMinor * purchase.quantity
    if (next === 'sending') return { reservedMinor: most }
    if (provesUncharged(purchase, decision)) return { reservedMinor: 0 }
    // An order that failed may state another amount: what comes back is known once the supplier says so.
    const amount = reading && next !== 'failed' ? amountOf(reading, purchase.currency) : undefined
    if (amount !== undefined) return { reservedMinor: amount }
    // After a restore an order is found that this database has never sent.
    const isFound = entered && (next === 'accepted' || ordersSeen !== undefined)
    return isFound && purchase.reservedMinor === 0 ? { reservedMinor: most, reservedAt: now } : {}
  }
}

/** What the order cost, in the currency that everything else is counted in; an amount in another one is no such figure. */
const amountOf = ({ order }: Reading, currency: string): number | undefined =>
  order.currency === undefined || order.currency === currency ? order.amountMinor : undefined

function amounts(reading: Reading, currency: string): PurchaseUpdate {
  const { order } = reading
  const update: PurchaseUpdate = { supplierStatus: order.statusWord }
  const amountMinor = amountOf(reading, currency)
  if (amountMinor !== undefined) update.amountMinor = amountMinor
  if (order.failureCode !== undefined) update.failureCode = order.failureCode
  if (order.failureMessage !== undefined) update.failureMessage = order.failureMessage
  return update
}
