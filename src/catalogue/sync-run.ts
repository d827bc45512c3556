import { factOf } from '../domain/offer.ts'
import { putSetting, readSetting } from '../storage/settings.ts'
import { changeSyncRun, type SyncRun } from '../storage/sync-runs.ts'
import { applyOffers, oweListings } from './apply-offers.ts'
import type { Catalogue } from './context.ts'
import { countMissing, endDoubt, markMissing } from './gone.ts'
import { readNextPage, type Walk } from './next-page.ts'
import { type FetchedPage, openPages } from './pages.ts'
import { ALL_READ, afterPage, endStateOf } from './progress.ts'
import { createSeen, type Seen } from './seen.ts'

const RESUMED = 'resumed after a stop, and the list may have moved meanwhile: nothing was counted as missing'

/** A page on which nothing changed is not written down by itself; where the run stands is, this often. */
const STORE_EVERY_MS = 1_000

/** New offers that a run records one by one: a first import has as many as the catalogue, and its count says it. */
const NAMED_NEW_MAX = 1_000

/** A run as it is being read. What is stored of it is behind by pages on which nothing changed, and no others. */
interface Reading extends Walk {
  stored: SyncRun
  storedAt: number
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
export async function readRun(catalogue: Catalogue, started: SyncRun): Promise<SyncRun> {
  const resumed = started.pages > 0 && started.cursor !== ALL_READ
  // Cut short after its last page, before it was counted who was missed.
  const cursor = started.cursor > (started.pagesTotal ?? Number.POSITIVE_INFINITY) ? ALL_READ : started.cursor
  const reading: Reading = {
    ...{ run: resumed ? { ...started, cursor, error: started.error ?? RESUMED } : started, stored: started },
    ...{ storedAt: catalogue.now(), seen: createSeen(), pages: openPages(catalogue), total: undefined },
    ...{ brokenInARow: 0, costFaults: 0 },
  }
  while (reading.run.state === 'running' && reading.run.cursor !== ALL_READ) {
    if (catalogue.signal?.aborted) return store(catalogue, reading, {})
    await readNextPage(reading, catalogue.now, {
      page: (page, how) => storePage(catalogue, reading, page, how),
      broken: async (set) => void (await store(catalogue, reading, set)),
    })
  }
  if (reading.run.state === 'running') await finish(catalogue, reading)
  logEnd(catalogue, reading)
  await sayPageSize(catalogue, reading)
  return reading.run
}

async function storePage(
  catalogue: Catalogue,
  reading: Reading,
  { number, readAt, items, facts: page, unreadable }: FetchedPage,
  { again, moved }: { again: boolean; moved: boolean },
): Promise<void> {
  const { run, stored, seen } = reading
  const facts = items.map((offer) => factOf(offer, readAt))
  const now = catalogue.now()
  let next = run
  let written: SyncRun | undefined
  const nameNewMax = NAMED_NEW_MAX - run.offersNew
  await applyOffers(catalogue, { facts, readAt, runId: run.id, seen, nameNewMax, outOfTurn: again }, (plan) => {
    const set = afterPage(run, page, { ...plan, records: items.length }, { again, moved, now })
    const firstUnreadable = run.firstUnreadable ?? (unreadable && JSON.stringify(unreadable.first))
    next = { ...run, ...set, firstUnreadable }
    const mayWait = plan.changes.length === 0 && next.state === 'running'
    written = undefined
    if (mayWait && Math.abs(now - reading.storedAt) < STORE_EVERY_MS) return []
    // Every page was read, and who was missed is still to be counted.
    written = next.cursor === ALL_READ && next.error === null ? { ...next, cursor: run.cursor + 1 } : next
    const key = `${run.id}:${number}${again ? '+' : ''}`
    return [changeSyncRun(stored, progressOf(written)), ...oweListings(catalogue, plan.listingsChanged, { key, now })]
  })
  reading.run = next
  reading.costFaults += facts.filter(({ costFault }) => costFault !== null).length
  if (written !== undefined) Object.assign(reading, { stored: written, storedAt: now })
}

/** Counts what was missed where nothing leaves a doubt, marks what is gone, and ends the run. */
async function finish(catalogue: Catalogue, reading: Reading): Promise<void> {
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
async function sayPageSize({ db, now, log }: Catalogue, { run, pages }: Reading): Promise<void> {
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

async function store({ db, now }: Catalogue, reading: Reading, set: Partial<SyncRun>): Promise<SyncRun> {
  const run = { ...reading.run, ...set }
  await db.commit([changeSyncRun(reading.stored, progressOf(run))])
  Object.assign(reading, { run, stored: run, storedAt: now() })
  return run
}

function logEnd({ log }: Catalogue, { run, pages: requests, costFaults }: Reading): void {
  const { offersSeen, offersNew, offersChanged, offersUnreadable, offersGone, pages, pagesBroken } = run
  const fields = {
    ...{ runId: run.id, reason: run.cause, pages, pagesBroken, requests: requests.asked() },
    ...{ offersSeen, offersNew, offersChanged, offersUnreadable, offersGone, costFaults },
    fieldsUnreadable: requests.unread(),
    ...{ durationMs: (run.finishedAt ?? run.startedAt) - run.startedAt, error: run.error, requestId: run.requestId },
  }
  if (run.state === 'complete') log.info('sync.complete', fields)
  else log.warn('sync.failed', { ...fields, cursor: run.cursor })
}
