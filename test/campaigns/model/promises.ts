/** What must never happen, looked for in every state and at every step that could bring it about. */
import { finalStates, type PurchaseInput } from '../../../src/domain/purchase.ts'
import { numberOf } from './purchase-facts.ts'
import { bit, bitsOf, type Generation, generations, type Purchase, purchaseOf, type State } from './state.ts'
import type { Bounds, Promised } from './step.ts'

/** @returns a promise that a state as such breaks */
export function brokenIn(state: State, { quantity }: Bounds): Promised | undefined {
  if (state.place.world !== 'neither' && bitsOf(chargesOf(state)).length > 1) return 'one charge per part'
  const delivered = state.purchases.reduce((sum, one) => sum + (one && !one.writtenOff ? one.delivered : 0), 0)
  if (delivered > quantity || state.purchases.some((one) => one && one.handOvers > one.quantity))
    return 'keys are handed over once'
  return undefined
}

/** @returns the promise that the intent of a purchase breaks by what is stored of its order */
export function boughtBeyond({ place, purchases }: State, generation: Generation): Promised | undefined {
  const count = (one: Purchase | undefined, number: number): number => {
    if (!one) return 0
    if (number === generation || !['planned', 'waiting', 'rejected', 'failed', 'cancelled'].includes(one.state))
      return one.quantity
    return one.left
  }
  const bought = purchases.reduce((sum, one, number) => sum + count(one, number), place.elsewhere)
  const isBeyond = place.standing !== 'paid' || bought > place.units + place.replaced
  return isBeyond && !purchases[generation]?.excepted
    ? 'nothing is bought beyond what the order entitles to'
    : undefined
}

/** @returns the promise that keys break which leave for an order that stands so, with so many units */
export function leavesBeyond(
  { place, purchases }: State,
  generation: Generation,
  standing: string,
  units: number,
): Promised | undefined {
  const left = purchases.reduce((sum, one) => sum + (one?.left ?? 0), place.elsewhere)
  const isBeyond = standing !== 'paid' || left > units + place.replaced
  return isBeyond && !purchases[generation]?.excepted ? 'no key leaves that the order does not entitle to' : undefined
}

/** The orders that count against the part: not refunded, and of no generation that a person wrote off. */
const chargesOf = (state: State): number =>
  state.orders.reduce((all, order, number) => {
    const counts = order.view !== 'refunded' && !state.purchases[order.purchase]?.writtenOff
    return counts ? all | bit(number) : all
  }, 0)

const personsInputs: PurchaseInput['type'][] = ['adopt', 'hand_over', 'close', 'buy_again', 'retry']
/** Decisions of a person that stand against how the order is. */
export const isPersons = (type: PurchaseInput['type']): boolean =>
  type === 'retry' || type === 'hand_over' || type === 'close' || type === 'buy_again'

/** @returns a promise that the move of a purchase by an input breaks; `proven`: its absence is, as it must be */
export function brokenBy(
  before: State,
  after: State,
  generation: Generation,
  input: PurchaseInput,
  proven: boolean,
): Promised | undefined {
  const was = purchaseOf(before, generation)
  const is = purchaseOf(after, generation)
  const givenUp = was.state === 'unknown' && !['unknown', 'accepted', 'review'].includes(is.state)
  if (givenUp && !personsInputs.includes(input.type) && !(input.type === 'absent' && proven)) {
    return 'what is unknown is given up only after a proof of absence'
  }
  if (input.type !== 'found') return undefined
  const broughtBack = finalStates.includes(was.state) && is.state === 'accepted'
  if (broughtBack && was.ordersSeen & bit(is.order)) return 'what a person decided stays decided'
  return overlooks(before, after, generation, input) ? 'a second order freezes buying' : undefined
}

/** Two charges for the part were in sight that no operator had decided on, and buying goes on. */
function overlooks(
  before: State,
  after: State,
  generation: Generation,
  { orders }: Extract<PurchaseInput, { type: 'found' }>,
): boolean {
  if (after.place.frozen) return false
  const was = purchaseOf(before, generation)
  const shown = orders.filter((order) => !order.decided).reduce((all, order) => all | bit(numberOf(order.id)), 0)
  const news = shown & ~was.ordersSeen & chargesOf(before)
  const own = bit(was.order) & chargesOf(before)
  const laterSent = generation === 0 && before.purchases[1]?.firstSent === true && finalStates.includes(was.state)
  return bitsOf(news | own).length > 1 || (laterSent && news !== 0)
}

/** Nothing is left to do, for the machine or for a person. */
export const isSettled = (state: State): boolean =>
  state.place.settled === 'yes' &&
  state.place.readStanding === '' &&
  state.workers.every((worker) => worker.doing === 'idle') &&
  state.requests.every((request) => request === undefined) &&
  generations.every((generation) => {
    const purchase = state.purchases[generation]
    return !purchase || (finalStates.includes(purchase.state) && purchase.delivered === purchase.handOvers)
  })

/** A person is asked to decide: a purchase is in review, or buying is frozen. */
export const asksPerson = (state: State): boolean =>
  state.place.frozen || state.purchases.some((purchase) => purchase?.state === 'review')
