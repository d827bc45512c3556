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
import { pollOrders, storesDue } from './inbox/poll.ts'
import { processDue } from './inbox/process.ts'
import { type Inbox, openInbox, type ReceiveDeps } from './inbox/receive.ts'
import { storeSource } from './inbox/sources.ts'
import type { SellingStore } from './listings/assess.ts'
import { type Publisher, publishNext } from './listings/publish.ts'
import type { Log } from './log.ts'
import { createHourlyCounts, type HourlyCounts } from './observe/hourly-counts.ts'
import { releaseForOffers } from './ordering/actions.ts'
import { closeOrders } from './ordering/close.ts'
import { type CrashPoint, freshPace, type OrderingPolicy, readSince, type WorkerName } from './ordering/context.ts'
import { actsWithinMs, deliverDue, type Fulfilment } from './ordering/fulfil.ts'
import { passSlowFirsts } from './ordering/one-first.ts'
import { watchSupplier } from './ordering/outages.ts'
import { placeDue } from './ordering/place.ts'
import { readDueOrders, readOrderNow } from './ordering/read-orders.ts'
import { afterClockJump, resume } from './ordering/recover.ts'
import { refreshDue } from './ordering/refresh.ts'
import { settleDue } from './ordering/settle.ts'
import { beforeAsking, type ShopOfOrders, takeFromShop } from './ordering/shop-orders.ts'
import { noteAnnounced } from './ordering/watch.ts'
import type { Acts } from './processes/acting.ts'
import { checkBalance } from './reconciliation/balance.ts'
import { reattachOrders } from './reconciliation/restore.ts'
import { createSweepRunner, type SweepRunner } from './reconciliation/sweep.ts'
import { type Database, need } from './storage/database.ts'
import { storesToRead } from './storage/entitlements.ts'
import type { Marker } from './storage/marker.ts'
import { storesWithUpdates } from './storage/outbox.ts'
import { storesToPublish } from './storage/publications.ts'
import { connectStore, storeReadingOf } from './storage/store-readings.ts'
import type { Store, StoreOrderRead } from './stores/store.ts'
import type { Supplier } from './supplier/client.ts'
import type { RotationPoint } from './vault/keys.ts'

export interface RuntimeParts extends Context {
  supplier: Supplier
  dialect: Dialect
  /** The configured stores. `delayMinutes`: how long a paid order of a shop waits before it is bought. */
  stores: readonly (SellingStore & { delayMinutes?: number; growth?: 'buy' | 'ask' | undefined })[]
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
    if (name === 'place') passSlowFirsts(ordering)
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
  const shops = await openShops(context, parts)
  const ordering: Fulfilment = {
    ...context,
    stores: stores.map((store) => ({ ...store, wishesByStanding: !storeOf(store.id)?.retryTaken })),
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
    readAgain: async (store, reference) => {
      const shop = shops.get(store)
      if (shop) await readOrderNow(ordering, shop, reference, { isForDelivery: true }).catch(logged('order.unread'))
    },
    ...(marker && {
      mark: (attempt: string) => marker.note(attempt),
      beginEpoch: (epoch: number) => marker.begin({ epoch, attempt: null }),
    }),
  }
  const sweeps = createSweepRunner(ordering)
  const sweepForStale = () => void sweeps.recent('stale').catch(logged('sweep.failed'))
  const asking = (shop: ShopOfOrders) => async () => {
    const asked = await beforeAsking(ordering, shop.id)
    return (order: StoreOrderRead) => takeFromShop(ordering, shop, order, asked)
  }
  const storeSources = [...shops.values()].flatMap((shop) => storeSource(shop.id, shop.store, asking(shop)) ?? [])
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
  const selling = new Map(stores.map((store) => [store.id, store]))
  let lookedAt = Number.NEGATIVE_INFINITY
  /** Each is asked by one statement which stores have something due: the others cost nothing. */
  const queues: Record<'outbox' | 'publish' | 'poll' | 'read', StoreQueue> = {
    outbox: {
      due: () => db.query(storesWithUpdates(now())),
      run: async (store) => (selling.has(store) ? deliverDue(ordering, store) : 0),
      rest: async () => (await deliverDue(ordering, undefined)) + (await closeOrders(ordering)),
    },
    publish: {
      // Other policies and rates, and what a store sells by itself, stand in no queue.
      due: async () => {
        if (hooks.mayWake !== false && monotonic() - lookedAt < LOOK_AT_ALL_MS) return db.query(storesToPublish(now()))
        lookedAt = monotonic()
        return stores.map(({ id }) => ({ store: id }))
      },
      run: async (id) => {
        const store = selling.get(id)
        return store ? publishNext(publisher, store) : 0
      },
    },
    poll: {
      due: () => db.query(storesDue(now())),
      run: async (id) => {
        const shop = shops.get(id)
        const { ordersSince, order } = shop?.store ?? {}
        if (!shop || !ordersSince) return 0
        return pollOrders(context, { id, ordersSince, order, actsMs: actsWithinMs(shop.store), asking: asking(shop) })
      },
    },
    read: {
      due: () => db.query(storesToRead(now(), readSince(ordering))),
      run: async (id) => {
        const shop = shops.get(id)
        return shop ? readDueOrders(ordering, shop) : 0
      },
    },
  }
  const work: Runtime['work'] = {
    inbox: () => processDue(processing),
    place: async () => {
      const placed = (await settleDue(ordering)) + (await placeDue(ordering))
      await watchSupplier(ordering)
      return placed
    },
    refresh: () => refreshDue(ordering),
    outbox: () => onceThrough(queues.outbox),
    publish: () => onceThrough(queues.publish),
    poll: () => onceThrough(queues.poll),
    read: () => onceThrough(queues.read),
  }
  for (const name of ['inbox', 'place', 'refresh'] as const) {
    workers[name] = createWorker(name, work[name], { log, stopped })
  }
  for (const name of ['outbox', 'publish', 'poll', 'read'] as const) {
    workers[name] = workerOfStores(name, queues[name], { log, stopped })
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

/** The stores whose orders are read from them, by their ids. */
async function openShops(
  { db, now }: Pick<Context, 'db' | 'now'>,
  { stores, storeOf }: Pick<RuntimeParts, 'stores' | 'storeOf'>,
): Promise<Map<string, ShopOfOrders & { store: Store }>> {
  const shops = stores.flatMap(({ id, delayMinutes = 0 }) => {
    const store = storeOf(id)
    return store?.readOrder || store?.ordersSince ? [{ id, delayMs: delayMinutes * 60_000, store }] : []
  })
  if (shops.length > 0) await db.commit(shops.map(({ id }) => connectStore(id, now())))
  return new Map(
    await Promise.all(
      shops.map(async (shop) => {
        const { connectedAt } = await need(db, storeReadingOf(shop.id), 'store', shop.id)
        return [shop.id, { ...shop, connectedAt }] as const
      }),
    ),
  )
}

/** Between two looks at all stores, for what stands in no queue. */
const LOOK_AT_ALL_MS = 60_000

/** Work that each store has of its own. */
interface StoreQueue {
  /** The stores with something to do now. */
  due: () => Promise<{ store: string }[]>
  /** Does a batch of one store. @returns how much that was */
  run: (store: string) => Promise<number>
  /** Work that is of no store. */
  rest?: () => Promise<number>
}

/** One batch of each store that has something to do. */
async function onceThrough({ due, run, rest }: StoreQueue): Promise<number> {
  const done = await Promise.all([...(await due()).map(({ store }) => run(store)), rest?.() ?? 0])
  return done.reduce((all, one) => all + one, 0)
}

/** One worker a store: a store that answers slowly delays no other. */
export function workerOfStores(
  name: string,
  { due, run, rest }: StoreQueue,
  parts: { log: Log; stopped: () => boolean },
): Worker {
  const workers = new Map<string, Worker>()
  const workerOf = (store: string): Worker => {
    const known = workers.get(store) ?? createWorker(name, () => run(store), parts)
    workers.set(store, known)
    return known
  }
  const others = rest && createWorker(name, rest, parts)
  const look = createWorker(
    name,
    async () => {
      for (const { store } of await due()) workerOf(store).wake()
      return 0
    },
    parts,
  )
  return {
    wake() {
      others?.wake()
      look.wake()
    },
    idle: async () => {
      await Promise.all([look.idle(), others?.idle()])
      await Promise.all([...workers.values()].map((worker) => worker.idle()))
    },
  }
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
