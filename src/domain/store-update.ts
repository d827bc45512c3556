/**
 * What a store learns about its orders. An update has no licence key in it, so that it can be stored: keys are opened for
 * the moment in which it is pushed.
 */
import type { HoldReason } from './purchase.ts'
import type { OrderState } from './store-order.ts'

/** An order, as its store knows it. */
export interface OrderRef {
  /** Our permanent id of the store. */
  store: string
  /** The store's own id or number of the order. */
  reference: string
}

/** A line of an order, as its store knows it. */
export interface LineRef {
  /** The store's own id of the line. */
  id: string
  sku: string
  /** Units that were ordered. */
  quantity: number
}

/** Licence keys come with this update, or all of a line have come before it. */
export interface LineFulfilled {
  type: 'line.fulfilled'
  order: OrderRef
  line: LineRef
  /** Units that the store has after this update: all that it had confirmed when the update was first pushed, and these. */
  delivered: number
  /** `delivered` is all that was ordered. */
  complete: boolean
}

/** Units of a line will not come. */
export interface LineFailed {
  type: 'line.failed'
  order: OrderRef
  line: LineRef
  /** How many units. */
  units: number
  state: 'failed' | 'cancelled'
  /** Of the supplier, or `cancelled`, `deadline`, `closed`, `short`. */
  code: string
  /** Why, as a sentence. */
  message: string
  /** What to do for the customer, as a sentence. */
  advice: string
}

/** A line waits: nothing is lost, and it goes on by itself or once an operator releases it. */
export interface LineHeld {
  type: 'line.held'
  order: OrderRef
  line: LineRef
  /** How many units wait. */
  units: number
  reason: HoldReason
  /** Why, as a sentence. */
  message: string
}

/** Nothing of the order moves any more. */
export interface OrderClosed {
  type: 'order.closed'
  order: OrderRef
  state: OrderState
}

/** What is pushed to a store about its orders. */
export type StoreUpdate = LineFulfilled | LineFailed | OrderClosed
