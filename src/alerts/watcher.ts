/**
 * Keeps the table of alerts: takes in raised alerts, raises the watched conditions that no commit causes, and notes ends.
 */
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
/** The most alerts of one kind and subject that are compared with a new one. Further alerts differ only in their notes. */
const ALIKE_MAX = 50
/** The most open alerts that are looked at. */
const OPEN_MAX = 5_000
const DAY = 24 * 3_600_000
/** Alerts are kept as long as the rows of deliveries. */
const KEPT_MS = 90 * DAY
/** An alert that was over long before it was taken is no news. */
const OLD_MS = 30 * DAY

/** Takes the alerts raised since. A repeat of an open alert makes no second one. @returns how many raised alerts it took */
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

/** Returns how long a new alert is muted: a kind that is muted about a subject stays muted for the next alert of both. */
const mutedUntil = (alike: readonly Alert[], now: number): number | null => {
  const until = Math.max(0, ...alike.map((one) => one.mutedUntil ?? 0))
  return until > now ? until : null
}

/** Notes which alerts are over, and raises the standing conditions that have no open alert yet. */
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

/** The time between two checks of which alerts are over and which watched conditions stand. */
const CHECK_MS = 60_000

/** @returns a function that does a batch of watching, and resolves with how many alerts the batch took */
export function alertWatcher(watching: Watching): () => Promise<number> {
  let checkedAt = Number.NEGATIVE_INFINITY
  return async () => {
    const taken = await takeAlerts(watching)
    // The clock may be put back, so the time that has passed may be negative.
    if (taken > 0 || Math.abs(watching.now() - checkedAt) < CHECK_MS) return taken
    checkedAt = watching.now()
    await checkAlerts(watching)
    return takeAlerts(watching)
  }
}
