import { and, desc, eq, inArray, lt } from 'drizzle-orm'
import { build } from './builder.ts'
import type { Change } from './database.ts'
import { syncRuns } from './schema.ts'

export type SyncRun = typeof syncRuns.$inferSelect

/** The first record of a run that could not be read, as `first_unreadable` keeps it in JSON. */
export interface FirstUnreadable {
  /** The setting of the dialect: `product.available`. */
  field: string
  /** Where the dialect says that the field is. */
  path: string
  /** What is there, for people. */
  value: string
}

export const syncRunById = (id: string) => build.select().from(syncRuns).where(eq(syncRuns.id, id))

export const listSyncRuns = (filter: { before?: string; limit: number }) =>
  build
    .select()
    .from(syncRuns)
    .where(filter.before ? lt(syncRuns.id, filter.before) : undefined)
    .orderBy(desc(syncRuns.id))
    .limit(filter.limit)

/** The last run that read the whole list; its prices are those that the stores were told. */
export const lastCompleteSync = () =>
  build
    .select({ finishedAt: syncRuns.finishedAt })
    .from(syncRuns)
    .where(eq(syncRuns.state, 'complete'))
    .orderBy(desc(syncRuns.id))
    .limit(1)

/** The newest run that ended by itself, whatever came of it. */
export const lastEndedSync = () =>
  build
    .select()
    .from(syncRuns)
    .where(inArray(syncRuns.state, ['complete', 'failed']))
    .orderBy(desc(syncRuns.id))
    .limit(1)

/** The run that a crash cut short; there is at most one. */
export const runningSyncRuns = () => build.select().from(syncRuns).where(eq(syncRuns.state, 'running'))

/** Part of the commit that starts a run: fails as stale while one is under way. */
export const assertNoRunningSync = (): Change => ({
  statement: build.update(syncRuns).set({ state: 'running' }).where(eq(syncRuns.state, 'running')),
  rows: 0,
})

export const insertSyncRun = (row: typeof syncRuns.$inferInsert): Change => ({
  statement: build.insert(syncRuns).values(row),
  rows: 1,
})

/** Guarded on the cursor: two processes cannot take the same page twice. */
export const changeSyncRun = (seen: Pick<SyncRun, 'id' | 'cursor'>, set: Partial<SyncRun>): Change => ({
  statement: build
    .update(syncRuns)
    .set(set)
    .where(and(eq(syncRuns.id, seen.id), eq(syncRuns.cursor, seen.cursor), eq(syncRuns.state, 'running'))),
  rows: 1,
})
