/** Conditions are problems that no event reports, such as a low balance. Each condition is an alert for as long as it lasts. */
import { daysLeft } from './activity.ts'
import { lastsText } from './figures.ts'
import { amountText } from './money.ts'

/** The facts by which conditions are judged. Instants in epoch milliseconds, amounts in minor units. */
export interface ConditionFacts {
  now: number
  balance: { amountMinor: number; currency: string } | null
  /** What was spent in the last days, and the number of these days. */
  spend: { minor: number; days: number }
  /** Null: the catalogue was never read completely. */
  catalogueReadAt: number | null
  /** Null: there is no backup. */
  backupAt: number | null
  /** If there never was a catalogue or a backup, its age counts from this instant. */
  installedAt: number
  /** Stores that failed to take listings several times in a row, and stores that failed to take updates of their orders. */
  listingsRefusedBy: { store: string; error: string | null }[]
  updatesRefusedBy: { store: string; error: string | null }[]
  /** Deliveries came, and each of them had a wrong signature. */
  deliveriesRefused: boolean
  /** Null: not known. */
  diskFreeMb: number | null
}

/** The limits of the conditions; null switches a condition off. */
export interface ConditionLimits {
  balanceBelowMinor: number | null
  balanceDays: number | null
  syncStaleMs: number | null
  backupMissingMs: number | null
  diskFreeMb: number | null
}

export interface Condition {
  type:
    | 'balance_below'
    | 'balance_runs_out'
    | 'sync_stale'
    | 'listings_not_taken'
    | 'updates_not_taken'
    | 'deliveries_refused'
    | 'disk_low'
    | 'backup_missing'
  /** The store that the condition is about; null: it is about the service as a whole. */
  store: string | null
  /** What is wrong, as a sentence. */
  note: string
}

const HOUR = 3_600_000

export function standingConditions(facts: ConditionFacts, limits: ConditionLimits): Condition[] {
  const { now, balance, spend, catalogueReadAt, backupAt, installedAt, diskFreeMb } = facts
  const standing: Condition[] = []
  const add = (type: Condition['type'], note: string, store: string | null = null) =>
    standing.push({ type, store, note })
  if (balance) {
    const { amountMinor, currency } = balance
    const text = (minor: number) => amountText(minor, currency)
    const { balanceBelowMinor, balanceDays } = limits
    if (balanceBelowMinor !== null && amountMinor < balanceBelowMinor) {
      add('balance_below', `the balance is ${text(amountMinor)}, less than ${text(balanceBelowMinor)}`)
    }
    const left = daysLeft(amountMinor, spend.minor, spend.days)
    if (balanceDays !== null && left !== null && left < balanceDays) {
      const note = `the balance of ${text(amountMinor)} lasts ${lastsText(left)} at what was spent lately`
      add('balance_runs_out', note)
    }
  }
  const isOlder = (at: number | null, ms: number | null) => ms !== null && now - (at ?? installedAt) > ms
  if (isOlder(catalogueReadAt, limits.syncStaleMs)) {
    add('sync_stale', `the catalogue was not read completely ${sinceText(catalogueReadAt, 'so far')}`)
  }
  if (isOlder(backupAt, limits.backupMissingMs)) {
    add('backup_missing', `no backup was made ${sinceText(backupAt, 'so far')}`)
  }
  for (const { store, error } of facts.listingsRefusedBy) {
    add('listings_not_taken', `${store} takes no listings: ${error ?? 'it does not say why'}`, store)
  }
  for (const { store, error } of facts.updatesRefusedBy) {
    add(
      'updates_not_taken',
      `${store} does not take what is sent of its orders: ${error ?? 'it does not say why'}`,
      store,
    )
  }
  if (facts.deliveriesRefused) {
    add('deliveries_refused', 'the signatures of the last deliveries do not fit, and none came whose signature does')
  }
  if (limits.diskFreeMb !== null && diskFreeMb !== null && diskFreeMb < limits.diskFreeMb) {
    add('disk_low', `the disk of the data folder has ${diskFreeMb} MB left, less than ${limits.diskFreeMb} MB`)
  }
  return standing
}

const sinceText = (at: number | null, otherwise: string): string =>
  at === null ? otherwise : `since ${new Date(at).toISOString()}`

/** A catalogue younger than this is never too old: the sync run of a large catalogue takes a while, and so does a failing run. */
const STALE_LEAST_MS = 3 * HOUR

/** @param everyMs the time between two runs of the schedule */
export const syncStaleMs = (everyMs: number): number => Math.max(STALE_LEAST_MS, 2 * everyMs + HOUR)
