/** What a backend answers to published listings, as our adapter reads it over HTTP. */
import { randomBytes } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { backendStore } from '../../src/stores/backend/backend.ts'
import type { StoreListing } from '../../src/stores/store.ts'
import { TEST_NOW } from '../support/database.ts'

const listing: StoreListing = {
  id: 'v1',
  sku: 'SKU-1',
  name: 'One',
  category: null,
  price: '12.00',
  compareAt: null,
  currency: 'EUR',
  stock: 3,
  available: true,
  revision: 7,
}

/** Publishes one listing to a backend that answers like this. */
async function publish(listener: RequestListener, deadlineMs?: number) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const callbackUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const secret = randomBytes(32)
  const options = { id: 'demo-1', callbackUrl, secretsOf: () => [secret], now: () => TEST_NOW, newId: () => 'x' }
  const store = backendStore({ ...options, ...(deadlineMs === undefined ? {} : { deadlineMs }) })
  onTestFinished(async () => {
    await store.close()
    server.close()
    server.closeAllConnections()
  })
  return store.publish({ id: 'm1', at: TEST_NOW, listings: [listing] })
}

const body =
  (text: string): RequestListener =>
  (_request, response) =>
    void response.end(text)
const results = (...items: unknown[]) => body(JSON.stringify({ results: items }))

test('listings go as one signed callback', async () => {
  let sent: unknown
  await publish((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      sent = { id: request.headers['webhook-id'], ...(JSON.parse(Buffer.concat(chunks).toString()) as object) }
      response.end()
    })
  })
  const timestamp = new Date(TEST_NOW).toISOString()
  expect(sent).toEqual({ id: 'msg_m1', type: 'listings.changed', timestamp, data: { listings: [listing] } })
})

test.each<[string, RequestListener, unknown]>([
  [
    'results',
    results({ id: 'v1', ok: true, price: '12.00', stock: 3 }),
    [{ id: 'v1', ok: true, price: '12.00', stock: 3 }],
  ],
  [
    'numbers for texts',
    results({ id: 1, ok: true, price: 12, stock: null }),
    [{ id: '1', ok: true, price: '12', stock: null }],
  ],
  ['a reason', results({ id: 'v1', ok: false, reason: ' no\n such  ' }), [{ id: 'v1', ok: false, reason: 'no  such' }]],
  [
    'a reason of a whole page',
    results({ id: 'v1', ok: false, reason: 'x'.repeat(900) }),
    [{ reason: 'x'.repeat(200) }],
  ],
  ['one that cannot be read', results('yes', { id: 'v1' }, { id: 'v2', ok: true }), [{ id: 'v2', ok: true }]],
  ['no results', results(), []],
  ['nothing', body(''), 'all'],
  ['a page', body('<html>thanks</html>'), 'all'],
  ['other JSON', body('{"results":"stored"}'), 'all'],
  ['JSON that is no object', body('null'), 'all'],
  ['more than anybody reads', body('x'.repeat(1_200_000)), []],
])('a 2xx with %s is read', async (_what, listener, answers) => {
  const published = await publish(listener)
  if (typeof answers === 'string') expect(published).toEqual({ outcome: 'answered', answers })
  else expect(published).toMatchObject({ outcome: 'answered', answers })
})

test('a refusal is distinguished from no answer, and nothing of it is repeated', async () => {
  const refused = await publish((_request, response) => void response.writeHead(500).end('secret'))
  expect(refused).toEqual({ outcome: 'refused', status: 500, detail: 'answered 500' })
})

test('an answer that breaks off in the middle counts as none: the rest of it is unknown', async () => {
  const cut = await publish((_request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{"results":[')
    setImmediate(() => response.destroy())
  })
  expect(cut).toMatchObject({ outcome: 'unavailable' })
})

test('an answer that never ends is none', async () => {
  const slow = await publish((_request, response) => void response.writeHead(200).write('{"results":['), 100)
  expect(slow).toMatchObject({ outcome: 'unavailable', detail: expect.stringContaining('did not answer within 0.1 s') })
})
