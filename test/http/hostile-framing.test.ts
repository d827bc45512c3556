import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { serverLimits } from '../../src/http/server.ts'
import { MARKER, signedDelivery } from '../support/delivery.ts'
import { exchange, requestBytes } from '../support/raw-http.ts'
import { openEndpoint } from '../support/webhook-endpoint.ts'

const VALID = signedDelivery()
const HEADERS = VALID.headers.map(([name, value]) => `${name}: ${value}`).join('\r\n')
const LENGTH = `content-length: ${VALID.body.length}`
const PATH = '/webhooks/supplier'

/** A request from its first line to its last byte, each line as it is given. */
function raw(lines: string[], body: Buffer | string = VALID.body): Buffer {
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body)])
}
const START = [`POST ${PATH} HTTP/1.1`, 'host: quayside.test', 'connection: close', HEADERS]
const withLines = (...lines: string[]): Buffer => raw([...START, ...lines])
const target = (path: string): Buffer => requestBytes({ ...VALID, target: path })
const method = (name: string, path = PATH): Buffer => requestBytes({ ...VALID, method: name, target: path })

interface Row {
  name: string
  bytes: Buffer[]
  /** 0: the connection is closed without an answer. */
  status: number | number[]
  rows?: number
  headers?: Record<string, string>
}

const rows: Row[] = [
  {
    name: 'other methods',
    bytes: ['GET', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE'].flatMap((name) => [
      method(name),
      method(name, `${PATH}/next`),
    ]),
    status: 405,
    headers: { allow: 'POST' },
  },
  {
    name: 'paths that are nearly ours',
    bytes: [
      `/${PATH}`,
      `${PATH}/`,
      PATH.toUpperCase(),
      `${PATH}%00`,
      '/webhooks/x/..%2fsupplier',
      `${PATH}/..%2fhook`,
      `${PATH}/a/b`,
      `${PATH}/%41`,
      `${PATH}/${'a'.repeat(65)}`,
      '/webhooks/%73upplier',
      `/x/..${PATH}`,
      `${PATH}#x`,
      `${PATH};x`,
      `http://quayside.test${PATH}`,
      '/api/v1/none',
      '*',
    ].map(target),
    status: 404,
  },
  { name: 'a query', bytes: [target(`${PATH}?a=1`)], status: 200, rows: 1 },
  {
    name: 'no host, and an expectation that no server fulfils: refused in our own words, not by the HTTP library',
    bytes: [
      raw([`POST ${PATH} HTTP/1.1`, 'connection: close', HEADERS, LENGTH]),
      withLines(LENGTH, 'expect: a miracle'),
    ],
    status: 400,
    headers: { 'content-type': 'application/json; charset=utf-8', 'x-content-type-options': 'nosniff' },
  },
  { name: 'a length and chunks', bytes: [withLines(LENGTH, 'transfer-encoding: chunked')], status: 400 },
  {
    name: 'two lengths, equal or not',
    bytes: [withLines(LENGTH, LENGTH), withLines(LENGTH, 'content-length: 1')],
    status: 400,
  },
  {
    name: 'lengths that are no number',
    bytes: ['+2', '0x2', '-1', '2 2', '1'.repeat(20), '9'.repeat(20)].map((text) =>
      withLines(`content-length: ${text}`),
    ),
    status: 400,
  },
  {
    name: 'unknown transfer encodings',
    bytes: ['xchunked', 'chunked, identity'].map((text) => withLines(`transfer-encoding: ${text}`)),
    status: 400,
  },
  {
    name: 'chunk sizes that are no number',
    bytes: ['zz', '-1', 'f'.repeat(17)].map((size) =>
      raw([...START, 'transfer-encoding: chunked'], `${size}\r\nabc\r\n0\r\n\r\n`),
    ),
    status: 400,
  },
  {
    name: 'headers that are not well-formed',
    bytes: [
      raw([...START, LENGTH, 'x-a: 1\n x-b: 2']),
      raw([...START, LENGTH, 'x-a : 1']),
      raw([...START, LENGTH, 'x-a: 1\0']),
      raw([...START, LENGTH, 'x-a: 1\rx-b: 2']),
      Buffer.from([...START, LENGTH, '', ''].join('\n')),
    ],
    status: 400,
  },
  { name: 'headers above 16 KiB', bytes: [withLines(LENGTH, `x-a: ${'a'.repeat(17_000)}`)], status: 431 },
  {
    name: 'two hosts, or none',
    bytes: [withLines(LENGTH, 'host: elsewhere.test'), raw([`POST ${PATH} HTTP/1.1`, HEADERS, LENGTH])],
    status: 400,
  },
  { name: 'HTTP/1.0', bytes: [raw([`POST ${PATH} HTTP/1.0`, HEADERS, LENGTH])], status: 200, rows: 1 },
  { name: 'HTTP/9.9', bytes: [raw([`POST ${PATH} HTTP/9.9`, ...START.slice(1), LENGTH])], status: 400 },
  { name: 'no version', bytes: [raw([`POST ${PATH}`, ...START.slice(1), LENGTH])], status: 400 },
  { name: 'a TLS hello', bytes: [Buffer.from('160301020001000000', 'hex')], status: 400 },
  { name: 'CONNECT', bytes: [raw(['CONNECT quayside.test:443 HTTP/1.1', 'host: quayside.test'], '')], status: 0 },
  {
    name: 'an upgrade, which is not taken',
    bytes: ['websocket', 'h2c'].map((protocol) =>
      raw(
        [
          `POST ${PATH} HTTP/1.1`,
          'host: quayside.test',
          'connection: upgrade, close',
          `upgrade: ${protocol}`,
          'content-length: 2',
        ],
        '{}',
      ),
    ),
    status: 401,
  },
  {
    name: 'compressed bodies',
    bytes: [
      'gzip',
      'br',
      'deflate',
      'gzip, gzip, gzip',
      'identity\r\ncontent-encoding: gzip',
      'identity\r\ncontent-encoding: identity',
    ].map((text) => withLines(LENGTH, `content-encoding: ${text}`)),
    status: 415,
    headers: { connection: 'close' },
  },
  { name: 'identity', bytes: [withLines(LENGTH, 'content-encoding: identity')], status: 200, rows: 1 },
  {
    name: 'a length above 256 KiB: refused unread',
    bytes: [raw([`POST ${PATH} HTTP/1.1`, 'host: quayside.test', HEADERS, 'content-length: 262145'], '')],
    status: 413,
    headers: { connection: 'close' },
  },
  {
    name: 'chunks above 256 KiB: refused at the limit, without their end',
    bytes: [
      raw(
        [`POST ${PATH} HTTP/1.1`, 'host: quayside.test', HEADERS, 'transfer-encoding: chunked'],
        `50000\r\n${'a'.repeat(0x50000)}`,
      ),
    ],
    status: 413,
    headers: { connection: 'close' },
  },
]

describe('a request, as bytes', () => {
  test.each(rows)('$name', async ({ bytes, status, rows: stored = 0, headers = {} }) => {
    const endpoint = await openEndpoint({
      limits: { headersTimeoutMs: 400, requestTimeoutMs: 400, checkIntervalMs: 50 },
    })
    for (const request of bytes) {
      const answer = await exchange(endpoint.port, request)
      expect([status].flat(), `${answer?.text} to ${request.toString('latin1').slice(0, 200)}`).toContain(
        answer?.status ?? 0,
      )
      expect(answer?.headers ?? {}).toMatchObject(headers)
      expect((answer?.text ?? '').length).toBeLessThan(1_024)
      expect(answer?.text ?? '').not.toMatch(/access-control|x-powered-by|etag|ref_1|ord_1|elsewhere/i)
      expect(answer?.text ?? '').not.toContain(MARKER)
    }
    expect(await endpoint.rows()).toHaveLength(stored)
    expect((await endpoint.deliver(signedDelivery({ deliveryId: 'dlv_after' })))?.status).toBe(200)
  })
})

describe('what the HTTP parser refuses is answered as every other error, with a request id that the log has', () => {
  test.each([
    [400, 'invalid', 'JUNK\r\n\r\n'],
    [400, 'invalid', `GET /livez HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`],
    [408, 'too_slow', `POST ${PATH} HTTP/1.1\r\nhost: quay`],
    [
      413,
      'too_large',
      `${START.join('\r\n')}\r\ntransfer-encoding: chunked\r\n\r\n1;${'a'.repeat(20_000)}\r\n\0\r\n0\r\n\r\n`,
    ],
    [431, 'headers_too_large', `GET /livez HTTP/1.1\r\nhost: a\r\nx-a: ${'a'.repeat(17_000)}\r\n\r\n`],
  ])('%i %s', async (status, code, text) => {
    const endpoint = await openEndpoint({
      limits: { headersTimeoutMs: 200, requestTimeoutMs: 200, checkIntervalMs: 20 },
    })
    const answer = await exchange(endpoint.port, Buffer.from(text))
    expect(answer).toMatchObject({
      status,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'content-length': String(Buffer.byteLength(answer?.body ?? '')),
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        connection: 'close',
      },
    })
    const requestId = answer?.headers['x-request-id']
    expect(requestId).toMatch(/^[0-9a-z]{26}$/)
    expect(JSON.parse(answer?.body ?? '')).toEqual({
      success: false,
      error: { code, message: expect.stringMatching(/^[a-z]/) },
      request_id: requestId,
    })
    expect(endpoint.seen.lines.filter((line) => line.includes(String(requestId)))).toEqual([
      expect.stringContaining(`"status":${status}`),
    ])
    expect(endpoint.seen.counts).toEqual([`none ${status}`])
  })
})

describe('a sender', () => {
  test('has ten seconds for its headers, fifteen for its request, and the service less to end than Docker gives it', () => {
    expect(serverLimits).toEqual({
      headerMaxBytes: 16_384,
      headersTimeoutMs: 10_000,
      requestTimeoutMs: 15_000,
      checkIntervalMs: 2_000,
      connectionsMax: 8_192,
      drainMs: 8_000,
    })
  })

  test('that goes away inside the body is not answered, and nothing is stored', async () => {
    const endpoint = await openEndpoint()
    const half = raw([...START, 'content-length: 50'], '{}')
    expect(await exchange(endpoint.port, half, { hangUp: true })).toBeUndefined()
    expect(await endpoint.rows()).toEqual([])
    expect(endpoint.seen.counts).toEqual([])
  })

  test.each([
    ['headers', `POST ${PATH} HTTP/1.1\r\nhost: quay`],
    ['a body', `POST ${PATH} HTTP/1.1\r\nhost: quayside.test\r\n${HEADERS}\r\ncontent-length: 50\r\n\r\n{`],
  ])('that is slow with %s is answered 408 and disconnected', async (_what, text) => {
    const endpoint = await openEndpoint({
      limits: { headersTimeoutMs: 100, requestTimeoutMs: 150, checkIntervalMs: 20 },
    })
    const answer = await exchange(endpoint.port, Buffer.from(text))
    expect(answer?.status).toBe(408)
    expect(await endpoint.rows()).toEqual([])
  })

  test('that stays silent is disconnected, and others are served meanwhile', async () => {
    const endpoint = await openEndpoint({
      limits: { headersTimeoutMs: 300, requestTimeoutMs: 300, checkIntervalMs: 20 },
    })
    const silent = Array.from({ length: 200 }, () => connect({ port: endpoint.port, host: '127.0.0.1' }))
    const gone = silent.map(
      (socket) =>
        new Promise((resolve) =>
          socket
            .on('close', resolve)
            .on('error', () => undefined)
            .resume(),
        ),
    )
    expect((await endpoint.deliver(VALID))?.status).toBe(200)
    await Promise.all(gone)
  })

  test('beyond the number of connections is not let in', async () => {
    const endpoint = await openEndpoint({ limits: { connectionsMax: 1 } })
    const first = connect({ port: endpoint.port, host: '127.0.0.1' })
    await new Promise((resolve) => first.once('connect', resolve))
    expect(await endpoint.deliver(VALID)).toBeUndefined()
    first.destroy()
  })
})

describe('an answer of 503', () => {
  test.each(['unavailable', 'unknown_outcome'] as const)('asks to come again when the database is %s', async (code) => {
    const receive = () => Promise.reject(new Failure(code, 'the database is busy'))
    const endpoint = await openEndpoint({ receive })
    const answer = await endpoint.deliver(VALID)
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
    expect(JSON.parse(answer?.body ?? '')).toMatchObject({ success: false, error: { code } })
    const logged = endpoint.seen.lines.map((line) => JSON.parse(line) as { event: string; level: string })
    expect(logged.filter(({ level }) => level !== 'info')).toMatchObject([
      { event: 'http.unavailable', level: 'warn', code },
    ])
  })

  test('is what a draining server gives, while it still says that it lives', async () => {
    const endpoint = await openEndpoint()
    endpoint.server.drain()
    const answer = await endpoint.deliver(VALID)
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '5', connection: 'close' } })
    expect(await endpoint.rows()).toEqual([])
    expect((await endpoint.send({ method: 'GET', target: '/livez' }))?.status).toBe(200)
  })

  test('hides what went wrong inside, under an id that the log has too', async () => {
    const endpoint = await openEndpoint({ receive: () => Promise.reject(new Error(`a stack with ${MARKER}`)) })
    const answer = await endpoint.deliver(VALID)
    expect(answer?.status).toBe(500)
    expect(answer?.text).not.toContain(MARKER)
    const { request_id: requestId } = JSON.parse(answer?.body ?? '') as { request_id: string }
    expect(answer?.headers['x-request-id']).toBe(requestId)
    expect(endpoint.seen.lines.some((line) => line.includes('http.failed') && line.includes(requestId))).toBe(true)
  })
})

describe('closing the server', () => {
  test('finishes what is under way, closes silent sockets and refuses new connections', async () => {
    const began = Promise.withResolvers<void>()
    const stored = Promise.withResolvers<{ outcome: 'stored'; id: string }>()
    const endpoint = await openEndpoint({
      receive: () => {
        began.resolve()
        return stored.promise
      },
    })
    const silent = connect({ port: endpoint.port, host: '127.0.0.1' })
    const silentGone = new Promise((resolve) => silent.on('close', resolve).resume())
    // No `connection: close`: it is the server that must not wait for another request.
    const busy = exchange(endpoint.port, raw([`POST ${PATH} HTTP/1.1`, 'host: quayside.test', HEADERS, LENGTH]))
    await began.promise
    const closed = endpoint.server.close()
    await silentGone
    expect(await exchange(endpoint.port, requestBytes({ ...VALID, target: PATH }))).toBeUndefined()
    stored.resolve({ outcome: 'stored', id: 'x' })
    expect((await busy)?.status).toBe(200)
    await closed
  })

  test('ends a request that does not end at the deadline', async () => {
    const began = Promise.withResolvers<void>()
    const endpoint = await openEndpoint({
      limits: { drainMs: 50 },
      receive: () => {
        began.resolve()
        return new Promise(() => undefined)
      },
    })
    const busy = endpoint.deliver(VALID)
    await began.promise
    await endpoint.server.close()
    expect(await busy).toBeUndefined()
  })
})

describe('a sender that waits for 100 Continue', () => {
  /** Sends the headers, and the body only when it is asked for it. */
  async function waiting(port: number, lines: string[], body = VALID.body): Promise<string> {
    const socket = connect({ port, host: '127.0.0.1' })
    let text = ''
    let sent = false
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (!sent && text.startsWith('HTTP/1.1 100 ')) {
        sent = true
        socket.write(body)
      }
    })
    socket.write(`${[...lines, 'expect: 100-continue'].join('\r\n')}\r\n\r\n`)
    await once(socket, 'close')
    return text
  }
  const statuses = (text: string) => [...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status))
  const open = [`POST ${PATH} HTTP/1.1`, 'host: quayside.test']

  test('is asked for the body of a delivery that may be genuine', async () => {
    const endpoint = await openEndpoint()
    expect(statuses(await waiting(endpoint.port, [...START, LENGTH]))).toEqual([100, 200])
    expect(await endpoint.rows()).toHaveLength(1)
  })

  test.each([
    ['without a signature', [...open, LENGTH], 401],
    ['to a webhook that is not there', [`POST ${PATH}/none HTTP/1.1`, 'host: quayside.test', HEADERS, LENGTH], 401],
    ['to a path that is not there', ['POST /nowhere HTTP/1.1', 'host: quayside.test', HEADERS, LENGTH], 404],
    ['with a length above 256 KiB', [...open, HEADERS, 'content-length: 262145'], 413],
    ['of a compressed body', [...open, HEADERS, LENGTH, 'content-encoding: gzip'], 415],
    ['with another method', [`PUT ${PATH} HTTP/1.1`, 'host: quayside.test', HEADERS, LENGTH], 405],
    ['with two hosts', [...open, 'host: elsewhere.test', HEADERS, LENGTH], 400],
  ])('is refused at once, and the connection ends: %s', async (_what, lines, status) => {
    const endpoint = await openEndpoint()
    expect(statuses(await waiting(endpoint.port, lines))).toEqual([status])
    expect(await endpoint.rows()).toEqual([])
  })
})
