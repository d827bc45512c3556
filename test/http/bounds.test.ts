/** What each field of a body and of a query takes, at its bounds: written by hand from the manual, and not from the shapes. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import * as input from '../../src/http/input.ts'

const long = (length: number) => 'x'.repeat(length)
const many = (count: number, of: (place: number) => unknown) => Array.from({ length: count }, (_, place) => of(place))

const line = { id: '1', sku: 'A', quantity: 1 }
const inLine = (field: string) => (value: unknown) => ({ reference: 'r', lines: [{ ...line, [field]: value }] })
const priced = (unitPrice: unknown, currency: unknown = 'EUR') => ({
  reference: 'r',
  lines: [{ ...line, unitPrice, currency }],
})
const field = (name: string, beside: object) => (value: unknown) => ({ ...beside, [name]: value })
const why = { reason: 'why' }
const decided = (decision: string, more: object = {}) => ({ decision, ...why, ...more })

const table: [
  what: string,
  shape: z.ZodType,
  body: (value: unknown) => unknown,
  takes: unknown[],
  refuses: unknown[],
][] = [
  [
    'reference of an order',
    input.orderBody,
    field('reference', { lines: [line] }),
    ['a', long(200), '...', 'a b', 'ä€𝄞', '.a'],
    ['', long(201), '.', '..', ' a', 'a ', 'a\tb', 'a\u00adb', null],
  ],
  [
    'lines of an order',
    input.orderBody,
    field('lines', { reference: 'r' }),
    [[line], many(100, (place) => ({ ...line, id: `${place}` }))],
    [[], many(101, (place) => ({ ...line, id: `${place}` })), [line, line], {}],
  ],
  ['id of a line', input.orderBody, inLine('id'), ['1', long(100)], ['', long(101), 1]],
  ['SKU of a line', input.orderBody, inLine('sku'), ['1', long(100)], ['', long(101), 'a\nb', 'a\u2028b']],
  ['quantity of a line', input.orderBody, inLine('quantity'), [1, 2, 9_999, 10_000], [0, -1, 10_001, 1.5, '1', null]],
  [
    'price of a unit',
    input.orderBody,
    priced,
    ['0', '0.01', '19.9', '19.90', '999999999999', '007.50'],
    ['', '.5', '5.', '1000000000000', '19.999', '1e2', '-1', '+1', ' 1', 1],
  ],
  ['price of a unit in yen', input.orderBody, (value) => priced(value, 'JPY'), ['0', '19'], ['19.5', '19.05']],
  ['price of a unit in dinars', input.orderBody, (value) => priced(value, 'KWD'), ['19.999'], ['19.9999']],
  [
    'currency of a unit',
    input.orderBody,
    (value) => priced('1', value),
    ['EUR', 'USD'],
    ['EU', 'EURO', 'eur', 'E1R', ''],
  ],
  [
    'ceiling of a release',
    input.releaseBody,
    field('ceiling', {}),
    ['12.34', '0', undefined],
    ['12.3456', '12,34', '', 12],
  ],
  [
    'override of a release',
    input.releaseBody,
    field('overrideSpendCap', {}),
    [true, false, undefined],
    ['true', 1, null],
  ],
  ['reason of a release', input.releaseBody, field('reason', {}), ['a', long(500), undefined], ['', long(501), ' a']],
  [
    'reason that may be given',
    input.maybeReasonBody,
    field('reason', {}),
    ['a', long(500), undefined],
    ['', long(501)],
  ],
  [
    'decision',
    input.decisionBody,
    field('decision', why),
    ['buy_again', 'close', 'resume'].slice(0, 2),
    ['adopt', 'give_up', '', null],
  ],
  [
    'decision to adopt',
    input.decisionBody,
    (value) => decided('adopt', { orderId: value }),
    ['1', long(200)],
    [undefined, '', long(201)],
  ],
  [
    'order of a decision to close',
    input.decisionBody,
    (value) => decided('close', { orderId: value }),
    [undefined],
    ['1'],
  ],
  [
    'override of a decision to buy again',
    input.decisionBody,
    (value) => decided('buy_again', { overrideSpendCap: value }),
    [true, false, undefined],
    ['yes'],
  ],
  [
    'override of a decision to close',
    input.decisionBody,
    (value) => decided('close', { overrideSpendCap: value }),
    [false, undefined],
    [true],
  ],
  [
    'reason of a decision',
    input.decisionBody,
    (value) => ({ decision: 'close', reason: value }),
    ['why', long(500)],
    ['ok', '', long(501), undefined],
  ],
  ['reason of a look at keys', input.revealBody, field('reason', {}), ['why', long(500)], ['ok', long(501), undefined]],
  ['line of a look at keys', input.revealBody, field('line', why), ['1', long(100), undefined], ['', long(101)]],
  ['reason of an export', input.exportBody, field('reason', {}), ['why', long(500)], ['ok', long(501), undefined]],
  [
    'reason of a change of a listing',
    input.reasonBody,
    field('reason', {}),
    ['a', long(500)],
    ['', long(501), undefined],
  ],
  ['reason of a freeze', input.freezeBody, field('reason', {}), ['a', long(500)], ['', long(501), undefined]],
  ['price that is approved', input.approvalBody, field('price', why), ['23.99', '0'], ['', '23,99', 23.99, undefined]],
  [
    'reason of an approval',
    input.approvalBody,
    field('reason', { price: '1' }),
    ['a', long(500)],
    ['', long(501), undefined],
  ],
  ['product of a link', input.linkBody, field('productId', {}), ['p', long(200)], ['', long(201), undefined]],
  ['SKU of the offer of a link', input.linkBody, field('offerSku', {}), ['p', long(200)], ['', long(201), undefined]],
  ['SKU of the offer beside a product', input.linkBody, field('offerSku', { productId: 'p' }), [undefined], ['k']],
  [
    'SKU of the variant of a link',
    input.linkBody,
    field('sku', { productId: 'p' }),
    ['k', long(200), undefined],
    ['', long(201)],
  ],
  [
    'name of the variant of a link',
    input.linkBody,
    field('variation', { productId: 'p' }),
    ['k', long(200), undefined],
    ['', long(201)],
  ],
  [
    'causes of a freeze that ends',
    input.unfreezeBody,
    field('causes', {}),
    [['a'], [long(20)], many(1_000, (place) => `${place}`)],
    [[], [''], [long(21)], many(1_001, (place) => `${place}`), undefined],
  ],
  ['reason about an alert', input.alertBody, field('reason', {}), ['a', long(500), undefined], ['', long(501)]],
  ['hours of a mute', input.muteBody, field('hours', {}), [1, 720, undefined], [0, 721, 1.5, '1']],
  ['channel of a test', input.alertTestBody, field('channel', {}), ['c', long(40), undefined], ['', long(41)]],
  [
    'overlap of callback secrets',
    input.rotateSecretBody,
    field('overlapHours', {}),
    [0, 1, 720, undefined],
    [-1, 721, 0.5],
  ],
  [
    'address of a webhook',
    input.webhookBody,
    field('url', {}),
    ['http://a.example', 'https://a.example/x', undefined],
    ['ftp://a.example', 'a.example', ''],
  ],
  [
    'name of a token',
    input.tokenBody,
    field('name', { role: 'viewer' }),
    ['a', long(100)],
    ['', long(101), 'a\u202eb', undefined],
  ],
  [
    'role of a token',
    input.tokenBody,
    field('role', { name: 'a' }),
    ['viewer', 'operator', 'admin'],
    ['root', 'store', undefined],
  ],
  [
    'store of a token of a store',
    input.tokenBody,
    field('store', { name: 'a', role: 'store', scopes: ['orders'] }),
    ['s', long(50)],
    ['', long(51), undefined],
  ],
  ['store of a token of a person', input.tokenBody, field('store', { name: 'a', role: 'admin' }), [undefined], ['s']],
  [
    'scopes of a token of a store',
    input.tokenBody,
    field('scopes', { name: 'a', role: 'store', store: 's' }),
    [['orders'], ['keys'], ['orders', 'keys']],
    [[], ['all'], undefined],
  ],
  [
    'scopes of a token of a person',
    input.tokenBody,
    field('scopes', { name: 'a', role: 'admin' }),
    [undefined],
    [[], ['keys']],
  ],
  [
    'days of a token',
    input.tokenBody,
    field('expiresInDays', { name: 'a', role: 'viewer' }),
    [1, 3650, undefined],
    [0, 3651, 1.5],
  ],
  [
    'role of a link to the console',
    input.consoleLinkBody,
    field('role', { name: 'a' }),
    ['viewer', 'operator', 'admin'],
    ['store', undefined],
  ],
  [
    'name of a link to the console',
    input.consoleLinkBody,
    field('name', { role: 'viewer' }),
    ['a', long(100)],
    ['', long(101), undefined],
  ],
  [
    'ids that are replayed',
    input.replayBody,
    field('ids', {}),
    [['a'], [long(64)], many(200, (place) => `${place}`), ['A-z_9']],
    [[], [''], [long(65)], ['a.b'], many(201, (place) => `${place}`), undefined],
  ],
  [
    'limit of a list',
    z.object(input.paging),
    field('limit', {}),
    ['1', '200', '007', undefined],
    ['0', '201', '-1', '1.5', '', 'ten', '000001'],
  ],
  [
    'cursor of a list',
    z.object(input.paging),
    field('before', {}),
    ['a', long(64), 'A-z_9', undefined],
    ['', long(65), 'a b', 'a.b'],
  ],
  [
    'changes of a dry run',
    z.object({ most: input.most }),
    field('most', {}),
    ['0', '10000', undefined],
    ['10001', '-1', ''],
  ],
  [
    'flag',
    z.object({ flag: input.queryFlag('x') }),
    field('flag', {}),
    ['true', 'false', undefined],
    ['yes', '1', 'TRUE', ''],
  ],
  [
    'instant',
    z.object({ at: input.queryInstant('x') }),
    field('at', {}),
    ['2026-03-01T09:30:00Z', '2026-03-01T09:30:00.5+02:00', undefined],
    ['2026-03-01', '2026-03-01T09:30:00', '1', '2026-13-01T09:30:00Z'],
  ],
  ...(
    [
      ['event', input.eventName],
      ['last one seen', input.after],
      ['name of an order', input.search],
      ['changed field', input.changedField],
      ['begin of a listing', input.listingSearch],
      ['actor', input.auditActor],
      ['action', input.auditAction],
      ['subject', input.auditSubject],
      ['line', input.orderLine],
      ['store of orders', input.inStore],
      ['store of deliveries', input.fromStore],
    ] as const
  ).map(([what, shape]): (typeof table)[number] => [
    what,
    z.object({ it: shape }),
    field('it', {}),
    ['a', long(200), undefined],
    ['', long(201), ' a', 'a\nb'],
  ]),
]

describe('an input', () => {
  const cases = table.flatMap(([what, shape, body, takes, refuses]) => [
    ...takes.map((value) => [what, 'is taken', value, shape, body] as const),
    ...refuses.map((value) => [what, 'is refused', value, shape, body] as const),
  ])
  const shown = (value: unknown) => (JSON.stringify(value) ?? 'left out').slice(0, 40)

  test.each(cases.map((one) => [one[0], one[1], shown(one[2]), one] as const))(
    '%s %s: %s',
    (_what, judged, _shown, [, , value, shape, body]) => {
      expect(shape.safeParse(body(value)).success).toBe(judged === 'is taken')
    },
  )

  test('that is left out counts as the manual says', () => {
    expect(z.object(input.paging).parse({})).toEqual({ limit: 50 })
    expect(z.object({ most: input.most }).parse({})).toEqual({ most: 1_000 })
    expect(input.muteBody.parse({})).toEqual({ hours: 24 })
    expect(input.rotateSecretBody.parse({})).toEqual({ overlapHours: 168 })
    expect(z.object({ no: input.queryFlag('x'), yes: input.queryFlag('x', true) }).parse({})).toEqual({
      no: false,
      yes: true,
    })
  })

  test('of an instant is taken with its offset', () => {
    const at = input.queryInstant('x')
    expect(at.parse('2026-03-01T09:30:00+02:00')).toBe(Date.UTC(2026, 2, 1, 7, 30))
  })

  test('names at most a hundred faults, each by its field', () => {
    const bad = { reference: 'r', lines: many(100, () => ({ id: '', sku: '', quantity: 0 })) }
    const faults = (() => {
      try {
        input.check(input.orderBody, bad, 'body')
      } catch (error) {
        return (error as { fields: { field: string }[] }).fields
      }
      return []
    })()
    expect(faults).toHaveLength(100)
    expect(faults.slice(0, 4).map(({ field: name }) => name)).toEqual([
      'lines.0.id',
      'lines.0.sku',
      'lines.0.quantity',
      'lines.1.id',
    ])
  })
})

describe('the version of a change', () => {
  test.each([
    ['"a"', 'a'],
    ['"review-9f86d081884c"', 'review-9f86d081884c'],
    [`"${long(100)}"`, long(100)],
    ['"!#~"', '!#~'],
  ])('%s is %s', (header, version) => {
    expect(input.versionIn(header)).toBe(version)
  })

  test.each([
    undefined,
    '',
    'a',
    '""',
    '"a',
    'a"',
    'W/"a"',
    '*',
    '"a", "b"',
    '"a b"',
    '"a"b"',
    `"${long(101)}"`,
    ' "a"',
    '"ä"',
  ])('%j is refused', (header) => {
    expect(() => input.versionIn(header)).toThrow(expect.objectContaining({ code: 'invalid' }))
  })
})

describe('two orders', () => {
  const digestOf = (change: object = {}, order: object = {}) =>
    input.orderDigest(
      input.orderInput(
        input.orderBody.parse({
          reference: 'r',
          lines: [
            { id: '1', sku: 'A', quantity: 2, unitPrice: '1.50', currency: 'EUR', ...change },
            { id: '2', sku: 'B', quantity: 1 },
          ],
          ...order,
        }),
      ),
    )

  test.each([
    ['id', { id: '3' }],
    ['SKU', { sku: 'B' }],
    ['quantity', { quantity: 3 }],
    ['price', { unitPrice: '1.51' }],
    ['currency', { currency: 'USD' }],
    ['price at all', { unitPrice: undefined, currency: undefined }],
  ])('that differ in the %s of a line are two', (_what, change) => {
    expect(digestOf(change)).not.toBe(digestOf())
  })

  test('that differ in their reference, or in a line more, are two', () => {
    expect(digestOf({}, { reference: 's' })).not.toBe(digestOf())
    expect(digestOf({}, { lines: [line] })).not.toBe(digestOf())
  })

  test('that say one price in two ways are one', () => {
    expect(digestOf({ unitPrice: '1.5' })).toBe(digestOf())
    expect(input.orderInput({ reference: 'r', lines: [{ ...line, unitPrice: '1.5', currency: 'EUR' }] })).toEqual({
      reference: 'r',
      lines: [{ id: '1', sku: 'A', quantity: 1, currency: 'EUR', unitPriceMinor: 150 }],
    })
  })
})
