/**
 * Retail prices. A price is computed from a cost in these steps, each in whole minor units:
 *
 *   cost -> the store's currency -> the rule -> the floor -> rounding -> compare-at price
 *
 * One rule applies: that of the product, else that of its category, else the band of its cost, else the markup. The price
 * is never under the floor (cost plus margin, each rounded up), not even after rounding. For one product a higher cost never
 * gives a lower price.
 */
import { amountText, exact, raiseByPercent, roundPrice } from './money.ts'
import type { CostFault, OfferFact } from './offer.ts'
import {
  type Band,
  formatPercent,
  type Markup,
  type PricingRules,
  type PricingSettings,
  raise,
  raiseBy,
  readRules,
  WHOLE,
} from './pricing-rules.ts'
import { convert, type Rate, type RateSettings, rateAt, readRate } from './rates.ts'

export interface PricingPolicy {
  /** The currency that the store sells in. */
  currency: string
  rates: Rate[]
  rules: PricingRules
}

/** The fields of an offer that its price depends on; amounts in minor units of `currency`. */
export type PricedOffer = Pick<
  OfferFact,
  'sku' | 'category' | 'costMinor' | 'basePriceMinor' | 'currency' | 'costFault'
>

export type HeldReason = `cost_${CostFault}` | 'no_rate' | 'too_large'

export type Priced =
  | {
      outcome: 'priced'
      priceMinor: number
      /** A compare-at price above the price, or null. */
      compareAtMinor: number | null
      floorMinor: number
      currency: string
      steps: PriceStep[]
    }
  /** There is no price; `detail` is a sentence for people. */
  | { outcome: 'held'; reason: HeldReason; detail: string; steps: PriceStep[] }

/** One step on the way to a price, for people. */
export interface PriceStep {
  step: 'cost' | 'currency' | 'rule' | 'band' | 'floor' | 'rounding' | 'compare_at' | 'held'
  /** The price after the step, in minor units of `currency`; for `compare_at` the compare-at price. */
  amountMinor: number | null
  currency: string
  detail: string
}

/** The pricing policy of a store. @throws RangeError when a rule or a rate cannot be read: `readRules` names all faults */
export function pricingPolicy(
  { currency, pricing }: { currency: string; pricing: PricingSettings },
  rates: RateSettings[],
): PricingPolicy {
  const { rules, faults } = readRules(pricing, currency)
  const [fault] = faults
  if (fault) throw new RangeError(`pricing.${fault.field}: ${fault.message}`)
  return { currency, rates: rates.map(readRate), rules }
}

/**
 * The price of an offer without its steps; `explainPrice` adds them.
 *
 * @param at epoch milliseconds: the rates of this instant count
 */
export function priceOf(offer: PricedOffer, policy: PricingPolicy, at: number): Priced {
  const way = wayToPrice(offer, policy, at)
  if ('reason' in way) return { outcome: 'held', ...way, steps: [] }
  const { priceMinor, compareAtMinor, floorMinor } = way
  return { outcome: 'priced', priceMinor, compareAtMinor, floorMinor, currency: policy.currency, steps: [] }
}

/** Whether a price changes by a larger share than the rules allow without a person. */
export const isJump = (beforeMinor: number, afterMinor: number, { jumpMillionths }: PricingRules): boolean =>
  jumpMillionths !== null &&
  BigInt(Math.abs(afterMinor - beforeMinor)) * BigInt(WHOLE) > BigInt(beforeMinor) * BigInt(jumpMillionths)

type AppliedRule =
  | { source: 'product' | 'category' | 'markup'; markup: Markup }
  | ({ source: 'band' } & Band)
  | { source: 'fixed'; fixedMinor: number }

/** Returns every amount on the way from a cost to its price; or why there is no price. */
export function wayToPrice(
  offer: PricedOffer,
  policy: PricingPolicy,
  at: number,
): WayToPrice | { reason: HeldReason; detail: string } {
  const fault = costFaultOf(offer)
  if (fault) return { reason: `cost_${fault}`, detail: faultTexts[fault] }
  const rate = rateAt(policy.rates, offer.currency, policy.currency, at)
  if (!rate) return { reason: 'no_rate', detail: `no rate from ${offer.currency} to ${policy.currency} is in force` }
  try {
    return calculate(offer, policy, rate)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return { reason: 'too_large', detail: 'the amounts are too large to be exact: the cost cannot be right' }
  }
}

export type WayToPrice = ReturnType<typeof calculate>

/** Returns every amount between a cost and its price, in minor units of the store's currency. */
function calculate(offer: PricedOffer, { rules }: PricingPolicy, rate: Rate) {
  const costMinor = convert(offer.costMinor, rate, 'up')
  const rule = ruleFor(offer, costMinor, rules)
  /** The price by the rule alone. */
  const ruledMinor = rule.source === 'fixed' ? rule.fixedMinor : raise(costMinor, rule.markup)
  const { millionths, flatMinor } = rules.margin
  const floorMinor = Math.max(raiseBy(costMinor, millionths), exact(costMinor + flatMinor))
  /** The price before rounding: at least the floor, and at least the price of the highest cost of the lower bands. */
  const unroundedMinor = Math.max(ruledMinor, floorMinor, rule.source === 'band' ? rule.atLeastMinor : 0)
  // A fixed price is rounded only if the floor replaces it.
  const asWritten = rule.source === 'fixed' && ruledMinor >= floorMinor
  const priceMinor = asWritten ? ruledMinor : roundPrice(unroundedMinor, floorMinor, rules.rounding)
  /** The candidate for the compare-at price; null when it is not known or not wanted. */
  const comparedMinor = compared(offer, priceMinor, rate, rules)
  const compareAtMinor = comparedMinor !== null && comparedMinor > priceMinor ? comparedMinor : null
  return { rate, costMinor, rule, ruledMinor, floorMinor, unroundedMinor, priceMinor, comparedMinor, compareAtMinor }
}

function ruleFor(offer: PricedOffer, costMinor: number, rules: PricingRules): AppliedRule {
  const product = rules.products.get(offer.sku)
  if (product) {
    return 'fixedMinor' in product ? { source: 'fixed', ...product } : { source: 'product', markup: product }
  }
  const category = offer.category === null ? undefined : rules.categories.get(offer.category)
  if (category) return { source: 'category', markup: category }
  const band = rules.bands.find(({ upToMinor }) => upToMinor === null || costMinor <= upToMinor)
  return band ? { source: 'band', ...band } : { source: 'markup', markup: rules.markup }
}

/** A compare-at price is never overstated: a base price in another currency is rounded down. */
function compared(offer: PricedOffer, priceMinor: number, rate: Rate, rules: PricingRules): number | null {
  if (rules.compareAt === null) return null
  if (rules.compareAt === 'base_price') {
    return offer.basePriceMinor === null ? null : convert(offer.basePriceMinor, rate, 'down')
  }
  return roundPrice(raiseBy(priceMinor, rules.compareAt.millionths), priceMinor, rules.rounding)
}

function costFaultOf({ costFault, costMinor }: PricedOffer): CostFault | null {
  if (costFault !== null || costMinor > 0) return costFault
  return costMinor === 0 ? 'zero' : 'negative'
}

const faultTexts: Record<CostFault, string> = {
  missing: 'the supplier states no cost',
  zero: 'the supplier states a cost of zero',
  negative: 'the supplier states a cost below zero',
  currency: 'the supplier states the cost in another currency than it sells in',
}

export interface CeilingPolicy {
  costMinor: number
  costCurrency: string
  /** The customer's price of one unit, in minor units of `unitCurrency`; null when the store did not state it. */
  unitPriceMinor: number | null
  unitCurrency: string | null
  rates: Rate[]
  /** When the order came, epoch milliseconds: the rates of this instant count. */
  at: number
  minMarginPercent: string
  ceilingPercent: string
}

/**
 * The most that one unit may cost, in minor units of the supplier's currency.
 *
 * It is the unit price of the order line, in the supplier's currency, less the minimum margin. Without a unit price, it is
 * the cost at intake plus a percentage.
 *
 * @returns `no_rate` when no rate converts the unit price to the supplier's currency
 * @returns `too_large` when the amounts are too large to be exact
 */
export function ceilingMinor(policy: CeilingPolicy): number | 'no_rate' | 'too_large' {
  const { costMinor, costCurrency, unitPriceMinor, unitCurrency, minMarginPercent } = policy
  try {
    if (unitPriceMinor === null || unitCurrency === null) return raiseByPercent(costMinor, policy.ceilingPercent)
    const rate = rateAt(policy.rates, unitCurrency, costCurrency, policy.at)
    if (!rate) return 'no_rate'
    const paidMinor = convert(unitPriceMinor, rate, 'down')
    // The margin is rounded up: it is never less than stated.
    return paidMinor - (raiseByPercent(paidMinor, minMarginPercent) - paidMinor)
  } catch (error) {
    if (error instanceof RangeError) return 'too_large'
    throw error
  }
}

type CompareAt = NonNullable<PricingRules['compareAt']>

/** The price of an offer with every step, in words for people. */
export function explainPrice(offer: PricedOffer, policy: PricingPolicy, at: number): Priced {
  const way = wayToPrice(offer, policy, at)
  const { currency } = policy
  const cost: PriceStep = {
    step: 'cost',
    amountMinor: offer.costMinor,
    currency: offer.currency,
    detail: 'what the supplier charges for one unit',
  }
  if ('reason' in way) {
    const step: PriceStep = { step: 'held', amountMinor: null, currency, detail: way.detail }
    return { outcome: 'held', ...way, steps: way.reason.startsWith('cost_') ? [step] : [cost, step] }
  }
  const { priceMinor, compareAtMinor, floorMinor } = way
  const steps = [cost, ...stepsOf(offer, way, policy)]
  return { outcome: 'priced', priceMinor, compareAtMinor, floorMinor, currency, steps }
}

function stepsOf(offer: PricedOffer, way: WayToPrice, { currency, rules }: PricingPolicy): PriceStep[] {
  const step = (name: PriceStep['step'], amountMinor: number | null, detail: string): PriceStep => ({
    step: name,
    amountMinor,
    currency,
    detail,
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

/** The rule that decides a price, in words for people. */
export function ruleText(offer: PricedOffer, { rule }: Pick<WayToPrice, 'rule'>, currency: string): string {
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

const partsOf = ({ millionths, flatMinor }: Markup, currency: string): string[] => [
  ...(millionths > 0 ? [`${formatPercent(millionths)} %`] : []),
  ...(flatMinor > 0 ? [amountText(flatMinor, currency)] : []),
]

function markupText(markup: Markup, currency: string): string {
  const parts = partsOf(markup, currency)
  return parts.length === 0 ? 'the cost, nothing added' : `the cost plus ${parts.join(' plus ')}`
}

function floorText(beforeMinor: number, floorMinor: number, policy: Pick<PricingPolicy, 'currency' | 'rules'>): string {
  const { currency, rules } = policy
  const parts = partsOf(rules.margin, currency)
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
