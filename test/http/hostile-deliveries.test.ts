import { createHash, createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { TEST_NOW } from '../support/database.ts'
import {
  bytesOf,
  DIALECT,
  type HeaderLine,
  mac,
  orderEvent,
  SECRET,
  signedDelivery,
  timestampOf,
} from '../support/delivery.ts'
import { knock, type Row, refused } from '../support/hostile.ts'
import type { RawRequest } from '../support/raw-http.ts'
import { addPurchase } from '../support/webhook-endpoint.ts'

const SIGNATURE = DIALECT.signature.header
const TIMESTAMP = 'x-service-timestamp'
const DELIVERY_ID = 'x-service-delivery-id'
const NOW_TEXT = timestampOf(TEST_NOW)
const OTHER_SECRET = 'whsec_other_0123456789abcdef0123456789abcde'
const BODY = bytesOf(orderEvent())
const VALID = signedDelivery()
const HEX = mac(SECRET, NOW_TEXT, BODY).toString('hex')
const BASE64 = mac(SECRET, NOW_TEXT, BODY).toString('base64')

/** The valid delivery with header lines replaced; null takes one away, a list repeats it. */
function varied(change: Record<string, string | string[] | null>, body = BODY): RawRequest {
  const kept = VALID.headers.filter(([name]) => !(name in change))
  const lines = Object.entries(change).flatMap(([name, value]): HeaderLine[] =>
    [value ?? []].flat().map((text): HeaderLine => [name, text]),
  )
  return { headers: [...kept, ...lines], body }
}
const withSignature = (text: string, body = BODY): RawRequest => varied({ [SIGNATURE]: text }, body)
/** Signed over a timestamp as it is written, whatever it is. */
const at = (timestamp: string): RawRequest => signedDelivery({ timestamp })
const hmac = (algorithm: string, secret: string, text: string | Buffer): string =>
  createHmac(algorithm, secret).update(text).digest('hex')

const layout = (signature: Partial<Dialect['signature']>): Dialect => ({
  ...DIALECT,
  signature: { ...DIALECT.signature, ...signature },
})
const BASE64_DIALECT = layout({ encoding: 'base64' })
const BASE64URL_DIALECT = layout({ encoding: 'base64url' })
const LISTED_DIALECT = layout({ prefix: 'v1=', timestamp: { in: 'signature', field: 't' } })
const MS_DIALECT = layout({ timestampUnit: 'ms' })

const listed = (text: string): RawRequest => ({ headers: [[SIGNATURE, text]], body: BODY })

const signatureRows: Row[] = [
  { name: 'a valid delivery', requests: [VALID], status: 200, states: ['orphan'] },
  refused('no signature header', [varied({ [SIGNATURE]: null })]),
  refused('an empty signature header', [withSignature('')]),
  refused('the signature of another body', [withSignature(mac(SECRET, NOW_TEXT, bytesOf('{}')).toString('hex'))]),
  refused(
    'one bit of the body flipped',
    [0, 5, BODY.length - 1].map((place) => {
      const body = Buffer.from(BODY)
      body[place] = (body[place] as number) ^ 1
      return withSignature(HEX, body)
    }),
  ),
  refused(
    'each of the 256 bits of the signature flipped',
    Array.from({ length: 256 }, (_, bit) => {
      const bytes = Buffer.from(HEX, 'hex')
      bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
      return withSignature(bytes.toString('hex'))
    }),
  ),
  refused('another secret', [signedDelivery({ secret: OTHER_SECRET })]),
  refused('an HMAC with an empty key', [signedDelivery({ secret: '' })]),
  refused('a MAC over the body only', [withSignature(hmac('sha256', SECRET, BODY))]),
  refused('timestamp and body in another order, without a dot, or with a colon', [
    withSignature(hmac('sha256', SECRET, `${BODY}.${NOW_TEXT}`)),
    withSignature(hmac('sha256', SECRET, `${NOW_TEXT}${BODY}`)),
    withSignature(hmac('sha256', SECRET, `${NOW_TEXT}:${BODY}`)),
  ]),
  refused('other digests and a plain hash', [
    withSignature(hmac('sha1', SECRET, `${NOW_TEXT}.${BODY}`)),
    withSignature(hmac('sha512', SECRET, `${NOW_TEXT}.${BODY}`)),
    withSignature(createHash('sha256').update(`${SECRET}${NOW_TEXT}.${BODY}`).digest('hex')),
  ]),
  refused(
    'the signature cut to every length from 0 to 31 bytes',
    Array.from({ length: 32 }, (_, length) => withSignature(HEX.slice(0, length * 2))),
  ),
  refused('a prefix and nothing after it', [withSignature('v1,'), withSignature('v1='), withSignature('sha256=')]),
  refused('junk after the hex digits', [withSignature(`${HEX}zz`), withSignature(`${HEX}a`)]),
  refused(
    'junk after or inside base64',
    [
      `${BASE64}AAAA`,
      ` ${BASE64.slice(0, 9)} ${BASE64.slice(9)}`,
      `${BASE64}*$!`,
      `${BASE64.slice(0, 9)}*$!${BASE64.slice(9)}`,
      BASE64.replace('=', ''),
      BASE64.replace('=', '=='),
    ].map((text) => withSignature(text)),
    { options: { dialect: BASE64_DIALECT } },
  ),
  refused('base64 where hex is expected', [withSignature(BASE64)]),
  refused(
    'hex or base64url where base64 is expected',
    [withSignature(HEX), withSignature(Buffer.from(HEX, 'hex').toString('base64url'))],
    { options: { dialect: BASE64_DIALECT } },
  ),
  refused('base64 where base64url is expected', [withSignature(BASE64)], { options: { dialect: BASE64URL_DIALECT } }),
  {
    name: 'base64',
    options: { dialect: BASE64_DIALECT },
    requests: [withSignature(BASE64)],
    status: 200,
    states: ['orphan'],
  },
  {
    name: 'upper-case hex: the same bytes, so the same row',
    requests: [VALID, withSignature(HEX.toUpperCase())],
    status: 200,
    states: ['orphan'],
  },
  refused('the signature header twice', [
    varied({ [SIGNATURE]: [HEX, 'junk'] }),
    varied({ [SIGNATURE]: ['junk', HEX] }),
    varied({ [SIGNATURE]: [HEX, HEX] }),
    withSignature(`${HEX}, junk`),
  ]),
  refused(
    'six candidates, and as many as a header holds',
    [6, 200].map((count) => listed(`t=${NOW_TEXT},${`v1=${HEX},`.repeat(count).slice(0, -1)}`)),
    { options: { dialect: LISTED_DIALECT } },
  ),
  {
    name: 'five candidates, the last one right',
    options: { dialect: LISTED_DIALECT },
    requests: [listed(`t=${NOW_TEXT},${`v1=${'0'.repeat(64)},`.repeat(4)}v1=${HEX}`)],
    status: 200,
    states: ['orphan'],
  },
  refused(
    'a list with nothing in it',
    ['v1=', '=', ',', `t=${NOW_TEXT}`, 't=', `v1=${HEX}`, `t=${NOW_TEXT},t=${NOW_TEXT},v1=${HEX}`].map(listed),
    { options: { dialect: LISTED_DIALECT } },
  ),
  refused('only an older scheme', [listed(`t=${NOW_TEXT},v0=${HEX}`)], { options: { dialect: LISTED_DIALECT } }),
  refused('the signature in the query or a cookie', [
    { ...varied({ [SIGNATURE]: null }), target: `/webhooks/supplier?${SIGNATURE}=${HEX}` },
    varied({ [SIGNATURE]: null, cookie: `${SIGNATURE}=${HEX}` }),
  ]),
  refused('the signature in a trailer', [{ ...varied({ [SIGNATURE]: null }), trailers: [[SIGNATURE, HEX]] }]),
  {
    name: 'the old webhook while a new one takes over, and after: answered and counted',
    options: { webhooks: { '': SECRET, next: OTHER_SECRET } },
    requests: [
      VALID,
      { ...signedDelivery({ secret: OTHER_SECRET, deliveryId: 'dlv_2' }), target: '/webhooks/supplier/next' },
    ],
    status: 200,
    states: ['orphan', 'orphan'],
    after: ({ seen }) => {
      expect(seen.counts).toContain('stored:replaced_webhook')
      expect(seen.counts).toContain('stored')
    },
  },
  refused(
    'a delivery of one webhook sent to another',
    [
      { ...VALID, target: '/webhooks/supplier/next' },
      { ...VALID, target: '/webhooks/supplier/none' },
      signedDelivery({ secret: OTHER_SECRET }),
    ],
    { options: { webhooks: { '': SECRET, next: OTHER_SECRET } } },
  ),
  refused('a callback of ours, reflected', [
    {
      headers: [
        ['webhook-id', 'msg_1'],
        ['webhook-timestamp', NOW_TEXT],
        ['webhook-signature', `v1,${BASE64}`],
      ],
      body: BODY,
    },
    // The same, dressed up as a delivery: callbacks have keys of their own.
    signedDelivery({ secret: 'callback_key_0123456789abcdef0123456789' }),
  ]),
]

const seconds = TEST_NOW / 1_000
const timestampRows: Row[] = [
  refused('no timestamp', [varied({ [TIMESTAMP]: null })]),
  {
    ...refused(
      '301 s old, three different ones: counted as stale, one early sweep a minute, the body not read',
      async (endpoint) => {
        const answers = [await endpoint.send(at(String(seconds - 301))), await endpoint.send(at(String(seconds - 302)))]
        endpoint.clock.now += 60_000
        return [...answers, await endpoint.send(at(String(seconds - 303)))]
      },
    ),
    alerts: ['all_stale'],
    after: ({ seen }) => {
      expect(seen.counts.filter((count) => count === 'stale:stale')).toHaveLength(3)
      expect(seen.earlySweeps).toBe(2)
    },
  },
  { name: '299 s old', requests: [at(String(seconds - 299))], status: 200, states: ['orphan'] },
  { name: '300 s old', requests: [at(String(seconds - 300))], status: 200, states: ['orphan'] },
  refused('301 s ahead', [at(String(seconds + 301))]),
  { name: '299 s ahead', requests: [at(String(seconds + 299))], status: 200, states: ['orphan'] },
  refused(
    'no number, with a MAC that is correct over it',
    [
      'NaN',
      'abc',
      `${seconds}abc`,
      `${seconds}.999`,
      `${seconds}.0`,
      `+${seconds}`,
      `0${seconds}`,
      `0x${seconds.toString(16)}`,
      '0o17',
      '1.7e9',
      '1,700,000,000',
      '-1',
      '-0',
      '0',
      `-${seconds}`,
      '',
      '٠١٢٣٤٥٦٧٨٩',
    ].map((text) => at(text)),
  ),
  refused(
    'numbers that are no instant',
    [
      '1'.repeat(20),
      '9007199254740993',
      '9223372036854775808',
      'Infinity',
      '1e400',
      '9'.repeat(64),
      '9'.repeat(5_000),
    ].map((text) => at(text)),
  ),
  refused('milliseconds where seconds are expected', [at(String(TEST_NOW))]),
  refused('seconds where milliseconds are expected', [at(String(seconds))], { options: { dialect: MS_DIALECT } }),
  {
    name: 'milliseconds',
    options: { dialect: MS_DIALECT },
    requests: [at(String(TEST_NOW))],
    status: 200,
    states: ['orphan'],
  },
  refused('two timestamp headers', [
    varied({ [TIMESTAMP]: [NOW_TEXT, NOW_TEXT] }),
    varied({ [TIMESTAMP]: [NOW_TEXT, '0'] }),
  ]),
  ...[-1, 1].map((direction): Row => {
    const word = direction > 0 ? 'ahead' : 'behind'
    return {
      ...refused(`a clock of ours 10 minutes ${word}: one alert, degraded, and early sweeps`, async (endpoint) => {
        endpoint.clock.now += direction * 600_000
        const bodies = [1, 2, 3, 4, 5].map((n) => orderEvent({ order_id: `ord_1${n}` }))
        return Promise.all(bodies.map((body) => endpoint.send(signedDelivery({ body }))))
      }),
      alerts: ['all_stale'],
      after: async (endpoint) => {
        const ready = await endpoint.send({ method: 'GET', target: '/readyz' })
        expect(ready?.status).toBe(200)
        expect(JSON.parse(ready?.body ?? '')).toMatchObject({ status: 'degraded', notes: ['clock_suspect'] })
        expect(endpoint.seen.earlySweeps).toBe(1)
        endpoint.clock.now -= direction * 600_000
        await endpoint.deliver(signedDelivery())
        expect(endpoint.inbox.clockSuspect()).toBe(false)
      },
    }
  }),
]

const replayRows: Row[] = [
  {
    name: 'an exact replay in the window: one row, one effect',
    before: ({ db }) => addPurchase(db, 1),
    requests: async (endpoint) => {
      const first = await endpoint.deliver(VALID)
      await endpoint.process()
      return [first, await endpoint.deliver(VALID)]
    },
    status: 200,
    states: ['applied'],
    hinted: ['purchase_1'],
    after: ({ seen }) => {
      expect(seen.counts).toContain('duplicate')
      expect(seen.wakes.filter((pump) => pump === 'refresh')).toHaveLength(1)
    },
  },
  {
    name: 'the same signed bytes under a new delivery ID',
    before: ({ db }) => addPurchase(db, 1),
    requests: [VALID, signedDelivery({ deliveryId: 'dlv_2' }), signedDelivery({ deliveryId: null })],
    status: 200,
    states: ['applied'],
    hinted: ['purchase_1'],
  },
  {
    name: 'a used delivery ID with another authentic body: both applied, one alert',
    before: async ({ db }) => {
      await addPurchase(db, 1)
      await addPurchase(db, 2)
    },
    requests: [VALID, signedDelivery({ body: orderEvent({ order_id: 'ord_2', external_order_id: 'ref_2' }) })],
    status: 200,
    states: ['applied', 'applied'],
    hinted: ['purchase_1', 'purchase_2'],
    alerts: ['id_conflict'],
  },
  {
    name: '100 identical ones at once: one row, one effect',
    before: ({ db }) => addPurchase(db, 1),
    requests: (endpoint) => Promise.all(Array.from({ length: 100 }, () => endpoint.deliver(VALID))),
    status: 200,
    states: ['applied'],
    hinted: ['purchase_1'],
    after: ({ seen }) => expect(seen.counts.filter((count) => count === 'stored')).toHaveLength(1),
  },
  refused('one that was never stored, after the window', async (endpoint) => {
    endpoint.clock.now += 301_000
    return [await endpoint.deliver(VALID)]
  }),
  {
    name: 'a replay after the window of one that was stored',
    requests: async (endpoint) => {
      const first = await endpoint.deliver(VALID)
      endpoint.clock.now += 301_000
      return [first, await endpoint.deliver(VALID)]
    },
    status: 200,
    states: ['orphan'],
    after: ({ seen }) => expect(seen.earlySweeps).toBe(0),
  },
  {
    name: 'failed after completed: a hint each time, the state as it was',
    before: ({ db }) => addPurchase(db, 1, { state: 'completed' }),
    requests: [VALID, signedDelivery({ deliveryId: 'dlv_2', body: orderEvent({ status: 'failed' }, 'order.failed') })],
    status: 200,
    states: ['applied', 'applied'],
    hinted: ['purchase_1'],
    after: async (endpoint) => {
      expect((await endpoint.purchases()).map(({ state }) => state)).toEqual(['completed'])
    },
  },
  {
    name: 'completed before the answer to the POST: joined by the external reference',
    before: ({ db }) =>
      addPurchase(db, 1, { state: 'sending', supplierOrderId: null, leaseOwner: 'w', leaseUntil: TEST_NOW + 9 }),
    requests: [VALID],
    status: 200,
    states: ['applied'],
    hinted: ['purchase_1'],
    after: async (endpoint) => {
      expect(await endpoint.purchases()).toMatchObject([
        { state: 'sending', supplierOrderId: null, leaseOwner: 'w', version: 0 },
      ])
    },
  },
  {
    name: 'an unknown order id',
    before: ({ db }) => addPurchase(db, 2),
    requests: [VALID],
    status: 200,
    states: ['orphan'],
  },
  {
    name: 'an event of an unknown type',
    requests: [signedDelivery({ body: { event: 'order.exploded', data: { order_id: 'ord_1' } } })],
    status: 200,
    states: ['ignored'],
  },
  {
    name: 'the foreseen events: read from the supplier, never believed',
    requests: ['product.restocked', 'product.out_of_stock', 'product.price_changed', 'balance.low'].map((event, n) =>
      signedDelivery({ deliveryId: `dlv_${n}`, body: { event, data: { product_id: 'prod_1', api_price: '0.01' } } }),
    ),
    status: 200,
    states: ['applied', 'applied', 'applied', 'applied'],
    alerts: ['balance_low'],
    after: ({ seen }) => {
      expect(seen.refreshed).toEqual(['prod_1'])
      expect(seen.balanceReads).toBe(1)
    },
  },
  {
    name: 'no delivery ID: the digest of what was signed stands for it',
    requests: [signedDelivery({ deliveryId: null }), signedDelivery({ deliveryId: null })],
    status: 200,
    states: ['orphan'],
    after: async (endpoint) => {
      const digest = createHash('sha256').update(`${NOW_TEXT}.${BODY}`).digest('hex')
      expect(await endpoint.rows()).toMatchObject([{ deliveryId: digest }])
    },
  },
  {
    name: 'the same ID and body signed again a week later',
    requests: async (endpoint) => {
      const first = await endpoint.deliver(VALID)
      endpoint.clock.now += 7 * 86_400_000
      return [first, await endpoint.deliver(signedDelivery({ timestamp: timestampOf(endpoint.clock.now) }))]
    },
    status: 200,
    states: ['ignored'],
  },
  {
    name: 'the external reference of another line: left alone, and reported',
    before: async ({ db }) => {
      await addPurchase(db, 1)
      await addPurchase(db, 2)
    },
    requests: [signedDelivery({ body: orderEvent({ order_id: 'ord_1', external_order_id: 'ref_2' }) })],
    status: 200,
    states: ['orphan'],
    alerts: ['order_mismatch'],
  },
  {
    name: 'an order of ours under the reference of a stranger, and the reverse',
    before: async ({ db }) => {
      await addPurchase(db, 1)
      await addPurchase(db, 2)
    },
    requests: [
      signedDelivery({ body: orderEvent({ order_id: 'ord_1', external_order_id: 'ref_of_a_stranger' }) }),
      signedDelivery({
        deliveryId: 'dlv_2',
        body: orderEvent({ order_id: 'ord_of_a_stranger', external_order_id: 'ref_2' }),
      }),
    ],
    status: 200,
    states: ['orphan', 'orphan'],
    alerts: ['order_mismatch', 'order_mismatch'],
  },
  refused('a delivery ID twice', [varied({ [DELIVERY_ID]: ['dlv_1', 'dlv_2'] })]),
  {
    name: 'a delivery ID of 10 KB, empty, with blanks or beyond ASCII: the digest of what was signed stands for it',
    before: ({ db }) => addPurchase(db, 1),
    requests: ['d'.repeat(10_240), '', 'dlv 1', 'dlv_\xe9', 'd'.repeat(201)].map((id) => varied({ [DELIVERY_ID]: id })),
    status: 200,
    states: ['applied'],
    hinted: ['purchase_1'],
    after: async (endpoint) => {
      const digest = createHash('sha256').update(`${NOW_TEXT}.${BODY}`).digest('hex')
      expect(await endpoint.rows()).toMatchObject([{ deliveryId: digest }])
    },
  },
]

describe.each([
  ['signature', signatureRows],
  ['timestamp', timestampRows],
  ['replay, duplicates and order', replayRows],
])('the endpoint against: %s', (_subject, rows) => {
  test.each(rows)('$name', (row) => knock(row, [OTHER_SECRET, HEX, BASE64, 'created_at', 'dlv_']))
})
