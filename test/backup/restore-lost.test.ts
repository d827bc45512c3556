/** A database that was lost with its disk: the service goes on with a new one, on the same stores. */
import { describe, expect, test } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { externalOrderId } from '../../src/domain/purchase-keys.ts'
import { Failure } from '../../src/errors.ts'
import { unfreeze } from '../../src/ordering/actions.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { currentEpoch } from '../../src/storage/restores.ts'
import { openRestoreWorld } from '../support/restore-world.ts'
import { decide } from '../support/reviews.ts'
import { defaultDialect, STORE, type TestApp } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** Longer than the time before a restore that is looked at again. */
const LONG = 60 * HOUR
/** The supplier's orders are reattached within these minutes. */
const REATTACHED = 8 * MINUTE

async function openShop(dialect: Dialect = defaultDialect()) {
  const world = await openRestoreWorld({ dialect })
  const { sku } = await world.app.offer()
  const buy = (reference: string) => world.handIn(reference, [{ sku }])
  return { ...world, buy, frozen: () => currentFreeze(world.app.db) }
}

/** Lists that end at four orders. */
function ending(): Dialect {
  const dialect = defaultDialect()
  return { ...dialect, paging: { ...dialect.paging, listMax: 4 } }
}

/** Orders that another customer of the supplier places with the same API key. */
async function placeForeign({ offer, move, sandbox }: TestApp, count: number): Promise<void> {
  const { productId } = await offer()
  for (let number = 1; number <= count; number += 1) {
    move(1)
    const externalOrderId = `other.shop.${number}`
    sandbox.world.orders.place(externalOrderId, externalOrderId, { productId, quantity: 1, externalOrderId })
  }
}

describe('a new database', () => {
  test('buys nothing again that the lost one has bought, and goes on once everything is reattached', async () => {
    const { app, buy, pass, lose, frozen } = await openShop()
    await buy('1001')
    await buy('1002')
    await pass(MINUTE, 10 * SECOND)
    await pass(LONG, 10 * HOUR)
    await lose()
    expect(await frozen()).toMatchObject({ reason: expect.stringContaining('the database is new') })
    const { orderId } = await buy('1001')
    const other = await buy('1003')
    await pass(MINUTE, 10 * SECOND)
    expect(await currentEpoch(app.db)).toMatchObject({ epoch: 2 })
    expect(await app.alerts()).toContain('restored')
    expect(app.sent).toHaveLength(2)
    await pass(REATTACHED, 30 * SECOND)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(await frozen()).toMatchObject({ reason: expect.stringContaining('1 supplier order has') })
    await unfreeze(app.ordering, 'ann')
    await pass(MINUTE, 10 * SECOND)
    expect(await app.state(other.orderId)).toBe('fulfilled')
    // The store got the keys of 1001 from both databases: they are the same keys of the same line.
    expect(app.sandbox.world.report().charges).toHaveLength(3)
    expect(new Set(app.shop.keys().get('1001/1')).size).toBe(1)
  })

  test('knows what the lost one has bought for a store that was removed since', async () => {
    const removed = 'gone-ef56gh78'
    const world = await openRestoreWorld({ removed: [removed] })
    const { app, lose, pass } = world
    const { productId, sku } = await app.offer()
    const name = { store: removed, reference: '1001', line: '1', part: 1, generation: 1 }
    const reference = externalOrderId(name, app.dialect.externalOrderIdMax)
    app.sandbox.world.orders.place(reference, reference, { productId, quantity: 1, externalOrderId: reference })
    // The store that is left was made with the new database, so the removed one alone can tell.
    await lose([STORE])
    expect(await currentFreeze(app.db)).toMatchObject({ reason: expect.stringContaining('the database is new') })
    await pass(REATTACHED, 30 * SECOND)
    expect(await currentEpoch(app.db)).toMatchObject({ epoch: 2 })
    expect(await app.alerts()).toContain('restored')
    await world.handIn('1002', [{ sku }])
    await pass(REATTACHED, 30 * SECOND)
    expect(app.sent, 'nothing is bought before a person has looked').toEqual([])
  })

  test('leaves no unit of a line out that the lost one had bought in two orders, the second for what the first fell short of', async () => {
    const world = await openRestoreWorld({})
    const { app, pass, lose } = world
    const line = { sku: (await app.offer()).sku, quantity: 2 }
    app.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 24 * HOUR })
    const { orderId: before } = await world.handIn('1001', [line])
    await pass(3 * HOUR, 10 * MINUTE)
    await decide(app, before, { type: 'buy_again' })
    await pass(HOUR, 10 * MINUTE)
    await pass(LONG, 10 * HOUR)
    await lose()
    const { orderId } = await world.handIn('1001', [line])
    await pass(REATTACHED, 30 * SECOND)
    // The second order has one unit of two: a person sees what became of the other.
    const note = expect.stringContaining('reads 1 and not 2')
    expect((await app.purchases(orderId)).at(-1)).toMatchObject({ generation: 2, state: 'review', note })
  })

  test('keeps its new epoch in the marker, so that an older copy of it is known for one', async () => {
    const { app, buy, pass, lose, start, copyBack, backUp } = await openShop()
    await buy('1001')
    await pass(MINUTE, 10 * SECOND)
    await lose()
    await buy('1001')
    await pass(REATTACHED, 30 * SECOND)
    const before = backUp()
    await buy('1002')
    await pass(MINUTE, 10 * SECOND)
    expect(await start(), 'as it is').toBe(false)
    expect(await copyBack(before)).toBe(true)
    expect(await currentEpoch(app.db)).toMatchObject({ epoch: 3 })
  })

  test('that the lost one replaces again, found on an old disk, is missed by nothing: that is a restore', async () => {
    const { app, buy, pass, lose, restore, copyBack, backUp } = await openShop()
    await buy('1001')
    await restore(backUp())
    await pass(REATTACHED, 30 * SECOND)
    await restore(backUp())
    await pass(REATTACHED, 30 * SECOND)
    const found = backUp()
    expect(await currentEpoch(app.db)).toMatchObject({ epoch: 3 })
    await lose()
    await buy('1001')
    await pass(REATTACHED, 30 * SECOND)
    await buy('1002')
    await pass(MINUTE, 10 * SECOND)
    expect(await currentEpoch(app.db)).toMatchObject({ epoch: 2 })
    expect(await copyBack(found)).toBe(true)
    await buy('1002')
    await pass(REATTACHED, 30 * SECOND)
    expect(app.sandbox.world.report().charges).toHaveLength(2)
  })

  test('reports no duplicate charge in a sweep that comes before its orders were compared', async () => {
    const { app, buy, pass, lose, frozen } = await openShop()
    app.sandbox.faults.add({ fault: 'out-of-stock', times: 1 })
    const before = await buy('1001')
    await pass(2 * HOUR, 5 * MINUTE)
    expect((await app.purchases(before.orderId)).map(({ state }) => state)).toEqual(['rejected', 'fulfilled'])
    await lose()
    const { orderId } = await buy('1001')
    await sweep(app.ordering)
    expect(await app.discrepancies()).toEqual(['orphan'])
    await pass(REATTACHED, 30 * SECOND)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(await app.discrepancies()).toEqual([])
    expect(await frozen()).toBeUndefined()
    expect(app.sandbox.world.report().charges).toHaveLength(1)
  })

  test('that is put back from a backup before its orders were compared buys nothing of the lost one again', async () => {
    const { app, buy, pass, lose, backUp, restore } = await openShop()
    await buy('1001')
    await pass(MINUTE, 10 * SECOND)
    await pass(LONG, 10 * HOUR)
    const { orders } = app.ordering.supplier
    await lose()
    app.ordering.supplier.orders = () => Promise.reject(new Failure('unavailable', 'the list is broken'))
    await buy('1002')
    await pass(HOUR, 10 * MINUTE)
    const backup = backUp()
    app.ordering.supplier.orders = orders
    await restore(backup)
    await pass(REATTACHED, 30 * SECOND)
    await buy('1001')
    await pass(HOUR, MINUTE)
    expect(app.sandbox.world.report().charges).toHaveLength(2)
  })

  test('buys what the supplier refused once as out of stock, also where its offer has not changed since before', async () => {
    const { app, buy, pass, lose } = await openShop()
    await pass(LONG, 10 * HOUR)
    await lose()
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    const { orderId } = await buy('1001')
    await pass(REATTACHED, 30 * SECOND)
    expect((await app.purchases(orderId)).map(({ state }) => state)).toContain('rejected')
    await pass(20 * HOUR, 10 * MINUTE)
    expect((await app.purchases(orderId)).map(({ state }) => state)).toEqual(['rejected', 'fulfilled'])
  })

  test('buys at once where the supplier lists no order of its stores', async () => {
    const { app, buy, pass, lose, frozen } = await openShop()
    await lose()
    const { orderId } = await buy('1001')
    await pass(20 * SECOND, 5 * SECOND)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(await frozen()).toBeUndefined()
    expect(await currentEpoch(app.db)).toMatchObject({ epoch: 1, restoredAt: null })
  })

  test("buys nothing while the supplier's list cannot be read, and says why", async () => {
    const { app, buy, pass, lose, frozen } = await openShop()
    const { orders } = app.ordering.supplier
    await lose()
    app.ordering.supplier.orders = () => Promise.reject(new Failure('unavailable', 'the list is broken'))
    const { orderId } = await buy('1001')
    await pass(MINUTE, 10 * SECOND)
    expect(await frozen()).toMatchObject({ reason: expect.stringContaining('the list is broken') })
    expect(app.sent).toEqual([])
    app.ordering.supplier.orders = orders
    await pass(MINUTE, 10 * SECOND)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('is not compared where its stores were made with it', async () => {
    const { app, buy, work, lose, frozen } = await openShop()
    app.ordering.supplier.orders = () => Promise.reject(new Failure('unavailable', 'the list is broken'))
    await lose([STORE])
    expect(await frozen()).toBeUndefined()
    await buy('1001')
    await work()
    expect(app.sent).toHaveLength(1)
  })

  test('is not taken into use by an operator before it was compared, and the refusal says what to do', async () => {
    const { app, buy, pass, lose, frozen } = await openShop()
    const { orders } = app.ordering.supplier
    await lose()
    app.ordering.supplier.orders = () => Promise.reject(new Failure('unavailable', 'the list is broken'))
    const { orderId } = await buy('1001')
    await pass(MINUTE, 10 * SECOND)
    await expect(unfreeze(app.ordering, 'ann')).rejects.toMatchObject({
      code: 'conflict',
      reason: 'new_database_uncompared',
      message: expect.stringMatching(/whole order list.*the list is broken.*quayside doctor/),
    })
    expect(await frozen()).toMatchObject({ causes: [{ id: 'restore' }] })
    app.ordering.supplier.orders = orders
    await pass(MINUTE, 10 * SECOND)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test("is left to an operator where the supplier's list ends before it shows that none is of its stores", async () => {
    const { app, buy, pass, lose, frozen } = await openShop(ending())
    await placeForeign(app, 5)
    await lose()
    const { orderId } = await buy('1001')
    await pass(REATTACHED, 30 * SECOND)
    expect(app.sent).toEqual([])
    const { reason } = (await frozen()) ?? {}
    expect(reason).toContain('ends at 4 orders (paging.listMax), and none of those 4 is of its stores')
    expect(reason).toContain("look for older orders of these stores in the supplier's own account")
    const { orders } = app.ordering.supplier
    let pages = 0
    app.ordering.supplier.orders = (query) => {
      pages += 1
      return orders(query)
    }
    await pass(10 * MINUTE, 10 * SECOND)
    expect(pages, 'a list that proves nothing is not read again').toBe(0)
    await unfreeze(app.ordering, 'ann')
    const [entry] = await app.db.query(auditOf('buying after a restore'))
    expect(entry).toMatchObject({ actor: 'ann', action: 'unfreeze', detail: reason })
    await pass(MINUTE, 10 * SECOND)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(await frozen()).toBeUndefined()
  })

  test("does not buy again what stands behind the end of the supplier's list, also when it is handed in late", async () => {
    const { app, buy, pass, lose, frozen } = await openShop(ending())
    await buy('1001')
    await pass(MINUTE, 10 * SECOND)
    await placeForeign(app, 4)
    await buy('1002')
    await pass(MINUTE, 10 * SECOND)
    await pass(LONG, 10 * HOUR)
    await lose()
    await pass(REATTACHED, 30 * SECOND)
    expect(await frozen()).toMatchObject({
      reason: expect.stringContaining('1 supplier order has no matching purchase'),
    })
    expect(await frozen()).toMatchObject({ reason: expect.stringContaining('and 1 of those 4 is of its stores') })
    await buy('1002')
    const { orderId } = await buy('1001')
    await pass(REATTACHED, 30 * SECOND)
    expect((await frozen())?.reason).not.toContain('no matching purchase')
    await unfreeze(app.ordering, 'ann')
    await pass(REATTACHED, 30 * SECOND)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(2)
    expect(app.sandbox.world.report().charges).toHaveLength(6)
  })
})
