import { describe, expect, test } from 'vitest'
import type { PurchaseState } from '../../src/domain/purchase.ts'
import { carriesStore, externalOrderId } from '../../src/domain/purchase-keys.ts'
import type { OrderStatus } from '../../src/domain/supplier.ts'
import {
  type Counterpart,
  comparison,
  isOurs,
  NIGHTLY_MS,
  nightlyFrom,
  nightlyOverdue,
  SKEW_MS,
} from '../../src/domain/sweep.ts'
import { HOUR, NOW } from '../support/facts.ts'

const purchase = (facts: Partial<Counterpart> = {}): Counterpart => ({
  state: 'fulfilled',
  supplierOrderId: 'own',
  supplierStatus: 'completed',
  ordersSeen: [],
  ...facts,
})
const listed = (id: string, status: OrderStatus = 'completed') => ({ id, status, statusWord: status })

describe('what an order in the list asks for', () => {
  test('is nothing while it says what was read before', () => {
    expect(comparison(purchase(), [listed('own')])).toBe('agrees')
  })

  test('is a read when its status is another one, because a list may be old', () => {
    expect(comparison(purchase(), [listed('own', 'refunded')])).toBe('reread')
    expect(comparison(purchase({ state: 'accepted', supplierStatus: null }), [listed('own', 'open')])).toBe('reread')
  })

  test.each<PurchaseState>(['planned', 'unknown', 'review', 'accepted', 'fulfilled', 'rejected', 'cancelled'])(
    'is a decision when it is news to a purchase in %s',
    (state) => {
      expect(comparison(purchase({ state }), [listed('second')])).toBe('found')
      expect(comparison(purchase({ state, supplierOrderId: null }), [listed('first', 'open')])).toBe('found')
    },
  )

  test('is a decision also where the money of another order came back, while the purchase goes on', () => {
    expect(comparison(purchase({ state: 'accepted' }), [listed('second', 'failed')])).toBe('found')
  })

  test('is nothing while its own order is as before, whatever another one says that a person was shown', () => {
    const shown = purchase({ state: 'accepted', ordersSeen: ['second'] })
    expect(comparison(shown, [listed('second', 'open'), listed('own')])).toBe('agrees')
  })

  test('is nothing once a person was shown it', () => {
    const seen = { ordersSeen: ['second', 'own'] }
    expect(comparison(purchase(seen), [listed('own'), listed('second')])).toBe('agrees')
    expect(comparison(purchase({ ...seen, state: 'cancelled' }), [listed('own', 'open')])).toBe('agrees')
  })

  test('is nothing when the purchase is over and the money came back', () => {
    const over = purchase({ state: 'rejected', supplierOrderId: null })
    expect(comparison(over, [listed('late', 'failed')])).toBe('agrees')
    expect(comparison(over, [listed('late', 'refunded')])).toBe('agrees')
    expect(comparison(over, [listed('late', 'open')])).toBe('found')
    const failed = purchase({ state: 'failed', supplierStatus: 'failed' })
    expect(comparison(failed, [listed('own', 'refunded')])).toBe('agrees')
    expect(comparison(failed, [listed('own', 'completed')]), 'it came back to life').toBe('reread')
  })
})

describe('an order that no purchase knows', () => {
  const stores = ['main-ab12cd34', 'a.b~c-ab12cd34']
  const reference = (store: string, lengthMax: number, order = '1001') =>
    externalOrderId({ store, reference: order, line: '1', part: 1, generation: 1 }, lengthMax)

  test.each([64, 80, 120])('is ours when it carries one of our stores, under a cap of %i characters', (lengthMax) => {
    for (const id of stores) {
      for (const order of ['1001', 'a-very-long-reference-'.repeat(9)]) {
        expect(isOurs(reference(id, lengthMax, order), stores, lengthMax), order).toBe(true)
        expect(isOurs(reference('other-ef56gh78', lengthMax, order), stores, lengthMax), order).toBe(false)
      }
    }
  })

  test('is ours when the digest swallowed the end of a long store id', () => {
    const store = `${'long-'.repeat(7)}ab12cd34`
    const text = reference(store, 64, '1001-'.repeat(9))
    expect(text).toHaveLength(64)
    expect(carriesStore(text, store, 64)).toBe(true)
    expect(carriesStore(text, 'main-ab12cd34', 64)).toBe(false)
  })

  test('is not ours without a reference, or under one that only looks like ours', () => {
    for (const text of [
      undefined,
      '',
      '1001',
      'q1.main-ab12cd34',
      'q1.main-ab12cd345.1.1.1.1',
      'Q1.main-ab12cd34.1.1.1.1',
    ]) {
      expect(isOurs(text, stores, 120), text).toBe(false)
    }
  })
})

describe('the sweep of thirty days', () => {
  test('begins earlier when something that was written off was sent earlier', () => {
    expect(nightlyFrom(NOW, null)).toBe(NOW - NIGHTLY_MS - SKEW_MS)
    expect(nightlyFrom(NOW, NOW - HOUR)).toBe(NOW - NIGHTLY_MS - SKEW_MS)
    expect(nightlyFrom(NOW, NOW - NIGHTLY_MS - HOUR)).toBe(NOW - NIGHTLY_MS - HOUR - SKEW_MS)
  })

  test('is made up for when its night was missed, and tried at most once an hour', () => {
    expect(nightlyOverdue(NOW, null, null)).toBe(true)
    expect(nightlyOverdue(NOW, NOW - 25 * HOUR, NOW - 25 * HOUR)).toBe(false)
    expect(nightlyOverdue(NOW, NOW - 26 * HOUR, NOW - 26 * HOUR)).toBe(true)
    expect(nightlyOverdue(NOW, NOW - 26 * HOUR, NOW - HOUR + 1)).toBe(false)
    expect(nightlyOverdue(NOW, null, NOW - HOUR)).toBe(true)
  })
})
