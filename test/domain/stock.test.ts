import { describe, expect, test } from 'vitest'
import { explainStock, publishedStock, type StockPolicy } from '../../src/domain/stock.ts'

const offer = { localStock: 3, providerStock: 40, available: true }
const policyOf = (policy: Partial<StockPolicy> = {}): StockPolicy => ({
  source: 'both',
  buffer: 0,
  cap: null,
  zeroUnder: 0,
  ...policy,
})

describe('the stock that a store shows', () => {
  test.each([
    ['both together', {}, 43],
    ['one of them alone', { source: 'provider' }, 40],
    ['none of what is kept back', { buffer: 42 }, 1],
    ['nothing when all is kept back', { buffer: 43 }, 0],
    ['nothing under the threshold, counted after the buffer', { buffer: 40, zeroUnder: 4 }, 0],
    ['what reaches the threshold', { buffer: 40, zeroUnder: 3 }, 3],
    ['the cap at most', { buffer: 3, cap: 25 }, 25],
  ] as const)('is %s', (_what, policy, stock) => {
    expect(publishedStock(offer, policyOf(policy))).toEqual({ stock, available: stock > 0 })
  })

  test('is none of an offer that cannot be bought, whatever its numbers', () => {
    expect(publishedStock({ ...offer, available: false }, policyOf({ cap: 5 }))).toEqual({ stock: 0, available: false })
  })

  test('is not counted where the supplier does not count, unless a cap gives it a number', () => {
    const uncounted = { localStock: null, providerStock: null, available: true }
    expect(publishedStock(uncounted, policyOf({ buffer: 5, zeroUnder: 5 }))).toEqual({ stock: null, available: true })
    expect(publishedStock(uncounted, policyOf({ cap: 7 }))).toEqual({ stock: 7, available: true })
  })

  test('is none of a stock that is not stated while the other one is', () => {
    const local = policyOf({ source: 'local' })
    expect(publishedStock({ ...offer, localStock: null }, local)).toEqual({ stock: 0, available: false })
    expect(publishedStock({ ...offer, localStock: null }, policyOf())).toEqual({ stock: 40, available: true })
    expect(publishedStock({ ...offer, providerStock: null }, policyOf())).toEqual({ stock: 3, available: true })
  })

  test('takes a stock below zero for none', () => {
    expect(publishedStock({ ...offer, localStock: -5 }, policyOf())).toEqual({ stock: 40, available: true })
  })

  test('is explained by the steps that changed it', () => {
    const { steps, ...shown } = explainStock(offer, policyOf({ buffer: 3, cap: 25, zeroUnder: 2 }))
    expect(shown).toEqual({ stock: 25, available: true })
    expect(steps.map(({ step, units }) => [step, units])).toEqual([
      ['source', 43],
      ['buffer', 40],
      ['cap', 25],
    ])
  })
})
