import { z } from 'zod'
import type { Caller } from '../../access/tokens.ts'
import { linkers, listingStates } from '../../domain/listing.ts'
import { fileLimits } from '../../domain/listing-csv.ts'
import { priceTexts } from '../../domain/money.ts'
import { type ListingContent, unclear } from '../../domain/publication.ts'
import { Failure } from '../../errors.ts'
import { changeListing, type Linking, type ListingChange } from '../../listings/actions.ts'
import { knownOf } from '../../listings/assess.ts'
import { exportLinks, importLinks, PROBLEMS_MAX } from '../../listings/links-file.ts'
import {
  type Explanation,
  explainOffer,
  type ListingHistory,
  listingBySku,
  listListings,
  type OfferExplanation,
  viewListing,
} from '../../listings/listings.ts'
import type { Database } from '../../storage/database.ts'
import {
  type ListingPrice,
  type ListingRow,
  listingsWithSku,
  listingsWithVariant,
  pageOfListings,
  waitingListings,
  waitingListingsBefore,
} from '../../storage/listings.ts'
import { after, approvalBody, choice, linkBody, listingSearch, paging, queryFlag, reasonBody } from '../input.ts'
import { type ApiContext, configuredStore, csvFile, ok, operation, operator, viewer } from '../operation.ts'
import { ListingState } from './catalogue.ts'
import { listOperation, page, ROWS_MAX } from './list-operation.ts'
import { storeOf } from './orders.ts'
import { storeAt } from './stores.ts'
import { amount, amountOf, at, component, count, currency, maybeAt, oneOf, view, withAmounts, words } from './views.ts'

const content = {
  name: z.string().describe('Of the product, in the words of the supplier'),
  category: words.describe('In the words of the supplier; null for none'),
  price: amount.describe('Decimal text: what the customer pays for one unit'),
  compareAt: amount.nullable().describe('The earlier price, for display; above the price'),
  currency: currency.describe('Of the prices, ISO 4217'),
  stock: count.nullable().describe('Null when it is available and not counted'),
  available: z.boolean().describe('Whether it can be sold now'),
}
const variant = z.string().describe("The store's own reference of what it sells; without a link, the SKU")

export const Listing = component('Listing', {
  id: variant,
  sku: z.string().describe("The supplier's SKU, or the store's own of a linked variant"),
  ...content,
})

const Content = view(z.object(content), ({ priceMinor, compareAtMinor, ...rest }: ListingContent) => ({
  ...rest,
  ...priceTexts({ priceMinor, compareAtMinor, currency: rest.currency }),
}))

const storeListing = component('StoreListing', {
  id: variant,
  sku: z.string(),
  variation: words,
  productId: words,
  linkedBy: z.enum(linkers),
  state: ListingState,
  reason: words.meta({ description: 'Why it is held or failed, or why it has no stock', examples: ['price_jump'] }),
  detail: words,
  attempts: count,
  nextTryAt: maybeAt,
  pushedAt: maybeAt,
  known: Content.nullable().describe('What the store confirmed last; null: nothing yet'),
  wantedPrice: amount.nullable().describe('A held price that waits for approval'),
  changedAt: at,
})
const shown = (row: ListingRow) => ({
  ...row,
  id: row.variant,
  known: knownOf(row),
  wantedPrice: row.knownCurrency === null ? null : amountOf(row.wantedPriceMinor, row.knownCurrency),
})
const StoreListing = view(storeListing, shown)

const units = count.nullable().describe('Null when the supplier states no count')
const why = z.string().describe('What was done, and why')

const PriceStep = view(
  z.object({
    step: z.enum(['cost', 'currency', 'rule', 'band', 'floor', 'rounding', 'compare_at', 'held']),
    amount: amount.nullable().describe('The price after the step'),
    currency,
    detail: why,
  }),
  withAmounts<Explanation['price']['steps'][number]>,
)
const StockSteps = z.array(z.object({ step: z.enum(['source', 'buffer', 'threshold', 'cap']), units, detail: why }))

const explanation = {
  sku: z.string(),
  productId: z.string(),
  name: z.string(),
  category: words,
  outcome: z.enum(['priced', 'held']),
  price: amount.nullable().describe('Null while it is held'),
  compareAt: amount.nullable().describe('Above the price, or null'),
  floor: amount.nullable().describe('Cost plus margin: no price is below it'),
  currency,
  reason: z
    .string()
    .nullable()
    .meta({ description: 'Why there is no price', examples: ['cost_zero', 'no_rate'] }),
  steps: z.array(PriceStep),
  stock: z.object({ stock: units, available: z.boolean(), steps: StockSteps }),
}
const explanationOf = ({ offer, price, stock }: OfferExplanation) => ({
  ...offer,
  outcome: price.outcome,
  currency: price.outcome === 'held' ? offer.currency : price.currency,
  reason: price.outcome === 'held' ? price.reason : null,
  ...(price.outcome === 'held' ? { price: null, compareAt: null } : priceTexts(price)),
  floor: price.outcome === 'held' ? null : amountOf(price.floorMinor, price.currency),
  steps: price.steps,
  stock,
})

const Detail = view(
  component('StoreListingDetail', {
    ...storeListing.shape,
    wanted: Content.nullable().describe('What the store should have now'),
    explained: view(z.object(explanation), explanationOf)
      .nullable()
      .describe('How its price and stock come about by the current rules; null while it has no offer'),
    prices: z.array(
      view(
        z.object({ at, price: amount, currency, cause: oneOf(['first', 'cost', 'policy', 'approved', 'shop']) }),
        withAmounts<ListingPrice>,
      ),
    ),
  }),
  ({ row, ...rest }: ListingHistory) => ({ ...shown(row), ...rest }),
)

const HeldPrice = view(component('HeldPrice', { ...storeListing.shape, store: z.string() }), shown)

/** The last character of Unicode: a prefix with this character after it sorts after every text with the prefix. */
export const END = '\u{10ffff}'

/** Finds listings whose id or SKU begins with a text. Listings found by their id come first. */
async function searched(db: Database, store: string, text: string, limit: number): Promise<ListingRow[]> {
  const asked = [store, text, `${text}${END}`, limit] as const
  const found = await Promise.all([db.query(listingsWithVariant(...asked)), db.query(listingsWithSku(...asked))])
  return [...new Map(found.flat().map((row) => [row.variant, row])).values()].slice(0, limit)
}

const byVariant = ({ variant }: ListingRow): string => variant

/** Returns what a change of a listing needs. `wake` starts the publisher, which passes the change to the store. */
const linkingOf = ({ db, now, newId, wake }: ApiContext['ordering']): Linking => ({
  db,
  now,
  newId,
  wake: () => wake('publish'),
})

export function listingOperations(context: ApiContext) {
  const { ordering, stores } = context
  const { db, now } = ordering
  const selling = (id: string) => configuredStore(context, id)
  const both = { store: 'orders', people: 'viewer' } as const
  const storeIn = (caller: Caller, path: Record<string, string>): string => storeAt(stores, caller, path)
  const changed = async (caller: Caller, path: Record<'store' | 'variant', string>, change: ListingChange) => {
    const [store, id] = [storeIn(caller, path), path.variant]
    await changeListing(linkingOf(ordering), { store, variant: id, actor: caller.actor }, change)
    return ok(await viewListing(db, selling(store), id, now()))
  }
  const change = {
    answer: Detail,
    allowed: operator,
    success: { 200: 'The listing; it is pushed to the store next' },
  } as const
  const unknown = 'no such store or listing'

  return {
    listListings: operation({
      route: 'GET /listings',
      allowed: { store: 'orders' },
      summary: 'What the store can sell, with price and stock.',
      query: { limit: paging.limit, after },
      answer: page(Listing),
      success: { 200: 'A page of listings; `next` goes into `after`' },
      async handle({ caller, query: { limit, after } }) {
        const { listings, next = null } = await listListings(db, selling(storeOf(caller)), { after, limit }, now())
        return ok({ items: listings, next })
      },
    }),
    viewListing: operation({
      route: 'GET /listings/:sku',
      allowed: { store: 'orders' },
      summary: 'One listing, by its id or its SKU.',
      answer: Listing,
      success: { 200: 'The listing as it is now' },
      failures: { 404: 'there is no such listing', 409: 'the SKU fits several offers: `ambiguous_sku`' },
      async handle({ caller, path }) {
        const listing = await listingBySku(db, selling(storeOf(caller)), path.sku, now())
        if (!listing) throw new Failure('not_found', 'the SKU is no listing; GET /api/v1/listings shows all')
        return ok(listing)
      },
    }),
    listStoreListings: listOperation({
      route: 'GET /stores/:store/listings',
      allowed: both,
      summary: 'The listings of a store with what was pushed to it, by id.',
      filters: { state: choice(listingStates, 'Only listings in this state'), search: listingSearch },
      by: 'after',
      item: StoreListing,
      cursor: byVariant,
      success: { 200: 'A page of listings; `next` goes into `after`, and is null for a search' },
      failures: { 404: 'no such store' },
      db,
      read: ({ search, limit, ...filter }, { caller, path }) => {
        const store = storeIn(caller, path)
        if (search !== undefined) return searched(db, store, search, Math.min(limit - 1, ROWS_MAX))
        return pageOfListings({ ...filter, store, limit })
      },
    }),
    listListingProblems: listOperation({
      route: 'GET /stores/:store/listing-problems',
      allowed: both,
      summary: 'Listings that need a link: ambiguous, missing and duplicate SKUs.',
      by: 'after',
      item: StoreListing,
      cursor: byVariant,
      success: { 200: 'A page of listings; `next` goes into `after`' },
      failures: { 404: 'no such store' },
      db,
      read: (asked, { caller, path }) =>
        pageOfListings({ ...asked, store: storeIn(caller, path), state: 'held', reasons: unclear }),
    }),
    listHeldPrices: listOperation({
      route: 'GET /held-prices',
      allowed: viewer,
      summary: 'Prices that jumped and wait for approval, in all stores, by store and id.',
      by: 'after',
      item: HeldPrice,
      cursor: ({ store, variant }) => `${store}/${variant}`,
      success: { 200: 'A page of listings; `next` goes into `after`' },
      db,
      read: ({ limit, before, after }) => {
        const [, store, variant] = /^([^/]+)\/(.+)$/s.exec(before ?? after ?? '') ?? []
        if (before !== undefined) return waitingListingsBefore(store ?? '', variant ?? '', limit)
        return waitingListings({ ...(store && { store }), ...(variant && { variant }), limit })
      },
    }),
    viewStoreListing: operation({
      route: 'GET /stores/:store/listings/:variant',
      allowed: both,
      summary: 'One listing: what the store has, what it should have, and its earlier prices.',
      answer: Detail,
      success: { 200: 'The listing' },
      failures: { 404: unknown },
      handle: async ({ caller, path }) =>
        ok(await viewListing(db, selling(storeIn(caller, path)), path.variant, now())),
    }),
    linkListing: operation({
      route: 'POST /stores/:store/listings/:variant/link',
      ...change,
      body: linkBody,
      summary: 'Link a variant of the store to an offer; its SKU no longer matters.',
      failures: { 404: 'no such store or offer', 409: '`ambiguous_sku`: several offers have the SKU' },
      handle: ({ caller, path, body }) => changed(caller, path, { ...body, change: 'link' }),
    }),
    unlinkListing: operation({
      route: 'POST /stores/:store/listings/:variant/unlink',
      ...change,
      summary: 'Remove a link: the SKU counts again; without an offer under it the store gets no stock.',
      failures: { 404: unknown, 409: '`not_linked`: it is listed under its SKU' },
      handle: ({ caller, path }) => changed(caller, path, { change: 'unlink' }),
    }),
    ignoreListing: operation({
      route: 'POST /stores/:store/listings/:variant/ignore',
      ...change,
      body: reasonBody,
      summary: 'Ignore a variant of the store: nothing more is pushed for it, and orders of it are not ours.',
      success: { 200: 'The listing' },
      failures: { 404: 'no such store' },
      handle: ({ caller, path, body }) => changed(caller, path, { ...body, change: 'ignore' }),
    }),
    unignoreListing: operation({
      route: 'POST /stores/:store/listings/:variant/unignore',
      ...change,
      summary: 'Resume a variant that was ignored.',
      failures: { 404: unknown, 409: '`not_ignored`' },
      handle: ({ caller, path }) => changed(caller, path, { change: 'unignore' }),
    }),
    releaseListing: operation({
      route: 'POST /stores/:store/listings/:variant/release',
      ...change,
      body: approvalBody,
      summary: 'Approve the held price that was shown, and no other.',
      failures: {
        404: unknown,
        409: '`not_held`: no price waits; `changed`: another price waits, which the message names',
      },
      handle: ({ caller, path, body }) => changed(caller, path, { ...body, change: 'release' }),
    }),
    retryListing: operation({
      route: 'POST /stores/:store/listings/:variant/retry',
      ...change,
      summary: 'Push the listing again at once, even to a store that is paused.',
      failures: { 404: unknown, 409: '`ignored`' },
      handle: ({ caller, path }) => changed(caller, path, { change: 'retry' }),
    }),
  }
}

const ImportReport = z.object({
  lines: count.describe('Lines below the header; each is counted once below'),
  linked: count,
  unlinked: count,
  ignored: count,
  unchanged: count.describe('The listing was already as the line says'),
  refused: count.describe('Nothing was done for the line'),
  problems: z
    .array(z.object({ line: z.int().min(1), column: words, message: z.string() }))
    .describe(`By line, at most ${PROBLEMS_MAX}; line 1 is the header`),
  truncated: z.boolean().describe('There are more problems than are listed'),
})

export function listingFileOperations({ ordering, stores }: ApiContext) {
  return {
    exportListings: operation({
      route: 'GET /stores/:store/listings/export',
      allowed: { store: 'orders', people: 'viewer' },
      answer: csvFile,
      summary: 'The listings of a store as a CSV file, which an import takes back.',
      success: { 200: 'All of them, by id' },
      failures: { 404: 'no such store' },
      async handle({ caller, path }) {
        const store = storeAt(stores, caller, path)
        return ok({ name: `listings-${store}.csv`, pieces: exportLinks(ordering.db, store) })
      },
    }),
    importListings: operation({
      route: 'POST /stores/:store/listings/import',
      allowed: operator,
      answer: ImportReport,
      query: { dry_run: queryFlag('Only report what would be done') },
      summary: 'Link, unlink and ignore listings as a CSV file says, line by line; with dry_run=true only report.',
      file: { bytesMax: fileLimits.bytesMax },
      success: { 200: 'The result of each line' },
      failures: { 404: 'no such store' },
      async handle({ caller, path, query, file }) {
        const store = storeAt(stores, caller, path)
        const asked = { store, actor: caller.actor, dryRun: query.dry_run }
        return ok(await importLinks(linkingOf(ordering), asked, file))
      },
    }),
  }
}

export const Price = view(
  component('Price', {
    store: z.string(),
    ...explanation,
    listings: z.array(StoreListing).describe('The listings in the store, which may have another price'),
    takenBy: z
      .object({ id: z.string(), productId: words })
      .nullable()
      .describe('A listing of another offer under the SKU: as long as it exists, this offer gets none'),
    passes: z.boolean().describe('Whether it matches the import filters of the store'),
  }),
  ({ store, listings, takenBy, passes, ...explained }: Explanation & { store: string }) => ({
    ...explanationOf(explained),
    store,
    listings,
    takenBy: takenBy && { id: takenBy.variant, productId: takenBy.productId },
    passes,
  }),
)

export function priceOperations(context: ApiContext) {
  const { db, now } = context.ordering
  return {
    explainPrice: operation({
      route: 'GET /stores/:store/prices/:sku',
      allowed: viewer,
      summary: 'How the price of one SKU in one store is computed, step by step, and the stock that is shown.',
      answer: Price,
      success: { 200: 'By the current rules, rates and offer' },
      failures: { 404: 'no such store, or nothing under the SKU', 409: 'two offers have the SKU: `ambiguous_sku`' },
      async handle({ path: { store, sku } }) {
        return ok({ store, ...(await explainOffer(db, configuredStore(context, store), sku, now())) })
      },
    }),
  }
}
