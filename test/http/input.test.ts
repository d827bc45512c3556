import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { check, orderBody, orderDigest, orderInput } from '../../src/http/input.ts'
import { audit, purchases, storeOrders, tokens } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { type Ask, openApi } from '../support/api-world.ts'

const line = { id: '1', sku: 'A', quantity: 1 }
const order = (change: object) => ({ reference: '1001', lines: [line], ...change })
const withLine = (change: object) => order({ lines: [{ ...line, ...change }] })
const bytes = (text: string) => new TextEncoder().encode(text)

/** What is wrong -> the body, and the field that the answer must name. */
const badOrders: [string, unknown, string][] = [
  ['no body', undefined, 'reference'],
  ['a list', [], 'body'],
  ['a text', 'order', 'body'],
  ['null', null, 'body'],
  ['no reference', { lines: [line] }, 'reference'],
  ['an empty reference', order({ reference: '' }), 'reference'],
  ['a blank reference', order({ reference: ' ' }), 'reference'],
  ['a reference that ends in a space', order({ reference: '1001 ' }), 'reference'],
  ['an invisible reference', order({ reference: '\u200b' }), 'reference'],
  ['a reference with a zero-width space in it', order({ reference: '10\u200b01' }), 'reference'],
  ['a reference that is written right to left', order({ reference: '10\u202e01' }), 'reference'],
  ['a line id that is written right to left', withLine({ id: '1\u202e2' }), 'lines.0.id'],
  ['a reference of dots', order({ reference: '..' }), 'reference'],
  ['a reference of 201 characters', order({ reference: 'x'.repeat(201) }), 'reference'],
  ['a reference with a line break', order({ reference: 'a\nb' }), 'reference'],
  ['a reference with a null character', order({ reference: 'a\0b' }), 'reference'],
  ['a reference with half a character', order({ reference: 'a\ud800b' }), 'reference'],
  ['a number as reference', order({ reference: 1001 }), 'reference'],
  ['an unknown field', order({ note: 'x' }), 'note'],
  ['a misspelt field of a line', withLine({ qty: 2 }), 'lines.0.qty'],
  ['no lines', order({ lines: undefined }), 'lines'],
  ['an empty list of lines', order({ lines: [] }), 'lines'],
  ['101 lines', order({ lines: Array.from({ length: 101 }, (_, place) => ({ ...line, id: `${place}` })) }), 'lines'],
  ['a line that is no object', order({ lines: [1] }), 'lines.0'],
  ['two lines with one id', order({ lines: [line, line] }), 'lines.1.id'],
  ['no SKU', withLine({ sku: undefined }), 'lines.0.sku'],
  ['a SKU of 101 characters', withLine({ sku: 'x'.repeat(101) }), 'lines.0.sku'],
  ['quantity 0', withLine({ quantity: 0 }), 'lines.0.quantity'],
  ['quantity -1', withLine({ quantity: -1 }), 'lines.0.quantity'],
  ['quantity 1.5', withLine({ quantity: 1.5 }), 'lines.0.quantity'],
  ['quantity 10,001', withLine({ quantity: 10_001 }), 'lines.0.quantity'],
  ['quantity as text', withLine({ quantity: '1' }), 'lines.0.quantity'],
  ['a huge quantity', withLine({ quantity: 1e308 }), 'lines.0.quantity'],
  ['a price as number', withLine({ unitPrice: 19.99, currency: 'EUR' }), 'lines.0.unitPrice'],
  ['a price with a comma', withLine({ unitPrice: '19,99', currency: 'EUR' }), 'lines.0.unitPrice'],
  ['a negative price', withLine({ unitPrice: '-1.00', currency: 'EUR' }), 'lines.0.unitPrice'],
  ['a price finer than its currency', withLine({ unitPrice: '19.999', currency: 'EUR' }), 'lines.0.unitPrice'],
  ['a price in yen with decimals', withLine({ unitPrice: '19.5', currency: 'JPY' }), 'lines.0.unitPrice'],
  ['a price without a currency', withLine({ unitPrice: '19.99' }), 'lines.0.currency'],
  ['a currency without a price', withLine({ currency: 'EUR' }), 'lines.0.unitPrice'],
  ['a currency in lower case', withLine({ unitPrice: '1', currency: 'eur' }), 'lines.0.currency'],
]

/** Requests that are wrong before their fields are looked at. */
const badRequests: [string, number, string, Ask][] = [
  ['no JSON', 400, 'invalid', { raw: '{"reference": "1001",}' }],
  ['half a JSON', 400, 'invalid', { raw: '{"reference": "10' }],
  ['bytes that are no UTF-8', 400, 'invalid', { raw: new Uint8Array([0x22, 0xff, 0x22]) }],
  [
    'JSON whose reference has a byte that is no UTF-8',
    400,
    'invalid',
    { raw: new Uint8Array(Buffer.from(JSON.stringify(order({ reference: '10\u00ff' })), 'latin1')) },
  ],
  [
    'a form',
    415,
    'unsupported_media_type',
    { raw: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
  ],
  ['text', 415, 'unsupported_media_type', { raw: '{}', headers: { 'content-type': 'text/plain' } }],
  [
    'another charset',
    415,
    'unsupported_media_type',
    { raw: '{}', headers: { 'content-type': 'application/json; charset=utf-16' } },
  ],
  [
    'a compressed body',
    415,
    'unsupported_media_type',
    { raw: new Uint8Array(gzipSync('{}')), headers: { 'content-encoding': 'gzip' } },
  ],
  // Read whole: it is its reference that is too long.
  ['a body of 256 KiB', 400, 'invalid', { raw: `{"reference":"${'x'.repeat(256 * 1024 - 16)}"}` }],
  ['a body of a byte more', 413, 'too_large', { raw: `{"reference":"${'x'.repeat(256 * 1024 - 15)}"}` }],
  ['a body over 256 KiB', 413, 'too_large', { raw: `{"reference":"${'x'.repeat(256 * 1024)}"}` }],
]

describe('a faulty order', () => {
  test.each(badOrders)('with %s is refused, its field is named and nothing is stored', async (_what, body, field) => {
    const world = await openApi()
    const answer = await world.ask('POST', '/orders', { token: world.tokens.store, body })
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ success: false, error: { code: 'invalid' } })
    expect(answer.body.error.fields?.map((fault) => fault.field)).toContain(field)
    expect(await world.db.query(build.select().from(storeOrders))).toEqual([])
    expect(await world.db.query(build.select().from(purchases))).toEqual([])
  })

  test.each(['00ad', '200b', '200d', '202e', '2066', '2800', '3164', 'fe0f', 'feff', 'e0041'])(
    'names the reference, or the id of a line, that has U+%s in it',
    (code) => {
      const hidden = `10${String.fromCodePoint(Number.parseInt(code, 16))}01`
      expect(() => check(orderBody, order({ reference: hidden }), 'body')).toThrow(/^reference: .*invisible/)
      expect(() => check(orderBody, withLine({ id: hidden }), 'body')).toThrow(/^lines\.0\.id: .*invisible/)
    },
  )

  test.each(badRequests)('as %s is refused with %i %s', async (_what, status, code, request) => {
    const world = await openApi()
    const answer = await world.ask('POST', '/orders', { token: world.tokens.store, ...request })
    expect(answer.status).toBe(status)
    expect(answer.body.error.code).toBe(code)
    expect(await world.db.query(build.select().from(storeOrders))).toEqual([])
  })

  test('has all its faults named at once, with what would be right', async () => {
    const world = await openApi()
    const body = { reference: '', lines: [{ id: '1', sku: '', quantity: 0 }] }
    const { body: answer } = await world.ask('POST', '/orders', { token: world.tokens.store, body })
    expect(answer.error.fields).toEqual([
      { field: 'reference', message: expect.stringContaining('1 to 200 characters') },
      { field: 'lines.0.sku', message: expect.stringContaining('1 to 100 characters') },
      { field: 'lines.0.quantity', message: 'must be a whole number from 1 to 10000' },
    ])
  })

  test('cannot reach the prototype of anything', async () => {
    const world = await openApi()
    const raw = '{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"reference":"1","lines":[]}'
    const answer = await world.ask('POST', '/orders', { token: world.tokens.store, raw })
    expect(answer.status).toBe(400)
    expect(answer.body.error.fields?.map((fault) => fault.field)).toContain('__proto__')
    expect(Object.hasOwn(Object.prototype, 'admin')).toBe(false)
  })

  test('says where its JSON breaks', async () => {
    const world = await openApi()
    const answer = await world.ask('POST', '/orders', { token: world.tokens.store, raw: '{"reference": "1001",}' })
    expect(answer.body.error.message).toContain('position 21')
  })
})

describe('the digest of an order', () => {
  const digest = (body: object) => orderDigest(orderInput(check(orderBody, body, 'body')))
  const priced = { ...line, unitPrice: '19.90', currency: 'EUR' }

  test('is the same for the same order in another sequence and notation', () => {
    const other = { lines: [{ currency: 'EUR', unitPrice: '19.9', quantity: 1, sku: 'A', id: '1' }], reference: '1001' }
    expect(digest(other)).toBe(digest(order({ lines: [priced] })))
    const second = { ...line, id: '2' }
    expect(digest(order({ lines: [line, second] }))).toBe(digest(order({ lines: [second, line] })))
  })

  test.each([
    ['reference', order({ reference: '1002', lines: [priced] })],
    ['line id', order({ lines: [{ ...priced, id: '2' }] })],
    ['SKU', order({ lines: [{ ...priced, sku: 'B' }] })],
    ['quantity', order({ lines: [{ ...priced, quantity: 2 }] })],
    ['price', order({ lines: [{ ...priced, unitPrice: '19.91' }] })],
    ['currency', order({ lines: [{ ...priced, currency: 'USD' }] })],
    ['number of lines', order({ lines: [priced, { ...line, id: '2' }] })],
  ])('differs with another %s', (_what, body) => {
    expect(digest(body)).not.toBe(digest(order({ lines: [priced] })))
  })
})

describe('other faulty input', () => {
  const cases: [string, string, unknown, string][] = [
    ['GET', '/orders?limit=0', undefined, 'limit'],
    ['GET', '/orders?limit=201', undefined, 'limit'],
    ['GET', '/orders?limit=ten', undefined, 'limit'],
    ['GET', '/orders?before=%00', undefined, 'before'],
    ['GET', '/orders?befor=1', undefined, 'befor'],
    ['GET', '/orders?store=a&store=b', undefined, 'store'],
    ['GET', '/purchases?state=lost', undefined, 'state'],
    ['GET', '/deliveries?state=lost', undefined, 'state'],
    ['GET', '/outbox?kind=letter', undefined, 'kind'],
    ['GET', '/deliveries/x?reveal=yes', undefined, 'reveal'],
    ['POST', '/freeze', {}, 'reason'],
    ['POST', '/freeze', { reason: '' }, 'reason'],
    ['POST', '/unfreeze', {}, 'causes'],
    ['POST', '/unfreeze', { causes: [] }, 'causes'],
    ['POST', '/webhooks', { url: 'ftp://x' }, 'url'],
    ['POST', '/webhooks', {}, 'url'],
    ['POST', '/tokens', { name: 'x', role: 'root' }, 'role'],
    ['POST', '/tokens', { name: 'x', role: 'store', scopes: ['orders'] }, 'store'],
    ['POST', '/tokens', { name: 'x', role: 'store', store: 'nowhere-12345678', scopes: ['orders'] }, 'store'],
    ['POST', '/tokens', { name: 'x', role: 'store', store: 'demo-ab12cd34' }, 'scopes'],
    ['POST', '/tokens', { name: 'x', role: 'admin', scopes: ['keys'] }, 'scopes'],
    ['POST', '/tokens', { name: 'x', role: 'viewer', expiresInDays: 0 }, 'expiresInDays'],
  ]

  test.each(cases)('%s %s %j names the field %s and changes nothing', async (method, path, body, field) => {
    const world = await openApi()
    const before = await world.db.query(build.select().from(tokens))
    const audited = await world.db.query(build.select().from(audit))
    const answer = await world.ask(method, path, { body })
    expect(answer.status).toBe(400)
    expect(answer.body.error.fields?.map((fault) => fault.field)).toContain(field)
    expect(await world.db.query(build.select().from(tokens))).toEqual(before)
    expect(await world.db.query(build.select().from(audit))).toEqual(audited)
  })

  test('an address that cannot be decoded is refused', async () => {
    const world = await openApi()
    const answer = await world.ask('GET', '/orders/%E0%A4%A')
    expect(answer.status).toBe(400)
    expect(bytes(JSON.stringify(answer.body)).length).toBeLessThan(300)
  })

  test('another method at a known path is answered 405 with those that it has', async () => {
    const world = await openApi()
    const answer = await world.ask('DELETE', '/orders')
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe('POST, GET, HEAD')
  })

  test('OPTIONS of the description is refused, not answered by the router itself', async () => {
    const world = await openApi()
    for (const path of ['/openapi.json', '/docs']) {
      const answer = await fetch(`${world.url}/api/v1${path}`, { method: 'OPTIONS' })
      expect([answer.status, answer.headers.get('allow')], path).toEqual([405, 'GET, HEAD'])
      expect(await answer.json(), path).toMatchObject({ error: { code: 'method_not_allowed' } })
    }
  })
})
