/**
 * A dry run: reads the whole catalogue as a sync run does, and tells what the run would change in the offers, and then in
 * each store. Nothing is written.
 *
 * It goes through the same pages, comparisons and decisions as the run. What the run would store is laid over what is
 * stored in a scratch file, so that it holds two pages in memory, however much would change; the file is removed at the
 * end. The listings are decided once all pages are read: what a store would have when it has been told everything.
 */

import { rmSync } from 'node:fs'
import path from 'node:path'
import type { SQLWrapper } from 'drizzle-orm'
import type { StorePolicy } from '../domain/listing.ts'
import { formatDecimal, priceTexts } from '../domain/money.ts'
import { factOf, type OfferFact } from '../domain/offer.ts'
import { explainPrice } from '../domain/pricing.ts'
import type { ListingContent, Match } from '../domain/publication.ts'
import { explainStock } from '../domain/stock.ts'
import { Failure, messageOf } from '../errors.ts'
import { type Assessed, assess, knownOf, productOf, type SellingStore } from '../listings/assess.ts'
import { planOf } from '../listings/publish.ts'
import { confirmed } from '../listings/push.ts'
import type { Database, RowOf } from '../storage/database.ts'
import { type ListingRow, listingsOfVariants, putListings } from '../storage/listings.ts'
import { type NewOffer, type Offer, offersAtPlaces, offersByProduct, putOffers } from '../storage/offers.ts'
import { dropPublications, nextPublications, owePublications } from '../storage/publications.ts'
import { runningSyncRuns, type SyncRun } from '../storage/runs.ts'
import { openScratch } from '../storage/sqlite/scratch.ts'
import type { Catalogue } from './context.ts'
import { endDoubt, missedOffers, sortMissed } from './gone.ts'
import { type Comparison, compareOffers, createSeen, factsByProduct, type Seen, storedOffers } from './offers.ts'
import { type FetchedPage, openPages, readNextPage, type Walk } from './pages.ts'
import { ALL_READ, afterPage, endStateOf } from './progress.ts'

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
    catalogue,
    scratch,
    hypothesis: openHypothesis(real.db, scratch),
    most,
    seen: createSeen(),
    run: newRun(real.newId(), startedAt),
    pages: openPages(catalogue),
    total: undefined,
    brokenInARow: 0,
    offersTold: 0,
    listingsTold: 0,
    listings: 0,
    missed: 0,
    costFaults: 0,
    truncated: false,
    events: [],
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
  id,
  cause: 'dry run',
  state: 'running',
  startedAt,
  finishedAt: null,
  cursor: 1,
  error: null,
  requestId: null,
  pages: 0,
  pagesTotal: null,
  pagesBroken: 0,
  offersSeen: 0,
  offersNew: 0,
  offersChanged: 0,
  offersUnreadable: 0,
  offersGone: 0,
  firstUnreadable: null,
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
    state: run.state === 'failed' ? 'failed' : 'complete',
    error,
    requestId,
    pages,
    pagesTotal,
    pagesBroken,
    offers: {
      seen: run.offersSeen,
      new: run.offersNew,
      changed: run.offersChanged,
      gone: run.offersGone,
      missed,
      unreadable: run.offersUnreadable,
      costFaults,
    },
    stores: [...stores].map(([store, counts]) => ({ store, ...counts })),
    truncated,
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
    pages,
    pagesBroken,
    requests: requests.asked(),
    offersSeen,
    offersNew,
    offersChanged,
    offersUnreadable,
    offersGone,
    costFaults,
    fieldsUnreadable: requests.unread(),
    count: listings,
    durationMs: now() - startedAt,
    error: run.error,
    requestId: run.requestId,
    outcome: run.state,
  })
}

/** What a dry run tells, one event after the other: `start`, then the others, and `end` as the last. */

export interface OfferChange {
  productId: string
  sku: string
  name: string
  /** `presence` for one that would be listed, new or again, or gone. */
  field: string
  before: string | null
  after: string | null
}

/** What is not certain of the reading; nothing would be counted as missing then. */
export interface Doubt {
  page: number | null
  message: string
  /** The supplier's id of the request. */
  requestId: string | null
}

export interface DryRunProgress {
  pages: number
  pagesTotal: number | null
  offers: number
  /** Offers that would be new or changed. */
  changed: number
  /** Listings that were decided on. */
  listings: number
}

export interface DryRunEnd {
  /** How the sync run would end. */
  state: 'complete' | 'failed'
  error: string | null
  requestId: string | null
  pages: number
  pagesTotal: number | null
  pagesBroken: number
  offers: {
    seen: number
    new: number
    changed: number
    /** Not seen, and gone now. */
    gone: number
    /** Not seen for the first time. */
    missed: number
    unreadable: number
    costFaults: number
  }
  stores: { store: string; told: number; held: number }[]
  /** More would change than was told one by one. */
  truncated: boolean
}

export type DryRunEvent =
  | { type: 'start'; at: number; syncUnderWay: string | null }
  | ({ type: 'progress' } & DryRunProgress)
  | ({ type: 'offer' } & OfferChange)
  | ({ type: 'doubt' } & Doubt)
  | ({ type: 'listing' } & WouldBeListing)
  | ({ type: 'end' } & DryRunEnd)

export type DryRunner = (options: { most: number }) => Promise<AsyncIterableIterator<DryRunEvent, void>>

/**
 * Sees to it that one dry run is under way at a time: each costs the supplier's rate limit as much as a sync run.
 *
 * @returns what begins one; `return` of its events ends it early, at its next page. It throws Failure `conflict`, reason
 *   `dry_run_under_way`, and `unavailable` while the service is being stopped
 */
export function createDryRunner({
  dataDir,
  ...parts
}: Omit<DryRunParts, 'openScratch'> & { dataDir: string }): DryRunner {
  const file = path.join(dataDir, 'dry-run.db')
  // Of one that a crash cut short.
  rmSync(file, { force: true })
  let isUnderWay = false
  return async (options) => {
    if (parts.catalogue.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
    if (isUnderWay) {
      throw new Failure('conflict', 'a dry run is under way; there is one at a time', { reason: 'dry_run_under_way' })
    }
    isUnderWay = true
    const events = dryRun({ ...parts, openScratch: () => openScratch(file, parts.catalogue.now) }, options)
    const next = async () => {
      try {
        const step = await events.next()
        if (step.done) isUnderWay = false
        return step
      } catch (error) {
        isUnderWay = false
        throw error
      }
    }
    // Begun here, so that what cannot even begin is no event; and so that leaving it early always ends it.
    let first: ReturnType<typeof next> | undefined = Promise.resolve(await next())
    const told: AsyncIterableIterator<DryRunEvent, void> = {
      [Symbol.asyncIterator]: () => told,
      next: () => {
        const step = first ?? next()
        first = undefined
        return step
      },
      return: async () => {
        await events.return()
        isUnderWay = false
        return { done: true, value: undefined }
      },
    }
    return told
  }
}

/** Under this name the scratch file keeps which products look different. */
export const WORK = 'dry-run'

/** Offers that are decided on together. */
const BATCH = 100

/** A dry run under way. */
export interface Trial extends Walk {
  catalogue: Catalogue
  scratch: Database
  hypothesis: Hypothesis
  seen: Seen
  /** Changes of offers, and of listings, that are told one by one. */
  most: number
  offersTold: number
  listingsTold: number
  listings: number
  missed: number
  costFaults: number
  stores: Map<string, { told: number; held: number }>
  truncated: boolean
  /** What is to be told next. */
  events: DryRunEvent[]
}

/** Reads every page, tells what would change in the offers, and notes whose listings are to be decided on. */
export async function* readAll(trial: Trial): AsyncGenerator<DryRunEvent, void> {
  const { catalogue, events } = trial
  while (trial.run.state === 'running' && trial.run.cursor !== ALL_READ) {
    assertGoesOn(catalogue)
    await readNextPage(trial, catalogue.now, {
      page: (page, how) => tryPage(trial, page, how),
      broken: async (set, { message, requestId }) => {
        events.push({ type: 'doubt', page: trial.run.cursor, message, requestId })
        trial.run = { ...trial.run, ...set }
      },
    })
    yield* events.splice(0)
    yield progressOf(trial)
  }
  const unread = trial.pages.unread()
  if (unread !== null) {
    const message = `fields that cannot be read count as not stated, a stock as no units: ${unread}`
    yield { type: 'doubt', page: null, message, requestId: null }
  }
  if (trial.run.state !== 'running') return
  if (trial.run.error === null) yield* findGone(trial)
  trial.run = { ...trial.run, state: endStateOf(trial.run) }
}

/** @throws Failure `unavailable` */
export function assertGoesOn({ signal }: Catalogue): void {
  if (signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
}

async function tryPage(
  trial: Trial,
  { number, readAt, items, facts: page, unreadable }: FetchedPage,
  { again, moved }: { again: boolean; moved: boolean },
): Promise<void> {
  const { catalogue, hypothesis, run, seen } = trial
  const read: OfferFact[] = items.map((offer) => factOf(offer, readAt))
  const facts = factsByProduct(read)
  const stored = await storedOffers(hypothesis, [...facts.keys()])
  const now = catalogue.now()
  const how = { facts: read, readAt, runId: run.id, seen, outOfTurn: again }
  const found = compareOffers(facts, stored, how, { now, reads: catalogue.reads })
  await hypothesis.layOffers(rowsOf(found))
  await owe(trial, found.listingsChanged)
  for (const place of found.places) seen.add(place)
  tellOffers(trial, found)
  const counts = { offersNew: found.added.length, offersChanged: found.changed.length, fresh: found.fresh }
  const set = afterPage(run, page, { ...counts, records: items.length }, { again, moved, now })
  trial.run = { ...run, ...set }
  trial.costFaults += read.filter(({ costFault }) => costFault !== null).length
  if (unreadable) {
    const message = `cannot be read, ${unreadable.count} in all: ${unreadable.detail}`
    trial.events.push({ type: 'doubt', page: number, message, requestId: unreadable.requestId })
  }
  const { error, state } = trial.run
  if (run.error === null && error !== null && state === 'running') {
    trial.events.push({ type: 'doubt', page: number, message: error, requestId: null })
  }
}

/** The rows as they would be; that of a new one, where it is not told, as the table has it. */
const rowsOf = ({ added, changed, confirmed }: Comparison): NewOffer[] => [
  ...added,
  ...changed.map(({ before, row }) => ({ ...before, ...row, missedRuns: 0, goneAt: null })),
  ...confirmed.map(({ before, fact }) => ({ ...before, asOf: fact.asOf, missedRuns: 0 })),
]

function tellOffers(trial: Trial, { added, changed }: Comparison): void {
  for (const { productId, sku, name } of added) {
    tellOffer(trial, { productId, sku, name, field: 'presence', before: null, after: 'listed' })
  }
  for (const { before, found } of changed) {
    const { productId, sku, name } = before
    for (const { field, before: was, after } of found) {
      tellOffer(trial, { productId, sku, name, field, before: was, after })
    }
  }
}

function tellOffer(trial: Trial, change: OfferChange): void {
  trial.offersTold += 1
  if (trial.offersTold <= trial.most) trial.events.push({ type: 'offer', ...change })
  else trial.truncated = true
}

/** Notes that the listings of these products are to be decided on. */
async function owe({ scratch, catalogue: { newId, now } }: Trial, productIds: string[]): Promise<void> {
  await scratch.commit(owePublications([{ id: WORK }], productIds, { newId, now: now(), cause: WORK }))
}

/** What the run would mark gone: it missed them, and so did the run before, as their count tells. */
async function* findGone(trial: Trial): AsyncGenerator<DryRunEvent, void> {
  const { catalogue, hypothesis, run, seen, events } = trial
  let isProven = false
  for await (const missed of missedOffers(catalogue.db, run.id, seen)) {
    assertGoesOn(catalogue)
    if (missed.length === 0) continue
    const error = isProven ? undefined : await endDoubt(catalogue, run, trial.pages)
    if (error !== undefined) {
      trial.run = { ...run, error }
      yield { type: 'doubt', page: null, message: error, requestId: null }
      return
    }
    isProven = true
    const again = missed.filter(({ missedRuns }) => missedRuns > 0)
    trial.missed += missed.length - again.length
    for (let at = 0; at < again.length; at += BATCH) {
      const places = again.slice(at, at + BATCH).map(({ place }) => place)
      const sorted = await sortMissed(catalogue, run, await catalogue.db.query(offersAtPlaces({ places })))
      if (!sorted) {
        const message = 'offers that two runs missed cannot be asked for now: they stay'
        yield { type: 'doubt', page: null, message, requestId: null }
        return
      }
      const now = catalogue.now()
      await hypothesis.layOffers(sorted.gone.map((offer) => ({ ...offer, available: 0, goneAt: now, changedAt: now })))
      await owe(
        trial,
        sorted.gone.map(({ productId }) => productId),
      )
      for (const { productId, sku, name } of sorted.gone) {
        tellOffer(trial, { productId, sku, name, field: 'presence', before: 'listed', after: 'gone' })
      }
      trial.run = { ...trial.run, offersGone: trial.run.offersGone + sorted.gone.length }
      yield* events.splice(0)
    }
  }
}

export const progressOf = ({ run, listings }: Trial): DryRunEvent => ({
  type: 'progress',
  pages: run.pages,
  pagesTotal: run.pagesTotal,
  offers: run.offersSeen,
  changed: run.offersNew + run.offersChanged,
  listings,
})

/** One field of a listing that would change, as a person reads it; null for what is not there. */
export interface FieldChange {
  /** `price`, `compareAt`, `currency`, `stock`, `available`, `name`, `category`, or `state`: how it stands with us. */
  field: string
  before: string | null
  after: string | null
  /** A sentence for people. */
  reason: string
}

/** A listing that would change. */
export interface WouldBeListing {
  store: string
  /** The store's own reference. */
  variant: string
  sku: string
  productId: string | null
  /** Whether the store would be told. */
  told: boolean
  /** How it would stand then. */
  state: Assessed['decision']['state']
  changes: FieldChange[]
}

/**
 * What would become of the listings of some offers in a store, by the same decisions as when they are published, and as
 * if the store confirmed all of it.
 *
 * @param hypothesis is laid over with what would be stored, so that nothing is told twice
 */
export async function wouldBeListings(
  hypothesis: Hypothesis,
  store: SellingStore,
  offers: Offer[],
  at: number,
): Promise<WouldBeListing[]> {
  const assessed = await assess(hypothesis, store, { offers }, at)
  const { tellings, standings } = planOf(assessed, true, at)
  const told = new Set(tellings.map(({ row }) => row.variant))
  const stands = new Set(standings.map(({ variant }) => variant))
  // No price is recorded, so that nothing needs an id.
  const after = tellings.map((telling) => confirmed(telling, at, () => '', 0).row)
  await hypothesis.layListings([...after, ...standings])
  return assessed.flatMap((one): WouldBeListing[] => {
    const { row, match, decision } = one
    const isTold = told.has(row.variant)
    if (!isTold && !stands.has(row.variant)) return []
    const changes = [...(isTold ? contentChanges(one, store.policy, at) : []), ...stateChanges(one, store.policy)]
    if (isTold && changes.length === 0) {
      changes.push({
        field: 'state',
        before: row.state,
        after: decision.state,
        reason: 'told again: not confirmed yet',
      })
    }
    if (changes.length === 0) return []
    const productId = productOf({ row, match })
    const { variant, sku } = row
    return [{ store: store.id, variant, sku, productId, told: isTold, state: decision.state, changes }]
  })
}

/** What a new listing is shown with; the rest of it is as the supplier writes it. */
const FIRST = ['price', 'compareAt', 'stock']

function contentChanges({ row, match, decision }: Assessed, policy: StorePolicy, at: number): FieldChange[] {
  const { content } = decision
  const known = knownOf(row)
  if (!content) return []
  const reasons = reasonsOf(match, decision, content, policy, at)
  return (
    shown
      .filter(({ field }) => known !== null || FIRST.includes(field))
      .map(({ field, text }) => ({ field, before: known && text(known), after: text(content) }))
      .filter(({ before, after }) => before !== after)
      // Whether it can be bought says nothing that the stock does not.
      .filter(({ field }, _, all) => field !== 'available' || !all.some((one) => one.field === 'stock'))
      .map((change) => ({ ...change, reason: reasons[change.field] ?? 'as the supplier writes it' }))
  )
}

const shown: { field: string; text: (content: ListingContent) => string | null }[] = [
  { field: 'price', text: (content) => priceTexts(content).price },
  { field: 'compareAt', text: (content) => priceTexts(content).compareAt },
  { field: 'currency', text: ({ currency }) => currency },
  { field: 'stock', text: ({ stock }) => (stock === null ? 'not counted' : String(stock)) },
  { field: 'available', text: ({ available }) => (available ? 'yes' : 'no') },
  { field: 'name', text: ({ name }) => name },
  { field: 'category', text: ({ category }) => category },
]

/** Why price and stock are what they would be; by field. */
function reasonsOf(
  match: Match,
  { detail }: Assessed['decision'],
  content: ListingContent,
  policy: StorePolicy,
  at: number,
): Record<string, string> {
  const currency = `the store sells in ${policy.pricing.currency}`
  const withdrawn = detail ?? 'nothing of it can be sold now'
  if (match.outcome !== 'matched') return { currency, stock: withdrawn, available: withdrawn }
  const { steps } = explainPrice(match.offer, policy.pricing, at)
  const detailOf = (step: string) => steps.find((one) => one.step === step)?.detail
  const ruled = steps.find(({ step }) => step === 'rule')?.amountMinor
  const floored = steps.find(({ step }) => step === 'floor')?.amountMinor
  const rule = detailOf('band') ?? detailOf('rule')
  const floorWins = typeof ruled === 'number' && typeof floored === 'number' && floored > ruled && !detailOf('band')
  const published = explainStock(match.offer, policy.stock)
  const counted = published.stock === content.stock && published.available === content.available
  const stock = counted ? (published.steps.at(-1)?.detail ?? '') : withdrawn
  const price = (floorWins ? detailOf('floor') : rule) ?? withdrawn
  return { price, compareAt: detailOf('compare_at') ?? price, currency, stock, available: stock }
}

function stateChanges({ row, decision }: Assessed, policy: StorePolicy): FieldChange[] {
  const { state, reason, wantedPriceMinor } = decision
  const stoodSo = row.state === state && row.reason === reason && row.wantedPriceMinor === wantedPriceMinor
  // That a listing is synced once the store has been told goes without saying.
  if (stoodSo || (state !== 'held' && row.state !== 'held')) return []
  const before = row.version === 0 ? null : row.state
  return [{ field: 'state', before, after: state, reason: standingText(row, decision, policy) }]
}

function standingText(row: ListingRow, decision: Assessed['decision'], { pricing }: StorePolicy): string {
  const { state, reason, detail, wantedPriceMinor } = decision
  if (state !== 'held') return detail ?? 'nothing speaks against it any more'
  if (reason !== 'price_jump' || wantedPriceMinor === null || row.knownPriceMinor === null)
    return `${reason}: ${detail}`
  const { currency } = pricing
  const [from, to] = [row.knownPriceMinor, wantedPriceMinor].map((minor) => formatDecimal({ minor, currency }))
  return `${reason}: ${from} to ${to} ${currency} waits for a person; ${detail}`
}

/**
 * Offers and listings as they would be: what is stored, with what would be written laid over it. The database itself is
 * only read.
 *
 * `query` answers statements that read whole rows of offers or of listings, by whatever they are looked up: a row that
 * would be another one is not found as the one it was.
 */
export interface Hypothesis extends Pick<Database, 'query'> {
  layOffers: (rows: NewOffer[]) => Promise<void>
  /** Their versions do not matter. */
  layListings: (rows: ListingRow[]) => Promise<void>
}

/** @param over an empty database of the same tables, for what would be written */
export function openHypothesis(db: Pick<Database, 'query'>, over: Database): Hypothesis {
  let [offersLaid, listingsLaid] = [false, false]
  return {
    async query<S extends SQLWrapper>(statement: S): Promise<RowOf<S>[]> {
      const stored = await db.query(statement)
      if (!offersLaid && !listingsLaid) return stored
      const laid = (await over.query(statement)) as Row[]
      const own = new Map(laid.map((row) => [keyOf(row), row]))
      const others = (stored as Row[]).filter((row) => !own.has(keyOf(row)))
      const hidden = await hiddenBy(over, others)
      const kept = (stored as Row[]).flatMap((row): Row[] => {
        const key = keyOf(row)
        const other = own.get(key)
        own.delete(key)
        if (!other) return hidden.has(key) ? [] : [row]
        return ['place' in row ? { ...other, place: row.place } : other]
      })
      // What would be new has no place yet, and no stored offer has this one.
      const added = [...own.values()].map((row) => ('place' in row ? { ...row, place: NO_PLACE } : row))
      return [...kept, ...added] as RowOf<S>[]
    },
    async layOffers(rows) {
      if (rows.length === 0) return
      offersLaid = true
      await over.commit(putOffers(rows))
    },
    async layListings(rows) {
      if (rows.length === 0) return
      listingsLaid = true
      const versions = new Map<string, number>()
      for (const [store, group] of Map.groupBy(rows, (row) => row.store)) {
        const before = await over.query(listingsOfVariants(store, group.map(variantOf)))
        for (const row of before) versions.set(keyOf(row), row.version)
      }
      await over.commit(putListings(rows.map((row) => ({ ...row, version: (versions.get(keyOf(row)) ?? 0) + 1 }))))
    },
  }
}

type Row = (Offer | ListingRow) & { place?: number }

/** Rows of the table count from 1. */
const NO_PLACE = 0

const isListing = (row: Row): row is ListingRow => 'variant' in row
const keyOf = (row: Row): string => (isListing(row) ? `${row.store}\n${row.variant}` : row.productId)
const variantOf = ({ variant }: ListingRow): string => variant

/** Which of these rows would be written over, whatever they would say then. */
async function hiddenBy(over: Database, rows: Row[]): Promise<Set<string>> {
  const listings = rows.filter(isListing)
  const offers = rows.filter((row): row is Offer => !isListing(row))
  const keys = new Set<string>()
  if (offers.length > 0) {
    const laid = await over.query(offersByProduct(offers.map(({ productId }) => productId)))
    for (const row of laid) keys.add(keyOf(row))
  }
  for (const [store, group] of Map.groupBy(listings, (row) => row.store)) {
    for (const row of await over.query(listingsOfVariants(store, group.map(variantOf)))) keys.add(keyOf(row))
  }
  return keys
}
