import { desc, isNull } from 'drizzle-orm'
import { outages } from './schema.ts'
import { deleteBy, firstBy, insertInto, someBy, stampOnce } from './table.ts'

export type Outage = typeof outages.$inferSelect

/** The outage that is not known to be over; there is at most one such outage. */
export const openOutage = firstBy(outages, [isNull(outages.endedAt)])

/** Ended outages that lie at least in part between two instants, newest first. */
export const outagesBetween = someBy(outages, ['endedAt >=', 'beganAt <='], desc(outages.endedAt))

export const insertOutage = insertInto(outages)

export const endOutage = stampOnce('any', outages, ['id'], 'endedAt')

export const forgetOutages = deleteBy(outages, ['id <'])
