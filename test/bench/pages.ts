/**
 * `npm run bench -- pages [--stored N] [--folder F]`: how long the service works for each page and live part of the console, and for the status and
 * the metrics, with a million orders and deliveries stored. The routes are walked as readers do, so that a new page is measured without
 * being named: its first rows, rows deep in the list, each filter, searches for what many, one and no order have. Then a hundred pages are
 * left open while nothing happens. What is stored stays in
 * the folder, if one is named, for the next run: storing takes longer than measuring.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { loadavg, tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLink } from '../../src/access/sessions.ts'
import { loadConfig } from '../../src/config/config.ts'
import { consolePages } from '../../src/console/pages.ts'
import { routesOf } from '../../src/console/router.ts'
import { streamLimits } from '../../src/console/streams.ts'
import { DEMO_STORE, writeDemoConfig } from '../../src/demo/files.ts'
import { createIds } from '../../src/ids.ts'
import { setUpOf } from '../../src/installation.ts'
import { databaseFileOf } from '../../src/storage/data-folder.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { cookieIn, visit } from '../support/console-client.ts'
import { type Stop, walkConsole } from '../support/console-walk.ts'
import { freePort } from '../support/free-port.ts'
import { CORE_TIME, coreTimeOf, medianOf } from './processes.ts'
import { type Stored, storeSales } from './stored-pages.ts'
import type { Row } from './table.ts'

const STORED = 1_000_000
const ROUNDS = 5
const WANTED_MS = 100
const PATIENCE_MS = 300_000
/** Pages that people look at, for how long, and how long the service may rest before. */
const OPEN_PAGES = 100
const OPEN_SECONDS = 60
const SETTLE_MS = 10_000
const WANTED_SHARE = 2
const WANTED_KILOBYTES = 120
const ENTRY = path.join(import.meta.dirname, '../../src/quayside.js')
const NOTHING = 'nothing-has-this-name'

/** The calendar asks for no work of its own, and the supplier is away: what is measured is the pages. */
const NEW_YEAR = '0 0 1 1 *'
export const QUIET = {
  syncCron: NEW_YEAR,
  balanceCron: NEW_YEAR,
  sweepCron: NEW_YEAR,
  backups: { cron: null },
  ordering: { tickSeconds: 60 },
  logLevel: 'error',
}

/** A file takes as long as the orders in it. */
const routes = routesOf(consolePages).filter(({ file }) => file === undefined)

/** Milliseconds of the clock, and of a core. */
interface Times {
  clock: number[]
  core: number[]
}

export async function benchPages(
  say: (text: string) => void,
  { stored = STORED, kept }: { stored?: number; kept?: string | undefined },
) {
  const folder = kept ?? mkdtempSync(path.join(tmpdir(), 'quayside-bench-'))
  mkdirSync(folder, { recursive: true })
  const [port, consolePort, supplierPort, storePort] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ]
  const configFile = writeDemoConfig({
    folder,
    baseUrl: `http://127.0.0.1:${supplierPort}/v1`,
    apiKey: 'sk_bench_0123456789',
    port,
    storePort,
    consolePort,
    dialect: 'reseller-v1.1',
    more: QUIET,
  })
  let service: ChildProcess | undefined
  try {
    const config = loadConfig(configFile, {})
    const file = databaseFileOf(config.dataDir)
    const salesFile = path.join(folder, 'sales.json')
    if (!existsSync(salesFile)) {
      await (await setUpOf(config, [DEMO_STORE])).close()
      say(`storing ${stored.toLocaleString('en')} orders`)
      writeFileSync(salesFile, JSON.stringify(storeSales(file, stored, DEMO_STORE, Date.now())))
    }
    const sales = JSON.parse(readFileSync(salesFile, 'utf8')) as Stored
    const megabytes = Math.round(statSync(file).size / 1_000_000)
    const links = await newLinks(file, 1 + OPEN_PAGES / streamLimits.ofSession)
    say(`${megabytes} MB; starting the service`)
    const startedAt = performance.now()
    service = spawn(process.execPath, ['--import', CORE_TIME, ENTRY, 'serve', '--config', configFile], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const api = `http://127.0.0.1:${port}`
    await ready(`${api}/readyz`)
    const readyMs = performance.now() - startedAt
    const address = `http://127.0.0.1:${consolePort}`
    const signIn = async (link = '') => cookieIn(await visit(address, '/signin', { form: { link } }))
    const cookie = await signIn(links[0])
    const ask = (to: string) => visit(address, to, { cookie })

    const reached = await addressesOf(sales, ask)
    const times = new Map<string, Times>()
    const measure = async (kind: string, work: () => Promise<{ status: number }>) => {
      const { clockMs, coreMs } = await timeOf(service as ChildProcess, async () => {
        const { status } = await work()
        if (status >= 500) throw new Error(`${kind} is answered with ${status}`)
      })
      const { clock, core } = times.get(kind) ?? { clock: [], core: [] }
      times.set(kind, { clock: [...clock, clockMs], core: [...core, coreMs] })
    }
    const owner = readFileSync(path.join(config.dataDir, 'owner.token'), 'utf8').trim()
    const headers = { authorization: `Bearer ${owner}` }
    const plain = (to: string) => async () => {
      const answer = await fetch(`${api}${to}`, { headers })
      await answer.arrayBuffer()
      return answer
    }
    for (let round = 0; round <= ROUNDS; round += 1) {
      say(round === 0 ? `${reached.length} addresses; warming up` : `round ${round} of ${ROUNDS}`)
      if (round === 1) times.clear()
      for (const { kind, to } of reached) await measure(kind, () => ask(to))
      for (const to of ['/api/v1/status', '/metrics']) await measure(to, plain(to))
    }
    say(`${OPEN_PAGES} open pages, ${OPEN_SECONDS} s`)
    const firstKilobytes = await weightOf(address, '/overview', cookie)
    const openShare = await shareOfOpenPages(service, address, await Promise.all(links.slice(1).map(signIn)))
    return report({ times, reached, stored: sales.count, megabytes, readyMs, firstKilobytes, openShare })
  } finally {
    if (service) await ended(service)
    if (kept === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

/** Every address of the console that readers reach. @param ask reads a page */
export async function addressesOf(sales: Stored, ask: (to: string) => Promise<{ text: string }>): Promise<Stop[]> {
  const stops = await walkConsole({
    routes,
    searches: [...sales.searches, NOTHING],
    examples: 2,
    read: async (stop) => (stop.route ? (await ask(stop.to)).text : ''),
    deeper: (next) => {
      const deep = new URL(next)
      if (deep.searchParams.has('before')) deep.searchParams.set('before', sales.middleId)
      else if (deep.searchParams.has('after')) deep.searchParams.set('after', sales.middleVariant)
      else return undefined
      return deep
    },
  })
  return stops.filter(({ route }) => route !== undefined)
}

interface Measured {
  times: Map<string, Times>
  reached: Stop[]
  stored: number
  megabytes: number
  readyMs: number
  /** What the first page and its files weigh on the wire. */
  firstKilobytes: number
  /** Percent of a core, for a hundred open pages. */
  openShare: number
}

function report({ times, reached, stored, megabytes, readyMs, firstKilobytes, openShare }: Measured) {
  const pages = [...times].map(([kind, { clock, core }]) => ({
    kind,
    addresses: new Set(reached.filter((stop) => stop.kind === kind).map(({ to }) => to)).size || 1,
    medianMs: round(medianOf(clock)),
    worstMs: round(Math.max(...clock)),
    coreMedianMs: round(medianOf(core)),
    coreWorstMs: round(Math.max(...core)),
  }))
  const slow = pages.filter(({ coreWorstMs }) => coreWorstMs > WANTED_MS).map(({ kind }) => kind)
  const known = new Set(reached.map(({ route }) => route))
  const unreached = routes
    .filter(({ method }) => method === 'get')
    .filter(({ path: at }) => ![...known].some((route) => route?.path === at))
    .map(({ path: at }) => at)
  const rows: Row[] = [
    ['page', 'addresses', 'median', 'worst', 'of a core', 'worst', ''],
    ...pages
      .toSorted((a, b) => b.coreWorstMs - a.coreWorstMs)
      .map((one) => [
        one.kind,
        String(one.addresses),
        `${one.medianMs} ms`,
        `${one.worstMs} ms`,
        `${one.coreMedianMs} ms`,
        `${one.coreWorstMs} ms`,
        one.coreWorstMs > WANTED_MS ? `over ${WANTED_MS} ms` : '',
      ]),
    [],
    ['the database', `${megabytes} MB`],
    ['ready after', `${Math.round(readyMs)} ms`],
    ['first view', `${firstKilobytes} KB`, firstKilobytes > WANTED_KILOBYTES ? `over ${WANTED_KILOBYTES} KB` : ''],
    [`${OPEN_PAGES} open pages`, `${openShare} % of a core`, openShare > WANTED_SHARE ? `over ${WANTED_SHARE} %` : ''],
    ['load of the machine at the end', (loadavg()[0] ?? 0).toFixed(1)],
    ...unreached.map((at) => ['no link leads to', at]),
  ]
  return {
    rows,
    figures: { stored, megabytes, readyMs: Math.round(readyMs), firstKilobytes, openShare, pages, slow, unreached },
    isGood:
      slow.length === 0 && unreached.length === 0 && firstKilobytes <= WANTED_KILOBYTES && openShare <= WANTED_SHARE,
  }
}

const round = (ms: number): number => Number(ms.toFixed(1))

/** How long the service takes for one request: by the clock as its asker sees it, and of a core by its own account. */
export async function timeOf(service: ChildProcess, work: () => Promise<void>) {
  const before = await coreTimeOf(service)
  const startedAt = performance.now()
  await work()
  const clockMs = performance.now() - startedAt
  return { clockMs, coreMs: (await coreTimeOf(service)) - before }
}

/** Links that each sign an admin in, made while no service runs. */
export async function newLinks(file: string, count: number): Promise<string[]> {
  const now = Date.now
  const db = openDatabase({ file, now })
  const access = { db, now, newId: createIds(now, randomBytes), randomBytes }
  const links: string[] = []
  for (let index = 0; index < count; index += 1) {
    const { link } = await createLink(access, { name: `bench ${index}`, role: 'admin' }, 'bench')
    links.push(link.reveal())
  }
  await db.close()
  return links
}

/** Kilobytes on the wire of a page and all that it loads, as a browser without a cache asks for them. */
async function weightOf(address: string, to: string, cookie: string): Promise<number> {
  const headers = { 'accept-encoding': 'gzip' }
  const { text } = await visit(address, to, { cookie })
  const files = [...text.matchAll(/<(?:script|link)\b[^>]*? (?:src|href)="(\/[^"]+)"/g)].map(([, file = '']) => file)
  let bytes = 0
  for (const one of [to, ...files]) bytes += (await visit(address, one, { cookie, headers })).bytes
  return round(bytes / 1_000)
}

/** Opens pages, four for each session as browsers do. @returns the share of a core that the service works while nothing happens, in percent */
async function shareOfOpenPages(service: ChildProcess, address: string, cookies: readonly string[]): Promise<number> {
  const open = cookies.flatMap((cookie) =>
    Array.from({ length: streamLimits.ofSession }, () =>
      get(`${address}/stream?seen=`, { agent: false, headers: { cookie, 'sec-fetch-site': 'same-origin' } }),
    ),
  )
  const beats = open.map(async (asked) => {
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    if (response.statusCode !== 200) throw new Error(`a stream is answered with ${response.statusCode}`)
    response.resume()
  })
  await Promise.all(beats)
  await sleep(SETTLE_MS)
  const { coreMs } = await timeOf(service, () => sleep(OPEN_SECONDS * 1_000))
  for (const asked of open) asked.destroy()
  return Number((coreMs / OPEN_SECONDS / 10).toFixed(2))
}

async function ready(url: string): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(100)) {
    const answer = await fetch(url).catch(() => undefined)
    if (answer?.ok) return
  }
  throw new Error('the service is not ready')
}

async function ended(service: ChildProcess): Promise<void> {
  service.kill('SIGTERM')
  if (service.exitCode === null && service.signalCode === null) await once(service, 'exit')
}
