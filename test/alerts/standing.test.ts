/** Alerts in the status: what they are about, what to do, and that they end when what they report is over. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { alertRules } from '../../src/alerts/kinds.ts'
import { hourOf } from '../../src/domain/activity.ts'
import { type AlertKind, alertText, storedKind } from '../../src/domain/alert-kinds.ts'
import { decidePurchase } from '../../src/ordering/decide.ts'
import { viewEvidence } from '../../src/ordering/evidence.ts'
import { redeliver } from '../../src/ordering/fulfil.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { insertBalance } from '../../src/storage/balance.ts'
import { addHourlyCount } from '../../src/storage/hourly-counts.ts'
import { enqueueAlert } from '../../src/storage/outbox.ts'
import { insertSyncRun } from '../../src/storage/runs.ts'
import { insertStoreOrder } from '../../src/storage/store-orders.ts'
import { connectStore, dropLateOrder, insertLateOrder, putStoreReading } from '../../src/storage/stores.ts'
import { type ApiWorld, OTHER_STORE, openApi } from '../support/api-world.ts'
import { databaseFile } from '../support/database.ts'
import { defaultDialect, first } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

interface Alert {
  type: string
  subject: string | null
  note: string | null
  advice: string
  command: string
  state: string
}

const alertsOf = async (world: ApiWorld) => (await world.ask('GET', '/status')).body.data.alerts as unknown as Alert[]
const statesOf = async (world: ApiWorld) => (await alertsOf(world)).map(({ type, state }) => `${type} ${state}`)

describe('the status', () => {
  test('counted alerts, and did not say which, about what, and what to do', async () => {
    const world = await openApi()
    expect(await alertsOf(world)).toEqual([])
    world.sandbox.faults.add({ fault: 'partial-keys', first: 2, delayMs: 20 * HOUR })
    const orderId = await world.buy('1001', { quantity: 5 })
    await world.pass(2 * HOUR)
    const { id } = await world.purchase(orderId)
    expect(await alertsOf(world)).toMatchObject([
      {
        type: 'keys_short',
        subject: id,
        note: expect.stringContaining('only 2 of 5 keys'),
        advice: 'decide',
        command: `quayside reviews show ${id}`,
        state: 'open',
      },
    ])
    const { evidenceVersion } = await viewEvidence(world.ordering, id, { read: false })
    const decision = { actor: 'ann', reason: 'two are enough', evidenceVersion }
    await decidePurchase(world.ordering, id, { type: 'hand_over' }, decision)
    await world.settle()
    expect(await statesOf(world)).toEqual(['keys_short ended'])
  })

  test('went on showing the alert of an outage that was over', async () => {
    const world = await openApi({ sandboxFile: databaseFile() })
    const { sku } = await world.offer()
    await world.supplierDown()
    await world.order('1', [{ sku }])
    await world.settle()
    await world.pass(10 * MINUTE)
    expect(await statesOf(world)).toEqual(['supplier_unreachable open'])
    await world.supplierUp()
    await world.pass(10 * MINUTE)
    expect(await statesOf(world)).toEqual(['supplier_unreachable ended'])
    await world.pass(2 * DAY, HOUR)
    expect(await statesOf(world), 'it is no news any more').toEqual([])
  })

  test('shows for a day that an alert of days ago has ended', async () => {
    const world = await openApi()
    const payload = { note: 'the disk is full' }
    await world.db.commit([enqueueAlert(world.ordering, { type: 'backup_failed', occasion: '1', payload })])
    await world.alertRound()
    world.move(3 * DAY)
    expect(await statesOf(world)).toContain('backup_failed open')
    expect((await world.ask('POST', '/backups')).status).toBe(201)
    await world.alertRound()
    world.move(DAY)
    expect(await statesOf(world)).toContain('backup_failed ended')
    world.move(1)
    expect(await statesOf(world)).not.toContain('backup_failed ended')
  })

  test('shows once what came again: since it came first while it stands, and as it was last when it is over', async () => {
    const world = await openApi()
    const alerts = async () =>
      (
        (await world.ask('GET', '/status')).body.data.alerts as unknown as (Alert & { at: string; endedAt: string })[]
      ).map(({ state, at, endedAt }) => ({ state, at, endedAt }))
    const instant = () => new Date(world.now()).toISOString()
    const raise = (occasion: string) => {
      const payload = { note: 'the disk is full' }
      return world.db.commit([enqueueAlert(world.ordering, { type: 'backup_failed', occasion, payload })])
    }
    await raise('1')
    const [first, step] = [instant(), MINUTE]
    world.move(step)
    await raise('2')
    await world.alertRound()
    expect(await alerts()).toEqual([{ state: 'open', at: first, endedAt: null }])
    for (const occasion of ['3', '4']) {
      await raise(occasion)
      await world.alertRound()
      world.move(step)
      await world.ask('POST', '/backups')
      world.move(step)
      await world.alertRound()
    }
    expect(await alerts()).toMatchObject([{ state: 'ended', endedAt: instant() }])
  })

  test('shows as open what came back within a day of its end, not as over', async () => {
    const world = await openApi()
    const raise = (occasion: string) => {
      const payload = { note: 'the disk is full' }
      return world.db.commit([enqueueAlert(world.ordering, { type: 'backup_failed', occasion, payload })])
    }
    await raise('1')
    await world.alertRound()
    world.move(MINUTE)
    expect((await world.ask('POST', '/backups')).status).toBe(201)
    await world.alertRound()
    expect(await statesOf(world)).toEqual(['backup_failed ended'])
    world.move(MINUTE)
    await raise('2')
    expect(await statesOf(world), 'it was raised just now').toEqual(['backup_failed open'])
    await world.alertRound()
    expect(await statesOf(world), 'it is in the table').toEqual(['backup_failed open'])
  })

  test('says how many days the balance lasts at what was spent in the last ones', async () => {
    const world = await openApi()
    const { db, now, ordering } = world
    await db.commit([
      ...[1, 2, 3, 4, 5, 6, 7].map((days) =>
        addHourlyCount({ hour: hourOf(now() - days * DAY) + HOUR, name: 'spend', part: 'EUR', count: 10_000 }),
      ),
      // What is longer ago, in another currency, or no spend, says nothing.
      addHourlyCount({ hour: hourOf(now() - 9 * DAY), name: 'spend', part: 'EUR', count: 900_000 }),
      addHourlyCount({ hour: hourOf(now() - DAY), name: 'spend', part: 'USD', count: 900_000 }),
      addHourlyCount({ hour: hourOf(now() - DAY), name: 'deliveries', part: 'EUR', count: 900_000 }),
      insertBalance({ id: ordering.newId(), readAt: now() + 1, amountMinor: 20_000, currency: 'EUR' }),
    ])
    await world.alertRound()
    expect(await alertsOf(world)).toContainEqual(
      expect.objectContaining({
        type: 'balance_runs_out',
        note: 'the balance of 200.00 EUR lasts about 2 days at what was spent lately',
      }),
    )
  })

  test('shows a freeze for two orders of one part until it is lifted and the purchase decided', async () => {
    const world = await openApi({ sandboxDialect: { ...defaultDialect(), idempotencyMemorySeconds: 60 } })
    world.sandbox.faults.add({ fault: 'answer-lost' })
    world.sandbox.faults.add({ fault: 'list-lag', delayMs: HOUR })
    const { id } = await world.purchase(await world.buy('1001'))
    await world.pass(20 * MINUTE, 10_000)
    await world.pass(HOUR)
    await sweep(world.ordering)
    expect((await statesOf(world)).toSorted()).toEqual(['double_charge open', 'freeze open'])
    for (const alert of await alertsOf(world)) expect(alert.subject).toBe(id)
    const { freeze } = (await world.ask('GET', '/status')).body.data as unknown as {
      freeze: { causes: { id: string }[] }
    }
    await world.ask('POST', '/unfreeze', { body: { causes: freeze.causes.map((cause) => cause.id) } })
    expect((await statesOf(world)).toSorted()).toEqual(['double_charge ended', 'freeze ended'])
  })

  test('shows a callback that used up its attempts until it is sent again', async () => {
    const world = await openApi()
    for (let attempt = 0; attempt < 20; attempt += 1) world.shop.answerNext(500)
    await world.buy('1001')
    await world.pass(5 * DAY, HOUR)
    const dead = first((await alertsOf(world)).filter(({ type }) => type === 'dead_letter'))
    expect(dead).toMatchObject({ state: 'open', command: `quayside outbox redeliver ${dead.subject}` })
    for (const { subject } of await alertsOf(world)) await redeliver(world.ordering, subject ?? '', 'ann')
    await world.settle()
    expect((await statesOf(world)).filter((text) => text.endsWith('open'))).toEqual([])
  })

  test('shows that the API key is refused until an answer shows that it is not', async () => {
    const world = await openApi({ apiKey: 'sk_test_another_key_0000' })
    await world.buy('1001')
    await world.settle()
    expect(await statesOf(world)).toEqual(['unauthorized open'])
  })

  test('shows an alert of a single event for three days, and the same one once', async () => {
    const world = await openApi()
    const { ordering } = world
    const low = (occasion: string) =>
      enqueueAlert(ordering, { type: 'balance_low', occasion, payload: { note: 'the balance is low' } })
    await world.db.commit([low('1'), low('2')])
    expect(await alertsOf(world)).toMatchObject([
      { type: 'balance_low', subject: null, state: 'open', advice: 'top up' },
    ])
    world.move(3 * DAY + 1)
    expect(await alertsOf(world)).toEqual([])
  })

  test('says that the catalogue was not read once its last complete run has been over for too long, however long that took', async () => {
    const world = await openApi({ alerts: { syncStaleHours: 4 } })
    const startedAt = world.now()
    const run = { id: 'run', cause: 'schedule', state: 'complete', cursor: 1 } as const
    await world.db.commit([insertSyncRun({ ...run, startedAt, finishedAt: startedAt + 3 * HOUR })])
    const staleAfter = async (ms: number) => {
      world.move(ms)
      await world.alertRound()
      return (await statesOf(world)).includes('sync_stale open')
    }
    expect(await staleAfter(7 * HOUR)).toBe(false)
    expect(await staleAfter(MINUTE)).toBe(true)
  })

  test('shows that a shop gives no orders until it does, and a refused order until it is taken', async () => {
    const world = await openApi()
    const { ordering, db } = world
    const late = { store: OTHER_STORE, reference: '11', attempts: 3, notBefore: world.now(), lastError: 'it failed' }
    await db.commit([
      connectStore(OTHER_STORE, world.now()),
      putStoreReading(OTHER_STORE, { failingSince: world.now() }),
      insertLateOrder(late),
    ])
    for (const type of [
      'store_unreachable',
      'order_refused',
      'order_changed',
      'order_before_connection',
      'order_unread',
      'store_webhook',
    ] as const) {
      const payload = { note: null, store: OTHER_STORE, reference: '11' }
      await db.commit([enqueueAlert(ordering, { type, occasion: '1', payload })])
    }
    const states = async () => (await statesOf(world)).toSorted()
    expect(await states()).toEqual([
      'order_before_connection open',
      'order_changed open',
      'order_refused open',
      'order_unread open',
      'store_unreachable open',
      'store_webhook open',
    ])
    const taken = { id: 'o', store: OTHER_STORE, reference: '11', bodyDigest: 'x', receivedAt: world.now() }
    await db.commit([
      putStoreReading(OTHER_STORE, { failingSince: null }),
      dropLateOrder(OTHER_STORE, '11'),
      insertStoreOrder(taken),
    ])
    expect(await states()).toEqual([
      'order_before_connection ended',
      'order_changed open',
      'order_refused ended',
      'order_unread ended',
      'store_unreachable ended',
      'store_webhook open',
    ])
    // It gives none once more: that is another alert.
    await db.commit([putStoreReading(OTHER_STORE, { failingSince: world.now() + 1 })])
    expect(await states()).toContain('store_unreachable ended')
  })

  test('shows a listing and a failed backup until they are right, and an answer that cannot be read', async () => {
    const world = await openApi()
    const { ordering, db } = world
    const raise = (type: AlertKind, payload: Record<string, string>) =>
      enqueueAlert(ordering, { type, occasion: '1', payload: { note: null, ...payload } })
    await db.commit([
      raise('backup_failed', {}),
      raise('listing_failed', { store: OTHER_STORE }),
      raise('webhook_unheld', { webhook: 'w' }),
      raise('orphan_delivery', { delivery: 'd' }),
      raise('unreadable_answer', { request: 'GET /balance', field: 'amount' }),
    ])
    await world.supplier.balance()
    expect((await statesOf(world)).toSorted()).toEqual([
      'backup_failed open',
      'listing_failed ended',
      'orphan_delivery ended',
      'unreadable_answer ended',
      'webhook_unheld ended',
    ])
    world.move(1)
    expect((await world.ask('POST', '/backups')).status).toBe(201)
    expect(await statesOf(world)).toContain('backup_failed ended')
  })
})

test('the page for people on duty explains every alert, and each names a command', () => {
  const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
  const table = page.split('## Alerts')[1]?.split('\n## ')[0] ?? ''
  const named = table
    .split('\n')
    .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name))
  expect(named.toSorted()).toEqual(Object.keys(alertRules).toSorted())
  for (const kind of named) expect(table).toContain(`${alertText(storedKind(kind ?? ''))} (\`${kind}\`)`)
})
