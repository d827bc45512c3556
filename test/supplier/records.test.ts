import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { apiVersion } from '../../src/dialect/description.ts'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { readDelivery } from '../../src/inbox/sources.ts'
import { parseOffer } from '../../src/supplier/offer-record.ts'
import {
  errorAnswer,
  parseBalance,
  parseOrder,
  parseWebhook,
  readJson,
  writeInstant,
} from '../../src/supplier/records.ts'
import { dialect, otherDialect } from '../support/supplier-server.ts'

const product = {
  id: 'p1',
  sku: 'OFF-1',
  name: 'Office',
  category: 'tools',
  api_price: '12.99',
  base_price: '20',
  cashback: '0.50',
  currency: 'EUR',
  local_stock: 3,
  provider_stock: 0,
  available: true,
  fulfillment_origin: 'local',
  updated_at: '2026-01-02T03:04:05.500+01:00',
}
const order = {
  id: 'o1',
  external_order_id: 'q1',
  product_id: 'p1',
  quantity: 2,
  status: 'completed',
  amount: '25.98',
  currency: 'EUR',
  keys: ['AAAA-1', 'AAAA-2'],
  failure: { code: 'c', message: 'm' },
  created_at: '2026-01-02T03:04:05Z',
}
const values = (keys: { reveal(): string }[]) => keys.map((key) => key.reveal())

describe('a product of the supplier', () => {
  it('is read completely', () => {
    expect(parseOffer(product, dialect)).toEqual({
      ok: true,
      value: {
        productId: 'p1',
        sku: 'OFF-1',
        name: 'Office',
        category: 'tools',
        costMinor: 1_299,
        basePriceMinor: 2_000,
        cashbackMinor: 50,
        currency: 'EUR',
        localStock: 3,
        providerStock: 0,
        available: true,
        origin: 'local',
        asOf: Date.parse('2026-01-02T02:04:05.500Z'),
      },
    })
  })

  it('is read by the paths of the dialect alone', () => {
    const record = {
      uuid: 42,
      codes: { sku: 'S' },
      title: 'T',
      price: { vip: 1_299, list: 1_500, cur: 'KWD' },
      stock: { own: 7 },
      sellable: false,
      changed: 1_700_000_000,
    }
    expect(parseOffer(record, otherDialect)).toEqual({
      ok: true,
      value: {
        productId: '42',
        sku: 'S',
        name: 'T',
        costMinor: 1_299,
        currency: 'KWD',
        localStock: 7,
        available: false,
        asOf: 1_700_000_000_000,
        costFault: 'currency',
      },
    })
  })

  it('has a description as plain text, and an image, where the dialect says where they are', () => {
    const shown = { ...dialect, product: { ...dialect.product, description: 'about.text', image: 'cover' } }
    const reads = (text: unknown, cover: unknown) => {
      const read = parseOffer({ ...product, about: { text }, cover }, shown)
      return read.ok ? [read.value.description, read.value.image, read.value.unread] : read
    }
    expect(parseOffer({ ...product, about: { text: 'x' }, cover: 'https://a.example/' }, dialect)).toEqual(
      parseOffer(product, dialect),
    )
    expect(reads('<p>Fast &amp; small.</p>', 'https://img.example/a b.png')).toEqual([
      ...['Fast & small.', 'https://img.example/a%20b.png', undefined],
    ])
    expect(reads('x'.repeat(20_000), 'http://img.example/1')).toEqual([
      ...['x'.repeat(10_000), 'http://img.example/1', undefined],
    ])
    expect(reads(null, null)).toEqual([undefined, undefined, undefined])
    expect(reads('', ' ')).toEqual(['', '', undefined])
    for (const wrong of ['/a.png', '//img.example/a.png', 'data:image/png;base64,AA', 'javascript:alert(1)', 7]) {
      expect(reads('x', wrong), String(wrong)).toEqual(['x', undefined, ['cover']])
    }
    expect(reads(['x'], `https://img.example/${'a'.repeat(2_000)}`)).toEqual([
      ...[undefined, undefined, ['about.text', 'cover']],
    ])
  })

  it('may leave out optional fields', () => {
    const bare = { id: 'p1', sku: 'S', name: '', api_price: '1', available: true, category: null, local_stock: null }
    expect(parseOffer(bare, dialect)).toEqual({
      ok: true,
      value: { productId: 'p1', sku: 'S', name: '', costMinor: 100, currency: 'EUR', available: true },
    })
  })

  it.each<[string, unknown]>([
    ['id', ''],
    ['id', 1.5],
    ['id', 'a'.repeat(201)],
    ['sku', undefined],
    ['sku', 'a\u0000b'],
    ['name', 7],
    ['name', '\ud800'],
    ['available', 'yes'],
    ['available', undefined],
  ])('cannot be read when %s is %j, and the field is named', (field, value) => {
    expect(parseOffer({ ...product, [field]: value }, dialect)).toMatchObject({ ok: false, field })
  })

  it.each<[string, Record<string, unknown>]>([
    ['missing', { api_price: null }],
    ['missing', { api_price: 12.99 }],
    ['missing', { api_price: '12,99' }],
    ['missing', { api_price: '12.999' }],
    ['zero', { api_price: '0.00' }],
    ['negative', { api_price: '-1' }],
    ['currency', { currency: 'USD' }],
    ['currency', { currency: 'eur' }],
    ['currency', { currency: 7, api_price: null }],
  ])('whose only trouble is its cost is kept, with the fault %s: %j', (costFault, fields) => {
    const read = parseOffer({ ...product, ...fields }, dialect)
    expect(read).toMatchObject({ ok: true, value: { productId: 'p1', localStock: 3, available: true, costFault } })
    const { costMinor = -1, basePriceMinor } = read.ok ? read.value : {}
    expect(costMinor).toBe(costFault === 'currency' && fields.api_price === undefined ? 1_299 : 0)
    expect(basePriceMinor, 'an amount in another currency is none of ours').toBe(
      costFault === 'currency' ? undefined : 2_000,
    )
  })

  it.each<[string, unknown, string, number | undefined]>([
    ['base_price', 'n/a', 'basePriceMinor', undefined],
    ['base_price', 'NaN', 'basePriceMinor', undefined],
    ['base_price', '-1.00', 'basePriceMinor', undefined],
    ['base_price', '12.005', 'basePriceMinor', undefined],
    ['cashback', 'some', 'cashbackMinor', undefined],
    ['category', { id: 1 }, 'category', undefined],
    ['fulfillment_origin', 3, 'origin', undefined],
    ['local_stock', -1, 'localStock', 0],
    ['local_stock', '3', 'localStock', 0],
    ['local_stock', 1.5, 'localStock', 0],
    ['provider_stock', 'many', 'providerStock', 0],
    ['updated_at', 'yesterday', 'asOf', 0],
    ['updated_at', '2026-13-45T00:00:00Z', 'asOf', 0],
  ])('whose optional %s is %j is kept with its cost, and the field is named', (field, value, key, counts) => {
    const good = parseOffer(product, dialect)
    const read = parseOffer({ ...product, [field]: value }, dialect)
    expect(read).toEqual({ ok: true, value: { ...(good.ok && good.value), unread: [field], [key]: counts } })
  })

  it.each([null, undefined, 7, 'text', []])('cannot be %j', (record) => {
    expect(parseOffer(record, dialect).ok).toBe(false)
  })
})

describe('money of the supplier', () => {
  const cost = (representation: Dialect['money']['representation'], currency: string, value: unknown) => {
    const offer = parseOffer(
      { ...product, currency, api_price: value, base_price: null, cashback: null },
      {
        ...dialect,
        money: { representation, currency },
      },
    )
    return offer.ok ? (offer.value.costFault ?? offer.value.costMinor) : offer.field
  }

  it.each<[Dialect['money']['representation'], string, unknown, number | 'missing']>([
    ['decimal', 'EUR', '12.990', 1_299],
    ['decimal', 'JPY', '1299', 1_299],
    ['decimal', 'KWD', '1.299', 1_299],
    ['decimal', 'EUR', '1e2', 'missing'],
    ['number', 'EUR', 12.99, 1_299],
    ['number', 'EUR', 0.1 + 0.2, 'missing'],
    ['number', 'EUR', 1e21, 'missing'],
    ['number', 'EUR', '12.99', 'missing'],
    ['number', 'EUR', Number.NaN, 'missing'],
    ['minor', 'EUR', 1_299, 1_299],
    ['minor', 'EUR', 12.99, 'missing'],
    ['minor', 'EUR', 2 ** 53, 'missing'],
    ['minor', 'EUR', '1299', 'missing'],
  ])('as %s in %s: %j is %j', (representation, currency, value, minor) => {
    expect(cost(representation, currency, value)).toBe(minor)
  })

  const decimals = { amount: 'value', exponent: 'digits', counts: 'decimals' } as const
  const power = { ...decimals, counts: 'power_of_ten' } as const

  it.each<[Dialect['money']['representation'], string, unknown, number | 'missing' | 'zero']>([
    [decimals, 'EUR', { value: 15_270, digits: 3 }, 1_527],
    [decimals, 'EUR', { value: 1_527, digits: 2 }, 1_527],
    [decimals, 'EUR', { value: '1527', digits: 2, cur: 'EUR' }, 1_527],
    [decimals, 'EUR', { value: 15, digits: 0 }, 1_500],
    [decimals, 'EUR', { value: 2, digits: -1 }, 2_000],
    [decimals, 'JPY', { value: 152_700, digits: 2 }, 1_527],
    [decimals, 'KWD', { value: 1_527, digits: 3 }, 1_527],
    [decimals, 'EUR', { value: 5, digits: 2 }, 5],
    [decimals, 'EUR', { value: 0, digits: 2 }, 'zero'],
    [power, 'EUR', { value: 15_270, digits: -3 }, 1_527],
    [power, 'EUR', { value: 2, digits: 1 }, 2_000],
    [decimals, 'EUR', { value: 15_275, digits: 3 }, 'missing'],
    [decimals, 'EUR', { value: 1_527 }, 'missing'],
    [decimals, 'EUR', { value: 1_527, digits: '2' }, 'missing'],
    [decimals, 'EUR', { value: 1_527, digits: 2.5 }, 'missing'],
    [decimals, 'EUR', { value: 1_527, digits: 400 }, 'missing'],
    [decimals, 'EUR', { value: 15.27, digits: 2 }, 'missing'],
    [decimals, 'EUR', { value: '15.27', digits: 2 }, 'missing'],
    [decimals, 'EUR', { value: 2 ** 53, digits: 2 }, 'missing'],
    [decimals, 'EUR', { digits: 2 }, 'missing'],
    [decimals, 'EUR', 1_527, 'missing'],
    [decimals, 'EUR', '15.27', 'missing'],
    ['minor', 'EUR', { value: 1_527, digits: 2 }, 'missing'],
    ['number', 'EUR', { value: 1_527, digits: 2 }, 'missing'],
    ['decimal', 'EUR', { value: 1_527, digits: 2 }, 'missing'],
  ])('as amount and exponent: %j in %s of %j is %j', (representation, currency, value, minor) => {
    expect(cost(representation, currency, value)).toBe(minor)
  })

  it('with an exponent next to it is not read as if there were none: 15.27 is never 152.70', () => {
    const read = (representation: Dialect['money']['representation'], price: object) => {
      const offer = parseOffer(
        { ...product, price },
        {
          ...dialect,
          money: { ...dialect.money, representation },
          product: { ...dialect.product, cost: 'price.amount' },
        },
      )
      return offer.ok ? (offer.value.costFault ?? offer.value.costMinor) : offer.field
    }
    expect(read('minor', { amount: 15_270, exponent: 3 })).toBe('missing')
    expect(read('minor', { amount: 15_270, exponent: -3 })).toBe('missing')
    expect(read('minor', { amount: 15_270, scale: 3 })).toBe('missing')
    expect(read('minor', { amount: 15_270, exponent: null })).toBe(15_270)
    expect(read('minor', { amount: 1_527, exponent: 2 }), 'cents, and it says so').toBe(1_527)
    expect(read('number', { amount: 1_527, exponent: 2 })).toBe('missing')
    expect(read('decimal', { amount: '1527', exponent: -2 })).toBe('missing')
    expect(read('decimal', { amount: '15.27', scale: 2 }), 'how many decimals the text has').toBe(1_527)
    const order = { id: 'o1', external_order_id: 'q1', status: 'completed', amount: 15_270, exponent: 3 }
    const minor = { ...dialect, money: { ...dialect.money, representation: 'minor' as const } }
    expect(parseOrder(order, minor)).toMatchObject({ ok: false, field: 'amount' })
  })

  it('as amount and exponent is exact for every price', () => {
    const amounts = fc.integer({ min: 1, max: 10 ** 11 })
    fc.assert(
      fc.property(amounts, fc.integer({ min: 2, max: 5 }), (minor, digits) => {
        expect(cost(decimals, 'EUR', { value: minor * 10 ** (digits - 2), digits })).toBe(minor)
      }),
    )
  })

  it('as a number is exact for every price', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 ** 11 }), (minor) => {
        expect(cost('number', 'EUR', JSON.parse((minor / 100).toFixed(2)))).toBe(minor)
      }),
    )
  })
})

describe('an order of the supplier', () => {
  it('is read completely, and its keys do not print', () => {
    const read = parseOrder(order, dialect)
    expect(read).toMatchObject({
      ok: true,
      value: {
        id: 'o1',
        externalOrderId: 'q1',
        productId: 'p1',
        quantity: 2,
        status: 'completed',
        statusWord: 'completed',
        amountMinor: 2_598,
        currency: 'EUR',
        failureCode: 'c',
        failureMessage: 'm',
        createdAt: 1_767_323_045_000,
      },
    })
    expect(read.ok && values(read.value.keys)).toEqual(['AAAA-1', 'AAAA-2'])
    expect(inspect(read, { depth: 9 }) + JSON.stringify(read)).not.toContain('AAAA')
  })

  it('is read by the paths of the dialect alone', () => {
    const read = parseOrder(
      { no: 9, ref: 'r', count: 1, phase: 'BACK', sum: 500, goods: [{ code: 'K' }], why: 'w' },
      otherDialect,
    )
    expect(read).toMatchObject({ ok: true, value: { id: '9', status: 'refunded', amountMinor: 500, currency: 'JPY' } })
    expect(read.ok && values(read.value.keys)).toEqual(['K'])
  })

  it.each(['queued', 'constructor', '__proto__', 'COMPLETED'])('stays open under an unmapped status: %s', (status) => {
    expect(parseOrder({ ...order, status }, dialect)).toMatchObject({ value: { status: 'open', statusWord: status } })
  })

  it.each<[string, unknown]>([
    ['id', undefined],
    ['id', {}],
    ['status', undefined],
    ['status', ''],
    ['quantity', '2'],
    ['amount', 25.98],
    ['amount', '-1'],
    ['keys', 'AAAA-1'],
    ['keys', ['AAAA-1', '']],
    ['keys', ['AAAA-1', null]],
    ['keys', ['AAAA-1', { code: 'x' }]],
    ['external_order_id', 7],
    ['created_at', 1_700_000_000],
  ])('cannot be read when %s is %j', (field, value) => {
    expect(parseOrder({ ...order, [field]: value }, dialect)).toMatchObject({ ok: false, field })
  })

  it('says what was there instead, and never a licence key', () => {
    const keyLike = 'AAAA-BBBB-1234'
    const seen = (fields: object) => {
      const read = parseOrder({ ...order, ...fields }, dialect)
      return read.ok ? undefined : [read.setting, read.seen]
    }
    expect(seen({ keys: keyLike })).toEqual(['order.keys', `a string of ${keyLike.length} characters`])
    expect(seen({ keys: { [keyLike]: true } })).toEqual(['order.keys', 'an object'])
    expect(seen({ quantity: { [keyLike]: true } })).toEqual(['order.quantity', 'an object with [removed]'])
    expect(seen({ keys: [keyLike, null] })).toEqual(['order.keys', 'a list of 2'])
    expect(seen({ quantity: '2' })).toEqual(['order.quantity', '"2"'])
    expect(seen({ amount: `${keyLike} of many` })).toEqual(['order.amount', '"[removed] of many"'])
    expect(seen({ amount: `paid\u001b[31m ${'a'.repeat(90)}` })).toEqual([
      'order.amount',
      `"paid [31m ${'a'.repeat(30)}…"`,
    ])
    expect(seen({ created_at: 12 })).toEqual(['order.createdAt', '12'])
    expect(seen({ created_at: { date: 'x', zone: 'y' } })).toEqual(['order.createdAt', 'an object with date, zone'])
    expect(seen({ status: null })).toEqual(['order.status', 'null'])
    expect(seen({ status: undefined })).toEqual(['order.status', 'nothing'])
  })

  it('may have no keys yet, and no reference of ours', () => {
    const read = parseOrder({ ...order, keys: null, external_order_id: null }, dialect)
    expect(read).toMatchObject({ ok: true, value: { keys: [], externalOrderId: undefined } })
  })
})

describe('an id that is a number beyond 2^53', () => {
  const parsed = (text: string) => readJson(Buffer.from(text))
  const orderText = (id: string, more = '') =>
    `{"id":${id},"external_order_id":"q1","product_id":${id},"quantity":2,"status":"completed"${more}}`

  it.each(['9007199254740993', '9007199254740992', '18446744073709551615', '-9007199254740993', '1'.repeat(200)])(
    'is read exactly: %s',
    (id) => {
      expect(parseOrder(parsed(orderText(id)), dialect)).toMatchObject({ ok: true, value: { id, productId: id } })
      const product = parsed(`{"id":${id},"sku":"S","name":"N","api_price":"1.00","available":true}`)
      expect(parseOffer(product, dialect)).toMatchObject({ ok: true, value: { productId: id } })
    },
  )

  it('is an id in any record, and two ids that differ in their last digit are different', () => {
    const [one, other] = ['9007199254740992', '9007199254740993'].map((id) =>
      parseOrder(parsed(orderText(id)), dialect),
    )
    expect(one?.ok && one.value.id).not.toBe(other?.ok && other.value.id)
    const keyed = parseOrder(parsed(orderText('7', ',"keys":["1234567890123456"]')), dialect)
    expect(keyed).toMatchObject({ ok: true, value: { id: '7' } })
  })

  it.each([
    ['1e20', 'no whole number in digits'],
    ['9007199254740993.5', 'a fraction'],
    ['1'.repeat(201), 'longer than an id'],
  ])('is refused where it cannot be exact: %s (%s)', (id) => {
    expect(parseOrder(parsed(orderText(id)), dialect)).toMatchObject({ ok: false, field: 'id' })
  })

  it('is only ever an id: no amount, count, text, flag or key is read so', () => {
    const long = '9007199254740993'
    const refused = (more: string) => parseOrder(parsed(orderText('7', more)), dialect)
    expect(refused(`,"amount":${long}`)).toMatchObject({ ok: false, field: 'amount', seen: long })
    expect(refused(`,"keys":[${long}]`)).toMatchObject({ ok: false, field: 'keys' })
    expect(refused(`,"failure":{"message":${long}}`)).toMatchObject({ ok: false, field: 'failure.message' })
    const minor = { ...dialect, money: { ...dialect.money, representation: 'minor' as const } }
    expect(parseOrder(parsed(orderText('7', `,"amount":${long}`)), minor)).toMatchObject({ ok: false, field: 'amount' })
    const number = { ...dialect, money: { ...dialect.money, representation: 'number' as const } }
    expect(parseOrder(parsed(orderText('7', `,"amount":${long}`)), number)).toMatchObject({
      ok: false,
      field: 'amount',
    })
  })

  it('names the order of a delivery', () => {
    const body = '{"event":"order.completed","data":{"order_id":9007199254740993}}'
    expect(readDelivery(Buffer.from(body), dialect)).toMatchObject({ supplierOrderId: '9007199254740993' })
  })

  it('does not change other documents', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        fc.pre(!/\d{16}/.test(JSON.stringify(value)))
        const text = JSON.stringify({ value, long: '1234567890123456' })
        expect(readJson(Buffer.from(text))).toEqual(JSON.parse(text))
      }),
    )
    expect(JSON.stringify(parsed('{"__proto__":1,"n":1234567890123456}'))).toBe('{"__proto__":1,"n":1234567890123456}')
  })
})

describe('balance and webhooks of the supplier', () => {
  it('are read', () => {
    const balance = {
      balance: '-3.20',
      currency: 'EUR',
      vip_tier: 'gold',
      limits: { requests_per_minute: 60, max_quantity: 50 },
    }
    expect(parseBalance(balance, dialect)).toEqual({
      ok: true,
      value: { amountMinor: -320, currency: 'EUR', tier: 'gold', requestsPerMinute: 60, quantityMax: 50 },
    })
    const webhook = { id: 'w1', url: 'https://x/y', events: ['order.completed', 'order.shipped'], secret: 's3cret' }
    const read = parseWebhook(webhook, dialect)
    expect(read).toMatchObject({ ok: true, value: { id: 'w1', url: 'https://x/y', events: ['order.completed'] } })
    expect(JSON.stringify(read)).not.toContain('s3cret')
  })

  it('cannot be read without their required fields', () => {
    expect(parseBalance({ currency: 'EUR' }, dialect)).toEqual({
      ok: false,
      field: 'balance',
      setting: 'balance.amount',
      seen: 'nothing',
    })
    expect(parseWebhook({ id: 'w1', url: 'u', events: 'all' }, dialect)).toEqual({
      ok: false,
      field: 'events',
      setting: 'webhook.events',
      seen: '"all"',
    })
  })
})

describe('readers of the supplier', () => {
  it('never throw on any JSON', () => {
    const overlaid = (base: object) =>
      fc.record(
        Object.fromEntries(
          Object.entries(base).map(([key, value]) => [key, fc.oneof(fc.constant(value), fc.jsonValue())]),
        ),
      )
    const records = fc.oneof(fc.jsonValue(), overlaid(product), overlaid(order))
    fc.assert(
      fc.property(records, fc.constantFrom(dialect, otherDialect), (record, under) => {
        for (const read of [parseOffer, parseOrder, parseBalance, parseWebhook]) {
          expect(typeof read(record, under).ok).toBe('boolean')
        }
        expect(errorAnswer(record, under)?.code).not.toBe('')
      }),
    )
  })

  it('give undefined for bytes that are no UTF-8 JSON', () => {
    expect(readJson(Buffer.from([0x22, 0xff, 0x22]))).toBeUndefined()
    expect(readJson(Buffer.from('{"a":1'))).toBeUndefined()
    expect(readJson(Buffer.from(''))).toBeUndefined()
    expect(readJson(Buffer.from('\ufeff{"a":1}'))).toEqual({ a: 1 })
  })

  it('shorten the message of an error to one line', () => {
    const json = { success: false, error: { code: 'x', message: `no\n\u001b[31m ${'a'.repeat(900)}` } }
    expect(errorAnswer(json, dialect)?.message).toMatch(/^no \[31m a{490,}$/)
    expect(errorAnswer(json, dialect)?.message.length).toBe(500)
  })

  it('write instants as the dialect does', () => {
    expect(writeInstant(1_700_000_000_999, dialect)).toBe('2023-11-14T22:13:20.999Z')
    expect(writeInstant(1_700_000_000_999, otherDialect)).toBe('1700000000')
    expect(writeInstant(1_700_000_000_999, { ...dialect, instants: 'epoch_ms' })).toBe('1700000000999')
  })
})

describe('an OpenAPI description', () => {
  it.each([
    [{ openapi: '3.1.0', info: { version: '1.1' } }, '1.1'],
    [{ openapi: '3.0.3', info: { version: '1.1' } }, undefined],
    [{ openapi: '3.1.0', info: { version: 1.1 } }, undefined],
    [null, undefined],
  ])('%j states version %j', (document, version) => {
    expect(apiVersion(document)).toBe(version)
  })
})
