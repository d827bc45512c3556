/** The kinds of alerts. What each is about, and when it is over, is in `alerts/kinds`. */
import { conditionTypes } from './conditions.ts'
import { type WayIntoReview, waysIntoReview } from './purchase-table.ts'

/** Raised by the commit that records what has happened. */
const eventKinds = [
  'supplier_unreachable',
  'unauthorized',
  'unreadable_answer',
  'freeze',
  'restored',
  'double_charge',
  'missing',
  'late',
  'reversed',
  'over_ceiling',
  'orphan',
  'balance_unexplained',
  'balance_low',
  'backup_failed',
  'dead_letter',
  'webhook_unheld',
  'orphan_delivery',
  'order_mismatch',
  'delivery_quarantined',
  'delivery_dead',
  'id_conflict',
  'all_stale',
  'listing_failed',
  'order_refused',
  'order_unread',
  'order_before_connection',
  'store_not_configured',
  'order_changed',
  'store_unreachable',
  'store_webhook',
] as const

export const alertKinds = [...waysIntoReview, ...eventKinds, ...conditionTypes] as const
export type AlertKind = (typeof alertKinds)[number]

declare const unknown: unique symbol
/** A kind that this version does not know. */
export type UnknownKind = string & { readonly [unknown]: true }

/**
 * What the database may hold: another version, which may run beside this one, raises alerts too. One of an unknown kind is
 * shown and sent under its name as critical, and is open for three days.
 */
export type StoredKind = AlertKind | UnknownKind

const known: ReadonlySet<string> = new Set(alertKinds)
const ways: ReadonlySet<string> = new Set(waysIntoReview)

export const storedKind = (text: string): StoredKind => (isKnown(text) ? text : (text as UnknownKind))
export const isKnown = (kind: string): kind is AlertKind => known.has(kind)
export const isWayIntoReview = (kind: string): kind is WayIntoReview => ways.has(kind)
