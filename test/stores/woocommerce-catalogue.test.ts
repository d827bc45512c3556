import { describe, expect, test } from 'vitest'
import type { StoreListing } from '../../src/stores/store.ts'
import { answerOf, itemOf, nextBatchSize, searches, shopVariant } from '../../src/stores/woocommerce/catalogue.ts'
import { capturedAnswer } from '../support/woocommerce-fixtures.ts'

const listing = (set: Partial<StoreListing> = {}): StoreListing => ({
  id: '10',
  sku: 'KEY-A',
  name: 'Game',
  category: null,
  price: '10.00',
  compareAt: null,
  currency: 'EUR',
  stock: 7,
  available: true,
  revision: 1,
  ...set,
})
const simple = { parent: null, id: '10' }

/** The items that WooCommerce answered, by their id. */
function captured(name: string, id: number): unknown {
  const { update } = capturedAnswer(name).body as { update: { id: number }[] }
  return update.find((item) => item.id === id)
}

describe('a listing of WooCommerce', () => {
  test('is sent with its price and its stock, or its stock alone, and leaves a sale price of the merchant alone', () => {
    const item = { id: 10, regular_price: '10.00', manage_stock: true, stock_quantity: 7 }
    expect(itemOf(listing({ compareAt: '12.00' }), simple, false)).toEqual(item)
    expect(itemOf(listing({ compareAt: '12.00' }), simple, true)).toEqual({
      ...item,
      regular_price: '12.00',
      sale_price: '10.00',
    })
    expect(itemOf(listing(), simple, true)).toEqual({ ...item, sale_price: '' })
    expect(itemOf(listing({ stock: null }), simple, false)).toEqual({
      id: 10,
      regular_price: '10.00',
      manage_stock: false,
      stock_status: 'instock',
    })
    const withdrawn = listing({ stock: 0, available: false, stockAlone: true })
    for (const ownsSalePrice of [false, true])
      expect(itemOf(withdrawn, simple, ownsSalePrice)).toEqual({ id: 10, manage_stock: true, stock_quantity: 0 })
    expect(itemOf(listing({ isGone: true }), { parent: '13', id: '14' }, false)).toMatchObject({ status: 'private' })
  })

  test.each([
    [
      'a lower sale price',
      '19-batch-sale-price',
      11,
      { ok: true, price: '8.00', notice: { reason: 'sale_price', detail: expect.stringContaining('8.00 EUR') } },
    ],
    ['no such product', '16-batch-partial-failure', 999999, { ok: false, reason: 'the shop has no product 999999' }],
    ['no price', '16-batch-partial-failure', 11, { ok: false, reason: 'the shop kept no price for it' }],
    ['another price', '17-batch-number-price', 10, { ok: true, price: '23.5', stock: 14 }],
    ['another stock', '17-batch-number-price', 12, { ok: true, stock: null }],
    [
      'variations',
      '21-batch-price-on-variable-parent',
      13,
      { ok: false, reason: expect.stringContaining('variations') },
    ],
    [
      'a parent',
      '20-batch-of-variation-ids-on-products',
      14,
      { ok: false, reason: expect.stringContaining('variation') },
    ],
    [
      'a SKU of another',
      '16-batch-partial-failure',
      12,
      { ok: false, reason: 'the shop refused it (product_invalid_sku)' },
    ],
  ])('that the shop answers as one with %s is reported so', (_, name, id, answer) => {
    expect(answerOf(listing({ id: String(id) }), captured(name, id), false)).toMatchObject(answer)
  })

  test('is out of stock where it cannot be bought, counted or not, and a draft where it is gone', () => {
    const gone = listing({ available: false, isGone: true })
    expect(itemOf(gone, simple, false)).toMatchObject({ stock_quantity: 0, status: 'draft' })
    expect(itemOf(listing({ stock: null, available: false }), simple, false)).toMatchObject({
      manage_stock: false,
      stock_status: 'outofstock',
    })
  })

  const item = {
    id: 10,
    type: 'simple',
    price: '10.00',
    manage_stock: true,
    stock_quantity: 7,
    stock_status: 'instock',
  }
  const out = { ...item, stock_quantity: 0, stock_status: 'outofstock' }
  const sold = { stock: 0, available: false } as const
  test.each<[string, Partial<StoreListing>, object, object]>([
    ['as it was sent', {}, item, { ok: true, price: '10.00', stock: 7 }],
    [
      'with a price that is none',
      {},
      { ...item, price: 'abc' },
      { ok: false, reason: expect.stringContaining('read') },
    ],
    ['whose stock is not counted', {}, { ...item, manage_stock: false }, { ok: true, stock: null }],
    ['whose stock its product counts', {}, { ...item, manage_stock: 'parent' }, { ok: true, stock: null }],
    ['that sold out meanwhile', {}, out, { ok: true, stock: 0 }],
    ['that is sold out', sold, out, { ok: true, stock: 0 }],
    ['that cannot be bought', { available: false }, out, { ok: true, stock: 7 }],
    [
      'sold out, which can be bought',
      sold,
      { ...out, backorders_allowed: true },
      { reason: expect.stringContaining('backorders') },
    ],
    ['in stock, which can be bought without', {}, { ...item, backorders_allowed: true }, { ok: true, stock: 7 }],
    ['sold out, in stock', { stock: 0 }, { ...out, stock_status: 'instock' }, { reason: 'the shop keeps it in stock' }],
    ['not for sale, in stock', { available: false }, item, { reason: 'the shop keeps it in stock' }],
    [
      'whose price is not said after its stock alone',
      { stockAlone: true },
      { ...item, price: '' },
      { ok: true, price: '10.00' },
    ],
  ])('that the shop answers as one %s has that said', (_, set, answered, answer) => {
    expect(answerOf(listing(set), answered, false)).toMatchObject(answer)
  })

  test('has a sale price only where that is what customers pay, and it is the merchant who made it', () => {
    const notice = (set: Partial<StoreListing>, sale: object, owns = false) =>
      (answerOf(listing(set), { ...item, ...sale }, owns) as { notice?: object }).notice !== undefined
    const onSale = { price: '8.00', sale_price: '8.00' }
    expect(notice({}, onSale)).toBe(true)
    expect(notice({}, { price: '10.00', sale_price: '8.00' }), 'a sale that has not begun').toBe(false)
    expect(notice({}, { price: '10.00', sale_price: '' })).toBe(false)
    expect(notice({}, onSale, true)).toBe(false)
    expect(notice({ price: '8.00', stockAlone: true }, onSale)).toBe(false)
  })

  test('of which the answer cannot be read has no answer', () => {
    for (const one of [undefined, null, 'x', { price: '10.00' }])
      expect(answerOf(listing(), one, false)).toBeUndefined()
  })

  test.each(['0', '10:', 'a', '10:14:2', '-1', '1.5'])('has no id like %s', (text) => {
    expect(shopVariant(text)).toBeUndefined()
  })
})

test('batches shrink where the shop is slow or does not answer, and grow again', () => {
  const answered = (size: number, ms: number) => nextBatchSize(size, { ms, isAnswered: true })
  expect(answered(100, 20_001)).toBe(50)
  expect(nextBatchSize(50, { ms: 10, isAnswered: false })).toBe(25)
  expect(answered(12, 60_000)).toBe(10)
  expect(answered(10, 8_000)).toBe(10)
  expect(answered(80, 1_000)).toBe(100)
  expect([answered(60, 20_000), answered(60, 5_000), answered(30, 4_999)]).toEqual([60, 60, 60])
})

test('SKUs are looked up together, but one with a comma alone, in addresses that every server takes', () => {
  expect(searches(['A', 'B', 'C,1', 'D', 'A'])).toEqual([['A', 'B'], ['C,1'], ['D']])
  const short = Array.from({ length: 150 }, (_, index) => `${index}`)
  expect(searches(short).map((group) => group.length)).toEqual([100, 50])
  const long = Array.from({ length: 100 }, (_, index) => `SKU-${'x'.repeat(40)}-${index}`)
  const groups = searches(long)
  expect(groups.flat()).toEqual(long)
  expect(groups[0]?.length, 'as many as fit').toBeGreaterThan(25)
  expect(Math.max(...groups.map((group) => encodeURIComponent(group.join(',')).length))).toBeLessThan(1_600)
})
