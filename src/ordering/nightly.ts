import { NIGHTLY_MS, nightlyFrom, nightlyOverdue } from '../domain/sweep.ts'
import { lastSweepOver, oldestWrittenOff } from '../storage/sweeps.ts'
import type { Ordering } from './context.ts'

/** Where the sweep of thirty days begins now. */
export async function wholeFrom({ db, now }: Pick<Ordering, 'db' | 'now'>): Promise<number> {
  const [oldest] = await db.query(oldestWrittenOff(now() - NIGHTLY_MS))
  return nightlyFrom(now(), oldest?.sentAt ?? null)
}

/** Whether the last sweep of thirty days did not come to its end, or the service was down at its hour. */
export async function isOverdue({ db, now }: Pick<Ordering, 'db' | 'now'>): Promise<boolean> {
  const [[complete], [begun]] = await Promise.all([
    db.query(lastSweepOver(NIGHTLY_MS, 'complete')),
    db.query(lastSweepOver(NIGHTLY_MS)),
  ])
  return nightlyOverdue(now(), complete?.startedAt ?? null, begun?.startedAt ?? null)
}
