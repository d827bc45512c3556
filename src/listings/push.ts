import { type Acknowledgement, acknowledgementOf, type Echo } from '../domain/acknowledgement.ts'
import { publicationDelayMs } from '../domain/pace.ts'
import { type ListingContent, type ListingDecision, mayUndersell } from '../domain/publication.ts'
import { type Change, StaleWrite } from '../storage/database.ts'
import {
  insertListingPrices,
  type ListingPrice,
  type ListingRow,
  listingsOfVariants,
  putListings,
} from '../storage/listings.ts'
import { oweAlert } from '../storage/outbox.ts'
import { pausePublishing, resumePublishing } from '../storage/publications.ts'
import type { NotTold, Store, StoreListing } from '../stores/store.ts'
import { factsOf, isForeign, listingRecord, notSent } from './assess.ts'
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
  for (let at = 0; at < tellings.length; at += store.batchSize) {
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

const storeListing = ({ row, content }: Telling): StoreListing => ({
  ...listingRecord(row, content),
  revision: row.revision,
})

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
    const later = () => publicationDelayMs(telling.row.attempts + 1, random())
    if (answer?.outcome === 'confirmed') return confirmed(telling, now, publisher.newId, random())
    if (answer) return failed(telling, answer, now, later())
    // The store as a whole is in trouble: that is told of each, and is none's own failure.
    const own = telling.row.attempts > 0
    const why = own ? {} : { reason: trouble?.outcome ?? null, detail: trouble?.detail ?? null }
    return { row: after(telling, { ...why, nextTryAt: pausedUntil }, now) }
  })
  const rest = trouble
    ? [pausePublishing(store, { attempts, until: pausedUntil, error: trouble.detail }, now)]
    : [resumePublishing(store, now), ...done]
  await commitUnchanged(publisher, store, recorded, [...rest, ...alertOf(publisher, store, tellings, recorded)])
  const count = [...said.values()].filter((answer) => answer.outcome === 'confirmed').length
  const fields = { store, count, others: tellings.length - count, attempts, durationMs }
  const refused = recorded.filter(({ row }) => row.state === 'failed')
  const [first] = refused
  if (first) {
    const { variant: id, reason, detail } = first.row
    log.warn('listings.failed', { store, count: refused.length, id, reason, detail })
  }
  if (trouble) log.warn('listings.kept', { ...fields, outcome: trouble.outcome, detail: trouble.detail })
  else log.info('listings.published', fields)
}

/** Tries in a row after which people are told: some six minutes. */
const ALERT_TRIES = 3
/** Listings that one alert names; the others are counted. */
const NAMED_MAX = 5

/** One alert for the listings that have now failed for a while; each is in one, however long it goes on. */
function alertOf(
  publisher: Pick<Publisher, 'newId' | 'now'>,
  store: string,
  tellings: Telling[],
  recorded: Recorded[],
): Change[] {
  const rows = recorded.flatMap(({ row }, place) =>
    row.attempts === ALERT_TRIES && tellings[place]?.row.attempts === ALERT_TRIES - 1 ? [row] : [],
  )
  const [first] = rows
  if (!first) return []
  const some = rows.slice(0, NAMED_MAX).map(({ variant, reason }) => `${variant} (${reason})`)
  const more = rows.length > NAMED_MAX ? ` and ${rows.length - NAMED_MAX} more` : ''
  const note = `${store} has not taken ${some.join(', ')}${more} in ${ALERT_TRIES} tries: quayside listings list --state failed --store ${store}`
  const occasion = `${store}:${first.variant}:${first.revision}`
  return [oweAlert(publisher, { type: 'listing_failed', occasion, payload: { note, store } })]
}

interface Recorded {
  row: ListingRow
  price?: ListingPrice
}

/**
 * What is stored once a store has not taken a listing. What it says that it has instead is known from then on. Where that,
 * or what it had, may sell under the floor, the next telling is due at once: it takes the stock out.
 */
function failed(
  telling: Telling,
  answer: Acknowledgement & { outcome: 'failed' },
  now: number,
  wait: number,
): Recorded {
  const { row, content, decision } = telling
  const { reason, detail } = answer
  const set = { reason, detail, state: 'failed', attempts: row.attempts + 1, nextTryAt: now + wait } as const
  const echo = answer.reason === 'echo_differs' ? answer.echo : undefined
  const has = echo && echoed(content, echo)
  const next = after(telling, { ...set, ...(has && hasInstead(telling, has)) }, now)
  const { floorMinor, state } = decision
  if (floorMinor === null || state === 'failed') return { row: next }
  const isUrgent = mayUndersell(factsOf(next), { priceMinor: floorMinor, currency: content.currency })
  return { row: isUrgent ? { ...next, nextTryAt: now } : next }
}

/** What is known of a store that has something else than it was told. */
function hasInstead({ row, content, decision }: Telling, has: ListingContent): Partial<ListingRow> {
  const costMinor = decision.costMinor ?? row.knownCostMinor
  return {
    ...knownWith(has),
    knownCostMinor: has.priceMinor === content.priceMinor ? costMinor : null,
    // Told at a price that the store itself had made, it was told no price of ours: the one of before stays.
    ...(costMinor === null ? {} : sentFrom(content)),
  }
}

/** What the store has, by what it repeats; undefined when its price cannot be read. */
function echoed(content: ListingContent, { priceMinor, stock }: Echo): ListingContent | undefined {
  return priceMinor === null ? undefined : { ...content, priceMinor, stock, available: stock !== 0 }
}

const knownWith = ({ priceMinor, compareAtMinor, currency, stock, available, name, category }: ListingContent) => ({
  knownPriceMinor: priceMinor,
  knownCompareAtMinor: compareAtMinor,
  knownCurrency: currency,
  knownStock: stock,
  knownAvailable: available ? 1 : 0,
  knownName: name,
  knownCategory: category,
})

export const sentFrom = ({ priceMinor, compareAtMinor, currency, name, category }: ListingContent) => ({
  sentPriceMinor: priceMinor,
  sentCompareAtMinor: compareAtMinor,
  sentCurrency: currency,
  sentName: name,
  sentCategory: category,
})

const after = ({ row }: Telling, set: Partial<ListingRow>, now: number): ListingRow => ({
  ...row,
  ...set,
  version: row.version + 1,
  changedAt: now,
})

/**
 * What is stored once a store has confirmed a listing.
 *
 * @param random from 0 to 1, spreads the wait until a price that the store did not take is told again
 */
export function confirmed(telling: Telling, now: number, newId: () => string, random: number): Recorded {
  const { before, content, decision } = telling
  const { priceMinor, currency } = content
  const { state, wantedPriceMinor } = decision
  const costMinor = decision.costMinor ?? before.knownCostMinor
  const row = after(
    telling,
    {
      ...standingOf(telling, now, random),
      wantedPriceMinor,
      toldAt: now,
      ...knownWith(content),
      knownCostMinor: costMinor,
      // What was let pass has passed, or the price went elsewhere: the next jump asks again.
      approvedPriceMinor: state === 'synced' ? null : before.approvedPriceMinor,
    },
    now,
  )
  const had = before.knownPriceMinor === priceMinor && before.knownCurrency === currency
  if (had && before.toldAt !== null) return { row }
  const { store, variant } = row
  const cause = causeOf(before, priceMinor, costMinor)
  return { row, price: { id: newId(), store, variant, at: now, priceMinor, currency, costMinor, cause } }
}

function standingOf({ before, decision }: Telling, now: number, random: number): Partial<ListingRow> {
  const { state, reason, detail } = decision
  // At a price that the store itself had made: what it was told instead is still what a jump is measured from.
  const sent = isForeign(before) && decision.costMinor === null ? sentOf(before) : notSent
  if (state === 'failed') {
    // It has no stock now. What it did not take is still to be told, and having told this counts as no try of it.
    const nextTryAt = now + publicationDelayMs(before.attempts, random)
    return { ...sent, state, reason: before.reason, detail: before.detail, nextTryAt }
  }
  return { ...sent, state, reason, detail, attempts: 0, nextTryAt: state === 'pending' ? now : null }
}

const sentOf = ({ sentPriceMinor, sentCompareAtMinor, sentCurrency, sentName, sentCategory }: ListingRow) => ({
  sentPriceMinor,
  sentCompareAtMinor,
  sentCurrency,
  sentName,
  sentCategory,
})

function causeOf(before: ListingRow, priceMinor: number, costMinor: number | null): string {
  if (before.toldAt === null) return 'first'
  if (before.approvedPriceMinor === priceMinor) return 'approved'
  return before.knownCostMinor === costMinor ? 'policy' : 'cost'
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
      await db.commit([...changes, ...insertListingPrices(prices), ...rest])
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
