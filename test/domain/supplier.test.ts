import { expect, it } from 'vitest'
import { isSameProduct } from '../../src/domain/purchase.ts'
import { answerClass, moneyIsOut, orderStatuses, type Placement } from '../../src/domain/supplier.ts'

const evidence = { detail: 'answered' }
const unknown = { outcome: 'unknown', cause: 'lost', evidence } as const

it.each<[expected: string, placement: Placement]>([
  ['not_executed', { outcome: 'not_executed', cause: 'unreachable', evidence }],
  ['refused', { outcome: 'rejected', reason: 'other', code: 'x', message: 'y', evidence }],
  ['refused', { ...unknown, rejection: true }],
  ['ambiguous', { ...unknown, rejection: false }],
])('an answer is kept as %s where it was %j', (expected, placement) => {
  expect(answerClass(placement)).toBe(expected)
})

it('money is out for an order that is open or completed, and for no other', () => {
  expect(orderStatuses.filter(moneyIsOut)).toEqual(['open', 'completed'])
})

it('a product is the same in capitals and in small letters', () => {
  expect([isSameProduct('AB-1', 'ab-1'), isSameProduct('ab-1', 'ab-2')]).toEqual([true, false])
})
