/**
 * Moves one purchase of the model by one input: mirrors ordering/advance.ts, stamps.ts and effects.ts, around the
 * project's own transition function.
 */
import { type Effect, isOver, type PurchaseInput, type Transition } from '../../../src/domain/purchase.ts'
import { brokenBy, isPersons } from './promises.ts'
import { countKeys, decide, type Over } from './purchase-facts.ts'
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
  /** What it plans beyond the bounds is bought and delivered elsewhere. */
  isUnbounded?: boolean
}

/** @returns undefined when nothing matches, or when a unique key of the table stands in its way */
export function advance(
  model: Model,
  state: State,
  generation: Generation,
  input: PurchaseInput,
  { over = '', reading = 0, proven = false, isUnbounded = false }: Given = nothing,
): Moved | undefined {
  const decided = decide(model, state, generation, input, over)
  if (!decided) return undefined
  const { decision, after: row } = decided
  const before = purchaseOf(state, generation)
  let next = withRow(state, generation, row)
  for (const effect of decision.effects) {
    const after = applied(model, next, generation, effect, reading, isUnbounded)
    if (!after) return undefined
    next = after
  }
  if (model.bounds.changes > 0) next = followed(model, next, before, generation, input, decision)
  // The unique key of the table: one generation of a part is open at a time.
  if (model.rules.oneOpen && isOpen(next.purchases[0]) && isOpen(next.purchases[1])) return undefined
  model.reached.add(`${decision.row} in ${before.state}`)
  return { state: next, decision, broken: brokenBy(state, next, generation, input, proven) }
}

const nothing = {}

const isOpen = (purchase: Purchase | undefined): boolean => purchase !== undefined && !isOver(purchase.state)

/** What the commit notes of persons, and whether the order is compared again: `settlesAgain` and `decidedColumns` in advance.ts. */
function followed(
  { rules }: Model,
  state: State,
  before: Purchase,
  generation: Generation,
  { type }: PurchaseInput,
  { next, row, effects }: Transition,
): State {
  let after = state
  if (rules.decides(type) || isPersons(type)) {
    const decided = { decided: rules.decides(type), excepted: isPersons(type) }
    after = withPurchase(after, generation, { ...decided, closed: type === 'close' || type === 'buy_again' })
    const plans = effects.some((effect) => typeof effect === 'object' && 'plan' in effect)
    if (plans) after = withPurchase(after, 1, decided)
  } else if (isOver(next) !== isOver(before.state))
    after = withPurchase(after, generation, { decided: false, excepted: false })
  if (next === 'accepted' && (isOver(before.state) || before.state === 'review'))
    return withPlace(after, { settled: 'no' })
  const ends = isOver(next) || isOver(before.state) || before.state === 'review'
  const settlesAgain =
    (next !== before.state && next !== 'fulfilled' && ends) ||
    (before.state === 'sending' && next === 'waiting') ||
    row === 'absent_and_fewer'
  return settlesAgain && after.place.settled === 'yes' ? withPlace(after, { settled: 'due' }) : after
}

/** One effect of a decision, in the same commit. @returns undefined when the commit fails */
function applied(
  model: Model,
  state: State,
  generation: Generation,
  effect: Effect,
  reading: number,
  isUnbounded: boolean,
): State | undefined {
  const purchase = purchaseOf(state, generation)
  if (typeof effect === 'object') {
    if (!('plan' in effect)) return state
    const key = model.rules.nextKey(purchase.key)
    const open = purchase.quantity - purchase.left
    const { plan: hold, quantity = open > purchase.surplus ? open - purchase.surplus : open } = effect
    if (state.purchases[1] || model.bounds.generations === 1) {
      // Else the bounds end here, as if the worker had died before the commit.
      return isUnbounded ? withPlace(state, { elsewhere: state.place.elsewhere + quantity }) : undefined
    }
    const { sinceWish } = purchase
    const planned = plannedPurchase({ key, hold, delayed: effect.notBefore !== null, quantity, sinceWish })
    return { ...state, purchases: [state.purchases[0], planned] }
  }
  switch (effect) {
    case 'store_keys':
      return withPurchase(state, generation, { keysStored: purchase.keysStored | reading })
    case 'hand_over':
      return handOver(model, state, generation)
    case 'withdraw':
      return withPurchase(state, generation, { handOvers: purchase.left })
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

/** Gives the keys that are in no hand-over to one, at most as many as are due. */
function handOver({ rules }: Model, state: State, generation: Generation): State {
  const purchase = purchaseOf(state, generation)
  const keys = countKeys(purchase)
  const { handOvers } = purchase
  const given = rules.handsOverOnce
    ? Math.min(rules.due(purchase), keys) - handOvers
    : Math.min(purchase.quantity, keys)
  if (given <= 0) return state
  return withPurchase(state, generation, { handOvers: handOvers + given })
}
