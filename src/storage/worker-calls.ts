import { isNotNull, isNull } from 'drizzle-orm'
import { workerCalls } from './schema.ts'
import { changeBy, deleteBy, insertInto, rowsBy, someBy, stampOnce } from './table.ts'

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
