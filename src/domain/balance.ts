/**
 * What explains the balance at the supplier: our orders, what came back of them, and what neither explains.
 *
 *   balance = start − charges + refunds + credits − unexplained + what is not believed yet
 *
 * Whole minor units throughout, so the two sides are equal or they are not. A balance may be read a moment too early or
 * too late, and that an order failed is learned after its money came back: a difference is therefore believed only when
 * a later reading shows it again.
 */
const MINUTE = 60_000

/** A difference that is gone after a minute was a balance that lagged behind the orders. */
export const AGAIN_MS = MINUTE

/** Every open order is read within a quarter of an hour: what rose and is no refund by then is a credit. */
export const CREDIT_MS = 20 * MINUTE

/** Amounts in minor units of one currency, instants in epoch milliseconds, here and below. */
export interface Account {
  /** The balance when the account was begun. */
  startMinor: number
  chargesMinor: number
  refundsMinor: number
  creditsMinor: number
  unexplainedMinor: number
  /** Charges of orders that failed or were taken back, as far as no rise has shown that they came back. */
  owedBackMinor: number
  /** A difference that was seen once; below zero for a fall. */
  pendingMinor: number
  /** Since when; null without one. */
  pendingAt: number | null
  /** The last reading that was explained whole. */
  explainedAt: number
}

/** A balance that was read while no order of ours was on its way, with what our purchases say about that instant. */
export interface BalanceSeen {
  readAt: number
  balanceMinor: number
  /** Charges that are not in the account yet. */
  chargesMinor: number
  /** Most that further orders may have been charged, whose amount the supplier does not tell. */
  unpricedMinor: number
  /** Charges of orders that failed or were taken back since. */
  returnsMinor: number
  /** Most that purchases may have been charged whose outcome waits for a person. */
  unsettledMinor: number
}

/** What happened to the balance; `minor` is what it did to it, below zero for a charge. */
export interface Movement {
  kind: 'charge' | 'refund' | 'credit' | 'unexplained'
  minor: number
}

/** What the balance must be by what the account knows. */
export const expectedMinor = (account: Account): number =>
  exact(
    account.startMinor - account.chargesMinor + account.refundsMinor + account.creditsMinor - account.unexplainedMinor,
  )

/**
 * Takes one reading into the account.
 *
 * A rise is a refund as far as one is owed, else a credit: a top-up, cashback. A fall beyond what orders without a known
 * amount, or with an open outcome, may have cost is unexplained: somebody should look.
 *
 * @returns the account after it, and what happened since the reading before; no movement when nothing did
 */
export function explain(before: Account, seen: BalanceSeen): { account: Account; movements: Movement[] } {
  const owedBackMinor = exact(before.owedBackMinor + seen.returnsMinor)
  const difference = exact(seen.balanceMinor - expectedMinor(before) + seen.chargesMinor)
  const unpriced = difference < 0 ? Math.min(-difference, seen.unpricedMinor) : 0
  const left = difference + unpriced
  const doubtful = left < 0 ? Math.min(0, left + seen.unsettledMinor) : left
  const since = Math.min(before.pendingAt ?? seen.readAt, seen.readAt)
  const kept = again(before, doubtful)
  const booked = believed(kept, seen.readAt - since, owedBackMinor)
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

/** As much of a pending difference as is still there; 0 when it is gone or turned around. */
function again({ pendingMinor, pendingAt }: Account, difference: number): number {
  if (pendingAt === null || Math.sign(pendingMinor) !== Math.sign(difference)) return 0
  return Math.sign(difference) * Math.min(Math.abs(pendingMinor), Math.abs(difference))
}

/** What of a difference that was there before is believed by now; each at or above zero. */
function believed(kept: number, waitedMs: number, owedBackMinor: number) {
  const nothing = { refund: 0, credit: 0, unexplained: 0 }
  if (waitedMs < AGAIN_MS) return nothing
  if (kept <= 0) return { ...nothing, unexplained: 0 - kept }
  const refund = Math.min(kept, owedBackMinor)
  return { ...nothing, refund, credit: waitedMs < CREDIT_MS ? 0 : kept - refund }
}

/** Beyond safe integers a sum would be rounded, and the equation could not tell. */
function exact(minor: number): number {
  if (!Number.isSafeInteger(minor)) throw new RangeError('an amount is too large to be exact')
  return minor
}
