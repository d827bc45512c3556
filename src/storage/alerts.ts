import { and, asc, desc, eq, getTableColumns, gt, gte, isNull, not, sql } from 'drizzle-orm'
import type { StoredKind } from '../domain/alert-kinds.ts'
import type { Change } from './database.ts'
import { alertChannels, alertNotices, alerts, outbox, storeOrders } from './schema.ts'
import { build, change, insertMany, inWhole, statement, uniqueKey } from './statement.ts'
import { asInserted, changeBy, countBy, deleteBy, insertInto, page, rowsBy, someBy, stampOnce } from './table.ts'

export type Alert = typeof alerts.$inferSelect
export type AlertChannel = typeof alertChannels.$inferSelect

/** Alerts of the outbox that are not in the table of alerts yet, oldest first. Each has its order's reference and number in the store. */
export const untakenAlerts = statement((limit: number) =>
  build
    .select({ ...getTableColumns(outbox), reference: storeOrders.reference, number: storeOrders.number })
    .from(outbox)
    .leftJoin(storeOrders, eq(storeOrders.id, outbox.orderId))
    // SQLite uses the partial index of untaken alerts only where the values are written out, and not bound.
    .where(and(sql`${outbox.kind} = 'alert' and ${outbox.takenAt} is null`, gt(outbox.id, '')))
    .orderBy(asc(outbox.id))
    .limit(limit),
)

/** Marks an alert of the outbox as taken into the table of alerts. Stale when another process has taken the alert. */
export const markTaken = stampOnce(1, outbox, ['id'], 'takenAt')

export const insertAlert = insertInto(alerts)

export const alertById = rowsBy(alerts, ['id'])

/** Sorts kinds with few alerts before kinds with many, so that a flood of one kind hides no other kind. */
const rareFirst = sql`count(*) over (partition by ${alerts.type})`

/** Alerts of rare kinds come first, then the newest. */
export const openAlerts = someBy(alerts, [isNull(alerts.endedAt)], rareFirst, desc(alerts.id))

export const alertsEndedFrom = someBy(alerts, ['endedAt >='], desc(alerts.endedAt))

/** Alerts of one kind about one subject, the newest first. @param subject null: the service as a whole */
export const alertsAbout = (type: StoredKind, subject: string | null, limit: number) =>
  alertsAboutOne(type, subject ?? undefined, limit)
const alertsAboutOne = statement((type: StoredKind, subject: string | undefined, limit: number) =>
  build
    .select()
    .from(alerts)
    .where(and(eq(alerts.type, type), subject === undefined ? isNull(alerts.subject) : eq(alerts.subject, subject)))
    .orderBy(desc(alerts.id))
    .limit(limit),
)

export const endAlert = stampOnce('any', alerts, ['id'], 'endedAt')

export const listAlerts = page(alerts, [], {
  computed: { state: sql<'open' | 'ended'>`case when ${alerts.endedAt} is null then 'open' else 'ended' end` },
})

export const countOpenAlerts = countBy(alerts, ['type'], isNull(alerts.endedAt))

/** Acknowledges an open alert. A second acknowledgement changes nothing: the first person stays on record. */
export const acknowledgeAlert = changeBy('any', alerts, ['id', isNull(alerts.endedAt), isNull(alerts.acknowledgedAt)])

/** @param subject null: the service as a whole */
export const muteAlerts = change('any', (type: StoredKind, subject: string | null, until: number) =>
  build
    .update(alerts)
    .set({ mutedUntil: until })
    .where(and(eq(alerts.type, type), sql`${alerts.subject} is not distinct from ${subject}`)),
)

/** Unmutes alerts. People do not hear afterwards of an alert that ended while muted. @param subject null: the whole service */
export const unmuteAlerts = change('any', (type: StoredKind, subject: string | null, now: number) =>
  build
    .update(alerts)
    .set({
      mutedUntil: sql`case
        when ${alerts.endedAt} is null then null
        when ${alerts.mutedUntil} > ${now} then ${now}
        else ${alerts.mutedUntil} end`,
    })
    .where(and(eq(alerts.type, type), sql`${alerts.subject} is not distinct from ${subject}`)),
)

/** Deletes channels that are no longer configured, and their notices. */
export const forgetChannels = (kept: readonly string[]): Change[] => [
  dropChannels({ kept: [...kept] }),
  dropNotices({ kept: [...kept] }),
]
const dropChannels = change('any', ({ kept }: { kept: string[] }) =>
  build.delete(alertChannels).where(not(inWhole(alertChannels.channel, kept))),
)
const dropNotices = change('any', ({ kept }: { kept: string[] }) =>
  build.delete(alertNotices).where(not(inWhole(alertNotices.channel, kept))),
)

/** Deletes alerts that ended before an instant, and their notices. */
export const forgetAlerts = (before: number): Change[] => [forgetNoticesOf(before), forgetEnded(before)]
const forgetEnded = deleteBy(alerts, ['endedAt <'])
const forgetNoticesOf = change('any', (before: number) =>
  build
    .delete(alertNotices)
    .where(sql`${alertNotices.alert} in (select ${alerts.id} from ${alerts} where ${alerts.endedAt} < ${before})`),
)

/** Notes when a channel was connected. A second call changes nothing. */
export const connectChannel = change('any', (channel: string, now: number) =>
  build.insert(alertChannels).values({ channel, connectedAt: now }).onConflictDoNothing(),
)

export const alertChannelNamed = rowsBy(alertChannels, ['channel'])

export const allAlertChannels = rowsBy(alertChannels, [], alertChannels.channel)

export const changeChannel = changeBy(1, alertChannels, ['channel'])

const noticed = { ...getTableColumns(alerts), said: alertNotices.said, at: alertNotices.at, times: alertNotices.times }
const byChannel = (channel: string) => and(eq(alertNotices.alert, alerts.id), eq(alertNotices.channel, channel))

/** Open alerts, each with the channel's notice of it, if any. Alerts of rare kinds come first, then the newest. */
export const openForChannel = statement((channel: string, limit: number) =>
  build
    .select(noticed)
    .from(alerts)
    .leftJoin(alertNotices, byChannel(channel))
    .where(isNull(alerts.endedAt))
    .orderBy(rareFirst, desc(alerts.id))
    .limit(limit),
)

/** Alerts that ended since an instant; the alert that ended most recently comes first. */
export const endedForChannel = statement((channel: string, from: number, limit: number) =>
  build
    .select(noticed)
    .from(alerts)
    .leftJoin(alertNotices, byChannel(channel))
    .where(gte(alerts.endedAt, from))
    .orderBy(desc(alerts.endedAt))
    .limit(limit),
)

/** When the channel last sent a message about each kind of alert. Messages before an instant do not count. */
export const lastMessages = statement((channel: string, since: number) =>
  build
    .select({ type: alerts.type, at: sql<number>`max(${alertNotices.at})`.as('at') })
    .from(alertNotices)
    .innerJoin(alerts, eq(alerts.id, alertNotices.alert))
    .where(and(eq(alertNotices.channel, channel), gt(alertNotices.at, since)))
    .groupBy(alerts.type),
)

/** Stores notices. A later notice of a channel about the same alert replaces the earlier one. */
export const putNotices = insertMany(alertNotices, 'any', (insert) =>
  insert.onConflictDoUpdate({
    target: uniqueKey(alertNotices.channel, alertNotices.alert),
    set: asInserted(alertNotices, ['channel', 'alert']),
  }),
)
