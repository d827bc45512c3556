import { and, asc, desc, eq, gt, gte, inArray, isNull, lt, lte, ne, or, sql } from 'drizzle-orm'
import type { ListingState } from '../domain/listing.ts'
import type { Change } from './database.ts'
import { listingPrices, listings } from './schema.ts'
import { build, change, insertMany, inWhole, statement, uniqueKey } from './statement.ts'
import {
  asInserted,
  beginning,
  bringForward,
  countBy,
  deleteBy,
  firstBy,
  pageBy,
  rowOf,
  rowsBy,
  someBy,
  valueAfter,
  within,
} from './table.ts'

export type ListingRow = typeof listings.$inferSelect

/** Returns a listing as it is read once it is inserted. */
export const listingAsInserted = (listing: typeof listings.$inferInsert): ListingRow => rowOf(listings, listing)

/** The listings of these products in a store; one product may have several variants. */
export const listingsOfProducts = rowsBy(listings, ['store', 'productId in'])
export const listingsOfVariants = rowsBy(listings, ['store', 'variant in'])
export const listingsOfSkus = rowsBy(listings, ['store', 'sku in'])

/** The listings that a store may have sold: those of these variants, and those under these SKUs. */
export const listingsSold = statement((store: string, variants: string[], skus: string[]) =>
  build
    .select()
    .from(listings)
    .where(
      // Each side names the store: only then does each use an index of its own.
      or(
        and(eq(listings.store, store), inArray(listings.variant, variants)),
        and(eq(listings.store, store), inArray(listings.sku, skus)),
      ),
    ),
)

/** Listings whose next try is due. The listing that has been due longest comes first. */
export const dueListings = someBy(listings, ['store', 'nextTryAt <='], listings.nextTryAt)

const isUncreated = eq(listings.reason, 'not_created')

/** The listing that pauses the creation of products in a store: it could not be created, and waits longest. No row: no pause. */
export const pausedCreation = firstBy(
  listings,
  ['store', 'nextTryAt >', isUncreated],
  // All listings that wait to be created have the same `nextTryAt`. The listing that itself failed has had the most tries.
  desc(listings.nextTryAt),
  desc(listings.attempts),
)

/** Makes the listings of a store that could not be created wait no longer than until this instant. */
export const hastenCreation = bringForward(listings, ['store', isUncreated], 'nextTryAt')

/** A page of the listings of one store that are linked to no offer, by variant. */
export const unlinkedListings = pageBy(listings, 'variant', ['store'], isNull(listings.productId))

/** A page of a store's listings by variant; with `before` the other way round. */
export const pageOfListings = statement(
  (filter: {
    store: string
    state?: ListingState | undefined
    reasons?: readonly string[] | undefined
    before?: string | undefined
    after?: string | undefined
    limit: number
  }) =>
    build
      .select()
      .from(listings)
      .where(
        and(
          eq(listings.store, filter.store),
          filter.state && eq(listings.state, filter.state),
          filter.reasons && inWhole(listings.reason, filter.reasons),
          within(listings.variant, filter),
        ),
      )
      .orderBy(filter.before === undefined ? asc(listings.variant) : desc(listings.variant))
      .limit(filter.limit),
)

const waits = sql`${listings.wantedPriceMinor} is not null`

/** Listings of all stores whose price waits for a person, by store and variant. `page` names the last listing seen. */
export const waitingListings = statement((page: { store?: string; variant?: string; limit: number }) =>
  build
    .select()
    .from(listings)
    .where(
      and(
        waits,
        page.store === undefined ? undefined : gte(listings.store, page.store),
        page.store === undefined || page.variant === undefined
          ? undefined
          : or(gt(listings.store, page.store), gt(listings.variant, page.variant)),
      ),
    )
    .orderBy(asc(listings.store), asc(listings.variant))
    .limit(page.limit),
)

/** The same listings before one of them, the last of them first. */
export const waitingListingsBefore = statement((store: string, variant: string, limit: number) =>
  build
    .select()
    .from(listings)
    .where(and(waits, lte(listings.store, store), or(lt(listings.store, store), lt(listings.variant, variant))))
    .orderBy(desc(listings.store), desc(listings.variant))
    .limit(limit),
)

export const countWaitingPrices = countBy(listings, [], waits)

/** Listings whose variant (or SKU) begins with a text: the range from that text up to the next text that begins otherwise. */
export const listingsWithVariant = someBy(listings, ['store', 'variant >=', 'variant <'], listings.variant)
export const listingsWithSku = someBy(listings, ['store', 'sku >=', 'sku <'], listings.sku)

/** Listings of all stores whose SKU begins with a text in small letters. */
export const listingsBySku = beginning(listings, sql`lower(${listings.sku})`)

export const countListings = countBy(listings, ['store', 'state'])

/**
 * Writes listings. The version of each is one above the version of the row as it was read, or 1 for a new listing. Stale when
 * one of the listings was changed or made in between.
 */
export const putListings: (rows: ListingRow[]) => Change[] = insertMany(listings, 'all', (insert) =>
  insert.onConflictDoUpdate({
    target: uniqueKey(listings.store, listings.variant),
    set: asInserted(listings, ['store', 'variant']),
    setWhere: sql`${listings.version} = excluded.version - 1`,
  }),
)

/** Deletes listings that were never pushed to their store, and that no operator has linked or ignored. */
export const dropListings = deleteBy(listings, [
  'store',
  'variant in',
  eq(listings.linkedBy, 'sku'),
  eq(listings.revision, 0),
  ne(listings.state, 'ignored'),
])

/** After a restore, has every listing of a store pushed again: the store may have other values than are known here. */
export const distrustListings = change('any', (store: string, now: number) =>
  build
    .update(listings)
    .set({ state: 'pending', version: sql`${listings.version} + 1`, changedAt: now })
    .where(and(eq(listings.store, store), sql`${listings.pushedAt} is not null`, sql`${listings.state} <> 'ignored'`)),
)

export type ListingPrice = typeof listingPrices.$inferSelect

export const insertListingPrices: (rows: ListingPrice[]) => Change[] = insertMany(listingPrices)

/** The prices that a store confirmed for a variant, newest first. */
export const pricesOfListing = someBy(
  listingPrices,
  ['store', 'variant'],
  desc(listingPrices.at),
  desc(listingPrices.id),
)

const DAY_MS = 86_400_000

/** The price that comes after the first `skipped` prices between two instants. */
export const priceAfter = valueAfter(listingPrices, 'at')

/** Deletes prices between two instants, except the last price of each day (UTC) and variant. */
export const thinListingPrices = change('any', (from: number, to: number) =>
  build.delete(listingPrices).where(
    sql`${listingPrices.at} >= ${from} and ${listingPrices.at} < ${to} and exists (
      select 1 from listing_prices as later
      where later.store = listing_prices.store and later.variant = listing_prices.variant
        and later.at > listing_prices.at
        and later.at < listing_prices.at - listing_prices.at % ${DAY_MS} + ${DAY_MS})`,
  ),
)

/** Forgets prices between two instants, except prices that still hold. */
export const forgetListingPrices = change('any', (from: number, before: number) =>
  build.delete(listingPrices).where(
    and(
      gte(listingPrices.at, from),
      lt(listingPrices.at, before),
      sql`exists (
        select 1 from listing_prices as later
        where later.store = listing_prices.store and later.variant = listing_prices.variant
          and later.at > listing_prices.at)`,
    ),
  ),
)
