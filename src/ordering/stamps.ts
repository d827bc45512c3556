import { refreshDelayMs } from '../domain/pace.ts'
import { finalStates, type Transition } from '../domain/purchase.ts'
import type { PurchaseUpdate } from '../storage/purchases.ts'
import { refreshUnlessHinted } from '../storage/purchases.ts'
import type { Loaded } from './advance.ts'
import type { Reading } from './effects.ts'

/** Nothing that is not final goes unread for longer. */
const REREAD_MS = 15 * 60_000

/**
 * The columns that follow from a transition: state, instants, the next refresh, the lease and the reservation.
 */
export function stamps(
  { purchase }: Loaded,
  { next, set, effects, row }: Transition,
  now: number,
  reading?: Reading,
): PurchaseUpdate {
  const { ordersSeen, ...columns } = set
  const entered = next !== purchase.state
  const update: PurchaseUpdate = { ...columns, state: next }
  if (purchase.errorCount > 0) Object.assign(update, { errorCount: 0, errorText: null })
  if (ordersSeen) update.ordersSeen = ordersSeen.join(' ')
  if (entered && next === 'unknown') Object.assign(update, { unknownAt: now, absentSince: null })
  if (entered && next === 'accepted') update.acceptedAt = purchase.acceptedAt ?? now
  if (row !== 'released' && next !== 'sending') Object.assign(update, { leaseOwner: null, leaseUntil: null })
  Object.assign(update, refresh())
  if (reading) Object.assign(update, amounts(reading))
  const reserved = reservation()
  if (reserved !== undefined) update.reservedMinor = reserved
  return update

  function refresh(): PurchaseUpdate {
    if (effects.includes('read_now')) return { refreshAt: now, refreshes: 0 }
    if (finalStates.includes(next)) return { refreshAt: entered ? null : refreshUnlessHinted(purchase, null) }
    if (next === 'planned' || next === 'waiting' || next === 'sending') {
      return { refreshAt: refreshUnlessHinted(purchase, null) }
    }
    if (entered && next === 'unknown') return { refreshAt: now + refreshDelayMs(0), refreshes: 1 }
    if (entered && next !== 'accepted') return { refreshAt: refreshUnlessHinted(purchase, now + REREAD_MS) }
    const wait = next === 'accepted' ? refreshDelayMs(purchase.refreshes) : REREAD_MS
    return { refreshAt: refreshUnlessHinted(purchase, now + wait), refreshes: purchase.refreshes + 1 }
  }

  /** The ceiling while it is open what it costs, the amount once known, nothing once nothing was bought. */
  function reservation(): number | undefined {
    if (next === 'sending') return purchase.ceilingMinor * purchase.quantity
    if (['waiting', 'rejected', 'failed', 'cancelled'].includes(next)) return 0
    return reading?.order.amountMinor
  }
}

function amounts({ order }: Reading): PurchaseUpdate {
  const update: PurchaseUpdate = { supplierStatus: order.statusWord }
  if (order.amountMinor !== undefined) update.amountMinor = order.amountMinor
  if (order.failureCode !== undefined) update.failureCode = order.failureCode
  if (order.failureMessage !== undefined) update.failureMessage = order.failureMessage
  return update
}
