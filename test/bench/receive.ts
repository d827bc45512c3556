/**
 * `npm run bench -- receive`: how fast a delivery is made safe, against the same Express doing nothing and against the
 * handler that people write. Everything in one run, each server and the load in a process of its own; ratios, because
 * absolute figures are the machine's.
 */
import { load, medianOf, openServer, openSlowSockets, type Server } from './processes.ts'
import type { Row } from './table.ts'

const CONNECTIONS = 64
const ROUNDS = 3
/** Enough for a round of one to three seconds on two cores. */
const AMOUNTS = { ceiling: 30_000, plain: 6_000, quayside: 16_000 } as const

export const limits = {
  ofCeiling: { min: 0.42, says: 'the whole way in against Express answering 200' },
  ofPlain: { min: 2.6, says: 'the whole way in against the plain handler' },
  latency: { max: 1.3, says: 'one connection: mean latency against the plain handler' },
  duplicates: { min: 1, says: 'nothing but duplicates against genuine ones' },
  forged: { min: 1, says: 'nothing but forgeries against genuine ones' },
  slow: { min: 0.8, says: 'with 1,000 slow sockets held open against without' },
  growth: { max: 1.2, says: 'time of a delivery with 1,000,000 stored against 10,000' },
  orderGrowth: { max: 1.2, says: 'time of a core of an order with 1,000,000 stored against 10,000' },
  pageGrowth: { max: 1.2, says: 'time of a core of all pages with 1,000,000 stored against 10,000' },
  order: { min: 0.3, says: 'store orders to their callback against a bare loop of the same requests' },
  orderCommits: { max: 3, says: 'commits of an order in a burst of 200' },
  orderMs: { max: 4, says: 'milliseconds of a core for an order in a burst of 200' },
  storesOrder: { max: 1.2, says: 'time of a core for an order: many stores against one' },
  storesProbe: { max: 20, says: 'p99 of /livez with many stores, ms' },
  storesIdle: { max: 1.5, says: 'time of a core without orders: many stores against one' },
  postgresDeliveries: { min: 0.8, says: 'deliveries on PostgreSQL against SQLite, the least shape' },
  postgresOrders: { min: 0.5, says: 'orders on PostgreSQL against SQLite, the least shape' },
  farOrderMs: { max: 40, says: 'milliseconds that an order takes longer with PostgreSQL a millisecond away' },
  farBurst: { min: 0.8, says: 'orders at once with PostgreSQL a millisecond away against beside the service' },
  deliveryTrips: { max: 2, says: 'round trips to PostgreSQL of a delivery' },
} as const

export type Ratios = Partial<Record<keyof typeof limits, number>>

let next = 0
/** Delivery numbers that were not used before in this run. */
const fresh = (amount: number): number => {
  next += amount + CONNECTIONS
  return next - amount - CONNECTIONS
}

async function throughput(server: Server, amount: number, more: { forged?: boolean; repeat?: boolean } = {}) {
  return load({ url: server.url, connections: CONNECTIONS, amount, first: fresh(amount), ...more })
}

export async function benchReceive(
  say: (text: string) => void,
): Promise<{ ratios: Ratios; rows: Row[]; figures: object }> {
  const servers = {
    ceiling: await openServer('ceiling'),
    plain: await openServer('plain'),
    quayside: await openServer('quayside'),
  }
  const rates: Record<keyof typeof AMOUNTS, number[]> = { ceiling: [], plain: [], quayside: [] }
  const p99s: number[] = []
  const mixed: Record<'duplicates' | 'forged' | 'slow', number[]> = { duplicates: [], forged: [], slow: [] }
  const single: Record<'plain' | 'quayside', number[]> = { plain: [], quayside: [] }
  for (let round = 0; round <= ROUNDS; round += 1) {
    say(round === 0 ? 'warming up' : `round ${round} of ${ROUNDS}`)
    for (const name of ['ceiling', 'plain', 'quayside'] as const) {
      const { perSecond, p99, statuses } = await throughput(servers[name], round === 0 ? 2_000 : AMOUNTS[name])
      if (Object.keys(statuses).join() !== '200') throw new Error(`${name} answered ${JSON.stringify(statuses)}`)
      if (round === 0) continue
      rates[name].push(perSecond)
      if (name === 'quayside') p99s.push(p99)
    }
    if (round === 0) continue
    mixed.duplicates.push((await throughput(servers.quayside, AMOUNTS.quayside, { repeat: true })).perSecond)
    mixed.forged.push((await throughput(servers.quayside, AMOUNTS.quayside, { forged: true })).perSecond)
    for (const name of ['plain', 'quayside'] as const) {
      const amount = 1_500
      const { meanMs } = await load({ url: servers[name].url, connections: 1, amount, first: fresh(amount) })
      single[name].push(meanMs)
    }
    const slow = await openSlowSockets(servers.quayside.url, 1_000)
    mixed.slow.push((await throughput(servers.quayside, AMOUNTS.quayside)).perSecond)
    slow.close()
  }
  await Promise.all(Object.values(servers).map((server) => server.close()))
  const rate = { ...mapOf(rates), ...mapOf(mixed) }
  const genuine = rate.quayside ?? 0
  const ratios: Ratios = {
    ofCeiling: genuine / (rate.ceiling ?? 1),
    ofPlain: genuine / (rate.plain ?? 1),
    latency: medianOf(single.quayside) / medianOf(single.plain),
    duplicates: (rate.duplicates ?? 0) / genuine,
    forged: (rate.forged ?? 0) / genuine,
    slow: (rate.slow ?? 0) / genuine,
  }
  const figures = { ...rate, p99Ms: medianOf(p99s), singleMs: mapOf(single) }
  const rows: Row[] = Object.entries(rate).map(([name, perSecond]) => [name, `${Math.round(perSecond)} /s`])
  rows.push(
    ['p99 of genuine ones', `${medianOf(p99s)} ms`],
    [
      'mean, one connection',
      `${medianOf(single.quayside).toFixed(2)} ms, plain ${medianOf(single.plain).toFixed(2)} ms`,
    ],
  )
  return { ratios, rows, figures }
}

const mapOf = <K extends string>(lists: Record<K, number[]>) =>
  Object.fromEntries(Object.entries<number[]>(lists).map(([name, list]) => [name, medianOf(list)])) as Record<K, number>

/** What of the ratios misses its limit. */
export function missed(ratios: Ratios): string[] {
  return (Object.keys(ratios) as (keyof typeof limits)[]).filter((name) => {
    const limit = limits[name]
    const ratio = ratios[name] ?? 0
    return 'min' in limit ? ratio < limit.min : ratio > limit.max
  })
}

export function ratioRows(ratios: Ratios): Row[] {
  const bad = missed(ratios)
  return (Object.keys(ratios) as (keyof typeof limits)[]).map((name) => {
    const limit = limits[name]
    const bound = 'min' in limit ? `at least ${limit.min}` : `at most ${limit.max}`
    return [limit.says, (ratios[name] ?? 0).toFixed(2), bound, bad.includes(name) ? 'missed' : 'ok']
  })
}
