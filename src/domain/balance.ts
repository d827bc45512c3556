/**
 * The account of the balance at the supplier: our orders, their refunds, and what neither orders nor refunds explain.
 *
 *   balance = start − charges + refunds + credits − unexplained + pending
 *
 * All amounts are whole minor units, so the equation holds exactly. A balance may be read a moment too early or too late,
 * and a failed order is seen after its refund. Therefore a difference counts only when a later reading confirms it.
 */
import { counted, money } from './figures.ts'

const MINUTE = 60_000

/** If a difference is gone after this time, the balance only lagged behind the orders. */
export const AGAIN_MS = MINUTE

/** Every open order is read within a quarter of an hour. A rise that no failed order explains by then is a credit. */
export const CREDIT_MS = 20 * MINUTE

/** Amounts in minor units of one currency, instants in epoch milliseconds, here and below. */
export interface Account {
  /** The balance when the account was begun. */
  startMinor: number
  chargesMinor: number
  refundsMinor: number
  creditsMinor: number
  unexplainedMinor: number
  /** Charges of failed or reversed orders for which the balance has not risen yet. */
  owedBackMinor: number
  /** A difference that one reading has shown; below zero for a fall. */
  pendingMinor: number
  /** Since when the difference of `pendingMinor` has been pending; null where no difference is pending. */
  pendingAt: number | null
  /** When a reading of the balance last left no difference to explain. */
  explainedAt: number
}

/** A balance that was read while no request of ours was in flight, with the facts of our purchases at that instant. */
export interface BalanceSeen {
  readAt: number
  balanceMinor: number
  /** Charges that are not in the account yet. */
  chargesMinor: number
  /** Upper bound of the charges that `chargesMinor` lacks, because the supplier does not state the amount of their orders. */
  unpricedMinor: number
  /** Charges that newly count as owed back, because their orders failed or were reversed. */
  returnsMinor: number
  /** Upper bound of the charges of purchases whose outcome waits for a person. */
  unsettledMinor: number
}

/** A change of the balance; `minor` is below zero for a charge. */
export interface Movement {
  kind: 'charge' | 'refund' | 'credit' | 'unexplained'
  minor: number
}

export const expectedMinor = (account: Account): number =>
  exact(
    account.startMinor - account.chargesMinor + account.refundsMinor + account.creditsMinor - account.unexplainedMinor,
  )

/**
 * Applies one reading of the balance to the account.
 *
 * A rise counts as a refund up to the amount that is owed back. The rest of the rise is a credit, such as a top-up. Orders with
 * an unknown amount or an open outcome may explain a fall. The rest of the fall is unexplained, and an operator must check it.
 *
 * @returns the account after the reading, and the movements since the previous one
 */
export function explain(before: Account, seen: BalanceSeen): { account: Account; movements: Movement[] } {
  const owedBackMinor = exact(before.owedBackMinor + seen.returnsMinor)
  const difference = exact(seen.balanceMinor - expectedMinor(before) + seen.chargesMinor)
  const unpriced = difference < 0 ? Math.min(-difference, seen.unpricedMinor) : 0
  const left = difference + unpriced
  const doubtful = left < 0 ? Math.min(0, left + seen.unsettledMinor) : left
  const since = Math.min(before.pendingAt ?? seen.readAt, seen.readAt)
  const kept = again(before, doubtful)
  const booked = confirmed(kept, seen.readAt - since, owedBackMinor)
  const rest = doubtful - booked.refund - booked.credit + booked.unexplained
  const stillKept = kept - booked.refund - booked.credit + booked.unexplained
  const charges = exact(seen.chargesMinor + unpriced)
  const pending =
    rest === 0
      ? { pendingMinor: 0, pendingAt: null }
      : { pendingMinor: stillKept === 0 ? rest : stillKept, pendingAt: stillKept === 0 ? seen.readAt : since }
  const account: Account = {
    startMinor: before.startMinor,
    chargesMinor: exact(before.chargesMinor + charges),
    refundsMinor: exact(before.refundsMinor + booked.refund),
    creditsMinor: exact(before.creditsMinor + booked.credit),
    unexplainedMinor: exact(before.unexplainedMinor + booked.unexplained),
    owedBackMinor: owedBackMinor - booked.refund,
    ...pending,
    explainedAt: rest === 0 && doubtful === left ? seen.readAt : before.explainedAt,
  }
  const movements: Movement[] = [
    { kind: 'charge', minor: 0 - charges },
    { kind: 'refund', minor: booked.refund },
    { kind: 'credit', minor: booked.credit },
    { kind: 'unexplained', minor: 0 - booked.unexplained },
  ]
  return { account, movements: movements.filter(({ minor }) => minor !== 0) }
}

/** The part of a pending difference that the new reading shows again; 0 when it is gone or has changed its sign. */
function again({ pendingMinor, pendingAt }: Account, difference: number): number {
  if (pendingAt === null || Math.sign(pendingMinor) !== Math.sign(difference)) return 0
  return Math.sign(difference) * Math.min(Math.abs(pendingMinor), Math.abs(difference))
}

/** Splits the part of a pending difference that is confirmed by now; each of the three parts is at or above zero. */
function confirmed(kept: number, waitedMs: number, owedBackMinor: number) {
  const nothing = { refund: 0, credit: 0, unexplained: 0 }
  if (waitedMs < AGAIN_MS) return nothing
  if (kept <= 0) return { ...nothing, unexplained: 0 - kept }
  const refund = Math.min(kept, owedBackMinor)
  return { ...nothing, refund, credit: waitedMs < CREDIT_MS ? 0 : kept - refund }
}

/**
 * Returns what may be spent of a balance, and how much is missing for the purchases that wait for money.
 *
 * @param underWayMinor the most that purchases take which the reading of the balance cannot include yet
 * @param needsMinor what those that wait cost now
 */
export function fundsOf(balanceMinor: number, underWayMinor: number, needsMinor: number) {
  const freeMinor = exact(balanceMinor - underWayMinor)
  return { freeMinor, missingMinor: Math.max(0, exact(needsMinor - freeMinor)) }
}

/** `Top up at least 60.25 EUR to free 2 orders.` */
export function topUpText(funds: { missing: string; needs: string; currency: string; orders: number }): string {
  const orders = counted(funds.orders, 'order')
  return Number(funds.missing) === 0
    ? `The ${money(funds.needs, funds.currency)} for ${orders} is there. They go out within a minute.`
    : `Top up at least ${money(funds.missing, funds.currency)} to free ${orders}.`
}

/** How the money that is missing follows from the balance: each text with its amount. */
export const fundLines = (
  balance: string,
  funds: { underWay: string; free: string; needs: string; missing: string },
) => [
  ['The supplier says', balance] as const,
  ['Less what purchases under way may take', funds.underWay] as const,
  ['Free to spend', funds.free] as const,
  ...(Number(funds.needs) === 0
    ? []
    : [['What waits needs', funds.needs] as const, ['Missing', funds.missing] as const]),
]

/**
 * Returns the failed purchases whose charge is still owed back. The balance shows that money came back, and not for which purchase: it
 * counts for the oldest.
 *
 * @param failed newest first
 */
export function stillOwedBack<P extends { amountMinor: number }>(failed: readonly P[], owedBackMinor: number): P[] {
  let left = owedBackMinor
  return failed.filter(({ amountMinor }) => {
    const isOwedBack = left > 0
    left -= amountMinor
    return isOwedBack
  })
}

/** Refuses an amount beyond the safe integers: JavaScript would round it, and the account would be wrong unnoticed. */
function exact(minor: number): number {
  if (!Number.isSafeInteger(minor)) throw new RangeError('an amount is too large to be exact')
  return minor
}
