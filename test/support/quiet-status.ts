import type { AnswerOf } from '../../src/http/api/table.ts'

type Status = AnswerOf<'viewStatus'>
type Freeze = NonNullable<Status['freeze']>

/** The status of a service where nothing waits. */
const quiet: Status = {
  workerAbsentSince: null,
  waiting: { upTo: 100, customers: 0, forPerson: 0, longestSince: null, money: [] },
  balance: null,
  tier: null,
  limits: null,
  freeze: null,
  spendCaps: { order: null, hour: null, day: null, currency: 'EUR' },
  counts: {
    upTo: 10_000,
    purchases: {},
    listings: {},
    heldPrices: 0,
    held: {},
    offers: { total: 0, inStock: 0 },
    deliveries: {},
    callbacks: {},
    alerts: {},
    discrepancies: {},
  },
  stores: [],
  freshness: {
    catalogueAt: null,
    catalogueFailure: null,
    balanceAt: null,
    next: { catalogueAt: null, balanceAt: null, sweepAt: null },
  },
  sweep: null,
  unreadable: [],
  supplier: { unreachableSince: null, error: null, lastAnswerAt: null, answerMs: null, quota: null, waiting: 0 },
  refusedDeliveries: { since: '2026-08-01T00:00:00.000Z', total: 0, lastAt: null, reasons: {} },
  alerts: [],
  alertChannels: [],
  paused: [],
}

/** A part of a status, and a freeze without the causes that say the same. */
type Given = { [K in keyof Status]?: object | string | null }

/** A whole status of what a test says of it. */
export function statusOf({ freeze = null, counts, freshness, stores, ...rest }: Given): object {
  const secret = { callbackSecret: { generation: 0, changedAt: null, previousUntil: null } }
  return {
    ...quiet,
    ...rest,
    freeze: freeze && Object.assign({ causes: [{ ...(freeze as Freeze), id: '9f86d081' }] }, freeze),
    counts: { ...quiet.counts, ...(counts as object) },
    freshness: { ...quiet.freshness, ...(freshness as object) },
    stores: ((stores ?? []) as object[]).map((store) => ({ ...secret, ...store })),
  }
}
