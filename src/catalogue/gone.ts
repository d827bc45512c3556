import { codeOf, Failure, messageOf } from '../errors.ts'
import { type Change, first, retryStale } from '../storage/database.ts'
import {
  countMissed,
  countOffers,
  insertOfferChanges,
  markGone,
  markListed,
  missedTwice,
  rowidsOfOffers,
} from '../storage/offers.ts'
import { changeSyncRun, type SyncRun } from '../storage/runs.ts'
import type { Catalogue } from './context.ts'
import { CHANGED_ELSEWHERE, enqueueListings, type Seen } from './offers.ts'
import type { Pages } from './pages.ts'
import { doubt } from './progress.ts'

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
export async function countMissing({ db }: Catalogue, run: SyncRun, seen: Seen): Promise<Change[]> {
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
export async function endDoubt(
  { dialect }: Pick<Catalogue, 'dialect'>,
  run: SyncRun,
  pages: Pages,
): Promise<string | undefined> {
  const { listMax } = dialect.paging
  const rows = run.offersSeen + run.offersUnreadable
  if (listMax !== null && rows >= listMax) return doubt(`the supplier's lists end at ${listMax} records`)
  if (run.pagesTotal === null) return undefined
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
export async function markMissing(catalogue: Catalogue, run: SyncRun): Promise<SyncRun> {
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
