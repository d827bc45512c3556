/** A database that was lost with its disk: the service goes on with a new one, on the same stores. */
import { describe, expect, test } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { Failure } from '../../src/errors.ts'
import { unfreeze } from '../../src/ordering/actions.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { currentEpoch } from '../../src/storage/restores.ts'
import { currentFreeze } from '../../src/storage/settings.ts'
import { defaultDialect, type Harbour, STORE } from '../support/harbour.ts'
import { openRestoreWorld } from '../support/restore-world.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** Longer than the time before a restore that is looked at again. */
const LONG = 60 * HOUR
/** The supplier's orders are reattached within these minutes. */
const MAPPED = 8 * MINUTE

async function openShop(dialect: Dialect = defaultDialect()) {
  const world = await openRestoreWorld({ dialect })
  const { sku } = await world.harbour.offer()
  const buy = (reference: string) => world.handIn(reference, [{ sku }])
  return { ...world, buy, frozen: () => currentFreeze(world.harbour.db) }
}

/** Lists that end at four orders. */
function ending(): Dialect {
  const dialect = defaultDialect()
  return { ...dialect, paging: { ...dialect.paging, listMax: 4 } }
}

/** Orders that another customer of the supplier places with the same API key. */
async function placeForeign({ offer, move, sandbox }: Harbour, count: number): Promise<void> {
  const { productId } = await offer()
  for (let number = 1; number <= count; number += 1) {
    move(1)
    const externalOrderId = `other.shop.${number}`
    sandbox.world.orders.place(externalOrderId, externalOrderId, { productId, quantity: 1, externalOrderId })
  }
}

describe('a new database', () => {
  test('buys nothing again that the lost one has bought, and goes on once everything is reattached', async () => {
    const { harbour, buy, pass, lose, frozen } = await openShop()
    await buy('1001')
    await buy('1002')
    await pass(MINUTE, 10 * SECOND)
    await pass(LONG, 10 * HOUR)
    await lose()
    expect(await frozen()).toMatchObject({ reason: expect.stringContaining('the database is new') })
    const { orderId } = await buy('1001')
    const other = await buy('1003')
    await pass(MINUTE, 10 * SECOND)
    expect(await currentEpoch(harbour.db)).toMatchObject({ epoch: 2 })
    expect(await harbour.alerts()).toContain('restored')
    expect(harbour.sent).toHaveLength(2)
    await pass(MAPPED, 30 * SECOND)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(await frozen()).toMatchObject({ reason: expect.stringContaining('1 supplier order has') })
    await unfreeze(harbour.ordering, 'ann')
    await pass(MINUTE, 10 * SECOND)
    expect(await harbour.state(other.orderId)).toBe('fulfilled')
    // The store got the keys of 1001 from both databases: they are the same keys of the same line.
    expect(harbour.sandbox.world.report().charges).toHaveLength(3)
    expect(new Set(harbour.shop.keys().get('1001/1')).size).toBe(1)
  })

  test('keeps its new epoch in the marker, so that an older copy of it is known for one', async () => {
    const { harbour, buy, pass, lose, start, copyBack, backUp } = await openShop()
    await buy('1001')
    await pass(MINUTE, 10 * SECOND)
    await lose()
    await buy('1001')
    await pass(MAPPED, 30 * SECOND)
    const before = backUp()
    await buy('1002')
    await pass(MINUTE, 10 * SECOND)
    expect(await start(), 'as it is').toBe(false)
    expect(await copyBack(before)).toBe(true)
    expect(await currentEpoch(harbour.db)).toMatchObject({ epoch: 3 })
  })

  test('that the lost one replaces again, found on an old disk, is missed by nothing: that is a restore', async () => {
    const { harbour, buy, pass, lose, restore, copyBack, backUp } = await openShop()
    await buy('1001')
    await restore(backUp())
    await pass(MAPPED, 30 * SECOND)
    await restore(backUp())
    await pass(MAPPED, 30 * SECOND)
    const found = backUp()
    expect(await currentEpoch(harbour.db)).toMatchObject({ epoch: 3 })
    await lose()
    await buy('1001')
    await pass(MAPPED, 30 * SECOND)
    await buy('1002')
    await pass(MINUTE, 10 * SECOND)
    expect(await currentEpoch(harbour.db)).toMatchObject({ epoch: 2 })
    expect(await copyBack(found)).toBe(true)
    await buy('1002')
    await pass(MAPPED, 30 * SECOND)
    expect(harbour.sandbox.world.report().charges).toHaveLength(2)
  })

  test('buys at once where the supplier lists no order of its stores', async () => {
    const { harbour, buy, pass, lose, frozen } = await openShop()
    await lose()
    const { orderId } = await buy('1001')
    await pass(20 * SECOND, 5 * SECOND)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(await frozen()).toBeUndefined()
    expect(await currentEpoch(harbour.db)).toMatchObject({ epoch: 1, restoredAt: null })
  })

  test("buys nothing while the supplier's list cannot be read, and says why", async () => {
    const { harbour, buy, pass, lose, frozen } = await openShop()
    const { orders } = harbour.ordering.supplier
    await lose()
    harbour.ordering.supplier.orders = () => Promise.reject(new Failure('unavailable', 'the list is broken'))
    const { orderId } = await buy('1001')
    await pass(MINUTE, 10 * SECOND)
    expect(await frozen()).toMatchObject({ reason: expect.stringContaining('the list is broken') })
    expect(harbour.sent).toEqual([])
    harbour.ordering.supplier.orders = orders
    await pass(MINUTE, 10 * SECOND)
    expect(await harbour.state(orderId)).toBe('fulfilled')
  })

  test('is not compared where its stores were made with it', async () => {
    const { harbour, buy, work, lose, frozen } = await openShop()
    harbour.ordering.supplier.orders = () => Promise.reject(new Failure('unavailable', 'the list is broken'))
    await lose([STORE])
    expect(await frozen()).toBeUndefined()
    await buy('1001')
    await work()
    expect(harbour.sent).toHaveLength(1)
  })

  test('is not taken into use by an operator before it was compared, and the refusal says what to do', async () => {
    const { harbour, buy, pass, lose, frozen } = await openShop()
    const { orders } = harbour.ordering.supplier
    await lose()
    harbour.ordering.supplier.orders = () => Promise.reject(new Failure('unavailable', 'the list is broken'))
    const { orderId } = await buy('1001')
    await pass(MINUTE, 10 * SECOND)
    await expect(unfreeze(harbour.ordering, 'ann')).rejects.toMatchObject({
      code: 'conflict',
      reason: 'new_database_uncompared',
      message: expect.stringMatching(/whole order list.*the list is broken.*quayside doctor/),
    })
    expect(await frozen()).toMatchObject({ causes: [{ id: 'restore' }] })
    harbour.ordering.supplier.orders = orders
    await pass(MINUTE, 10 * SECOND)
    expect(await harbour.state(orderId)).toBe('fulfilled')
  })

  test("is left to an operator where the supplier's list ends before it shows that none is of its stores", async () => {
    const { harbour, buy, pass, lose, frozen } = await openShop(ending())
    await placeForeign(harbour, 5)
    await lose()
    const { orderId } = await buy('1001')
    await pass(MAPPED, 30 * SECOND)
    expect(harbour.sent).toEqual([])
    const { reason } = (await frozen()) ?? {}
    expect(reason).toContain('ends at 4 orders (paging.listMax), and none of those 4 is of its stores')
    expect(reason).toContain("look for older orders of these stores in the supplier's own account")
    const { orders } = harbour.ordering.supplier
    let pages = 0
    harbour.ordering.supplier.orders = (query) => {
      pages += 1
      return orders(query)
    }
    await pass(10 * MINUTE, 10 * SECOND)
    expect(pages, 'a list that proves nothing is not read again').toBe(0)
    await unfreeze(harbour.ordering, 'ann')
    const [entry] = await harbour.db.query(auditOf('buying after a restore'))
    expect(entry).toMatchObject({ actor: 'ann', action: 'unfreeze', detail: reason })
    await pass(MINUTE, 10 * SECOND)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(await frozen()).toBeUndefined()
  })

  test("does not buy again what stands behind the end of the supplier's list, also when it is handed in late", async () => {
    const { harbour, buy, pass, lose, frozen } = await openShop(ending())
    await buy('1001')
    await pass(MINUTE, 10 * SECOND)
    await placeForeign(harbour, 4)
    await buy('1002')
    await pass(MINUTE, 10 * SECOND)
    await pass(LONG, 10 * HOUR)
    await lose()
    await pass(MAPPED, 30 * SECOND)
    expect(await frozen()).toMatchObject({
      reason: expect.stringContaining('1 supplier order has no matching purchase'),
    })
    expect(await frozen()).toMatchObject({ reason: expect.stringContaining('and 1 of those 4 is of its stores') })
    await buy('1002')
    const { orderId } = await buy('1001')
    await pass(MAPPED, 30 * SECOND)
    expect((await frozen())?.reason).not.toContain('no matching purchase')
    await unfreeze(harbour.ordering, 'ann')
    await pass(MAPPED, 30 * SECOND)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.sent).toHaveLength(2)
    expect(harbour.sandbox.world.report().charges).toHaveLength(6)
  })
})
