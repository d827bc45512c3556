/**
 * A hostile supplier: whatever it may do to a request within its envelope, it does in some path.
 *
 * It looks at its stock before it looks at the key, so that it refuses repeats of what it has charged; it keeps a 5xx for
 * a key; it charges twice when two requests with one key overlap; and, as the world has it, forgets keys or lists late.
 * An answer may be lost, or come after its sender has given up, which is the same.
 */
import { nameOf } from './purchase-facts.ts'
import {
  type AnswerKind,
  GHOST,
  type Kept,
  type Request,
  type State,
  withOddity,
  withOrder,
  withRequest,
  withWorker,
  withWorkers,
} from './state.ts'
import type { Model } from './step.ts'

export function supply(model: Model, state: State): void {
  for (const [place, request] of state.requests.entries()) {
    if (request) run(model, state, place, request)
  }
}

function run(model: Model, state: State, place: number, request: Kept<Request>): void {
  const { emit, rules } = model
  const over = ended(state, place)
  emit({ next: over, says: () => `a request with key ${request.key + 1} never runs` })
  const { world } = state.place
  const known = state.orders.findIndex((order) => order.key === request.key)
  if (!request.copy) {
    for (const kind of ['not_executed', 'out_of_stock', 'refused'] as const) {
      const next = answered(state, place, over, kind, -1)
      if (next) emit({ next, says: () => `the supplier answers key ${request.key + 1} with ${wordsOf[kind]}` })
    }
    const odd = state.place.oddities < model.bounds.oddities
    const ghost = odd ? answered(state, place, withOddity(over), 'differs', GHOST) : undefined
    if (ghost) emit({ next: ghost, says: () => `key ${request.key + 1} is answered with an order that was never made` })
  }
  const runs = (from: State, order: number, says: string): void => {
    // The network may deliver it once more; a supplier that forgets would charge for that, so only where it does not.
    const copied = world === 'remembers' ? withRequest(from, place, { ...request, copy: true }) : undefined
    for (const after of [ended(from, place), copied]) {
      if (!after) continue
      if (after !== copied) emit({ next: after, says: () => `${says}; the answer is lost` })
      else emit({ next: after, says: () => `${says}; the answer is lost, and a copy of the request is under way` })
      const answeredState = answered(from, place, after, 'accepted', order)
      if (answeredState) emit({ next: answeredState, says: () => `${says}, and the answer arrives` })
      if (from.place.oddities === model.bounds.oddities) continue
      const bent = answered(state, place, withOddity(after), 'differs', order)
      if (bent) emit({ next: bent, says: () => `${says}, and the answer names it and differs` })
    }
  }
  if (known >= 0) runs(state, known, `the supplier knows key ${request.key + 1}: ${nameOf(known)}`)
  const forgets = world !== 'remembers' || request.overlaps || request.keyIsOld
  if (request.copy || (known >= 0 && !forgets)) return
  for (const odd of state.place.oddities < model.bounds.oddities ? [false, true] : [false]) {
    const number = state.orders.length
    const hidden = world === 'lists' ? rules.durations.listLag : 0
    const charged = withOrder(odd ? withOddity(state) : state, number, {
      purchase: request.purchase,
      key: request.key,
      view: 'open' as const,
      hidden,
      odd,
    })
    const says = `the supplier charges ${nameOf(number)} for key ${request.key + 1}${odd ? ', with other contents' : ''}`
    runs(charged, number, says)
  }
}

const wordsOf = {
  not_executed: '429: it did not run',
  out_of_stock: 'out of stock',
  refused: 'a refusal',
}

/** A request is over; no sender gets an answer to it any more. */
export function ended(state: State, place: number): State {
  return withWorkers(withRequest(state, place, undefined), (worker) =>
    worker.doing === 'waits' && worker.request === place ? { request: -1 } : undefined,
  )
}

/** @returns the state after its sender has the answer; undefined when no sender waits for it */
function answered(before: State, place: number, after: State, kind: AnswerKind, order: number): State | undefined {
  const waits = before.workers.findIndex((worker) => worker.doing === 'waits' && worker.request === place)
  const worker = before.workers[waits]
  return worker && withWorker(after, waits, { ...worker, doing: 'answered', request: -1, answer: kind, order })
}
