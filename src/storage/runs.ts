import { and, desc, eq, gt, inArray, lte, sql } from 'drizzle-orm'
import { sweeps, syncRuns } from './schema.ts'
import { build, statement } from './statement.ts'
import { changeBy, changeSeen, deleteBy, firstBy, insertInto, page, rowOf, rowsBy, setBy, setOne } from './table.ts'

export type SyncRun = typeof syncRuns.$inferSelect

export const syncRunById = rowsBy(syncRuns, ['id'])

export const listSyncRuns = page(syncRuns)

const isReal = eq(syncRuns.dry, false)
const isRunning = eq(syncRuns.state, 'running')

/**
 * The newest sync run that read the catalogue to its end. Its prices were pushed to the stores. With an `error`, it may not have
 * read all of the catalogue. Dry runs do not count.
 */
export const lastCompleteSync = firstBy(syncRuns, [eq(syncRuns.state, 'complete'), isReal], desc(syncRuns.id))

/** The newest sync run that ended by itself, complete or failed. Dry runs do not count. */
export const lastEndedSync = firstBy(
  syncRuns,
  [inArray(syncRuns.state, ['complete', 'failed']), isReal],
  desc(syncRuns.id),
)

/** A sync run that brought new offers and ended between two instants. Dry runs do not count. */
export const syncWithNewOffers = firstBy(syncRuns, ['finishedAt >', 'finishedAt <=', gt(syncRuns.offersNew, 0), isReal])

/** The sync run that is under way, or that a crash cut short; there is at most one, and it is no dry run. */
export const runningSyncRuns = rowsBy(syncRuns, [isRunning])

/** Guards the commit that starts a sync run: the commit is stale while another sync run is under way. */
export const assertNoRunningSync = setBy(0, syncRuns, [isRunning], { state: 'running' })

export const insertSyncRun = insertInto(syncRuns)
/** Returns a run as it is read once it is inserted. */
export const syncRunAsInserted = (run: typeof syncRuns.$inferInsert): SyncRun => rowOf(syncRuns, run)

/** Changes a sync run whose cursor is still as it was read, so that two processes cannot take the same page. */
export const changeSyncRun = changeSeen(1, syncRuns, ['id', 'cursor'], isRunning)

export type Sweep = typeof sweeps.$inferSelect

export const sweepById = rowsBy(sweeps, ['id'])

export const listSweeps = page(sweeps)

/** The newest complete sweep: every order in the supplier's list since its `fromAt` was readable. Comparisons may have failed. */
export const lastCompleteSweep = firstBy(sweeps, [eq(sweeps.state, 'complete')], desc(sweeps.id))

/** The newest sweep that looked back at least this many milliseconds. With `state`, only complete sweeps count. */
export const lastSweepOver = statement((lookBackMs: number, state?: 'complete') =>
  build
    .select()
    .from(sweeps)
    .where(and(lte(sweeps.fromAt, sql`${sweeps.startedAt} - ${lookBackMs}`), state && eq(sweeps.state, state)))
    .orderBy(desc(sweeps.id))
    .limit(1),
)

export const insertSweep = insertInto(sweeps)
/** Returns a sweep as it is read once it is inserted. */
export const sweepAsInserted = (sweep: typeof sweeps.$inferInsert): Sweep => rowOf(sweeps, sweep)

export const changeSweep = changeBy('any', sweeps, ['id', eq(sweeps.state, 'running')])

/** Marks sweeps as interrupted. A start commits this: a sweep that was under way ended with the process before. */
export const interruptSweeps = setOne('any', sweeps, [eq(sweeps.state, 'running')], 'finishedAt', {
  state: 'interrupted',
})

export const forgetSweeps = deleteBy(sweeps, ['id <'])
