/**
 * Two web processes and two that may be the worker, on one PostgreSQL behind a load balancer: one after the other is ended by SIGTERM
 * and started again, while deliveries and store orders come. Nothing is lost, done twice or refused but by a 503 that says when to
 * come again.
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
import { type Sent, startSending } from './sender.ts'

export interface RollingOptions {
  /** How long deliveries come; longer where a process was not restarted by then. */
  seconds: number
  /** A process is ended so often. */
  everySeconds: number
  deliveriesPerSecond: number
  ordersPerSecond: number
  /** For the files of the run. */
  folder: string
  /** Of an empty PostgreSQL database. */
  databaseUrl: string
  onProgress?: (progress: { elapsedSeconds: number; restarts: number; answers: Sent['answers'] }) => void
}

export interface RollingOutcome {
  /** What may not be; empty when the run has passed. */
  faults: string[]
  restarts: Record<Role, number>
  /** The longest that a process took from SIGTERM to its end. */
  drainMs: number
  answers: Sent['answers']
  longestMs: number
  deliveries: number
  orders: number
}

const ROLES: Role[] = ['web', 'worker', 'web', 'worker']
/** What the service promises: docs/container.md. */
const DRAIN_MS = 8_000
/** Nothing here takes longer; what does has failed. */
const PATIENCE_MS = 120_000
const API_KEY = 'sk_test_0123456789abcdef'
const ENTRY = path.join(import.meta.dirname, '../../../src/quayside.js')

export async function rollingRestart(options: RollingOptions): Promise<RollingOutcome> {
  const { folder, databaseUrl, seconds, everySeconds, onProgress } = options
  const sandbox = await startSandbox({
    dialect: DIALECT,
    apiKey: API_KEY,
    requestsPerMinute: 1_000_000,
    offers: 20,
    balanceMinor: 1_000_000_000_000,
  })
  for (const { id } of sandbox.world.offers.list({}, 0, 100).items)
    sandbox.world.offers.change(id, { stock: 1_000_000 })
  const ports = await Promise.all(ROLES.map(() => freePort()))
  const balanced = ports.filter((_, place) => ROLES[place] === 'web').map((port) => `http://127.0.0.1:${port}`)
  const balancer = await openBalancer(balanced)
  const storePort = await freePort()
  keepSecret(folder, 'database-url', () => databaseUrl)
  const configFile = writeDemoConfig({
    folder,
    baseUrl: sandbox.baseUrl,
    apiKey: API_KEY,
    port: ports[0] ?? 0,
    storePort,
    dialect: DIALECT.name,
    more: { publicUrl: balancer.url, logLevel: 'warn' },
  })
  const setUp = await openSetUp(configFile, {})
  await setUp.createWebhook()
  const token = (await setUp.createStoreToken(DEMO_STORE, 'campaign')).reveal()
  const shop = await startShop({ secret: (await setUp.callbackSecret(DEMO_STORE)).reveal(), port: storePort })
  await setUp.close()
  const config = loadConfig(configFile, {})
  await addBenchWebhook(config)
  const db = await openBeside(config)
  if (!db) throw new Error('the database was not made')

  const faults: string[] = []
  const restarts: Record<Role, number> = { web: 0, worker: 0, all: 0 }
  let drainMs = 0
  const processes = ROLES.map((role, place) =>
    openProcess(folder, { role, port: ports[place] ?? 0, config: configBeside(configFile, place, ports[place] ?? 0) }),
  )
  const stop = async (one: Process): Promise<void> => {
    const { code, ms } = await one.stop()
    drainMs = Math.max(drainMs, Math.round(ms))
    if (code !== 0) faults.push(`${one.name} ended with ${code}`)
    if (ms > DRAIN_MS) faults.push(`${one.name} took ${Math.round(ms)} ms to end`)
  }
  try {
    await Promise.all(processes.map((one) => one.start()))
    await balancer.look()
    const bearer = { authorization: `Bearer ${token}`, connection: 'close' }
    let skus: string[] = []
    await until('the catalogue', async () => {
      const answer = await fetch(`${balancer.url}/api/v1/listings?limit=100`, { headers: bearer })
      const { data } = (await answer.json()) as { data: { items: { sku: string; available: boolean }[] } }
      skus = data.items.filter(({ available }) => available).map(({ sku }) => sku)
      return skus.length > 0
    })
    const sending = startSending({ ...options, url: balancer.url, token, skus })
    const startedAt = performance.now()
    const elapsed = () => (performance.now() - startedAt) / 1_000
    for (let turn = 0; elapsed() < seconds || turn < processes.length; turn += 1) {
      const next = Math.min(seconds, (turn + 1) * everySeconds)
      while (elapsed() < next) {
        await sleep(250)
        onProgress?.({ elapsedSeconds: elapsed(), restarts: turn, answers: sending.sent.answers })
        for (const one of processes) if (one.hasDied()) throw new Error(`${one.name} ended by itself`)
      }
      const one = processes[turn % processes.length]
      if (!one || (next >= seconds && turn >= processes.length)) continue
      await stop(one)
      await one.start()
      restarts[one.role] += 1
      // The next one is ended only when this one takes requests again.
      if (one.role === 'web') await until('the balancer', () => balancer.ready().length === balanced.length)
    }
    await sending.end()
    const isClosed = async () => {
      const [row] = await db.query(
        build.select({ closed: count() }).from(storeOrders).where(isNotNull(storeOrders.closedAt)),
      )
      return row?.closed === sending.sent.orders.size
    }
    await until('the last orders', isClosed)
    await until('the last deliveries', async () => (await db.query(dueDeliveries(Date.now(), 1))).length === 0)
    await Promise.all(processes.map(stop))
    const { answers, longestMs, deliveries: taken, orders } = sending.sent
    for (const answer of Object.keys(answers)) {
      if (!['200', '202', '503'].includes(answer)) faults.push(`${answers[answer]} requests got: ${answer}`)
    }
    const rows = await db.query(
      build
        .select({ deliveryId: deliveries.deliveryId, attempts: deliveries.attempts, state: deliveries.state })
        .from(deliveries),
    )
    const ours = rows.filter(({ deliveryId }) => deliveryId.startsWith('dlv_'))
    const stored = new Set(ours.map(({ deliveryId }) => deliveryId))
    const lost = [...taken].filter((id) => !stored.has(id))
    if (lost.length > 0) faults.push(`${lost.length} deliveries were acknowledged and are not stored: ${lost[0]}`)
    if (ours.length > stored.size) faults.push(`${ours.length - stored.size} deliveries are stored twice`)
    const again = ours.filter(({ attempts }) => attempts !== 1)
    if (again.length > 0) faults.push(`${again.length} deliveries were not settled once: ${again[0]?.deliveryId}`)
    const unsettled = rows.filter(({ state }) => state !== 'applied' && state !== 'ignored')
    if (unsettled.length > 0) faults.push(`${unsettled.length} deliveries are ${unsettled[0]?.state}`)
    const charges = sandbox.world.report().charges.length
    if (charges !== orders.size) faults.push(`${orders.size} orders were charged ${charges} times`)
    const keys = shop.keys()
    const wrong = [...orders].filter((reference) => keys.get(`${reference}/1`)?.length !== 1)
    if (wrong.length > 0) faults.push(`${wrong.length} orders have not one key: ${wrong[0]}`)
    return { faults, restarts, drainMs, answers, longestMs, deliveries: taken.size, orders: orders.size }
  } finally {
    for (const one of processes) one.kill()
    await db.close()
    balancer.close()
    await Promise.all([shop.close(), sandbox.close()])
  }
}

type Process = ReturnType<typeof openProcess>

/** A process of the service, as a supervisor starts and ends it. */
function openProcess(folder: string, { role, port, config }: { role: Role; port: number; config: string }) {
  const name = `${role} on port ${port}`
  const log = path.join(folder, `${role}-${port}.log`)
  let child: ChildProcess | undefined
  let isWanted = false
  return {
    role,
    name,
    start: async (): Promise<void> => {
      const file = openSync(log, 'a')
      child = spawn(process.execPath, [ENTRY, 'serve', '--config', config, '--role', role], {
        stdio: ['ignore', file, file],
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
      isWanted = false
      if (child && child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM')
        await once(child, 'exit')
      }
      return { code: child?.exitCode ?? null, ms: performance.now() - since }
    },
    hasDied: (): boolean => isWanted && (child?.exitCode !== null || child.signalCode !== null),
    kill: (): void => void child?.kill('SIGKILL'),
  }
}

async function until(what: string, look: () => unknown): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; !(await look()); await sleep(100)) {
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`)
  }
}
