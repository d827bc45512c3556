/** What a backend gets as `quayside/callbacks`, against the adapter that signs, over a real socket. */
import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { backendStore } from '../../src/stores/backend/backend.ts'
import { type Callback, type CallbackRefused, verifyCallback } from '../../src/stores/backend/callbacks.ts'
import { secretText, signatureHeaders } from '../../src/stores/backend/signature.ts'

const secret = Buffer.alloc(32, 7)
const other = Buffer.alloc(32, 8)
const AT = 1_790_000_000_000
const body = JSON.stringify({ type: 'line.resumed', timestamp: '2026-09-21T00:00:00.000Z', data: { line: '1' } })
const headers = (secrets = [secret], given = body, at = AT) =>
  signatureHeaders(secrets, { id: 'msg_1', at, body: given })
const refusedFor = (act: () => unknown): string => {
  try {
    act()
  } catch (error) {
    return (error as CallbackRefused).reason
  }
  return 'taken'
}

test('returns the callback that the adapter sent', async () => {
  const received: Callback[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    received.push(verifyCallback(secretText(secret), request.headers, Buffer.concat(chunks), { now: AT }))
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const callbackUrl = `http://127.0.0.1:${port}/callbacks`
  const store = backendStore({ id: 'demo-1', callbackUrl, secretsOf: () => [secret], now: () => AT, newId: () => 'x' })
  onTestFinished(store.close)
  const line = { id: '1', sku: 'GAM-RAIL4', quantity: 1 }
  const about = { id: 'e1', at: AT, order: { store: 'demo-1', reference: '1001' }, line }
  await store.fulfil({ ...about, type: 'line.fulfilled', delivered: 1, complete: true, keys: ['AAAA-BBBB'] })
  expect(received).toMatchObject([
    {
      id: 'msg_e1',
      type: 'line.fulfilled',
      data: { reference: '1001', line: '1', keys: ['AAAA-BBBB'], complete: true },
    },
  ])
})

test('a secret that is not set accepted callbacks that anyone can sign', () => {
  for (const missing of ['', 'whsec_', 'whsec_undefined', 'undefined']) {
    const key = Buffer.from(missing.replace(/^whsec_/, ''), 'base64')
    expect(() => verifyCallback(missing, headers([key]), body, { now: AT }), missing).toThrow(TypeError)
    expect(() => verifyCallback([secretText(secret), missing], headers(), body, { now: AT }), missing).toThrow(
      TypeError,
    )
  }
  expect(() => verifyCallback([], headers(), body, { now: AT })).toThrow(TypeError)
})

test('takes a callback that is signed with one of several secrets, also by the headers of fetch', () => {
  const secrets = [secretText(other), secretText(secret)]
  expect(verifyCallback(secrets, new Headers(headers()), body, { now: AT }).id).toBe('msg_1')
  expect(verifyCallback(secretText(secret), headers([other, secret]), body, { now: AT }).id).toBe('msg_1')
})

test.each([
  [
    'a body that was changed',
    () => verifyCallback(secretText(secret), headers(), `${body} `, { now: AT }),
    'signature',
  ],
  ['another secret', () => verifyCallback(secretText(other), headers(), body, { now: AT }), 'signature'],
  ['an old timestamp', () => verifyCallback(secretText(secret), headers(), body, { now: AT + 301_000 }), 'timestamp'],
  [
    'a timestamp of the future',
    () => verifyCallback(secretText(secret), headers(), body, { now: AT - 302_000 }),
    'timestamp',
  ],
  ['no headers', () => verifyCallback(secretText(secret), {}, body, { now: AT }), 'headers'],
  [
    'a body that is no callback',
    () => verifyCallback(secretText(secret), headers([secret], '[]'), '[]', { now: AT }),
    'body',
  ],
])('refuses %s', (_what, act, reason) => {
  expect(refusedFor(act)).toBe(reason)
})
