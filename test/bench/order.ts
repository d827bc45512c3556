/**
 * `npm run bench -- order`: store orders a second, from `POST /api/v1/orders` to the callback that carries the keys,
 * against a bare loop that makes the same four requests with the same concurrency and promises nothing.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import type { Role } from '../../src/config/config.ts'
import { DEMO_STORE, writeDemoConfig } from '../../src/demo/files.ts'
import { openSetUp } from '../../src/installation.ts'
import { configBeside } from '../support/config-beside.ts'
import { freePort } from '../support/free-port.ts'
import { CORE_TIME, coreTimeOf, firstLine, here, medianOf } from './processes.ts'
import type { Row } from './table.ts'

export const ORDERS = 400
const ROUNDS = 3
/** Purchases that Quayside has under way at once; the bare loop takes the same. */
const IN_FLIGHT = 4
/** An offer sells some thirty units in one run; it must not run out. */
const STOCK_MIN = 60
const API_KEY = 'sk_bench_0123456789'

interface Product {
  id: string
  local_stock: number
  provider_stock: number
}

const dispatcher = new Agent({ connections: 64 })
const post = async (url: string, body: object, headers: Record<string, string> = {}) => {
  const answer = await request(url, {
    method: 'POST',
    dispatcher,
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  })
  return { status: answer.statusCode, json: (await answer.body.json()) as { data?: { id?: string } } }
}
const read = async <T>(url: string, headers: Record<string, string> = {}): Promise<T> =>
  (await (await request(url, { dispatcher, headers })).body.json()) as T

const SYNC_COUNT = new URL('./sync-count.ts', import.meta.url).href
/** The burst over which commits and the time of a core are averaged. */
const BURST = 200

export async function benchOrder(say: (text: string) => void) {
  const bench = await openOrderBench([SYNC_COUNT])
  const rates = { bare: [] as number[], quayside: [] as number[] }
  for (let round = 0; round <= ROUNDS; round += 1) {
    say(round === 0 ? 'orders: warming up' : `orders: round ${round} of ${ROUNDS}`)
    const [loop, whole] = [await bench.bare(round), await bench.orders(round)]
    if (round === 0) continue
    rates.bare.push(loop)
    rates.quayside.push(whole)
  }
  say(`orders: a burst of ${BURST}`)
  const [coreMs, syncs] = [await bench.coreMs(), await bench.syncs()]
  await bench.orders(ROUNDS + 1, BURST)
  const each = (before: number, after: number) => (after - before) / BURST
  const core = each(coreMs, await bench.coreMs())
  const { commits, files } = await bench.syncs()
  await bench.close()
  const [loop, whole] = [medianOf(rates.bare), medianOf(rates.quayside)]
  const rows: Row[] = [
    ['orders, the bare loop', `${Math.round(loop)} /s`],
    ['orders, Quayside to the callback', `${Math.round(whole)} /s`],
  ]
  const ratios = { order: whole / loop, orderCommits: each(syncs.commits, commits), orderMs: core }
  rows.push(['syncs of the marker for an order of the burst', each(syncs.files, files).toFixed(2)])
  return { ratios, rows, figures: { bareOrders: Math.round(loop), orders: Math.round(whole) } }
}

/** A service with a supplier and a store of its own, each in a process, that takes orders by rounds. */
export interface OrderBench {
  service: ChildProcess
  /** Of the service: `http://127.0.0.1:8080`. */
  url: string
  /** Each process of it, in the order in which they were wanted. */
  services: ChildProcess[]
  /** Of each process that takes deliveries and orders; the first is that of the service. */
  urls: string[]
  /** Hands in a round of orders and waits for the keys of all. @returns orders a second */
  orders: (round: number, amount?: number) => Promise<number>
  /** The same requests by the bare loop. @returns orders a second */
  bare: (round: number) => Promise<number>
  /** How often the service has waited for the disk since its start; asks what `SYNC_COUNT` has counted. */
  syncs: () => Promise<{ commits: number; files: number }>
  /** Milliseconds of a core that the service has worked since its start. */
  coreMs: () => Promise<number>
  close: () => Promise<void>
}

/** One process of the service. */
export interface BenchProcess {
  role: Role
  /** Of a PostgreSQL database; absent: the database is a file. */
  databaseUrl?: string
}

/**
 * @param preloads modules that the service loads before its own
 * @param prepare is called before the service starts
 * @param processes of the service, the first of which takes deliveries and orders
 * @param more settings beside the usual ones
 * @param kept a folder that stays when the bench is over, with what it has stored; default: a new one, which goes
 * @param offers how many the supplier has
 */
export async function openOrderBench(
  preloads: string[] = [],
  prepare: (configFile: string) => Promise<void> = async () => {},
  processes: readonly BenchProcess[] = [{ role: 'all' }],
  more: object = {},
  { kept, offers = 200 }: { kept?: string | undefined; offers?: number } = {},
): Promise<OrderBench> {
  const folder = kept ?? mkdtempSync(path.join(tmpdir(), 'quayside-bench-'))
  mkdirSync(folder, { recursive: true })
  const parties = spawn(process.execPath, [here('order-parties.ts'), String(offers)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const addresses = JSON.parse(await firstLine(parties)) as { supplier: string; bare: string; store: string }
  const { supplier, store } = addresses
  const port = await freePort()
  const storePort = Number(new URL(store).port)
  const configFile = writeDemoConfig({
    folder,
    baseUrl: supplier,
    apiKey: API_KEY,
    port,
    storePort,
    dialect: 'reseller-v1.1',
    more: { ordering: { inFlight: IN_FLIGHT, tickSeconds: 1 }, logLevel: 'error', ...more },
  })
  const environment = ({ databaseUrl }: Partial<BenchProcess>) =>
    databaseUrl === undefined ? {} : { QUAYSIDE_DATABASE_URL: databaseUrl }
  const setUp = await openSetUp(configFile, environment(processes[0] ?? {}))
  await setUp.createWebhook()
  const token = (await setUp.createStoreToken(DEMO_STORE, 'bench')).reveal()
  await setUp.close()
  await prepare(configFile)
  const entry = path.join(import.meta.dirname, '../../src/quayside.js')
  const imports = [CORE_TIME, ...preloads].flatMap((url) => ['--import', url])
  // As `npm start` starts it.
  const flags = ['--max-semi-space-size=16', ...imports]
  const ports = [port]
  while (ports.length < processes.length) ports.push(await freePort())
  const services = processes.map((one, number) => {
    const config = number === 0 ? configFile : configBeside(configFile, number, ports[number] ?? 0)
    return spawn(process.execPath, [...flags, entry, 'serve', '--config', config, '--role', one.role], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...process.env, ...environment(one) },
    })
  })
  const [service] = services
  if (!service) throw new Error('the bench has no process')
  const urls = ports.filter((_, number) => processes[number]?.role !== 'worker').map((one) => `http://127.0.0.1:${one}`)
  const api = `http://127.0.0.1:${port}/api/v1`
  const bearer = { authorization: `Bearer ${token}` }
  type Listing = { sku: string; stock: number | null; available: boolean }
  const listings = async () => (await read<{ data?: { items: Listing[] } }>(`${api}/listings?limit=200`, bearer)).data
  let items: Listing[] = []
  while (items.length === 0) {
    await sleep(100)
    items = (await listings().catch(() => undefined))?.items ?? []
  }
  const good = items.filter(({ available, stock }) => available && (stock ?? 0) >= STOCK_MIN)
  const { data } = await read<{ data: { items: Product[] } }>(`${addresses.bare}/products?limit=100`, {
    'x-api-key': API_KEY,
  })
  const product = data.items.filter(({ local_stock: local, provider_stock: more }) => local + more >= STOCK_MIN)
  const count = async () => (await read<{ fulfilled: number }>(`${store}/count`)).fulfilled

  let bought = 0
  // Of a kept folder, earlier runs have orders too.
  const run = kept === undefined ? 'b' : `b${Date.now()}-`
  const orders = async (round: number, amount = ORDERS): Promise<number> => {
    const before = await count()
    const startedAt = performance.now()
    await workers(64, amount, async (number) => {
      bought += 1
      const sku = good[bought % good.length]?.sku
      const url = urls[bought % urls.length]
      await post(
        `${url}/api/v1/orders`,
        { reference: `${run}${round}-${number}`, lines: [{ id: '1', sku, quantity: 1 }] },
        bearer,
      )
    })
    for (const end = performance.now() + 60_000; (await count()) < before + amount; await sleep(5)) {
      if (performance.now() > end) throw new Error(`only ${(await count()) - before} of ${amount} orders came back`)
    }
    return (amount * 1_000) / (performance.now() - startedAt)
  }
  const bare = async (round: number): Promise<number> => {
    const startedAt = performance.now()
    const headers = (key: string) => ({ 'x-api-key': API_KEY, 'idempotency-key': key })
    await workers(IN_FLIGHT, ORDERS, async (number) => {
      const reference = `bare-${round}-${number}`
      await post(`${store}/orders`, { reference })
      const productId = product[(round * ORDERS + number) % product.length]?.id
      const { json } = await post(
        `${addresses.bare}/orders`,
        { productId, quantity: 1, external_order_id: reference },
        headers(reference),
      )
      await read(`${addresses.bare}/orders/${json.data?.id}`, { 'x-api-key': API_KEY })
      await post(`${store}/callbacks`, { type: 'line.bare', reference })
    })
    return (ORDERS * 1_000) / (performance.now() - startedAt)
  }

  return {
    service,
    services,
    url: `http://127.0.0.1:${port}`,
    urls,
    orders,
    bare,
    syncs: async () => {
      const answer = once(service, 'message')
      service.send('syncs')
      return (await answer)[0] as { commits: number; files: number }
    },
    coreMs: () => coreTimeOf(service),
    close: async () => {
      for (const child of [...services, parties]) {
        child.kill('SIGTERM')
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      }
      if (kept === undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Hands in two orders a second until it is ended, whatever else the bench does meanwhile. */
export function buySteadily({ orders }: Pick<OrderBench, 'orders'>): { end: () => Promise<void> } {
  let isOver = false
  const buy = async (): Promise<void> => {
    for (let round = 1; !isOver; round += 1) await Promise.all([orders(round, 2), sleep(1_000)])
  }
  const buying = buy()
  return {
    end: () => {
      isOver = true
      return buying
    },
  }
}

async function workers(count: number, amount: number, work: (number: number) => Promise<void>): Promise<void> {
  let next = 0
  const one = async (): Promise<void> => {
    while (next < amount) {
      next += 1
      await work(next)
    }
  }
  await Promise.all(Array.from({ length: count }, one))
}
