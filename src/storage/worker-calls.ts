import { and, asc, eq, gt, isNotNull, isNull, lte } from 'drizzle-orm'
import { workerCalls } from './schema.ts'
import { build, change, statement } from './statement.ts'

export const insertWorkerCall = change(1, (row: typeof workerCalls.$inferInsert) =>
  build.insert(workerCalls).values(row),
)

/** Those that no worker has begun, the oldest first. @param askedAfter those before are not waited for any more */
export const openWorkerCalls = statement((askedAfter: number, limit: number) =>
  build
    .select()
    .from(workerCalls)
    .where(and(isNull(workerCalls.begunAt), gt(workerCalls.askedAt, askedAfter)))
    .orderBy(asc(workerCalls.id))
    .limit(limit),
)

/** Fails where another process has begun it, or who asked has given up. */
export const beginWorkerCall = change(1, (id: string, begunAt: number) =>
  build
    .update(workerCalls)
    .set({ begunAt })
    .where(and(eq(workerCalls.id, id), isNull(workerCalls.begunAt))),
)

/** Touches no row where it is not waited for any more. */
export const answerWorkerCall = change('any', (id: string, answer: Buffer) =>
  build.update(workerCalls).set({ answer }).where(eq(workerCalls.id, id)),
)

/** Takes a call back that no worker has begun. */
export const withdrawWorkerCall = change('any', (id: string) =>
  build.delete(workerCalls).where(and(eq(workerCalls.id, id), isNull(workerCalls.begunAt))),
)

export const answeredWorkerCall = statement((id: string) =>
  build
    .select()
    .from(workerCalls)
    .where(and(eq(workerCalls.id, id), isNotNull(workerCalls.answer))),
)

export const deleteWorkerCall = change('any', (id: string) => build.delete(workerCalls).where(eq(workerCalls.id, id)))

/** What a process asked that has ended meanwhile. */
export const forgetWorkerCalls = change('any', (askedBefore: number) =>
  build.delete(workerCalls).where(lte(workerCalls.askedAt, askedBefore)),
)
