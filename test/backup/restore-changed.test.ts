/**
 * An order that its shop changed after the backup: what was bought for the change is found, and not bought again. Hours of two shops
 * pass in each test, so they run where they are asked for.
 */
import { describe, expect, test } from 'vitest'
import { externalOrderId as nameAtSupplier } from '../../src/domain/purchase-keys.ts'
import { retryPurchase, unfreeze } from '../../src/ordering/actions.ts'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { takeByHand } from '../../src/ordering/shop-orders.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { storeOrderByReference } from '../../src/storage/store-orders.ts'
import { isNeeded } from '../support/needs.ts'
import { openRestoreWorld } from '../support/restore-world.ts'
import { openRestoredShop } from '../support/restored-shop.ts'
import { SHOP } from '../support/shopify-app.ts'
import { defaultDialect, first, STORE, type TestApp } from '../support/test-app.ts'

const runs = isNeeded('campaigns')

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** Longer than the supplier remembers an idempotency key. */
const FORGOTTEN = 30 * HOUR

const dialect = defaultDialect()
const suppliers = [
  { kind: 'with a filter by reference', options: {} },
  { kind: 'without one', options: { dialect: { ...dialect, orders: { ...dialect.orders, externalOrderId: null } } } },
]
/** Its lists end at four orders. */
const ending = { dialect: { ...dialect, paging: { ...dialect.paging, listMax: 4 } } }

type Shop = Awaited<ReturnType<typeof openRestoredShop>>

const purchasesOf = async ({ app }: Shop, reference: string) => {
  const order = first(await app.db.query(storeOrderByReference(SHOP, reference)))
  return (await app.purchases(order.id)).map(
    ({ part, generation, quantity, state }) => `${part}.${generation} ${quantity} ${state}`,
  )
}

/** Ordered by another customer of the supplier, until its list shows no older order. */
function fillList({ sandbox, move }: TestApp, productId: string): void {
  for (let number = 1; number <= 4; number += 1) {
    move(1)
    const externalOrderId = `other.shop.${number}`
    sandbox.world.orders.place(externalOrderId, externalOrderId, { productId, quantity: 1, externalOrderId })
  }
}

/** Puts the backup back once the supplier has forgotten the keys. */
async function restoreLate(shop: Shop, backup: Buffer): Promise<void> {
  shop.app.move(FORGOTTEN)
  await shop.restore(backup)
  await shop.pass(30 * MINUTE)
}

describe.runIf(runs)('a line that grew after the backup', () => {
  /** One unit in the backup; since then one more was bought, and then another one. */
  async function growTwice(options: Parameters<typeof openRestoredShop>[0] = {}) {
    const shop = await openRestoredShop(options)
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    const backup = shop.backUp()
    for (const units of [2, 3]) {
      shop.raises(reference, 0, units)
      await shop.pass(3 * MINUTE)
    }
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 1 fulfilled', '2.1 1 fulfilled', '3.1 1 fulfilled'])
    return { shop, reference, backup }
  }

  test.each(suppliers)(
    'is not bought again after the restore, and no person is asked: a supplier $kind',
    async ({ options }) => {
      const { shop, reference, backup } = await growTwice(options)
      await restoreLate(shop, backup)
      expect(await purchasesOf(shop, reference)).toEqual(['1.1 1 fulfilled', '2.1 1 fulfilled', '3.1 1 fulfilled'])
      expect(shop.unitsBought()).toBe(3)
      expect(await currentFreeze(shop.app.db)).toBeUndefined()
      expect(await shop.app.discrepancies()).toEqual([])
      expect(await shop.alertsAbout(reference)).toEqual([])
      const order = first(await shop.app.db.query(storeOrderByReference(SHOP, reference)))
      const { lines } = await viewOrder(shop.app.ordering, order.id, { keys: false })
      expect(lines).toMatchObject([{ quantity: 3, delivered: 3 }])
    },
  )

  test("is not bought again where the supplier's list ends before the orders of the new units", async () => {
    const { shop, reference, backup } = await growTwice(ending)
    fillList(shop.app, (await shop.app.offer()).productId)
    await restoreLate(shop, backup)
    expect(shop.app.sent).toHaveLength(3)
    await unfreeze(shop.app.ordering, 'ann')
    await shop.pass(30 * MINUTE)
    expect(shop.app.sent).toHaveLength(3)
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 1 fulfilled', '2.1 1 fulfilled', '3.1 1 fulfilled'])
  })

  test('and of which units are refunded before the restore keeps the keys of these units here, with an alert', async () => {
    const { shop, reference, backup } = await growTwice()
    shop.refundsUnits(reference, 0, 1)
    await restoreLate(shop, backup)
    expect(shop.unitsBought()).toBe(3)
    expect(await currentFreeze(shop.app.db)).toBeUndefined()
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 1 fulfilled', '2.1 1 fulfilled', '3.1 1 review'])
    expect(await shop.alertsAbout(reference)).toContainEqual(
      expect.stringContaining('is bought already and not ordered any more'),
    )
  })

  test('is not bought in its first part where another one was bought in its place, and the list does not show that', async () => {
    const shop = await openRestoredShop({ ...ending, delayMinutes: 10 })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    const backup = shop.backUp()
    const externalOrderId = `q1.${SHOP}.${reference}.${first(shop.shop.orders.get(reference)?.lines ?? []).id}.1.`
    shop.app.sandbox.faults.add({ fault: 'out-of-stock', times: 1_000, match: { externalOrderId } })
    await shop.pass(10 * MINUTE)
    shop.raises(reference, 0, 2)
    await shop.pass(2 * HOUR)
    shop.refundsUnits(reference, 0, 1)
    await shop.pass(3 * MINUTE)
    shop.app.sandbox.faults.clear()
    expect((await purchasesOf(shop, reference)).at(-1)).toBe('2.1 1 fulfilled')
    expect(shop.unitsBought()).toBe(1)
    const sent = shop.app.sent.length
    fillList(shop.app, (await shop.app.offer()).productId)
    await restoreLate(shop, backup)
    await unfreeze(shop.app.ordering, 'ann')
    await shop.pass(30 * MINUTE)
    expect(shop.app.sent).toHaveLength(sent)
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 1 cancelled', '2.1 1 fulfilled'])
  })

  test('is not bought again by a new database, which takes the whole line at once', async () => {
    const { shop, reference } = await growTwice()
    await shop.lose()
    await shop.pass(10 * MINUTE)
    await takeByHand(shop.app.ordering, SHOP, reference, { take: 'all' }, 'ann')
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(3)
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 1 fulfilled', '2.1 1 fulfilled', '3.1 1 fulfilled'])
    expect(await currentFreeze(shop.app.db)).toBeUndefined()
  })
})

test.runIf(runs)(
  'units that were added after the backup and not bought yet are bought after the restore, also where other orders changed since',
  async () => {
    const shop = await openRestoredShop()
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    const backup = shop.backUp()
    shop.raises(reference, 0, 2)
    for (let order = 0; order < 3; order += 1) {
      shop.app.move(HOUR)
      shop.buys(1)
    }
    await restoreLate(shop, backup)
    expect(shop.keysIn(reference)).toHaveLength(2)
    expect(shop.unitsBought()).toBe(5)
  },
)

describe.runIf(runs)('a purchase of which units were refunded after the backup, and the rest bought', () => {
  /** Three units planned in the backup; since then one was refunded, and two were bought. */
  async function refundOne(options: Parameters<typeof openRestoredShop>[0] = {}) {
    const shop = await openRestoredShop({ delayMinutes: 10, ...options })
    const reference = shop.buys(3)
    await shop.pass(3 * MINUTE)
    const backup = shop.backUp()
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 3 planned'])
    shop.refundsUnits(reference, 0, 1)
    await shop.pass(15 * MINUTE)
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 2 fulfilled'])
    return { shop, reference, backup }
  }

  test.each(suppliers)('is found as what was bought, and no person is asked: a supplier $kind', async ({ options }) => {
    const { shop, reference, backup } = await refundOne(options)
    await restoreLate(shop, backup)
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 2 fulfilled'])
    expect(shop.unitsBought()).toBe(2)
    expect(await currentFreeze(shop.app.db)).toBeUndefined()
    expect(await shop.alertsAbout(reference)).toEqual([])
  })

  test("is not bought again where the supplier's list ends before its order", async () => {
    const { shop, reference, backup } = await refundOne(ending)
    fillList(shop.app, (await shop.app.offer()).productId)
    await restoreLate(shop, backup)
    await unfreeze(shop.app.ordering, 'ann')
    await shop.pass(30 * MINUTE)
    expect(shop.app.sent).toHaveLength(1)
    expect(shop.keysIn(reference)).toHaveLength(2)
    expect((await purchasesOf(shop, reference)).filter((one) => !one.endsWith('cancelled'))).toEqual([
      '1.1 2 fulfilled',
    ])
  })

  test('and that grew again is found in both of its parts', async () => {
    const { shop, reference, backup } = await refundOne()
    shop.raises(reference, 0, 4)
    await shop.pass(15 * MINUTE)
    expect(shop.unitsBought()).toBe(4)
    await restoreLate(shop, backup)
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 2 fulfilled', '2.1 2 fulfilled'])
    expect(shop.unitsBought()).toBe(4)
    expect(await currentFreeze(shop.app.db)).toBeUndefined()
  })
})

test.runIf(runs)(
  'an order for a part that its line does not have here is found as that part, also where its reference hides the number',
  async () => {
    const short = { ...dialect, externalOrderIdMax: 64 }
    const world = await openRestoreWorld({ dialect: short })
    const { app } = world
    const { sku, productId } = await app.offer()
    const reference = `order-${'1'.repeat(60)}`
    const { orderId } = await world.handIn(reference, [{ sku }])
    await world.pass(MINUTE, 10_000)
    const name = { store: STORE, reference, line: '1', part: 3, generation: 2 }
    const externalOrderId = nameAtSupplier(name, short.externalOrderIdMax)
    expect(externalOrderId).toContain('~')
    app.sandbox.world.orders.place('beside', 'beside', { productId, quantity: 1, externalOrderId })
    await world.restore(world.backUp())
    await world.pass(30 * MINUTE, MINUTE)
    const rows = await app.purchases(orderId)
    expect(rows).toMatchObject([
      { part: 1, generation: 1, quantity: 1, state: 'fulfilled' },
      { part: 3, generation: 2, quantity: 1, externalOrderId },
    ])
    // No customer ordered these units: their keys stay here.
    expect(app.shop.keys().get(`${reference}/1`)).toHaveLength(1)
    expect(await currentFreeze(app.db)).toBeUndefined()
  },
)

test.runIf(runs)(
  'a part that fails once more after the restore, where the lost database had given up the money of its first attempt, is bought by a person and by no tag',
  async () => {
    const shop = await openRestoredShop()
    const { app, shop: shopify } = shop
    app.sandbox.faults.add({ fault: 'failed-order', times: 2 })
    const reference = shop.buys(1)
    await shop.pass(5 * MINUTE)
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 1 failed'])
    const backup = shop.backUp()
    shopify.tag(reference, 'quayside-retry')
    await shop.pass(5 * MINUTE)
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 1 failed', '1.2 1 failed'])
    await restoreLate(shop, backup)
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 1 failed', '1.2 1 failed'])

    shopify.tag(reference, 'quayside-retry')
    await shop.pass(10 * MINUTE)
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 1 failed', '1.2 1 failed'])
    const order = first(await app.db.query(storeOrderByReference(SHOP, reference)))
    const { id = '' } = (await app.purchases(order.id)).at(-1) ?? {}
    expect(await shop.alertsAbout(reference)).toEqual([expect.stringContaining(`quayside purchases retry ${id}`)])
    expect(await app.alerts()).not.toContain('poisoned')

    await retryPurchase(app.ordering, id, 'ann')
    await shop.pass(10 * MINUTE)
    expect(await purchasesOf(shop, reference)).toEqual(['1.1 1 failed', '1.2 1 failed', '1.3 1 fulfilled'])
    expect((await app.purchases(order.id)).map(({ writtenOffAt }) => writtenOffAt !== null)).toEqual([
      true,
      true,
      false,
    ])
  },
)
