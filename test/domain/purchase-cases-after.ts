/** Cases of the transition table: confirmations and errors, and what people decide. */
import type { Effect, PurchaseFacts } from '../../src/domain/purchase.ts'
import { EARLIER, NOW, order } from '../support/facts.ts'
import { type Case, says, stays, to } from './purchase-case.ts'

const nextGeneration: Effect = { plan: null, notBefore: null }
const plannedAgain = stays('retried', {}, [nextGeneration])
const writtenOff = stays('retried', { writtenOffAt: NOW }, [nextGeneration])
const handedOver = (effects: Effect[]) =>
  to('completed', 'handed_over', { handOverHeldAt: null, cancelRequestedAt: null }, effects)
const adopted = (ordersSeen: string[]) =>
  to('accepted', 'adopted', { supplierOrderId: 'x', ordersSeen, handOverHeldAt: null, keysShortSince: null }, [
    'read_now',
  ])
const closed = (ordersSeen: string[], handOverHeldAt: number | null = NOW) =>
  to('cancelled', 'closed', { ordersSeen, handOverHeldAt }, ['withdraw', 'notify_failed'])
const boughtAgain = (ordersSeen: string[], handOverHeldAt: number | null = NOW) =>
  to('cancelled', 'bought_again', { writtenOffAt: NOW, ordersSeen, handOverHeldAt }, ['withdraw', nextGeneration])

export const otherCases: Case[] = [
  {
    when: 'the store confirmed the keys',
    input: { type: 'confirmed' },
    gives: { completed: to('fulfilled', 'confirmed') },
  },
  {
    when: 'the store confirmed the keys, and the shop had refused them before',
    facts: { holdReason: 'not_entitled' },
    input: { type: 'confirmed' },
    gives: { completed: to('fulfilled', 'confirmed', { holdReason: null }) },
  },
  {
    when: 'the same internal error came eight times, and its keys waited for a person before',
    facts: { handOverHeldAt: EARLIER },
    input: { type: 'poison', error: 'no such column' },
    gives: {
      'planned waiting unknown accepted': to(
        'review',
        'poisoned',
        { note: says('no such column'), holdReason: null, notBefore: null },
        ['alert'],
      ),
      completed: to(
        'review',
        'poisoned',
        { note: says('no such column'), holdReason: null, notBefore: null, handOverHeldAt: EARLIER },
        ['alert'],
      ),
    },
  },
  {
    when: 'the same internal error came eight times',
    input: { type: 'poison', error: 'no such column' },
    gives: {
      'planned waiting unknown accepted': to(
        'review',
        'poisoned',
        { note: says('no such column'), holdReason: null, notBefore: null },
        ['alert'],
      ),
      completed: to(
        'review',
        'poisoned',
        { note: says('no such column'), holdReason: null, notBefore: null, handOverHeldAt: NOW },
        ['alert'],
      ),
    },
  },
  {
    when: 'an operator retries it',
    input: { type: 'retry' },
    gives: { 'rejected cancelled': plannedAgain, failed: writtenOff },
  },
  {
    when: 'an operator retries it, and no order of it is known',
    facts: { supplierOrderId: null },
    input: { type: 'retry' },
    gives: { 'rejected cancelled': plannedAgain, failed: writtenOff },
  },
  {
    when: 'an operator retries it after the supplier refunded it',
    facts: { refundedAt: EARLIER, supplierOrderId: 'own' },
    input: { type: 'retry' },
    gives: { 'rejected failed cancelled': plannedAgain },
  },
  ...(
    [
      ['that an order was made', { supplierOrderId: 'own' }],
      ['that it may have been charged', { maybeChargedAt: EARLIER }],
      ['that orders were seen', { ordersSeen: ['x'] }],
    ] as const
  ).map(
    ([known, facts]): Case => ({
      when: `an operator retries it, and it is known ${known}`,
      facts: facts as Partial<PurchaseFacts>,
      input: { type: 'retry' },
      gives: { 'rejected failed cancelled': writtenOff },
    }),
  ),
  {
    when: 'an operator retries it, and a later one exists',
    facts: { newest: false },
    input: { type: 'retry' },
    gives: {},
  },
  {
    when: 'a person adopts an order',
    facts: { handOverHeldAt: EARLIER, keysShortSince: EARLIER, supplierOrderId: null },
    input: { type: 'adopt', order: order('x', { agrees: false }) },
    gives: { 'review accepted': adopted(['x']) },
  },
  {
    when: 'a person adopts one of two orders that were found',
    facts: { supplierOrderId: null, ordersSeen: ['y', 'x'] },
    input: { type: 'adopt', order: order('x') },
    gives: { 'review accepted': adopted(['y', 'x']) },
  },
  {
    when: 'a person adopts another order than the one that was known',
    facts: { supplierOrderId: 'own', ordersSeen: ['x'] },
    input: { type: 'adopt', order: order('x') },
    gives: { 'review accepted': adopted(['x', 'own']) },
  },
  {
    when: 'a person hands over what came',
    facts: { handOverHeldAt: EARLIER, cancelRequestedAt: EARLIER, keysStored: 2 },
    input: { type: 'hand_over' },
    gives: { 'review accepted': handedOver(['hand_over']) },
  },
  {
    when: 'a person hands over what came, which is more than was ordered',
    facts: { handOverHeldAt: EARLIER, keysStored: 3 },
    input: { type: 'hand_over' },
    gives: { 'review accepted': handedOver(['hand_over']) },
  },
  {
    when: 'a person hands over what came, which is less than was ordered',
    facts: { keysStored: 1 },
    input: { type: 'hand_over' },
    gives: { 'review accepted': handedOver(['hand_over', 'notify_failed']) },
  },
  {
    when: 'a person hands over what came, of which no unit is ordered any more',
    facts: { keysStored: 2, surplus: 2 },
    input: { type: 'hand_over' },
    gives: {
      'review accepted': to('completed', 'handed_over', { handOverHeldAt: null, cancelRequestedAt: null, surplus: 0 }, [
        'hand_over',
      ]),
    },
  },
  {
    when: 'a person hands over though nothing came',
    facts: { keysStored: 0 },
    input: { type: 'hand_over' },
    gives: {},
  },
  {
    when: 'a person closes it',
    facts: { supplierOrderId: null },
    input: { type: 'close' },
    gives: { 'review accepted': closed([]) },
  },
  {
    when: 'a person closes it and has seen further orders besides the known one',
    facts: { supplierOrderId: 'own', ordersSeen: ['x'] },
    input: { type: 'close' },
    gives: { 'review accepted': closed(['x', 'own']) },
  },
  {
    when: 'a person closes it while its hand-over is held',
    facts: { supplierOrderId: 'own', handOverHeldAt: EARLIER },
    input: { type: 'close' },
    gives: { 'review accepted': closed(['own'], EARLIER) },
  },
  {
    when: 'a person closes it after keys of it began to leave',
    facts: { supplierOrderId: 'own', handOverHeldAt: EARLIER, handOverBegunAt: EARLIER },
    input: { type: 'close' },
    gives: { 'review accepted': closed(['own'], null) },
  },
  {
    when: 'a person buys again',
    facts: { supplierOrderId: 'own' },
    input: { type: 'buy_again' },
    gives: { 'review accepted': boughtAgain(['own']) },
  },
  {
    when: 'a person buys again after keys of it began to leave',
    facts: { supplierOrderId: 'own', handOverHeldAt: EARLIER, handOverBegunAt: EARLIER },
    input: { type: 'buy_again' },
    gives: { 'review accepted': boughtAgain(['own'], null) },
  },
  {
    when: 'a person buys again though no order was ever found',
    facts: { supplierOrderId: null },
    input: { type: 'buy_again' },
    gives: { 'review accepted': boughtAgain([]) },
  },
]
