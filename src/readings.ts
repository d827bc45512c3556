import type { GaugeReadings } from './metrics.ts'
import { allBalanceAccounts, type BalanceAccount } from './storage/balance-accounts.ts'
import type { Database } from './storage/database.ts'
import { countDeliveries } from './storage/deliveries.ts'
import { countDiscrepancies, latestBalance } from './storage/evidence.ts'
import { countListings } from './storage/listings.ts'
import { countOffers } from './storage/offers.ts'
import { countOutbox } from './storage/outbox.ts'
import { countByState } from './storage/purchases.ts'
import { currentFreeze } from './storage/settings.ts'
import { lastCompleteSweep, type Sweep } from './storage/sweeps.ts'
import { lastCompleteSync } from './storage/sync-runs.ts'
import type { UnreadableAnswer } from './supplier/unreadable.ts'

/** What the gauges show, read from the database at each scrape. */
export async function readGauges({
  db,
  now,
  clockSuspect,
  unreadable,
}: {
  db: Database
  now: () => number
  clockSuspect: () => boolean
  unreadable: () => readonly UnreadableAnswer[]
}): Promise<GaugeReadings> {
  const [
    deliveries,
    purchases,
    outbox,
    discrepancies,
    [offers],
    [balance],
    freeze,
    [complete],
    [sweep],
    accounts,
    listings,
  ] = await Promise.all([
    db.query(countDeliveries()),
    db.query(countByState()),
    db.query(countOutbox()),
    db.query(countDiscrepancies()),
    db.query(countOffers()),
    db.query(latestBalance()),
    currentFreeze(db),
    db.query(lastCompleteSync()),
    db.query(lastCompleteSweep()),
    db.query(allBalanceAccounts()),
    db.query(countListings()),
  ])
  const lastSync = complete?.finishedAt
  return {
    deliveries_stored: deliveries.map(({ state, total }) => ({ labels: { state }, value: total })),
    purchases: purchases.map(({ state, holdReason, total }) => ({
      labels: { state, hold: holdReason ?? '' },
      value: total,
    })),
    outbox: outbox.map(({ kind, state, total }) => ({ labels: { kind, state }, value: total })),
    discrepancies: discrepancies.map(({ kind, total }) => ({ labels: { kind }, value: total })),
    offers: [
      { labels: { stock: 'in' }, value: offers?.inStock ?? 0 },
      { labels: { stock: 'out' }, value: (offers?.total ?? 0) - (offers?.inStock ?? 0) },
    ],
    listings: listings.map(({ store, state, total }) => ({ labels: { store, state }, value: total })),
    ...(balance ? { balance_minor: [{ labels: { currency: balance.currency }, value: balance.amountMinor }] } : {}),
    frozen: [{ value: freeze ? 1 : 0 }],
    unreadable_answers: unreadable().map(({ request, setting }) => ({ labels: { request, setting }, value: 1 })),
    clock_suspect: [{ value: clockSuspect() ? 1 : 0 }],
    ...(sweep?.finishedAt ? { sweep_age_seconds: [{ value: Math.round((now() - sweep.finishedAt) / 1_000) }] } : {}),
    ...(sweep ? { sweep_orders: counted(sweep) } : {}),
    account_minor: accounts.flatMap(moved),
    ...(lastSync ? { sync_age_seconds: [{ value: Math.round((now() - lastSync) / 1_000) }] } : {}),
  }
}

const labelled = (values: Record<string, number>, labels: Record<string, string> = {}) =>
  Object.entries(values).map(([what, value]) => ({ labels: { what, ...labels }, value }))

const counted = ({ matched, orphans, others, missing, unlisted }: Sweep) =>
  labelled({ matched, orphans, others, missing, unlisted })

const moved = ({ currency, ...account }: BalanceAccount) =>
  labelled(
    {
      ...{ charges: account.chargesMinor, refunds: account.refundsMinor, credits: account.creditsMinor },
      ...{ unexplained: account.unexplainedMinor, owed_back: account.owedBackMinor },
    },
    { currency },
  )
