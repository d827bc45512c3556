import { expect, test } from 'vitest'
import { testStore } from '../../src/http/api/store-test.ts'
import { newListing } from '../../src/listings/assess.ts'
import { type ListingRow, putListings } from '../../src/storage/listings.ts'
import { insertSyncRun } from '../../src/storage/runs.ts'
import { insertStoreOrder } from '../../src/storage/store-orders.ts'
import { connectStore, putStoreReading } from '../../src/storage/stores.ts'
import { openApi } from '../support/api-world.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'
import { wooCommerceWorld } from '../support/store-worlds.ts'
import { STORE } from '../support/test-app.ts'

const SHOP = 'shop-ab12cd34'
const PUBLIC = 'https://quayside.example'

async function shopAndDatabase(given: Parameters<typeof wooCommerceWorld>[0] = {}) {
  const db = memoryDatabase()
  const world = await wooCommerceWorld(given)
  const tried = async (publicUrl: string | null = PUBLIC) =>
    (await testStore(db, SHOP, world.store, publicUrl)).map(
      ({ check, state, detail }) => `${check} ${state}: ${detail}`,
    )
  return { db, world, tried }
}

test('a new shop has its webhook made, and its orders and products are not read yet', async () => {
  const { world, tried } = await shopAndDatabase()
  const findings = await tried()
  expect(findings).toContain('webhook doubtful: it was missing, and is made: the shop sends its orders from now on')
  expect(findings).toContain('orders doubtful: they were not read yet')
  expect(findings).toContain('listings doubtful: the products of the shop were not all read yet')
  expect(world.shop.webhooks.size).toBe(1)
  expect(await tried()).toContain(`webhook ok: it sends its orders to ${PUBLIC}/webhooks/stores/${SHOP}`)
})

test('a shop whose products are read before the catalogue is not said to lack the offers', async () => {
  const { db, tried } = await shopAndDatabase()
  await db.commit([connectStore(SHOP, TEST_NOW)])
  await db.commit([putStoreReading(SHOP, { variantsReadAt: TEST_NOW })])
  expect(await tried()).toContain("listings doubtful: the supplier's catalogue was not read yet")
  const finished = { id: 'r', cause: 'test', state: 'complete', startedAt: 1, finishedAt: 2, cursor: 0 } as const
  await db.commit([insertSyncRun(finished)])
  expect(await tried()).toContain('listings ok: none: no product of the store has the SKU of an offer')
})

test('the listings of other stores are not those of a shop', async () => {
  const { db, tried } = await shopAndDatabase()
  const row = (store: string, state: ListingRow['state']): ListingRow => ({
    ...newListing(store, { variant: 'v', sku: 'v', linkedBy: 'sku' }, TEST_NOW),
    state,
    version: 1,
  })
  await db.commit([
    connectStore(SHOP, TEST_NOW),
    ...putListings([row('other-ab12cd34', 'synced'), row(SHOP, 'ignored')]),
  ])
  await db.commit([putStoreReading(SHOP, { variantsReadAt: TEST_NOW })])
  const said = (await tried()).filter((finding) => finding.startsWith('listings'))
  expect(said).toEqual([expect.stringContaining('1 ignored')])
  expect(said).not.toEqual([expect.stringContaining('synced')])
})

test('without a public address polling alone is fine', async () => {
  const { world, tried } = await shopAndDatabase()
  expect(await tried(null)).toContain('webhook ok: none, as there is no publicUrl: polling alone')
  expect(world.shop.webhooks.size).toBe(0)
})

test('a webhook that WordPress delivers nothing to, at a private address or an unusual port, is called by its rule', async () => {
  for (const url of ['http://127.0.0.1:8080', 'https://192.168.7.2', 'https://quayside.example:47210']) {
    const { tried } = await shopAndDatabase()
    for (const time of ['made', 'there already']) {
      const said = (await tried(url)).find((finding) => finding.startsWith('webhook'))
      expect(said, `${url} ${time}`).toMatch(
        /^webhook doubtful: WordPress sends webhooks to no private address, and to no port/,
      )
    }
  }
})

test('a webhook by which nothing came, although orders did, is doubtful', async () => {
  const { db, tried } = await shopAndDatabase()
  await tried()
  const order = { id: 'o1', store: SHOP, reference: '7', bodyDigest: 'd', receivedAt: TEST_NOW }
  await db.commit([insertStoreOrder(order)])
  expect(await tried()).toContain('webhook doubtful: orders came by polling, and never a delivery by it')
})

test('a shop that gives no orders says since when and why', async () => {
  const { db, tried } = await shopAndDatabase()
  await db.commit([connectStore(SHOP, TEST_NOW)])
  await db.commit([
    putStoreReading(SHOP, { failingSince: TEST_NOW, lastError: 'it is down', variantsReadAt: TEST_NOW }),
  ])
  const since = new Date(TEST_NOW).toISOString()
  expect(await tried()).toContain(`orders failed: they were not read since ${since}: it is down`)
  await db.commit([putStoreReading(SHOP, { failingSince: null, ordersReadAt: TEST_NOW })])
  expect(await tried()).toContain(`orders ok: last read ${since}; those paid since ${since} are bought`)
})

test('a shop that does not know the key is tried no further', async () => {
  const { tried, world } = await shopAndDatabase({ key: 'ck_other' })
  expect((await tried()).filter((finding) => finding.includes('failed'))).toHaveLength(1)
  expect(world.shop.webhooks.size).toBe(0)
})

test('a backend is tried by a callback, and people of the role operator may ask', async () => {
  const world = await openApi()
  const { status, body } = await world.ask('POST', `/stores/${STORE}/test`, { token: world.tokens.operator })
  expect({ status, healthy: body.data.healthy }).toEqual({ status: 200, healthy: true })
  expect((await world.ask('POST', `/stores/${STORE}/test`, { token: world.tokens.viewer })).status).toBe(403)
})
