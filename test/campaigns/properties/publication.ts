/** What holds of every decision about what is pushed to a store, whatever the offer, the store and the rules. */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import type { PublishedOffer, StorePolicy } from '../../../src/domain/listing.ts'
import { priceOf } from '../../../src/domain/pricing.ts'
import { decideListing, type ListingContent, type ListingFacts, type Match } from '../../../src/domain/publication.ts'
import { sellingPolicy } from '../../support/selling.ts'

const AT = 1_700_000_000_000

export const listedOffer = (fields: Partial<PublishedOffer> = {}): PublishedOffer & { productId: string } => ({
  productId: 'p',
  sku: 'OS-1',
  name: 'Desktop Pro',
  category: 'os',
  costMinor: 1_000,
  currency: 'EUR',
  localStock: 2,
  providerStock: 5,
  available: true,
  basePriceMinor: null,
  costFault: null,
  ...fields,
})

export const listedContent = (fields: Partial<ListingContent> = {}): ListingContent => ({
  priceMinor: 1_200,
  compareAtMinor: null,
  currency: 'EUR',
  stock: 7,
  available: true,
  name: 'Desktop Pro',
  category: 'os',
  isGone: false,
  ...fields,
})

const units = fc.option(fc.nat({ max: 20 }), { nil: null })
const offers = fc.record({
  costMinor: fc.nat({ max: 5_000 }),
  costFault: fc.constantFrom(null, null, null, 'missing' as const, 'currency' as const),
  localStock: units,
  providerStock: units,
  available: fc.boolean(),
})
const matches: fc.Arbitrary<Match> = fc.oneof(
  { weight: 6, arbitrary: offers.map((fields): Match => ({ outcome: 'matched', offer: listedOffer(fields) })) },
  fc.constantFrom<Match>({ outcome: 'gone' }, { outcome: 'filtered' }, { outcome: 'missing', detail: 'x' }),
)
const contents = fc
  .record({ priceMinor: fc.integer({ min: 1, max: 6_000 }), stock: units })
  .map(({ priceMinor, stock }) => listedContent({ priceMinor, stock, available: stock !== 0 }))
const facts: fc.Arbitrary<ListingFacts> = fc
  .record({
    known: fc.option(contents, { nil: null }),
    sent: fc.option(contents, { nil: null }),
    settled: fc.boolean(),
    failing: fc.boolean(),
    approvedPriceMinor: fc.option(fc.nat({ max: 6_000 }), { nil: null }),
  })
  .map(({ known, sent, settled, failing, ...rest }) => ({
    ...rest,
    known,
    settled,
    open: sent !== null && !settled,
    failing: failing && !settled,
    jumpFrom: known,
    sent: settled || !sent ? null : { ...sent, stock: 0, available: false },
  }))
const percent = (max: number) => fc.nat({ max }).map(String)
const stores: fc.Arbitrary<StorePolicy> = fc
  .record({
    markup: fc.record({ percent: percent(100) }),
    margin: fc.record({ percent: percent(60) }),
    jumpPercent: fc.option(percent(120), { nil: null }),
  })
  .map((pricing) => sellingPolicy({ pricing }))

/** Whether the store may sell at what is pushed: there is nothing to sell, or the price clears the floor. */
function isSafe(match: Match, { priceMinor, stock, available }: ListingContent, store: StorePolicy): boolean {
  if (stock === 0 && !available) return true
  const priced = match.outcome === 'matched' ? priceOf(match.offer, store.pricing, AT) : undefined
  return priced?.outcome === 'priced' && priceMinor >= priced.floorMinor
}

export const publicationProperties: Record<string, () => fc.IProperty<[Match, ListingFacts, StorePolicy]>> = {
  'no price under the floor is pushed together with stock': () =>
    fc.property(matches, facts, stores, (match, given, store) => {
      const { content, push } = decideListing(match, given, store, AT)
      return !push || content === null || isSafe(match, content, store)
    }),
  'where a push may have arrived and nothing may be sold, zero is pushed': () =>
    fc.property(matches, facts, stores, (match, given, store) => {
      const mayHave = given.known ?? given.sent
      const may = match.outcome === 'matched' && priceOf(match.offer, store.pricing, AT).outcome === 'priced'
      const { content, push } = decideListing(match, given, store, AT)
      if (may) return content !== null
      if (mayHave === null) return content === null && !push
      const isKnown = given.settled && given.known?.stock === 0 && !given.known.available
      return content?.stock === 0 && !content.available && content.priceMinor === mayHave.priceMinor && push !== isKnown
    }),
  'a store that did not take a push sells nothing at a price under the floor by the next one': () =>
    fc.property(matches, facts, stores, (match, given, store) => {
      const { known, sent, failing } = given
      const priced = match.outcome === 'matched' ? priceOf(match.offer, store.pricing, AT) : undefined
      if (!failing || priced?.outcome !== 'priced') return true
      const isLow = (one: ListingContent | null) => one !== null && one.priceMinor < priced.floorMinor
      const { content, push } = decideListing(match, given, store, AT)
      return !(isLow(known) || isLow(sent)) || (push && content?.stock === 0 && !content.available)
    }),
  'nothing is pushed twice: once the store has it, the decision stays and pushes nothing': () =>
    fc.property(matches, facts, stores, (match, given, store) => {
      const first = decideListing(match, given, store, AT)
      if (first.content === null) return !first.push
      // Nothing is sold meanwhile, and what it did not take is pushed again.
      if (first.state === 'failed' || first.state === 'pending') return first.push && first.content.stock === 0
      const known = first.content
      const taken = { known, sent: null, open: false, failing: false, settled: true, jumpFrom: known }
      const again = decideListing(match, { ...given, ...taken }, store, AT)
      const same = again.state === first.state && again.reason === first.reason
      return !again.push && same && isDeepStrictEqual(again.content, first.content)
    }),
}
