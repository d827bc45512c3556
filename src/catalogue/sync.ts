/**
 * The catalogue: what the supplier sells, kept true by sync runs and by the supplier's events.
 *
 * A sync run reads the catalogue page by page, the next one asked for while one is being stored, and holds two at a time.
 * A page on which offers differ is one commit: the offers, the changes that people see, the products queued for the
 * stores, and the cursor. One on which nothing changed writes nothing. After a kill a run goes on where it was.
 *
 * What may go wrong: a page that cannot be had is stepped over, and the run ends as failed; a list that is short, or that
 * moves while it is read, leaves the run complete but with a doubt in its `error`. Either way nothing is counted as
 * missing, and only an offer that two runs without doubt missed is marked gone (`gone.ts`).
 */
import { factOf } from '../domain/offer.ts'
import { Failure, messageOf } from '../errors.ts'
import { first, need, retryStale } from '../storage/database.ts'
import {
  assertNoRunningSync,
  changeSyncRun,
  insertSyncRun,
  runningSyncRuns,
  type SyncRun,
  syncRunById,
} from '../storage/runs.ts'
import { putSetting, readSetting } from '../storage/settings.ts'
import type { Catalogue } from './context.ts'
import { countMissing, endDoubt, markMissing } from './gone.ts'
import { applyOffers, createSeen, enqueueListings, type Seen } from './offers.ts'
import { type BrokenPage, type FetchedPage, openPages, type Pages } from './pages.ts'
import { ALL_READ, afterBrokenPage, afterPage, endStateOf } from './progress.ts'

export interface StartedSync {
  runId: string
  /** False when a run was under way: it is that one, whether it is being read or was cut short by a crash. */
  created: boolean
}

/** Tries to start a run while others start and end theirs in between. */
const STARTS_MAX = 5

/**
 * Creates a run, or finds the one that is under way: there is never more than one. `runSync` reads it.
 *
 * @param cause why: `schedule`, `start`, `tier_changed`, `resumed` (one that was cut short has ended), or who asked
 */
export async function startSync(
  { db, now, newId, log }: Pick<Catalogue, 'db' | 'now' | 'newId' | 'log'>,
  cause: string,
): Promise<StartedSync> {
  // Where another caller starts one in between, the next try finds it.
  return retryStale(STARTS_MAX, async () => {
    const running = await first(db, runningSyncRuns())
    if (running) return { runId: running.id, created: false }
    const runId = newId()
    await db.commit([
      assertNoRunningSync(),
      insertSyncRun({ id: runId, cause, state: 'running', startedAt: now(), cursor: 1 }),
    ])
    log.info('sync.started', { runId, reason: cause })
    return { runId, created: true }
  })
}

/**
 * Reads a run to its end, from its cursor; one that has ended is left alone.
 *
 * @returns the run: `complete`, `failed` with the supplier's reason, or still `running` when the signal stopped it
 * @throws Failure `not_found` when there is no such run; `conflict` when it is being read elsewhere at the same time
 */
export async function runSync(catalogue: Catalogue, runId: string): Promise<SyncRun> {
  const run = await need(catalogue.db, syncRunById(runId), 'sync run', runId)
  return run.state === 'running' ? (await readRun(catalogue, run)).run : run
}

const RESUMED = 'resumed after a stop, and the list may have moved meanwhile: nothing was counted as missing'

/** A page on which nothing changed is not written by itself; the progress of the run is, this often. */
const STORE_EVERY_MS = 1_000

/** New offers that a run records one by one: a first import has as many as the catalogue, and its count says it. */
const RECORDED_NEW_MAX = 1_000

export interface ReadOptions {
  /** New offers that the run records one by one; the others are counted. Default: 1,000. */
  recordedNewMax?: number
  /** Called after each page, with the run as it is then. */
  onPage?: (page: FetchedPage | BrokenPage, run: SyncRun) => Promise<void>
}

/** A run as it is being read. The stored one is behind by pages on which nothing changed, and by no others. */
export interface SyncReading extends Required<ReadOptions> {
  run: SyncRun
  stored: SyncRun
  storedAt: number
  pages: Pages
  /** What the supplier counted at the last page, where it counts. */
  total: number | undefined
  brokenInARow: number
  seen: Seen
  /** Offers that came with a cost that cannot be believed. */
  costFaults: number
}

/**
 * Reads a run from its cursor to its end, a page at a time.
 *
 * @returns the run: `complete`, `failed` with the supplier's reason, or still `running` when the signal stopped it
 * @throws Failure `conflict` when the same run is being read elsewhere
 */
export async function readRun(
  catalogue: Catalogue,
  started: SyncRun,
  { recordedNewMax = RECORDED_NEW_MAX, onPage = async () => {} }: ReadOptions = {},
): Promise<SyncReading> {
  const resumed = started.pages > 0 && started.cursor !== ALL_READ
  // Cut short after its last page, before it was counted which offers were missed.
  const cursor = started.cursor > (started.pagesTotal ?? Number.POSITIVE_INFINITY) ? ALL_READ : started.cursor
  const reading: SyncReading = {
    run: resumed ? { ...started, cursor, error: started.error ?? RESUMED } : started,
    stored: started,
    storedAt: catalogue.now(),
    pages: openPages(catalogue),
    total: undefined,
    brokenInARow: 0,
    seen: createSeen(),
    costFaults: 0,
    recordedNewMax,
    onPage,
  }
  while (reading.run.state === 'running' && reading.run.cursor !== ALL_READ) {
    if (catalogue.signal?.aborted) {
      await store(catalogue, reading, {})
      return reading
    }
    await readNextPage(catalogue, reading)
  }
  if (reading.run.state === 'running') await finish(catalogue, reading)
  logEnd(catalogue, reading)
  await sayPageSize(catalogue, reading)
  return reading
}

/** Reads the page at the cursor. An offer that left the list moved all that follow it forward: the total shows it. */
async function readNextPage(catalogue: Catalogue, reading: SyncReading): Promise<void> {
  const { pages, run, brokenInARow } = reading
  const page = await pages.take(run.cursor)
  if (!('facts' in page)) {
    reading.brokenInARow += 1
    await store(catalogue, reading, afterBrokenPage(run, page, { inARow: brokenInARow, now: catalogue.now() }))
    await reading.onPage(page, reading.run)
    return
  }
  const { total } = page.facts
  const moved = reading.total !== undefined && total !== undefined && total !== reading.total
  if (moved && total < (reading.total ?? 0) && run.cursor > 1) {
    // What slid over the edge between the two pages is on the one before now.
    const again = await pages.again(run.cursor - 1)
    // Where it cannot be read, the next run brings it: this run has its doubt anyway.
    if ('facts' in again) await storePage(catalogue, reading, again, { again: true, moved })
  }
  if (total !== undefined) reading.total = total
  reading.brokenInARow = 0
  await storePage(catalogue, reading, page, { again: false, moved })
}

/**
 * @param how `again`: it was read a second time, because the list had moved; `moved`: the supplier counted the list
 *   differently than at the page before
 */
async function storePage(
  catalogue: Catalogue,
  reading: SyncReading,
  fetched: FetchedPage,
  { again, moved }: { again: boolean; moved: boolean },
): Promise<void> {
  const { number, readAt, items, facts: page, unreadable } = fetched
  const { run, stored, seen } = reading
  const facts = items.map((offer) => factOf(offer, readAt))
  const now = catalogue.now()
  let next = run
  let written: SyncRun | undefined
  const recordedNewMax = reading.recordedNewMax - run.offersNew
  await applyOffers(catalogue, { facts, readAt, runId: run.id, seen, recordedNewMax, outOfTurn: again }, (plan) => {
    const set = afterPage(run, page, { ...plan, records: items.length }, { again, moved, now })
    const firstUnreadable = run.firstUnreadable ?? unreadable?.first ?? null
    next = { ...run, ...set, firstUnreadable }
    const mayWait = plan.changes.length === 0 && next.state === 'running'
    written = undefined
    if (mayWait && Math.abs(now - reading.storedAt) < STORE_EVERY_MS) return []
    // Every page was read, and who was missed is still to be counted.
    written = next.cursor === ALL_READ && next.error === null ? { ...next, cursor: run.cursor + 1 } : next
    const key = `${run.id}:${number}${again ? '+' : ''}`
    return [
      changeSyncRun(stored, progressOf(written)),
      ...enqueueListings(catalogue, plan.listingsChanged, { key, now }),
    ]
  })
  reading.run = next
  reading.costFaults += facts.filter(({ costFault }) => costFault !== null).length
  if (written !== undefined) Object.assign(reading, { stored: written, storedAt: now })
  await reading.onPage(fetched, next)
}

/** Counts what was missed where nothing leaves a doubt, marks what is gone, and ends the run. */
async function finish(catalogue: Catalogue, reading: SyncReading): Promise<void> {
  const { stored, seen } = reading
  const counts = reading.run.error === null && stored.cursor !== ALL_READ
  let missing = counts ? await countMissing(catalogue, reading.run, seen) : []
  const error = missing.length > 0 ? await endDoubt(catalogue, reading.run, reading.pages) : undefined
  if (error !== undefined) {
    missing = []
    reading.run = { ...reading.run, error }
  }
  const { run } = reading
  if (stored.cursor !== ALL_READ) {
    await catalogue.db.commit([...missing, changeSyncRun(stored, progressOf(run))])
    reading.stored = run
  }
  if (run.error === null) {
    reading.run = await markMissing(catalogue, run)
    reading.stored = reading.run
  }
  await store(catalogue, reading, {
    state: endStateOf(run),
    finishedAt: catalogue.now(),
  })
}

const PAGE_SIZE = 'catalogue_page_size'

/** Says once that the supplier keeps to smaller pages than are asked for, and again when the size is another one. */
async function sayPageSize({ db, now, log }: Catalogue, { run, pages }: SyncReading): Promise<void> {
  const size = pages.pageSize()
  if (size === undefined || run.state !== 'complete' || run.error !== null) return
  const { kept, asked } = size
  if ((await readSetting(db, PAGE_SIZE)) === String(kept)) return
  await db.commit([putSetting(PAGE_SIZE, String(kept), now())])
  log.warn('sync.page_size', { runId: run.id, count: kept, detail: `${asked} were asked for` })
}

/** What may change of a run while it is read. */
function progressOf(run: SyncRun): Partial<SyncRun> {
  const { id, cause, startedAt, ...rest } = run
  return rest
}

async function store({ db, now }: Catalogue, reading: SyncReading, set: Partial<SyncRun>): Promise<SyncRun> {
  const run = { ...reading.run, ...set }
  await db.commit([changeSyncRun(reading.stored, progressOf(run))])
  Object.assign(reading, { run, stored: run, storedAt: now() })
  return run
}

function logEnd({ log }: Catalogue, { run, pages: requests, costFaults }: SyncReading): void {
  const fields = {
    ...endOf(run),
    reason: run.cause,
    requests: requests.asked(),
    costFaults,
    fieldsUnreadable: requests.unread(),
  }
  if (run.state === 'complete') log.info('sync.complete', fields)
  else log.warn('sync.failed', { ...fields, cursor: run.cursor })
}

export interface SyncRunner {
  /** Starts a run, or joins the one under way, and returns it as it is now. */
  start: (cause: string) => Promise<SyncRun>
  /** Starts or joins a run and resolves when it has ended. */
  finish: (cause: string) => Promise<void>
  /** Asks for one more run after the one under way. */
  follow: (cause: string) => void
  idle: () => Promise<void>
}

/** Reads one sync run at a time, and follows a run that a crash cut short with one that reads every page. */
export function createSyncRunner(catalogue: Catalogue): SyncRunner {
  let running: Promise<void> | undefined
  let next: string | undefined

  const read = (runId: string): void => {
    running ??= runSync(catalogue, runId)
      .then(() => undefined)
      .catch((error: unknown) => catalogue.log.warn('sync.broken_off', { runId, error: messageOf(error) }))
      .finally(() => {
        running = undefined
        const cause = next
        next = undefined
        if (cause !== undefined && !catalogue.signal?.aborted) void start(cause).catch(() => undefined)
      })
  }
  const start = async (cause: string): Promise<SyncRun> => {
    if (catalogue.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
    const { runId, created } = await startSync(catalogue, cause)
    const run = await first(catalogue.db, syncRunById(runId))
    // What it read before it was cut short may be long ago: a run that reads all of it follows.
    if (!created && running === undefined && run?.state === 'running' && run.pages > 0) next ??= 'resumed'
    read(runId)
    if (!run) throw new Failure('internal', `the sync run ${runId} is gone`)
    return run
  }
  return {
    start,
    finish: async (cause) => {
      await start(cause)
      await running
    },
    follow: (cause) => {
      if (running !== undefined) next = cause
      else
        void start(cause).catch((error: unknown) => catalogue.log.warn('sync.broken_off', { error: messageOf(error) }))
    },
    idle: async () => {
      while (running !== undefined) await running
    },
  }
}

/** What the log says of a run that has ended, a dry one too. */
export const endOf = (run: SyncRun) => ({
  runId: run.id,
  pages: run.pages,
  pagesBroken: run.pagesBroken,
  offersSeen: run.offersSeen,
  offersNew: run.offersNew,
  offersChanged: run.offersChanged,
  offersUnreadable: run.offersUnreadable,
  offersGone: run.offersGone,
  durationMs: (run.finishedAt ?? run.startedAt) - run.startedAt,
  error: run.error,
  requestId: run.requestId,
})
