/**
 * The rows of the transition table, in their order. A row answers undefined where its condition does not hold.
 */
import type { Effect, FoundOrder, Patch, PurchaseFacts, PurchaseInput, PurchaseState } from './purchase.ts'

const HOUR = 3_600_000

/** A completed order whose keys are short may still be filling up; after this long a person looks. */
export const KEYS_SHORT_MS = HOUR
/** An order that is open for longer than a day is reported, once. */
export const LATE_MS = 24 * HOUR
/** No valid scan for this long: the supplier's list is no help, a person must decide. */
export const SCAN_OVERDUE_MS = 24 * HOUR

interface Outcome {
  next?: PurchaseState
  set?: Patch
  effects?: Effect[]
}

interface Row {
  name: string
  states: readonly PurchaseState[]
  type: PurchaseInput['type']
  decide(facts: PurchaseFacts, input: PurchaseInput, now: number): Outcome | undefined
}

type InputOf<T extends PurchaseInput['type']> = Extract<PurchaseInput, { type: T }>

function row<T extends PurchaseInput['type']>(
  name: string,
  states: readonly PurchaseState[],
  type: T,
  decide: (facts: PurchaseFacts, input: InputOf<T>, now: number) => Outcome | undefined,
): Row {
  return { name, states, type, decide: (facts, input, now) => decide(facts, input as InputOf<T>, now) }
}

const undecided = (orders: FoundOrder[]) => orders.filter((order) => !order.decided)
const ids = (facts: PurchaseFacts, orders: { id: string }[]) => [
  ...new Set([...facts.ordersSeen, ...orders.map((order) => order.id)]),
]
/** What a person decides on when a purchase is given up: its own order, too, must not bring it back. */
const seenAndKnown = (facts: PurchaseFacts) =>
  facts.supplierOrderId === null ? facts.ordersSeen : ids(facts, [{ id: facts.supplierOrderId }])
const doubleCharge = (orders: FoundOrder[]): Effect[] => [
  ...orders.map((order): Effect => ({ discrepancy: 'double_charge', orderId: order.id })),
  'freeze',
]
/** Keys that ever came, with those of this reading: what an order shows may change from one reading to the next. */
const came = (facts: PurchaseFacts, { newKeys }: InputOf<'read'>) => facts.keysStored + newKeys
const allCame = (facts: PurchaseFacts, input: InputOf<'read'>) =>
  input.status === 'completed' && came(facts, input) === facts.quantity

const before = ['planned', 'waiting'] as const
/** An order found for one of these is ours (after a restore, or after a lost answer), or the reason to stop and look. */
const notAccepted = [...before, 'unknown'] as const
const over = ['rejected', 'failed', 'cancelled'] as const

export const rows: readonly Row[] = [
  row('found', notAccepted, 'found', (_, { orders }) => {
    const [order, ...others] = undecided(orders)
    if (!order?.agrees || order.ofAnotherLine || others.length > 0) return undefined
    return {
      next: 'accepted',
      set: { supplierOrderId: order.id, holdReason: null, notBefore: null },
      effects: ['read_now'],
    }
  }),
  row('found_one_that_disagrees', notAccepted, 'found', (facts, { orders }) => {
    const [order, ...others] = undecided(orders)
    if (!order || order.agrees || order.ofAnotherLine || others.length > 0) return undefined
    const note = `order ${order.id} at the supplier carries our reference but differs from what was sent`
    return { next: 'review', set: { ordersSeen: ids(facts, [order]), note }, effects: ['alert'] }
  }),
  row('found_several', notAccepted, 'found', (facts, { orders }) => {
    const open = undecided(orders)
    if (open.length === 0) return undefined
    const note =
      open.length > 1
        ? `${open.length} orders at the supplier carry our reference`
        : `order ${open[0]?.id} belongs to a purchase of another line`
    const effects = open.length > 1 ? doubleCharge(open.slice(1)) : (['alert', 'freeze'] as Effect[])
    return { next: 'review', set: { ordersSeen: ids(facts, open), note }, effects }
  }),

  row('cancelled_before_sending', before, 'clock', (facts, _, now) => {
    if (facts.maybeChargedAt !== null) return undefined
    if (facts.cancelRequestedAt === null && now < facts.deadlineAt) return undefined
    return { next: 'cancelled', set: { holdReason: null, notBefore: null }, effects: ['tell_failed'] }
  }),
  row('released', before, 'released', (facts, { by, ceilingMinor }, now) => {
    if (facts.holdReason === null && facts.notBefore === null) return undefined
    if (by === 'time' && (facts.notBefore === null || now < facts.notBefore)) return undefined
    const set: Patch = { holdReason: null, notBefore: null }
    if (ceilingMinor !== undefined) set.ceilingMinor = ceilingMinor
    return { set }
  }),
  row('sent', before, 'due', (facts, { guard }, now) => {
    if (guard !== null || facts.holdReason !== null || facts.cancelRequestedAt !== null) return undefined
    if (now >= facts.deadlineAt || (facts.notBefore !== null && now < facts.notBefore)) return undefined
    return { next: 'sending', set: { notBefore: null } }
  }),
  row('held', before, 'due', (facts, { guard, notBefore }) => {
    if (guard === null || facts.holdReason !== null || facts.cancelRequestedAt !== null) return undefined
    return { set: { holdReason: guard, notBefore } }
  }),

  row('accepted', ['sending'], 'answer', (_, { answer }) => {
    if (answer.outcome !== 'accepted' || !answer.agrees) return undefined
    return { next: 'accepted', set: { supplierOrderId: answer.orderId }, effects: ['read_now'] }
  }),
  row('not_executed', ['sending'], 'answer', (facts, { answer, notBefore }) => {
    if (answer.outcome !== 'not_executed' || facts.maybeChargedAt !== null) return undefined
    return { next: 'waiting', set: { notBefore, lastClass: 'N' } }
  }),
  row('rejected_for_now', ['sending'], 'answer', (facts, { answer, notBefore }) => {
    if (answer.outcome !== 'rejected' || answer.reason === 'other') return undefined
    if (facts.maybeChargedAt !== null || facts.cancelRequestedAt !== null) return undefined
    return { next: 'rejected', set: { lastClass: 'B' }, effects: [{ plan: answer.reason, notBefore }] }
  }),
  row('rejected', ['sending'], 'answer', (facts, { answer }) => {
    if (answer.outcome !== 'rejected' || facts.maybeChargedAt !== null) return undefined
    return { next: 'rejected', set: { lastClass: 'B' }, effects: ['tell_failed'] }
  }),
  row('ambiguous', ['sending'], 'answer', (facts, { answer }, now) => {
    const refused = answer.outcome === 'rejected' || (answer.outcome === 'unknown' && answer.rejection)
    const lastClass = refused ? 'B' : answer.outcome === 'not_executed' ? 'N' : 'A'
    return { next: 'unknown', set: { maybeChargedAt: facts.maybeChargedAt ?? now, lastClass } }
  }),
  row('lost', ['sending'], 'lost', (facts, _, now) => ({
    next: 'unknown',
    set: { maybeChargedAt: facts.maybeChargedAt ?? now, lastClass: 'A' },
  })),

  row('absent_and_cancelled', ['unknown'], 'absent', (facts) => {
    if (facts.cancelRequestedAt === null) return undefined
    return { next: 'cancelled', effects: ['tell_failed'] }
  }),
  row('sent_again', ['unknown'], 'absent', (facts, { frozen }, now) => {
    if (frozen || facts.lastClass === 'B') return undefined
    if (facts.keySafeUntil === null || now >= facts.keySafeUntil) return undefined
    return { next: 'sending' }
  }),
  row('absent_and_not_safe', ['unknown'], 'absent', (facts, _, now) => {
    const safe = facts.keySafeUntil !== null && now < facts.keySafeUntil
    if (safe && facts.lastClass !== 'B') return undefined
    const why = safe ? 'its repeat was rejected' : 'the supplier may have forgotten its idempotency key'
    const note = `no order was found and ${why}: it cannot be repeated safely`
    return { next: 'review', set: { note }, effects: ['alert'] }
  }),
  row('scan_overdue', ['unknown'], 'clock', (facts, _, now) => {
    const since = Math.max(facts.unknownAt ?? 0, facts.scannedAt ?? 0)
    if (now - since < SCAN_OVERDUE_MS) return undefined
    const note = "the supplier's order list could not be read for 24 hours"
    return { next: 'review', set: { note }, effects: ['alert'] }
  }),

  row('second_order', ['accepted', 'completed', 'fulfilled', 'review'], 'found', (facts, { orders }) => {
    const known = facts.supplierOrderId
    const open = undecided(orders)
    const second =
      known === null
        ? open.filter((o) => facts.ordersSeen.length > 0 && !facts.ordersSeen.includes(o.id))
        : open.filter((o) => o.id !== known)
    const several = known === null && open.length > 1 ? open : second
    if (several.length === 0) return undefined
    return { set: { ordersSeen: ids(facts, several) }, effects: doubleCharge(several) }
  }),

  row('key_seen_elsewhere', ['accepted'], 'read', (_, input, now) => {
    if (!input.keysElsewhere) return undefined
    const note = 'a licence key of this order was handed out on another line before'
    return { next: 'review', set: { handOverHeldAt: now, note }, effects: ['store_keys', 'alert'] }
  }),
  row('too_many_keys', ['accepted'], 'read', (facts, input, now) => {
    const keys = Math.max(input.keys, came(facts, input))
    if (keys <= facts.quantity) return undefined
    const note = `${keys} keys came for a quantity of ${facts.quantity}`
    return { next: 'review', set: { handOverHeldAt: now, note }, effects: ['store_keys', 'alert'] }
  }),
  row('completed_and_cancelled', ['accepted'], 'read', (facts, input, now) => {
    if (!allCame(facts, input) || facts.cancelRequestedAt === null) return undefined
    const note = 'cancelled by the store after the keys had been bought'
    return { next: 'review', set: { handOverHeldAt: now, note }, effects: ['store_keys', 'alert'] }
  }),
  row('completed_while_held', ['accepted'], 'read', (facts, input) => {
    if (!allCame(facts, input) || facts.handOverHeldAt === null) return undefined
    const note = 'all keys came, and their hand-over waits for a person'
    return { next: 'review', set: { note }, effects: ['store_keys', 'alert'] }
  }),
  row('some_keys_and_cancelled', ['accepted'], 'read', (facts, input) => {
    if (input.status !== 'open' || input.newKeys === 0 || facts.cancelRequestedAt === null) return undefined
    return { effects: ['store_keys'] }
  }),
  row('some_keys', ['accepted'], 'read', (facts, input) => {
    if (input.status !== 'open' || input.newKeys === 0) return undefined
    return { effects: facts.handOverHeldAt === null ? ['store_keys', 'hand_over'] : ['store_keys'] }
  }),
  row('completed', ['accepted'], 'read', (facts, input) => {
    if (!allCame(facts, input)) return undefined
    return { next: 'completed', set: { keysShortSince: null }, effects: ['store_keys', 'hand_over'] }
  }),
  row('keys_short', ['accepted'], 'read', (facts, input, now) => {
    if (input.status !== 'completed' || facts.keysShortSince === null || now - facts.keysShortSince < KEYS_SHORT_MS) {
      return undefined
    }
    const note = `the order is completed, but only ${came(facts, input)} of ${facts.quantity} keys came`
    return { next: 'review', set: { handOverHeldAt: now, note }, effects: ['store_keys', 'alert'] }
  }),
  row('keys_short_so_far', ['accepted'], 'read', (facts, input, now) => {
    if (input.status !== 'completed') return undefined
    return { set: { keysShortSince: facts.keysShortSince ?? now }, effects: input.newKeys > 0 ? ['store_keys'] : [] }
  }),
  row('failed', ['accepted'], 'read', (facts, input, now) => {
    if (input.status === 'open' || input.keys > 0 || facts.keysStored > 0) return undefined
    const set = input.status === 'refunded' ? { refundedAt: now } : {}
    return { next: 'failed', set, effects: ['tell_failed'] }
  }),
  row('failed_with_keys', ['accepted'], 'read', (_, input, now) => {
    if (input.status === 'open') return undefined
    const note = 'the supplier says that the order failed, but keys of it came'
    return { next: 'review', set: { handOverHeldAt: now, note }, effects: ['store_keys', 'alert'] }
  }),
  row('late', ['accepted'], 'read', (facts, _, now) => {
    if (facts.acceptedAt === null || now - facts.acceptedAt < LATE_MS) return undefined
    return { effects: [{ discrepancy: 'late', orderId: facts.supplierOrderId ?? '' }] }
  }),
  row('still_open', ['accepted'], 'read', () => ({})),
  row('missing', ['accepted'], 'missing', (facts) => ({
    effects: [{ discrepancy: 'missing', orderId: facts.supplierOrderId ?? '' }],
  })),

  row('cancelled_before_hand_over', ['completed'], 'clock', (facts, _, now) => {
    if (facts.cancelRequestedAt === null || facts.handOverBegunAt !== null) return undefined
    const note = 'cancelled by the store before the keys were handed over'
    return { next: 'review', set: { handOverHeldAt: now, note }, effects: ['alert'] }
  }),
  row('cancelled_after_hand_over', ['completed'], 'clock', (facts) =>
    facts.cancelRequestedAt === null
      ? undefined
      : { set: { note: 'cancelled by the store after the hand-over began' } },
  ),
  row('confirmed', ['completed'], 'confirmed', () => ({ next: 'fulfilled' })),
  row('reversed', ['completed', 'fulfilled'], 'read', (facts, input) => {
    if (input.status !== 'failed' && input.status !== 'refunded') return undefined
    return { effects: [{ discrepancy: 'reversed', orderId: facts.supplierOrderId ?? '' }] }
  }),

  row('found_after_the_end', over, 'found', (facts, { orders }, now) => {
    const open = undecided(orders).filter((order) => order.status === 'open' || order.status === 'completed')
    const [order, ...others] = open
    if (!order) return undefined
    if (facts.laterSent || others.length > 0 || !order.agrees || order.ofAnotherLine) {
      return { set: { ordersSeen: ids(facts, open) }, effects: doubleCharge(open) }
    }
    const set: Patch = { supplierOrderId: order.id }
    if (facts.toldFailedAt === null) return { next: 'accepted', set, effects: ['cancel_later', 'read_now'] }
    return { next: 'accepted', set: { ...set, handOverHeldAt: now }, effects: ['cancel_later', 'read_now', 'alert'] }
  }),
  row('retried', over, 'retry', (facts, _, now) => {
    if (!facts.newest) return undefined
    // Nothing proves that a failed one was refunded, or that one which a person closed was never charged.
    const seen = facts.supplierOrderId !== null || facts.ordersSeen.length > 0
    const charged = facts.state === 'failed' || facts.maybeChargedAt !== null || seen
    const set = charged && facts.refundedAt === null ? { writtenOffAt: now } : {}
    return { set, effects: [{ plan: null, notBefore: null }] }
  }),

  row('found_in_review', ['review'], 'found', (facts, { orders }) => {
    const [order, ...others] = undecided(orders)
    if (facts.supplierOrderId !== null || facts.ordersSeen.length > 0) return undefined
    if (!order?.agrees || order.ofAnotherLine || others.length > 0) return undefined
    return { next: 'accepted', set: { supplierOrderId: order.id }, effects: ['read_now'] }
  }),
  row('poisoned', [...notAccepted, 'accepted', 'completed'], 'poison', (_, { error }) => ({
    next: 'review',
    set: { note: `the same internal error came 8 times in a row: ${error}`, holdReason: null, notBefore: null },
    effects: ['alert'],
  })),
  row('adopted', ['review', 'accepted'], 'adopt', (_, { order }) => ({
    next: 'accepted',
    set: { supplierOrderId: order.id, handOverHeldAt: null, keysShortSince: null },
    effects: ['read_now'],
  })),
  row('handed_over', ['review', 'accepted'], 'hand_over', (facts) => {
    if (facts.keysStored === 0) return undefined
    return { next: 'completed', set: { handOverHeldAt: null, cancelRequestedAt: null }, effects: ['hand_over'] }
  }),
  row('closed', ['review', 'accepted'], 'close', (facts) => ({
    next: 'cancelled',
    set: { ordersSeen: seenAndKnown(facts) },
    effects: ['tell_failed'],
  })),
  row('bought_again', ['review', 'accepted'], 'buy_again', (facts, _, now) => ({
    next: 'cancelled',
    set: { writtenOffAt: now, ordersSeen: seenAndKnown(facts) },
    effects: [{ plan: null, notBefore: null }],
  })),
]
