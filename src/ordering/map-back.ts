/**
 * After a restore: the supplier's orders are given back to the purchases that they were bought for, while nothing is
 * bought.
 *
 * ```
 * restored ── settle + list lag ──► scan, claim ── gap ──► scan, claim, sweep ──► mapped ──► buying goes on by itself
 *                                                                                   └──► on hold while orders of ours
 *                                                                                        have no purchase: their store
 *                                                                                        hands them in again, or a
 *                                                                                        person lets buying go on
 * ```
 *
 * Purchases are found by the references that they would have, whatever their generation: a part may have been refused
 * many times since the backup.
 */
import type { SupplierOrder } from '../domain/placement.ts'
import { LATE_ORDERS_MS, nextRoundAt, SCANS_MIN } from '../domain/restore.ts'
import { isNews, isOurs } from '../domain/sweep.ts'
import { Failure, messageOf } from '../errors.ts'
import { insertAudit } from '../storage/evidence.ts'
import { listOf } from '../storage/lists.ts'
import { purchasesByExternalId } from '../storage/purchases.ts'
import {
  clearRestoreHold,
  countUnclaimed,
  currentEpoch,
  dropMatched,
  type Epoch,
  type ListEnd,
  noteUnclaimed,
  restoreHold,
  setEpoch,
  setRestoreHold,
  unclaimedPage,
} from '../storage/restores.ts'
import { roundsOf } from './absence.ts'
import { claimOrder } from './claim-order.ts'
import type { Ordering } from './context.ts'
import { gapsOf } from './lease.ts'
import { compareNew } from './new-database.ts'
import { letGo } from './operate.ts'
import { type Part, partsOf, unclaimedOf } from './part-of.ts'
import { PROOF_SKEW_MS, pagesSince } from './scan.ts'
import { sweep } from './sweep.ts'

/** As many as a sweep reads: the whole list, if need be. */
const PAGES_MAX = 10_000

/** Once buying goes on, parts are looked through at this pace for orders that are left. */
const LATER_MS = 15 * 60_000

/** Noted orders whose parts are looked up in one go. */
const BATCH = 100

/**
 * Does the next round of the mapping, if one is due; before the first one of a new database, see `compareNew`.
 *
 * @returns `over` when there is nothing to map and nothing held; else whether a round was `done` or is not `due` yet
 * @throws Failure `unavailable` when the supplier's list could not be read as a whole; the next round tries again
 */
export async function mapBack(ordering: Ordering): Promise<'over' | 'due' | 'done'> {
  const { db, dialect, now: clock } = ordering
  const stored = await currentEpoch(db)
  if (!stored) return 'over'
  if (stored.restoredAt === null) return (await restoreHold(db)) ? compareNew(ordering) : 'over'
  const now = clock()
  // A round of a clock that was put back since counts as begun now, or the next one would wait for that clock.
  const epoch = { ...stored, roundAt: stored.roundAt === null ? null : Math.min(stored.roundAt, now) }
  if (epoch.roundAt !== stored.roundAt) await db.commit([setEpoch(epoch, now)])
  const held = (await restoreHold(db)) !== undefined
  if (epoch.mappedAt !== null && !held && !(await stillLooks(ordering, stored.restoredAt))) return 'over'
  const gaps = {
    ...gapsOf(dialect),
    gapMs: epoch.mappedAt === null || held ? dialect.scanGapSeconds * 1_000 : LATER_MS,
  }
  // A restore that lies ahead is of such a clock too: the steady one below counts it from when this process met it.
  const restoredAt = stored.restoredAt > now ? 0 : stored.restoredAt
  if (now < nextRoundAt({ ...epoch, restoredAt }, gaps)) return 'due'
  // Another process may have begun the last round, which only the wall clock tells; but that one may have been put ahead,
  // while a request that left before the restore is on its way still.
  const rounds = roundsOf(ordering, epoch.epoch)
  const steady = ordering.monotonic()
  if (steady < nextRoundAt({ ...rounds, scans: epoch.scans }, gaps)) return 'due'
  rounds.roundAt = steady
  const begun: Epoch = { ...epoch, roundAt: now }
  await db.commit([setEpoch(begun, now)])
  let after: Epoch
  try {
    after = epoch.mappedAt === null ? await scanned(ordering, begun) : begun
    await claimParts(ordering)
  } catch (error) {
    await sayWhy(ordering, begun, [`the last try failed: ${messageOf(error)}`])
    throw error
  }
  if (after.scans >= SCANS_MIN && after.mappedAt === null) {
    await sweep(ordering, fromOf(after), 'restore').catch((error: unknown) => {
      // Its counts and its orphans are for people; every order was claimed or noted by the scans before.
      ordering.log.warn('restore.unswept', { error: messageOf(error) })
    })
    after.mappedAt = clock()
  }
  await db.commit([setEpoch(after, clock())])
  await conclude(ordering, after)
  return 'done'
}

/** Whether orders are left that a part may still come for: handed in again late, or freed by a person's decision. */
async function stillLooks({ db, now }: Ordering, restoredAt: number): Promise<boolean> {
  if (now() - restoredAt > LATE_ORDERS_MS) return false
  const [unclaimed] = await db.query(countUnclaimed())
  return (unclaimed?.total ?? 0) > 0
}

const fromOf = ({ unknownFrom }: Epoch): number => Math.max(0, unknownFrom - PROOF_SKEW_MS)

/** Notes the orders of ours that no purchase knows as its own, page by page. */
async function scanned(ordering: Ordering, epoch: Epoch): Promise<Epoch> {
  let unreadable = 0
  const onUnreadable = (rows: readonly unknown[]): void => {
    unreadable += rows.length
  }
  let listMax: number | undefined
  const onListEnd = (most: number): void => {
    listMax = most
  }
  let ours = 0
  const options = { pagesMax: PAGES_MAX, onUnreadable, onListEnd }
  for await (const orders of pagesSince(ordering, fromOf(epoch), options)) {
    if (ordering.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
    ours += await noteNews(ordering, orders)
  }
  const listEnd = listMax === undefined ? null : { listMax, ours }
  return { ...epoch, scans: epoch.scans + 1, unreadable, listEnd }
}

/** @returns how many of them were placed for our stores */
async function noteNews({ db, dialect, stores, now }: Ordering, orders: SupplierOrder[]): Promise<number> {
  const ours = orders.filter((order) => isOurs(order.externalOrderId, stores, dialect.externalOrderIdMax))
  if (ours.length === 0) return 0
  const rows = await db.query(purchasesByExternalId(ours.map((order) => order.externalOrderId ?? '')))
  const byReference = new Map(rows.map((row) => [row.externalOrderId, row]))
  const news = ours.filter((order) => {
    const row = byReference.get(order.externalOrderId ?? '')
    return !row || (row.supplierOrderId !== order.id && isNews({ ...row, ordersSeen: listOf(row.ordersSeen) }, order))
  })
  await db.commit(
    news.map(({ id, externalOrderId, status }) =>
      noteUnclaimed({ supplierOrderId: id, reference: externalOrderId ?? '', status, seenAt: now() }),
    ),
  )
  return ours.length
}

/** Gives the noted orders back to the parts that the database has, a part at a time. */
async function claimParts(ordering: Ordering): Promise<void> {
  const { db } = ordering
  const seen = new Set<string>()
  for (let after = ''; ; ) {
    const noted = await db.query(unclaimedPage({ after, limit: BATCH }))
    const last = noted.at(-1)
    if (!last) return
    // What another way has given its purchase meanwhile is nobody's question any more.
    if (after === '') await db.commit([dropMatched()])
    after = last.supplierOrderId
    const parts = await partsOf(
      ordering,
      noted.map(({ reference }) => reference),
    )
    for (const { part } of parts.values()) {
      const key = `${part.lineId} ${part.part}`
      if (seen.has(key)) continue
      seen.add(key)
      for (const { generation, supplierOrderId } of await unclaimedOf(ordering, part)) {
        if (ordering.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
        await claimOne(ordering, part, generation, supplierOrderId)
      }
    }
  }
}

/** One order that cannot be read or decided now must not hide the others: it stays noted, and the next round tries again. */
async function claimOne(ordering: Ordering, part: Part, generation: number, supplierOrderId: string): Promise<void> {
  const { store, reference, line } = part
  const about = { supplierOrderId, store, reference, line, generation }
  try {
    const outcome = await claimOrder(ordering, part, generation, supplierOrderId)
    ordering.log.info('restore.claim', { ...about, outcome })
  } catch (error) {
    ordering.log.warn('restore.claim', { ...about, outcome: 'open', error: messageOf(error) })
  }
}

/** Lets buying go on when nothing is left that only a person can tell; else says what is. */
async function conclude(ordering: Ordering, epoch: Epoch): Promise<void> {
  const { db, newId, now: clock, log } = ordering
  if (epoch.mappedAt === null) return sayWhy(ordering, epoch, [`${epoch.scans} of ${SCANS_MIN} scans are done`])
  const [unclaimed] = await db.query(countUnclaimed())
  const questions = questionsOf(unclaimed?.total ?? 0, epoch)
  if (questions.length > 0) return sayWhy(ordering, epoch, questions)
  if (!(await restoreHold(db))) return
  const now = clock()
  const subject = `epoch ${epoch.epoch}`
  await db.commit([
    clearRestoreHold(),
    insertAudit({ id: newId(), at: now, actor: 'quayside', action: 'restore.mapped', subject }),
  ])
  log.warn('restore.mapped', { count: epoch.epoch })
  await letGo(ordering)
}

/** Puts what people read about the hold up to date: how far the mapping is, or what it waits for. */
async function sayWhy({ db, now }: Ordering, epoch: Epoch, why: string[]): Promise<void> {
  const hold = await restoreHold(db)
  if (!hold) return
  const what = epoch.mappedAt === null ? "the supplier's orders are being mapped back" : 'mapped back'
  const reason = `restored, epoch ${epoch.epoch}; ${what}: ${why.join('; ')}`
  if (reason !== hold.reason) await db.commit([setRestoreHold({ ...hold, reason }, now())])
}

function questionsOf(unclaimed: number, { unreadable, listEnd }: Epoch): string[] {
  const are = (count: number) => (count === 1 ? '1 order' : `${count} orders`)
  return [
    ...(unclaimed > 0
      ? [
          `${are(unclaimed)} at the supplier ${unclaimed === 1 ? 'is' : 'are'} of no purchase here: see quayside discrepancies list, and let the stores hand in again what came after the backup`,
        ]
      : []),
    ...(unreadable > 0 ? [`${are(unreadable)} in the supplier's list cannot be read`] : []),
    ...(listEnd ? [notShown(listEnd)] : []),
  ]
}

/** What the list could show, and what only a person can find out. */
function notShown({ listMax, ours }: ListEnd): string {
  const those = ours === 0 ? 'none' : `${ours}`
  const are = ours < 2 ? 'is' : 'are'
  return `the supplier's order list ends at ${listMax} orders (paging.listMax), and ${those} of those ${listMax} ${are} of its stores; older orders are not shown: look for older orders of these stores in the supplier's own account, then quayside unfreeze`
}
