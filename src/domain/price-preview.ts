/** What other rules would do to the prices of a store, listing by listing. */
import type { ListingReason } from './labels.ts'
import type { PublishedOffer, StorePolicy } from './listing.ts'
import { scale } from './money.ts'
import { ruleText, type WayToPrice, wayToPrice } from './pricing.ts'
import { decideListing, type ListingFacts } from './publication.ts'

/** Where a rule stands on the ladder; the nearest to the product wins. */
export const rungs = ['product', 'category', 'band', 'store'] as const
export type Rung = (typeof rungs)[number]

/** Which changed prices are asked for. `floor`: the margin decides the new price, and not the rule. */
export const previewKinds = ['all', 'higher', 'lower', 'held', 'floor'] as const
export type PreviewKind = (typeof previewKinds)[number]

/** One listing under other rules. Amounts in minor units of `currency`. */
export interface PricePreview {
  /** Null where there is no price. */
  rung: Rung | null
  currency: string
  costMinor: number | null
  /** What the store has; where it has nothing yet, what the rules in force give. */
  nowMinor: number | null
  /** By the other rules; null: there is no price. */
  priceMinor: number | null
  compareAtMinor: number | null
  /** The share of the price that is above the cost, in thousandths, rounded down. */
  marginPermille: number | null
  /** The rule in words; or why there is no price. */
  rule: string
  /** Why the price would not be pushed; null: it would. */
  heldBy: ListingReason | null
  /** All that the listing is counted under; empty: it stays as it is. */
  kinds: PreviewKind[]
  /** Price and cost by the rules in force and by the other rules, for sums; null where there is no price. */
  sums: Record<'before' | 'after', { priceMinor: number; costMinor: number } | null>
}

/**
 * @param policies how the store sells now, and how it would sell
 * @param at epoch milliseconds: the rates of this instant count
 */
export function previewPrice(
  offer: PublishedOffer & { productId: string },
  facts: ListingFacts,
  policies: { before: StorePolicy; after: StorePolicy },
  at: number,
): PricePreview {
  const match = { outcome: 'matched', offer } as const
  const [before, after] = [policies.before, policies.after].map((policy) => ({
    way: wayToPrice(offer, policy.pricing, at),
    decision: decideListing(match, facts, policy, at),
  })) as [Side, Side]
  const { currency } = policies.after.pricing
  const [was, way] = [pricedWay(before), pricedWay(after)]
  const heldBy = after.decision.state === 'held' ? after.decision.reason : null
  const isChanged =
    was?.priceMinor !== way?.priceMinor ||
    was?.compareAtMinor !== way?.compareAtMinor ||
    before.decision.state !== after.decision.state
  const { known } = facts
  const nowMinor = known ? (known.currency === currency ? known.priceMinor : null) : (was?.priceMinor ?? null)
  const [from, to] = [nowMinor ?? 0, way?.priceMinor ?? nowMinor ?? 0]
  const kinds: [PreviewKind, boolean][] = [
    ['all', true],
    ['higher', to > from],
    ['lower', to < from],
    ['held', heldBy !== null],
    ['floor', way !== null && isFloored(way)],
  ]
  return {
    rung: way && rungOf(way),
    currency,
    costMinor: way?.costMinor ?? null,
    nowMinor,
    priceMinor: way?.priceMinor ?? null,
    compareAtMinor: way?.compareAtMinor ?? null,
    marginPermille: way && scale(way.priceMinor - way.costMinor, 1_000, way.priceMinor, 'down'),
    rule: 'reason' in after.way ? after.way.detail : ruleText(offer, after.way, currency),
    heldBy,
    kinds: isChanged ? kinds.flatMap(([kind, isOf]) => (isOf ? [kind] : [])) : [],
    sums: { before: was, after: way },
  }
}

interface Side {
  way: ReturnType<typeof wayToPrice>
  decision: ReturnType<typeof decideListing>
}

const pricedWay = ({ way }: Side): WayToPrice | null => ('reason' in way ? null : way)

const isFloored = ({ rule, ruledMinor, floorMinor }: WayToPrice): boolean =>
  Math.max(ruledMinor, rule.source === 'band' ? rule.atLeastMinor : 0) < floorMinor

const rungOf = ({ rule: { source } }: WayToPrice): Rung =>
  source === 'fixed' ? 'product' : source === 'markup' ? 'store' : source

/** What other rules would do to all listings that were looked at. */
export interface PreviewTotals {
  listings: number
  /** Listings without a price by the other rules. */
  unpriced: number
  changed: Record<PreviewKind, number>
  /** How many prices each rung decides. */
  rungs: Record<Rung, number>
  /** Of all prices and costs, in minor units. */
  sums: Record<'before' | 'after', { price: bigint; cost: bigint }>
}

export const noPreviews = (): PreviewTotals => ({
  listings: 0,
  unpriced: 0,
  changed: { all: 0, higher: 0, lower: 0, held: 0, floor: 0 },
  rungs: { product: 0, category: 0, band: 0, store: 0 },
  sums: { before: { price: 0n, cost: 0n }, after: { price: 0n, cost: 0n } },
})

/** Adds a listing to the totals. */
export function addPreview(totals: PreviewTotals, { kinds, rung, sums }: PricePreview): void {
  totals.listings += 1
  if (rung === null) totals.unpriced += 1
  else totals.rungs[rung] += 1
  for (const kind of kinds) totals.changed[kind] += 1
  for (const side of ['before', 'after'] as const) {
    const [sum, one] = [totals.sums[side], sums[side]]
    if (!one) continue
    sum.price += BigInt(one.priceMinor)
    sum.cost += BigInt(one.costMinor)
  }
}

/** The average margin in thousandths of the prices, rounded down; null where there is no price. */
export const averageMargin = ({ price, cost }: { price: bigint; cost: bigint }): number | null =>
  price === 0n ? null : Number(((price - cost) * 1_000n) / price)
