/** The lives of the service in a torture run: what each is started with, and how it ends. */
import type { ServicePoint } from '../../../src/processes/crash-points.ts'
import { LEASE_MS as WORKER_LEASE_MS } from '../../../src/storage/postgres/lease.ts'
import type { Chance } from './chance.ts'

export type Life =
  /** kill -9 that long after it listens, or after its start, which may be before it does. */
  | { kind: 'killed'; afterMs: number; from: 'start' | 'listening' }
  /** It kills itself when it comes to the point that often. */
  | { kind: 'point'; point: ServicePoint; count: number }
  /** Its files cannot grow beyond the largest of them by more than this. */
  | { kind: 'disk_full'; kib: number }
  /** SIGTERM: it ends in order. */
  | { kind: 'stopped'; afterMs: number }
  /** SIGSTOP for longer than a lease, then SIGCONT, then kill -9. */
  | { kind: 'paused'; afterMs: number; ms: number }
  /** SIGSTOP of the worker for longer than another one waits to take its place, then SIGCONT: it ends by itself. */
  | { kind: 'overslept'; afterMs: number; ms: number }
  /** The wall clock is off by this for a while, and kill -9 comes when it is right again, or while it is not. */
  | { kind: 'clock'; afterMs: number; shiftMs: number; ms: number; dies: 'after' | 'within' }

/** Typed so that a point which is added to the service must be added here. */
const POINTS: Record<ServicePoint, true> = {
  intending: true,
  intended: true,
  answered: true,
  recorded: true,
  looked_up: true,
  read: true,
  pushing: true,
  pushed: true,
  noted: true,
  committing: true,
  committed: true,
  received: true,
  acknowledged: true,
}
export const crashPoints = Object.keys(POINTS) as ServicePoint[]

/** Commits come by the dozen, look-ups seldom; everything else in between. */
const COUNTS: Partial<Record<ServicePoint, number>> = { committing: 60, committed: 60, looked_up: 1 }

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/**
 * Lives without end, in rounds: in each round every crash point once, and some of everything else.
 *
 * @param leaseMs of a purchase; a pause is longer
 */
export function* planLives(chance: Chance, leaseMs: number): Generator<Life> {
  for (;;) {
    yield* chance.shuffled<Life>([
      ...crashPoints.map((point): Life => ({ kind: 'point', point, count: chance.between(1, COUNTS[point] ?? 4) })),
      ...times(3, (): Life => ({ kind: 'killed', afterMs: chance.between(50, 2_500), from: 'start' })),
      ...times(9, (): Life => ({ kind: 'killed', afterMs: chance.between(50, 5_000), from: 'listening' })),
      ...times(2, (): Life => ({ kind: 'disk_full', kib: chance.between(8, 400) })),
      ...times(2, (): Life => clockLife(chance)),
      { kind: 'stopped', afterMs: chance.between(1_000, 5_000) },
      { kind: 'paused', afterMs: chance.between(1_000, 3_000), ms: leaseMs + chance.between(500, 2_000) },
    ])
  }
}

/** The points that a process comes to which takes deliveries and orders, and buys nothing. */
const WEB_POINTS: ServicePoint[] = ['committing', 'committed', 'received', 'acknowledged']
const WORKER_POINTS = crashPoints.filter((point) => point !== 'received' && point !== 'acknowledged')

/**
 * The same for one process of several. A worker waits for seconds until it is the one, so its lives are longer. It comes to a point
 * only then, so most kills come at the first time. A round has each point once, and as often the point with the fewest kills.
 *
 * @param kills that hit so far, by where; read when the next life begins
 */
export function* planProcessLives(
  chance: Chance,
  role: 'web' | 'worker',
  kills: Readonly<Record<string, number>>,
): Generator<Life> {
  const points = role === 'web' ? WEB_POINTS : WORKER_POINTS
  const lifeTo = (point: ServicePoint): Life => ({ kind: 'point', point, count: chance.between(1, COUNTS[point] ?? 1) })
  const hits = (point: ServicePoint) => kills[point] ?? 0
  const fewestKills = () => {
    const least = Math.min(...points.map(hits))
    return chance.pick(points.filter((point) => hits(point) === least))
  }
  // A restore takes a worker that lives on for a while.
  const mostMs = role === 'web' ? 12_000 : 40_000
  const pauseMs = () => WORKER_LEASE_MS + chance.between(1_500, 4_000)
  for (;;) {
    const round = chance.shuffled<Life | 'fewest kills'>([
      ...points.map(lifeTo),
      ...points.map(() => 'fewest kills' as const),
      { kind: 'killed', afterMs: chance.between(50, 2_500), from: 'start' },
      ...times(points.length, (): Life => ({ kind: 'killed', afterMs: chance.between(50, mostMs), from: 'listening' })),
      { kind: 'stopped', afterMs: chance.between(1_000, mostMs) },
      ...(role === 'worker'
        ? [...times(3, (): Life => ({ kind: 'overslept', afterMs: 500, ms: pauseMs() })), clockLife(chance)]
        : [{ kind: 'paused', afterMs: chance.between(1_000, 3_000), ms: pauseMs() } as const]),
    ])
    for (const life of round) yield life === 'fewest kills' ? lifeTo(fewestKills()) : life
  }
}

/** Jumps that the service must notice, ahead and back; under three days, in which an order may wait to be bought. */
function clockLife(chance: Chance): Life {
  const shiftMs = chance.pick([HOUR, 49 * HOUR, 15 * MINUTE, -2 * MINUTE, -HOUR, -49 * HOUR])
  const [afterMs, ms] = [chance.between(1_000, 3_000), chance.between(2_000, 4_000)]
  return { kind: 'clock', afterMs, shiftMs, ms, dies: chance.pick(['after', 'within']) }
}

const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make)
