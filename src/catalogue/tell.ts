import { type Acknowledgement, acknowledgementOf } from '../domain/acknowledgement.ts'
import { formatDecimal } from '../domain/money.ts'
import { publicationDelayMs } from '../domain/pace.ts'
import type { ListingContent, ListingDecision } from '../domain/publication.ts'
import { type Change, StaleWrite } from '../storage/database.ts'
import { insertListingPrices, type ListingPrice } from '../storage/listing-prices.ts'
import { type ListingRow, listingsOfVariants, putListings } from '../storage/listings.ts'
import { pausePublishing, resumePublishing } from '../storage/publications.ts'
import type { NotTold, Store, StoreListing } from '../stores/store.ts'
import type { Publisher } from './publish.ts'

/** A listing that the store is being told of. */
export interface Telling {
  /** As it was decided on. */
  before: ListingRow
  /** As it is stored since: pending, under the revision that is told. */
  row: ListingRow
  decision: ListingDecision
  content: ListingContent
}

/** What came of a pass. */
export interface Outcome {
  /** By variant; a listing that is not in it was not answered for. */
  said: Map<string, Acknowledgement>
  /** Why the store took nothing more. */
  trouble: NotTold | undefined
  durationMs: number
}

/** Tells a store in batches of its size, and stops at the first that it does not take. */
export async function tellAll(
  { now, monotonic, newId }: Publisher,
  store: Pick<Store, 'publish' | 'batchSize'>,
  tellings: Telling[],
): Promise<Outcome> {
  const startedAt = monotonic()
  const said = new Map<string, Acknowledgement>()
  let trouble: NotTold | undefined
  for (let at = 0; at < tellings.length && !trouble; at += store.batchSize) {
    const listings = tellings.slice(at, at + store.batchSize).map(storeListing)
    const published = await store.publish({ id: newId(), at: now(), listings })
    if (published.outcome !== 'answered') {
      trouble = published
      break
    }
    const { answers } = published
    const answered = answers === 'all' ? undefined : new Map(answers.map((answer) => [answer.id, answer]))
    for (const sent of listings) {
      said.set(sent.id, answered ? acknowledgementOf(sent, answered.get(sent.id)) : { outcome: 'confirmed' })
    }
  }
  return { said, trouble, durationMs: Math.round(monotonic() - startedAt) }
}

function storeListing({ row, content }: Telling): StoreListing {
  const { priceMinor, compareAtMinor, currency, stock, available, name, category } = content
  const text = (minor: number) => formatDecimal({ minor, currency })
  return {
    ...{ id: row.variant, sku: row.sku, name, category, price: text(priceMinor) },
    ...{ compareAt: compareAtMinor === null ? null : text(compareAtMinor), currency, stock, available },
    revision: row.revision,
  }
}

interface Pass {
  tellings: Telling[]
  outcome: Outcome
  /** What ends the work of the pass. */
  done: Change[]
  /** Callbacks in a row that the store had not taken before. */
  attempts: number
}

/** Records in one commit what the store said. Where it took nothing more, the work stays, and the store is left alone. */
export async function recordPass(publisher: Publisher, store: string, result: Pass): Promise<void> {
  const { now: clock, random, log } = publisher
  const { tellings, done, outcome } = result
  const { said, trouble, durationMs } = outcome
  const now = clock()
  const attempts = result.attempts + 1
  const pausedUntil = now + publicationDelayMs(attempts, random())
  const recorded = tellings.map((telling): Recorded => {
    const answer = said.get(telling.row.variant)
    if (answer?.outcome === 'confirmed') return confirmed(telling, now, publisher.newId)
    if (answer) {
      const tries = telling.row.attempts + 1
      const nextTryAt = now + publicationDelayMs(tries, random())
      return { row: after(telling, { ...named(answer), state: 'failed', attempts: tries, nextTryAt }, now) }
    }
    // The store as a whole is in trouble: that is told of each, and is none's own failure.
    const why = { reason: trouble?.outcome ?? null, detail: trouble?.detail ?? null }
    return { row: after(telling, { ...why, nextTryAt: pausedUntil }, now) }
  })
  const rest = trouble
    ? [pausePublishing(store, { attempts, until: pausedUntil, error: trouble.detail }, now)]
    : [resumePublishing(store, now), ...done]
  await commitUnchanged(publisher, store, recorded, rest)
  const count = [...said.values()].filter((answer) => answer.outcome === 'confirmed').length
  const fields = { store, count, others: tellings.length - count, attempts, durationMs }
  if (trouble) log.warn('listings.kept', { ...fields, outcome: trouble.outcome, detail: trouble.detail })
  else log.info('listings.published', fields)
}

interface Recorded {
  row: ListingRow
  price?: ListingPrice
}

const named = (answer: Acknowledgement) =>
  answer.outcome === 'failed' ? { reason: answer.reason, detail: answer.detail } : { reason: null, detail: null }

const after = ({ row }: Telling, set: Partial<ListingRow>, now: number): ListingRow => ({
  ...row,
  ...set,
  version: row.version + 1,
  changedAt: now,
})

/** What is stored once a store has confirmed a listing. */
export function confirmed(telling: Telling, now: number, newId: () => string): Recorded {
  const { before, content, decision } = telling
  const { priceMinor, compareAtMinor, currency, stock, available, name, category } = content
  const { state, reason, detail, wantedPriceMinor } = decision
  const costMinor = decision.costMinor ?? before.knownCostMinor
  const row = after(
    telling,
    {
      ...{ state, reason, detail, wantedPriceMinor, attempts: 0, nextTryAt: null, toldAt: now },
      ...{ knownPriceMinor: priceMinor, knownCompareAtMinor: compareAtMinor, knownCurrency: currency },
      ...{ knownStock: stock, knownAvailable: available ? 1 : 0, knownName: name, knownCategory: category },
      knownCostMinor: costMinor,
      // What was let pass has passed, or the price went elsewhere: the next jump asks again.
      approvedPriceMinor: state === 'synced' ? null : before.approvedPriceMinor,
    },
    now,
  )
  if (before.knownPriceMinor === priceMinor && before.knownCurrency === currency) return { row }
  const { store, variant } = row
  const cause = causeOf(before, priceMinor, costMinor)
  return { row, price: { id: newId(), store, variant, at: now, priceMinor, currency, costMinor, cause } }
}

function causeOf(before: ListingRow, priceMinor: number, costMinor: number | null): string {
  if (before.knownPriceMinor === null) return 'first'
  if (before.approvedPriceMinor === priceMinor) return 'approved'
  return before.knownCostMinor === costMinor ? 'terms' : 'cost'
}

/**
 * Commits the results of listings that nobody changed meanwhile. Where a person did, that stands: the listing is pending
 * still, and is told again by the publication that the person's change owes.
 */
async function commitUnchanged({ db }: Publisher, store: string, recorded: Recorded[], rest: Change[]): Promise<void> {
  for (let left = recorded; ; ) {
    const prices = left.flatMap(({ price }) => (price ? [price] : []))
    try {
      const changes = putListings(left.map(({ row }) => row))
      await db.commit([...changes, ...(prices.length === 0 ? [] : [insertListingPrices(prices)]), ...rest])
      return
    } catch (error) {
      if (!(error instanceof StaleWrite)) throw error
      const stored = await db.query(
        listingsOfVariants(
          store,
          left.map(({ row }) => row.variant),
        ),
      )
      const versions = new Map(stored.map(({ variant, version }) => [variant, version]))
      const unchanged = left.filter(({ row }) => versions.get(row.variant) === row.version - 1)
      // None fell away: what is stale is something else.
      if (unchanged.length === left.length) throw error
      left = unchanged
    }
  }
}
