import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  isHeld,
  nextOrders,
  numberOf,
  type OrderSettings,
  orderNamedBy,
  type ShopLine,
  type ShopOrder,
  storeOrderOf,
  unitPrice,
  verifyDelivery,
} from '../../src/stores/shopify/orders.ts'
import { validatedByShopify } from '../support/shopify-validator.ts'

const settings: OrderSettings = {
  holdAtRisk: null,
  retryTag: 'quayside-retry',
  buyTestOrders: false,
}
const line = (set: Partial<ShopLine> = {}): ShopLine => ({
  id: '11',
  sku: 'A',
  currentQuantity: 2,
  discountedUnitPriceAfterAllDiscountsSet: { shopMoney: { amount: '9.0', currencyCode: 'EUR' } },
  variant: { id: '21' },
  ...set,
})
const order = (set: Partial<ShopOrder> = {}): ShopOrder => ({
  id: '1',
  cancelledAt: null,
  displayFinancialStatus: 'PAID',
  fullyPaid: true,
  displayFulfillmentStatus: 'UNFULFILLED',
  createdAt: '2026-01-01T10:00:00Z',
  processedAt: '2026-01-01T10:00:00Z',
  updatedAt: '2026-01-01T11:00:00Z',
  test: false,
  taxesIncluded: true,
  totalRefundedSet: { shopMoney: { amount: '0.0', currencyCode: 'EUR' } },
  metafield: null,
  tags: [],
  transactions: [],
  risk: { recommendation: 'NONE' },
  lineItems: { nodes: [], next: null },
  ...set,
})
const read = (set: Partial<ShopOrder> = {}, lines = [line()], set2: Partial<OrderSettings> = {}) =>
  storeOrderOf(order(set), lines, { ...settings, ...set2 })

describe('an order of Shopify', () => {
  test('is read with what the customer paid for a unit that is still ordered', () => {
    expect(read()).toEqual({
      reference: '1',
      standing: 'paid',
      fullyPaid: true,
      placedAt: Date.parse('2026-01-01T10:00:00Z'),
      changedAt: Date.UTC(2026, 0, 1, 11),
      paidAt: Date.UTC(2026, 0, 1, 10),
      lines: [{ id: '11', variant: '21', sku: 'A', quantity: 2, unitPrice: '9.00', currency: 'EUR' }],
    })
  })

  test.each([
    ['PAID', true, null, 'paid'],
    ['PARTIALLY_REFUNDED', true, null, 'paid'],
    ['PENDING', true, null, 'paid'],
    ['PARTIALLY_REFUNDED', false, null, 'paid'],
    ['PARTIALLY_PAID', false, null, 'paid'],
    ['PENDING', false, null, 'unpaid'],
    ['AUTHORIZED', false, null, 'unpaid'],
    ['EXPIRED', false, null, 'unpaid'],
    [null, false, null, 'unpaid'],
    ['REFUNDED', true, null, 'cancelled'],
    ['VOIDED', false, null, 'cancelled'],
    ['PAID', true, '2026-01-02T00:00:00Z', 'cancelled'],
  ])('that is %s, fully paid: %s, cancelled at %s, is %s', (displayFinancialStatus, fullyPaid, cancelledAt, state) => {
    expect(read({ displayFinancialStatus, fullyPaid, cancelledAt })).toMatchObject({ standing: state, fullyPaid })
  })

  test.each([
    ['AUTHORIZED', '"capture when fulfilled"'],
    ['PARTIALLY_PAID', 'only in part'],
    ['PARTIALLY_REFUNDED', 'only in part'],
  ])('that is %s says what its merchant can do', (displayFinancialStatus, words) => {
    const order = read({ displayFinancialStatus, fullyPaid: false })
    expect(order).toMatchObject({ because: expect.stringContaining(words), isForMerchant: true })
    expect(read({ displayFinancialStatus: 'PENDING', fullyPaid: false })).not.toHaveProperty('isForMerchant')
  })

  test('was placed when its customer checked out, also where it was imported later', () => {
    const createdAt = '2026-02-01T10:00:00Z'
    expect(read({ createdAt }).placedAt).toBe(Date.UTC(2026, 0, 1, 10))
    expect(read({ createdAt: '2025-12-31T10:00:00Z' }).placedAt).toBe(Date.UTC(2025, 11, 31, 10))
  })

  test('says what was refunded without units, and whether a hand-over of ours has left its mark', () => {
    expect(storeOrderOf(order({ metafield: {} }), [line()], settings, 250)).toMatchObject({
      refundedAmount: '2.50',
      hasOurKeys: true,
    })
    expect(Object.keys(read())).not.toContain('refundedAmount')
  })

  test('that is sound has no fault, and is done once all of it is fulfilled', () => {
    expect(read()).not.toHaveProperty('fault')
    expect(read()).not.toHaveProperty('isDone')
    expect(read({ displayFulfillmentStatus: 'PARTIALLY_FULFILLED' })).not.toHaveProperty('isDone')
    expect(read({ displayFulfillmentStatus: 'FULFILLED' })).toMatchObject({ isDone: true })
  })

  test('says so where as little as a cent went back without units', () => {
    expect(storeOrderOf(order(), [line()], settings, 1)).toMatchObject({ refundedAmount: '0.01' })
  })

  test('whose variant is gone and has no SKU is read all the same', () => {
    const [gone] = read({}, [line({ variant: null, sku: null })]).lines
    expect(gone).toMatchObject({ variant: null, sku: '', quantity: 2 })
  })

  test('that is not paid has no instant of payment, though it was processed', () => {
    expect(read({ displayFinancialStatus: 'PENDING', fullyPaid: false }).paidAt).toBeNull()
    expect(read({ cancelledAt: '2026-01-02T00:00:00Z' }).paidAt).toBeNull()
  })

  test('of which one date cannot be read was placed at the other one, or when it was made', () => {
    expect(read({ processedAt: '' }).placedAt).toBe(Date.UTC(2026, 0, 1, 10))
    expect(read({ createdAt: '' }).placedAt).toBeNull()
  })

  test('that was captured alone is paid since then', () => {
    const transactions = [{ kind: 'CAPTURE', status: 'SUCCESS', processedAt: '2026-01-02T00:00:00Z' }]
    expect(read({ transactions }).paidAt).toBe(Date.UTC(2026, 0, 2))
  })

  test('is paid when its last payment succeeded, not when it was placed', () => {
    const transactions = [
      { kind: 'AUTHORIZATION', status: 'SUCCESS', processedAt: '2026-01-04T00:00:00Z' },
      { kind: 'CAPTURE', status: 'SUCCESS', processedAt: '2026-01-02T00:00:00Z' },
      { kind: 'SALE', status: 'SUCCESS', processedAt: '2026-01-03T00:00:00Z' },
      { kind: 'SALE', status: 'FAILURE', processedAt: '2026-01-05T00:00:00Z' },
    ]
    expect(read({ transactions }).paidAt).toBe(Date.UTC(2026, 0, 3))
  })

  test.each([
    [null, 'CANCEL', [], false],
    ['cancel', 'CANCEL', [], true],
    ['cancel', 'INVESTIGATE', [], false],
    ['investigate', 'CANCEL', [], true],
    ['investigate', 'INVESTIGATE', [], true],
    ['investigate', 'ACCEPT', [], false],
    ['investigate', 'NONE', [], false],
    ['investigate', 'CANCEL', ['Quayside-Released'], false],
  ] as const)(
    'with holdAtRisk %s and the recommendation %s, tagged %j, is held: %s',
    (holdAtRisk, recommendation, tags, held) => {
      expect(isHeld({ risk: { recommendation }, tags: [...tags] }, { holdAtRisk })).toBe(held)
      expect(read({ risk: { recommendation }, tags: [...tags] }, [line()], { holdAtRisk }).standing).toBe(
        held ? 'held' : 'paid',
      )
    },
  )

  test('asks to be tried again by its tag, in any case', () => {
    expect(read({ tags: ['x', 'Quayside-Retry'] }).retry).toBe(true)
    expect(read({ tags: ['x'] }).retry).toBeUndefined()
  })

  const money = (amount: string, currencyCode = 'EUR') => ({
    discountedUnitPriceAfterAllDiscountsSet: { shopMoney: { amount, currencyCode } },
  })
  test.each([
    ['a test of the shop', read({ test: true }), 'it is a test order'],
    ['without lines', read({}, []), 'no lines'],
    ['with an amount that is none', read({}, [line(money('9,00'))]), 'an amount'],
    ['with a negative price', read({}, [line(money('-1.0'))]), 'an amount'],
    ['without a currency', read({}, [line(money('9.0', ''))]), 'an amount'],
    ['with one amount of two that is none', read({}, [line(), line(money(''))]), 'an amount'],
    [
      'with a refund that is none',
      read({ totalRefundedSet: { shopMoney: { amount: '', currencyCode: 'EUR' } } }),
      'an amount',
    ],
    ['in two currencies', read({}, [line(), line(money('9.0', 'USD'))]), 'several currencies'],
  ])('%s is not bought', (_what, { fault }, why) => {
    expect(fault).toContain(why)
  })

  test('of test payments is bought where that is configured', () => {
    expect(read({ test: true }, [line()], { buyTestOrders: true }).fault).toBeUndefined()
  })

  test.each([
    ['9.0', 'EUR', '9.00'],
    ['9', 'EUR', '9.00'],
    ['3.33999', 'EUR', '3.33'],
    ['0.0', 'EUR', '0.00'],
    ['900.0', 'JPY', '900'],
    ['1.2345', 'KWD', '1.234'],
    ['1e3', 'EUR', undefined],
    ['', 'EUR', undefined],
  ])('that costs %s %s a unit costs %s', (amount, currencyCode, text) => {
    expect(unitPrice({ amount, currencyCode })).toBe(text)
  })
})

describe('a delivery of Shopify', () => {
  const named = (value: unknown) => orderNamedBy(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)))

  test('names its order, whose number can exceed what a number of JavaScript holds', () => {
    const huge = '820982911946154508'
    expect(named(`{"id":${huge},"admin_graphql_api_id":"gid://shopify/Order/${huge}"}`)).toEqual({
      outcome: 'named',
      reference: huge,
    })
    expect(named(`{"id":1,"order_id":${huge},"admin_graphql_api_id":"gid://shopify/Refund/1"}`)).toEqual({
      outcome: 'named',
      reference: huge,
    })
    expect(named(`{"order_edit":{"id":1,"order_id":${huge}}}`)).toEqual({ outcome: 'named', reference: huge })
  })

  test('about a hold that was released names a part of its order', () => {
    const fulfillment_order = { id: 'gid://shopify/FulfillmentOrder/12' }
    const fulfillment_hold = { id: 'gid://shopify/FulfillmentHold/3' }
    expect(named({ fulfillment_order, fulfillment_hold })).toEqual({ outcome: 'part_named', part: '12' })
    expect(named({ fulfillment_order: { id: 'gid://shopify/Order/12' } })).toMatchObject({ outcome: 'ignored' })
  })

  test.each([
    [{ id: 1, admin_graphql_api_id: 'gid://shopify/Product/1' }, 'ignored'],
    [{ id: 1 }, 'ignored'],
    [[], 'ignored'],
    [null, 'ignored'],
    [{ order_id: -1 }, 'ignored'],
    [{ order_id: 1.5 }, 'ignored'],
    [{ admin_graphql_api_id: 'gid://shopify/Order/1/../2' }, 'ignored'],
    ['{"id":', 'unreadable'],
  ])('with %j is %s', (body, outcome) => {
    expect(named(body)).toMatchObject({ outcome })
  })

  test('names what it is about by ids alone', () => {
    expect(numberOf('Order', 'gid://shopify/Order/12')).toBe('12')
    expect(numberOf('Order', 'gid://shopify/OrderEdit/12')).toBeUndefined()
    expect(numberOf('Order', 'gid://shopify/Order/0')).toBeUndefined()
    expect(numberOf('Order', 12)).toBeUndefined()
  })

  const body = Buffer.from('{"id":1}')
  const signed = (secret: string) => createHmac('sha256', secret).update(body).digest('base64')
  const verify = (headers: Record<string, string[]>, secrets = ['new', 'old']) =>
    verifyDelivery({ headers, body }, secrets)

  /** Whether Shopify's own library takes a delivery with these signatures. A header that comes twice reaches it joined. */
  const validated = async (signatures: Record<string, string[]>, sent = body): Promise<boolean> => {
    const about = {
      topic: 'orders/paid',
      'shop-domain': 'a.myshopify.com',
      'api-version': '2026-07',
      'webhook-id': '1',
    }
    const headers = {
      ...Object.fromEntries(Object.entries(about).map(([name, value]) => [`x-shopify-${name}`, value])),
      ...Object.fromEntries(Object.entries(signatures).map(([name, values]) => [name, values.join(', ')])),
    }
    const request = { url: 'https://quayside.test/', headers, body: sent.toString() }
    return (await validatedByShopify('new', request)).valid
  }

  test('is known by either name of its header, and by the secret before a rotation', () => {
    for (const name of ['x-shopify-hmac-sha256', 'shopify-hmac-sha256']) {
      expect(verify({ [name]: [signed('new')] }).outcome).toBe('authentic')
    }
    expect(verify({ 'x-shopify-hmac-sha256': [signed('old')] }).outcome).toBe('authentic')
    expect(verify({ 'x-shopify-hmac-sha256': [signed('old')] }, ['new']).outcome).toBe('not_authentic')
  })

  test.each([
    ['none', {}, 'no_signature'],
    ['two', { 'x-shopify-hmac-sha256': [signed('new'), signed('new')] }, 'malformed_signature'],
    [
      'one under each name',
      { 'x-shopify-hmac-sha256': [signed('new')], 'shopify-hmac-sha256': [signed('new')] },
      'malformed_signature',
    ],
    ['another one', { 'x-shopify-hmac-sha256': [signed('other')] }, 'wrong_signature'],
    ['one in hex', { 'x-shopify-hmac-sha256': ['00'.repeat(32)] }, 'malformed_signature'],
    ['one with a byte more', { 'x-shopify-hmac-sha256': [`${signed('new')}AA==`] }, 'malformed_signature'],
    ['an empty one', { 'x-shopify-hmac-sha256': [''] }, 'malformed_signature'],
  ])('with %s of its signatures is not authentic, as Shopify itself says', async (_what, headers, reason) => {
    expect(verify(headers as Record<string, string[]>)).toEqual({ outcome: 'not_authentic', reason })
    expect(await validated(headers as Record<string, string[]>)).toBe(false)
  })

  test('with its signature is authentic for Shopify, too, and with another body for neither', async () => {
    const headers = { 'x-shopify-hmac-sha256': [signed('new')] }
    expect(await validated(headers)).toBe(true)
    const other = Buffer.from('{"id":2}')
    expect(verifyDelivery({ headers, body: other }, ['new']).outcome).toBe('not_authentic')
    expect(await validated(headers, other)).toBe(false)
  })

  const fixture = (topic: string) =>
    readFileSync(new URL(`../fixtures/shopify/${topic}.captured.json`, import.meta.url))

  test.each([
    ['orders-paid', { outcome: 'named', reference: '5324830114102' }],
    ['orders-cancelled', { outcome: 'named', reference: '5324790137142' }],
    ['products-update', { outcome: 'ignored', detail: 'the body is about no order' }],
  ])('that a shop has sent, %s, is read', (topic, name) => {
    expect(orderNamedBy(fixture(topic))).toEqual(name)
  })
})

describe('the next page of changed orders', () => {
  const from = Date.UTC(2026, 0, 1)

  test('is the one after, while there is one', () => {
    expect(nextOrders({ from, after: null }, { last: from + 5, endCursor: 'c1' })).toEqual({
      next: { from, after: 'c1' },
      more: true,
    })
  })

  test('begins ten minutes before the newest change at the end, and never goes back', () => {
    const end = (last: number | null, shopNow?: number) =>
      nextOrders({ from, after: 'c1' }, { last, endCursor: null }, shopNow).next.from - from
    expect(end(from + 3_600_000)).toBe(3_000_000)
    expect(end(from + 60_000)).toBe(0)
    expect(end(null)).toBe(0)
    expect(end(from + 9 * 3_600_000, from + 1_800_000)).toBe(1_200_000)
  })

  test('is no page that was read already', () => {
    expect(nextOrders({ from, after: 'c1' }, { last: from, endCursor: 'c1' }).more).toBe(false)
  })
})
