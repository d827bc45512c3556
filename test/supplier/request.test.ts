import { once } from 'node:events'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { Agent, type Dispatcher } from 'undici'
import { afterEach, describe, expect, it } from 'vitest'
import { exchange, headerText, openAgent, type Request } from '../../src/supplier/request.ts'
import { refusedOrigin, startHttp, startTcp } from '../support/supplier-server.ts'

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

/** Closed before the servers: it was opened last. */
function agent() {
  const made = openAgent(4)
  open.unshift(() => made.destroy())
  return made
}

async function http(...given: Parameters<typeof startHttp>) {
  const server = await startHttp(...given)
  open.push(server.close)
  return server
}

async function tcp(...given: Parameters<typeof startTcp>) {
  const server = await startTcp(...given)
  open.push(server.close)
  return server
}

const post = (origin: string, more: Partial<Request> = {}): Request => ({
  method: 'POST',
  origin,
  path: '/v1/orders',
  headers: { 'x-api-key': 'key', 'content-type': 'application/json' },
  body: '{"n":1}',
  deadlineMs: 5_000,
  bodyMaxBytes: 1_000,
  ...more,
})

describe('one exchange', () => {
  it('gives a whole answer with its headers, and asks for no compression', async () => {
    const server = await http((_, response) => response.writeHead(201, { 'x-request-id': 'r1' }).end('{}'))
    const ended = await exchange(agent(), post(server.origin))
    expect(ended).toMatchObject({ stage: 'answered', status: 201, body: Buffer.from('{}') })
    expect(ended.stage === 'answered' && headerText(ended.headers, 'x-request-id')).toBe('r1')
    expect(server.heard[0]).toMatchObject({ method: 'POST', url: '/v1/orders', body: '{"n":1}' })
    expect(server.heard[0]?.headers['accept-encoding']).toBe('identity')
  })

  it('knows that nothing was sent to a port that refuses', async () => {
    const ended = await exchange(agent(), post(await refusedOrigin()))
    expect(ended).toEqual({ stage: 'not_sent', cause: 'ECONNREFUSED', heldBack: false })
  })

  it('knows that nothing was sent to a name that does not exist', async () => {
    // A resolver whose question is lost asks again after five seconds.
    const ended = await exchange(agent(), { ...post('http://supplier.invalid'), deadlineMs: 30_000 })
    expect(ended).toMatchObject({ stage: 'not_sent', cause: expect.stringMatching(/^E/) })
  })

  it('knows that nothing was sent when the TLS handshake fails', async () => {
    const server = await tcp(() => {})
    const spoken = await http(() => {})
    const ended = await exchange(agent(), post(spoken.origin.replace('http:', 'https:')))
    expect(ended.stage).toBe('not_sent')
    expect([server.heard, spoken.heard]).toEqual([[], []])
  })

  it('knows that nothing was sent when the deadline passes during the handshake, and sends nothing later', async () => {
    const server = await tcp(() => {})
    const ended = await exchange(agent(), post(server.origin.replace('http:', 'https:'), { deadlineMs: 50 }))
    expect(ended).toEqual({ stage: 'not_sent', cause: 'timeout', heldBack: false })
    expect(server.heard).toEqual([])
  })

  it('sends nothing when the check before the write fails, and uses the connection for the next request', async () => {
    const server = await http((_, response) => response.end('{}'))
    const connections = agent()
    const held = await exchange(connections, post(server.origin, { beforeWrite: () => false }))
    expect(held).toEqual({ stage: 'not_sent', cause: expect.any(String), heldBack: true })
    const sent = await exchange(connections, post(server.origin, { beforeWrite: () => true }))
    expect(sent.stage).toBe('answered')
    expect(server.heard).toHaveLength(1)
  })

  it('drops a request whose deadline passed while all connections were busy', async () => {
    const waiting: (() => void)[] = []
    const server = await http((_, response) => waiting.push(() => response.end('{}')))
    const single = openAgent(1)
    open.unshift(() => single.destroy())
    const first = exchange(single, post(server.origin))
    const second = await exchange(single, post(server.origin, { deadlineMs: 100 }))
    expect(second).toMatchObject({ stage: 'not_sent', cause: 'timeout' })
    waiting[0]?.()
    expect((await first).stage).toBe('answered')
    expect((await exchange(single, post(server.origin, { path: '/v1/third', beforeWrite: () => false }))).stage).toBe(
      'not_sent',
    )
    expect(server.heard).toHaveLength(1)
  })

  it('lets no client library send a request a second time', async () => {
    /** Begins each request twice, as undici does when a socket closes under a repeatable request. */
    class Repeating extends Agent {
      override dispatch(_: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
        const controller = { aborted: false, paused: false, reason: null, abort() {}, pause() {}, resume() {} }
        handler.onRequestStart?.(controller, null)
        expect(() => handler.onRequestStart?.(controller, null)).toThrow('the request is over')
        handler.onResponseError?.(controller, new Error('the request is over'))
        return true
      }
    }
    const repeating = new Repeating()
    open.unshift(() => repeating.destroy())
    expect(await exchange(repeating, post('http://127.0.0.1'))).toEqual({ stage: 'lost', cause: 'network_error' })
  })

  it.each([
    ['a reset before any answer', (socket: Socket) => socket.resetAndDestroy()],
    ['a close before any answer', (socket: Socket) => socket.end()],
    [
      'a reset after the headers',
      (socket: Socket) =>
        socket.write('HTTP/1.1 201 Created\r\nx-request-id: r1\r\ncontent-length: 50\r\n\r\n{', () =>
          setImmediate(() => socket.resetAndDestroy()),
        ),
    ],
    [
      'a body shorter than announced',
      (socket: Socket) => socket.end('HTTP/1.1 201 Created\r\ncontent-length: 50\r\n\r\n{"id":'),
    ],
    [
      'a chunked body without its end',
      (socket: Socket) => socket.end('HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"a":'),
    ],
    ['an answer that is not HTTP', (socket: Socket) => socket.end('220 smtp.example ESMTP\r\n')],
    ['headers without end', (socket: Socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(40_000)}`)],
  ])('calls %s lost, and sends the request once', async (_, speak) => {
    const server = await tcp(speak)
    const ended = await exchange(agent(), post(server.origin))
    expect(ended.stage).toBe('lost')
    expect(server.heard).toHaveLength(1)
  })

  it('keeps the request id of an answer that broke off', async () => {
    const server = await tcp((socket) =>
      socket.end('HTTP/1.1 201 Created\r\nx-request-id: r9\r\ncontent-length: 50\r\n\r\n{'),
    )
    const ended = await exchange(agent(), post(server.origin))
    expect(ended).toMatchObject({ stage: 'lost', status: 201, headers: { 'x-request-id': 'r9' } })
  })

  it('calls an answer that does not come in time lost', async () => {
    const server = await tcp(() => {})
    expect(await exchange(agent(), post(server.origin, { deadlineMs: 100 }))).toEqual({
      stage: 'lost',
      cause: 'timeout',
    })
  })

  it('ends an answer that drips beyond the deadline', async () => {
    const server = await tcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n')
      const drip = setInterval(() => socket.write('x'), 5)
      socket.on('close', () => clearInterval(drip))
    })
    const ended = await exchange(agent(), post(server.origin, { deadlineMs: 100 }))
    expect(ended).toMatchObject({ stage: 'lost', cause: 'timeout', status: 200 })
  })

  it.each([
    ['announced', { 'content-length': '2000' }],
    ['not announced', { 'transfer-encoding': 'chunked' }],
  ])('stops reading an answer that is too large, %s', async (_, headers) => {
    const server = await http((__, response) => response.writeHead(200, headers).end('a'.repeat(2_000)))
    expect(await exchange(agent(), post(server.origin))).toMatchObject({ stage: 'lost', cause: 'answer_too_large' })
  })

  it('does not decode a compressed answer', async () => {
    const bomb = gzipSync(Buffer.alloc(500_000))
    const server = await http((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    const ended = await exchange(agent(), post(server.origin))
    expect(ended).toMatchObject({ stage: 'answered', unreadable: 'content_encoding' })
  })

  it.each([301, 302, 303, 307, 308])(
    'does not follow a %i, so that the API key stays where it belongs',
    async (status) => {
      const elsewhere = await http((_, response) => response.end('{}'))
      const server = await http((_, response) => response.writeHead(status, { location: elsewhere.origin }).end())
      expect(await exchange(agent(), post(server.origin))).toMatchObject({ stage: 'answered', status })
      expect(elsewhere.heard).toEqual([])
      expect(server.heard).toHaveLength(1)
    },
  )

  it('reads past informational answers', async () => {
    const server = await tcp((socket) =>
      socket.end('HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'),
    )
    expect(await exchange(agent(), post(server.origin))).toMatchObject({ stage: 'answered', status: 200 })
  })

  it('closes a socket that was idle for a second, although the server offers ten minutes', async () => {
    const closed: Promise<unknown>[] = []
    const server = await tcp((socket) => {
      if (closed.length === 0) closed.push(once(socket, 'close'))
      socket.write('HTTP/1.1 200 OK\r\nkeep-alive: timeout=600\r\ncontent-length: 2\r\n\r\n{}')
    })
    const single = openAgent(1)
    open.unshift(() => single.destroy())
    await exchange(single, post(server.origin))
    await exchange(single, post(server.origin))
    expect(server.connections()).toBe(1)
    const from = performance.now()
    await closed[0]
    expect(performance.now() - from).toBeLessThan(2_000)
  })
})
