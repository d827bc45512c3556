/**
 * The catalogue: what the supplier sells, kept true by sync runs and by the supplier's events.
 *
 * A sync run reads the catalogue page by page. It asks for the next page while it stores one, and holds two pages at most.
 * A page that differs from the stored offers is one commit: the offers, the changes that people see, the products queued for
 * the stores, and the cursor. Other pages write only the run's progress, once a second. A killed run resumes at its cursor,
 * which is the number of a page. Cursors of the supplier are not stored: with them, another run begins at the first page.
 *
 * A page that cannot be read is stepped over, and the run ends as failed. A list with fewer offers than the supplier counts, or
 * that moves while it is read, leaves the run complete but with a doubt in its `error`. In both cases no offer is counted as
 * missing. An offer is marked gone only when two runs without doubt missed it.
 */

import { factOf } from '../domain/offer.ts'
import { codeOf, Failure, messageOf } from '../errors.ts'
import { type Change, first, need, retryStale } from '../storage/database.ts'
import {
  countMissed,
  countOffers,
  insertOfferChanges,
  markGone,
  markListed,
  missedTwice,
  rowidsOfOffers,
} from '../storage/offers.ts'
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
import { applyOffers, CHANGED_ELSEWHERE, createSeen, enqueueListings, type Seen } from './offers.ts'
import { type BrokenPage, type FetchedPage, openPages, type Pages } from './pages.ts'
import { ALL_READ, afterBrokenPage, afterPage, doubt, endStateOf } from './progress.ts'

/** How often `startSync` tries, when other callers start and end runs in between. */
const STARTS_MAX = 5

/**
 * Creates a run, or finds the run that is under way: there is never more than one. `runSync` then reads the run.
 *
 * @returns `created` false when a run was under way already; `runId` is then that run, which may have been cut short by a crash
 * @param cause why: `schedule`, `start`, `tier_changed`, `resumed` (a run that was cut short has ended), or the name of who asked
 */
export async function startSync(
  { db, now, newId, log }: Pick<Catalogue, 'db' | 'now' | 'newId' | 'log'>,
  cause: string,
): Promise<{ runId: string; created: boolean }> {
  // When another caller starts a run in between, the next try finds that run.
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
 * Reads a run from its cursor to its end. A run that has ended is left alone.
 *
 * @returns the run: `complete`, `failed` with the supplier's reason, still `running` when the signal stopped it, or `interrupted`
 *   when it was cut short and the supplier's pages can be read from the first on alone
 * @throws Failure `not_found` when there is no such run; `conflict` when the run is being read elsewhere at the same time
 */
export async function runSync(catalogue: Catalogue, runId: string): Promise<SyncRun> {
  const run = await need(catalogue.db, syncRunById(runId), 'sync run', runId)
  return run.state === 'running' ? (await readRun(catalogue, run)).run : run
}

const RESUMED = 'resumed after a stop, and the list may have moved meanwhile: nothing was counted as missing'

const CUT_SHORT =
  'cut short by a stop: the supplier finds a page by the page before it alone, so a run begins at the first page'

/** How often the progress of a run is written while its pages bring no changes: a page without changes is not written at once. */
const STORE_EVERY_MS = 1_000

/** How many new offers a run records one by one. In a first import every offer is new, and the run's count says so. */
const RECORDED_NEW_MAX = 1_000

export interface ReadOptions {
  /** How many new offers the run records one by one; the others are only counted. Default: 1,000. */
  recordedNewMax?: number
  /** Called after each page, with the run as it is after that page. */
  onPage?: (page: FetchedPage | BrokenPage, run: SyncRun) => Promise<void>
}

/** A run that is being read. The stored run lacks only the progress over pages on which nothing changed. */
export interface SyncReading extends Required<ReadOptions> {
  run: SyncRun
  stored: SyncRun
  storedAt: number
  pages: Pages
  /** The supplier's count of offers as of the page read last; undefined before that, and where the supplier does not count. */
  total: number | undefined
  brokenInARow: number
  seen: Seen
  /** How many offers came with a cost that cannot be believed. */
  costFaults: number
}

/** Reads a run that has not ended, a page at a time, to its end. `runSync` says how a run may end. */
export async function readRun(
  catalogue: Catalogue,
  started: SyncRun,
  { recordedNewMax = RECORDED_NEW_MAX, onPage = async () => {} }: ReadOptions = {},
): Promise<SyncReading> {
  const resumed = started.pages > 0 && started.cursor !== ALL_READ
  // A run with its cursor past the last page was cut short before the missed offers were counted.
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
  if (resumed && catalogue.dialect.paging.kind === 'cursor') {
    await store(catalogue, reading, {
      state: 'interrupted',
      finishedAt: catalogue.now(),
      error: started.error ?? CUT_SHORT,
    })
    return reading
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

/** Reads the page at the cursor. A smaller total shows that an offer left the list, so all later offers moved forward. */
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
    // Offers that moved from this page to the page before are found by reading that page again.
    const again = await pages.again(run.cursor - 1)
    // When that page cannot be read again now, the next run brings these offers. This run is in doubt anyway, as the list moved.
    if ('facts' in again) await storePage(catalogue, reading, again, { again: true, moved })
  }
  if (total !== undefined) reading.total = total
  reading.brokenInARow = 0
  await storePage(catalogue, reading, page, { again: false, moved })
}

/**
 * @param how `again`: whether the page was read a second time, because the list had moved; `moved`: whether the supplier
 *   counted the list differently than at the page before
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
    // In a run without doubt, the missed offers are counted next, and `ALL_READ` is stored after that. Until then: the next page.
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

/** Ends the run. Where the run has no doubt, first counts the offers that it missed and marks those that are gone. */
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
  await store(catalogue, reading, { state: endStateOf(run), finishedAt: catalogue.now() })
}

const PAGE_SIZE = 'catalogue_page_size'

/** Logs once that the supplier keeps to smaller pages than were asked for, and logs again when the supplier's size changes. */
async function sayPageSize({ db, now, log }: Catalogue, { run, pages }: SyncReading): Promise<void> {
  const size = pages.pageSize()
  if (size === undefined || run.state !== 'complete' || run.error !== null) return
  const { kept, asked } = size
  if ((await readSetting(db, PAGE_SIZE)) === String(kept)) return
  await db.commit([putSetting(PAGE_SIZE, String(kept), now())])
  log.warn('sync.page_size', { runId: run.id, count: kept, detail: `${asked} were asked for` })
}

/** Returns the columns of a sync run that change while it reads the catalogue: all but the three that are set at its start. */
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

export type SyncRunner = ReturnType<typeof createSyncRunner>

/** Reads one sync run at a time. After a run that a crash had cut short, starts a run that reads every page. */
export function createSyncRunner(catalogue: Catalogue) {
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
  /** Starts a sync run, or takes the one under way, and returns it as it is now. */
  const start = async (cause: string): Promise<SyncRun> => {
    if (catalogue.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
    const { runId, created } = await startSync(catalogue, cause)
    const run = await first(catalogue.db, syncRunById(runId))
    // The pages that the run read before it was cut short may be old: a run that reads every page follows.
    if (!created && running === undefined && run?.state === 'running' && run.pages > 0) next ??= 'resumed'
    read(runId)
    if (!run) throw new Failure('internal', `the sync run ${runId} is gone`)
    return run
  }
  return {
    start,
    /** Starts or joins a run, and resolves when that run has ended. */
    finish: async (cause: string) => {
      await start(cause)
      await running
    },
    /** Starts one more run after the run under way, or at once where none is under way. Does not wait for that run. */
    follow: (cause: string) => {
      if (running !== undefined) next = cause
      else
        void start(cause).catch((error: unknown) => catalogue.log.warn('sync.broken_off', { error: messageOf(error) }))
    },
    idle: async () => {
      while (running !== undefined) await running
    },
  }
}

/** Returns what the log says of a run that has ended, also of a dry run. */
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

/** How many offers are marked gone in one commit: as many as a page has, so that the commit is as small as a page's. */
const BATCH = 100

/** While a batch is decided, an event may find one of its offers: then the batch is stale. Five times is no coincidence. */
const STALE_MAX = 5

/** How many rowids one statement reads. To read so many takes a few milliseconds of the event loop. */
const ROWIDS = 5_000

const MISSED_AT_ONCE = 1_000

/**
 * Returns the changes that count one missed run more for every offer that a complete run did not see.
 *
 * @param run a run that saw each offer of the list exactly once
 * @param seen the offers that were stored before the run and that it saw; the offers that the run added have the run's id
 */
async function countMissing({ db }: Catalogue, run: SyncRun, seen: Seen): Promise<Change[]> {
  const stored = await first(db, countOffers())
  if (stored?.total === run.offersSeen) return []
  const missed: number[] = []
  for (let after = 0; ; ) {
    const rows = await db.query(rowidsOfOffers(after, ROWIDS))
    for (const { rowid, seenRunId } of rows) if (seenRunId !== run.id && !seen.has(rowid)) missed.push(rowid)
    const last = rows.at(-1)
    if (!last) break
    after = last.rowid
  }
  const changes: Change[] = []
  for (let at = 0; at < missed.length; at += MISSED_AT_ONCE) {
    changes.push(countMissed({ rowids: missed.slice(at, at + MISSED_AT_ONCE) }))
  }
  return changes
}

/**
 * Says why a run that read every page still proves nothing about the offers that it missed.
 *
 * Where only the supplier's count ended the run, one page more is read, because the supplier may cap the count.
 *
 * @returns undefined when the list ends where the run did
 */
async function endDoubt(
  { dialect }: Pick<Catalogue, 'dialect'>,
  run: SyncRun,
  pages: Pages,
): Promise<string | undefined> {
  const { listMax } = dialect.paging
  const rows = run.offersSeen + run.offersUnreadable
  if (listMax !== null && rows >= listMax) return doubt(`the supplier's lists end at ${listMax} records`)
  if (run.pagesTotal === null || dialect.paging.kind === 'cursor') return undefined
  const behind = await pages.again(run.pages + 1)
  if ('facts' in behind) {
    return behind.facts.rows > 0 ? doubt(`the supplier counts ${rows} offers and lists more`) : undefined
  }
  return behind.isAbsent ? undefined : doubt(`the page behind the last one: ${behind.message}`)
}

/**
 * Marks the offers gone that two complete runs did not see, in batches, and queues their listings for the stores.
 *
 * In two cases the lists alone do not prove that an offer is gone. An unreadable record may be any offer's. Where the supplier
 * gives no count, a list that moved cannot be noticed. In both cases each offer is read by its id. When the supplier does not
 * answer, the offers wait for the next complete run.
 *
 * @returns the run with its count of gone offers
 * @throws Failure `conflict` when other commits keep changing the same rows
 */
async function markMissing(catalogue: Catalogue, run: SyncRun): Promise<SyncRun> {
  const { db, now: clock, newId } = catalogue
  let current = run
  /** Marks one batch. If an event found one of its offers in between, the batch is stale and is read again. */
  const markBatch = async (): Promise<SyncRun | undefined> => {
    const missed = (await db.query(missedTwice(BATCH))).map(({ productId }) => productId)
    if (missed.length === 0) return undefined
    const sorted = await sortMissed(catalogue, run, missed)
    if (!sorted) return undefined
    const { gone, listed } = sorted
    const now = clock()
    const set = { offersGone: current.offersGone + gone.length }
    const presence = { runId: run.id, field: 'presence', before: 'listed', after: 'gone', changedAt: now }
    await db.commit([
      markGone(gone, now),
      markListed(listed),
      ...insertOfferChanges(gone.map((productId) => ({ ...presence, id: newId(), productId }))),
      changeSyncRun(current, set),
      ...enqueueListings(catalogue, gone, { key: `${run.id}:gone-${current.offersGone}`, now }),
    ])
    return { ...current, ...set }
  }
  for (;;) {
    const next = await retryStale(STALE_MAX, markBatch, CHANGED_ELSEWHERE)
    if (!next) return current
    current = next
  }
}

/**
 * Sorts the offers that two complete runs did not see: some are gone, others are listed all the same.
 *
 * @returns undefined when the supplier had to be asked and does not answer: then no offer of the batch is decided
 */
async function sortMissed(
  { supplier, log }: Pick<Catalogue, 'supplier' | 'log'>,
  run: SyncRun,
  missed: string[],
): Promise<{ gone: string[]; listed: string[] } | undefined> {
  if (run.offersUnreadable === 0 && run.pagesTotal !== null) return { gone: missed, listed: [] }
  const gone: string[] = []
  const listed: string[] = []
  for (const productId of missed) {
    try {
      const found = await supplier.product(productId)
      if (found) listed.push(productId)
      else gone.push(productId)
    } catch (error) {
      // The supplier has an unreadable record of the offer, so the offer is still listed.
      if (error instanceof Failure && error.reason === 'unreadable') listed.push(productId)
      else {
        log.warn('sync.gone_unproven', { runId: run.id, code: codeOf(error), error: messageOf(error) })
        return undefined
      }
    }
  }
  return { gone, listed }
}
