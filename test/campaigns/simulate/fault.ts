import type { Chance } from './chance.ts'
import type { Customers } from './customers.ts'
import type { Supervisor } from './supervisor.ts'
import type { Watch } from './watch.ts'
import type { Settings, World } from './world.ts'

/** What a fault works on. */
export interface Scene {
  world: World
  supervisor: Supervisor
  customers: Customers
  watch: Watch
  /** Chance of this fault alone. */
  chance: Chance
  /** How long it lasts. */
  spanMs: number
  /** It did something: that is what counts as reached. */
  fired: () => void
}

/** One fault of the list: how it begins, and by what it returns how it ends. */
export interface Fault {
  id: string
  what: string
  /** It may last for days; others end after two hours, because nothing new happens after that. */
  lasting?: true
  /** Why it is played with a backend alone. */
  onlyBackend?: string
  /** What the world is made with when this fault is to come. */
  prepare?: (settings: Settings, chance: Chance) => void
  begin: (scene: Scene) => () => void
}

/** Calls `act` at a few random instants of the span, as long as the fault goes on. */
export function attimes({ world: { timeline }, chance, spanMs }: Scene, count: number, act: () => void): () => void {
  const stops = Array.from({ length: count }, () => timeline.after(chance.between(0, Math.floor(spanMs * 0.9)), act))
  return () => {
    for (const stop of stops) stop()
  }
}
