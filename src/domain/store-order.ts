/** The public states of a store order and its lines. They are derived from the purchases and never stored. */
import { scale } from './money.ts'
import {
  type Charged,
  chargesOf,
  finalStates,
  type HoldReason,
  isOver,
  mostOf,
  type PurchaseState,
  type TakenBackBy,
} from './purchase.ts'

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

type Moving = PartFacts & { acceptedAt: number | null }
type KeyTimes = { storedAt: number; handedOverAt: number | null }

/**
 * Says how far an order is: how many of its units have come to each step so far, of how many, and when the last of them did.
 *
 * @param lines the purchases of each of our lines, and the units that the line had at first
 */
export function stepsOf(lines: readonly { quantity: number; parts: Moving[] }[], keys: readonly KeyTimes[]) {
  const sum = (count: (line: { quantity: number; parts: Moving[] }) => number) =>
    lines.reduce((total, line) => total + count(line), 0)
  const newest = (all: (number | null)[]) =>
    all.reduce((last, at) => (at !== null && at > (last ?? 0) ? at : last), null)
  const all = lines.flatMap(({ parts }) => parts)
  const units = sum(({ quantity, parts }) => (parts.length === 0 ? quantity : unitsWanted(parts)))
  const given = sum(({ parts }) => delivered(parts))
  const isBought = ({ state }: PartFacts) => state === 'accepted' || state === 'completed' || state === 'fulfilled'
  const bought = sum(({ parts }) =>
    currentParts(parts)
      .filter(isBought)
      .reduce((of, one) => of + one.quantity, 0),
  )
  const step = (step: 'bought' | 'keys' | 'delivered', count: number, at: number | null) => ({
    step,
    count: Math.min(units, Math.max(count, given)),
    of: units,
    at,
  })
  return [
    step('bought', bought, newest(all.map(({ acceptedAt }) => acceptedAt))),
    step('keys', keys.length, newest(keys.map(({ storedAt }) => storedAt))),
    step('delivered', given, newest(keys.map(({ handedOverAt }) => handedOverAt))),
  ]
}

export const noMarginReasons = ['no_sale_price', 'other_currency', 'keys_missing'] as const
/** Why a line has no margin. */
export type NoMargin = (typeof noMarginReasons)[number]

/** What a line was sold for, what it cost, and the rest. Amounts in minor units. */
export type Earning = ReturnType<typeof earningOf>

type Bought = PartFacts & Charged & { ceilingMinor: number; currency: string }

/** @param purchases those of the line @param sold the line as its store ordered it */
export function earningOf(
  purchases: Bought[],
  sold: { quantity: number; unitPriceMinor: number | null; currency: string | null },
) {
  const [first] = purchases
  const wanted = first ? unitsWanted(purchases) : sold.quantity
  /** Null where the store does not state the price of a unit. */
  const saleMinor = sold.unitPriceMinor === null || sold.currency === null ? null : sold.unitPriceMinor * wanted
  /** Of the cost and the margins; null without a purchase. */
  const currency = first?.currency ?? null
  const charges = chargesOf(purchases)
  const isWhole = delivered(purchases) >= wanted
  const noMargin: NoMargin | null =
    saleMinor === null
      ? 'no_sale_price'
      : currency !== null && currency !== sold.currency
        ? 'other_currency'
        : isWhole
          ? null
          : 'keys_missing'
  const current = currentParts(purchases).filter((part) => !isTakenBack(part))
  const isMoving = current.length > 0 && current.every(({ state }) => !isOver(state))
  const unpaid = current.filter(({ amountMinor, state }) => amountMinor === null && state !== 'fulfilled')
  const restMinor = unpaid.reduce((sum, part) => sum + mostOf(part), 0)
  /** Null before the store has all keys, and where the sale price is not known or is in another currency than the cost. */
  const marginMinor = saleMinor === null || noMargin !== null ? null : saleMinor - charges.costMinor
  return {
    saleMinor,
    saleCurrency: sold.currency,
    ...charges,
    currency,
    marginMinor,
    marginPercent: percentOf(marginMinor, saleMinor),
    /** The margin of a line whose missing keys are still bought, if each of them costs its ceiling; otherwise null. */
    leastMarginMinor:
      saleMinor !== null && noMargin === 'keys_missing' && isMoving ? saleMinor - charges.costMinor - restMinor : null,
    noMargin,
  }
}

/** Returns a margin as a percentage of its sale price, such as `9.1`, rounded towards 0; null where there is none. */
function percentOf(marginMinor: number | null, saleMinor: number | null): string | null {
  if (marginMinor === null || saleMinor === null || saleMinor <= 0) return null
  const tenths = scale(Math.abs(marginMinor), 1_000, saleMinor, 'down')
  return `${marginMinor < 0 && tenths > 0 ? '-' : ''}${(tenths - (tenths % 10)) / 10}.${tenths % 10}`
}

/** Sums the lines of an order. The margin is that of the lines that have one; `noMargin` says why another has none. */
export function earningOfOrder(lines: readonly Earning[]) {
  const [saleCurrency = null, ...others] = new Set(lines.map((line) => line.saleCurrency))
  const sum = (name: 'saleMinor' | 'marginMinor', all = lines) => all.reduce((sum, line) => sum + (line[name] ?? 0), 0)
  const isSold = others.length === 0 && lines.length > 0 && lines.every(({ saleMinor }) => saleMinor !== null)
  const whole = lines.filter(({ marginMinor }) => marginMinor !== null)
  const marginMinor = whole.length === 0 ? null : sum('marginMinor', whole)
  return {
    saleMinor: isSold ? sum('saleMinor') : null,
    saleCurrency: isSold ? saleCurrency : null,
    currency: lines.find(({ currency }) => currency !== null)?.currency ?? null,
    marginMinor,
    marginPercent: percentOf(marginMinor, sum('saleMinor', whole)),
    noMargin: lines.find(({ noMargin }) => noMargin !== null)?.noMargin ?? null,
  }
}

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
