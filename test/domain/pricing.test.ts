import { describe, expect, test } from 'vitest'
import { endingPattern } from '../../src/domain/money.ts'
import { explainPrice, isJump, type PricedOffer, priceOf } from '../../src/domain/pricing.ts'
import { formatPercent, parsePercent } from '../../src/domain/pricing-rules.ts'
import { rateAt, readRate } from '../../src/domain/rates.ts'
import { TEST_NOW } from '../support/database.ts'
import { pricedOffer, sellingPolicy } from '../support/selling.ts'

type Pricing = NonNullable<NonNullable<Parameters<typeof sellingPolicy>[0]>['pricing']>

const priceFor = (pricing: Pricing, offer: Partial<PricedOffer> = {}) =>
  priceOf(pricedOffer(offer), sellingPolicy({ pricing }).pricing, TEST_NOW)
const stepsFor = (pricing: Pricing, offer: Partial<PricedOffer> = {}) =>
  explainPrice(pricedOffer(offer), sellingPolicy({ pricing }).pricing, TEST_NOW).steps.map(
    ({ step, amountMinor, detail }) => `${step} ${amountMinor}: ${detail}`,
  )

describe('a price', () => {
  const [product, category, bands, markup] = [
    { products: { 'SKU-1': { percent: '1' } } },
    { categories: { Games: { percent: '2' } } },
    { bands: [{ upTo: '20', percent: '3' }, { percent: '1' }] },
    { markup: { percent: '4' } },
  ]

  test.each([
    ['the product before all', { ...product, ...category, ...bands, ...markup }, 1_010],
    ['its category before the bands', { ...category, ...bands, ...markup }, 1_020],
    ['the band of its cost before the markup', { ...bands, ...markup }, 1_030],
    ['the markup', { ...markup }, 1_040],
  ])('goes by the rule of %s', (_rule, pricing, priceMinor) => {
    expect(priceFor(pricing)).toMatchObject({ outcome: 'priced', priceMinor })
  })

  test('goes by the band that ends at its cost', () => {
    const bands = [{ upTo: '10', percent: '3' }, { percent: '50' }]
    expect([priceFor({ bands }), priceFor({ bands }, { costMinor: 1_001 })]).toMatchObject([
      { priceMinor: 1_030 },
      { priceMinor: 1_502 },
    ])
  })

  test.each([
    ['is not stated', { costFault: 'missing' }, 'cost_missing'],
    ['is in another currency than the supplier sells in', { costFault: 'currency' }, 'cost_currency'],
    ['is zero', { costFault: 'zero' }, 'cost_zero'],
    ['is stored as zero, whatever else is said', { costMinor: 0 }, 'cost_zero'],
    ['is below zero', { costMinor: -1 }, 'cost_negative'],
    ['is too large to be exact', { costMinor: Number.MAX_SAFE_INTEGER }, 'too_large'],
    ['is in a currency without a rate', { currency: 'CHF' }, 'no_rate'],
  ] as const)('is held while the cost %s', (_what, offer, reason) => {
    expect(priceFor({}, offer)).toMatchObject({ outcome: 'held', reason, detail: expect.stringMatching(/\w{3}/) })
  })

  test('is never under the floor, and the steps say when the floor won', () => {
    const fixed = { products: { 'SKU-1': { fixed: '9.99' } }, margin: { percent: '5' }, rounding: { endings: ['.99'] } }
    expect(stepsFor(fixed)).toEqual([
      'cost 1000: what the supplier charges for one unit',
      'rule 999: product SKU-1: a fixed price',
      'floor 1050: the floor is 10.50 EUR: the cost plus 5 %; it wins over 9.99 EUR',
      'rounding 1099: up to an ending of .99',
    ])
    expect(stepsFor({ ...fixed, rounding: { endings: ['.49'], direction: 'down' } }).at(-1)).toBe(
      'rounding 1149: up to an ending of .49: down is under the floor',
    )
  })

  test('says that a fixed price is not rounded, and a price that is right already neither', () => {
    const rounding = { step: '0.50', direction: 'nearest' } as const
    expect(stepsFor({ rounding, products: { 'SKU-1': { fixed: '12.34' } } }).at(-1)).toContain('as it is written')
    expect(stepsFor({ rounding }).at(-1)).toBe('rounding 1200: a step of 0.50 already')
    expect(stepsFor({ rounding }, { costMinor: 1_020 }).at(-1)).toBe(
      'rounding 1200: down to a step of 0.50, the nearest',
    )
    expect(stepsFor({}).at(-1)).toBe('rounding 1200: none is configured')
  })

  test('says why there is nothing to compare it with', () => {
    const compareAt = 'base_price' as const
    expect(stepsFor({ compareAt }).at(-1)).toBe("compare_at null: none: the supplier's base price is not known")
    expect(stepsFor({ compareAt }, { basePriceMinor: 1_200 }).at(-1)).toContain('12.00 EUR, is not above the price')
    expect(stepsFor({ compareAt }, { basePriceMinor: 1_201 }).at(-1)).toBe("compare_at 1201: the supplier's base price")
  })

  test('jumps when it changes by more than the share of what it was', () => {
    const { rules } = sellingPolicy({ pricing: { jumpPercent: '50' } }).pricing
    expect([isJump(1_000, 1_500, rules), isJump(1_000, 1_501, rules)]).toEqual([false, true])
    expect([isJump(1_000, 500, rules), isJump(1_000, 499, rules)]).toEqual([false, true])
  })
})

describe('a rate', () => {
  const rate = { from: 'EUR', to: 'USD', rate: '1.1' }

  test('holds from its first instant to the last before its end; of several the youngest does', () => {
    const rates = [
      readRate({ ...rate, rate: '1.3', validFrom: '2026-03-01T12:00:00+02:00' }),
      readRate(rate),
      readRate({ ...rate, rate: '1.2', validFrom: '2026-01-01', validUntil: '2026-02-01' }),
    ]
    const at = (instant: string) => rateAt(rates, 'EUR', 'USD', Date.parse(instant))?.text
    expect([at('2025-12-31T23:59:59.999Z'), at('2026-01-01T00:00:00Z')]).toEqual(['1.1', '1.2'])
    expect([at('2026-01-31T23:59:59.999Z'), at('2026-02-01T00:00:00Z')]).toEqual(['1.2', '1.1'])
    expect([at('2026-03-01T09:59:59.999Z'), at('2026-03-01T10:00:00Z')]).toEqual(['1.1', '1.3'])
  })

  test('is not turned round', () => {
    expect(rateAt([readRate(rate)], 'USD', 'EUR', 0)).toBeUndefined()
  })

  test.each(['0', '0.000', '-1', '1e3', '', '1,1', '12345678', '0.123456789'])('is refused as %j', (text) => {
    expect(() => readRate({ ...rate, rate: text })).toThrow('a rate above 0')
  })
})

describe('a price, step by step,', () => {
  const rates = [{ from: 'USD', to: 'EUR', rate: '0.9' }]
  const cost = 'cost 1000: what the supplier charges for one unit'
  const none = 'rounding 1100: none is configured'

  test.each<[string, Pricing, string[]]>([
    [
      'of a band that begins where the one before ends',
      {
        bands: [
          { upTo: '9.99', percent: '20' },
          { percent: '10', flat: '0.00' },
        ],
      },
      [
        'rule 1100: the last band: the cost plus 10 %',
        'band 1199: dearer is never cheaper: the end of the bands before',
      ],
    ],
    [
      'of a band',
      { bands: [{ upTo: '20', flat: '1.00' }, { percent: '1' }] },
      [
        'rule 1100: band of costs up to 20.00 EUR: the cost plus 1.00 EUR',
        'floor 1100: the floor is 10.00 EUR: the cost',
        none,
      ],
    ],
    [
      'with both parts of a markup and of a margin',
      { markup: { percent: '5', flat: '0.50' }, margin: { percent: '3', flat: '1.00' } },
      [
        'rule 1100: markup: the cost plus 5 % plus 0.50 EUR',
        'floor 1100: the floor is 11.00 EUR: the cost plus the larger of 3 % and 1.00 EUR',
        none,
      ],
    ],
    [
      'under its floor',
      { markup: { percent: '0' }, margin: { flat: '1.00' } },
      [
        'rule 1000: markup: the cost, nothing added',
        'floor 1100: the floor is 11.00 EUR: the cost plus 1.00 EUR; it wins over 10.00 EUR',
        none,
      ],
    ],
    [
      'of its category',
      { categories: { Games: { percent: '10' } } },
      ['rule 1100: category Games: the cost plus 10 %', 'floor 1100: the floor is 10.00 EUR: the cost', none],
    ],
    ['that is fixed', { products: { 'SKU-1': { fixed: '11.00' } } }, ['rule 1100: product SKU-1: a fixed price', none]],
  ])('%s, is explained', (_what, pricing, steps) => {
    expect(stepsFor({ margin: { percent: '0' }, ...pricing })).toEqual(expect.arrayContaining([cost, ...steps]))
  })

  test('in another currency begins at the cost in it; one that has no price says why', () => {
    const { pricing } = sellingPolicy({ rates, pricing: { markup: { percent: '10' } } })
    const explained = (offer: Partial<PricedOffer>) =>
      explainPrice(pricedOffer(offer), pricing, TEST_NOW).steps.map(
        ({ step, amountMinor, currency }) => `${step} ${amountMinor} ${currency}`,
      )
    expect(explained({ currency: 'USD' }).slice(0, 3)).toEqual(['cost 1000 USD', 'currency 900 EUR', 'rule 990 EUR'])
    expect(explained({ currency: 'GBP' })).toEqual(['cost 1000 GBP', 'held null EUR'])
    expect(explained({ costFault: 'zero' })).toEqual(['held null EUR'])
  })
})

describe('an ending', () => {
  test.each([
    ['.99', 'EUR', 100, 99],
    ['9.99', 'EUR', 1_000, 999],
    ['.9', 'EUR', 100, 90],
    ['5', 'EUR', 1_000, 500],
    ['.990', 'KWD', 1_000, 990],
    ['80', 'JPY', 100, 80],
  ])('of %s in %s comes every %i minor units', (text, currency, every, at) => {
    expect(endingPattern(text, currency)).toEqual({ every, at })
  })

  test.each([
    ['.99', 'JPY'],
    ['.999', 'EUR'],
    ['', 'EUR'],
    ['.', 'EUR'],
    ['99.', 'EUR'],
    ['x', 'EUR'],
    ['-1', 'EUR'],
  ])('of %j in %s cannot be read', (text, currency) => {
    expect(endingPattern(text, currency)).toBeUndefined()
  })
})

test('a percentage is printed as it is read', () => {
  for (const text of ['0', '5', '12.5', '100', '0.0001', '9999.9999', '10.01']) {
    expect(formatPercent(parsePercent(text) ?? -1)).toBe(text)
  }
  for (const text of ['', '.5', '5.', '1.00001', '12345', '-1', '1e2']) expect(parsePercent(text)).toBeUndefined()
})
