import type { SyncRun } from '../storage/runs.ts'
import type { OfferPlan } from './offers.ts'

/** What a page says in addition to its records. */
export interface PageFacts {
  /** How many records were asked for. */
  limit: number
  /** How many records came, readable or not. */
  rows: number
  /** How many records the whole list has; undefined where the supplier does not say. */
  total: number | undefined
  /** Whether another page follows; undefined where the supplier does not say. */
  more: boolean | undefined
  /** With cursors, whether the page names none: nothing else then ends the list. */
  isLast?: boolean
}

/** The cursor of a run that has read every page and has counted the offers that it missed. Pages count from 1. */
export const ALL_READ = 0

/** Enough for ten million offers in pages of a hundred. A supplier with more pages repeats them without an end. */
const PAGES_MAX = 100_000

/**
 * Returns the columns of a run that change after a page was stored.
 *
 * When it is uncertain that every offer was seen, the reason is kept as the run's `error`. The run goes on, but marks no
 * offer as gone.
 *
 * @param again whether the page was read a second time, because the list had moved: `pages` and the cursor then stay
 * @param moved whether the supplier counted the list differently than at the page before
 */
export function afterPage(
  run: SyncRun,
  page: PageFacts,
  outcome: Pick<OfferPlan, 'fresh' | 'offersNew' | 'offersChanged'> & { records: number },
  { again, moved, now }: { again: boolean; moved: boolean; now: number },
): Partial<SyncRun> {
  const offersSeen = run.offersSeen + outcome.fresh
  const counts = {
    offersSeen,
    offersNew: run.offersNew + outcome.offersNew,
    offersChanged: run.offersChanged + outcome.offersChanged,
  }
  if (again) return { ...counts, error: run.error ?? doubt('the list moved while it was read') }

  const offersUnreadable = run.offersUnreadable + page.rows - outcome.records
  const skipped = run.pagesBroken * page.limit
  const left = page.total === undefined ? undefined : page.total - offersSeen - offersUnreadable - skipped
  const { isLast = page.rows === 0 || (left === undefined ? page.more === false : left <= 0) } = page
  const more = !isLast
  const repeated = outcome.records - outcome.fresh
  const set: Partial<SyncRun> = {
    ...counts,
    offersUnreadable,
    pages: run.pages + 1,
    pagesTotal:
      page.total === undefined ? null : Math.max(Math.ceil(page.total / page.limit), run.cursor + (more ? 1 : 0)),
    cursor: more ? run.cursor + 1 : ALL_READ,
    error: run.error ?? firstDoubt(),
  }
  // When the list grew meanwhile (`moved`), this page repeats offers of the page before. Such a list is not endless.
  const endless = (outcome.records > 0 && outcome.fresh === 0 && !moved) || run.cursor >= PAGES_MAX
  if (!more || !endless) return set
  const error = `page ${run.cursor} brought nothing new and the supplier says that more follow: it repeats its pages`
  return { ...set, cursor: run.cursor, state: 'failed', finishedAt: now, error }

  function firstDoubt(): string | null {
    if (moved) return doubt('the list moved while it was read')
    if (repeated > 0) return doubt(`page ${run.cursor} repeats ${repeated} offers of this run`)
    if (more && page.isLast === undefined && page.total !== undefined && page.rows < page.limit)
      return doubt(`page ${run.cursor} was short: ${page.rows} of ${page.limit} records`)
    if (more) return null
    if (left !== undefined && left !== 0 && skipped === 0)
      return doubt(`the supplier counts ${page.total} offers and listed ${offersSeen + offersUnreadable}`)
    return offersSeen === 0 ? doubt('the supplier listed nothing that can be read') : null
  }
}

/** How many broken pages are stepped over, in a row and in all. More than these are not the fault of single pages. */
const BROKEN_IN_A_ROW_MAX = 3
const BROKEN_MAX = 20

/**
 * Returns the columns of a run that change after a page that the supplier did not give, or that cannot be read.
 *
 * Such a page is stepped over, so that the prices and stocks of all other pages stay true. In the end the run fails, names the
 * page and the request, and marks no offer as gone. The run fails at once where other pages would be broken too: at the first
 * page, after several in a row, or where the failure is not about the page.
 *
 * @param failure what the supplier did, and the id of the request
 * @param inARow how many broken pages came right before this page
 */
export function afterBrokenPage(
  run: SyncRun,
  failure: { message: string; requestId: string | null; ofPage: boolean },
  { inARow, now }: { inARow: number; now: number },
): Partial<SyncRun> {
  const { message, requestId, ofPage } = failure
  const set = { error: `page ${run.cursor}: ${message}`, requestId }
  const pagesBroken = run.pagesBroken + 1
  const stepsOver = ofPage && run.pages > 0 && inARow + 1 < BROKEN_IN_A_ROW_MAX && pagesBroken <= BROKEN_MAX
  if (!stepsOver) return { ...set, state: 'failed', finishedAt: now }
  const more = run.pagesTotal === null || run.cursor < run.pagesTotal
  // The run names the first broken page. The log names each.
  return { ...(run.pagesBroken > 0 ? {} : set), pagesBroken, cursor: more ? run.cursor + 1 : ALL_READ }
}

/** Says how a run ends after its last page. It fails if a page, or every record, could not be read: then old prices stay. */
export const endStateOf = (run: SyncRun): 'complete' | 'failed' =>
  run.pagesBroken > 0 || (run.offersSeen === 0 && run.offersUnreadable > 0) ? 'failed' : 'complete'

export const doubt = (what: string): string => `${what}: nothing was counted as missing`
