/** What the state of a purchase, and a change of it, prove about money. */
import { describe, expect, test } from 'vitest'
import {
  chargesOf,
  heldAlertMs,
  isOver,
  mostOf,
  type PurchaseInput,
  provesUncharged,
  purchaseStates,
  type Transition,
  transition,
} from '../../src/domain/purchase.ts'
import { EARLIER, HOUR, MINUTE, NOW, order, purchaseIn } from '../support/facts.ts'

test('a purchase is over when it was rejected, failed or cancelled, and only then', () => {
  expect(purchaseStates.filter(isOver)).toEqual(['rejected', 'failed', 'cancelled'])
})

test('a purchase costs its ceiling for each unit at the most', () => {
  expect(mostOf({ ceilingMinor: 250, quantity: 3 })).toBe(750)
})

test('people hear of a paid order that waits after ten minutes, an hour or a day, by what it waits for', () => {
  expect(heldAlertMs).toEqual({
    ...{ store_away: 10 * MINUTE, offer_unreadable: 10 * MINUTE, not_entitled: 10 * MINUTE },
    ...{ balance: HOUR, ceiling: HOUR, spend_cap: HOUR, held_by_store: HOUR },
    ...{ out_of_stock: 24 * HOUR, unpaid: 24 * HOUR },
    frozen: null,
  })
})

test('charges, refunds, what is owed back and what is left as the cost are sums over purchases by their states', () => {
  const money = { refundedAt: null, writtenOffAt: null }
  const charges = chargesOf([
    { ...money, state: 'fulfilled', amountMinor: 1_000 },
    { ...money, state: 'failed', amountMinor: 200, refundedAt: NOW },
    { ...money, state: 'failed', amountMinor: 30 },
    { ...money, state: 'failed', amountMinor: 4, writtenOffAt: NOW },
    { ...money, state: 'sending', amountMinor: null },
  ])
  expect(charges).toEqual({ chargedMinor: 1_234, refundedMinor: 200, owedBackMinor: 30, costMinor: 1_004 })
})

describe('the decision about a purchase', () => {
  const decide = (state: (typeof purchaseStates)[number], input: PurchaseInput, facts = {}) =>
    transition(purchaseIn(state, facts), input, NOW)

  test('says in what an order differs from what was sent, as far as that is known', () => {
    const note = (differs?: string) =>
      decide('unknown', { type: 'found', orders: [order('x', { agrees: false, ...(differs && { differs }) })] })?.set
        .note
    expect(note('quantity reads 3 and not 2')).toMatch(/differs from what was sent: quantity reads 3 and not 2$/)
    expect(note()).toMatch(/differs from what was sent$/)
  })
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
    for (const row of ['cancelled_before_sending', 'shop_ended']) expect(proves('cancelled', { row })).toBe(true)
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
