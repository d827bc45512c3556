/** Several changes of an order that one reading of its shop shows together. */
import { describe, expect, test } from 'vitest'
import { retryPurchase } from '../../src/ordering/actions.ts'
import { decidePurchase } from '../../src/ordering/decide.ts'
import { shopifyThatChanges, wooCommerceThatChanges } from '../support/changing-shop.ts'

const MINUTE = 60_000

const shops = [
  { kind: 'WooCommerce', open: wooCommerceThatChanges },
  { kind: 'Shopify', open: shopifyThatChanges },
]

describe.each(shops)('an order of $kind of which a unit is refunded', ({ open }) => {
  test('and whose payment fails before the next reading, buys the units that are left once it is paid again', async () => {
    const shop = await open({ delayMinutes: 10 })
    const reference = shop.buys(3)
    await shop.pass(3 * MINUTE)
    shop.refundsUnits(reference, 0, 1)
    shop.paymentFails(reference)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(0)
    shop.paysAgain(reference)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(2)
    expect(shop.keysIn(reference)).toHaveLength(2)
    expect(shop.isDone(reference)).toBe(true)
  })

  test('while it is not paid, and that is paid again before the next reading, buys the units that are left', async () => {
    const shop = await open({ delayMinutes: 10 })
    const reference = shop.buys(3)
    await shop.pass(3 * MINUTE)
    shop.paymentFails(reference)
    await shop.pass(3 * MINUTE)
    shop.refundsUnits(reference, 0, 1)
    shop.paysAgain(reference)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(2)
    expect(shop.keysIn(reference)).toHaveLength(2)
  })
})

test('a unit that is refunded after it was bought is named with its line, and not with another one of its order', async () => {
  const shop = await wooCommerceThatChanges()
  const reference = shop.buys(1, 2)
  const isDone = shop.beforeHandOver(reference, 3, () => shop.refundsUnits(reference, 1, 1))
  await shop.pass(30 * MINUTE)
  expect(isDone()).toBe(true)
  const [first, second] = shop.shop.orders.get(Number(reference))?.lines ?? []
  const surplus = (await shop.alertsAbout(reference)).filter((note) => note.includes('not ordered any more'))
  expect(surplus).toEqual([expect.stringContaining(`1 unit of line ${second?.id} `)])
  expect(surplus[0]).not.toContain(`line ${first?.id} `)
  expect(shop.keysIn(reference)).toHaveLength(2)
})

test('a line that loses its two units while the supplier works on them, and gets one back, has people alerted of the other one', async () => {
  const shop = await wooCommerceThatChanges()
  shop.sandbox.faults.add({ fault: 'hold-open' })
  const reference = shop.buys(2, 1)
  await shop.pass(2 * MINUTE)
  for (const _ of [1, 2]) shop.refundsUnits(reference, 0, 1)
  await shop.pass(2 * MINUTE)
  const order = shop.shop.orders.get(Number(reference))
  shop.shop.deleteRefund(Number(reference), order?.refunds[0]?.id ?? 0)
  await shop.pass(2 * MINUTE)
  shop.completesOpen()
  await shop.pass(30 * MINUTE)
  expect(shop.keysIn(reference)).toHaveLength(2)
  expect(await shop.alertsAbout(reference)).toEqual([expect.stringContaining(`1 unit of line ${order?.lines[0]?.id} `)])
})

describe('an order of two units, of which one is refunded after a delivery of both was lost on its way to the shop', () => {
  test('gets the key of the other one (WooCommerce)', async () => {
    const shop = await wooCommerceThatChanges()
    const reference = shop.buys(2)
    shop.shop.strike({
      fault: 'lost_before',
      matches: ({ method, path }) => {
        const isDelivery = method === 'PUT' && path.endsWith(`/orders/${reference}`)
        if (isDelivery) shop.refundsUnits(reference, 0, 1)
        return isDelivery
      },
    })
    await shop.pass(30 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(shop.isDone(reference)).toBe(true)
  })

  test('gets the key of the other one (Shopify)', async () => {
    const shop = await shopifyThatChanges()
    const reference = shop.buys(2)
    shop.shop.strike({
      fault: 'lost_before',
      matches: ({ kind }) => {
        if (kind === 'PutKeys') shop.refundsUnits(reference, 0, 1)
        return kind === 'PutKeys'
      },
    })
    await shop.pass(30 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(shop.isDone(reference)).toBe(true)
  })
})

test('an order of WooCommerce whose price changes while it is not paid is bought once it is paid again', async () => {
  const shop = await wooCommerceThatChanges({ delayMinutes: 10 })
  const reference = shop.buys(1)
  await shop.pass(3 * MINUTE)
  shop.paymentFails(reference)
  await shop.pass(3 * MINUTE)
  shop.shop.edit(Number(reference), ({ lines: [line] }) => {
    if (line) line.total += 100
  })
  shop.paysAgain(reference)
  await shop.pass(30 * MINUTE)
  expect(shop.unitsBought()).toBe(1)
  expect(shop.keysIn(reference)).toHaveLength(1)
})

test('a tag is followed also where a person had tried again before it, and that failed too', async () => {
  const shop = await shopifyThatChanges()
  shop.sandbox.faults.add({ fault: 'failed-order', times: 1_000 })
  const reference = shop.buys(1)
  await shop.pass(5 * MINUTE)
  const { id = '' } = (await shop.orderOf(reference)) ?? {}
  const [purchase] = await shop.purchases(id)
  await retryPurchase(shop.ordering, purchase?.id ?? '', 'ann')
  await shop.pass(5 * MINUTE)
  const charges = () => shop.sandbox.world.report().charges.length
  expect(charges()).toBe(2)
  shop.shop.tag(reference, 'quayside-retry')
  await shop.pass(5 * MINUTE)
  expect(charges()).toBe(3)
})

test('a unit that was added is bought where one was given up for a key that did not come, and is refunded', async () => {
  const shop = await shopifyThatChanges()
  shop.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'completed', delayMs: 20 * 60 * MINUTE })
  const reference = shop.buys(2)
  await shop.pass(80 * MINUTE)
  const purchases = async () => shop.purchases((await shop.orderOf(reference))?.id ?? '')
  const [short] = await purchases()
  expect(short).toMatchObject({ state: 'review', note: expect.stringContaining('only 1 of 2 keys came') })
  const why = { actor: 'test', reason: 'the other one will not come' }
  await decidePurchase(shop.ordering, short?.id ?? '', { type: 'hand_over' }, why)
  await shop.pass(5 * MINUTE)
  shop.sandbox.faults.add({ fault: 'out-of-stock', times: 2 })
  shop.raises(reference, 0, 3)
  await shop.pass(3 * MINUTE)
  shop.refundsUnits(reference, 0, 1)
  await shop.pass(60 * MINUTE)
  expect((await purchases()).at(-1)).toMatchObject({ state: 'fulfilled', quantity: 1 })
  expect(shop.keysIn(reference)).toHaveLength(2)
})
