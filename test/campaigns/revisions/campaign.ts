/**
 * Settings are changed again and again beside orders and deliveries, and processes are killed meanwhile. Each revision has a ceiling
 * of its own, and now and then a cap that lets nothing be bought: so each purchase shows by which revision it was bought.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Role } from '../../../src/config/config.ts'
import { offers, purchases, storeOrders } from '../../../src/storage/schema.ts'
import { build } from '../../../src/storage/statement.ts'
import { moveSettings } from '../../support/move-settings.ts'
import { openInstallation, until } from '../rolling-restart/installation.ts'
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

const REGISTER = path.join(import.meta.dirname, '../mistakes/register.ts')
/** Each revision has the ceiling of the one before and one per cent more. */
const FIRST_PERCENT = 10
/** In every fourth revision nothing may be bought within an hour. */
const isCapped = (revision: number): boolean => revision % 4 === 3

export async function changeSettings(options: RevisionsOptions): Promise<RevisionsOutcome> {
  const { folder, databaseUrl, seconds, revisions, kills, mistake, onProgress } = options
  const roles: Role[] = databaseUrl === undefined ? ['all'] : ['web', 'worker', 'web', 'worker']
  const installation = await openInstallation({
    folder,
    databaseUrl,
    roles,
    settings: { ordering: { tickSeconds: 1 } },
    prepare: moveSettings,
    ...(mistake !== undefined && { preload: { file: REGISTER, env: { QUAYSIDE_MISTAKE: mistake } } }),
  })
  const { balancer, urls, token, db, processes } = installation
  const faults: string[] = []
  const [first] = processes
  if (!first) throw new Error('there is no process')
  try {
    await Promise.all(processes.map((one) => one.start()))
    await balancer.look()
    const admin = await adminToken(urls[0] ?? '', databaseUrl === undefined ? folder : path.join(folder, 'data-0'))
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
    const skus = await installation.skusOnSale()
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
      return installation.areClosed(sending.sent)
    }
    await until('the last orders', isClosed)
    await until('the last deliveries', installation.areDeliveriesDone)
    for (const one of processes) {
      const { code } = await one.stop()
      if (code !== 0) faults.push(`${one.name} ended with ${code}`)
    }

    for (const [answer, times] of Object.entries(answers)) {
      // While the only process is killed, nothing listens.
      if (!['200', '202', '503', '504', 'no answer'].includes(answer)) faults.push(`${times} requests got: ${answer}`)
    }
    faults.push(...(await installation.faultsOf(sending.sent)))
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
    await installation.close()
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
