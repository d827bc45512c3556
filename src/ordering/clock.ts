import {
  countingFromNow,
  deliveriesDueNow,
  effectsDueNow,
  forgetReadingsAfter,
  listingsDueNow,
  offersAsOfNow,
  placementsDueNow,
  publishingDueNow,
  readAfter,
  refreshesDueNow,
  writtenAfter,
  writtenNow,
} from '../storage/instants.ts'
import { distrustTimes } from '../storage/purchases.ts'
import type { Ordering } from './context.ts'

/**
 * What follows from a jump of the wall clock, in either direction: nothing that was timed before it means anything.
 *
 * A purchase whose outcome is open is looked up and never repeated by itself. Whatever waits for an instant goes on now:
 * after a clock was put back, it would wait for as long again as the clock had been ahead.
 */
export async function afterClockJump(ordering: Pick<Ordering, 'db' | 'now' | 'pace' | 'log'>): Promise<void> {
  const { db, pace, log } = ordering
  const now = ordering.now()
  log.warn('clock.jumped', { detail: 'purchases with an open outcome are looked up, not repeated' })
  await db.commit([
    distrustTimes(now),
    refreshesDueNow(now),
    placementsDueNow(now),
    effectsDueNow(now),
    deliveriesDueNow(now),
    listingsDueNow(now),
    publishingDueNow(now),
    forgetReadingsAfter(now),
    offersAsOfNow(now),
    countingFromNow(now),
    writtenNow(now),
  ])
  // For ever is the end of the service; everything else was an instant.
  if (Number.isFinite(pace.pausedUntil)) pace.pausedUntil = 0
  Object.assign(pace, { firstSends: [], repeats: [] })
  pace.checked.clear()
}

/** More than clocks drift between two starts. */
const JUMP_BACK_MS = 60_000

/**
 * Whether the clock was put back while no process was there to notice: something in the database was written, or read
 * from the supplier, at an instant that is yet to come.
 */
export async function clockWentBack({ db, now }: Pick<Ordering, 'db' | 'now'>): Promise<boolean> {
  const at = now() + JUMP_BACK_MS
  const [written, read] = await Promise.all([db.query(writtenAfter(at)), db.query(readAfter(at))])
  return written.length + read.length > 0
}
