/** A refusal with an order id: the supplier may have charged. */
import { expect, it } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { classify } from '../../src/supplier/classify.ts'
import type { Exchange } from '../../src/supplier/request.ts'
import { dialect } from '../support/supplier-server.ts'

const expected = { externalOrderId: 'q1.s.1.1.1.1', productId: 'p1', quantity: 2 }
const order = { id: 'o1', external_order_id: 'q1.s.1.1.1.1', product_id: 'p1', quantity: 2, status: 'pending' }

const answered = (status: number, body: unknown): Exchange => ({
  stage: 'answered',
  status,
  headers: { 'x-request-id': 'r1' },
  body: Buffer.from(JSON.stringify(body)),
})
const judge = (exchange: Exchange, maybeCharged = false, under: Dialect = dialect) =>
  classify(exchange, { dialect: under, maybeCharged, expected, nowMs: 1_700_000_000_000 })
const A = (cause: string) => ({ outcome: 'unknown', cause, rejection: false })
const B = (reason: string) => ({ outcome: 'rejected', reason })

const carrying = (status: number, code: string, fields: object): Exchange =>
  answered(status, { success: false, error: { code, message: 'no' }, request_id: 'r1', ...fields })
const flat = { ...dialect, envelope: { ...dialect.envelope, data: '' }, order: { ...dialect.order, id: 'order.no' } }
it.each<[string, Exchange, Dialect, string]>([
  ['out of stock, the id in data', carrying(409, 'out_of_stock', { data: { id: 'o1' } }), dialect, 'names_order'],
  ['out of stock, a whole order in data', carrying(422, 'out_of_stock', { data: order }), dialect, 'names_order'],
  ['out of stock, the id at the top', carrying(409, 'out_of_stock', { id: 'o1' }), dialect, 'names_order'],
  ['balance too low', carrying(402, 'insufficient_balance', { data: { id: 'o1' } }), dialect, 'names_order'],
  ['an unknown code', carrying(418, 'teapot', { data: { id: 'o1' } }), dialect, 'names_order'],
  ['a 401', carrying(401, 'unauthorized', { data: { id: 'o1' } }), dialect, 'names_order'],
  ['a 403 without an envelope', answered(403, { data: { id: 'o1' } }), dialect, 'names_order'],
  ['a 429', carrying(429, 'rate_limited', { data: { id: 'o1' } }), dialect, 'names_order'],
  ['a 429 without an envelope', answered(429, { id: 'o1' }), dialect, 'names_order'],
  ['the same under 403', carrying(403, 'rate_limited', { data: { id: 'o1' } }), dialect, 'names_order'],
  ['no envelope around records', carrying(409, 'out_of_stock', { order: { no: 'o1' } }), flat, 'names_order'],
  ['an id that is a number', carrying(422, 'E', { data: { id: 41 } }), dialect, 'names_order'],
  ['a 409 that is still in progress', carrying(409, 'idempotency_in_progress', { id: 'o1' }), dialect, 'in_progress'],
  ['a 500', carrying(500, 'internal_error', { data: { id: 'o1' } }), dialect, 'server_error'],
  ['a 200 whose flag says false', carrying(200, 'out_of_stock', { data: order }), dialect, 'unreadable'],
  ['the same, the id at the top', carrying(200, 'out_of_stock', { id: 'o1' }), dialect, 'unreadable'],
])(
  'a refusal that carries an order id proves nothing, and its order is looked up: %s',
  (what, exchange, under, cause) => {
    for (const maybeCharged of [false, true]) {
      const { evidence, ...outcome } = judge(exchange, maybeCharged, under)
      expect(outcome).toMatchObject({ outcome: 'unknown', rejection: false })
      if (!maybeCharged) expect(outcome).toEqual(A(cause))
      expect(evidence.supplierOrderId).toBe(what.includes('number') ? '41' : 'o1')
    }
  },
)

it('a refusal under HTTP 200 that carries an order id at the top proves nothing, where refusals come this way', () => {
  const errors = { ...dialect.errors, out_of_stock: { codes: ['out_of_stock'], status: 200 } } as Dialect['errors']
  const answer = judge(carrying(200, 'out_of_stock', { id: 'o1' }), false, { ...dialect, errors })
  expect(answer).toMatchObject({ ...A('names_order'), evidence: { supplierOrderId: 'o1' } })
})

it('a refusal whose id is that of the request carries no order', () => {
  const under = { ...dialect, error: { ...dialect.error, requestId: 'id' } }
  expect(judge(carrying(409, 'out_of_stock', { id: 'req-7' }), false, under)).toMatchObject(B('out_of_stock'))
  expect(judge(carrying(409, 'out_of_stock', { id: 'r1' }))).toMatchObject(B('out_of_stock'))
  expect(judge(carrying(409, 'out_of_stock', { data: { id: null } }))).toMatchObject(B('out_of_stock'))
})

it('says in its evidence why it proves nothing', () => {
  const { evidence } = judge(carrying(409, 'out_of_stock', { data: { id: 'o1' } }))
  expect(evidence).toMatchObject({
    status: 409,
    code: 'out_of_stock',
    detail: 'answered 409, a refusal that carries the id of an order (names_order)',
  })
})
