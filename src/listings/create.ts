/**
 * Creates products in a store that lacks them. The store says which variant is the product of a SKU, made now or there before,
 * so that a crash between creation and record makes no second one. Price and stock follow with the next push.
 */
import { publicationDelayMs } from '../domain/pace.ts'
import { dropListings, type ListingRow, listingsOfVariants, putListings } from '../storage/listings.ts'
import { pausePublishing } from '../storage/publications.ts'
import type { CreatedVariant, NewVariant, Store } from '../stores/store.ts'
import { type Assessed, isToCreate, newListing, type SellingStore } from './assess.ts'
import type { Publisher } from './publish.ts'

/** A listing whose product must be created before anything can be pushed. */
export const isLacking = ({ policy }: SellingStore, { row, decision }: Assessed): boolean =>
  policy.products !== undefined && isToCreate(row) && decision.push

/**
 * Creates the products of these listings, and records which variants they are.
 *
 * @param attempts messages in a row that the store had not taken before
 */
export async function createProducts(
  publisher: Publisher,
  { id: store, policy }: SellingStore,
  create: NonNullable<Store['create']>,
  lacking: Assessed[],
  attempts: number,
): Promise<void> {
  const { db, now: clock, random, log } = publisher
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
  for (const [sku, row] of rows) {
    const answer = bySku.get(sku) ?? (failure ? undefined : NOT_MENTIONED)
    if (!answer) continue
    if ('refusal' in answer) {
      const tries = row.attempts + 1
      const nextTryAt = now + publicationDelayMs(tries, random())
      const why = { state: 'failed', reason: 'refused', detail: answer.refusal } as const
      refused.push({ ...row, ...why, attempts: tries, nextTryAt, version: row.version + 1, changedAt: now })
    } else {
      const listing = newListing(store, { variant: answer.id, sku: row.sku, linkedBy: 'sku' }, now)
      created.push({ ...listing, version: 1 })
    }
  }
  const until = now + publicationDelayMs(attempts + 1, random())
  const before = created.flatMap(({ sku }) => rows.get(sku)?.variant ?? [])
  await db.commit([
    ...(before.length === 0 ? [] : [dropListings(store, before)]),
    ...putListings([...created, ...refused]),
    ...(failure ? [pausePublishing(store, { attempts: attempts + 1, until, error: failure.detail }, now)] : []),
  ])
  const count = answers.filter((answer) => !('refusal' in answer) && answer.isNew).length
  log.info('listings.created', { store, count })
  if (failure) log.warn('listings.kept', { store, count, outcome: failure.outcome, detail: failure.detail })
}

/** A variant that has a listing already keeps it: its SKU there follows when the store's products are read. */
const asNew = (answer: CreatedVariant, linked: ReadonlySet<string>): CreatedVariant =>
  !('refusal' in answer) && linked.has(answer.id)
    ? { sku: answer.sku, refusal: `the store has this SKU for ${answer.id}, which is a listing under another SKU` }
    : answer

/** A store that forgets a product in its answer must not be asked for it again and again. */
const NOT_MENTIONED = { refusal: 'the answer of the store does not mention it' }

function variantOf({ match, row }: Assessed, isPublished: boolean): NewVariant[] {
  if (match.outcome !== 'matched') return []
  const { name, category, description, image } = match.offer
  return [{ sku: row.sku, name, category, description, image, isPublished }]
}
