import { formatDecimal } from './money.ts'
import {
  type Priced,
  type PricedOffer,
  type PriceStep,
  type PricingTerms,
  type WayToPrice,
  wayToPrice,
} from './pricing.ts'
import { formatPercent, type Markup, type PricingRules } from './pricing-rules.ts'
import { roundPrice } from './rounding.ts'

type CompareAt = NonNullable<PricingRules['compareAt']>

/** The price of an offer with every step on the way to it, in words for people. */
export function explainPrice(offer: PricedOffer, terms: PricingTerms, at: number): Priced {
  const way = wayToPrice(offer, terms, at)
  const { currency } = terms
  const cost: PriceStep = {
    ...{ step: 'cost', amountMinor: offer.costMinor, currency: offer.currency },
    detail: 'what the supplier charges for one unit',
  }
  if ('reason' in way) {
    const step: PriceStep = { step: 'held', amountMinor: null, currency, detail: way.detail }
    return { outcome: 'held', ...way, steps: way.reason.startsWith('cost_') ? [step] : [cost, step] }
  }
  const { priceMinor, compareAtMinor, floorMinor } = way
  const steps = [cost, ...stepsOf(offer, way, terms)]
  return { outcome: 'priced', priceMinor, compareAtMinor, floorMinor, currency, steps }
}

function stepsOf(offer: PricedOffer, way: WayToPrice, { currency, rules }: PricingTerms): PriceStep[] {
  const step = (name: PriceStep['step'], amountMinor: number | null, detail: string): PriceStep => ({
    ...{ step: name, amountMinor, currency, detail },
  })
  const { rate, rule, ruledMinor, floorMinor } = way
  const banded = rule.source === 'band' && rule.atLeastMinor > ruledMinor ? rule.atLeastMinor : undefined
  const flooredMinor = Math.max(floorMinor, banded ?? ruledMinor)
  const dearer = 'dearer is never cheaper: the end of the bands before'
  return [
    ...(offer.currency === currency
      ? []
      : [step('currency', way.costMinor, `1 ${rate.from} is ${rate.text} ${rate.to}, rounded up`)]),
    step('rule', ruledMinor, ruleText(offer, way, currency)),
    ...(banded === undefined ? [] : [step('band', banded, dearer)]),
    step('floor', flooredMinor, floorText(banded ?? ruledMinor, floorMinor, { currency, rules })),
    step('rounding', way.priceMinor, roundingText(way, rules)),
    ...(rules.compareAt === null
      ? []
      : [step('compare_at', way.compareAtMinor, compareAtText(way, rules.compareAt, currency))]),
  ]
}

function ruleText(offer: PricedOffer, { rule }: WayToPrice, currency: string): string {
  if (rule.source === 'fixed') return `product ${offer.sku}: a fixed price`
  const added = markupText(rule.markup, currency)
  if (rule.source !== 'band') {
    const names = { product: `product ${offer.sku}`, category: `category ${offer.category}`, markup: 'markup' }
    return `${names[rule.source]}: ${added}`
  }
  return rule.upToMinor === null
    ? `the last band: ${added}`
    : `band of costs up to ${amountText(rule.upToMinor, currency)}: ${added}`
}

function markupText({ millionths, flatMinor }: Markup, currency: string): string {
  const parts = [
    ...(millionths > 0 ? [`${formatPercent(millionths)} %`] : []),
    ...(flatMinor > 0 ? [amountText(flatMinor, currency)] : []),
  ]
  return parts.length === 0 ? 'the cost, nothing added' : `the cost plus ${parts.join(' plus ')}`
}

function floorText(beforeMinor: number, floorMinor: number, terms: Pick<PricingTerms, 'currency' | 'rules'>): string {
  const { currency, rules } = terms
  const { millionths, flatMinor } = rules.margin
  const parts = [
    ...(millionths > 0 ? [`${formatPercent(millionths)} %`] : []),
    ...(flatMinor > 0 ? [amountText(flatMinor, currency)] : []),
  ]
  const margin = parts.length === 2 ? `the larger of ${parts.join(' and ')}` : parts[0]
  const floor = `the floor is ${amountText(floorMinor, currency)}: ${margin ? `the cost plus ${margin}` : 'the cost'}`
  return beforeMinor < floorMinor ? `${floor}; it wins over ${amountText(beforeMinor, currency)}` : floor
}

function roundingText({ rule, ruledMinor, floorMinor, unroundedMinor, priceMinor }: WayToPrice, rules: PricingRules) {
  const { patterns, direction, look } = rules.rounding
  if (patterns.length === 0) return 'none is configured'
  if (rule.source === 'fixed' && ruledMinor >= floorMinor) return 'none: a fixed price stays as it is written'
  if (priceMinor === unroundedMinor) return `${look} already`
  const taken = priceMinor > unroundedMinor ? `up to ${look}` : `down to ${look}`
  if (roundPrice(unroundedMinor, 0, rules.rounding) < floorMinor) return `${taken}: ${direction} is under the floor`
  return direction === 'nearest' ? `${taken}, the nearest` : taken
}

function compareAtText({ comparedMinor, compareAtMinor }: WayToPrice, rule: CompareAt, currency: string): string {
  const from =
    rule === 'base_price'
      ? "the supplier's base price"
      : `the price plus ${formatPercent(rule.millionths)} %, rounded like the price`
  if (comparedMinor === null) return `none: ${from} is not known`
  return compareAtMinor === null
    ? `none: ${from}, ${amountText(comparedMinor, currency)}, is not above the price`
    : from
}

const amountText = (minor: number, currency: string): string => `${formatDecimal({ minor, currency })} ${currency}`
