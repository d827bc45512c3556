import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  afterAnswer,
  afterDoubts,
  afterLookUp,
  type Breaker,
  callbackDelayMs,
  closedBreaker,
  creationDelayMs,
  deliveryDelayMs,
  firstSendsMax,
  fullJitter,
  nextReadAt,
  notExecutedDelayMs,
  publicationDelayMs,
  refreshDelayMs,
  rejectedDelayMs,
} from '../../src/domain/pace.ts'
import { finalStates, purchaseStates } from '../../src/domain/purchase.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** The largest number that Math.random can give. */
const ALMOST_ONE = 1 - 2 ** -53
const random = fc.oneof(fc.constantFrom(0, 0.5, ALMOST_ONE), fc.double({ min: 0, max: ALMOST_ONE, noNaN: true }))
const attempt = fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 1_000_000 }))

describe('full jitter', () => {
  test('doubles its longest wait with each attempt, up to the cap', () => {
    const longest = [0, 1, 2, 3, 4, 60, 5_000].map((n) => fullJitter(SECOND, n, 10 * SECOND, ALMOST_ONE))
    expect(longest).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000])
  })

  test('may wait not at all, and never longer than the cap', () => {
    expect(fullJitter(SECOND, 9, HOUR, 0)).toBe(0)
    fc.assert(
      fc.property(attempt, random, fc.integer({ min: 1, max: HOUR }), (n, chance, capMs) => {
        const wait = fullJitter(SECOND, n, capMs, chance)
        expect(Number.isSafeInteger(wait)).toBe(true)
        expect(wait).toBeGreaterThanOrEqual(0)
        expect(wait).toBeLessThanOrEqual(capMs)
      }),
    )
  })
})

describe('a wait', () => {
  test('before a read is 2 s, 5 s, 15 s, 1 min, 5 min, then always 15 min', () => {
    const waits = [0, 1, 2, 3, 4, 5, 6, 7, 1_000_000].map((refreshes) => refreshDelayMs(refreshes))
    expect(waits).toEqual([
      ...[2, 5, 15, 60, 300].map((seconds) => seconds * SECOND),
      ...[15, 15, 15, 15].map((minutes) => minutes * MINUTE),
    ])
  })

  test('before a read begins at 15 s while deliveries say when an order is over', () => {
    expect([0, 1, 2, 3, 9].map((refreshes) => refreshDelayMs(refreshes, true) / SECOND)).toEqual([
      15, 60, 300, 900, 900,
    ])
    expect(nextReadAt('unknown', 0, 0, true), 'a lost answer waits for no delivery').toBe(2 * SECOND)
  })

  test('before a read of an accepted order ends at a full second, so that several are read together', () => {
    expect([nextReadAt('accepted', 0, 1_001, false), nextReadAt('accepted', 0, 2_000, false)]).toEqual([4_000, 4_000])
  })

  test('before a read follows from the state: quick while the outcome is open, none where there is nothing to read', () => {
    const waits = purchaseStates.map((state) => [
      state,
      [0, 9].map((refreshes) => nextReadAt(state, refreshes, 0, false)),
    ])
    expect(Object.fromEntries(waits)).toEqual({
      unknown: [2 * SECOND, 15 * MINUTE],
      accepted: [2 * SECOND, 15 * MINUTE],
      completed: [15 * MINUTE, 15 * MINUTE],
      review: [15 * MINUTE, 15 * MINUTE],
      ...Object.fromEntries(['planned', 'waiting', 'sending', ...finalStates].map((state) => [state, [null, null]])),
    })
  })

  test('after a request that never left is a second to five minutes', () => {
    expect([0, 1, 2, 20].map((n) => notExecutedDelayMs(n, 0))).toEqual([1_000, 1_000, 1_000, 1_000])
    expect([0, 1, 2, 20].map((n) => notExecutedDelayMs(n, ALMOST_ONE))).toEqual([2_000, 3_000, 5_000, 300_000])
    fc.assert(
      fc.property(attempt, random, (n, chance) => {
        const wait = notExecutedDelayMs(n, chance)
        expect(wait).toBeGreaterThanOrEqual(SECOND)
        expect(wait).toBeLessThanOrEqual(5 * MINUTE)
      }),
    )
  })

  test('after a rejection for now is ten seconds to an hour', () => {
    expect([1, 2, 3, 9].map((generation) => rejectedDelayMs(generation, ALMOST_ONE))).toEqual(
      [70, 130, 250, 3_600].map((seconds) => seconds * SECOND),
    )
    fc.assert(
      fc.property(attempt, random, (n, chance) => {
        const wait = rejectedDelayMs(n + 1, chance)
        expect(wait).toBeGreaterThanOrEqual(10 * SECOND)
        expect(wait).toBeLessThanOrEqual(HOUR)
      }),
    )
  })

  test('between callbacks grows from 5 s to 24 h, 75 h in all, and ends after ten attempts', () => {
    const waits = Array.from({ length: 12 }, (_, place) => callbackDelayMs(place + 1, 0))
    expect(waits.slice(0, 9)).toEqual([
      5_000,
      300_000,
      1_800_000,
      ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR),
    ])
    expect(waits.slice(9)).toEqual([undefined, undefined, undefined])
    const sum = waits.reduce<number>((total, wait) => total + (wait ?? 0), 0)
    expect(Math.floor(sum / HOUR)).toBe(75)
  })

  test('between callbacks and deliveries is stretched by at most a fifth', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), random, (n, chance) => {
        for (const delay of [callbackDelayMs, deliveryDelayMs]) {
          const shortest = delay(n, 0) ?? 0
          expect(shortest).toBeGreaterThan(0)
          expect(delay(n, chance)).toBeGreaterThanOrEqual(shortest)
          expect(delay(n, chance)).toBeLessThanOrEqual(Math.round(shortest * 1.2))
        }
      }),
    )
  })

  test('between the attempts of a delivery triples, and ends after ten attempts', () => {
    const waits = Array.from({ length: 11 }, (_, place) => deliveryDelayMs(place + 1, 0))
    expect(waits.slice(0, 9)).toEqual([3, 9, 27, 81, 243, 729, 2_187, 6_561, 19_683].map((seconds) => seconds * SECOND))
    expect(waits.slice(9)).toEqual([undefined, undefined])
  })
})

describe('listings', () => {
  test('are pushed again after 5 s, 5 min, 30 min, then always 2 h, each stretched by up to a fifth', () => {
    const waits = (random: number) =>
      [1, 2, 3, 4, 5, 99].map((attempts) => publicationDelayMs(attempts, random) / SECOND)
    expect(waits(0)).toEqual([5, 300, 1_800, 7_200, 7_200, 7_200])
    expect(waits(0.5)).toEqual([5.5, 330, 1_980, 7_920, 7_920, 7_920])
    expect([callbackDelayMs(1, 0.5), deliveryDelayMs(1, 0.5)]).toEqual([5_500, 3_300])
  })

  test('that a store does not create are tried again after a minute for each failure', () => {
    expect([0, 1, 2, 10].map(creationDelayMs)).toEqual([MINUTE, MINUTE, 2 * MINUTE, 10 * MINUTE])
  })
})

describe('the breaker', () => {
  const walked = (breaker: Breaker, ...answers: ('clear' | 'ambiguous' | 'look-up')[]): Breaker =>
    answers.reduce<Breaker>(
      (now, answer) => (answer === 'look-up' ? afterLookUp(now, 0) : afterAnswer(now, answer)),
      breaker,
    )
  const closed = closedBreaker
  const opened = walked(closed, 'ambiguous', 'ambiguous', 'ambiguous')

  test('stays closed after two ambiguous answers and opens at the third', () => {
    expect(walked(closed, 'ambiguous', 'ambiguous').phase).toBe('closed')
    expect(opened.phase).toBe('open')
  })

  test('counts ambiguous answers in a row only', () => {
    const answers = ['ambiguous', 'ambiguous', 'clear', 'ambiguous', 'ambiguous'] as const
    expect(walked(closed, ...answers).phase).toBe('closed')
    expect(walked(closed, ...answers, 'ambiguous').phase).toBe('open')
  })

  test('opens at the first answer that cannot be read, until a look-up has read an order', () => {
    const unread = afterAnswer(closed, 'unreadable')
    expect(unread.phase).toBe('open')
    expect(afterLookUp(unread, 0)).toBe(unread)
    expect(afterLookUp(unread, 1).phase).toBe('probing')
    expect(afterDoubts(unread).phase).toBe('probing')
    expect(afterAnswer(afterLookUp(unread, 1), 'unreadable').phase).toBe('open')
    expect(afterAnswer(unread, 'clear')).toEqual(closed)
  })

  test('is not moved by a look-up while it is closed', () => {
    expect(walked(closed, 'ambiguous', 'look-up', 'ambiguous', 'look-up', 'ambiguous').phase).toBe('open')
    expect(walked(closed, 'look-up')).toEqual(closed)
  })

  test('probes once a look-up succeeded', () => {
    expect(walked(opened, 'look-up').phase).toBe('probing')
    expect(walked(opened, 'look-up', 'look-up').phase).toBe('probing')
  })

  test('opens again when the probe is ambiguous, and closes when it is clear', () => {
    expect(walked(opened, 'look-up', 'ambiguous').phase).toBe('open')
    expect(walked(opened, 'look-up', 'ambiguous', 'look-up').phase).toBe('probing')
    expect(walked(opened, 'look-up', 'clear')).toEqual(closed)
  })

  test('stays open for ambiguous answers, and closes for a clear one that was still under way', () => {
    expect(walked(opened, 'ambiguous').phase).toBe('open')
    expect(walked(opened, 'clear')).toEqual(closed)
  })

  test('lets all first sends out while closed, one while probing, none while open', () => {
    expect(firstSendsMax(closed, 3)).toBe(3)
    expect(firstSendsMax(opened, 3)).toBe(0)
    expect(firstSendsMax(walked(opened, 'look-up'), 3)).toBe(1)
  })

  test('changes no breaker that it was given', () => {
    const given = Object.freeze({ ...opened })
    walked(given, 'look-up', 'ambiguous', 'clear')
    expect(given).toEqual(opened)
    expect(closedBreaker).toEqual({ phase: 'closed', ambiguousInRow: 0, unread: false })
  })
})
