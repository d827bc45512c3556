/**
 * Wires the flows: the context that each flow works on, the workers that run it, and who wakes whom. The program, the
 * simulation and the tests start the same runtime and differ only in what they pass in.
 */

import type { Catalogue } from './catalogue/context.ts'
import { refreshOffer } from './catalogue/offers.ts'
import { createSyncRunner } from './catalogue/sync.ts'
import type { Context } from './context.ts'
import type { Dialect } from './dialect/dialect.ts'
import { messageOf } from './errors.ts'
import { pollOrders, storesDue } from './inbox/poll.ts'
import { processDue } from './inbox/process.ts'
import { openInbox, type ReceiveDeps } from './inbox/receive.ts'
import { storeSource } from './inbox/sources.ts'
import { newPage, pathOfPage } from './keys/key-pages.ts'
import { lateWords } from './keys/texts.ts'
import type { SellingStore } from './listings/assess.ts'
import { type Publisher, publishNext, storesUnqueued } from './listings/publish.ts'
import type { Log } from './log.ts'
import { createHourlyCounts } from './observe/metrics.ts'
import { releaseForOffers } from './ordering/actions.ts'
import { closeOrders } from './ordering/close.ts'
import {
  type CrashPoint,
  freshPace,
  noteAnnounced,
  type Ordering,
  type OrderingPolicy,
  type Pace,
  readSince,
  type WorkerName,
} from './ordering/context.ts'
import { actsWithinMs, deliverDue, type Fulfilment } from './ordering/fulfil.ts'
import { passSlowFirsts } from './ordering/one-first.ts'
import { watchSupplier } from './ordering/outages.ts'
import { placeDue } from './ordering/place.ts'
import { readDueOrders, readOrderNow } from './ordering/read-orders.ts'
import { afterClockJump, resume } from './ordering/recover.ts'
import { refreshDue } from './ordering/refresh.ts'
import { settleDue } from './ordering/settle.ts'
import { beforeAsking, type ShopOfOrders, takeFromShop } from './ordering/shop-orders.ts'
import type { Acts } from './processes/acting.ts'
import { watchClock } from './processes/clock-watch.ts'
import { checkBalance } from './reconciliation/balance.ts'
import { reattachOrders } from './reconciliation/restore.ts'
import { createSweepRunner } from './reconciliation/sweep.ts'
import { need } from './storage/database.ts'
import { storesToRead } from './storage/entitlements.ts'
import type { Marker } from './storage/marker.ts'
import { storesWithUpdates } from './storage/outbox.ts'
import { storesToPublish } from './storage/publications.ts'
import { connectStore, storeReadingOf } from './storage/stores.ts'
import type { Store, StoreOrderRead } from './stores/store.ts'
import type { Supplier } from './supplier/client.ts'

export interface RuntimeParts extends Context {
  supplier: Supplier
  dialect: Dialect
  /** The configured stores. `delayMinutes`: how long a paid order of a shop waits before it is bought. */
  stores: readonly (SellingStore & {
    delayMinutes?: number
    growth?: 'buy' | 'ask' | undefined
    /** The language of its customers, as a tag such as `de`. */
    language?: string | undefined
    /** A store that is off gets no listing, and no order of it is read. */
    selling?: 'on' | 'paused' | 'off'
  })[]
  /** Ids of all stores that there ever were. Default: those of `stores`. */
  storeIds?: readonly string[]
  /** The adapter of a store; undefined when the configuration no longer has the store. */
  storeOf: (id: string) => Store | undefined
  policy: OrderingPolicy
  /** What placing has learned of the same supplier in this process. Default: nothing. */
  pace?: Pace | undefined
  /** Name of this process in leases. */
  owner: string
  /** Where the pages of keys are reached, without a slash at its end; absent where there are none. */
  keyPagesAt?: string | undefined
  /** The marker file beside the database; absent for a database in memory or on a server. */
  marker?: Pick<Marker, 'note' | 'begin'>
  hooks?: Hooks
}

export interface Hooks {
  /** Called at each named instant, where a test may end the process. */
  at?: (point: CrashPoint) => void
  /** This hook and the next count for the metrics: deliveries that came in, and deliveries that were processed. */
  countReceived?: ReceiveDeps['countReceived']
  countProcessed?: (state: string) => void
  /** Notes for the metrics how long a hand-over took: milliseconds since its order came. */
  timeKeys?: (ms: number) => void
  /** For simulations: true once the simulated process counts as killed. Its workers then do nothing more. */
  isDead?: () => boolean
  /** False: no worker runs by itself, and a test calls `work` instead. Default: true. */
  mayWake?: boolean
  /** Whether this process is the worker, where several share the database. Default: it is, because there is no other. */
  acts?: Acts
  /** Wakes the worker of that name in the process that is the worker. */
  tell?: (worker: WorkerName) => void
  /** Asks the process that is the worker for a sweep. */
  askSweep?: () => Promise<void>
}

export type Runtime = Awaited<ReturnType<typeof startRuntime>>

export async function startRuntime(parts: RuntimeParts) {
  const { db, now, monotonic, log, hooks = {} } = parts
  const { isDead = () => false, acts = () => true } = hooks
  const halt = new AbortController()
  const hourly = createHourlyCounts({ db, now })
  let workers: Record<WorkerName, Worker> | undefined
  const wake = (name: WorkerName, store?: string): void => {
    if (name === 'place') passSlowFirsts(flows.ordering)
    if (!acts()) hooks.tell?.(name)
    else if (hooks.mayWake !== false) workers?.[name].wake(store)
  }
  const flows = await openFlows(parts, { wake, count: hourly.count, signal: halt.signal })
  const { ordering, catalogue, inbox, syncs, sweeps } = flows
  const { batches, queues } = workOf(parts, flows)
  const running = { log, stopped: () => halt.signal.aborted || isDead() }
  workers = {
    ...mapped(batches, (name, batch) => createWorker(name, batch, running)),
    ...mapped(queues, (name, queue) => workerOfStores(name, queue, running)),
  }
  const all = Object.entries(workers) as [WorkerName, Worker][]
  const clockJumped = watchClock(now, monotonic)
  return {
    ordering,
    catalogue,
    inbox,
    /** Counts of what happens in each hour, for the plots. */
    hourly,
    syncs,
    sweeps,
    /** Starts a sweep after any process got a stale delivery: other deliveries may be lost. */
    sweepForStale: flows.sweepForStale,
    /** Runs one batch of a worker. Resolves with how much the batch did, 0 when nothing is due. */
    work: { ...batches, ...mapped(queues, (_, queue) => () => onceThrough(queue)) },
    wake,
    wakeAll: () => {
      for (const [name] of all) wake(name)
    },
    /** Recovers the work that the previous process left unfinished. */
    resume: () => resume(ordering),
    /** Corrects what a jump of the wall clock made wrong. @returns whether the clock jumped since the previous call */
    checkClock: async () => {
      const jumped = clockJumped()
      if (jumped) await afterClockJump(ordering)
      return jumped
    },
    /** Does one step of finding the orders of a restored database again. Resolves with `over` when no order is left to find. */
    reattachOrders: () => reattachOrders(ordering),
    isStopping: () => halt.signal.aborted,
    /** Stops the taking of new work. Work that is under way goes on. */
    stop: () => {
      halt.abort()
      // The batch that is under way sends no further purchase either.
      ordering.pace.pausedUntil = Number.POSITIVE_INFINITY
    },
    /** Resolves when nothing is under way. */
    idle: () => Promise.all([syncs.idle(), sweeps.idle(), ...all.map(([, worker]) => worker.idle())]),
  }
}

const mapped = <K extends string, V, R>(record: Record<K, V>, to: (name: K, value: V) => R): Record<K, R> =>
  Object.fromEntries(Object.entries<V>(record).map(([name, value]) => [name, to(name as K, value)])) as Record<K, R>

interface FlowNeeds {
  wake: Ordering['wake']
  count: Ordering['count']
  /** Aborted once the process stops. */
  signal: AbortSignal
}

type Flows = Awaited<ReturnType<typeof openFlows>>

async function openFlows(parts: RuntimeParts, { wake, count, signal }: FlowNeeds) {
  const { db, vault, supplier, dialect, stores, storeOf, now, monotonic, random, newId, log, marker } = parts
  const { at = nothing, countReceived = nothing, timeKeys = nothing } = parts.hooks ?? {}
  const { acts = () => true, askSweep = async () => undefined } = parts.hooks ?? {}
  const logged = (event: string) => (error: unknown) => log.warn(event, { error: messageOf(error) })
  const context = { db, vault, supplier, dialect, now, monotonic, random, newId, log, wake }
  const catalogue: Catalogue = {
    ...context,
    stores,
    signal,
    releaseHolds: (productIds) => void releaseForOffers(ordering, productIds).catch(logged('holds.kept')),
    requestSync: (cause) => syncs.follow(cause),
    reads: new Map(),
  }
  const syncs = createSyncRunner(catalogue)
  const shops = await openShops(parts)
  const ordering: Fulfilment = {
    ...context,
    storeIds: parts.storeIds ?? stores.map(({ id }) => id),
    stores: stores.map((store) => ({ ...store, wishesByStanding: !storeOf(store.id)?.retryTaken })),
    storeOf,
    lateWords: (store, counts) => lateWords(stores.find(({ id }) => id === store)?.language, counts),
    count,
    timeKeys,
    ...(parts.keyPagesAt !== undefined && pagesAt(parts.keyPagesAt, context)),
    signal,
    owner: parts.owner,
    policy: parts.policy,
    pace: parts.pace ? { ...parts.pace, pausedUntil: 0 } : freshPace(),
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
  const storeSources = [...shops.values()].flatMap(
    (shop) => storeSource(shop.id, shop.store, asking(ordering, shop)) ?? [],
  )
  const inbox = await openInbox({
    ...context,
    storeSources,
    count,
    countReceived,
    onStored: () => wake('inbox'),
    onStale: () => (acts() ? sweepForStale() : void askSweep().catch(logged('sweep.failed'))),
  })
  return { ordering, catalogue, inbox, syncs, sweeps, shops, storeSources, sweepForStale }
}

const nothing = () => {}

/** @param address where the pages of keys are reached */
const pagesAt = (
  address: string,
  context: Pick<Context, 'db' | 'vault' | 'now'>,
): Pick<Fulfilment, 'newPage' | 'keysUrl'> => ({
  newPage: (orderId) => newPage(context, orderId),
  keysUrl: async (orderId) => `${address}${await pathOfPage(context, orderId)}`,
})

/** Returns a function to call before a shop is asked for orders. It resolves with a second function, for each order read. */
const asking = (ordering: Fulfilment, shop: ShopOfOrders) => async () => {
  const asked = await beforeAsking(ordering, shop.id)
  return (order: StoreOrderRead) => takeFromShop(ordering, shop, order, asked)
}

/** Returns a function for each worker, which does one batch; for workers that serve stores one by one, a queue of stores. */
function workOf(parts: RuntimeParts, { ordering, shops, storeSources }: Flows) {
  const { db, now, monotonic, hooks = {} } = parts
  const stores = parts.stores.filter(isLive)
  const processing = {
    ...ordering,
    storeSources,
    countProcessed: hooks.countProcessed ?? nothing,
    announced: (purchaseId: string) => noteAnnounced(ordering, purchaseId),
  }
  const publisher: Publisher = { ...ordering, stores }
  const selling = new Map(stores.map((store) => [store.id, store]))
  let lookedAt = Number.NEGATIVE_INFINITY
  const batches = {
    inbox: () => processDue(processing),
    place: async () => {
      const placed = (await settleDue(ordering)) + (await placeDue(ordering))
      await watchSupplier(ordering)
      return placed
    },
    refresh: () => refreshDue(ordering),
  }
  /** Each queue finds by one statement the stores that have something due. The other stores cost nothing. */
  const queues: Record<'outbox' | 'publish' | 'poll' | 'read', StoreQueue> = {
    outbox: {
      due: () => db.query(storesWithUpdates(now())),
      run: (store) => deliverDue(ordering, store),
      rest: async () => (await deliverDue(ordering, undefined)) + (await closeOrders(ordering)),
    },
    publish: {
      // Changed policies or rates, and what a store sells by itself, put no store into the queue. So all stores are looked at at times.
      due: async () => {
        const queued = await db.query(storesToPublish(now()))
        if (hooks.mayWake !== false && monotonic() - lookedAt < LOOK_AT_ALL_MS) return queued
        lookedAt = monotonic()
        return [...queued, ...(await storesUnqueued(publisher))]
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
        const actsMs = actsWithinMs(shop.store)
        return pollOrders(ordering, { id, ordersSince, order, actsMs, asking: asking(ordering, shop) })
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
  return { batches, queues }
}

const isLive = ({ selling }: RuntimeParts['stores'][number]): boolean => selling !== 'off'

type Shops = Map<string, ShopOfOrders & { store: Store }>

async function openShops({ db, now, stores, storeOf }: RuntimeParts): Promise<Shops> {
  const shops = stores.filter(isLive).flatMap(({ id, delayMinutes = 0 }) => {
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

/** The time after which all stores are looked at again, for changes that put no store into the queue. */
const LOOK_AT_ALL_MS = 60_000

/* The workers. Each works through a queue whenever something may be due. */

/** Runs its work whenever there may be something to do, and never twice at once. */
export interface Worker {
  /** Asks for a run, which starts at once or after the run that is under way. @param store only the queue of this store is run */
  wake(store?: string): void
  /** Resolves when nothing runs any more. */
  idle(): Promise<void>
}

/**
 * Makes a worker from a function that does a batch of due work and returns how much it did.
 *
 * The function is called again at once while it finds work, and once more when the worker was woken meanwhile. An error ends
 * the run and is logged. The next wake tries again.
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

/** Work of which each store has a queue of its own. */
export interface StoreQueue {
  /** The stores with something to do now. It may name a store twice. */
  due: () => Promise<{ store: string }[]>
  /** Does a batch of one store. @returns how much was done */
  run: (store: string) => Promise<number>
  /** Does a batch of the work that belongs to no store. @returns how much was done */
  rest?: () => Promise<number>
}

/** Runs one batch for each store that has something to do. @returns how much was done */
export async function onceThrough({ due, run, rest }: StoreQueue): Promise<number> {
  const stores = new Set((await due()).map(({ store }) => store))
  const done = await Promise.all([...[...stores].map(run), rest?.() ?? 0])
  return done.reduce((all, one) => all + one, 0)
}

/** Gives each store a worker of its own, so that a slow store delays no other store. */
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
    wake(store) {
      // A store that has had no worker yet is found by the look at all stores.
      const known = store === undefined ? undefined : workers.get(store)
      if (known) return known.wake()
      others?.wake()
      look.wake()
    },
    idle: async () => {
      await Promise.all([look.idle(), others?.idle()])
      await Promise.all([...workers.values()].map((worker) => worker.idle()))
    },
  }
}
