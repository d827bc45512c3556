/**
 * Decisions after a restore: a restored database knows less than the supplier, and must not buy again what the previous
 * database has bought.
 */
import { isOver, type PurchaseState } from './purchase.ts'
import { moneyIsOut, type OrderStatus } from './supplier.ts'

/** How many generations after the newest known generation are looked up, each by its reference. */
export const AHEAD = 10

/** How many parts after the last known part of a line are looked up. */
const PARTS_AHEAD = 3

/**
 * The generations of a part that are looked up by reference before a purchase of the part is sent: those with an unknown
 * outcome, and the next ten, which the database may have forgotten. The supplier's whole list shows orders of later generations.
 *
 * A purchase that was cancelled here may have been sent by the previous database.
 */
export function generationsToAsk(rows: readonly { generation: number; state: PurchaseState }[]): number[] {
  const newest = Math.max(0, ...rows.map((row) => row.generation))
  const isKnown = (state: PurchaseState) => state === 'rejected' || state === 'failed'
  const known = new Set(rows.filter((row) => isKnown(row.state)).map((row) => row.generation))
  return Array.from({ length: newest + AHEAD }, (_, index) => index + 1).filter((one) => !known.has(one))
}

/** Returns the numbers of parts that the database may have forgotten: a new part of a line gets the next number. */
export const partsAfter = (highest: number): number[] =>
  Array.from({ length: PARTS_AHEAD }, (_, index) => highest + 1 + index)

/** For this long after a restore, a store may still hand in orders for which the previous database had bought. */
export const LATE_ORDERS_MS = 30 * 24 * 3_600_000

/**
 * Whether a store order must be looked up by its references, because the previous database may have bought for it.
 *
 * A store order that came after the restore needs no look-up, because reattaching has read the supplier's whole list. If that
 * list was cut off, the store order needs one.
 */
export const mayBeForgotten = (
  receivedAt: number,
  { restoredAt, unknownFrom, isCutOff }: { restoredAt: number; unknownFrom: number; isCutOff: boolean },
): boolean => receivedAt <= Math.max(restoredAt, unknownFrom) + (isCutOff ? LATE_ORDERS_MS : 0)

/**
 * When the next scan of reattaching may begin.
 *
 * Within `settleMs` each request from before the restore has run. Its order is listed within a further `listLagMs`. Scans
 * before that do not count. Two scans, `gapMs` apart, prove that an order is absent.
 *
 * @param roundAt when the last scan began
 */
export const nextRoundAt = (
  { restoredAt, roundAt }: { restoredAt: number; roundAt: number | null },
  { settleMs, listLagMs, gapMs }: { settleMs: number; listLagMs: number; gapMs: number },
): number => Math.max(restoredAt + settleMs + listLagMs, roundAt === null ? 0 : roundAt + gapMs)

/** If the supplier does not know an order that must show by now, the order is read again for this long. */
const DOUBT_MS = 15 * 60_000

/** When a person is shown an order that was listed once and cannot be read any more. */
export const doubtedAt = (seenAt: number, { settleMs, listLagMs }: { settleMs: number; listLagMs: number }): number =>
  seenAt + settleMs + listLagMs + DOUBT_MS

/** How many scans prove that an order is absent. */
export const SCANS_MIN = 2

/** How to reattach a supplier order that carries the reference of one generation of a part. */
export type Reattachment =
  /** The generation has a purchase: the transition table decides. */
  | 'known'
  /** Insert the generation; no purchase of the part is open. */
  | 'insert'
  /**
   * Cancel the open purchase, then insert the generation. A later generation was only sent after one of three things: the open
   * purchase was proven not to be charged, it was refunded, or it was written off.
   */
  | 'supersede'
  /** The open purchase has an order of its own: read that order, because it may have failed since. */
  | 'read'
  /** The part was bought by a purchase here, and the found order was charged too. */
  | 'double_charge'
  /** Only a person can decide. */
  | 'person'
  /** A request of the part is in flight: decide again when it is over. */
  | 'later'
  /** The money is back: nothing to do. */
  | 'nothing'

/** @param rows all generations of the part that the database has */
export function reattachmentOf(
  rows: readonly { generation: number; state: PurchaseState }[],
  found: { generation: number; status: OrderStatus },
): Reattachment {
  if (rows.some((row) => row.generation === found.generation)) return 'known'
  const isOut = moneyIsOut(found.status)
  const newest = Math.max(0, ...rows.map((row) => row.generation))
  if (found.generation < newest) return isOut ? 'person' : 'nothing'
  const live = rows.find((row) => !isOver(row.state))?.state
  if (live === 'planned' || live === 'waiting' || live === 'unknown') return 'supersede'
  if (live === 'sending') return 'later'
  if (live === 'accepted') return 'read'
  if (live === 'completed' || live === 'fulfilled') return isOut ? 'double_charge' : 'nothing'
  return live === 'review' ? 'person' : 'insert'
}
