import { and, desc, eq, lt, sql } from 'drizzle-orm'
import { build, rowsInsert } from './builder.ts'
import type { Change } from './database.ts'
import { listingPrices } from './schema.ts'

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
