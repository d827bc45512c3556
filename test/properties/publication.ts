/** What holds of every decision about what a store is told, whatever the offer, the store and the rules. */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import type { PublishedOffer, StoreTerms } from '../../src/domain/listing.ts'
import { priceOf } from '../../src/domain/pricing.ts'
import { decideListing, type ListingContent, type ListingFacts, type Match } from '../../src/domain/publication.ts'
import { sellingTerms } from '../selling.ts'

const AT = 1_700_000_000_000

export const listedOffer = (fields: Partial<PublishedOffer> = {}): PublishedOffer & { productId: string } => ({
  ...{ productId: 'p', sku: 'OS-1', name: 'Desktop Pro', category: 'os', costMinor: 1_000, currency: 'EUR' },
  ...{ localStock: 2, providerStock: 5, available: 1, basePriceMinor: null, costFault: null, ...fields },
})

export const listedContent = (fields: Partial<ListingContent> = {}): ListingContent => ({
  ...{ priceMinor: 1_200, compareAtMinor: null, currency: 'EUR', stock: 7, available: true },
  ...{ name: 'Desktop Pro', category: 'os', ...fields },
})

const units = fc.option(fc.nat({ max: 20 }), { nil: null })
const offers = fc.record({
  costMinor: fc.nat({ max: 5_000 }),
  costFault: fc.constantFrom(null, null, null, 'missing' as const, 'currency' as const),
  localStock: units,
  providerStock: units,
  available: fc.constantFrom(0, 1),
})
const matches: fc.Arbitrary<Match> = fc.oneof(
  { weight: 6, arbitrary: offers.map((fields): Match => ({ outcome: 'matched', offer: listedOffer(fields) })) },
  fc.constantFrom<Match>({ outcome: 'gone' }, { outcome: 'filtered' }, { outcome: 'missing', detail: 'x' }),
)
const contents = fc
  .record({ priceMinor: fc.integer({ min: 1, max: 6_000 }), stock: units })
  .map(({ priceMinor, stock }) => listedContent({ priceMinor, stock, available: stock !== 0 }))
const facts: fc.Arbitrary<ListingFacts> = fc.record({
  known: fc.option(contents, { nil: null }),
  settled: fc.boolean(),
  approvedPriceMinor: fc.option(fc.nat({ max: 6_000 }), { nil: null }),
})
const percent = (max: number) => fc.nat({ max }).map(String)
const stores: fc.Arbitrary<StoreTerms> = fc
  .record({
    markup: fc.record({ percent: percent(100) }),
    margin: fc.record({ percent: percent(60) }),
    jumpPercent: fc.option(percent(120), { nil: null }),
  })
  .map((pricing) => sellingTerms({ pricing }))

/** Whether the store may sell at what it is told: there is nothing to sell, or the price clears the floor. */
function isSafe(match: Match, { priceMinor, stock, available }: ListingContent, store: StoreTerms): boolean {
  if (stock === 0 && !available) return true
  const priced = match.outcome === 'matched' ? priceOf(match.offer, store.pricing, AT) : undefined
  return priced?.outcome === 'priced' && priceMinor >= priced.floorMinor
}

export const publicationProperties: Record<string, () => fc.IProperty<[Match, ListingFacts, StoreTerms]>> = {
  'no store is told a price under the floor together with stock': () =>
    fc.property(matches, facts, stores, (match, given, store) => {
      const { content, tell } = decideListing(match, given, store, AT)
      return !tell || content === null || isSafe(match, content, store)
    }),
  'no store is told the same twice: once it has it, the decision stands and tells nothing': () =>
    fc.property(matches, facts, stores, (match, given, store) => {
      const first = decideListing(match, given, store, AT)
      if (first.content === null) return !first.tell
      const again = decideListing(match, { ...given, known: first.content, settled: true }, store, AT)
      const same = again.state === first.state && again.reason === first.reason
      return !again.tell && same && isDeepStrictEqual(again.content, first.content)
    }),
}
