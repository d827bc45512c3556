/**
 * The domain: decisions without I/O, clock or randomness.
 *
 * This file is the life of one purchase. `purchase-table` says which input leads where; nothing else moves a purchase.
 *
 *   planned ──► sending ──► accepted ──► completed ──► fulfilled
 *     ▲  │         │            │            │
 *     │  ▼         ├──► waiting (nothing was charged: again later, same key)
 *   waiting        ├──► rejected (nothing was charged, answered: never the same key again)
 *                  └──► unknown ──► look-up ──► accepted | sending (same key, same bytes) | cancelled | review
 */
import { rows } from './purchase-table.ts'

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

export const holdReasons = ['out_of_stock', 'balance', 'ceiling', 'spend_cap', 'risk', 'frozen'] as const
export type HoldReason = (typeof holdReasons)[number]

/** States in which nothing more is expected to happen. */
export const finalStates: readonly PurchaseState[] = ['fulfilled', 'rejected', 'failed', 'cancelled']

/** Nothing was bought, as far as is known; an order that is found after all brings it back. */
export const isOver = (state: PurchaseState): boolean =>
  state === 'rejected' || state === 'failed' || state === 'cancelled'

/** What a POST that is over means for money: not executed, answered and not charged, possibly charged. */
export type AnswerClass = 'not_executed' | 'refused' | 'ambiguous'

/** The columns of a purchase that decide, and what its siblings add. Instants in epoch milliseconds. */
export interface PurchaseFacts {
  state: PurchaseState
  holdReason: HoldReason | null
  notBefore: number | null
  cancelRequestedAt: number | null
  maybeChargedAt: number | null
  keySafeUntil: number | null
  lastClass: AnswerClass | null
  /** Requests that left after the first one, because its absence was proven. */
  repeats: number
  /** Order that an answer named which cannot be believed: it is read by its id. */
  namedOrderId: string | null
  deadlineAt: number
  supplierOrderId: string | null
  quantity: number
  /** Licence keys stored so far. */
  keysStored: number
  /** Keys in a hand-over of which no byte can have left. */
  keysWaiting: number
  /** Keys that the store has, or of which a byte may have left: at most the quantity. */
  keysLeft: number
  keysShortSince: number | null
  unknownAt: number | null
  scannedAt: number | null
  acceptedAt: number | null
  handOverBegunAt: number | null
  handOverHeldAt: number | null
  failureNotifiedAt: number | null
  refundedAt: number | null
  /** Supplier orders seen while a person must decide; empty when nothing was ever found. */
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
  /** Every field that the dialect maps is as we sent it. */
  agrees: boolean
  /** Its id already belongs to a purchase of another line. */
  ofAnotherLine: boolean
  /** A person has decided on it before. */
  decided: boolean
}

export type PurchaseInput =
  /** Orders with our reference were found by a look-up, a sweep or a read. */
  | { type: 'found'; orders: FoundOrder[] }
  /** Time has passed or a cancellation was asked: what does that change? */
  | { type: 'clock' }
  /** The cause of a hold is gone, its instant has come, or an operator releases it, perhaps with another ceiling. */
  | { type: 'released'; by: 'cause' | 'time' | 'operator'; ceilingMinor?: number }
  /** Its turn has come; `guard` names the first guard that fails, `orphans` the orders on record under its reference. */
  | { type: 'due'; guard: HoldReason | null; notBefore: number | null; orphans: string[] }
  /** POST /orders was answered; `notBefore` is when a next attempt may leave. */
  | { type: 'answer'; answer: Answer; notBefore: number }
  /** Nobody waits for the answer any more: lease over, or the process started anew. */
  | { type: 'lost' }
  /** GET /orders/{id} of the order that an answer named; `ofAnotherLine` is true of every other purchase here. */
  | { type: 'named_read'; order: FoundOrder }
  /** Two valid scans, far enough apart and late enough, did not find it. */
  | { type: 'absent'; frozen: boolean }
  /** GET /orders/{id}: the order as it is now. `keys` counts its keys, `newKeys` those that are not stored yet. */
  | { type: 'read'; status: FoundOrder['status']; keys: number; newKeys: number; keysElsewhere: boolean }
  /** GET /orders/{id}: the supplier knows no such order. */
  | { type: 'missing' }
  /** The store confirmed every key of it. */
  | { type: 'confirmed' }
  /** The same internal error came eight times in a row: the machine cannot go on with this one. */
  | { type: 'poison'; error: string }
  /** Decisions of a person. */
  | { type: 'retry' }
  | { type: 'adopt'; order: FoundOrder }
  | { type: 'hand_over' }
  | { type: 'close' }
  | { type: 'buy_again' }

export type Answer =
  | { outcome: 'accepted'; orderId: string; agrees: boolean }
  | { outcome: 'rejected'; reason: 'out_of_stock' | 'balance' | 'other' }
  | { outcome: 'not_executed' }
  /**
   * `rejection`: it was a refusal of a repeat, which proves nothing about the attempt before. `orderId`: the order that a
   * 2xx names although the rest of it differs or cannot be read.
   */
  | { outcome: 'unknown'; rejection: boolean; orderId: string | null }

/** What a flow must do in the commit that carries the transition, beside the row itself. */
export type Effect =
  /** Read the order at once. */
  | 'read_now'
  /** Store the keys that came. */
  | 'store_keys'
  /** Hand over the keys that are stored and not handed over yet. */
  | 'hand_over'
  /** Take back the hand-over of keys that is owed, unless it has begun. */
  | 'withdraw'
  /** Tell the store that this part of the line, or what is missing of it, will not come. */
  | 'notify_failed'
  /** Cancel a later generation that was never sent; goes first in the commit. */
  | 'cancel_later'
  /** Plan the next generation; held for `reason` until `notBefore`, or free to go. */
  | { plan: HoldReason | null; notBefore: number | null }
  /** Stop all buying. */
  | 'freeze'
  /** Record a difference with the supplier. Implies an alert. */
  | { discrepancy: 'double_charge' | 'missing' | 'late' | 'reversed'; orderId: string }
  /** Tell the people on duty. */
  | 'alert'

/** Columns that a transition sets; absent ones stay. */
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
  > & { ceilingMinor: number; writtenOffAt: number; lastClass: AnswerClass; note: string }
>

export interface Transition {
  /** Name of the row of the table; kept as evidence. */
  row: string
  next: PurchaseState
  set: Patch
  effects: Effect[]
}

/**
 * The transition table: rows are tried from the top, the first that matches wins.
 *
 * @param now epoch milliseconds
 * @returns undefined when no row matches: the purchase stays as it is, and the input is recorded as evidence
 */
export function transition(facts: PurchaseFacts, input: PurchaseInput, now: number): Transition | undefined {
  for (const row of rows) {
    if (row.type !== input.type || !row.states.includes(facts.state)) continue
    const outcome = row.decide(facts, input, now)
    if (outcome) {
      return {
        row: row.name,
        next: outcome.next ?? facts.state,
        set: outcome.set ?? {},
        effects: outcome.effects ?? [],
      }
    }
  }
  return undefined
}

/**
 * Whether a transition proves that the purchase has cost nothing, or that its money came back. All other money stays
 * counted against the spend caps: what is unknown, in review, written off, cancelled after it was sent, or failed without a
 * word of a refund.
 */
export function provesUncharged(
  { refundedAt }: Pick<PurchaseFacts, 'refundedAt'>,
  { next, row, set }: Pick<Transition, 'next' | 'row' | 'set'>,
): boolean {
  switch (next) {
    case 'waiting':
    case 'rejected':
      return true
    case 'failed':
      return (set.refundedAt ?? refundedAt) !== null
    case 'cancelled':
      // One that no list showed may show later, when the supplier's lists lag more than it says.
      return row === 'cancelled_before_sending'
    default:
      return false
  }
}

/**
 * Whether a part may be bought now: every other generation of it is proven not charged, refunded, or written off.
 *
 * Asserted before each POST /orders: per line part, charges less refunds never exceed one.
 */
export function mayBuy(
  others: { state: PurchaseState; refundedAt: number | null; writtenOffAt: number | null }[],
): boolean {
  return others.every(
    (other) =>
      other.state === 'rejected' ||
      other.state === 'cancelled' ||
      (other.state === 'failed' && (other.refundedAt !== null || other.writtenOffAt !== null)),
  )
}
