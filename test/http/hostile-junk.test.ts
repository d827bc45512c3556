/** What follows a request in its connection must not take its answer away. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { storeOrders } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { openApi } from '../support/api-world.ts'
import { type DeliveryParts, orderEvent, signedDelivery } from '../support/delivery.ts'
import { type Answer, exchange, readAnswer } from '../support/raw-http.ts'
import { openEndpoint } from '../support/webhook-endpoint.ts'

const PATH = '/webhooks/supplier'

/** A whole delivery in a connection that stays open, unless its lines say otherwise. */
function delivery(parts: DeliveryParts = {}, lines: string[] = []): Buffer {
  const { headers, body } = signedDelivery(parts)
  const head = [`POST ${PATH} HTTP/1.1`, 'host: quayside.test', ...lines, `content-length: ${body.length}`]
  for (const [name, value] of headers) head.push(`${name}: ${value}`)
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
}
const second = delivery({ deliveryId: 'dlv_2', body: orderEvent({ order_id: 'ord_2' }) })
const brokenChunks = Buffer.from(`POST ${PATH} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`)

/** Statuses of all answers that came in one connection. */
const statusesOf = (answer: Answer | undefined): number[] =>
  (answer?.text ?? '').split(/(?=HTTP\/1\.1 \d{3} )/).flatMap((text) => readAnswer(text)?.status ?? [])

const cases: { name: string; bytes: Buffer[]; statuses: number[]; rows: number }[] = [
  { name: 'junk', bytes: [delivery(), Buffer.from('JUNK\r\n\r\n')], statuses: [200, 400], rows: 1 },
  {
    name: 'junk after a request that ends its connection',
    bytes: [delivery({}, ['connection: close']), Buffer.from('JUNK\r\n\r\n')],
    statuses: [200],
    rows: 1,
  },
  { name: 'a TLS hello', bytes: [delivery(), Buffer.from('1603010200010000', 'hex')], statuses: [200, 400], rows: 1 },
  {
    name: 'a second delivery, and junk after it',
    bytes: [delivery(), second, Buffer.from('\0')],
    statuses: [200, 200, 400],
    rows: 2,
  },
  {
    name: 'a request whose headers are too long',
    bytes: [delivery(), Buffer.from(`GET / HTTP/1.1\r\nx-a: ${'a'.repeat(20_000)}`)],
    statuses: [200, 431],
    rows: 1,
  },
  { name: 'a megabyte of junk', bytes: [delivery(), Buffer.alloc(1_000_000, 'x')], statuses: [200, 400], rows: 1 },
]

describe('a delivery that is stored gets its own answer first, also when it is followed by', () => {
  test.each(cases)('$name', async ({ bytes, statuses, rows }) => {
    const endpoint = await openEndpoint()
    expect(statusesOf(await exchange(endpoint.port, Buffer.concat(bytes)))).toEqual(statuses)
    expect(statusesOf(await exchange(endpoint.port, bytes))).toEqual(statuses)
    expect(await endpoint.rows()).toHaveLength(rows)
  })

  test('a second delivery whose body is malformed', async () => {
    const endpoint = await openEndpoint()
    const { headers } = signedDelivery()
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const broken = Buffer.from(brokenChunks.toString().replace('host: a\r\n', `host: a\r\n${lines}`))
    expect(statusesOf(await exchange(endpoint.port, Buffer.concat([delivery(), broken])))).toEqual([200, 400])
    expect(statusesOf(await exchange(endpoint.port, broken))).toEqual([400])
    expect(await endpoint.rows()).toHaveLength(1)
  })

  test.each([
    ['junk that comes while it is being stored', 'JUNK\r\n\r\n', [200, 400]],
    ['the end of the connection while it is being stored', '', [200]],
    ['half a request and the end of the connection', 'POST /', [200]],
  ])('%s', async (_what, text, statuses) => {
    const began = Promise.withResolvers<void>()
    const mayEnd = Promise.withResolvers<void>()
    const endpoint = await openEndpoint({
      receive: async () => {
        began.resolve()
        await mayEnd.promise
        return { outcome: 'stored', id: 'x' }
      },
    })
    const connection = openConnection(endpoint.port)
    await connection.write(delivery())
    await began.promise
    if (text !== '') await connection.write(text)
    if (text.startsWith('JUNK')) await connection.write(text)
    else connection.end()
    // Others are answered while it waits: the server has read what came before them.
    for (let turn = 0; turn < 3; turn += 1) {
      expect((await endpoint.send({ method: 'GET', target: '/livez' }))?.status).toBe(200)
    }
    mayEnd.resolve()
    expect(statusesOf(await connection.answer())).toEqual(statuses)
  })
})

test('an order that is taken gets its own answer first, also when junk follows it', async () => {
  const { url, tokens, db, offers } = await openApi()
  const sku = (await offers())[0]?.sku
  const line = { id: '1', sku, quantity: 1, unitPrice: '999.90', currency: 'EUR' }
  const body = JSON.stringify({ reference: 'R-1', lines: [line] })
  const head = [
    'POST /api/v1/orders HTTP/1.1',
    'host: quayside.test',
    `authorization: Bearer ${tokens.store}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
  ]
  const bytes = Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}JUNK\r\n\r\n`)
  expect(statusesOf(await exchange(Number(new URL(url).port), bytes))).toEqual([202, 400])
  expect(await db.query(build.select({ reference: storeOrders.reference }).from(storeOrders))).toEqual([
    { reference: 'R-1' },
  ])
})

/** A connection that is written to by hand. */
function openConnection(port: number) {
  const socket = connect({ port, host: '127.0.0.1' })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  return {
    write: (bytes: Buffer | string) => new Promise<void>((resolve) => socket.write(bytes, () => resolve())),
    end: () => void socket.end(),
    answer: async () => {
      if (!socket.closed) await once(socket, 'close')
      return readAnswer(Buffer.concat(chunks).toString('latin1'))
    },
  }
}
