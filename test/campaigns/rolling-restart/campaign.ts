/**
 * Two web processes and two that may be the worker, on one PostgreSQL behind a load balancer: one after the other is ended by SIGTERM
 * and started again, while deliveries and store orders come. Nothing is lost, done twice or refused but by a 503 that says when to
 * come again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Role } from '../../../src/config/config.ts'
import { deliveries } from '../../../src/storage/schema.ts'
import { build } from '../../../src/storage/statement.ts'
import { openInstallation, type RealProcess, until } from './installation.ts'
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
export async function rollingRestart(options: RollingOptions): Promise<RollingOutcome> {
  const { folder, databaseUrl, seconds, everySeconds, onProgress } = options
  const installation = await openInstallation({ folder, databaseUrl, roles: ROLES })
  const { balancer, urls, token, db, processes } = installation
  const faults: string[] = []
  const restarts: Record<Role, number> = { web: 0, worker: 0, all: 0 }
  let drainMs = 0
  const stop = async (one: RealProcess): Promise<void> => {
    const { code, ms } = await one.stop()
    drainMs = Math.max(drainMs, Math.round(ms))
    if (code !== 0) faults.push(`${one.name} ended with ${code}`)
    if (ms > DRAIN_MS) faults.push(`${one.name} took ${Math.round(ms)} ms to end`)
  }
  try {
    await Promise.all(processes.map((one) => one.start()))
    await balancer.look()
    const skus = await installation.skusOnSale()
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
      if (one.role === 'web') await until('the balancer', () => balancer.ready().length === urls.length)
    }
    await sending.end()
    await until('the last orders', () => installation.areClosed(sending.sent))
    await until('the last deliveries', installation.areDeliveriesDone)
    await Promise.all(processes.map(stop))
    const { answers, longestMs, deliveries: taken, orders } = sending.sent
    for (const answer of Object.keys(answers)) {
      if (!['200', '202', '503'].includes(answer)) faults.push(`${answers[answer]} requests got: ${answer}`)
    }
    faults.push(...(await installation.faultsOf(sending.sent)))
    const rows = await db.query(
      build.select({ deliveryId: deliveries.deliveryId, attempts: deliveries.attempts }).from(deliveries),
    )
    const ours = rows.filter(({ deliveryId }) => deliveryId.startsWith('dlv_'))
    const twice = ours.length - new Set(ours.map(({ deliveryId }) => deliveryId)).size
    if (twice > 0) faults.push(`${twice} deliveries are stored twice`)
    const again = ours.filter(({ attempts }) => attempts !== 1)
    if (again.length > 0) faults.push(`${again.length} deliveries were not settled once: ${again[0]?.deliveryId}`)
    return { faults, restarts, drainMs, answers, longestMs, deliveries: taken.size, orders: orders.size }
  } finally {
    await installation.close()
  }
}
