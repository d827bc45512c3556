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
