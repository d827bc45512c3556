/** Cases of the transition table: orders as they are read. */
import type { Effect, FoundOrder, PurchaseInput } from '../../src/domain/purchase.ts'
import { EARLIER, HOUR, NOW } from '../support/facts.ts'
import { type Case, says, stays, to } from './purchase-case.ts'

const read = (
  status: FoundOrder['status'],
  keys: number,
  newKeys: number,
  keysElsewhere = false,
  areText = true,
): PurchaseInput => ({
  type: 'read',
  status,
  keys,
  newKeys,
  keysElsewhere,
  areText,
})
const kept = (row: string, phrase: string) => ({
  accepted: to('review', row, { handOverHeldAt: NOW, note: says(phrase) }, ['store_keys', 'alert']),
})
const reversed = { 'completed fulfilled': stays('reversed', {}, [{ discrepancy: 'reversed', orderId: 'own' }]) }
const refunded = {
  'completed fulfilled': stays('reversed', { refundedAt: NOW }, [{ discrepancy: 'reversed', orderId: 'own' }]),
}
const handsOver = { accepted: stays('some_keys', {}, ['store_keys', 'hand_over']) }
const completes = { accepted: to('completed', 'completed', { keysShortSince: null }, ['store_keys', 'hand_over']) }
const shortSince = (keysShortSince: number, effects: Effect[] = []) => ({
  accepted: stays('keys_short_so_far', { keysShortSince }, effects),
})
const late = { accepted: stays('late', {}, [{ discrepancy: 'late', orderId: 'own' }]) }

export const readCases: Case[] = [
  { when: 'the order is open without keys', input: read('open', 0, 0), gives: { accepted: stays('still_open') } },
  { when: 'the order is open with a first key', input: read('open', 1, 1), gives: handsOver },
  { when: 'the order is open with all keys', input: read('open', 2, 2), gives: handsOver },
  {
    when: 'the order is open with a key that is stored already',
    facts: { keysStored: 1 },
    input: read('open', 1, 0),
    gives: { accepted: stays('still_open') },
  },
  {
    when: 'the order is open with a key, and cancelled',
    facts: { cancelRequestedAt: NOW },
    input: read('open', 1, 1),
    gives: { accepted: stays('some_keys_and_cancelled', {}, ['store_keys']) },
  },
  {
    when: 'the order is open with a key, and is not paid any more',
    facts: { holdReason: 'unpaid' },
    input: read('open', 1, 1),
    gives: { accepted: stays('some_keys', {}, ['store_keys']) },
  },
  {
    when: 'the order is completed, and is not paid any more',
    facts: { holdReason: 'unpaid' },
    input: read('completed', 2, 2),
    gives: { accepted: to('completed', 'completed', { keysShortSince: null }, ['store_keys']) },
  },
  {
    when: 'the order is open with a key, and its hand-over is held',
    facts: { handOverHeldAt: EARLIER },
    input: read('open', 1, 1),
    gives: { accepted: stays('some_keys', {}, ['store_keys']) },
  },
  {
    when: 'the order is open though all its keys are stored already',
    facts: { keysStored: 2 },
    input: read('open', 2, 0),
    gives: { accepted: stays('still_open') },
  },
  {
    when: 'the order is open with all keys, and cancelled',
    facts: { cancelRequestedAt: NOW },
    input: read('open', 2, 2),
    gives: { accepted: stays('some_keys_and_cancelled', {}, ['store_keys']) },
  },
  { when: 'the order is open with too many keys', input: read('open', 3, 3), gives: kept('too_many_keys', '3 keys') },
  {
    when: 'the order shows another key than the ones that came before, one too many in all',
    facts: { keysStored: 2 },
    input: read('open', 1, 1),
    gives: kept('too_many_keys', '3 keys'),
  },
  {
    when: 'the order is open since a millisecond less than a day',
    facts: { acceptedAt: NOW - 24 * HOUR + 1 },
    input: read('open', 0, 0),
    gives: { accepted: stays('still_open') },
  },
  {
    when: 'the order is open for an unknown time',
    facts: { acceptedAt: null },
    input: read('open', 0, 0),
    gives: { accepted: stays('still_open') },
  },
  {
    when: 'the order is open since a day',
    facts: { acceptedAt: NOW - 24 * HOUR },
    input: read('open', 0, 0),
    gives: late,
  },
  {
    when: 'the order is open since a day, and cancelled',
    facts: { acceptedAt: NOW - 24 * HOUR, cancelRequestedAt: NOW },
    input: read('open', 0, 0),
    gives: late,
  },
  {
    when: 'the order is open since a day and brings a key',
    facts: { acceptedAt: NOW - 24 * HOUR },
    input: read('open', 1, 1),
    gives: handsOver,
  },
  { when: 'the order is completed with all keys', input: read('completed', 2, 2), gives: completes },
  {
    when: 'the order is completed with its last key',
    facts: { keysStored: 1 },
    input: read('completed', 2, 1),
    gives: completes,
  },
  {
    when: 'the order is completed and all its keys are stored already',
    facts: { keysStored: 2 },
    input: read('completed', 2, 0),
    gives: completes,
  },
  {
    when: 'the order is completed and shows its last key only',
    facts: { keysStored: 1 },
    input: read('completed', 1, 1),
    gives: completes,
  },
  {
    when: 'the order is completed with all keys after they were short for a day',
    facts: { keysShortSince: NOW - 24 * HOUR },
    input: read('completed', 2, 2),
    gives: completes,
  },
  {
    when: 'the order is completed with all keys, and cancelled',
    facts: { cancelRequestedAt: NOW },
    input: read('completed', 2, 2),
    gives: kept('completed_and_cancelled', 'cancelled after the keys had been bought'),
  },
  {
    when: 'the order is completed, and cancelled after the store got all its keys',
    facts: { cancelRequestedAt: NOW, keysStored: 2, keysLeft: 2, handOverBegunAt: EARLIER },
    input: read('completed', 2, 0),
    gives: {
      accepted: to('completed', 'completed', { keysShortSince: null, note: says('after the hand-over began') }, [
        'store_keys',
        'hand_over',
      ]),
    },
  },
  {
    when: 'the order is completed, and cancelled after the store got one of its keys',
    facts: { cancelRequestedAt: NOW, keysStored: 2, keysLeft: 1, handOverBegunAt: EARLIER },
    input: read('completed', 2, 0),
    gives: kept('completed_and_cancelled', 'cancelled after the keys had been bought'),
  },
  {
    when: 'the order is completed with all keys, and its hand-over is held',
    facts: { handOverHeldAt: EARLIER },
    input: read('completed', 2, 2),
    gives: {
      accepted: to('review', 'completed_while_held', { note: says('waits for a person') }, ['store_keys', 'alert']),
    },
  },
  {
    when: 'the order is completed with all keys, cancelled, and its hand-over is held',
    facts: { cancelRequestedAt: NOW, handOverHeldAt: EARLIER },
    input: read('completed', 2, 2),
    gives: kept('completed_and_cancelled', 'cancelled after the keys had been bought'),
  },
  { when: 'the order is completed without keys', input: read('completed', 0, 0), gives: shortSince(NOW) },
  {
    when: 'the order is completed with one of two keys',
    input: read('completed', 1, 1),
    gives: shortSince(NOW, ['store_keys']),
  },
  {
    when: 'the order is completed with the same key twice',
    input: read('completed', 2, 1),
    gives: shortSince(NOW, ['store_keys']),
  },
  {
    when: 'the order is completed with one of two keys, and cancelled',
    facts: { cancelRequestedAt: NOW },
    input: read('completed', 1, 1),
    gives: shortSince(NOW, ['store_keys']),
  },
  {
    when: 'keys are short for a millisecond less than an hour',
    facts: { keysShortSince: NOW - HOUR + 1, keysStored: 1 },
    input: read('completed', 1, 0),
    gives: shortSince(NOW - HOUR + 1),
  },
  {
    when: 'keys are short for an hour',
    facts: { keysShortSince: NOW - HOUR, keysStored: 1 },
    input: read('completed', 1, 0),
    gives: kept('keys_short', 'only 1 of 2'),
  },
  {
    when: 'the order is open again an hour after its keys were short',
    facts: { keysShortSince: NOW - HOUR, keysStored: 1 },
    input: read('open', 1, 0),
    gives: { accepted: stays('still_open') },
  },
  {
    when: 'the order is completed with too many keys',
    input: read('completed', 3, 3),
    gives: kept('too_many_keys', '3 keys came for a quantity of 2'),
  },
  {
    when: 'the order failed without keys',
    facts: { keysStored: 0 },
    input: read('failed', 0, 0),
    gives: { accepted: to('failed', 'failed', {}, ['notify_failed']), ...reversed },
  },
  {
    when: 'the order that a person adopted failed without keys: it is undecided again',
    facts: { keysStored: 0, ordersSeen: ['w', 'own'] },
    input: read('failed', 0, 0),
    gives: { accepted: to('failed', 'failed', { ordersSeen: ['w'] }, ['notify_failed']), ...reversed },
  },
  {
    when: 'the order failed without keys after the shop had cancelled: it is the supplier that ended it',
    facts: { keysStored: 0, takenBackBy: 'standing', cancelRequestedAt: NOW },
    input: read('failed', 0, 0),
    gives: { accepted: to('failed', 'failed', { takenBackBy: null }, ['notify_failed']), ...reversed },
  },
  {
    when: 'the order was refunded without keys',
    facts: { keysStored: 0 },
    input: read('refunded', 0, 0),
    gives: { accepted: to('failed', 'failed', { refundedAt: NOW }, ['notify_failed']), ...refunded },
  },
  {
    when: 'the order was refunded, as is known already',
    facts: { keysStored: 0, refundedAt: EARLIER },
    input: read('refunded', 0, 0),
    gives: { accepted: to('failed', 'failed', { refundedAt: NOW }, ['notify_failed']), ...reversed },
  },
  {
    when: 'the order failed and shows a key',
    input: read('failed', 1, 1),
    gives: { ...kept('failed_with_keys', 'keys of it came'), ...reversed },
  },
  {
    when: 'the order failed after a key was stored',
    facts: { keysStored: 1 },
    input: read('failed', 0, 0),
    gives: { ...kept('failed_with_keys', 'keys of it came'), ...reversed },
  },
  {
    when: 'the order failed after all its keys were stored',
    facts: { keysStored: 2 },
    input: read('failed', 2, 0),
    gives: { ...kept('failed_with_keys', 'keys of it came'), ...reversed },
  },
  {
    when: 'the order was refunded and shows a key',
    input: read('refunded', 1, 1),
    gives: { ...kept('failed_with_keys', 'keys of it came'), ...refunded },
  },
  {
    when: 'the order failed and shows too many keys',
    input: read('failed', 3, 3),
    gives: { ...kept('too_many_keys', '3 keys'), ...reversed },
  },
  {
    when: 'a key of the open order was seen on another line',
    input: read('open', 1, 1, true),
    gives: kept('key_seen_elsewhere', 'another line'),
  },
  {
    when: 'a key of the completed order was seen on another line, and the order is cancelled',
    facts: { cancelRequestedAt: NOW },
    input: read('completed', 2, 2, true),
    gives: kept('key_seen_elsewhere', 'another line'),
  },
  {
    when: 'a key of the failed order was seen on another line, and there are too many',
    input: read('failed', 3, 3, true),
    gives: { ...kept('key_seen_elsewhere', 'another line'), ...reversed },
  },
  {
    when: 'a key of the completed order is a picture',
    input: read('completed', 2, 2, false, false),
    gives: { accepted: to('review', 'keys_not_text', { handOverHeldAt: NOW, note: says('no text') }, ['alert']) },
  },
  {
    when: 'a key of the completed order is a picture, and no page can show it',
    input: { ...read('completed', 2, 2), needPage: true } as PurchaseInput,
    gives: kept('keys_not_text', 'set publicUrl'),
  },
  {
    when: 'a key of the completed order is a picture that no page can show, and was seen on another line',
    input: { ...read('completed', 2, 2, true), needPage: true } as PurchaseInput,
    gives: kept('key_seen_elsewhere', 'another line'),
  },
  {
    when: 'a key of the failed order is a picture, and was seen on another line',
    input: read('failed', 3, 3, true, false),
    gives: {
      accepted: to('review', 'keys_not_text', { handOverHeldAt: NOW, note: says('no text') }, ['alert']),
      ...reversed,
    },
  },
  {
    when: 'the supplier knows no such order',
    input: { type: 'missing' },
    gives: { accepted: stays('missing', {}, [{ discrepancy: 'missing', orderId: 'own' }]) },
  },
]
