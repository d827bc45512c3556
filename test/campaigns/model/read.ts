/** Reads of an order, and the hand-over of what came: mirrors ordering/read-order.ts, fulfil.ts and hand-over.ts. */
import type { PurchaseInput } from '../../../src/domain/purchase.ts'
import { advance } from './advance.ts'
import { notEntitled } from './order.ts'
import { leavesBeyond } from './promises.ts'
import { countKeys, foundOrders, nameOf, statusOf } from './purchase-facts.ts'
import {
  bit,
  type Generation,
  generations,
  type Order,
  type Purchase,
  purchaseOf,
  type State,
  type View,
  withColumns,
  withOddity,
  withOrder,
} from './state.ts'
import type { Model } from './step.ts'
import { muchLater } from './time.ts'

/** What an order may show at a later read: it completes with its keys, or fails and is refunded. */
const next = (view: View, quantity: number): readonly View[] => (quantity === 1 ? nextOfOne : nextOfTwo)[view]
const nextOfTwo: Record<View, readonly View[]> = {
  open: ['open+1', 'completed+2', 'failed', 'refunded'],
  'open+1': ['completed+2'],
  completed: ['completed+1'],
  'completed+1': ['completed+2'],
  'completed+2': ['refunded'],
  failed: ['refunded'],
  refunded: [],
}
const nextOfOne: Record<View, readonly View[]> = {
  open: ['completed+1', 'failed', 'refunded'],
  'open+1': ['completed+1', 'completed+2'],
  completed: ['completed+1', 'completed+2'],
  'completed+1': ['refunded'],
  'completed+2': ['refunded'],
  failed: ['refunded'],
  refunded: [],
}

/** What is odd, and costs one of the oddities. */
const odd: Record<View, readonly View[]> = {
  open: ['open+1', 'completed', 'completed+2'],
  'open+1': ['failed', 'refunded'],
  completed: ['failed', 'refunded'],
  'completed+1': ['completed+2', 'failed'],
  'completed+2': ['failed'],
  failed: [],
  refunded: [],
}

/**
 * The order of each purchase is read and applied, to the row as it is by then: a read that was under way for long
 * differs only in that it shows what was long ago, perhaps of another order that the purchase had then.
 */
export function reads(model: Model, state: State): void {
  for (const generation of generations) {
    const purchase = state.purchases[generation]
    if (!purchase || purchase.state === 'sending' || purchase.lease > 0) continue
    for (const [number, order] of state.orders.entries()) {
      const before = !model.rules.dropsOldReads && (purchase.ordersSeen & bit(number)) !== 0
      if (order.purchase === generation && (number === purchase.order || before)) {
        readsOf(model, state, generation, number, order)
      }
    }
    readsNamed(model, state, generation)
    const moved = purchase.order >= 0 && advance(model, state, generation, { type: 'missing' })
    if (moved) model.emit({ next: moved.state, says: () => 'the supplier does not know the order' })
  }
}

/** The order that an answer named is read by its id, as it is or with other contents; one that the supplier never made is not known. */
function readsNamed(model: Model, state: State, generation: Generation): void {
  const { state: is, named } = purchaseOf(state, generation)
  const order = state.orders[named]
  if (is !== 'unknown' || !order) return
  const changed = state.place.oddities < model.bounds.oddities && !order.odd
  for (const from of changed ? [state, withOrder(withOddity(state), named, { ...order, odd: true })] : [state]) {
    const [read] = foundOrders(from, bit(named), 0)
    const moved = read && advance(model, from, generation, { type: 'named_read', order: read })
    if (!moved) continue
    const says = () => `${nameOf(named)}, which was named, is read: ${moved.decision.row}`
    model.emit({ next: moved.state, says, broken: moved.broken })
  }
}

function readsOf(model: Model, state: State, generation: Generation, number: number, order: Order): void {
  const shows = (from: State, change: Partial<Order>, oddKeys: OddKeys = 'none') => {
    const now = { ...order, ...change }
    applied(model, withOrder(from, number, now), { generation, number, view: now.view, oddKeys })
  }
  shows(state, {})
  // The supplier may answer a read with what was long ago.
  if (order.view !== 'open') applied(model, state, { generation, number, view: 'open', oddKeys: 'none' })
  // What becomes of an order that no request waits for changes nothing here.
  if (isOver(purchaseOf(state, generation))) return
  for (const view of next(order.view, purchaseOf(state, generation).quantity)) shows(state, { view })
  if (state.place.oddities === model.bounds.oddities) return
  const strange = withOddity(state)
  for (const view of odd[order.view]) shows(strange, { view })
  if (!order.odd) shows(strange, { odd: true })
  if (keysIn[order.view] === 0) return
  shows(strange, {}, 'elsewhere')
  shows(strange, {}, 'no text')
}

const isOver = ({ state }: Purchase): boolean => ['rejected', 'failed', 'cancelled'].includes(state)

/** Sets of keys. */
const keysIn: Record<View, number> = {
  open: 0,
  'open+1': 1,
  completed: 0,
  'completed+1': 1,
  'completed+2': 3,
  failed: 0,
  refunded: 0,
}

interface Reading {
  generation: Generation
  /** Of the order. */
  number: number
  view: View
  oddKeys: OddKeys
}

/** One of its keys came with another purchase before, or is a picture. */
type OddKeys = 'none' | 'elsewhere' | 'no text'

function applied(model: Model, state: State, reading: Reading): void {
  const { generation, number, view } = reading
  const purchase = purchaseOf(state, generation)
  const keys = keysIn[view] << (number * 2)
  const input = inputOf(state, reading, keys)
  for (const over of input.type === 'read' ? (['', 'keys'] as const) : ([''] as const)) {
    const from = over === 'keys' ? muchLater(model, state) : state
    const moved = advance(model, from, generation, input, { over, reading: keys })
    const row = moved ? `${moved.decision.row}, purchase ${generation + 1} is ${moved.decision.next}` : 'no change'
    const foreign = moved && purchase.order !== number ? 'only its own order is read into a purchase' : undefined
    // What the order shows by now stays so at the supplier, whatever it changes here.
    const next = moved?.state ?? state
    model.emit({ next, says: () => `${nameOf(number)} is read, ${view}: ${row}`, broken: foreign ?? moved?.broken })
  }
}

/** One that cannot be read into the purchase is an order that was found, as anywhere else. */
function inputOf(state: State, { generation, number, view, oddKeys }: Reading, keys: number): PurchaseInput {
  const purchase = purchaseOf(state, generation)
  const seen = purchase.ordersSeen
  const agrees = !state.orders[number]?.odd || (seen & bit(number)) !== 0
  if (!agrees || isOver(purchase)) return { type: 'found', orders: foundOrders(state, bit(number), seen) }
  return {
    type: 'read',
    status: statusOf(view),
    keys: count(keys),
    newKeys: count(keys & ~purchase.keysStored),
    keysElsewhere: oddKeys === 'elsewhere',
    areText: oddKeys !== 'no text',
  }
}

const count = (set: number): number => set.toString(2).replaceAll('0', '').length

/** Keys that are queued go to the store, which counts a repeated message once: fulfil.ts and hand-over.ts. */
export function handOvers(model: Model, state: State): void {
  for (const generation of generations) {
    const purchase = state.purchases[generation]
    if (!purchase) continue
    const name = `purchase ${generation + 1}`
    if (purchase.handOvers > purchase.left) begin(model, state, generation)
    // From here on nothing stops them but the order as the store reads it: a hand-over that began is on its way.
    if (purchase.left > purchase.delivered) deliver(model, state, generation)
    const { delivered, left, quantity, surplus } = purchase
    const keys = countKeys(purchase)
    const isWhole = delivered > 0 && delivered === left && delivered >= Math.min(keys, quantity - surplus)
    if (isWhole && model.rules.confirms(keys) && purchase.state === 'completed' && purchase.lease === 0) {
      const moved = advance(model, state, generation, { type: 'confirmed' })
      if (moved)
        model.emit({ next: moved.state, says: () => `${name} is ${moved.decision.next}`, broken: moved.broken })
    }
  }
}

function begin(model: Model, state: State, generation: Generation): void {
  const { handOverHeld, cancelAsked, decided, handOvers } = purchaseOf(state, generation)
  const { standing, units } = state.place
  if (handOverHeld || cancelAsked || !model.rules.mayLeave(state.place, decided)) return
  const next = withColumns(state, generation, { left: handOvers })
  model.emit({
    next,
    says: () => `the keys of purchase ${generation + 1} are about to leave`,
    broken: leavesBeyond(next, generation, standing, units),
  })
}

/** The order is read before the first key is written into it: the keys are written only if they are entitled. */
function deliver(model: Model, state: State, generation: Generation): void {
  const { left, decided } = purchaseOf(state, generation)
  const { shopStanding, shopUnits } = state.place
  const beyond = leavesBeyond(state, generation, shopStanding, shopUnits)
  if (beyond && model.rules.readsBeforeHandOver && !decided) {
    notEntitled(model, state, generation)
    return
  }
  model.emit({
    next: withColumns(state, generation, { delivered: left }),
    says: () => `the store has the keys of purchase ${generation + 1}`,
    broken: beyond,
  })
}
