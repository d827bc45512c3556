/**
 * The life of one purchase. Only the rows of `purchase-table` change its state.
 *
 *   planned ──► sending ──► accepted ──► completed ──► fulfilled
 *     ▲  │         │            │            │
 *     │  ▼         ├──► waiting (nothing was charged: sent again later, same key)
 *   waiting        ├──► rejected (answered and not charged: this key is never used again)
 *                  └──► unknown ──► look-up ──► accepted | sending (same key, same bytes) | cancelled | review
 */
import type { HoldReason, StandingHold, TakenBackBy } from './hold.ts'
import { reviewsByCancellation, rows, type WayIntoReview } from './purchase-table.ts'

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
   * key, so nothing but this proof would keep a repeat from buying twice.
   */
  | { type: 'absent'; frozen: boolean; keyless?: boolean }
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
