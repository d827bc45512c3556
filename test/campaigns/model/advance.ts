/**
 * Moves one purchase of the model by one input: mirrors ordering/advance.ts, stamps.ts and effects.ts, around the
 * project's own transition function.
 */
import type { Effect, PurchaseInput, Transition } from '../../../src/domain/purchase.ts'
import { brokenBy } from './promises.ts'
import { decide, type Over, QUANTITY } from './purchase-facts.ts'
import {
  type Generation,
  type Purchase,
  plannedPurchase,
  purchaseOf,
  type State,
  withPlace,
  withPurchase,
  withRow,
} from './state.ts'
import type { Model, Promised } from './step.ts'

export interface Moved {
  state: State
  decision: Transition
  broken?: Promised | undefined
}

export interface Given {
  over?: Over
  /** Keys that were read. */
  reading?: number
  /** Its absence is proven, as it must be. */
  proven?: boolean
}

/** @returns undefined when nothing matches, or when a unique key of the table stands in its way */
export function advance(
  model: Model,
  state: State,
  generation: Generation,
  input: PurchaseInput,
  { over = '', reading = 0, proven = false }: Given = nothing,
): Moved | undefined {
  const decided = decide(model, state, generation, input, over)
  if (!decided) return undefined
  const { decision, after: row } = decided
  let next = withRow(state, generation, row)
  for (const effect of decision.effects) {
    const after = applied(model, next, generation, effect, reading)
    if (!after) return undefined
    next = after
  }
  // The unique key of the table: one generation of a part is open at a time.
  if (model.rules.oneOpen && isOpen(next.purchases[0]) && isOpen(next.purchases[1])) return undefined
  model.reached.add(`${decision.row} in ${purchaseOf(state, generation).state}`)
  return { state: next, decision, broken: brokenBy(state, next, generation, input, proven) }
}

const nothing = {}

const isOpen = (purchase: Purchase | undefined): boolean =>
  purchase !== undefined && !['rejected', 'failed', 'cancelled'].includes(purchase.state)

/** One effect of a decision, in the same commit. @returns undefined when the commit fails */
function applied(
  model: Model,
  state: State,
  generation: Generation,
  effect: Effect,
  reading: number,
): State | undefined {
  const purchase = purchaseOf(state, generation)
  if (typeof effect === 'object') {
    if (!('plan' in effect)) return state
    // The bounds end here, as if the worker had died before the commit.
    if (state.purchases[1] || model.bounds.generations === 1) return undefined
    const key = model.rules.nextKey(purchase.key)
    const planned = plannedPurchase({ key, hold: effect.plan, delayed: effect.notBefore !== null })
    return { ...state, purchases: [state.purchases[0], planned] }
  }
  switch (effect) {
    case 'store_keys':
      return withPurchase(state, generation, { keysStored: purchase.keysStored | reading })
    case 'hand_over':
      return handOver(model, state, generation)
    case 'withdraw':
      if (purchase.handOverBegun) return state
      return withPurchase(state, generation, { handOvers: 0, handOver: 'none' })
    case 'notify_failed':
      return withPurchase(state, generation, { failureNotified: true })
    case 'cancel_later': {
      const later = generation === 0 ? state.purchases[1] : undefined
      if (!later || later.firstSent || !['planned', 'waiting', 'review'].includes(later.state)) return state
      return withPurchase(state, 1, { state: 'cancelled', hold: null, delayed: false })
    }
    case 'freeze':
      return withPlace(state, { frozen: true })
    case 'read_now':
    case 'alert':
      return state
  }
}

/** Gives a key that is in no hand-over to one, at most as many as were ordered. */
function handOver({ rules }: Model, state: State, generation: Generation): State {
  const { keysStored, handOvers } = purchaseOf(state, generation)
  const room = rules.handsOverOnce ? QUANTITY - handOvers : QUANTITY
  if (room === 0 || keysStored === 0) return state
  return withPurchase(state, generation, { handOvers: handOvers + 1, handOver: 'queued' })
}
