import type { Effect, FoundOrder, Patch, PurchaseFacts, PurchaseInput, PurchaseState } from './purchase.ts'

export interface Outcome {
  next?: PurchaseState
  set?: Patch
  effects?: Effect[]
}

export interface Row {
  name: string
  states: readonly PurchaseState[]
  type: PurchaseInput['type']
  decide(facts: PurchaseFacts, input: PurchaseInput, now: number): Outcome | undefined
}

export type InputOf<T extends PurchaseInput['type']> = Extract<PurchaseInput, { type: T }>

/** One row of the transition table: answers undefined where its condition does not hold. */
export function row<T extends PurchaseInput['type']>(
  name: string,
  states: readonly PurchaseState[],
  type: T,
  decide: (facts: PurchaseFacts, input: InputOf<T>, now: number) => Outcome | undefined,
): Row {
  return { name, states, type, decide: (facts, input, now) => decide(facts, input as InputOf<T>, now) }
}

export const undecided = (orders: FoundOrder[]) => orders.filter((order) => !order.decided)
export const ids = (facts: PurchaseFacts, orders: { id: string }[]) => [
  ...new Set([...facts.ordersSeen, ...orders.map((order) => order.id)]),
]
/** What a person decides on when a purchase is given up: its own order, too, must not bring it back. */
export const seenAndKnown = (facts: PurchaseFacts) =>
  facts.supplierOrderId === null ? facts.ordersSeen : ids(facts, [{ id: facts.supplierOrderId }])
export const doubleCharge = (orders: FoundOrder[]): Effect[] => [
  ...orders.map((order): Effect => ({ discrepancy: 'double_charge', orderId: order.id })),
  'freeze',
]
