/**
 * What happened in each hour, and what a day, a week or a month of hours shows. Times are counted in buckets, each 2^(1/4) as long as the
 * one before, so that a few dozen numbers hold every time from 100 ms to a month with an error of under a tenth.
 */

const HOUR = 3_600_000

/** What is counted. The part of `spend` is a currency, that of `keysWithin` the bucket of a time; the others have none. */
export const activityNames = ['orders', 'deliveries', 'refused', 'keys', 'spend', 'keysWithin'] as const
export type ActivityName = (typeof activityNames)[number]

/** Counts what happens now. @param count may be below zero: an amount that was corrected */
export type CountActivity = (name: ActivityName, count?: number, part?: string) => void

export interface ActivityCount {
  /** The beginning of an hour, or of several. */
  at: number
  name: ActivityName
  part: string
  count: number
}

/** Counts are kept for two months and a day or two: a month, and the month before it. */
export const ACTIVITY_KEPT_MS = 62 * 24 * HOUR

export const hourOf = (now: number): number => now - (now % HOUR)

const SHORTEST_MS = 100
const STEPS = 4

/** The bucket of a time: 0 for all up to 100 ms. */
export const bucketOf = (ms: number): number => Math.max(0, Math.ceil(STEPS * Math.log2(Math.max(ms, 1) / SHORTEST_MS)))

/** The longest time of a bucket, in whole milliseconds. */
export const bucketMs = (bucket: number): number => Math.round(SHORTEST_MS * 2 ** (bucket / STEPS))

/**
 * The time within which this share of all was done, rounded up to its bucket.
 *
 * @returns null where there was none
 */
export function quantileMs(buckets: ReadonlyMap<number, number>, share: number): number | null {
  const sorted = [...buckets].filter(([, count]) => count > 0).sort(([a], [b]) => a - b)
  let left = Math.ceil(sorted.reduce((sum, [, count]) => sum + count, 0) * share)
  for (const [bucket, count] of sorted) {
    left -= count
    if (left <= 0) return bucketMs(bucket)
  }
  return null
}

/** Periods, each with the length of one step of its plots and how many there are. The last step is the one under way. */
export const activityPeriods = {
  day: { stepMs: HOUR, steps: 24 },
  week: { stepMs: 6 * HOUR, steps: 28 },
  month: { stepMs: 24 * HOUR, steps: 30 },
} as const
export type ActivityPeriod = keyof typeof activityPeriods

/** When a period begins, and the one before it, which is as long. */
export function periodOf(period: ActivityPeriod, now: number) {
  const { stepMs, steps } = activityPeriods[period]
  const fromAt = now - (now % stepMs) - (steps - 1) * stepMs
  return { fromAt, beforeAt: fromAt - steps * stepMs, stepMs, steps }
}

/** One step of a period, or a whole one. */
export interface Activity {
  at: number
  orders: number
  deliveries: number
  refused: number
  keys: number
  /** Minor units of the currency that was asked for. */
  spendMinor: number
  /** From a store order to its keys: half of the hand-overs, and 95 % of them; null where there was none. */
  p50Ms: number | null
  p95Ms: number | null
}

/** The counts of one step as what they show. */
export function activityAt(at: number, counts: readonly ActivityCount[], currency: string): Activity {
  const sum = (name: ActivityName, part = ''): number =>
    counts.reduce((all, one) => (one.name === name && one.part === part ? all + one.count : all), 0)
  const buckets = new Map<number, number>()
  for (const { name, part, count } of counts) {
    if (name === 'keysWithin') buckets.set(Number(part), (buckets.get(Number(part)) ?? 0) + count)
  }
  return {
    at,
    orders: sum('orders'),
    deliveries: sum('deliveries'),
    refused: sum('refused'),
    keys: sum('keys'),
    spendMinor: sum('spend', currency),
    p50Ms: quantileMs(buckets, 0.5),
    p95Ms: quantileMs(buckets, 0.95),
  }
}

/** The steps of a period, its whole, and the same of the period before it. */
export function activityOf(period: ActivityPeriod, now: number, counts: readonly ActivityCount[], currency: string) {
  const { fromAt, beforeAt, stepMs, steps } = periodOf(period, now)
  const byStep = Map.groupBy(counts, ({ at }) => at - (at % stepMs))
  const stepsFrom = (start: number) =>
    Array.from({ length: steps }, (_, index) => {
      const at = start + index * stepMs
      return activityAt(at, byStep.get(at) ?? [], currency)
    })
  const within = (start: number) => counts.filter(({ at }) => at >= start && at < start + steps * stepMs)
  return {
    steps: stepsFrom(fromAt),
    total: activityAt(fromAt, within(fromAt), currency),
    stepsBefore: stepsFrom(beforeAt),
    totalBefore: activityAt(beforeAt, within(beforeAt), currency),
  }
}

/** How many days a balance lasts at the spend of the last days; null where nothing was spent. */
export const daysLeft = (balanceMinor: number, spentMinor: number, days: number): number | null =>
  spentMinor <= 0 || days <= 0 ? null : Math.max(0, balanceMinor) / (spentMinor / days)
