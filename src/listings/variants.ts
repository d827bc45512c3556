/**
 * Reads what a store with products of its own sells, and begins a listing for each variant whose SKU an offer has. Variants with
 * other SKUs do not concern Quayside: no row is kept of them.
 */
import { parseDecimal } from '../domain/money.ts'
import { VARIANTS_EVERY_MS } from '../domain/pace.ts'
import { first, need } from '../storage/database.ts'
import {
  dropListings,
  insertListingPrices,
  type ListingPrice,
  type ListingRow,
  listingsOfVariants,
  putListings,
} from '../storage/listings.ts'
import { offersBySku } from '../storage/offers.ts'
import { enqueuePublications, pausePublishing } from '../storage/publications.ts'
import { syncWithNewOffers } from '../storage/runs.ts'
import { putStoreReading, storeReadingOf } from '../storage/stores.ts'
import type { Store, StoreVariant } from '../stores/store.ts'
import { isForeign, isToCreate, knownOf, newListing, type SellingStore, variantToCreate } from './assess.ts'
import type { Publisher } from './publish.ts'
import { sentFrom } from './push.ts'

/** How long to wait before asking again for a page that the store did not give. */
const AGAIN_MS = 60_000

/** Reads the next page of what the store sells, if a reading is under way or due. @returns whether a page was read */
export async function readVariants(
  publisher: Publisher,
  { id: store }: SellingStore,
  variants: NonNullable<Store['variants']>,
): Promise<boolean> {
  const { db, now: clock, log } = publisher
  const began = clock()
  const { variantsCursor, variantsReadAt } = await need(db, storeReadingOf(store), 'store', store)
  const age = variantsReadAt === null ? VARIANTS_EVERY_MS : Math.abs(began - variantsReadAt)
  if (age < VARIANTS_EVERY_MS) {
    // After a failed page, the code below dates the last reading to the start of this last minute: the next try waits a minute.
    if (age >= VARIANTS_EVERY_MS - AGAIN_MS) return false
    // Earlier readings passed over each variant whose offer was not known yet, so new offers make a reading due.
    const news = syncWithNewOffers(variantsReadAt ?? 0, began)
    const isDue = variantsCursor !== null || (await first(db, news)) !== undefined
    if (!isDue) return false
  }
  const page = await variants(variantsCursor)
  const now = clock()
  if (page.outcome !== 'read') {
    log.warn('variants.unread', { store, outcome: page.outcome, detail: page.detail })
    if (variantsReadAt !== null) {
      // What the store sold at the last reading goes on being pushed, so that the prices in the store do not grow old.
      await db.commit([putStoreReading(store, { variantsReadAt: now - VARIANTS_EVERY_MS + AGAIN_MS })])
      return false
    }
    const paused = { attempts: 1, pausedUntil: now + AGAIN_MS, lastError: page.detail, changedAt: now }
    await db.commit([pausePublishing(store, paused)])
    return true
  }
  const { rows, productIds, made, prices } = await listingsFor(publisher, store, page.items, now)
  await db.commit([
    ...(made.length === 0 ? [] : [dropListings(store, made)]),
    ...putListings(rows),
    ...insertListingPrices(prices),
    ...enqueuePublications([{ id: store }], productIds, { newId: publisher.newId, now, cause: 'variants' }),
    putStoreReading(store, { variantsCursor: page.next, ...(variantsCursor === null && { variantsReadAt: began }) }),
  ])
  if (prices.length > 0) log.warn('listings.priced_in_shop', { store, count: prices.length, id: prices[0]?.variant })
  if (page.next === null) log.info('variants.read', { store })
  return true
}

/**
 * Returns the listings that are new, or whose SKU, price or stock in the store has changed, and the products behind them. `made`:
 * listings that waited for a product and have it now, because the store acted without an answer or a person made the product.
 */
async function listingsFor(
  { db, newId }: Pick<Publisher, 'db' | 'newId'>,
  store: string,
  items: StoreVariant[],
  now: number,
) {
  const named = items.filter((item): item is StoreVariant & { sku: string } => item.sku !== null && item.sku !== '')
  if (named.length === 0) return { rows: [], productIds: [], made: [], prices: [] }
  const ids = named.flatMap(({ id, sku }) => [id, variantToCreate(sku)])
  const [known, offers] = await Promise.all([
    db.query(listingsOfVariants(store, ids)),
    db.query(offersBySku(named.map(({ sku }) => sku))),
  ])
  const byVariant = new Map(known.map((row) => [row.variant, row]))
  const bySku = Map.groupBy(offers, ({ sku }) => sku)
  const rows: ListingRow[] = []
  const productIds = new Set<string>()
  const made = new Set<string>()
  const prices: ListingPrice[] = []
  for (const { id, sku, sellable, price } of named) {
    const row = byVariant.get(id)
    const candidates = bySku.get(sku) ?? []
    const waiting = byVariant.get(variantToCreate(sku))
    if (waiting && isToCreate(waiting) && waiting.state !== 'ignored') {
      made.add(waiting.variant)
      for (const { productId } of candidates) productIds.add(productId)
    }
    const instead = row && priceInstead(row, price)
    const isOff = row !== undefined && (instead !== undefined || sellsOtherwise(row, sellable))
    if (row ? row.sku === sku && !isOff : candidates.length === 0) continue
    const listing = row ?? newListing(store, { variant: id, sku, linkedBy: 'sku' }, now)
    // A pending listing is pushed again. The push reads what the store really has, and replaces that by what it should have.
    const again = isOff && { state: 'pending' as const }
    if (instead) prices.push({ ...instead.price, id: newId(), store, variant: id, at: now, cause: 'shop' })
    rows.push({ ...listing, ...again, ...instead?.row, sku, version: listing.version + 1, changedAt: now })
    if (row?.productId) productIds.add(row.productId)
    for (const { productId } of candidates) productIds.add(productId)
  }
  return { rows, productIds: [...productIds], made: [...made], prices }
}

/** Returns the price that a store has instead of the confirmed one; undefined without such a price, or if the reason names it. */
function priceInstead(row: ListingRow, text = '') {
  const known = knownOf(row)
  const isSaid = row.reason === 'sale_price' && row.detail?.includes(` ${text} `)
  if (!known || row.state !== 'synced' || isSaid) return undefined
  const { currency } = known
  const priceMinor = parseDecimal(text, currency)
  if (priceMinor === undefined || priceMinor === known.priceMinor) return undefined
  return {
    price: { priceMinor, currency, costMinor: null },
    // No jump is measured from a price of the merchant.
    row: { knownPriceMinor: priceMinor, knownCostMinor: null, ...(!isForeign(row) && sentFrom(known)) },
  }
}

/** Whether `stock_elsewhere` is missing although the store sells more than it should, or is set although the store does not. */
const sellsOtherwise = ({ state, reason, knownStock }: ListingRow, sellable: number | undefined): boolean =>
  state === 'synced' &&
  knownStock !== null &&
  sellable !== undefined &&
  sellable > knownStock !== (reason === 'stock_elsewhere')
