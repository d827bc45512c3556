/**
 * An installation with real processes behind a load balancer, for campaigns that end and start those while deliveries and store orders
 * come: a sandbox as its supplier, a shop that records, and what must be true in the end.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { count, isNotNull } from 'drizzle-orm'
import { loadConfig, type Role } from '../../../src/config/config.ts'
import { DEMO_STORE, keepSecret, writeDemoConfig } from '../../../src/demo/files.ts'
import { openSetUp } from '../../../src/installation.ts'
import { startSandbox } from '../../../src/sandbox/server.ts'
import { openBeside } from '../../../src/storage/database-place.ts'
import { dueDeliveries } from '../../../src/storage/deliveries.ts'
import { deliveries, storeOrders } from '../../../src/storage/schema.ts'
import { build } from '../../../src/storage/statement.ts'
import { addBenchWebhook } from '../../bench/bench-webhook.ts'
import { configBeside } from '../../support/config-beside.ts'
import { DIALECT } from '../../support/delivery.ts'
import { freePort } from '../../support/free-port.ts'
import { startShop } from '../../support/recording-store.ts'
import { openBalancer } from './balancer.ts'
import type { Sent } from './sender.ts'

interface InstallationParts {
  /** For the files of the run. */
  folder: string
  /** Of an empty PostgreSQL database. Absent: a file, and one process. */
  databaseUrl?: string | undefined
  roles: readonly Role[]
  /** Further settings. */
  settings?: object
  /** Called with the configuration file before any process starts. */
  prepare?: (configFile: string) => Promise<void>
  /** A module that each process loads first, and its environment. */
  preload?: { file: string; env: NodeJS.ProcessEnv } | undefined
}

/** Nothing here takes longer; what does has failed. */
const PATIENCE_MS = 120_000
const API_KEY = 'sk_test_0123456789abcdef'
const ENTRY = path.join(import.meta.dirname, '../../../src/quayside.js')

export async function openInstallation({ folder, databaseUrl, roles, settings, prepare, preload }: InstallationParts) {
  const sandbox = await startSandbox({
    dialect: DIALECT,
    apiKey: API_KEY,
    requestsPerMinute: 1_000_000,
    offers: 20,
    balanceMinor: 1_000_000_000_000,
  })
  for (const { id } of sandbox.world.offers.list({}, 0, 100).items)
    sandbox.world.offers.change(id, { stock: 1_000_000 })
  const ports = await Promise.all(roles.map(() => freePort()))
  /** The addresses of the processes that take requests. */
  const urls = ports.filter((_, place) => roles[place] !== 'worker').map((port) => `http://127.0.0.1:${port}`)
  const balancer = await openBalancer(urls)
  const storePort = await freePort()
  if (databaseUrl !== undefined) keepSecret(folder, 'database-url', () => databaseUrl)
  const configFile = writeDemoConfig({
    folder,
    baseUrl: sandbox.baseUrl,
    apiKey: API_KEY,
    port: ports[0] ?? 0,
    storePort,
    dialect: DIALECT.name,
    more: { publicUrl: balancer.url, logLevel: 'warn', ...settings },
  })
  const setUp = await openSetUp(configFile, {})
  await setUp.createWebhook()
  const token = (await setUp.createStoreToken(DEMO_STORE, 'campaign')).reveal()
  const shop = await startShop({ secret: (await setUp.callbackSecret(DEMO_STORE)).reveal(), port: storePort })
  await setUp.close()
  const config = loadConfig(configFile, {})
  await addBenchWebhook(config)
  await prepare?.(configFile)
  const db = await openBeside(config)
  if (!db) throw new Error('the database was not made')
  const processes = roles.map((role, place) => {
    const port = ports[place] ?? 0
    const file = databaseUrl === undefined ? configFile : configBeside(configFile, place, port)
    return openProcess(folder, { role, port, config: file, preload })
  })
  /** Asks for the SKUs of the listings on sale, until there are some. */
  const skusOnSale = async (): Promise<string[]> => {
    let skus: string[] = []
    await until('the catalogue', async () => {
      const headers = { authorization: `Bearer ${token}`, connection: 'close' }
      const answer = await fetch(`${balancer.url}/api/v1/listings?limit=100`, { headers })
      const { data } = (await answer.json()) as { data: { items: { sku: string; available: boolean }[] } }
      skus = data.items.filter(({ available }) => available).map(({ sku }) => sku)
      return skus.length > 0
    })
    return skus
  }
  const areClosed = async ({ orders }: Pick<Sent, 'orders'>): Promise<boolean> => {
    const [row] = await db.query(
      build.select({ closed: count() }).from(storeOrders).where(isNotNull(storeOrders.closedAt)),
    )
    return row?.closed === orders.size
  }
  return {
    sandbox,
    balancer,
    urls,
    token,
    shop,
    db,
    processes,
    skusOnSale,
    areClosed,
    areDeliveriesDone: async () => (await db.query(dueDeliveries(Date.now(), 1))).length === 0,
    /** Says which deliveries were lost or are not settled, and which orders were not charged once or have not one key. */
    faultsOf: async ({ deliveries: taken, orders }: Pick<Sent, 'deliveries' | 'orders'>): Promise<string[]> => {
      const rows = await db.query(
        build.select({ deliveryId: deliveries.deliveryId, state: deliveries.state }).from(deliveries),
      )
      const stored = new Set(rows.map(({ deliveryId }) => deliveryId))
      const lost = [...taken].filter((id) => !stored.has(id))
      const unsettled = rows.filter(({ state }) => state !== 'applied' && state !== 'ignored')
      const charges = sandbox.world.report().charges.length
      const keys = shop.keys()
      const wrong = [...orders].filter((reference) => keys.get(`${reference}/1`)?.length !== 1)
      return [
        lost.length > 0 && `${lost.length} deliveries were acknowledged and are not stored: ${lost[0]}`,
        unsettled.length > 0 && `${unsettled.length} deliveries are ${unsettled[0]?.state}`,
        charges !== orders.size && `${orders.size} orders were charged ${charges} times`,
        wrong.length > 0 && `${wrong.length} orders have not one key: ${wrong[0]}`,
      ].filter((fault) => fault !== false)
    },
    close: async (): Promise<void> => {
      for (const one of processes) await one.kill()
      await db.close()
      balancer.close()
      await Promise.all([shop.close(), sandbox.close()])
    },
  }
}

export type RealProcess = ReturnType<typeof openProcess>

interface ProcessParts {
  role: Role
  port: number
  config: string
  preload: InstallationParts['preload']
}

/** A process of the service, as a supervisor starts and ends it. */
function openProcess(folder: string, { role, port, config, preload }: ProcessParts) {
  const name = `${role} on port ${port}`
  const log = path.join(folder, `${role}-${port}.log`)
  let child: ChildProcess | undefined
  let isWanted = false
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    isWanted = false
    if (!child) return null
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal)
      await once(child, 'exit')
    }
    return child.exitCode
  }
  return {
    role,
    name,
    start: async (): Promise<void> => {
      const file = openSync(log, 'a')
      const before = preload ? ['--import', preload.file] : []
      const ofRole = role === 'all' ? [] : ['--role', role]
      child = spawn(process.execPath, [...before, ENTRY, 'serve', '--config', config, ...ofRole], {
        stdio: ['ignore', file, file],
        env: { ...process.env, ...preload?.env },
      })
      closeSync(file)
      isWanted = true
      await until(name, async () => {
        if (child?.exitCode !== null) throw new Error(`${name} ended at its start: ${log}`)
        const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: 'close' } }).catch(
          () => undefined,
        )
        return answer?.ok
      })
    },
    /** @returns its exit code, and how long it took to end */
    stop: async (): Promise<{ code: number | null; ms: number }> => {
      const since = performance.now()
      return { code: await end('SIGTERM'), ms: performance.now() - since }
    },
    hasDied: (): boolean => isWanted && (child?.exitCode !== null || child.signalCode !== null),
    kill: () => end('SIGKILL'),
  }
}

export async function until(what: string, look: () => unknown): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; !(await look()); await sleep(100)) {
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`)
  }
}
