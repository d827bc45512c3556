import { and, desc, gte, isNull, lte } from 'drizzle-orm'
import { outages } from './schema.ts'
import { build, statement } from './statement.ts'
import { deleteBefore, insertInto, stampOnce } from './table.ts'

export type Outage = typeof outages.$inferSelect

/** The outage that is not known to be over; there is at most one such outage. */
export const openOutage = statement(() => build.select().from(outages).where(isNull(outages.endedAt)).limit(1))

/** Ended outages that lie at least in part between two instants, newest first. */
export const outagesBetween = statement((from: number, to: number, limit: number) =>
  build
    .select()
    .from(outages)
    .where(and(gte(outages.endedAt, from), lte(outages.beganAt, to)))
    .orderBy(desc(outages.endedAt))
    .limit(limit),
)

export const insertOutage = insertInto(outages)

export const endOutage = stampOnce('any', outages, ['id'], 'endedAt')

export const forgetOutages = deleteBefore(outages, 'id')
