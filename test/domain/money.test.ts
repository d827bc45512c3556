import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decimalsOf,
  formatDecimal,
  parseDecimal,
  parseScaled,
  priceTexts,
  raiseByPercent,
  roundPrice,
  scale,
  stepPattern,
} from '../../src/domain/money.ts'
import { ceilingMinor } from '../../src/domain/pricing.ts'
import { readRate } from '../../src/domain/rates.ts'

const currency = fc.constantFrom('EUR', 'USD', 'JPY', 'KRW', 'KWD', 'TND')
const amount = fc.integer({ min: -9_999_999_999_999, max: 9_999_999_999_999 })

describe('an amount', () => {
  test.each([
    ['12.99', 'EUR', 1_299],
    ['12.9', 'EUR', 1_290],
    ['12', 'EUR', 1_200],
    ['0.01', 'EUR', 1],
    ['007.50', 'EUR', 750],
    ['12.990000', 'EUR', 1_299],
    ['-12.99', 'EUR', -1_299],
    ['1299', 'JPY', 1_299],
    ['1299.000', 'JPY', 1_299],
    ['12.995', 'KWD', 12_995],
    ['12.9', 'KWD', 12_900],
    ['90071992547409.91', 'EUR', Number.MAX_SAFE_INTEGER],
  ])('of %s %s is %i minor units', (text, code, minor) => {
    expect(parseDecimal(text, code)).toBe(minor)
  })

  test('of nothing is never a negative zero', () => {
    for (const text of ['0', '-0', '-0.00', '0.000']) expect(Object.is(parseDecimal(text, 'EUR'), 0)).toBe(true)
  })

  test.each([
    ...['', ' ', '.', '-', '+', '12.', '.5', '-.5', '+12', '--1', '1-', ' 12', '12 ', '12\n', '\t12', '1 2'],
    ...['1,299.00', '12,99', '1_000', '1e3', '1E3', '0x10', '0b1', 'NaN', 'Infinity', 'null', '12.9.9', '12€', '€12'],
    ...['１２', '١٢', '12٫99', '1\u00002', '12\u200b', '−12', '1'.repeat(16), '1'.repeat(5_000), `1.${'0'.repeat(13)}`],
    ...['12.999', '0.001', '90071992547409.92', '999999999999999.99'],
  ])('is not read from %j', (text) => {
    expect(parseDecimal(text, 'EUR')).toBeUndefined()
  })

  test('has no digits beyond the minor unit of its currency', () => {
    expect(parseDecimal('12.5', 'JPY')).toBeUndefined()
    expect(parseDecimal('12.9999', 'KWD')).toBeUndefined()
  })

  test.each([
    [1_299, 'EUR', '12.99'],
    [5, 'EUR', '0.05'],
    [0, 'EUR', '0.00'],
    [-5, 'EUR', '-0.05'],
    [-1_299, 'EUR', '-12.99'],
    [1_299, 'JPY', '1299'],
    [-1, 'JPY', '-1'],
    [0, 'JPY', '0'],
    [1_299, 'KWD', '1.299'],
    [9, 'KWD', '0.009'],
  ])('of %i minor units of %s is printed as %s', (minor, code, text) => {
    expect(formatDecimal({ minor, currency: code })).toBe(text)
  })

  test('is read as it was printed, with 0, 2 and 3 decimals', () => {
    expect(['JPY', 'EUR', 'KWD', 'XYZ'].map(decimalsOf)).toEqual([0, 2, 3, 2])
    fc.assert(
      fc.property(amount, currency, (minor, code) => {
        expect(parseDecimal(formatDecimal({ minor, currency: code }), code)).toBe(minor)
      }),
    )
  })

  test('is read as a safe integer or not at all, whatever the text', () => {
    const texts = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'0123456789.-+e, ') }))
    fc.assert(
      fc.property(texts, currency, (text, code) => {
        const minor = parseDecimal(text, code)
        if (minor === undefined) return
        expect(Number.isSafeInteger(minor)).toBe(true)
        expect(Number(formatDecimal({ minor, currency: code }))).toBe(Number(text) + 0)
      }),
    )
  })
})

describe('a whole number of smaller units', () => {
  test.each<[text: string, decimals: number, code: string, minor: number | undefined]>([
    ['15270', 3, 'EUR', 1_527],
    ['15271', 3, 'EUR', undefined],
    ['5', 2, 'EUR', 5],
    ['-1299', 2, 'EUR', -1_299],
    ['12', 0, 'EUR', 1_200],
    ['12', -2, 'JPY', 1_200],
    ['1299', 3, 'KWD', 1_299],
    [`1299${'0'.repeat(10)}`, 12, 'EUR', 1_299],
    [`1299${'0'.repeat(11)}`, 13, 'EUR', undefined],
    ['1', -13, 'JPY', undefined],
    ['12', 0.5, 'EUR', undefined],
    ['12.5', 2, 'EUR', undefined],
  ])('%s with %d decimals of %s is %d minor units', (text, decimals, code, minor) => {
    expect(parseScaled(text, decimals, code)).toBe(minor)
  })
})

describe('a price', () => {
  const fives = { every: 5, at: 0 }
  const nines = { every: 100, at: 99 }
  test.each<[minor: number, direction: 'up' | 'down' | 'nearest', floor: number, price: number]>([
    [1_201, 'up', 0, 1_205],
    [1_204, 'down', 0, 1_200],
    [1_202, 'nearest', 0, 1_200],
    [1_203, 'nearest', 0, 1_205],
    [1_205, 'nearest', 0, 1_205],
    [1_204, 'down', 1_201, 1_205],
    [1_204, 'down', 1_200, 1_200],
    [1_298, 'nearest', 0, 1_299],
  ])('of %d rounded %s, at or above %d, is %d', (minor, direction, floor, price) => {
    expect(roundPrice(minor, floor, { patterns: [fives, nines], direction })).toBe(price)
  })

  test('half way between two right ones goes up, and without a right one is the larger of itself and its floor', () => {
    expect(roundPrice(105, 0, { patterns: [{ every: 10, at: 0 }], direction: 'nearest' })).toBe(110)
    expect([50, 200].map((floor) => roundPrice(100, floor, { patterns: [], direction: 'down' }))).toEqual([100, 200])
  })

  test('is written with its compare-at price, where it has one', () => {
    expect(priceTexts({ priceMinor: 1_299, compareAtMinor: 1_999, currency: 'EUR' })).toEqual({
      price: '12.99',
      compareAt: '19.99',
    })
    expect(priceTexts({ priceMinor: 1_299, compareAtMinor: null, currency: 'JPY' })).toEqual({
      price: '1299',
      compareAt: null,
    })
  })

  test.each([
    [10, 1, 3, 4, 3],
    [9, 1, 3, 3, 3],
    // Beyond safe integers in between.
    [90_071_992_547_409, 1_000, 3_000, 30_023_997_515_803, 30_023_997_515_803],
    [90_071_992_547_410, 1_000, 3_000, 30_023_997_515_804, 30_023_997_515_803],
  ])('of %d times %d / %d is %d rounded up, and %d rounded down', (minor, numerator, denominator, up, down) => {
    expect(scale(minor, numerator, denominator, 'up')).toBe(up)
    expect(scale(minor, numerator, denominator, 'down')).toBe(down)
  })

  test('has steps of an amount above zero', () => {
    expect(['0.05', '0.00', '-0.05', 'x'].map((text) => stepPattern(text, 'EUR'))).toEqual([
      fives,
      ...[0, 0, 0].map(() => undefined),
    ])
  })
})

describe('an amount raised by a percentage', () => {
  test.each([
    [1_000, '10', 1_100],
    [1_001, '10', 1_102],
    [1_000, '12.5', 1_125],
    [1, '0.0001', 2],
    [999, '0', 999],
    [0, '50', 0],
    [1_000, '-10', 900],
    [1_001, '-10', 901],
    [1_000, '-100', 0],
    [-1_000, '10', -1_100],
    [-1_001, '10', -1_101],
  ])('%i by %s %% is %i: never rounded down', (minor, percent, raised) => {
    expect(raiseByPercent(minor, percent)).toBe(raised)
  })

  test('is the exact result, rounded up', () => {
    const parts = fc.integer({ min: -2_000_000, max: 20_000_000 })
    fc.assert(
      fc.property(fc.integer({ min: -1_000_000_000, max: 1_000_000_000 }), parts, (minor, tenThousandths) => {
        const size = Math.abs(tenThousandths)
        const fraction = String(size % 10_000).padStart(4, '0')
        const percent = `${tenThousandths < 0 ? '-' : ''}${Math.floor(size / 10_000)}.${fraction}`
        // raised is the least whole number that is not below minor x (1 + percent / 100).
        const exact = BigInt(minor) * (1_000_000n + BigInt(tenThousandths))
        const raised = BigInt(raiseByPercent(minor, percent))
        expect(raised * 1_000_000n >= exact).toBe(true)
        expect((raised - 1n) * 1_000_000n < exact).toBe(true)
      }),
    )
  })

  test.each(['', '10%', '1e1', ' 10', '10 ', '.5', '5.', '+5', '1.00001', '1234567', 'NaN', '１０'])(
    'is refused for the percentage %j',
    (percent) => {
      expect(() => raiseByPercent(1_000, percent)).toThrow('not a percentage')
    },
  )

  test('is refused when it is too large to be exact', () => {
    expect(() => raiseByPercent(Number.MAX_SAFE_INTEGER, '0.0001')).toThrow('too large')
  })
})

describe('a ceiling', () => {
  const policy = {
    costMinor: 1_000,
    costCurrency: 'EUR',
    unitPriceMinor: 1_999,
    unitCurrency: 'EUR',
    minMarginPercent: '5',
    ceilingPercent: '2.5',
    rates: [],
    at: Date.parse('2026-06-01'),
  }

  test('is the unit price less the margin, which is never less than stated', () => {
    expect(ceilingMinor(policy)).toBe(1_899)
    expect(ceilingMinor({ ...policy, unitPriceMinor: 2_000 })).toBe(1_900)
    expect(ceilingMinor({ ...policy, minMarginPercent: '0' })).toBe(1_999)
  })

  test('is the cost at intake plus a percentage without a unit price', () => {
    expect(ceilingMinor({ ...policy, unitPriceMinor: null })).toBe(1_025)
    expect(ceilingMinor({ ...policy, unitPriceMinor: null, unitCurrency: null, costMinor: 999 })).toBe(1_024)
  })

  test("is the unit price in the supplier's currency, rounded down before the margin is taken off", () => {
    const rates = [
      readRate({ from: 'USD', to: 'EUR', rate: '0.9', validUntil: '2026-01-01' }),
      readRate({ from: 'USD', to: 'EUR', rate: '0.8333', validFrom: '2026-01-01' }),
      readRate({ from: 'JPY', to: 'EUR', rate: '0.00617' }),
    ]
    // 19.99 USD are 16.6576… EUR, 16.65 of them sure; 5 % of that, 0.8325, is 0.84.
    expect(ceilingMinor({ ...policy, rates, unitCurrency: 'USD' })).toBe(1_581)
    expect(ceilingMinor({ ...policy, rates, unitCurrency: 'USD', at: Date.parse('2025-12-31') })).toBe(1_799 - 90)
    expect(ceilingMinor({ ...policy, rates, unitCurrency: 'JPY', minMarginPercent: '0' })).toBe(1_233)
  })

  test('is none without a rate in that direction, or when the amounts cannot be exact', () => {
    const rates = [readRate({ from: 'EUR', to: 'USD', rate: '1.2' })]
    expect(ceilingMinor({ ...policy, rates, unitCurrency: 'USD' })).toBe('no_rate')
    expect(ceilingMinor({ ...policy, unitPriceMinor: Number.MAX_SAFE_INTEGER })).toBe('too_large')
  })
})
