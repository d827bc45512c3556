/** What stores and people ask for, at any time: mirrors ordering/operate.ts, decide.ts and choices.ts. */
import type { PurchaseInput } from '../../../src/domain/purchase.ts'
import { advance } from './advance.ts'
import { foundOrders, nameOf } from './purchase-facts.ts'
import { othersOf } from './send.ts'
import {
  bit,
  type Generation,
  generations,
  type Purchase,
  type State,
  withOddity,
  withPlace,
  withPurchase,
} from './state.ts'
import type { Model } from './step.ts'

export function people(model: Model, state: State): void {
  cancel(model, state)
  if (state.place.frozen) {
    model.emit({ next: withPlace(state, { frozen: false }), says: () => 'a person lets buying go on', byPerson: true })
  }
  for (const generation of generations) {
    const purchase = state.purchases[generation]
    if (!purchase || purchase.lease > 0) continue
    endings(model, state, generation)
    release(model, state, generation, purchase)
    decisions(model, state, generation, purchase)
  }
}

/** The store cancels its order: all purchases of it are marked, also those that a worker holds. */
function cancel(model: Model, state: State): void {
  if (!model.bounds.cancels || state.purchases.every((purchase) => !purchase || purchase.cancelAsked)) return
  let next = state
  for (const generation of generations) {
    if (next.purchases[generation]) next = withPurchase(next, generation, { cancelAsked: true })
  }
  model.emit({ next, says: () => 'the store cancels' })
}

/** What a cancellation or the deadline ends by itself, and the row that the machine cannot handle. */
function endings(model: Model, state: State, generation: Generation): void {
  const name = `purchase ${generation + 1}`
  const tries = [
    [{ type: 'clock' }, '', 'the cancellation is looked at'],
    [{ type: 'clock' }, 'deadline', 'its deadline is over'],
    [{ type: 'poison', error: 'an internal error' }, '', 'an internal error comes eight times'],
  ] as const
  for (const [input, over, words] of tries) {
    const isOdd = input.type === 'poison'
    if (isOdd && state.place.oddities === model.bounds.oddities) continue
    const moved = advance(model, state, generation, input, { over })
    if (!moved) continue
    model.emit({
      next: isOdd ? withOddity(moved.state) : moved.state,
      says: () => `${name}: ${words}, it is ${moved.decision.next}`,
      broken: moved.broken,
    })
  }
}

function release(model: Model, state: State, generation: Generation, { hold }: Purchase): void {
  if (model.bounds.changes === 0 || hold === null) return
  const moved = advance(model, state, generation, { type: 'released', by: 'operator' })
  if (moved) {
    const says = () => `a person releases purchase ${generation + 1}`
    model.emit({ next: moved.state, says, broken: moved.broken, byPerson: true })
  }
}

function decisions(model: Model, state: State, generation: Generation, purchase: Purchase): void {
  const decide = (input: PurchaseInput, words: string) => {
    const moved = advance(model, state, generation, input)
    if (!moved) return
    const says = () => `a person ${words} purchase ${generation + 1}: it is ${moved.decision.next}`
    model.emit({ next: moved.state, says, broken: moved.broken, byPerson: true })
  }
  const proven = model.rules.mayBuy(othersOf(state, generation))
  if (proven) decide({ type: 'retry' }, 'retries')
  if (purchase.state !== 'review' && purchase.state !== 'accepted') return
  const left = purchase.left > 0
  if (purchase.keysStored !== 0) decide({ type: 'hand_over' }, 'hands over what came of')
  if (!left) decide({ type: 'close' }, 'closes')
  if (!left && proven) decide({ type: 'buy_again' }, 'writes off and buys again')
  for (const [number, order] of state.orders.entries()) {
    const owner = state.purchases.findIndex((other) => other?.order === number)
    const taken = owner >= 0 && owner !== generation
    const mixes = purchase.keysStored !== 0 && purchase.order !== number
    if (order.purchase !== generation || taken || mixes) continue
    const [found] = foundOrders(state, bit(number), purchase.ordersSeen)
    if (found) decide({ type: 'adopt', order: found }, `adopts ${nameOf(number)} for`)
  }
}
