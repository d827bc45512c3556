/**
 * A state of the model: one part of one store line, from its first purchase to its keys, and its order in the shop.
 *
 * Left out is what only delays (budgets, the breaker, pauses, schedules: whatever may happen may happen at once, or
 * never) and what is another question: amounts, other lines, a clock that jumps, a database that is restored. Instants
 * are counts of ticks that stop where nothing depends on them any more.
 */
import type { AnswerClass, HoldReason, PurchaseState, TakenBackBy } from '../../../src/domain/purchase.ts'
import type { Standing } from '../../../src/domain/store-order.ts'
import { createPool, type Kept } from './pool.ts'

export type { Kept }

/** The generations of the part: 0 is the first. */
export type Generation = 0 | 1
export const generations: readonly Generation[] = [0, 1]

/**
 * What the supplier can be relied on for. In all three a request runs once, within `settle`, or never.
 *
 *   remembers  it knows a key again; its list may leave an order out always
 *   lists      its list shows an order after `listLag`; it may forget a key at once
 *   neither    nothing holds: two charges cannot be excluded, only detected
 */
export type World = 'remembers' | 'lists' | 'neither'

export interface Place {
  world: World
  sends: number
  oddities: number
  frozen: boolean
  /** How the shop has the order now, the units of its line, and whether it carries a wish to try again. */
  shopStanding: Standing
  shopUnits: number
  shopTagged: boolean
  /** How often the shop has changed it. */
  changes: number
  /** The same as it is stored here, by the newest reading. */
  standing: Standing
  units: number
  tagged: boolean
  /** It has stood so for as long as nothing waits for it any more. */
  expired: boolean
  /** Whether its purchases were compared with it. `due`: something changed here since. `no`: a newer reading came since. */
  settled: 'yes' | 'due' | 'no'
  /** Units of the line that it gained later: other parts have them, which are delivered at once. */
  elsewhere: number
  /** 1: the part replaces a key that does not work; `elsewhere` has that key. */
  replaced: number
  /** A reading that was asked for and is not stored yet; empty without one. */
  readStanding: Standing | ''
  readUnits: number
  readTagged: boolean
  /** Another reading was stored since it was asked for. */
  overtaken: boolean
}

/** A row of `purchases`, with its licence keys and its hand-over. Sets are bits: of orders, and of two keys for each. */
export interface Purchase {
  state: PurchaseState
  quantity: number
  /** Units whose keys stay here. */
  surplus: number
  takenBackBy: TakenBackBy | null
  /** What a person decided stands against how its order is. */
  decided: boolean
  /** The same as the promises see it: the machine is not asked. */
  excepted: boolean
  /** A person has given it up. */
  closed: boolean
  /** It was planned since the last wish. */
  sinceWish: boolean
  hold: HoldReason | null
  delayed: boolean
  cancelAsked: boolean
  maybeCharged: boolean
  lastClass: AnswerClass | null
  /** Order that an answer named which differs, from 0; -1 without one. */
  named: number
  /** Which idempotency key it has. */
  key: number
  firstSent: boolean
  /** Number of its supplier order, from 0; -1 while it has none. */
  order: number
  ordersSeen: number
  keysStored: number
  /** How often a key was given to a hand-over. */
  handOvers: number
  /** Of these, those that left or may have left, and those that the store has confirmed. */
  left: number
  delivered: number
  handOverHeld: boolean
  keysShort: boolean
  failureNotified: boolean
  refunded: boolean
  writtenOff: boolean
  /** Ticks until its lease is over. */
  lease: number
  /** Ticks since the intent of its last send, as far as they matter. */
  sinceSent: number
  /** Ticks since the first scan that did not find it, as far as they matter; -1 when there is none. */
  sinceAbsent: number
  /** That scan began late enough after the last send. Only the promises see this. */
  absentCounts: boolean
}

/** What a worker is in the middle of. A crash forgets it. */
export interface Worker {
  doing: 'idle' | 'intended' | 'waits' | 'answered' | 'scanned'
  purchase: Generation
  /** The lease was not taken since. */
  fenced: boolean
  /** Request that it waits for, from 0; -1 when no answer can come any more. */
  request: number
  answer: AnswerKind | ''
  /** Order that was answered. */
  order: number
  /** The key was older than the supplier promises to remember it when the intent was stored. */
  keyIsOld: boolean
  /** The row has not changed since it was read for the scan. */
  unchanged: boolean
  /** Nothing was sent since. */
  sameSend: boolean
  /** Ticks since the scan began, as far as they matter. */
  age: number
}

/**
 * How a request ended for who sent it. `differs`: a 2xx that names an order and is not as it was sent. `lost`: anything else
 * that leaves open whether it ran.
 */
export type AnswerKind = 'accepted' | 'differs' | 'not_executed' | 'out_of_stock' | 'refused' | 'lost'

/** Number of an order that an answer names and the supplier never made. */
export const GHOST = 5

/** A POST /orders that left and may still run. */
export interface Request {
  purchase: Generation
  key: number
  /** Ticks in which it may still run. */
  left: number
  /** Another one with its key is under way at the same time: the supplier may not recognise either. */
  overlaps: boolean
  /** The key was older than the supplier promises to remember it. */
  keyIsOld: boolean
  /** It has run; what is left of it is a copy. */
  copy: boolean
}

/** What GET /orders/{id} shows: status, and the number of its keys. */
export type View = 'open' | 'open+1' | 'completed' | 'completed+1' | 'completed+2' | 'failed' | 'refunded'

/** An order at the supplier: it was charged. */
export interface Order {
  purchase: Generation
  key: number
  view: View
  /** Ticks until the list shows it for certain. */
  hidden: number
  /** It differs from what was sent. */
  odd: boolean
}

export interface State {
  place: Kept<Place>
  purchases: readonly [Kept<Purchase>, Kept<Purchase> | undefined]
  workers: readonly Kept<Worker>[]
  requests: readonly (Kept<Request> | undefined)[]
  orders: readonly Kept<Order>[]
}

const places = createPool<Place>()
const purchases = createPool<Purchase>()
const workers = createPool<Worker>()
const requests = createPool<Request>()
const orders = createPool<Order>()

export const WORKERS = 2
export const SENDS_MAX = 3
/** Numbers that make up a state. */
export const WIDTH = 1 + 2 + WORKERS + SENDS_MAX * 2

/** Writes the numbers of a state; workers are alike, so their order does not count. */
export function encode(state: State, into: Int32Array): void {
  into[0] = state.place.number
  into[1] = state.purchases[0].number
  into[2] = state.purchases[1]?.number ?? 0
  const one = state.workers[0]?.number ?? 0
  const two = state.workers[1]?.number ?? 0
  into[3] = Math.min(one, two)
  into[4] = Math.max(one, two)
  for (let place = 0; place < SENDS_MAX; place += 1) {
    into[5 + place] = state.requests[place]?.number ?? 0
    into[5 + SENDS_MAX + place] = state.orders[place]?.number ?? 0
  }
}

export function decode(from: Int32Array, at: number): State {
  const first = purchases.numbered(from[at + 1] ?? 0)
  const place = places.numbered(from[at] ?? 0)
  if (!first || !place) throw new Error('no state stands there')
  const state = {
    place,
    purchases: [first, purchases.numbered(from[at + 2] ?? 0)] as const,
    workers: [workers.numbered(from[at + 3] ?? 0) ?? idle, workers.numbered(from[at + 4] ?? 0) ?? idle],
    requests: [] as (Kept<Request> | undefined)[],
    orders: [] as Kept<Order>[],
  }
  for (let place = 0; place < SENDS_MAX; place += 1) {
    state.requests.push(requests.numbered(from[at + 5 + place] ?? 0))
    const order = orders.numbered(from[at + 5 + SENDS_MAX + place] ?? 0)
    if (order) state.orders.push(order)
  }
  return state
}

const blank: Worker = {
  doing: 'idle',
  purchase: 0,
  fenced: false,
  request: -1,
  answer: '',
  order: -1,
  keyIsOld: false,
  unchanged: false,
  sameSend: false,
  age: 0,
}
export const idle = workers.keep(blank)

const planned: Purchase = {
  state: 'planned',
  quantity: 1,
  surplus: 0,
  takenBackBy: null,
  decided: false,
  excepted: false,
  closed: false,
  sinceWish: true,
  hold: null,
  delayed: false,
  cancelAsked: false,
  maybeCharged: false,
  lastClass: null,
  named: -1,
  key: 0,
  firstSent: false,
  order: -1,
  ordersSeen: 0,
  keysStored: 0,
  handOvers: 0,
  left: 0,
  delivered: 0,
  handOverHeld: false,
  keysShort: false,
  failureNotified: false,
  refunded: false,
  writtenOff: false,
  lease: 0,
  sinceSent: 0,
  sinceAbsent: -1,
  absentCounts: false,
}
export const plannedPurchase = (set: Partial<Purchase>): Kept<Purchase> => purchases.keep({ ...planned, ...set })

/** @param units of the line, as they were ordered first @param replaces the part replaces the key of the only unit */
export const startOf = (world: World, units: number, replaces = false): State => ({
  place: places.keep({
    world,
    sends: 0,
    oddities: 0,
    frozen: false,
    shopStanding: 'paid',
    shopUnits: units,
    shopTagged: false,
    changes: 0,
    standing: 'paid',
    units,
    tagged: false,
    expired: false,
    settled: 'yes',
    elsewhere: Number(replaces),
    replaced: Number(replaces),
    readStanding: '',
    readUnits: 0,
    readTagged: false,
    overtaken: false,
  }),
  purchases: [plannedPurchase({ quantity: units }), undefined],
  workers: Array.from({ length: WORKERS }, () => idle),
  requests: Array.from({ length: SENDS_MAX }, () => undefined),
  orders: [],
})

export function purchaseOf(state: State, generation: Generation): Kept<Purchase> {
  const purchase = state.purchases[generation]
  if (!purchase) throw new Error(`there is no purchase ${generation + 1}`)
  return purchase
}

/** One more odd thing has happened. */
export const withOddity = (state: State): State => withPlace(state, { oddities: state.place.oddities + 1 })

export const withPlace = (state: State, set: Partial<Place>): State => ({
  ...state,
  place: places.change(state.place, set),
})

/** A row with some columns changed. */
export const changedPurchase = purchases.change

function put(state: State, generation: Generation, row: Kept<Purchase>): State {
  return { ...state, purchases: generation === 0 ? [row, state.purchases[1]] : [state.purchases[0], row] }
}

/** Changes columns that carry no version: time, a lease, the instant of a hand-over. */
export const withColumns = (state: State, generation: Generation, set: Partial<Purchase>): State =>
  put(state, generation, purchases.change(purchaseOf(state, generation), set))

/** Changes a row and its version: who has read it before can no longer change it by what was read. */
export function withRow(state: State, generation: Generation, row: Kept<Purchase>): State {
  const next = put(state, generation, row)
  const stale = (worker: Worker) => worker.unchanged && worker.purchase === generation
  if (!state.workers.some(stale)) return next
  return withWorkers(next, (worker) => (stale(worker) ? { unchanged: false } : undefined))
}

export const withPurchase = (state: State, generation: Generation, set: Partial<Purchase>): State =>
  withRow(state, generation, purchases.change(purchaseOf(state, generation), set))

/** @param change what changes of a worker; undefined leaves it as it is */
export function withWorkers(state: State, change: (worker: Kept<Worker>) => Partial<Worker> | undefined): State {
  const changed = state.workers.map((worker) => {
    const set = change(worker)
    return set ? workers.change(worker, set) : worker
  })
  return { ...state, workers: changed }
}

/** Sets what a worker does; what it did before is forgotten. */
export const withWorker = (state: State, place: number, does: Partial<Worker>): State => ({
  ...state,
  workers: state.workers.with(place, workers.keep({ ...blank, ...does })),
})

export const withRequest = (state: State, place: number, request: Request | undefined): State => ({
  ...state,
  requests: state.requests.with(place, request && requests.keep(request)),
})

export const withOrder = (state: State, place: number, order: Order): State => ({
  ...state,
  orders:
    place < state.orders.length ? state.orders.with(place, orders.keep(order)) : [...state.orders, orders.keep(order)],
})

/** The set of one number; of none when it is negative. */
export const bit = (number: number): number => (number < 0 ? 0 : 1 << number)
export const bitsOf = (set: number): number[] => [0, 1, 2, 3, 4, 5].filter((number) => set & bit(number))
