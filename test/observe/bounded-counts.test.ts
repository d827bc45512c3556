import { expect, test } from 'vitest'
import { readStatus } from '../../src/observe/status.ts'
import { COUNT_MAX } from '../../src/storage/statement.ts'
import { tracedDatabase } from '../support/database.ts'

/** Rows that differ in nothing but their ids and, by turns, their states. */
const many = (count: number, insert: string) => `
  pragma foreign_keys = off;
  with recursive numbers(i) as (select 0 union all select i + 1 from numbers where i < ${count - 1}) ${insert} from numbers`

const insertPurchases = (state: string, hold: string | null) => `
  insert into purchases (id, order_id, line_id, part, generation, state, hold_reason, idempotency_key, external_order_id, body,
    supplier_product_id, quantity, ceiling_minor, currency, deadline_at, created_at, changed_at)
  select '${state}${hold}' || i, 'o', '${state}${hold}' || i, 1, 1, '${state}', ${hold === null ? 'null' : `'${hold}'`},
    '${state}${hold}' || i, '${state}${hold}' || i, '{}', 'x', 1, 1, 'EUR', 1, 1, 1`

test('the status and the metrics of a large installation stopped the service for a second: counts end at a bound', async () => {
  const { connection, database, trace } = tracedDatabase()
  connection.exec(many(COUNT_MAX + 5, insertPurchases('fulfilled', null)))
  connection.exec(many(3, insertPurchases('planned', null)))
  connection.exec(many(7, insertPurchases('planned', 'ceiling')))
  connection.exec(many(2, insertPurchases('waiting', 'balance')))
  trace.length = 0
  const { purchases, deliveries, outbox } = await readStatus(database)
  expect(purchases).toEqual([
    { state: 'planned', holdReason: null, total: 3 },
    { state: 'planned', holdReason: 'ceiling', total: 7 },
    { state: 'waiting', holdReason: 'balance', total: 2 },
    { state: 'fulfilled', holdReason: null, total: COUNT_MAX },
  ])
  expect([deliveries, outbox]).toEqual([[], []])
  const counts = trace.filter((text) => / from \(select 1 from (purchases|deliveries|outbox) /.test(text))
  expect(counts).toHaveLength(3)
  for (const text of counts) {
    const plan = connection.prepare<[], { detail: string }>(`explain query plan ${text}`).all()
    expect(plan.filter(({ detail }) => /^SCAN (purchases|deliveries|outbox)/.test(detail))).toEqual([])
    expect(plan.map(({ detail }) => detail).join('\n')).not.toMatch(/SEARCH purchases USING INDEX/)
  }
})
