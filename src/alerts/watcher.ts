/** Keeps the table of alerts: takes raised alerts in, raises alerts about conditions such as a low balance, and records ends. */
import type { Context } from '../context.ts'
import type { Condition } from '../domain/conditions.ts'
import { readStatus } from '../observe/status.ts'
import {
  type Alert,
  alertsAbout,
  endAlert,
  forgetAlerts,
  insertAlert,
  markTaken,
  openAlerts,
  untakenAlerts,
} from '../storage/alerts.ts'
import type { Change } from '../storage/database.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import type { AlertFacts, ServiceFacts } from './facts.ts'
import { alertOf, isOver, saysOf } from './kinds.ts'

export interface Watching extends Pick<Context, 'db' | 'now' | 'newId' | 'log'> {
  service: ServiceFacts
  /** Wakes the outbox, which writes raised alerts to the log. */
  wakeOutbox: () => void
}

/** The most alerts that one commit takes. */
const BATCH = 200
/** The most earlier alerts of its kind and subject with which a new alert is compared. The new alert may repeat one of them. */
const ALIKE_MAX = 50
/** The most open alerts that one check reads. */
const OPEN_MAX = 5_000
const DAY = 24 * 3_600_000
/** Alerts are kept as long as the rows of deliveries. */
const KEPT_MS = 90 * DAY
/** An alert that was raised longer ago than this is not taken any more: it is no news. */
const OLD_MS = 30 * DAY

/** Takes newly raised alerts into the table of alerts, but no repeat of an open alert. @returns how many raised alerts it read */
export async function takeAlerts({ db, now }: Pick<Watching, 'db' | 'now'>): Promise<number> {
  const rows = await db.query(untakenAlerts(BATCH))
  const taken = new Set<string>()
  const changes: Change[] = []
  for (const row of rows) {
    changes.push(markTaken(row.id, now()))
    const alert = alertOf(row)
    if (taken.has(saysOf(alert)) || now() - alert.raisedAt > OLD_MS) continue
    const alike = await db.query(alertsAbout(alert.type, alert.subject, ALIKE_MAX))
    if (alike.some((one) => one.endedAt === null && saysOf(one) === saysOf(alert))) continue
    taken.add(saysOf(alert))
    changes.push(insertAlert({ ...alert, mutedUntil: mutedUntil(alike, now()) }))
  }
  if (changes.length > 0) await db.commit(changes)
  return rows.length
}

/** Returns until when a new alert is muted: as long as any earlier alert of the same kind and subject. */
const mutedUntil = (alike: readonly Alert[], now: number): number | null => {
  const until = Math.max(0, ...alike.map((one) => one.mutedUntil ?? 0))
  return until > now ? until : null
}

/** Records which alerts are over. Raises an alert for each condition that is true and has no open alert yet. */
export async function checkAlerts(watching: Watching): Promise<void> {
  const { db, now, service } = watching
  const status = await readStatus(db)
  const facts: AlertFacts = { ...service, db, status, now: now(), conditions: await service.conditions(status) }
  const ended: Change[] = []
  const open: Alert[] = []
  for (const alert of await db.query(openAlerts(OPEN_MAX))) {
    if (await isOver(alert, facts)) ended.push(endAlert(alert.id, now()))
    else open.push(alert)
  }
  const raised = facts.conditions.filter(
    ({ type, store }) => !open.some((alert) => alert.type === type && (alert.payload.store ?? null) === store),
  )
  const changes = [...ended, ...raised.map((condition) => raise(watching, condition)), ...forgetAlerts(now() - KEPT_MS)]
  await db.commit(changes)
  if (raised.length > 0) watching.wakeOutbox()
}

const raise = (watching: Watching, { type, store, note }: Condition): Change =>
  enqueueAlert(watching, {
    type,
    occasion: `${store ?? ''}:${watching.now()}`,
    payload: store === null ? { note } : { note, store },
  })

/** The time between two calls of `checkAlerts`. */
const CHECK_MS = 60_000

/** Returns a function that does one batch: it takes raised alerts, or calls `checkAlerts` when there is none to take. */
export function alertWatcher(watching: Watching): () => Promise<number> {
  let checkedAt = Number.NEGATIVE_INFINITY
  return async () => {
    const taken = await takeAlerts(watching)
    // The difference is negative if the clock was put back.
    if (taken > 0 || Math.abs(watching.now() - checkedAt) < CHECK_MS) return taken
    checkedAt = watching.now()
    await checkAlerts(watching)
    return takeAlerts(watching)
  }
}
