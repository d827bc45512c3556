import { rmSync, writeFileSync } from 'node:fs'
import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { cancelOrder, retryPurchase, unfreeze } from '../../src/ordering/actions.ts'
import { decidePurchase } from '../../src/ordering/decide.ts'
import { freeze } from '../../src/ordering/freeze.ts'
import { reattachOrder } from '../../src/ordering/reattach.ts'
import { takeByHand } from '../../src/ordering/shop-orders.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { insertDelivery } from '../../src/storage/deliveries.ts'
import { entitlementLinesOf } from '../../src/storage/entitlements.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { openMarker } from '../../src/storage/marker.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { hintPurchase } from '../../src/storage/purchases.ts'
import { noteUnattached } from '../../src/storage/restores.ts'
import { namesOfLines, storeOrderByReference } from '../../src/storage/store-orders.ts'
import { databaseFile } from '../support/database.ts'
import { openRestoreWorld, type RestoreWorld } from '../support/restore-world.ts'
import { besideShop, passingTime, SHOP } from '../support/shop-app.ts'
import { defaultDialect, first, type TestApp } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Longer than the supplier remembers an idempotency key. */
const FORGOTTEN = 30 * HOUR
/** Long enough for two scans: settle and list lag, then the gap. */
const REATTACHED = 10 * MINUTE

/** A supplier whose orders can only be listed, not asked for by their reference. */
const withoutFilter = { ...defaultDialect(), orders: { ...defaultDialect().orders, externalOrderId: null } }

const charges = ({ sandbox }: TestApp) => sandbox.world.report().charges.length
const rowsOf = async ({ app }: RestoreWorld, orderId: string) =>
  (await app.purchases(orderId)).map(({ generation, state }) => `${generation} ${state}`)
const stands = async ({ app }: RestoreWorld) => (await currentFreeze(app.db))?.actor

/** A delivery about an order that no purchase has. */
const announcement = (at: number, order: { supplierOrderId: string | null; externalOrderId: string }) =>
  insertDelivery({
    ...{ id: 'one', source: 'supplier', deliveryId: 'one', state: 'orphan', event: 'order.completed', ...order },
    ...{ signedAt: at, receivedAt: at, notBefore: at, keyId: 1 },
    ...{ bodyHmac: Buffer.of(1), mac: Buffer.of(1), ciphertext: Buffer.of(1) },
  })

/** A world in which an order for one unit was taken, and a backup of that instant. */
async function openShop(options: Parameters<typeof openRestoreWorld>[0] = {}) {
  const world = await openRestoreWorld(options)
  const { sku } = await world.app.offer()
  const lines = [{ sku }]
  const { orderId } = await world.handIn('1001', lines)
  return { ...world, world, lines, orderId, planned: world.backUp() }
}

describe('a purchase that the backup knows as planned', () => {
  test('and that was bought since is found before anything is sent', async () => {
    const { world, app, orderId, planned } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    await world.pass(FORGOTTEN, 10 * HOUR)
    await world.restore(planned)
    await world.pass(2 * MINUTE, 10 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 planned'])
    expect((await app.purchase(orderId)).holdReason).toBe('frozen')
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(await stands(world)).toBeUndefined()
    expect(app.sent).toHaveLength(1)
    // The store has the keys twice under two ids; they are the same keys of the same line.
    expect(new Set(app.shop.keys().get('1001/1')).size).toBe(1)
  })

  test('and that was never bought goes out once everything is reattached', async () => {
    const { world, app, orderId, planned } = await openShop()
    await world.restore(planned)
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('and that was bought since counts against the spend cap of its order again', async () => {
    // An order of the supplier that shows no amount counts by its ceiling.
    const dialect = { ...defaultDialect(), order: { ...defaultDialect().order, amount: null } }
    const world = await openRestoreWorld({ dialect, policy: { caps: { order: 4_000, hour: null, day: null } } })
    const { app } = world
    const { sku, costMinor } = await app.offer()
    expect([costMinor * 2 <= 4_000, costMinor * 2.2 > 4_000]).toEqual([true, true])
    const { orderId } = await world.handIn('1001', [{ sku }, { sku }])
    const planned = world.backUp()
    await world.pass(MINUTE, 10 * SECOND)
    expect(charges(app)).toBe(1)
    await world.restore(planned)
    await world.pass(REATTACHED + HOUR, MINUTE)
    const rows = (await app.purchases(orderId)).map(({ state, holdReason }) => `${state} ${holdReason}`)
    expect(rows).toEqual(['fulfilled null', 'planned spend_cap'])
    expect(charges(app)).toBe(1)
  })

  test('and whose deadline is over is not reported to the store as never bought before that is known', async () => {
    const { world, app, orderId, planned } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    await world.pass(80 * HOUR, 20 * HOUR)
    await world.restore(planned)
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(app.callbacks('line.failed')).toEqual([])
  })

  test('and whose deadline is over is not reported so either where a delivery has it looked up, and that fails', async () => {
    const { world, app, orderId, planned } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    await world.pass(80 * HOUR, 20 * HOUR)
    await world.restore(planned)
    app.sandbox.faults.add({ fault: 'error-before', match: { path: '/orders', method: 'GET' }, times: 1_000 })
    const { id } = await app.purchase(orderId)
    await app.db.commit([hintPurchase(id, app.now())])
    await world.pass(MINUTE, 10 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 planned'])
    app.sandbox.faults.clear()
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(app.callbacks('line.failed')).toEqual([])
  })

  test('and that the store cancels while it is not reattached is not reported as never bought', async () => {
    const { world, app, orderId, planned } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    await world.restore(planned)
    await cancelOrder(app.ordering, orderId, 'test')
    await world.pass(MINUTE, 10 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 planned'])
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'review',
      note: expect.stringContaining('cancelled'),
    })
    expect(app.callbacks('line.failed')).toEqual([])
  })

  test('and that the store cancels while another line of its order is reattached is reported as one that does not come', async () => {
    const world = await openRestoreWorld()
    const { app } = world
    const offers = await app.offers()
    const [one, other] = offers
    if (!one || !other) throw new Error('the supplier has two offers')
    app.sandbox.world.offers.change(other.productId, { localStock: 0, providerStock: 0 })
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    const { orderId } = await world.handIn('1001', [{ sku: one.sku }, { sku: other.sku }])
    const planned = world.backUp()
    await world.pass(HOUR, 5 * MINUTE)
    expect(charges(app)).toBe(1)
    await world.restore(planned)
    await cancelOrder(app.ordering, orderId, 'test')
    await world.pass(REATTACHED, 30 * SECOND)
    const rows = (await app.purchases(orderId)).map(({ state, takenBackBy }) => [state, takenBackBy])
    expect(rows).toEqual([
      ['cancelled', null],
      ['review', null],
      ['cancelled', null],
    ])
    expect(app.callbacks('line.failed').map(({ data }) => [data.line, data.quantity, data.code])).toEqual([
      ['2', 1, 'cancelled'],
    ])
  })

  test.each([
    ['with a filter by reference', defaultDialect()],
    ['without one', withoutFilter],
  ])('and that was bought as a later generation is that generation: a supplier %s', async (_, dialect) => {
    const { world, app, orderId, planned } = await openShop({ dialect })
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    await world.pass(HOUR, 5 * MINUTE)
    expect(await rowsOf(world, orderId)).toEqual(['1 rejected', '2 fulfilled'])
    await world.pass(FORGOTTEN, 10 * HOUR)
    await world.restore(planned)
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 cancelled', '2 fulfilled'])
    expect(charges(app)).toBe(1)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('and that was bought as a later generation, of which a delivery came and the list still shows nothing, is that generation', async () => {
    const { world, app, orderId, planned } = await openShop({ dialect: withoutFilter })
    const match = { externalOrderId: (await app.purchase(orderId)).externalOrderId.replace(/1$/, '2') }
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: 24 * HOUR, times: 1, match })
    await world.pass(HOUR, 5 * MINUTE)
    expect(await rowsOf(world, orderId)).toEqual(['1 rejected', '2 fulfilled'])
    const { supplierOrderId, externalOrderId } = first((await app.purchases(orderId)).slice(-1))
    await world.restore(planned)
    await app.db.commit([announcement(app.now(), { supplierOrderId, externalOrderId })])
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 cancelled', '2 fulfilled'])
    expect(charges(app)).toBe(1)
  })

  test('is bought although a delivery has named a stranger’s order with its reference', async () => {
    const { world, app, orderId, planned } = await openShop({ dialect: withoutFilter })
    const { supplierProductId: productId, externalOrderId, quantity } = await app.purchase(orderId)
    const made = app.sandbox.world.orders.place('theirs', 'theirs', { productId, quantity, externalOrderId: 'theirs' })
    if (made.kind !== 'ordered') throw new Error('the supplier takes their order')
    await world.restore(planned)
    const lie = { supplierOrderId: made.order.id, externalOrderId: externalOrderId.replace(/1$/, '2') }
    await app.db.commit([announcement(app.now(), lie)])
    await world.pass(2 * REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(await stands(world)).toBeUndefined()
  })

  test('and that failed and was bought again by a person is not bought a third time', async () => {
    const { world, app, orderId, planned } = await openShop()
    app.sandbox.faults.add({ fault: 'failed-order' })
    await world.pass(2 * MINUTE, 10 * SECOND)
    await retryPurchase(app.ordering, (await app.purchase(orderId)).id, 'test')
    await world.pass(MINUTE, 10 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 failed', '2 fulfilled'])
    await world.pass(FORGOTTEN, 10 * HOUR)
    await world.restore(planned)
    await world.pass(REATTACHED, 30 * SECOND)
    expect((await rowsOf(world, orderId)).at(-1)).toBe('2 fulfilled')
    expect(app.sandbox.world.report()).toMatchObject({ charges: { length: 2 }, refunds: { length: 1 } })
  })
})

test('an order that was listed as completed is not taken for one whose money is back by one reading', async () => {
  const { world, app, orderId } = await openShop()
  const { orders } = app.sandbox.world
  app.sandbox.faults.add({ fault: 'hold-open' })
  await world.pass(MINUTE, 10 * SECOND)
  const { lineId, supplierProductId: productId, externalOrderId, quantity } = await app.purchase(orderId)
  const reference = externalOrderId.replace(/1$/, '2')
  const made = orders.place('another key', 'another body', { productId, quantity, externalOrderId: reference })
  if (made.kind !== 'ordered') throw new Error('the supplier takes a second order')
  const { id: supplierOrderId } = made.order
  await app.db.commit([noteUnattached({ supplierOrderId, reference, status: 'completed', seenAt: app.now() })])
  const [name] = await app.db.query(namesOfLines([lineId]))
  if (!name) throw new Error('the line has a name')
  const reattach = () => reattachOrder(app.ordering, { ...name, part: 1 }, 2, supplierOrderId)
  const { get } = orders
  let reads = 0
  orders.get = (id) => {
    const order = get(id)
    if (!order || id !== supplierOrderId) return order
    reads += 1
    return { ...order, status: reads === 1 ? 'failed' : 'completed' }
  }
  expect(await reattach()).toBe('open')
  expect(await reattach()).toBe('news')
  expect(await stands(world)).toBe('quayside')
})

describe('an order of the supplier whose store order the backup does not hold', () => {
  /** Bought and handed over after the backup; then everything is as the backup was. */
  async function loseOrder() {
    const shop = await openShop()
    await shop.world.pass(MINUTE, 10 * SECOND)
    const before = shop.world.backUp()
    await shop.world.handIn('1002', shop.lines)
    await shop.world.pass(MINUTE, 10 * SECOND)
    await shop.world.pass(FORGOTTEN, 10 * HOUR)
    await shop.world.restore(before)
    await shop.world.pass(REATTACHED, 30 * SECOND)
    return shop
  }

  test('is an orphan that people see, and buying stays on hold', async () => {
    const { world, app } = await loseOrder()
    expect(await currentFreeze(app.db)).toMatchObject({
      actor: 'restore',
      reason: expect.stringMatching(/^restored, epoch 2; reattached: 1 supplier order has no matching purchase/),
    })
    expect(await app.discrepancies()).toEqual(['orphan'])
    expect(await app.alerts()).toEqual(expect.arrayContaining(['orphan', 'restored']))
    const { orderId } = await world.handIn('1003', [{ sku: (await app.offer()).sku }])
    await world.pass(10 * MINUTE, MINUTE)
    expect(await rowsOf(world, orderId)).toEqual(['1 planned'])
  })

  test('is found when its store order is handed in again, and then buying goes on by itself', async () => {
    const { world, app, lines } = await loseOrder()
    const { orderId, created } = await world.handIn('1002', lines)
    expect(created).toBeDefined()
    await world.pass(5 * MINUTE, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(await stands(world)).toBeUndefined()
    expect(await app.discrepancies()).toEqual([])
    expect(charges(app)).toBe(2)
  })

  test('is found when it is handed in again though the supplier has dropped the product meanwhile', async () => {
    const { world, app, lines } = await loseOrder()
    const offer = await app.offer()
    app.sandbox.world.offers.change(offer.productId, { withdrawn: true })
    await app.db.commit([
      { statement: sql`update offers set gone_at = ${app.now()} where product_id = ${offer.productId}`, rows: 1 },
    ])
    const other = (await app.offers()).find(({ productId }) => productId !== offer.productId)
    const { orderId } = await world.handIn('1002', [...lines, { sku: other?.sku ?? '' }])
    await world.pass(5 * MINUTE, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled', '1 fulfilled'])
    expect(await stands(world)).toBeUndefined()
    expect(await app.discrepancies()).toEqual([])
  })

  test('is found when its store order comes long after a person has let buying go on', async () => {
    const { world, app, lines } = await loseOrder()
    await unfreeze(app.ordering, 'test')
    await world.pass(FORGOTTEN, 10 * HOUR)
    const { orderId } = await world.handIn('1002', lines)
    await world.pass(5 * MINUTE, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(charges(app)).toBe(2)
  })
})

describe('a cancelled order whose later generation the backup does not know', () => {
  /** The generation that was bought since is open at the supplier; after the restore it is completed. */
  async function restoreAndComplete(shop: Awaited<ReturnType<typeof openShop>>, backup: Buffer, again: () => unknown) {
    const { world, app, orderId } = shop
    expect(charges(app)).toBe(1)
    await world.restore(backup)
    await again()
    app.sandbox.world.orders.complete(first(app.sandbox.world.orders.known(1)))
    await world.pass(REATTACHED, 30 * SECOND)
    expect((await rowsOf(world, orderId)).at(-1)).toBe('2 review')
    expect((await app.purchase(orderId)).note).toMatch(/^cancelled (after|before) /)
    app.expectLedger({ charges: 1, keys: 0 })
  }

  test('does not get its keys when the store cancels again', async () => {
    const shop = await openShop()
    const { world, app, orderId, planned } = shop
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    app.sandbox.faults.add({ fault: 'hold-open' })
    await world.pass(HOUR, 5 * MINUTE)
    await cancelOrder(app.ordering, orderId, 'test')
    await restoreAndComplete(shop, planned, () => cancelOrder(app.ordering, orderId, 'test'))
  })

  test('does not get its keys when the backup knows the cancellation, and not the retry of an operator', async () => {
    const shop = await openShop()
    const { world, app, orderId } = shop
    await cancelOrder(app.ordering, orderId, 'test')
    const backup = world.backUp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    await retryPurchase(app.ordering, (await app.purchase(orderId)).id, 'test')
    await world.pass(MINUTE, 10 * SECOND)
    await restoreAndComplete(shop, backup, () => {})
  })
})

describe('two orders of the supplier for one part', () => {
  test('that a restore finds freeze buying as a double charge', async () => {
    const { world, app, orderId } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    const fulfilled = world.backUp()
    const { externalOrderId, supplierProductId } = await app.purchase(orderId)
    await orderAtSupplier(app, externalOrderId.replace(/\.1$/, '.2'), supplierProductId)
    await world.restore(fulfilled)
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await app.discrepancies()).toContain('double_charge')
    expect((await currentFreeze(app.db))?.actor).toBe('quayside')
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
  })

  test('of which the earlier generation turns up after the later was found by a restore are a double charge', async () => {
    const { world, app, orderId } = await openShop()
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    await world.pass(2 * SECOND, SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 rejected', '2 planned'])
    const waiting = world.backUp()
    const { externalOrderId, supplierProductId } = await app.purchase(orderId)
    await world.pass(HOUR, 5 * MINUTE)
    await world.restore(waiting)
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 rejected', '2 fulfilled'])
    await orderAtSupplier(app, externalOrderId.replace(/\.2$/, '.1'), supplierProductId)
    await sweep(app.ordering)
    expect(await app.discrepancies()).toContain('double_charge')
    expect(await rowsOf(world, orderId)).toEqual(['1 rejected', '2 fulfilled'])
  })
})

describe('an order that the supplier lists and does not know when it is asked for it', () => {
  async function listPhantom() {
    const shop = await openShop()
    const { world, app, orderId, planned } = shop
    const { externalOrderId, supplierProductId } = await app.purchase(orderId)
    await orderAtSupplier(app, externalOrderId.replace(/\.1$/, '.2'), supplierProductId)
    const { id: phantom } = first(app.sandbox.world.orders.known(1))
    const { order } = app.supplier
    app.supplier.order = async (id) => (id === phantom ? undefined : order(id))
    await world.restore(planned)
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 planned'])
    expect(await stands(world)).toBe('restore')
    await world.pass(HOUR / 2, 30 * SECOND)
    return { ...shop, phantom }
  }

  test('holds its part and all buying until a person is shown it, and then no longer', async () => {
    const { world, app, orderId, phantom } = await listPhantom()
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'review',
      ordersSeen: [phantom],
      note: `order ${phantom} was listed after a restore, and the supplier does not know it when it is asked for it`,
    })
    expect(await stands(world)).toBeUndefined()
    expect(await app.alerts()).toContain('found_one_that_disagrees')
  })

  test('does not stop what a person buys after that', async () => {
    const { world, app, orderId } = await listPhantom()
    const { id } = await app.purchase(orderId)
    await decidePurchase(app.ordering, id, { type: 'buy_again' }, { actor: 'test', reason: 'it never came' })
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 cancelled', '2 fulfilled'])
    expect(app.sent).toHaveLength(1)
  })
})

describe('the hold of a restore', () => {
  test('is not lifted by a person before the orders are reattached', async () => {
    const { world, app, planned } = await openShop()
    await world.restore(planned)
    await expect(unfreeze(app.ordering, 'test')).rejects.toMatchObject({
      code: 'conflict',
      reason: 'restore_unfinished',
    })
    expect(await stands(world)).toBe('restore')
  })

  test('is over some six minutes after the start with the usual times of the dialect, as the documents say', async () => {
    const { world, app, planned } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    await world.restore(planned)
    const { settleSeconds, listLagSeconds, scanGapSeconds } = app.dialect
    const wait = (settleSeconds + listLagSeconds + scanGapSeconds) * SECOND
    const startedAt = app.now()
    // As often as the service looks.
    for (let looks = 0; looks < 100 && (await stands(world)); looks += 1) await world.pass(5 * SECOND, 5 * SECOND)
    expect(app.now() - startedAt).toBeGreaterThan(wait)
    expect(Math.abs(app.now() - startedAt - 6 * MINUTE)).toBeLessThan(MINUTE)
  })

  test('keeps a person from handing over keys of which the store may have others already', async () => {
    const { world, app, orderId, planned } = await openShop()
    await world.restore(planned)
    await app.db.commit([{ statement: sql`update purchases set state = 'review'`, rows: 1 }])
    const { id } = await app.purchase(orderId)
    const decision = { type: 'adopt', orderId: 'ord_1' } as const
    await expect(decidePurchase(app.ordering, id, decision, { actor: 'anna', reason: 'seen' })).rejects.toMatchObject({
      code: 'conflict',
      reason: 'restore_unfinished',
    })
  })

  test("leaves a person's freeze where it was, before it and after it", async () => {
    const { world, app, planned } = await openShop()
    await world.restore(planned)
    await freeze(app.ordering, 'prices look wrong', 'anna')
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await currentFreeze(app.db)).toMatchObject({ reason: 'prices look wrong', actor: 'anna' })
    await unfreeze(app.ordering, 'anna')
    await world.pass(MINUTE, 10 * SECOND)
    expect(await stands(world)).toBeUndefined()
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test("stays while the supplier's list cannot be read, and says so", async () => {
    const { world, app, planned } = await openShop()
    await world.restore(planned)
    app.sandbox.faults.add({ fault: 'error-before', match: { path: '/orders', method: 'GET' }, times: 1_000 })
    await world.pass(HOUR, 5 * MINUTE)
    expect((await currentFreeze(app.db))?.reason).toMatch(/being reattached: the last try failed: /)
    expect(charges(app)).toBe(0)
    app.sandbox.faults.clear()
    await world.pass(REATTACHED, 30 * SECOND)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('of a restore within a restore looks as far back as the first one had to', async () => {
    const { world, app, orderId, planned } = await openShop({ dialect: withoutFilter })
    await world.pass(MINUTE, 10 * SECOND)
    await world.pass(FORGOTTEN, 10 * HOUR)
    await world.restore(planned)
    await app.ordering.checkBalance()
    const inBetween = world.backUp()
    await world.restore(inBetween)
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(charges(app)).toBe(1)
  })
})

test('a part of a backend is not enlarged by a quantity that the supplier tells wrongly while its order is reattached', async () => {
  const { world, app, orderId, planned } = await openShop()
  await world.pass(MINUTE, 10 * SECOND)
  const [bought] = await app.purchases(orderId)
  await world.restore(planned)
  const { orders } = app.sandbox.world
  const { get } = orders
  orders.get = (id) => {
    const order = get(id)
    return order && { ...order, quantity: order.quantity + 1 }
  }
  await world.pass(REATTACHED, 30 * SECOND)
  expect(await app.purchases(orderId)).toMatchObject([{ state: 'review', quantity: bought?.quantity }])
  expect(charges(app)).toBe(1)
})

test('a part of a shop is not enlarged beyond what one order may have by a quantity that the supplier tells wrongly', async () => {
  const { shop, beside } = await besideShop()
  const world = await openRestoreWorld({ beside, dialect: { ...defaultDialect(), quantityMax: 2 } })
  const { app } = world
  const { pass } = passingTime(app)
  const { sku, name } = await app.offer()
  const { id: product } = shop.addProduct({ name, sku, regular_price: '99.00', virtual: true })
  app.sandbox.faults.add({ fault: 'out-of-stock', times: 1 })
  const { id } = shop.buy({ lines: [{ product, quantity: 2 }] })
  await pass(MINUTE, 10 * SECOND)
  const orderId = first(await app.db.query(storeOrderByReference(SHOP, String(id)))).id
  expect([await rowsOf(world, orderId), charges(app)]).toEqual([['1 rejected', '2 planned'], 0])
  const planned = world.backUp()
  await pass(30 * MINUTE)
  expect(charges(app)).toBe(1)
  await world.restore(planned)
  const { orders } = app.sandbox.world
  const { get } = orders
  orders.get = (one) => {
    const order = get(one)
    return order && { ...order, quantity: order.quantity + 1 }
  }
  await world.pass(REATTACHED, 30 * SECOND)
  expect(await app.purchases(orderId)).toMatchObject([{ quantity: 2 }, { quantity: 2, state: 'review' }])
  expect(charges(app)).toBe(1)
})

test('a unit was bought beyond its line, where a lost order for more units of another part could not be read when a person resumed buying', async () => {
  const { shop, beside } = await besideShop()
  const world = await openRestoreWorld({ beside })
  const { app } = world
  const pass = (ms: number) => world.passBesideShop(ms, 30 * SECOND)
  const { sku, name, productId } = await app.offer()
  const { id: product } = shop.addProduct({ name, sku, regular_price: '99.00', virtual: true })
  await pass(MINUTE)
  const backup = world.backUp()
  app.sandbox.faults.add({ fault: 'hold-open' })
  const { id } = shop.buy({ lines: [{ product, quantity: 3 }] })
  const has = (quantity: number) =>
    shop.edit(id, ({ lines: [line] }) => line && Object.assign(line, { quantity, total: 9_900 * quantity }))
  await pass(MINUTE)
  expect(charges(app)).toBe(1)
  has(2)
  await pass(MINUTE)
  const { id: lost } = first(app.sandbox.world.orders.known(1))
  const { order } = app.supplier
  let isGone = true
  app.supplier.order = async (asked) => (isGone && asked === lost ? undefined : order(asked))
  await world.restore(backup)
  await pass(REATTACHED)
  has(3)
  await pass(3 * MINUTE)
  await takeByHand(app.ordering, SHOP, String(id), { take: 'all' }, 'test')
  // The part of two waits for stock, and the part that was added does not.
  app.sandbox.world.offers.change(productId, { stock: 1 })
  await unfreeze(app.ordering, 'test')
  await pass(3 * MINUTE)
  expect(charges(app)).toBe(1)
  isGone = false
  await pass(HOUR)
  expect(charges(app)).toBe(1)
  const { id: orderId } = first(await app.db.query(storeOrderByReference(SHOP, String(id))))
  const parts = (await app.purchases(orderId)).map(({ part, quantity, state }) => `${part}: ${quantity} ${state}`)
  expect(parts).toEqual(['1: 3 accepted', '2: 1 cancelled'])
})

describe('a unit that was added to an order of a shop since it was taken, and that a person is asked for', () => {
  async function openGrown() {
    const { shop, beside } = await besideShop()
    const world = await openRestoreWorld({ beside })
    const { app } = world
    const { pass } = passingTime(app)
    const { sku, name } = await app.offer()
    const { id: product } = shop.addProduct({ name, sku, regular_price: '99.00', virtual: true })
    const { id } = shop.buy({ lines: [{ product }] })
    await pass(3 * MINUTE)
    shop.edit(id, ({ lines: [line] }) => line && Object.assign(line, { quantity: 2, total: 2 * line.total }))
    await pass(3 * MINUTE)
    const asked = async () => {
      const alerts = await app.db.query(listOutbox({ kind: 'alert', limit: 100 }))
      return alerts.filter(({ payload }) => /orders take .* --line/.test(JSON.stringify(payload))).length
    }
    const granted = async () => (await app.db.query(entitlementLinesOf(SHOP, String(id)))).map((line) => line.granted)
    expect([await asked(), await granted()]).toEqual([1, [1]])
    return { world, app, reference: String(id), pass, asked, granted, backup: world.backUp() }
  }

  test('is asked for again after a restore, which may have forgotten that a person has taken it', async () => {
    const { world, asked, backup } = await openGrown()
    await world.restore(backup)
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await asked()).toBe(2)
  })

  test('counts as granted where it was bought before a restore: no other unit of its line was sent any more', async () => {
    const { world, app, reference, pass, asked, granted, backup } = await openGrown()
    await takeByHand(app.ordering, SHOP, reference, { take: 'all' }, 'test')
    await pass(MINUTE)
    expect(charges(app)).toBe(2)
    await world.restore(backup)
    await world.pass(REATTACHED, 30 * SECOND)
    expect([await asked(), await granted()]).toEqual([1, [2]])
  })
})

describe('a database file that was copied back', () => {
  test('is recognised when something was bought since, and reattached', async () => {
    const { world, app, orderId, planned } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    await world.pass(FORGOTTEN, 10 * HOUR)
    expect(await world.copyBack(planned)).toBe(true)
    expect((await currentFreeze(app.db))?.reason).toContain('an older copy')
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(charges(app)).toBe(1)
  })

  test('is recognised although its marker came back with it, as in the snapshot of a machine', async () => {
    const { world, app, orderId, planned } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    await world.pass(FORGOTTEN, 10 * HOUR)
    await world.copyBackWithMarker(planned)
    await world.work()
    expect((await currentFreeze(app.db))?.reason).toContain('the database is an older copy: it lacks order')
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(charges(app)).toBe(1)
  })

  test('is recognised although days have passed, and a store has handed in an order before the comparison', async () => {
    const { world, app, orderId, planned, lines } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    await world.pass(80 * HOUR, 10 * HOUR)
    await world.copyBackWithMarker(planned)
    await world.handIn('1002', lines)
    await world.work()
    expect((await currentFreeze(app.db))?.reason).toContain('the database is an older copy: it lacks order')
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(charges(app)).toBe(2)
  })

  test('is no restore when it is the one that was used last: buying goes on after one look at the newest orders', async () => {
    const { world, app } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    expect(await world.copyBack(world.backUp())).toBe(false)
    app.sandbox.faults.add({ fault: 'short-pages', most: 50, times: 100, match: { path: '/orders', method: 'GET' } })
    expect((await currentFreeze(app.db))?.reason).toContain('newest orders are compared')
    await app.runtime.reattachOrders()
    expect(await currentFreeze(app.db)).toBeUndefined()
    expect(app.sandbox.faults.list().map(({ fired }) => fired)).toEqual([1])
  })

  test('buys nothing while the newest orders cannot be listed, says so, and a person may let it go on', async () => {
    const { world, app, lines } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    app.sandbox.faults.add({ fault: 'error-before', times: 100, match: { path: '/orders', method: 'GET' } })
    await world.copyBack(world.backUp())
    const { orderId } = await world.handIn('1002', lines)
    await world.pass(MINUTE, 10 * SECOND)
    // It was marked as frozen, and stayed so where buying began at the same instant.
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: null })
    expect((await currentFreeze(app.db))?.reason).toMatch(/newest orders are compared.*the last try failed/)
    expect(charges(app)).toBe(1)
    await unfreeze(app.ordering, 'person')
    await world.pass(MINUTE, 10 * SECOND)
    expect(charges(app)).toBe(2)
  })

  test('is recognised from between a request that the supplier put off and the one that it took', async () => {
    const { world, app, orderId } = await openShop({ dialect: withoutFilter })
    app.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 30 })
    await world.work()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'waiting', sends: 1 })
    const putOff = world.backUp()
    await world.pass(2 * MINUTE, 10 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    await world.pass(FORGOTTEN, 10 * HOUR)
    await world.copyBackWithMarker(putOff)
    await world.work()
    expect((await currentFreeze(app.db))?.reason).toContain('the database is an older copy: it lacks order')
    await world.pass(REATTACHED, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(charges(app)).toBe(1)
  })

  test('is searched for again from within the questions of a restore, which were answered since', async () => {
    const { world, app, lines, planned } = await openShop({ dialect: withoutFilter })
    await world.handIn('1002', lines)
    await world.pass(MINUTE, 10 * SECOND)
    await world.restore(planned)
    await world.pass(REATTACHED, 30 * SECOND)
    expect((await currentFreeze(app.db))?.reason).toContain('has no matching purchase')
    const { orderId } = await world.handIn('1003', lines)
    const asked = world.backUp()
    await unfreeze(app.ordering, 'anna')
    await world.pass(10 * MINUTE, 30 * SECOND)
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    await world.pass(FORGOTTEN, 10 * HOUR)
    await world.copyBackWithMarker(asked)
    await world.handIn('1002', lines)
    await world.pass(2 * REATTACHED, 30 * SECOND)
    expect(await stands(world)).toBeUndefined()
    expect(await rowsOf(world, orderId)).toEqual(['1 fulfilled'])
    expect(charges(app)).toBe(3)
  })

  test('is recognised when it is from before an earlier restore, though nothing was bought since that', async () => {
    const { world, planned } = await openShop()
    const old = planned
    await world.restore(planned)
    expect(await world.copyBack(old)).toBe(true)
  })
})

describe('the marker beside a database', () => {
  const facts = { epoch: 3, attempt: '01k3m5x7z9abcdefghjkmnpqrs' }

  test('keeps what was noted last, also when two write at the same instant', async () => {
    const file = databaseFile()
    const marker = openMarker(file)
    expect(marker.read()).toBeUndefined()
    await marker.begin({ epoch: 3, attempt: null })
    await Promise.all(['01a', '01b', '01c', facts.attempt].map((attempt) => marker.note(attempt)))
    expect(openMarker(file).read()).toEqual(facts)
  })

  test('that cannot be read counts as one that is ahead', async () => {
    const file = databaseFile()
    for (const text of ['', '{"epoch":1', '{"epoch":0,"attempt":null}\n', '{"epoch":1,"attempt":null}']) {
      writeFileSync(`${file}.marker`, text)
      expect(openMarker(file).read()?.epoch, text).toBe(Number.POSITIVE_INFINITY)
    }
  })

  test('that cannot be written lets nothing leave', async () => {
    const { world, app, orderId } = await openShop()
    app.ordering.mark = () => Promise.reject(new Error('no space left on the disk'))
    await world.work()
    expect(app.sent).toEqual([])
    expect(charges(app)).toBe(0)
    expect(await rowsOf(world, orderId)).toEqual(['1 sending'])
  })

  test('that a restore had no time to write makes no second restore of it', async () => {
    const { world, app, planned } = await openShop()
    await world.pass(MINUTE, 10 * SECOND)
    await world.restoreUnmarked(planned)
    const hold = await currentFreeze(app.db)
    expect(hold?.actor).toBe('restore')
    expect(await world.start()).toBe(false)
    expect(await currentFreeze(app.db)).toEqual(hold)
  })

  test('that is gone makes a restore of a database that had one, and none of a new one', async () => {
    const { world } = await openShop()
    rmSync(world.markerFile)
    expect(await world.start()).toBe(true)
    expect(await world.start()).toBe(false)
  })
})

/** An order as another program would place it under our reference. */
async function orderAtSupplier({ sandbox }: TestApp, reference: string, productId: string): Promise<void> {
  const answer = await fetch(`${sandbox.baseUrl}/orders`, {
    method: 'POST',
    headers: {
      'x-api-key': 'sk_test_0123456789abcdef',
      'idempotency-key': reference,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ productId, quantity: 1, external_order_id: reference }),
  })
  expect(answer.status).toBe(201)
  expect(first(sandbox.world.orders.known(1)).externalOrderId).toBe(reference)
}
