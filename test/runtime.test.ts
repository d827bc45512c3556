/** What wakes what: the connections that no flow can test by itself. */
import { describe, expect, test } from 'vitest'
import { takeOrder } from '../src/ordering/intake.ts'
import { type Runtime, startRuntime } from '../src/runtime.ts'
import { listSweeps } from '../src/storage/runs.ts'
import type { PushResult } from '../src/stores/store.ts'
import { sellingPolicy } from './support/selling.ts'
import { openTestApp, STORE, type TestApp, until } from './support/test-app.ts'

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

  test('hands keys to one store while another one takes its updates and never answers', async () => {
    const app = await openTestApp()
    const [answer, asked] = [Promise.withResolvers<PushResult>(), Promise.withResolvers<void>()]
    const fulfil = () => {
      asked.resolve()
      return answer.promise
    }
    const runtime = await startRuntime({
      ...app.ordering,
      supplier: app.supplier,
      stores: [STORE, 'silent'].map((id) => ({ id, policy: sellingPolicy() })),
      storeOf: (id) => (id === STORE ? app.store : { ...app.store, fulfil }),
      owner: 'awake',
    })
    const { sku } = await app.offer()
    const line = { id: '1', sku, quantity: 1, unitPriceMinor: null, currency: 'EUR' }
    const accepted = () => app.lines.filter((text) => text.includes('"purchase.accepted"')).length
    const buy = async (store: string, reference: string) => {
      const before = accepted()
      const { orderId } = await takeOrder(runtime.ordering, store, { reference, lines: [line] }, reference)
      await until(() => accepted() > before)
      app.move(5_000)
      app.sandbox.advance()
      runtime.wake('refresh')
      return orderId
    }
    await buy('silent', '1')
    await asked.promise
    const orderId = await buy(STORE, '1001')
    await until(() => app.callbacks('order.closed').length > 0)
    expect(await app.state(orderId)).toBe('fulfilled')
    answer.resolve({ outcome: 'confirmed' })
    await runtime.idle()
    app.expectLedger({ charges: 2, keys: 1 })
  })
})
