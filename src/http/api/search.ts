/** Finds orders, products, purchases and deliveries by the beginning of what a person knows of them. */
import type { SQLWrapper } from 'drizzle-orm'
import { z } from 'zod'
import { money } from '../../domain/figures.ts'
import { statesOfOrders, subjectsOf } from '../../ordering/order-view.ts'
import type { Database, RowOf } from '../../storage/database.ts'
import { deliveriesByDeliveryId, deliveriesById } from '../../storage/deliveries.ts'
import { type ListingRow, listingsBySku, listingsOfProducts } from '../../storage/listings.ts'
import {
  type Offer,
  offersByNameBeginning,
  offersByProduct,
  offersBySkuBeginning,
  offersByWord,
} from '../../storage/offers.ts'
import { purchasesById, purchasesBySupplierOrderBeginning } from '../../storage/purchases.ts'
import { ordersByNumber, ordersByReference } from '../../storage/store-orders.ts'
import { choice, queryNumber, searchText } from '../input.ts'
import { type ApiContext, ok, operation, viewer } from '../operation.ts'
import { byId } from './list-operation.ts'
import { END } from './listings.ts'
import { amountOf, component, words } from './views.ts'

const kinds = ['order', 'product', 'purchase', 'delivery'] as const
type Kind = (typeof kinds)[number]

const Hit = component('SearchHit', {
  kind: z.enum(kinds).describe('A product comes once for each listing of it'),
  id: z.string().describe('Id here; of a product the id of its listing in the store, or else of the product'),
  name: z
    .string()
    .describe(
      "The number of the order, the name of the product, the supplier's order of the purchase, the delivery ID",
    ),
  otherName: words.describe('What it is found by as well: the reference of the order, the SKU, the id here'),
  store: words.describe('Id of the store; null for a product that no store has, and what the supplier sent'),
  order: words.describe('Of an order and a purchase: the reference of the order in its store'),
  state: words.describe(
    'As in the lists of its kind; `review` or `held` for an open order that waits; null for a product that no store has',
  ),
  detail: words.describe('More about it, for people'),
})
type Hit = z.input<typeof Hit>

/** Reads the rows that begin with one of these texts, at most `limit` for each. A row that is found twice comes once. */
async function beginningWith<S extends SQLWrapper>(
  db: Pick<Database, 'query'>,
  texts: readonly string[],
  limit: number,
  keyOf: (row: RowOf<S>) => string,
  ...ranges: readonly ((text: string, before: string, limit: number) => S)[]
): Promise<RowOf<S>[]> {
  const given = texts.filter((text) => text !== '')
  const reads = ranges.flatMap((range) => given.map((text) => db.query(range(text, `${text}${END}`, limit))))
  const rows = await Promise.all(reads)
  return [...new Map(rows.flat().map((row) => [keyOf(row), row])).values()]
}

/** Writes the letters small that the databases write small: those of ASCII. */
const small = (text: string): string => text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())

/** Returns a text as a name may have it: of other letters the databases know no small ones. */
function spellings(text: string): string[] {
  const lower = text.toLowerCase()
  const titled = lower.replaceAll(/(?<!\S)\S/gu, (letter) => letter.toUpperCase())
  return [...new Set([text, lower, titled, text.toUpperCase()].map(small))]
}

export function searchOperations({ ordering: { db }, stores }: ApiContext) {
  const reads: Record<Kind, (q: string, limit: number) => Promise<Hit[]>> = {
    async order(q, limit) {
      const number = small(q).replace(/^#+/, '')
      const rows = await beginningWith(db, [number], limit, byId, ordersByNumber, ordersByReference)
      return (await statesOfOrders(db, rows.slice(0, limit))).map(({ id, store, reference, number, state, lines }) => {
        const waits = state === 'open' ? lines.map(({ waitsFor }) => waitsFor).filter((one) => one !== null) : []
        const [first] = lines
        return {
          kind: 'order',
          id,
          name: number ?? reference,
          otherName: number === null ? null : reference,
          store,
          order: reference,
          state: waits.includes('review') ? 'review' : waits.length > 0 ? 'held' : state,
          detail: first ? (first.name ?? first.sku) : null,
        }
      })
    },
    async product(q, limit) {
      const productOf = ({ productId }: Offer) => productId
      const names = spellings(q)
      const first = [
        ...(await beginningWith(db, [small(q)], limit, productOf, offersBySkuBeginning)),
        ...(await beginningWith(db, names, limit, productOf, offersByNameBeginning)),
      ]
      const others =
        first.length < limit ? await Promise.all(names.map((name) => db.query(offersByWord(name, limit)))) : []
      const offers = new Map([...first, ...others.flat()].map((offer) => [offer.productId, offer]))
      const found = new Map([...offers].slice(0, limit))
      const ids = stores.map(({ id }) => id)
      const products = [...found.keys()]
      const sold = await Promise.all(ids.map((id) => db.query(listingsOfProducts(id, products))))
      const listed = Map.groupBy(sold.flat(), ({ productId }) => productId)
      // A store may sell a product under a SKU of its own.
      const begun = await db.query(listingsBySku(small(q), `${small(q)}${END}`, limit))
      const own = begun.filter(({ store, productId }) => ids.includes(store) && !found.has(productId ?? ''))
      const known = await db.query(offersByProduct(own.flatMap(({ productId }) => productId ?? [])))
      return [
        ...[...found.values()].flatMap((offer) =>
          (listed.get(offer.productId) ?? [undefined]).map((one) => hitOf(offer, one)),
        ),
        ...own.map((one) =>
          hitOf(
            known.find(({ productId }) => productId === one.productId),
            one,
          ),
        ),
      ]
    },
    async purchase(q, limit) {
      const rows = await beginningWith(db, [small(q)], limit, byId, purchasesBySupplierOrderBeginning, purchasesById)
      const subjects = await subjectsOf(db, rows)
      return rows.map(({ id, supplierOrderId, state }) => {
        const { order, name, sku } = subjects.get(id) ?? {}
        return {
          kind: 'purchase',
          id,
          name: supplierOrderId ?? id,
          otherName: supplierOrderId === null ? null : id,
          store: order?.store ?? null,
          order: order?.reference ?? null,
          state,
          detail: `order ${order?.reference}, ${name ?? sku}`,
        }
      })
    },
    async delivery(q, limit) {
      const rows = await beginningWith(db, [small(q)], limit, byId, deliveriesByDeliveryId, deliveriesById)
      return rows.map(({ id, deliveryId, source, state, event }) => ({
        kind: 'delivery',
        id,
        name: deliveryId,
        otherName: id,
        store: source.startsWith('stores/') ? source.slice('stores/'.length) : null,
        order: null,
        state,
        detail: event,
      }))
    },
  }
  return {
    search: operation({
      route: 'GET /search',
      allowed: viewer,
      summary: 'Orders, products, purchases and deliveries by the beginning of their number, name, SKU or id.',
      query: {
        q: searchText,
        kind: choice(kinds, 'Only this kind'),
        limit: queryNumber(1, 100, 10, 'How many of each kind the answer has at most'),
      },
      answer: z.object({
        items: z.array(Hit).describe('By kind'),
        more: z.array(z.enum(kinds)).describe('The kinds of which there are more'),
      }),
      success: { 200: 'What begins so' },
      async handle({ query: { q, kind, limit } }) {
        const asked = kinds.filter((one) => kind === undefined || kind === one)
        const found = await Promise.all(asked.map((one) => reads[one](q, limit + 1)))
        return ok({
          items: found.flatMap((hits) => hits.slice(0, limit)),
          more: asked.filter((_, index) => (found[index]?.length ?? 0) > limit),
        })
      },
    }),
  }
}

/** A product in a store; without `listing` one that no store has, without `offer` a listing that is linked to none. */
function hitOf(offer: Offer | undefined, listing: ListingRow | undefined): Hit {
  const isSold = offer?.goneAt === null && offer.available
  return {
    kind: 'product',
    id: listing?.variant ?? offer?.productId ?? '',
    name: offer?.name ?? listing?.knownName ?? listing?.sku ?? '',
    otherName: listing?.sku ?? offer?.sku ?? null,
    store: listing?.store ?? null,
    order: null,
    state: listing?.state ?? null,
    detail: isSold
      ? `costs ${money(amountOf(offer.costMinor, offer.currency), offer.currency)}`
      : 'not sold by the supplier now',
  }
}
