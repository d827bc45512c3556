/** A shop beside a database that is put back or lost: its customers keep the keys that they have, and nothing is bought again. */
import { describe, expect, test } from 'vitest'
import { takeByHand } from '../../src/ordering/shop-orders.ts'
import { first } from '../../src/storage/database.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { storeOrderByReference } from '../../src/storage/store-orders.ts'
import { openRestoreWorld } from '../support/restore-world.ts'
import { besideShop, SHOP } from '../support/shop-app.ts'
import { STORE } from '../support/test-app.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** A shop that sells an offer, and a customer who can buy it. */
async function selling() {
  const { shop, beside } = await besideShop()
  const world = await openRestoreWorld({ beside })
  const { app } = world
  const { sku, name } = await app.offer()
  const stocked = { manage_stock: true, stock_quantity: 50, virtual: true }
  const { id: product } = shop.addProduct({ name, sku, regular_price: '99.00', ...stocked })
  const pass = (ms: number) => world.passBesideShop(ms, MINUTE)
  const issued = () => Object.values(app.sandbox.world.report().keysIssued).flat()
  return {
    ...world,
    shop,
    product,
    pass,
    /** A customer buys; the reference of the order. */
    buy: () => String(shop.buy({ lines: [{ product }] }).id),
    orderOf: (reference: string) => first(app.db, storeOrderByReference(SHOP, reference)),
    /** How many charges the supplier made, and how many mails brought each key. */
    seen: () => ({
      charges: app.sandbox.world.report().charges.length,
      mails: issued().map((key) => shop.mailsWith(key).length),
    }),
  }
}

describe('keys that the customers of a shop have', () => {
  test('are neither bought nor mailed again where the backup is older than their order', async () => {
    const world = await selling()
    await world.pass(2 * MINUTE)
    const backup = world.backUp()
    const reference = world.buy()
    await world.pass(5 * MINUTE)
    expect(world.seen()).toEqual({ charges: 1, mails: [1] })
    // The supplier has forgotten the idempotency key by then.
    world.app.move(30 * DAY)
    await world.restore(backup)
    expect(await world.orderOf(reference)).toBeUndefined()
    await world.pass(30 * MINUTE)
    expect(await world.orderOf(reference)).toMatchObject({ closedAt: expect.any(Number) })
    expect(world.seen()).toEqual({ charges: 1, mails: [1] })
    const later = world.buy()
    await world.pass(5 * MINUTE)
    expect(world.shop.orders.get(Number(later))?.status, 'buying goes on').toBe('completed')
    expect(world.seen()).toEqual({ charges: 2, mails: [1, 1] })
  })

  test('are neither bought nor mailed again, whichever commit since their order the backup was made after', async () => {
    const world = await selling()
    await world.pass(MINUTE)
    const before = world.backups.length
    world.buy()
    await world.pass(4 * MINUTE)
    const backups = world.backups.slice(before)
    expect(backups.length).toBeGreaterThan(5)
    for (const backup of backups) {
      await world.restore(backup)
      await world.pass(15 * MINUTE)
      expect(world.seen()).toEqual({ charges: 1, mails: [1] })
    }
  }, 60_000)

  test('are not bought again by a new database, which takes no order that was paid before it', async () => {
    const world = await selling()
    await world.pass(MINUTE)
    const reference = world.buy()
    await world.pass(4 * MINUTE)
    await world.lose()
    world.shop.edit(Number(reference), () => {})
    await world.pass(30 * MINUTE)
    expect(await world.orderOf(reference)).toBeUndefined()
    expect(world.seen()).toEqual({ charges: 1, mails: [1] })
    expect(await world.app.alerts()).not.toContain('order_before_connection')
    // It is known by the supplier's orders, and its keys by the line that has them.
    await takeByHand(world.app.ordering, SHOP, reference, { take: 'all' }, 'anna')
    await world.pass(30 * MINUTE)
    expect(await world.orderOf(reference)).toMatchObject({ closedAt: expect.any(Number) })
    expect(world.seen()).toEqual({ charges: 1, mails: [1] })
  })
})

test('a unit that was added after the backup, and that an operator took, is not bought again and leaves no hold', async () => {
  const world = await selling()
  await world.pass(MINUTE)
  const reference = world.buy()
  await world.pass(4 * MINUTE)
  const backup = world.backUp()
  world.shop.edit(Number(reference), ({ lines: [line] }) => {
    if (line) Object.assign(line, { total: line.total * 2, quantity: 2 })
  })
  await world.pass(4 * MINUTE)
  expect(world.seen().charges).toBe(1)
  const [line] = world.shop.orders.get(Number(reference))?.lines ?? []
  await takeByHand(world.app.ordering, SHOP, reference, { take: { line: String(line?.id) } }, 'anna')
  await world.pass(5 * MINUTE)
  expect(world.seen().charges).toBe(2)
  world.app.move(30 * DAY)
  await world.restore(backup)
  await world.pass(30 * MINUTE)
  expect(world.seen().charges).toBe(2)
  expect(await currentFreeze(world.app.db)).toBeUndefined()
  expect(await world.app.discrepancies()).toEqual([])
  const { id = '' } = (await world.orderOf(reference)) ?? {}
  expect((await world.app.purchases(id)).map(({ part, state }) => `${part} ${state}`)).toEqual([
    '1 fulfilled',
    '2 fulfilled',
  ])
})

test('an order that a person released after the backup, and that is paid again after the restore, is not left to wait in silence', async () => {
  const { app, ...world } = await selling()
  const { productId } = await app.offer()
  app.sandbox.world.offers.change(productId, { stock: 0 })
  const { id } = world.shop.buy({ lines: [{ product: world.product, quantity: 2 }] })
  await world.pass(MINUTE)
  world.shop.refund(id, { amount: '99.00' })
  await world.pass(2 * MINUTE)
  const raised = async () => {
    const alerts = await app.db.query(listOutbox({ kind: 'alert', limit: 100 }))
    return alerts.filter(({ payload }) => JSON.stringify(payload).includes(`quayside orders release ${id}`)).length
  }
  expect(await raised()).toBe(1)
  const backup = world.backUp()
  await takeByHand(app.ordering, SHOP, String(id), 'release', 'anna')
  world.shop.setStatus(id, 'cancelled')
  await world.pass(2 * MINUTE)
  await world.restore(backup)
  await world.pass(10 * MINUTE)
  world.shop.setStatus(id, 'processing')
  await world.pass(10 * MINUTE)
  expect(await raised()).toBe(2)
  app.sandbox.world.offers.change(productId, { stock: 50 })
  await world.pass(30 * MINUTE)
  expect(await raised()).toBe(2)
  expect(world.seen().charges).toBe(0)
  await takeByHand(app.ordering, SHOP, String(id), 'release', 'anna')
  await world.pass(30 * MINUTE)
  expect(world.seen()).toEqual({ charges: 1, mails: [1, 1] })
})

describe('a paid order that a lost database had not bought', () => {
  test('is never bought by the new one, which alerts people, until an operator takes it', async () => {
    const world = await selling()
    await world.pass(MINUTE)
    const [reference, other] = [world.buy(), world.buy()]
    world.app.move(MINUTE)
    await world.lose()
    await world.pass(30 * MINUTE)
    expect(await world.orderOf(reference)).toBeUndefined()
    expect(world.seen()).toEqual({ charges: 0, mails: [] })
    const raised = (await world.app.alerts()).filter((type) => type === 'order_before_connection')
    expect(raised, 'one for each').toHaveLength(2)
    await takeByHand(world.app.ordering, SHOP, reference, { take: 'all' }, 'anna')
    await world.pass(10 * MINUTE)
    expect(world.seen()).toEqual({ charges: 1, mails: [1] })
    expect(world.shop.orders.get(Number(reference))?.status).toBe('completed')
    expect(world.shop.orders.get(Number(other))?.status).toBe('processing')
    const audit = await world.app.db.query(auditOf(`${SHOP}/${reference}`))
    expect(audit).toMatchObject([{ actor: 'anna', action: 'order.take' }])
  })

  test('is refused with its reason where it is not paid or not there, or no shop has it', async () => {
    const world = await selling()
    const unpaid = world.shop.buy({ lines: [{ product: world.product }], payment: 'waiting' })
    const take = (reference: string, store = SHOP) =>
      takeByHand(world.app.ordering, store, reference, { take: 'all' }, 'anna')
    await expect(take(String(unpaid.id))).rejects.toMatchObject({
      reason: 'not_taken',
      message: expect.stringContaining('not paid'),
    })
    await expect(take('4711')).rejects.toMatchObject({ code: 'not_found' })
    await expect(take('../products/10')).rejects.toMatchObject({ code: 'not_found' })
    await expect(take('1', STORE)).rejects.toMatchObject({ reason: 'no_shop' })
  })
})
