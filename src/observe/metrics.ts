import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { type ActivityName, hourOf } from '../domain/activity.ts'
import type { StoredKind } from '../domain/alert-kinds.ts'
import type { Severity } from '../domain/alert-notice.ts'
import type { Database } from '../storage/database.ts'
import { addHourlyCount } from '../storage/hourly-counts.ts'
import { COUNT_MAX } from '../storage/statement.ts'
import type { UnreadableAnswer } from '../supplier/client.ts'
import type { StoredStatus } from './status.ts'

/** Counts that grow while the service works. Labels have few values: outcomes and patterns, never ids. */
const counters = {
  deliveries: { help: 'Requests at the endpoint for deliveries, by outcome', labels: ['outcome', 'reason'] },
  deliveries_processed: { help: 'Times a stored delivery was processed, by the state after it', labels: ['state'] },
  http_requests: { help: 'Requests that were answered', labels: ['route', 'status'] },
}

/** Durations that are measured while the service works. Buckets are upper bounds in seconds. */
const histograms = {
  order_to_keys_seconds: {
    help: 'From the arrival of a store order to keys of it that the store confirmed, one for each hand-over',
    labels: [],
    buckets: [1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400],
  },
  supplier_request_seconds: {
    help: 'Requests to the supplier by what was asked for, until their answer or their failure, by class of status; `none`: no whole answer',
    labels: ['request', 'status'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
  },
}

export interface Observed extends StoredStatus {
  /** Epoch milliseconds. */
  now: number
  clockSuspect: boolean
  unreadable: readonly UnreadableAnswer[]
  workerPresent: boolean
  severityOf: (kind: StoredKind) => Severity
}

type Reading = [value: number, labels?: Record<string, string>]

interface GaugeSource {
  help: string
  labels?: string[]
  /** Returns the readings for a scrape. Labels without a reading disappear from the scrape. */
  read: (observed: Observed) => Reading[]
}

const seconds = (since: number | null | undefined, now: number): Reading[] =>
  since ? [[Math.round((now - since) / 1_000)]] : []

/** Returns a reading for each property. The name of the property is the label `what`. */
const each = (values: Record<string, number>, labels?: Record<string, string>): Reading[] =>
  Object.entries(values).map(([what, value]) => [value, { what, ...labels }])

/** Returns readings of 0, so that a value that people watch is never absent. A later reading of the same labels replaces a 0. */
const zero = (...labels: Record<string, string>[]): Reading[] => labels.map((given) => [0, given])

const UP_TO = `of each kind up to ${COUNT_MAX}`

const gauges: Record<string, GaugeSource> = {
  deliveries_stored: {
    help: `Deliveries in the inbox, ${UP_TO}`,
    labels: ['state'],
    read: ({ deliveries }) => [
      ...zero({ state: 'dead' }, { state: 'quarantined' }),
      ...deliveries.map(({ state, total }): Reading => [total, { state }]),
    ],
  },
  purchases: {
    help: `Purchases by state and what holds them, ${UP_TO}`,
    labels: ['state', 'hold'],
    read: ({ purchases }) => [
      ...zero({ state: 'review', hold: '' }),
      ...purchases.map(({ state, holdReason, total }): Reading => [total, { state, hold: holdReason ?? '' }]),
    ],
  },
  outbox: {
    help: `Effects that are queued or done, ${UP_TO}`,
    labels: ['kind', 'state'],
    read: ({ outbox }) => [
      ...zero({ kind: 'callback', state: 'due' }, { kind: 'callback', state: 'dead' }),
      ...outbox.map(({ kind, state, total }): Reading => [total, { kind, state }]),
    ],
  },
  discrepancies: {
    help: 'Differences that look-ups and sweeps found',
    labels: ['kind'],
    read: ({ discrepancies }) => discrepancies.map(({ kind, total }) => [total, { kind }]),
  },
  offers: {
    help: 'Offers of the catalogue',
    labels: ['stock'],
    read: ({ offers: { total, inStock } }) => [
      [inStock, { stock: 'in' }],
      [total - inStock, { stock: 'out' }],
    ],
  },
  listings: {
    help: 'Listings of the stores',
    labels: ['store', 'state'],
    read: ({ listings }) => listings.map(({ store, state, total }) => [total, { store, state }]),
  },
  balance_minor: {
    help: 'Balance at the supplier in minor units, as last read',
    labels: ['currency'],
    read: ({ balance }) => (balance ? [[balance.amountMinor, { currency: balance.currency }]] : []),
  },
  worker_present: {
    help: '0 while no process is known to be the worker: nothing is bought, read or handed over',
    read: ({ workerPresent }) => [[workerPresent ? 1 : 0]],
  },
  frozen: { help: '1 while buying is frozen', read: ({ freeze }) => [[freeze ? 1 : 0]] },
  unreadable_answers: {
    help: 'Kinds of answers of the supplier that cannot be read now; the status names each',
    read: ({ unreadable }) => [[unreadable.length]],
  },
  supplier_silence_seconds: {
    help: 'For how long no request to the supplier has been answered; 0 while it answers',
    read: ({ outage, now }) => (outage ? seconds(outage.beganAt, now) : [[0]]),
  },
  alerts_open: {
    help: 'Alerts that are open',
    labels: ['type', 'severity'],
    read: ({ openAlerts, severityOf }) =>
      openAlerts.map(({ type, total }) => [total, { type, severity: severityOf(type) }]),
  },
  alert_channel_silence_seconds: {
    help: 'For how long a channel has not taken a message about alerts; 0 while it does',
    labels: ['channel'],
    read: ({ alertChannels, now }) =>
      alertChannels.map(({ channel, failingSince }) => [
        failingSince === null ? 0 : Math.round((now - failingSince) / 1_000),
        { channel },
      ]),
  },
  clock_suspect: {
    help: '1 while every authentic delivery is outside the tolerated time, or the database server has another time',
    read: ({ clockSuspect }) => [[clockSuspect ? 1 : 0]],
  },
  sweep_age_seconds: {
    help: 'Time since the last complete sweep of the orders ended',
    read: ({ sweep, now }) => seconds(sweep?.finishedAt, now),
  },
  sweep_orders: {
    help: 'What the last complete sweep counted, of orders and purchases',
    labels: ['what'],
    read: ({ sweep }) => {
      if (!sweep) return []
      const { matched, orphans, foreign, missing, notListed } = sweep
      return each({ matched, orphans, foreign, missing, not_listed: notListed })
    },
  },
  account_minor: {
    help: 'What moved the balance since the account was begun, in minor units',
    labels: ['what', 'currency'],
    read: ({ accounts }) =>
      accounts.flatMap(({ currency, ...account }) =>
        each(
          {
            charges: account.chargesMinor,
            refunds: account.refundsMinor,
            credits: account.creditsMinor,
            unexplained: account.unexplainedMinor,
            owed_back: account.owedBackMinor,
          },
          { currency },
        ),
      ),
  },
  sync_age_seconds: {
    help: 'Time since the last complete sync run ended',
    read: ({ completeSync, now }) => seconds(completeSync?.finishedAt, now),
  },
}

export type Metrics = ReturnType<typeof createMetrics>

/**
 * Makes the metrics of a service, in a registry of their own, so that two services in one process count separately.
 *
 * @param observe called once for each scrape
 * @param process adds memory, event loop and garbage collection of the process
 */
export function createMetrics(observe: () => Promise<Observed>, { process = false } = {}) {
  const registry = new Registry()
  const options = (name: string, help: string, labelNames: string[] = []) => ({
    name: `quayside_${name}`,
    help,
    labelNames,
    registers: [registry],
  })
  const counted = Object.fromEntries(
    Object.entries(counters).map(([name, { help, labels }]) => [
      name,
      new Counter(options(`${name}_total`, help, labels)),
    ]),
  )
  const timed = Object.fromEntries(
    Object.entries(histograms).map(([name, { help, labels, buckets }]) => [
      name,
      new Histogram({ ...options(name, help, labels), buckets }),
    ]),
  )
  let observed: Promise<Observed | undefined> = Promise.resolve(undefined)
  for (const [name, { help, labels, read }] of Object.entries(gauges)) {
    const gauge: Gauge = new Gauge({
      ...options(name, help, labels),
      async collect() {
        const now = await observed
        gauge.reset()
        // After a failed read, a gauge without labels would show 0. A gauge with labels refuses this call.
        if (!labels) gauge.remove({})
        for (const [value, given = {}] of now ? read(now) : []) gauge.set(given, value)
      },
    })
  }
  if (process) collectDefaultMetrics({ register: registry })
  return {
    /** Adds one to a counter. Never throws, because no request may fail for a metric. */
    count(name: keyof typeof counters, labels: Record<string, string>): void {
      try {
        counted[name]?.inc(labels)
      } catch {
        // A label that was not declared is our own mistake; the request goes on without its metric.
      }
    },
    /** Records a duration. Never throws. @param ms the duration */
    time(name: keyof typeof histograms, ms: number, labels: Record<string, string> = {}): void {
      try {
        timed[name]?.observe(labels, Math.max(0, ms) / 1_000)
      } catch {
        // A wrong label is our own mistake, as in `count`.
      }
    },
    /** Returns the metrics as Prometheus reads them. The gauges are left out when they cannot be read now. */
    async scrape(): Promise<{ contentType: string; text: string }> {
      observed = observe().catch(() => undefined)
      return { contentType: registry.contentType, text: await registry.metrics() }
    },
  }
}

export type HourlyCounts = ReturnType<typeof createHourlyCounts>

/**
 * Counts what happened in each hour. Counts are added up in memory and written at each tick: a count in every commit would cost an
 * order as much as one of its steps. If the process is killed, the counts since the last tick are lost; only the plots need them.
 */
export function createHourlyCounts({ db, now }: { db: Pick<Database, 'commit'>; now: () => number }) {
  let waiting = new Map<string, { hour: number; name: ActivityName; part: string; count: number }>()
  const add = (hour: number, name: ActivityName, part: string, count: number): void => {
    const key = `${hour} ${name} ${part}`
    waiting.set(key, { hour, name, part, count: (waiting.get(key)?.count ?? 0) + count })
  }
  return {
    count: (name: ActivityName, count = 1, part = ''): void => add(hourOf(now()), name, part, count),
    /** Writes the counts since the previous call. @throws Failure; the next call then writes these counts */
    async write(): Promise<void> {
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
