import { and, eq } from 'drizzle-orm'
import { workerLease } from './schema.ts'
import { jsonSetting } from './settings.ts'
import { build, change } from './statement.ts'

/** A process that acts for all: the worker. */
export interface WorkerLease {
  /** A number that grows by one with each process that takes the lease. */
  epoch: number
  /** Name of the process. */
  owner: string
  /** The identity of the database now, and when the previous worker began; null: there was no previous worker. */
  server: string
  serverBefore: string | null
  /** The id of this database among those of its server. */
  database: string
  /** Whether the lease surely still runs. A clock that never jumps decides, so that nothing is sent after the lease ends. */
  isHeld(): boolean
  /** From here on nothing is written by this process unless the lease is its own and the database the same. */
  fence(): void
  /** Gives it back, so that another process need not wait for its end. */
  release(): Promise<void>
}

/** Notes which database it is; refused where another process has taken the lease. */
export const noteServer = change(1, ({ epoch, owner, server }: Pick<WorkerLease, 'epoch' | 'owner' | 'server'>) =>
  build
    .update(workerLease)
    .set({ server })
    .where(and(eq(workerLease.epoch, epoch), eq(workerLease.owner, owner))),
)

/** The database of the worker that began last. A version before this one neither notes nor reads it. */
export const workerDatabase = jsonSetting<string>('worker_database')
