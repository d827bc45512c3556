import { describe, expect, test } from 'vitest'
import { oauthParameters, readAnswer } from '../../src/stores/woocommerce/client.ts'
import { capturedAnswer } from '../support/woocommerce-fixtures.ts'

describe('a request over plain http', () => {
  test('is signed as RFC 5849 says', () => {
    const signed = oauthParameters({
      method: 'GET',
      url: new URL('http://photos.example.net/photos'),
      query: { size: 'original', file: 'vacation.jpg', name: "a b&c'é" },
      key: 'dpf43f3p2l4k3l03',
      secret: 'kd94hf93k423kf44',
      nonce: 'kllo9940pd9333jh',
      timestamp: 1_191_242_096,
    })
    // Computed apart from this code, by Python's hmac and urllib.
    expect(Object.fromEntries(signed)).toEqual({
      oauth_consumer_key: 'dpf43f3p2l4k3l03',
      oauth_nonce: 'kllo9940pd9333jh',
      oauth_signature_method: 'HMAC-SHA256',
      oauth_timestamp: '1191242096',
      oauth_signature: 'xyi0xeQpmCLFfsqOKFx/t9lInlZbevAqaFFLNbKLmss=',
    })
  })
})

describe('an answer of a shop', () => {
  const host = 'shop.test'
  const json = (name: string) => {
    const { status, headers, body } = capturedAnswer(name)
    return { status, headers, text: JSON.stringify(body) }
  }
  const html = (status: number, text: string) => ({ status, headers: { 'content-type': 'text/html' }, text })

  test.each([
    ['a wrong secret', json('03-auth-wrong-secret'), 'refused', 'consumer secret'],
    ['no key', json('05-auth-basic-over-http'), 'refused', 'did not see the consumer key'],
    ['no WooCommerce', json('07-no-such-route'), 'refused', 'no WooCommerce API'],
    ['plain permalinks', html(404, '<html>'), 'refused', 'permalinks'],
    ['a password in front', html(401, '<html>'), 'refused', 'asks for a password'],
    ['a firewall', html(403, '<html>blocked'), 'refused', 'firewall'],
    ['a redirect', html(301, ''), 'refused', 'redirects are not followed'],
    [
      'a redirect somewhere',
      { ...html(301, ''), headers: { location: '/de/?consumer_key=ck_1' } },
      'refused',
      'it redirects and leads to https://shop.test. Configure',
    ],
    ['maintenance', html(503, '<html>'), 'unavailable', 'maintenance'],
    ['too many requests', html(429, ''), 'unavailable', 'fewer requests'],
    ['a fault of PHP', html(500, ''), 'unavailable', 'log of the shop'],
    ['a login page', html(200, '<!DOCTYPE html><form>'), 'unavailable', 'a page for people'],
    ['truncated JSON', html(200, '{"update":[{"id":1'), 'unavailable', 'broke off'],
  ])('that is %s says so', (_, raw, outcome, words) => {
    const answer = readAnswer(raw, { isWrite: true, host })
    if (answer.ok) throw new Error('it is a failure')
    expect(answer.failure).toMatchObject({ outcome, detail: expect.stringContaining(words) })
    if (answer.failure.outcome === 'unavailable') expect(answer.failure.mayHaveLeft).toBe(true)
  })

  test('to a signed request is not said to know the key: by http an unknown key and a wrong secret have one code', () => {
    const answer = readAnswer(json('03-auth-wrong-secret'), { isWrite: false, host, isSigned: true })
    if (answer.ok) throw new Error('it is a failure')
    expect(answer.cause).not.toContain('knows')
    expect(answer.fix).toContain('Compare the consumer key and the consumer secret')
  })

  test('is not repeated, whatever it says', () => {
    const text = '{"code":"ck_1111111111111111111111111111111111111111","message":"AAAA-BBBB"}'
    for (const status of [200, 302, 400, 401, 403, 404, 413, 429, 500, 503]) {
      for (const body of [text, `<b>${text}</b>`]) {
        const answer = readAnswer({ status, headers: {}, text: body }, { isWrite: true, host })
        const said = answer.ok ? '' : JSON.stringify([answer.failure, answer.cause, answer.fix])
        expect(said).not.toMatch(/ck_1|AAAA/)
      }
    }
  })
})
