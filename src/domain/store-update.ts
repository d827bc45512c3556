/**
 * What a store learns about its orders. An update can be stored, because it contains no licence key: keys are decrypted
 * only while the update is pushed.
 */
import { type HoldReason, holdReasons } from './purchase.ts'
import type { OrderState } from './store-order.ts'

/** An order, as its store knows it. */
export interface OrderRef {
  /** Our permanent id of the store. */
  store: string
  /** The store's own id or number of the order. */
  reference: string
}

/** A line of an order, as its store knows it. */
interface LineRef {
  /** The store's own id of the line. */
  id: string
  sku: string
  quantity: number
}

interface OfLine {
  order: OrderRef
  line: LineRef
}

/** How the keys of an order reach its customer: by a link to their page, in plain text by the store, or both ways. */
export const keyWays = ['link', 'keys', 'both'] as const
export type KeyWay = (typeof keyWays)[number]

/** Whether customers of a store get links to their pages of keys. */
export const sendsLinks = (store?: { deliver?: KeyWay | undefined }): boolean => (store?.deliver ?? 'keys') !== 'keys'

/** Brings licence keys of a line to its store. If the store already has all keys, it only states that the line is complete. */
export interface LineFulfilled extends OfLine {
  type: 'line.fulfilled'
  /** Units that have a key after this update: the units in it, and those confirmed before the first attempt to push it. */
  delivered: number
  /** `delivered` is all that was ordered. */
  complete: boolean
  /** How these keys reach the customer. Absent: in plain text alone. */
  by?: Exclude<KeyWay, 'keys'>
  /** The keys come in place of keys that do not work. They bring no further unit. */
  replaces?: true
}

/** Whether a store learns from this update that it has all keys of a line. */
export const isComplete = (update: StoreUpdate): update is LineFulfilled =>
  update.type === 'line.fulfilled' && update.complete

/** Units of a line will not come. */
export interface LineFailed extends OfLine {
  type: 'line.failed'
  units: number
  state: 'failed' | 'cancelled'
  /** The code of the supplier, or `cancelled`, `deadline`, `closed`, `short`. */
  code: string
  /** Why, as a sentence. */
  message: string
  /** What to do for the customer, as a sentence. */
  advice: string
}

/** Units of a line wait: nothing is lost, and they go on by themselves or once an operator releases them. */
export interface LineHeld extends OfLine {
  type: 'line.held'
  units: number
  reason: WaitReason
  /** Why, as a sentence. */
  message: string
}

/** Units that waited are bought now. */
export interface LineResumed extends OfLine {
  type: 'line.resumed'
  units: number
}

/** Holds that a store learns of. The other two concern only the people who run Quayside. */
export type ReportedHold = Exclude<HoldReason, 'spend_cap' | 'frozen'>
export const reportedHolds = holdReasons.filter((one): one is ReportedHold => one !== 'spend_cap' && one !== 'frozen')

/** Why units wait, as their store learns it. `late`: their keys have not come within the time after which a customer should know. */
export type WaitReason = ReportedHold | 'late'
export const waitReasons: readonly [WaitReason, ...WaitReason[]] = ['late', ...reportedHolds]

/** The store learns at once that its customer waits for a price, a restock or a top-up. Most other holds end by themselves. */
const reportedAtOnce: readonly HoldReason[] = ['out_of_stock', 'balance', 'ceiling']

/**
 * Returns the reason of a hold that the store must still learn of. The store learns each reason once in a hold. A hold does not
 * end with its cause, because the next try may meet the cause again. It ends when the supplier has taken the order.
 *
 * @param isLong the hold lasts longer than it should, and people are alerted of it
 */
export function holdToReport(
  reported: ReportedHold | null,
  reason: HoldReason | null | undefined,
  isLong = false,
): ReportedHold | undefined {
  const known = reportedHolds.find((one) => one === reason)
  return known !== undefined && known !== reported && (isLong || reportedAtOnce.includes(known)) ? known : undefined
}

/** Nothing of the order moves any more. */
export interface OrderClosed {
  type: 'order.closed'
  order: OrderRef
  state: OrderState
}

export type StoreUpdate = LineFulfilled | LineFailed | LineHeld | LineResumed | OrderClosed
