import type { World } from './world.ts'

/** Starts a process whenever too few are alive, as the machine's service manager does. */
export interface Supervisor {
  /** How many processes there are to be; one unless a fault wants two. */
  want(count: number): void
  /** While the database is being put back, nothing may run. */
  hold(): void
  release(): void
}

const RESTART_MS = { least: 300, most: 15_000 }

export function createSupervisor({ host, timeline, chance: all }: World): Supervisor {
  const chance = all.named('supervisor')
  let wanted = 1
  let held = false
  let starting = false

  const check = (): void => {
    if (held || starting || host.alive().length >= wanted) return
    starting = true
    timeline.after(chance.between(RESTART_MS.least, RESTART_MS.most), () => {
      starting = false
      if (held || host.alive().length >= wanted) return
      void host.start(host.alive().length === 0)
      check()
    })
  }
  host.deaths.add(check)
  return {
    want: (count) => {
      wanted = count
      check()
    },
    hold: () => {
      held = true
    },
    release: () => {
      held = false
      check()
    },
  }
}
