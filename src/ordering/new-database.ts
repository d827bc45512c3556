import { isOurs } from '../domain/sweep.ts'
import { Failure, messageOf } from '../errors.ts'
import { clearRestoreHold, RESTORE_ACTOR, setRestoreHold } from '../storage/restores.ts'
import type { Ordering } from './context.ts'
import { NEW_DATABASE, noteRestore } from './epoch.ts'
import { letGo } from './operate.ts'
import { pagesSince } from './scan.ts'

/** The whole list, if need be. */
const PAGES_MAX = 10_000

/** A list that cannot be read is tried again after this long. */
const AGAIN_MS = 15_000

/**
 * Searches the supplier's orders for some that were placed for our stores, which a new database cannot know. With one of
 * them the database is a restore of nothing: the one before it was lost, or the service was started in a wrong place.
 *
 * @returns `due` when another search runs or has failed just now; else `done`, and buying goes on or waits as after a restore
 * @throws Failure `unavailable` when the list could not be read; buying stays on hold, and the next search tries again
 */
export async function compareNew(ordering: Ordering): Promise<'due' | 'done'> {
  const { db, log, monotonic, now, pace } = ordering
  if ((pace.compareAt ?? 0) > monotonic()) return 'due'
  pace.compareAt = Number.POSITIVE_INFINITY
  try {
    const cause = await causeOf(ordering)
    if (cause === undefined) {
      await db.commit([clearRestoreHold()])
      log.info('database.compared')
      await letGo(ordering)
      return 'done'
    }
    // Store orders may have come since the start: nothing before them is known all the same.
    const { epoch } = await noteRestore(ordering, { cause, epochMin: 1, actor: 'quayside', unknownFrom: 0 })
    await ordering.beginEpoch?.(epoch)
    log.warn('restore.recognised', { reason: cause, count: epoch })
    ordering.wake('outbox')
    return 'done'
  } catch (error) {
    const reason = `${NEW_DATABASE}; the last try failed: ${messageOf(error)}`
    await db.commit([setRestoreHold({ reason, actor: RESTORE_ACTOR, at: now() }, now())])
    throw error
  } finally {
    pace.compareAt = monotonic() + AGAIN_MS
  }
}

/**
 * A list that does not show all orders proves nothing, and reading it again proves no more: the database then counts as a
 * restore, whose hold an operator lifts once the orders that the list shows are mapped back.
 *
 * @returns why the database counts as a restore; undefined when the supplier has no order of its stores
 */
async function causeOf(ordering: Ordering): Promise<string | undefined> {
  const { dialect, stores } = ordering
  let unreadable = 0
  const onUnreadable = (rows: readonly unknown[]): void => {
    unreadable += rows.length
  }
  let listMax: number | undefined
  const onListEnd = (most: number): void => {
    listMax = most
  }
  for await (const orders of pagesSince(ordering, 0, { pagesMax: PAGES_MAX, onUnreadable, onListEnd })) {
    if (ordering.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
    const ours = orders.find((order) => isOurs(order.externalOrderId, stores, dialect.externalOrderIdMax))
    if (ours) return `the database is new, and the supplier has order ${ours.id} of its stores`
  }
  if (listMax !== undefined) {
    return `the database is new, and the supplier's order list ends at ${listMax} orders (paging.listMax): older orders are not shown`
  }
  if (unreadable === 0) return undefined
  return `the database is new, and ${unreadable} orders in the supplier's list cannot be read`
}
