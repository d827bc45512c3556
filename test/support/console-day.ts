/** A day of an installation: every page of the console has something to show. */
import { sumEarnings } from '../../src/ordering/earnings.ts'
import { insertDiscrepancy } from '../../src/storage/discrepancies.ts'
import { insertOfferChanges } from '../../src/storage/offers.ts'
import { listOutbox, markEffectDead } from '../../src/storage/outbox.ts'
import { insertSyncRun } from '../../src/storage/runs.ts'
import { type ApiOptions, openApi } from './api-world.ts'
import { insertDeliveries, offer } from './console-data.ts'
import { STORE } from './test-app.ts'

const MINUTE = 60_000

/** Orders that went well, failed, wait for a person, are held; deliveries, messages and listings in trouble; a sync and a sweep. */
export async function openDay(options: ApiOptions = {}) {
  const world = await openApi({ balanceMinor: 2_500_000, ...options })
  const { db, now, pass, order, sandbox, ask } = world
  const [first, second] = await world.offers()
  if (!first || !second) throw new Error('the supplier offers too little')
  await offer(world, 'a', { name: 'Circuit <Kings>' })
  await offer(world, 'b', { sku: 'TWICE' })
  await offer(world, 'c', { sku: 'TWICE' })
  await world.publish()
  await offer(world, 'a', { name: 'Circuit <Kings>', costMinor: 3_000 })
  await ask('POST', `/stores/${STORE}/listings/SKU-a/retry`)
  await world.publish()

  sandbox.faults.add({ fault: 'partial-keys', first: 2, delayMs: 20 * 60 * MINUTE })
  await order('1001', [{ sku: first.sku, quantity: 3 }])
  await pass(120 * MINUTE)
  sandbox.faults.add({ fault: 'failed-order' })
  await order('1002', [{ sku: second.sku }])
  await pass(30 * MINUTE)
  for (const reference of ['1003', '1004', 'a/b &c'])
    await order(reference, [{ sku: first.sku }, { sku: second.sku, id: '2' }])
  await pass(5 * MINUTE)
  world.shop.answerNext(500)
  await order('1005', [{ sku: first.sku }])
  await pass(4_000)
  const [message] = await db.query(listOutbox({ state: 'due', kind: 'callback', limit: 1 }))
  if (message) await db.commit([markEffectDead(message.id, 12, 'the store answered 500')])
  await order('1006', [{ sku: first.sku, unitPriceMinor: 100 }])
  await pass(MINUTE)

  await insertDeliveries(world, [
    { state: 'dead', event: 'order.completed', attempts: 8, lastError: 'the order cannot be read' },
    { state: 'quarantined' },
    { state: 'ignored', body: null },
  ])
  const run = { cause: 'schedule', startedAt: now(), finishedAt: now() + 60_000, cursor: 0, pages: 3, pagesTotal: 3 }
  await db.commit([
    insertSyncRun({ ...run, id: 'run1', state: 'complete', offersSeen: 3, offersChanged: 1 }),
    insertSyncRun({ ...run, id: 'run2', state: 'failed', error: 'page 3 was answered with 503' }),
    ...insertOfferChanges([
      { id: 'c1', runId: 'run1', changedAt: now(), productId: 'a', field: 'cost', before: '10.00', after: '30.00' },
    ]),
    insertDiscrepancy({
      id: 'd1',
      kind: 'orphan',
      subject: 'ord_1',
      supplierOrderId: 'ord_1',
      externalOrderId: 'q1.demo.1.1.1.1',
      detail: 'no purchase has it',
      foundAt: now(),
    }),
  ])
  await ask('POST', '/sweeps')
  await world.runtime.idle()
  await world.ordering.checkBalance()
  await ask('POST', '/freeze', { body: { reason: 'checking prices' } })
  await world.runtime.hourly.write()
  await sumEarnings(world.ordering)
  await world.alertRound()
  return world
}
