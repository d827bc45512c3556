import type { Catalogue } from '../catalogue/context.ts'
import { type BalanceSeen, explain, type Movement } from '../domain/balance.ts'
import { amountText } from '../domain/money.ts'
import type { SupplierBalance } from '../domain/supplier.ts'
import { messageOf } from '../errors.ts'
import { idBound } from '../ids.ts'
import { releaseHeld } from '../ordering/actions.ts'
import type { Ordering } from '../ordering/context.ts'
import {
  type BalanceAccount,
  type BalanceReading,
  balanceAccount,
  changeAccount,
  chargesBefore,
  countCharges,
  countOpenOutcomes,
  countReturns,
  countUncertainCharges,
  forgetBalanceReadings,
  forgetMovements,
  insertAccount,
  insertBalance,
  insertMovement,
  latestBalance,
  latestTier,
  type OwedBack,
  returnsBefore,
  unsettledMinor,
} from '../storage/balance.ts'
import { type Change, first, StaleWrite } from '../storage/database.ts'
import { reportDiscrepancy } from '../storage/discrepancies.ts'

const HOUR = 3_600_000

/** An order's amount comes with its answer or a read soon after. A balance does not count while a younger order has no amount. */
const YOUNG_MS = HOUR

/** Movements of the account are kept as long as the rows of deliveries, so that a quarter's bill can be compared with them. */
const KEPT_MS = 90 * 24 * HOUR

type Explaining = Pick<Ordering, 'db' | 'now' | 'newId' | 'log' | 'wake'>

/**
 * Reads the balance. When the balance rose, releases the purchases that are held for it.
 *
 * @returns the instant from which a sweep has to look for the orders that took money; undefined when nothing is suspect
 * @throws Failure as `fetchBalance` does
 */
export async function checkBalance(ordering: Ordering, catalogue: Catalogue): Promise<number | undefined> {
  const before = await first(ordering.db, latestBalance())
  const reading = await fetchBalance(catalogue)
  if (!before || reading.amountMinor > before.amountMinor) await releaseHeld(ordering, 'balance')
  return explainBalance(ordering, reading)
}

/**
 * Takes a reading of the balance into the account: the cost of our orders, the money that came back, and the unexplained rest.
 *
 * A reading while an order of ours is on its way proves nothing and is skipped. A fall that no order explains and that a
 * second reading confirms is recorded, and people are alerted. The sweep that follows decides whether to freeze.
 *
 * @returns the instant from which that sweep has to look; undefined when nothing is suspect
 */
export async function explainBalance(ordering: Explaining, reading: BalanceReading): Promise<number | undefined> {
  try {
    return await judge(ordering, reading)
  } catch (error) {
    // The failure is only logged: the next reading is judged as well, and the caller needs this reading for other purposes.
    if (!(error instanceof StaleWrite)) ordering.log.warn('balance.unjudged', { error: messageOf(error) })
    return undefined
  }
}

async function judge(ordering: Explaining, reading: BalanceReading): Promise<number | undefined> {
  const { db } = ordering
  const { readAt, currency } = reading
  const [[open], [uncertain], [account]] = await Promise.all([
    db.query(countOpenOutcomes()),
    db.query(countUncertainCharges(readAt, readAt - YOUNG_MS)),
    db.query(balanceAccount(currency)),
  ])
  if (open?.total !== 0 || uncertain?.total !== 0) return undefined
  if (!account) {
    await db.commit(opening(ordering, reading))
    return undefined
  }
  if (readAt <= account.judgedAt) return undefined
  const { seen, counts } = await whatWeKnow(ordering, reading)
  const { account: after, movements } = explain(account, seen)
  const fall = movements.find(({ kind }) => kind === 'unexplained')
  const suspectFrom = fall ? (account.suspectFrom ?? account.explainedAt) : account.suspectFrom
  await db.commit([
    changeAccount(account, { ...after, judgedAt: readAt, suspectFrom }),
    ...counts,
    ...movements.map((movement) => recorded(ordering, reading, movement)),
    ...(fall ? alarm(ordering, reading, account, fall) : []),
    forgetMovements(idBound(readAt - KEPT_MS)),
  ])
  for (const { kind, minor } of movements) {
    if (kind === 'charge' || kind === 'refund') continue
    ordering.log[kind === 'credit' ? 'info' : 'warn'](`balance.${kind}`, {
      id: reading.id,
      detail: amountText(minor, reading.currency),
    })
  }
  if (!fall) return undefined
  ordering.wake('outbox')
  return suspectFrom ?? undefined
}

/** Begins the account with the first reading, which already includes all earlier purchases. */
function opening(ordering: Explaining, reading: BalanceReading): Change[] {
  const { readAt, currency, amountMinor } = reading
  const now = ordering.now()
  const begun = { startedAt: readAt, explainedAt: readAt, judgedAt: readAt }
  return [
    insertAccount({ ...begun, currency, startMinor: amountMinor }),
    countCharges(readAt, now, 'any'),
    countReturns('failed', readAt, now, 'any'),
    countReturns('reversed', readAt, now, 'any'),
    recorded(ordering, reading, { kind: 'start', minor: amountMinor }),
  ]
}

/** Returns what our purchases took and gave back before a reading, and the changes that mark these purchases as counted. */
async function whatWeKnow({ db, now }: Explaining, { readAt, currency, amountMinor }: BalanceReading) {
  const returns = async (kind: OwedBack) => {
    const row = await first(db, returnsBefore(kind, readAt))
    const { count = 0, returnsMinor = 0 } = row ?? {}
    return { returnsMinor, change: countReturns(kind, readAt, now(), count) }
  }
  const [[charges], failed, reversed, [unsettled]] = await Promise.all([
    db.query(chargesBefore(readAt, currency)),
    returns('failed'),
    returns('reversed'),
    db.query(unsettledMinor()),
  ])
  const { count = 0, chargesMinor = 0, unpricedMinor = 0 } = charges ?? {}
  const seen: BalanceSeen = {
    readAt,
    balanceMinor: amountMinor,
    chargesMinor,
    unpricedMinor,
    returnsMinor: failed.returnsMinor + reversed.returnsMinor,
    unsettledMinor: unsettled?.total ?? 0,
  }
  return { seen, counts: [countCharges(readAt, now(), count), failed.change, reversed.change] }
}

function recorded(
  { newId }: Explaining,
  reading: BalanceReading,
  movement: Movement | { kind: 'start'; minor: number },
) {
  const { id: readingId, currency, readAt: at } = reading
  return insertMovement({ id: newId(), readingId, kind: movement.kind, amountMinor: movement.minor, currency, at })
}

function alarm(ordering: Explaining, reading: BalanceReading, account: BalanceAccount, fall: Movement): Change[] {
  const since = new Date(account.explainedAt).toISOString()
  const note = `the balance fell by ${amountText(-fall.minor, reading.currency)} more than our orders explain, after ${since}`
  return reportDiscrepancy(ordering, {
    kind: 'balance_unexplained',
    subject: reading.id,
    supplierOrderId: '',
    detail: note,
    // Another client on the same API key would raise an alert with every order: one an hour is enough. Each fall is recorded.
    alert: { occasion: String(Math.floor(ordering.now() / HOUR)), payload: { note } },
  })
}

/** Readings are kept long enough to look back over a month's bills. */
const READINGS_KEPT_MS = 30 * 24 * 3_600_000

/** Clocks of several machines differ by less. */
const AHEAD_MS = 10 * 60_000

/** The most readings that are kept. A reading every five minutes makes 8,640 in that time; events and purchases add some. */
const KEPT_MAX = 10_000

/**
 * Reads the API balance, VIP tier and limits, and keeps the reading.
 *
 * Another tier means other prices. Then this function asks for a sync run before it stores the reading, so that it asks
 * again after a crash in between.
 *
 * @returns the reading; `readAt` is the instant before the request left, because the answer may lack a purchase that was
 *   sent while the request was under way
 * @throws Failure `unavailable` or `rejected` when the supplier does not answer, or when its answer cannot be read
 */
export async function fetchBalance({ db, supplier, now, newId, log, requestSync }: Catalogue): Promise<BalanceReading> {
  const readAt = now()
  const balance = await supplier.balance()
  const reading: BalanceReading = {
    id: newId(),
    readAt,
    amountMinor: balance.amountMinor,
    currency: balance.currency,
    tier: balance.tier ?? null,
    limits: statedLimits(balance),
  }
  const known = await first(db, latestTier())
  if (known && reading.tier !== null && known.tier !== reading.tier) {
    log.info('balance.tier_changed', { before: known.tier, after: reading.tier })
    requestSync('tier_changed')
  }
  // A reading that is dated after this one, by a clock that was ahead, would count as the newest until its date.
  const forgets = forgetBalanceReadings(readAt - READINGS_KEPT_MS, readAt + AHEAD_MS, KEPT_MAX)
  await db.commit([insertBalance(reading), forgets])
  return reading
}

function statedLimits({ requestsPerMinute, quantityMax }: SupplierBalance): BalanceReading['limits'] {
  if (requestsPerMinute === undefined && quantityMax === undefined) return null
  return { requestsPerMinute, quantityMax }
}
