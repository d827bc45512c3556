/**
 * `npm run bench -- stores`: what an order of one store costs, how fast `/livez` answers and what the service works without
 * orders, with many stores and with one. Both services run side by side, and take their turns with the orders.
 */
import type { ChildProcess } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { type Config, loadConfig } from '../../src/config/config.ts'
import { openBeside } from '../../src/storage/database-place.ts'
import { countListings } from '../../src/storage/listings.ts'
import { openOrderBench } from './order.ts'
import { coreTimeOf, medianOf } from './processes.ts'
import type { Ratios } from './receive.ts'
import type { Row } from './table.ts'

const AMOUNTS = {
  stores: 1_000,
  /** Of the supplier; each store lists all of them. */
  offers: 50,
  rounds: 5,
  /** Of a round. */
  orders: 100,
  /** Longer than a minute: each minute the service looks at all stores. */
  idleMs: 65_000,
  probedMs: 5_000,
}
const PROBE_MS = 5
/** Ten thousand stores get their first listings within this time. */
const PATIENCE_MS = 200_000

export async function benchStores(say: (text: string) => void, amounts: Partial<typeof AMOUNTS> = {}) {
  const { stores, offers, rounds, orders, idleMs, probedMs } = { ...AMOUNTS, ...amounts }
  const benches: Measured[] = []
  try {
    for (const count of [1, stores]) {
      say(`starting with ${count}, each with ${offers} offers`)
      benches.push(await openStores(count, offers))
    }
    for (let round = 0; round <= rounds; round += 1) {
      say(round === 0 ? 'warming up' : `round ${round} of ${rounds}`)
      for (const one of benches) {
        const before = await one.coreMs()
        const rate = await one.bench.orders(round, orders)
        // The close of the orders and the last callbacks belong to them too.
        await sleep(500)
        if (round > 0) one.rounds.push({ rate, orderMs: ((await one.coreMs()) - before) / orders })
      }
    }
    say('probing /livez during orders and without')
    for (const one of benches) {
      one.busy = await probing(one.bench.url, oneByOne(one, rounds + 1, probedMs))
      one.calm = await probing(one.bench.url, sleep(probedMs))
    }
    say(`no orders for ${idleMs / 1_000} s`)
    const before = await Promise.all(benches.map((one) => one.coreMs()))
    await sleep(idleMs)
    for (const [at, one] of benches.entries()) one.idle = ((await one.coreMs()) - (before[at] ?? 0)) / idleMs
    for (const one of benches) one.rss = residentMb(one.bench.service)
  } finally {
    for (const { bench } of benches) await bench.close()
  }
  const [single, many] = benches
  if (!single || !many) throw new Error('the bench has no service')
  const ratio = (of: (one: Measured) => number) => of(many) / of(single)
  const ratios: Ratios = {
    storesOrder: medianOf(many.rounds.map(({ orderMs }, at) => orderMs / (single.rounds[at]?.orderMs ?? Number.NaN))),
    storesProbe: Math.max(many.busy.p99, many.calm.p99),
    storesIdle: ratio(({ idle }) => idle),
  }
  const rows: Row[] = [
    ['stores', 'listed', 'MB', 'orders/s', 'core ms an order', '/livez with orders', 'without', 'idle'],
    ...benches.map((one) => [
      String(one.count),
      `${(one.listedMs / 1_000).toFixed(1)} s`,
      String(one.rss),
      medianOf(one.rounds.map(({ rate }) => rate)).toFixed(0),
      medianOf(one.rounds.map(({ orderMs }) => orderMs)).toFixed(2),
      probed(one.busy),
      probed(one.calm),
      `${(one.idle * 100).toFixed(2)} %`,
    ]),
  ]
  return { ratios, rows, figures: Object.fromEntries(benches.map(({ bench: _, ...one }) => [one.count, one])) }
}

const probed = ({ p99, max }: Probes): string => `p99 ${p99.toFixed(0)}, at most ${max.toFixed(0)} ms`

interface Probes {
  /** Milliseconds. */
  p99: number
  max: number
}

interface Measured {
  bench: Awaited<ReturnType<typeof openOrderBench>>
  count: number
  /** From the start of the process until every store has its listings. */
  listedMs: number
  rounds: { rate: number; orderMs: number }[]
  busy: Probes
  calm: Probes
  /** Share of a core. */
  idle: number
  rss: number
  coreMs: () => Promise<number>
}

/** What changed in the supplier's catalogue is published to every store: that is no part of what is measured here. */
const QUIET = { syncCron: '0 0 1 1 *', balanceCron: '0 0 1 1 *', sweepCron: '0 0 1 1 *' }

async function openStores(count: number, offers: number): Promise<Measured> {
  let config: Config | undefined
  let startedAt = 0
  /** The other stores are like the demo store, and have the same server. */
  const prepare = async (configFile: string): Promise<void> => {
    const settings = JSON.parse(readFileSync(configFile, 'utf8'))
    const [demo] = settings.stores
    for (let number = 1; number < count; number += 1)
      settings.stores.push({ ...demo, id: `many-${String(number).padStart(8, '0')}`, name: `Store ${number}` })
    writeFileSync(configFile, JSON.stringify(settings))
    config = loadConfig(configFile, {})
    startedAt = performance.now()
  }
  const more = { ...QUIET, ordering: { inFlight: 4 } }
  const bench = await openOrderBench([], prepare, undefined, more, { offers })
  const db = config && (await openBeside(config))
  if (!db) throw new Error('the service has no database')
  for (const end = performance.now() + PATIENCE_MS; ; await sleep(250)) {
    const counts = await db.query(countListings())
    const synced = counts.reduce((all, { state, total }) => all + (state === 'synced' ? total : 0), 0)
    if (synced === count * offers) break
    if (performance.now() > end) throw new Error(`only ${synced} listings of ${count} stores are there`)
  }
  await db.close()
  const listedMs = performance.now() - startedAt
  const none = { p99: Number.NaN, max: Number.NaN }
  const coreMs = () => coreTimeOf(bench.service)
  return { bench, count, listedMs, rounds: [], busy: none, calm: none, idle: 0, rss: 0, coreMs }
}

/** Hands in orders one after the other: a burst keeps the service of one store as busy as that of many. */
async function oneByOne({ bench }: Measured, first: number, forMs: number): Promise<void> {
  const end = performance.now() + forMs
  for (let round = first; performance.now() < end; round += 1) await bench.orders(round, 1)
}

/** Asks /livez until something is over. A probe does not wait for the one before, as those of a supervisor do not. */
async function probing(url: string, until: Promise<unknown>): Promise<Probes> {
  const times: number[] = []
  const probes: Promise<void>[] = []
  const timer = setInterval(() => {
    const at = performance.now()
    const probe = request(`${url}/livez`).then(async ({ body }) => {
      await body.dump()
      times.push(performance.now() - at)
    })
    probes.push(probe)
  }, PROBE_MS)
  await until.finally(() => clearInterval(timer))
  await Promise.all(probes)
  times.sort((a, b) => a - b)
  return { p99: times[Math.floor(times.length * 0.99)] ?? Number.NaN, max: times.at(-1) ?? Number.NaN }
}

function residentMb({ pid }: ChildProcess): number {
  const [, kb] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kb) / 1_024)
}
