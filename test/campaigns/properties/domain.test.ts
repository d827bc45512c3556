import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Effect,
  type FoundOrder,
  finalStates,
  holdReasons,
  isStandingHold,
  type PurchaseFacts,
  type PurchaseInput,
  purchaseStates,
  type Transition,
  transition,
} from '../../../src/domain/purchase.ts'
import { HOUR, NOW, purchaseIn } from '../../support/facts.ts'

/** Instants around now and around every limit of the table. */
const instant = fc
  .tuple(fc.constantFrom(0, 1, -1), fc.constantFrom(0, 0.5 * HOUR, -HOUR, HOUR, -24 * HOUR, -48 * HOUR))
  .map(([off, around]) => NOW + around + off)
const sometimes = fc.option(instant, { nil: null })
const orderId = fc.constantFrom('own', 'x', 'y')
const count = fc.integer({ min: 0, max: 4 })

const anyFacts: fc.Arbitrary<PurchaseFacts> = fc.record({
  state: fc.constantFrom(...purchaseStates),
  holdReason: fc.option(fc.constantFrom(...holdReasons), { nil: null }),
  notBefore: sometimes,
  cancelRequestedAt: sometimes,
  maybeChargedAt: sometimes,
  keySafeUntil: sometimes,
  lastClass: fc.constantFrom('not_executed', 'refused', 'ambiguous', null),
  deadlineAt: instant,
  supplierOrderId: fc.option(orderId, { nil: null }),
  quantity: fc.integer({ min: 1, max: 3 }),
  surplus: fc.integer({ min: 0, max: 1 }),
  takenBackBy: fc.constantFrom('standing', 'units', null),
  heldAt: sometimes,
  keysStored: count,
  keysWaiting: count,
  keysLeft: count,
  keysShortSince: sometimes,
  unknownAt: sometimes,
  scannedAt: sometimes,
  acceptedAt: sometimes,
  handOverBegunAt: sometimes,
  handOverHeldAt: sometimes,
  failureNotifiedAt: sometimes,
  refundedAt: sometimes,
  repeats: count,
  namedOrderId: fc.option(orderId, { nil: null }),
  ordersSeen: fc.uniqueArray(orderId),
  newest: fc.boolean(),
  laterSent: fc.boolean(),
})

const anyOrder: fc.Arbitrary<FoundOrder> = fc.record({
  id: orderId,
  status: fc.constantFrom('open', 'completed', 'failed', 'refunded'),
  agrees: fc.boolean(),
  ofAnotherLine: fc.boolean(),
  decided: fc.boolean(),
})

const just = <T extends PurchaseInput['type']>(type: T): { type: fc.Arbitrary<T> } => ({ type: fc.constant(type) })

const anyAnswer = fc.oneof(
  fc.record({ outcome: fc.constant('accepted' as const), orderId, agrees: fc.boolean(), isOpen: fc.boolean() }),
  fc.record({
    outcome: fc.constant('rejected' as const),
    reason: fc.constantFrom('out_of_stock' as const, 'balance' as const, 'other' as const),
  }),
  fc.record({ outcome: fc.constant('not_executed' as const) }),
  fc.record({
    outcome: fc.constant('unknown' as const),
    rejection: fc.boolean(),
    orderId: fc.option(orderId, { nil: null }),
  }),
)

const anyDecision: fc.Arbitrary<PurchaseInput> = fc.oneof(
  fc.record({ type: fc.constantFrom('retry', 'hand_over', 'close', 'buy_again') }),
  fc.record({ ...just('adopt'), order: anyOrder }),
)

const anyEvent: fc.Arbitrary<PurchaseInput> = fc.oneof(
  fc.record({ type: fc.constantFrom('clock', 'lost', 'missing', 'confirmed') }),
  fc.record({
    ...just('found'),
    orders: fc.uniqueArray(anyOrder, { maxLength: 3, selector: (order) => order.id }),
  }),
  fc.record({ ...just('released'), by: fc.constantFrom('cause', 'time', 'operator') }),
  fc.record({
    ...just('due'),
    guard: fc.option(fc.constantFrom(...holdReasons), { nil: null }),
    notBefore: sometimes,
    orphans: fc.uniqueArray(orderId, { maxLength: 2 }),
  }),
  fc.record({ ...just('answer'), answer: anyAnswer, notBefore: instant }),
  fc.record({ ...just('absent'), frozen: fc.boolean(), keyless: fc.boolean() }),
  fc.record({ ...just('named_read'), order: anyOrder }),
  fc
    .record({
      status: fc.constantFrom('open', 'completed', 'failed', 'refunded'),
      keys: count,
      keysElsewhere: fc.boolean(),
      areText: fc.boolean(),
    })
    .chain((read) =>
      fc
        .record({ ...just('read'), newKeys: fc.integer({ min: 0, max: read.keys }) })
        .map((more) => ({ ...read, ...more })),
    ),
  fc.record({ ...just('poison'), error: fc.constant('no such column') }),
)

const anyWordOfShop: fc.Arbitrary<PurchaseInput> = fc.oneof(
  fc.record({ type: fc.constantFrom('shop_pays', 'shop_resizes') }),
  fc.record({ ...just('shop_holds'), reason: fc.constantFrom('unpaid', 'held_by_store') }),
  fc.record({ ...just('shop_blocks'), reason: fc.constantFrom('unpaid', 'held_by_store', 'not_entitled') }),
  fc.record({ ...just('shop_cancels'), by: fc.constantFrom('standing', 'units') }),
  fc.record({ ...just('shop_ends'), by: fc.constantFrom('standing', 'units'), rest: fc.integer({ min: 0, max: 2 }) }),
  fc.record({ ...just('shop_limits'), surplus: fc.integer({ min: 0, max: 2 }) }),
  fc.record({ ...just('again'), quantity: fc.integer({ min: 1, max: 2 }) }),
)

const anyInput = fc.oneof({ weight: 4, arbitrary: anyEvent }, { weight: 1, arbitrary: anyDecision })
const decisions = ['retry', 'adopt', 'hand_over', 'close', 'buy_again']

/** Checks a claim about every transition that any purchase makes by any input. */
function always(
  claim: (made: Transition, facts: PurchaseFacts, input: PurchaseInput) => boolean,
  inputs: fc.Arbitrary<PurchaseInput> = anyInput,
): void {
  fc.assert(
    fc.property(anyFacts, inputs, (facts, input) => {
      const made = transition(facts, input, NOW)
      return made === undefined || claim(made, facts, input)
    }),
    { numRuns: 5_000 },
  )
}

const plans = (effects: Effect[]): boolean => effects.some((effect) => typeof effect === 'object' && 'plan' in effect)

describe('whatever happens to whatever purchase', () => {
  test('an unknown one is not taken for unbought without a proof of absence', () => {
    always(({ next }, { state }, { type }) => {
      const unbought = ['planned', 'waiting', 'rejected', 'cancelled', 'sending'].includes(next)
      return state !== 'unknown' || !unbought || type === 'absent'
    })
  })

  test('one that may be charged stays one that may be charged', () => {
    always(({ set }, { maybeChargedAt }) => {
      return maybeChargedAt === null || !('maybeChargedAt' in set) || set.maybeChargedAt === maybeChargedAt
    })
  })

  test('one that may be charged never becomes waiting or rejected', () => {
    always(({ next }, { state, maybeChargedAt }) => {
      return maybeChargedAt === null || next === state || (next !== 'waiting' && next !== 'rejected')
    })
  })

  test('one that may be charged is cancelled by a proof of absence or a person only', () => {
    always(({ next }, { state, maybeChargedAt }, { type }) => {
      const cancelled = next === 'cancelled' && state !== 'cancelled'
      return !cancelled || maybeChargedAt === null || ['absent', 'close', 'buy_again'].includes(type)
    })
  })

  test('nothing is sent while buying is frozen', () => {
    always(({ next }, { state, holdReason }, input) => {
      const frozen =
        (input.type === 'absent' && input.frozen) ||
        (input.type === 'due' && (input.guard === 'frozen' || holdReason === 'frozen'))
      return !frozen || next !== 'sending' || state === 'sending'
    })
  })

  test('nothing cancelled, held, too early or guarded is sent', () => {
    always(({ next }, facts, input) => {
      if (next !== 'sending' || facts.state === 'sending') return true
      if (facts.cancelRequestedAt !== null) return false
      if (input.type === 'absent') return true
      const early = facts.notBefore !== null && facts.notBefore > NOW
      return input.type === 'due' && input.guard === null && facts.holdReason === null && !early
    })
  })

  test('nothing is repeated without a key, with a key that may be forgotten, or after a refusal', () => {
    always(({ next }, { keySafeUntil, lastClass }, input) => {
      if (input.type !== 'absent' || next !== 'sending') return true
      return !input.keyless && (keySafeUntil ?? 0) > NOW && lastClass !== 'refused'
    })
  })

  test('keys are never handed over while their hand-over is held', () => {
    always(({ set, effects }, { handOverHeldAt }) => {
      const held = set.handOverHeldAt === undefined ? handOverHeldAt : set.handOverHeldAt
      return held === null || !effects.includes('hand_over')
    })
  })

  test('a hold of the hand-over is lifted by a person only', () => {
    always(({ set }, { handOverHeldAt }, { type }) => {
      return handOverHeldAt === null || set.handOverHeldAt !== null || decisions.includes(type)
    })
  })

  test('a cancelled one hands nothing over by itself', () => {
    always(({ effects }, { cancelRequestedAt, keysLeft, quantity }, { type }) => {
      // Where the store has all keys, nothing is left to be handed over.
      const hasAll = keysLeft >= quantity
      return cancelRequestedAt === null || hasAll || !effects.includes('hand_over') || type === 'hand_over'
    })
  })

  test('the next generation is planned after a clean rejection or by a person only', () => {
    always(({ effects, row }, { maybeChargedAt }, { type }) => {
      if (!plans(effects)) return true
      return type === 'retry' || type === 'buy_again' || (row === 'rejected_for_now' && maybeChargedAt === null)
    })
  })

  test('a person who buys again where a charge is possible writes the earlier one off', () => {
    always(({ set, effects }, facts) => {
      const charged = facts.maybeChargedAt !== null || facts.supplierOrderId !== null || facts.ordersSeen.length > 0
      return !plans(effects) || !charged || facts.refundedAt !== null || set.writtenOffAt === NOW
    }, anyDecision)
  })

  test('a review, a discrepancy or a freeze never goes unnoticed', () => {
    always(({ next, effects }, { state }) => {
      const loud = effects.some((effect) => effect === 'alert' || effect === 'freeze' || typeof effect === 'object')
      return next !== 'review' || state === 'review' || loud
    })
  })

  test('the order of one that a person gave up is on record as decided', () => {
    always(({ next, set }, { state, supplierOrderId }, { type }) => {
      const givenUp = next === 'cancelled' && state !== 'cancelled' && (type === 'close' || type === 'buy_again')
      return !givenUp || supplierOrderId === null || (set.ordersSeen ?? []).includes(supplierOrderId)
    })
  })

  test('what is over is opened again only by an order that is found', () => {
    always(({ next }, { state }, { type }) => !finalStates.includes(state) || next === state || type === 'found')
  })

  test('a decision depends on nothing but what it is given, and changes none of it', () => {
    fc.assert(
      fc.property(anyFacts, anyInput, (facts, input) => {
        const before = structuredClone({ facts, input })
        const made = transition(facts, input, NOW)
        expect(transition(before.facts, before.input, NOW)).toEqual(made)
        expect({ facts, input }).toEqual(before)
      }),
    )
  })
})

describe('whatever its shop says of its order, to whatever purchase', () => {
  const byShop = (claim: Parameters<typeof always>[0]) => always(claim, anyWordOfShop)

  test('a request leaves at no word of the shop', () => {
    byShop(({ next }, { state }) => next !== 'sending' || state === 'sending')
  })

  test('keys that wait for a person wait on, and so does a review for another reason', () => {
    byShop(({ next, set, effects }, { state, handOverHeldAt, takenBackBy }) => {
      const hasKeys = state === 'accepted' || state === 'completed'
      const isPersons = takenBackBy === null && (state === 'review' || (hasKeys && handOverHeldAt !== null))
      if (!isPersons) return true
      const isKept = set.handOverHeldAt !== null && !effects.includes('hand_over') && (set.takenBackBy ?? null) === null
      return isKept && (state !== 'review' || next === 'review')
    })
  })

  test('no key is delivered while the order is held', () => {
    byShop(({ set, effects }, facts) => {
      // What is fulfilled is not held.
      const { holdReason, state } = { ...facts, ...set }
      return state === 'fulfilled' || !effects.includes('hand_over') || !isStandingHold(holdReason)
    })
  })

  test('what it withdraws are deliveries that wait, and it withdraws them before it holds or cancels the purchase', () => {
    byShop(({ effects, row }, { keysWaiting }) => {
      const isTaken = ['shop_held', 'taken_back_before_hand_over'].includes(row)
      return (
        (!effects.includes('withdraw') || keysWaiting > 0) &&
        (!isTaken || keysWaiting === 0 || effects.includes('withdraw'))
      )
    })
  })

  test('nothing that may be charged ends, and nothing of it is planned again but by the ends of others', () => {
    byShop(({ next, effects }, { state, maybeChargedAt }, { type }) => {
      if (next === 'cancelled' && state !== 'cancelled') return maybeChargedAt === null && type === 'shop_ends'
      return !plans(effects) || type === 'again'
    })
  })

  test('the time in which it held a purchase is added to its deadline', () => {
    byShop(({ set, row }, { holdReason, heldAt, deadlineAt }) => {
      if (!isStandingHold(holdReason) || !['shop_held', 'shop_paid'].includes(row)) return true
      return set.deadlineAt === deadlineAt + Math.max(0, NOW - (heldAt ?? NOW))
    })
  })
})

describe('a purchase that lives through anything', () => {
  /** Follows a planned purchase through inputs, as the flows would; `visit` sees every step. */
  function live(
    inputs: PurchaseInput[],
    visit: (made: Transition, facts: PurchaseFacts, input: PurchaseInput) => void,
  ) {
    let facts = purchaseIn('planned')
    for (const input of inputs) {
      const made = transition(facts, input, NOW)
      if (!made) continue
      visit(made, facts, input)
      const { ceilingMinor: _, writtenOffAt: __, note: ___, ...columns } = made.set
      facts = { ...facts, ...columns, state: made.next }
      if (made.next === 'sending') facts.keySafeUntil ??= NOW + HOUR
      if (made.effects.includes('notify_failed')) facts.failureNotifiedAt = NOW
      if (input.type === 'read' && made.effects.includes('store_keys')) facts.keysStored += input.newKeys
    }
    return facts
  }
  const lives = fc.array(anyEvent, { minLength: 5, maxLength: 60 })

  test('is sent a second time only after a clean answer or a proof of absence', () => {
    fc.assert(
      fc.property(lives, (inputs) => {
        let last: PurchaseInput | undefined
        live(inputs, (made, facts, input) => {
          if (made.next === 'sending' && facts.maybeChargedAt !== null) expect(input.type).toBe('absent')
          if (made.next === 'sending' && facts.state === 'waiting') {
            expect(last).toMatchObject({ type: 'answer', answer: { outcome: 'not_executed' } })
          }
          if (facts.state === 'sending') last = input
        })
      }),
      { numRuns: 2_000 },
    )
  })

  test('is neither given up nor bought again once the supplier has charged it', () => {
    // A supplier that keeps its word: a key is charged once, and scans tell the truth.
    const step = fc.constantFrom(
      'send',
      'lost',
      'vanished',
      'answered',
      'refused',
      'not_executed',
      'look',
      'cancel',
      'clock',
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let facts = purchaseIn('planned')
        let bought = false
        const give = (input: PurchaseInput) => {
          const made = transition(facts, input, NOW)
          if (made) facts = { ...facts, ...made.set, state: made.next } as PurchaseFacts
          if (made && plans(made.effects)) expect(bought).toBe(false)
        }
        for (const one of steps) {
          const sending = facts.state === 'sending'
          if (one === 'send') give({ type: 'due', guard: null, notBefore: null, orphans: [] })
          if (one === 'cancel') facts.cancelRequestedAt ??= NOW
          if (one === 'clock' || one === 'cancel') give({ type: 'clock' })
          if (one === 'lost' && sending) {
            bought = true
            give({ type: 'lost' })
          }
          if (one === 'vanished') give({ type: 'lost' })
          if (one === 'answered' && sending) {
            bought = true
            give({
              type: 'answer',
              answer: { outcome: 'accepted', orderId: 'x', agrees: true, isOpen: true },
              notBefore: NOW,
            })
          }
          if (one === 'refused')
            give({ type: 'answer', answer: { outcome: 'rejected', reason: 'balance' }, notBefore: NOW })
          if (one === 'not_executed') give({ type: 'answer', answer: { outcome: 'not_executed' }, notBefore: NOW })
          if (one === 'look' && facts.state === 'unknown') {
            const ours: FoundOrder = { id: 'x', status: 'open', agrees: true, ofAnotherLine: false, decided: false }
            give(bought ? { type: 'found', orders: [ours] } : { type: 'absent', frozen: false })
          }
          if (bought) expect(['planned', 'waiting', 'rejected', 'cancelled']).not.toContain(facts.state)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
