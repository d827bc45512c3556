/**
 * Earnings: what the orders of a time brought and cost.
 *
 * - An order belongs to the day on which Quayside took it, with all that becomes of it: keys that come later, a refund of next
 *   month. So the margin of a day says what its orders earned, and a late refund makes an earlier day truer.
 * - Revenue is what the store states as the price of the keys that it has. A key counts once the store has confirmed it, and no
 *   longer than its customer is entitled to it: units that the store takes back do not count, nor does a cancelled order.
 * - Cost is what the supplier charged, less what it refunded, less what is owed back for purchases that failed.
 * - Amounts of several currencies are never added up, and a margin needs one currency on both sides.
 *
 * Days begin at midnight UTC, weeks on Monday. Amounts are whole minor units, instants epoch milliseconds.
 */
import { hourOf } from './activity.ts'
import { counted, grouped, money } from './figures.ts'

const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS
/** The first of January 1970 was a Thursday. */
const FIRST_MONDAY = 4 * DAY_MS

export const earningSteps = ['day', 'week', 'month', 'whole'] as const
export type EarningStep = (typeof earningSteps)[number]

/** Half open: what is at `until` lies after it. */
export interface Span {
  at: number
  until: number
}

export const dayStart = (at: number): number => at - (at % DAY_MS)
export const monthStart = (at: number, plus = 0): number => {
  const date = new Date(at)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + plus)
}

/** Returns the day, week or month in which an instant lies. */
export function spanOf(step: 'day' | 'week' | 'month', instant: number): Span {
  if (step === 'month') return { at: monthStart(instant), until: monthStart(instant, 1) }
  const length = step === 'day' ? DAY_MS : 7 * DAY_MS
  const at = instant - ((instant - (step === 'day' ? 0 : FIRST_MONDAY)) % length)
  return { at, until: at + length }
}

/** Returns the days, weeks or months that lie at least in part in a span, cut to the span, oldest first; or the whole span. */
export function spansIn(step: EarningStep, { at, until }: Span): Span[] {
  if (step === 'whole') return [{ at, until }]
  const spans: Span[] = []
  for (let next = at; next < until; next = spanOf(step, next).until) {
    spans.push({ at: next, until: Math.min(until, spanOf(step, next).until) })
  }
  return spans
}

/**
 * Returns the parts in which a stale span is summed. Orders of today and yesterday change all the time: these days are summed by
 * the hour, so that a change costs little. An older day is summed as a whole, and so is one that was summed so before.
 *
 * @param isWhole whether the sums of the day were stored as one
 */
export function partsToSum({ at, until }: Span, isWhole: boolean, now: number): Span[] {
  const day = dayStart(at)
  if (isWhole || until <= dayStart(now) - DAY_MS) return [{ at: day, until: day + DAY_MS }]
  const last = Math.min(until, Math.max(at + HOUR_MS, hourOf(now) + HOUR_MS))
  return Array.from({ length: Math.ceil((last - at) / HOUR_MS) }, (_, hour) => ({
    at: at + hour * HOUR_MS,
    until: at + (hour + 1) * HOUR_MS,
  }))
}

/** When the hours of a day are joined: the day after the next day. */
export const wholeAt = (at: number): number => dayStart(at) + 2 * DAY_MS

/** Sums in one currency. */
export interface EarningSums {
  currency: string
  keys: number
  /** Keys whose price the store does not state: their revenue is missing. */
  unpriced: number
  revenueMinor: number
  chargedMinor: number
  refundedMinor: number
  owedBackMinor: number
}

const amounts = ['keys', 'unpriced', 'revenueMinor', 'chargedMinor', 'refundedMinor', 'owedBackMinor'] as const

/** Adds up sums by currency; sums of nothing are left out. @throws RangeError for an amount that is not exact any more */
export function addedUp(all: readonly EarningSums[]): EarningSums[] {
  const sums = new Map<string, EarningSums>()
  for (const one of all) {
    const sum = sums.get(one.currency)
    if (!sum) sums.set(one.currency, { ...one })
    else for (const name of amounts) sum[name] += one[name]
  }
  const found = [...sums.values()].filter((sum) => amounts.some((name) => sum[name] !== 0))
  for (const sum of found) {
    if (!amounts.every((name) => Number.isSafeInteger(sum[name])))
      throw new RangeError('a sum is too large to be exact')
  }
  return found.sort((a, b) => (a.currency < b.currency ? -1 : 1))
}

/** What the supplier keeps of its charges. */
export const costOf = ({ chargedMinor, refundedMinor, owedBackMinor }: EarningSums): number =>
  chargedMinor - refundedMinor - owedBackMinor

/**
 * Returns the margin, and its share of the revenue in tenths of a percent; null where several currencies leave none, and where the
 * store states no price of any key.
 */
export function marginOf(all: readonly EarningSums[]): { minor: number; permille: number | null } | null {
  const [one, ...others] = all
  if (!one || others.length > 0 || (one.keys > 0 && one.unpriced === one.keys)) return null
  const minor = one.revenueMinor - costOf(one)
  const permille =
    one.revenueMinor <= 0
      ? null
      : Number((BigInt(minor) * 2_000n + BigInt(Math.sign(minor) * one.revenueMinor)) / BigInt(2 * one.revenueMinor))
  return { minor, permille }
}

/** Writes 215 as `21.5`. */
export const percentText = (permille: number): string =>
  `${permille < 0 ? '-' : ''}${Math.floor(Math.abs(permille) / 10)}.${Math.abs(permille) % 10}`

/** What was earned, with amounts as decimal text, as the API shows it. */
interface Earned {
  margin: { amount: string; currency: string; percent: string | null } | null
  sums: {
    currency: string
    keys: number
    unpriced: number
    revenue: string
    cost: string
    refunded: string
    owedBack: string
  }[]
}

const unpricedText = (keys: number): string => `the price of ${counted(keys, 'key')} is not stated`

/** Says why there is no margin, or what share of the revenue it is. */
function shareText({ margin, sums }: Earned): string {
  const unpriced = sums[0]?.unpriced ?? 0
  if (margin && unpriced > 0) return `at least: ${unpricedText(unpriced)}`
  if (margin) return margin.percent === null ? 'without revenue' : `${margin.percent} % of the revenue`
  return sums.length === 0 ? 'nothing was sold' : sums.length > 1 ? 'several currencies' : 'no price is stated'
}

/** Returns a number for people: what it is, its value, its unit, and what to compare it with. */
const marginFigure = (name: string, earned: Earned) => ({
  name,
  value: grouped(earned.margin?.amount ?? '–'),
  unit: earned.margin?.currency ?? '',
  beside: shareText(earned),
})

/** The margins of the newest two weeks or months. @param step `week` or `month` */
export const marginFigures = (step: string, [newest, before]: readonly Earned[]) => [
  marginFigure(`This ${step}’s margin`, newest ?? { margin: null, sums: [] }),
  marginFigure(`Last ${step}’s margin`, before ?? { margin: null, sums: [] }),
]

/** What came back, and what is owed back: `25.49`, `25.49 + 7.90`. */
export const backText = ({ refunded, owedBack }: { refunded: string; owedBack: string }): string =>
  [refunded, owedBack]
    .filter((amount) => Number(amount) !== 0)
    .map(grouped)
    .join(' + ') || grouped(refunded)

/** The cells of a period in a table: its name, revenue, cost, what came back, the margin and its share. */
export function earnedCells({
  label,
  isOver,
  margin,
  sums: [sum],
}: Earned & { label: string; isOver: boolean }): string[] {
  const cells = [sum?.revenue, sum?.cost, sum && backText(sum), margin?.amount, margin?.percent]
  return [`${label}${isOver ? '' : ', not over'}`, ...cells.map((cell) => cell ?? '–')]
}

/** The figures of a time, for each of its currencies. */
export const earnedFigures = (earned: Earned) =>
  earned.sums.map((sum) => {
    const { currency: unit, keys, unpriced } = sum
    const stated = unpriced > 0 ? unpricedText(unpriced) : 'as the stores state it'
    return [
      { name: 'Revenue', value: grouped(sum.revenue), unit, beside: stated },
      { name: 'Cost, net', value: grouped(sum.cost), unit, beside: `${backText(sum)} came back or is owed back` },
      marginFigure('Margin', earned),
      { name: 'Keys', value: grouped(keys), unit: '', beside: 'that the stores have' },
    ]
  })

/** `You earned 8,522.00 EUR in 30 days, 21.5 % of the revenue.` @param from the first day, `to` the last one */
export function earnedText(earned: Earned & { from: string; to: string; incompleteFrom: string | null }): string {
  const { from, to, incompleteFrom, margin, sums } = earned
  const days = counted((Date.parse(to) - Date.parse(from)) / DAY_MS + 1, 'day')
  if (!margin && sums[0] && sums.length === 1) {
    return `${money(sums[0].cost, sums[0].currency)} was spent in ${days}. The stores state no price.`
  }
  if (sums.length === 0)
    return incompleteFrom === null ? `Nothing was sold in ${days}.` : `Money of ${days}, being summed`
  if (!margin) return `Money of ${days}, in several currencies`
  const isLoss = margin.amount.startsWith('-')
  const amount = money(margin.amount.replace('-', ''), margin.currency)
  const unpriced = sums[0]?.unpriced ?? 0
  // The revenue of the other keys is not known and not below zero, so the margin is the least that it can be.
  if (unpriced > 0)
    return `You ${isLoss ? 'lost at most' : 'earned at least'} ${amount} in ${days}: ${unpricedText(unpriced)}.`
  return isLoss ? `You lost ${amount} in ${days}.` : `You earned ${amount} in ${days}, ${shareText(earned)}.`
}
