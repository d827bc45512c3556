/**
 * What a restore decides: a database that was put back knows less than the supplier does, and must not buy again what
 * the one before it has bought.
 */

import { isOver, type PurchaseState } from './purchase.ts'
import { moneyIsOut, type OrderStatus } from './supplier.ts'

/** Generations behind the newest one in the database that are asked for one by one. */
const AHEAD = 10

/**
 * Generations of a part that the supplier is asked for by reference before a purchase of it is sent: those that are not
 * over here, and ten that the database may have forgotten. More may have been bought since the backup, after as many
 * refusals; those are known from the supplier's whole list, in which an order is found whatever its generation.
 */
export function generationsToAsk(rows: readonly { generation: number; state: PurchaseState }[]): number[] {
  const newest = Math.max(0, ...rows.map((row) => row.generation))
  const known = new Set(rows.filter((row) => isOver(row.state)).map((row) => row.generation))
  return Array.from({ length: newest + AHEAD }, (_, place) => place + 1).filter((one) => !known.has(one))
}

/** For so long after a restore, store orders that are handed in late are looked after. */
export const LATE_ORDERS_MS = 30 * 24 * 3_600_000

/**
 * Whether the supplier is asked, by their references, for orders that the database before this one may have bought for a
 * store order.
 *
 * An order that came after the restore can only be one of those that the mapping has seen, unless the supplier's list
 * did not show all of them.
 */
export const mayBeForgotten = (
  receivedAt: number,
  { restoredAt, unknownFrom, isCutOff }: { restoredAt: number; unknownFrom: number; isCutOff: boolean },
): boolean => receivedAt <= Math.max(restoredAt, unknownFrom) + (isCutOff ? LATE_ORDERS_MS : 0)

/** How far the mapping back has come. Instants in epoch milliseconds. */
export interface Mapping {
  restoredAt: number
  /** Valid scans so far, and when the last round began. */
  scans: number
  roundAt: number | null
}

/**
 * When the next round of the mapping may begin.
 *
 * A request that left before the restore has run by `settleMs` and shows by `listLagMs`, so no scan counts that begins
 * before; and that an order is absent takes two scans, `gapMs` apart.
 */
export const nextRoundAt = (
  { restoredAt, roundAt }: Mapping,
  { settleMs, listLagMs, gapMs }: { settleMs: number; listLagMs: number; gapMs: number },
): number => Math.max(restoredAt + settleMs + listLagMs, roundAt === null ? 0 : roundAt + gapMs)

/** For so long an order that must show by now is asked for, though the supplier does not know it. */
const DOUBT_MS = 15 * 60_000

/** When an order that was listed at an instant, and that cannot be read since, is shown to a person. */
export const doubtedAt = (seenAt: number, { settleMs, listLagMs }: { settleMs: number; listLagMs: number }): number =>
  seenAt + settleMs + listLagMs + DOUBT_MS

/** Scans that prove what is absent. */
export const SCANS_MIN = 2

/** What is to be done with an order of the supplier that was found under the reference of one generation of a part. */
export type Claim =
  /** The generation has a row: the transition table decides. */
  | 'known'
  /** The generation is put in; nothing of the part is under way. */
  | 'insert'
  /**
   * The one that is under way is cancelled, then the generation is put in: a later generation was only ever sent after
   * this one was proven not charged, refunded, or written off.
   */
  | 'supersede'
  /** The one that is under way has an order of its own: only a read tells whether that has failed since. */
  | 'read'
  /** Both have been charged: a double charge. */
  | 'second'
  /** Only a person can tell. */
  | 'person'
  /** A request of the part is on its way: again when it is over. */
  | 'later'
  /** The money is back and nothing follows. */
  | 'nothing'

/** @param rows all generations of the part that the database has */
export function claimOf(
  rows: readonly { generation: number; state: PurchaseState }[],
  found: { generation: number; status: OrderStatus },
): Claim {
  if (rows.some((row) => row.generation === found.generation)) return 'known'
  const isOut = moneyIsOut(found.status)
  const newest = Math.max(0, ...rows.map((row) => row.generation))
  if (found.generation < newest) return isOut ? 'person' : 'nothing'
  const live = rows.find((row) => !isOver(row.state))
  switch (live?.state) {
    case 'planned':
    case 'waiting':
    case 'unknown':
      return 'supersede'
    case 'sending':
      return 'later'
    case 'accepted':
      return 'read'
    case 'completed':
    case 'fulfilled':
      return isOut ? 'second' : 'nothing'
    case 'review':
      return 'person'
    default:
      return 'insert'
  }
}
