/** The figures of the status, over rows of which each kind has another number. */
import { expect, test } from 'vitest'
import * as schema from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { OTHER_STORE, openApi } from '../support/api-world.ts'
import { insertion, purchase, type Row } from '../support/statement-rows.ts'
import { STORE } from '../support/test-app.ts'

type Table = Parameters<typeof insertion>[0]

const T = Date.UTC(2026, 2, 1)
const at = (minutes: number) => new Date(T + minutes * 60_000).toISOString()

let made = 0
/** So many rows, each with an id of its own. */
const rows = (count: number, row: (id: string) => Row): Row[] =>
  Array.from({ length: count }, () => {
    made += 1
    return row(String(made).padStart(4, '0'))
  })

async function worldWith(all: [Table, Row[]][]) {
  const world = await openApi()
  const { db } = world.ordering
  // What the world itself has read from its supplier.
  for (const table of [
    schema.balanceReadings,
    schema.offers,
    schema.listings,
    schema.syncRuns,
    schema.publishing,
    schema.outbox,
  ])
    await db.commit([{ statement: build.delete(table), rows: 'any' }])
  for (const [table, some] of all) await db.commit(some.map((row) => insertion(table, row)))
  const { status, body } = await world.ask('GET', '/status')
  expect(status).toBe(200)
  return body.data as Record<string, Record<string, unknown>>
}

const bought = (count: number, more: Row) =>
  rows(count, (id) => ({ ...purchase, id, orderId: 'o', lineId: 'l', ...more }))
const parents: [Table, Row[]][] = [
  [schema.storeOrders, [{ id: 'o', store: STORE, reference: 'r', bodyDigest: 'd', receivedAt: T }]],
  [schema.storeOrderLines, [{ id: 'l', orderId: 'o', line: '1', sku: 'k', quantity: 1 }]],
]

test('purchases are counted by state and by what holds them, and those that need the supplier next', async () => {
  const { counts, supplier } = await worldWith([
    ...parents,
    [
      schema.purchases,
      [
        ...bought(1, { state: 'planned' }),
        ...bought(2, { state: 'planned', holdReason: 'balance' }),
        ...bought(3, { state: 'waiting' }),
        ...bought(4, { state: 'waiting', holdReason: 'ceiling' }),
        ...bought(1, { state: 'waiting', holdReason: 'balance' }),
        ...bought(6, { state: 'sending' }),
        ...bought(7, { state: 'unknown' }),
        ...bought(8, { state: 'accepted' }),
        ...bought(9, { state: 'completed' }),
        ...bought(10, { state: 'fulfilled' }),
        ...bought(11, { state: 'rejected' }),
        ...bought(12, { state: 'failed' }),
        ...bought(13, { state: 'cancelled' }),
        ...bought(14, { state: 'review' }),
      ],
    ],
  ])
  expect(counts?.purchases).toEqual({
    planned: 3,
    waiting: 8,
    sending: 6,
    unknown: 7,
    accepted: 8,
    completed: 9,
    fulfilled: 10,
    rejected: 11,
    failed: 12,
    cancelled: 13,
    review: 14,
  })
  expect(Object.entries(counts?.held ?? {}).filter(([, total]) => total !== 0)).toEqual([
    ['balance', 3],
    ['ceiling', 4],
  ])
  expect(supplier?.waiting).toBe(1 + 3 + 6 + 7 + 8)
})

test('messages, deliveries, offers, listings and differences are counted by their kinds', async () => {
  const sent = (count: number, kind: string, state: string) =>
    rows(count, (id) => ({
      id,
      kind,
      type: kind === 'alert' ? 'freeze' : 'line.failed',
      store: kind === 'alert' ? null : STORE,
      dedupeKey: id,
      payload: { note: 'n' },
      state,
      notBefore: T,
      createdAt: T,
    }))
  const came = (count: number, state: string) =>
    rows(count, (id) => ({
      id,
      source: 'supplier',
      deliveryId: id,
      bodyHmac: Buffer.from(id),
      mac: Buffer.from(id),
      signedAt: T,
      receivedAt: T,
      ciphertext: Buffer.of(1),
      keyId: 1,
      state,
      notBefore: T,
    }))
  const offers = (count: number, more: Row) =>
    rows(count, (productId) => ({
      productId,
      sku: 'k',
      name: 'n',
      costMinor: 1,
      currency: 'EUR',
      asOf: T,
      changedAt: T,
      ...more,
    }))
  const listings = (count: number, store: string, more: Row) =>
    rows(count, (variant) => ({ store, variant, sku: 'k', linkedBy: 'sku', changedAt: T, ...more }))
  const differ = (count: number, kind: string) =>
    rows(count, (id) => ({ id, kind, subject: id, supplierOrderId: id, detail: 'x', foundAt: T }))
  const { counts, stores } = await worldWith([
    [
      schema.outbox,
      [
        ...sent(1, 'callback', 'due'),
        ...sent(2, 'callback', 'done'),
        ...sent(3, 'callback', 'dead'),
        ...sent(4, 'alert', 'due'),
        ...sent(5, 'alert', 'done'),
        ...sent(6, 'alert', 'dead'),
      ],
    ],
    [
      schema.deliveries,
      [...came(1, 'stored'), ...came(2, 'retry'), ...came(3, 'orphan'), ...came(4, 'applied'), ...came(5, 'dead')],
    ],
    [
      schema.offers,
      [
        ...offers(2, { available: true }),
        ...offers(1, { available: false }),
        ...offers(4, { available: true, goneAt: T }),
      ],
    ],
    [
      schema.listings,
      [
        ...listings(1, STORE, { state: 'synced' }),
        ...listings(2, STORE, { state: 'held' }),
        ...listings(3, OTHER_STORE, { state: 'held', wantedPriceMinor: 1 }),
        ...listings(4, OTHER_STORE, { state: 'failed' }),
      ],
    ],
    [schema.discrepancies, [...differ(1, 'late'), ...differ(2, 'orphan')]],
  ])
  expect(counts).toMatchObject({
    callbacks: { due: 1, done: 2, dead: 3 },
    alerts: { due: 4, done: 5, dead: 6 },
    deliveries: { stored: 1, retry: 2, orphan: 3, applied: 4, dead: 5 },
    offers: { total: 3, inStock: 2 },
    listings: { synced: 1, held: 5, failed: 4 },
    heldPrices: 3,
    discrepancies: { late: 1, orphan: 2 },
  })
  const listed = Object.values(stores ?? {}).map((one) => one as { store: string; listings: object })
  expect(Object.fromEntries(listed.map(({ store, listings: of }) => [store, of]))).toEqual({
    [STORE]: { synced: 1, held: 2 },
    [OTHER_STORE]: { held: 3, failed: 4 },
  })
})

test('the newest reading of the balance counts, and so do the last run, the last that failed and the last sweep', async () => {
  const reading = (id: string, minutes: number, more: Row): Row => ({
    id,
    readAt: T + minutes * 60_000,
    currency: 'EUR',
    ...more,
  })
  const run = (id: string, state: string, minutes: number | null, more: Row = {}): Row => ({
    id,
    cause: 'c',
    state,
    startedAt: T,
    finishedAt: minutes === null ? null : T + minutes * 60_000,
    cursor: 1,
    ...more,
  })
  const sweep = (id: string, state: string, minutes: number): Row => ({
    id,
    cause: 'c',
    state,
    fromAt: T,
    startedAt: T,
    finishedAt: T + minutes * 60_000,
    orders: 5,
    orphans: 1,
    foreign: 2,
    missing: 3,
  })
  const {
    balance,
    tier,
    freshness,
    sweep: swept,
    paused,
  } = await worldWith([
    [
      schema.balanceReadings,
      [
        reading('1', 3, { amountMinor: 300, tier: 'gold' }),
        reading('2', 2, { amountMinor: 200, tier: 'bronze' }),
        reading('3', 1, { amountMinor: 100, tier: 'silver' }),
      ],
    ],
    [
      schema.syncRuns,
      [
        run('1', 'complete', 1),
        run('2', 'complete', 2),
        run('3', 'failed', 3, { error: 'why' }),
        run('4', 'complete', 4, { dry: true }),
        run('5', 'interrupted', 5),
        run('6', 'running', null),
      ],
    ],
    [schema.sweeps, [sweep('1', 'complete', 1), sweep('2', 'complete', 2), sweep('3', 'failed', 3)]],
    [
      schema.publishing,
      [
        { store: STORE, policy: 'p', epoch: 1, pausedUntil: T, lastError: 'refused', changedAt: T },
        { store: OTHER_STORE, policy: 'p', epoch: 1, lastError: 'once', changedAt: T },
      ],
    ],
  ])
  expect(balance).toMatchObject({ amount: '3.00', currency: 'EUR', readAt: at(3) })
  expect(tier).toBe('gold')
  expect(freshness).toMatchObject({
    catalogueAt: at(2),
    catalogueFailure: { run: '3', at: at(3), error: 'why' },
    balanceAt: at(3),
  })
  expect(swept).toEqual({ finishedAt: at(2), orders: 5, orphans: 1, foreign: 2, missing: 3 })
  expect(paused).toEqual([{ store: STORE, until: at(0), error: 'refused' }])
})
