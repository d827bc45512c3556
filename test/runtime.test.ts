/** What wakes what: the connections that no flow can test by itself. */
import { describe, expect, test } from 'vitest'
import { type Runtime, startRuntime } from '../src/runtime.ts'
import { listSweeps } from '../src/storage/runs.ts'
import { sellingPolicy } from './support/selling.ts'
import { openTestApp, STORE, type TestApp } from './support/test-app.ts'

const MINUTE = 60_000

/** A runtime whose workers run when they are woken, as in the program, on the database of the test. */
const awake = ({ ordering, supplier }: TestApp): Promise<Runtime> =>
  startRuntime({ ...ordering, supplier, stores: [{ id: STORE, policy: sellingPolicy() }], owner: 'awake' })

describe('the runtime', () => {
  test('publishes an offer at once that was refreshed', async () => {
    const app = await openTestApp()
    const runtime = await awake(app)
    const { productId, sku } = await app.offer()
    app.sandbox.world.offers.change(productId, { priceMinor: 1_234 })
    app.move(MINUTE)
    await runtime.ordering.refreshOffer(productId)
    await runtime.idle()
    expect([...app.shop.listings().values()].map(({ sku: sold }) => sold)).toContain(sku)
  })

  test('buys what waited for the balance once it rose', async () => {
    const app = await openTestApp({ balanceMinor: 1 })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'balance' })
    app.sandbox.world.topUp(1_000_000)
    app.move(1_000)
    const runtime = await awake(app)
    await runtime.ordering.checkBalance()
    await runtime.idle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted', holdReason: null })
  })

  test('sweeps when the balance fell and no order explains it', async () => {
    const app = await openTestApp()
    const runtime = await awake(app)
    const { productId } = await app.offer()
    app.sandbox.world.orders.place('another key', 'another-client', {
      productId,
      quantity: 1,
      externalOrderId: 'another-client',
    })
    for (let time = 0; time < 2; time += 1) {
      app.move(5 * MINUTE)
      await runtime.ordering.checkBalance()
      await runtime.idle()
    }
    expect(await app.db.query(listSweeps({ limit: 10 }))).toMatchObject([{ cause: 'balance', state: 'complete' }])
  })
})
