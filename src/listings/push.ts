import { type Acknowledgement, acknowledgementOf, type Echo, type Notice } from '../domain/acknowledgement.ts'
import { listingNotices } from '../domain/labels.ts'
import { creationDelayMs, publicationDelayMs } from '../domain/pace.ts'
import { type ListingContent, type ListingDecision, mayUndersell } from '../domain/publication.ts'
import { type Change, first, StaleWrite } from '../storage/database.ts'
import {
  hastenCreation,
  insertListingPrices,
  type ListingPrice,
  type ListingRow,
  listingsOfVariants,
  pausedCreation,
  putListings,
} from '../storage/listings.ts'
import { enqueueAlert, hastenFailed } from '../storage/outbox.ts'
import { pausePublishing, resumePublishing } from '../storage/publications.ts'
import { isAway, type NotConfirmed, type Store, type StoreListing } from '../stores/store.ts'
import { factsOf, isForeign, listingRecord, notSent } from './assess.ts'
import type { Publisher } from './publish.ts'

export interface ListingPush {
  /** The listing as it was decided on. */
  before: ListingRow
  /** The listing as it is stored now: pending, under the revision that is pushed. */
  row: ListingRow
  decision: ListingDecision
  content: ListingContent
}

/** Pushes listings in messages of the size that the store takes, and stops at the first message that it does not take. */
export async function pushListings(
  { now, monotonic, newId }: Publisher,
  store: Pick<Store, 'publish' | 'batchSize'>,
  pushes: ListingPush[],
) {
  const startedAt = monotonic()
  /** The answers by variant. A listing that is not in this map has no answer. */
  const answers = new Map<string, Acknowledgement>()
  /** Why the store stopped taking listings; undefined where it took every message. */
  let failure: NotConfirmed | undefined
  for (let at = 0; at < pushes.length; at += store.batchSize) {
    const some = pushes.slice(at, at + store.batchSize)
    const listings = some.map(storeListing)
    const result = await store.publish({ id: newId(), at: now(), listings })
    if (result.outcome !== 'answered') {
      failure = result
      break
    }
    failure = result.failure
    const answered = result.answers === 'all' ? undefined : new Map(result.answers.map((answer) => [answer.id, answer]))
    for (const [index, sent] of listings.entries()) {
      const answer = answered?.get(sent.id)
      // A listing that the store did not get to before it stopped is neither taken nor refused.
      if (failure && !answer) continue
      const floorMinor = some[index]?.decision.floorMinor ?? null
      answers.set(sent.id, answered ? acknowledgementOf({ ...sent, floorMinor }, answer) : { outcome: 'confirmed' })
    }
    if (failure) break
  }
  return { answers, failure, durationMs: Math.round(monotonic() - startedAt) }
}

const storeListing = ({ row, content, decision }: ListingPush): StoreListing => ({
  ...listingRecord(row, content),
  ...(content.isGone && { isGone: true }),
  ...(decision.stockAlone && { stockAlone: true }),
  revision: row.revision,
})

interface PushedBatch {
  pushes: ListingPush[]
  outcome: Awaited<ReturnType<typeof pushListings>>
  done: Change[]
  /** How many messages in a row the store had not taken before this batch, and whether it was away at the last one. */
  attempts: number
  wasAway: boolean
}

/**
 * Records in one commit what the store answered. Where the store stopped taking listings, the work stays queued, and nothing is
 * pushed until a pause is over.
 */
export async function recordPushes(publisher: Publisher, store: string, batch: PushedBatch): Promise<void> {
  const { now: clock, random, log } = publisher
  const { pushes, done, outcome } = batch
  const { answers, failure, durationMs } = outcome
  const now = clock()
  const away = failure !== undefined && isAway(failure)
  // A shop that comes back may refuse something while it starts: that is its first refusal, however long it was away.
  const attempts = batch.wasAway && !away ? 1 : batch.attempts + 1
  const pausedUntil = now + publicationDelayMs(attempts, random(), away)
  const recorded = pushes.map((push): Recorded => {
    const answer = answers.get(push.row.variant)
    const later = () => publicationDelayMs(push.row.attempts + 1, random())
    if (answer?.outcome === 'confirmed') return confirmed(push, answer.notice, now, publisher.newId, random())
    if (answer) return failed(push, answer, now, later())
    // The store failed as a whole, so the listing counts no failure. A listing that was not failing records the reason.
    const own = push.row.attempts > 0
    const why = own ? {} : { reason: failure?.outcome ?? null, detail: failure?.detail ?? null }
    return { row: after(push, { ...why, nextTryAt: now }, now) }
  })
  const count = [...answers.values()].filter((answer) => answer.outcome === 'confirmed').length
  // A store that takes prices may create products again, too.
  const uncreated = failure || count === 0 ? undefined : await first(publisher.db, pausedCreation(store, now))
  const rest = failure
    ? [pausePublishing(store, { attempts, pausedUntil, lastError: failure.detail, changedAt: now })]
    : [
        resumePublishing(store, now),
        ...(uncreated ? [hastenCreation(store, now + creationDelayMs(uncreated.attempts))] : []),
        ...(batch.attempts > 0 ? [hastenFailed(store, now)] : []),
        ...done,
      ]
  await commitUnchanged(publisher, store, recorded, [...rest, ...alertOf(publisher, store, pushes, recorded)])
  const fields = { store, count, others: pushes.length - count, attempts, durationMs }
  const logged = [
    ['listings.failed', recorded.filter(({ row }) => row.state === 'failed')],
    [
      'listings.noticed',
      recorded.filter(({ row }, index) => isNoticed(row) && pushes[index]?.before.reason !== row.reason),
    ],
  ] as const
  for (const [event, some] of logged) {
    const [one] = some
    if (!one) continue
    const { variant: id, reason, detail } = one.row
    log.warn(event, { store, count: some.length, id, reason, detail })
  }
  if (failure) log.warn('listings.kept', { ...fields, outcome: failure.outcome, detail: failure.detail })
  else log.info('listings.published', fields)
}

/** After how many failed tries in a row people are alerted. These tries take some six minutes. */
const ALERT_TRIES = 3
/** How many listings one alert names. The other listings are counted. */
const NAMED_MAX = 5

/** Returns one alert of all listings that have just failed for the third time. Later failures of them are not named again. */
function alertOf(
  publisher: Pick<Publisher, 'newId' | 'now'>,
  store: string,
  pushes: ListingPush[],
  recorded: Recorded[],
): Change[] {
  const rows = recorded.flatMap(({ row }, index) =>
    row.attempts === ALERT_TRIES && pushes[index]?.row.attempts === ALERT_TRIES - 1 ? [row] : [],
  )
  const [one] = rows
  if (!one) return []
  const some = rows.slice(0, NAMED_MAX).map(({ variant, reason }) => `${variant} (${reason})`)
  const more = rows.length > NAMED_MAX ? ` and ${rows.length - NAMED_MAX} more` : ''
  const note = `${store} has not taken ${some.join(', ')}${more} in ${ALERT_TRIES} tries: quayside listings list --state failed --store ${store}`
  const occasion = `${store}:${one.variant}:${one.revision}`
  return [enqueueAlert(publisher, { type: 'listing_failed', occasion, payload: { note, store } })]
}

interface Recorded {
  row: ListingRow
  price?: ListingPrice
}

/**
 * Returns what is stored once a store has not taken a listing. What the store says that it has instead is stored as known.
 * Where the store may sell the listing under the floor, the next push is due at once and takes the stock out.
 */
function failed(
  push: ListingPush,
  answer: Acknowledgement & { outcome: 'failed' },
  now: number,
  wait: number,
): Recorded {
  const { row, content, decision } = push
  const { reason, detail } = answer
  const set = { reason, detail, state: 'failed', attempts: row.attempts + 1, nextTryAt: now + wait } as const
  const echo = 'echo' in answer ? answer.echo : undefined
  const has = echo && echoed(content, echo)
  const next = after(push, { ...set, ...(has && hasInstead(push, has)) }, now)
  const { floorMinor, state } = decision
  if (floorMinor === null || state === 'failed') return { row: next }
  const isUrgent = mayUndersell(factsOf(next), { priceMinor: floorMinor, currency: content.currency })
  return { row: isUrgent ? { ...next, nextTryAt: now } : next }
}

/** Returns what is known of a listing when the store has something else than what was pushed. */
function hasInstead({ row, content, decision }: ListingPush, has: ListingContent): Partial<ListingRow> {
  const costMinor = decision.costMinor ?? row.knownCostMinor
  return {
    ...knownWith(has),
    knownCostMinor: has.priceMinor === content.priceMinor ? costMinor : null,
    // A push that repeated the store's own price has sent no price of ours, so the price that was sent before stays.
    ...(costMinor === null ? {} : sentFrom(content)),
  }
}

/** Returns what the store has by its echo; undefined when the price in the echo cannot be read. */
function echoed(content: ListingContent, { priceMinor, stock }: Echo): ListingContent | undefined {
  return priceMinor === null ? undefined : { ...content, priceMinor, stock, available: stock !== 0 }
}

const knownWith = (content: ListingContent) => ({
  knownPriceMinor: content.priceMinor,
  knownCompareAtMinor: content.compareAtMinor,
  knownCurrency: content.currency,
  knownStock: content.stock,
  knownAvailable: content.available,
  knownName: content.name,
  knownCategory: content.category,
  knownGone: content.isGone || null,
})

export const sentFrom = ({ priceMinor, compareAtMinor, currency, name, category }: ListingContent) => ({
  sentPriceMinor: priceMinor,
  sentCompareAtMinor: compareAtMinor,
  sentCurrency: currency,
  sentName: name,
  sentCategory: category,
})

const after = ({ row }: ListingPush, set: Partial<ListingRow>, now: number): ListingRow => ({
  ...row,
  ...set,
  version: row.version + 1,
  changedAt: now,
})

/** Whether the store has the listing as it should, and said something of the listing that a person should look at. */
export const isNoticed = ({ state, reason }: Pick<ListingRow, 'state' | 'reason'>): boolean =>
  state === 'synced' && listingNotices.some((one) => one === reason)

/**
 * Returns what is stored once a store has confirmed a listing.
 *
 * @param random from 0 to 1, spreads the wait until a price that the store did not take is pushed again
 */
export function confirmed(
  push: ListingPush,
  notice: Notice | undefined,
  now: number,
  newId: () => string,
  random: number,
): Recorded {
  const { before, content, decision } = push
  const { priceMinor, currency } = content
  const { state, wantedPriceMinor } = decision
  const costMinor = decision.costMinor ?? before.knownCostMinor
  const row = after(
    push,
    {
      ...standingOf(push, now, random),
      ...(state === 'synced' && notice),
      wantedPriceMinor,
      pushedAt: now,
      ...knownWith(content),
      knownCostMinor: costMinor,
      // The approval ends: the approved price was pushed, or another price is wanted now. The next jump of the price asks again.
      approvedPriceMinor: state === 'synced' ? null : before.approvedPriceMinor,
    },
    now,
  )
  const had = before.knownPriceMinor === priceMinor && before.knownCurrency === currency
  if (had && before.pushedAt !== null) return { row }
  const { store, variant } = row
  const cause = causeOf(before, priceMinor, costMinor)
  return { row, price: { id: newId(), store, variant, at: now, priceMinor, currency, costMinor, cause } }
}

function standingOf({ before, decision }: ListingPush, now: number, random: number): Partial<ListingRow> {
  const { state, reason, detail } = decision
  // Where the push repeated the store's own price, a jump is still measured from the price that was pushed before.
  const sent = isForeign(before) && decision.costMinor === null ? sentOf(before) : notSent
  if (state === 'failed') {
    // The listing has no stock now. The content that the shop refused must still be pushed. This push does not count as a try.
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
  if (before.pushedAt === null) return 'first'
  if (before.approvedPriceMinor === priceMinor) return 'approved'
  if (isForeign(before)) return 'shop'
  return before.knownCostMinor === costMinor ? 'policy' : 'cost'
}

/**
 * Commits the results of listings that did not change meanwhile. Where an operator has changed a listing, the operator's change
 * stays: the operator has made the listing due again, or ignores the listing.
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
      const variants = left.map(({ row }) => row.variant)
      const stored = await db.query(listingsOfVariants(store, variants))
      const versions = new Map(stored.map(({ variant, version }) => [variant, version]))
      const unchanged = left.filter(({ row }) => versions.get(row.variant) === row.version - 1)
      // Every listing is unchanged: another row of the commit is stale.
      if (unchanged.length === left.length) throw error
      left = unchanged
    }
  }
}
