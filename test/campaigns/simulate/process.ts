/** One Quayside process: the runtime of the program, on virtual time and the simulated road. */
import type { Dialect } from '../../../src/dialect/dialect.ts'
import { messageOf } from '../../../src/errors.ts'
import { createIds } from '../../../src/ids.ts'
import type { Inbox } from '../../../src/inbox/receive.ts'
import { provisionShops } from '../../../src/inbox/webhooks.ts'
import type { Log } from '../../../src/log.ts'
import type { CrashPoint, OrderingPolicy, WorkerName } from '../../../src/ordering/context.ts'
import type { Fulfilment } from '../../../src/ordering/fulfil.ts'
import { alertHeld, reportLate } from '../../../src/ordering/late.ts'
import { recogniseRestore } from '../../../src/reconciliation/restore.ts'
import type { SweepRunner } from '../../../src/reconciliation/sweep.ts'
import { startRuntime } from '../../../src/runtime.ts'
import type { Secret } from '../../../src/secret.ts'
import type { Change, Database } from '../../../src/storage/database.ts'
import type { Marker } from '../../../src/storage/marker.ts'
import { createSupplier, type Supplier } from '../../../src/supplier/client.ts'
import { openVault } from '../../../src/vault/vault.ts'
import type { Chance } from './chance.ts'
import { createDisk } from './disk.ts'
import type { EventLog } from './event-log.ts'
import { createLife, type Life } from './life.ts'
import { type Road, SUPPLIER_ORIGIN } from './network.ts'
import { type SimStore, STORE } from './store.ts'
import type { Timeline } from './timeline.ts'

const HOUR = 3_600_000
/** The program looks after the webhooks of its shops as often. */
const QUARTER_MS = HOUR / 4
/** The program looks every minute at what waits for long; the shortest wait that it tells people of takes ten. */
const HELD_MS = HOUR / 6
/** The program looks every 5 s; a restore is over some minutes later either way. */
const REATTACH_MS = 20_000

/** Where a process may die: the program's own named points, around each commit, and after each answer to a request. */
export type DeathPoint = CrashPoint | 'committing' | 'committed' | 'acknowledged'

export interface ProcessParts {
  name: string
  timeline: Timeline
  chance: Chance
  log: EventLog
  engine: Database
  /** Lies beside the database, and is not put back with it. */
  marker: Marker
  keyEncryptionKey: Secret
  apiKey: Secret
  dialect: Dialect
  policy: OrderingPolicy
  road: Road
  store: SimStore
  /** How far the machine's wall clock is off, in milliseconds. */
  clockOffsetMs: () => number
  /** Called at each point; returns whether the process dies of it. */
  diesAt: (point: DeathPoint) => boolean
  onDeath: () => void
  onStored: () => void
  mayCommit: (changes: Change[]) => void
  /** The client as the flows see it; a fault may stand between. */
  supplierOf: (supplier: Supplier) => Supplier
  every: { balanceMs: number; sweepMs: number; syncMs: number }
}

export interface SimProcess {
  name: string
  life: Life
  ordering: Fulfilment
  supplier: Supplier
  inbox: Inbox
  /** What the schedule does every two seconds, for the workers that have something to do. */
  tick: (due: WorkerName[]) => Promise<void>
  stopping: () => boolean
  /** Its answer to a request has left. */
  acknowledged: () => void
  /** SIGTERM: finishes what is under way, at most so long, then ends. */
  stop: (drainMs: number) => Promise<void>
  sweeps: SweepRunner
}

/** @param fresh no other process uses the database: what the one before left behind is picked up */
export async function startProcess(parts: ProcessParts, fresh: boolean): Promise<SimProcess> {
  const { name, timeline, chance, engine, dialect, log: events, store, every } = parts
  const life = createLife(timeline)
  const now = () => timeline.now() + parts.clockOffsetMs()
  const monotonic = timeline.now
  const reached = (point: DeathPoint): void => {
    if (life.isDead() || !parts.diesAt(point)) return
    events.add(name, 'dies', { point })
    life.die()
    parts.onDeath()
    throw new Error(`dead at ${point}`)
  }
  const quietly = (point: 'committing' | 'committed' | 'acknowledged'): void => {
    try {
      reached(point)
    } catch {
      // Nothing of it comes back: the gate behind this point is closed.
    }
  }
  const { onStored, mayCommit } = parts
  const db = createDisk({ engine, life, chance: chance.named('disk'), at: quietly, onStored, mayCommit })
  const log = logOf(events, name, life)
  const newId = createIds(now, chance.bytes)
  const random = chance.next
  const vault = await openVault({ database: engine, keyEncryptionKey: parts.keyEncryptionKey, now })
  const supplier = parts.supplierOf(
    createSupplier({
      baseUrl: `${SUPPLIER_ORIGIN}/v1`,
      dialect,
      apiKey: parts.apiKey,
      now,
      random,
      sleep: life.sleep,
      network: parts.road.of({ name, life }),
    }),
  )
  const adapter = store.open({ life, vault, now, newId, timeout: timeoutOn(life) })
  const runtime = await startRuntime({
    db,
    vault,
    supplier,
    dialect,
    stores: [store.selling],
    storeOf: (id) => (id === STORE ? adapter : undefined),
    policy: parts.policy,
    owner: name,
    now,
    monotonic,
    random,
    newId,
    log,
    marker: parts.marker,
    hooks: { at: reached, isDead: life.isDead },
  })
  const { ordering, inbox, syncs, sweeps } = runtime
  const stopped = () => runtime.isStopping() || life.isDead()
  const warned = (what: string) => (error: unknown) => log.warn(what, { error: messageOf(error) })
  const repeat = (ms: number, what: string, job: () => Promise<unknown>): void => {
    // At the full quarter of an hour and so on, as cron has it.
    life.after(ms - (timeline.now() % ms), () => {
      if (stopped()) return
      void job().catch(warned(what))
      repeat(ms, what, job)
    })
  }
  /** Looks every few seconds, like the program; ends when there is nothing to reattach, since only a start can change that. */
  async function reattaching(): Promise<void> {
    while (!stopped() && (await runtime.reattachOrders().catch(warned('restore.failed'))) !== 'over') {
      await life.sleep(REATTACH_MS)
    }
  }
  if (fresh) {
    // Its only store was made with its database.
    await recogniseRestore({ db, marker: parts.marker, now, newId, log, storeIds: [] })
    await runtime.resume()
  }
  repeat(every.balanceMs, 'balance.unread', ordering.checkBalance)
  repeat(every.sweepMs, 'sweep.failed', () => sweeps.recent('schedule'))
  repeat(24 * HOUR, 'sweep.failed', () => sweeps.start('nightly'))
  repeat(HELD_MS, 'holds.unsaid', () => alertHeld(ordering))
  repeat(HELD_MS, 'late.unsaid', () => reportLate(ordering))
  repeat(every.syncMs, 'sync.failed', () => syncs.finish('schedule'))
  const { publicUrl } = store
  if (publicUrl !== null) {
    const provision = () => provisionShops({ ...ordering, publicUrl })
    repeat(QUARTER_MS, 'shops.unprovisioned', provision)
    void provision().catch(warned('shops.unprovisioned'))
  }
  void ordering.checkBalance().catch(warned('balance.unread'))
  syncs.follow('start')
  // The process that reattached orders may have died while another one lived on.
  void reattaching()
  events.add(name, 'started', { fresh })
  return {
    name,
    life,
    ordering,
    supplier,
    inbox,
    sweeps,
    tick: async (due) => {
      await runtime.checkClock()
      for (const worker of due) runtime.wake(worker)
    },
    stopping: runtime.isStopping,
    acknowledged: () => quietly('acknowledged'),
    stop: async (drainMs) => {
      runtime.stop()
      log.info('service.stopping')
      await Promise.race([runtime.idle(), life.sleep(drainMs)])
      log.info('service.stopped')
      life.die()
    },
  }
}

function logOf(events: EventLog, name: string, life: Life): Log {
  const add = (event: string, fields?: object) => (life.isDead() ? undefined : events.add(name, event, fields))
  return { info: add, warn: add, error: (event, fields) => add(event, { ...fields, isError: true }) }
}

const timeoutOn =
  (life: Life) =>
  (ms: number): AbortSignal => {
    const abort = new AbortController()
    life.after(ms, () => abort.abort(new DOMException('too late', 'TimeoutError')))
    return abort.signal
  }
