import { describe, expect, test } from 'vitest'
import { MARKER, orderEvent, type SignedDelivery, signedDelivery } from '../support/delivery.ts'
import { addPurchase, openEndpoint, type WebhookEndpoint } from '../support/webhook-endpoint.ts'

interface Row {
  name: string
  delivery: SignedDelivery
  status?: number
  /** State of the one stored delivery; undefined when nothing is stored. */
  state: 'applied' | 'quarantined' | 'ignored' | undefined
  after?: (endpoint: WebhookEndpoint) => Promise<void> | void
}

const TEXT = JSON.stringify(orderEvent())
const signed = (body: string | Buffer | object): SignedDelivery => signedDelivery({ body })
/** Signed, and changed on the way. */
const changed = (body: string): SignedDelivery => ({ ...signedDelivery(), body: Buffer.from(body) })
const applied = (name: string, body: string | object): Row => ({ name, delivery: signed(body), state: 'applied' })
const quarantined = (name: string, body: string | Buffer | object): Row => ({
  name,
  delivery: signed(body),
  state: 'quarantined',
})
const refused = (name: string, body: string): Row => ({ name, delivery: changed(body), status: 401, state: undefined })
const keysOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`key_${n}`, n]))

const rows: Row[] = [
  applied('a byte order mark that was signed', `\uFEFF${TEXT}`),
  refused('a byte order mark that was added later', `\uFEFF${TEXT}`),
  refused('a line end added', `${TEXT}\n`),
  refused('a space added', `${TEXT} `),
  refused('line ends changed', TEXT.replaceAll(',', ',\r\n')),
  applied(
    'a key twice',
    `{"data":{"order_id":"ord_1","status":"failed","status":"completed"},"event":"order.completed"}`,
  ),
  {
    ...applied(
      'a prototype as a key',
      TEXT.replace('"data":', '"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"data":'),
    ),
    after: () => expect(Object.keys(Object.prototype)).toEqual([]),
  },
  quarantined('an event that only a prototype has', '{"__proto__":{"event":"order.completed"}}'),
  applied(
    'numbers that lose digits',
    TEXT.replace('"data":', '"a":[9007199254740993,1e400,-0,0.30000000000000004],"data":'),
  ),
  { name: '60,000 keys', delivery: signed({ ...orderEvent(), ...keysOf(60_000) }), status: 413, state: undefined },
  applied('10,000 keys', { ...orderEvent(), ...keysOf(10_000) }),
  applied(
    '100 licence keys where 1 was ordered',
    orderEvent({ quantity: 1, keys: Array.from({ length: 100 }, () => MARKER) }),
  ),
  quarantined('an empty body', ''),
  quarantined('half a body', TEXT.slice(0, TEXT.length / 2)),
  quarantined('no UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d])),
  quarantined('an order id with a NUL', TEXT.replace('ord_1', 'ord_1\\u0000')),
  quarantined('a reference with half a character', TEXT.replace('ref_1', 'ref_\\ud800')),
  quarantined('an event with half a character', TEXT.replace('order.completed', 'order.completed\\udfff')),
  applied('a NUL and half a character in fields that are not read', orderEvent({ status: '\0', note: '\ud800' })),
  quarantined('no number that JSON knows', TEXT.replace('"status"', '"n":NaN,"status"')),
  quarantined('a comment', `/* */${TEXT}`),
  quarantined('a comma too many', TEXT.replace(/}$/, ',}')),
  quarantined('single quotes', TEXT.replaceAll('"', "'")),
  quarantined('no object', '[]'),
  quarantined('null', 'null'),
  quarantined('no event', { data: { order_id: 'ord_1' } }),
  quarantined('an event that is no text', { ...orderEvent(), event: ['order.completed'] }),
  quarantined('an order id that is an object', orderEvent({ order_id: { $ne: '' } })),
  quarantined('an order id of 201 characters', orderEvent({ order_id: 'o'.repeat(201) })),
  quarantined('no order id and no reference', orderEvent({ order_id: null, external_order_id: null })),
  quarantined('100,000 brackets', '['.repeat(100_000)),
  quarantined('a product event without a product', { event: 'product.restocked', data: {} }),
  applied('markup in fields', orderEvent({ status: '<img src=x onerror=alert(1)>', note: 'javascript:alert(1)' })),
]

describe('a body, validly signed', () => {
  test.each(rows)('$name', async ({ delivery, status = 200, state, after }) => {
    const endpoint = await openEndpoint()
    await addPurchase(endpoint.db, 1)
    const answer = await endpoint.deliver(delivery)
    expect(answer?.status).toBe(status)
    await endpoint.process()

    const stored = await endpoint.rows()
    expect(stored.map((row) => row.state)).toEqual(state === undefined ? [] : [state])
    for (const row of stored) {
      expect(endpoint.vault.open({ table: 'deliveries', row: row.id }, row.ciphertext, row.keyId)).toEqual(
        delivery.body,
      )
    }
    const [purchase] = await endpoint.purchases()
    expect(purchase?.refreshAt).toBe(state === 'applied' ? endpoint.clock.now : null)
    expect(purchase).toMatchObject({ state: 'accepted', version: 0 })
    expect(await endpoint.alerts()).toEqual(state === 'quarantined' ? ['delivery_quarantined'] : [])
    await after?.(endpoint)

    expect(answer?.text.length).toBeLessThan(1_024)
    expect(`${answer?.text}${endpoint.seen.lines.join('')}`).not.toContain(MARKER)
    expect((await endpoint.deliver(signedDelivery({ deliveryId: 'dlv_after' })))?.status).toBe(200)
  })
})
