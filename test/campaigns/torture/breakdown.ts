/** What hits a run as a whole while its faults last: the deaths of the service, and those of its neighbours. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from './chance.ts'
import { planLives } from './lives.ts'
import { LEASE_MS, type Scene } from './scene.ts'
import { type Deaths, liveOnce } from './supervise.ts'

/** Between two faults of a way or a party as a whole. */
const OUTAGE_MS = [5_000, 15_000] as const

/** One life after the other; the first began before the faults did. */
export async function superviseUntil(
  over: () => boolean,
  { service, folder }: Scene,
  lives: Chance,
  deaths: Deaths,
): Promise<void> {
  await sleep(lives.between(1_500, 4_000))
  service.signal('SIGKILL')
  await service.ended()
  deaths.kills.random = 1
  for (const life of planLives(lives, LEASE_MS)) {
    if (over()) return
    await liveOnce(service, life, deaths, folder)
  }
}

/** A way that is down for a while, or a party that is killed and comes back. */
export async function breakDownUntil(
  over: () => boolean,
  { network, supplier, store }: Scene,
  chance: Chance,
  faults: Record<string, number>,
): Promise<void> {
  const killed = async (name: string, party: Scene['supplier']): Promise<void> => {
    faults[`${name}: killed`] = (faults[`${name}: killed`] ?? 0) + 1
    await party.restart()
  }
  while (!over()) {
    await sleep(chance.between(...OUTAGE_MS))
    if (over()) return
    const kind = chance.pick(['supplier away', 'callbacks away', 'supplier killed', 'store killed'] as const)
    const ms = chance.between(500, 4_000)
    if (kind === 'supplier away') await network.outage('supplier', ms)
    else if (kind === 'callbacks away') await network.outage('callbacks', ms)
    else if (kind === 'supplier killed') await killed('supplier', supplier)
    else await killed('store', store)
  }
}
