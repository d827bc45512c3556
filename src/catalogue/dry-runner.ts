import { on } from 'node:events'
import { rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Dialect } from '../dialect/dialect.ts'
import { codeOf, conflict, Failure, type FailureCode, type FailureReason, messageOf } from '../errors.ts'
import type { SellingStore } from '../listings/assess.ts'
import type { ListingDifference } from '../listings/listing-differences.ts'
import { databaseFileOf } from '../storage/data-folder.ts'
import { first } from '../storage/database.ts'
import { insertSyncRun, runningSyncRuns, type SyncRun, syncRunAsInserted } from '../storage/runs.ts'
import type { Store } from '../stores/store.ts'
import type { Catalogue } from './context.ts'
import type { Doubt, DryRunEnd, DryRunEvent, DryRunProgress, DryRunState, OfferChange } from './dry-run.ts'
import { endOf } from './sync.ts'

type Events = AsyncIterableIterator<DryRunEvent, void>

/** The dry runs of a service, one at a time: each costs as much of the supplier's rate limit as a sync run. */
export type DryRuns = ReturnType<typeof createDryRuns>

export interface KeptDryRun {
  state: 'running' | 'complete' | 'failed' | 'stopped'
  actor: string
  /** Epoch milliseconds. */
  startedAt: number
  endedAt: number | null
  error: string | null
  progress: DryRunProgress | null
  doubts: Doubt[]
  offers: OfferChange[]
  listings: ListingDifference[]
  end: DryRunEnd | null
}

/** What the thread of a dry run is given. None of these values is secret. */
export interface DryRunJob {
  database: string
  copy: string
  run: SyncRun
  most: number
  stores: SellingStore[]
  /** Ids of the shops whose products the thread asks for. */
  unread: string[]
  paging: Dialect['paging']
}

export type FromThread =
  | { type: 'copied' }
  | { type: 'read'; id: number; read: ReadKind; argument: unknown }
  | { type: 'report'; event: DryRunEvent; state: DryRunState }
  | { type: 'done' }
  | { type: 'failed'; failure: PlainFailure }

export type ReadKind = 'products' | 'product' | 'variants'
export type Variants = NonNullable<Store['variants']>

export type SupplierAnswer = { id: number } & ({ value: unknown } | { failure: PlainFailure })

/** A failure as it crosses to another thread, where the class of an error is lost. */
interface PlainFailure {
  code: FailureCode
  message: string
  reason?: FailureReason | undefined
}

interface RunnerParts {
  catalogue: Catalogue
  stores: readonly (SellingStore & { selling?: string })[]
  /** Reads what a shop sells that is not live yet: it has no listings. */
  storeOf?: (id: string) => Pick<Store, 'variants'> | undefined
  dataDir: string
}

export function createDryRuns(parts: RunnerParts) {
  const { catalogue } = parts
  const copy = path.join(parts.dataDir, 'dry-run.db')
  // A dry run that a crash cut short has left its copy behind.
  rmSync(copy, { force: true })
  let isUnderWay = false
  /**
   * Begins a dry run. A call of `return` on its events ends the run early.
   *
   * @throws Failure `conflict`, reason `dry_run_under_way`; `unavailable` while the service is being stopped or when the
   *   database cannot be copied
   */
  const begin = async ({ most }: { most: number }): Promise<Events> => {
    if (catalogue.signal?.aborted) throw stopping()
    if (isUnderWay) {
      throw conflict('dry_run_under_way', 'a dry run is under way; there is one at a time')
    }
    isUnderWay = true
    const hangUp = new AbortController()
    const free = () => {
      isUnderWay = false
    }
    const events = follow(parts, { copy, most, hangUp: hangUp.signal, free })
    // The first event is awaited here, so that `begin` throws when the dry run cannot begin.
    let first: Promise<IteratorResult<DryRunEvent, void>> | undefined = Promise.resolve(await events.next())
    const reported: Events = {
      [Symbol.asyncIterator]: () => reported,
      next: () => {
        const step = first ?? events.next()
        first = undefined
        return step
      },
      return: async () => {
        hangUp.abort()
        return events.return()
      },
    }
    return reported
  }
  let kept: { run: KeptDryRun; events: Events } | undefined
  return {
    begin,
    /** Begins a dry run whose result is kept, for people who look at it now and then. @throws as `begin` does */
    start: async (actor: string): Promise<KeptDryRun> => {
      const events = await begin({ most: KEPT_MAX })
      const run = newKept(actor, catalogue.now())
      kept = { run, events }
      void keepEvents(run, events, catalogue.now)
      return run
    },
    /** The newest dry run that `start` began since the start of the service; undefined: there was none. */
    latest: () => kept?.run,
    /** Ends the kept dry run early. Does nothing where no kept dry run is under way. */
    stop: async () => {
      await kept?.events.return?.()
    },
  }
}

/** The dry runs of a service whose database is on a server: there is no file to copy, so each is refused. */
export const noDryRuns: DryRuns = {
  begin: refused,
  start: refused,
  latest: () => undefined,
  stop: async () => undefined,
}

async function refused(): Promise<never> {
  const message = 'a dry run works on a copy of the database file, and the database is on a PostgreSQL server'
  throw new Failure('conflict', message)
}

/** How many changes of offers, and of listings, are kept at most: as many as a person reads. All changes are counted. */
const KEPT_MAX = 500
/** How many doubts are kept at most: every page of a supplier may bring a doubt. */
const DOUBTS_MAX = 100

const newKept = (actor: string, startedAt: number): KeptDryRun => ({
  state: 'running',
  actor,
  startedAt,
  endedAt: null,
  error: null,
  progress: null,
  doubts: [],
  offers: [],
  listings: [],
  end: null,
})

async function keepEvents(run: KeptDryRun, events: Events, now: () => number): Promise<void> {
  try {
    for await (const { type, ...said } of events) {
      if (type === 'progress') run.progress = said as DryRunProgress
      if (type === 'doubt' && run.doubts.length < DOUBTS_MAX) run.doubts.push(said as Doubt)
      if (type === 'offer') run.offers.push(said as OfferChange)
      if (type === 'listing') run.listings.push(said as ListingDifference)
      if (type !== 'end') continue
      const end = said as DryRunEnd
      Object.assign(run, { end, state: end.state, error: end.error })
    }
    if (run.state === 'running') run.state = 'stopped'
  } catch (error) {
    Object.assign(run, { state: 'failed', error: messageOf(error) })
  }
  run.endedAt = now()
}

const stopping = () => new Failure('unavailable', 'the service is being stopped')

interface Following {
  copy: string
  most: number
  hangUp: AbortSignal
  /** Called when the thread and the copy are gone. */
  free: () => void
}

/** Starts the thread, answers its reads, and passes its events on until it ends. */
async function* follow(
  { catalogue, stores, storeOf = () => undefined, dataDir }: RunnerParts,
  { copy, most, hangUp, free }: Following,
): AsyncGenerator<DryRunEvent, void> {
  const { db, newId, now, dialect, signal } = catalogue
  let requests = 0
  let state: DryRunState = {
    run: syncRunAsInserted({ id: newId(), cause: 'dry run', state: 'running', startedAt: now(), cursor: 1, dry: true }),
    costFaults: 0,
    fieldsUnreadable: null,
    listings: 0,
  }
  const { run } = state
  const job: DryRunJob = {
    database: databaseFileOf(dataDir),
    copy,
    run,
    most,
    stores: stores.map(({ id, policy }) => ({ id, policy })),
    unread: stores.flatMap(({ id, selling }) => (selling === 'off' && storeOf(id)?.variants ? [id] : [])),
    paging: dialect.paging,
  }
  let thread: Worker | undefined
  let ended: Partial<SyncRun> = { state: 'interrupted' }
  try {
    const underWay = await first(db, runningSyncRuns())
    const worker = new Worker(new URL('./dry-run-worker.ts', import.meta.url), { workerData: job })
    thread = worker
    const until = signal ? AbortSignal.any([signal, hangUp]) : hangUp
    const messages = on(worker, 'message', { close: ['exit'], signal: until }) as AsyncIterable<[FromThread]>
    for await (const [message] of messages) {
      if (message.type === 'copied') yield { type: 'start', at: run.startedAt, syncUnderWay: underWay?.id ?? null }
      if (message.type === 'read') {
        if (message.read === 'products') requests += 1
        void answer(catalogue.supplier, storeOf, message).then((value) => worker.postMessage(value))
      }
      if (message.type === 'report') {
        state = message.state
        yield message.event
      }
      if (message.type === 'done') {
        ended = {}
        return
      }
      if (message.type === 'failed') throw new Failure(message.failure.code, message.failure.message)
    }
    throw new Failure('internal', 'the thread of the dry run ended before its run')
  } catch (error) {
    if (hangUp.aborted) return
    if (signal?.aborted) throw stopping()
    ended = { state: 'failed', error: messageOf(error) }
    throw error
  } finally {
    await thread?.terminate()
    await rm(copy, { force: true })
    free()
    const finished = { ...state, run: { ...state.run, finishedAt: now(), ...ended } }
    logEnd(catalogue, finished, requests)
    await keep(catalogue, finished.run)
  }
}

async function answer(
  supplier: Catalogue['supplier'],
  storeOf: NonNullable<RunnerParts['storeOf']>,
  { id, read, argument }: Extract<FromThread, { type: 'read' }>,
): Promise<SupplierAnswer> {
  try {
    const reads = {
      products: () => supplier.products(argument as Parameters<typeof supplier.products>[0]),
      product: () => supplier.product(argument as string),
      variants: () => variantsOf(storeOf, argument as { store: string; cursor: string | null }),
    }
    return { id, value: await reads[read]() }
  } catch (error) {
    const reason = error instanceof Failure ? error.reason : undefined
    return { id, failure: { code: codeOf(error), message: messageOf(error), reason } }
  }
}

/** @throws Failure `unavailable` where the shop does not answer, which would look like a shop without products */
async function variantsOf(
  storeOf: NonNullable<RunnerParts['storeOf']>,
  { store, cursor }: { store: string; cursor: string | null },
) {
  const page = await storeOf(store)?.variants?.(cursor)
  if (page?.outcome === 'read') return page
  throw new Failure('unavailable', `the products of ${store} cannot be read: ${page?.detail}`)
}

/** Stores the run once it has ended. So no dry run is ever found under way, not even after a crash. */
async function keep({ db, log }: Catalogue, run: SyncRun): Promise<void> {
  try {
    await db.commit([insertSyncRun(run)])
  } catch (error) {
    log.warn('sync.dry_run_not_kept', { runId: run.id, error: messageOf(error) })
  }
}

function logEnd({ log }: Catalogue, state: DryRunState & { run: SyncRun }, requests: number): void {
  const { run, costFaults, fieldsUnreadable, listings } = state
  log.info('sync.dry_run', {
    ...endOf(run),
    requests,
    costFaults,
    fieldsUnreadable,
    count: listings,
    outcome: run.state,
  })
}
