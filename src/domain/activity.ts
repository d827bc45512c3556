/**
 * Counts of what happened in each hour, and their sums for a day, a week or a month. Durations are counted in buckets. The limit
 * of each bucket is 2^(1/4) times that of the bucket before: about a hundred buckets hold all durations from 100 ms to a month.
 */

const HOUR = 3_600_000

/** What is counted. `spend` has one count for each currency, and `keysWithin` has one for each bucket of durations. */
export const activityNames = ['orders', 'deliveries', 'refused', 'keys', 'spend', 'keysWithin'] as const
export type ActivityName = (typeof activityNames)[number]

/** Counts what happens now. @param count below zero corrects an earlier amount */
export type CountActivity = (name: ActivityName, count?: number, part?: string) => void

export interface ActivityCount {
  /** The beginning of an hour, or of several hours. */
  at: number
  name: ActivityName
  part: string
  count: number
}

/** Counts are kept for 62 days, long enough to compare a month with the month before. */
export const ACTIVITY_KEPT_MS = 62 * 24 * HOUR

export const hourOf = (now: number): number => now - (now % HOUR)

const SHORTEST_MS = 100
const STEPS = 4

/** The bucket of a duration; all durations up to 100 ms are in bucket 0. */
export const bucketOf = (ms: number): number => Math.max(0, Math.ceil(STEPS * Math.log2(Math.max(ms, 1) / SHORTEST_MS)))

/** The longest duration in a bucket, in whole milliseconds. */
export const bucketMs = (bucket: number): number => Math.round(SHORTEST_MS * 2 ** (bucket / STEPS))

/**
 * Returns the duration within which this share of all counted durations lies, rounded up to the longest of its bucket.
 *
 * @returns null where no duration was counted
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

/** The length and the number of the steps in which each period is plotted. The newest step is still under way. */
export const activityPeriods = {
  day: { stepMs: HOUR, steps: 24 },
  week: { stepMs: 6 * HOUR, steps: 28 },
  month: { stepMs: 24 * HOUR, steps: 30 },
} as const
export type ActivityPeriod = keyof typeof activityPeriods

/** Returns when a period begins, and when the equally long period before it begins. */
export function periodOf(period: ActivityPeriod, now: number) {
  const { stepMs, steps } = activityPeriods[period]
  const fromAt = now - (now % stepMs) - (steps - 1) * stepMs
  return { fromAt, beforeAt: fromAt - steps * stepMs, stepMs, steps }
}

export type Activity = ReturnType<typeof activityAt>

/** Sums the counts of one step, or of a whole period. */
export function activityAt(at: number, counts: readonly ActivityCount[], currency: string) {
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
    // Minor units of the currency that was asked for.
    spendMinor: sum('spend', currency),
    // The time from store order to hand-over: half of the hand-overs took at most `p50Ms`, and 95 % at most `p95Ms`.
    p50Ms: quantileMs(buckets, 0.5),
    p95Ms: quantileMs(buckets, 0.95),
  }
}

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

/** How many days a balance lasts if spending goes on as in the last `days` days; null where nothing was spent. */
export const daysLeft = (balanceMinor: number, spentMinor: number, days: number): number | null =>
  spentMinor <= 0 || days <= 0 ? null : Math.max(0, balanceMinor) / (spentMinor / days)
