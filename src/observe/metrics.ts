import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { allBalanceAccounts, type BalanceAccount } from '../storage/balance.ts'
import type { Database } from '../storage/database.ts'
import { countDeliveries } from '../storage/deliveries.ts'
import { countDiscrepancies, latestBalance } from '../storage/evidence.ts'
import { countListings } from '../storage/listings.ts'
import { countOffers } from '../storage/offers.ts'
import { countOutbox } from '../storage/outbox.ts'
import { countByState } from '../storage/purchases.ts'
import { lastCompleteSweep, lastCompleteSync, type Sweep } from '../storage/runs.ts'
import { currentFreeze } from '../storage/settings.ts'
import type { UnreadableAnswer } from '../supplier/unreadable.ts'

/** What is counted while the service works. Labels have few values: outcomes and patterns, never ids. */
const counters = {
  deliveries: { help: 'Requests at the door of the deliveries, by what became of them', labels: ['outcome', 'reason'] },
  deliveries_processed: { help: 'Times a stored delivery was processed, by the state after it', labels: ['state'] },
  http_requests: { help: 'Requests that were answered', labels: ['route', 'status'] },
} as const

/** What is read from the database and the flows at each scrape. */
const gauges = {
  deliveries_stored: { help: 'Deliveries in the inbox', labels: ['state'] },
  purchases: { help: 'Purchases by state and what holds them', labels: ['state', 'hold'] },
  outbox: { help: 'Effects owed or done', labels: ['kind', 'state'] },
  discrepancies: { help: 'Differences that look-ups and sweeps found', labels: ['kind'] },
  offers: { help: 'Offers of the catalogue', labels: ['stock'] },
  listings: { help: 'Listings of the stores', labels: ['store', 'state'] },
  balance_minor: { help: 'Balance at the supplier in minor units, as last read', labels: ['currency'] },
  frozen: { help: '1 while buying is frozen', labels: [] },
  unreadable_answers: {
    help: 'Kinds of answers of the supplier that cannot be read now, by request and setting of the dialect',
    labels: ['request', 'setting'],
  },
  clock_suspect: { help: '1 while every authentic delivery is outside the time that is tolerated', labels: [] },
  supplier_silence_seconds: { help: 'Time since the supplier answered', labels: [] },
  sweep_age_seconds: { help: 'Time since the last complete sweep of the orders ended', labels: [] },
  sweep_orders: { help: 'What the last complete sweep counted, of orders and purchases', labels: ['what'] },
  account_minor: {
    help: 'What moved the balance since the account was begun, in minor units',
    labels: ['what', 'currency'],
  },
  sync_age_seconds: { help: 'Time since the last complete sync run ended', labels: [] },
} as const

export type CounterName = keyof typeof counters
export type GaugeName = keyof typeof gauges

/** Values of one gauge; all that are not named are gone from the scrape. */
export type GaugeReadings = Partial<Record<GaugeName, { labels?: Record<string, string>; value: number }[]>>

export interface Metrics {
  /** Never throws: a metric is not worth a request. */
  count(name: CounterName, labels: Record<string, string>): void
  /** The metrics as Prometheus reads them. Without the gauges when they cannot be read now. */
  scrape(): Promise<{ contentType: string; text: string }>
}

export interface MetricsOptions {
  readGauges: () => Promise<GaugeReadings>
  /** Memory, event loop and garbage collection of the process too. */
  runtime?: boolean
}

/** A registry of its own, so that two services in one process count apart. */
export function createMetrics({ readGauges, runtime = false }: MetricsOptions): Metrics {
  const registry = new Registry()
  const named = <N extends string, M>(
    table: Record<N, { help: string; labels: readonly string[] }>,
    suffix: string,
    make: (options: { name: string; help: string; labelNames: string[]; registers: Registry[] }) => M,
  ): Record<N, M> =>
    Object.fromEntries(
      (Object.entries(table) as [N, { help: string; labels: readonly string[] }][]).map(([name, { help, labels }]) => [
        name,
        make({ name: `quayside_${name}${suffix}`, help, labelNames: [...labels], registers: [registry] }),
      ]),
    ) as Record<N, M>
  const counted = named(counters, '_total', (options) => new Counter(options))
  const gauged = named(gauges, '', (options) => new Gauge(options))
  if (runtime) collectDefaultMetrics({ register: registry })

  async function refresh(): Promise<void> {
    const readings = await readGauges().catch((): GaugeReadings => ({}))
    for (const [name, gauge] of Object.entries(gauged) as [GaugeName, Gauge][]) {
      gauge.reset()
      // A gauge without labels would show 0 for what could not be read; one with labels refuses the call.
      if (gauges[name].labels.length === 0) gauge.remove({})
      for (const { labels = {}, value } of readings[name] ?? []) gauge.set(labels, value)
    }
  }

  return {
    count(name, labels) {
      try {
        counted[name].inc(labels)
      } catch {
        // A label that was not declared is a mistake of ours; the request goes on without its metric.
      }
    },
    async scrape() {
      await refresh()
      return { contentType: registry.contentType, text: await registry.metrics() }
    },
  }
}

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

const counted = ({ matched, orphans, foreign, missing, notListed }: Sweep) =>
  labelled({ matched, orphans, foreign, missing, notListed })

const moved = ({ currency, ...account }: BalanceAccount) =>
  labelled(
    {
      charges: account.chargesMinor,
      refunds: account.refundsMinor,
      credits: account.creditsMinor,
      unexplained: account.unexplainedMinor,
      owed_back: account.owedBackMinor,
    },
    { currency },
  )
