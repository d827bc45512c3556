/** Everything that may happen next in a state. */
import { lookUps, notFound } from './look-up.ts'
import { orders } from './order.ts'
import { people } from './people.ts'
import { handOvers, reads } from './read.ts'
import { placements, sending } from './send.ts'
import type { State } from './state.ts'
import type { Model } from './step.ts'
import { supply } from './supplier.ts'
import { crash, pass } from './time.ts'

export function steps(model: Model, state: State): void {
  placements(model, state)
  lookUps(model, state)
  reads(model, state)
  for (const [place, worker] of state.workers.entries()) {
    if (worker.doing === 'scanned') notFound(model, state, place, worker)
    else if (worker.doing !== 'idle') sending(model, state, place, worker)
  }
  supply(model, state)
  handOvers(model, state)
  orders(model, state)
  people(model, state)
  crash(model, state)
  pass(model, state)
}
