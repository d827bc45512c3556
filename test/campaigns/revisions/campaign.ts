/**
 * Settings are changed again and again beside orders and deliveries, and processes are killed meanwhile. Each revision has a ceiling
 * of its own, and now and then a cap that lets nothing be bought: so each purchase shows by which revision it was bought.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { count, isNotNull } from 'drizzle-orm'
import { loadConfig, type Role } from '../../../src/config/config.ts'
import { DEMO_STORE, keepSecret, writeDemoConfig } from '../../../src/demo/files.ts'
import { openSetUp } from '../../../src/installation.ts'
import { startSandbox } from '../../../src/sandbox/server.ts'
import { openBeside } from '../../../src/storage/database-place.ts'
import { dueDeliveries } from '../../../src/storage/deliveries.ts'
import { deliveries, offers, purchases, storeOrders } from '../../../src/storage/schema.ts'
import { build } from '../../../src/storage/statement.ts'
import { addBenchWebhook } from '../../bench/bench-webhook.ts'
import { configBeside } from '../../support/config-beside.ts'
import { DIALECT } from '../../support/delivery.ts'
import { freePort } from '../../support/free-port.ts'
import { moveSettings } from '../../support/move-settings.ts'
import { startShop } from '../../support/recording-store.ts'
import { openBalancer } from '../rolling-restart/balancer.ts'
import { startSending } from '../rolling-restart/sender.ts'
import { type AppliedRevision, judgeRevisions } from './verdict.ts'

export interface RevisionsOptions {
  seconds: number
  revisions: number
  kills: number
  deliveriesPerSecond: number
  ordersPerSecond: number
  /** For the files of the run. */
  folder: string
  /** Of an empty PostgreSQL database, for two web processes and two that may be the worker. Absent: one process on a file. */
  databaseUrl?: string
  /** A seeded mistake that the processes are started with. */
  mistake?: string
  onProgress?: (progress: { elapsedSeconds: number; revision: number; kills: number }) => void
}

export interface RevisionsOutcome {
  /** What may not be; empty when the run has passed. */
  faults: string[]
  revisions: number
  kills: number
  answers: Record<string, number>
  /** The longest that an order or a delivery waited until it was taken. */
  longestMs: number
  /** The longest that a change of the settings took. */
  longestChangeMs: number
  deliveries: number
  orders: number
}

const PATIENCE_MS = 120_000
const API_KEY = 'sk_test_0123456789abcdef'
const ROOT = path.join(import.meta.dirname, '../../..')
const REGISTER = path.join(import.meta.dirname, '../mistakes/register.ts')
/** Each revision has the ceiling of the one before and one per cent more. */
const FIRST_PERCENT = 10
/** In every fourth revision nothing may be bought within an hour. */
const isCapped = (revision: number): boolean => revision % 4 === 3

export async function changeSettings(options: RevisionsOptions): Promise<RevisionsOutcome> {
  const { folder, databaseUrl, seconds, revisions, kills, mistake, onProgress } = options
  const sandbox = await startSandbox({
    dialect: DIALECT,
    apiKey: API_KEY,
    requestsPerMinute: 1_000_000,
    offers: 20,
    balanceMinor: 1_000_000_000_000,
  })
  for (const { id } of sandbox.world.offers.list({}, 0, 100).items)
    sandbox.world.offers.change(id, { stock: 1_000_000 })
  const roles: Role[] = databaseUrl === undefined ? ['all'] : ['web', 'worker', 'web', 'worker']
  const ports = await Promise.all(roles.map(() => freePort()))
  const isWeb = (place: number) => roles[place] !== 'worker'
  const balanced = ports.filter((_, place) => isWeb(place)).map((port) => `http://127.0.0.1:${port}`)
  const balancer = await openBalancer(balanced)
  const storePort = await freePort()
  if (databaseUrl !== undefined) keepSecret(folder, 'database-url', () => databaseUrl)
  const configFile = writeDemoConfig({
    folder,
    baseUrl: sandbox.baseUrl,
    apiKey: API_KEY,
    port: ports[0] ?? 0,
    storePort,
    dialect: DIALECT.name,
    more: { publicUrl: balancer.url, logLevel: 'warn', ordering: { tickSeconds: 1 } },
  })
  const setUp = await openSetUp(configFile, {})
  await setUp.createWebhook()
  const token = (await setUp.createStoreToken(DEMO_STORE, 'campaign')).reveal()
  const shop = await startShop({ secret: (await setUp.callbackSecret(DEMO_STORE)).reveal(), port: storePort })
  await setUp.close()
  const config = loadConfig(configFile, {})
  await addBenchWebhook(config)
  await moveSettings(configFile)
  const db = await openBeside(config)
  if (!db) throw new Error('the database was not made')

  const faults: string[] = []
  const processes = roles.map((role, place) => {
    const port = ports[place] ?? 0
    const file = databaseUrl === undefined ? configFile : configBeside(configFile, place, port)
    return openProcess(folder, { role, port, config: file, mistake })
  })
  const [first] = processes
  if (!first) throw new Error('there is no process')
  try {
    await Promise.all(processes.map((one) => one.start()))
    await balancer.look()
    const admin = await adminToken(balanced[0] ?? '', databaseUrl === undefined ? folder : path.join(folder, 'data-0'))
    const ask = async (method: string, route: string, body?: object, headers: Record<string, string> = {}) => {
      const answer = await fetch(`${balancer.url}/api/v1${route}`, {
        method,
        headers: {
          authorization: `Bearer ${admin}`,
          'content-type': 'application/json',
          connection: 'close',
          ...headers,
        },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(30_000),
      })
      return { status: answer.status, data: ((await answer.json()) as { data: never }).data as Record<string, unknown> }
    }
    let skus: string[] = []
    await until('the catalogue', async () => {
      const { data } = await ask('GET', '/listings?limit=100', undefined, { authorization: `Bearer ${token}` })
      const items = data.items as { sku: string; available: boolean }[]
      skus = items.filter(({ available }) => available).map(({ sku }) => sku)
      return skus.length > 0
    })

    const applied: AppliedRevision[] = [
      { revision: 1, percent: FIRST_PERCENT, isCapped: false, askedAt: 0, inForceAt: 0 },
    ]
    let longestChangeMs = 0
    /** Asks until the revision is in force: what was asked before a kill may have been stored, or not. */
    const apply = async (revision: number): Promise<void> => {
      const askedAt = Date.now()
      const percent = FIRST_PERCENT + revision - 1
      const isLast = revision === revisions + 1
      const hour = isCapped(revision) && !isLast ? '0.01' : null
      const one = { revision, percent, isCapped: hour !== null, askedAt, inForceAt: Number.POSITIVE_INFINITY }
      applied.push(one)
      await until(`revision ${revision}`, async () => {
        const begun = performance.now()
        const settings = await ask('GET', '/settings/document').catch(() => undefined)
        if (settings?.status !== 200) return false
        if (settings.data.revision === revision) return true
        const document = settings.data.document as object
        const changed = { ordering: { tickSeconds: 1, ceilingPercent: String(percent) }, spendCaps: { hour } }
        const body = { document: { ...document, ...changed }, reason: 'the campaign' }
        const answer = await ask('POST', '/settings/document', body, { 'if-match': `"${revision - 1}"` }).catch(
          () => undefined,
        )
        if (answer?.status !== 200) return false
        longestChangeMs = Math.max(longestChangeMs, Math.round(performance.now() - begun))
        return true
      })
      one.inForceAt = Date.now()
    }

    const begunAt = new Map<string, number>()
    const sending = startSending({
      ...options,
      url: balancer.url,
      token,
      skus,
      onOrder: (reference) => begunAt.set(reference, Date.now()),
    })
    const startedAt = performance.now()
    const elapsed = () => (performance.now() - startedAt) / 1_000
    let killed = 0
    const killing = (async () => {
      for (; killed < kills; killed += 1) {
        await sleep(Math.max(0, (seconds * (killed + 0.6)) / kills - elapsed()) * 1_000)
        // The one that is the worker first: it has the changes.
        const one = processes[(killed * 2 + 1) % processes.length] ?? first
        await one.kill()
        await one.start()
      }
    })()
    for (let revision = 2; revision <= revisions + 1; revision += 1) {
      await sleep(Math.max(0, ((revision - 2) * seconds) / revisions - elapsed()) * 1_000)
      await apply(revision)
      onProgress?.({ elapsedSeconds: elapsed(), revision, kills: killed })
    }
    await killing
    await sending.end()
    const { answers, longestMs, deliveries: taken, orders } = sending.sent
    // What the caps held goes on by itself within a minute. A person need not wait so long.
    const isClosed = async () => {
      const { data } = await ask('GET', '/purchases?hold=spend_cap&limit=200').catch(() => ({ data: { items: [] } }))
      for (const { id } of (data?.items ?? []) as { id: string }[])
        await ask('POST', `/purchases/${id}/release`, {}).catch(() => 0)
      const [row] = await db.query(
        build.select({ closed: count() }).from(storeOrders).where(isNotNull(storeOrders.closedAt)),
      )
      return row?.closed === orders.size
    }
    await until('the last orders', isClosed)
    await until('the last deliveries', async () => (await db.query(dueDeliveries(Date.now(), 1))).length === 0)
    for (const one of processes) {
      const code = await one.stop()
      if (code !== 0) faults.push(`${one.name} ended with ${code}`)
    }

    for (const [answer, times] of Object.entries(answers)) {
      // While the only process is killed, nothing listens.
      if (!['200', '202', '503', '504', 'no answer'].includes(answer)) faults.push(`${times} requests got: ${answer}`)
    }
    const rows = await db.query(
      build.select({ deliveryId: deliveries.deliveryId, state: deliveries.state }).from(deliveries),
    )
    const stored = new Set(rows.map(({ deliveryId }) => deliveryId))
    const lost = [...taken].filter((id) => !stored.has(id))
    if (lost.length > 0) faults.push(`${lost.length} deliveries were acknowledged and are not stored: ${lost[0]}`)
    const unsettled = rows.filter(({ state }) => state !== 'applied' && state !== 'ignored')
    if (unsettled.length > 0) faults.push(`${unsettled.length} deliveries are ${unsettled[0]?.state}`)
    const { charges } = sandbox.world.report()
    if (charges.length !== orders.size) faults.push(`${orders.size} orders were charged ${charges.length} times`)
    const keys = shop.keys()
    const wrong = [...orders].filter((reference) => keys.get(`${reference}/1`)?.length !== 1)
    if (wrong.length > 0) faults.push(`${wrong.length} orders have not one key: ${wrong[0]}`)
    const { orderId, ceilingMinor, firstSentAt, supplierProductId } = purchases
    const bought = await db.query(
      build.select({ orderId, ceilingMinor, firstSentAt, supplierProductId }).from(purchases),
    )
    const taking = await db.query(
      build
        .select({ id: storeOrders.id, reference: storeOrders.reference, at: storeOrders.receivedAt })
        .from(storeOrders),
    )
    const costs = await db.query(
      build.select({ productId: offers.productId, costMinor: offers.costMinor }).from(offers),
    )
    const costOf = new Map(costs.map(({ productId, costMinor }) => [productId, costMinor]))
    const orderOf = new Map(taking.map((one) => [one.id, one]))
    faults.push(
      ...judgeRevisions(
        applied,
        bought.flatMap((one) => {
          const order = orderOf.get(one.orderId)
          const costMinor = costOf.get(one.supplierProductId)
          if (!order || costMinor === undefined) return []
          return [
            {
              ...one,
              costMinor,
              reference: order.reference,
              begunAt: begunAt.get(order.reference) ?? 0,
              takenAt: order.at,
            },
          ]
        }),
      ),
    )
    return {
      faults,
      revisions: applied.length - 1,
      kills: killed,
      answers,
      longestMs,
      longestChangeMs,
      deliveries: taken.size,
      orders: orders.size,
    }
  } finally {
    for (const one of processes) await one.kill()
    await db.close()
    balancer.close()
    await Promise.all([shop.close(), sandbox.close()])
  }
}

/** Makes a token of an admin, by the token that the process keeps for the command line on its machine. */
async function adminToken(url: string, dataDir: string): Promise<string> {
  const own = readFileSync(path.join(dataDir, 'owner.token'), 'utf8').trim()
  const answer = await fetch(`${url}/api/v1/tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${own}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ name: 'campaign', role: 'admin' }),
  })
  return ((await answer.json()) as { data: { token: string } }).data.token
}

interface ProcessParts {
  role: Role
  port: number
  config: string
  mistake?: string | undefined
}

/** A process of the service, as a supervisor starts and ends it. */
function openProcess(folder: string, { role, port, config, mistake }: ProcessParts) {
  const name = `${role} on port ${port}`
  const log = path.join(folder, `${role}-${port}.log`)
  let child: ChildProcess | undefined
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (!child) return null
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal)
      await once(child, 'exit')
    }
    return child.exitCode
  }
  return {
    name,
    start: async (): Promise<void> => {
      const file = openSync(log, 'a')
      const program = [...(mistake ? ['--import', REGISTER] : []), path.join(ROOT, 'src/quayside.js')]
      child = spawn(
        process.execPath,
        [...program, 'serve', '--config', config, ...(role === 'all' ? [] : ['--role', role])],
        {
          stdio: ['ignore', file, file],
          env: { ...process.env, ...(mistake && { QUAYSIDE_MISTAKE: mistake }) },
        },
      )
      closeSync(file)
      await until(name, async () => {
        if (child?.exitCode !== null) throw new Error(`${name} ended at its start: ${log}`)
        const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: 'close' } }).catch(
          () => undefined,
        )
        return answer?.ok
      })
    },
    /** @returns its exit code */
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  }
}

async function until(what: string, look: () => unknown): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; !(await look()); await sleep(100)) {
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`)
  }
}
