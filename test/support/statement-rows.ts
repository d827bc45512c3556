/** Rows under names, and which of them a statement is to find, or to change. */
import type { SQLWrapper } from 'drizzle-orm'
import { getTableConfig, type SQLiteColumn, type SQLiteTable } from 'drizzle-orm/sqlite-core'
import { expect } from 'vitest'
import type { Change, Database } from '../../src/storage/database.ts'
import { purchases, storeOrderLines, storeOrders } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'

export type Row = Record<string, unknown>

interface Rows {
  table: SQLiteTable
  /** What all rows have in common. */
  base: Row
  /** The column that holds the name of a row. Default: `id`. */
  key?: string
  /** What else must be there, in this order. */
  beside?: [SQLiteTable, Row][]
}

export interface Found extends Rows {
  ask: SQLWrapper
  /** The rows that are found, in their order, each with what it differs in. */
  found: Record<string, Row>
  left: Record<string, Row>
  /** The orders of `parents` that are found too, behind them. */
  also?: string[]
  /** What the column with the names is called in the answer. Default: as in the table. */
  names?: string
  /** Whether their order counts. */
  inOrder?: true
}

export interface Changed extends Rows {
  change: Change | Change[]
  /** The rows that are changed, each with what it differs in. */
  changed: Record<string, Row>
  left: Record<string, Row>
  /** What a changed row has afterwards, and nothing else of it is new. */
  to: Row | 'gone'
}

export const purchase = {
  orderId: 'o',
  lineId: 'l',
  generation: 1,
  state: 'planned',
  body: '{}',
  supplierProductId: 'x',
  quantity: 1,
  ceilingMinor: 1,
  currency: 'EUR',
  deadlineAt: 9_000,
  createdAt: 1,
  changedAt: 1,
}

/** Two orders of two stores, with a line each. */
const parents: [SQLiteTable, Row][] = [
  [storeOrders, { id: 'o', store: 's', reference: 'r', bodyDigest: 'd', receivedAt: 1 }],
  [storeOrders, { id: 'q', store: 't', reference: 'q', bodyDigest: 'd', receivedAt: 1 }],
  [storeOrderLines, { id: 'l', orderId: 'o', line: '1', sku: 'k', quantity: 9 }],
  [storeOrderLines, { id: 'm', orderId: 'q', line: '1', sku: 'k', quantity: 9 }],
]

let part = 0
/** What must differ between two purchases. */
const ownOf = (table: SQLiteTable, id: unknown): Row => {
  if (table !== purchases) return {}
  part += 1
  return { part, idempotencyKey: id, externalOrderId: id }
}

export const insertion = (table: SQLiteTable, row: Row): Change => ({
  statement: build.insert(table).values({ ...ownOf(table, row.id), ...row }),
  rows: 1,
})

/** The rows come in neither order of their names. */
async function fill(
  db: Database,
  { table, base, key = 'id', beside = [] }: Rows,
  rows: [string, Row][],
): Promise<void> {
  const named = rows.map(([name, row]) => ({ ...base, [key]: name, ...row }))
  const all = [...parents, ...beside, ...named.map((row): [SQLiteTable, Row] => [table, row])]
  await db.commit(all.map(([of, row]) => insertion(of, row)))
}

export async function expectFound(
  db: Database,
  { ask, found, left, also = [], names: column, inOrder, ...rows }: Found,
): Promise<void> {
  const [is, isNot] = [Object.entries(found), Object.entries(left)]
  await fill(db, rows, [...is.slice(1).reverse(), ...isNot, ...is.slice(0, 1)])
  const names = ((await db.query(ask)) as Row[]).map((row) => String(row[column ?? rows.key ?? 'id']))
  const expected = [...Object.keys(found), ...also]
  if (inOrder) expect(names).toEqual(expected)
  else expect(names.sort()).toEqual(expected.sort())
}

export async function expectChanged(db: Database, { change, changed, left, to, ...rows }: Changed): Promise<void> {
  const { table, key = 'id' } = rows
  const column = (table as unknown as Record<string, SQLiteColumn>)[key] as SQLiteColumn
  await fill(db, rows, [...Object.entries(changed), ...Object.entries(left)])
  const named = async () => {
    const all = (await db.query(build.select().from(table).orderBy(column))) as Row[]
    return new Map(all.map((row) => [String(row[key]), row]))
  }
  const before = await named()
  await db.commit([change].flat())
  const after = await named()
  for (const [name, row] of before) {
    if (!(name in changed)) expect(after.get(name), `${name} stays`).toEqual(row)
    else if (to === 'gone') expect(after.has(name), `${name} is gone`).toBe(false)
    else expect(after.get(name), `${name} is changed`).toEqual({ ...row, ...to })
  }
  expect(
    Object.keys(changed).filter((name) => !before.has(name)),
    getTableConfig(table).name,
  ).toEqual([])
}
