/** How many requests a WooCommerce shop gets for its prices and stock: the real flows, the adapter, and a shop over HTTP. */
import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { createIds } from '../../src/ids.ts'
import type { SellingStore } from '../../src/listings/assess.ts'
import { type Publisher, publishNext } from '../../src/listings/publish.ts'
import { createLog } from '../../src/log.ts'
import { Secret } from '../../src/secret.ts'
import { type NewOffer, putOffer } from '../../src/storage/offers.ts'
import { enqueueCatalogue, enqueuePublications } from '../../src/storage/publications.ts'
import { connectStore } from '../../src/storage/stores.ts'
import { PAID_STATUSES } from '../../src/stores/woocommerce/orders.ts'
import { wooCommerceStore } from '../../src/stores/woocommerce/woocommerce.ts'
import { startWooCommerceShop, wooKey } from '../shops/woocommerce-shop.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'
import { offerRow } from '../support/publish-world.ts'
import { sellingPolicy } from '../support/selling.ts'
import { SHOP } from '../support/shop-app.ts'

const HOUR = 3_600_000
const WRITES = /\.(batch|create|update|delete)$/

/** A shop that sells so many simple products, each under the SKU of one offer, and Quayside beside it. */
async function shopOf(count: number) {
  const clock = { at: TEST_NOW }
  const now = () => clock.at
  const newId = createIds(now, randomBytes)
  const db = memoryDatabase()
  const pass = (ms: number) => {
    clock.at += ms
  }
  const running = await startWooCommerceShop({ now, pass })
  const { shop } = running
  const adapter = wooCommerceStore({
    url: running.url,
    credentials: { key: new Secret(wooKey.key), secret: new Secret(wooKey.secret) },
    webhookSecret: 'f'.repeat(64),
    settings: {
      create: null,
      statuses: PAID_STATUSES,
      handOver: { by: 'completed_mail', complete: true, label: 'Licence key' },
      currency: 'EUR',
      ownsSalePrice: false,
    },
    now,
    newId,
    connections: running.connections,
  })
  onTestFinished(async () => {
    await adapter.close()
    await running.close()
  })
  const offers = Array.from({ length: count }, (_, place) => offerRow(`p${place}`))
  for (const { sku, name } of offers) shop.addProduct({ name, sku, regular_price: '99.00', virtual: true })
  const store: SellingStore = {
    id: SHOP,
    policy: { ...sellingPolicy(), products: { create: null, unpublishGone: false } },
  }
  const publisher: Publisher = {
    db,
    now,
    newId,
    log: createLog({ level: 'error', write: () => {} }),
    stores: [store],
    monotonic: now,
    random: () => 0.5,
    storeOf: () => adapter,
  }
  const stock = async (rows: NewOffer[]): Promise<void> => {
    const productIds = rows.map(({ productId }) => productId)
    const queued = enqueuePublications([store], productIds, { newId, now: now(), cause: 'test' })
    await db.commit([...rows.map((offer) => putOffer({ ...offer, asOf: now(), changedAt: now() })), ...queued])
  }
  await db.commit([connectStore(SHOP, now())])
  await stock(offers)
  return {
    shop,
    pass,
    offers,
    stock,
    /** Queues the whole catalogue, as after a change of the configuration. */
    queueAll: () => db.commit(enqueueCatalogue(SHOP, { newId, now: now(), cause: 'test' })),
    settle: async (): Promise<void> => {
      for (let passes = 0; passes < 1_000; passes += 1) if ((await publishNext(publisher, store)) === 0) return
      throw new Error('publishing does not come to rest')
    },
    /** How many requests of each kind that writes came. */
    writes: () => Object.fromEntries(Object.entries(shop.counts()).filter(([kind]) => WRITES.test(kind))),
    /** How many products each batch had, oldest first. */
    batches: () =>
      shop
        .requests()
        .flatMap(({ kind, fields }) => (kind === 'products.batch' ? [(fields.update as unknown[]).length] : [])),
  }
}

test('2,000 products are published with a tenth more than the fewest possible requests at most, and unchanged ones with none', async () => {
  const world = await shopOf(2_000)
  await world.settle()
  const { shop } = world
  expect(shop.counts()['products.batch']).toBeLessThanOrEqual(22)
  expect(Object.keys(world.writes())).toEqual(['products.batch'])
  const wrong = [...shop.products.values()].filter((one) => one.regularPrice === '99.00' || one.stockQuantity !== 5)
  expect(wrong).toEqual([])

  const before = world.writes()
  world.pass(7 * HOUR)
  await world.stock(world.offers)
  await world.queueAll()
  await world.settle()
  expect(world.writes()).toEqual(before)
})

test('a shop that becomes slow gets smaller batches, and larger ones again once it is quick', async () => {
  const world = await shopOf(600)
  world.shop.strike({ fault: 'slow', kind: 'products.batch', ms: 25_000, times: 3 })
  await world.settle()
  const batches = world.batches()
  expect(batches.slice(0, 4)).toEqual([100, 50, 25, 12])
  expect(batches.at(-1)).toBe(100)
  expect(batches.reduce((sum, size) => sum + size)).toBe(600)
})
