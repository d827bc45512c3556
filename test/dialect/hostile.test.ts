import { createHash, createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { TEST_NOW } from '../support/database.ts'
import { bytesOf, type HeaderLine, MARKER, mac, SECRET, signedDelivery } from '../support/delivery.ts'
import { contrary } from '../support/dialect-pair.ts'
import { knock, type Row, refused } from '../support/hostile.ts'
import type { RawRequest } from '../support/raw-http.ts'
import { addPurchase } from '../support/webhook-endpoint.ts'

/**
 * The hostile deliveries of the default layout, once more where the timestamp is inside the signature header, in
 * milliseconds, and the signature is base64 behind a prefix.
 */
const NOW = String(TEST_NOW)
const OTHER_SECRET = 'whsec_other_0123456789abcdef0123456789abcde'
const event = (order: Record<string, unknown> = {}, happening = 'ORDER_SERVED') => ({
  happening,
  nr: 'evt_1',
  happened: TEST_NOW,
  order: {
    nr: 'ord_1',
    your_ref: 'ref_1',
    phase: 'SERVED',
    codes: [{ letters: 'AAAAA-BBBBB' }],
    note: MARKER,
    ...order,
  },
})
const BODY = bytesOf(event())
const MAC = mac(SECRET, NOW, BODY)
const BASE64 = MAC.toString('base64')
const sign = (parts: Parameters<typeof signedDelivery>[0] = {}) =>
  signedDelivery({ dialect: contrary, body: event(), ...parts })
const VALID = sign()
/** The valid delivery with another signature header; a list repeats it, null takes it away. */
const signed = (text: string | string[] | null, body = BODY): RawRequest => ({
  headers: [...[text ?? []].flat().map((one): HeaderLine => ['x-signed', one]), ['x-message', 'msg_1']],
  body,
})
const v1 = (text: string, timestamp = NOW) => signed(`t=${timestamp},v1=${text}`)
/** Signed over a timestamp as it is written, whatever it is. */
const at = (timestamp: string): RawRequest => sign({ timestamp })
const hmac = (secret: string, text: string, algorithm = 'sha256') =>
  createHmac(algorithm, secret).update(text).digest('base64')
const signatureRows: Row[] = [
  { name: 'a valid delivery', requests: [VALID], status: 200, states: ['orphan'] },
  refused('no signature header, or an empty one', [signed(null), signed(''), signed(['', ''])]),
  refused('a bit of the body flipped', [signed(`t=${NOW},v1=${BASE64}`, Buffer.from(`${BODY} `))]),
  refused(
    'each of the 256 bits of the signature flipped',
    Array.from({ length: 256 }, (_, bit) => {
      const bytes = Buffer.from(MAC)
      bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
      return v1(bytes.toString('base64'))
    }),
  ),
  refused('another secret, or an empty one', [sign({ secret: OTHER_SECRET }), sign({ secret: '' })]),
  refused('a MAC over something else', [
    v1(hmac(SECRET, `${BODY}`)),
    v1(hmac(SECRET, `${NOW}${BODY}`)),
    v1(hmac(SECRET, `${BODY}.${NOW}`)),
    v1(hmac(SECRET, `${NOW}:${BODY}`)),
    v1(hmac(SECRET, `${TEST_NOW / 1_000}.${BODY}`)),
    v1(hmac(SECRET, `${NOW}.${BODY}`, 'sha512')),
    v1(createHash('sha256').update(`${SECRET}${NOW}.${BODY}`).digest('base64')),
  ]),
  refused(
    'a signature cut to every length',
    Array.from({ length: 32 }, (_, length) => v1(MAC.subarray(0, length).toString('base64'))),
  ),
  refused('junk after or inside base64, and other encodings', [
    v1(`${BASE64}AAAA`),
    v1(`${BASE64}zz`),
    v1(`${BASE64.slice(0, 9)} ${BASE64.slice(9)}`),
    v1(BASE64.replace('=', '')),
    v1(BASE64.replace('=', '==')),
    v1(MAC.toString('hex')),
    v1(MAC.toString('base64url')),
  ]),
  refused('no prefix, another one, or nothing after it', [
    signed(`t=${NOW},${BASE64}`),
    signed(`t=${NOW},v0=${BASE64}`),
    signed(`t=${NOW},V1=${BASE64}`),
    signed(`t=${NOW},v1=`),
    signed(`t=${NOW}`),
    signed(`v1=${BASE64}`),
    signed(','),
  ]),
  refused('the header twice, or other separators', [
    signed([`t=${NOW},v1=${BASE64}`, `t=${NOW},v1=${BASE64}`]),
    signed([`t=${NOW},v1=${BASE64}`, 'junk']),
    signed(`t=${NOW};v1=${BASE64}`),
    signed(`t=${NOW} v1=${BASE64}`),
  ]),
  refused('six candidates', [signed(`t=${NOW},${`v1=${BASE64},`.repeat(6).slice(0, -1)}`)]),
  {
    name: 'five candidates, the last one right, and an older scheme',
    requests: [signed(`v0=old,t=${NOW},${`v1=${'A'.repeat(43)}=,`.repeat(4)}v1=${BASE64}`)],
    status: 200,
    states: ['orphan'],
  },
  refused('the layout of the default dialect', [signedDelivery({ body: event() }), signedDelivery()]),
  refused('a delivery of one webhook sent to another', [{ ...VALID, target: '/webhooks/supplier/next' }], {
    options: { webhooks: { '': SECRET, next: OTHER_SECRET } },
  }),
]

const timestampRows: Row[] = [
  refused(
    'stale by a millisecond, either way: counted, with one early sweep',
    [at(String(TEST_NOW - 120_001)), at(String(TEST_NOW + 120_001))],
    {
      after: ({ seen }) => {
        expect(seen.counts.filter((count) => count === 'stale:stale')).toHaveLength(2)
        expect(seen.earlySweeps).toBe(1)
      },
    },
  ),
  { name: 'as old as may be', requests: [at(String(TEST_NOW - 120_000))], status: 200, states: ['orphan'] },
  refused('two timestamps, or one besides the header', [
    signed(`t=${NOW},t=${NOW},v1=${BASE64}`),
    {
      headers: [
        ['x-signed', `v1=${BASE64}`],
        ['x-service-timestamp', NOW],
      ],
      body: BODY,
    },
  ]),
  refused(
    'no instant in milliseconds, with a MAC that is correct over it',
    [
      ...[String(TEST_NOW / 1_000), '', '0', '-1', `-${NOW}`, `+${NOW}`, `0${NOW}`, `${NOW}.0`, `${NOW}abc`, 'NaN'],
      ...['1.7e12', '0x18bcfe56800', '9'.repeat(13).padEnd(20, '9'), 'Infinity', '9'.repeat(64), '9'.repeat(900)],
    ].map(at),
  ),
]

const replayRows: Row[] = [
  {
    name: 'an exact replay, and the same bytes under another ID: one row, one effect',
    before: ({ db }) => addPurchase(db, 1),
    requests: [VALID, VALID, sign({ deliveryId: 'msg_2' }), sign({ deliveryId: null })],
    status: 200,
    states: ['applied'],
    hinted: ['purchase_1'],
  },
  {
    name: 'a used ID with another authentic body: both applied, one alert',
    before: async ({ db }) => {
      await addPurchase(db, 1)
      await addPurchase(db, 2)
    },
    requests: [VALID, sign({ body: event({ nr: 'ord_2', your_ref: 'ref_2' }) })],
    status: 200,
    states: ['applied', 'applied'],
    hinted: ['purchase_1', 'purchase_2'],
    alerts: ['id_conflict'],
  },
  {
    name: '100 identical ones at once',
    before: ({ db }) => addPurchase(db, 1),
    requests: (endpoint) => Promise.all(Array.from({ length: 100 }, () => endpoint.deliver(VALID))),
    status: 200,
    states: ['applied'],
    hinted: ['purchase_1'],
  },
  refused('a replay after the window', async (endpoint) => {
    endpoint.clock.now += 120_001
    return [await endpoint.deliver(VALID)]
  }),
  {
    name: 'the words of the default dialect: unknown, or not readable',
    requests: [
      sign({ deliveryId: 'a', body: event({}, 'order.completed') }),
      sign({ deliveryId: 'b', body: { event: 'order.completed', data: { order_id: 'ord_1' } } }),
    ],
    status: 200,
    states: ['ignored', 'quarantined'],
    alerts: ['delivery_quarantined'],
  },
  {
    name: 'failed after completed: a hint each time, the state as it was',
    before: ({ db }) => addPurchase(db, 1, { state: 'completed' }),
    requests: [VALID, sign({ deliveryId: 'msg_2', body: event({ phase: 'BROKEN' }, 'ORDER_BROKEN') })],
    status: 200,
    states: ['applied', 'applied'],
    hinted: ['purchase_1'],
  },
  {
    name: 'the reference of another line: ignored, and reported',
    before: async ({ db }) => {
      await addPurchase(db, 1)
      await addPurchase(db, 2)
    },
    requests: [sign({ body: event({ your_ref: 'ref_2' }) })],
    status: 200,
    states: ['orphan'],
    alerts: ['order_mismatch'],
  },
  {
    name: 'the foreseen events: read from the supplier, never believed',
    requests: ['ARTICLE_BACK', 'ARTICLE_SOLD_OUT', 'ARTICLE_REPRICED', 'FUNDS_LOW'].map((happening) =>
      sign({ deliveryId: happening, body: { happening, article: { nr: 'prod_1' }, price: { vip: 1 } } }),
    ),
    status: 200,
    states: ['applied', 'applied', 'applied', 'applied'],
    alerts: ['balance_low'],
    after: ({ seen }) => expect(seen.refreshed).toEqual(['prod_1']),
  },
  refused('a delivery ID twice', [{ headers: [...VALID.headers, ['x-message', 'msg_2']], body: BODY }]),
  {
    name: 'a delivery ID with a space or endless: the ID of the event replaces it',
    before: ({ db }) => addPurchase(db, 1),
    requests: [sign({ deliveryId: 'msg 1' }), sign({ deliveryId: 'm'.repeat(1_000) })],
    status: 200,
    states: ['applied'],
    hinted: ['purchase_1'],
    after: async (endpoint) => expect(await endpoint.rows()).toMatchObject([{ deliveryId: 'evt_1' }]),
  },
]

describe.each([
  ['signature', signatureRows],
  ['timestamp', timestampRows],
  ['replay, duplicates and order', replayRows],
])('the endpoint under the contrary dialect against: %s', (_subject, rows) => {
  test.each(rows)('$name', (row) =>
    knock({ ...row, options: { dialect: contrary, ...row.options } }, [BASE64, 'AAAAA-BBBBB']),
  )
})
