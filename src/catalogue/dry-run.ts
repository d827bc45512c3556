/**
 * A dry run: reads the whole catalogue as a sync run does, and tells what the run would change in the offers, and then in
 * each store. Nothing is written.
 *
 * It goes through the same pages, comparisons and decisions as the run. What the run would store is laid over what is
 * stored in a scratch file, so that it holds two pages in memory, however much would change; the file is removed at the
 * end. The listings are decided once all pages are read: what a store would have when it has been told everything.
 */
import { messageOf } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import { offersByProduct } from '../storage/offers.ts'
import { dropPublications, nextPublications } from '../storage/publications.ts'
import { runningSyncRuns, type SyncRun } from '../storage/sync-runs.ts'
import type { SellingStore } from './assess.ts'
import type { Catalogue } from './context.ts'
import { type WouldBeListing, wouldBeListings } from './dry-listings.ts'
import { assertGoesOn, progressOf, readAll, type Trial, WORK } from './dry-offers.ts'
import type { DryRunEnd, DryRunEvent } from './dry-run-events.ts'
import { openHypothesis } from './hypothesis.ts'
import { openPages } from './pages.ts'
import { createSeen } from './seen.ts'

export interface DryRunParts {
  catalogue: Catalogue
  stores: readonly SellingStore[]
  /** An empty database of the same tables, which goes when it is closed. */
  openScratch: () => Database
}

/** Products whose listings are decided on together. */
const PRODUCTS_MAX = 100
/**
 * Ends early when whoever listens stops, at the next page.
 *
 * @param most changes of offers, and of listings, that are told one by one; all are counted
 * @throws Failure `unavailable` when the service is being stopped
 */
export async function* dryRun(
  { catalogue: real, stores, openScratch }: DryRunParts,
  { most }: { most: number },
): AsyncGenerator<DryRunEvent, void> {
  const startedAt = real.now()
  // Of what the pages would log, people are told here.
  const catalogue: Catalogue = { ...real, log: { info: () => {}, warn: () => {}, error: () => {} } }
  const scratch = openScratch()
  const trial: Trial = {
    ...{ catalogue, scratch, hypothesis: openHypothesis(real.db, scratch), most, seen: createSeen() },
    ...{ run: newRun(real.newId(), startedAt), pages: openPages(catalogue), total: undefined, brokenInARow: 0 },
    ...{ offersTold: 0, listingsTold: 0, listings: 0, missed: 0, costFaults: 0, truncated: false, events: [] },
    stores: new Map(stores.map(({ id }) => [id, { told: 0, held: 0 }])),
  }
  try {
    const [underWay] = await real.db.query(runningSyncRuns())
    yield { type: 'start', at: startedAt, syncUnderWay: underWay?.id ?? null }
    yield* readAll(trial)
    yield* decideAll(trial, stores)
    yield { type: 'end', ...endOf(trial) }
  } catch (error) {
    trial.run = { ...trial.run, state: 'failed', error: messageOf(error) }
    throw error
  } finally {
    logEnd(real, trial, startedAt)
    await scratch.close()
  }
}

const newRun = (id: string, startedAt: number): SyncRun => ({
  ...{ id, cause: 'dry run', state: 'running', startedAt, finishedAt: null, cursor: 1, error: null, requestId: null },
  ...{ pages: 0, pagesTotal: null, pagesBroken: 0, offersSeen: 0, offersNew: 0, offersChanged: 0 },
  ...{ offersUnreadable: 0, offersGone: 0, firstUnreadable: null },
})

async function* decideAll(trial: Trial, stores: readonly SellingStore[]): AsyncGenerator<DryRunEvent, void> {
  const { catalogue, scratch, hypothesis } = trial
  for (;;) {
    const [work] = await scratch.query(nextPublications(WORK, 1))
    if (!work) return
    const productIds = JSON.parse(work.productIds ?? '[]') as string[]
    for (let at = 0; at < productIds.length; at += PRODUCTS_MAX) {
      assertGoesOn(catalogue)
      const offers = await hypothesis.query(offersByProduct(productIds.slice(at, at + PRODUCTS_MAX)))
      for (const store of stores) {
        const listings = await wouldBeListings(hypothesis, store, offers, catalogue.now())
        for (const listing of listings) yield* tellListing(trial, listing)
      }
    }
    await scratch.commit([dropPublications([work.id])])
    yield progressOf(trial)
  }
}

function* tellListing(trial: Trial, listing: WouldBeListing): Generator<DryRunEvent, void> {
  const counts = trial.stores.get(listing.store)
  trial.listings += 1
  if (counts && listing.told) counts.told += 1
  if (counts && listing.state === 'held') counts.held += 1
  trial.listingsTold += listing.changes.length
  if (trial.listingsTold <= trial.most) yield { type: 'listing', ...listing }
  else trial.truncated = true
}

function endOf({ run, missed, costFaults, stores, truncated }: Trial): DryRunEnd {
  const { error, requestId, pages, pagesTotal, pagesBroken } = run
  return {
    ...{ state: run.state === 'failed' ? 'failed' : 'complete', error, requestId, pages, pagesTotal, pagesBroken },
    offers: {
      ...{ seen: run.offersSeen, new: run.offersNew, changed: run.offersChanged, gone: run.offersGone, missed },
      ...{ unreadable: run.offersUnreadable, costFaults },
    },
    ...{ stores: [...stores].map(([store, counts]) => ({ store, ...counts })), truncated },
  }
}

/** One that nobody listened to until its end is `running` there. */
function logEnd(
  { log, now }: Catalogue,
  { run, pages: requests, costFaults, listings }: Trial,
  startedAt: number,
): void {
  const { offersSeen, offersNew, offersChanged, offersUnreadable, offersGone, pages, pagesBroken } = run
  log.info('sync.dry_run', {
    ...{ pages, pagesBroken, requests: requests.asked(), offersSeen, offersNew, offersChanged, offersUnreadable },
    ...{
      offersGone,
      costFaults,
      fieldsUnreadable: requests.unread(),
      count: listings,
      durationMs: now() - startedAt,
      error: run.error,
    },
    ...{ requestId: run.requestId, outcome: run.state },
  })
}
