import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPacer, rateHint, retryAfterMs } from '../../src/supplier/rate-limit.ts'
import { dialect, otherDialect } from '../support/supplier-server.ts'

const T = Date.parse('2026-01-02T03:04:05Z')
const MINUTE = 60_000
const HOUR = 60 * MINUTE

describe('Retry-After', () => {
  it.each<[string | undefined, number | undefined]>([
    ['7', 7_000],
    ['0', 1_000],
    ['000000', 1_000],
    ['3600', HOUR],
    ['999999', HOUR],
    ['1000000', undefined],
    ['99999999999999999999', undefined],
    ['-1', undefined],
    ['1.5', 2_000],
    ['6.000', 6_000],
    ['0.25', 1_000],
    ['59.0000001', HOUR / 60],
    ['1.', undefined],
    ['.5', undefined],
    ['1,5', undefined],
    ['1.5.5', undefined],
    ['1.5e3', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['', undefined],
    [' 7', undefined],
    ['7 ', undefined],
    ['7, 8', undefined],
    ['NaN', undefined],
    ['Infinity', undefined],
    [undefined, undefined],
    ['Fri, 02 Jan 2026 03:04:35 GMT', 30_000],
    ['Fri, 02 Jan 2026 02:00:00 GMT', 1_000],
    ['Fri, 02 Jan 2099 02:00:00 GMT', HOUR],
    ['Fri, 99 Jan 2026 03:04:35 GMT', undefined],
    ['Fri, 02 Jan 2026 03:04:35 +0100', undefined],
    ['2026-01-02T03:04:35Z', undefined],
  ])('%j is %j ms', (text, ms) => {
    expect(retryAfterMs(text, T)).toBe(ms)
  })

  it('never throws and never leaves 1 s to 1 h', () => {
    const texts = fc.oneof(
      fc.string(),
      fc.integer().map(String),
      fc.stringMatching(/^\d{1,8}$/),
      fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
    )
    fc.assert(
      fc.property(texts, fc.integer({ min: 0, max: 2 ** 45 }), (text, nowMs) => {
        const ms = retryAfterMs(text, nowMs)
        expect(ms === undefined || (ms >= 1_000 && ms <= HOUR)).toBe(true)
      }),
    )
  })
})

const headers = (limit: unknown, remaining: unknown, reset: unknown) =>
  Object.fromEntries(
    [
      ['x-ratelimit-limit', limit],
      ['x-ratelimit-remaining', remaining],
      ['x-ratelimit-reset', reset],
    ].filter(([, value]) => value !== undefined),
  ) as Record<string, string>

describe('the rate-limit headers', () => {
  it('are read in the unit of the dialect', () => {
    const seconds = T / 1_000 + 30
    expect(rateHint(headers('60', '3', String(seconds)), dialect, T)).toEqual({
      limit: 60,
      remaining: 3,
      resetAt: T + 30_000,
    })
    const inMs = { ...dialect, rateResetUnit: 'epoch_ms' as const }
    expect(rateHint(headers('60', '3', String(T + 500)), inMs, T)).toEqual({
      limit: 60,
      remaining: 3,
      resetAt: T + 500,
    })
    const other = { 'x-quota': '60', 'x-quota-left': '0', 'x-quota-reset': '12' }
    expect(rateHint(other, otherDialect, T)).toEqual({ limit: 60, remaining: 0, resetAt: T + 12_000 })
  })

  it('may have a fraction in their seconds, which is rounded up', () => {
    const left = (reset: string) =>
      rateHint({ 'x-quota': '60', 'x-quota-left': '0', 'x-quota-reset': reset }, otherDialect, T)
    expect(left('12.2')).toEqual({ limit: 60, remaining: 0, resetAt: T + 13_000 })
    expect(left('0.01')).toMatchObject({ resetAt: T + 1_000 })
    const at = rateHint(headers('60', '3', `${T / 1_000 + 29}.125`), dialect, T)
    expect(at).toEqual({ limit: 60, remaining: 3, resetAt: T + 30_000 })
    const inMs = { ...dialect, rateResetUnit: 'epoch_ms' as const }
    expect(rateHint(headers('60', '3', `${T + 499}.5`), inMs, T)).toMatchObject({ resetAt: T + 500 })
    expect(rateHint(headers('60', '2.5', String(T / 1_000 + 9)), dialect, T), 'a count has none').toBeUndefined()
  })

  it.each([
    ['missing', headers('60', undefined, undefined)],
    ['negative', headers('60', '-1', String(T / 1_000 + 9))],
    ['no numbers', headers('60', 'many', String(T / 1_000 + 9))],
    ['more left than the limit', headers('60', '61', String(T / 1_000 + 9))],
    ['a limit of zero', headers('0', '0', String(T / 1_000 + 9))],
    ['a window that is over', headers('60', '1', String(T / 1_000 - 9))],
    ['a window of a day', headers('60', '1', String(T / 1_000 + 86_400))],
    ['another unit than the dialect says', headers('60', '1', String(T + 9_000))],
    ['twenty digits', headers('60', '1', '99999999999999999999')],
  ])('are left alone when they are absurd: %s', (_, given) => {
    expect(rateHint(given, dialect, T)).toBeUndefined()
  })

  it('never make a reader throw, and give only a future within the hour', () => {
    const value = fc.oneof(fc.string(), fc.integer().map(String), fc.constant(undefined), fc.array(fc.string()))
    fc.assert(
      fc.property(value, value, value, (limit, remaining, reset) => {
        const hint = rateHint(headers(limit, remaining, reset), dialect, T)
        expect(hint === undefined || (hint.resetAt > T && hint.resetAt <= T + HOUR && hint.remaining >= 0)).toBe(true)
      }),
    )
  })
})

/** A clock that a sleep moves. */
function clock(random = 0) {
  let time = T
  const slept: number[] = []
  const pacer = createPacer({
    now: () => time,
    sleep: async (ms) => {
      slept.push(ms)
      time += ms
    },
    random: () => random,
  })
  return { pacer, slept, now: () => time, move: (ms: number) => (time += ms) }
}

describe('the pacer', () => {
  it('does not delay reads while much is left', async () => {
    const { pacer, slept } = clock()
    pacer.observe({ limit: 60, remaining: 40, resetAt: T + 30_000 })
    for (let n = 0; n < 20; n++) await pacer.turn()
    expect(slept).toEqual([])
  })

  it('spreads what is left over the rest of the window', async () => {
    const { pacer, now } = clock()
    pacer.observe({ limit: 60, remaining: 5, resetAt: T + 50_000 })
    const turns: number[] = []
    for (let n = 0; n < 6; n++) {
      await pacer.turn()
      turns.push(now() - T)
    }
    expect(turns).toEqual([0, 12_500, 25_000, 37_500, 50_000, 50_000])
  })

  it('gets no refusal from a server that counts by the minute, with any number of reads', async () => {
    const { pacer, now } = clock()
    const window = { endsAt: T + MINUTE, used: 0 }
    for (let n = 0; n < 300; n++) {
      await pacer.turn()
      if (now() >= window.endsAt) Object.assign(window, { endsAt: window.endsAt + MINUTE, used: 0 })
      window.used++
      expect(window.used).toBeLessThanOrEqual(30)
      pacer.observe({ limit: 30, remaining: 30 - window.used, resetAt: window.endsAt })
    }
  })

  it('holds every read back until a pause is over', async () => {
    const { pacer, slept, now } = clock(0.5)
    pacer.pause(10_000)
    expect(pacer.pausedUntil()).toBe(T + 11_000)
    await Promise.all([pacer.turn(), pacer.turn()])
    expect(slept).toContain(11_000)
    expect(now()).toBeGreaterThanOrEqual(T + 11_000)
    expect(pacer.pausedUntil()).toBeUndefined()
  })

  it('fails a read whose turn is more than a minute away, instead of keeping its caller', async () => {
    const { pacer, slept } = clock()
    pacer.pause(10 * MINUTE)
    await expect(pacer.turn()).rejects.toMatchObject({ code: 'unavailable', reason: 'rate_limited' })
    expect(slept).toEqual([])
  })

  it('doubles the pause of refusals in a row that do not say how long, and starts over after an answer', () => {
    const { pacer, now, move } = clock()
    const pauses: number[] = []
    for (let n = 0; n < 9; n++) {
      pacer.pause(undefined)
      pauses.push((pacer.pausedUntil() ?? 0) - now())
      move(HOUR)
    }
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 300, 300, 300].map((seconds) => seconds * 1_000))
    pacer.resumed()
    pacer.pause(undefined)
    expect((pacer.pausedUntil() ?? 0) - now()).toBe(5_000)
  })

  it('does not pause for two more hours when the clock is set back by two hours', async () => {
    const { pacer, slept, move } = clock()
    pacer.pause(10_000)
    move(-2 * HOUR)
    expect(pacer.pausedUntil()).toBeUndefined()
    await pacer.turn()
    expect(slept).toEqual([])
    pacer.pause(10_000)
    expect(pacer.pausedUntil()).toBe(T - 2 * HOUR + 10_000)
  })

  it('does not shorten a pause by a later refusal', () => {
    const { pacer } = clock()
    pacer.pause(30_000)
    pacer.pause(1_000)
    expect(pacer.pausedUntil()).toBe(T + 30_000)
  })

  it('gives up on a clock that does not move', async () => {
    const pacer = createPacer({ now: () => T, sleep: async () => {}, random: () => 0 })
    pacer.pause(1_000)
    await expect(pacer.turn()).rejects.toMatchObject({ reason: 'rate_limited' })
  })
})
