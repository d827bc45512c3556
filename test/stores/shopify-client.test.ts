import { describe, expect, test } from 'vitest'
import { availableAt, type Bucket, readAnswer, waitFor } from '../../src/stores/shopify/client.ts'

const bucket = (set: Partial<Bucket> = {}): Bucket => ({
  currentlyAvailable: 100,
  maximumAvailable: 1000,
  restoreRate: 50,
  at: 10_000,
  ...set,
})

describe('the points that Shopify allows', () => {
  test('come back with time, to no more than the bucket holds', () => {
    expect(availableAt(bucket(), 10_000)).toBe(100)
    expect(availableAt(bucket(), 12_000)).toBe(200)
    expect(availableAt(bucket(), 999_000)).toBe(1000)
    expect(availableAt(bucket(), 0)).toBe(100)
  })

  test.each([
    ['fits', 100, 0, 0],
    ['fits without any to spare but those for others', 60, 40, 0],
    ['lacks one point', 101, 0, 20],
    ['lacks 50 points', 150, 0, 1_000],
    ['leaves a part to others', 50, 250, 4_000],
    ['costs more than the bucket holds', 5_000, 250, 18_000],
  ])('make a request wait that %s', (_what, cost, reserved, ms) => {
    expect(waitFor(bucket(), { cost, reserved, now: 10_000 })).toBe(ms)
  })

  test('make no request wait for more than half a minute', () => {
    expect(waitFor(bucket({ restoreRate: 1 }), { cost: 1000, reserved: 0, now: 10_000 })).toBe(30_000)
  })
})

describe('an answer of Shopify', () => {
  const read = (status: number, body: unknown, isWrite = true, headers = {}) =>
    readAnswer(
      { status, headers, text: typeof body === 'string' ? body : JSON.stringify(body) },
      { isWrite, host: 'a.myshopify.com' },
    )
  const failure = (...given: Parameters<typeof read>) => {
    const { answer } = read(...given)
    return answer.ok ? undefined : answer.failure
  }
  const coded = (code: string, data: unknown = null) => ({
    data,
    errors: [{ message: 'mail@x.test', extensions: { code } }],
  })

  test('is data where it has no errors, with what it cost and the version that answered', () => {
    const throttleStatus = { maximumAvailable: 2000, currentlyAvailable: 1900, restoreRate: 100 }
    const body = { data: { shop: {} }, extensions: { cost: { requestedQueryCost: 7, throttleStatus } } }
    const headers = { date: 'Thu, 01 Jan 2026 00:00:00 GMT', 'x-shopify-api-version': '2026-07' }
    expect(read(200, body, false, headers)).toEqual({
      answer: { ok: true, data: { shop: {} }, answeredAt: Date.UTC(2026, 0), version: '2026-07' },
      cost: { requestedQueryCost: 7, throttleStatus },
      isThrottled: false,
    })
  })

  test.each([
    [200, coded('THROTTLED'), 'unavailable', false],
    [200, { errors: [{ extensions: { code: 'THROTTLED' } }] }, 'unavailable', false],
    [200, { errors: [{ message: 'Throttled' }] }, 'unavailable', false],
    [429, '', 'unavailable', false],
    [200, coded('SHOP_INACTIVE'), 'unavailable', false],
    [200, coded('TIMEOUT'), 'unavailable', true],
    [200, coded('MAX_COST_EXCEEDED'), 'refused', undefined],
    [
      200,
      { errors: ['undefinedField', 'INTERNAL_SERVER_ERROR'].map((code) => ({ extensions: { code } })) },
      'unavailable',
      true,
    ],
    [200, { data: null }, 'unavailable', true],
    [200, coded('undefinedField', { order: {} }), 'refused', undefined],
    [300, { data: {} }, 'refused', undefined],
    [400, '', 'refused', undefined],
    [408, '', 'unavailable', true],
    [425, '', 'unavailable', true],
    [500, { data: {} }, 'unavailable', true],
    [502, '<html>', 'unavailable', true],
    [200, coded('INTERNAL_SERVER_ERROR'), 'unavailable', true],
    [200, coded('ACCESS_DENIED', { order: null }), 'refused', undefined],
    [200, coded('undefinedField'), 'refused', undefined],
    [200, '<html>', 'unavailable', true],
    [200, '{"data":{"ord', 'unavailable', true],
    [200, '', 'unavailable', true],
    [301, '', 'refused', undefined],
    [401, { errors: '[API] Invalid API key' }, 'refused', undefined],
    [402, '', 'unavailable', false],
    [403, { errors: 'Forbidden' }, 'refused', undefined],
    [409, { errors: 'Conflict' }, 'unavailable', false],
    [420, '', 'unavailable', false],
    [423, '', 'unavailable', false],
    [430, '', 'unavailable', false],
    [404, { errors: 'Not Found' }, 'refused', undefined],
    [500, '', 'unavailable', true],
    [503, '<html>', 'unavailable', true],
  ])('of %s %j to a mutation is %s, and the shop may have acted: %s', (status, body, outcome, mayHaveLeft) => {
    const seen = failure(status, body)
    expect(seen).toMatchObject({ outcome, ...(mayHaveLeft === undefined ? {} : { mayHaveLeft }) })
    expect(seen?.detail).toMatch(/^a\.myshopify\.com answered \d{3}: /)
    expect(seen?.detail).not.toMatch(/mail@x|Invalid API|Not Found|Forbidden|Conflict/)
  })

  test.each([
    [200, coded('ACCESS_DENIED'), '403: the app may not do this'],
    [200, coded('SHOP_INACTIVE'), '402: the shop is not active'],
    [200, coded('MAX_COST_EXCEEDED'), '400: the request costs more than it allows'],
    [200, coded('undefinedField'), '400: it does not understand the request'],
    [200, coded('TIMEOUT'), '500: it failed'],
    [200, ' <!DOCTYPE html>', '200: a page for people'],
    [200, '{"data":{"ord', '200: its answer broke off'],
    [200, '{"data":null}', '200: its answer broke off'],
    [302, '', '302: it redirects'],
    [400, '', '400: it refused the request'],
    [400, '<html>', '400: a page for people'],
    [401, '', '401: it does not accept the access token'],
    [404, '', '404: there is no shop of Shopify'],
    [423, '', '423: the shop is frozen or locked'],
    [429, '', '429: it wants fewer requests'],
    [500, '', '500: it failed'],
    [503, '', '503: it is under maintenance'],
  ])('of %i %j says its cause: %s', (status, body, words) => {
    const { answer } = read(status, body)
    if (answer.ok) throw new Error('it is a failure')
    expect(`${answer.failure.detail} | ${answer.cause}`).toContain(`answered ${words}`)
    expect(answer.cause).toContain(`it answered ${words}`)
    expect(answer.failure.detail).toContain(answer.fix ?? '')
  })

  test('says when it was given, also where it is a failure, and by no version where it does not name one', () => {
    const headers = { date: 'Thu, 01 Jan 2026 00:00:00 GMT', 'x-shopify-api-version': ['2026-07', '2026-10'] }
    expect(read(500, '', true, headers).answer.answeredAt).toBe(Date.UTC(2026, 0))
    expect(read(200, { data: {} }, true, headers).answer).toMatchObject({ ok: true, version: null })
    expect(read(200, { data: {} }, true).answer.answeredAt).toBeNull()
  })

  test('to a query never leaves it open whether the shop acted', () => {
    expect(failure(500, '', false)).toMatchObject({ mayHaveLeft: false })
  })

  test('of 403 names an allowlist before the access scopes, and never an installation', () => {
    const { detail = '' } = failure(403, { errors: 'Forbidden' }) ?? {}
    expect(detail).toMatch(/allowlist.*access scopes/)
    for (const one of [detail, failure(200, coded('ACCESS_DENIED'))?.detail]) expect(one).not.toMatch(/install/i)
  })

  test('is throttled with 200 as with 429', () => {
    expect([read(200, coded('THROTTLED')), read(429, '')].map((one) => one.isThrottled)).toEqual([true, true])
    expect(read(500, '').isThrottled).toBe(false)
  })
})
