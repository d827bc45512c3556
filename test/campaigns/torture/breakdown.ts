/** What hits a run as a whole while its faults last: the deaths of the service, and those of its neighbours. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from './chance.ts'
import { patiently, untilBuyingGoesOn } from './failover.ts'
import { planLives, planProcessLives } from './lives.ts'
import { LEASE_MS, type Scene } from './scene.ts'
import { type Deaths, excuseOf, liveOnce, type Ward } from './supervise.ts'

/** Between two faults of a way or a party as a whole. */
const OUTAGE_MS = [5_000, 15_000] as const

/** What is to live and die: the service, or its processes. */
export const wardsOf = ({ services, servers, stored, folder }: Scene, deaths: Deaths): Ward[] =>
  services.map((service) => ({
    service,
    deaths,
    folder,
    // After a failover a worker waits and reads for half a minute before it comes to most points.
    pointPatienceMs: servers ? 45_000 : 9_000,
    ...(servers && { excuse: excuseOf, epoch: () => patiently(servers.epoch), stored: () => stored(service.name) }),
  }))

/** One life after the other; the first began before the faults did. */
export async function superviseUntil(over: () => boolean, wards: readonly Ward[], lives: Chance): Promise<void> {
  const supervise = async (ward: Ward): Promise<void> => {
    const { service, deaths, excuse } = ward
    const draws = excuse ? lives.fork(service.name) : lives
    await sleep(draws.between(1_500, 4_000))
    service.signal('SIGKILL')
    await service.ended()
    deaths.kills.random = (deaths.kills.random ?? 0) + 1
    const role = service.name.startsWith('web') ? 'web' : 'worker'
    for (const life of excuse ? planProcessLives(draws, role, deaths.kills) : planLives(draws, LEASE_MS)) {
      if (over()) return
      await liveOnce(ward, life)
    }
  }
  await Promise.all(wards.map(supervise))
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

/** Between two troubles with the database. */
const TROUBLE_MS = [4_000, 10_000] as const

/** What happens to the database of several processes, in rounds, each with one failover. */
export async function troubleServersUntil(
  over: () => boolean,
  scene: Scene,
  {
    chance,
    faults,
    failOver,
  }: { chance: Chance; faults: Record<string, number>; failOver: (to: 'standby' | 'copy') => Promise<void> },
): Promise<void> {
  const { network, servers, services } = scene
  if (!servers) return
  const cutOff = (ms: number) => network.outage(`database of ${chance.pick(services).name}`, ms)
  const troubles: Record<string, () => Promise<unknown>> = {
    'a process cut off': () => cutOff(chance.between(200, 3_000)),
    'a process cut off past the lease': () => cutOff(chance.between(7_000, 9_000)),
    'restart -m fast': () => servers.restart('fast'),
    'restart -m immediate': () => servers.restart('immediate'),
    'failover to a copy without the last second': async () => {
      await failOver('standby')
      await untilBuyingGoesOn(scene, over)
    },
    'its files of some seconds ago': () => failOver('copy'),
  }
  const most = ['a process cut off', 'a process cut off past the lease', 'restart -m fast', 'restart -m immediate']
  while (!over()) {
    const [first = '', ...others] = chance.shuffled([...most, ...most])
    const [second = '', ...rest] = others
    for (const name of [
      first,
      'failover to a copy without the last second',
      second,
      'its files of some seconds ago',
      ...rest,
    ]) {
      await sleep(chance.between(...TROUBLE_MS))
      if (over()) return
      faults[`database: ${name}`] = (faults[`database: ${name}`] ?? 0) + 1
      await troubles[name]?.()
    }
  }
}
