import { randomBytes } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { Readable } from 'node:stream'
import { describe, expect, onTestFinished, test } from 'vitest'
import { backendStore, readListingAnswer } from '../../src/stores/backend/backend.ts'
import { secretText, signatureHeaders } from '../../src/stores/backend/signature.ts'
import type { Store } from '../../src/stores/store.ts'
import { TEST_NOW } from '../support/database.ts'
import { startShop } from '../support/recording-store.ts'

const secret = randomBytes(32)
const update: Parameters<Store['fulfil']>[0] = {
  id: '01hf7yat00',
  at: TEST_NOW - 5_000,
  type: 'line.fulfilled',
  order: { store: 'demo-ab12cd34', reference: '1001' },
  line: { id: '1', sku: 'SKU-1', quantity: 2 },
  delivered: 1,
  complete: false,
  keys: ['AAAA-BBBB'],
}

const storeAt = (callbackUrl: string, deadlineMs?: number, deliver?: 'link') => {
  const store = backendStore({
    id: 'demo-1',
    callbackUrl,
    secretsOf: () => [secret],
    now: () => TEST_NOW,
    newId: () => 'test1',
    deadlineMs,
    ...(deliver && { deliver }),
  })
  onTestFinished(() => store.close())
  return store
}

/** A backend that answers like this. */
async function backend(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/callbacks`
}

describe('the signature of a callback', () => {
  test('is the one of the published Standard Webhooks vector', () => {
    const key = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')
    const signed = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', at: 1_614_265_330_000, body: '{"test": 2432232314}' }
    expect(signatureHeaders([key], signed)).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
    expect(secretText(key)).toBe('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
  })
})

describe('a backend store', () => {
  test('gets the address of the page of keys, and no key where its customers get the link alone', async () => {
    const shop = await startShop({ secret: secretText(secret), now: () => TEST_NOW })
    onTestFinished(() => shop.close())
    const store = storeAt(shop.url, undefined, 'link')
    const keysUrl = 'https://keys.shop.test/k/token'
    for (const by of ['link', 'both', undefined] as const) {
      await store.fulfil({ ...update, id: `u-${by}`, keysUrl, ...(by && { by }) })
    }
    const late = { reason: 'late', message: 'it takes longer' } as const
    const { type: _, delivered: __, complete: ___, keys: ____, ...about } = update
    await store.reportHeld?.({ ...about, id: 'h', type: 'line.held', units: 1, ...late, keysUrl })
    expect(shop.received().map(({ data }) => [data.keys, data.keysUrl])).toEqual([
      [[], keysUrl],
      [update.keys, keysUrl],
      [update.keys, keysUrl],
      [undefined, keysUrl],
    ])
    expect(JSON.stringify(shop.received())).not.toContain('"by"')
  })

  test('verifies each callback on its own, and knows a repeat by its id', async () => {
    const shop = await startShop({ secret: secretText(secret), now: () => TEST_NOW })
    onTestFinished(() => shop.close())
    const store = storeAt(shop.url)
    expect(await store.fulfil(update)).toEqual({ outcome: 'confirmed' })
    expect(await store.fulfil(update)).toEqual({ outcome: 'confirmed' })
    expect(shop.received()).toEqual([
      {
        id: 'msg_01hf7yat00',
        type: 'line.fulfilled',
        timestamp: '2023-11-14T22:13:15.000Z',
        data: {
          store: 'demo-ab12cd34',
          reference: '1001',
          line: '1',
          sku: 'SKU-1',
          quantity: 2,
          delivered: 1,
          complete: false,
          keys: ['AAAA-BBBB'],
        },
      },
    ])
    expect(shop.repeated()).toBe(1)
    expect(shop.refused()).toBe(0)
  })

  test('gets the units that will not come, and the end of an order', async () => {
    const shop = await startShop({ secret: secretText(secret), now: () => TEST_NOW })
    onTestFinished(() => shop.close())
    const store = storeAt(shop.url)
    const { at, order, line } = update
    const end = { state: 'failed', code: 'deadline', message: 'too late', advice: 'refund' } as const
    await store.reportFailure({ id: 'a', at, type: 'line.failed', order, line, units: 1, ...end })
    await store.closeOrder({ id: 'b', at, type: 'order.closed', order, state: 'partly_fulfilled' })
    expect(shop.received().map(({ id, type, data }) => ({ id, type, data }))).toEqual([
      {
        id: 'msg_a',
        type: 'line.failed',
        data: { store: 'demo-ab12cd34', reference: '1001', line: '1', sku: 'SKU-1', quantity: 1, ...end },
      },
      {
        id: 'msg_b',
        type: 'order.closed',
        data: { store: 'demo-ab12cd34', reference: '1001', state: 'partly_fulfilled' },
      },
    ])
  })

  test('gets the same bytes under one id, whatever became of the first attempt', async () => {
    const bodies: string[] = []
    const url = await backend((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        bodies.push(`${request.headers['webhook-id']} ${Buffer.concat(chunks)}`)
        response.writeHead(bodies.length === 1 ? 500 : 204).end()
      })
    })
    // The repeat comes from the database, where the update was kept as text.
    await storeAt(url).fulfil(update)
    await storeAt(url).fulfil(JSON.parse(JSON.stringify(update)))
    expect(bodies).toHaveLength(2)
    expect(new Set(bodies).size).toBe(1)
  })

  test('gets the units that wait, and those that are bought now, of the units of their line', async () => {
    const shop = await startShop({ secret: secretText(secret), now: () => TEST_NOW })
    onTestFinished(() => shop.close())
    const store = storeAt(shop.url)
    const { at, order } = update
    const about = { at, order, line: { id: '1', sku: 'SKU-1', quantity: 5 }, units: 3 }
    const held = { reason: 'out_of_stock', message: 'none are left' } as const
    await store.reportHeld?.({ id: 'h', type: 'line.held', ...about, ...held })
    await store.reportResumed?.({ id: 'r', type: 'line.resumed', ...about })
    const data = { store: 'demo-ab12cd34', reference: '1001', line: '1', sku: 'SKU-1', quantity: 3 }
    expect(shop.received().map(({ id, data: of }) => [id, of])).toEqual([
      ['msg_h', { ...data, ...held }],
      ['msg_r', data],
    ])
  })

  test('gets a late attempt signed now, and its contents as of then', async () => {
    const headers: unknown[] = []
    const bodies: string[] = []
    const url = await backend((request, response) => {
      headers.push(request.headers['webhook-timestamp'])
      request.on('data', (chunk: Buffer) => bodies.push(chunk.toString()))
      request.on('end', () => response.writeHead(204).end())
    })
    const at = TEST_NOW - 86_400_000
    await storeAt(url).fulfil({ ...update, at })
    expect(headers).toEqual([String(Math.floor(TEST_NOW / 1000))])
    expect(JSON.parse(bodies.join(''))).toMatchObject({ timestamp: new Date(at).toISOString() })
  })

  test.each([
    [{ id: 7, ok: true, price: 12.5, stock: 3 }, [{ id: '7', ok: true, price: '12.5', stock: 3 }]],
    [{ id: 'a', ok: true, price: null, stock: null }, [{ id: 'a', ok: true, stock: null }]],
    [{ id: 'a', ok: false, reason: ' not\u0000\nhere ' }, [{ id: 'a', ok: false, reason: 'not here' }]],
    [{ id: 'a', ok: false, reason: 'x'.repeat(300) }, [{ id: 'a', ok: false, reason: 'x'.repeat(200) }]],
    [{ id: 'a', ok: false, reason: ' ' }, [{ id: 'a', ok: false }]],
    [{ id: 'a', ok: 'yes' }, []],
    [{ ok: true }, []],
    [null, []],
  ])('that answers %j of a listing says so', async (result, answers) => {
    const bodyOf = (value: unknown) => Readable.from([Buffer.from(JSON.stringify(value))])
    expect(await readListingAnswer(bodyOf({ results: [result] }))).toEqual(answers)
    for (const other of [{}, [result], null, 'ok']) expect(await readListingAnswer(bodyOf(other))).toBe('all')
  })

  test('has an answer about listings read up to a mebibyte, and none of it taken for one that is longer', async () => {
    const long = async function* (padding: number) {
      yield Buffer.from(`{"results":[{"id":"1","ok":true}],"p":"${'x'.repeat(padding)}"}`)
    }
    expect(await readListingAnswer(long(1_000_000))).toEqual([expect.objectContaining({ id: '1', ok: true })])
    expect(await readListingAnswer(long(1_048_576))).toEqual([])
  })

  test('refuses what another secret signed, and the cause is named', async () => {
    const shop = await startShop({ secret: secretText(randomBytes(32)), now: () => TEST_NOW })
    onTestFinished(() => shop.close())
    const result = await storeAt(shop.url).test()
    expect(result).toMatchObject([{ state: 'failed', detail: expect.stringMatching(/401.*secret/) }])
    expect(shop.received()).toEqual([])
  })

  test.each([200, 201, 202, 204])('confirms with %i', async (status) => {
    const url = await backend((_request, response) => response.writeHead(status).end())
    expect(await storeAt(url).fulfil(update)).toEqual({ outcome: 'confirmed' })
  })

  test.each([400, 404, 410, 429, 500, 503])(
    'refuses with %i, and nothing of its answer is repeated',
    async (status) => {
      const url = await backend((_request, response) => response.writeHead(status).end('AAAA-BBBB leaked'))
      const result = await storeAt(url).fulfil(update)
      expect(result).toMatchObject({ outcome: 'refused', status })
      expect(JSON.stringify(result)).not.toContain('leaked')
    },
  )

  test.each([301, 302, 307, 308])('is not followed elsewhere by a redirect with %i', async (status) => {
    let elsewhere = 0
    const target = await backend((_request, response) => {
      elsewhere += 1
      response.end()
    })
    const url = await backend((_request, response) => response.writeHead(status, { location: target }).end())
    const result = await storeAt(url).fulfil(update)
    expect(result).toMatchObject({ outcome: 'refused', status, detail: expect.stringContaining('redirect') })
    expect(elsewhere).toBe(0)
  })

  test('confirms by its status even when its answer never ends', async () => {
    const url = await backend((_request, response) => {
      response.writeHead(200)
      const more = () => {
        while (response.write('x'.repeat(65_536)) && !response.destroyed);
      }
      response.on('drain', more)
      more()
    })
    expect(await storeAt(url).fulfil(update)).toEqual({ outcome: 'confirmed' })
  })

  test('has a quarter of a minute for its answer, where nothing else is configured', async () => {
    const url = await backend((_request, response) => response.writeHead(204).end())
    const deadlines: number[] = []
    const timeout = (ms: number) => {
      deadlines.push(ms)
      return AbortSignal.timeout(20_000)
    }
    const store = backendStore({
      id: 'demo-1',
      callbackUrl: url,
      secretsOf: () => [secret],
      now: () => TEST_NOW,
      newId: () => 't',
      timeout,
    })
    onTestFinished(() => store.close())
    expect(store.batchSize).toBe(100)
    expect(await store.fulfil(update)).toEqual({ outcome: 'confirmed' })
    expect(deadlines).toEqual([15_000])
  })

  test('is unavailable when it does not answer in time', async () => {
    const url = await backend(() => {})
    expect(await storeAt(url, 50).fulfil(update)).toMatchObject({
      outcome: 'unavailable',
      mayHaveLeft: true,
      detail: expect.stringContaining('did not answer within 0.05 s'),
    })
  })

  test('is unavailable when it hangs up without an answer', async () => {
    const url = await backend((request) => request.socket.destroy())
    expect(await storeAt(url).fulfil(update)).toMatchObject({
      outcome: 'unavailable',
      mayHaveLeft: true,
      detail: expect.stringContaining('closed the connection'),
    })
  })

  test('is unavailable, and no byte has left, when nothing listens and under an unknown name', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    expect(await storeAt(`http://127.0.0.1:${port}/`).fulfil(update)).toMatchObject({
      outcome: 'unavailable',
      mayHaveLeft: false,
      detail: `nothing listens at 127.0.0.1:${port}`,
    })
    expect(await storeAt('http://shop.invalid/').fulfil(update)).toMatchObject({
      outcome: 'unavailable',
      mayHaveLeft: false,
      detail: 'the name of shop.invalid cannot be resolved',
    })
  })

  test('is unavailable over TLS, and no byte has left, when it speaks none', async () => {
    const url = await backend((_request, response) => response.end())
    const result = await storeAt(url.replace('http:', 'https:')).fulfil(update)
    expect(result).toMatchObject({
      outcome: 'unavailable',
      mayHaveLeft: false,
      detail: expect.stringMatching(/TLS|SSL/),
    })
  })
})
