/**
 * Counts what happened in each hour. Counts are added up in memory and written at each tick: a count in every commit would cost an
 * order as much as one of its steps. If the process is killed, the counts since the last tick are lost; only the plots need them.
 */
import { type ActivityName, hourOf } from '../domain/activity.ts'
import type { Database } from '../storage/database.ts'
import { addHourlyCount } from '../storage/hourly-counts.ts'

export type HourlyCounts = ReturnType<typeof createHourlyCounts>

export function createHourlyCounts({ db, now }: { db: Pick<Database, 'commit'>; now: () => number }) {
  let waiting = new Map<string, { hour: number; name: ActivityName; part: string; count: number }>()
  const add = (hour: number, name: ActivityName, part: string, count: number): void => {
    const key = `${hour} ${name} ${part}`
    waiting.set(key, { hour, name, part, count: (waiting.get(key)?.count ?? 0) + count })
  }
  return {
    count: (name: ActivityName, count = 1, part = ''): void => add(hourOf(now()), name, part, count),
    /** Writes the counts since the previous call. @throws Failure; the next call then writes these counts */
    async write(): Promise<void> {
      const rows = [...waiting.values()].filter(({ count }) => count !== 0)
      waiting = new Map()
      try {
        await db.commit(rows.map(addHourlyCount))
      } catch (error) {
        for (const { hour, name, part, count } of rows) add(hour, name, part, count)
        throw error
      }
    },
  }
}
