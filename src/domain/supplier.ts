/**
 * The outcome of a POST /orders, and the supplier's records in our words.
 *
 * An outcome is a value, never an exception: money depends on the four outcomes, and the compiler makes every caller handle
 * them. An outcome is about the request just made, not about earlier requests with the same key.
 */
import type { StoredKeyType } from './licence-key.ts'
import type { CostFault } from './offer.ts'

/** A text that is never shown; it prints as `[secret]`. */
export interface Sealed {
  reveal(): string
}

/** A licence key, with what it is; absent: a text. */
export type SupplierKey = Sealed & { type?: StoredKeyType }

/** `open`: money or keys may still move. `completed`: all keys are there. `failed`: nothing was bought. `refunded`: the money came back. */
export const orderStatuses = ['open', 'completed', 'failed', 'refunded'] as const
export type OrderStatus = (typeof orderStatuses)[number]

/** Whether the order was charged and not refunded. */
export const moneyIsOut = (status: OrderStatus): boolean => status === 'open' || status === 'completed'

/** The six events of the API, by the names that Quayside uses. */
export const eventNames = [
  'order.completed',
  'order.failed',
  'product.restocked',
  'product.out_of_stock',
  'product.price_changed',
  'balance.low',
] as const
export type EventName = (typeof eventNames)[number]

/** The stored evidence of an answer: a code, ids, a digest and a sentence of ours, never the contents of the answer. */
export interface AnswerEvidence {
  /** HTTP status; absent when no answer came, not even its headers. */
  status?: number
  code?: string
  requestId?: string
  /** Id of the order that the answer names, also when the answer is ambiguous. */
  supplierOrderId?: string
  /** SHA-256 of the answer's body, lower-case hex. */
  answerDigest?: string
  detail: string
}

export type NotExecutedCause =
  /** No connection: not one byte of the request was written. */
  | 'unreachable'
  /** The answer was 429, or the API key is paused after a 429. */
  | 'rate_limited'
  /** The answer was 401 or 403. */
  | 'unauthorized'
  /** The answer was 401 to a token that had ended, and there is a new one. */
  | 'token_ended'
  /** The caller's own check right before the write said no. */
  | 'held_back'

export type Placement =
  /** An order was made. `agrees`: every field that the dialect maps equals what was sent. */
  | { outcome: 'accepted'; order: SupplierOrder; agrees: boolean; evidence: AnswerEvidence }
  /** The request was answered and not charged. The same key would only bring the same answer. */
  | {
      outcome: 'rejected'
      reason: 'out_of_stock' | 'balance' | 'other'
      /** The supplier's code and text. */
      code: string
      message: string
      evidence: AnswerEvidence
    }
  | { outcome: 'not_executed'; cause: NotExecutedCause; retryAfterMs?: number; evidence: AnswerEvidence }
  /**
   * Only a look-up can decide. `rejection`: the supplier refused, which proves nothing about an earlier attempt. The cause
   * `id_alone`: see `isNamed`.
   */
  | { outcome: 'unknown'; cause: string; rejection: boolean; evidence: AnswerEvidence }

/** Whether the answer is clear, and has only the id of the order: what was ordered shows once the order is read. */
export const isNamed = (placement: Placement): boolean =>
  placement.outcome === 'unknown' && placement.cause === 'id_alone'

/** The stored class of a placement: a refusal counts as `refused` even where it leaves the purchase unknown. */
export function answerClass(placement: Placement): 'not_executed' | 'refused' | 'ambiguous' {
  if (placement.outcome === 'not_executed') return 'not_executed'
  if (placement.outcome === 'rejected') return 'refused'
  return placement.outcome === 'unknown' && placement.rejection ? 'refused' : 'ambiguous'
}

/** Amounts in minor units of `currency`, instants in epoch milliseconds, here and below. */
export interface SupplierOrder {
  id: string
  externalOrderId: string | undefined
  productId?: string
  quantity?: number
  status: OrderStatus
  /** The supplier's own word for the status. */
  statusWord: string
  amountMinor?: number
  currency?: string
  keys: SupplierKey[]
  failureCode?: string
  failureMessage?: string
  createdAt?: number
  updatedAt?: number
}

export interface SupplierOffer {
  productId: string
  sku: string
  name: string
  category?: string
  /** Plain text of at most 10,000 characters; empty where the record has an empty one. */
  description?: string
  /** An http or https address; empty where the record has an empty one. */
  image?: string
  /** The API/VIP price: what a purchase costs us. 0 when the record states no readable price above 0. */
  costMinor: number
  /** Set when the cost is invalid: nothing is bought or priced by it. */
  costFault?: CostFault
  basePriceMinor?: number
  cashbackMinor?: number
  currency: string
  localStock?: number
  providerStock?: number
  available: boolean
  /** From where the offer is fulfilled, as the supplier says. */
  origin?: string
  /** When the supplier last changed the record; absent when records have no such instant, 0 when the instant cannot be read. */
  asOf?: number
  /** Paths of the fields that are stated and cannot be read. */
  unread?: string[]
}

export interface SupplierBalance {
  amountMinor: number
  currency: string
  tier?: string
  requestsPerMinute?: number
  quantityMax?: number
}

export interface SupplierWebhook {
  id: string
  url: string
  events: EventName[]
  createdAt?: number
  /** Present only in the answer that creates the webhook. */
  secret?: Sealed
}

/** The ordered reference, product and quantity; an order agrees when it has the same values. */
export interface ExpectedOrder {
  externalOrderId: string
  productId: string
  quantity: number
}

/**
 * Follows the cursors of one walk, and says whether one comes again: the walk would never end. It compares with the cursor that
 * came 1st, 2nd, 4th, 8th …, the latest of these, so that it meets a loop of any length.
 */
export function followCursors(): (cursor: string) => boolean {
  let kept: string | undefined
  let count = 0
  return (cursor) => {
    if (cursor === kept) return true
    count += 1
    if ((count & (count - 1)) === 0) kept = cursor
    return false
  }
}
