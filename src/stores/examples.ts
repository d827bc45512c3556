import { heldSentences } from '../domain/labels.ts'
import type { OrderRef, StoreUpdate } from '../domain/store-update.ts'

/** Licence keys of an example. They are worth nothing, and look like no real key. */
export const EXAMPLE_KEYS = ['TEST-0000-0000-0001', 'TEST-0000-0000-0002']

const line = { id: '1', sku: 'TEST', quantity: EXAMPLE_KEYS.length }
const waiting = { line, units: line.quantity }

/** An update of each type, for an order that no shop has. */
export const examples: { [Type in StoreUpdate['type']]: (order: OrderRef) => Extract<StoreUpdate, { type: Type }> } = {
  'line.fulfilled': (order) => ({ type: 'line.fulfilled', order, line, delivered: line.quantity, complete: true }),
  'line.failed': (order) => ({
    type: 'line.failed',
    order,
    ...waiting,
    state: 'failed',
    code: 'out_of_stock',
    message: 'this is a test: nothing failed',
    advice: 'Do nothing.',
  }),
  'line.held': (order) => ({
    type: 'line.held',
    order,
    ...waiting,
    reason: 'out_of_stock',
    message: heldSentences.out_of_stock,
  }),
  'line.resumed': (order) => ({ type: 'line.resumed', order, ...waiting }),
  'order.closed': (order) => ({ type: 'order.closed', order, state: 'fulfilled' }),
}

export type UpdateType = keyof typeof examples
export const updateTypes = Object.keys(examples) as [UpdateType, ...UpdateType[]]
