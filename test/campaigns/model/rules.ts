/**
 * What a wrong variant may change: the project's own decisions, and the few rules of its flows around them.
 */
import { settle } from '../../../src/domain/entitlement.ts'
import {
  type Answer,
  mayBuy,
  type PurchaseFacts,
  type PurchaseInput,
  transition,
} from '../../../src/domain/purchase.ts'
import { isPersons } from './promises.ts'
import type { AnswerKind, Place, Purchase } from './state.ts'

/** Durations in ticks. Only which sums of them are longer than which others matters. */
export interface Durations {
  /** How long a request may take, and how long after its claim it may still be written. */
  deadline: number
  settle: number
  listLag: number
  scanGap: number
  lease: number
}

/** A tick is a third of `settle`: 30 s, 90 s, 60 s, 60 s and 180 s of the default dialect. */
export const exact: Durations = { deadline: 1, settle: 3, listLag: 2, scanGap: 2, lease: 6 }
/** A tick is half of `settle`; all sums that are compared stand in the same order. */
export const coarse: Durations = { deadline: 1, settle: 2, listLag: 1, scanGap: 1, lease: 4 }

export interface Rules {
  durations: Durations
  transition: typeof transition
  mayBuy: typeof mayBuy
  /** What of a purchase the transition function is given. */
  facts: (facts: PurchaseFacts, input: PurchaseInput) => PurchaseFacts
  /** The key that a send carries, given how many sends there were before. */
  keySent: (purchase: Purchase, sends: number) => number
  /** Whether a send carries the bytes that are stored. */
  bytesStored: (purchase: Purchase) => boolean
  /** What an end of a request is taken for. */
  answer: (kind: AnswerKind, purchase: Purchase, order: { id: string; odd: boolean }) => Answer
  /** Whether a request may be written, by the ticks that are left of its lease; 0 when the lease is no longer held. */
  mayWrite: (leaseLeft: number, durations: Durations) => boolean
  /** The intent is stored before the write. */
  intentFirst: boolean
  /** The table refuses a second open generation of a part. */
  oneOpen: boolean
  /** Ticks after the last intent from which on a scan counts. */
  countsFrom: (durations: Durations) => number
  /** Scans that prove absence. */
  scans: 1 | 2
  /** A repeat moves the instant from which scans count. */
  repeatsCount: boolean
  /** A scan is dropped when something was sent since it began. */
  dropsOldScans: boolean
  /** Whether an order was decided on is asked when it is applied, not when it was found. */
  asksLate: boolean
  /** A reading is dropped when the purchase has another order by then. */
  dropsOldReads: boolean
  /** The commit of an intent fails while a freeze stands. */
  freezeStops: boolean
  /** Whether the store's yes is the end of a purchase, by the keys that came for one. */
  confirms: (keysStored: number) => boolean
  /** Keys that are in a hand-over are in no other. */
  handsOverOnce: boolean
  /** A next generation has a key of its own. */
  nextKey: (key: number) => number
  settle: typeof settle
  /** Whether the intent of a purchase is stored, by its order as it is stored and by the units of others that are bought. */
  entitled: (purchase: Purchase, place: Place, others: number) => boolean
  /** Whether a hand-over begins, by the order as it is stored. */
  mayLeave: (place: Place, decided: boolean) => boolean
  /** Keys of a purchase that its customer is to have. */
  due: (purchase: Purchase) => number
  /** The order is read before the first key is written into it. */
  readsBeforeHandOver: boolean
  /** Inputs that count as a decision against how the order stands. */
  decides: (type: PurchaseInput['type']) => boolean
  /** A reading that another one has overtaken counts no more than that. */
  dropsOvertaken: boolean
}

export const rules: Rules = {
  durations: exact,
  transition,
  mayBuy,
  facts: (facts) => facts,
  keySent: (purchase) => purchase.key,
  bytesStored: () => true,
  answer: answerOf,
  mayWrite: (leaseLeft, { deadline, lease }) => leaseLeft >= lease - deadline,
  intentFirst: true,
  oneOpen: true,
  countsFrom: ({ deadline, settle, listLag }) => deadline + settle + listLag,
  scans: 2,
  repeatsCount: true,
  dropsOldScans: true,
  asksLate: true,
  dropsOldReads: true,
  freezeStops: true,
  confirms: (keysStored) => keysStored > 0,
  handsOverOnce: true,
  nextKey: (key) => key + 1,
  settle,
  entitled: ({ decided, quantity }, { standing, settled, units, replaced }, others) =>
    settled !== 'no' && (decided || (standing === 'paid' && quantity + others <= (replaced > 0 ? replaced : units))),
  mayLeave: ({ standing, settled }, decided) => settled !== 'no' && (decided || standing === 'paid'),
  due: ({ quantity, surplus }) => quantity - surplus,
  readsBeforeHandOver: true,
  decides: isPersons,
  dropsOvertaken: true,
}

/** What the end of a request means for money, as supplier/classify.ts says it. */
function answerOf(kind: AnswerKind, purchase: Purchase, order: { id: string; odd: boolean }): Answer {
  switch (kind) {
    case 'accepted':
      if (order.odd) return { outcome: 'unknown', rejection: false, orderId: order.id }
      return { outcome: 'accepted', orderId: order.id, agrees: true, isOpen: true }
    case 'differs':
      return { outcome: 'unknown', rejection: false, orderId: order.id }
    case 'not_executed':
      return { outcome: 'not_executed' }
    case 'lost':
      return { outcome: 'unknown', rejection: false, orderId: null }
    default:
      if (purchase.maybeCharged) return { outcome: 'unknown', rejection: true, orderId: null }
      return { outcome: 'rejected', reason: kind === 'out_of_stock' ? 'out_of_stock' : 'other' }
  }
}
