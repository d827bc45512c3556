import { setImmediate as pause } from 'node:timers/promises'
import { z } from 'zod'
import type { Config } from '../../config/config.ts'
import { percentText } from '../../domain/earnings.ts'
import { passesFilter } from '../../domain/listing.ts'
import { availableStock } from '../../domain/offer.ts'
import { averageMargin, type PreviewTotals, previewKinds, rungs } from '../../domain/price-preview.ts'
import { pricingPolicy } from '../../domain/pricing.ts'
import { readRules, rulesUnderFloor } from '../../domain/pricing-rules.ts'
import { Failure } from '../../errors.ts'
import { type PreviewedListing, previewPrices } from '../../listings/price-preview.ts'
import { listOffers } from '../../storage/offers.ts'
import type { ConfiguredStore } from '../../stores/kinds.ts'
import { type RatesSettings, sellingFaults, storePolicy } from '../../stores/store-settings.ts'
import { countProductsBody, pricePreviewBody } from '../input.ts'
import { type ApiContext, admin, configuredStore, ok, operation, viewer } from '../operation.ts'
import { amount, component, count, currency, view, withAmounts, words } from './views.ts'

const share = z
  .string()
  .nullable()
  .meta({ description: 'Of the price above the cost, in percent', examples: ['18.2'] })
const shareOf = (permille: number | null): string | null => (permille === null ? null : percentText(permille))

const PreviewedPrice = view(
  z.object({
    id: z.string(),
    sku: z.string(),
    name: z.string(),
    listed: z.boolean().describe('False: the store would begin to list it'),
    rung: z.enum(rungs).nullable().describe('Where the rule stands that decides; null: there is no price'),
    rule: z.string().describe('The rule; or why there is no price'),
    currency,
    cost: amount.nullable(),
    now: amount.nullable().describe('What the store has; where it has nothing yet, what the rules in force give'),
    price: amount.nullable().describe('By the proposed rules; null: it cannot be priced, and is not sold'),
    compareAt: amount.nullable(),
    margin: share,
    heldBy: words.describe('Why it would wait for a person; null: it would be pushed'),
    kinds: z.array(z.enum(previewKinds)),
  }),
  ({ marginPermille, ...row }: PreviewedListing) => ({ ...withAmounts(row), margin: shareOf(marginPermille) }),
)

const ofEach = <const N extends readonly string[]>(names: N) =>
  z.object(Object.fromEntries(names.map((name) => [name, count])) as Record<N[number], typeof count>)

const PricePreview = component('PricePreview', {
  store: z.string(),
  currency: currency.describe('Of the store'),
  costCurrency: currency.describe('In which the supplier charges'),
  whole: z.boolean().describe('False: the counts are of a sample'),
  listings: count.describe('How many were looked at: those with an offer that are not ignored'),
  unpriced: count,
  changed: ofEach(previewKinds),
  rungs: ofEach(rungs).describe('How many prices the rules of each rung decide'),
  margin: z
    .object({ before: share, after: share })
    .describe('The average, by the rules in force and the proposed ones'),
  items: z.array(PreviewedPrice),
  next: count.nullable(),
})

const Counted = z.object({
  offered: count,
  chosen: count,
  inStock: count,
  categories: z.array(z.object({ category: words, offered: count, chosen: count, inStock: count })),
})

const LIMIT = 50

export function pricePreviewOperations(context: ApiContext) {
  const { config, ordering } = context
  return {
    countProducts: operation({
      route: 'POST /stores/:store/products/count',
      allowed: admin,
      body: countProductsBody,
      summary: 'Count the products that a store would list by other `listings`, by category. Nothing is changed.',
      answer: Counted,
      success: { 200: 'The counts; all are 0 before the catalogue was read' },
      failures: { 404: 'no such store' },
      handle: async ({ path, body: { listings } }) =>
        ok(await countOf(context, { ...configuredStore(context, path.store), listings })),
    }),
    previewPrices: operation({
      route: 'POST /stores/:store/price-preview',
      allowed: viewer,
      summary: 'What other rules or rates would do to the prices of a store, by what is stored. Nothing is changed.',
      body: pricePreviewBody,
      answer: PricePreview,
      success: { 200: 'The counts, and a page of the listings that would change; `next` goes into `skip`' },
      failures: { 404: 'no such store' },
      async handle({ path, body: { pricing, rates, whole = false, kind = 'all', skip = 0, limit = LIMIT } }) {
        const store = configuredStore(context, path.store)
        const proposed = { ...store, pricing: pricing ?? store.pricing }
        const after = { ...store.policy, pricing: proposedPolicy(store, proposed, rates ?? config.rates, config) }
        const asked = { whole, kind, skip, limit }
        const { totals, listings } = await previewPrices(ordering.db, store, after, asked, ordering.now())
        return ok({
          store: store.id,
          currency: store.currency,
          costCurrency: config.dialectFacts.money.currency,
          whole,
          ...totalsOf(totals),
          items: listings,
          next: totals.changed[kind] > skip + limit ? skip + limit : null,
        })
      },
    }),
  }
}

/**
 * @throws Failure `invalid` with every fault of the rules and the rates. A rule that adds less than the margin is one, unless it is in
 *   force already
 */
function proposedPolicy(
  before: ConfiguredStore,
  proposed: ConfiguredStore,
  rates: RatesSettings,
  { dialectFacts: { money } }: Config,
) {
  const { currency, pricing } = proposed
  const known = new Set(rulesUnderFloor(before.policy.pricing.rules).map(({ field }) => field))
  const faults = sellingFaults([proposed], rates, money.currency).map(({ field, message }) => ({
    field: field.replace(/^stores\.0\./, ''),
    message,
  }))
  const { rules } = readRules(pricing, currency)
  const under = rulesUnderFloor(rules).filter(({ field }) => !known.has(field))
  if (faults.length === 0) faults.push(...under.map(({ field, message }) => ({ field: `pricing.${field}`, message })))
  const [first] = faults
  if (first) throw new Failure('invalid', `${first.field}: ${first.message}`, { fields: faults })
  return pricingPolicy(proposed, rates)
}

const totalsOf = ({ sums, ...totals }: PreviewTotals) => ({
  ...totals,
  margin: { before: shareOf(averageMargin(sums.before)), after: shareOf(averageMargin(sums.after)) },
})

/** Counts by category what a store would list of what the supplier has. */
async function countOf({ ordering: { db }, config }: ApiContext, store: Parameters<typeof storePolicy>[0]) {
  const { filter } = storePolicy(store, config.rates, config.dialectFacts.money.currency)
  const categories = new Map<
    string | null,
    { category: string | null; offered: number; chosen: number; inStock: number }
  >()
  for (let after = ''; ; ) {
    const offers = await db.query(listOffers({ after, limit: 500 }))
    for (const offer of offers) {
      const of = categories.get(offer.category) ?? { category: offer.category, offered: 0, chosen: 0, inStock: 0 }
      const isChosen = passesFilter(offer, filter)
      of.offered += 1
      if (isChosen) of.chosen += 1
      if (isChosen && availableStock(offer) !== 0) of.inStock += 1
      categories.set(offer.category, of)
    }
    after = offers.at(-1)?.productId ?? after
    if (offers.length < 500) break
    // Deliveries and orders are taken between two pages.
    await pause()
  }
  const rows = [...categories.values()].toSorted((a, b) => b.offered - a.offered)
  const sum = (name: 'offered' | 'chosen' | 'inStock') => rows.reduce((total, row) => total + row[name], 0)
  return { offered: sum('offered'), chosen: sum('chosen'), inStock: sum('inStock'), categories: rows.slice(0, 200) }
}
