/**
 * Purchases and supplier orders for the tests of the transition table: valid ones, of which a test names only what it
 * is about.
 */
import type { FoundOrder, PurchaseFacts, PurchaseState } from '../../src/domain/purchase.ts'

export const NOW = 1_800_000_000_000
export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const EARLIER = NOW - 10 * MINUTE

/** A purchase of two units, not cancelled and well before its deadline; the store was not notified about it. */
const fresh: PurchaseFacts = {
  state: 'planned',
  holdReason: null,
  notBefore: null,
  cancelRequestedAt: null,
  maybeChargedAt: null,
  keySafeUntil: null,
  lastClass: null,
  repeats: 0,
  namedOrderId: null,
  deadlineAt: NOW + HOUR,
  supplierOrderId: null,
  quantity: 2,
  surplus: 0,
  takenBackBy: null,
  heldAt: null,
  keysStored: 0,
  keysWaiting: 0,
  keysLeft: 0,
  keysShortSince: null,
  unknownAt: null,
  scannedAt: null,
  acceptedAt: null,
  handOverBegunAt: null,
  handOverHeldAt: null,
  failureNotifiedAt: null,
  refundedAt: null,
  ordersSeen: [],
  newest: true,
  laterSent: false,
}

const ordered: Partial<PurchaseFacts> = { keySafeUntil: NOW + HOUR, supplierOrderId: 'own', acceptedAt: EARLIER }
const ambiguous: Partial<PurchaseFacts> = { keySafeUntil: NOW + HOUR, maybeChargedAt: EARLIER, lastClass: 'ambiguous' }

/** What each state has that `planned` has not. `review` is one in which no order was ever found. */
const byState: Record<PurchaseState, Partial<PurchaseFacts>> = {
  planned: {},
  waiting: { keySafeUntil: NOW + HOUR, lastClass: 'not_executed' },
  sending: { keySafeUntil: NOW + HOUR },
  unknown: { ...ambiguous, unknownAt: EARLIER },
  accepted: ordered,
  completed: { ...ordered, keysStored: 2, keysWaiting: 2 },
  fulfilled: { ...ordered, keysStored: 2, keysLeft: 2, handOverBegunAt: EARLIER },
  rejected: { keySafeUntil: NOW + HOUR, lastClass: 'refused' },
  failed: ordered,
  cancelled: {},
  review: { ...ambiguous, unknownAt: EARLIER },
}

export const purchaseIn = (state: PurchaseState, facts: Partial<PurchaseFacts> = {}): PurchaseFacts => ({
  ...fresh,
  ...byState[state],
  ...facts,
  state,
})

/** An open order at the supplier that is as we sent it. */
export const order = (id: string, differs: Partial<FoundOrder> = {}): FoundOrder => ({
  id,
  status: 'open',
  agrees: true,
  ofAnotherLine: false,
  decided: false,
  ...differs,
})
