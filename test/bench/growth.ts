/**
 * `npm run bench -- growth [--stored N] [--folder F] [--prepare]`: what a delivery, an order and the pages cost with a million orders and
 * deliveries stored, beside ten thousand, by turns in one run. What is stored stays in the folder, if one is named: `--prepare` only
 * stores, which takes longer than measuring. Each run needs a copy of its own of what was prepared.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Connection from 'better-sqlite3'
import { loadConfig } from '../../src/config/config.ts'
import { DEMO_STORE, keepSecret } from '../../src/demo/files.ts'
import { databaseFileOf } from '../../src/storage/data-folder.ts'
import { cookieIn, visit } from '../support/console-client.ts'
import { freePort } from '../support/free-port.ts'
import { addBenchWebhook, BENCH_PATH } from './bench-webhook.ts'
import { openOrderBench } from './order.ts'
import { addressesOf, newLinks, QUIET, timeOf } from './pages.ts'
import { load, medianOf, openServer } from './processes.ts'
import type { Ratios } from './receive.ts'
import { type Stored, storeSales } from './stored-pages.ts'
import type { Row } from './table.ts'

const FEW = 10_000
const MANY = 1_000_000
/** A shop's open work does not grow with its history: both have what is open among as many orders as the few. */
const SALES = { withCatalogue: false, workAmong: FEW }
const ROUNDS = 5
const PAGE_ROUNDS = 3
const ORDERS = 100
const DELIVERIES = 4_000
const CONNECTIONS = 64
const PATIENCE_MS = 600_000
/** Pages that grew most, and are shown. */
const SHOWN = 12

export interface GrowthOptions {
  stored?: number
  kept?: string | undefined
  isPreparation?: boolean
}

export async function benchGrowth(
  say: (text: string) => void,
  { stored = MANY, kept, isPreparation = false }: GrowthOptions,
) {
  const folder = kept ?? mkdtempSync(path.join(tmpdir(), 'quayside-bench-'))
  // The few would soon be more by what each run stores.
  rmSync(path.join(folder, 'few'), { recursive: true, force: true })
  const sides = []
  try {
    for (const [name, count] of [['few', FEW] as const, ['many', stored] as const]) {
      say(`${count.toLocaleString('en')} stored`)
      sides.push(await openSide(path.join(folder, name), count))
    }
    if (isPreparation) return
    const pages = await pagesBySide(say, sides)
    const orders = await ordersBySide(say, sides)
    await Promise.all(sides.map(({ bench }) => bench.close()))
    const deliveries = await deliveriesBySide(say, sides)
    return report({ pages, orders, deliveries })
  } finally {
    await Promise.all(sides.map(({ bench }) => bench.close()))
    if (kept === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

type Side = Awaited<ReturnType<typeof openSide>>

async function openSide(folder: string, count: number) {
  mkdirSync(folder, { recursive: true })
  // As the server of the way in has it.
  keepSecret(folder, 'key-encryption-key', () => 'k'.repeat(43).concat('='))
  const salesFile = path.join(folder, 'sales.json')
  const consolePort = await freePort()
  let file = ''
  let links: string[] = []
  const prepare = async (configFile: string): Promise<void> => {
    const config = loadConfig(configFile, {})
    await addBenchWebhook(config)
    file = databaseFileOf(config.dataDir)
    if (!existsSync(salesFile)) {
      writeFileSync(salesFile, JSON.stringify(storeSales(file, count, DEMO_STORE, Date.now(), SALES)))
    }
    links = await newLinks(file, 1)
  }
  const more = { ...QUIET, ordering: { inFlight: 4, tickSeconds: 1 }, console: { listen: { port: consolePort } } }
  const bench = await openOrderBench([], prepare, [{ role: 'all' }], more, { kept: folder })
  const sales = JSON.parse(readFileSync(salesFile, 'utf8')) as Stored
  await summed(file)
  const address = `http://127.0.0.1:${consolePort}`
  const cookie = cookieIn(await visit(address, '/signin', { form: { link: links[0] ?? '' } }))
  return { bench, file, sales, ask: (to: string) => visit(address, to, { cookie }) }
}

/** Waits until the service has summed the earnings of all days that were stored. */
async function summed(file: string): Promise<void> {
  const reader = new Connection(file, { readonly: true })
  const isStale = reader.prepare<[number]>('select 1 from stale_earnings where due_at <= ? limit 1')
  for (const end = performance.now() + PATIENCE_MS; isStale.get(Date.now()) !== undefined; await sleep(200)) {
    if (performance.now() > end) throw new Error('the earnings of some days are not summed')
  }
  reader.close()
}

/** Milliseconds of a core for each kind of page, medians of its addresses and rounds. */
async function pagesBySide(say: (text: string) => void, sides: Side[]): Promise<Map<string, number>[]> {
  const work = await Promise.all(
    sides.map(async ({ bench, sales, ask }) => ({ bench, ask, stops: await addressesOf(sales, ask) })),
  )
  const times = sides.map(() => new Map<string, number[]>())
  for (let round = 0; round <= PAGE_ROUNDS; round += 1) {
    say(round === 0 ? 'pages: warming up' : `pages: round ${round} of ${PAGE_ROUNDS}`)
    for (const [side, { bench, ask, stops }] of work.entries()) {
      for (const { kind, to } of stops) {
        const { coreMs } = await timeOf(bench.service, async () => void (await ask(to)))
        if (round > 0) times[side]?.set(kind, [...(times[side]?.get(kind) ?? []), coreMs])
      }
    }
  }
  return times.map((kinds) => new Map([...kinds].map(([kind, list]) => [kind, medianOf(list)])))
}

/** Milliseconds of a core for an order, by round. */
async function ordersBySide(say: (text: string) => void, sides: Side[]): Promise<number[][]> {
  const times: number[][] = sides.map(() => [])
  for (let round = 0; round <= ROUNDS; round += 1) {
    say(round === 0 ? 'orders: warming up' : `orders: round ${round} of ${ROUNDS}`)
    for (const [side, { bench }] of sides.entries()) {
      const { coreMs } = await timeOf(bench.service, async () => void (await bench.orders(round, ORDERS)))
      if (round > 0) times[side]?.push(coreMs / ORDERS)
    }
  }
  return times
}

/** Deliveries a second through the way in, by round. */
async function deliveriesBySide(say: (text: string) => void, sides: Side[]): Promise<number[][]> {
  const rates: number[][] = sides.map(() => [])
  const servers = await Promise.all(sides.map(({ file }) => openServer('quayside', file)))
  let next = Date.now() * 1_000
  for (let round = 0; round <= ROUNDS; round += 1) {
    say(round === 0 ? 'deliveries: warming up' : `deliveries: round ${round} of ${ROUNDS}`)
    for (const [side, { url }] of servers.entries()) {
      const wanted = { url, connections: CONNECTIONS, amount: DELIVERIES, first: next, path: BENCH_PATH }
      const { perSecond, statuses } = await load(wanted)
      next += 2 * DELIVERIES
      if (Object.keys(statuses).join() !== '200') throw new Error(`answered ${JSON.stringify(statuses)}`)
      if (round > 0) rates[side]?.push(perSecond)
    }
  }
  await Promise.all(servers.map((server) => server.stop()))
  for (const { file } of sides) {
    const db = new Connection(file)
    db.exec("delete from deliveries where state = 'stored'")
    db.close()
  }
  return rates
}

interface Measured {
  pages: Map<string, number>[]
  orders: number[][]
  deliveries: number[][]
}

/** Ratios of rounds that were made one after the other, so that what the machine does meanwhile is in both. */
const ratioOf = ([few = [], many = []]: number[][]): number =>
  medianOf(many.map((value, round) => value / (few[round] ?? Number.NaN)))

function report({ pages: [few = new Map(), many = new Map()], orders, deliveries }: Measured) {
  const both = [...few.keys()].filter((kind) => many.has(kind))
  const sum = (side: Map<string, number>) => both.reduce((all, kind) => all + (side.get(kind) ?? 0), 0)
  const kinds = both
    .map((kind) => ({ kind, few: few.get(kind) ?? 0, many: many.get(kind) ?? 0 }))
    .toSorted((a, b) => b.many - b.few - (a.many - a.few))
  const ratios: Ratios = {
    growth: 1 / ratioOf(deliveries),
    orderGrowth: ratioOf(orders),
    pageGrowth: sum(many) / sum(few),
  }
  const ms = (value: number) => `${value.toFixed(2)} ms`
  const rows: Row[] = [
    ['', 'few stored', 'many'],
    ['deliveries a second', ...deliveries.map((rates) => String(Math.round(medianOf(rates))))],
    ['an order, of a core', ...orders.map((times) => ms(medianOf(times)))],
    [`${both.length} pages, of a core`, ms(sum(few)), ms(sum(many))],
    ...kinds.slice(0, SHOWN).map((one) => [one.kind, ms(one.few), ms(one.many)]),
  ]
  return { ratios, rows, figures: { deliveries, orders, pages: kinds } }
}
