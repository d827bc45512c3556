/** Cases of the transition table: what follows for a purchase from how its order is in the shop now. */
import type { PurchaseInput } from '../../src/domain/purchase.ts'
import { EARLIER, HOUR, MINUTE, NOW } from '../support/facts.ts'
import { type Case, says, stays, to } from './purchase-case.ts'

const ends = (rest: number): PurchaseInput => ({ type: 'shop_ends', by: 'units', rest })
const ended = { holdReason: null, notBefore: null, takenBackBy: 'units' }
const holds: PurchaseInput = { type: 'shop_holds', reason: 'unpaid' }
const cancels: PurchaseInput = { type: 'shop_cancels', by: 'standing' }
const pays: PurchaseInput = { type: 'shop_pays' }
const limits = (surplus: number): PurchaseInput => ({ type: 'shop_limits', surplus })
const again: PurchaseInput = { type: 'again', quantity: 1 }

const taken = { cancelRequestedAt: NOW, takenBackBy: 'standing' }
const takenUnits = { cancelRequestedAt: NOW, takenBackBy: 'units' }
const keysStay = (set = {}) => ({ ...taken, ...set, handOverHeldAt: NOW, note: says('took it back') })
const held = { holdReason: 'unpaid' as const }
const returned = { cancelRequestedAt: null, takenBackBy: null }

export const shopCases: Case[] = [
  {
    when: 'no unit of it is ordered any more',
    input: ends(0),
    gives: { 'planned waiting': to('cancelled', 'shop_ended', ended) },
  },
  {
    when: 'fewer units are ordered than its bytes ask for',
    facts: { notBefore: NOW + MINUTE },
    input: ends(1),
    gives: {
      'planned waiting': to('cancelled', 'shop_ended', ended, [{ plan: null, notBefore: NOW + MINUTE, quantity: 1 }]),
    },
  },
  {
    when: 'no unit of it is ordered any more, and it may have been charged',
    facts: { maybeChargedAt: EARLIER },
    input: ends(0),
    gives: {},
  },
  {
    when: 'it is for another number of units',
    input: { type: 'shop_resizes' },
    gives: { planned: stays('resized') },
  },
  {
    when: 'the shop cancels the order',
    facts: { keysWaiting: 0 },
    input: cancels,
    gives: {
      unknown: stays('shop_cancelled', taken, ['read_now']),
      accepted: stays('shop_cancelled', taken),
      completed: to('review', 'taken_back_before_hand_over', keysStay(), ['alert']),
    },
  },
  {
    when: 'the shop cancels the order while a delivery of its keys waits',
    facts: { keysWaiting: 2, holdReason: 'held_by_store' },
    input: cancels,
    gives: {
      unknown: stays('shop_cancelled', { ...taken, holdReason: null }, ['read_now']),
      accepted: stays('shop_cancelled', { ...taken, holdReason: null }),
      completed: to('review', 'taken_back_before_hand_over', keysStay({ holdReason: null }), ['withdraw', 'alert']),
    },
  },
  {
    when: 'the shop cancels the order after all of its keys left',
    facts: { handOverBegunAt: EARLIER, keysWaiting: 0, keysLeft: 2 },
    input: cancels,
    gives: {
      unknown: stays('shop_cancelled', taken, ['read_now']),
      'accepted completed': stays('shop_cancelled', taken),
    },
  },
  {
    when: 'the shop cancels the order after all keys left that came and that were to leave',
    facts: { handOverBegunAt: EARLIER, keysStored: 2, quantity: 3, surplus: 1, keysWaiting: 0, keysLeft: 2 },
    input: cancels,
    gives: {
      unknown: stays('shop_cancelled', taken, ['read_now']),
      'accepted completed': stays('shop_cancelled', taken),
    },
  },
  {
    when: 'the shop cancels the order after all keys left that were to leave, of more that came',
    facts: { handOverBegunAt: EARLIER, keysStored: 3, quantity: 3, surplus: 1, keysWaiting: 0, keysLeft: 2 },
    input: cancels,
    gives: {
      unknown: stays('shop_cancelled', taken, ['read_now']),
      'accepted completed': stays('shop_cancelled', taken),
    },
  },
  {
    when: 'the shop cancels the order after one of its keys left, and the others stay here as it was not paid',
    facts: { ...held, handOverBegunAt: EARLIER, keysWaiting: 0, keysLeft: 1 },
    input: cancels,
    gives: {
      unknown: stays('shop_cancelled', { ...taken, holdReason: null }, ['read_now']),
      accepted: stays('shop_cancelled', { ...taken, holdReason: null }),
      completed: to('review', 'taken_back_before_hand_over', keysStay({ holdReason: null }), ['alert']),
    },
  },
  {
    when: 'the shop cancels an order that its backend had cancelled before',
    facts: { cancelRequestedAt: EARLIER, handOverBegunAt: EARLIER, keysWaiting: 0, keysLeft: 2 },
    input: cancels,
    gives: {
      unknown: stays('shop_cancelled', { ...taken, cancelRequestedAt: EARLIER }, ['read_now']),
      'accepted completed': stays('shop_cancelled', { ...taken, cancelRequestedAt: EARLIER }),
    },
  },
  {
    when: 'the shop cancels an order whose keys wait for a person for another reason',
    facts: { handOverHeldAt: EARLIER, keysWaiting: 0 },
    input: cancels,
    gives: {
      unknown: stays('shop_cancelled', { cancelRequestedAt: NOW }, ['read_now']),
      accepted: stays('shop_cancelled', { cancelRequestedAt: NOW }),
      completed: to(
        'review',
        'taken_back_before_hand_over',
        { cancelRequestedAt: NOW, handOverHeldAt: NOW, note: says('took it back') },
        ['alert'],
      ),
    },
  },
  {
    when: 'none of its units is ordered any more, after one key left',
    facts: { handOverBegunAt: EARLIER, keysLeft: 1 },
    input: { type: 'shop_cancels', by: 'units' },
    gives: {
      unknown: stays('shop_cancelled', { ...takenUnits, surplus: 1 }, ['read_now']),
      accepted: stays('shop_cancelled', { ...takenUnits, surplus: 1 }),
      completed: to('review', 'taken_back_before_hand_over', keysStay({ ...takenUnits, surplus: 1 }), [
        'withdraw',
        'alert',
      ]),
    },
  },
  {
    when: 'none of its units is ordered any more, after its order was cancelled and paid again',
    facts: { ...taken, takenBackBy: 'standing', cancelRequestedAt: EARLIER, handOverHeldAt: EARLIER },
    input: { type: 'shop_cancels', by: 'units' },
    gives: {
      unknown: stays('shop_cancelled', { ...takenUnits, cancelRequestedAt: EARLIER, surplus: 2 }, ['read_now']),
      'accepted review': stays('shop_cancelled', { ...takenUnits, cancelRequestedAt: EARLIER, surplus: 2 }),
      completed: to(
        'review',
        'taken_back_before_hand_over',
        keysStay({ ...takenUnits, cancelRequestedAt: EARLIER, surplus: 2 }),
        ['withdraw', 'alert'],
      ),
    },
  },
  {
    when: 'none of its units is ordered any more, and all were to stay here before its keys came',
    facts: { surplus: 2, keysWaiting: 0 },
    input: { type: 'shop_cancels', by: 'units' },
    gives: {
      unknown: stays('shop_cancelled', { ...takenUnits, surplus: 2 }, ['read_now']),
      accepted: stays('shop_cancelled', { ...takenUnits, surplus: 2 }),
      completed: to('review', 'taken_back_before_hand_over', keysStay({ ...takenUnits, surplus: 2 }), ['alert']),
    },
  },
  {
    when: 'the order is not paid any more',
    facts: { keysWaiting: 0 },
    input: holds,
    gives: { 'planned waiting unknown accepted completed': stays('shop_held', held) },
  },
  {
    when: 'the order is not paid any more while a delivery of its keys waits',
    facts: { holdReason: 'out_of_stock', keysWaiting: 2 },
    input: holds,
    gives: { 'planned waiting unknown accepted completed': stays('shop_held', held, ['withdraw']) },
  },
  {
    when: 'the order is not paid any more after the shop had held it for ten minutes',
    facts: { holdReason: 'held_by_store', heldAt: EARLIER, keysWaiting: 0 },
    input: holds,
    gives: {
      'planned waiting unknown accepted completed': stays('shop_held', {
        ...held,
        deadlineAt: NOW + HOUR + 10 * MINUTE,
      }),
    },
  },
  {
    when: 'the shop refuses the delivery of its keys for now',
    input: { type: 'shop_blocks', reason: 'held_by_store' },
    gives: { 'accepted completed': stays('shop_blocked', { holdReason: 'held_by_store' }) },
  },
  {
    when: 'the order is paid again after ten minutes',
    facts: { ...held, heldAt: EARLIER },
    input: pays,
    gives: {
      'planned waiting unknown': stays('shop_paid', { holdReason: null, deadlineAt: NOW + HOUR + 10 * MINUTE }),
      'accepted completed': stays('shop_paid', { holdReason: null, deadlineAt: NOW + HOUR + 10 * MINUTE }, [
        'hand_over',
      ]),
    },
  },
  {
    when: 'the order is paid again, and it is not known since when it waits',
    facts: { ...held, heldAt: null, handOverHeldAt: EARLIER },
    input: pays,
    gives: {
      'planned waiting unknown accepted completed': stays('shop_paid', { holdReason: null, deadlineAt: NOW + HOUR }),
    },
  },
  {
    when: 'the order is paid after the shop had cancelled it, and not all of its keys came',
    facts: { ...taken, takenBackBy: 'standing', keysStored: 1, handOverHeldAt: EARLIER },
    input: pays,
    gives: { 'planned waiting unknown accepted completed': stays('shop_paid', returned) },
  },
  {
    when: 'the order is paid, and another reason holds the purchase',
    facts: { holdReason: 'out_of_stock', handOverHeldAt: EARLIER },
    input: pays,
    gives: { 'planned waiting unknown accepted completed': stays('shop_paid') },
  },
  {
    when: 'the order is paid after the shop had cancelled it',
    facts: { ...taken, takenBackBy: 'standing', keysStored: 2 },
    input: pays,
    gives: {
      'planned waiting unknown': stays('shop_paid', returned),
      'accepted completed': stays('shop_paid', returned, ['hand_over']),
      review: to('completed', 'paid_again', { ...returned, handOverHeldAt: null, holdReason: null }, ['hand_over']),
    },
  },
  {
    when: 'the order is paid after the shop had cancelled it, and none of its units is ordered',
    facts: { ...taken, takenBackBy: 'units', surplus: 2, keysStored: 2 },
    input: pays,
    gives: {
      'planned waiting unknown': stays('shop_paid', returned),
      'accepted completed': stays('shop_paid', returned, ['hand_over']),
    },
  },
  {
    when: 'the order is paid again, and a person has to look at it for another reason',
    facts: { takenBackBy: null, cancelRequestedAt: EARLIER, keysStored: 2, handOverHeldAt: EARLIER },
    input: pays,
    gives: { 'planned waiting unknown accepted completed': stays('shop_paid') },
  },
  {
    when: 'one unit of it is not ordered any more',
    facts: { keysWaiting: 0 },
    input: limits(1),
    gives: {
      'unknown review': stays('shop_limited', { surplus: 1 }),
      'accepted completed': stays('shop_limited', { surplus: 1 }, ['hand_over']),
    },
  },
  {
    when: 'one unit of it is not ordered any more while a delivery of its keys waits',
    facts: { keysWaiting: 2 },
    input: limits(1),
    gives: {
      unknown: stays('shop_limited', { surplus: 1 }),
      review: stays('shop_limited', { surplus: 1 }, ['withdraw']),
      'accepted completed': stays('shop_limited', { surplus: 1 }, ['withdraw', 'hand_over']),
    },
  },
  {
    when: 'one unit of it is not ordered any more while its order is not paid',
    facts: { ...held, keysWaiting: 0 },
    input: limits(1),
    gives: { 'unknown accepted completed review': stays('shop_limited', { surplus: 1 }) },
  },
  {
    when: 'one unit of it is not ordered any more, as its shop has no room for the keys',
    facts: { holdReason: 'not_entitled', keysWaiting: 0 },
    input: limits(1),
    gives: {
      'unknown review': stays('shop_limited', { surplus: 1, holdReason: null }),
      'accepted completed': stays('shop_limited', { surplus: 1, holdReason: null }, ['hand_over']),
    },
  },
  {
    when: 'as many units stay here as before',
    facts: { surplus: 1, keysWaiting: 0, handOverHeldAt: EARLIER },
    input: limits(1),
    gives: { 'unknown accepted completed review': stays('shop_limited', { surplus: 1 }) },
  },
  {
    when: 'a unit whose key stayed here is ordered again',
    facts: { surplus: 1, keysWaiting: 0 },
    input: limits(0),
    gives: {
      'unknown review': stays('shop_limited', { surplus: 0 }),
      'accepted completed': stays('shop_limited', { surplus: 0 }, ['hand_over']),
      fulfilled: to('completed', 'surplus_released', { surplus: 0 }, ['hand_over']),
    },
  },
  {
    when: 'a unit whose key stayed here is ordered again, after the order was cancelled and paid again',
    facts: { ...taken, takenBackBy: 'standing', surplus: 1, keysWaiting: 0 },
    input: limits(0),
    gives: {
      'unknown review': stays('shop_limited', { surplus: 0 }),
      'accepted completed': stays('shop_limited', { surplus: 0 }, ['hand_over']),
      fulfilled: to('completed', 'surplus_released', { surplus: 0, ...returned }, ['hand_over']),
    },
  },
  {
    when: 'a part of it is bought again',
    input: again,
    gives: {
      'rejected cancelled': stays('planned_again', {}, [{ plan: null, notBefore: null, quantity: 1 }]),
      failed: stays('planned_again', { writtenOffAt: NOW }, [{ plan: null, notBefore: null, quantity: 1 }]),
    },
  },
  {
    when: 'a part of it is to be bought again, and a later purchase of it exists',
    facts: { newest: false },
    input: again,
    gives: {},
  },
  ...[
    { when: 'fewer units are ordered now', surplus: 1 },
    { when: 'its line has no room for its units', surplus: 0, hasRoom: false },
  ].map(
    ({ when, surplus, ...room }): Case => ({
      when: `its request is proven absent, and ${when}`,
      facts: { surplus },
      input: { type: 'absent', frozen: false, ...room },
      gives: {
        unknown: to('review', 'absent_and_fewer', { takenBackBy: 'units', note: says('too many') }, ['alert']),
      },
    }),
  ),
]
