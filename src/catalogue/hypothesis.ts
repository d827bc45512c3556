import type { SQLWrapper } from 'drizzle-orm'
import type { Database, RowOf } from '../storage/database.ts'
import { type ListingRow, listingsOfVariants, putListings } from '../storage/listings.ts'
import { type NewOffer, type Offer, offersByProduct, putOffers } from '../storage/offers.ts'

/**
 * Offers and listings as they would be: what is stored, with what would be written laid over it. The database itself is
 * only read.
 *
 * `query` answers statements that read whole rows of offers or of listings, by whatever they are looked up: a row that
 * would be another one is not found as the one it was.
 */
export interface Hypothesis extends Pick<Database, 'query'> {
  layOffers: (rows: NewOffer[]) => Promise<void>
  /** Their versions do not matter. */
  layListings: (rows: ListingRow[]) => Promise<void>
}

/** @param over an empty database of the same tables, for what would be written */
export function openHypothesis(db: Pick<Database, 'query'>, over: Database): Hypothesis {
  let [offersLaid, listingsLaid] = [false, false]
  return {
    async query<S extends SQLWrapper>(statement: S): Promise<RowOf<S>[]> {
      const stored = await db.query(statement)
      if (!offersLaid && !listingsLaid) return stored
      const laid = (await over.query(statement)) as Row[]
      const own = new Map(laid.map((row) => [keyOf(row), row]))
      const others = (stored as Row[]).filter((row) => !own.has(keyOf(row)))
      const hidden = await hiddenBy(over, others)
      const kept = (stored as Row[]).flatMap((row): Row[] => {
        const key = keyOf(row)
        const other = own.get(key)
        own.delete(key)
        if (!other) return hidden.has(key) ? [] : [row]
        return ['place' in row ? { ...other, place: row.place } : other]
      })
      // What would be new has no place yet, and no stored offer has this one.
      const added = [...own.values()].map((row) => ('place' in row ? { ...row, place: NO_PLACE } : row))
      return [...kept, ...added] as RowOf<S>[]
    },
    async layOffers(rows) {
      if (rows.length === 0) return
      offersLaid = true
      await over.commit(putOffers(rows))
    },
    async layListings(rows) {
      if (rows.length === 0) return
      listingsLaid = true
      const versions = new Map<string, number>()
      for (const [store, group] of Map.groupBy(rows, (row) => row.store)) {
        const before = await over.query(listingsOfVariants(store, group.map(variantOf)))
        for (const row of before) versions.set(keyOf(row), row.version)
      }
      await over.commit(putListings(rows.map((row) => ({ ...row, version: (versions.get(keyOf(row)) ?? 0) + 1 }))))
    },
  }
}

type Row = (Offer | ListingRow) & { place?: number }

/** Rows of the table count from 1. */
const NO_PLACE = 0

const isListing = (row: Row): row is ListingRow => 'variant' in row
const keyOf = (row: Row): string => (isListing(row) ? `${row.store}\n${row.variant}` : row.productId)
const variantOf = ({ variant }: ListingRow): string => variant

/** Which of these rows would be written over, whatever they would say then. */
async function hiddenBy(over: Database, rows: Row[]): Promise<Set<string>> {
  const listings = rows.filter(isListing)
  const offers = rows.filter((row): row is Offer => !isListing(row))
  const keys = new Set<string>()
  if (offers.length > 0) {
    const laid = await over.query(offersByProduct(offers.map(({ productId }) => productId)))
    for (const row of laid) keys.add(keyOf(row))
  }
  for (const [store, group] of Map.groupBy(listings, (row) => row.store)) {
    for (const row of await over.query(listingsOfVariants(store, group.map(variantOf)))) keys.add(keyOf(row))
  }
  return keys
}
