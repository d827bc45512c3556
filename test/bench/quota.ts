/**
 * `npm run bench -- quota`: requests to the supplier for a purchase, counted by a proxy before it, and the time until the store has
 * the keys, beside a client that promises nothing and makes the two requests that every purchase needs.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { DEMO_STORE, writeDemoConfig } from '../../src/demo/files.ts'
import { readDialect } from '../../src/dialect/dialect.ts'
import { openSetUp } from '../../src/installation.ts'
import { startSandbox } from '../../src/sandbox/server.ts'
import { freePort } from '../support/free-port.ts'
import type { Row } from './table.ts'

const API_KEY = 'sk_bench_0123456789'
const DIALECT = readDialect(new URL('../../config/dialects/reseller-v1.1.json', import.meta.url))
/** More than all orders of a run buy of one offer. */
const STOCK = 10_000
const IN_FLIGHT = 4
const PATIENCE_MS = 600_000

interface Scenario {
  name: string
  orders: number
  /** Between two orders; 0: all at once. */
  everyMs: number
  /** From the charge to the keys, at the supplier. */
  completeAfterMs: number
  webhooks: boolean
  perMinute: number
  /** How many products are bought. Default: all. */
  products?: number
}

const trickle = { orders: 40, everyMs: 300, perMinute: 100_000 }
const burst = (orders: number, completeAfterMs: number, webhooks: boolean): Scenario => ({
  name: `${orders} at once, over after ${completeAfterMs / 1_000} s${webhooks ? '' : ', no webhooks'}`,
  orders,
  everyMs: 0,
  completeAfterMs,
  webhooks,
  perMinute: 600,
})

/** @param isLong adds the burst of a thousand orders, which takes four minutes at 600 requests a minute */
const scenariosOf = (isLong: boolean): Scenario[] => [
  { name: 'one every 0.3 s, over after 0.5 s', ...trickle, completeAfterMs: 500, webhooks: true },
  { name: 'one every 0.3 s, over after 0.5 s, no webhooks', ...trickle, completeAfterMs: 500, webhooks: false },
  burst(50, 1_000, true),
  burst(200, 1_000, true),
  burst(200, 30_000, true),
  { ...burst(200, 1_000, true), name: '200 at once of one product, over after 1 s', products: 1 },
  burst(200, 1_000, false),
  burst(200, 30_000, false),
  ...(isLong ? [burst(1_000, 1_000, true)] : []),
]

/** What a purchase may cost, and how much longer than the least its keys may take. */
const WANTED = { webhooks: 2.2, none: 2.6, p95: 1.3 }

const dispatcher = new Agent({ connections: 64 })

/**
 * @param only the name of the scenario that runs alone; undefined: all of them
 * @param rounds how often each of them runs
 */
export async function benchQuota(
  say: (text: string) => void,
  { isLong = false, only, rounds = 1 }: { isLong?: boolean; only?: string | undefined; rounds?: number },
) {
  const scenarios = scenariosOf(isLong || only !== undefined).filter(({ name }) => only === undefined || name === only)
  if (scenarios.length === 0) {
    throw new Error(
      `the scenarios are: ${scenariosOf(true)
        .map(({ name }) => name)
        .join('; ')}`,
    )
  }
  const rows: Row[] = [['', 'requests', 'by kind', 'p50', 'p95', 'least p95', 'ratio']]
  const figures: Record<string, object> = {}
  const missed: string[] = []
  // It uses no webhooks, so that two rows may have the same.
  const leasts = new Map<string, number[]>()
  const leastOf = async (scenario: Scenario): Promise<number[]> => {
    const { orders, completeAfterMs } = scenario
    const name = `${orders} ${completeAfterMs}`
    const least = leasts.get(name) ?? (await playLeast(scenario))
    leasts.set(name, least)
    return least
  }
  const played = scenarios.flatMap((scenario) =>
    Array.from({ length: rounds }, (_, round) => ({ ...scenario, round: rounds === 1 ? '' : ` (${round + 1})` })),
  )
  for (const { round, ...scenario } of played) {
    const name = scenario.name + round
    say(name)
    const { counts, times } = await playQuayside(scenario)
    const least = scenario.everyMs === 0 ? await leastOf(scenario) : undefined
    const each = [...counts].map(([kind, count]) => [kind, count / scenario.orders] as const)
    const total = each.reduce((sum, [, count]) => sum + count, 0)
    const [p50, p95] = [share(times, 0.5), share(times, 0.95)]
    const ratio = least && p95 / share(least, 0.95)
    const kinds = each
      .toSorted(([, a], [, b]) => b - a)
      .map(([kind, count]) => `${kind} ${count.toFixed(2)}`)
      .join(', ')
    const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`
    rows.push([
      name,
      total.toFixed(2),
      kinds,
      seconds(p50),
      seconds(p95),
      least ? seconds(share(least, 0.95)) : '',
      ratio?.toFixed(2) ?? '',
    ])
    figures[name] = { requests: total, ...Object.fromEntries(each), p50, p95, ratio }
    if (total > (scenario.webhooks ? WANTED.webhooks : WANTED.none)) missed.push(`${name}: requests`)
    if (scenario.webhooks && ratio !== undefined && ratio > WANTED.p95) missed.push(`${name}: p95`)
  }
  await dispatcher.close()
  return { rows, figures, missed }
}

const share = (times: number[], of: number): number =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * of))] ?? 0

const openSandbox = async ({ completeAfterMs, perMinute }: Scenario) => {
  const sandbox = await startSandbox({
    dialect: DIALECT,
    apiKey: API_KEY,
    requestsPerMinute: perMinute,
    balanceMinor: 1_000_000_000_000,
    completeAfterMs,
    offers: 60,
    seed: 3,
  })
  const { items } = sandbox.world.offers.list({}, 0, 100)
  for (const { id } of items) sandbox.world.offers.change(id, { stock: STOCK })
  return { sandbox, offers: items }
}

/** Passes requests on, and counts them by what they ask for. */
async function openProxy(to: string) {
  const origin = new URL(to)
  const counts = new Map<string, number>()
  const server = createServer(async (incoming: IncomingMessage, response) => {
    const [, , first, id] = (incoming.url ?? '').split('?')[0]?.split('/') ?? []
    const kind = `${incoming.method} ${first}${id === undefined ? '' : '/{id}'}`
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const { host: _, connection: __, 'transfer-encoding': ___, ...headers } = incoming.headers
    const answer = await request(`${origin.origin}${incoming.url}`, {
      method: incoming.method as 'GET',
      dispatcher,
      headers,
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    })
    const { connection: ____, 'transfer-encoding': _____, ...passed } = answer.headers
    response.writeHead(answer.statusCode, passed).end(Buffer.from(await answer.body.arrayBuffer()))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://127.0.0.1:${port}${origin.pathname}`,
    counts,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** A store that notes when the keys of an order came. */
async function openStore() {
  const cameAt = new Map<string, number>()
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const { type, data } = JSON.parse(Buffer.concat(chunks).toString()) as { type: string; data: { reference: string } }
    if (type === 'line.fulfilled') cameAt.set(data.reference, performance.now())
    response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, cameAt, close: () => server.close() }
}

async function playQuayside(scenario: Scenario): Promise<{ counts: Map<string, number>; times: number[] }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-bench-'))
  const { sandbox, offers } = await openSandbox(scenario)
  const [proxy, store, port] = [await openProxy(sandbox.baseUrl), await openStore(), await freePort()]
  const configFile = writeDemoConfig({
    folder,
    baseUrl: proxy.baseUrl,
    apiKey: API_KEY,
    port,
    storePort: store.port,
    dialect: 'reseller-v1.1',
    more: { ordering: { inFlight: IN_FLIGHT }, logLevel: 'error', console: { listen: null } },
  })
  const setUp = await openSetUp(configFile, {})
  if (scenario.webhooks) await setUp.createWebhook()
  const token = (await setUp.createStoreToken(DEMO_STORE, 'bench')).reveal()
  await setUp.close()
  const entry = path.join(import.meta.dirname, '../../src/quayside.js')
  // As `npm start` starts it.
  const flags = ['--max-semi-space-size=16', '--expose-gc', entry, 'serve', '--config', configFile]
  const service = spawn(process.execPath, flags, { stdio: 'ignore' })
  const api = `http://127.0.0.1:${port}/api/v1`
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const listings = async () => {
    const answer = await request(`${api}/listings?limit=200`, { dispatcher, headers })
    return ((await answer.body.json()) as { data?: { items: { sku: string }[] } }).data?.items.length ?? 0
  }
  while ((await listings().catch(() => 0)) < offers.length) await sleep(100)
  // What the start asks for is not of a purchase.
  await sleep(3_000)
  proxy.counts.clear()
  const buy = async (number: number): Promise<[string, number]> => {
    const reference = `q${number}`
    const sku = offers[number % (scenario.products ?? offers.length)]?.sku
    const sentAt = performance.now()
    const body = JSON.stringify({ reference, lines: [{ id: '1', sku, quantity: 1 }] })
    const answer = await request(`${api}/orders`, { method: 'POST', dispatcher, headers, body })
    await answer.body.dump()
    if (answer.statusCode !== 202) throw new Error(`an order was answered ${answer.statusCode}`)
    return [reference, sentAt]
  }
  const sent: Promise<[string, number]>[] = []
  for (let number = 0; number < scenario.orders; number += 1) {
    sent.push(buy(number))
    if (scenario.everyMs > 0) await sleep(scenario.everyMs)
  }
  const sentAt = new Map(await Promise.all(sent))
  for (const end = performance.now() + PATIENCE_MS; store.cameAt.size < scenario.orders; await sleep(20)) {
    if (performance.now() > end)
      throw new Error(`only ${store.cameAt.size} of ${scenario.orders} orders have their keys`)
  }
  service.kill('SIGTERM')
  if (service.exitCode === null && service.signalCode === null) await once(service, 'exit')
  proxy.close()
  store.close()
  await sandbox.close()
  rmSync(folder, { recursive: true, force: true })
  const times = [...sentAt].map(([reference, at]) => (store.cameAt.get(reference) ?? 0) - at)
  return { counts: proxy.counts, times }
}

/**
 * One POST and, once the order is over, one GET, through the same proxy; as many at once as Quayside sends, and again after
 * each 429.
 */
async function playLeast(scenario: Scenario): Promise<number[]> {
  const { sandbox, offers } = await openSandbox(scenario)
  const proxy = await openProxy(sandbox.baseUrl)
  const startedAt = performance.now()
  const times: number[] = []
  let next = 0
  const ask = async (method: 'GET' | 'POST', url: string, key: string, body?: object) => {
    for (;;) {
      const answer = await request(`${proxy.baseUrl}${url}`, {
        method,
        dispatcher,
        headers: { 'x-api-key': API_KEY, 'idempotency-key': key, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      const json = (await answer.body.json()) as { data?: { id?: string; status?: string } }
      if (answer.statusCode !== 429) return json.data
      await sleep(Number(answer.headers['retry-after'] ?? 1) * 1_000)
    }
  }
  const reads: Promise<void>[] = []
  const buyAll = async (): Promise<void> => {
    while (next < scenario.orders) {
      const number = next
      next += 1
      const productId = offers[number % offers.length]?.id
      const order = await ask('POST', '/orders', `least-${number}`, {
        productId,
        quantity: 1,
        external_order_id: `least-${number}`,
      })
      reads.push(
        sleep(scenario.completeAfterMs + 50).then(async () => {
          await ask('GET', `/orders/${order?.id}`, '')
          times.push(performance.now() - startedAt)
        }),
      )
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, buyAll))
  await Promise.all(reads)
  proxy.close()
  await sandbox.close()
  return times
}
