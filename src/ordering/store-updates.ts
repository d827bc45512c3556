import type { StoreUpdate } from '../domain/store-update.ts'
import { first } from '../storage/database.ts'
import { effectOf, type OutboxRow, type UpdateEffect } from '../storage/outbox.ts'
import { lineById, storeOrderById } from '../storage/store-orders.ts'
import { type Loaded, load } from './advance.ts'
import { orderStanding } from './order-view.ts'
import type { Ordering } from './ordering.ts'

/** What to do for the customer, per failure that the supplier's codes or our own rules give. */
const ADVICE: Record<string, string> = {
  out_of_stock: 'Refund this part of the order, or wait: nothing was bought.',
  cancelled: 'Nothing was bought; refund the customer if that is not done yet.',
  deadline: 'It could not be bought in time and nothing was charged; refund the customer.',
  closed: 'Nothing more of it will come: refund the customer if that is not done yet.',
  short: 'The units that are missing will not come: refund them.',
  failed: 'The supplier could not deliver; refund the customer or retry the purchase in Quayside.',
}

/**
 * The update of a row: as it was first sent, or as things are now. A repeat never differs from the first attempt, because the
 * store knows it by its id and ignores it.
 *
 * @param fresh licence keys that the store first gets with this update
 */
export async function updateOf(ordering: Ordering, row: OutboxRow, fresh: number): Promise<StoreUpdate> {
  if (row.sentUpdate) return row.sentUpdate
  const effect = effectOf(row)
  if (effect.kind === 'alert') throw new Error('an alert is for people, not for a store')
  if (effect.type === 'order.closed') {
    const order = await first(ordering.db, storeOrderById(row.orderId ?? ''))
    if (!order) throw new Error('the order of the update is gone')
    const { store, reference } = order
    return { type: 'order.closed', order: { store, reference }, state: effect.payload.state }
  }
  const loaded = await load(ordering, effect.payload.purchaseId)
  if (!loaded) throw new Error('the purchase of the update is gone')
  const line = await first(ordering.db, lineById(loaded.purchase.lineId))
  if (!line) throw new Error('the line of the update is gone')
  const { store, reference } = loaded.name
  const about = {
    order: { store, reference },
    line: { id: line.line, sku: line.sku, quantity: line.quantity },
  }
  if (effect.type === 'line.failed') {
    return { type: 'line.failed', ...about, ...failureOf(loaded, effect, ordering.now()) }
  }
  const standing = await orderStanding(ordering, loaded.purchase.orderId)
  const before = standing?.lines.find((one) => one.line.id === line.id)?.delivered ?? 0
  const delivered = before + fresh
  return { type: 'line.fulfilled', ...about, delivered, complete: delivered === line.quantity }
}

type FailedEffect = Extract<UpdateEffect, { type: 'line.failed' }>

function failureOf({ purchase }: Loaded, { payload: { units, row } }: FailedEffect, now: number) {
  const { code, message } = decidedEnd(row, purchase) ?? ownEnd(purchase, now)
  const advice = (row === 'closed' ? ADVICE.closed : ADVICE[code]) ?? (ADVICE.failed as string)
  const state = purchase.state === 'cancelled' ? ('cancelled' as const) : ('failed' as const)
  return { units, state, code, message, advice }
}

/** The end that an operator gave the purchase, in words for the store; undefined when no operator did. */
function decidedEnd(row: string, { cancelRequestedAt }: Loaded['purchase']) {
  if (row === 'handed_over') return { code: 'short', message: 'fewer keys came than were ordered' }
  if (row !== 'closed' || cancelRequestedAt !== null) return undefined
  return { code: 'closed', message: 'given up by the people who run Quayside' }
}

/** The end that the purchase came to by itself. */
function ownEnd(
  { state, cancelRequestedAt, deadlineAt, failureCode, failureMessage }: Loaded['purchase'],
  now: number,
) {
  if (state === 'cancelled' && cancelRequestedAt !== null) {
    return { code: 'cancelled', message: 'cancelled at the request of the store' }
  }
  if (state === 'cancelled' && now >= deadlineAt) {
    return { code: 'deadline', message: 'could not be bought before its deadline' }
  }
  return {
    code: failureCode ?? state,
    message: failureMessage ?? 'the supplier could not deliver this line',
  }
}
