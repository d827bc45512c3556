/** Cases of the transition table: up to the answer of the supplier, and after a lost one. */

import type { Answer, FoundOrder, PurchaseInput } from '../../src/domain/purchase.ts'
import { holdReasons } from '../../src/domain/purchase.ts'
import { EARLIER, HOUR, MINUTE, NOW, order } from '../support/facts.ts'
import { type Case, says, stays, to } from './purchase-case.ts'

const clock: PurchaseInput = { type: 'clock' }
const neverSent = to('cancelled', 'cancelled_before_sending', { holdReason: null, notBefore: null }, ['notify_failed'])
const keysStay = to('review', 'cancelled_before_hand_over', { handOverHeldAt: NOW, note: says('before the keys') }, [
  'alert',
])
const scanOverdue = to('review', 'scan_overdue', { note: says('24 hours') }, ['alert'])

export const clockCases: Case[] = [
  { when: 'time passes', input: clock, gives: {} },
  {
    when: 'a cancellation is asked for',
    facts: { cancelRequestedAt: NOW },
    input: clock,
    gives: { 'planned waiting': neverSent, completed: keysStay },
  },
  {
    when: 'a cancellation is asked for while it is held',
    facts: { cancelRequestedAt: NOW, holdReason: 'frozen', notBefore: NOW + HOUR },
    input: clock,
    gives: { 'planned waiting': neverSent, completed: keysStay },
  },
  {
    when: 'a cancellation is asked for after the hand-over began',
    facts: { cancelRequestedAt: NOW, handOverBegunAt: EARLIER, keysWaiting: 0 },
    input: clock,
    gives: {
      'planned waiting': neverSent,
      completed: stays('cancelled_after_hand_over', { note: says('after the hand-over began') }),
    },
  },
  {
    when: 'a cancellation is asked for when one hand-over has begun and another one has not',
    facts: { cancelRequestedAt: NOW, handOverBegunAt: EARLIER, keysWaiting: 1 },
    input: clock,
    gives: { 'planned waiting': neverSent, completed: keysStay },
  },
  {
    when: 'a cancellation is asked for when no hand-over has begun and none is queued',
    facts: { cancelRequestedAt: NOW, handOverBegunAt: null, keysWaiting: 0 },
    input: clock,
    gives: { 'planned waiting': neverSent, completed: keysStay },
  },
  {
    when: 'a cancellation is asked for of what may have been charged',
    facts: { cancelRequestedAt: NOW, maybeChargedAt: EARLIER },
    input: clock,
    gives: { completed: keysStay },
  },
  { when: 'the deadline is one millisecond away', facts: { deadlineAt: NOW + 1 }, input: clock, gives: {} },
  {
    when: 'the deadline is reached while its order is not paid',
    facts: { deadlineAt: NOW, holdReason: 'unpaid' },
    input: clock,
    gives: {},
  },
  {
    when: 'the deadline is reached',
    facts: { deadlineAt: NOW },
    input: clock,
    gives: { 'planned waiting': neverSent },
  },
  {
    when: 'the deadline is over for what may have been charged',
    facts: { deadlineAt: NOW - HOUR, maybeChargedAt: EARLIER },
    input: clock,
    gives: {},
  },
  {
    when: 'no scan was valid since it became unknown 24 hours ago',
    facts: { unknownAt: NOW - 24 * HOUR },
    input: clock,
    gives: { unknown: scanOverdue },
  },
  {
    when: 'no scan was valid for a millisecond less than 24 hours',
    facts: { unknownAt: NOW - 24 * HOUR + 1 },
    input: clock,
    gives: {},
  },
  {
    when: 'a scan was valid an hour ago',
    facts: { unknownAt: NOW - 48 * HOUR, scannedAt: NOW - HOUR },
    input: clock,
    gives: {},
  },
  {
    when: 'the last valid scan is 24 hours old',
    facts: { unknownAt: NOW - 48 * HOUR, scannedAt: NOW - 24 * HOUR },
    input: clock,
    gives: { unknown: scanOverdue },
  },
  {
    when: 'no scan was valid for 24 hours and a cancellation is asked for',
    facts: { unknownAt: NOW - 24 * HOUR, cancelRequestedAt: NOW },
    input: clock,
    gives: { unknown: scanOverdue, 'planned waiting': neverSent, completed: keysStay },
  },
]

const released = (by: 'cause' | 'time' | 'operator', ceilingMinor?: number): PurchaseInput =>
  ceilingMinor === undefined ? { type: 'released', by } : { type: 'released', by, ceilingMinor }
const free = { 'planned waiting': stays('released', { holdReason: null, notBefore: null }) }

export const releasedCases: Case[] = [
  { when: 'the cause of its hold is gone', facts: { holdReason: 'balance' }, input: released('cause'), gives: free },
  {
    when: 'the cause of its hold is gone before its instant',
    facts: { holdReason: 'out_of_stock', notBefore: NOW + HOUR },
    input: released('cause'),
    gives: free,
  },
  {
    when: 'its instant has come',
    facts: { holdReason: 'out_of_stock', notBefore: NOW },
    input: released('time'),
    gives: free,
  },
  { when: 'the wait without a reason is over', facts: { notBefore: NOW }, input: released('time'), gives: free },
  {
    when: 'its instant is one millisecond away',
    facts: { holdReason: 'out_of_stock', notBefore: NOW + 1 },
    input: released('time'),
    gives: {},
  },
  {
    when: 'time passes over a hold without an instant',
    facts: { holdReason: 'ceiling' },
    input: released('time'),
    gives: {},
  },
  {
    when: 'an operator releases it while its order is not paid',
    facts: { holdReason: 'unpaid', notBefore: NOW },
    input: released('operator'),
    gives: {},
  },
  { when: 'an operator releases it', facts: { holdReason: 'frozen' }, input: released('operator'), gives: free },
  {
    when: 'an operator releases it with another ceiling',
    facts: { holdReason: 'ceiling', notBefore: NOW + HOUR },
    input: released('operator', 1_500),
    gives: { 'planned waiting': stays('released', { holdReason: null, notBefore: null, ceilingMinor: 1_500 }) },
  },
  { when: 'an operator releases what is not held', input: released('operator', 1_500), gives: {} },
]

const LATER = NOW + MINUTE
const due: PurchaseInput = { type: 'due', guard: null, notBefore: null, orphans: [] }
const dueButPoor: PurchaseInput = { type: 'due', guard: 'balance', notBefore: LATER, orphans: [] }
const dueWithOrphan: PurchaseInput = { type: 'due', guard: null, notBefore: null, orphans: ['x'] }
const seenOrphan = {
  'planned waiting': to(
    'review',
    'orphan_on_record',
    { ordersSeen: ['x'], note: says('order x at the supplier carries our reference'), notBefore: null },
    ['alert'],
  ),
}
const heldForBalance = { 'planned waiting': stays('held', { holdReason: 'balance', notBefore: LATER }) }
const sent = { 'planned waiting': to('sending', 'sent', { notBefore: null }) }

export const dueCases: Case[] = [
  { when: 'its turn has come and no guard fails', input: due, gives: sent },
  { when: 'its turn has come and its wait is just over', facts: { notBefore: NOW }, input: due, gives: sent },
  ...holdReasons.map(
    (guard): Case => ({
      when: `its turn has come and the guard ${guard} fails`,
      input: { type: 'due', guard, notBefore: null, orphans: [] },
      gives: { 'planned waiting': stays('held', { holdReason: guard, notBefore: null }) },
    }),
  ),
  { when: 'its turn has come and a guard fails for some time', input: dueButPoor, gives: heldForBalance },
  { when: 'its turn has come and an orphan is on record under its reference', input: dueWithOrphan, gives: seenOrphan },
  {
    when: 'its turn has come and two orphans are on record under its reference',
    input: { type: 'due', guard: null, notBefore: null, orphans: ['x', 'y'] },
    gives: {
      'planned waiting': to(
        'review',
        'orphan_on_record',
        { ordersSeen: ['x', 'y'], note: says('order x, y at the supplier'), notBefore: null },
        ['alert'],
      ),
    },
  },
  {
    when: 'a guard fails and an orphan is on record under its reference',
    input: { type: 'due', guard: 'balance', notBefore: LATER, orphans: ['x'] },
    gives: seenOrphan,
  },
  {
    when: 'an orphan is on record under its reference, but it is held',
    facts: { holdReason: 'ceiling' },
    input: dueWithOrphan,
    gives: {},
  },
  {
    when: 'an orphan is on record under its reference, but its wait is not over',
    facts: { notBefore: NOW + 1 },
    input: dueWithOrphan,
    gives: {},
  },
  {
    when: 'an orphan is on record under its reference, but it is cancelled',
    facts: { cancelRequestedAt: NOW },
    input: dueWithOrphan,
    gives: {},
  },
  {
    when: 'an orphan is on record under its reference, but its deadline has come',
    facts: { deadlineAt: NOW },
    input: dueWithOrphan,
    gives: {},
  },
  { when: 'its turn has come before its wait is over', facts: { notBefore: NOW + 1 }, input: due, gives: {} },
  { when: 'its turn has come while it is held', facts: { holdReason: 'ceiling' }, input: due, gives: {} },
  { when: 'a guard fails while it is held', facts: { holdReason: 'ceiling' }, input: dueButPoor, gives: {} },
  { when: 'its turn has come but it is cancelled', facts: { cancelRequestedAt: NOW }, input: due, gives: {} },
  { when: 'a guard fails but it is cancelled', facts: { cancelRequestedAt: NOW }, input: dueButPoor, gives: {} },
  { when: 'its turn has come at its deadline', facts: { deadlineAt: NOW }, input: due, gives: {} },
]

const answered = (answer: Answer): PurchaseInput => ({ type: 'answer', answer, notBefore: LATER })
const taken = answered({ outcome: 'accepted', orderId: 'x', agrees: true, isOpen: true })
const ambiguous = (orderId: string | null = null) => answered({ outcome: 'unknown', rejection: false, orderId })
const isTaken = { sending: to('accepted', 'accepted', { supplierOrderId: 'x' }) }
const open = (
  maybeChargedAt: number,
  lastClass: 'not_executed' | 'refused' | 'ambiguous',
  more: Record<string, unknown> = {},
) => ({
  sending: to('unknown', 'ambiguous', { maybeChargedAt, lastClass, ...more }),
})
const notified = { sending: to('rejected', 'rejected', { lastClass: 'refused' }, ['notify_failed']) }
const refusals = ['out_of_stock', 'balance', 'other'] as const

export const answerCases: Case[] = [
  { when: 'the order is accepted', input: taken, gives: isTaken },
  {
    when: 'the order is accepted though cancelled meanwhile',
    facts: { cancelRequestedAt: NOW },
    input: taken,
    gives: isTaken,
  },
  {
    when: 'the order is accepted and over, or its answer may be old',
    input: answered({ outcome: 'accepted', orderId: 'x', agrees: true, isOpen: false }),
    gives: { sending: to('accepted', 'accepted', { supplierOrderId: 'x' }, ['read_now']) },
  },
  { when: 'the repeat is accepted', facts: { maybeChargedAt: EARLIER }, input: taken, gives: isTaken },
  {
    when: 'the order is accepted but differs from what was sent',
    input: answered({ outcome: 'accepted', orderId: 'x', agrees: false, isOpen: false }),
    gives: open(NOW, 'ambiguous', { namedOrderId: 'x' }),
  },
  {
    when: 'the request was not executed',
    input: answered({ outcome: 'not_executed' }),
    gives: { sending: to('waiting', 'not_executed', { notBefore: LATER, lastClass: 'not_executed' }) },
  },
  {
    when: 'the request was not executed though cancelled meanwhile',
    facts: { cancelRequestedAt: NOW },
    input: answered({ outcome: 'not_executed' }),
    gives: { sending: to('waiting', 'not_executed', { notBefore: LATER, lastClass: 'not_executed' }) },
  },
  {
    when: 'the repeat was not executed, which says nothing about the attempt before',
    facts: { maybeChargedAt: EARLIER, repeats: 2 },
    input: answered({ outcome: 'not_executed' }),
    gives: open(EARLIER, 'not_executed', { repeats: 1 }),
  },
  {
    when: 'a request that may have been charged before it was known here was not executed',
    facts: { maybeChargedAt: EARLIER },
    input: answered({ outcome: 'not_executed' }),
    gives: open(EARLIER, 'not_executed', { repeats: 0 }),
  },
  ...(['out_of_stock', 'balance'] as const).flatMap((reason): Case[] => [
    {
      when: `the order is rejected for ${reason}`,
      input: answered({ outcome: 'rejected', reason }),
      gives: {
        sending: to('rejected', 'rejected_for_now', { lastClass: 'refused' }, [{ plan: reason, notBefore: LATER }]),
      },
    },
    {
      when: `the order is rejected for ${reason} and cancelled meanwhile`,
      facts: { cancelRequestedAt: NOW },
      input: answered({ outcome: 'rejected', reason }),
      gives: notified,
    },
  ]),
  {
    when: 'the order is rejected for another reason',
    input: answered({ outcome: 'rejected', reason: 'other' }),
    gives: notified,
  },
  {
    when: 'the order is rejected after the shop took its units back: the shop needs no notice',
    facts: { takenBackBy: 'units' },
    input: answered({ outcome: 'rejected', reason: 'other' }),
    gives: { sending: to('rejected', 'rejected', { lastClass: 'refused' }) },
  },
  ...refusals.map(
    (reason): Case => ({
      when: `the repeat is rejected for ${reason}, which proves nothing about the attempt before`,
      facts: { maybeChargedAt: EARLIER },
      input: answered({ outcome: 'rejected', reason }),
      gives: open(EARLIER, 'refused'),
    }),
  ),
  { when: 'the answer is ambiguous', input: ambiguous(), gives: open(NOW, 'ambiguous') },
  {
    when: 'the answer names an order and differs',
    input: ambiguous('x'),
    gives: open(NOW, 'ambiguous', { namedOrderId: 'x' }),
  },
  {
    when: 'the answer has only the id of the order',
    input: answered({ outcome: 'unknown', rejection: false, orderId: 'x', isNamed: true }),
    gives: {
      sending: to('unknown', 'named', { maybeChargedAt: NOW, lastClass: 'ambiguous', namedOrderId: 'x' }, ['read_now']),
    },
  },
  {
    when: 'the answer to the repeat has only the id of the order',
    facts: { maybeChargedAt: EARLIER },
    input: answered({ outcome: 'unknown', rejection: false, orderId: 'x', isNamed: true }),
    gives: {
      sending: to('unknown', 'named', { maybeChargedAt: EARLIER, lastClass: 'ambiguous', namedOrderId: 'x' }, [
        'read_now',
      ]),
    },
  },
  {
    when: 'the answer to the repeat is ambiguous',
    facts: { maybeChargedAt: EARLIER },
    input: ambiguous(),
    gives: open(EARLIER, 'ambiguous'),
  },
  {
    when: 'the answer is a refusal that proves nothing',
    input: answered({ outcome: 'unknown', rejection: true, orderId: null }),
    gives: open(NOW, 'refused'),
  },
  {
    when: 'the answer cannot arrive any more',
    input: { type: 'lost' },
    gives: { sending: to('unknown', 'lost', { maybeChargedAt: NOW, lastClass: 'ambiguous' }) },
  },
  {
    when: 'the answer to the repeat cannot arrive any more',
    facts: { maybeChargedAt: EARLIER },
    input: { type: 'lost' },
    gives: { sending: to('unknown', 'lost', { maybeChargedAt: EARLIER, lastClass: 'ambiguous' }) },
  },
]

const absent: PurchaseInput = { type: 'absent', frozen: false }
const absentWhileFrozen: PurchaseInput = { type: 'absent', frozen: true }
const sentAgain = (repeats = 1) => ({ unknown: to('sending', 'sent_again', { repeats }) })
const notBought = { unknown: to('cancelled', 'absent_and_cancelled', {}, ['notify_failed']) }
const forgotten = {
  unknown: to('review', 'absent_and_not_safe', { note: says('forgotten its idempotency key') }, ['alert']),
}
const absentWithoutKey = { ...absent, keyless: true }
const keyless = {
  unknown: to('review', 'absent_and_not_safe', { note: says('takes no idempotency key') }, ['alert']),
}
const refused = { unknown: to('review', 'absent_and_not_safe', { note: says('repeat was rejected') }, ['alert']) }
const repeated = {
  unknown: to('review', 'absent_and_not_safe', { note: says('it was repeated 3 times') }, ['alert']),
}
const named = {
  unknown: to('review', 'named_order_unknown', { ordersSeen: ['x'], note: says('neither lists nor knows') }, ['alert']),
}
const soon = NOW + 1

export const absentCases: Case[] = [
  { when: 'it is absent and its key is safe', input: absent, gives: sentAgain() },
  { when: 'it is absent after two repeats', facts: { repeats: 2 }, input: absent, gives: sentAgain(3) },
  { when: 'it is absent after three repeats', facts: { repeats: 3 }, input: absent, gives: repeated },
  {
    when: 'it is absent after three repeats, buying is frozen',
    facts: { repeats: 3 },
    input: absentWhileFrozen,
    gives: repeated,
  },
  {
    when: 'it is absent after three repeats and cancelled',
    facts: { repeats: 3, cancelRequestedAt: NOW },
    input: absent,
    gives: notBought,
  },
  { when: 'it is absent and an answer named its order', facts: { namedOrderId: 'x' }, input: absent, gives: named },
  {
    when: 'it is absent and cancelled, and an answer named its order',
    facts: { namedOrderId: 'x', cancelRequestedAt: NOW },
    input: absent,
    gives: named,
  },
  {
    when: 'it is absent, an answer named its order, and its key is no longer safe',
    facts: { namedOrderId: 'x', keySafeUntil: NOW },
    input: absentWhileFrozen,
    gives: named,
  },
  {
    when: 'it is absent, its key is safe for a millisecond',
    facts: { keySafeUntil: soon },
    input: absent,
    gives: sentAgain(),
  },
  {
    when: 'it is absent and its repeat was not executed',
    facts: { lastClass: 'not_executed' },
    input: absent,
    gives: sentAgain(),
  },
  { when: 'it is absent, its key is safe, buying is frozen', input: absentWhileFrozen, gives: {} },
  { when: 'it is absent and its key is no longer safe', facts: { keySafeUntil: NOW }, input: absent, gives: forgotten },
  { when: 'it is absent, and the supplier takes no key', input: absentWithoutKey, gives: keyless },
  {
    when: 'it is absent, the supplier takes no key, buying is frozen',
    input: { ...absentWithoutKey, frozen: true },
    gives: keyless,
  },
  {
    when: 'it is absent, the supplier takes no key, and its order has been held in the shop since',
    facts: { holdReason: 'unpaid' },
    input: absentWithoutKey,
    gives: keyless,
  },
  {
    when: 'it is absent and cancelled, and the supplier takes no key',
    facts: { cancelRequestedAt: NOW },
    input: absentWithoutKey,
    gives: notBought,
  },
  { when: 'it is absent and its key was never safe', facts: { keySafeUntil: null }, input: absent, gives: forgotten },
  {
    when: 'it is absent, its key is no longer safe, buying is frozen',
    facts: { keySafeUntil: NOW },
    input: absentWhileFrozen,
    gives: forgotten,
  },
  {
    when: 'it is absent and the last answer was a refusal',
    facts: { lastClass: 'refused' },
    input: absent,
    gives: refused,
  },
  {
    when: 'it is absent, the last answer was a refusal, buying is frozen',
    facts: { lastClass: 'refused' },
    input: absentWhileFrozen,
    gives: refused,
  },
  { when: 'it is absent and cancelled', facts: { cancelRequestedAt: NOW }, input: absent, gives: notBought },
  {
    when: 'it is absent and cancelled, buying is frozen',
    facts: { cancelRequestedAt: NOW },
    input: absentWhileFrozen,
    gives: notBought,
  },
  {
    when: 'it is absent and cancelled, its key is no longer safe and the last answer was a refusal',
    facts: { cancelRequestedAt: NOW, keySafeUntil: NOW, lastClass: 'refused' },
    input: absent,
    gives: notBought,
  },
]

const read = (differs: Partial<FoundOrder>): PurchaseInput => ({ type: 'named_read', order: order('x', differs) })
const isItsOwn = { unknown: to('accepted', 'named_order_agrees', { supplierOrderId: 'x' }, ['read_now']) }
const isOfAnother = { unknown: stays('named_order_of_another', { namedOrderId: null }) }
const differs = (...ordersSeen: string[]) => ({
  unknown: to('review', 'named_order_differs', { ordersSeen, note: says('differs from what was sent') }, ['alert']),
})

/** The order that an answer named, read by its id. */
export const namedCases: Case[] = [
  { when: 'the order that an answer named agrees', facts: { namedOrderId: 'x' }, input: read({}), gives: isItsOwn },
  {
    when: 'the order that an answer named agrees and has failed',
    facts: { namedOrderId: 'x' },
    input: read({ status: 'failed' }),
    gives: isItsOwn,
  },
  {
    when: 'the order that an answer named agrees, and the store has cancelled',
    facts: { namedOrderId: 'x', cancelRequestedAt: NOW },
    input: read({}),
    gives: isItsOwn,
  },
  {
    when: 'the order that an answer named differs',
    facts: { namedOrderId: 'x' },
    input: read({ agrees: false }),
    gives: differs('x'),
  },
  {
    when: 'the order that an answer named differs, and others were seen',
    facts: { namedOrderId: 'x', ordersSeen: ['w'] },
    input: read({ agrees: false }),
    gives: differs('w', 'x'),
  },
  {
    when: 'the order that an answer named is of another purchase',
    facts: { namedOrderId: 'x' },
    input: read({ agrees: false, ofAnotherLine: true }),
    gives: isOfAnother,
  },
  {
    when: 'the order that an answer named agrees, and another purchase has it',
    facts: { namedOrderId: 'x' },
    input: read({ ofAnotherLine: true }),
    gives: isOfAnother,
  },
]
