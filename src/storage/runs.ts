import { and, desc, eq, gt, inArray, lte, sql } from 'drizzle-orm'
import { sweeps, syncRuns } from './schema.ts'
import { build, change, statement } from './statement.ts'
import { deleteBefore, insertInto, page, rowsBy } from './table.ts'

export type SyncRun = typeof syncRuns.$inferSelect

export const syncRunById = rowsBy(syncRuns, ['id'])

export const listSyncRuns = page(syncRuns)

/**
 * The last run that read the list to its end. Its prices were pushed to the stores. If it has an `error`, it is doubtful whether
 * it read the whole list. Dry runs do not count.
 */
export const lastCompleteSync = statement(() =>
  build
    .select({ startedAt: syncRuns.startedAt, finishedAt: syncRuns.finishedAt, error: syncRuns.error })
    .from(syncRuns)
    .where(and(eq(syncRuns.state, 'complete'), eq(syncRuns.dry, false)))
    .orderBy(desc(syncRuns.id))
    .limit(1),
)

/** The newest run that ended by itself, complete or failed. Dry runs do not count. */
export const lastEndedSync = statement(() =>
  build
    .select()
    .from(syncRuns)
    .where(and(inArray(syncRuns.state, ['complete', 'failed']), eq(syncRuns.dry, false)))
    .orderBy(desc(syncRuns.id))
    .limit(1),
)

/** A run that brought new offers and ended since then. Dry runs do not count, nor runs that a fast clock dated later than now. */
export const syncWithNewOffers = statement((since: number, now: number) =>
  build
    .select({ id: syncRuns.id })
    .from(syncRuns)
    .where(
      and(
        gt(syncRuns.finishedAt, since),
        lte(syncRuns.finishedAt, now),
        gt(syncRuns.offersNew, 0),
        eq(syncRuns.dry, false),
      ),
    )
    .limit(1),
)

/** The run that is under way, or that a crash cut short; there is at most one, and it is no dry run. */
export const runningSyncRuns = statement(() => build.select().from(syncRuns).where(eq(syncRuns.state, 'running')))

/** Guards the commit that starts a run: the commit is stale while another run is under way. */
export const assertNoRunningSync = change(0, () =>
  build.update(syncRuns).set({ state: 'running' }).where(eq(syncRuns.state, 'running')),
)

export const insertSyncRun = insertInto(syncRuns)

/** Changes a run whose cursor is still as it was read, so that two processes cannot take the same page twice. */
export const changeSyncRun = change(1, (seen: Pick<SyncRun, 'id' | 'cursor'>, set: Partial<SyncRun>) =>
  build
    .update(syncRuns)
    .set(set)
    .where(and(eq(syncRuns.id, seen.id), eq(syncRuns.cursor, seen.cursor), eq(syncRuns.state, 'running'))),
)

export type Sweep = typeof sweeps.$inferSelect

export const sweepById = rowsBy(sweeps, ['id'])

export const listSweeps = page(sweeps)

/** The newest sweep that compared everything it looked for. */
export const lastCompleteSweep = statement(() =>
  build.select().from(sweeps).where(eq(sweeps.state, 'complete')).orderBy(desc(sweeps.id)).limit(1),
)

/** The newest sweep that looked back at least this far. With `state`, only complete sweeps count. @param lookBackMs milliseconds */
export const lastSweepOver = statement((lookBackMs: number, state?: 'complete') =>
  build
    .select()
    .from(sweeps)
    .where(and(lte(sweeps.fromAt, sql`${sweeps.startedAt} - ${lookBackMs}`), state && eq(sweeps.state, state)))
    .orderBy(desc(sweeps.id))
    .limit(1),
)

export const insertSweep = insertInto(sweeps)

export const changeSweep = change('any', (id: string, set: Partial<Sweep>) =>
  build
    .update(sweeps)
    .set(set)
    .where(and(eq(sweeps.id, id), eq(sweeps.state, 'running'))),
)

/** Marks sweeps as interrupted. A start commits this: a sweep that was under way ended with the process before. */
export const interruptSweeps = change('any', (now: number) =>
  build.update(sweeps).set({ state: 'interrupted', finishedAt: now }).where(eq(sweeps.state, 'running')),
)

export const forgetSweeps = deleteBefore(sweeps, 'id')
