import type { Change } from '../storage/database.ts'
import { changePurchase, clearLeases, dueRefreshes, hintHandedOver, purchasesInState } from '../storage/purchases.ts'
import { interruptSweeps } from '../storage/sweeps.ts'
import { noteIntent } from './absence.ts'
import { advance } from './advance.ts'
import { afterClockJump, clockWentBack } from './clock.ts'
import type { Ordering } from './context.ts'

const BATCH = 500
/** Open outcomes whose absence is counted from the start on. */
const COUNTED_MAX = 1_000
/** After a start the supplier is not asked about everything at once: four a second, all within a minute; more share seconds. */
const SPREAD_STEP_MS = 250
const SPREAD_MS = 60_000

/**
 * Picks up what the process before left behind.
 *
 * Only one process can use the file, so every lease is void now; whatever was being sent may have been charged and is
 * looked up before anything else happens to it. How long ago that was is not asked of the wall clock, which may have been
 * put ahead since: it counts as sent now.
 *
 * @returns how many purchases were in the middle of being sent
 */
export async function resume(ordering: Ordering): Promise<number> {
  const now = ordering.now()
  if (await clockWentBack(ordering)) await afterClockJump(ordering)
  // A process that ended right after the store's yes left purchases whose orders only wait to be closed.
  await ordering.db.commit([clearLeases(), interruptSweeps(now), hintHandedOver(now)])
  let lost = 0
  for (;;) {
    const sending = await ordering.db.query(purchasesInState('sending', BATCH))
    if (sending.length === 0) break
    for (const { id } of sending) {
      await advance(ordering, id, () => ({ type: 'lost' }), { detail: 'the process ended while it was being sent' })
      lost += 1
    }
  }
  // Not only at its first look-up, which may be a quarter of an hour away; what is more than these waits for that.
  for (const { id, lastSentAt } of await ordering.db.query(purchasesInState('unknown', COUNTED_MAX))) {
    noteIntent(ordering, id, lastSentAt)
  }
  await spread(ordering)
  if (lost > 0) ordering.log.warn('purchases.resumed', { count: lost })
  return lost
}

async function spread({ db, now }: Ordering): Promise<void> {
  const start = now()
  for (let place = 0; ; ) {
    const due = await db.query(dueRefreshes(start, BATCH))
    if (due.length === 0) return
    await db.commit(
      due.map((purchase): Change => {
        const refreshAt = start + 1 + ((place * SPREAD_STEP_MS) % SPREAD_MS)
        place += 1
        return changePurchase(purchase, { refreshAt }, start)
      }),
    )
  }
}
