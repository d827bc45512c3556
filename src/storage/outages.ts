import { and, desc, eq, gte, isNull, lt, lte } from 'drizzle-orm'
import { outages } from './schema.ts'
import { build, change, statement } from './statement.ts'

export type Outage = typeof outages.$inferSelect

/** The outage that is not over as far as is known; at most one. */
export const openOutage = statement(() => build.select().from(outages).where(isNull(outages.endedAt)).limit(1))

/** Outages that are over and of which a part lies between two instants, newest first. */
export const outagesBetween = statement((from: number, to: number, limit: number) =>
  build
    .select()
    .from(outages)
    .where(and(gte(outages.endedAt, from), lte(outages.beganAt, to)))
    .orderBy(desc(outages.endedAt))
    .limit(limit),
)

export const insertOutage = change(1, (row: typeof outages.$inferInsert) => build.insert(outages).values(row))

export const endOutage = change('any', (id: string, endedAt: number) =>
  build
    .update(outages)
    .set({ endedAt })
    .where(and(eq(outages.id, id), isNull(outages.endedAt))),
)

/** @param beforeId see `idBound` */
export const forgetOutages = change('any', (beforeId: string) => build.delete(outages).where(lt(outages.id, beforeId)))
