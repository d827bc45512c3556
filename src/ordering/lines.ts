import { passesFilter, type StoreTerms } from '../domain/listing.ts'
import { Failure } from '../errors.ts'
import { type ListingRow, listingsOfSkus, listingsOfVariants } from '../storage/listings.ts'
import { goneOffersBySku, type Offer, offersByProduct, offersBySku } from '../storage/offers.ts'
import type { Ordering } from './context.ts'

/** A store that orders may come from, with what it lists of itself; without terms it lists everything. */
export interface OrderingStore {
  id: string
  terms?: { filter: StoreTerms['filter'] }
}

/**
 * The offers of what a store sold, by the reference that it gave: a variant of its own or a SKU.
 *
 * What a person or a file has linked counts first, and what is ignored is none of ours. Else it is the only offer under
 * the SKU, if the store lists it. Whether it was in stock does not matter, nor whether the supplier has dropped it since: it
 * is sold, and may have been bought by a database that was lost.
 *
 * @throws Failure `conflict` (`ambiguous_sku`) when a reference is of two offers: it is reported, never guessed
 */
export async function offersOfLines(
  { db, stores }: Pick<Ordering, 'db' | 'stores'>,
  store: string,
  references: string[],
): Promise<Map<string, Offer>> {
  const wanted = [...new Set(references)]
  const [variants, others] = await Promise.all([
    db.query(listingsOfVariants(store, wanted)),
    db.query(listingsOfSkus(store, wanted)),
  ])
  const byVariant = new Map(variants.map((row) => [row.variant, row]))
  const bySku = Map.groupBy(others, ({ sku }) => sku)
  const rowsOf = (reference: string): ListingRow[] => {
    const variant = byVariant.get(reference)
    return variant ? [variant] : (bySku.get(reference) ?? [])
  }
  const linked = wanted.flatMap((reference) =>
    rowsOf(reference).flatMap((row) => (isLinked(row) ? [row.productId] : [])),
  )
  const skus = wanted.map((reference) => byVariant.get(reference)?.sku ?? reference)
  const [products, listed] = await Promise.all([
    linked.length === 0 ? [] : db.query(offersByProduct(linked)),
    db.query(offersBySku(skus)),
  ])
  const byProduct = new Map(products.map((offer) => [offer.productId, offer]))
  const underSku = Map.groupBy(listed, ({ sku }) => sku)
  const unlisted = skus.filter((sku) => !underSku.has(sku))
  const gone = unlisted.length === 0 ? [] : await db.query(goneOffersBySku(unlisted))
  for (const [sku, offers] of Map.groupBy(gone, ({ sku }) => sku)) underSku.set(sku, offers)
  const filter = stores.find(({ id }) => id === store)?.terms?.filter
  const found = new Map<string, Offer>()
  for (const [place, reference] of wanted.entries()) {
    const rows = rowsOf(reference)
    if (rows.length > 0 && rows.every(({ state }) => state === 'ignored')) continue
    const ids = [...new Set(rows.flatMap((row) => (isLinked(row) ? [row.productId] : [])))]
    const candidates =
      ids.length > 0 ? ids.flatMap((id) => byProduct.get(id) ?? []) : (underSku.get(skus[place] ?? '') ?? [])
    const [offer, other] = candidates
    if (!offer) continue
    if (rows.length === 0 && filter && !candidates.some((one) => passesFilter(one, { ...filter, inStockOnly: false })))
      continue
    if (other) throw ambiguous(reference, candidates)
    found.set(reference, offer)
  }
  return found
}

const isLinked = (row: ListingRow): row is ListingRow & { productId: string } =>
  row.linkedBy !== 'sku' && row.productId !== null && row.state !== 'ignored'

function ambiguous(reference: string, offers: Offer[]): Failure {
  const ids = offers.map(({ productId }) => productId).join(' and ')
  return new Failure('conflict', `the SKU ${reference} names two offers: ${ids}`, {
    reason: 'ambiguous_sku',
    fields: [{ field: 'lines', message: `the SKU ${reference} is ambiguous: link it to one of the offers` }],
  })
}
