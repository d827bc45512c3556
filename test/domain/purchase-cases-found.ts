/** Cases of the transition table: orders at the supplier that carry the reference of a purchase. */
import type { Effect, FoundOrder, PurchaseInput } from '../../src/domain/purchase.ts'
import { EARLIER, NOW, order } from '../support/facts.ts'
import { type Case, says, stays, to } from './purchase-case.ts'

const twice = (...orderIds: string[]): Effect[] => [
  ...orderIds.map((orderId): Effect => ({ discrepancy: 'double_charge', orderId })),
  'freeze',
]

const found = (...orders: FoundOrder[]): PurchaseInput => ({ type: 'found', orders })
const isOurs = to('accepted', 'found', { supplierOrderId: 'x', holdReason: null, notBefore: null }, ['read_now'])
const foundLate = to('accepted', 'found_in_review', { supplierOrderId: 'x' }, ['read_now'])
const revived = to('accepted', 'found_after_the_end', { supplierOrderId: 'x' }, ['cancel_later', 'read_now'])
const revivedBeside = (...ordersSeen: string[]) =>
  to('accepted', 'found_after_the_end', { supplierOrderId: 'x', ordersSeen }, [
    ...(['cancel_later', 'read_now'] as const),
    ...twice('x'),
  ])
const isSecond = stays('double_charge', { ordersSeen: ['x'] }, twice('x'))
const isSecondAfterTheEnd = stays('found_after_the_end', { ordersSeen: ['x'] }, twice('x'))
const areTwo = {
  'planned waiting unknown': to(
    'review',
    'found_several',
    { ordersSeen: ['x', 'y'], note: says('2 orders') },
    twice('y'),
  ),
  'accepted completed fulfilled review': stays('double_charge', { ordersSeen: ['x', 'y'] }, twice('x', 'y')),
}
const ofAnotherLine = {
  'planned waiting unknown': to('review', 'found_several', { ordersSeen: ['x'], note: says('another line') }, [
    'alert',
    'freeze',
  ]),
  'accepted completed fulfilled': isSecond,
  'rejected failed cancelled': isSecondAfterTheEnd,
}
const oneIsOurs = {
  'planned waiting unknown': isOurs,
  'accepted completed fulfilled': isSecond,
  review: foundLate,
}
/** A finished purchase takes its own order back, and only the other order is a second charge. */
const ownBeside = to('accepted', 'found_after_the_end', { supplierOrderId: 'x', ordersSeen: ['y'] }, [
  ...(['cancel_later', 'read_now'] as const),
  ...twice('y'),
])
/** So does one whose order no longer equals what was sent; a person checks it before its keys leave. */
const changedOwn = (set: object, ...effects: Effect[]) =>
  to('accepted', 'found_after_the_end', { supplierOrderId: 'x', ...set, handOverHeldAt: NOW }, [
    ...(['cancel_later', 'read_now', 'alert'] as const),
    ...effects,
  ])
const odd = (set: object) =>
  to('review', 'found_one_that_disagrees', { ordersSeen: ['x'], note: says('differs'), ...set }, ['alert'])
const isOdd = odd({})
const ownIsOdd = (set: object) =>
  to('review', 'own_order_disagrees', { ordersSeen: ['x'], note: says('no longer'), ...set }, ['alert'])
/** A failed purchase had an order, and may not have been refunded. */
const overIsOurs = { 'rejected cancelled': revived, failed: revivedBeside('own') }

export const foundCases: Case[] = [
  { when: 'no order is found', input: found(), gives: {} },
  { when: 'one order is found and agrees', input: found(order('x')), gives: { ...oneIsOurs, ...overIsOurs } },
  {
    when: 'one order is found and is completed already',
    input: found(order('x', { status: 'completed' })),
    gives: { ...oneIsOurs, ...overIsOurs },
  },
  {
    when: 'one order is found and agrees, while its own order is not paid',
    facts: { holdReason: 'unpaid', notBefore: NOW + 1 },
    input: found(order('x')),
    gives: {
      ...oneIsOurs,
      ...overIsOurs,
      'planned waiting unknown': to('accepted', 'found', { supplierOrderId: 'x', notBefore: null }, ['read_now']),
    },
  },
  {
    when: 'one order is found and disagrees',
    input: found(order('x', { agrees: false })),
    gives: {
      'planned waiting unknown': isOdd,
      'accepted completed fulfilled': isSecond,
      'rejected failed cancelled': isSecondAfterTheEnd,
    },
  },
  {
    when: 'one order is found and belongs to another line',
    input: found(order('x', { ofAnotherLine: true })),
    gives: ofAnotherLine,
  },
  {
    when: 'one order is found, belongs to another line and disagrees',
    input: found(order('x', { ofAnotherLine: true, agrees: false })),
    gives: ofAnotherLine,
  },
  {
    when: 'two orders are found and both agree',
    input: found(order('x'), order('y')),
    gives: {
      ...areTwo,
      'rejected failed cancelled': stays('found_after_the_end', { ordersSeen: ['x', 'y'] }, twice('x', 'y')),
    },
  },
  {
    when: 'two orders are found and one of them disagrees',
    input: found(order('x'), order('y', { agrees: false })),
    gives: {
      ...areTwo,
      'rejected failed cancelled': stays('found_after_the_end', { ordersSeen: ['x', 'y'] }, twice('x', 'y')),
    },
  },
  {
    when: 'two orders are found and the first of them disagrees',
    input: found(order('x', { agrees: false }), order('y')),
    gives: {
      ...areTwo,
      'rejected failed cancelled': stays('found_after_the_end', { ordersSeen: ['x', 'y'] }, twice('x', 'y')),
    },
  },
  {
    when: 'two orders are found and one of them was refunded',
    input: found(order('x'), order('y', { status: 'refunded' })),
    gives: { ...areTwo, ...overIsOurs },
  },
  { when: 'the order found is one that a person decided on', input: found(order('x', { decided: true })), gives: {} },
  {
    when: 'one of the two orders found is one that a person decided on',
    input: found(order('w', { decided: true }), order('x')),
    gives: { ...oneIsOurs, ...overIsOurs },
  },
  {
    when: 'the disagreeing order is found with one that a person decided on',
    input: found(order('w', { decided: true }), order('x', { agrees: false })),
    gives: {
      'planned waiting unknown': isOdd,
      'accepted completed fulfilled': isSecond,
      'rejected failed cancelled': isSecondAfterTheEnd,
    },
  },
  {
    when: 'the order found is the one that is known',
    facts: { supplierOrderId: 'x' },
    input: found(order('x')),
    gives: { 'planned waiting unknown': isOurs, 'rejected failed cancelled': revived },
  },
  {
    when: 'the order that is known is found, and no longer is what was sent',
    facts: { supplierOrderId: 'x' },
    input: found(order('x', { agrees: false })),
    gives: {
      'planned waiting unknown': isOdd,
      accepted: ownIsOdd({}),
      'rejected failed cancelled': changedOwn({}),
    },
  },
  {
    when: 'the order that is known is found, and another one',
    facts: { supplierOrderId: 'x' },
    input: found(order('x'), order('y')),
    gives: {
      'planned waiting unknown': areTwo['planned waiting unknown'],
      'accepted completed fulfilled review': stays('double_charge', { ordersSeen: ['y'] }, twice('y')),
      'rejected failed cancelled': ownBeside,
    },
  },
  {
    when: 'another order is found, and the one that is known',
    facts: { supplierOrderId: 'x' },
    input: found(order('y'), order('x')),
    gives: {
      'planned waiting unknown': to(
        'review',
        'found_several',
        { ordersSeen: ['y', 'x'], note: says('2 orders') },
        twice('x'),
      ),
      'accepted completed fulfilled review': stays('double_charge', { ordersSeen: ['y'] }, twice('y')),
      'rejected failed cancelled': ownBeside,
    },
  },
  {
    when: 'the order that is known is found, no longer what was sent, and another one',
    facts: { supplierOrderId: 'x' },
    input: found(order('x', { agrees: false }), order('y')),
    gives: {
      'planned waiting unknown': areTwo['planned waiting unknown'],
      'accepted completed fulfilled review': stays('double_charge', { ordersSeen: ['y'] }, twice('y')),
      'rejected failed cancelled': changedOwn({ ordersSeen: ['y'] }, ...twice('y')),
    },
  },
  ...(['failed', 'refunded'] as const).map(
    (status): Case => ({
      when: `the order found is ${status} at the supplier`,
      input: found(order('x', { status })),
      gives: {
        'planned waiting unknown': isOurs,
        'accepted completed fulfilled': isSecond,
        review: foundLate,
      },
    }),
  ),
  {
    when: 'one order is found with one that a person was shown and one whose money came back',
    facts: { ordersSeen: ['y'], supplierOrderId: 'own', refundedAt: EARLIER },
    input: found(order('x')),
    gives: {
      'accepted completed fulfilled review': stays('double_charge', { ordersSeen: ['y', 'x'] }, twice('x')),
      'planned waiting unknown': isOurs,
      'rejected failed cancelled': revivedBeside('y', 'own'),
    },
  },
  {
    when: 'one order is found after a later generation was sent',
    facts: { newest: false, laterSent: true },
    input: found(order('x')),
    gives: { ...oneIsOurs, 'rejected failed cancelled': isSecondAfterTheEnd },
  },
  {
    when: 'one order is found while a later generation was only planned',
    facts: { newest: false, laterSent: false },
    input: found(order('x')),
    gives: { ...oneIsOurs, ...overIsOurs },
  },
  {
    when: 'one order is found after the store was notified that nothing comes',
    facts: { failureNotifiedAt: EARLIER },
    input: found(order('x')),
    gives: {
      ...oneIsOurs,
      'rejected cancelled': to('accepted', 'found_after_the_end', { supplierOrderId: 'x', handOverHeldAt: NOW }, [
        ...(['cancel_later', 'read_now', 'alert'] as const),
      ]),
      failed: to(
        'accepted',
        'found_after_the_end',
        { supplierOrderId: 'x', ordersSeen: ['own'], handOverHeldAt: NOW },
        ['cancel_later', 'read_now', 'alert', ...twice('x')],
      ),
    },
  },
  {
    when: 'one order is found after the shop took the purchase back: its keys wait for how the order stands',
    facts: { takenBackBy: 'units' },
    input: found(order('x')),
    gives: {
      ...oneIsOurs,
      'rejected cancelled': to('accepted', 'found_after_the_end', { supplierOrderId: 'x', cancelRequestedAt: NOW }, [
        ...(['cancel_later', 'read_now'] as const),
      ]),
      failed: to(
        'accepted',
        'found_after_the_end',
        { supplierOrderId: 'x', cancelRequestedAt: NOW, ordersSeen: ['own'] },
        ['cancel_later', 'read_now', ...twice('x')],
      ),
    },
  },
  {
    when: 'one order that differs is found after the shop took the purchase back: its keys wait for a person',
    facts: { takenBackBy: 'standing', cancelRequestedAt: EARLIER, supplierOrderId: 'x' },
    input: found(order('x', { agrees: false })),
    gives: {
      'planned waiting unknown': odd({ takenBackBy: null }),
      accepted: ownIsOdd({ takenBackBy: null }),
      'rejected failed cancelled': changedOwn({ cancelRequestedAt: EARLIER, takenBackBy: null }),
    },
  },
  {
    when: 'one order is found of which the hand-over is held: it stays held',
    facts: { handOverHeldAt: EARLIER },
    input: found(order('x')),
    gives: { ...oneIsOurs, ...overIsOurs },
  },
  {
    when: 'the order found was seen before',
    facts: { ordersSeen: ['x'] },
    input: found(order('x')),
    gives: {
      'planned waiting unknown': isOurs,
      'accepted completed fulfilled': isSecond,
      'rejected cancelled': revived,
      failed: revivedBeside('x', 'own'),
    },
  },
  {
    when: 'the order found is another than the one seen before',
    facts: { ordersSeen: ['w'] },
    input: found(order('x')),
    gives: {
      'planned waiting unknown': isOurs,
      'accepted completed fulfilled review': stays('double_charge', { ordersSeen: ['w', 'x'] }, twice('x')),
      'rejected cancelled': revivedBeside('w'),
      failed: revivedBeside('w', 'own'),
    },
  },
  {
    when: 'an order is found after another one was closed by a person',
    facts: { supplierOrderId: 'own', ordersSeen: ['own'] },
    input: found(order('own', { decided: true }), order('x')),
    gives: {
      'planned waiting unknown': isOurs,
      'accepted completed fulfilled review': stays('double_charge', { ordersSeen: ['own', 'x'] }, twice('x')),
      'rejected failed cancelled': revivedBeside('own'),
    },
  },
  {
    when: 'an order is found after another one had failed and was refunded',
    facts: { supplierOrderId: 'own', refundedAt: EARLIER },
    input: found(order('x')),
    gives: {
      'planned waiting unknown': isOurs,
      'accepted completed fulfilled review': isSecond,
      'rejected failed cancelled': revived,
    },
  },
  {
    when: 'an order is found after the one that a person decided on was refunded',
    facts: { supplierOrderId: 'own', ordersSeen: ['own'], refundedAt: EARLIER },
    input: found(order('own', { decided: true }), order('x')),
    gives: {
      'planned waiting unknown': isOurs,
      'accepted completed fulfilled review': stays('double_charge', { ordersSeen: ['own', 'x'] }, twice('x')),
      'rejected failed cancelled': revived,
    },
  },
  {
    when: 'the order that is known is found after another one was seen',
    facts: { supplierOrderId: 'x', ordersSeen: ['w'] },
    input: found(order('x')),
    gives: { 'planned waiting unknown': isOurs, 'rejected failed cancelled': revived },
  },
]
