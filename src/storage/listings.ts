import { and, asc, desc, eq, getTableColumns, gt, inArray, isNull, lt, lte, ne, sql } from 'drizzle-orm'
import type { ListingState } from '../domain/listing.ts'
import type { Change } from './database.ts'
import { listingPrices, listings } from './schema.ts'
import { bind, bindList, build, rowsInsert } from './statement.ts'

export type ListingRow = typeof listings.$inferSelect

const store = eq(listings.store, sql.placeholder('store'))
const listedUnder = (column: typeof listings.productId | typeof listings.variant | typeof listings.sku) =>
  bindList((items) =>
    build
      .select()
      .from(listings)
      .where(and(store, inArray(column, items))),
  )

const ofProducts = listedUnder(listings.productId)
const ofVariants = listedUnder(listings.variant)
const ofSkus = listedUnder(listings.sku)
/** What a store sells of these products; several variants may be one product. */
export const listingsOfProducts = (id: string, productIds: string[]) => ofProducts(productIds, { store: id })
export const listingsOfVariants = (id: string, variants: string[]) => ofVariants(variants, { store: id })
export const listingsOfSkus = (id: string, skus: string[]) => ofSkus(skus, { store: id })

const due = build
  .select()
  .from(listings)
  .where(and(store, lte(listings.nextTryAt, sql.placeholder('now'))))
  .orderBy(asc(listings.nextTryAt))
  .limit(sql.placeholder('most'))
/** Listings whose next try is due, the longest first. */
export const dueListings = (id: string, now: number, limit: number) => bind(due, { store: id, now, most: limit })

const unlinked = build
  .select()
  .from(listings)
  .where(and(store, isNull(listings.productId), gt(listings.variant, sql.placeholder('after'))))
  .orderBy(asc(listings.variant))
  .limit(sql.placeholder('most'))
/** A page of what is linked to no offer, by variant. */
export const unlinkedListings = (id: string, page: { after: string; limit: number }) =>
  bind(unlinked, { store: id, after: page.after, most: page.limit })

/** A page of a store's listings by variant; `after` is the last one seen. */
export const pageOfListings = (filter: {
  store: string
  state?: ListingState | undefined
  reasons?: readonly string[] | undefined
  after?: string | undefined
  limit: number
}) =>
  build
    .select()
    .from(listings)
    .where(
      and(
        eq(listings.store, filter.store),
        filter.state ? eq(listings.state, filter.state) : undefined,
        filter.reasons ? inArray(listings.reason, [...filter.reasons]) : undefined,
        filter.after === undefined ? undefined : gt(listings.variant, filter.after),
      ),
    )
    .orderBy(asc(listings.variant))
    .limit(filter.limit)

export const countListings = () =>
  build
    .select({ store: listings.store, state: listings.state, total: sql<number>`count(*)`.as('total') })
    .from(listings)
    .groupBy(listings.store, listings.state)

const { store: _, variant: __, ...changeable } = getTableColumns(listings)
const asPut = Object.entries(changeable).map(([name, column]) => [name, sql.raw(`excluded.${column.name}`)])
const put = rowsInsert(listings, (insert) =>
  insert.onConflictDoUpdate({
    target: [listings.store, listings.variant],
    set: Object.fromEntries(asPut),
    setWhere: sql`${listings.version} = excluded.version - 1`,
  }),
)
/**
 * Writes listings, each with a version one above that of the row as it was read, 1 for a new one. Stale when one of them
 * was changed or made in between.
 */
export const putListings = (rows: ListingRow[]): Change[] => put(rows)

/** Forgets listings that no store was ever told of, confirmed or not, and that nobody linked. */
export const dropListings = (id: string, variants: string[]): Change => ({
  statement: needless(variants, { store: id }),
  rows: 'any',
})
const needless = bindList((variants) =>
  build
    .delete(listings)
    .where(
      and(
        eq(listings.store, sql.placeholder('store')),
        inArray(listings.variant, variants),
        eq(listings.linkedBy, 'sku'),
        eq(listings.revision, 0),
        ne(listings.state, 'ignored'),
      ),
    ),
)

/** Whatever a store has may differ from what is known: after a restore, all of it is told again. */
export const distrustListings = (id: string, now: number): Change => ({
  statement: build
    .update(listings)
    .set({ state: 'pending', version: sql`${listings.version} + 1`, changedAt: now })
    .where(and(eq(listings.store, id), sql`${listings.toldAt} is not null`, sql`${listings.state} <> 'ignored'`)),
  rows: 'any',
})

export type ListingPrice = typeof listingPrices.$inferSelect

const priceRows = rowsInsert(listingPrices)
export const insertListingPrices = (rows: ListingPrice[]): Change[] => priceRows(rows)

/** The prices that a store confirmed for a variant, newest first. */
export const pricesOfListing = (store: string, variant: string, limit: number) =>
  build
    .select()
    .from(listingPrices)
    .where(and(eq(listingPrices.store, store), eq(listingPrices.variant, variant)))
    .orderBy(desc(listingPrices.at), desc(listingPrices.id))
    .limit(limit)

const DAY_MS = 86_400_000

/** Of prices between two instants, leaves the last of each day (UTC) and variant. */
export const thinListingPrices = (from: number, to: number): Change => ({
  statement: build.delete(listingPrices).where(
    sql`${listingPrices.at} >= ${from} and ${listingPrices.at} < ${to} and exists (
      select 1 from listing_prices as later
      where later.store = listing_prices.store and later.variant = listing_prices.variant
        and later.at > listing_prices.at
        and later.at < (listing_prices.at / ${DAY_MS} + 1) * ${DAY_MS})`,
  ),
  rows: 'any',
})

/** Forgets prices before an instant, save those that still hold. */
export const forgetListingPrices = (before: number): Change => ({
  statement: build.delete(listingPrices).where(
    and(
      lt(listingPrices.at, before),
      sql`exists (
        select 1 from listing_prices as later
        where later.store = listing_prices.store and later.variant = listing_prices.variant
          and later.at > listing_prices.at)`,
    ),
  ),
  rows: 'any',
})
