/**
 * A dry run: a sync run and the publishing after it, on a copy of the catalogue and the listings. Each store is replaced
 * by one that confirms everything. What the run changed in the copy is what a sync run would change.
 */
import type { Difference } from '../domain/offer.ts'
import type { SellingStore } from '../listings/assess.ts'
import { type ListingDifference, listingDifferences } from '../listings/listing-differences.ts'
import { type Publisher, publishNext } from '../listings/publish.ts'
import { changesOfRun, countMissedOnce, missedTwice } from '../storage/offers.ts'
import { resumePublishing } from '../storage/publications.ts'
import { insertSyncRun, type SyncRun } from '../storage/runs.ts'
import { listingsBefore } from '../storage/sqlite/snapshot.ts'
import { connectStore } from '../storage/stores.ts'
import type { Store } from '../stores/store.ts'
import type { Catalogue } from './context.ts'
import type { BrokenPage, FetchedPage } from './pages.ts'
import { readRun } from './sync.ts'

/** What a dry run reports, one event after the other: `start` first, `end` last, and all other events between. */
export type DryRunEvent =
  | { type: 'start'; at: number; syncUnderWay: string | null }
  | ({ type: 'progress' } & DryRunProgress)
  | ({ type: 'offer' } & OfferChange)
  | ({ type: 'doubt' } & Doubt)
  | ({ type: 'listing' } & ListingDifference)
  | ({ type: 'end' } & DryRunEnd)

export type DryRunProgress = ReturnType<typeof progressOf>

export interface OfferChange extends Difference {
  productId: string
  sku: string
  name: string
  /** The field that would change; `presence` for an offer that would be listed, new or again, or would be gone. */
  field: string
}

/** What makes the reading of the catalogue uncertain. With a doubt, a sync run would count no offer as missing. */
export interface Doubt {
  page: number | null
  message: string
  /** The supplier's id of the request. */
  requestId: string | null
}

export type DryRunEnd = ReturnType<typeof endOf>

/** How far a dry run has come, for the code that records the run. */
export interface DryRunState {
  run: SyncRun
  costFaults: number
  fieldsUnreadable: string | null
  /** How many listings would change. */
  listings: number
}

export interface DryRunParts {
  /** The context of the catalogue, with the copy as its database. */
  catalogue: Catalogue
  stores: readonly SellingStore[]
  run: SyncRun
  /** How many changes of offers, and of listings, are reported one by one at most. All changes are counted. */
  most: number
  report: (event: DryRunEvent, state: DryRunState) => void
  /** Reads what a shop sells that is not live yet; undefined for all other stores, whose listings are in the copy. */
  variantsOf?: (store: string) => Required<Pick<Store, 'variants'>> | undefined
}

const BATCH = 100

/** Does the dry run to its end, and reports every event but `start`. */
export async function dryRun(parts: DryRunParts): Promise<void> {
  const { catalogue, stores, run, most, report } = parts
  const { db, now } = catalogue
  const state: DryRunState = { run, costFaults: 0, fieldsUnreadable: null, listings: 0 }
  const doubt = (page: number | null, message: string, requestId: string | null = null) =>
    report({ type: 'doubt', page, message, requestId }, state)
  const progress = (listings: number) => report({ type: 'progress', ...progressOf(state.run, listings) }, state)

  const offers = { reported: 0, last: '', truncated: false }
  const reportOffers = async (): Promise<void> => {
    if (offers.truncated) return
    const left = most - offers.reported
    const found = await db.query(changesOfRun(run.id, offers.last, left + 1))
    for (const { id, ...change } of found.slice(0, left)) {
      report({ type: 'offer', ...change }, state)
      offers.last = id
    }
    offers.reported += Math.min(found.length, left)
    offers.truncated = found.length > left
  }
  const onPage = async (page: FetchedPage | BrokenPage, next: SyncRun): Promise<void> => {
    const before = state.run
    state.run = next
    await reportOffers()
    if (!('facts' in page)) doubt(page.number, page.message, page.requestId)
    else {
      if (page.unreadable) {
        const { count, detail, requestId } = page.unreadable
        doubt(page.number, `cannot be read, ${count} in all: ${detail}`, requestId)
      }
      if (before.error === null && next.error !== null && next.state === 'running') doubt(page.number, next.error)
    }
    progress(0)
  }

  await db.commit([insertSyncRun(run), ...stores.map(({ id }) => resumePublishing(id, now()))])
  // The run records one new offer more than is reported, so that the report can tell when there are more.
  const reading = await readRun(catalogue, run, { recordedNewMax: most + 1, onPage })
  const { error } = state.run
  state.run = reading.run
  state.costFaults = reading.costFaults
  state.fieldsUnreadable = reading.pages.unread()
  if (state.fieldsUnreadable !== null) {
    doubt(null, `fields that cannot be read count as not stated, a stock as no units: ${state.fieldsUnreadable}`)
  }
  await reportOffers()
  if (error === null && reading.run.error !== null) doubt(null, reading.run.error)
  const proves = reading.run.state === 'complete' && reading.run.error === null
  if (proves && (await db.query(missedTwice(1))).length > 0) {
    doubt(null, 'offers that two runs missed cannot be asked for now: they stay')
  }

  await publish(parts, () => progress(0))
  const counts = new Map(stores.map(({ id }) => [id, { pushed: 0, held: 0 }]))
  let listingsReported = 0
  for await (const change of changedListings(catalogue, stores)) {
    const count = counts.get(change.store)
    state.listings += 1
    if (count && change.pushed) count.pushed += 1
    if (count && change.state === 'held') count.held += 1
    listingsReported += change.changes.length
    if (listingsReported <= most) report({ type: 'listing', ...change }, state)
  }
  if (state.listings > 0) progress(state.listings)
  const missed = proves ? ((await db.query(countMissedOnce()))[0]?.total ?? 0) : 0
  const ofStores = [...counts].map(([store, count]) => ({ store, ...count }))
  report({ type: 'end', ...endOf(state, missed, ofStores, offers.truncated || listingsReported > most) }, state)
}

/** Publishes until every store has the listings that it is to have. */
async function publish({ catalogue, stores, variantsOf }: DryRunParts, onBatch: () => void): Promise<void> {
  const publisher: Publisher = {
    ...catalogue,
    stores,
    storeOf: (id) => ({ ...confirming, ...variantsOf?.(id) }),
    monotonic: catalogue.now,
    random: () => 0,
  }
  const unread = stores.filter(({ id }) => variantsOf?.(id))
  await catalogue.db.commit(unread.map(({ id }) => connectStore(id, catalogue.now())))
  for (const store of stores) while ((await publishNext(publisher, store)) > 0) onBatch()
}

/** A store that confirms everything. It creates the products that it lacks, under ids that begin with `created:`. */
const confirming: NonNullable<ReturnType<Publisher['storeOf']>> = {
  batchSize: Number.POSITIVE_INFINITY,
  create: async (variants) => ({
    outcome: 'answered',
    answers: variants.map(({ sku }) => ({ sku, id: `created:${sku}`, isNew: true })),
  }),
  publish: async () => ({ outcome: 'answered', answers: 'all' }),
}

async function* changedListings({ db, now }: Catalogue, stores: readonly SellingStore[]) {
  for (let last = 0; ; ) {
    const before = await db.query(listingsBefore(last, BATCH))
    if (before.length === 0) return
    last = before.at(-1)?.rowid ?? last
    const rows = before.map((row) => ({
      ...row,
      knownAvailable: row.knownAvailable === null ? null : row.knownAvailable === 1,
      knownGone: row.knownGone === null ? null : row.knownGone === 1,
    }))
    for (const store of stores) {
      const own = rows.filter((row) => row.store === store.id)
      if (own.length > 0) yield* await listingDifferences(db, store, own, now())
    }
  }
}

/** @param listings how many listings publishing has touched so far */
const progressOf = ({ pages, pagesTotal, offersSeen, offersNew, offersChanged }: SyncRun, listings: number) => ({
  pages,
  pagesTotal,
  offers: offersSeen,
  new: offersNew,
  changed: offersChanged,
  listings,
})

/**
 * @param missed how many offers this run did not see and no complete run has missed before
 * @param truncated whether more would change than the events before this one report
 */
function endOf(
  { run, costFaults }: DryRunState,
  missed: number,
  stores: { store: string; pushed: number; held: number }[],
  truncated: boolean,
) {
  const { error, requestId, pages, pagesTotal, pagesBroken } = run
  return {
    // How the sync run would end.
    state: run.state === 'failed' ? ('failed' as const) : ('complete' as const),
    error,
    requestId,
    pages,
    pagesTotal,
    pagesBroken,
    offers: {
      seen: run.offersSeen,
      new: run.offersNew,
      changed: run.offersChanged,
      // How many offers the run did not see that would be gone now.
      gone: run.offersGone,
      missed,
      unreadable: run.offersUnreadable,
      costFaults,
    },
    stores,
    truncated,
  }
}
