/**
 * Creates products in a store that lacks them. For each SKU the store names the variant, whether it was made now or before. So a
 * crash between the creation and its record makes no second product. Price and stock follow with the next push.
 *
 * A store that creates nothing now is not asked to create for a while. It goes on getting prices and stock. Once the store takes
 * a price or stock, `recordPushes` of `push.ts` lets it be asked to create sooner.
 */
import { publicationDelayMs } from '../domain/pace.ts'
import { first } from '../storage/database.ts'
import { dropListings, type ListingRow, listingsOfVariants, pausedCreation, putListings } from '../storage/listings.ts'
import type { CreatedVariant, NewVariant, Store } from '../stores/store.ts'
import { type Assessed, isToCreate, newListing, type SellingStore } from './assess.ts'
import type { Publisher } from './publish.ts'

/** Whether the product of a listing must be created before anything of the listing can be pushed. */
export const isLacking = ({ policy }: SellingStore, { row, decision }: Assessed): boolean =>
  policy.products !== undefined && isToCreate(row) && decision.push

/**
 * Creates the products of these listings, and records their variants. A product that cannot be created now waits, longer each
 * time. If the store failed as a whole, all products that it lacks wait together.
 */
export async function createProducts(
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
