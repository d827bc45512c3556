import type { SyncRun } from '../storage/sync-runs.ts'
import type { BrokenPage, FetchedPage, Pages } from './pages.ts'
import { afterBrokenPage } from './progress.ts'

/** How far the list has been read, whatever becomes of its pages. */
export interface Walk {
  run: SyncRun
  pages: Pages
  /** What the supplier counted at the last page, where it counts. */
  total: number | undefined
  brokenInARow: number
}

/** What becomes of a page. Both move `run` on. */
export interface PageTaker {
  /**
   * @param how `again`: it was read a second time, because the list had moved; `moved`: the supplier counted the list
   *   differently than at the page before
   */
  page: (page: FetchedPage, how: { again: boolean; moved: boolean }) => Promise<void>
  /** @param set what of the run changes by it */
  broken: (set: Partial<SyncRun>, page: BrokenPage) => Promise<void>
}

/** Reads the page at the cursor. An offer that left moved all that follow it one place forward: the total tells. */
export async function readNextPage(walk: Walk, now: () => number, take: PageTaker): Promise<void> {
  const { pages, run } = walk
  const page = await pages.take(run.cursor)
  if (!('facts' in page)) {
    const set = afterBrokenPage(run, page, { inARow: walk.brokenInARow, now: now() })
    walk.brokenInARow += 1
    return take.broken(set, page)
  }
  const { total } = page.facts
  const moved = walk.total !== undefined && total !== undefined && total !== walk.total
  if (moved && total < (walk.total ?? 0) && run.cursor > 1) {
    // What slid over the edge between the two pages stands on the one before now.
    const again = await pages.again(run.cursor - 1)
    // Where it cannot be had, the next run brings it: this one has its doubt anyway.
    if ('facts' in again) await take.page(again, { again: true, moved })
  }
  if (total !== undefined) walk.total = total
  walk.brokenInARow = 0
  await take.page(page, { again: false, moved })
}
