/** What can change nothing any more is no part of a state. */
import type { Rules } from './rules.ts'
import { idle, type Kept, purchaseOf, type State, type Worker, withRequest } from './state.ts'

/**
 * A purchase comes to be sent only by an intent, and an intent fences off who worked on it before. So a worker is idle once
 * it is fenced off, or once its purchase has left the state that its next step asks for. A copy of a request that has run
 * can only bring the answer to who still waits for it.
 */
export function withoutInert(rules: Rules, state: State): State {
  let next = state
  if (state.workers.some((worker) => isInert(rules, state, worker))) {
    next = { ...state, workers: state.workers.map((worker) => (isInert(rules, state, worker) ? idle : worker)) }
  }
  for (const [place, request] of next.requests.entries()) {
    if (!request?.copy) continue
    const waited = next.workers.some((worker) => worker.doing === 'waits' && worker.request === place)
    if (!waited) next = withRequest(next, place, undefined)
  }
  return next
}

function isInert(rules: Rules, state: State, worker: Kept<Worker>): boolean {
  if (worker === idle) return false
  const { state: now, lease } = purchaseOf(state, worker.purchase)
  switch (worker.doing) {
    case 'scanned':
      if (now === 'unknown') return rules.dropsOldScans && !worker.sameSend
      return now !== 'sending' || rules.dropsOldScans
    case 'intended':
      // One that does not look at its lease may still write.
      return (!worker.fenced || now !== 'sending') && !rules.mayWrite(worker.fenced ? lease : 0, rules.durations)
    default:
      return !worker.fenced || (now !== 'sending' && rules.intentFirst)
  }
}
