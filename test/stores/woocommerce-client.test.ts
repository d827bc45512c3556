import { describe, expect, test } from 'vitest'
import type { RawAnswer } from '../../src/stores/shop-client.ts'
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
  const html = (status: number, text: string): RawAnswer => ({ status, headers: { 'content-type': 'text/html' }, text })

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

  const coded = (status: number, code: string): RawAnswer => ({ status, headers: {}, text: JSON.stringify({ code }) })
  test.each([
    [coded(403, 'woocommerce_rest_cannot_edit'), 'refused', 'the user of the consumer key may not do this'],
    [coded(404, 'woocommerce_rest_product_invalid_id'), 'refused', ' (woocommerce_rest_product_invalid_id)'],
    [coded(400, 'rest_invalid_param'), 'refused', 'it refused the request (rest_invalid_param)'],
    [coded(400, 'ck_1'), 'refused', 'answered 400: it refused the request'],
    [html(400, '<html>'), 'refused', 'a page for people'],
    [coded(413, 'woocommerce_rest_request_entity_too_large'), 'refused', 'too large'],
    [html(408, ''), 'unavailable', 'answered 408'],
    [html(425, ''), 'unavailable', 'answered 425'],
    [html(300, ''), 'refused', 'it redirects'],
    [html(502, '{"a":1}'), 'unavailable', 'it failed'],
    [html(200, 'null'), 'unavailable', 'broke off'],
  ])('%j to a request that writes is %s: %s', (raw, outcome, words) => {
    const answer = readAnswer(raw, { isWrite: true, host })
    if (answer.ok) throw new Error('it is a failure')
    expect(answer.failure).toMatchObject({ outcome, detail: expect.stringContaining(words) })
  })

  test('leaves it open whether the shop acted only where it was asked to write', () => {
    const outcomes = [true, false].map((isWrite) => readAnswer(html(500, ''), { isWrite, host }))
    expect(outcomes).toMatchObject([{ failure: { mayHaveLeft: true } }, { failure: { mayHaveLeft: false } }])
  })

  test('says where it leads only as a redirect', () => {
    const headers = { location: 'https://other.test/x' }
    const said = (status: number) => JSON.stringify(readAnswer({ status, headers, text: '' }, { isWrite: false, host }))
    expect(said(308)).toContain('https://other.test')
    expect(said(400)).not.toContain('other.test')
  })

  test('to a signed request knows no key in front of WooCommerce, and none that it did not see', () => {
    const cause = (raw: RawAnswer) => {
      const answer = readAnswer(raw, { isWrite: false, host, isSigned: true })
      return answer.ok ? '' : answer.cause
    }
    expect(cause(html(401, '<html>'))).toContain('asks for a password')
    expect(cause(coded(401, 'woocommerce_rest_cannot_view'))).toContain('did not see the consumer key')
    expect(cause(coded(400, 'woocommerce_rest_authentication_error'))).toContain('it refused the request')
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
