/** The way of a send: mirrors ordering/place.ts and send.ts, a step for each commit, write and answer. */
import type { PurchaseInput } from '../../../src/domain/purchase.ts'
import { isOver } from '../../../src/domain/purchase.ts'
import { advance } from './advance.ts'
import { boughtBeyond } from './promises.ts'
import { nameOf, type Over } from './purchase-facts.ts'
import {
  type AnswerKind,
  type Generation,
  generations,
  idle,
  type Purchase,
  purchaseOf,
  type State,
  type Worker,
  withColumns,
  withPlace,
  withPurchase,
  withRequest,
  withWorker,
  withWorkers,
} from './state.ts'
import type { Model, Promised } from './step.ts'

/** What may happen to purchases whose turn has come: place.ts, up to the intent; and to those that are not sent any more. */
export function placements(model: Model, state: State): void {
  for (const generation of generations) {
    const purchase = state.purchases[generation]
    if (!purchase || purchase.lease > 0) continue
    const name = `purchase ${generation + 1}`
    const move = (input: PurchaseInput, why: string) => {
      const moved = advance(model, state, generation, input)
      if (!moved) return
      const says = () => `${name} ${why}: ${moved.decision.row}, it is ${moved.decision.next}`
      model.emit({ next: moved.state, says, broken: moved.broken })
    }
    if (purchase.state === 'sending') move({ type: 'lost' }, 'has outlived its lease')
    if (purchase.state !== 'planned' && purchase.state !== 'waiting') continue
    if (purchase.hold !== null || purchase.delayed) {
      move({ type: 'released', by: 'time' }, 'has waited long enough')
      continue
    }
    const guard = state.place.frozen ? 'frozen' : 'out_of_stock'
    move({ type: 'due', guard, notBefore: 0, orphans: [] }, `meets a guard (${guard})`)
    if (state.place.frozen) continue
    for (const [place, worker] of state.workers.entries()) {
      if (worker.doing !== 'idle') continue
      begin(model, state, place, { purchase: generation })
      break
    }
  }
}

/** A worker takes the lease and stores its intent in one commit: the worker that held the lease before is fenced off. */
export function begin(model: Model, state: State, place: number, does: Beginning): void {
  const { purchase } = does
  const taken = withPurchase(state, purchase, { lease: model.rules.durations.lease })
  const fenced = withWorkers(taken, (other) =>
    other.fenced && other.purchase === purchase ? { fenced: false } : undefined,
  )
  const { rules, bounds } = model
  if (!rules.intentFirst && !does.repeat && state.place.sends < bounds.sends) {
    const next = withWorker(fenced, place, { purchase, doing: 'intended', fenced: true })
    write(model, next, place, next.workers[place] ?? idle)
  } else if (does.repeat) {
    const paid = { ...state.place, standing: 'paid', settled: 'yes' } as const
    const hasRoom = rules.entitled(purchaseOf(state, purchase), paid, boughtOfOthers(state, purchase))
    const input: PurchaseInput = { type: 'absent', frozen: state.place.frozen, hasRoom }
    for (const over of ['', 'key memory', 'repeats'] as const) intend(model, fenced, place, does, input, over)
  } else intend(model, fenced, place, does, { type: 'due', guard: null, notBefore: null, orphans: [] }, '')
}

/** The next thing that a worker does which has the lease: write, give up waiting, record. */
export function sending(model: Model, state: State, place: number, worker: Worker): void {
  if (worker.doing === 'intended') transmit(model, state, place, worker)
  else if (worker.doing === 'waits') {
    const next = withWorker(state, place, { ...worker, doing: 'answered', request: -1, answer: 'lost' })
    model.emit({ next, says: () => 'its sender gets a timeout, a reset or a 5xx' })
  } else record(model, state, place, worker)
}

/** The purchase that is sent, and why it is sent again. */
interface Beginning {
  purchase: Generation
  /** Absence was proven. */
  repeat?: boolean
  /** Absence was proven as it must be. Only the promises see this. */
  proven?: boolean
}

/** @param state with the lease taken */
function intend(model: Model, state: State, place: number, does: Beginning, input: PurchaseInput, over: Over): void {
  const { rules, emit, bounds } = model
  const { purchase: generation, proven = false } = does
  const name = `purchase ${generation + 1}`
  const moved = advance(model, state, generation, input, { over, proven })
  if (moved && moved.decision.next !== 'sending') {
    const says = () => `${name}: ${moved.decision.row}, it is ${moved.decision.next}`
    emit({ next: withWorker(moved.state, place, {}), says, broken: moved.broken })
    return
  }
  const frozen = rules.freezeStops && state.place.frozen
  const mayBuy = rules.mayBuy(othersOf(state, generation))
  const purchase = purchaseOf(state, generation)
  const isEntitled = rules.entitled(purchase, state.place, boughtOfOthers(state, generation))
  if (!moved || frozen || !mayBuy || !isEntitled || state.place.sends >= bounds.sends) return
  const counts = rules.repeatsCount || !purchase.firstSent
  const stored = withColumns(moved.state, generation, { firstSent: true, ...(counts ? { sinceSent: 0 } : {}) })
  const sent = withWorkers(stored, (other) =>
    other.sameSend && other.purchase === generation ? { sameSend: false } : undefined,
  )
  emit({
    next: withWorker(sent, place, {
      doing: 'intended',
      purchase: generation,
      fenced: true,
      keyIsOld: over === 'key memory',
    }),
    says: () => `${name}: ${moved.decision.row}, the intent is stored`,
    broken: brokenByIntent(state, purchase) ?? boughtBeyond(state, generation) ?? moved.broken,
  })
}

/**
 * Units of the line that are bought or under way besides: `fitsUnits` in storage/entitlements.ts. A part that replaces a key has
 * its own room, beside the units of the line.
 */
const boughtOfOthers = (state: State, generation: Generation): number =>
  state.purchases.reduce(
    (sum, other, place) => {
      if (!other || place === generation || other.state === 'planned') return sum
      return sum + (isOver(other.state) ? other.left : other.quantity)
    },
    state.place.replaced > 0 ? 0 : state.place.elsewhere,
  )

/** The other generations of the part, as `mayBuy` asks for them. */
export const othersOf = (state: State, generation: Generation) =>
  state.purchases.flatMap((other, place) =>
    other && place !== generation
      ? [{ state: other.state, refundedAt: other.refunded ? 0 : null, writtenOffAt: other.writtenOff ? 0 : null }]
      : [],
  )

function brokenByIntent(state: State, purchase: Purchase): Promised | undefined {
  if (purchase.cancelAsked) return 'nothing is sent once a cancellation was asked for'
  return state.place.frozen ? 'nothing is sent while buying is frozen' : undefined
}

/** The lease is checked right before the write; what is held back, or cannot connect, has not left. */
function transmit(model: Model, state: State, place: number, worker: Worker): void {
  const { rules, emit, bounds } = model
  const { lease } = purchaseOf(state, worker.purchase)
  if (rules.mayWrite(worker.fenced ? lease : 0, rules.durations) && state.place.sends < bounds.sends) {
    write(model, state, place, worker)
  }
  const next = withWorker(state, place, { ...worker, doing: 'answered', answer: 'not_executed' })
  emit({ next, says: () => 'nothing leaves: held back, or no connection' })
}

function write(model: Model, state: State, place: number, worker: Worker): void {
  const { rules } = model
  const generation = worker.purchase
  const purchase = purchaseOf(state, generation)
  const key = rules.keySent(purchase, state.place.sends)
  const slot = state.requests.indexOf(undefined)
  let next = withPlace(state, { sends: state.place.sends + 1 })
  let overlaps = false
  for (const [other, request] of state.requests.entries()) {
    if (request?.key !== key || request.copy) continue
    overlaps = true
    next = withRequest(next, other, { ...request, overlaps: true })
  }
  next = withRequest(next, slot, {
    purchase: generation,
    key,
    left: rules.durations.settle,
    overlaps,
    keyIsOld: worker.keyIsOld,
    copy: false,
  })
  model.emit({
    next: withWorker(next, place, { doing: 'waits', purchase: generation, fenced: worker.fenced, request: slot }),
    says: () => `POST ${state.place.sends + 1} leaves for purchase ${generation + 1} with key ${key + 1}`,
    broken: brokenByWrite(model, state, worker, purchase, key),
  })
}

function brokenByWrite(
  { rules }: Model,
  state: State,
  worker: Worker,
  purchase: Purchase,
  key: number,
): Promised | undefined {
  if (purchase.state !== 'sending' || !worker.fenced) return 'the intent is stored before the request leaves'
  const others = state.requests.filter((request) => request && !request.copy)
  if (others.some((request) => request?.purchase === worker.purchase)) return 'one request at a time'
  if (!rules.bytesStored(purchase)) return 'a request carries the bytes stored with its key'
  const rejected = state.purchases.some((one) => one?.key === key && one.lastClass === 'refused')
  return rejected ? 'a rejected key is not sent again' : undefined
}

/** What came back is recorded, if the lease is still the worker's. */
function record(model: Model, state: State, place: number, worker: Worker): void {
  const { rules, emit } = model
  const generation = worker.purchase
  const name = `purchase ${generation + 1}`
  const free = withWorker(state, place, {})
  const kind = worker.answer as AnswerKind
  let from = free
  // Only without a stored intent is it anything else: then the state is written down with the answer.
  if (!rules.intentFirst && worker.fenced && ['planned', 'waiting'].includes(purchaseOf(free, generation).state)) {
    from = withPurchase(free, generation, { state: 'sending', firstSent: true })
  }
  const order = { id: nameOf(worker.order), odd: state.orders[worker.order]?.odd ?? false }
  const answer = rules.answer(kind, purchaseOf(from, generation), order)
  const moved = worker.fenced ? advance(model, from, generation, { type: 'answer', answer, notBefore: 0 }) : undefined
  const says = () =>
    moved
      ? `the answer (${kind}) is recorded: ${name} is ${moved.decision.next}`
      : `the answer (${kind}) comes too late for ${name}`
  emit({ next: moved?.state ?? free, says, broken: moved?.broken })
}
