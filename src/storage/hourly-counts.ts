import { and, gte, lt, sql } from 'drizzle-orm'
import type { ActivityCount } from '../domain/activity.ts'
import { hourlyCounts } from './schema.ts'
import { build, change, statement, uniqueKey } from './statement.ts'
import { deleteBy } from './table.ts'

export const addHourlyCount = change(1, (row: typeof hourlyCounts.$inferInsert) =>
  build
    .insert(hourlyCounts)
    .values(row)
    .onConflictDoUpdate({
      target: uniqueKey(hourlyCounts.hour, hourlyCounts.name, hourlyCounts.part),
      set: { count: sql`${hourlyCounts.count} + excluded.count` },
    }),
)

/** The counts between two instants, added up in steps of several hours. @param stepMs the length of a step: whole hours */
export const countsBetween = statement((from: number, to: number, stepMs: number) =>
  build
    .select({
      at: sql<number>`${hourlyCounts.hour} - ${hourlyCounts.hour} % ${stepMs}`.as('at'),
      name: sql<ActivityCount['name']>`${hourlyCounts.name}`.as('name'),
      part: hourlyCounts.part,
      count: sql<number>`sum(${hourlyCounts.count})`.as('count'),
    })
    .from(hourlyCounts)
    .where(and(gte(hourlyCounts.hour, from), lt(hourlyCounts.hour, to)))
    .groupBy(sql`1`, hourlyCounts.name, hourlyCounts.part),
)

/** The first hour that is counted; null in a new installation. */
export const firstCountedHour = statement(() =>
  build.select({ at: sql<number | null>`min(${hourlyCounts.hour})`.as('at') }).from(hourlyCounts),
)

export const forgetHourlyCounts = deleteBy(hourlyCounts, ['hour <'])
