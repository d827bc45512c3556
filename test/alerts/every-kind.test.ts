/** Every kind of alert over days of virtual time: raised, sent once, repeated, ended, and never a storm. */
import { createServer } from 'node:http'
import { eq } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { severityOf } from '../../src/alerts/kinds.ts'
import { hourOf } from '../../src/domain/activity.ts'
import { type AlertKind, alertKinds, isWayIntoReview, storedKind } from '../../src/domain/alert-kinds.ts'
import type { DeliveryState } from '../../src/domain/labels.ts'
import type { WayIntoReview } from '../../src/domain/purchase.ts'
import { openAlerts } from '../../src/storage/alerts.ts'
import { insertBalance } from '../../src/storage/balance.ts'
import { endClaim, insertClaim } from '../../src/storage/claims.ts'
import type { Change } from '../../src/storage/database.ts'
import { setFreeze } from '../../src/storage/freezes.ts'
import { addHourlyCount } from '../../src/storage/hourly-counts.ts'
import { putOffer } from '../../src/storage/offers.ts'
import { endOutage, insertOutage } from '../../src/storage/outages.ts'
import { enqueueAlert, enqueueUpdate, markEffectDead, postponeEffect } from '../../src/storage/outbox.ts'
import { putPublishing, resumePublishing } from '../../src/storage/publications.ts'
import { insertPurchase } from '../../src/storage/purchases.ts'
import { clearRestoreHold, setRestoreHold } from '../../src/storage/restores.ts'
import { insertSyncRun } from '../../src/storage/runs.ts'
import { deliveries, listings, offers, outbox, purchases, settings } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { insertLine, insertStoreOrder } from '../../src/storage/store-orders.ts'
import { connectStore, dropLateOrder, insertLateOrder, putStoreReading } from '../../src/storage/stores.ts'
import { putUnheldWebhooks } from '../../src/storage/webhooks.ts'
import { startAlertReceiver } from '../support/alert-receiver.ts'
import { type ApiWorld, OTHER_STORE, openApi } from '../support/api-world.ts'
import { insertDeliveries, offer } from '../support/console-data.ts'
import { databaseFile } from '../support/database.ts'
import { SECRET, signedDelivery, timestampOf } from '../support/delivery.ts'
import { offerRow } from '../support/publish-world.ts'
import { startSmtpServer } from '../support/smtp-server.ts'
import { STORE } from '../support/test-app.ts'
import { addWebhook } from '../support/webhook-server.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A kind of alert as it comes and goes. */
interface Kind {
  /** What it is about; absent: it is raised by what stands. */
  payload?: Record<string, string>
  /** Makes it stand. */
  stand?: (world: ApiWorld) => Change[] | Promise<unknown>
  /** Makes it be over; absent: it is a single event, over after three days. */
  end?: (world: ApiWorld) => Change[] | Promise<unknown>
}

const any = (statement: Change['statement']): Change => ({ statement, rows: 'any' })

/** A purchase in a state; `end` lets a person have decided. */
const purchaseIn = (id: string, state: string, before: Change[] = []): Kind => ({
  payload: { purchaseId: id },
  stand: ({ now }) => [
    ...before,
    insertStoreOrder({ id, store: STORE, reference: id, bodyDigest: 'd', receivedAt: now() }),
    insertLine({ id, orderId: id, line: '1', sku: 'k', quantity: 1 }),
    insertPurchase({
      id,
      orderId: id,
      lineId: id,
      part: 1,
      generation: 1,
      state: state as 'review',
      idempotencyKey: id,
      externalOrderId: id,
      body: '{}',
      supplierProductId: 'x',
      quantity: 1,
      ceilingMinor: 1,
      currency: 'EUR',
      deadlineAt: now() + 30 * DAY,
      createdAt: now(),
      changedAt: now(),
    }),
  ],
  end: () => [any(build.update(purchases).set({ state: 'failed' }).where(eq(purchases.id, id)))],
})

const deliveryIn = (state: DeliveryState): Kind => ({
  payload: { delivery: state },
  stand: (world) => insertDeliveries(world, [{ id: state, state }]),
  end: () => [any(build.update(deliveries).set({ state: 'applied' }).where(eq(deliveries.state, state)))],
})

const taken = (reference: string): Kind => ({
  payload: { store: OTHER_STORE, reference },
  end: ({ now }) => [
    insertStoreOrder({ id: reference, store: OTHER_STORE, reference, bodyDigest: 'd', receivedAt: now() }),
  ],
})

const frozen = (note: string, purchaseId?: string): Pick<Kind, 'stand' | 'end'> => ({
  stand: ({ now }) => [setFreeze({ reason: note, actor: 'quayside', at: now(), ...(purchaseId && { purchaseId }) })],
  end: () => [any(build.delete(settings).where(eq(settings.value, settings.value)))],
})

const balance = ({ now, access }: ApiWorld, amountMinor: number): Change[] => [
  insertBalance({ id: access.newId(), readAt: now(), amountMinor, currency: 'EUR' }),
]
const topUp = (world: ApiWorld) => balance(world, 900_000_000)

/** The row that makes an update for a store fail. */
const update = (id: string, { now }: ApiWorld) =>
  enqueueUpdate(
    { kind: 'callback', type: 'order.closed', payload: { state: 'fulfilled' } },
    { id, store: STORE, orderId: 'keys_short', dedupeKey: id, at: now() },
  )

const fresh = ({ runtime, now }: ApiWorld) => deliver(runtime.inbox, { timestamp: timestampOf(now()) })

const kinds: Record<Exclude<AlertKind, WayIntoReview>, Kind> = {
  claim_overdue: {
    payload: { claim: '1' },
    stand: (world) => [
      ...((purchaseIn('dead', 'fulfilled').stand?.(world) ?? []) as Change[]),
      insertClaim({
        ...{ id: 'claim', orderId: 'dead', purchaseId: 'dead', ordinal: 1, note: 'it was redeemed before' },
        ...{ raisedAt: world.now(), raisedBy: 'ann', deadlineAt: world.now() },
      }),
    ],
    end: ({ now }) => [endClaim({ id: 'claim' }, { endedAt: now(), outcome: 'refused' })],
  },
  missing: purchaseIn('gone', 'accepted'),
  late: purchaseIn('open', 'accepted'),
  look_ups_fail: purchaseIn('lost', 'unknown'),
  store_not_configured: purchaseIn('lacking', 'planned'),
  over_ceiling: {
    ...purchaseIn('dear', 'fulfilled'),
    stand: ({ now }) => [
      putOffer(offerRow('x')),
      any(build.update(offers).set({ heldAt: now() }).where(eq(offers.productId, 'x'))),
      ...((purchaseIn('dear', 'fulfilled').stand?.({ now } as ApiWorld) ?? []) as Change[]),
    ],
    end: () => [any(build.update(offers).set({ heldAt: null }).where(eq(offers.productId, 'x')))],
  },
  double_charge: { payload: { purchaseId: 'double' }, ...frozen('two orders', 'double') },
  freeze: { payload: { note: 'many reviews' }, ...frozen('many reviews') },
  restored: {
    stand: ({ now }) => [setRestoreHold({ reason: 'a backup was put back', actor: 'restore', at: now() }, now())],
    end: () => [clearRestoreHold()],
    payload: {},
  },
  reversed: { payload: { purchaseId: 'keys_short' } },
  orphan: { payload: {} },
  balance_unexplained: { payload: {} },
  balance_low: { payload: {} },
  id_conflict: { payload: { delivery: 'd' } },
  order_fulfilled_early: { payload: { store: OTHER_STORE } },
  order_held: {
    ...purchaseIn('held', 'planned'),
    payload: { purchaseId: 'held', reference: 'held', reason: 'ceiling' },
    stand: (world) => [
      ...((purchaseIn('held', 'planned').stand?.(world) ?? []) as Change[]),
      any(build.update(purchases).set({ holdReason: 'ceiling', heldAt: world.now() }).where(eq(purchases.id, 'held'))),
    ],
  },
  order_changed: { payload: { store: OTHER_STORE, reference: '1' } },
  store_webhook: { payload: { store: OTHER_STORE } },
  supplier_unreachable: {
    payload: { outage: 'o' },
    stand: ({ now }) => [insertOutage({ id: 'o', beganAt: now(), error: 'cannot be reached' })],
    end: ({ now }) => [endOutage('o', now())],
  },
  unauthorized: { payload: {}, end: supplierAnswers },
  unreadable_answer: { payload: { request: 'GET /balance', field: 'data.balance' }, stand: supplierRefuses },
  backup_failed: { payload: {}, end: ({ ask }) => ask('POST', '/backups') },
  dead_letter: {
    payload: { callback: 'dead' },
    stand: (world) => [update('dead', world), markEffectDead('dead', 9, 'answered 500')],
    end: () => [any(build.update(outbox).set({ state: 'done' }).where(eq(outbox.id, 'dead')))],
  },
  webhook_unheld: {
    payload: { webhook: 'w' },
    stand: ({ now }) => [
      putUnheldWebhooks({ webhooks: [{ id: 'w', url: 'u', seenAt: now(), replacedBy: null }], replacedAt: 0 }, now()),
    ],
    end: ({ now }) => [putUnheldWebhooks({ webhooks: [], replacedAt: 0 }, now())],
  },
  orphan_delivery: deliveryIn('orphan'),
  order_mismatch: { payload: { delivery: 'orphan' }, end: () => [] },
  delivery_quarantined: deliveryIn('quarantined'),
  delivery_dead: deliveryIn('dead'),
  listing_failed: {
    payload: { store: STORE },
    stand: async (world) => {
      await offer(world, 'a')
      await world.publish()
      await world.db.commit([any(build.update(listings).set({ state: 'failed' }))])
    },
    end: () => [any(build.update(listings).set({ state: 'synced' }))],
  },
  order_refused: taken('refused'),
  order_before_connection: taken('earlier'),
  order_unread: {
    payload: { store: OTHER_STORE, reference: 'unread' },
    stand: ({ now }) => [
      insertLateOrder({ store: OTHER_STORE, reference: 'unread', attempts: 1, notBefore: now(), lastError: 'e' }),
    ],
    end: () => [dropLateOrder(OTHER_STORE, 'unread')],
  },
  store_unreachable: {
    payload: { store: OTHER_STORE },
    stand: async ({ db, now }) => {
      await db.commit([connectStore(OTHER_STORE, now()), putStoreReading(OTHER_STORE, { failingSince: now() })])
    },
    end: () => [putStoreReading(OTHER_STORE, { failingSince: null })],
  },
  all_stale: { end: fresh },
  deliveries_refused: { end: fresh },
  balance_below: { stand: (world) => balance(world, 100), end: topUp },
  balance_runs_out: {
    stand: ({ now }) => [addHourlyCount({ hour: hourOf(now()), name: 'spend', part: 'EUR', count: 100_000 })],
    end: topUp,
  },
  sync_stale: {
    end: ({ now }) => {
      const run = { id: 'run', cause: 'schedule', state: 'complete', cursor: 1 } as const
      return [insertSyncRun({ ...run, startedAt: now(), finishedAt: now() + 30 * DAY })]
    },
  },
  listings_not_taken: {
    stand: ({ now }) => [
      putPublishing({
        store: STORE,
        policy: 'p',
        epoch: 0,
        attempts: 5,
        pausedUntil: now() + 30 * 60_000,
        lastError: 'answered 500',
        changedAt: now(),
      }),
    ],
    end: ({ now }) => [resumePublishing(STORE, now())],
  },
  updates_not_taken: {
    stand: (world) => [update('due', world), postponeEffect('due', 5, world.now() + 30 * DAY, 'answered 500', null)],
    end: () => [any(build.update(outbox).set({ state: 'done' }).where(eq(outbox.id, 'due')))],
  },
  disk_low: {
    stand: async ({ disk }) => {
      disk.freeMb = 10
    },
    end: async ({ disk }) => {
      disk.freeMb = 10_000
    },
  },
  backup_missing: { end: ({ ask }) => ask('POST', '/backups') },
}

const kindOf = (kind: AlertKind): Kind => (isWayIntoReview(kind) ? purchaseIn(kind, 'review') : kinds[kind])

test('every kind is sent once, again each day and when it is over, and none twice within an hour', async () => {
  const [receiver, smtp] = [await startAlertReceiver(), await startSmtpServer()]
  const mail = { kind: 'email', from: 'quayside@shop.example', to: ['duty@shop.example'] }
  const world = await openApi({
    sandboxFile: databaseFile(),
    alerts: {
      channels: { duty: { kind: 'webhook' }, urgent: { ...mail, least: 'critical' } },
      balanceBelow: '10.00',
      syncStaleHours: 24,
    },
    alertAddresses: { QUAYSIDE_ALERT_DUTY: receiver.url, QUAYSIDE_ALERT_URGENT: smtp.url },
  })
  const messages: { kind: string; at: number; states: string[] }[] = []
  receiver.heard = ({ data: { kind, alerts } }) =>
    messages.push({ kind, at: world.now(), states: alerts.map(({ state }) => state) })
  await addWebhook(world.db, world.vault, { path: '', secret: SECRET, createdAt: 1 })
  await world.runtime.inbox.reload()
  await world.alertRound()

  const act = async (does: Kind['stand']) => {
    const changes = await does?.(world)
    if (Array.isArray(changes) && changes.length > 0 && typeof changes[0] !== 'string') await world.db.commit(changes)
  }
  for (const type of alertKinds) {
    const { payload, stand } = kindOf(type)
    await act(stand)
    if (!payload) continue
    await world.db.commit([
      enqueueAlert(world.ordering, { type, occasion: type, payload: { note: null, ...(await known(world, payload)) } }),
    ])
  }
  const pass = async (ms: number, stepMs: number, isWrong: boolean) => {
    for (let left = ms; left > 0; left -= stepMs) {
      world.move(stepMs)
      if (isWrong) await deliverWrongly(world)
      await world.alertRound()
    }
  }
  await pass(DAY, 10 * MINUTE, true)
  await pass(51 * HOUR, HOUR, true)
  for (const kind of alertKinds) await act(kindOf(kind).end)
  await pass(26 * HOUR, HOUR, false)

  const said = Map.groupBy(messages, ({ kind }) => kind)
  expect([...said.keys()].toSorted()).toEqual([...alertKinds].toSorted())
  const wrong = [...said].map(([kind, all]) => `${kind}: ${all.map(({ states }) => states.join('+')).join(' ')}`)
  expect(wrong.filter((text) => !/: raised( repeated)+ ended$/.test(text))).toEqual([])
  const soon = [...said.values()].flatMap((all) =>
    all.filter(({ at }, index) => index > 0 && at - (all[index - 1]?.at ?? 0) < HOUR),
  )
  expect(soon).toEqual([])
  // The other channel has the critical ones alone, each as often.
  const critical = messages.filter(({ kind }) => severityOf(storedKind(kind)) === 'critical')
  expect(smtp.received.length).toBe(critical.length)
  expect(await world.db.query(openAlerts(10))).toEqual([])
})

/** What is only known once it stands. */
async function known({ supplier }: ApiWorld, payload: Record<string, string>): Promise<Record<string, string>> {
  const [answer] = supplier.unreadable()
  return payload.request && answer ? { ...payload, request: answer.request, field: answer.field } : payload
}

/** In the place of the supplier: first an answer that cannot be read, then one that refuses the API key. */
async function supplierRefuses(world: ApiWorld): Promise<void> {
  const port = Number(new URL(world.sandbox.baseUrl).port)
  await world.supplierDown()
  let answered = 0
  const server = createServer((_request, response) => {
    answered += 1
    const [status, body] =
      answered === 1
        ? [200, { success: true, data: {} }]
        : [401, { success: false, error: { code: 'unauthorized', message: 'who?' } }]
    response.writeHead(status, { 'content-type': 'application/json', connection: 'close' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  for (let asked = 0; asked < 2; asked += 1) await world.supplier.balance().catch(() => {})
  await new Promise((resolve) => server.close(resolve))
  expect(world.supplier.unreadable()).toHaveLength(1)
  expect(world.supplier.reach().refusesKey).toBe(true)
}

async function supplierAnswers(world: ApiWorld): Promise<void> {
  await world.supplierUp()
  await world.supplier.balance()
}

let sent = 0

/** Three stale deliveries, and three whose signature does not fit. */
async function deliverWrongly({ runtime: { inbox }, now }: ApiWorld): Promise<void> {
  const stale = timestampOf(now() - HOUR)
  for (let count = 0; count < 3; count += 1) await deliver(inbox, { timestamp: stale })
  for (let count = 0; count < 3; count += 1) await deliver(inbox, { secret: `${SECRET}x` })
}

async function deliver(inbox: ApiWorld['runtime']['inbox'], parts: Parameters<typeof signedDelivery>[0]) {
  sent += 1
  const { headers, body } = signedDelivery({ ...parts, deliveryId: `dlv_${sent}`, body: { event: 'none', sent } })
  const distinct = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), [value]]))
  await inbox.receive({ path: '/webhooks/supplier', headers: distinct, body })
}
