import { describe, expect, test } from 'vitest'
import {
  finalStates,
  mayBuy,
  type PurchaseState,
  purchaseStates,
  reviewsByCancellation,
  rows,
  waysIntoReview,
} from '../../src/domain/purchase.ts'
import { EARLIER } from '../support/facts.ts'
import { type Case, decide, expected } from './purchase-case.ts'
import { otherCases } from './purchase-cases-after.ts'
import { foundCases } from './purchase-cases-found.ts'
import { readCases } from './purchase-cases-read.ts'
import { absentCases, answerCases, clockCases, dueCases, namedCases, releasedCases } from './purchase-cases-sending.ts'
import { shopCases } from './purchase-cases-shop.ts'

const subjects: Record<string, Case[]> = {
  'orders that are found': foundCases,
  'time and cancellation': clockCases,
  'the end of a hold': releasedCases,
  'a turn to be sent': dueCases,
  'the answer to a request': answerCases,
  'an order that is proven absent': absentCases,
  'the order that an answer named': namedCases,
  'an order that is read': readCases,
  'how the order is in its shop now': shopCases,
  'confirmations, errors and decisions': otherCases,
}

for (const [subject, cases] of Object.entries(subjects)) {
  describe(subject, () => {
    test.each(cases)('$when', (one) => {
      const outcomes = Object.fromEntries(purchaseStates.map((state) => [state, decide(one, state) ?? 'nothing']))
      // Strictly: a column that is set to undefined is not the same as an absent one.
      expect(outcomes).toStrictEqual(expected(one))
    })
  })
}

describe('the table', () => {
  test('has no row, in any of its states, that no case above reaches', () => {
    const reached = new Set(
      Object.values(subjects)
        .flat()
        .flatMap((one) => purchaseStates.map((state) => `${decide(one, state)?.row} in ${state}`)),
    )
    const all = rows.flatMap((row) => row.states.map((state) => `${row.name} in ${state}`))
    expect(all.filter((pair) => !reached.has(pair))).toEqual([])
  })

  test('lets nothing open again what is over but an order that is found and units that are ordered again', () => {
    const moved = (state: PurchaseState) =>
      Object.values(subjects)
        .flat()
        .some(
          (one) => !['found', 'shop_limits'].includes(one.input.type) && (decide(one, state)?.next ?? state) !== state,
        )
    expect(finalStates).toEqual(purchaseStates.filter((state) => !moved(state)))
  })

  test('says which rows give a purchase to a person', () => {
    const decisions = Object.values(subjects)
      .flat()
      .flatMap((one) => purchaseStates.map((state) => ({ state, made: decide(one, state) })))
    const given = decisions.filter(({ state, made }) => made?.alert || (made?.next === 'review' && state !== 'review'))
    expect(waysIntoReview.toSorted()).toEqual([...new Set(given.map(({ made }) => made?.row))].toSorted())
  })

  test('says which reviews a cancellation causes', () => {
    const decisions = Object.values(subjects)
      .flat()
      .flatMap((one) => purchaseStates.map((state) => decide(one, state)))
    const reviews = decisions.filter(
      (made) => made?.next === 'review' && /^cancelled |the shop /.test(made.set.note ?? ''),
    )
    expect(new Set(reviewsByCancellation)).toEqual(new Set(reviews.map((made) => made?.row)))
  })

  test('names each row once', () => {
    const names = rows.map((row) => row.name)
    expect(new Set(names).size).toBe(names.length)
  })
})

describe('a part', () => {
  const other = (state: PurchaseState, since: { refundedAt?: number; writtenOffAt?: number } = {}) => ({
    state,
    refundedAt: null,
    writtenOffAt: null,
    ...since,
  })

  test('may be bought when it has no other generation', () => {
    expect(mayBuy([])).toBe(true)
  })

  test('may be bought when every other generation is proven uncharged, refunded or written off', () => {
    expect(mayBuy([other('rejected'), other('cancelled')])).toBe(true)
    expect(mayBuy([other('failed', { refundedAt: EARLIER })])).toBe(true)
    expect(mayBuy([other('rejected'), other('failed', { writtenOffAt: EARLIER })])).toBe(true)
  })

  test('is not bought while another generation may be charged', () => {
    const charged = purchaseStates.filter((state) => state !== 'rejected' && state !== 'cancelled')
    for (const state of charged)
      expect({ state, mayBuy: mayBuy([other('rejected'), other(state)]) }).toEqual({ state, mayBuy: false })
  })

  test('is not bought again once the order of one that was written off has turned up', () => {
    for (const state of ['accepted', 'completed', 'fulfilled', 'review'] as const) {
      expect({ state, mayBuy: mayBuy([other(state, { writtenOffAt: EARLIER })]) }).toEqual({ state, mayBuy: false })
      expect({ state, mayBuy: mayBuy([other(state, { refundedAt: EARLIER })]) }).toEqual({ state, mayBuy: false })
    }
  })
})
