/**
 * `npm run bench -- journeys [--list]`: how many files of `src` one has to read to follow a store order and a delivery.
 *
 * A file counts when one of its functions ran in the service between the request and the callback, in every repeat of the
 * journey, so that ticks do not count. The supplier and the store run in the bench itself: no file of theirs counts.
 *
 * - The delivery: from the POST of a signed `order.completed`, for a purchase that the supplier has accepted, until the
 *   callback with the licence keys reaches the store.
 * - The store order: from the POST of the store order until that same callback. The delivery is its second half.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { DEMO_STORE, writeDemoConfig } from '../../src/demo/files.ts'
import { readDialect } from '../../src/dialect/dialect.ts'
import { openSetUp } from '../../src/installation.ts'
import { startSandbox } from '../../src/sandbox/server.ts'
import { freePort } from '../support/free-port.ts'
import type { Row } from './table.ts'

const REPEATS = 5
/** Longer than the service works without a pause, shorter than its first wait for a purchase: 2 s. */
const PAUSE_MS = 100
/** Nothing here takes longer; what does has failed. */
const PATIENCE_MS = 30_000
const API_KEY = 'sk_bench_0123456789'
const ENTRY = fileURLToPath(new URL('../../src/quayside.js', import.meta.url))
const PRELOAD = new URL('./passed-files.ts', import.meta.url).href
const DIALECT = new URL('../../config/dialects/reseller-v1.1.json', import.meta.url)

/** The service does little of its own: it looks for due work once a minute, and the calendar asks for work once a year. */
const NEW_YEAR = '0 0 1 1 *'
const QUIET = {
  syncCron: NEW_YEAR,
  balanceCron: NEW_YEAR,
  sweepCron: NEW_YEAR,
  backups: { cron: null },
  ordering: { tickSeconds: 60 },
  logLevel: 'error',
}

type Files = Set<string>

export interface Journeys {
  delivery: string[]
  storeOrder: string[]
}

export async function benchJourneys(say: (text: string) => void): Promise<Journeys> {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-bench-'))
  const store = await openStore()
  const sandbox = await startSandbox({
    dialect: readDialect(DIALECT),
    apiKey: API_KEY,
    offers: 20,
    seed: 3,
    balanceMinor: 1_000_000_000,
    requestsPerMinute: 1_000_000,
    automatic: false,
  })
  const port = await freePort()
  const configFile = writeDemoConfig({
    folder,
    baseUrl: sandbox.baseUrl,
    apiKey: API_KEY,
    port,
    storePort: store.port,
    dialect: 'reseller-v1.1',
    more: QUIET,
  })
  const setUp = await openSetUp(configFile, {})
  await setUp.createWebhook()
  const token = (await setUp.createStoreToken(DEMO_STORE, 'bench')).reveal()
  await setUp.close()

  const service = spawn(process.execPath, ['--import', PRELOAD, ENTRY, 'serve', '--config', configFile], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const api = `http://127.0.0.1:${port}/api/v1`
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  try {
    const sku = await firstSku(`${api}/listings?limit=200`, headers)
    const deliveries: Files[] = []
    const storeOrders: Files[] = []
    for (let repeat = 1; repeat <= REPEATS; repeat += 1) {
      say(`journeys: ${repeat} of ${REPEATS}`)
      await quiet(service)
      const body = JSON.stringify({ reference: `j${repeat}`, lines: [{ id: '1', sku, quantity: 1 }] })
      const answer = await fetch(`${api}/orders`, { method: 'POST', headers, body })
      if (!answer.ok) throw new Error(`the store order was answered with ${answer.status}: ${await answer.text()}`)
      const accepted = await quiet(service)
      const [purchase] = sandbox.world.orders.known(1)
      if (purchase?.status !== 'open') throw new Error('the supplier has no open order')

      const atCallback = store.nextKeys(() => passedFiles(service))
      sandbox.world.orders.complete(purchase)
      await sandbox.deliverDue()
      const delivered = await within(atCallback, 'the callback with the licence keys')
      deliveries.push(delivered)
      storeOrders.push(new Set([...accepted, ...delivered]))
    }
    return { delivery: inAll(deliveries), storeOrder: inAll(storeOrders) }
  } finally {
    service.kill('SIGTERM')
    if (service.exitCode === null && service.signalCode === null) await once(service, 'exit')
    await sandbox.close()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** How many files of each folder the journeys pass and, where they are asked for, which: `*` marks the delivery's. */
export function journeyRows({ delivery, storeOrder }: Journeys, list: boolean): Row[] {
  const known = [...new Set([...storeOrder, ...delivery])].sort()
  const folders = [...new Set(known.map((file) => path.dirname(file)))].sort()
  const count = (files: string[], folder: string) =>
    String(files.filter((file) => path.dirname(file) === folder).length)
  const counts = folders.map((folder) => [path.join('src', folder), count(delivery, folder), count(storeOrder, folder)])
  const all = ['all', String(delivery.length), String(storeOrder.length)]
  const files = known.map((file) => [
    path.join('src', file),
    delivery.includes(file) ? '*' : '',
    storeOrder.includes(file) ? '*' : '',
  ])
  return [['files of', 'delivery', 'store order'], ...counts, all, ...(list ? [[], ...files] : [])]
}

/** The files that the service passed since the question before. */
async function passedFiles(service: ChildProcess): Promise<Files> {
  const answer = once(service, 'message')
  service.send('passed files')
  const [files] = (await within(answer, 'the files that the service passed')) as [string[]]
  return new Set(files)
}

/**
 * Waits until the service has worked and then done nothing for a pause: what was asked of it may not have reached it yet.
 *
 * @returns the files it passed until then
 */
async function quiet(service: ChildProcess): Promise<Files> {
  let all: Files = new Set()
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(PAUSE_MS)) {
    const files = await passedFiles(service)
    if (all.size > 0 && files.size === 0) return all
    all = new Set([...all, ...files])
  }
  throw new Error('the service never came to rest')
}

/** The store's end: takes every callback, and looks at the service before it answers the one with the licence keys. */
async function openStore() {
  let look: () => Promise<void> = async () => {}
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const { type } = JSON.parse(text) as { type: string }
    if (type === 'line.fulfilled') await look()
    response.writeHead(204).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    nextKeys: (read: () => Promise<Files>): Promise<Files> =>
      new Promise((resolve, reject) => {
        look = () => read().then(resolve, reject)
      }),
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** The first listing that can be bought in every repeat, once the service has read the catalogue. */
async function firstSku(url: string, headers: Record<string, string>): Promise<string> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(PAUSE_MS)) {
    const answer = await fetch(url, { headers }).catch(() => undefined)
    if (!answer?.ok) continue
    const { data } = (await answer.json()) as { data: { items: { sku: string; stock: number | null }[] } }
    const listing = data.items.find(({ stock }) => (stock ?? 0) > REPEATS)
    if (listing) return listing.sku
  }
  throw new Error('the service offers no listing')
}

async function within<T>(work: Promise<T>, what: string): Promise<T> {
  const late = new AbortController()
  const tooLate = sleep(PATIENCE_MS, undefined, { signal: late.signal }).then((): never => {
    throw new Error(`waited in vain for ${what}`)
  })
  tooLate.catch(() => {})
  return Promise.race([work, tooLate]).finally(() => late.abort())
}

/** The files of the first repeat that every other one passed too. */
const inAll = ([first, ...others]: Files[]): string[] =>
  [...(first ?? [])].filter((file) => others.every((files) => files.has(file))).sort()
