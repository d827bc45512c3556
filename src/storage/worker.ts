import { isNotNull, isNull } from 'drizzle-orm'
import type { Change } from './database.ts'
import { workerCalls, workerLease } from './schema.ts'
import { jsonSetting } from './settings.ts'
import { changeBy, deleteBy, insertInto, rowsBy, someBy, stampOnce } from './table.ts'

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

export const insertWorkerCall = insertInto(workerCalls)

/** Calls that no worker has begun, oldest first. Calls from before an instant are left out: their caller has given up. */
export const openWorkerCalls = someBy(workerCalls, [isNull(workerCalls.begunAt), 'askedAt >'], workerCalls.id)

/** Begins a call. Stale where another process has begun the call, or the process that asked has given up. */
export const beginWorkerCall = stampOnce(1, workerCalls, ['id'], 'begunAt')

/** Stores the answer of a call. Touches no row when the call was deleted because its caller has given up. */
export const answerWorkerCall = changeBy('any', workerCalls, ['id'])

/** Takes back a call that no worker has begun. */
export const withdrawWorkerCall = deleteBy(workerCalls, ['id', isNull(workerCalls.begunAt)])

export const answeredWorkerCall = rowsBy(workerCalls, ['id', isNotNull(workerCalls.answer)])

export const deleteWorkerCall = deleteBy(workerCalls, ['id'])

/** Deletes old calls: the process that asked has ended meanwhile. */
export const forgetWorkerCalls = deleteBy(workerCalls, ['askedAt <='])
