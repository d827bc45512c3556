/** Senders that begin many bodies and end none: genuine deliveries must come through beside them. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createRawBodies } from '../../src/http/bodies.ts'
import { networkOf } from '../../src/http/server.ts'
import { signedDelivery } from '../support/delivery.ts'
import { type Answer, readAnswer } from '../support/raw-http.ts'
import { openEndpoint, type WebhookEndpoint } from '../support/webhook-endpoint.ts'

const PATH = '/webhooks/supplier'
const FORGED = signedDelivery({ secret: 'whsec_forged_0123456789abcdef0123456789abcdef' })
const forgedHeaders = FORGED.headers.map(([name, value]) => `${name}: ${value}`)

/** A request whose body is announced and never ends. */
const unfinished = (target: string, headers: string[] = []): string =>
  [`POST ${target} HTTP/1.1`, 'host: quayside.test', ...headers, 'content-length: 1000', '', '{"'].join('\r\n')

interface Flood {
  answers: () => Answer[]
  /** How many of its connections the server has closed. */
  closed: () => number
}

/** Opens `count` connections with one such request each, and waits until the server has seen all of them. */
async function flood(
  endpoint: WebhookEndpoint,
  count: number,
  text: string,
  localAddress = '127.0.0.1',
): Promise<Flood> {
  const chunks = new Map<Socket, string>()
  let closed = 0
  await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect({ port: endpoint.port, host: '127.0.0.1', localAddress })
      onTestFinished(() => void socket.destroy())
      socket.on('error', () => undefined)
      socket.on('close', () => {
        closed += 1
      })
      socket.on('data', (chunk) => chunks.set(socket, (chunks.get(socket) ?? '') + chunk.toString('latin1')))
      await once(socket, 'connect')
      await new Promise((resolve) => socket.write(text, resolve))
    }),
  )
  return {
    answers: () => [...chunks.values()].map((one) => readAnswer(one)).filter((answer) => answer !== undefined),
    closed: () => closed,
  }
}

const statuses = ({ answers }: Flood) => [...new Set(answers().map(({ status }) => status))]

describe('unfinished bodies', () => {
  test.each([
    ['without a signature', PATH],
    ['at a path that no webhook has', `${PATH}/none`],
  ])('%s are refused unread, and a genuine delivery is stored', async (_what, target) => {
    const endpoint = await openEndpoint({ bodies: { total: 20 } })
    const headers = target === PATH ? [] : forgedHeaders
    const sent = await flood(endpoint, 100, unfinished(target, headers))
    expect((await endpoint.deliver(signedDelivery()))?.status).toBe(200)
    await expect.poll(() => sent.closed()).toBe(100)
    expect(statuses(sent)).toEqual([401])
    expect(await endpoint.rows()).toHaveLength(1)
  })

  test('with well-formed headers, 1,000 of them from the address of the genuine sender, leave room for its delivery', async () => {
    const endpoint = await openEndpoint()
    const sent = await flood(endpoint, 1_000, unfinished(PATH, forgedHeaders))
    for (const deliveryId of ['dlv_1', 'dlv_2']) {
      const body = { event: 'order.completed', data: { order_id: deliveryId } }
      expect((await endpoint.deliver(signedDelivery({ deliveryId, body })))?.status).toBe(200)
    }
    expect(await endpoint.rows()).toHaveLength(2)
    // The oldest gave way; the newest of that address are still waited for.
    expect(statuses(sent)).toEqual([503])
    await expect.poll(() => sent.closed()).toBeGreaterThanOrEqual(700)
    expect(sent.answers().filter(({ status }) => status === 503).length).toBeLessThan(800)
  })
})

describe('the places for bodies that are not verified yet', () => {
  /** A genuine delivery whose body comes in two pieces. */
  function slowly(endpoint: WebhookEndpoint) {
    const { headers, body } = signedDelivery()
    const socket = connect({ port: endpoint.port, host: '127.0.0.1' })
    onTestFinished(() => void socket.destroy())
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', () => undefined)
    const lines = headers.map(([name, value]) => `${name}: ${value}`)
    const head = [`POST ${PATH} HTTP/1.1`, 'host: quayside.test', 'connection: close', ...lines]
    const gone = once(socket, 'close')
    const answer = async () => {
      await gone
      return readAnswer(Buffer.concat(chunks).toString('latin1'))
    }
    return {
      begin: async () => {
        const text = [...head, `content-length: ${body.length}`, '', ''].join('\r\n')
        await new Promise((resolve) => socket.write(Buffer.concat([Buffer.from(text), body.subarray(0, 9)]), resolve))
        await expect.poll(() => endpoint.bodies.waiting()).toBeGreaterThan(0)
      },
      end: async () => {
        socket.write(body.subarray(9))
        return answer()
      },
      answer,
    }
  }

  test('are a thousand, 250 of them for one address, and a body that has not come within five seconds loses its own', async () => {
    const bodies = createRawBodies()
    const outcomes: string[] = []
    const began = performance.now()
    const begin = (remoteAddress: string) => {
      const request = Object.assign(new PassThrough(), { headers: {}, httpVersionMinor: 1, socket: { remoteAddress } })
      onTestFinished(() => void request.destroy())
      return bodies.read(request as never, {} as never).then((outcome) => {
        outcomes.push(String(outcome))
      })
    }
    const reads = Array.from({ length: 251 }, () => begin('192.0.2.1'))
    expect(bodies.waiting()).toBe(250)
    reads.push(...Array.from({ length: 751 }, (_, n) => begin(`198.51.${100 + (n >> 8)}.${n & 255}`)))
    expect(bodies.waiting()).toBe(1_000)
    await Promise.all(reads.slice(0, 2))
    expect(outcomes).toEqual(['gave_way', 'gave_way'])
    await Promise.all(reads)
    expect([new Set(outcomes.slice(2)), bodies.waiting()]).toEqual([new Set(['too_slow']), 0])
    const seconds = (performance.now() - began) / 1_000
    expect(seconds).toBeGreaterThan(4)
    expect(seconds).toBeLessThan(20)
  })

  test('of one address are its own: a flood from another takes none of them', async () => {
    const endpoint = await openEndpoint({ bodies: { perAddress: 10, total: 100 } })
    const genuine = slowly(endpoint)
    await genuine.begin()
    const sent = await flood(endpoint, 50, unfinished(PATH, forgedHeaders), '127.0.0.2')
    await expect.poll(() => sent.closed()).toBe(40)
    expect((await genuine.end())?.status).toBe(200)
  })

  test('are bounded over all addresses: the oldest body gives way', async () => {
    const endpoint = await openEndpoint({ bodies: { perAddress: 10, total: 15 } })
    const first = await flood(endpoint, 10, unfinished(PATH, forgedHeaders), '127.0.0.2')
    await expect.poll(() => endpoint.bodies.waiting()).toBe(10)
    const second = await flood(endpoint, 10, unfinished(PATH, forgedHeaders), '127.0.0.3')
    await expect.poll(() => first.closed()).toBe(5)
    expect(second.closed()).toBe(0)
    expect(endpoint.bodies.waiting()).toBe(15)
    expect((await endpoint.deliver(signedDelivery()))?.status).toBe(200)
  })

  test('are free again when a body ends, is too late, or its sender goes away', async () => {
    const endpoint = await openEndpoint({ bodies: { timeoutMs: 60 } })
    const sent = await flood(endpoint, 5, unfinished(PATH, forgedHeaders))
    await expect.poll(() => statuses(sent)).toEqual([408])
    await expect.poll(() => sent.closed()).toBe(5)
    expect((await endpoint.deliver(signedDelivery()))?.status).toBe(200)
    expect(endpoint.bodies.waiting()).toBe(0)
    const gone = connect({ port: endpoint.port, host: '127.0.0.1' }, () => gone.end(unfinished(PATH, forgedHeaders)))
    await once(gone.resume(), 'close')
    expect(endpoint.bodies.waiting()).toBe(0)
    expect(await endpoint.rows()).toHaveLength(1)
  })

  test('that gave way are answered 503, to come again', async () => {
    const endpoint = await openEndpoint({ bodies: { perAddress: 1 } })
    const genuine = slowly(endpoint)
    await genuine.begin()
    await flood(endpoint, 1, unfinished(PATH, forgedHeaders))
    expect(await genuine.answer()).toMatchObject({ status: 503, headers: { 'retry-after': '5', connection: 'close' } })
    expect(await endpoint.rows()).toEqual([])
  })

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['2001:db8:1:2::', '2001:db8:1:2'],
    ['::1', '0:0:0:0'],
    ['', ''],
  ])('of %j count for %j', (address, network) => {
    expect(networkOf(address)).toBe(network)
  })
})
