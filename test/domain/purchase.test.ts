/** What the state of a purchase, and a change of it, prove about money. */
import { describe, expect, test } from 'vitest'
import { isOver, provesUncharged, purchaseStates, type Transition } from '../../src/domain/purchase.ts'
import { EARLIER, NOW } from '../support/facts.ts'

test('a purchase is over when it was rejected, failed or cancelled, and only then', () => {
  expect(purchaseStates.filter(isOver)).toEqual(['rejected', 'failed', 'cancelled'])
})

describe('a change of a purchase', () => {
  const proves = (next: Transition['next'], change: Partial<Transition> = {}, refundedAt: number | null = null) =>
    provesUncharged({ refundedAt }, { row: 'any', set: {}, ...change, next })

  test('to waiting or rejected proves that nothing was charged: the supplier answered so', () => {
    expect(proves('waiting')).toBe(true)
    expect(proves('rejected')).toBe(true)
  })

  test('to failed proves it with a refund, whether the refund is known now or was known before', () => {
    expect(proves('failed')).toBe(false)
    expect(proves('failed', { set: { refundedAt: NOW } })).toBe(true)
    expect(proves('failed', {}, EARLIER)).toBe(true)
    expect(proves('failed', { set: { refundedAt: NOW } }, EARLIER)).toBe(true)
  })

  test('to cancelled proves it only when no request was ever sent: an order may still show in a later list', () => {
    expect(proves('cancelled', { row: 'cancelled_before_sending' })).toBe(true)
    for (const row of ['absent_and_cancelled', 'closed', 'bought_again'])
      expect(proves('cancelled', { row })).toBe(false)
  })

  test('to any other state proves nothing, not even with a refund', () => {
    const proving = ['waiting', 'rejected', 'failed', 'cancelled']
    for (const next of purchaseStates.filter((state) => !proving.includes(state))) {
      expect({ next, proves: proves(next, { row: 'cancelled_before_sending' }, EARLIER) }).toEqual({
        next,
        proves: false,
      })
    }
  })
})
