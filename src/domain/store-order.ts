/**
 * The public states of a store order and its lines. They are derived from the purchases and never stored.
 */
import type { HoldReason, TakenBackBy } from './hold.ts'
import { finalStates, isOver, type PurchaseState } from './purchase.ts'

export const lineStates = ['not_ours', 'open', 'held', 'partly_fulfilled', 'fulfilled', 'failed', 'cancelled'] as const
export type LineState = (typeof lineStates)[number]
export const orderStates = ['open', 'partly_fulfilled', 'fulfilled', 'failed', 'cancelled'] as const
export type OrderState = (typeof orderStates)[number]

/**
 * How an order stands in its store now. `held`: the order is paid, but a person must look first, because the shop says so or
 * because its data is unclear. Only a `paid` order is bought and delivered.
 */
export const standings = ['paid', 'unpaid', 'held', 'cancelled'] as const
export type Standing = (typeof standings)[number]

export interface PartFacts {
  part: number
  generation: number
  state: PurchaseState
  holdReason: HoldReason | null
  quantity: number
  surplus: number
  takenBackBy: TakenBackBy | null
  /** Keys of this purchase that the store has. */
  handedOver: number
  /** Set where the part replaces a key that does not work. Such a part brings no unit of the line: it has the unit already. */
  claim: number | null
}

/**
 * Returns the generation that counts for each part: the one that is not over (there is at most one), else the newest. An earlier
 * generation counts if it has reopened, because its order turned up after a later generation was cancelled.
 */
export function currentParts<T extends { part: number; generation: number; state: PurchaseState }>(
  purchases: T[],
): T[] {
  const current = new Map<number, T>()
  for (const purchase of purchases) {
    const known = current.get(purchase.part)
    const better =
      !known ||
      (isOver(known.state) === isOver(purchase.state) ? purchase.generation > known.generation : isOver(known.state))
    if (better) current.set(purchase.part, purchase)
  }
  return [...current.values()].sort((a, b) => a.part - b.part)
}

/**
 * The state of a line.
 *
 * `partly_fulfilled` means that some keys are handed over and more may come. If nothing more comes and some keys are
 * missing, the line is `failed` or `cancelled`; its count of delivered keys shows how many came.
 */
export function lineState(purchases: PartFacts[]): LineState {
  const current = currentParts(purchases)
  if (current.length === 0) return 'not_ours'
  const parts = current.filter((part) => !isTakenBack(part))
  if (parts.length === 0) return delivered(purchases) > 0 ? 'fulfilled' : 'cancelled'
  const whole = (part: PartFacts) => part.state === 'fulfilled' && part.handedOver >= part.quantity - part.surplus
  if (parts.every(whole)) return 'fulfilled'
  const moving = parts.filter((part) => !isOver(part.state) && part.state !== 'fulfilled')
  if (moving.length === 0)
    return parts.some((part) => part.state !== 'cancelled' && !whole(part)) ? 'failed' : 'cancelled'
  if (delivered(purchases) > 0) return 'partly_fulfilled'
  return moving.some((part) => part.holdReason !== null || part.state === 'review') ? 'held' : 'open'
}

/** The purchase ended because its order in the shop took it back: no unit of the purchase is due. */
const isTakenBack = ({ state, takenBackBy }: Pick<PartFacts, 'state' | 'takenBackBy'>): boolean =>
  isOver(state) && takenBackBy !== null

/** How many units of a line the store is to have keys for, including the keys that earlier generations have delivered. */
export const unitsWanted = (all: PartFacts[]): number => {
  const purchases = all.filter(isOfUnits)
  const current = currentParts(purchases)
  const earlier = purchases.filter((one) => !current.includes(one)).reduce((sum, { handedOver }) => sum + handedOver, 0)
  return current.reduce((sum, one) => sum + (isTakenBack(one) ? one.handedOver : one.quantity - one.surplus), earlier)
}

/** Units of which the store has a key, over all generations. A unit whose key was replaced counts once. */
export const delivered = (purchases: PartFacts[]): number =>
  purchases.filter(isOfUnits).reduce((sum, purchase) => sum + purchase.handedOver, 0)

export const isOfUnits = ({ claim }: Pick<PartFacts, 'claim'>): boolean => claim === null

/** Whether the store has or may have a key: it is handed over, or its hand-over has begun and cannot be called back. */
export const hasLeft = (key: { begunAt: unknown; handedOverAt: unknown }): boolean =>
  key.handedOverAt !== null || key.begunAt !== null

/** The state of an order. It is open as long as one of our lines is open, held or partly fulfilled. */
export function orderState(lines: { state: LineState; delivered: number }[]): OrderState {
  const ours = lines.filter((line) => line.state !== 'not_ours')
  if (ours.some((line) => ['open', 'held', 'partly_fulfilled'].includes(line.state))) return 'open'
  if (ours.every((line) => line.state === 'fulfilled')) return 'fulfilled'
  if (ours.some((line) => line.delivered > 0)) return 'partly_fulfilled'
  return ours.some((line) => line.state === 'failed') ? 'failed' : 'cancelled'
}

/**
 * Whether an order may be reported as closed: no purchase moves any more, and the store has confirmed every key that began to
 * leave, even if its purchase was given up meanwhile. `ordersToClose` finds the same orders by SQL.
 */
export const mayClose = (
  lines: { purchases: { state: PurchaseState }[] }[],
  keys: { begunAt: number | null; handedOverAt: number | null }[],
): boolean =>
  lines.every(({ purchases }) => purchases.every(({ state }) => finalStates.includes(state))) &&
  keys.every((key) => key.begunAt === null || key.handedOverAt !== null)

/** Most purchases of one order: one commit writes all of them and blocks the process meanwhile. */
export const PARTS_MAX = 1_000

/** How many parts `splitQuantity` makes. */
export const countParts = (quantity: number, quantityMax: number): number => Math.ceil(quantity / quantityMax)

/** Splits a quantity into parts of at most `quantityMax`: 7 by 3 is 3, 3, 1. */
export function splitQuantity(quantity: number, quantityMax: number): number[] {
  const parts: number[] = []
  for (let left = quantity; left > 0; left -= quantityMax) parts.push(Math.min(left, quantityMax))
  return parts
}
