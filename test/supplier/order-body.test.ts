/** The bytes of an order request that a dialect has as a template, and answers that have only the id of the order. */
import { describe, expect, test } from 'vitest'
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import type { ExpectedOrder } from '../../src/domain/supplier.ts'
import { classify, unreadIn } from '../../src/supplier/classify.ts'
import { orderBody } from '../../src/supplier/client.ts'
import { dialect } from '../support/supplier-server.ts'

const expected = { productId: '5c9b5d', quantity: 2, externalOrderId: 'q1.s.1' }
const terms = { idempotencyKey: 'k1', price: { minor: 579, currency: 'EUR' } }

/** Writes one value in a body that has only this value. */
function write(placeholder: string, given: Partial<Dialect> = {}, order: Partial<ExpectedOrder> = {}, also = terms) {
  return orderBody({ ...dialect, ...given, orderBody: { x: placeholder } }, { ...expected, ...order }, also)
}
const asMoney = (representation: Dialect['money']['representation'], currency = 'EUR') => ({
  money: { representation, currency },
})

describe('a value of a template', () => {
  test.each([
    ['{productId}', '"5c9b5d"'],
    ['{quantity}', '2'],
    ['{quantity:text}', '"2"'],
    ['{currency}', '"EUR"'],
    ['{reference}', '"q1.s.1"'],
    ['{key}', '"k1"'],
    ['a constant', '"a constant"'],
  ])('%s is %s', (placeholder, written) => {
    expect(write(placeholder)).toBe(`{"x":${written}}`)
  })

  test.each([
    ['decimal', '"5.79"', '"5.79"', '5.79'],
    ['number', '5.79', '"5.79"', '5.79'],
    ['number_or_decimal', '5.79', '"5.79"', '5.79'],
    ['minor', '579', '"579"', '579'],
  ] as const)('a price is written as the dialect writes money: %s', (representation, usual, text, number) => {
    const money = asMoney(representation)
    expect(write('{price}', money)).toBe(`{"x":${usual}}`)
    expect(write('{price:text}', money)).toBe(`{"x":${text}}`)
    expect(write('{price:number}', money)).toBe(`{"x":${number}}`)
  })

  test('a price has the decimals of its currency, and each of its digits', () => {
    const price = (minor: number, currency: string) => ({ ...terms, price: { minor, currency } })
    expect(write('{price:number}', {}, {}, price(1_500, 'JPY'))).toBe('{"x":1500}')
    expect(write('{price:number}', {}, {}, price(1_500, 'KWD'))).toBe('{"x":1.500}')
    expect(write('{price:number}', {}, {}, price(9_007_199_254_740_991, 'EUR'))).toBe('{"x":90071992547409.91}')
  })

  test('an id that is a number is written with each of its digits', () => {
    const productId = '90071992547409931234567'
    expect(write('{productId:number}', {}, { productId })).toBe(`{"x":${productId}}`)
    expect(write('{productId}', {}, { productId })).toBe(`{"x":"${productId}"}`)
  })

  test.each(['5c9b5d', '007', '-5', '1e3', '1.5', ' 5', '', 'Infinity'])(
    'an id that is no whole number is never written as one: %j',
    (productId) => {
      expect(write('{productId:number}', {}, { productId })).toBe('')
    },
  )

  test('that is not known yet leaves no bytes that could be sent', () => {
    const { idempotencyKey } = terms
    for (const placeholder of ['{price}', '{price:text}', '{price:number}', '{currency}']) {
      expect(orderBody({ ...dialect, orderBody: { x: [placeholder] } }, expected, { idempotencyKey })).toBe('')
    }
  })
})

test('a template keeps the order of its fields and its constants, also in lists and objects', () => {
  const spoken: Dialect = {
    ...dialect,
    orderBody: {
      AccountId: 7,
      Products: [{ Value: '{price}', ProductId: '{productId}', Quantity: '{quantity}', note: null }],
      gift: { sender: 'Ann "and" Bob', isTest: false },
      RequestId: '{reference}',
    },
  }
  const written =
    '{"AccountId":7,"Products":[{"Value":"5.79","ProductId":"5c9b5d","Quantity":2,"note":null}],"gift":{"sender":"Ann \\"and\\" Bob","isTest":false},"RequestId":"q1.s.1"}'
  expect(orderBody(spoken, expected, terms)).toBe(written)
  expect(orderBody(spoken, expected, terms)).toBe(written)
})

describe('words that contradict each other', () => {
  const whole = { p: '{productId}', q: '{quantity}', r: '{reference}' }
  const faults = (words: Record<string, unknown>): string[] =>
    (
      dialectShape.safeParse({
        ...dialect,
        headers: { ...dialect.headers, idempotencyKey: undefined },
        orderRequest: undefined,
        orderBody: whole,
        idempotency: 'none',
        ...words,
      }).error?.issues ?? []
    ).map(({ path, message }) => `${path.join('.')} ${message}`)

  test.each([
    ['a key in a field that no field has', { idempotency: 'field' }, 'needs {key}'],
    ['a field for a key that the supplier does not take', { orderBody: { ...whole, k: '{key}' } }, 'needs {key}'],
    ['a header for a key that the supplier does not take', { headers: dialect.headers }, 'must be left out'],
    ['no header for the key', { idempotency: 'header' }, 'must be stated'],
    ['a body without the reference', { orderBody: { p: '{productId}', q: '{quantity}' } }, 'needs {reference}'],
    ['a value that is none', { orderBody: { ...whole, x: '{prize}' } }, 'orderBody.x must be exactly one of'],
    ['a value inside a text', { orderBody: { ...whole, x: 'EUR {price}' } }, 'must be exactly one of'],
    ['both forms of a request', { orderRequest: dialect.orderRequest }, 'not both'],
  ])('%s', (_, words, message) => {
    expect(faults({})).toEqual([])
    expect(faults(words).join()).toContain(message)
  })
})

describe('an answer to an order, of a supplier that answers with its id alone', () => {
  const answered = (status: number, body: unknown, given: Partial<Dialect> = {}) => {
    const spoken: Dialect = { ...dialect, orderAnswer: 'id', ...given }
    const text = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    const exchange = { stage: 'answered', status, headers: {}, body: text } as const
    const placement = classify(exchange, { dialect: spoken, maybeCharged: false, expected, nowMs: 0 })
    return { placement, unread: unreadIn(exchange, spoken) }
  }
  const named = (supplierOrderId: string) => ({ outcome: 'unknown', cause: 'id_alone', evidence: { supplierOrderId } })
  /** A supplier without a flag and an envelope. */
  const plain = { envelope: { success: null, data: '' } }

  test('names the order, whatever else it has', () => {
    expect(answered(202, { success: true, data: { id: 'o1' } }).placement).toMatchObject(named('o1'))
    expect(answered(200, { success: true, data: { id: 'o1', quantity: 9 } }).placement).toMatchObject(named('o1'))
    expect(answered(202, { id: 'o1', status: 'PROCESSING' }, plain).placement).toMatchObject(named('o1'))
  })

  test('may be the bare id', () => {
    expect(answered(200, '"7c4c9a1e-0000"', plain).placement).toMatchObject(named('7c4c9a1e-0000'))
    expect(answered(200, '90071992547409931234567', plain).placement).toMatchObject(named('90071992547409931234567'))
  })

  test.each([
    ['has no id', { success: true, data: { status: 'PENDING' } }, {}],
    ['says that it failed', { success: false, data: { id: 'o1' } }, {}],
    ['says that it failed, and is an id', { success: false, data: 'o1' }, {}],
    ['is empty', '', plain],
    ['is a list', [], plain],
    ['is an empty text', '""', plain],
  ])('that %s is ambiguous, and people learn what could not be read', (_, body, given) => {
    const { placement, unread } = answered(200, body, given)
    expect(placement).toMatchObject({ outcome: 'unknown', cause: 'unreadable', rejection: false })
    expect(unread).toMatchObject({ setting: expect.any(String) })
  })

  test('says in the evidence what was made of it', () => {
    const [named, nameless] = [{ id: 'o1' }, { status: 'PENDING' }].map((data) =>
      answered(202, { success: true, data }),
    )
    const detailOf = ({ placement }: ReturnType<typeof answered>) => placement.evidence.detail
    expect(named && detailOf(named)).toBe('answered 2xx with the id of an order, which is to be read (id_alone)')
    expect(nameless && detailOf(nameless)).toBe('answered 2xx without an order id (unreadable)')
    expect(nameless?.unread).toMatchObject({ setting: 'order.id' })
  })

  test('that is a refusal is one', () => {
    const refusal = { success: false, error: { code: 'out_of_stock', message: 'none' } }
    expect(answered(409, refusal).placement).toMatchObject({ outcome: 'rejected', reason: 'out_of_stock' })
  })
})
