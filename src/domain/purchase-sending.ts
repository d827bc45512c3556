/** The rows for purchases whose order is not known: planned, waiting, sending, unknown. */
import type { Effect, Patch, PurchaseFacts } from './purchase.ts'
import { doubleCharge, ids, type Row, row, undecided } from './purchase-row.ts'

/** No valid scan for this long: the supplier's list is no help, a person must decide. */
export const SCAN_OVERDUE_MS = 24 * 3_600_000

/** An order that is not there after so many repeats is not to be had by another one. */
export const REPEATS_MAX = 3

const before = ['planned', 'waiting'] as const
/** An order found for one of these is ours (after a restore, or after a lost answer), or the reason to stop and look. */
export const notAccepted = [...before, 'unknown'] as const

/** Not cancelled, within its deadline, its wait over. */
const hasItsTurn = ({ cancelRequestedAt, deadlineAt, notBefore }: PurchaseFacts, now: number): boolean =>
  cancelRequestedAt === null && now < deadlineAt && (notBefore === null || now >= notBefore)

/** Why a request that is proven absent may not be repeated; undefined when it may. */
function notSafe({ keySafeUntil, lastClass, repeats }: PurchaseFacts, now: number): string | undefined {
  if (keySafeUntil === null || now >= keySafeUntil) return 'the supplier may have forgotten its idempotency key'
  if (lastClass === 'B') return 'its repeat was rejected'
  return repeats >= REPEATS_MAX ? `it was repeated ${repeats} times` : undefined
}

export const sendingRows: readonly Row[] = [
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
  row('orphan_on_record', before, 'due', (facts, { orphans }, now) => {
    if (orphans.length === 0 || facts.holdReason !== null || !hasItsTurn(facts, now)) return undefined
    const note = `order ${orphans.join(', ')} at the supplier carries our reference and was placed by another database`
    const set = {
      ordersSeen: ids(
        facts,
        orphans.map((id) => ({ id })),
      ),
      note,
      notBefore: null,
    }
    return { next: 'review', set, effects: ['alert'] }
  }),
  row('sent', before, 'due', (facts, { guard }, now) => {
    if (guard !== null || facts.holdReason !== null || !hasItsTurn(facts, now)) return undefined
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
    const set: Patch = { maybeChargedAt: facts.maybeChargedAt ?? now, lastClass }
    const named = 'orderId' in answer ? answer.orderId : null
    if (named !== null) set.namedOrderId = named
    // It never left: the next one is this repeat again.
    if (answer.outcome === 'not_executed') set.repeats = Math.max(0, facts.repeats - 1)
    return { next: 'unknown', set }
  }),
  row('lost', ['sending'], 'lost', (facts, _, now) => ({
    next: 'unknown',
    set: { maybeChargedAt: facts.maybeChargedAt ?? now, lastClass: 'A' },
  })),

  row('named_order_agrees', ['unknown'], 'named_read', (_, { order }) => {
    if (!order.agrees || order.ofAnotherLine) return undefined
    return { next: 'accepted', set: { supplierOrderId: order.id }, effects: ['read_now'] }
  }),
  row('named_order_of_another', ['unknown'], 'named_read', (_, { order }) => {
    // The answer was meant for another purchase: what became of this request is still to be found out.
    return order.ofAnotherLine ? { set: { namedOrderId: null } } : undefined
  }),
  row('named_order_differs', ['unknown'], 'named_read', (facts, { order }) => {
    const note = `the supplier answered with order ${order.id}, which differs from what was sent`
    return { next: 'review', set: { ordersSeen: ids(facts, [order]), note }, effects: ['alert'] }
  }),
  row('named_order_unknown', ['unknown'], 'absent', (facts) => {
    const { namedOrderId: id } = facts
    if (id === null) return undefined
    const note = `the supplier answered with order ${id}, which it neither lists nor knows`
    return { next: 'review', set: { ordersSeen: ids(facts, [{ id }]), note }, effects: ['alert'] }
  }),
  row('absent_and_cancelled', ['unknown'], 'absent', (facts) => {
    if (facts.cancelRequestedAt === null) return undefined
    return { next: 'cancelled', effects: ['tell_failed'] }
  }),
  row('sent_again', ['unknown'], 'absent', (facts, { frozen }, now) => {
    if (frozen || notSafe(facts, now) !== undefined) return undefined
    return { next: 'sending', set: { repeats: facts.repeats + 1 } }
  }),
  row('absent_and_not_safe', ['unknown'], 'absent', (facts, _, now) => {
    const why = notSafe(facts, now)
    if (why === undefined) return undefined
    const note = `no order was found and ${why}: it cannot be repeated safely`
    return { next: 'review', set: { note }, effects: ['alert'] }
  }),
  row('scan_overdue', ['unknown'], 'clock', (facts, _, now) => {
    const since = Math.max(facts.unknownAt ?? 0, facts.scannedAt ?? 0)
    if (now - since < SCAN_OVERDUE_MS) return undefined
    const note = "the supplier's order list could not be read for 24 hours"
    return { next: 'review', set: { note }, effects: ['alert'] }
  }),
]
