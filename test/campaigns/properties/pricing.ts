/** What holds of every price, stock and ceiling: the same definitions for `npm test` and, with more cases, for `npm run properties`. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { roundPrice } from '../../../src/domain/money.ts'
import { ceilingMinor, explainPrice, isJump, type Priced, priceOf } from '../../../src/domain/pricing.ts'
import { readRate } from '../../../src/domain/rates.ts'
import { publishedStock } from '../../../src/domain/stock.ts'
import { anyCosts, costs, priceCases } from './pricing-cases.ts'
import { fraction, less, minorUnits, referencePrice, times, units } from './reference-price.ts'

/** By the claim that each makes. */
export type Properties = Record<string, () => fc.IRawProperty<unknown>>

const AT = Date.parse('2026-06-01')
const MOST = BigInt(Number.MAX_SAFE_INTEGER)

/** Prices of costs that shops have: none of them is held. */
function priced(price: Priced): Extract<Priced, { outcome: 'priced' }> {
  assert.equal(price.outcome, 'priced')
  return price as Extract<Priced, { outcome: 'priced' }>
}

export const pricingProperties = {
  'a price is never under the cost and the margin': () =>
    fc.property(priceCases(), ({ offer, policy, reference }) => {
      const { priceMinor, floorMinor, compareAtMinor, currency } = priced(priceOf(offer, policy, AT))
      const { percent, flat } = reference.settings.pricing.margin
      const cost = times(units(offer.costMinor, offer.currency), fraction(reference.rate))
      const price = units(priceMinor, currency)
      const margin = fraction(percent)
      const share = times(cost, { n: 100n * margin.d + margin.n, d: 100n * margin.d })
      const amount = { n: cost.n * fraction(flat).d + fraction(flat).n * cost.d, d: cost.d * fraction(flat).d }
      assert.ok(!less(price, share) && !less(price, amount) && priceMinor >= floorMinor && priceMinor > 0)
      assert.ok(compareAtMinor === null || compareAtMinor > priceMinor)
    }),

  'a higher cost never makes a lower price': () =>
    fc.property(priceCases(), costs, ({ offer, policy }, other) => {
      const [low, high] = [offer.costMinor, other].toSorted((left, right) => left - right)
      const [cheap, dear] = [low, high, (low ?? 0) + 1].map(
        (costMinor) => priced(priceOf({ ...offer, costMinor: costMinor ?? 0 }, policy, AT)).priceMinor,
      )
      const beside = priced(priceOf({ ...offer, costMinor: (low ?? 0) + 1 }, policy, AT)).priceMinor
      assert.ok((cheap ?? 0) <= (dear ?? 0) && (cheap ?? 0) <= beside)
    }),

  'rounding what is rounded changes nothing, and keeps the order of prices': () =>
    fc.property(priceCases(), costs, fc.nat({ max: 5_000 }), fc.nat({ max: 500 }), ({ policy }, minor, more, under) => {
      const { rounding } = policy.rules
      const floor = Math.max(1, minor - under)
      const once = roundPrice(minor, floor, rounding)
      assert.equal(roundPrice(once, floor, rounding), once)
      assert.ok(once >= floor)
      assert.ok(roundPrice(minor + more, floor, rounding) >= once)
      assert.ok(roundPrice(minor + more, Math.min(floor + more, minor + more), rounding) >= once)
    }),

  'a price is what slow arithmetic with fractions makes of the settings': () =>
    fc.property(priceCases(), ({ offer, policy, reference }) => {
      const { priceMinor, floorMinor, compareAtMinor } = priced(priceOf(offer, policy, AT))
      const slow = referencePrice(reference)
      assert.equal(BigInt(priceMinor), slow.price)
      assert.equal(BigInt(floorMinor), slow.floor)
      assert.equal(compareAtMinor === null ? null : BigInt(compareAtMinor), slow.compareAt)
    }),

  'a price is exact, or held because it could not be': () =>
    fc.property(priceCases(anyCosts), ({ offer, policy, reference }) => {
      const price = priceOf(offer, policy, AT)
      const slow = referencePrice(reference)
      if (price.outcome === 'priced') assert.equal(BigInt(price.priceMinor), slow.price)
      else assert.ok(price.reason === 'too_large' && slow.largest > MOST)
    }),

  'what is explained is what is charged': () =>
    fc.property(priceCases(anyCosts), ({ offer, policy }) => {
      const { steps, ...explained } = explainPrice(offer, policy, AT)
      const { steps: none, ...price } = priceOf(offer, policy, AT)
      assert.deepEqual(explained, price)
      assert.deepEqual(none, [])
      const last = steps.findLast(({ step }) => step !== 'compare_at')
      if (price.outcome === 'priced') assert.deepEqual([last?.step, last?.amountMinor], ['rounding', price.priceMinor])
      else assert.equal(last?.step, 'held')
    }),

  'a jump is a change by more than the share, exactly': () =>
    fc.property(priceCases(), costs, costs, fc.nat({ max: 3_000_000 }), ({ policy }, before, after, jumpMillionths) => {
      const change = BigInt(after > before ? after - before : before - after)
      const rules = { ...policy.rules, jumpMillionths }
      assert.equal(
        isJump(before, after, rules),
        less({ n: BigInt(jumpMillionths), d: 1_000_000n }, { n: change, d: BigInt(before) }),
      )
      assert.equal(isJump(before, after, { ...rules, jumpMillionths: null }), false)
    }),

  'a ceiling is the unit price, converted and rounded down, less the whole margin': () =>
    fc.property(
      costs,
      fc.constantFrom('EUR', 'USD', 'JPY', 'KWD'),
      fc.nat({ max: 9_999 }),
      (unitPriceMinor, from, margin) => {
        const to = from === 'JPY' ? 'KWD' : 'JPY'
        const text = `0.${String(margin + 1).padStart(4, '0')}`
        const minMarginPercent = `${margin / 100 < 100 ? Math.floor(margin / 100) : 99}`
        const ceiling = ceilingMinor({
          costMinor: 1,
          costCurrency: to,
          unitPriceMinor,
          unitCurrency: from,
          at: AT,
          ceilingPercent: '0',
          rates: [readRate({ from, to, rate: text })],
          minMarginPercent,
        })
        const paid = minorUnits(times(units(unitPriceMinor, from), fraction(text)), to, 'down')
        const kept = paid * BigInt(minMarginPercent)
        assert.equal(BigInt(ceiling), paid - (kept / 100n + (kept % 100n > 0n ? 1n : 0n)))
      },
    ),

  'a stock is never more than there is, than the cap, and never less than the threshold': () =>
    fc.property(stocks, stocks, policies, (localStock, providerStock, policy) => {
      const offer = { localStock, providerStock, available: true }
      const { stock, available } = publishedStock(offer, policy)
      assert.equal(available, stock !== 0)
      assert.deepEqual(publishedStock({ ...offer, available: false }, policy), { stock: 0, available: false })
      if (stock === null) return assert.deepEqual([localStock, providerStock, policy.cap], [null, null, null])
      if (localStock === null && providerStock === null) return assert.equal(stock, policy.cap)
      const counted =
        (policy.source === 'provider' ? 0 : (localStock ?? 0)) + (policy.source === 'local' ? 0 : (providerStock ?? 0))
      const left = counted - policy.buffer
      const shown = left <= 0 || left < policy.zeroUnder ? 0 : Math.min(left, policy.cap ?? left)
      return assert.equal(stock, shown)
    }),
} satisfies Properties

const stocks = fc.option(fc.nat({ max: 60 }), { nil: null })
const policies = fc
  .record({
    source: fc.constantFrom('both' as const, 'local' as const, 'provider' as const),
    buffer: fc.nat({ max: 20 }),
    zeroUnder: fc.nat({ max: 10 }),
    above: fc.option(fc.nat({ max: 50 }), { nil: null }),
  })
  .map(({ above, ...policy }) => ({ ...policy, cap: above === null ? null : Math.max(1, policy.zeroUnder) + above }))
