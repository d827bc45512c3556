/** Stores that change the price that is pushed to them, and what a jump is measured from meanwhile and after. */
import { describe, expect, test } from 'vitest'
import { changeListing } from '../../src/listings/actions.ts'
import { offerRow, type PublishWorld, publishWorld } from '../support/publish-world.ts'

const MINUTE = 60_000

/** A store that had the listing at 12.00, and then makes 1.00 of its price. */
async function mistaken(stock?: number): Promise<PublishWorld> {
  const world = await publishWorld()
  await world.stock(offerRow('a'))
  await world.settle()
  world.shop.answerListings((sent) => ({ id: sent.id, ok: true, price: '1.00', stock: stock ?? sent.stock }))
  await world.stock(offerRow('a', { costMinor: 1_100 }))
  await world.settle()
  expect(await world.row('SKU-a')).toMatchObject({ state: 'failed', reason: 'echo_differs', knownPriceMinor: 100 })
  return world
}

async function later(world: PublishWorld, tries = 1): Promise<void> {
  for (let count = 0; count < tries; count += 1) {
    world.clock.at += 180 * MINUTE
    await world.settle()
  }
}

const good = { 'SKU-a': '13.20 x 5' }

describe('a good price after a store had made a wrong one of it', () => {
  test('is not held as a jump when a person has it pushed again', async () => {
    const world = await mistaken()
    world.shop.answerListings('simple')
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'retry' })
    await world.settle()
    expect(world.sold()).toEqual(good)
    expect(await world.states()).toEqual({ 'SKU-a': 'synced' })
  })

  test('is not held as a jump when a person had it pushed again before the store was fixed', async () => {
    const world = await mistaken()
    for (let count = 0; count < 3; count += 1) {
      await changeListing(world.linking, world.asked('SKU-a'), { change: 'retry' })
      await world.settle()
    }
    expect(await world.row('SKU-a')).toMatchObject({ state: 'failed', knownStock: 0 })
    world.shop.answerListings('simple')
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'retry' })
    await world.settle()
    expect(world.sold()).toEqual(good)
  })

  test('is not held as a jump when the store had kept its stock too', async () => {
    const world = await mistaken(5)
    await later(world, 3)
    world.shop.answerListings('simple')
    await later(world, 2)
    expect(world.sold()).toEqual(good)
  })

  test('is not held as a jump when the cost was unclear for a while', async () => {
    const world = await mistaken()
    world.shop.answerListings('simple')
    await world.stock(offerRow('a', { costMinor: 1_100, costFault: 'zero' }))
    await world.settle()
    expect(await world.states()).toEqual({ 'SKU-a': 'held: cost_zero' })
    await world.stock(offerRow('a', { costMinor: 1_100 }))
    await world.settle()
    expect(world.sold()).toEqual(good)
  })

  test('is not held as a jump when a person links it again', async () => {
    const world = await mistaken()
    world.shop.answerListings('simple')
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'link', productId: 'a' })
    await world.settle()
    expect(world.sold()).toEqual(good)
  })

  test('is still held when it jumps from the price that was pushed', async () => {
    for (const act of ['retry', 'cost'] as const) {
      const world = await mistaken()
      world.shop.answerListings('simple')
      if (act === 'cost') await world.stock(offerRow('a', { costFault: 'zero' }))
      await world.settle()
      await world.stock(offerRow('a', { costMinor: 5_000 }))
      if (act === 'retry') await changeListing(world.linking, world.asked('SKU-a'), { change: 'retry' })
      await world.settle()
      await later(world)
      expect(await world.row('SKU-a')).toMatchObject({ state: 'held', reason: 'price_jump', wantedPriceMinor: 6_000 })
      expect(world.sold()).toEqual({ 'SKU-a': '1.00 x 0' })
    }
  })
})

describe('a listing that a store did not take', () => {
  test('is pushed again after 5 seconds, also when its stock had to be taken out first', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    world.shop.answerListings(({ id, price }) => ({ id, ok: price === '12.00' }))
    await world.stock(offerRow('a', { costMinor: 1_400 }))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 0' })
    const due = (await world.row('SKU-a'))?.nextTryAt ?? 0
    expect(due - world.clock.at).toBeLessThanOrEqual(6_000)
    world.shop.answerListings('simple')
    world.clock.at = due
    await world.settle()
    expect(world.sold()['SKU-a']).toMatch(/^16\.80 x /)
  })

  test('waits from the beginning again, and sells nothing under its floor, after a person had it pushed again', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    world.shop.answerListings(({ id, price }) => ({ id, ok: price === '12.00' }))
    await world.stock(offerRow('a', { costMinor: 1_400 }))
    await later(world, 4)
    expect((await world.row('SKU-a'))?.attempts).toBeGreaterThan(3)
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'retry' })
    await world.settle()
    expect(await world.row('SKU-a')).toMatchObject({ state: 'failed', knownStock: 0, attempts: 2 })
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 0' })
  })
})
