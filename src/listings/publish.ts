/**
 * Publishing pushes to each store the listings that differ from what that store is known to have, and nothing else.
 *
 *   publications  say "these products may look different now", and are queued in the commit of the change
 *   a batch       takes up to a hundred products, or as many as the store says, and decides on their listings. It stores the
 *                 differing listings as pending, pushes them, and records each answer together with the end of the publication
 *
 * What may go wrong: if a crash comes before the answers are recorded, the same listings are pushed again under a higher
 * revision. That does a store no harm. A store that cannot be reached is paused, longer after each try, and its queue stays. A
 * listing that a store refuses waits alone. One batch runs for a store at a time, so that no push overtakes another.
 */

import { createHash } from 'node:crypto'
import type { Context } from '../context.ts'
import type { StorePolicy } from '../domain/listing.ts'
import { publicationDelayMs, wasAway } from '../domain/pace.ts'
import { canBeBought, type ListingContent } from '../domain/publication.ts'
import { type Change, type Database, first, retryStale } from '../storage/database.ts'
import {
  distrustListings,
  dropListings,
  dueListings,
  type ListingRow,
  listingsOfVariants,
  pausedCreation,
  putListings,
  unlinkedListings,
} from '../storage/listings.ts'
import { type Offer, offersByProduct } from '../storage/offers.ts'
import {
  advancePublication,
  allPublishing,
  dropPublications,
  enqueueCatalogue,
  nextPublications,
  offersFrom,
  type Publication,
  publishingOf,
  putPublishing,
  wholePublication,
} from '../storage/publications.ts'
import { currentEpoch } from '../storage/restores.ts'
import type { CreatedVariant, NewVariant, Store } from '../stores/store.ts'
import {
  type Assessed,
  assess,
  isForeign,
  isToCreate,
  knownOf,
  newListing,
  productOf,
  type SellingStore,
} from './assess.ts'
import { isNoticed, type ListingPush, pushListings, recordPushes, sentFrom } from './push.ts'
import { readVariants } from './variants.ts'

export interface Publisher extends Omit<Context, 'vault'> {
  stores: readonly SellingStore[]
  storeOf: (
    id: string,
  ) => Pick<Store, 'publish' | 'batchSize' | 'createSize' | 'productsMax' | 'create' | 'variants'> | undefined
}

/** How many products a batch takes where the store says nothing else. As a rule, one callback holds all their listings. */
const PRODUCTS_MAX = 100
/** How many publications are taken together. A sync run queues a publication for each page on which a product changed. */
const TOGETHER_MAX = 100
/** How often a batch is tried when another commit changes its listings meanwhile. Three times in a row is no coincidence. */
const TRIES_MAX = 3

/**
 * Publishes one batch for a store.
 *
 * @returns 1 when there was a batch, else 0: nothing is queued, or the store is paused
 * @throws StaleWrite when the same listings are changed elsewhere again and again
 */
export async function publishNext(publisher: Publisher, store: SellingStore): Promise<number> {
  const to = publisher.storeOf(store.id)
  if (!to) return 0
  await enqueueChangedPolicy(publisher, store)
  return retryStale(TRIES_MAX, () => publishBatch(publisher, store, to))
}

type To = NonNullable<ReturnType<Publisher['storeOf']>>

async function publishBatch(publisher: Publisher, store: SellingStore, to: To): Promise<number> {
  const { db } = publisher
  const now = publisher.now()
  const standing = await first(db, publishingOf(store.id))
  if (standing?.pausedUntil && standing.pausedUntil > now) return 0
  // The store's products are read first. Otherwise a product that is not known yet would be created again.
  if (store.policy.products && to.variants && (await readVariants(publisher, store, to.variants))) return 1
  // After a failure, one product finds out whether the store takes listings again.
  const max = standing?.attempts ? 1 : (to.productsMax ?? PRODUCTS_MAX)
  const work = await nextWork(db, store.id, now, max)
  if (!work) return 0
  const assessed = await assess(db, store, work, now)
  const lacking = assessed.filter((one) => isLacking(store, one))
  const due = lacking.filter(({ row }) => !isWaiting(row, now)).slice(0, to.createSize ?? to.batchSize)
  if (to.create && due.length > 0) {
    // The next call gets the same work, and pushes the listings whose product was created here.
    await createProducts(publisher, store, to.create, due)
    return 1
  }
  const { pushes, updates, drops } = planOf(
    assessed.filter((one) => !lacking.includes(one)),
    work.isNews,
    now,
  )
  const before = [
    ...putListings([...pushes.map(({ row }) => row), ...updates]),
    ...(drops.length === 0 ? [] : [dropListings(store.id, drops)]),
  ]
  if (pushes.length === 0) {
    await db.commit([...before, ...work.done])
    return 1
  }
  await db.commit(before)
  const outcome = await pushListings(publisher, to, pushes)
  const stood = { attempts: standing?.attempts ?? 0, wasAway: standing !== undefined && wasAway(standing) }
  await recordPushes(publisher, store.id, { pushes, outcome, done: work.done, ...stood })
  return 1
}

interface Work {
  offers: Offer[]
  rows: ListingRow[]
  /** Whether the products of this work changed. Then even a listing that waits for its next try is pushed at once. */
  isNews: boolean
  /** The changes that end the work, for the commit that records the batch. */
  done: Change[]
}

/** Returns the next work. Changed products come first, then listings that are tried again, then the whole catalogue. */
async function nextWork(db: Database, store: string, now: number, max: number): Promise<Work | undefined> {
  const named = await db.query(nextPublications(store, TOGETHER_MAX))
  if (named.length > 0) return namedWork(db, named, max)
  const rows = await db.query(dueListings(store, now, max))
  if (rows.length > 0) return { offers: [], rows, isNews: false, done: [] }
  const whole = await first(db, wholePublication(store))
  return whole && wholeWork(db, store, whole, max)
}

async function namedWork(db: Database, publications: Publication[], max: number): Promise<Work> {
  const productIds = new Set<string>()
  const over: string[] = []
  const done: Change[] = []
  for (const { id, productIds: named, cursor } of publications) {
    const from = Number(cursor ?? 0)
    const left = (named ?? []).slice(from)
    const taken = left.slice(0, max - productIds.size)
    for (const productId of taken) productIds.add(productId)
    if (taken.length < left.length) {
      if (taken.length > 0) done.push(advancePublication(id, { cursor: String(from + taken.length) }))
      break
    }
    over.push(id)
  }
  if (over.length > 0) done.push(dropPublications(over))
  return { offers: await db.query(offersByProduct([...productIds])), rows: [], isNews: true, done }
}

/** Goes on with the whole catalogue. The cursor is `p:` and the last product, then `v:` and the last variant without a product. */
async function wholeWork(db: Database, store: string, { id, cursor }: Publication, max: number): Promise<Work> {
  const position = cursor ?? ''
  if (!position.startsWith('v:')) {
    const offers = await db.query(offersFrom({ after: position.slice(2), limit: max }))
    const last = offers.at(-1)
    const moved = last && advancePublication(id, { cursor: `p:${last.productId}` })
    if (moved) return { offers, rows: [], isNews: false, done: [moved] }
  }
  const after = position.startsWith('v:') ? position.slice(2) : ''
  const rows = await db.query(unlinkedListings({ store, after, limit: max }))
  const last = rows.at(-1)
  const over = rows.length < max || !last
  return {
    offers: [],
    rows,
    isNews: false,
    done: [over ? dropPublications([id]) : advancePublication(id, { cursor: `v:${last.variant}` })],
  }
}

/** Sorts the decided listings into listings to push, rows that change only with us, and rows that are needless. */
function planOf(assessed: Assessed[], isNews: boolean, now: number) {
  const pushes: ListingPush[] = []
  const updates: ListingRow[] = []
  const drops: string[] = []
  for (const { row, match, decision } of assessed) {
    if (match.outcome === 'ignored' || (!isNews && isWaiting(row, now))) continue
    const { state, reason, detail, wantedPriceMinor, content } = decision
    const productId = productOf({ row, match })
    const next: ListingRow = { ...row, productId, version: row.version + 1, changedAt: now }
    if (decision.push && content) {
      const revision = nextRevision(row, now)
      const sending: ListingRow = { ...next, ...sentWith(row, content), state: 'pending', wantedPriceMinor, revision }
      pushes.push({ before: row, row: sending, decision, content })
      continue
    }
    if (row.linkedBy === 'sku' && content === null && row.revision === 0 && isIdle(match.outcome)) {
      if (row.version > 0) drops.push(row.variant)
      continue
    }
    // A remark of the store about the listing stays until the next push.
    const said = state === 'synced' && isNoticed(row) ? row : { reason, detail }
    const why = { reason: said.reason, detail: said.detail }
    const stands = { state, ...why, wantedPriceMinor, attempts: 0, nextTryAt: null }
    if (differs(row, { ...stands, productId })) updates.push({ ...next, ...stands })
  }
  return { pushes, updates, drops }
}

/**
 * Returns what the store may have once this content is pushed. Until the store confirms a price, the lowest pushed price counts.
 * Where the store's price is known, a push without stock adds nothing: customers cannot buy at the pushed price.
 */
function sentWith(row: ListingRow, content: ListingContent): Partial<ListingRow> {
  if (row.knownPriceMinor !== null && !canBeBought(content)) return {}
  const known = knownOf(row)
  if (known && isForeign(row) && canBeBought(known) && known.priceMinor === content.priceMinor) return {}
  if (row.sentPriceMinor !== null && row.sentCurrency === content.currency) {
    if (row.sentPriceMinor <= content.priceMinor) return {}
  }
  return sentFrom(content)
}

const isWaiting = ({ state, nextTryAt }: ListingRow, now: number): boolean =>
  state === 'failed' && nextTryAt !== null && nextTryAt > now

const isIdle = (outcome: string): boolean => ['gone', 'filtered', 'unlinked', 'missing'].includes(outcome)

const differs = (row: ListingRow, set: Partial<ListingRow>): boolean =>
  Object.entries(set).some(([name, value]) => row[name as keyof ListingRow] !== value)

/**
 * Returns the next revision. It always increases, also across a restore, so that a store never takes a new push for an old push.
 */
export const nextRevision = ({ revision }: ListingRow, now: number): number => Math.max(revision + 1, now)

/**
 * Queues every listing of a store whose policy differs from the policy that was published last. A policy differs when the
 * configuration was changed, or when a rate came into force or went out of force. After a restore it is unknown what was
 * pushed since the backup. Then every listing is pushed again.
 */
async function enqueueChangedPolicy({ db, newId, now: clock, log }: Publisher, store: SellingStore): Promise<void> {
  const now = clock()
  const policy = policyDigest(store.policy, now)
  const [[known], epoch] = await Promise.all([db.query(publishingOf(store.id)), currentEpoch(db)])
  const current = epoch?.epoch ?? 0
  if (known?.policy === policy && known.epoch === current) return
  const restored = known !== undefined && known.epoch !== current
  const cause = restored ? 'restore' : known ? 'policy' : 'start'
  const kept = known ?? { store: store.id, attempts: 0, pausedUntil: null, lastError: null }
  await db.commit([
    ...(restored ? [distrustListings(store.id, now)] : []),
    ...enqueueCatalogue(store.id, { newId, now, cause }),
    putPublishing({ ...kept, policy, epoch: current, changedAt: now }),
  ])
  log.info('listings.queued', { store: store.id, reason: cause })
}

/** Returns the stores that `enqueueChangedPolicy` would queue, and those with products of their own, which are to be read at times. */
export async function storesUnqueued({ db, now, stores }: Publisher): Promise<{ store: string }[]> {
  const [published, epoch] = await Promise.all([db.query(allPublishing()), currentEpoch(db)])
  const inForce = published.filter((one) => one.epoch === (epoch?.epoch ?? 0))
  const known = new Map(inForce.map(({ store, policy }) => [store, policy]))
  const unqueued = stores.filter(({ id, policy }) => policy.products || known.get(id) !== policyDigest(policy, now()))
  return unqueued.map(({ id }) => ({ store: id }))
}

const digests = new WeakMap<StorePolicy, { inForce: string; digest: string }>()

/** Returns a digest of the policy and the rates in force. The digest is computed again only when other rates are in force. */
function policyDigest(policy: StorePolicy, now: number): string {
  const { rates } = policy.pricing
  const inForce = rates.map(({ validFrom, validUntil }) => (validFrom <= now && now < validUntil ? 1 : 0)).join('')
  const known = digests.get(policy)
  if (known?.inForce === inForce) return known.digest
  const text = JSON.stringify([policy, inForce], (_key, value: unknown) => (value instanceof Map ? [...value] : value))
  const digest = createHash('sha256').update(text).digest('hex')
  digests.set(policy, { inForce, digest })
  return digest
}

/** Whether the product of a listing must be created before anything of the listing can be pushed. */
const isLacking = ({ policy }: SellingStore, { row, decision }: Assessed): boolean =>
  policy.products !== undefined && isToCreate(row) && decision.push

/**
 * Creates the products of these listings, and records their variants. For each SKU the store names the variant, whether it was
 * made now or before. So a crash between the creation and its record makes no second product. Price and stock follow with the
 * next push. A product that cannot be created now waits, longer each time.
 *
 * If the store failed as a whole, all products that it lacks wait together, while it goes on getting prices and stock. Once it
 * takes one, `recordPushes` of `push.ts` lets it be asked to create sooner.
 */
async function createProducts(
  publisher: Publisher,
  { id: store, policy }: SellingStore,
  create: NonNullable<Store['create']>,
  lacking: Assessed[],
): Promise<void> {
  const { db, now: clock, random, log } = publisher
  const paused = await first(db, pausedCreation(store, clock()))
  if (paused) {
    const { state, reason, detail, nextTryAt } = paused
    const waiting = { state, reason, detail, nextTryAt, changedAt: clock() }
    await db.commit(putListings(lacking.map(({ row }) => ({ ...row, ...waiting, version: row.version + 1 }))))
    return
  }
  const rows = new Map(lacking.map(({ row }) => [row.sku, row]))
  const result = await create(lacking.flatMap((one) => variantOf(one, policy.products?.create === 'publish')))
  const now = clock()
  const answers = result.outcome === 'answered' ? result.answers : []
  const failure = result.outcome === 'answered' ? result.failure : result
  const created: ListingRow[] = []
  const refused: ListingRow[] = []
  const ids = answers.flatMap((answer) => ('refusal' in answer ? [] : answer.id))
  const linked = new Set((await db.query(listingsOfVariants(store, ids))).map(({ variant }) => variant))
  const bySku = new Map(answers.map((answer) => [answer.sku, asNew(answer, linked)]))
  // Listings that fail together are tried again together.
  const jitter = random()
  for (const [sku, row] of rows) {
    const answer = bySku.get(sku) ?? (failure ? { refusal: failure.detail } : NOT_MENTIONED)
    if ('refusal' in answer) {
      const tries = row.attempts + 1
      const nextTryAt = now + publicationDelayMs(tries, jitter)
      const reason = bySku.has(sku) || !failure ? 'refused' : 'not_created'
      const why = { state: 'failed', reason, detail: answer.refusal } as const
      refused.push({ ...row, ...why, attempts: tries, nextTryAt, version: row.version + 1, changedAt: now })
    } else {
      const listing = newListing(store, { variant: answer.id, sku: row.sku, linkedBy: 'sku' }, now)
      // The new listing is due at once: the publication that it belonged to may be over.
      created.push({ ...listing, version: 1, nextTryAt: now })
    }
  }
  const before = created.flatMap(({ sku }) => rows.get(sku)?.variant ?? [])
  await db.commit([
    ...(before.length === 0 ? [] : [dropListings(store, before)]),
    ...putListings([...created, ...refused]),
  ])
  const count = answers.filter((answer) => !('refusal' in answer) && answer.isNew).length
  log.info('listings.created', { store, count })
  if (failure)
    log.warn('listings.not_created', { store, count: refused.length, outcome: failure.outcome, detail: failure.detail })
}

/** Refuses a variant that already has a listing under another SKU. The next reading of the store's products corrects that SKU. */
const asNew = (answer: CreatedVariant, linked: ReadonlySet<string>): CreatedVariant =>
  !('refusal' in answer) && linked.has(answer.id)
    ? { sku: answer.sku, refusal: `the store has this SKU for ${answer.id}, which is a listing under another SKU` }
    : answer

/** Stands for a missing answer. A store that leaves a product out must not be asked for that product again and again. */
const NOT_MENTIONED = { refusal: 'the answer of the store does not mention it' }

function variantOf({ match, row }: Assessed, isPublished: boolean): NewVariant[] {
  if (match.outcome !== 'matched') return []
  const { name, category, description, image } = match.offer
  return [{ sku: row.sku, name, category, description, image, isPublished }]
}
