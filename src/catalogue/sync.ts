/**
 * The catalogue: what the supplier sells, kept true by sync runs and by the supplier's events.
 *
 * A sync run reads the catalogue page by page, the next one asked for while one is being stored, and holds two at a time.
 * A page on which offers differ is one commit: the offers, the changes people see, what the stores are owed, and the
 * cursor; one on which nothing changed writes nothing. After a kill a run goes on where it was.
 *
 * What may go wrong: a page that cannot be had is stepped over, and the run ends as failed; a list that is short, or that
 * moves while it is read, leaves the run complete but with a doubt in its `error`. Either way nothing is counted as
 * missing, and only an offer that two runs without doubt missed is marked gone (`gone.ts`).
 */
import { Failure } from '../errors.ts'
import { StaleWrite } from '../storage/database.ts'
import { assertNoRunningSync, insertSyncRun, runningSyncRuns, type SyncRun, syncRunById } from '../storage/sync-runs.ts'
import type { Catalogue } from './context.ts'
import { readRun } from './sync-run.ts'

export interface StartedSync {
  runId: string
  /** False when a run was under way: it is that one, whether it is being read or was cut short by a crash. */
  created: boolean
}

/**
 * Creates a run, or finds the one that is under way: there is never more than one. `runSync` reads it.
 *
 * @param cause why: `schedule`, `start`, `tier_changed`, `resumed` (one that was cut short has ended), or who asked
 */
export async function startSync(
  { db, now, newId, log }: Pick<Catalogue, 'db' | 'now' | 'newId' | 'log'>,
  cause: string,
): Promise<StartedSync> {
  for (;;) {
    const [running] = await db.query(runningSyncRuns())
    if (running) return { runId: running.id, created: false }
    const runId = newId()
    try {
      await db.commit([
        assertNoRunningSync(),
        insertSyncRun({ id: runId, cause, state: 'running', startedAt: now(), cursor: 1 }),
      ])
    } catch (error) {
      // Somebody else started one in between; the next round finds it.
      if (error instanceof StaleWrite) continue
      throw error
    }
    log.info('sync.started', { runId, reason: cause })
    return { runId, created: true }
  }
}

/**
 * Reads a run to its end, from its cursor; one that has ended is left alone.
 *
 * @returns the run: `complete`, `failed` with the supplier's reason, or still `running` when the signal stopped it
 * @throws Failure `not_found` when there is no such run; `conflict` when somebody else reads it at the same time
 */
export async function runSync(catalogue: Catalogue, runId: string): Promise<SyncRun> {
  const [run] = await catalogue.db.query(syncRunById(runId))
  if (!run) throw new Failure('not_found', `there is no sync run ${runId}`)
  return run.state === 'running' ? readRun(catalogue, run) : run
}
