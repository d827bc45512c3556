import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fundsOf, stillOwedBack, topUpText } from '../../src/domain/balance.ts'
import {
  addedUp,
  costOf,
  DAY_MS,
  type EarningSums,
  earnedText,
  marginOf,
  partsToSum,
  percentText,
  spanOf,
  spansIn,
} from '../../src/domain/earnings.ts'

const at = (text: string): number => Date.parse(text)
const sum = (given: Partial<EarningSums>): EarningSums => ({
  ...{ currency: 'EUR', keys: 1, unpriced: 0, revenueMinor: 0, chargedMinor: 0, refundedMinor: 0, owedBackMinor: 0 },
  ...given,
})

describe('what was earned', () => {
  test('is never added up over currencies, and leaves no margin there', () => {
    const sums = addedUp([
      sum({ revenueMinor: 500 }),
      sum({ currency: 'USD', revenueMinor: 900 }),
      sum({ chargedMinor: 300 }),
    ])
    expect(sums.map(({ currency, revenueMinor }) => [currency, revenueMinor])).toEqual([
      ['EUR', 500],
      ['USD', 900],
    ])
    expect(marginOf(sums)).toBeNull()
  })

  test('is the revenue less what the supplier keeps: not what came back, nor what is owed back', () => {
    const one = sum({ revenueMinor: 1_000, chargedMinor: 1_500, refundedMinor: 300, owedBackMinor: 400 })
    expect(costOf(one)).toBe(800)
    expect(marginOf([one])).toEqual({ minor: 200, permille: 200 })
  })

  test('is not known where the store states no price of any key', () => {
    expect(marginOf([sum({ keys: 2, unpriced: 2, chargedMinor: 500 })])).toBeNull()
    expect(marginOf([sum({ keys: 2, unpriced: 1, revenueMinor: 900, chargedMinor: 500 })])?.minor).toBe(400)
  })

  test('is the least that it can be where some prices are missing, and says so', () => {
    const said = (amount: string) =>
      earnedText({
        ...{ from: '2026-03-01', to: '2026-03-30', incompleteFrom: null },
        margin: { amount, currency: 'EUR', percent: '10.0' },
        sums: [
          { currency: 'EUR', keys: 5, unpriced: 3, revenue: '20.00', cost: '3.50', refunded: '0.00', owedBack: '0.00' },
        ],
      })
    expect(said('16.50')).toBe('You earned at least 16.50 EUR in 30 days: the price of 3 keys is not stated.')
    expect(said('-1.50')).toBe('You lost at most 1.50 EUR in 30 days: the price of 3 keys is not stated.')
  })

  test('writes a share with one digit, rounded half away from zero', () => {
    const shareOf = (revenueMinor: number, chargedMinor: number) =>
      percentText(marginOf([sum({ revenueMinor, chargedMinor })])?.permille ?? Number.NaN)
    expect([shareOf(2_000, 1_569), shareOf(2_000, 2_431), shareOf(3, 1), shareOf(1_000, 1_003)]).toEqual([
      ...['21.6', '-21.6', '66.7', '-0.3'],
    ])
  })
})

describe('the periods of earnings', () => {
  test('begin at midnight UTC, weeks on Monday', () => {
    expect(spanOf('week', at('2026-03-12T13:26:10Z'))).toEqual({ at: at('2026-03-09'), until: at('2026-03-16') })
    expect(spanOf('week', at('2026-03-15T23:59:59Z')).at).toBe(at('2026-03-09'))
    expect(spanOf('month', at('2026-02-28T23:00:00Z'))).toEqual({ at: at('2026-02-01'), until: at('2026-03-01') })
  })

  test('cover a span without a gap and without a day twice', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('day' as const, 'week' as const, 'month' as const, 'whole' as const),
        fc.integer({ min: 0, max: 30_000 }),
        fc.integer({ min: 1, max: 200 }),
        (step, from, days) => {
          const span = { at: from * DAY_MS, until: (from + days) * DAY_MS }
          const spans = spansIn(step, span)
          expect([spans[0]?.at, spans.at(-1)?.until]).toEqual([span.at, span.until])
          for (const [index, one] of spans.slice(1).entries()) expect(one.at).toBe(spans[index]?.until)
        },
      ),
    )
  })

  test('are summed by the hour while their orders still change, else by the day', () => {
    const now = at('2026-03-12T13:26:10Z')
    const hour = { at: at('2026-03-11T08:00:00Z'), until: at('2026-03-11T09:00:00Z') }
    const day = { at: at('2026-03-11'), until: at('2026-03-12') }
    expect(partsToSum(hour, false, now)).toEqual([hour])
    expect(partsToSum(hour, true, now)).toEqual([day])
    expect(partsToSum(day, false, now)).toHaveLength(24)
    expect(partsToSum({ at: at('2026-03-12'), until: at('2026-03-13') }, false, now)).toHaveLength(14)
    const old = at('2026-03-01T08:00:00Z')
    expect(partsToSum({ at: old, until: old + 3_600_000 }, false, now)).toEqual([
      { at: at('2026-03-01'), until: at('2026-03-02') },
    ])
  })
})

describe('the money that is free', () => {
  test('is the balance less what is under way, and what is missing follows from it', () => {
    expect(fundsOf(8_340, 4_460, 9_905)).toEqual({ freeMinor: 3_880, missingMinor: 6_025 })
    expect(fundsOf(100, 300, 0)).toEqual({ freeMinor: -200, missingMinor: 200 })
    const funds = { missing: '60.25', needs: '99.05', currency: 'EUR', orders: 2 }
    expect(topUpText(funds)).toBe('Top up at least 60.25 EUR to free 2 orders.')
    expect(topUpText({ ...funds, missing: '0.00', orders: 1 })).toContain('for 1 order is there')
  })

  test('what came back counts for the oldest of the failed purchases', () => {
    const failed = [3, 2, 1].map((amountMinor) => ({ amountMinor }))
    expect(stillOwedBack(failed, 4)).toEqual(failed.slice(0, 2))
    expect(stillOwedBack(failed, 0)).toEqual([])
    expect(stillOwedBack(failed, 6)).toEqual(failed)
  })
})
