/** What wakes what: the connections that no flow can test by itself. */
import { describe, expect, test } from 'vitest'
import { type Runtime, startRuntime } from '../src/runtime.ts'
import { listSweeps } from '../src/storage/runs.ts'
import { type Harbour, openHarbour, STORE } from './support/harbour.ts'
import { sellingPolicy } from './support/selling.ts'

const MINUTE = 60_000

/** A runtime whose workers run when they are woken, as in the program, on the database of the test. */
async function awake({ ordering, db, supplier, store }: Harbour): Promise<Runtime> {
  const { vault, dialect, policy, now, monotonic, random, newId, log } = ordering
  return startRuntime({
    db,
    vault,
    supplier,
    dialect,
    stores: [{ id: STORE, policy: sellingPolicy() }],
    storeOf: () => store,
    policy,
    owner: 'awake',
    now,
    monotonic,
    random,
    newId,
    log,
  })
}

describe('the runtime', () => {
  test('publishes an offer at once that was refreshed', async () => {
    const harbour = await openHarbour()
    const runtime = await awake(harbour)
    const { productId, sku } = await harbour.offer()
    harbour.sandbox.world.offers.change(productId, { priceMinor: 1_234 })
    harbour.move(MINUTE)
    await runtime.ordering.refreshOffer(productId)
    await runtime.idle()
    expect([...harbour.shop.listings().values()].map(({ sku: sold }) => sold)).toContain(sku)
  })

  test('buys what waited for the balance once it rose', async () => {
    const harbour = await openHarbour({ balanceMinor: 1 })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'balance' })
    harbour.sandbox.world.topUp(1_000_000)
    harbour.move(1_000)
    const runtime = await awake(harbour)
    await runtime.ordering.readBalance()
    await runtime.idle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'accepted', holdReason: null })
  })

  test('sweeps when the balance fell and no order explains it', async () => {
    const harbour = await openHarbour()
    const runtime = await awake(harbour)
    const { productId } = await harbour.offer()
    harbour.sandbox.world.orders.place('another key', 'another-client', {
      productId,
      quantity: 1,
      externalOrderId: 'another-client',
    })
    for (let time = 0; time < 2; time += 1) {
      harbour.move(5 * MINUTE)
      await runtime.ordering.readBalance()
      await runtime.idle()
    }
    expect(await harbour.db.query(listSweeps({ limit: 10 }))).toMatchObject([{ cause: 'balance', state: 'complete' }])
  })
})
