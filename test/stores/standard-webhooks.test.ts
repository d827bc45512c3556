/** Callbacks against the reference library of Standard Webhooks: what one side signs or refuses, the other verifies or refuses. */
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { verifyCallback } from '../../src/stores/backend/callbacks.ts'
import { secretText, signatureHeaders } from '../../src/stores/backend/signature.ts'

const [secret, other] = [Buffer.alloc(32, 7), Buffer.alloc(32, 8)]
const id = 'msg_01hf7yat00'
const callback = { type: 'line.resumed', timestamp: '2026-03-01T09:30:00.000Z', data: { reference: 'Grüße 😀 \u2028' } }
const body = JSON.stringify(callback)
const library = new Webhook(secretText(secret))

/** Who accepts a request: the library, and `quayside/callbacks`. */
function accepting(headers: Record<string, string>, given = body) {
  const accepts = (verify: () => unknown) => {
    try {
      verify()
      return true
    } catch {
      return false
    }
  }
  return {
    library: accepts(() => library.verify(given, headers)),
    ours: accepts(() => verifyCallback(secretText(secret), headers, given)),
  }
}

test('the library verifies what Quayside signs, and reads the same', () => {
  const headers = signatureHeaders([secret], { id, at: Date.now(), body })
  expect(library.verify(body, headers)).toEqual(callback)
  expect(verifyCallback(secretText(secret), headers, body)).toEqual({ ...callback, id })
})

test('quayside/callbacks verifies what the library signs, to the letter of the signature', () => {
  const at = new Date()
  const signature = library.sign(id, at, body)
  const headers = signatureHeaders([secret], { id, at: at.getTime(), body })
  expect(headers['webhook-signature']).toBe(signature)
  expect(verifyCallback(secretText(secret), { ...headers, 'webhook-signature': signature }, body).id).toBe(id)
})

const signed = (secrets = [secret], { aheadSeconds = 0, body: text = body } = {}): Record<string, string> =>
  signatureHeaders(secrets, { id, at: Date.now() + aheadSeconds * 1000, body: text })
const without = (name: string) => Object.fromEntries(Object.entries(signed()).filter(([one]) => one !== name))
const withSignature = (change: (signature: string) => string) => ({
  ...signed(),
  'webhook-signature': change(signed()['webhook-signature'] ?? ''),
})

describe('both accept', () => {
  test.each([
    ['a genuine callback', signed],
    ['one of 290 s ago', () => signed([secret], { aheadSeconds: -290 })],
    ['one of in 290 s', () => signed([secret], { aheadSeconds: 290 })],
    ['the second of two secrets', () => signed([other, secret])],
    ['the first of two secrets', () => signed([secret, other])],
    ['a signature of another version before the right one', () => withSignature((one) => `v1a,AAAA ${one}`)],
  ])('%s', (_what, headers) => {
    expect(accepting(headers())).toEqual({ library: true, ours: true })
  })
})

describe('both refuse', () => {
  test.each([
    ['another secret', () => signed([other])],
    ['two other secrets', () => signed([other, Buffer.alloc(24, 9)])],
    ['a timestamp of 310 s ago', () => signed([secret], { aheadSeconds: -310 })],
    ['a timestamp in 310 s', () => signed([secret], { aheadSeconds: 310 })],
    ['a timestamp that is no number', () => ({ ...signed(), 'webhook-timestamp': 'now' })],
    ['no id', () => without('webhook-id')],
    ['no timestamp', () => without('webhook-timestamp')],
    ['no signature', () => without('webhook-signature')],
    ['another id', () => ({ ...signed(), 'webhook-id': 'msg_2' })],
    ['an empty signature', () => withSignature(() => 'v1,')],
    ['a signature without its version', () => withSignature((one) => one.replace('v1,', ''))],
    ['a signature of another version', () => withSignature((one) => one.replace('v1,', 'v2,'))],
    ['the first half of a signature', () => withSignature((one) => one.slice(0, 24))],
    ['the signature of another body', () => signed([secret], { body: `${body} ` })],
  ])('%s', (_what, headers) => {
    expect(accepting(headers())).toEqual({ library: false, ours: false })
  })

  test('a body that was changed', () => {
    expect(accepting(signed(), `${body} `)).toEqual({ library: false, ours: false })
  })
})
