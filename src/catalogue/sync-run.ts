import { factOf } from '../domain/offer.ts'
import type { SupplierOffer } from '../domain/placement.ts'
import { messageOf } from '../errors.ts'
import { countMissed, markSeen } from '../storage/offers.ts'
import { changeSyncRun, type SyncRun } from '../storage/sync-runs.ts'
import { applyOffers, oweListings } from './apply-offers.ts'
import type { Catalogue } from './context.ts'
import { markMissing } from './gone.ts'
import { ALL_READ, afterPage, type PageFacts } from './progress.ts'

type Page = Awaited<ReturnType<Catalogue['supplier']['products']>>

/** A statement binds a variable for each product of a page; a larger page is not asked for. */
const PAGE_LIMIT_MAX = 1_000

/** Unreadable records named in one log line; the rest are counted. */
const NAMED_MAX = 10

const RESUMED = 'resumed after a stop, and the list may have moved meanwhile: nothing was counted as missing'

/**
 * Reads a run from its cursor to its end, a page at a time.
 *
 * @returns the run: `complete`, `failed` with the supplier's reason, or still `running` when the signal stopped it
 * @throws Failure `conflict` when the same run is being read elsewhere
 */
export async function readRun(catalogue: Catalogue, started: SyncRun): Promise<SyncRun> {
  let run = started
  if (run.pages > 0 && run.cursor !== ALL_READ) run = { ...run, error: run.error ?? RESUMED }
  const last: { total?: number } = {}
  while (run.state === 'running' && run.cursor !== ALL_READ) {
    if (catalogue.signal?.aborted) return run
    run = await readNextPage(catalogue, run, last)
  }
  if (run.state === 'running') {
    if (run.error === null) run = await markMissing(catalogue, run)
    run = await change(catalogue, run, { state: 'complete', finishedAt: catalogue.now() })
  }
  logEnd(catalogue, run)
  return run
}

/** @param last the count of the page before; an offer that left since moved all that follow it one place forward */
async function readNextPage(catalogue: Catalogue, run: SyncRun, last: { total?: number }): Promise<SyncRun> {
  const page = await fetchPage(catalogue, run.cursor)
  if ('error' in page) return fail(catalogue, run, page.error)
  const { total } = page.facts
  const moved = last.total !== undefined && total !== undefined && total !== last.total
  let current = run
  if (moved && total < (last.total ?? 0) && run.cursor > 1) {
    // What slid over the edge between the two pages stands on the one before now.
    const again = await fetchPage(catalogue, run.cursor - 1)
    if ('error' in again) return fail(catalogue, run, again.error)
    current = await storePage(catalogue, run, again, { again: true, moved })
  }
  if (total !== undefined) last.total = total
  return storePage(catalogue, current, page, { again: false, moved })
}

interface FetchedPage {
  number: number
  readAt: number
  items: SupplierOffer[]
  facts: PageFacts
}

async function fetchPage(
  { supplier, dialect, now, log }: Catalogue,
  number: number,
): Promise<FetchedPage | { error: unknown }> {
  const limit = Math.min(dialect.paging.limitMax, PAGE_LIMIT_MAX)
  const readAt = now()
  let page: Page
  try {
    page = await supplier.products({ page: number, limit })
  } catch (error) {
    return { error }
  }
  const { items, unreadable, total, more } = page
  if (unreadable.length > 0) {
    const named = unreadable.slice(0, NAMED_MAX).map(({ index, field }) => `record ${index}: ${field}`)
    log.warn('sync.unreadable', {
      ...{ cursor: number, count: unreadable.length, requestId: page.requestId, detail: named.join('; ') },
    })
  }
  return { number, readAt, items, facts: { limit, rows: items.length + unreadable.length, total, more } }
}

async function storePage(
  catalogue: Catalogue,
  run: SyncRun,
  { number, readAt, items, facts: page }: FetchedPage,
  { again, moved }: { again: boolean; moved: boolean },
): Promise<SyncRun> {
  const facts = items.map((offer) => factOf(offer, readAt))
  let next = run
  await applyOffers(catalogue, { facts, readAt, runId: run.id }, (plan) => {
    const now = catalogue.now()
    const set = afterPage(run, page, { ...plan, records: items.length }, { again, moved, now })
    next = { ...run, ...set }
    const key = `${run.id}:${number}${again ? '+' : ''}`
    return [
      markSeen(
        facts.map(({ productId }) => productId),
        run.id,
      ),
      ...(next.cursor === ALL_READ && next.error === null ? [countMissed(run.id)] : []),
      changeSyncRun(run, set),
      ...oweListings(catalogue, plan.listingsChanged, { key, now }),
    ]
  })
  return next
}

const fail = (catalogue: Catalogue, run: SyncRun, error: unknown): Promise<SyncRun> =>
  change(catalogue, run, {
    state: 'failed',
    finishedAt: catalogue.now(),
    error: messageOf(error),
    requestId: requestIdIn(messageOf(error)),
  })

async function change({ db }: Catalogue, run: SyncRun, set: Partial<SyncRun>): Promise<SyncRun> {
  await db.commit([changeSyncRun(run, set)])
  return { ...run, ...set }
}

/** A failure of the supplier ends in the id of the request that failed. */
const requestIdIn = (message: string): string | null => /\(request (\S+)\)$/.exec(message)?.[1] ?? null

function logEnd({ log }: Catalogue, run: SyncRun): void {
  const { offersSeen, offersNew, offersChanged, offersUnreadable, offersGone, pages, error, requestId } = run
  const fields = {
    ...{ runId: run.id, reason: run.cause, pages, offersSeen, offersNew, offersChanged, offersUnreadable, offersGone },
    ...{ durationMs: (run.finishedAt ?? run.startedAt) - run.startedAt, error, requestId },
  }
  if (run.state === 'complete') log.info('sync.complete', fields)
  else log.warn('sync.failed', { ...fields, cursor: run.cursor })
}
