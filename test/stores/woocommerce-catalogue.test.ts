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
})

test('SKUs are looked up together, but one with a comma alone, in addresses that every server takes', () => {
  expect(searches(['A', 'B', 'C,1', 'D', 'A'])).toEqual([['A', 'B'], ['C,1'], ['D']])
  const long = Array.from({ length: 100 }, (_, index) => `SKU-${'x'.repeat(40)}-${index}`)
  const groups = searches(long)
  expect(groups.flat()).toEqual(long)
  expect(Math.max(...groups.map((group) => encodeURIComponent(group.join(',')).length))).toBeLessThan(1_600)
})
