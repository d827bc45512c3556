/** What a store learns of a line that waits. */
import { describe, expect, test } from 'vitest'
import { cancelOrder, releasePurchase } from '../../src/ordering/actions.ts'
import { openTestApp, type TestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** All callbacks that the store got, in order: the type, and the reason of a hold. */
const heard = (app: TestApp) =>
  app.shop.received().map(({ type, data }) => (type === 'line.held' ? `${type} ${data.reason}` : type))

describe('a line that is held', () => {
  test('for stock is reported to the store once, and once more when it goes on', async () => {
    const app = await openTestApp()
    const { sku, productId } = await app.offer()
    await app.order('1001', [{ sku, quantity: 2 }])
    app.sandbox.world.offers.change(productId, { stock: 0 })
    await app.pass(3 * HOUR)
    expect(heard(app)).toEqual(['line.held out_of_stock'])
    expect(app.callbacks('line.held')[0]?.data).toMatchObject({
      reference: '1001',
      line: '1',
      sku,
      quantity: 2,
      reason: 'out_of_stock',
      message: 'the supplier has none left: it is bought once there is stock again',
    })
    app.sandbox.world.offers.change(productId, { stock: 5 })
    await app.pass(10 * MINUTE)
    expect(heard(app)).toEqual(['line.held out_of_stock', 'line.resumed', 'line.fulfilled', 'order.closed'])
    expect(app.callbacks('line.resumed')[0]?.data).toMatchObject({ reference: '1001', line: '1', quantity: 2 })
  })

  test('after refusals of the supplier is reported once, however many purchases are tried', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'out-of-stock', times: 3 })
    const orderId = await app.buy('1001')
    await app.pass(3 * HOUR)
    expect((await app.purchases(orderId)).map(({ state }) => state)).toEqual([
      'rejected',
      'rejected',
      'rejected',
      'fulfilled',
    ])
    expect(heard(app)).toEqual(['line.held out_of_stock', 'line.resumed', 'line.fulfilled', 'order.closed'])
  })

  test('for another reason than before is reported with the new one', async () => {
    const app = await openTestApp()
    const { sku, productId, costMinor } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }])
    app.sandbox.world.offers.change(productId, { stock: 0 })
    await app.pass(HOUR)
    app.sandbox.world.offers.change(productId, { stock: 5, priceMinor: costMinor * 2 })
    await app.pass(HOUR)
    expect(heard(app)).toEqual(['line.held out_of_stock', 'line.held ceiling'])
    const { id } = await app.purchase(orderId)
    await releasePurchase(app.ordering, id, { ceilingMinor: costMinor * 2 }, 'ann')
    await app.pass(10 * MINUTE)
    expect(heard(app).slice(2)).toEqual(['line.resumed', 'line.fulfilled', 'order.closed'])
  })

  test('for a spend cap or a freeze, which is no matter of the store, is not reported', async () => {
    const app = await openTestApp({ policy: { caps: { order: 1, hour: null, day: null } } })
    const { sku } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }])
    await app.pass(HOUR)
    expect(await app.purchase(orderId)).toMatchObject({ holdReason: 'spend_cap' })
    expect(heard(app)).toEqual([])
  })

  test('and cancelled fails, and never resumes', async () => {
    const app = await openTestApp()
    const { sku, productId } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }])
    app.sandbox.world.offers.change(productId, { stock: 0 })
    await app.pass(HOUR)
    await cancelOrder(app.ordering, orderId, 'shop')
    await app.pass(10 * MINUTE)
    expect(heard(app)).toEqual(['line.held out_of_stock', 'line.failed', 'order.closed'])
  })

  test('and goes on before the store could hear of it is not reported late: the last word is the true one', async () => {
    const app = await openTestApp()
    const { sku, productId } = await app.offer()
    app.shop.answerNext(503, 2)
    const { orderId } = await app.order('1001', [{ sku }])
    app.sandbox.world.offers.change(productId, { stock: 0 })
    await app.pass(10_000)
    expect(await app.purchase(orderId)).toMatchObject({ holdReason: 'out_of_stock', holdReported: 'out_of_stock' })
    app.sandbox.world.offers.change(productId, { stock: 5 })
    await app.pass(12 * HOUR)
    expect(heard(app)).toEqual(['line.resumed', 'line.fulfilled', 'order.closed'])
  })
})
