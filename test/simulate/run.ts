/** One seed, from an empty database to the verdict. */
import { createCustomers } from './customers.ts'
import type { Scene } from './fault.ts'
import { openMarket } from './market.ts'
import { createOperator } from './operator.ts'
import { type Detection, detectionOf, outsidePlanOf } from './outside.ts'
import { type Plan, planOf } from './plan.ts'
import { createSupervisor } from './supervisor.ts'
import { type Verdict, verdictOf } from './verdict.ts'
import { createWatch } from './watch.ts'
import { HOUR, openWorld, settleIn } from './world.ts'

/** After the faults have ended, everything must come to its end within this time. */
const CALM_MS = 3 * HOUR

export interface Played extends Verdict, Detection {
  seed: number
  digest: string
  tail: string[]
  purchases: number
  decisions: number
  freezes: number
  /** Faults that did something. */
  fired: string[]
}

/** Plays a seed of the campaign inside the promises. */
export const play = (seed: number, write?: (line: string) => void): Promise<Played> =>
  playPlan(seed, planOf(seed), false, write)

/** Plays a seed of the campaign outside of them, where double charges must be noticed. */
export const playOutside = (seed: number, write?: (line: string) => void): Promise<Played> =>
  playPlan(seed, outsidePlanOf(seed), true, write)

async function playPlan(seed: number, plan: Plan, isOutside: boolean, write?: (line: string) => void): Promise<Played> {
  const world = await openWorld(seed, plan.settings, write)
  const { timeline, log, host, chance } = world
  log.add('plan', 'seed', { seed, faults: plan.faults.map(({ fault, fromMs, spanMs }) => [fault.id, fromMs, spanMs]) })
  const supervisor = createSupervisor(world)
  const watch = createWatch(world)
  await settleIn(world)
  const customers = createCustomers(world)
  const operator = createOperator(world, plan.temper)
  const fired = new Set<string>()
  const startAt = timeline.now()
  const settleMarket = openMarket({ world, customers, spanMs: plan.spanMs })
  for (const { fault, fromMs, spanMs } of plan.faults) {
    const scene: Scene = {
      ...{ world, supervisor, customers, watch, spanMs, chance: chance.named(fault.id) },
      fired: () => void fired.add(fault.id),
    }
    timeline.after(fromMs, () => {
      log.add('fault', 'begins', { id: fault.id })
      const end = fault.begin(scene)
      timeline.after(spanMs, () => {
        log.add('fault', 'ends', { id: fault.id })
        end()
      })
    })
  }
  await timeline.runUntil(startAt + plan.spanMs + 1)
  settleMarket()
  log.add('plan', 'calm')
  await timeline.runUntil(timeline.now() + CALM_MS)
  const verdict = verdictOf({ world, customers, operator, watch })
  const counted = host.connection().prepare<[], { total: number }>('select count(*) as total from purchases').get()
  const detection = isOutside ? detectionOf(world, operator) : { outside: 0, outsideDetected: 0 }
  const result: Played = {
    ...{
      seed,
      ...verdict,
      ...detection,
      digest: log.digest(),
      tail: log.tail(),
      purchases: counted?.total ?? 0,
    },
    ...{ decisions: operator.counts.decisions, freezes: operator.counts.unfreezes, fired: [...fired] },
  }
  world.close()
  return result
}
