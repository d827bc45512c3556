import { describe, expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { processDue } from '../../src/inbox/process.ts'
import { replayDelivery } from '../../src/storage/deliveries.ts'
import { outbox } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { bytesOf, orderEvent, signedDelivery, timestampOf } from '../support/delivery.ts'
import { addPurchase, type Door, openDoor } from '../support/webhook-door.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Delivers payloads as separate deliveries, all signed now. */
async function deliverAll(door: Door, payloads: object[]): Promise<void> {
  const timestamp = timestampOf(door.clock.now)
  const answers = await Promise.all(
    payloads.map((body, n) =>
      door.deliver(signedDelivery({ deliveryId: `dlv_${door.clock.now}_${n}`, timestamp, body })),
    ),
  )
  expect(answers.map((answer) => answer?.status)).toEqual(payloads.map(() => 200))
}

/** Moves the clock in steps and processes what is due after each. */
async function pass(door: Door, ms: number, stepMs: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    door.clock.now += Math.min(stepMs, ms - passed)
    await door.process()
  }
}
const statesOf = async (door: Door): Promise<string[]> => (await door.rows()).map(({ state }) => state)
const product = (productId: string) => ({ event: 'product.restocked', data: { product_id: productId } })

describe('an order event', () => {
  test('hints the purchase, wakes its read and changes nothing else', async () => {
    const door = await openDoor()
    await addPurchase(door.db, 1, { refreshAt: door.clock.now + HOUR, state: 'accepted' })
    await deliverAll(door, [orderEvent()])
    await door.process()
    expect(await door.purchases()).toMatchObject([
      { state: 'accepted', refreshAt: door.clock.now, version: 0, supplierStatus: null },
    ])
    expect(await door.rows()).toMatchObject([
      { state: 'applied', event: 'order.completed', supplierOrderId: 'ord_1', purchaseId: 'purchase_1', attempts: 1 },
    ])
    expect(door.seen.wakes).toEqual(['inbox', 'refresh'])
    expect(door.seen.lines.filter((line) => line.includes('delivery.applied'))).toHaveLength(1)
  })

  test('is joined by either of its ids', async () => {
    const door = await openDoor()
    await addPurchase(door.db, 1)
    await addPurchase(door.db, 2, { supplierOrderId: null })
    await deliverAll(door, [
      orderEvent({ external_order_id: null }),
      orderEvent({ order_id: null, external_order_id: 'ref_2' }),
    ])
    await door.process()
    expect((await door.purchases()).map(({ refreshAt }) => refreshAt)).toEqual([door.clock.now, door.clock.now])
  })
})

describe('an orphan', () => {
  test('is joined once its order is there', async () => {
    const door = await openDoor()
    await deliverAll(door, [orderEvent()])
    await door.process()
    expect(await statesOf(door)).toEqual(['orphan'])
    await addPurchase(door.db, 1)
    await door.process()
    expect(await statesOf(door)).toEqual(['orphan'])
    await pass(door, 5_000, 5_000)
    expect(await statesOf(door)).toEqual(['applied'])
    expect(await door.alerts()).toEqual([])
  })

  test('alerts once for a source and hour, 15 minutes after it came', async () => {
    const door = await openDoor()
    await deliverAll(door, [orderEvent(), orderEvent({ order_id: 'ord_9', external_order_id: 'ref_9' })])
    await pass(door, 14 * MINUTE, MINUTE)
    expect(await door.alerts()).toEqual([])
    await pass(door, 3 * HOUR, 5 * MINUTE)
    expect(await door.alerts()).toEqual(['orphan_delivery'])
    await deliverAll(door, [orderEvent({ order_id: 'ord_8', external_order_id: 'ref_8' })])
    await pass(door, HOUR, 5 * MINUTE)
    expect(await door.alerts()).toEqual(['orphan_delivery', 'orphan_delivery'])
  })

  test('is tried for 24 hours, at least every 15 minutes, then ignored', async () => {
    const door = await openDoor()
    await deliverAll(door, [orderEvent()])
    await pass(door, 24 * HOUR - MINUTE, MINUTE)
    const [row] = await door.rows()
    expect(row).toMatchObject({ state: 'orphan', finishedAt: null })
    expect(row?.attempts).toBeGreaterThan(96)
    expect(row?.attempts).toBeLessThan(130)
    await pass(door, 15 * MINUTE, MINUTE)
    expect(await door.rows()).toMatchObject([{ state: 'ignored', lastError: expect.stringContaining('no purchase') }])
  })
})

describe('events about the catalogue and the balance', () => {
  test('read each product once, however many deliveries ask for it', async () => {
    const door = await openDoor()
    await deliverAll(
      door,
      ['prod_1', 'prod_2', 'prod_1', 'prod_1'].map((id, n) => ({ ...product(id), n })),
    )
    await door.process()
    expect(door.seen.refreshed.sort()).toEqual(['prod_1', 'prod_2'])
    expect(await statesOf(door)).toEqual(Array(4).fill('applied'))
  })

  test('do not hold up orders: eight reads a run, the others wait for the next ones', async () => {
    const running = { now: 0, most: 0 }
    const door = await openDoor({
      refreshOffer: async () => {
        running.most = Math.max(running.most, ++running.now)
        await new Promise(setImmediate)
        running.now -= 1
      },
    })
    await addPurchase(door.db, 1)
    await deliverAll(door, [...Array.from({ length: 20 }, (_, n) => product(`prod_${n}`)), orderEvent()])
    await processDue(door.deps)
    expect((await statesOf(door)).filter((state) => state === 'applied')).toHaveLength(9)
    expect(await door.purchases()).toMatchObject([{ refreshAt: door.clock.now }])
    expect(running.most).toBe(8)
    await pass(door, 4_000, 1_000)
    expect(await statesOf(door)).toEqual(Array(21).fill('applied'))
    expect((await door.rows()).every(({ attempts }) => attempts === 1)).toBe(true)
  })

  test('alert to a low balance once an hour', async () => {
    const door = await openDoor()
    await deliverAll(door, [{ event: 'balance.low' }, { event: 'balance.low', data: {} }])
    await door.process()
    expect(door.seen.balanceReads).toBe(1)
    await pass(door, HOUR, HOUR)
    await deliverAll(door, [{ event: 'balance.low', data: { n: 2 } }])
    await door.process()
    expect(await door.alerts()).toEqual(['balance_low', 'balance_low'])
  })
})

describe('a delivery that fails', () => {
  test('is tried ten times, then is a dead letter with one alert, and can be put back', async () => {
    const outage = { on: true }
    const door = await openDoor({
      refreshOffer: async () => {
        if (outage.on) throw new Error('the supplier is away')
      },
    })
    await deliverAll(door, [product('prod_1'), product('prod_2')])
    await door.process()
    expect(await door.rows()).toMatchObject([
      { state: 'retry', attempts: 1, lastError: 'the supplier is away' },
      { state: 'retry', attempts: 1 },
    ])
    await pass(door, 24 * HOUR, MINUTE)
    const [dead] = await door.rows()
    expect(dead).toMatchObject({ state: 'dead', attempts: 10, lastError: 'the supplier is away' })
    expect(door.seen.refreshed).toHaveLength(20)
    expect(await door.alerts()).toEqual(['delivery_dead'])

    outage.on = false
    await door.db.commit([replayDelivery(dead?.id ?? '', door.clock.now)])
    await door.process()
    expect((await statesOf(door))[0]).toBe('applied')
  })

  test('harms no other', async () => {
    const door = await openDoor()
    await addPurchase(door.db, 1)
    await addPurchase(door.db, 2)
    await deliverAll(door, [orderEvent({ order_id: 'ord_2', external_order_id: 'ref_2' }), orderEvent()])
    const [poison] = await door.rows()
    // What was sealed for one row does not open in another: the row is damaged.
    const { open } = door.vault
    door.vault.open = (place, ciphertext, keyId) => {
      if (place.row === poison?.id) throw new Error('does not open')
      return open(place, ciphertext, keyId)
    }
    await door.process()
    expect((await statesOf(door)).sort()).toEqual(['applied', 'retry'])
  })

  test('stays due when the database cannot settle it', async () => {
    const door = await openDoor()
    await addPurchase(door.db, 1)
    await deliverAll(door, [orderEvent()])
    const { commit } = door.db
    door.db.commit = () => Promise.reject(new Failure('unavailable', 'the database is busy'))
    expect(await processDue(door.deps)).toBe(0)
    expect(await statesOf(door)).toEqual(['stored'])
    door.db.commit = commit
    await door.process()
    expect(await statesOf(door)).toEqual(['applied'])
  })

  test('is tried again when its changes themselves are refused', async () => {
    const door = await openDoor()
    await addPurchase(door.db, 1)
    await deliverAll(door, [orderEvent()])
    const { commit } = door.db
    door.db.commit = (changes) =>
      changes.length > 1 ? Promise.reject(new Error('a faulty statement')) : commit(changes)
    await door.process()
    expect(await door.rows()).toMatchObject([{ state: 'retry', attempts: 1, lastError: 'a faulty statement' }])
  })
})

describe('two runs at once', () => {
  test('settle each delivery once', async () => {
    const door = await openDoor()
    await addPurchase(door.db, 1)
    await deliverAll(door, [orderEvent()])
    const settled = await Promise.all([processDue(door.deps), processDue(door.deps)])
    expect(settled.sort()).toEqual([0, 1])
    expect(await door.rows()).toMatchObject([{ state: 'applied', attempts: 1 }])
  })
})

test('an alert names rows and says what to do, and carries nothing of the body', async () => {
  const door = await openDoor()
  await door.deliver(signedDelivery({ body: bytesOf('{"secret":"in the body"}') }))
  await door.process()
  const [row] = await door.rows()
  const [alert] = await door.db.query(build.select().from(outbox))
  expect(alert).toMatchObject({ kind: 'alert', type: 'delivery_quarantined', state: 'due', notBefore: door.clock.now })
  expect(alert?.payload).toEqual({
    note: 'authentic deliveries cannot be read, so the dialect is wrong: no event at event',
    source: 'supplier',
    delivery: row?.id,
  })
})
