/**
 * `npm run bench -- scale`: deliveries and orders a second with one process on SQLite, and with one, two and three on
 * PostgreSQL, by turns in one run; what a delivery and an order send to PostgreSQL, counted at the wire; and what an order costs
 * when PostgreSQL is a millisecond away.
 *
 * Every process is the program as it is installed, and each delivery is processed too. Rates of deliveries are by the times in
 * their rows: those of two loads are one.
 */
import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { gte, max, min } from 'drizzle-orm'
import { request } from 'undici'
import { type Config, loadConfig } from '../../src/config/config.ts'
import { idBound } from '../../src/ids.ts'
import { openBeside } from '../../src/storage/database-place.ts'
import { dueDeliveries } from '../../src/storage/deliveries.ts'
import { deliveries } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { addBenchWebhook, BENCH_PATH } from './bench-webhook.ts'
import { BENCH_EVENT, benchDelivery } from './deliveries.ts'
import { type BenchProcess, openOrderBench } from './order.ts'
import { coreTimeOf, load, medianOf } from './processes.ts'
import type { Ratios } from './receive.ts'
import type { Row } from './table.ts'
import { openWire, type Sent, type Wire } from './wire.ts'

const CONNECTIONS = 64
/** The slowest machine takes less for a round. */
const PATIENCE_MS = 120_000

const SHAPES: { says: string; on: 'SQLite' | 'PostgreSQL'; roles: BenchProcess['role'][] }[] = [
  { says: 'SQLite, one process', on: 'SQLite', roles: ['all'] },
  { says: 'PostgreSQL, one process', on: 'PostgreSQL', roles: ['all'] },
  { says: 'PostgreSQL, web and worker', on: 'PostgreSQL', roles: ['web', 'worker'] },
  { says: 'PostgreSQL, two web and worker', on: 'PostgreSQL', roles: ['web', 'web', 'worker'] },
]

export interface Amounts {
  rounds: number
  /** Of a round, for each shape. */
  deliveries: number
  orders: number
  /** That are counted one at a time. */
  counted: number
  /** How long the worker is watched while it has nothing to do. */
  restMs: number
}

const AMOUNTS: Amounts = { rounds: 3, deliveries: 6_400, orders: 200, counted: 20, restMs: 10_000 }

/** @param newDatabase makes an empty database. @returns its address */
export async function benchScale(
  say: (text: string) => void,
  newDatabase: () => Promise<string>,
  given: Partial<Amounts> = {},
) {
  const amounts = { ...AMOUNTS, ...given }
  const rates = await benchRates(say, newDatabase, amounts)
  const counts = await benchWire(say, newDatabase, amounts)
  const far = await benchFar(say, newDatabase, amounts)
  const ratios: Ratios = { ...rates.ratios, deliveryTrips: counts.deliveryTrips, ...far.ratios }
  const rows = [...rates.rows, [''], ...counts.rows, [''], ...far.rows]
  return { ratios, rows, figures: { ...rates.figures, ...counts.figures, ...far.figures } }
}

async function benchRates(say: (text: string) => void, newDatabase: () => Promise<string>, amounts: Amounts) {
  const shapes: (Shape & { says: string; rounds: Round[] })[] = []
  try {
    for (const { says, on, roles } of SHAPES) {
      const databaseUrl = on === 'PostgreSQL' ? await newDatabase() : undefined
      const processes = roles.map((role) => ({ role, ...(databaseUrl && { databaseUrl }) }))
      shapes.push({ says, rounds: [], ...(await openShape(processes)) })
    }
    for (let round = 0; round <= amounts.rounds; round += 1) {
      for (const { says, deliver, bench, rounds } of shapes) {
        say(`${round === 0 ? 'warming up' : `round ${round} of ${amounts.rounds}`}: ${says}`)
        const delivered = await working(bench, amounts.deliveries, () => deliver(amounts.deliveries))
        const ordered = await working(bench, amounts.orders, () => bench.orders(round, amounts.orders))
        if (round === 0) continue
        const rates = { ...delivered.result, orders: ordered.result }
        rounds.push({ rates, deliveryMs: delivered.each, orderMs: ordered.each, machineMs: ordered.machine })
      }
    }
  } finally {
    for (const { close } of shapes) await close()
  }
  const of = (rounds: Round[], what: (round: Round) => number) => medianOf(rounds.map(what))
  const eachOf = (rounds: Round[], what: 'deliveryMs' | 'orderMs') =>
    (rounds[0]?.[what] ?? []).map((_, place) => of(rounds, (round) => round[what][place] ?? Number.NaN))
  const [first] = shapes
  const rateOf = (list: Round[], what: keyof Round['rates']) => of(list, ({ rates }) => rates[what])
  const ratioOf = (list: Round[], what: keyof Round['rates']) => rateOf(list, what) / rateOf(first?.rounds ?? [], what)
  const cell = (rounds: Round[], what: keyof Round['rates']): string =>
    `${Math.round(rateOf(rounds, what))} ${ratioOf(rounds, what).toFixed(2)}`
  const least = (what: keyof Round['rates']) => Math.min(...shapes.map(({ rounds }) => ratioOf(rounds, what)))
  const sum = (list: number[], digits: number) => list.map((ms) => ms.toFixed(digits)).join(' + ')
  const rows: Row[] = [
    ['a second, and against SQLite', 'deliveries', 'processed', 'orders'],
    ...shapes.map(({ says, rounds }) => [
      says,
      cell(rounds, 'stored'),
      cell(rounds, 'settled'),
      cell(rounds, 'orders'),
    ]),
    [''],
    ['ms of a core, by process', 'a delivery', '', 'an order', 'the machine'],
    ...shapes.map(({ says, rounds }) => [
      says,
      sum(eachOf(rounds, 'deliveryMs'), 2),
      '',
      sum(eachOf(rounds, 'orderMs'), 0),
      of(rounds, ({ machineMs }) => machineMs).toFixed(0),
    ]),
  ]
  const ratios: Ratios = { postgresDeliveries: least('stored'), postgresOrders: least('orders') }
  return { ratios, rows, figures: Object.fromEntries(shapes.map(({ says, rounds }) => [says, rounds])) as object }
}

/** What was measured of a shape in a round. */
interface Round {
  /** A second. */
  rates: { stored: number; settled: number; orders: number }
  /** Milliseconds of a core that each process worked for one of them. */
  deliveryMs: number[]
  orderMs: number[]
  /** What all that runs on the machine worked for an order: the database, the supplier and the store too. */
  machineMs: number
}

/** Measures what the processes work while something is done so many times. */
async function working<T>({ services }: Shape['bench'], count: number, run: () => Promise<T>) {
  const read = () => Promise.all(services.map(coreTimeOf))
  const machine = () => cpus().reduce((all, { times: { user, nice, sys, irq } }) => all + user + nice + sys + irq, 0)
  const [before, machineBefore] = [await read(), machine()]
  const result = await run()
  const after = await read()
  const each = after.map((ms, place) => (ms - (before[place] ?? 0)) / count)
  return { result, each, machine: (machine() - machineBefore) / count }
}

interface Shape {
  bench: Awaited<ReturnType<typeof openOrderBench>>
  /** Sends deliveries from all connections and waits until all are processed. @returns how many a second */
  deliver: (amount: number) => Promise<{ stored: number; settled: number }>
  close: () => Promise<void>
}

/** @param read where the bench itself reads what is stored; default: where the first process does */
async function openShape(processes: BenchProcess[], more: object = {}, read?: string): Promise<Shape> {
  let config: Config | undefined
  const env = (databaseUrl: string | undefined) => (databaseUrl ? { QUAYSIDE_DATABASE_URL: databaseUrl } : {})
  const prepare = async (configFile: string): Promise<void> => {
    config = loadConfig(configFile, env(read ?? processes[0]?.databaseUrl))
    await addBenchWebhook(config)
  }
  const bench = await openOrderBench([], prepare, processes, more)
  const db = config && (await openBeside(config))
  if (!db) throw new Error('the service has no database')
  let next = 0
  const deliver: Shape['deliver'] = async (amount) => {
    const since = idBound(Date.now())
    const each = { amount: amount / bench.urls.length, connections: CONNECTIONS / bench.urls.length }
    const loads = bench.urls.map((url) => {
      next += amount
      return load({ url, path: BENCH_PATH, event: BENCH_EVENT, ...each, first: next })
    })
    for (const { statuses } of await Promise.all(loads)) {
      if (Object.keys(statuses).join() !== '200')
        throw new Error(`deliveries were answered ${JSON.stringify(statuses)}`)
    }
    const isDue = async () => (await db.query(dueDeliveries(Date.now(), 1))).length > 0
    for (const end = performance.now() + PATIENCE_MS; await isDue(); await sleep(50)) {
      if (performance.now() > end) throw new Error('the service does not process what it has stored')
    }
    const times = { from: min(deliveries.receivedAt), to: max(deliveries.receivedAt), over: max(deliveries.finishedAt) }
    const [row] = await db.query(build.select(times).from(deliveries).where(gte(deliveries.id, since)))
    const [from, to, over] = [Number(row?.from), Number(row?.to), Number(row?.over)]
    return { stored: (amount * 1_000) / (to - from), settled: (amount * 1_000) / (over - from) }
  }
  return {
    bench,
    deliver,
    close: async () => {
      await db.close()
      await bench.close()
    },
  }
}

/** Nothing but what is asked for: a tick a minute, and the calendar once a year. */
const QUIET = {
  syncCron: '0 0 1 1 *',
  balanceCron: '0 0 1 1 *',
  sweepCron: '0 0 1 1 *',
  ordering: { inFlight: 4, tickSeconds: 60 },
}

/** How long a process may go on after the last keys: the order is closed, the last callback answered. */
const AFTER_MS = 1_500

/** What deliveries and orders send to PostgreSQL, by a web process and a worker. */
export async function benchWire(say: (text: string) => void, newDatabase: () => Promise<string>, amounts: Amounts) {
  const database = await newDatabase()
  const wires = { web: await openWire(database), worker: await openWire(database) }
  const processes: BenchProcess[] = [
    { role: 'web', databaseUrl: wires.web.url },
    { role: 'worker', databaseUrl: wires.worker.url },
  ]
  const shape = await openShape(processes, QUIET, database)
  try {
    say('counting: the worker at rest')
    // The first order waits until the catalogue of the start is read. Where the machine is busy, a fixed time is too short for that.
    await shape.bench.orders(amounts.counted + 1, 1)
    await sleep(AFTER_MS)
    const rest = await during(wires, () => sleep(amounts.restMs))
    const restOf = (name: keyof Sent, ms: number) => (rest.worker[name] * ms) / rest.ms

    say('counting: deliveries')
    const alone: Sent[] = []
    for (let number = 0; number < amounts.counted; number += 1) {
      const { method, headers, body } = benchDelivery(number, false, BENCH_EVENT)
      const { web } = await during(wires, async () => {
        const answer = await request(`${shape.bench.url}${BENCH_PATH}`, { method, headers, body })
        await answer.body.dump()
        if (answer.statusCode !== 200) throw new Error(`a delivery was answered ${answer.statusCode}`)
      })
      alone.push(web)
    }
    const many = await during(wires, () => shape.deliver(amounts.deliveries))

    say('counting: orders')
    const one = await during(wires, async () => {
      for (let round = 0; round < amounts.counted; round += 1) await shape.bench.orders(round, 1)
      await sleep(AFTER_MS)
    })
    const burst = await during(wires, async () => {
      await shape.bench.orders(amounts.counted, amounts.orders)
      await sleep(AFTER_MS)
    })

    const webOf = ({ web }: During, count: number) => [web.statements / count, web.roundTrips / count]
    const workerOf = ({ worker, ms }: During, count: number) => [
      (worker.statements - restOf('statements', ms)) / count,
      (worker.roundTrips - restOf('roundTrips', ms)) / count,
    ]
    // The web process also reads the settings and the lease at times, between two deliveries or during one.
    const usual = (name: keyof Sent) => medianOf(alone.map((sent) => sent[name]))
    const figures = {
      'a delivery, alone': [usual('statements'), usual('roundTrips')],
      'one of 64 at once': webOf(many, amounts.deliveries),
      'its processing by the worker': workerOf(many, amounts.deliveries),
      'an order, alone: web': webOf(one, amounts.counted),
      'an order, alone: worker': workerOf(one, amounts.counted),
      [`one of ${amounts.orders} at once: web`]: webOf(burst, amounts.orders),
      [`one of ${amounts.orders} at once: worker`]: workerOf(burst, amounts.orders),
      'the worker at rest, a second': [restOf('statements', 1_000), restOf('roundTrips', 1_000)],
    }
    const rows: Row[] = [
      ['sent to PostgreSQL', 'statements', 'round trips'],
      ...Object.entries(figures).map(([name, list]) => [
        name,
        ...list.map((count) => String(Number(count.toFixed(2)))),
      ]),
    ]
    return { deliveryTrips: usual('roundTrips'), rows, figures }
  } finally {
    await shape.close()
    for (const wire of Object.values(wires)) wire.close()
  }
}

/** How long each answer of the far server is kept back. */
const AWAY_MS = 1

/** Orders with PostgreSQL beside the service and a millisecond away, by turns. One process each, both through a proxy. */
async function benchFar(say: (text: string) => void, newDatabase: () => Promise<string>, amounts: Amounts) {
  const open = async (awayMs: number) => {
    const database = await newDatabase()
    const wire = await openWire(database, awayMs)
    const { bench, close } = await openShape([{ role: 'all', databaseUrl: wire.url }], QUIET, database)
    return { bench, close, wire, aloneMs: [] as number[], bursts: [] as number[] }
  }
  const [near, far] = [await open(0), await open(AWAY_MS)]
  try {
    let round = 0
    const inTurn = async (measure: (side: typeof near, round: number) => Promise<void>) => {
      for (const side of [near, far]) await measure(side, round)
      round += 1
    }
    await inTurn(async ({ bench }, number) => void (await bench.orders(number, amounts.orders)))
    say('a server a millisecond away: one order after the other')
    for (let count = 0; count < amounts.counted; count += 1) {
      await inTurn(async ({ bench, aloneMs }, number) => void aloneMs.push(1_000 / (await bench.orders(number, 1))))
    }
    say('a server a millisecond away: orders at once')
    for (let count = 0; count < amounts.rounds; count += 1) {
      await inTurn(async ({ bench, bursts }, number) => void bursts.push(await bench.orders(number, amounts.orders)))
    }
    const [nearMs, farMs] = [medianOf(near.aloneMs), medianOf(far.aloneMs)]
    const [nearBurst, farBurst] = [medianOf(near.bursts), medianOf(far.bursts)]
    const ratios: Ratios = { farOrderMs: farMs - nearMs, farBurst: farBurst / nearBurst }
    const rows: Row[] = [
      ['PostgreSQL', 'beside the service', 'a millisecond away'],
      ['an order alone, ms to its keys', nearMs.toFixed(0), farMs.toFixed(0)],
      [`${amounts.orders} at once, a second`, nearBurst.toFixed(0), farBurst.toFixed(0)],
    ]
    return { ratios, rows, figures: { far: { nearMs, farMs, nearBurst, farBurst } } }
  } finally {
    for (const { close, wire } of [near, far]) {
      await close()
      wire.close()
    }
  }
}

interface During {
  web: Sent
  worker: Sent
  ms: number
}

/** What was sent while something was done. */
async function during(wires: { web: Wire; worker: Wire }, run: () => Promise<unknown>): Promise<During> {
  const [web, worker, startedAt] = [wires.web.count(), wires.worker.count(), performance.now()]
  await run()
  const since = (wire: Wire, before: Sent): Sent => {
    const { statements, roundTrips } = wire.count()
    return { statements: statements - before.statements, roundTrips: roundTrips - before.roundTrips }
  }
  return { web: since(wires.web, web), worker: since(wires.worker, worker), ms: performance.now() - startedAt }
}
