/** Which column of a row each field of an answer shows: every column has another value, so that a field shows no other one. */
import { getTableColumns } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { describe, expect, test } from 'vitest'
import * as schema from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { openApi } from '../support/api-world.ts'
import type { Row } from '../support/statement-rows.ts'
import { STORE } from '../support/test-app.ts'

const T = Date.UTC(2026, 2, 1)
const MINUTE = 60_000

/** A value for each column that no other column of the row has, save for those that are given. */
function rowOf(table: SQLiteTable, given: Row): Row {
  const columns = Object.entries<SQLiteColumn>(getTableColumns(table))
  return Object.fromEntries(
    columns.map(([name, column], place) => [name, given[name] ?? distinctOf(name, column, place + 1, given)]),
  )
}

function distinctOf(name: string, column: SQLiteColumn, place: number, given: Row): unknown {
  if (name in given) return null
  if (column.getSQLType() === 'blob') return Buffer.from(name)
  if (column.getSQLType() === 'text') return column.dataType === 'json' ? [] : name
  if (column.dataType === 'boolean') return true
  return /(At|Since|Until|notBefore|^at|asOf)$/.test(name) ? T + place * MINUTE : place
}

/** `notBefore`: as the column of that name has it. `ceiling=ceilingMinor`: another name. `amount~amountMinor`: minor units, as decimal text. */
type Shown = string

const PURCHASE: Shown = `id part generation state holdReason note notBefore quantity cancelRequestedAt ceiling~ceilingMinor
  amount~amountMinor currency supplierOrderId externalOrderId claim failureCode failureMessage changedAt orderId`
const LISTING: Shown = `id=variant sku variation productId linkedBy state reason detail attempts nextTryAt pushedAt
  wantedPrice~wantedPriceMinor changedAt`
const KNOWN: Shown = `name=knownName category=knownCategory price~knownPriceMinor compareAt~knownCompareAtMinor
  currency=knownCurrency stock=knownStock available=knownAvailable`

const parents: [SQLiteTable, Row][] = [
  [schema.storeOrders, { id: 'o', store: STORE, shopState: null, closedState: 'failed' }],
  [schema.storeOrderLines, { id: 'l', orderId: 'o', currency: 'EUR' }],
]
const purchase: [SQLiteTable, Row] = [
  schema.purchases,
  { id: 'p', orderId: 'o', lineId: 'l', state: 'review', holdReason: 'balance', currency: 'EUR', holdReported: null },
]
const listing: [SQLiteTable, Row] = [
  schema.listings,
  {
    store: STORE,
    variant: 'v',
    linkedBy: 'sku',
    state: 'held',
    reason: 'price_jump',
    knownCurrency: 'EUR',
    sentCurrency: 'EUR',
  },
]

interface Answered {
  of: [SQLiteTable, Row]
  beside?: [SQLiteTable, Row][]
  shown: Shown
  /** A part of the answer, under its name, with what it shows of the same row. */
  parts?: Record<string, Shown>
  /** What does not come from the row. */
  more?: Row
  /** The item in the answer. Default: the first of the list. */
  in?: (data: Record<string, unknown>) => unknown
}

const firstOf = (name: string) => (data: Record<string, unknown>) => (data[name] as unknown[])[0]

const answers: Record<string, Answered> = {
  '/orders': {
    of: [schema.storeOrders, { store: STORE, shopState: null, closedState: 'failed' }],
    shown: 'id store reference number receivedAt cancelRequestedAt closedAt',
    // It has no line.
    more: { state: 'fulfilled', cost: null, currency: null, lastKeyAt: null, lines: [] },
  },
  '/purchases': {
    of: purchase,
    beside: parents,
    // It never moved.
    shown: `${PURCHASE} since=createdAt`,
    more: { order: { store: STORE, reference: 'reference', line: 'line' }, sku: 'sku', name: null, cost: null },
  },
  '/claims': {
    of: [schema.claims, { orderId: 'o', purchaseId: 'p', outcome: 'adopted' }],
    beside: [...parents, purchase],
    shown: 'number state=outcome purchaseId ordinal note raisedAt raisedBy deadlineAt endedAt endedBy reason',
    more: { order: { store: STORE, reference: 'reference', line: 'line' }, sku: 'sku', name: null, replacedBy: null },
  },
  '/purchases/p (its requests)': {
    of: [schema.purchaseAttempts, { id: 'a', purchaseId: 'p', kind: 'place', stage: 'sent' }],
    beside: [...parents, purchase],
    shown: 'kind stage number at status class code requestId supplierOrderId detail',
    in: firstOf('attempts'),
  },
  '/purchases/p (its changes)': {
    of: [schema.transitions, { id: 't', purchaseId: 'p', before: 'sending', after: 'review' }],
    beside: [...parents, purchase],
    shown: 'at input row before after actor detail',
    in: firstOf('transitions'),
  },
  '/outbox': {
    of: [
      schema.outbox,
      {
        kind: 'callback',
        type: 'line.failed',
        store: STORE,
        orderId: 'o',
        state: 'dead',
        payload: { purchaseId: 'p', units: 1, row: 'x' },
        sentUpdate: null,
      },
    ],
    beside: parents,
    shown: 'id kind type store orderId state attempts notBefore lastError createdAt doneAt about=payload',
    more: { reference: 'reference' },
  },
  '/deliveries': {
    of: [schema.deliveries, { source: 'supplier', state: 'dead' }],
    shown: `id source deliveryId state event supplierOrderId purchaseId signedAt receivedAt attempts notBefore lastError
      finishedAt`,
  },
  '/discrepancies': {
    of: [schema.discrepancies, { kind: 'late' }],
    shown: 'id kind subject supplierOrderId detail externalOrderId foundAt',
  },
  '/sweeps': {
    of: [schema.sweeps, { state: 'failed' }],
    shown: `id cause state from=fromAt startedAt finishedAt pages orders matched refreshed orphans foreign missing notListed
      errors unreadable error`,
  },
  '/alerts': {
    of: [schema.alerts, { type: 'freeze', payload: {}, subject: null }],
    shown: 'id type subject note at=raisedAt endedAt acknowledgedAt acknowledgedBy mutedUntil',
    more: {
      severity: 'critical',
      order: null,
      advice: 'settle the cause, then unfreeze',
      command: 'quayside reviews',
      state: 'ended',
    },
  },
  '/audit': {
    // Later than what the tokens of this test have left there.
    of: [schema.audit, { id: 'z' }],
    shown: 'id at actor action subject detail',
  },
  [`/stores/${STORE}/listings`]: { of: listing, shown: LISTING, parts: { known: KNOWN } },
  '/held-prices': { of: listing, shown: `${LISTING} store`, parts: { known: KNOWN } },
  '/sync/runs': {
    of: [schema.syncRuns, { state: 'failed', dry: false, firstUnreadable: null }],
    shown: `id cause state startedAt finishedAt pagesTotal pages offersSeen offersNew offersChanged offersUnreadable offersGone
      firstUnreadable error requestId pagesBroken dry`,
  },
  '/sync/runs/r/changes': {
    of: [schema.offerChanges, { runId: 'r', productId: 'productId' }],
    beside: [
      [schema.syncRuns, { id: 'r', state: 'complete', dry: false }],
      [schema.offers, { currency: 'EUR', costFault: null }],
    ],
    shown: 'id productId field before after',
    more: { sku: 'sku', name: 'name' },
  },
}

function expected(row: Row, shown: Shown): Row {
  return Object.fromEntries(
    shown.split(/\s+/).map((one) => {
      const [, field = '', sign = '', column = field] = /^(\w+)([=~]?)(\w+)?$/.exec(one) ?? []
      const value = row[column]
      if (sign === '~') return [field, `0.${String(value).padStart(2, '0')}`]
      return [field, typeof value === 'number' && value >= T ? new Date(value).toISOString() : value]
    }),
  )
}

describe('an answer shows of a row what its fields are called after', () => {
  test.each(Object.entries(answers))(
    '%s',
    async (path, { of, beside = [], shown, parts = {}, more = {}, ...answered }) => {
      const { ask, ordering } = await openApi()
      const put = async (table: SQLiteTable, given: Row): Promise<Row> => {
        const row = rowOf(table, given)
        await ordering.db.commit([{ statement: build.insert(table).values(row), rows: 1 }])
        return row
      }
      for (const [table, given] of beside) await put(table, given)
      const row = await put(...of)
      const { status, body } = await ask('GET', path.replace(/ .*/, ''))
      expect(status).toBe(200)
      const item = (answered.in ?? firstOf('items'))(body.data)
      const pieces = Object.entries(parts).map(([name, piece]) => [name, expected(row, piece)])
      expect(item).toEqual({ ...expected(row, shown), ...Object.fromEntries(pieces), ...more })
    },
  )
})
