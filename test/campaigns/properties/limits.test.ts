import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Failure } from '../../../src/errors.ts'
import { createPacer, type RateHint, rateHint, retryAfterMs } from '../../../src/supplier/rate-limit.ts'
import { standard } from '../../support/dialect-pair.ts'

const SECOND = 1_000
const HOUR = 3_600_000
const instants = fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2100, 0) })
const clamped = (ms: number) => Math.min(Math.max(ms, SECOND), HOUR)

describe('Retry-After', () => {
  test('in seconds is those seconds, from 1 s to 1 h, however many zeros stand before them', () => {
    fc.assert(
      fc.property(fc.nat(999_999), fc.nat(6), instants, (seconds, width, now) => {
        expect(retryAfterMs(String(seconds).padStart(width, '0'), now)).toBe(clamped(seconds * SECOND))
      }),
      { numRuns: 300 },
    )
  })

  test('in seconds with a fraction is rounded up', () => {
    fc.assert(
      fc.property(fc.nat(999_998), fc.stringMatching(/^[0-9]{0,3}[1-9]$/), instants, (seconds, fraction, now) => {
        expect(retryAfterMs(`${seconds}.${fraction}`, now)).toBe(clamped((seconds + 1) * SECOND))
      }),
      { numRuns: 300 },
    )
  })

  test('as a date is the time until then, from 1 s to 1 h', () => {
    fc.assert(
      fc.property(instants, fc.integer({ min: -2 * HOUR, max: 2 * HOUR }), (now, ahead) => {
        const at = Math.trunc((now + ahead) / SECOND) * SECOND
        expect(retryAfterMs(new Date(at).toUTCString(), now)).toBe(clamped(at - now))
      }),
      { numRuns: 300 },
    )
  })

  test('in any other form says nothing', () => {
    const near = fc
      .tuple(fc.constantFrom('7', '3600', 'Fri, 02 Jan 2026 03:04:35 GMT'), fc.nat(30), fc.string({ maxLength: 3 }))
      .map(([text, at, put]) => text.slice(0, at) + put + text.slice(at))
    fc.assert(
      fc.property(fc.oneof(fc.string(), near, fc.stringMatching(/^\d{7,20}$/)), instants, (text, now) => {
        const isDate = new Date(text).toUTCString() === text
        fc.pre(!/^[0-9]{1,6}(\.[0-9]+)?$/.test(text) && !isDate)
        const ms = retryAfterMs(text, now)
        // A date with a wrong day of the week, or of a month that has fewer days, is a date to some clocks: clamped all
        // the same, so that it can do no more harm than a right one.
        if (ms !== undefined) expect(text).toMatch(/^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/)
        if (ms !== undefined) expect(ms).toBe(clamped(ms))
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('the rate-limit headers', () => {
  const units = fc.constantFrom('epoch_s' as const, 'epoch_ms' as const, 'left_s' as const)
  const headers = (limit: string | undefined, remaining: string, reset: string) => ({
    ...(limit === undefined ? {} : { [standard.headers.rateLimit]: limit }),
    [standard.headers.rateRemaining]: remaining,
    [standard.headers.rateReset]: reset,
  })

  test('are read whole when they make sense, in every unit', () => {
    const whole = fc.integer({ min: 1, max: 100_000 })
    fc.assert(
      fc.property(
        whole,
        fc.boolean(),
        fc.nat(),
        units,
        fc.integer({ min: 1, max: 3_600 }),
        (limit, isStated, n, unit, left) => {
          const now = Date.UTC(2026, 0)
          const remaining = n % (limit + 1)
          const resetAt = now + left * SECOND
          const reset = { epoch_s: resetAt / SECOND, epoch_ms: resetAt, left_s: left }[unit]
          const given = headers(isStated ? String(limit) : undefined, String(remaining), String(reset))
          expect(rateHint(given, { ...standard, rateResetUnit: unit }, now)).toEqual({
            limit: isStated ? limit : undefined,
            remaining,
            resetAt,
          })
        },
      ),
      { numRuns: 300 },
    )
  })

  test('say nothing when one of them is no whole number', () => {
    const now = Date.UTC(2026, 0)
    const junk = fc.oneof(fc.string(), fc.double().map(String), fc.integer({ max: -1 }).map(String))
    fc.assert(
      fc.property(junk, fc.boolean(), (text, inRemaining) => {
        fc.pre(!/^\d{1,13}$/.test(text))
        const reset = String(now / SECOND + 9)
        const given = inRemaining ? headers('60', text, reset) : headers('60', '3', text)
        expect(rateHint(given, standard, now)).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })

  test('say nothing of a window that is over or longer than an hour', () => {
    const now = Date.UTC(2026, 0)
    fc.assert(
      fc.property(units, fc.integer({ min: -7_200, max: 7_200 }), (unit, left) => {
        fc.pre(unit !== 'left_s' || left >= 0)
        const resetAt = now + left * SECOND
        const reset = { epoch_s: resetAt / SECOND, epoch_ms: resetAt, left_s: left }[unit]
        const hint = rateHint(headers('60', '3', String(reset)), { ...standard, rateResetUnit: unit }, now)
        expect(hint !== undefined).toBe(left > 0 && left <= 3_600)
      }),
      { numRuns: 300 },
    )
  })
})

/**
 * A supplier that counts requests in windows of a minute, and callers that ask the pacer first.
 *
 * @param batches how many reads are under way at once, and how long they take in milliseconds
 * @returns how many it refused
 */
async function use(limit: number, batches: { reads: number; ms: number }[]): Promise<number> {
  let time = Date.UTC(2026, 0)
  let windowAt = time
  let used = 0
  let refused = 0
  const sleep = async (ms: number) => {
    time += ms
  }
  const pacer = createPacer({ now: () => time, sleep, random: () => 0.5 })
  for (const { reads, ms } of [{ reads: 1, ms: 0 }, ...batches]) {
    const hints: RateHint[] = []
    for (let n = 0; n < reads; n += 1) {
      await pacer.turn()
      if (time >= windowAt + 60_000) {
        windowAt = time
        used = 0
      }
      used += 1
      if (used > limit) refused += 1
      hints.push({ limit, remaining: Math.max(0, limit - used), resetAt: windowAt + 60_000 })
    }
    // Answers come when all have left: a hint from before them is older than what is under way.
    time += ms
    for (const hint of hints) pacer.observe(hint)
  }
  return refused
}

describe('the pacer', () => {
  test('lets no read run into a refusal that the headers announced', async () => {
    const batch = fc.record({ reads: fc.integer({ min: 1, max: 4 }), ms: fc.integer({ min: 0, max: 400 }) })
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 10, max: 60 }),
        fc.array(batch, { minLength: 50, maxLength: 150 }),
        async (limit, batches) => {
          expect(await use(limit, batches)).toBe(0)
        },
      ),
      { numRuns: 50 },
    )
  })

  test('gives no turn while the API key is paused, not even one that was waiting when the pause came', async () => {
    const hint = fc.record({
      limit: fc.integer({ min: 1, max: 50 }),
      remaining: fc.nat(50),
      left: fc.integer({ min: 1, max: 50_000 }),
    })
    const pause = fc.record({ pause: fc.integer({ min: 1, max: 30_000 }) })
    const step = fc.oneof(hint, pause, fc.constant('turn' as const))
    const later = fc.array(fc.option(fc.integer({ min: 1, max: 5_000 })), { maxLength: 10 })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), later, async (steps, refusals) => {
        let time = Date.UTC(2026, 0)
        /** While one waits, another read is refused. */
        const sleep = async (ms: number) => {
          const refused = refusals.shift()
          time += ms / 2
          if (refused) pacer.pause(refused)
          time += ms / 2
        }
        const pacer = createPacer({ now: () => time, sleep, random: () => 0.5 })
        for (const one of steps) {
          if (one === 'turn') {
            const turned = await pacer.turn().then(
              () => true,
              (error: Failure) => error.reason !== 'rate_limited',
            )
            expect(turned && pacer.pausedUntil() !== undefined).toBe(false)
          } else if ('pause' in one) {
            const from = time
            pacer.pause(one.pause)
            expect((pacer.pausedUntil() ?? 0) - from).toBeGreaterThanOrEqual(one.pause)
          } else {
            const { limit, remaining, left } = one
            pacer.observe({ limit, remaining: Math.min(remaining, limit), resetAt: time + left })
          }
        }
      }),
      { numRuns: 300 },
    )
  })
})
