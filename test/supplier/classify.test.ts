import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { disagreement } from '../../src/domain/purchase.ts'
import { answerClass } from '../../src/domain/supplier.ts'
import { classify, unreadIn } from '../../src/supplier/classify.ts'
import type { Exchange, Headers } from '../../src/supplier/request.ts'
import { dialect, otherDialect } from '../support/supplier-server.ts'

const expected = { externalOrderId: 'q1.s.1.1.1.1', productId: 'p1', quantity: 2 }
const order = {
  id: 'o1',
  external_order_id: 'q1.s.1.1.1.1',
  product_id: 'p1',
  quantity: 2,
  status: 'pending',
  amount: '12.50',
  currency: 'EUR',
  keys: [],
  created_at: '2026-01-02T03:04:05Z',
}

const answered = (status: number, body: unknown, headers: Headers = {}): Exchange => ({
  stage: 'answered',
  status,
  headers: { 'x-request-id': 'r1', ...headers },
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
})
const refused = (status: number, code: string, headers?: Headers) =>
  answered(status, { success: false, error: { code, message: 'no' }, request_id: 'r1' }, headers)
const toToken = (renewal: 'done' | 'away'): Exchange => ({
  stage: 'answered',
  status: 401,
  headers: {},
  body: Buffer.from(''),
  renewal,
})
const accepted = (change: object = {}, status = 201) =>
  answered(status, { success: true, data: { ...order, ...change } })
const judge = (exchange: Exchange, maybeCharged = false, under: Dialect = dialect) =>
  classify(exchange, { dialect: under, maybeCharged, expected, nowMs: 1_700_000_000_000 })

const N = (cause: string) => ({ outcome: 'not_executed', cause })
const B = (reason: string) => ({ outcome: 'rejected', reason })
const A = (cause: string, rejection = false) => ({ outcome: 'unknown', cause, rejection })

const html = '<html><body>502 Bad Gateway</body></html>'
const refusedRepeat = A('rejected_repeat', true)

describe('what an answer to POST /orders means', () => {
  it.each<[string, Exchange, object, object]>([
    // what, answer, while never charged, while maybe charged
    [
      'nothing was sent',
      { stage: 'not_sent', cause: 'ENOTFOUND', heldBack: false },
      N('unreachable'),
      N('unreachable'),
    ],
    [
      'nothing was sent, for there is no token',
      { stage: 'not_sent', cause: 'x', heldBack: false, refused: true },
      N('unauthorized'),
      N('unauthorized'),
    ],
    ['the caller held it back', { stage: 'not_sent', cause: 'x', heldBack: true }, N('held_back'), N('held_back')],
    ['429 with a code', refused(429, 'rate_limited'), N('rate_limited'), N('rate_limited')],
    ['429 of a proxy', answered(429, html), N('rate_limited'), N('rate_limited')],
    ['rate limited under another status', refused(403, 'rate_limited'), N('rate_limited'), N('rate_limited')],
    ['401', refused(401, 'unauthorized'), N('unauthorized'), refusedRepeat],
    ['401 without an envelope', answered(401, html), N('unauthorized'), refusedRepeat],
    ['401 to a token, renewed since', toToken('done'), N('token_ended'), refusedRepeat],
    ['401 to a token, the last one', toToken('away'), N('unreachable'), refusedRepeat],
    ['403', refused(403, 'forbidden'), N('unauthorized'), refusedRepeat],
    ['403 with a strange code', refused(403, 'banned'), N('unauthorized'), refusedRepeat],
    ['the unauthorized code under 400', refused(400, 'unauthorized'), N('unauthorized'), refusedRepeat],
    ['the forbidden code under 400', refused(400, 'forbidden'), N('unauthorized'), refusedRepeat],
    ['out of stock under 403', refused(403, 'out_of_stock'), B('out_of_stock'), refusedRepeat],
    ['out of stock', refused(409, 'out_of_stock'), B('out_of_stock'), refusedRepeat],
    ['out of stock under 422', refused(422, 'out_of_stock'), B('out_of_stock'), refusedRepeat],
    ['balance too low', refused(402, 'insufficient_balance'), B('balance'), refusedRepeat],
    ['limit exceeded', refused(422, 'limit_exceeded'), B('balance'), refusedRepeat],
    ['invalid request', refused(400, 'invalid_request'), B('other'), refusedRepeat],
    ['no such product', refused(404, 'not_found'), B('other'), refusedRepeat],
    ['an unknown code as a 4xx', refused(418, 'teapot'), B('other'), refusedRepeat],
    ['an unknown code as the last 4xx', refused(499, 'teapot'), B('other'), refusedRepeat],
    [
      'key used with other parameters',
      refused(409, 'idempotency_key_reused'),
      A('key_reused', true),
      A('key_reused', true),
    ],
    ['key reused under 422', refused(422, 'idempotency_key_reused'), A('key_reused', true), A('key_reused', true)],
    ['still in progress', refused(409, 'idempotency_in_progress'), A('in_progress'), A('in_progress')],
    ['409 with an unknown code', refused(409, 'conflict'), A('conflict'), A('conflict')],
    ['409 without an envelope', answered(409, html), A('conflict'), A('conflict')],
    ['404 without an envelope', answered(404, html), A('unreadable'), A('unreadable')],
    [
      'a 4xx whose flag says success',
      answered(400, { success: true, error: { code: 'x' } }),
      A('unreadable'),
      A('unreadable'),
    ],
    ['a 4xx without a flag', answered(400, { error: { code: 'x' } }), A('unreadable'), A('unreadable')],
    [
      'a 4xx whose code is a number',
      answered(400, { success: false, error: { code: 7 } }),
      A('unreadable'),
      A('unreadable'),
    ],
    ['an internal error under 400', refused(400, 'internal_error'), A('server_error'), A('server_error')],
    ['unavailable under 400', refused(400, 'unavailable'), A('server_error'), A('server_error')],
    ['408', refused(408, 'invalid_request'), A('unexpected_status'), A('unexpected_status')],
    ['425', refused(425, 'out_of_stock'), A('unexpected_status'), A('unexpected_status')],
    ['500 with an envelope', refused(500, 'internal_error'), A('server_error'), A('server_error')],
    ['500 that says out of stock', refused(500, 'out_of_stock'), A('server_error'), A('server_error')],
    ['502 of a proxy', answered(502, html), A('server_error'), A('server_error')],
    ['503', refused(503, 'unavailable', { 'retry-after': '5' }), A('server_error'), A('server_error')],
    ['504', answered(504, ''), A('server_error'), A('server_error')],
    ['524', answered(524, html), A('server_error'), A('server_error')],
    ['an unknown status', answered(799, '{}'), A('server_error'), A('server_error')],
    ['an order under 199', accepted({}, 199), A('unexpected_status'), A('unexpected_status')],
    ['304', answered(304, ''), A('unexpected_status'), A('unexpected_status')],
    ['307', answered(307, '', { location: 'http://x' }), A('unexpected_status'), A('unexpected_status')],
    ['a reset', { stage: 'lost', cause: 'ECONNRESET' }, A('ECONNRESET'), A('ECONNRESET')],
    [
      'a 429 that broke off',
      { stage: 'lost', cause: 'UND_ERR_SOCKET', status: 429 },
      A('UND_ERR_SOCKET'),
      A('UND_ERR_SOCKET'),
    ],
    ['an order', accepted(), { outcome: 'accepted', agrees: true }, { outcome: 'accepted', agrees: true }],
    ['an order under 200', accepted({}, 200), { outcome: 'accepted' }, { outcome: 'accepted' }],
    ['an order under 202', accepted({}, 202), { outcome: 'accepted' }, { outcome: 'accepted' }],
    ['an order under 299', accepted({}, 299), { outcome: 'accepted' }, { outcome: 'accepted' }],
    ['an unmapped status', accepted({ status: 'queued' }), { outcome: 'accepted' }, { outcome: 'accepted' }],
    ['204', answered(204, ''), A('unreadable'), A('unreadable')],
    ['a 200 of a proxy', answered(200, html), A('unreadable'), A('unreadable')],
    ['a truncated 201', answered(201, '{"success":true,"data":{"id":"o1"'), A('unreadable'), A('unreadable')],
    [
      'a 200 that carries an error',
      answered(200, { success: false, error: { code: 'out_of_stock' } }),
      A('unreadable'),
      A('unreadable'),
    ],
    ['a 201 without an order id', accepted({ id: undefined }), A('unreadable'), A('unreadable')],
    ['a 201 with a wrong amount', accepted({ amount: 'free' }), A('unreadable'), A('unreadable')],
    ['a 201 with another reference', accepted({ external_order_id: 'q1.s.2.1.1.1' }), A('disagrees'), A('disagrees')],
    ['a 201 without the reference', accepted({ external_order_id: null }), A('disagrees'), A('disagrees')],
    ['a 201 with another product', accepted({ product_id: 'p2' }), A('disagrees'), A('disagrees')],
    ['a 201 with another quantity', accepted({ quantity: 3 }), A('disagrees'), A('disagrees')],
    ['a 201 with a quantity as text', accepted({ quantity: '2' }), A('unreadable'), A('unreadable')],
  ])('%s', (_, exchange, neverCharged, maybeCharged) => {
    expect(judge(exchange)).toMatchObject(neverCharged)
    expect(judge(exchange, true)).toMatchObject(maybeCharged)
  })

  it.each<[string, Exchange, object, object]>([
    ['out of stock', refused(200, 'out_of_stock'), B('out_of_stock'), refusedRepeat],
    ['balance too low', refused(200, 'insufficient_balance'), B('balance'), refusedRepeat],
    ['invalid request', refused(201, 'invalid_request'), B('other'), refusedRepeat],
    ['the API key', refused(200, 'unauthorized'), N('unauthorized'), refusedRepeat],
    ['key reused', refused(200, 'idempotency_key_reused'), A('key_reused', true), A('key_reused', true)],
    ['still in progress', refused(200, 'idempotency_in_progress'), A('in_progress'), A('in_progress')],
    ['an internal error', refused(200, 'internal_error'), A('server_error'), A('server_error')],
    ['the same under 4xx', refused(422, 'out_of_stock'), B('out_of_stock'), refusedRepeat],
    ['an unknown code', refused(200, 'sold_out'), A('unreadable'), A('unreadable')],
    ['a code that the dialect has under 4xx', refused(200, 'gone'), A('unreadable'), A('unreadable')],
    [
      'a flag that does not say false',
      answered(200, { error: { code: 'out_of_stock' } }),
      A('unreadable'),
      A('unreadable'),
    ],
    [
      'a refusal that carries an order',
      answered(200, { success: false, error: { code: 'out_of_stock' }, data: order }),
      A('unreadable'),
      A('unreadable'),
    ],
    ['a broken refusal', answered(200, '{"success":false,"error":{"code":"out_'), A('unreadable'), A('unreadable')],
  ])('under HTTP 200, where the dialect says that refusals come so: %s', (_, exchange, neverCharged, maybeCharged) => {
    const errors = Object.fromEntries(
      Object.entries(dialect.errors).map(([kind, facts]) => {
        const own = kind === 'gone' || kind === 'rate_limited'
        return [kind, facts && !own ? { ...facts, status: 200 } : facts]
      }),
    ) as Dialect['errors']
    expect(judge(exchange, false, { ...dialect, errors })).toMatchObject(neverCharged)
    expect(judge(exchange, true, { ...dialect, errors })).toMatchObject(maybeCharged)
  })

  it('keeps the code of a 200 that is not treated as a refusal', () => {
    expect(judge(refused(200, 'sold_out')).evidence).toMatchObject({ status: 200, code: 'sold_out' })
  })

  it('keeps ids, code and digest of an answer, also the order id of an ambiguous one', () => {
    const exchange = accepted({ quantity: 9 })
    const digest = createHash('sha256')
      .update(exchange.stage === 'answered' ? exchange.body : '')
      .digest('hex')
    expect(judge(exchange).evidence).toMatchObject({
      status: 201,
      requestId: 'r1',
      supplierOrderId: 'o1',
      answerDigest: digest,
    })
    expect(judge(refused(409, 'out_of_stock')).evidence).toMatchObject({ status: 409, code: 'out_of_stock' })
    expect(judge({ stage: 'lost', cause: 'x', status: 500, headers: { 'x-request-id': 'r7' } }).evidence).toMatchObject(
      {
        status: 500,
        requestId: 'r7',
      },
    )
  })

  it('takes the request id from the envelope when the header is missing, and only then', () => {
    const refusal = { success: false, error: { code: 'x' }, request_id: 'r5' }
    expect(judge(answered(422, refusal, { 'x-request-id': undefined })).evidence.requestId).toBe('r5')
    expect(judge(answered(422, refusal)).evidence.requestId).toBe('r1')
    expect(judge(answered(422, { request_id: 'r5' }, { 'x-request-id': undefined })).evidence).not.toHaveProperty(
      'requestId',
    )
  })

  it('does not take the id of the request for the id of an order', () => {
    const refusal = { success: false, error: { code: 'out_of_stock' } }
    const named = judge(answered(409, { ...refusal, id: 'r1' }))
    expect(named).toMatchObject(B('out_of_stock'))
    expect(named.evidence).not.toHaveProperty('supplierOrderId')
    expect(judge(answered(409, { ...refusal, id: 'o1' }))).toMatchObject(A('names_order'))
  })

  it('keeps no field of a missing answer', () => {
    const { evidence } = judge({ stage: 'lost', cause: 'x' })
    expect(Object.keys(evidence)).toEqual(['detail'])
    const nameless = { 'x-request-id': undefined }
    const refusal = judge(answered(422, { success: false, error: { code: 'x' } }, nameless)).evidence
    expect(Object.keys(refusal).toSorted()).toEqual(['answerDigest', 'code', 'detail', 'status'])
    expect(judge(accepted({ id: undefined })).evidence).not.toHaveProperty('supplierOrderId')
  })

  it.each<[string, Exchange]>([
    ['nothing was sent: ENOTFOUND', { stage: 'not_sent', cause: 'ENOTFOUND', heldBack: false }],
    ['sent, and no whole answer came (ECONNRESET)', { stage: 'lost', cause: 'ECONNRESET' }],
    ['answered 502 (server_error)', answered(502, html)],
    ['answered 304 (unexpected_status)', answered(304, '')],
    ['answered 408 (unexpected_status)', refused(408, 'invalid_request')],
    ['answered 400 internal_error (server_error)', refused(400, 'internal_error')],
    ['the supplier knows the key with other parameters (key_reused)', refused(409, 'idempotency_key_reused')],
    ['an earlier request with the key still runs (in_progress)', refused(409, 'idempotency_in_progress')],
    ['answered 409 with a code that is not known (conflict)', refused(409, 'conflict')],
    ['the supplier refused the API key: 401', refused(401, 'unauthorized')],
    ['rate limited: 429', refused(429, 'rate_limited')],
    ['rejected: 409 out_of_stock', refused(409, 'out_of_stock')],
    ['answered 404 without an error envelope (unreadable)', answered(404, html)],
    ['answered 2xx without a success envelope (unreadable)', answered(200, html)],
    ['answered 2xx with an order whose amount cannot be read (unreadable)', accepted({ amount: 'free' })],
    ['answered 2xx with another quantity than was sent (disagrees)', accepted({ quantity: 3 })],
    ['accepted', accepted()],
  ])('says as evidence: %s', (detail, exchange) => {
    expect(judge(exchange).evidence.detail).toBe(detail)
  })

  it('says as evidence that the refusal of a repeat proves nothing', () => {
    const { evidence } = judge(refused(409, 'out_of_stock'), true)
    expect(evidence.detail).toBe('a refusal after an ambiguous attempt proves nothing about it (rejected_repeat)')
    expect(evidence).toMatchObject({ status: 409, code: 'out_of_stock', requestId: 'r1' })
  })

  it('keeps evidence in every outcome', () => {
    for (const exchange of [accepted(), refused(429, 'rate_limited'), refused(401, 'unauthorized')]) {
      expect(judge(exchange).evidence).toMatchObject({ status: expect.any(Number), requestId: 'r1' })
    }
  })

  it('does not read a compressed answer', () => {
    const compressed = (exchange: Exchange): Exchange =>
      exchange.stage === 'answered' ? { ...exchange, unreadable: 'content_encoding' } : exchange
    expect(judge(compressed(accepted()))).toMatchObject(A('unreadable'))
    expect(judge(compressed(refused(422, 'limit_exceeded')))).toMatchObject(A('unreadable'))
    expect(judge(compressed(refused(429, 'rate_limited')))).toMatchObject(N('rate_limited'))
  })

  it('says how long a 429 asks to wait', () => {
    expect(judge(refused(429, 'rate_limited', { 'retry-after': '7' }))).toMatchObject({ retryAfterMs: 7_000 })
    expect(judge(refused(429, 'rate_limited', { 'retry-after': 'soon' }))).not.toHaveProperty('retryAfterMs')
  })

  it('reads codes, envelopes and fields by the dialect alone', () => {
    const fault = (status: number, id: string) => answered(status, { ok: false, fault: { id, text: 'no' }, trace: 't' })
    const made = { no: 77, ref: expected.externalOrderId, count: 2, phase: 'OPEN', sum: 1250, made: 1_700_000_000 }
    expect(judge(fault(422, 'E_NONE_LEFT'), false, otherDialect)).toMatchObject(B('out_of_stock'))
    expect(judge(fault(400, 'E_FUNDS'), false, otherDialect)).toMatchObject(B('balance'))
    expect(judge(fault(422, 'E_KEY'), false, otherDialect)).toMatchObject(A('key_reused', true))
    expect(judge(refused(409, 'out_of_stock'), false, otherDialect)).toMatchObject(A('conflict'))
    const placed = judge(answered(200, { result: made }), false, otherDialect)
    expect(placed).toMatchObject({ outcome: 'accepted', order: { id: '77', amountMinor: 1_250, currency: 'JPY' } })
  })

  it('gives a code from Object.prototype no meaning', () => {
    expect(judge(refused(422, '__proto__'))).toMatchObject(B('other'))
    expect(judge(accepted({ status: 'constructor' }))).toMatchObject({ order: { status: 'open' } })
  })

  it('stores a refusal as refused even where the purchase stays unknown', () => {
    expect(answerClass(judge(refused(422, 'limit_exceeded'), true))).toBe('refused')
    expect(answerClass(judge(refused(409, 'idempotency_key_reused')))).toBe('refused')
    expect(answerClass(judge(refused(409, 'idempotency_in_progress')))).toBe('ambiguous')
    expect(answerClass(judge(refused(429, 'rate_limited'), true))).toBe('not_executed')
    expect(answerClass(judge(accepted()))).toBe('ambiguous')
  })
})

describe('the first field of an answer that cannot be read', () => {
  const noJson = { field: '(the whole answer)', setting: 'envelope', seen: 'something that is no JSON' }

  it('is none when no whole answer came', () => {
    expect(unreadIn({ stage: 'not_sent', cause: 'ENOTFOUND', heldBack: false }, dialect)).toBeUndefined()
    expect(unreadIn({ stage: 'lost', cause: 'ECONNRESET' }, dialect)).toBeUndefined()
  })

  it('is none in an order that can be read, under any success status', () => {
    for (const status of [200, 201, 299]) expect(unreadIn(accepted({}, status), dialect)).toBeUndefined()
  })

  it('is the whole answer when it is no JSON, or is compressed', () => {
    expect(unreadIn(answered(200, html), dialect)).toEqual(noJson)
    expect(unreadIn(answered(404, html), dialect)).toEqual(noJson)
    const compressed = { ...accepted(), unreadable: 'content_encoding' } as Exchange
    expect(unreadIn(compressed, dialect)).toEqual(noJson)
  })

  it('is the code of a refusal, under any other status', () => {
    for (const status of [300, 400]) {
      const refusal = answered(status, { success: false, error: { code: 7 } })
      expect(unreadIn(refusal, dialect)).toMatchObject({ field: 'error.code', setting: 'error.code', seen: '7' })
    }
  })

  it('is a field of the envelope, else of the order', () => {
    const refusal = answered(200, { success: false, error: { code: 'x' } })
    expect(unreadIn(refusal, dialect)).toMatchObject({ setting: 'envelope.success', seen: 'false' })
    expect(unreadIn(answered(200, { success: true }), dialect)).toMatchObject({ setting: 'envelope.data' })
    expect(unreadIn(accepted({ amount: 'free' }), dialect)).toMatchObject({ setting: 'order.amount', seen: '"free"' })
  })
})

describe('an order and its request', () => {
  it('are compared in the fields that the dialect maps', () => {
    const other = { externalOrderId: expected.externalOrderId, productId: 'p9', quantity: 2 }
    expect(disagreement(other, expected, dialect)).toBe('productId')
    expect(disagreement(other, expected, otherDialect)).toBeUndefined()
    expect(disagreement({ ...expected, quantity: 9 }, expected, dialect)).toBe('quantity')
    const countless = { ...dialect, order: { ...dialect.order, quantity: null } }
    expect(disagreement({ ...expected, quantity: 9 }, expected, countless)).toBeUndefined()
    expect(disagreement({ ...expected, externalOrderId: 'q1.s.2.1.1.1' }, expected, dialect)).toBe('externalOrderId')
  })
})

describe('a refused token', () => {
  it.each([
    ['done', 'refused a token that was renewed then'],
    ['away', 'refused a token, and there is no other'],
  ] as const)('is said to be no matter of the key: %s', (renewal, detail) => {
    expect(judge(toToken(renewal)).evidence.detail).toBe(detail)
  })
})
