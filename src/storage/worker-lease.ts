import type { Change } from './database.ts'
import { workerLease } from './schema.ts'
import { jsonSetting } from './settings.ts'
import { changeBy } from './table.ts'

/** The lease that makes a process the worker: the one process that acts for all. */
export interface WorkerLease {
  /** A number that grows by one with each process that takes the lease. */
  epoch: number
  /** Name of the process. */
  owner: string
  /** The identity of the database now, and its identity when the previous worker began; null without a previous worker. */
  server: string
  serverBefore: string | null
  /** The id of this database among the databases of its server. */
  database: string
  /** Whether the lease surely still runs. A clock that never jumps decides, so that nothing is sent after the lease ends. */
  isHeld(): boolean
  /** From here on, every commit of this process requires that the lease is still its own and the database still the same. */
  fence(): void
  /** Gives the lease back, so that another process need not wait for its end. */
  release(): Promise<void>
}

/** Notes which database this is. The change is stale where another process has taken the lease. */
export const noteServer = ({ epoch, owner, server }: Pick<WorkerLease, 'epoch' | 'owner' | 'server'>): Change =>
  changeLease(epoch, owner, { server })
const changeLease = changeBy(1, workerLease, ['epoch', 'owner'])

/** The id of the database of the worker that began last. Earlier versions of the program do not have this setting. */
export const workerDatabase = jsonSetting<string>('worker_database')
