/**
 * The life of one purchase. Only the rows of the transition table, `rows`, change its state.
 *
 *   planned ──► sending ──► accepted ──► completed ──► fulfilled
 *     ▲  │         │            │            │
 *     │  ▼         ├──► waiting (nothing was charged: sent again later, same key)
 *   waiting        ├──► rejected (answered and not charged: this key is never used again)
 *                  └──► unknown ──► look-up ──► accepted | sending (same key, same bytes) | cancelled | review
 */
import { type ExpectedOrder, moneyIsOut, type SupplierOrder } from './supplier.ts'

/** What keeps a purchase from being sent, or its keys from being delivered, for now. */
export const holdReasons = [
  'out_of_stock',
  'balance',
  'ceiling',
  'spend_cap',
  'frozen',
  'unpaid',
  'held_by_store',
  'store_away',
  'offer_unreadable',
  'not_entitled',
] as const
export type HoldReason = (typeof holdReasons)[number]

/** Holds that follow from the standing of the order in its store. Only a change of the standing ends them. */
export const standingHolds = ['unpaid', 'held_by_store'] as const satisfies HoldReason[]
export type StandingHold = (typeof standingHolds)[number]
export const isStandingHold = (reason: HoldReason | null): reason is StandingHold =>
  standingHolds.some((one) => one === reason)

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** How long a paid order may wait before there is an alert, in milliseconds; null: another alert already covers this hold. */
export const heldAlertMs: Record<HoldReason, number | null> = {
  out_of_stock: 24 * HOUR,
  balance: HOUR,
  ceiling: HOUR,
  spend_cap: HOUR,
  frozen: null,
  unpaid: 24 * HOUR,
  held_by_store: HOUR,
  store_away: 10 * MINUTE,
  offer_unreadable: 10 * MINUTE,
  not_entitled: 10 * MINUTE,
}

/** Why a purchase was taken back: its order is not paid any more, or its line has fewer units. */
export type TakenBackBy = 'standing' | 'units'

export const purchaseStates = [
  'planned',
  'waiting',
  'sending',
  'unknown',
  'accepted',
  'completed',
  'fulfilled',
  'rejected',
  'failed',
  'cancelled',
  'review',
] as const
export type PurchaseState = (typeof purchaseStates)[number]

/** What a purchase costs at the most, in minor units. */
export const mostOf = ({ ceilingMinor, quantity }: { ceilingMinor: number; quantity: number }): number =>
  ceilingMinor * quantity

/** States after which nothing more is expected. */
export const finalStates: readonly PurchaseState[] = ['fulfilled', 'rejected', 'failed', 'cancelled']

/** Whether nothing was bought, as far as is known; an order that is found later reopens the purchase. */
export const isOver = (state: PurchaseState): boolean =>
  state === 'rejected' || state === 'failed' || state === 'cancelled'

/** What the answer to a POST means for money: the request did not run; it was answered and not charged; it was possibly charged. */
export type AnswerClass = 'not_executed' | 'refused' | 'ambiguous'

/** The columns of a purchase that the table reads, and facts about other purchases of its part. Instants in epoch milliseconds. */
export interface PurchaseFacts {
  state: PurchaseState
  holdReason: HoldReason | null
  notBefore: number | null
  cancelRequestedAt: number | null
  maybeChargedAt: number | null
  keySafeUntil: number | null
  lastClass: AnswerClass | null
  /** Requests that were sent again after the order was proven absent. */
  repeats: number
  /** The order that an ambiguous answer named: this order is read by its id. */
  namedOrderId: string | null
  deadlineAt: number
  supplierOrderId: string | null
  quantity: number
  /** Units of the purchase that the customer is not entitled to any more: their keys stay here. */
  surplus: number
  /** Set when the shop cancelled the purchase. If the order is paid again later, the cancellation is undone. */
  takenBackBy: TakenBackBy | null
  heldAt: number | null
  keysStored: number
  /** Keys in a hand-over that has not begun: no byte can have left. */
  keysWaiting: number
  /** Keys that the store has or may have: at most the quantity. */
  keysLeft: number
  keysShortSince: number | null
  unknownAt: number | null
  scannedAt: number | null
  acceptedAt: number | null
  handOverBegunAt: number | null
  handOverHeldAt: number | null
  failureNotifiedAt: number | null
  refundedAt: number | null
  /** Supplier orders that a person was shown or decided on. */
  ordersSeen: string[]
  /** No later generation of this line part exists. */
  newest: boolean
  /** A later generation of this line part has been sent. */
  laterSent: boolean
}

/** An order of the supplier that carries this purchase's reference. */
export interface FoundOrder {
  id: string
  status: 'open' | 'completed' | 'failed' | 'refunded'
  /** Every field that the dialect maps equals what was sent. */
  agrees: boolean
  /** What differs, for people. */
  differs?: string | undefined
  /** The order already belongs to a purchase of another line. */
  ofAnotherLine: boolean
  /** A person has decided on the order before. */
  decided: boolean
}

/**
 * Compares an order with what was ordered, in every field that the dialect maps; a missing field does not agree.
 *
 * @param dialect where it reads the fields; null: the supplier's orders do not have the field
 * @returns the first field that differs; undefined when all agree
 */
export function disagreement(
  order: Pick<SupplierOrder, 'externalOrderId' | 'productId' | 'quantity'>,
  expected: ExpectedOrder,
  dialect: { order: { productId: string | null; quantity: string | null } },
): keyof ExpectedOrder | undefined {
  if (order.externalOrderId !== expected.externalOrderId) return 'externalOrderId'
  if (dialect.order.productId !== null && !isSameProduct(order.productId ?? '', expected.productId)) return 'productId'
  if (dialect.order.quantity !== null && order.quantity !== expected.quantity) return 'quantity'
  return undefined
}

/** Whether two ids name one product. A supplier may write the same id in capitals in one answer, in small letters in another. */
export const isSameProduct = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

export type PurchaseInput =
  /** A look-up, a sweep or a read found orders with our reference. */
  | { type: 'found'; orders: FoundOrder[] }
  /** Time has passed, or the store has cancelled. */
  | { type: 'clock' }
  /** The cause of a hold is gone, its wait is over, or an operator releases it, perhaps with another ceiling. */
  | { type: 'released'; by: 'cause' | 'time' | 'operator'; ceilingMinor?: number }
  /** The purchase may be sent now; `guard` is the first guard that fails, `orphans` are orders of its part without a purchase. */
  | { type: 'due'; guard: HoldReason | null; notBefore: number | null; orphans: string[] }
  /** POST /orders was answered; `notBefore` is when the next attempt may leave. */
  | { type: 'answer'; answer: Answer; notBefore: number }
  /** The answer cannot arrive any more: the lease has ended, or the process was restarted. */
  | { type: 'lost' }
  /** GET /orders/{id} of the order that an answer named. Here, `ofAnotherLine` is true if any other purchase has the order. */
  | { type: 'named_read'; order: FoundOrder }
  /**
   * Two valid scans, late enough and far enough apart, did not find the order. `keyless`: the supplier was given no idempotency
   * key, so nothing but this proof would keep a repeat from buying twice. `hasRoom`: beside its other purchases, the line has
   * as many units to buy as the request asks for, or a person wants it all the same. Default: true.
   */
  | { type: 'absent'; frozen: boolean; keyless?: boolean; hasRoom?: boolean }
  /** GET /orders/{id}: the current order. `keys` counts its keys, `newKeys` those that are not stored yet. */
  | {
      type: 'read'
      status: FoundOrder['status']
      keys: number
      newKeys: number
      keysElsewhere: boolean
      /** Every key of the order is text. */
      areText: boolean
      /** A key is a picture or a file, and there are no pages of keys on which customers could get it. */
      needPage?: boolean
    }
  /** GET /orders/{id}: the supplier knows no such order. */
  | { type: 'missing' }
  /** The store confirmed every key. */
  | { type: 'confirmed' }
  /** The same internal error came eight times in a row: the service cannot go on with this purchase. */
  | { type: 'poison'; error: string }
  /** The order in its shop has changed, as for all `shop_...` inputs. The purchase ends, and `rest` units are planned again. */
  | { type: 'shop_ends'; by: TakenBackBy; rest: number }
  /** The order is unpaid or held. Until it is paid, nothing of the purchase is sent or delivered. */
  | { type: 'shop_holds'; reason: StandingHold }
  /** The shop has refused the delivery of the keys, and has none of them. */
  | { type: 'shop_blocks'; reason: StandingHold | 'not_entitled' }
  | { type: 'shop_cancels'; by: TakenBackBy }
  /** The order is paid again: what waited for the payment goes on. */
  | { type: 'shop_pays' }
  /** The purchase gets another quantity or another ceiling. This is safe because its request has not been sent. */
  | { type: 'shop_resizes' }
  /** The keys of `surplus` units stay here. */
  | { type: 'shop_limits'; surplus: number }
  /** A part that ended is planned again, for `quantity` units. */
  | { type: 'again'; quantity: number }
  /** Decisions of a person. */
  | { type: 'retry' }
  | { type: 'adopt'; order: FoundOrder }
  | { type: 'hand_over' }
  | { type: 'close' }
  | { type: 'buy_again' }

export type Answer =
  /** `isOpen`: the order was made now, and the answer says that its keys are yet to come. */
  | { outcome: 'accepted'; orderId: string; agrees: boolean; isOpen: boolean }
  | { outcome: 'rejected'; reason: 'out_of_stock' | 'balance' | 'other' }
  | { outcome: 'not_executed' }
  /**
   * `rejection`: the supplier refused a repeat, which proves nothing about the attempt before. `orderId`: the order that a 2xx
   * names, when other fields of that answer differ or cannot be read. `isNamed`: the supplier answers with the id alone.
   */
  | { outcome: 'unknown'; rejection: boolean; orderId: string | null; isNamed?: boolean }

/** What the commit of the transition must also do. */
export type Effect =
  | 'read_now'
  | 'store_keys'
  /** Queue the hand-over of the stored keys that are not handed over yet. */
  | 'hand_over'
  /** Withdraw the queued hand-over of keys, unless it has begun. */
  | 'withdraw'
  /** Notify the store that this part of the line, or its missing units, will not come. */
  | 'notify_failed'
  /** Cancel a later generation that was never sent. The commit does this first. */
  | 'cancel_later'
  /** Plan the next generation, held until `notBefore` for the reason `plan`; null: not held. */
  | { plan: HoldReason | null; notBefore: number | null; quantity?: number }
  | 'freeze'
  /** Record a difference with the supplier. Implies an alert. */
  | { discrepancy: 'double_charge' | 'missing' | 'late' | 'reversed'; orderId: string }
  /** Queue an alert for the people on duty. The kind of the alert is the name of the row. */
  | 'alert'

/** Columns that a transition sets; absent columns stay as they are. */
export type Patch = Partial<
  Pick<
    PurchaseFacts,
    | 'holdReason'
    | 'notBefore'
    | 'cancelRequestedAt'
    | 'maybeChargedAt'
    | 'repeats'
    | 'namedOrderId'
    | 'supplierOrderId'
    | 'keysShortSince'
    | 'handOverHeldAt'
    | 'refundedAt'
    | 'ordersSeen'
    | 'surplus'
    | 'takenBackBy'
    | 'deadlineAt'
  > & { ceilingMinor: number; writtenOffAt: number; lastClass: AnswerClass; note: string }
>

export interface Transition {
  /** Name of the row; stored as evidence. */
  row: string
  next: PurchaseState
  set: Patch
  effects: Effect[]
  /** The kind of the alert among the effects; null: there is no alert. */
  alert: WayIntoReview | null
}

interface Outcome<S extends PurchaseState = PurchaseState, E extends Effect = Effect> {
  next?: S
  set?: Patch
  effects?: E[]
}

/** The decision of a row that leaves nothing to a person. */
type PlainOutcome = Outcome<Exclude<PurchaseState, 'review'>, PlainEffect>
type PlainEffect = Exclude<Effect, 'alert'>

type InputType = PurchaseInput['type']
type InputOf<T extends InputType> = Extract<PurchaseInput, { type: T }>

const rowsOf =
  <O extends Outcome, R extends boolean>(isReview: R) =>
  <N extends string, T extends InputType>(
    name: N,
    states: readonly PurchaseState[],
    type: T,
    decide: (facts: PurchaseFacts, input: InputOf<T>, now: number) => O | undefined,
  ) => ({
    name,
    isReview,
    states,
    type,
    decide: (facts: PurchaseFacts, input: PurchaseInput, now: number): Outcome | undefined =>
      decide(facts, input as InputOf<T>, now),
  })

/** Makes one row of the transition table; `decide` returns undefined when the condition of the row does not hold. */
export const row = rowsOf<PlainOutcome, false>(false)

/** Makes a row that gives a purchase, or the hand-over of its keys, to a person. The alert has the name of the row. */
const review = rowsOf<Outcome, true>(true)

export const undecided = (orders: FoundOrder[]) => orders.filter((order) => !order.decided)
const how = ({ differs }: FoundOrder): string => (differs === undefined ? '' : `: ${differs}`)
export const ids = (facts: PurchaseFacts, orders: { id: string }[]) => [
  ...new Set([...facts.ordersSeen, ...orders.map((order) => order.id)]),
]
/** The orders that count as decided when a purchase is given up. Its own order is among them, or it would reopen the purchase. */
const seenAndKnown = (facts: PurchaseFacts) =>
  facts.supplierOrderId === null ? facts.ordersSeen : ids(facts, [{ id: facts.supplierOrderId }])
const doubleCharge = (orders: FoundOrder[]): PlainEffect[] => [
  ...orders.map((order): PlainEffect => ({ discrepancy: 'double_charge', orderId: order.id })),
  'freeze',
]

/* The rows for purchases whose order is not known: planned, waiting, sending, unknown. */

/** If no scan of the supplier's orders was valid for this long, a person must decide. */
const SCAN_OVERDUE_MS = 24 * 3_600_000

/** After this many repeats without an order, another repeat is useless. */
export const REPEATS_MAX = 3

const before = ['planned', 'waiting'] as const
/** In these states, an order is found only after a restore or a lost answer. It becomes the purchase's own, or needs a person. */
const notAccepted = [...before, 'unknown'] as const

/** A shop that took the purchase back needs no notice of its end. */
const failureNotice = ({ takenBackBy }: PurchaseFacts): PlainEffect[] => (takenBackBy === null ? ['notify_failed'] : [])

const notHeld = ({ holdReason }: PurchaseFacts): Patch =>
  isStandingHold(holdReason) ? { notBefore: null } : { holdReason: null, notBefore: null }

/** Whether the purchase is not cancelled, is before its deadline, and has waited for long enough. */
const hasItsTurn = ({ cancelRequestedAt, deadlineAt, notBefore }: PurchaseFacts, now: number): boolean =>
  cancelRequestedAt === null && now < deadlineAt && (notBefore === null || now >= notBefore)

/** Why a request without an order must not be repeated; undefined when it may be repeated. */
function notSafe(
  { keySafeUntil, lastClass, repeats }: PurchaseFacts,
  { keyless }: InputOf<'absent'>,
  now: number,
): string | undefined {
  if (keyless) return 'the supplier takes no idempotency key'
  if (keySafeUntil === null || now >= keySafeUntil) return 'the supplier may have forgotten its idempotency key'
  if (lastClass === 'refused') return 'its repeat was rejected'
  return repeats >= REPEATS_MAX ? `it was repeated ${repeats} times` : undefined
}

const sendingRows = [
  row('found', notAccepted, 'found', (facts, { orders }) => {
    const [order, ...others] = undecided(orders)
    if (!order?.agrees || order.ofAnotherLine || others.length > 0) return undefined
    return { next: 'accepted', set: { supplierOrderId: order.id, ...notHeld(facts) }, effects: ['read_now'] }
  }),
  review('found_one_that_disagrees', notAccepted, 'found', (facts, { orders }) => {
    const [order, ...others] = undecided(orders)
    if (!order || order.agrees || order.ofAnotherLine || others.length > 0) return undefined
    const note = `order ${order.id} at the supplier carries our reference but differs from what was sent${how(order)}`
    return { next: 'review', set: { ordersSeen: ids(facts, [order]), note }, effects: ['alert'] }
  }),
  review('found_several', notAccepted, 'found', (facts, { orders }) => {
    const open = undecided(orders)
    if (open.length === 0) return undefined
    const note =
      open.length > 1
        ? `${open.length} orders at the supplier carry our reference`
        : `order ${open[0]?.id} belongs to a purchase of another line`
    const effects: Effect[] = open.length > 1 ? doubleCharge(open.slice(1)) : ['alert', 'freeze']
    return { next: 'review', set: { ordersSeen: ids(facts, open), note }, effects }
  }),

  row('cancelled_before_sending', before, 'clock', (facts, _, now) => {
    if (facts.maybeChargedAt !== null) return undefined
    // A purchase is not late while the shop holds it.
    const isLate = now >= facts.deadlineAt && !isStandingHold(facts.holdReason)
    if (facts.cancelRequestedAt === null && !isLate) return undefined
    return { next: 'cancelled', set: { holdReason: null, notBefore: null }, effects: failureNotice(facts) }
  }),
  row('shop_ended', before, 'shop_ends', (facts, { by, rest }) => {
    if (facts.maybeChargedAt !== null) return undefined
    return {
      next: 'cancelled',
      set: { holdReason: null, notBefore: null, takenBackBy: by },
      effects: rest > 0 ? [{ plan: null, notBefore: facts.notBefore, quantity: rest }] : [],
    }
  }),
  row('resized', ['planned'], 'shop_resizes', () => ({})),
  row('released', before, 'released', (facts, { by, ceilingMinor }, now) => {
    if (facts.holdReason === null && facts.notBefore === null) return undefined
    if (isStandingHold(facts.holdReason)) return undefined
    if (by === 'time' && (facts.notBefore === null || now < facts.notBefore)) return undefined
    const set: Patch = { holdReason: null, notBefore: null }
    if (ceilingMinor !== undefined) set.ceilingMinor = ceilingMinor
    return { set }
  }),
  review('orphan_on_record', before, 'due', (facts, { orphans }, now) => {
    if (orphans.length === 0 || facts.holdReason !== null || !hasItsTurn(facts, now)) return undefined
    const note = `order ${orphans.join(', ')} at the supplier carries our reference and was placed by another database`
    const ordersSeen = [...new Set([...facts.ordersSeen, ...orphans])]
    return { next: 'review', set: { ordersSeen, note, notBefore: null }, effects: ['alert'] }
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
    return { next: 'accepted', set: { supplierOrderId: answer.orderId }, effects: answer.isOpen ? [] : ['read_now'] }
  }),
  row('not_executed', ['sending'], 'answer', (facts, { answer, notBefore }) => {
    if (answer.outcome !== 'not_executed' || facts.maybeChargedAt !== null) return undefined
    return { next: 'waiting', set: { notBefore, lastClass: 'not_executed' } }
  }),
  row('rejected_for_now', ['sending'], 'answer', (facts, { answer, notBefore }) => {
    if (answer.outcome !== 'rejected' || answer.reason === 'other') return undefined
    if (facts.maybeChargedAt !== null || facts.cancelRequestedAt !== null) return undefined
    return { next: 'rejected', set: { lastClass: 'refused' }, effects: [{ plan: answer.reason, notBefore }] }
  }),
  row('rejected', ['sending'], 'answer', (facts, { answer }) => {
    if (answer.outcome !== 'rejected' || facts.maybeChargedAt !== null) return undefined
    return { next: 'rejected', set: { lastClass: 'refused' }, effects: failureNotice(facts) }
  }),
  row('named', ['sending'], 'answer', (facts, { answer }, now) => {
    if (answer.outcome !== 'unknown' || !answer.isNamed || answer.orderId === null) return undefined
    const maybeChargedAt = facts.maybeChargedAt ?? now
    const set: Patch = { maybeChargedAt, lastClass: 'ambiguous', namedOrderId: answer.orderId }
    return { next: 'unknown', set, effects: ['read_now'] }
  }),
  row('ambiguous', ['sending'], 'answer', (facts, { answer }, now) => {
    const refused = answer.outcome === 'rejected' || (answer.outcome === 'unknown' && answer.rejection)
    const lastClass = refused ? 'refused' : answer.outcome === 'not_executed' ? 'not_executed' : 'ambiguous'
    const set: Patch = { maybeChargedAt: facts.maybeChargedAt ?? now, lastClass }
    const named = 'orderId' in answer ? answer.orderId : null
    if (named !== null) set.namedOrderId = named
    // This repeat never left: it does not count.
    if (answer.outcome === 'not_executed') set.repeats = Math.max(0, facts.repeats - 1)
    return { next: 'unknown', set }
  }),
  row('lost', ['sending'], 'lost', (facts, _, now) => ({
    next: 'unknown',
    set: { maybeChargedAt: facts.maybeChargedAt ?? now, lastClass: 'ambiguous' },
  })),

  row('named_order_agrees', ['unknown'], 'named_read', (_, { order }) => {
    if (!order.agrees || order.ofAnotherLine) return undefined
    return { next: 'accepted', set: { supplierOrderId: order.id }, effects: ['read_now'] }
  }),
  row('named_order_of_another', ['unknown'], 'named_read', (_, { order }) => {
    // The answer was meant for another purchase: the outcome of this request is still unknown.
    return order.ofAnotherLine ? { set: { namedOrderId: null } } : undefined
  }),
  review('named_order_differs', ['unknown'], 'named_read', (facts, { order }) => {
    const note = `the supplier answered with order ${order.id}, which differs from what was sent${how(order)}`
    return { next: 'review', set: { ordersSeen: ids(facts, [order]), note }, effects: ['alert'] }
  }),
  review('named_order_unknown', ['unknown'], 'absent', (facts) => {
    const { namedOrderId: id } = facts
    if (id === null) return undefined
    const note = `the supplier answered with order ${id}, which it neither lists nor knows`
    return { next: 'review', set: { ordersSeen: ids(facts, [{ id }]), note }, effects: ['alert'] }
  }),
  row('absent_and_cancelled', ['unknown'], 'absent', (facts) => {
    if (facts.cancelRequestedAt === null) return undefined
    return { next: 'cancelled', effects: failureNotice(facts) }
  }),
  review('absent_and_fewer', ['unknown'], 'absent', ({ surplus }, { hasRoom = true }) => {
    if (surplus === 0 && hasRoom) return undefined
    const note = 'no order was found, and the shop has fewer units to be bought now: its request would buy too many'
    return { next: 'review', set: { takenBackBy: 'units', note }, effects: ['alert'] }
  }),
  row('sent_again', ['unknown'], 'absent', (facts, input, now) => {
    if (input.frozen || isStandingHold(facts.holdReason) || notSafe(facts, input, now) !== undefined) return undefined
    return { next: 'sending', set: { repeats: facts.repeats + 1 } }
  }),
  review('absent_and_not_safe', ['unknown'], 'absent', (facts, input, now) => {
    const why = notSafe(facts, input, now)
    if (why === undefined) return undefined
    const note = `no order was found and ${why}: it cannot be repeated safely`
    return { next: 'review', set: { note }, effects: ['alert'] }
  }),
  review('scan_overdue', ['unknown'], 'clock', (facts, _, now) => {
    const since = Math.max(facts.unknownAt ?? 0, facts.scannedAt ?? 0)
    if (now - since < SCAN_OVERDUE_MS) return undefined
    const note = "the supplier's order list could not be read for 24 hours"
    return { next: 'review', set: { note }, effects: ['alert'] }
  }),
]

/* The rows for purchases whose order is known, for purchases that are over, and for the decisions of people. */

/** A completed order may get missing keys later; after this long it needs a person. */
const KEYS_SHORT_MS = HOUR
/** An order that stays open for longer than a day is reported, once. */
export const LATE_MS = 24 * HOUR

/** Counts all keys that ever came, with those of this reading: an order may show different keys in each reading. */
const came = (facts: PurchaseFacts, { newKeys }: InputOf<'read'>) => facts.keysStored + newKeys
const allCame = (facts: PurchaseFacts, input: InputOf<'read'>) =>
  input.status === 'completed' && came(facts, input) === facts.quantity

/** Rows that lead to review because the store took units back. They do not count towards a freeze: what was bought is known. */
export const reviewsByCancellation: readonly WayIntoReview[] = [
  ...(['completed_and_cancelled', 'cancelled_before_hand_over'] as const),
  ...(['taken_back_before_hand_over', 'absent_and_fewer'] as const),
]

/** Whether the keys may leave: no person and no standing of the order holds them back. */
const mayLeave = ({ handOverHeldAt, holdReason }: PurchaseFacts): boolean =>
  handOverHeldAt === null && !isStandingHold(holdReason)

const CANCELLED_TOO_LATE = 'cancelled after the hand-over began'

const over = ['rejected', 'failed', 'cancelled'] as const

/** Writes off the money of a failed purchase without a proven refund, or of a closed purchase that may have been charged. */
function writtenOff(facts: PurchaseFacts, now: number): Patch {
  const seen = facts.supplierOrderId !== null || facts.ordersSeen.length > 0
  const charged = facts.state === 'failed' || facts.maybeChargedAt !== null || seen
  return charged && facts.refundedAt === null ? { writtenOffAt: now } : {}
}

/** The orders of the purchase count as decided, and no key leaves any more, except in a delivery that has begun. */
const givenUp = (facts: PurchaseFacts, now: number): Patch => ({
  ordersSeen: seenAndKnown(facts),
  handOverHeldAt: facts.handOverBegunAt === null ? (facts.handOverHeldAt ?? now) : null,
})

/** Cancels a purchase for the shop. If a person already holds back its keys, they stay here even when the order is paid again. */
const cancelledBy = (facts: PurchaseFacts, by: TakenBackBy, now: number): Patch => ({
  cancelRequestedAt: facts.cancelRequestedAt ?? now,
  ...(facts.handOverHeldAt === null || facts.takenBackBy !== null ? { takenBackBy: by } : {}),
  ...(by === 'units' ? { surplus: facts.quantity - facts.keysLeft } : {}),
  ...(isStandingHold(facts.holdReason) ? { holdReason: null } : {}),
})

/** Puts off the deadline of the purchase by the time in which the shop held the purchase. */
const heldTime = ({ holdReason, heldAt, deadlineAt }: PurchaseFacts, now: number): Patch =>
  isStandingHold(holdReason) ? { deadlineAt: deadlineAt + Math.max(0, now - (heldAt ?? now)) } : {}

/** Ends a cancellation by the shop. */
const returned = { takenBackBy: null, cancelRequestedAt: null } satisfies Patch

/** Withdraws deliveries that have not begun. New ones, for the present units, are queued now, or later if the keys must wait. */
const regiven = (facts: PurchaseFacts): PlainEffect[] => [
  ...(facts.keysWaiting > 0 ? (['withdraw'] as const) : []),
  ...(mayLeave(facts) && facts.state !== 'review' ? (['hand_over'] as const) : []),
]

const NOT_STORED = 'a key of this order is no text, such as a picture: it is not stored, and no store is given it'
const PAGE_NEEDED =
  'a key of this order is a picture or a file, which customers get on their page of keys alone: set publicUrl, then hand over what came'

const acceptedRows = [
  row('double_charge', ['accepted', 'completed', 'fulfilled', 'review'], 'found', (facts, { orders }) => {
    const open = undecided(orders)
    // A purchase whose key was given by hand has no order: each that is found was bought in addition, before a restore.
    const isAsked = facts.supplierOrderId === null && facts.state === 'review'
    const second = isAsked
      ? open.filter((o) => facts.ordersSeen.length > 0 && !facts.ordersSeen.includes(o.id))
      : open.filter((o) => o.id !== facts.supplierOrderId)
    const several = isAsked && open.length > 1 ? open : second
    if (several.length === 0) return undefined
    return { set: { ordersSeen: ids(facts, several) }, effects: doubleCharge(several) }
  }),
  review('own_order_disagrees', ['accepted'], 'found', (facts, { orders }) => {
    const own = undecided(orders).find((order) => order.id === facts.supplierOrderId)
    if (!own || own.agrees) return undefined
    const note = `order ${own.id} at the supplier no longer is what was sent`
    return { next: 'review', set: { ordersSeen: ids(facts, [own]), note }, effects: ['alert'] }
  }),

  review('keys_not_text', ['accepted'], 'read', (_, { areText, needPage = false, keysElsewhere }, now) => {
    if (areText && (!needPage || keysElsewhere)) return undefined
    const note = areText ? PAGE_NEEDED : NOT_STORED
    return {
      next: 'review',
      set: { handOverHeldAt: now, note },
      effects: areText ? ['store_keys', 'alert'] : ['alert'],
    }
  }),
  review('key_seen_elsewhere', ['accepted'], 'read', (_, input, now) => {
    if (!input.keysElsewhere) return undefined
    const note = 'a licence key of this order was handed out on another line before'
    return { next: 'review', set: { handOverHeldAt: now, note }, effects: ['store_keys', 'alert'] }
  }),
  review('too_many_keys', ['accepted'], 'read', (facts, input, now) => {
    const keys = Math.max(input.keys, came(facts, input))
    if (keys <= facts.quantity) return undefined
    const note = `${keys} keys came for a quantity of ${facts.quantity}`
    return { next: 'review', set: { handOverHeldAt: now, note }, effects: ['store_keys', 'alert'] }
  }),
  review('completed_and_cancelled', ['accepted'], 'read', (facts, input, now) => {
    if (!allCame(facts, input) || facts.cancelRequestedAt === null) return undefined
    // The store already has every key: the cancellation is only noted.
    if (facts.keysLeft >= facts.quantity) return undefined
    const note = 'cancelled after the keys had been bought'
    return { next: 'review', set: { handOverHeldAt: now, note }, effects: ['store_keys', 'alert'] }
  }),
  review('completed_while_held', ['accepted'], 'read', (facts, input) => {
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
    return { effects: mayLeave(facts) ? ['store_keys', 'hand_over'] : ['store_keys'] }
  }),
  row('completed', ['accepted'], 'read', (facts, input) => {
    if (!allCame(facts, input)) return undefined
    const set: Patch = { keysShortSince: null }
    if (facts.cancelRequestedAt !== null) set.note = CANCELLED_TOO_LATE
    return { next: 'completed', set, effects: mayLeave(facts) ? ['store_keys', 'hand_over'] : ['store_keys'] }
  }),
  review('keys_short', ['accepted'], 'read', (facts, input, now) => {
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
    // A person who adopted the order did not decide against it: if it completes after all, it must reopen the purchase.
    const ordersSeen = facts.ordersSeen.filter((id) => id !== facts.supplierOrderId)
    const set: Patch = ordersSeen.length < facts.ordersSeen.length ? { ordersSeen } : {}
    if (input.status === 'refunded') set.refundedAt = now
    if (facts.takenBackBy !== null) set.takenBackBy = null
    return { next: 'failed', set, effects: ['notify_failed'] }
  }),
  review('failed_with_keys', ['accepted'], 'read', (_, input, now) => {
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

  review('cancelled_before_hand_over', ['completed'], 'clock', (facts, _, now) => {
    if (facts.cancelRequestedAt === null) return undefined
    if (facts.handOverBegunAt !== null && facts.keysWaiting === 0) return undefined
    const note = 'cancelled before the keys were handed over'
    return { next: 'review', set: { handOverHeldAt: now, note }, effects: ['alert'] }
  }),
  row('cancelled_after_hand_over', ['completed'], 'clock', (facts) =>
    facts.cancelRequestedAt === null ? undefined : { set: { note: CANCELLED_TOO_LATE } },
  ),
  review('taken_back_before_hand_over', ['completed'], 'shop_cancels', (facts, { by }, now) => {
    const { keysLeft, keysStored, quantity, surplus } = facts
    if (keysLeft > 0 && keysLeft >= Math.min(keysStored, quantity - surplus)) return undefined
    const note = 'the shop took it back before the keys were delivered'
    const set = { ...cancelledBy(facts, by, now), handOverHeldAt: now, note }
    return { next: 'review', set, effects: facts.keysWaiting > 0 ? ['withdraw', 'alert'] : ['alert'] }
  }),
  row('shop_cancelled', ['unknown', 'accepted', 'completed', 'review'], 'shop_cancels', (facts, { by }, now) => {
    // If the review is not about a purchase that the shop took back, only a person ends it, whatever the order's standing.
    if (facts.state === 'review' && facts.takenBackBy === null) return undefined
    return { set: cancelledBy(facts, by, now), effects: facts.state === 'unknown' ? ['read_now'] : [] }
  }),
  row('shop_held', [...notAccepted, 'accepted', 'completed'], 'shop_holds', (facts, { reason }, now) => ({
    set: { ...heldTime(facts, now), holdReason: reason },
    effects: facts.keysWaiting > 0 ? ['withdraw'] : [],
  })),
  row('shop_blocked', ['accepted', 'completed'], 'shop_blocks', (_, { reason }) => ({ set: { holdReason: reason } })),
  row('shop_paid', [...notAccepted, 'accepted', 'completed'], 'shop_pays', (facts, _, now) => {
    const { holdReason, takenBackBy, handOverHeldAt, state } = facts
    const set: Patch = { ...heldTime(facts, now), ...(takenBackBy !== null && returned) }
    if (isStandingHold(holdReason)) set.holdReason = null
    const hasKeys = state === 'accepted' || state === 'completed'
    return { set, effects: hasKeys && handOverHeldAt === null ? ['hand_over'] : [] }
  }),
  row('paid_again', ['review'], 'shop_pays', (facts) => {
    const isNone = facts.surplus >= facts.quantity
    if (facts.takenBackBy === null || facts.keysStored < facts.quantity || isNone) return undefined
    return { next: 'completed', set: { ...returned, handOverHeldAt: null, holdReason: null }, effects: ['hand_over'] }
  }),
  row('shop_limited', ['unknown', 'accepted', 'completed', 'review'], 'shop_limits', (facts, { surplus }) => ({
    set: { surplus, ...(facts.holdReason === 'not_entitled' && { holdReason: null }) },
    effects: ['accepted', 'completed', 'review'].includes(facts.state) ? regiven(facts) : [],
  })),
  row('surplus_released', ['fulfilled'], 'shop_limits', (facts, { surplus }) => {
    if (surplus >= facts.surplus) return undefined
    return { next: 'completed', set: { surplus, ...(facts.takenBackBy !== null && returned) }, effects: ['hand_over'] }
  }),
  row('confirmed', ['completed'], 'confirmed', ({ holdReason }) => ({
    next: 'fulfilled',
    ...(holdReason !== null && { set: { holdReason: null } }),
  })),
  row('reversed', ['completed', 'fulfilled'], 'read', (facts, input, now) => {
    if (input.status !== 'failed' && input.status !== 'refunded') return undefined
    const isBack = input.status === 'refunded' && facts.refundedAt === null
    return {
      ...(isBack && { set: { refundedAt: now } }),
      effects: [{ discrepancy: 'reversed', orderId: facts.supplierOrderId ?? '' }],
    }
  }),

  review('found_after_the_end', over, 'found', (facts, { orders }, now) => {
    const open = undecided(orders).filter((order) => moneyIsOut(order.status))
    // The purchase's own order always reopens it. Of several other orders, it is unclear which one is meant.
    const own = open.find(({ id }) => id === facts.supplierOrderId)
    const order = own ?? open[0]
    if (!order) return undefined
    const others = open.filter((other) => other !== order)
    const unclear = own ? false : !order.agrees || others.length > 0
    if (facts.laterSent || unclear || order.ofAnotherLine) {
      return { set: { ordersSeen: ids(facts, open) }, effects: doubleCharge(open) }
    }
    const set: Patch = { supplierOrderId: order.id }
    // The shop took this purchase back: it stays marked as cancelled until it is compared with its store order again.
    if (facts.takenBackBy !== null) set.cancelRequestedAt = facts.cancelRequestedAt ?? now
    const effects: Effect[] = ['cancel_later', 'read_now']
    if (facts.failureNotifiedAt !== null || !order.agrees) {
      set.handOverHeldAt = now
      if (facts.takenBackBy !== null) set.takenBackBy = null
      effects.push('alert')
    }
    const known = facts.supplierOrderId
    const before = facts.refundedAt === null ? seenAndKnown(facts) : facts.ordersSeen.filter((id) => id !== known)
    if (known !== order.id && before.some((id) => id !== order.id)) {
      // As far as is known, the money for the purchase's earlier order has not come back: this order is a second charge.
      set.ordersSeen = seenAndKnown(facts)
      effects.push(...doubleCharge([order]))
    }
    if (others.length > 0) {
      set.ordersSeen = ids(facts, others)
      effects.push(...doubleCharge(others))
    }
    return { next: 'accepted', set, effects }
  }),
  row('retried', over, 'retry', (facts, _, now) => {
    if (!facts.newest) return undefined
    return { set: writtenOff(facts, now), effects: [{ plan: null, notBefore: null }] }
  }),
  row('planned_again', over, 'again', (facts, { quantity }, now) => {
    if (!facts.newest) return undefined
    return { set: writtenOff(facts, now), effects: [{ plan: null, notBefore: null, quantity }] }
  }),

  row('found_in_review', ['review'], 'found', (facts, { orders }) => {
    const [order, ...others] = undecided(orders)
    if (facts.supplierOrderId !== null || facts.ordersSeen.length > 0) return undefined
    if (!order?.agrees || order.ofAnotherLine || others.length > 0) return undefined
    return { next: 'accepted', set: { supplierOrderId: order.id }, effects: ['read_now'] }
  }),
  review('poisoned', [...notAccepted, 'accepted', 'completed'], 'poison', (facts, { error }, now) => ({
    next: 'review',
    set: {
      // The hand-over of its keys stops, as in every review of a complete purchase.
      ...(facts.state === 'completed' ? { handOverHeldAt: facts.handOverHeldAt ?? now } : {}),
      note: `the same internal error came 8 times in a row: ${error}`,
      holdReason: null,
      notBefore: null,
    },
    effects: ['alert'],
  })),
  row('adopted', ['review', 'accepted'], 'adopt', (facts, { order }) => ({
    next: 'accepted',
    set: {
      supplierOrderId: order.id,
      ordersSeen: [...new Set([...seenAndKnown(facts), order.id])],
      handOverHeldAt: null,
      keysShortSince: null,
    },
    effects: ['read_now'],
  })),
  row('handed_over', ['review', 'accepted'], 'hand_over', (facts) => {
    if (facts.keysStored === 0) return undefined
    const isNone = facts.surplus >= facts.quantity
    const set = { handOverHeldAt: null, cancelRequestedAt: null, ...(isNone && { surplus: 0 }) }
    const short = facts.keysStored < facts.quantity - (isNone ? 0 : facts.surplus)
    return { next: 'completed', set, effects: short ? ['hand_over', 'notify_failed'] : ['hand_over'] }
  }),
  row('closed', ['review', 'accepted'], 'close', (facts, _, now) => ({
    next: 'cancelled',
    set: givenUp(facts, now),
    effects: ['withdraw', 'notify_failed'],
  })),
  row('bought_again', ['review', 'accepted'], 'buy_again', (facts, _, now) => ({
    next: 'cancelled',
    set: { ...givenUp(facts, now), writtenOffAt: now },
    effects: ['withdraw', { plan: null, notBefore: null }],
  })),
]

/** The transition table, in the order in which its rows are tried. The row names are stored as evidence. */
export const rows = [...sendingRows, ...acceptedRows]

/** The name of a row after which a person decides. */
export type WayIntoReview = Extract<(typeof rows)[number], { isReview: true }>['name']
export const waysIntoReview = rows.flatMap((row) => (row.isReview ? [row.name] : []))

const reviewsByEntitlement: ReadonlySet<string> = new Set(reviewsByCancellation)

/**
 * Applies the transition table: its rows are tried from the top, and the first row that matches wins.
 *
 * @param now epoch milliseconds
 * @returns undefined when no row matches: the purchase stays as it is
 */
export function transition(facts: PurchaseFacts, input: PurchaseInput, now: number): Transition | undefined {
  for (const row of rows) {
    if (row.type !== input.type || !row.states.includes(facts.state)) continue
    const outcome = row.decide(facts, input, now)
    if (!outcome) continue
    const { next = facts.state, set: given = {}, effects = [] } = outcome
    // If the review is not about units that the shop took back, only a person ends it, whatever the order's standing.
    const isPersons = row.isReview && next === 'review' && !reviewsByEntitlement.has(row.name)
    const set = isPersons && facts.takenBackBy !== null ? { ...given, takenBackBy: null } : given
    return { row: row.name, next, set, effects, alert: row.isReview && effects.includes('alert') ? row.name : null }
  }
  return undefined
}

/**
 * Whether a transition proves that the purchase cost nothing or was refunded. All other money counts against the spend
 * caps: purchases that are unknown, in review, written off, cancelled after they were sent, or failed without a refund.
 */
export function provesUncharged(
  { refundedAt }: Pick<PurchaseFacts, 'refundedAt'>,
  { next, row, set }: Pick<Transition, 'next' | 'row' | 'set'>,
): boolean {
  if (next === 'waiting' || next === 'rejected') return true
  if (next === 'failed') return (set.refundedAt ?? refundedAt) !== null
  // If a request was sent, its order may exist although no list showed it: a list may lag more than stated.
  return next === 'cancelled' && (row === 'cancelled_before_sending' || row === 'shop_ended')
}

type Spent = Pick<PurchaseFacts, 'state' | 'refundedAt'> & { writtenOffAt: number | null }

/** Whether a purchase failed, and its money has neither come back nor been written off. */
export const keepsMoney = ({ state, refundedAt, writtenOffAt }: Spent): boolean =>
  state === 'failed' && refundedAt === null && writtenOffAt === null

/** A purchase with what the supplier has charged for it, as far as that is known. */
export type Charged = Spent & { amountMinor: number | null }

/**
 * What the supplier has charged for purchases, what it gave back, and what is owed back for those that failed. The rest is
 * what they cost. In minor units.
 */
export function chargesOf(purchases: readonly Charged[]) {
  const sum = (isOne: (one: Spent) => boolean) =>
    purchases.reduce((total, one) => total + (isOne(one) ? (one.amountMinor ?? 0) : 0), 0)
  return {
    chargedMinor: sum(() => true),
    refundedMinor: sum(({ refundedAt }) => refundedAt !== null),
    owedBackMinor: sum(keepsMoney),
    costMinor: sum((one) => one.refundedAt === null && !keepsMoney(one)),
  }
}

/**
 * Whether a part may be bought now: every other generation of it is proven not charged, refunded, or written off.
 *
 * This is asserted before each POST /orders, so that no part of a line is charged twice without a refund.
 */
export const mayBuy = (others: readonly Spent[]): boolean =>
  others.every((other) => isOver(other.state) && !keepsMoney(other))
