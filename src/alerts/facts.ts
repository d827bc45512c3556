/** Reads the facts that decide whether an alert is over, and the conditions that raise alerts, such as a low balance. */
import { stat, statfs } from 'node:fs/promises'
import path from 'node:path'
import { createTask } from 'node-cron'
import type { Config } from '../config/config.ts'
import {
  type Condition,
  type ConditionFacts,
  type ConditionLimits,
  standingConditions,
  syncStaleMs,
} from '../domain/conditions.ts'
import { parseDecimal } from '../domain/money.ts'
import { publicationTriesOf } from '../domain/pace.ts'
import type { StoredStatus } from '../observe/status.ts'
import type { Database } from '../storage/database.ts'
import { countsBetween, firstCountedHour } from '../storage/hourly-counts.ts'
import { storesNotTaking } from '../storage/outbox.ts'
import type { Supplier } from '../supplier/client.ts'

/** What only the running service knows. */
export interface ServiceFacts {
  supplier: Pick<Supplier, 'unreadable' | 'isJudged' | 'reach'>
  clockSuspect: () => boolean
  /** The stores of the configuration. */
  stores: readonly { id: string }[]
  /** When the newest backup was made; undefined when there is none. */
  lastBackupAt: () => number | undefined
  /** The watched conditions that are true now. */
  conditions: (status: StoredStatus) => Promise<readonly Condition[]>
}

export interface AlertFacts extends Omit<ServiceFacts, 'conditions'> {
  db: Database
  status: StoredStatus
  now: number
  conditions: readonly Condition[]
}

/** The sources of the watched conditions: balance, spend, freshness, stores, deliveries, disk, backups. */
export interface ConditionSources {
  db: Database
  /** Epoch milliseconds. */
  now: () => number
  stores: readonly { id: string }[]
  currency: string
  limits: ConditionLimits
  /** True while deliveries come and none has a valid signature, as with a wrong signing secret. */
  secretSuspect: () => boolean
  lastBackupAt: () => number | undefined
  /** When this installation was made. */
  installedAt: number
  /** Returns the free room of the data folder's disk; null where it is not known. */
  diskFreeMb: () => Promise<number | null>
}

const HOUR = 3_600_000
const DAY = 24 * HOUR
/** How long the balance lasts is computed from what was spent within this time. */
const SPEND_MS = 7 * DAY
/** A store counts as refusing updates after this many failures in a row, which take some five minutes. */
const TRIES_MIN = 3
/** The most waiting updates to stores that one check reads. */
const UPDATES_MAX = 10_000

export async function readConditions(sources: ConditionSources, status: StoredStatus): Promise<Condition[]> {
  const { db, stores, limits, secretSuspect, lastBackupAt, installedAt } = sources
  const now = sources.now()
  const [minor, notTaking, diskFreeMb] = await Promise.all([
    spendOf(sources, now),
    db.query(storesNotTaking(TRIES_MIN, UPDATES_MAX)),
    sources.diskFreeMb(),
  ])
  const isConfigured = (store: string | null): store is string => stores.some(({ id }) => id === store)
  const facts: ConditionFacts = {
    now,
    balance: status.balance ?? null,
    spend: minor,
    catalogueReadAt: status.completeSync?.finishedAt ?? null,
    backupAt: lastBackupAt() ?? null,
    installedAt,
    listingsRefusedBy: status.publishing.flatMap((pause) =>
      pause.attempts >= publicationTriesOf(pause) && isConfigured(pause.store)
        ? [{ store: pause.store, error: pause.lastError }]
        : [],
    ),
    updatesRefusedBy: notTaking.flatMap(({ store, error }) => (isConfigured(store) ? [{ store, error }] : [])),
    deliveriesRefused: secretSuspect(),
    diskFreeMb,
  }
  return standingConditions(facts, limits)
}

async function spendOf({ db, currency }: ConditionSources, now: number): Promise<ConditionFacts['spend']> {
  const [counts, [since]] = await Promise.all([
    db.query(countsBetween(now - SPEND_MS, now + 1, HOUR)),
    db.query(firstCountedHour()),
  ])
  const own = counts.filter(({ name, part }) => name === 'spend' && part === currency)
  const from = Math.max(now - SPEND_MS, since?.at ?? now)
  return { minor: own.reduce((sum, { count }) => sum + count, 0), days: Math.max(1, (now - from) / DAY) }
}

export function limitsOf({ alerts, syncCron, backups, dialectFacts }: Config): ConditionLimits {
  const { balanceBelow, balanceDays, syncStaleHours, diskFreeMb } = alerts
  const { currency } = dialectFacts.money
  return {
    balanceBelowMinor: balanceBelow === null ? null : (parseDecimal(balanceBelow, currency) ?? null),
    balanceDays,
    syncStaleMs: syncStaleHours === null ? syncStaleMs(everyMs(syncCron)) : syncStaleHours * HOUR,
    backupMissingMs: backups.cron === null ? null : 2 * everyMs(backups.cron),
    diskFreeMb,
  }
}

/** How many coming runs of a schedule are read to find its longest gap. Ten daily runs on working days include a weekend. */
const RUNS = 10

/** Returns the longest gap between the next runs of a schedule, in milliseconds. */
export function everyMs(cron: string): number {
  const task = createTask(cron, () => {})
  const runs = task.getNextRuns(RUNS).map((at) => at.getTime())
  void task.destroy()
  return Math.max(...runs.slice(1).map((at, index) => at - (runs[index] ?? at)))
}

const MB = 1_048_576

/** Returns the room that is left for the service on the disk of a folder; null where the system does not say. */
export async function diskFreeMb(folder: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(folder)
    return Math.floor((bavail * bsize) / MB)
  } catch {
    return null
  }
}

export const madeAt = async (folder: string): Promise<number> => (await stat(path.resolve(folder))).birthtimeMs
