import { describe, expect, test } from 'vitest'
import { addPreview, averageMargin, noPreviews, previewPrice } from '../../src/domain/price-preview.ts'
import { readRules, rulesUnderFloor } from '../../src/domain/pricing-rules.ts'
import type { ListingContent, ListingFacts } from '../../src/domain/publication.ts'
import { TEST_NOW } from '../support/database.ts'
import { pricedOffer, sellingPolicy } from '../support/selling.ts'

type Settings = NonNullable<Parameters<typeof sellingPolicy>[0]>

const offer = (fields: object = {}) => ({
  ...pricedOffer(),
  ...{ productId: 'p1', name: 'Circuit Kings 25', localStock: 5, providerStock: null, available: true },
  ...fields,
})
/** A store that has the listing at this price; null: it has nothing yet. */
function having(priceMinor: number | null, fields: Partial<ListingFacts> = {}): ListingFacts {
  const content = { compareAtMinor: null, currency: 'EUR', stock: 5, available: true, category: 'Games', isGone: false }
  const known: ListingContent | null = priceMinor === null ? null : { ...content, priceMinor, name: 'Circuit Kings 25' }
  const nothing = { sent: null, open: false, failing: false, settled: true, approvedPriceMinor: null }
  return { known, jumpFrom: known, ...nothing, ...fields }
}
const preview = (after: Settings, { from = {}, facts = having(1_200), of = offer() }: Partial<Given> = {}) =>
  previewPrice(of, facts, { before: sellingPolicy(from), after: sellingPolicy(after) }, TEST_NOW)
interface Given {
  from: Settings
  facts: ListingFacts
  of: ReturnType<typeof offer>
}

describe('a listing under other rules', () => {
  test('shows cost, old and new price, the margin and the rule, in whole cents', () => {
    expect(preview({ pricing: { categories: { Games: { percent: '22' } } } })).toMatchObject({
      rung: 'category',
      costMinor: 1_000,
      nowMinor: 1_200,
      priceMinor: 1_220,
      // 2.20 of 12.20 are 18.03 %.
      marginPermille: 180,
      rule: 'category Games: the cost plus 22 %',
      heldBy: null,
      kinds: ['all', 'higher'],
    })
  })

  test('is not counted where its price stays', () => {
    const same = preview({ pricing: { bands: [{ upTo: '10', percent: '20' }, { percent: '5' }] } })
    expect(same).toMatchObject({ rung: 'band', priceMinor: 1_200, kinds: [] })
  })

  test('is held where the price of the store would jump, and no longer held where the rules let it pass', () => {
    expect(preview({ pricing: { markup: { percent: '85' } } })).toMatchObject({
      priceMinor: 1_850,
      heldBy: 'price_jump',
      kinds: ['all', 'higher', 'held'],
    })
    const from = { pricing: { markup: { percent: '85' } } }
    const wider = { pricing: { ...from.pricing, jumpPercent: '60' } }
    expect(preview(wider, { from })).toMatchObject({ heldBy: null, kinds: ['all', 'higher'] })
    expect(preview({ pricing: { ...from.pricing, jumpPercent: null } }, { from }).heldBy).toBeNull()
  })

  test('is not held where a person has approved the price', () => {
    const facts = having(1_200, { approvedPriceMinor: 1_850 })
    expect(preview({ pricing: { markup: { percent: '85' } } }, { facts }).heldBy).toBeNull()
  })

  test('is at the floor where the margin decides its price', () => {
    const pricing = { products: { 'SKU-1': { fixed: '10.40' } }, margin: { percent: '5' } }
    expect(preview({ pricing })).toMatchObject({ rung: 'product', priceMinor: 1_050, kinds: ['all', 'lower', 'floor'] })
    const banded = { bands: [{ upTo: '9', percent: '20' }, { percent: '1' }], margin: { percent: '5' } }
    expect(preview({ pricing: banded }).kinds).toEqual(['all', 'lower'])
  })

  test('compares with the rules in force where the store has nothing yet', () => {
    const facts = having(null)
    expect(preview({ pricing: { markup: { percent: '10' } } }, { facts })).toMatchObject({
      nowMinor: 1_200,
      priceMinor: 1_100,
      kinds: ['all', 'lower'],
    })
  })

  test('has no price without a rate, and says so', () => {
    const rates = [{ from: 'EUR', to: 'USD', rate: '1.1' }]
    const from = { currency: 'USD', rates }
    const ended = { currency: 'USD', rates: [{ ...rates[0], validUntil: '2020-01-01' }] } as Settings
    expect(preview(ended, { from, facts: having(null) })).toMatchObject({
      rung: null,
      nowMinor: 1_320,
      priceMinor: null,
      rule: 'no rate from EUR to USD is in force',
      heldBy: 'no_rate',
      kinds: ['all', 'held'],
    })
  })

  test('is changed where only the crossed-out price is another one', () => {
    const compareAt = { percent: '25' }
    expect(preview({ pricing: { compareAt } })).toMatchObject({ compareAtMinor: 1_500, kinds: ['all'] })
  })
})

test('the totals add up by rung and kind, and the average margin is that of the sums', () => {
  const totals = noPreviews()
  const after = { pricing: { categories: { Games: { percent: '50' } } } }
  addPreview(totals, preview(after))
  addPreview(totals, preview(after, { of: offer({ category: 'Office', costMinor: 3_000 }), facts: having(3_600) }))
  addPreview(totals, preview(after, { of: offer({ costMinor: 0 }) }))
  expect(totals).toMatchObject({
    listings: 3,
    unpriced: 1,
    changed: { all: 1, higher: 1, lower: 0, held: 0, floor: 0 },
    rungs: { product: 0, category: 1, band: 0, store: 1 },
  })
  // 8.00 of 48.00, and 11.00 of 51.00.
  expect([averageMargin(totals.sums.before), averageMargin(totals.sums.after)]).toEqual([166, 215])
  expect(averageMargin(noPreviews().sums.after)).toBeNull()
})

describe('a rule under the floor', () => {
  const under = (pricing: Settings['pricing']) => {
    const { rules } = readRules(sellingSettings(pricing), 'EUR')
    return rulesUnderFloor(rules).map(({ field }) => field)
  }
  const sellingSettings = (pricing: Settings['pricing']) =>
    ({
      markup: { percent: '20' },
      bands: [],
      categories: {},
      products: {},
      margin: {},
      rounding: { step: null, endings: null, direction: 'up' },
      compareAt: null,
      jumpPercent: null,
      ...pricing,
    }) as Parameters<typeof readRules>[0]

  test.each([
    ['adds a smaller share', { markup: { percent: '2' }, margin: { percent: '5' } }, ['markup.percent']],
    ['adds a smaller sum', { markup: { flat: '0.50' }, margin: { flat: '1.00' } }, ['markup.flat']],
    ['adds nothing', { markup: { percent: '0' }, margin: { percent: '5' } }, ['markup.percent']],
    [
      'is that of a category',
      { categories: { Games: { percent: '3' } }, margin: { percent: '5' } },
      ['categories.Games.percent'],
    ],
    [
      'is that of a band',
      { bands: [{ upTo: '9', percent: '30' }, { percent: '1' }], margin: { percent: '5' } },
      ['bands.1.percent'],
    ],
    [
      'is that of a product',
      { products: { A: { percent: '1' }, B: { fixed: '1' } }, margin: { percent: '5' } },
      ['products.A.percent'],
    ],
  ])('is named where it %s', (_what, pricing, fields) => {
    expect(under(pricing)).toEqual(fields)
  })

  test.each([
    ['there is no margin', { markup: { percent: '0' } }],
    ['the rule and the margin are one', { markup: { percent: '5' }, margin: { percent: '5' } }],
    ['dear products are above it', { markup: { percent: '5' }, margin: { flat: '1.00' } }],
    ['cheap products are above it', { markup: { percent: '2', flat: '0.50' }, margin: { percent: '5' } }],
    ['it is not used beside bands', { markup: { percent: '1' }, bands: [{ percent: '30' }], margin: { percent: '5' } }],
  ])('is none where %s', (_what, pricing) => {
    expect(under(pricing)).toEqual([])
  })
})
