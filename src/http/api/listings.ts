import { z } from 'zod'
import type { Caller } from '../../access/auth.ts'
import type { StoreSettings } from '../../config/store-settings.ts'
import { linkers, listingStates } from '../../domain/listing.ts'
import { fileLimits } from '../../domain/listing-csv.ts'
import { formatDecimal, priceTexts } from '../../domain/money.ts'
import { type ListingContent, unclear } from '../../domain/publication.ts'
import { Failure } from '../../errors.ts'
import { changeListing, type Linking, type ListingChange } from '../../listings/links.ts'
import { exportLinks, importLinks, PROBLEMS_MAX } from '../../listings/links-file.ts'
import type { Explanation, ListingHistory } from '../../listings/listings.ts'
import { explainOffer, listingBySku, listListings, viewListing } from '../../listings/listings.ts'
import { countListings, type ListingRow, pageOfListings } from '../../storage/listings.ts'
import { allPublishing, countPublications } from '../../storage/publications.ts'
import { allCallbackSecrets } from '../../storage/tokens.ts'
import { anyText, choice, linkBody, paging, passBody, reasonBody } from '../input.ts'
import { type ApiContext, configuredStore, csvFile, type Operation, ok, operation } from '../operation.ts'
import { storeOf } from './orders.ts'
import { CallbackSecretStanding, callbackSecretView, iso, maybeIso, page, pageOf } from './views.ts'

const at = z.string().meta({ format: 'date-time', examples: ['2026-03-01T09:30:00.000Z'] })
const words = z.string().nullable()
const count = z.int().min(0)
const amount = z.string().meta({ description: 'Decimal text in the currency beside it', examples: ['19.99'] })
const currency = z.string().meta({ description: 'ISO 4217', examples: ['EUR'] })
const content = {
  name: z.string(),
  category: words,
  price: amount,
  compareAt: amount.nullable().meta({ description: 'The price before, for display; above the price' }),
  currency,
  stock: count.nullable().meta({ description: 'Null when it is available and not counted' }),
  available: z.boolean(),
}
const variant = z.string().meta({ description: "The store's own reference of what it sells; without a link, the SKU" })

export const Listing = z.object({ id: variant, sku: z.string(), ...content })

export const StoreListing = z.object({
  id: variant,
  sku: z.string(),
  variation: words,
  productId: words,
  linkedBy: z.enum(linkers),
  state: z.enum(listingStates),
  reason: words.meta({ description: 'Why it is held or failed, or why it has no stock', examples: ['price_jump'] }),
  detail: words,
  attempts: count,
  nextTryAt: at.nullable(),
  toldAt: at.nullable(),
  known: z.object(content).nullable().meta({ description: 'What the store has confirmed last; null: nothing yet' }),
  wantedPrice: amount.nullable().meta({ description: 'A price that waits for a person' }),
  changedAt: at,
})
const Detail = StoreListing.extend({
  wanted: z.object(content).nullable().meta({ description: 'What the store is to have now' }),
  prices: z.array(z.object({ at, price: amount, currency, cause: z.enum(['first', 'cost', 'policy', 'approved']) })),
})
const StoreStanding = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.string().meta({ examples: ['backend'] }),
  callbackUrl: z.string().meta({ description: 'Where callbacks go, without credentials and query' }),
  listings: z.record(z.string(), count).meta({ description: 'By state' }),
  publications: count.meta({ description: 'What it is owed a look at: a page of changes each' }),
  pausedUntil: at.nullable().meta({ description: 'It does not take its listings and is left alone until then' }),
  error: words,
  callbackSecret: CallbackSecretStanding,
})

/** A store as the configuration has it, as far as the API shows it. */
export type ConfiguredStore = Pick<StoreSettings, 'id' | 'name' | 'kind' | 'callbackUrl'>

/** Credentials and the query of an address may hold a password or a token. */
function withoutSecrets(address: string): string {
  const { origin, pathname } = new URL(address)
  return origin + pathname
}

function contentOf({ priceMinor, compareAtMinor, currency, ...rest }: ListingContent) {
  return { ...rest, ...priceTexts({ priceMinor, compareAtMinor, currency }), currency }
}

export function storeListing(row: ListingRow): z.infer<typeof StoreListing> {
  const { variant: id, sku, variation, productId, linkedBy, state, reason, detail, attempts, knownCurrency } = row
  const known =
    row.knownPriceMinor === null || knownCurrency === null
      ? null
      : contentOf({
          priceMinor: row.knownPriceMinor,
          compareAtMinor: row.knownCompareAtMinor,
          currency: knownCurrency,
          stock: row.knownStock,
          available: row.knownAvailable === 1,
          name: row.knownName ?? '',
          category: row.knownCategory,
        })
  return {
    id,
    sku,
    variation,
    productId,
    linkedBy,
    state,
    reason,
    detail,
    attempts,
    known,
    nextTryAt: maybeIso(row.nextTryAt),
    toldAt: maybeIso(row.toldAt),
    changedAt: iso(row.changedAt),
    wantedPrice:
      row.wantedPriceMinor === null || knownCurrency === null
        ? null
        : formatDecimal({ minor: row.wantedPriceMinor, currency: knownCurrency }),
  }
}

const detailOf = ({ row, wanted, prices }: ListingHistory): z.infer<typeof Detail> => ({
  ...storeListing(row),
  wanted: wanted && contentOf(wanted),
  prices: prices.map(({ at: when, priceMinor, currency, cause }) => ({
    at: iso(when),
    price: formatDecimal({ minor: priceMinor, currency }),
    currency,
    cause: cause as z.infer<typeof Detail>['prices'][number]['cause'],
  })),
})

/** The store that a path is of; a store token sees its own only. @throws Failure `forbidden`, `not_found` */
export function storeAt(
  stores: readonly ConfiguredStore[],
  caller: Caller,
  { store = '' }: Record<string, string>,
): string {
  if (caller.store !== null && caller.store !== store) {
    throw new Failure('forbidden', 'the token is bound to another store')
  }
  if (!stores.some(({ id }) => id === store)) throw new Failure('not_found', `there is no store ${store}`)
  return store
}

/** What linking a listing works with; the store learns of it from the publisher. */
const linkingOf = ({ db, now, newId, wake }: ApiContext['ordering']): Linking => ({
  db,
  now,
  newId,
  wake: () => wake('publish'),
})

/** Listings: what a store can sell, and what people see and decide of it. */
export function listingOperations(context: Pick<ApiContext, 'ordering' | 'stores'>): Operation[] {
  const { ordering, stores } = context
  const { db, now } = ordering
  const selling = (id: string) => configuredStore(context, id)
  const viewer = { people: 'viewer' } as const
  const both = { store: 'orders', people: 'viewer' } as const
  const operator = { people: 'operator' } as const
  const storeIn = (caller: Caller, path: Record<string, string>): string => storeAt(stores, caller, path)
  const changed = async (caller: Caller, path: Record<string, string>, change: ListingChange) => {
    const [store, id] = [storeIn(caller, path), path.variant ?? '']
    await changeListing(linkingOf(ordering), { store, variant: id, actor: caller.actor }, change)
    return ok(detailOf(await viewListing(db, selling(store), id, now())))
  }
  const change = { answer: Detail, allowed: operator, method: 'post' } as const
  const unknown = 'no such store or listing'

  return [
    operation({
      name: 'listListings',
      method: 'get',
      path: '/listings',
      allowed: { store: 'orders' },
      summary: 'What the store can sell, with price and stock.',
      query: { limit: paging.limit, after: anyText },
      answer: page(Listing),
      success: { 200: 'A page of listings; `next` goes into `after`' },
      async handle({ caller, query: { limit, after } }) {
        const { listings, next = null } = await listListings(db, selling(storeOf(caller)), { after, limit }, now())
        return ok({ items: listings, next })
      },
    }),
    operation({
      name: 'viewListing',
      method: 'get',
      path: '/listings/:sku',
      allowed: { store: 'orders' },
      summary: 'One listing, by its id or its SKU.',
      answer: Listing,
      success: { 200: 'The listing as it is now' },
      failures: { 404: 'it is no listing', 409: 'nobody can say which offer it is: `ambiguous_sku`' },
      async handle({ caller, path }) {
        const listing = await listingBySku(db, selling(storeOf(caller)), path.sku ?? '', now())
        if (!listing) throw new Failure('not_found', 'the SKU is no listing; GET /api/v1/listings shows all')
        return ok(listing)
      },
    }),
    operation({
      name: 'listStores',
      method: 'get',
      path: '/stores',
      allowed: viewer,
      summary: 'The stores, where each is, how publishing to it stands, and which callback secret is in use.',
      answer: z.object({ items: z.array(StoreStanding) }),
      success: { 200: 'All of them' },
      async handle() {
        const [counts, owed, standings, rotations] = await Promise.all([
          db.query(countListings()),
          db.query(countPublications()),
          db.query(allPublishing()),
          db.query(allCallbackSecrets()),
        ])
        const items = stores.map(({ id, name, kind, callbackUrl }) => {
          const standing = standings.find(({ store }) => store === id)
          const own = counts.filter(({ store }) => store === id)
          return {
            id,
            name,
            kind,
            callbackUrl: withoutSecrets(callbackUrl),
            listings: Object.fromEntries(own.map(({ state, total }) => [state, total])),
            publications: owed.find(({ store }) => store === id)?.total ?? 0,
            pausedUntil: maybeIso(standing?.pausedUntil ?? null),
            error: standing?.lastError ?? null,
            callbackSecret: callbackSecretView(rotations, id),
          }
        })
        return ok({ items })
      },
    }),
    operation({
      name: 'listStoreListings',
      method: 'get',
      path: '/stores/:store/listings',
      allowed: both,
      summary: 'The listings of a store with what it was told, by id.',
      query: { limit: paging.limit, after: anyText, state: choice(listingStates) },
      answer: page(StoreListing),
      failures: { 404: 'no such store' },
      success: { 200: 'A page of listings; `next` goes into `after`' },
      async handle({ caller, path, query: { limit, ...filter } }) {
        const rows = await db.query(pageOfListings({ ...filter, store: storeIn(caller, path), limit: limit + 1 }))
        return ok(pageOf(rows, limit, storeListing, (row) => row.variant))
      },
    }),
    operation({
      name: 'listListingProblems',
      method: 'get',
      path: '/stores/:store/listing-problems',
      allowed: both,
      summary: 'Listings for which a person must say which offer they are: ambiguous, missing and duplicate SKUs.',
      query: { limit: paging.limit, after: anyText },
      answer: page(StoreListing),
      success: { 200: 'A page of listings; `next` goes into `after`' },
      failures: { 404: 'no such store' },
      async handle({ caller, path, query: { limit, after } }) {
        const filter = { store: storeIn(caller, path), state: 'held', reasons: unclear, after } as const
        const rows = await db.query(pageOfListings({ ...filter, limit: limit + 1 }))
        return ok(pageOf(rows, limit, storeListing, (row) => row.variant))
      },
    }),
    operation({
      name: 'viewStoreListing',
      method: 'get',
      path: '/stores/:store/listings/:variant',
      allowed: both,
      summary: 'One listing: what the store has, what it is to have, and the prices that it had.',
      answer: Detail,
      success: { 200: 'The listing' },
      failures: { 404: unknown },
      handle: async ({ caller, path }) =>
        ok(detailOf(await viewListing(db, selling(storeIn(caller, path)), path.variant ?? '', now()))),
    }),
    operation({
      name: 'linkListing',
      path: '/stores/:store/listings/:variant/link',
      ...change,
      body: linkBody,
      summary: 'Say which offer a variant of the store is; its SKU does not matter from then on.',
      success: { 200: 'The listing; the store is told next' },
      failures: { 404: 'no such store or offer', 409: '`ambiguous_sku`: several offers have the SKU' },
      handle: ({ caller, path, body }) => changed(caller, path, { ...body, change: 'link' }),
    }),
    operation({
      name: 'unlinkListing',
      path: '/stores/:store/listings/:variant/unlink',
      ...change,
      summary: 'Take a link back: the SKU counts again, and where it is of no offer the store gets no stock.',
      success: { 200: 'The listing; the store is told next' },
      failures: { 404: unknown, 409: '`not_linked`: it is listed under its SKU' },
      handle: ({ caller, path }) => changed(caller, path, { change: 'unlink' }),
    }),
    operation({
      name: 'ignoreListing',
      path: '/stores/:store/listings/:variant/ignore',
      ...change,
      body: reasonBody,
      summary: 'Leave a variant of the store alone: it is told nothing more, and orders of it are not ours.',
      success: { 200: 'The listing' },
      failures: { 404: 'no such store' },
      handle: ({ caller, path, body }) => changed(caller, path, { ...body, change: 'ignore' }),
    }),
    operation({
      name: 'unignoreListing',
      path: '/stores/:store/listings/:variant/unignore',
      ...change,
      summary: 'Take a variant back that was ignored.',
      success: { 200: 'The listing; the store is told next' },
      failures: { 404: unknown, 409: '`not_ignored`' },
      handle: ({ caller, path }) => changed(caller, path, { change: 'unignore' }),
    }),
    operation({
      name: 'releaseListing',
      path: '/stores/:store/listings/:variant/release',
      ...change,
      body: passBody,
      summary: 'Let the price pass that a listing is held for: the one that was shown, and no other.',
      success: { 200: 'The listing; the store is told next' },
      failures: {
        404: unknown,
        409: '`not_held`: no price waits; `changed`: another one does, which the message names',
      },
      handle: ({ caller, path, body }) => changed(caller, path, { ...body, change: 'release' }),
    }),
    operation({
      name: 'retryListing',
      path: '/stores/:store/listings/:variant/retry',
      ...change,
      summary: 'Tell the store again at once, even one that is left alone for now.',
      success: { 200: 'The listing; the store is told next' },
      failures: { 404: unknown, 409: '`ignored`' },
      handle: ({ caller, path }) => changed(caller, path, { change: 'retry' }),
    }),
  ]
}

const lines = z.int().min(0)

export const ImportReport = z.object({
  lines: lines.meta({ description: 'Below the header: each is counted once in what follows' }),
  linked: lines,
  unlinked: lines,
  ignored: lines,
  unchanged: lines.meta({ description: 'The listing was as the line says' }),
  refused: lines.meta({ description: 'Nothing was done for the line' }),
  problems: z
    .array(z.object({ line: z.int().min(1), column: z.string().nullable(), message: z.string() }))
    .meta({ description: `By line, at most ${PROBLEMS_MAX}; line 1 is the header` }),
  truncated: z.boolean().meta({ description: 'There are more problems than are listed' }),
})

/** The listings of a store as a CSV file, out and in. */
export function listingFileOperations({ ordering, stores }: Pick<ApiContext, 'ordering' | 'stores'>): Operation[] {
  return [
    operation({
      name: 'exportListings',
      method: 'get',
      path: '/stores/:store/listings/export',
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
    operation({
      name: 'importListings',
      method: 'post',
      path: '/stores/:store/listings/import',
      allowed: { people: 'operator' },
      answer: ImportReport,
      query: { dry_run: choice(['true', 'false']) },
      summary:
        'Link, unlink and ignore listings as a CSV file says, line by line; with dry_run=true only tell what would be.',
      file: { bytesMax: fileLimits.bytesMax },
      success: { 200: 'What became of each line, good or bad' },
      failures: { 404: 'no such store' },
      async handle({ caller, path, query, file }) {
        const store = storeAt(stores, caller, path)
        const dryRun = query.dry_run === 'true'
        return ok(await importLinks(linkingOf(ordering), { store, actor: caller.actor, dryRun }, file))
      },
    }),
  ]
}

const units = z.int().min(0).nullable().meta({ description: 'Null where nobody counts' })
const why = z.string().meta({ description: 'What was done, and why' })

const PriceSteps = z.array(
  z.object({
    step: z.enum(['cost', 'currency', 'rule', 'band', 'floor', 'rounding', 'compare_at', 'held']),
    amount: amount.nullable().meta({ description: 'What the price stands at after the step' }),
    currency,
    detail: why,
  }),
)
const StockSteps = z.array(z.object({ step: z.enum(['source', 'buffer', 'threshold', 'cap']), units, detail: why }))

export const Price = z.object({
  store: z.string(),
  sku: z.string(),
  productId: z.string(),
  name: z.string(),
  category: z.string().nullable(),
  outcome: z.enum(['priced', 'held']),
  price: amount.nullable().meta({ description: 'Null while it is held' }),
  compareAt: amount.nullable().meta({ description: 'Above the price, or null' }),
  floor: amount.nullable().meta({ description: 'The cost and the margin: no price is under it' }),
  currency,
  reason: z
    .string()
    .nullable()
    .meta({ description: 'Why no price can be said', examples: ['cost_zero', 'no_rate'] }),
  steps: PriceSteps,
  stock: z.object({ stock: units, available: z.boolean(), steps: StockSteps }),
  listings: z.array(StoreListing).meta({ description: 'How it stands in the store, which may have another price' }),
  takenBy: z
    .object({ id: z.string(), productId: z.string().nullable() })
    .nullable()
    .meta({ description: 'A listing of something else under the SKU: while it stands, none is begun for this offer' }),
  passes: z.boolean().meta({ description: 'Whether the import filters of the store let it through' }),
})

/** How the prices of a store come about. */
export function priceOperations(context: Pick<ApiContext, 'ordering' | 'stores'>): Operation[] {
  const { db, now } = context.ordering
  return [
    operation({
      name: 'explainPrice',
      method: 'get',
      path: '/stores/:store/prices/:sku',
      allowed: { people: 'viewer' },
      summary: 'How the price of one SKU in one store comes about, step by step, and the stock that is shown.',
      answer: Price,
      success: { 200: 'As the rules, the rates and the offer are now' },
      failures: { 404: 'no such store, or nothing under the SKU', 409: 'two offers have the SKU: `ambiguous_sku`' },
      async handle({ path: { store = '', sku = '' } }) {
        return ok(priceView(store, await explainOffer(db, configuredStore(context, store), sku, now())))
      },
    }),
  ]
}

export function priceView(
  store: string,
  { offer, price, stock, listings: rows, takenBy: taken, passes }: Explanation,
): z.infer<typeof Price> {
  const { sku, productId, name, category } = offer
  const takenBy = taken && { id: taken.variant, productId: taken.productId }
  const head = { store, sku, productId, name, category, listings: rows.map(storeListing), takenBy, passes }
  const steps = price.steps.map(({ step, amountMinor, currency, detail }) => ({
    step,
    amount: amountMinor === null ? null : formatDecimal({ minor: amountMinor, currency }),
    currency,
    detail,
  }))
  if (price.outcome === 'held') {
    const none = { price: null, compareAt: null, floor: null }
    return { ...head, ...none, outcome: 'held', currency: offer.currency, reason: price.reason, steps, stock }
  }
  const { currency } = price
  const floor = formatDecimal({ minor: price.floorMinor, currency })
  return { ...head, outcome: 'priced', reason: null, currency, steps, stock, floor, ...priceTexts(price) }
}
