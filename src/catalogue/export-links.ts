import { lineColumns, shownColumns } from '../domain/listing-csv.ts'
import { formatDecimal } from '../domain/money.ts'
import type { Database } from '../storage/database.ts'
import { type ListingRow, pageOfListings } from '../storage/listings.ts'
import { offersByProduct } from '../storage/offers.ts'
import { csvText, FILE_START } from './listing-file.ts'

/** Listings that are read and written together: so much of the file is in memory. */
const PAGE_LISTINGS = 500

/**
 * The listings of a store as a CSV file, by variant, piece by piece. Sent back as it is, it changes nothing: a listing
 * that nobody linked has no action.
 */
export async function* exportLinks(db: Database, store: string): AsyncGenerator<string> {
  yield FILE_START + csvText([[...lineColumns, ...shownColumns]])
  for (let after: string | undefined; ; ) {
    const rows = await db.query(pageOfListings({ store, after, limit: PAGE_LISTINGS }))
    if (rows.length > 0) yield csvText(await cellsOf(db, rows))
    if (rows.length < PAGE_LISTINGS) return
    after = rows.at(-1)?.variant
  }
}

async function cellsOf(db: Database, rows: ListingRow[]): Promise<string[][]> {
  const unnamed = rows.flatMap(({ knownName, productId }) => (knownName === null && productId ? [productId] : []))
  const offers = unnamed.length === 0 ? [] : await db.query(offersByProduct([...new Set(unnamed)]))
  const names = new Map(offers.map(({ productId, name }) => [productId, name]))
  return rows.map((row) => {
    const { variant, sku, productId, variation, state, reason, knownPriceMinor: minor, knownCurrency: currency } = row
    const name = row.knownName ?? names.get(productId ?? '') ?? ''
    const price = minor === null || currency === null ? '' : formatDecimal({ minor, currency })
    return [
      ...[variant, sku, productId ?? '', variation ?? '', actionOf(row)],
      ...[name, state, reason ?? '', price, currency ?? '', row.knownStock === null ? '' : String(row.knownStock)],
    ]
  })
}

function actionOf({ state, linkedBy }: ListingRow): string {
  if (state === 'ignored') return 'ignore'
  return linkedBy === 'sku' ? '' : 'link'
}
