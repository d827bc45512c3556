/** A store that is not live yet: nothing is written to it, and no order of it is taken. */
import { expect, test } from 'vitest'
import { first } from '../../src/storage/database.ts'
import { storeReadingOf } from '../../src/storage/stores.ts'
import { openApi } from '../support/api-world.ts'
import { openShopApp, SHOP } from '../support/shop-app.ts'

test('a shop that is off gets no product and no stock, and what its customers pay for is not bought', async () => {
  const world = await openShopApp({ isLive: false, products: { create: 'publish' } })
  const [{ product } = { product: 0 }] = await world.sell()
  const products = world.shop.products.size
  const reference = world.customerBuys({ lines: [{ product, quantity: 1 }] })
  await world.pass(10 * 60_000)
  expect(await world.orderOf(reference)).toBeUndefined()
  expect(world.app.sent).toEqual([])
  // The shop itself counts the unit that was sold.
  expect([world.shop.products.size, world.shop.products.get(product)?.stockQuantity]).toEqual([products, 49])
  expect(await first(world.app.db, storeReadingOf(SHOP)), 'it counts as connected once it is live').toBeUndefined()
})

test('an order of a backend that is off is refused by a reason of its own, and nothing is stored', async () => {
  const world = await openApi({ storeSettings: { selling: 'off' } })
  const [offer] = await world.offers()
  const body = { reference: '1001', lines: [{ id: '1', sku: offer?.sku, quantity: 1 }] }
  const refused = await world.ask('POST', '/orders', { token: world.tokens.store, body })
  expect({ status: refused.status, code: refused.body.error.code }).toEqual({ status: 409, code: 'store_off' })
  const read = await world.ask('GET', '/orders/1001', { token: world.tokens.store })
  expect(read.status).toBe(404)
})
