/** Alerts as the status and the lists show them. */
import type { StoredStatus } from '../observe/status.ts'
import { type Alert, alertsEndedFrom, openAlerts, untakenAlerts } from '../storage/alerts.ts'
import type { Database } from '../storage/database.ts'
import type { AlertFacts, ServiceFacts } from './facts.ts'
import { alertOf, commandOf, isOver, orderIn, ruleOf, saysOf } from './kinds.ts'

export type StandingAlert = ReturnType<typeof standingOf>

/** The most alerts of each state that are shown. */
const ALERTS_MAX = 200

/** For how long an alert is still shown after its end. */
const OVER_SHOWN_MS = 24 * 3_600_000

/** Returns the open alerts and those that ended within the last day, newest first. Equal alerts become one. */
export async function readAlerts(
  db: Database,
  status: StoredStatus,
  service: ServiceFacts,
  now: number,
): Promise<StandingAlert[]> {
  const facts: AlertFacts = { ...service, db, status, now, conditions: await service.conditions(status) }
  const [fresh, open, ended] = await Promise.all([
    db.query(untakenAlerts(ALERTS_MAX)),
    db.query(openAlerts(ALERTS_MAX)),
    db.query(alertsEndedFrom(now - OVER_SHOWN_MS, ALERTS_MAX)),
  ])
  const seen = new Set<string>()
  const shown: StandingAlert[] = []
  for (const alert of [...open, ...fresh.map(alertOf).reverse(), ...ended]) {
    if (seen.has(saysOf(alert))) continue
    seen.add(saysOf(alert))
    const over = await isOver(alert, facts)
    if (!over || now - (alert.endedAt ?? alert.raisedAt) <= OVER_SHOWN_MS) shown.push(standingOf(alert, over))
  }
  return shown.sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1))
}

/**
 * Returns an alert as the lists show it: `at` is when it was raised, in epoch milliseconds, and `command` is to be typed first.
 *
 * @param isOver the trouble is over; default: whether the row records an end
 */
export function standingOf(row: Alert, isOver = row.endedAt !== null) {
  const { payload, raisedAt: at, ...alert } = row
  const { severity, advice } = ruleOf(alert.type)
  return { ...alert, order: orderIn(payload), severity, advice, command: commandOf(alert), at, isOver }
}
