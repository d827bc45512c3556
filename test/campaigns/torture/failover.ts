/**
 * A failover to a copy that lost the last second, or a copy of the files that is put back, what the stores then do, and what must
 * hold: as after a restore, buying is on hold until the supplier's orders have been reattached.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from './chance.ts'
import { handInAgain, type PlannedOrder, type Shopping } from './customers.ts'
import type { Duty, Effect, Status } from './duty.ts'
import { CERTAIN_MS, type Scene } from './scene.ts'
import type { Loss } from './verdict.ts'

/** What the failovers of a run came to. */
export interface Failovers {
  losses: Loss[]
  /** How many of them were copies of the files that were put back. */
  putBack: number
  /** Bytes of the log that were lost with the servers. */
  bytes: number
  /** Orders, deliveries and cancellations that were acknowledged and may be lost. */
  orders: number
  deliveries: number
  cancellations: number
  /** Intervals in which buying was seen to be on hold for a restore; epoch milliseconds. */
  holds: { from: number; to: number }[]
  /** What may not be. */
  broken: string[]
}

export const noFailovers = (): Failovers => ({
  losses: [],
  putBack: 0,
  bytes: 0,
  orders: 0,
  deliveries: 0,
  cancellations: 0,
  holds: [],
  broken: [],
})

/** How long the primary goes on without its standby: what it stores then is lost. */
const LOST_MS = 1_000
/** An answer that was on its way, or in a process that slept, comes by then. */
const LATE_MS = 10_000
/** A worker takes over, and begins a new epoch. */
const RECOGNISED_MS = 45_000

export async function failOver(
  { network, servers, services, office, duty, api, token, skus }: Scene,
  failovers: Failovers,
  {
    chance,
    orders,
    shopping,
    stopped,
    to,
  }: {
    chance: Chance
    orders: PlannedOrder[]
    shopping: Shopping
    stopped: () => boolean
    to: 'standby' | 'copy'
  },
): Promise<void> {
  if (!servers) return
  const alertsBefore = await patiently(() => restoredAlerts(duty))
  const acknowledged = async () => ({
    taken: new Set(shopping.taken.keys()),
    deliveries: new Set(
      (await office.deliveries()).flatMap((one) => (one.state === 'delivered' ? [one.deliveryId] : [])),
    ),
  })
  const before = await patiently(acknowledged)
  // Whatever was acknowledged before is kept.
  await servers.caughtUp()
  const from = Date.now()
  const ways = services.map(({ name }) => `database of ${name}` as const)
  if (to === 'standby') failovers.bytes += await servers.failOver(LOST_MS, () => network.cut(ways))
  else {
    const putBack = await servers.copy()
    await sleep(LOST_MS)
    await network.cut(ways)
    await putBack()
    failovers.putBack += 1
  }
  await network.restore(ways)
  const promotedAt = Date.now()
  await sleep(LATE_MS)
  const after = await patiently(acknowledged)
  const lost = {
    taken: without(after.taken, before.taken),
    deliveries: without(after.deliveries, before.deliveries),
  }
  const cancelled = shopping.cancellations.filter(({ at }) => at >= from)
  shopping.cancellations = shopping.cancellations.filter(({ at }) => at < from)
  failovers.losses.push({ from, to: promotedAt + LATE_MS, deliveries: lost.deliveries })
  failovers.orders += lost.taken.size
  failovers.deliveries += lost.deliveries.size
  failovers.cancellations += cancelled.length
  const round = { chance, shopping, stopped }
  const references = new Set(cancelled.map(({ reference }) => reference))
  await handInAgain(orders, { taken: lost.taken, cancelled: references }, { access: { api, token, skus }, round })
  // A copy that lacks no order of the supplier is none: it has the identity of what it was made from.
  const isRecognised = async () => to === 'copy' || (await restoredAlerts(duty)) > alertsBefore
  const until = performance.now() + RECOGNISED_MS
  while (!(await isRecognised().catch(() => false))) {
    if (performance.now() > until) {
      failovers.broken.push(`failover ${failovers.losses.length} was not recognised as a restore`)
      break
    }
    await sleep(500)
  }
  if (!stopped()) await servers.follow()
}

const without = (all: ReadonlySet<string>, some: ReadonlySet<string>): Set<string> =>
  new Set([...all].filter((one) => !some.has(one)))

/** What was asked may just be down. */
export async function patiently<T>(look: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await look()
    } catch {
      await sleep(100)
    }
  }
}

/** How many alerts say that the database was put back. */
export async function restoredAlerts(duty: Duty): Promise<number> {
  const alerts = await duty.all<Effect>('/outbox?kind=alert')
  return alerts.filter(({ type }) => type === 'restored').length
}

async function isOnHold(duty: Duty): Promise<boolean> {
  const { freeze } = await duty.get<Status>('/status')
  return freeze?.causes.some(({ id }) => id === 'restore') ?? false
}

/**
 * A worker buys again once it has waited by its own clock and read the supplier's list twice. If the next trouble always came
 * before that, no run would buy between two failovers.
 *
 * @returns when buying goes on, or after a minute
 */
export async function untilBuyingGoesOn({ duty }: Scene, over: () => boolean): Promise<void> {
  const until = performance.now() + HOLD_MS
  while (!over() && performance.now() < until && (await isOnHold(duty).catch(() => true))) await sleep(500)
}

const HOLD_MS = 60_000

/** @returns looks whether buying is on hold for a restore, and notes it */
export function holdWatch(duty: Duty, { holds }: Failovers): () => Promise<void> {
  let current: Failovers['holds'][number] | undefined
  return async () => {
    const askedAt = Date.now()
    if (!(await isOnHold(duty))) current = undefined
    else if (current) current.to = askedAt
    else {
      current = { from: Date.now(), to: askedAt }
      holds.push(current)
    }
  }
}

/** Orders that the supplier took while buying was on hold, longer after its begin than a request may be on its way. */
export const boughtOnHold = (
  { holds }: Failovers,
  orders: readonly { externalOrderId: string | null; createdAt: number }[],
): string[] =>
  orders
    .filter(({ createdAt }) => holds.some(({ from, to }) => createdAt > from + CERTAIN_MS && createdAt < to))
    .map(({ externalOrderId }) => `${externalOrderId} was bought while the supplier's orders were being reattached`)
