/**
 * Time and crashes: they happen to everybody at any instant.
 *
 * No clock is put ahead or back here: leases, writes and absence are counted on clocks that never jump. A process that
 * starts again counts absence from the beginning, which only makes its scans later than some that are tried here.
 */
import type { Durations } from './rules.ts'
import {
  generations,
  idle,
  type Purchase,
  type State,
  type Worker,
  withColumns,
  withOrder,
  withRequest,
  withWorker,
  withWorkers,
} from './state.ts'
import type { Model } from './step.ts'
import { ended } from './supplier.ts'

export const pass = (model: Model, state: State): void =>
  model.emit({ next: oneLater(model, state), says: () => 'time passes' })

/** More time than anything short takes. */
export function muchLater(model: Model, state: State): State {
  const { durations, countsFrom } = model.rules
  let next = state
  for (let ticks = Math.max(durations.lease, countsFrom(durations)); ticks >= 0; ticks -= 1)
    next = oneLater(model, next)
  return next
}

/** After a tick: leases end, requests that have not run never will, orders show in the list. */
function oneLater({ rules }: Model, state: State): State {
  const countsFrom = rules.countsFrom(rules.durations)
  let next = state
  for (const generation of generations) {
    const purchase = state.purchases[generation]
    const set = purchase && later(purchase, rules.durations, countsFrom)
    if (set) next = withColumns(next, generation, set)
  }
  for (const [place, request] of state.requests.entries()) {
    if (!request) continue
    if (request.left === 0) next = ended(next, place)
    else next = withRequest(next, place, { ...request, left: request.left - 1 })
  }
  for (const [place, order] of state.orders.entries()) {
    if (order.hidden > 0) next = withOrder(next, place, { ...order, hidden: order.hidden - 1 })
  }
  const grows = (worker: Worker) => worker.doing === 'scanned' && worker.age < rules.durations.scanGap
  return state.workers.some(grows)
    ? withWorkers(next, (worker) => (grows(worker) ? { age: worker.age + 1 } : undefined))
    : next
}

/** @returns undefined when nothing of it is timed any more */
function later(purchase: Purchase, { scanGap }: Durations, countsFrom: number): Partial<Purchase> | undefined {
  const { state, lease, sinceSent, sinceAbsent } = purchase
  const asked = state === 'sending' || state === 'unknown'
  const sent = asked && sinceSent < countsFrom ? sinceSent + 1 : sinceSent
  const absent = sinceAbsent >= 0 && sinceAbsent < scanGap ? sinceAbsent + 1 : sinceAbsent
  if (lease === 0 && sent === sinceSent && absent === sinceAbsent) return undefined
  return { lease: Math.max(0, lease - 1), sinceSent: sent, sinceAbsent: absent }
}

/**
 * A worker dies in the middle of what it does; or the whole process does, with all its workers.
 *
 * One worker that dies leaves its lease (one process of several on one database); when the only process starts again, all
 * leases are void: ordering/resume.ts.
 */
export function crash(model: Model, state: State): void {
  if (!model.bounds.crashes) return
  for (const [place, worker] of state.workers.entries()) {
    if (worker === idle) continue
    model.emit({ next: withWorker(state, place, {}), says: () => `the worker that ${whatItDid[worker.doing]} dies` })
  }
  if (state.workers.every((worker) => worker === idle)) return
  let next = state
  for (const place of state.workers.keys()) next = withWorker(next, place, {})
  for (const generation of generations) {
    if (next.purchases[generation]?.lease) next = withColumns(next, generation, { lease: 0 })
  }
  model.emit({ next, says: () => 'the process dies and starts again: all leases are void' })
}

export const whatItDid = {
  idle: 'did nothing',
  intended: 'is about to send',
  waits: 'waits for the answer',
  answered: 'has the answer',
  scanned: 'has scanned the list',
}
