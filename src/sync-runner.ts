import type { Catalogue } from './catalogue/context.ts'
import { runSync, startSync } from './catalogue/sync.ts'
import { Failure, messageOf } from './errors.ts'
import { type SyncRun, syncRunById } from './storage/sync-runs.ts'

export interface SyncRunner {
  /** Starts a run, or joins the one under way, and returns it as it stands now. */
  start: (cause: string) => Promise<SyncRun>
  /** Starts or joins a run and resolves when it has ended. */
  finish: (cause: string) => Promise<void>
  /** Asks for one more run after the one under way. */
  follow: (cause: string) => void
  idle: () => Promise<void>
}

/** Sees to it that one sync run is read at a time, whoever asks for it, and each page of the list soon after a crash. */
export function createSyncRunner(catalogue: Catalogue): SyncRunner {
  let running: Promise<void> | undefined
  let next: string | undefined

  const read = (runId: string): void => {
    running ??= runSync(catalogue, runId)
      .then(() => undefined)
      .catch((error: unknown) => catalogue.log.warn('sync.trouble', { runId, error: messageOf(error) }))
      .finally(() => {
        running = undefined
        const cause = next
        next = undefined
        if (cause !== undefined && !catalogue.signal?.aborted) void start(cause).catch(() => undefined)
      })
  }
  const start = async (cause: string): Promise<SyncRun> => {
    if (catalogue.signal?.aborted) throw new Failure('unavailable', 'the service is being stopped')
    const { runId, created } = await startSync(catalogue, cause)
    const [run] = await catalogue.db.query(syncRunById(runId))
    // What it read before it was cut short may be long ago: a run that reads all of it follows.
    if (!created && running === undefined && run?.state === 'running' && run.pages > 0) next ??= 'resumed'
    read(runId)
    if (!run) throw new Failure('internal', `the sync run ${runId} is gone`)
    return run
  }
  return {
    start,
    finish: async (cause) => {
      await start(cause)
      await running
    },
    follow: (cause) => {
      if (running !== undefined) next = cause
      else void start(cause).catch((error: unknown) => catalogue.log.warn('sync.trouble', { error: messageOf(error) }))
    },
    idle: async () => {
      while (running !== undefined) await running
    },
  }
}
