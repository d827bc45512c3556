/** A store that comes up after its listings have met nothing for hours: whatever it takes then ends the wait of the others. */
import { expect, test } from 'vitest'
import { enqueueCatalogue, publishingOf } from '../../src/storage/publications.ts'
import { openApi } from '../support/api-world.ts'
import { STORE } from '../support/test-app.ts'

const MINUTE = 60_000

/** A store that has refused its listings four times, so that the next try is two hours away. */
async function pausedStore() {
  const world = await openApi()
  const { sku } = await world.offer()
  await world.db.commit(enqueueCatalogue(STORE, { newId: world.api.ordering.newId, now: world.now(), cause: 'test' }))
  const standing = async () => (await world.db.query(publishingOf(STORE)))[0]
  world.shop.answerNext(503, 4)
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
    world.shop.answerNext(503)
    await world.publish()
    await world.publish()
  }
  expect(world.shop.listings().size).toBe(0)
  expect((await world.standing())?.attempts).toBe(7)
})
