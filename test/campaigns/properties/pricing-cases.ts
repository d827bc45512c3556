import fc from 'fast-check'
import { z } from 'zod'
import type { PricedOffer, PricingPolicy } from '../../../src/domain/pricing.ts'
import { sellingFaults, sellingShape, storePolicy } from '../../../src/stores/store-settings.ts'
import type { ReferenceCase } from './reference-price.ts'

/** One offer in one store, both as the code takes them and as the reference does. */
export interface PriceCase {
  offer: PricedOffer
  policy: PricingPolicy
  reference: ReferenceCase
}

const shape = z.strictObject(sellingShape)
const places: Record<string, number> = { EUR: 2, USD: 2, JPY: 0, KWD: 3 }
const currencies = fc.constantFrom(...Object.keys(places))

const decimalText = (max: number, digits: number): fc.Arbitrary<string> =>
  fc
    .tuple(fc.nat({ max }), fc.nat({ max: 10 ** digits - 1 }))
    .map(([whole, part]) => (digits === 0 ? String(whole) : `${whole}.${String(part).padStart(digits, '0')}`))
const percents = fc.oneof(fc.constantFrom('0', '5', '12.5', '20', '100'), decimalText(400, 4), decimalText(30, 1))
const amounts = (currency: string, max = 40) => decimalText(max, places[currency] ?? 2)
const markups = (currency: string) =>
  fc.oneof(
    fc.record({ percent: percents }),
    fc.record({ flat: amounts(currency) }),
    fc.record({ percent: percents, flat: amounts(currency) }),
  )

/** Ascending by whole units, the last one open. */
const bands = (currency: string) =>
  fc
    .tuple(
      fc.uniqueArray(fc.integer({ min: 1, max: 3_000 }), { maxLength: 4 }),
      fc.array(markups(currency), { minLength: 5, maxLength: 5 }),
    )
    .map(([ends, rules]) => {
      const ascending = ends.toSorted((left, right) => left - right)
      const closed = ascending.map((end, place) => ({ upTo: String(end), ...rules[place] }))
      return [...closed, { ...rules[4] }]
    })

const roundings = (currency: string) => {
  const digits = places[currency] ?? 2
  const smallest = digits === 0 ? '1' : `0.${'1'.padStart(digits, '0')}`
  const steps = fc.constantFrom(smallest, ...(digits === 0 ? ['10', '50', '25'] : ['0.05', '0.10', '0.25', '1', '5']))
  const endings =
    digits === 0
      ? fc.constantFrom('80', '9', '50', '0', '980')
      : fc.constantFrom('.99', '.95', '.9', '.00', ...(digits === 2 ? ['9.99', '4.50'] : ['.990', '.125']))
  const directions = fc.constantFrom('up' as const, 'down' as const, 'nearest' as const)
  return fc.oneof(
    fc.record({ direction: directions }),
    fc.record({ step: steps, direction: directions }),
    fc.record({ endings: fc.uniqueArray(endings, { minLength: 1, maxLength: 3 }), direction: directions }),
  )
}

const pricings = (currency: string) =>
  fc.record({
    markup: fc.record({ percent: percents, flat: amounts(currency) }),
    bands: fc.oneof(fc.constant([]), bands(currency)),
    categories: fc.oneof(fc.constant({}), fc.record({ Games: markups(currency) })),
    products: fc.oneof(
      { weight: 3, arbitrary: fc.constant({}) },
      { weight: 1, arbitrary: fc.record({ 'SKU-1': markups(currency) }) },
      {
        weight: 1,
        arbitrary: fc.record({ 'SKU-1': fc.record({ fixed: fc.integer({ min: 1, max: 900 }).map(String) }) }),
      },
    ),
    margin: fc.record({ percent: percents, flat: amounts(currency, 9) }),
    rounding: roundings(currency),
    compareAt: fc.oneof(
      fc.constant(null),
      fc.constant('base_price' as const),
      percents.map((percent) => ({ percent })),
    ),
  })

const rateTexts = fc.oneof(
  fc.constantFrom('1.0834', '0.9', '160', '0.00617', '0.3', '3.25'),
  fc
    .tuple(fc.nat({ max: 300 }), fc.integer({ min: 1, max: 99_999_999 }))
    .map(([whole, part]) => `${whole}.${String(part).padStart(8, '0')}`),
)

/**
 * Costs that shops have, and small ones, where each minor unit counts. The largest, in yen, at the highest rate, in fils,
 * with five times as much on top twice, is 10^15: all of them have an exact price.
 */
export const costs = fc.oneof(
  fc.integer({ min: 1, max: 300 }),
  fc.integer({ min: 1, max: 500_000 }),
  fc.integer({ min: 1, max: 100_000_000 }),
)
/** Up to the largest there are: most of them have no exact price. */
export const anyCosts = fc.oneof(costs, fc.bigInt({ min: 1n, max: BigInt(Number.MAX_SAFE_INTEGER) }).map(Number))

/** Offers and policies that the configuration accepts, in currencies with 0, 2 and 3 decimals. */
export const priceCases = (costMinors: fc.Arbitrary<number> = costs): fc.Arbitrary<PriceCase> =>
  fc.tuple(currencies, currencies).chain(([from, to]) =>
    fc
      .record({
        pricing: pricings(to),
        costMinor: costMinors,
        basePriceMinor: fc.option(costs, { nil: null }),
        category: fc.constantFrom('Games', 'Office', null),
        rate: from === to ? fc.constant('1') : rateTexts,
        beside: fc.option(fc.integer({ min: -1, max: 1 }), { nil: null, freq: 2 }),
      })
      .map(({ beside, ...one }) => {
        // Now and then right at the end of the first band, or beside it.
        const end =
          one.pricing.bands[0] !== undefined && 'upTo' in one.pricing.bands[0] ? one.pricing.bands[0].upTo : undefined
        if (beside === null || end === undefined || from !== to) return one
        return { ...one, costMinor: Math.max(1, Number(end) * 10 ** (places[to] ?? 2) + beside) }
      })
      .map(({ pricing, costMinor, basePriceMinor, category, rate }) => {
        const settings = shape.parse({ currency: to, pricing })
        const rates = from === to ? [] : [{ from, to, rate }]
        const [fault] = sellingFaults([settings], rates, from)
        if (fault) throw new Error(`the case would be refused: ${fault.field}: ${fault.message}`)
        const offer = { sku: 'SKU-1', category, costMinor, basePriceMinor, currency: from, costFault: null }
        return {
          offer,
          policy: storePolicy(settings, rates, from).pricing,
          reference: { ...offer, costCurrency: from, settings: { ...settings, currency: to }, rate },
        }
      }),
  )
