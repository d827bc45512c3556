import { describe, expect, test } from 'vitest'
import {
  type ActivityCount,
  activityOf,
  activityPeriods,
  bucketMs,
  bucketOf,
  daysLeft,
  periodOf,
  quantileMs,
} from '../../src/domain/activity.ts'

const HOUR = 3_600_000
const NOW = Date.parse('2026-03-12T09:42:10Z')

describe('the buckets of a time', () => {
  test('hold it, and overstate it by less than a fifth', () => {
    for (const ms of [101, 180, 1_000, 1_800, 63_000, 48 * 60_000, 72 * HOUR, 30 * 24 * HOUR]) {
      const longest = bucketMs(bucketOf(ms))
      expect(longest, `${ms}`).toBeGreaterThanOrEqual(ms - 1)
      expect(longest / ms, `${ms}`).toBeLessThan(1.2)
    }
    expect([0, 1, 100].map(bucketOf)).toEqual([0, 0, 0])
  })

  test('give the time of a half and of 95 %, and none where nothing was counted', () => {
    const buckets = new Map([
      [bucketOf(1_000), 90],
      [bucketOf(7_000), 6],
      [bucketOf(60_000), 4],
    ])
    expect(quantileMs(buckets, 0.5)).toBe(bucketMs(bucketOf(1_000)))
    expect(quantileMs(buckets, 0.95)).toBe(bucketMs(bucketOf(7_000)))
    expect(quantileMs(buckets, 1)).toBe(bucketMs(bucketOf(60_000)))
    expect(quantileMs(new Map(), 0.5)).toBeNull()
    expect(quantileMs(new Map([[3, 0]]), 0.5)).toBeNull()
  })
})

describe('a period', () => {
  test.each(['day', 'week', 'month'] as const)('of a %s ends with the step under way', (period) => {
    const { fromAt, beforeAt, stepMs, steps } = periodOf(period, NOW)
    expect(fromAt % stepMs).toBe(0)
    expect(NOW - (fromAt + (steps - 1) * stepMs)).toBeLessThan(stepMs)
    expect(fromAt - beforeAt).toBe(steps * stepMs)
    expect(activityPeriods[period].steps).toBe(steps)
  })

  test('has each count in its step, and the whole of them beside the time before', () => {
    const hour = Date.parse('2026-03-12T09:00:00Z')
    const counts: ActivityCount[] = [
      { at: hour, name: 'orders', part: '', count: 2 },
      { at: hour - HOUR, name: 'orders', part: '', count: 3 },
      { at: hour - 24 * HOUR, name: 'orders', part: '', count: 7 },
      { at: hour, name: 'spend', part: 'EUR', count: 1_234 },
      { at: hour, name: 'spend', part: 'USD', count: 99 },
      { at: hour, name: 'keysWithin', part: String(bucketOf(1_800)), count: 2 },
    ]
    const { steps, total, totalBefore, stepsBefore } = activityOf('day', NOW, counts, 'EUR')
    expect(steps.slice(-2).map(({ orders }) => orders)).toEqual([3, 2])
    expect(steps.at(-1)).toMatchObject({ at: hour, spendMinor: 1_234, p50Ms: bucketMs(bucketOf(1_800)) })
    expect(steps.at(-2)).toMatchObject({ spendMinor: 0, p50Ms: null, p95Ms: null })
    expect(total).toMatchObject({ orders: 5, spendMinor: 1_234, keys: 0 })
    expect([totalBefore.orders, stepsBefore.at(-1)?.orders]).toEqual([7, 7])
  })
})

test('a balance lasts as long as the spend of the last days says, and without end where nothing was spent', () => {
  expect(daysLeft(1_000_00, 700_00, 7)).toBe(10)
  expect(daysLeft(-5, 700_00, 7)).toBe(0)
  expect(daysLeft(1_000_00, 0, 7)).toBeNull()
  expect(daysLeft(1_000_00, -3, 7)).toBeNull()
})
