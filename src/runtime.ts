/**
 * The flows, wired: which context each of them works on, which workers run them, and who wakes whom. The program, the
 * simulation and the tests start the same runtime and differ only in what they pass in.
 */

import type { Catalogue } from './catalogue/context.ts'
import { refreshOffer } from './catalogue/offers.ts'
import { createSyncRunner, type SyncRunner } from './catalogue/sync.ts'
import type { Context } from './context.ts'
import type { Dialect } from './dialect/dialect.ts'
import { messageOf } from './errors.ts'
import { pollOrders } from './inbox/poll.ts'
import { processDue } from './inbox/process.ts'
import { type Inbox, openInbox, type ReceiveDeps } from './inbox/receive.ts'
import { storeSource } from './inbox/sources.ts'
import type { SellingStore } from './listings/assess.ts'
import { type Publisher, publishNext } from './listings/publish.ts'
import type { Log } from './log.ts'
import { createHourlyCounts, type HourlyCounts } from './observe/hourly-counts.ts'
import { releaseForOffers } from './ordering/actions.ts'
import { closeOrders } from './ordering/close.ts'
import { type CrashPoint, freshPace, type OrderingPolicy, type WorkerName } from './ordering/context.ts'
import { actsWithinMs, deliverDue, type Fulfilment } from './ordering/fulfil.ts'
import { watchSupplier } from './ordering/outages.ts'
import { placeDue } from './ordering/place.ts'
import { afterClockJump, resume } from './ordering/recover.ts'
import { refreshDue } from './ordering/refresh.ts'
import { takeFromShop } from './ordering/shop-orders.ts'
import { noteAnnounced } from './ordering/watch.ts'
import type { Acts } from './processes/acting.ts'
import { checkBalance } from './reconciliation/balance.ts'
import { reattachOrders } from './reconciliation/restore.ts'
import { createSweepRunner, type SweepRunner } from './reconciliation/sweep.ts'
import { type Database, need } from './storage/database.ts'
import type { Marker } from './storage/marker.ts'
import { connectStore, storeReadingOf } from './storage/store-readings.ts'
import type { Store, StoreOrderRead } from './stores/store.ts'
import type { Supplier } from './supplier/client.ts'
import type { RotationPoint } from './vault/keys.ts'

export interface RuntimeParts extends Context {
  supplier: Supplier
  dialect: Dialect
  /** The configured stores. `delayMinutes`: how long a paid order of a shop waits before it is bought. */
  stores: readonly (SellingStore & { delayMinutes?: number })[]
  /** The adapter of a store; undefined when the configuration no longer has the store. */
  storeOf: (id: string) => Store | undefined
  policy: OrderingPolicy
  /** Name of this process in leases. */
  owner: string
  /** The file beside the database; absent for a database in memory. */
  marker?: Pick<Marker, 'note' | 'begin'>
  hooks?: Hooks
}

export interface Hooks {
  /** Called at each named instant, where a test may end the process. */
  at?: (point: CrashPoint) => void
  /** Counts for the metrics: a delivery that came in, and one that was processed. */
  countReceived?: ReceiveDeps['countReceived']
  countProcessed?: (state: string) => void
  /** Times a hand-over for the metrics: milliseconds since its order came. */
  timeKeys?: (ms: number) => void
  /** True when the process died without being able to say so: in a simulation. */
  isDead?: () => boolean
  /** False: no worker runs by itself, and a test calls `work` instead. Default: true. */
  mayWake?: boolean
  /** Whether this process is the worker of those that share the database. Default: there is no other. */
  acts?: Acts
  /** Leaves a sweep to the worker. */
  askSweep?: () => Promise<void>
}

export interface Runtime {
  ordering: Fulfilment
  catalogue: Catalogue
  inbox: Inbox
  /** What happens in each hour, for the plots. */
  hourly: HourlyCounts
  syncs: SyncRunner
  sweeps: SweepRunner
  /** A stale delivery came, here or at another process: others may be lost. */
  sweepForStale: () => void
  /** One batch of each worker; resolves with how much it did, 0 when nothing is due. */
  work: Record<WorkerName, () => Promise<number>>
  wake: (worker: WorkerName) => void
  wakeAll: () => void
  /** Brings to rest what the process before left under way. */
  resume: () => Promise<unknown>
  /** Corrects what a jump of the wall clock made wrong. @returns whether there was one since the last call */
  checkClock: () => Promise<boolean>
  /** One step of finding the orders of a restored database again; `over` when there is none to find. */
  reattachOrders: () => ReturnType<typeof reattachOrders>
  isStopping: () => boolean
  /** Takes no new work; what is under way goes on. */
  stop: () => void
  /** Resolves when nothing is under way. */
  idle: () => Promise<void>
}

export async function startRuntime(parts: RuntimeParts): Promise<Runtime> {
  const {
    db,
    vault,
    supplier,
    dialect,
    stores,
    storeOf,
    now,
    monotonic,
    random,
    newId,
    log,
    marker,
    hooks = {},
  } = parts
  const nothing = () => {}
  const { at = nothing, countReceived = nothing, countProcessed = nothing, timeKeys = nothing } = hooks
  const { isDead = () => false, acts = () => true, askSweep = async () => undefined } = hooks
  const halt = new AbortController()
  const stopped = (): boolean => halt.signal.aborted || isDead()
  const workers = {} as Record<WorkerName, Worker>
  const wake = (name: WorkerName): void => {
    if (hooks.mayWake !== false && acts()) workers[name].wake()
  }
  const logged = (event: string) => (error: unknown) => log.warn(event, { error: messageOf(error) })
  const hourly = createHourlyCounts({ db, now })
  const { count } = hourly
  const context = { db, vault, supplier, dialect, now, monotonic, random, newId, log, wake }
  const catalogue: Catalogue = {
    ...context,
    stores,
    signal: halt.signal,
    releaseHolds: (productIds) => void releaseForOffers(ordering, productIds).catch(logged('holds.kept')),
    requestSync: (cause) => syncs.follow(cause),
    reads: new Map(),
  }
  const syncs = createSyncRunner(catalogue)
  const ordering: Fulfilment = {
    ...context,
    stores,
    storeOf,
    count,
    timeKeys,
    signal: halt.signal,
    owner: parts.owner,
    policy: parts.policy,
    pace: freshPace(),
    at,
    refreshOffer: async (productId) => {
      await refreshOffer(catalogue, productId)
      wake('publish')
    },
    checkBalance: async () => sweeps.behind(await checkBalance(ordering, catalogue), 'balance'),
    ...(marker && {
      mark: (attempt: string) => marker.note(attempt),
      beginEpoch: (epoch: number) => marker.begin({ epoch, attempt: null }),
    }),
  }
  const sweeps = createSweepRunner(ordering)
  const sweepForStale = () => void sweeps.recent('stale').catch(logged('sweep.failed'))
  const shops = await openShops(ordering, stores)
  const storeSources = shops.flatMap(({ id, adapter, take }) => storeSource(id, adapter, take, context.now) ?? [])
  const inbox = await openInbox({
    ...context,
    storeSources,
    count,
    countReceived,
    onStored: () => wake('inbox'),
    onStale: () => (acts() ? sweepForStale() : void askSweep().catch(logged('sweep.failed'))),
  })
  const processing = {
    ...context,
    storeSources,
    countProcessed,
    announced: (purchaseId: string) => noteAnnounced(ordering, purchaseId),
    refreshOffer: ordering.refreshOffer,
    checkBalance: ordering.checkBalance,
  }
  const publisher: Publisher = { ...context, stores, storeOf }
  const publishing = stores.map((store) => () => publishNext(publisher, store))
  const handsOver = (store: string) => () => deliverDue(ordering, store)
  const handing = [
    ...stores.map(({ id }) => handsOver(id)),
    async () => (await deliverDue(ordering, undefined)) + (await closeOrders(ordering)),
  ]
  const polling = shops.flatMap(({ id, adapter, take }) => {
    const { ordersSince, order } = adapter
    return ordersSince
      ? [() => pollOrders(context, { id, ordersSince, order, actsMs: actsWithinMs(adapter), take })]
      : []
  })
  const each = async (runs: (() => Promise<number>)[]): Promise<number> =>
    (await Promise.all(runs.map((run) => run()))).reduce((all, done) => all + done, 0)
  const work: Runtime['work'] = {
    inbox: () => processDue(processing),
    place: async () => {
      const placed = await placeDue(ordering)
      await watchSupplier(ordering)
      return placed
    },
    refresh: () => refreshDue(ordering),
    outbox: () => each(handing),
    publish: () => each(publishing),
    poll: () => each(polling),
  }
  for (const name of ['inbox', 'place', 'refresh'] as const) {
    workers[name] = createWorker(name, work[name], { log, stopped })
  }
  // One worker a store: a store that answers slowly delays no other.
  const ofStores = { outbox: handing, publish: publishing, poll: polling }
  for (const name of ['outbox', 'publish', 'poll'] as const) {
    workers[name] = together(ofStores[name].map((run) => createWorker(name, run, { log, stopped })))
  }
  const clockJumped = watchClock(now, monotonic)

  return {
    ordering,
    catalogue,
    inbox,
    hourly,
    syncs,
    sweeps,
    sweepForStale,
    work,
    wake,
    wakeAll: () => {
      for (const name of Object.keys(workers) as WorkerName[]) wake(name)
    },
    resume: () => resume(ordering),
    checkClock: async () => {
      const jumped = clockJumped()
      if (jumped) await afterClockJump(ordering)
      return jumped
    },
    reattachOrders: () => reattachOrders(ordering),
    isStopping: () => halt.signal.aborted,
    stop: () => {
      halt.abort()
      // Purchases that wait to be sent stay planned, also in a batch that is under way.
      ordering.pace.pausedUntil = Number.POSITIVE_INFINITY
    },
    idle: async () => {
      await Promise.all([syncs.idle(), sweeps.idle(), ...Object.values(workers).map((worker) => worker.idle())])
    },
  }
}

/** The stores whose orders are read from them, each with what takes an order of it. */
async function openShops(ordering: Fulfilment, stores: RuntimeParts['stores']) {
  const { db, now } = ordering
  const shops = stores.flatMap(({ id, delayMinutes = 0 }) => {
    const adapter = ordering.storeOf(id)
    return adapter?.readOrder || adapter?.ordersSince ? [{ id, delayMinutes, adapter }] : []
  })
  if (shops.length > 0) await db.commit(shops.map(({ id }) => connectStore(id, now())))
  return Promise.all(
    shops.map(async ({ id, delayMinutes, adapter }) => {
      const { connectedAt } = await need(db, storeReadingOf(id), 'store', id)
      const { reportRefusal, retryTaken, retryAdvice } = adapter
      const shop = { id, connectedAt, delayMs: delayMinutes * 60_000, reportRefusal, retryTaken, retryAdvice }
      const take = (order: StoreOrderRead, readAt?: number) => takeFromShop(ordering, shop, order, readAt)
      return { id, adapter, take }
    }),
  )
}

/** Runs its work whenever there may be some, never twice at once. */
export interface Worker {
  /** Asks for a run: starts one, or another one after the one under way. */
  wake(): void
  /** Resolves when nothing runs any more. */
  idle(): Promise<void>
}

/**
 * Makes a worker of a function that does a batch of what is due and returns how much that was.
 *
 * It is called again at once while it found work, and once more when it was woken meanwhile. An error ends the run, is
 * logged, and the next wake tries again.
 */
export function createWorker(
  name: string,
  run: () => Promise<number>,
  { log, stopped }: { log: Log; stopped: () => boolean },
): Worker {
  let running: Promise<void> | undefined
  let again = false
  const loop = async (): Promise<void> => {
    do {
      again = false
      try {
        while (!stopped() && (await run()) > 0) again = false
      } catch (error) {
        log.warn('worker.failed', { kind: name, error: messageOf(error) })
      }
    } while (again && !stopped())
  }
  return {
    wake() {
      if (stopped()) return
      if (running !== undefined) {
        again = true
        return
      }
      running = loop().finally(() => {
        running = undefined
        if (again) this.wake()
      })
    },
    idle: async () => {
      while (running !== undefined) await running
    },
  }
}

/** Several workers as one. */
export const together = (workers: Worker[]): Worker => ({
  wake: () => {
    for (const worker of workers) worker.wake()
  },
  idle: async () => {
    await Promise.all(workers.map((worker) => worker.idle()))
  },
})

/** A backward jump of this much, or a forward one of that much, is no drift: times taken before it mean nothing. */
const JUMP_BACK_MS = 60_000
const JUMP_AHEAD_MS = 600_000

/**
 * Watches the wall clock against one that never jumps.
 *
 * @returns asks whether the clock has jumped since the last call
 */
export function watchClock(now: () => number, monotonic: () => number): () => boolean {
  let wall = now()
  let steady = monotonic()
  return () => {
    const drift = now() - wall - (monotonic() - steady)
    wall = now()
    steady = monotonic()
    return drift < -JUMP_BACK_MS || drift > JUMP_AHEAD_MS
  }
}

/**
 * Named instants at which a test ends the process, as if it were killed there: before and after each commit, send and
 * answer. Without a registered hook none of this has an effect.
 */
export type ServicePoint =
  | CrashPoint
  /** Before any commit at all, and after it. */
  | 'committing'
  | 'committed'
  /** A delivery is stored; its sender does not know yet. */
  | 'received'
  /** The sender has its answer, and not one turn of the event loop has passed since. */
  | 'acknowledged'

export type AtPoint = (point: ServicePoint | RotationPoint) => void

/** The database, with the instants around each of its commits. */
export const databaseWith = (at: AtPoint | undefined, db: Database): Database =>
  at === undefined
    ? db
    : {
        ...db,
        commit: async (changes) => {
          at('committing')
          const touched = await db.commit(changes)
          at('committed')
          return touched
        },
      }

/** The way in of deliveries, with the instants around the answer of those that were stored. */
export const receiveWith = (at: AtPoint | undefined, receive: Inbox['receive']): Inbox['receive'] =>
  at === undefined
    ? receive
    : async (request) => {
        const receipt = await receive(request)
        if (receipt.outcome !== 'stored') return receipt
        at('received')
        // After the continuation that awaits this and answers, and before anything that waits for a turn.
        process.nextTick(at, 'acknowledged')
        return receipt
      }
