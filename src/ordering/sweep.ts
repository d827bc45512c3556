import { afterLookUp } from '../domain/breaker.ts'
import { RECENT_MS, SKEW_MS } from '../domain/sweep.ts'
import { Failure, messageOf } from '../errors.ts'
import { idBound } from '../ids.ts'
import {
  changeSweep,
  forgetSweeps,
  insertSweep,
  purchasesToBeListed,
  type Sweep,
  sweepById,
} from '../storage/sweeps.ts'
import { comparePage, type Pass, type Swept } from './compare-page.ts'
import type { Ordering } from './context.ts'
import { checkUnlisted } from './missing.ts'
import { afterSuspicion, suspectedFrom } from './orphans.ts'
import { pagesSince } from './scan.ts'
import { noteTrouble } from './trouble.ts'

/** A million orders at a hundred a page: a sweep from the beginning has to end, too. */
const PAGES_MAX = 10_000

/** Purchases whose order must be in the list, held in memory while it is read. More are left to their own reads. */
const LISTED_MAX = 10_000

/** Orders that are asked for one by one after a list without them; a list that lacks more cannot be believed. */
const ASKED_MAX = 200

const KEPT_MS = 90 * 24 * 3_600_000

/**
 * Compares all orders of the supplier since an instant with our purchases, both ways: what deliveries and polling missed
 * is found here, orders of ours that have no purchase, and purchases whose order is gone.
 *
 * Orders are matched by their external reference, page by page, so that memory does not grow with their number; what one
 * of them says is believed at once. That an order is not there is believed only when the list was read as a whole.
 *
 * @param from epoch milliseconds; 0 reads the supplier's orders from the beginning
 * @returns the counts, as they are stored too
 * @throws Failure `unavailable` when the list could not be read as a whole; what was matched before stays applied
 */
export async function sweep(ordering: Ordering, from = ordering.now() - RECENT_MS, cause = 'schedule'): Promise<Swept> {
  return runSweep(ordering, await beginSweep(ordering, from, cause))
}

/** Stores that a sweep begins, so that it is seen while it runs. */
export async function beginSweep({ db, now, newId }: Ordering, from: number, cause: string): Promise<Sweep> {
  const id = newId()
  await db.commit([insertSweep({ id, cause, state: 'running', fromAt: Math.max(0, from), startedAt: now() })])
  const [begun] = await db.query(sweepById(id))
  if (!begun) throw new Failure('internal', `the sweep ${id} is gone`)
  return begun
}

/**
 * Runs a sweep that was begun.
 *
 * @param to orders that were made later are left out: a list that takes long to read does not move meanwhile
 * @throws Failure `unavailable`, see `sweep`
 */
export async function runSweep(ordering: Ordering, begun: Sweep, to?: number): Promise<Swept> {
  const startedAt = ordering.monotonic()
  const { state: _state, finishedAt: _finishedAt, error: _error, ...swept } = { ...begun }
  let outcome: Pick<Sweep, 'state' | 'error'> = { state: 'complete', error: null }
  try {
    const suspectFrom = await suspectedFrom(ordering)
    const pass: Pass = { swept, unseen: await mustBeListed(ordering, begun), suspectFrom, spenders: 0 }
    await compareList(ordering, pass, to)
    await askForUnseen(ordering, pass)
    if (suspectFrom !== undefined && begun.fromAt <= Math.max(0, suspectFrom - SKEW_MS)) {
      await ordering.db.commit(afterSuspicion(ordering, begun.startedAt, suspectFrom, pass.spenders))
      ordering.wake('outbox')
    }
    return swept
  } catch (error) {
    outcome = { state: ordering.signal?.aborted ? 'interrupted' : 'failed', error: messageOf(error) }
    throw error
  } finally {
    if (swept.hinted > 0) ordering.wake('refresh')
    await conclude(ordering, swept, outcome, ordering.monotonic() - startedAt)
  }
}

/** Purchases that the list must hold, were they sent within its window. */
async function mustBeListed({ db, dialect }: Ordering, { fromAt, startedAt }: Sweep): Promise<Map<string, string>> {
  const sentFrom = fromAt === 0 ? null : fromAt + SKEW_MS
  const acceptedBefore = startedAt - dialect.listLagSeconds * 1_000
  const listed = await db.query(purchasesToBeListed(sentFrom, acceptedBefore, LISTED_MAX))
  return new Map(listed.map(({ id, supplierOrderId }) => [supplierOrderId ?? '', id]))
}

async function compareList(ordering: Ordering, pass: Pass, to: number | undefined): Promise<void> {
  const { swept } = pass
  const pages = pagesSince(ordering, swept.fromAt, {
    pagesMax: PAGES_MAX,
    // One order that cannot be read must not hide all that are older; the sweep is not complete all the same.
    onUnreadable: (rows) => {
      swept.unreadable += rows.length
    },
    ...(to === undefined ? {} : { to }),
  })
  for await (const orders of pages) {
    if (ordering.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
    swept.pages += 1
    await comparePage(ordering, pass, orders)
  }
  // A list that was read is a look-up of all: what it has found is not looked up any more, and new purchases may wait.
  ordering.pace.breaker = afterLookUp(ordering.pace.breaker, swept.orders)
  if (swept.unreadable === 0) return
  throw new Failure('unavailable', `${swept.unreadable} orders in the supplier's list cannot be read`)
}

async function askForUnseen(ordering: Ordering, { swept, unseen }: Pass): Promise<void> {
  for (const [supplierOrderId, purchaseId] of [...unseen].slice(0, ASKED_MAX)) {
    try {
      const answer = await checkUnlisted(ordering, purchaseId, supplierOrderId)
      if (answer !== 'moved') swept[answer] += 1
    } catch (error) {
      await noteTrouble(ordering, purchaseId, error)
      swept.troubled += 1
    }
  }
  if (unseen.size <= ASKED_MAX) return
  throw new Failure('unavailable', `the supplier's order list lacks ${unseen.size} of our orders`)
}

async function conclude(
  { db, log, now }: Ordering,
  swept: Swept,
  { state, error }: Pick<Sweep, 'state' | 'error'>,
  durationMs: number,
): Promise<void> {
  const { id, cause, pages, orders, matched, hinted, orphans, others, missing, unlisted, troubled, unreadable } = swept
  const counts = { pages, orders, matched, hinted, orphans, others, missing, unlisted, troubled, unreadable }
  await db
    .commit([changeSweep(id, { ...counts, state, error, finishedAt: now() }), forgetSweeps(idBound(now() - KEPT_MS))])
    // The database is closed when the service stops; the start after it marks the row.
    .catch((fault: unknown) => log.warn('sweep.unrecorded', { id, error: messageOf(fault) }))
  const line = { id, cause, ...counts, durationMs: Math.round(durationMs) }
  if (state === 'complete') log.info('sweep.complete', line)
  else log.warn(`sweep.${state}`, { ...line, error })
}
