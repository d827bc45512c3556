/** What a shop of WooCommerce is asked, how long each request may take, and what a person learns of a shop that does not work. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { Secret } from '../../src/secret.ts'
import { openShop } from '../../src/stores/woocommerce/client.ts'
import { tryShop } from '../../src/stores/woocommerce/findings.ts'
import { wooCommerceStore } from '../../src/stores/woocommerce/woocommerce.ts'
import { wooKey } from '../shops/woocommerce-shop.ts'
import { TEST_NOW } from '../support/database.ts'
import { storeListing } from '../support/store-listing.ts'
import { WEBHOOK_SECRET, type WooWorld, wooCommerceWorld } from '../support/store-worlds.ts'

const publish = ({ store }: WooWorld, ...ids: string[]) =>
  store.publish({ id: 'p1', at: TEST_NOW, listings: ids.map((id) => storeListing(id)) })

describe('a request to WooCommerce', () => {
  test('may take half a minute where it reads, and a minute where it writes', async () => {
    const world = await wooCommerceWorld()
    const deadlines: number[] = []
    const store = wooCommerceStore({
      url: world.running.url,
      credentials: { key: new Secret(wooKey.key), secret: new Secret(wooKey.secret) },
      webhookSecret: WEBHOOK_SECRET,
      settings: {
        create: null,
        ownsSalePrice: false,
        currency: 'EUR',
        handOver: { by: 'note', complete: true, label: 'Key' },
      },
      now: () => TEST_NOW,
      newId: () => 'nonce',
      connections: world.running.connections,
      timeout: (ms) => {
        deadlines.push(ms)
        return AbortSignal.timeout(20_000)
      },
    })
    onTestFinished(() => store.close())
    expect(await publish({ ...world, store }, world.sell('A'))).toMatchObject({ outcome: 'answered' })
    expect(world.shop.requests().map(({ method }) => method)).toEqual(['GET', 'POST'])
    expect(deadlines).toEqual([30_000, 60_000])
    // It creates nothing, and by default buys what WooCommerce itself counts as paid.
    expect(store).not.toHaveProperty('create')
    const { reference } = world.buy([{ id: world.sell('B'), quantity: 1 }])
    for (const [status, standing] of [
      ['processing', 'paid'],
      ['completed', 'paid'],
      ['on-hold', 'held'],
    ] as const) {
      world.shop.setStatus(Number(reference), status)
      expect(await store.order?.(reference)).toMatchObject({ order: { standing } })
    }
  })

  test('has not acted where it only reads, or where nothing listens', async () => {
    const world = await wooCommerceWorld()
    const id = world.sell('A')
    await publish(world, id)
    for (const fault of ['lost_after', 'maintenance'] as const) {
      world.shop.strike({ fault, matches: ({ method }) => method === 'GET' })
      expect(await world.store.order?.('1')).toMatchObject({ outcome: 'unavailable', mayHaveLeft: false })
    }
    world.shop.strike({ fault: 'lost_after', matches: ({ method }) => method === 'POST' })
    expect(await publish(world, id)).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
    await world.stop()
    expect(await publish(world, id)).toMatchObject({ outcome: 'unavailable', mayHaveLeft: false })
  })

  test('is made twice once, where the header with the key is taken away, and carries it in the query from then on', async () => {
    const world = await wooCommerceWorld({ hidesAuthorization: true })
    for (const _of of [1, 2, 3]) expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'read' })
    expect(world.shop.requests()).toHaveLength(4)
    world.shop.hideAuthorization(false)
  })

  test('that has an unknown key is made twice each time, and the header comes first again', async () => {
    const world = await wooCommerceWorld({ key: `ck_${'3'.repeat(40)}` })
    for (const _of of [1, 2])
      expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'refused', status: 401 })
    expect(world.shop.requests()).toHaveLength(4)
  })

  test('that is refused for another reason is made once', async () => {
    const world = await wooCommerceWorld({ secret: 'cs_wrong' })
    expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'refused', status: 401 })
    world.shop.strike({ fault: 'refused', status: 403, code: 'woocommerce_rest_cannot_view' })
    expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'refused', status: 403 })
    expect(world.shop.requests()).toHaveLength(2)
  })
})

test('a WooCommerce shop takes a hundred products and orders at once, and may act for longer than a request lasts', async () => {
  const { store } = await wooCommerceWorld()
  expect(store).toMatchObject({ batchSize: 100, ordersNowSize: 100, settleMs: 90_000, pushMs: 120_000 })
})

describe('a test of a WooCommerce shop', () => {
  const tried = async (world: WooWorld) => (await world.store.test()).map(({ check, state }) => `${check} ${state}`)

  test('begins with the connection, and tries what may be read and written', async () => {
    const world = await wooCommerceWorld()
    const checks = ['connection ok', 'clock ok', 'currency ok', 'permissions ok', 'permissions ok']
    expect(await tried(world)).toEqual(checks)
    world.shop.setClockError(300_000)
    expect((await tried(world)).slice(0, 2)).toEqual(['connection ok', 'clock ok'])
    world.shop.setClockError(302_000)
    expect((await tried(world)).slice(0, 2)).toEqual(['connection ok', 'clock doubtful'])
  })

  test('ends with the clock where there is no connection', async () => {
    const world = await wooCommerceWorld({ secret: 'cs_wrong' })
    world.shop.setClockError(-7_200_000)
    expect(await tried(world)).toEqual(['connection failed', 'clock doubtful'])
    await world.stop()
    expect(await tried(world)).toEqual(['connection failed'])
  })

  test('takes every currency where none is configured yet, and none that cannot be read', async () => {
    const { shop, running } = await wooCommerceWorld()
    const credentials = { key: new Secret(wooKey.key), secret: new Secret(wooKey.secret) }
    const { url, connections } = running
    const opened = openShop({ url, credentials, now: () => TEST_NOW, newId: () => 'n', connections })
    const said = async () => (await tryShop(opened, null))[2]
    shop.setCurrency('USD')
    expect(await said()).toMatchObject({ state: 'ok', detail: 'it sells in USD' })
    shop.setCurrency('')
    expect(await said()).toMatchObject({ state: 'failed', detail: 'its currency cannot be read' })
  })

  test('names both currencies where they differ', async () => {
    const world = await wooCommerceWorld()
    world.shop.setCurrency('USD')
    expect(await world.store.test()).toContainEqual(
      expect.objectContaining({ state: 'failed', detail: 'it sells in USD, the configuration says EUR' }),
    )
    world.shop.setCurrency('')
    expect(await world.store.test()).toContainEqual(
      expect.objectContaining({ detail: 'it sells in an unknown currency, the configuration says EUR' }),
    )
  })

  test.each([
    [401, 'the key may read, and may not write products', 'read and write'],
    [403, 'the key may read, and may not write products', 'read and write'],
    [404, 'there is no WooCommerce API at this address', 'Check the address'],
    [500, 'it failed', 'log of the shop'],
  ])('of which a batch answers %i says: %s', async (status, detail, fix) => {
    const world = await wooCommerceWorld()
    world.shop.strike({ kind: 'products.batch', fault: 'refused', status, code: 'rest_no_route' })
    const [failed, ...others] = (await world.store.test()).filter(({ state }) => state !== 'ok')
    expect(failed).toMatchObject({ check: 'permissions', detail: expect.stringContaining(detail) })
    expect(failed?.fix).toContain(fix)
    expect(others).toEqual([])
  })
})

describe('the webhook to an address', () => {
  const provision = ({ store }: WooWorld, url = 'https://quayside.test/x') =>
    store.provision?.(url).then(({ detail }) => detail)

  test.each([
    'http://localhost/x',
    'http://127.0.0.1/x',
    'http://10.1.2.3/x',
    'http://192.168.1.1/x',
    'http://172.16.0.1/x',
    'http://172.31.0.1/x',
    'http://[::1]/x',
    'https://quayside.test:8443/x',
  ])('%s is made, and it is said that WordPress sends nothing there', async (url) => {
    const world = await wooCommerceWorld()
    expect(await provision(world, url)).toContain('WordPress sends webhooks to no private address')
    expect(await provision(world, url)).toContain('WordPress sends webhooks to no private address')
    expect(world.shop.webhooks.size).toBe(1)
  })

  test.each([
    'https://quayside.test/x',
    'http://quayside.test:8080/x',
    'http://172.32.0.1/x',
    'https://quayside.test:80/x',
  ])('%s is made once, and made active again', async (url) => {
    const world = await wooCommerceWorld()
    expect(await provision(world, url)).toContain('it was missing, and is made')
    expect(await provision(world, url)).toBeNull()
    const [webhook] = world.shop.webhooks.values()
    if (webhook) webhook.status = 'paused'
    expect(await provision(world, url)).toBe('it was off, and is active again')
    expect(world.shop.webhooks.size).toBe(1)
  })

  test('is found behind those of others, to another address or of another topic, which stay as they are', async () => {
    const world = await wooCommerceWorld()
    await provision(world, 'https://another.test/x')
    await provision(world)
    const [other, ours] = [...world.shop.webhooks.values()]
    if (!other || !ours) throw new Error('they were made')
    Object.assign(ours, { topic: 'product.updated' })
    expect(await provision(world)).toContain('it was missing')
    expect([...world.shop.webhooks.values()].map(({ topic }) => topic)).toEqual([
      'order.updated',
      'product.updated',
      'order.updated',
    ])
    for (const count of [1, 2, 3]) await provision(world, `https://another.test/${count}`)
    world.shop.setPageMax(2)
    await provision(world, 'https://quayside.test/last')
    expect(await provision(world, 'https://quayside.test/last')).toBeNull()
    expect(world.shop.webhooks.size).toBe(7)
  })

  test('is not made where those of the shop cannot be read, nor said to be made where it was refused', async () => {
    const world = await wooCommerceWorld()
    world.shop.strike({ fault: 'maintenance' })
    expect(await world.store.provision?.('https://quayside.test/x')).toMatchObject({ outcome: 'unavailable' })
    world.shop.strike({ fault: 'echo', change: () => [{ id: 1 }] })
    expect(await world.store.provision?.('https://quayside.test/x')).toMatchObject({
      outcome: 'unavailable',
      mayHaveLeft: false,
    })
    expect(world.shop.webhooks.size).toBe(0)
    world.shop.strike({
      fault: 'refused',
      status: 400,
      code: 'rest_invalid_param',
      matches: ({ method }) => method === 'POST',
    })
    expect(await world.store.provision?.('https://quayside.test/x')).toMatchObject({ outcome: 'refused', status: 400 })
  })
})
