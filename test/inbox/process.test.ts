import { describe, expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { processDue, replay, reveal } from '../../src/inbox/process.ts'
import { type StoreSource, storeSourceId } from '../../src/inbox/sources.ts'
import { insertDelivery, replayDelivery } from '../../src/storage/deliveries.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { deliveries, outbox } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { bytesOf, orderEvent, signedDelivery, timestampOf } from '../support/delivery.ts'
import { addPurchase, openEndpoint, type WebhookEndpoint } from '../support/webhook-endpoint.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Delivers payloads as separate deliveries, all signed now. */
async function deliverAll(endpoint: WebhookEndpoint, payloads: object[]): Promise<void> {
  const timestamp = timestampOf(endpoint.clock.now)
  const answers = await Promise.all(
    payloads.map((body, n) =>
      endpoint.deliver(signedDelivery({ deliveryId: `dlv_${endpoint.clock.now}_${n}`, timestamp, body })),
    ),
  )
  expect(answers.map((answer) => answer?.status)).toEqual(payloads.map(() => 200))
}

/** Moves the clock in steps and processes what is due after each. */
async function pass(endpoint: WebhookEndpoint, ms: number, stepMs: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    endpoint.clock.now += Math.min(stepMs, ms - passed)
    await endpoint.process()
  }
}
const statesOf = async (endpoint: WebhookEndpoint): Promise<string[]> =>
  (await endpoint.rows()).map(({ state }) => state)
const product = (productId: string) => ({ event: 'product.restocked', data: { product_id: productId } })

describe('an order event', () => {
  test('hints the purchase, wakes its read and changes nothing else', async () => {
    const endpoint = await openEndpoint()
    await addPurchase(endpoint.db, 1, { refreshAt: endpoint.clock.now + HOUR, state: 'accepted' })
    await deliverAll(endpoint, [orderEvent()])
    await endpoint.process()
    expect(await endpoint.purchases()).toMatchObject([
      { state: 'accepted', refreshAt: endpoint.clock.now, version: 0, supplierStatus: null },
    ])
    expect(await endpoint.rows()).toMatchObject([
      { state: 'applied', event: 'order.completed', supplierOrderId: 'ord_1', purchaseId: 'purchase_1', attempts: 1 },
    ])
    expect(endpoint.seen.wakes).toEqual(['inbox', 'refresh'])
    expect(endpoint.seen.lines.filter((line) => line.includes('delivery.applied'))).toHaveLength(1)
  })

  test('is announced with the purchase that it names, and an event of another order is not', async () => {
    const endpoint = await openEndpoint()
    const announced: string[] = []
    endpoint.deps.announced = (purchaseId) => announced.push(purchaseId)
    await addPurchase(endpoint.db, 1)
    const other = orderEvent({ order_id: 'ord_9', external_order_id: 'ref_9' })
    await deliverAll(endpoint, [orderEvent(), other, product('prod_1'), { event: 'balance.low' }])
    await endpoint.process()
    expect(announced).toEqual(['purchase_1'])
  })

  test('is joined by either of its ids', async () => {
    const endpoint = await openEndpoint()
    await addPurchase(endpoint.db, 1)
    await addPurchase(endpoint.db, 2, { supplierOrderId: null })
    await deliverAll(endpoint, [
      orderEvent({ external_order_id: null }),
      orderEvent({ order_id: null, external_order_id: 'ref_2' }),
    ])
    await endpoint.process()
    expect((await endpoint.purchases()).map(({ refreshAt }) => refreshAt)).toEqual([
      endpoint.clock.now,
      endpoint.clock.now,
    ])
  })
})

describe('an orphan', () => {
  test('is joined once its order is there', async () => {
    const endpoint = await openEndpoint()
    await deliverAll(endpoint, [orderEvent()])
    await endpoint.process()
    expect(await statesOf(endpoint)).toEqual(['orphan'])
    await addPurchase(endpoint.db, 1)
    await endpoint.process()
    expect(await statesOf(endpoint)).toEqual(['orphan'])
    await pass(endpoint, 5_000, 5_000)
    expect(await statesOf(endpoint)).toEqual(['applied'])
    expect(await endpoint.alerts()).toEqual([])
  })

  test('alerts once for a source and hour, 15 minutes after it came', async () => {
    const endpoint = await openEndpoint()
    await deliverAll(endpoint, [orderEvent(), orderEvent({ order_id: 'ord_9', external_order_id: 'ref_9' })])
    await pass(endpoint, 14 * MINUTE, MINUTE)
    expect(await endpoint.alerts()).toEqual([])
    await pass(endpoint, 3 * HOUR, 5 * MINUTE)
    expect(await endpoint.alerts()).toEqual(['orphan_delivery'])
    await deliverAll(endpoint, [orderEvent({ order_id: 'ord_8', external_order_id: 'ref_8' })])
    await pass(endpoint, HOUR, 5 * MINUTE)
    expect(await endpoint.alerts()).toEqual(['orphan_delivery', 'orphan_delivery'])
  })

  test('at which something fails stays one, and is tried again a minute later', async () => {
    const endpoint = await openEndpoint()
    await deliverAll(endpoint, [orderEvent()])
    await endpoint.process()
    const { open } = endpoint.vault
    endpoint.vault.open = () => {
      throw new Error(`does not open ${'x'.repeat(600)}`)
    }
    for (let tries = 0; tries < 12; tries += 1) await pass(endpoint, MINUTE, MINUTE)
    const [row] = await endpoint.rows()
    expect(row).toMatchObject({ state: 'orphan', attempts: 13, notBefore: endpoint.clock.now + MINUTE })
    expect(row?.lastError).toHaveLength(500)
    endpoint.vault.open = open
    await addPurchase(endpoint.db, 1)
    await pass(endpoint, MINUTE, MINUTE)
    expect(await statesOf(endpoint)).toEqual(['applied'])
  })

  test('is tried for 24 hours, at least every 15 minutes, then ignored', async () => {
    const endpoint = await openEndpoint()
    await deliverAll(endpoint, [orderEvent()])
    await pass(endpoint, 24 * HOUR - MINUTE, MINUTE)
    const [row] = await endpoint.rows()
    expect(row).toMatchObject({ state: 'orphan', finishedAt: null })
    expect(row?.attempts).toBeGreaterThan(96)
    expect(row?.attempts).toBeLessThan(130)
    await pass(endpoint, 15 * MINUTE, MINUTE)
    expect(await endpoint.rows()).toMatchObject([
      { state: 'ignored', lastError: expect.stringContaining('no purchase') },
    ])
  })
})

describe('events about the catalogue and the balance', () => {
  test('read each product once, however many deliveries ask for it', async () => {
    const endpoint = await openEndpoint()
    await deliverAll(
      endpoint,
      ['prod_1', 'prod_2', 'prod_1', 'prod_1'].map((id, n) => ({ ...product(id), n })),
    )
    await endpoint.process()
    expect(endpoint.seen.refreshed.sort()).toEqual(['prod_1', 'prod_2'])
    expect(await statesOf(endpoint)).toEqual(Array(4).fill('applied'))
  })

  test('do not hold up orders: eight reads a run, the others wait for the next ones', async () => {
    const running = { now: 0, most: 0 }
    const endpoint = await openEndpoint({
      refreshOffer: async () => {
        running.most = Math.max(running.most, ++running.now)
        await new Promise(setImmediate)
        running.now -= 1
      },
    })
    await addPurchase(endpoint.db, 1)
    await deliverAll(endpoint, [...Array.from({ length: 20 }, (_, n) => product(`prod_${n}`)), orderEvent()])
    await processDue(endpoint.deps)
    expect((await statesOf(endpoint)).filter((state) => state === 'applied')).toHaveLength(9)
    expect(await endpoint.purchases()).toMatchObject([{ refreshAt: endpoint.clock.now }])
    expect(running.most).toBe(8)
    await pass(endpoint, 4_000, 1_000)
    expect(await statesOf(endpoint)).toEqual(Array(21).fill('applied'))
    expect((await endpoint.rows()).every(({ attempts }) => attempts === 1)).toBe(true)
  })

  test('that wait do so for two seconds, and two more for each eight before them', async () => {
    const endpoint = await openEndpoint()
    await deliverAll(
      endpoint,
      Array.from({ length: 24 }, (_, n) => product(`prod_${n}`)),
    )
    await processDue(endpoint.deps)
    const rows = await endpoint.rows()
    expect(rows.filter(({ state }) => state === 'applied')).toHaveLength(8)
    const waits = rows.filter(({ state }) => state !== 'applied').map(({ notBefore }) => notBefore - endpoint.clock.now)
    expect(waits.toSorted()).toEqual([...Array(8).fill(2_000), ...Array(8).fill(4_000)])
  })

  test('alert to a low balance once an hour', async () => {
    const endpoint = await openEndpoint()
    await deliverAll(endpoint, [{ event: 'balance.low' }, { event: 'balance.low', data: {} }])
    await endpoint.process()
    expect(endpoint.seen.balanceReads).toBe(1)
    await pass(endpoint, HOUR, HOUR)
    await deliverAll(endpoint, [{ event: 'balance.low', data: { n: 2 } }])
    await endpoint.process()
    expect(await endpoint.alerts()).toEqual(['balance_low', 'balance_low'])
  })
})

describe('a delivery that fails', () => {
  test('is tried ten times, then is a dead letter with one alert, and can be put back', async () => {
    const outage = { on: true }
    const endpoint = await openEndpoint({
      refreshOffer: async () => {
        if (outage.on) throw new Error('the supplier is away')
      },
    })
    await deliverAll(endpoint, [product('prod_1'), product('prod_2')])
    await endpoint.process()
    expect(await endpoint.rows()).toMatchObject([
      { state: 'retry', attempts: 1, lastError: 'the supplier is away' },
      { state: 'retry', attempts: 1 },
    ])
    await pass(endpoint, 24 * HOUR, MINUTE)
    const [dead] = await endpoint.rows()
    expect(dead).toMatchObject({ state: 'dead', attempts: 10, lastError: 'the supplier is away' })
    expect(endpoint.seen.refreshed).toHaveLength(20)
    expect(await endpoint.alerts()).toEqual(['delivery_dead'])
    // People who watch the log for errors see a dead letter, and no single failure.
    const levels = endpoint.seen.lines.flatMap((line) => {
      const { level, event } = JSON.parse(line) as { level: string; event: string }
      return event.startsWith('delivery.') ? `${event} ${level}` : []
    })
    expect([...new Set(levels)]).toEqual(['delivery.retry warn', 'delivery.dead error'])

    outage.on = false
    await endpoint.db.commit([replayDelivery(dead?.id ?? '', endpoint.clock.now)])
    await endpoint.process()
    expect((await statesOf(endpoint))[0]).toBe('applied')
  })

  test('harms no other', async () => {
    const endpoint = await openEndpoint()
    await addPurchase(endpoint.db, 1)
    await addPurchase(endpoint.db, 2)
    await deliverAll(endpoint, [orderEvent({ order_id: 'ord_2', external_order_id: 'ref_2' }), orderEvent()])
    const [poison] = await endpoint.rows()
    // What was sealed for one row does not open in another: the row is damaged.
    const { open } = endpoint.vault
    endpoint.vault.open = (place, ciphertext, keyId) => {
      if (place.row === poison?.id) throw new Error('does not open')
      return open(place, ciphertext, keyId)
    }
    await endpoint.process()
    expect((await statesOf(endpoint)).sort()).toEqual(['applied', 'retry'])
  })

  test.each(['unavailable', 'unknown_outcome'] as const)(
    'stays due when the database cannot settle it: %s',
    async (code) => {
      const endpoint = await openEndpoint()
      await addPurchase(endpoint.db, 1)
      await deliverAll(endpoint, [orderEvent()])
      const { commit } = endpoint.db
      let commits = 0
      endpoint.db.commit = () => {
        commits += 1
        return Promise.reject(new Failure(code, 'the database is busy'))
      }
      expect(await processDue(endpoint.deps)).toBe(0)
      expect(await statesOf(endpoint)).toEqual(['stored'])
      expect(commits, 'what may be stored is not tried in other words').toBe(1)
      endpoint.db.commit = commit
      await endpoint.process()
      expect(await statesOf(endpoint)).toEqual(['applied'])
    },
  )

  test('is tried again when its changes themselves are refused', async () => {
    const endpoint = await openEndpoint()
    await addPurchase(endpoint.db, 1)
    await deliverAll(endpoint, [orderEvent()])
    const { commit } = endpoint.db
    endpoint.db.commit = (changes) =>
      changes.length > 1 ? Promise.reject(new Error('a faulty statement')) : commit(changes)
    await endpoint.process()
    expect(await endpoint.rows()).toMatchObject([{ state: 'retry', attempts: 1, lastError: 'a faulty statement' }])
  })
})

describe('deliveries of a store', () => {
  test('are each taken in one run, however many there are of one store', async () => {
    const endpoint = await openEndpoint()
    const { db, vault, clock } = endpoint
    const taken: string[] = []
    const source: StoreSource = {
      id: storeSourceId('s'),
      path: '/webhooks/stores/s',
      state: 'live',
      faultOfHeaders: () => undefined,
      verify: () => ({ outcome: 'ping' }),
      read: (body) => ({
        kind: 'store_order',
        event: 'order',
        take: async () => {
          taken.push(body.toString())
          return { outcome: 'taken' }
        },
      }),
    }
    endpoint.deps.storeSources = [source]
    for (const reference of ['1001', '1002', '1003']) {
      const { ciphertext, keyId } = vault.seal({ table: 'deliveries', row: reference }, Buffer.from(reference))
      const [receivedAt, digest] = [clock.now, Buffer.from(reference)]
      const said = { id: reference, source: source.id, deliveryId: reference, bodyHmac: digest, mac: digest }
      await db.commit([
        insertDelivery({
          ...said,
          signedAt: receivedAt,
          receivedAt,
          ciphertext,
          keyId,
          state: 'stored',
          notBefore: receivedAt,
        }),
      ])
    }
    expect(await processDue(endpoint.deps)).toBe(3)
    expect(taken.toSorted()).toEqual(['1001', '1002', '1003'])
    expect(await statesOf(endpoint)).toEqual(['applied', 'applied', 'applied'])
  })
})

test('two bodies under one delivery ID alert people once, and one body under it does not', async () => {
  const endpoint = await openEndpoint()
  await addPurchase(endpoint.db, 1)
  const timestamp = timestampOf(endpoint.clock.now)
  const deliver = (deliveryId: string, body: object) =>
    endpoint.deliver(signedDelivery({ deliveryId, timestamp, body }))
  await deliver('dlv_1', orderEvent())
  await endpoint.process()
  expect(await endpoint.alerts()).toEqual([])
  await deliver('dlv_1', orderEvent({ n: 2 }))
  await endpoint.process()
  expect(await endpoint.alerts()).toEqual(['id_conflict'])
})

describe('what people do with a delivery', () => {
  test('puts it back once, also where it is named twice, and the audit has it once', async () => {
    const endpoint = await openEndpoint()
    await addPurchase(endpoint.db, 1)
    await deliverAll(endpoint, [orderEvent()])
    await endpoint.process()
    const { id = '' } = (await endpoint.rows())[0] ?? {}
    expect(await replay({ ...endpoint.deps, wake: () => {} }, [id, id, 'none'], 'ann')).toEqual([id])
    expect(await endpoint.db.query(auditOf(id))).toMatchObject([{ action: 'delivery.replay', actor: 'ann' }])
  })

  test('is no look at a body that is deleted: there is none, and no entry', async () => {
    const endpoint = await openEndpoint()
    await deliverAll(endpoint, [orderEvent()])
    const { id = '' } = (await endpoint.rows())[0] ?? {}
    await endpoint.db.commit([{ statement: build.update(deliveries).set({ ciphertext: Buffer.alloc(0) }), rows: 1 }])
    await expect(reveal(endpoint.deps, id, 'ann')).rejects.toMatchObject({ code: 'conflict', reason: 'body_deleted' })
    expect(await endpoint.db.query(auditOf(id))).toEqual([])
  })
})

describe('two runs at once', () => {
  test('settle each delivery once', async () => {
    const endpoint = await openEndpoint()
    await addPurchase(endpoint.db, 1)
    await deliverAll(endpoint, [orderEvent()])
    const settled = await Promise.all([processDue(endpoint.deps), processDue(endpoint.deps)])
    expect(settled.sort()).toEqual([0, 1])
    expect(await endpoint.rows()).toMatchObject([{ state: 'applied', attempts: 1 }])
  })
})

test('an alert names rows and says what to do, and carries nothing of the body', async () => {
  const endpoint = await openEndpoint()
  await endpoint.deliver(signedDelivery({ body: bytesOf('{"secret":"in the body"}') }))
  await endpoint.process()
  const [row] = await endpoint.rows()
  const [alert] = await endpoint.db.query(build.select().from(outbox))
  expect(alert).toMatchObject({
    kind: 'alert',
    type: 'delivery_quarantined',
    state: 'due',
    notBefore: endpoint.clock.now,
  })
  expect(alert?.payload).toEqual({
    note: 'authentic deliveries cannot be read, so the dialect is wrong: no event at event',
    source: 'supplier',
    delivery: row?.id,
  })
})
