import { factOf, type OfferFact } from '../domain/offer.ts'
import { Failure } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import { type NewOffer, offersAtPlaces } from '../storage/offers.ts'
import { owePublications } from '../storage/publications.ts'
import { storedOffers } from './apply-offers.ts'
import { type Comparison, compareOffers, factsByProduct } from './compare-offers.ts'
import type { Catalogue } from './context.ts'
import type { DryRunEvent, OfferChange } from './dry-run-events.ts'
import { endDoubt, missedOffers, sortMissed } from './gone.ts'
import type { Hypothesis } from './hypothesis.ts'
import { readNextPage, type Walk } from './next-page.ts'
import type { FetchedPage } from './pages.ts'
import { ALL_READ, afterPage, endStateOf } from './progress.ts'
import type { Seen } from './seen.ts'

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
      const sorted = await sortMissed(catalogue, run, await catalogue.db.query(offersAtPlaces(places)))
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
  ...{ type: 'progress', pages: run.pages, pagesTotal: run.pagesTotal, offers: run.offersSeen },
  ...{ changed: run.offersNew + run.offersChanged, listings },
})
