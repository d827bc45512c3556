import { and, asc, eq, gt, isNotNull, isNull, lte } from 'drizzle-orm'
import { workerCalls } from './schema.ts'
import { build, change, statement } from './statement.ts'
import { deleteBy, insertInto, stampOnce } from './table.ts'

export const insertWorkerCall = insertInto(workerCalls)

/** Calls that no worker has begun, the oldest first. @param askedAfter earlier calls are not waited for any more */
export const openWorkerCalls = statement((askedAfter: number, limit: number) =>
  build
    .select()
    .from(workerCalls)
    .where(and(isNull(workerCalls.begunAt), gt(workerCalls.askedAt, askedAfter)))
    .orderBy(asc(workerCalls.id))
    .limit(limit),
)

/** Begins a call. Stale where another process has begun the call, or the process that asked has given up. */
export const beginWorkerCall = stampOnce(1, workerCalls, ['id'], 'begunAt')

/** Stores the answer of a call. It touches no row where the call is not waited for any more. */
export const answerWorkerCall = change('any', (id: string, answer: Buffer) =>
  build.update(workerCalls).set({ answer }).where(eq(workerCalls.id, id)),
)

/** Takes back a call that no worker has begun. */
export const withdrawWorkerCall = change('any', (id: string) =>
  build.delete(workerCalls).where(and(eq(workerCalls.id, id), isNull(workerCalls.begunAt))),
)

export const answeredWorkerCall = statement((id: string) =>
  build
    .select()
    .from(workerCalls)
    .where(and(eq(workerCalls.id, id), isNotNull(workerCalls.answer))),
)

export const deleteWorkerCall = deleteBy(workerCalls, ['id'])

/** Deletes old calls: the process that asked has ended meanwhile. */
export const forgetWorkerCalls = change('any', (askedBefore: number) =>
  build.delete(workerCalls).where(lte(workerCalls.askedAt, askedBefore)),
)
