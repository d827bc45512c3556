/** Look-ups and sweeps: mirrors ordering/look-up.ts, scan.ts, found.ts, reschedule.ts and compare-page.ts. */
import { advance } from './advance.ts'
import { foundOrders, nameOf } from './purchase-facts.ts'
import { begin } from './send.ts'
import {
  bit,
  bitsOf,
  type Generation,
  generations,
  type Purchase,
  purchaseOf,
  type State,
  type Worker,
  withPurchase,
  withWorker,
} from './state.ts'
import type { Model } from './step.ts'
import { muchLater } from './time.ts'

/**
 * The supplier's list is read for each purchase.
 *
 * What is found is applied in the same step: it is believed whenever it was seen, and applied to the row as it is by
 * then, so that a scan of long ago differs only in what it shows. One that finds nothing counts from when it began: a
 * worker remembers it.
 */
export function lookUps(model: Model, state: State): void {
  const free = state.workers.findIndex((worker) => worker.doing === 'idle')
  for (const generation of generations) {
    const purchase = state.purchases[generation]
    if (!purchase || purchase.state === 'sending' || purchase.lease > 0) continue
    failedScan(model, state, generation, purchase)
    finds(model, state, generation, purchase)
    if (free >= 0) findsNothing(model, state, generation, purchase, free)
  }
}

function finds(model: Model, state: State, generation: Generation, purchase: Purchase): void {
  for (const found of subsetsOf(ownOrders(state, generation))) {
    if (found === 0) continue
    const seen = `a scan for purchase ${generation + 1} finds ${bitsOf(found).map(nameOf).join(' and ')}`
    // A scan that began before a person decided knows less, and may still see an order open that has failed since.
    for (const decided of model.rules.asksLate ? [purchase.ordersSeen] : [purchase.ordersSeen, 0]) {
      // A purchase whose only order is its own is read, not looked up.
      if (found === bit(purchase.order) && decided === purchase.ordersSeen) continue
      for (const asItWas of [false, true]) {
        const orders = foundOrders(state, found, decided, asItWas)
        const moved = advance(model, state, generation, { type: 'found', orders })
        if (!moved) continue
        const says = () => `${seen}: ${moved.decision.row}, it is ${moved.decision.next}`
        model.emit({ next: moved.state, says, broken: moved.broken })
      }
    }
  }
}

const ownOrders = (state: State, generation: Generation): number[] =>
  state.orders.flatMap((order, number) => (order.purchase === generation ? [number] : []))

const subsetsOf = (numbers: number[]): number[] =>
  numbers.reduce((sets, number) => sets.concat(sets.map((set) => set | bit(number))), [0])

/** Scans that are too early to count, or too close to the first one, change nothing and are left out. */
function findsNothing(model: Model, state: State, generation: Generation, purchase: Purchase, place: number): void {
  const { rules, emit } = model
  if (purchase.state !== 'unknown' || purchase.sinceSent < rules.countsFrom(rules.durations)) return
  const between = purchase.sinceAbsent >= 0 && purchase.sinceAbsent < rules.durations.scanGap
  if (rules.scans === 2 && between) return
  const shown = ownOrders(state, generation).some((number) => state.orders[number]?.hidden === 0)
  if (shown && state.place.world === 'lists') return
  emit({
    next: withWorker(state, place, { doing: 'scanned', purchase: generation, unchanged: true, sameSend: true }),
    says: () => `a worker scans for purchase ${generation + 1} and finds nothing`,
  })
}

/** The list could not be read; after a day of that a person looks. */
function failedScan(model: Model, state: State, generation: Generation, purchase: Purchase): void {
  if (purchase.state !== 'unknown') return
  const moved = advance(model, muchLater(model, state), generation, { type: 'clock' }, { over: 'scan' })
  if (!moved) return
  const says = () => `the list cannot be read for a day: purchase ${generation + 1} is ${moved.decision.next}`
  model.emit({ next: moved.state, says, broken: moved.broken })
}

/** A scan that found nothing is applied: the first of a pair is noted, the second proves absence. */
export function notFound(model: Model, state: State, place: number, worker: Worker): void {
  const { rules, emit } = model
  const generation = worker.purchase
  const name = `purchase ${generation + 1}`
  const purchase = purchaseOf(state, generation)
  const free = withWorker(state, place, {})
  const second = worker.unchanged && purchase.sinceAbsent >= rules.durations.scanGap
  if (worker.unchanged && purchase.lease === 0 && (second || rules.scans === 1)) {
    const proven = rules.scans === 2 && purchase.absentCounts
    begin(model, free, place, { purchase: generation, repeat: true, proven })
    emit({ next: free, says: () => `${name} is taken for absent; nothing is sent` })
    return
  }
  const moved = purchase.state !== 'unknown' || purchase.lease > 0 || (rules.dropsOldScans && !worker.sameSend)
  if (moved || purchase.sinceAbsent >= 0) {
    emit({ next: free, says: () => `the scan comes to nothing: ${name} has moved on` })
    return
  }
  const noted = withPurchase(free, generation, { sinceAbsent: worker.age, absentCounts: worker.sameSend })
  emit({ next: noted, says: () => `the first scan without ${name} is noted` })
}
