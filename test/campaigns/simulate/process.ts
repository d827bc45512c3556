/** One Quayside process: the flows wired as `app.ts` wires them, on virtual time and the simulated road. */

import type { Catalogue } from '../../../src/catalogue/context.ts'
import { refreshOffer } from '../../../src/catalogue/offers.ts'
import { createSyncRunner } from '../../../src/catalogue/sync.ts'
import type { Dialect } from '../../../src/dialect/dialect.ts'
import { messageOf } from '../../../src/errors.ts'
import { createIds } from '../../../src/ids.ts'
import { type ProcessDeps, processDue } from '../../../src/inbox/process.ts'
import { type Inbox, openInbox } from '../../../src/inbox/receive.ts'
import { createPump, type Pump, watchClock } from '../../../src/jobs.ts'
import { publishNext } from '../../../src/listings/publish.ts'
import type { Log } from '../../../src/log.ts'
import { releaseHeld } from '../../../src/ordering/actions.ts'
import { closeOrders, deliverDue, type Fulfilment } from '../../../src/ordering/fulfil.ts'
import {
  type CrashPoint,
  freshPace,
  type OrderingPolicy,
  type Pump as PumpName,
} from '../../../src/ordering/ordering.ts'
import { placeDue } from '../../../src/ordering/place.ts'
import { afterClockJump, resume } from '../../../src/ordering/recover.ts'
import { refreshDue } from '../../../src/ordering/refresh.ts'
import { explainBalance, readBalance } from '../../../src/reconciliation/balance.ts'
import { mapBack, recogniseRestore } from '../../../src/reconciliation/restore.ts'
import { createSweepRunner, type SweepRunner } from '../../../src/reconciliation/sweep.ts'
import type { Secret } from '../../../src/secret.ts'
import type { Change, Database } from '../../../src/storage/database.ts'
import { latestBalance } from '../../../src/storage/evidence.ts'
import type { Marker } from '../../../src/storage/marker.ts'
import { backendStore } from '../../../src/stores/backend/backend.ts'
import { createSupplier, type Supplier } from '../../../src/supplier/client.ts'
import { openVault } from '../../../src/vault/vault.ts'
import { sellingTerms } from '../../support/selling.ts'
import type { Chance } from './chance.ts'
import { createDisk } from './disk.ts'
import type { EventLog } from './event-log.ts'
import { createLife, type Life } from './life.ts'
import { type Road, SUPPLIER_ORIGIN } from './network.ts'
import { CALLBACK_URL, type SimStore } from './store.ts'
import type { Timeline } from './timeline.ts'

export const STORE = 'sim-ab12cd34'

const HOUR = 3_600_000
/** The program looks every 5 s; a restore is over some minutes later either way. */
const MAPPING_MS = 20_000

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
  pumps: Record<PumpName, Pump>
  /** What the schedule does every two seconds, for the pumps that have something to do. */
  tick: (due: PumpName[]) => Promise<void>
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
  let stopping = false
  const stopped = () => stopping || life.isDead()
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
  const backend = backendStore({
    callbackUrl: CALLBACK_URL,
    secrets: () => [vault.subKey(`callback:${STORE}`)],
    now,
    newId,
    connections: store.connections(life),
    timeout: timeoutOn(life),
  })
  const pumps = {} as Record<PumpName, Pump>
  const wake = (pump: PumpName): void => pumps[pump]?.wake()
  const base = { db, vault, supplier, dialect, now, monotonic, newId, log, random, wake }
  const catalogue: Catalogue = {
    ...base,
    stores: [{ id: STORE }],
    wake: (_what, productIds) =>
      void freed(productIds).catch((error: unknown) => log.warn('holds.kept', { error: messageOf(error) })),
    requestSync: (cause) => syncs.follow(cause),
    reads: new Map(),
  }
  const syncs = createSyncRunner(catalogue)
  const freed = async (productIds: string[]): Promise<void> => {
    for (const productId of productIds) {
      await releaseHeld(ordering, 'out_of_stock', productId)
      await releaseHeld(ordering, 'ceiling', productId)
    }
  }
  const ordering: Fulfilment = {
    ...base,
    owner: name,
    policy: parts.policy,
    stores: [{ id: STORE }],
    pace: freshPace(),
    refreshOffer: (productId) => refreshOffer(catalogue, productId),
    readBalance: async () => {
      const [before] = await db.query(latestBalance())
      const reading = await readBalance(catalogue)
      if (!before || reading.amountMinor > before.amountMinor) await releaseHeld(ordering, 'balance')
      sweeps.behind(await explainBalance(ordering, reading), 'balance')
    },
    storeOf: (id) => (id === STORE ? backend : undefined),
    mark: (attempt) => parts.marker.note(attempt),
    beginEpoch: (epoch) => parts.marker.begin({ epoch, attempt: null }),
    at: reached,
  }
  const sweeps = createSweepRunner(ordering)
  const warned = (what: string) => (error: unknown) => log.warn(what, { error: messageOf(error) })
  const inbox = await openInbox({
    ...base,
    countReceived: () => {},
    onStored: () => wake('inbox'),
    onStale: () => void sweeps.recent('stale').catch(warned('sweep.failed')),
  })
  const inboxWork: ProcessDeps = {
    ...base,
    countProcessed: () => {},
    refreshOffer: ordering.refreshOffer,
    readBalance: ordering.readBalance,
  }
  const selling = { id: STORE, terms: sellingTerms() }
  const publisher = { ...base, stores: [selling], storeOf: ordering.storeOf }
  const work: Record<PumpName, () => Promise<number>> = {
    inbox: () => processDue(inboxWork),
    place: async () => (await placeDue(ordering)) + (await closeOrders(ordering)),
    refresh: () => refreshDue(ordering),
    outbox: async () => (await deliverDue(ordering)) + (await closeOrders(ordering)),
    publish: () => publishNext(publisher, selling),
  }
  for (const pump of Object.keys(work) as PumpName[]) {
    pumps[pump] = createPump(pump, work[pump], { log, stopped })
  }
  const clockJumped = watchClock(now, monotonic)
  const repeat = (ms: number, what: string, job: () => Promise<unknown>): void => {
    // At the full quarter of an hour and so on, as cron has it.
    life.after(ms - (timeline.now() % ms), () => {
      if (stopped()) return
      void job().catch(warned(what))
      repeat(ms, what, job)
    })
  }
  /** Looks every few seconds, like the program; ends when there is nothing to map, since only a start can change that. */
  async function mapping(): Promise<void> {
    while (!stopped() && (await mapBack(ordering).catch(warned('restore.failed'))) !== 'over') {
      await life.sleep(MAPPING_MS)
    }
  }
  if (fresh) {
    // Its only store was made with its database.
    await recogniseRestore({ db, marker: parts.marker, now, newId, log, stores: [] })
    await resume(ordering)
  }
  repeat(every.balanceMs, 'balance.unread', ordering.readBalance)
  repeat(every.sweepMs, 'sweep.failed', () => sweeps.recent('schedule'))
  repeat(24 * HOUR, 'sweep.failed', () => sweeps.start('nightly'))
  repeat(every.syncMs, 'sync.failed', () => syncs.finish('schedule'))
  void ordering.readBalance().catch(warned('balance.unread'))
  syncs.follow('start')
  // Whoever was mapping may have died while another one lived on.
  void mapping()
  events.add(name, 'started', { fresh })
  return {
    name,
    life,
    ordering,
    supplier,
    inbox,
    pumps,
    sweeps,
    tick: async (due) => {
      if (clockJumped()) {
        await afterClockJump(ordering)
      }
      for (const pump of due) wake(pump)
    },
    stopping: () => stopping,
    acknowledged: () => quietly('acknowledged'),
    stop: async (drainMs) => {
      stopping = true
      ordering.pace.pausedUntil = Number.POSITIVE_INFINITY
      log.info('service.stopping')
      const idle = Promise.all([syncs.idle(), sweeps.idle(), ...Object.values(pumps).map((pump) => pump.idle())])
      await Promise.race([idle, life.sleep(drainMs)])
      log.info('service.stopped')
      life.die()
    },
  }
}

function logOf(events: EventLog, name: string, life: Life): Log {
  const add = (event: string, fields?: object) => (life.isDead() ? undefined : events.add(name, event, fields))
  return { info: add, warn: add, error: add }
}

const timeoutOn =
  (life: Life) =>
  (ms: number): AbortSignal => {
    const abort = new AbortController()
    life.after(ms, () => abort.abort(new DOMException('too late', 'TimeoutError')))
    return abort.signal
  }
