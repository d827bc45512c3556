/** A store that takes its listings again after hours: whatever it takes then ends the wait of the others. */
import { describe, expect, test } from 'vitest'
import { publicationDelayMs, publicationTriesOf } from '../../src/domain/pace.ts'
import { enqueueCatalogue, publishingOf } from '../../src/storage/publications.ts'
import { openApi } from '../support/api-world.ts'
import { openShopApp } from '../support/shop-app.ts'
import { openTestApp, STORE } from '../support/test-app.ts'

const MINUTE = 60_000

/** A store that has refused its listings four times, so that the next try is two hours away. */
async function pausedStore() {
  const world = await openApi()
  const { sku } = await world.offer()
  await world.db.commit(enqueueCatalogue(STORE, { newId: world.api.ordering.newId, now: world.now(), cause: 'test' }))
  const standing = async () => (await world.db.query(publishingOf(STORE)))[0]
  world.shop.answerNext(403, 4)
  for (let tries = 0; tries < 4; tries += 1) {
    const wait = ((await standing())?.pausedUntil ?? 0) - world.now()
    if (wait > 0) await world.pass(wait, wait)
    await world.publish()
  }
  const { attempts, pausedUntil } = (await standing()) ?? {}
  expect({ attempts, isLong: (pausedUntil ?? 0) - world.now() > 100 * MINUTE }).toEqual({ attempts: 4, isLong: true })
  expect(world.shop.listings().size).toBe(0)
  return { ...world, sku, standing }
}

test('a store that confirmed callbacks got no prices for up to two hours', async () => {
  const world = await pausedStore()
  await world.order('1001', [{ sku: world.sku }])
  await world.pass(5 * MINUTE)
  expect(world.shop.received().map(({ type }) => type)).toContain('line.fulfilled')
  await world.publish()
  expect(world.shop.listings().size).toBeGreaterThan(50)
  expect(await world.standing()).toMatchObject({ attempts: 0, pausedUntil: null })
})

test.each(['test', 'trigger'])(
  'a store that passed `stores test`, or took an example, got none either: %s',
  async (path) => {
    const world = await pausedStore()
    const body = path === 'trigger' ? { body: { type: 'line.fulfilled' } } : {}
    expect((await world.ask('POST', `/stores/${STORE}/${path}`, body)).status).toBe(200)
    await world.publish()
    expect(world.shop.listings().size).toBeGreaterThan(50)
  },
)

test('a store that takes callbacks and no listings is not asked for each callback, and its tries still count', async () => {
  const world = await pausedStore()
  for (const reference of ['1', '2', '3']) {
    await world.order(reference, [{ sku: world.sku }])
    await world.pass(5 * MINUTE)
    world.shop.answerNext(403)
    await world.publish()
    await world.publish()
  }
  expect(world.shop.listings().size).toBe(0)
  expect((await world.standing())?.attempts).toBe(7)
})

test('a store that was away for a minute was called one that takes no listings', () => {
  const changedAt = 1_700_000_000_000
  const pause = (attempts: number, isAway: boolean) => {
    const pausedUntil = changedAt + publicationDelayMs(attempts, 1, isAway)
    return publicationTriesOf({ attempts, pausedUntil, changedAt })
  }
  const minutes = (tries: number, isAway: boolean) =>
    Array.from({ length: tries - 1 }, (_, n) => publicationDelayMs(n + 1, 0, isAway)).reduce((a, b) => a + b, 0) /
    MINUTE
  for (const isAway of [true, false]) {
    const tries = pause(2, isAway)
    expect(minutes(tries, isAway), String(isAway)).toBeGreaterThanOrEqual(4)
    expect(minutes(tries - 1, isAway), String(isAway)).toBeLessThan(5)
  }
})

const HOUR = 60 * MINUTE

/** A backend that has every listing, and a service whose workers run every ten seconds. */
async function sellingBackend() {
  const app = await openTestApp()
  const { sku, productId, costMinor } = await app.offer()
  const publish = async () => {
    while ((await app.runtime.work.publish()) > 0);
  }
  await app.db.commit(enqueueCatalogue(STORE, { newId: app.ordering.newId, now: app.now(), cause: 'test' }))
  await publish()
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 10_000) {
      app.move(10_000)
      await publish()
    }
  }
  let cost = costMinor
  /** The supplier's price rises a little, and nothing is left of the offer. @returns what the store should have */
  const change = async () => {
    cost += 1
    app.sandbox.world.offers.change(productId, { priceMinor: cost, stock: 0 })
    await app.ordering.refreshOffer(productId)
    return { stock: 0, available: false }
  }
  const listing = () => [...app.shop.listings().values()].find((one) => one.sku === sku)
  return { app, pass, change, listing }
}

describe('a store that was away for three hours', () => {
  test.each([
    ['had its old prices and stock for up to two hours more', false],
    ['has those of now within two minutes, also where the service was killed meanwhile', true],
  ])('%s', async (_what, isKilled) => {
    const { app, pass, change, listing } = await sellingBackend()
    app.shop.away(true)
    const wanted = await change()
    await pass(2 * HOUR)
    if (isKilled) await app.restart()
    await pass(HOUR)
    expect(listing()).not.toMatchObject(wanted)
    expect(app.shop.unanswered(), 'about one request a minute').toBeLessThan(220)
    app.shop.away(false)
    await pass(2 * MINUTE)
    expect(listing()).toMatchObject(wanted)
  })

  test('and refused one message while it started got none for two hours more', async () => {
    const { app, pass, change, listing } = await sellingBackend()
    app.shop.away(true)
    const wanted = await change()
    await pass(3 * HOUR)
    app.shop.away(false)
    app.shop.answerNext(404)
    await pass(2 * MINUTE)
    expect(listing()).toMatchObject(wanted)
  })

  test('and answers one request a minute is asked no more than three times a minute', async () => {
    const { app, pass, change } = await sellingBackend()
    for (let minute = 0; minute < 60; minute += 1) {
      app.shop.away(false)
      await change()
      await pass(10_000)
      app.shop.away(true)
      await change()
      await pass(50_000)
    }
    expect(app.shop.unanswered()).toBeLessThan(180)
  })

  test('a WooCommerce shop had its old prices for up to two hours more', async () => {
    const app = await openShopApp()
    const [{ product = 0 } = {}] = await app.sell()
    await app.settle()
    const price = () => app.shop.products.get(product)?.regularPrice
    const before = price()
    const { productId, costMinor } = await app.app.offer()
    app.shop.strike({ fault: 'lost_before', times: 1_000_000 })
    app.sandbox.world.offers.change(productId, { priceMinor: costMinor + 5 })
    await app.ordering.refreshOffer(productId)
    await app.pass(3 * HOUR)
    app.shop.clearFaults()
    expect(price()).toBe(before)
    await app.pass(2 * MINUTE, 10_000)
    expect(price()).not.toBe(before)
  })
})
