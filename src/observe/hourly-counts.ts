/**
 * What happened in each hour, added up in memory and written at each tick: a count of its own in each commit would cost an order
 * as much as a step of it. The plots lack what was counted since the last tick before the process was killed, and nothing else does.
 */
import { type ActivityName, type CountActivity, hourOf } from '../domain/activity.ts'
import type { Database } from '../storage/database.ts'
import { addHourlyCount } from '../storage/hourly-counts.ts'

export interface HourlyCounts {
  count: CountActivity
  /** Writes what was counted since the last call. @throws Failure; then it is written by the next call */
  write(): Promise<void>
}

export function createHourlyCounts({ db, now }: { db: Pick<Database, 'commit'>; now: () => number }): HourlyCounts {
  let waiting = new Map<string, { hour: number; name: ActivityName; part: string; count: number }>()
  const add = (hour: number, name: ActivityName, part: string, count: number): void => {
    const key = `${hour} ${name} ${part}`
    waiting.set(key, { hour, name, part, count: (waiting.get(key)?.count ?? 0) + count })
  }
  return {
    count: (name, count = 1, part = '') => add(hourOf(now()), name, part, count),
    async write() {
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
