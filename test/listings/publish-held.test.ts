/** Prices that wait for a person, and what a person does with a listing. */
import { describe, expect, test } from 'vitest'
import { changeListing } from '../../src/listings/actions.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { pricesOfListing } from '../../src/storage/listings.ts'
import { offerRow, publishWorld, STORE } from '../support/publish-world.ts'

const refusal = { catch: (error: { reason?: string }) => error.reason }
const reasonOf = (work: Promise<unknown>) => work.then(() => undefined, refusal.catch)

describe('a price that jumps', () => {
  test('waits, and the stock goes on at the known price while that clears the floor', async () => {
    const world = await publishWorld({ pricing: { margin: { percent: '5' } } })
    await world.stock(offerRow('a', { costMinor: 2_000 }))
    await world.settle()
    await world.stock(offerRow('a', { costMinor: 500, localStock: 7 }))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '24.00 x 10' })
    expect(await world.row('SKU-a')).toMatchObject({ state: 'held', reason: 'price_jump', wantedPriceMinor: 600 })
  })

  test('takes the stock away when the known price would be under the floor', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    await world.stock(offerRow('a', { costMinor: 2_000 }))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 0' })
    expect(await world.states()).toEqual({ 'SKU-a': 'held: price_jump' })
    await world.stock(offerRow('a'))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 5' })
    expect(await world.row('SKU-a')).toMatchObject({ state: 'synced', wantedPriceMinor: null })
  })

  test('passes once a person has let it, and the one after it waits again', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    await world.stock(offerRow('a', { costMinor: 2_000 }))
    await world.settle()
    await changeListing(world.linking, world.asked('SKU-a'), {
      change: 'release',
      price: '24.00',
      reason: 'the supplier confirmed it',
    })
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '24.00 x 5' })
    expect(await world.states()).toEqual({ 'SKU-a': 'synced' })
    const [entry] = await world.db.query(auditOf(`${STORE} SKU-a`))
    expect(entry).toMatchObject({
      action: 'listing.release',
      actor: 'test',
      detail: '24.00 EUR: the supplier confirmed it',
    })
    await world.stock(offerRow('a'))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 5' })
    await world.stock(offerRow('a', { costMinor: 2_000 }))
    await world.settle()
    expect(await world.states()).toEqual({ 'SKU-a': 'held: price_jump' })
  })

  test('that was let pass does not pass at another price', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    await world.stock(offerRow('a', { costMinor: 2_000 }))
    await world.settle()
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'release', price: '24.00', reason: 'fine' })
    await world.stock(offerRow('a', { costMinor: 9_000 }))
    await world.settle()
    expect(await world.row('SKU-a')).toMatchObject({ state: 'held', wantedPriceMinor: 10_800, knownStock: 0 })
  })

  test('cannot be released when none waits', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    expect(
      await reasonOf(
        changeListing(world.linking, world.asked('SKU-a'), { change: 'release', price: '12.00', reason: 'x' }),
      ),
    ).toBe('not_held')
  })

  test('keeps its history: what the store confirmed, and why', async () => {
    const world = await publishWorld()
    for (const costMinor of [1_000, 1_100, 1_100, 5_000]) {
      await world.stock(offerRow('a', { costMinor }))
      await world.settle()
      world.clock.at += 1_000
    }
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'release', price: '60', reason: 'fine' })
    await world.settle()
    world.configure({ pricing: { markup: { percent: '30' } } })
    await world.settle()
    const prices = await world.db.query(pricesOfListing(STORE, 'SKU-a', 10))
    expect(prices.map(({ priceMinor, costMinor, cause }) => `${priceMinor} ${costMinor} ${cause}`)).toEqual([
      '6500 5000 policy',
      '6000 5000 approved',
      '1320 1100 cost',
      '1200 1000 first',
    ])
  })
})

describe('an offer without a price', () => {
  test('gets no stock where a store has it, and is not pushed to a store that does not have it', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    await world.stock(offerRow('a', { costFault: 'zero' }), offerRow('b', { costFault: 'missing' }))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 0' })
    expect(await world.states()).toEqual({ 'SKU-a': 'held: cost_zero', 'SKU-b': 'held: cost_missing' })
  })
})

describe('the offer of a listing', () => {
  test('is none where two offers have the SKU: it gets no stock until a person says which it is', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    await world.stock(offerRow('b', { sku: 'SKU-a' }), offerRow('c', { sku: 'TWICE' }), offerRow('d', { sku: 'TWICE' }))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 0' })
    expect(await world.states()).toEqual({ 'SKU-a': 'held: ambiguous_sku', TWICE: 'held: ambiguous_sku' })
    expect((await world.row('TWICE'))?.detail).toBe('the SKU TWICE is of 2 products: c, d')
    await changeListing(world.linking, world.asked('TWICE'), { change: 'link', productId: 'd' })
    await world.vanish('b')
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 5', TWICE: '12.00 x 5' })
    expect(await world.row('TWICE')).toMatchObject({ productId: 'd', linkedBy: 'person', state: 'synced' })
  })

  test('may have several variants, each linked by a person', async () => {
    const world = await publishWorld({ listings: { mode: 'linked' } })
    await world.stock(offerRow('a'), offerRow('b'))
    await changeListing(world.linking, world.asked('v1'), { change: 'link', offerSku: 'SKU-a', variation: 'Europe' })
    await changeListing(world.linking, world.asked('v2'), { change: 'link', productId: 'a', sku: 'SAME' })
    await world.settle()
    expect(world.sold()).toEqual({ v1: '12.00 x 5', v2: '12.00 x 5' })
    await world.stock(offerRow('a', { localStock: 0 }))
    await world.settle()
    expect(world.pushed().at(-1)?.toSorted()).toEqual(['v1', 'v2'])
  })

  test('has no stock any more when its link is taken back and its SKU is of no offer', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await changeListing(world.linking, world.asked('v1'), { change: 'link', productId: 'a' })
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 5', v1: '12.00 x 5' })
    await changeListing(world.linking, world.asked('v1'), { change: 'unlink' })
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 5', v1: '12.00 x 0' })
    expect(await world.states()).toEqual({ 'SKU-a': 'synced', v1: 'synced: unlinked' })
    expect(await reasonOf(changeListing(world.linking, world.asked('SKU-a'), { change: 'unlink' }))).toBe('not_linked')
  })

  test('is not pushed while the variant is ignored, and is pushed again after', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'ignore', reason: 'sold by hand' })
    await world.stock(offerRow('a', { costMinor: 1_100 }))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 5' })
    expect(await world.row('SKU-a')).toMatchObject({ state: 'ignored', detail: 'sold by hand' })
    expect(await reasonOf(changeListing(world.linking, world.asked('SKU-a'), { change: 'retry' }))).toBe('ignored')
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'unignore' })
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '13.20 x 5' })
  })

  test('is decided by the person when one acts while it is pushed to the store', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    const { backend } = world
    world.publisher.storeOf = () => ({
      ...backend,
      publish: async (message: Parameters<typeof backend.publish>[0]) => {
        await changeListing(world.linking, world.asked('SKU-a'), { change: 'ignore', reason: 'not ours' })
        return backend.publish(message)
      },
    })
    await world.settle()
    expect(await world.states()).toEqual({ 'SKU-a': 'ignored: ignored' })
  })

  test('is filtered out by the settings of the store: new ones are not listed, known ones get no stock', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'), offerRow('b', { category: 'Office' }))
    await world.settle()
    world.configure({ listings: { categories: ['Office'] } })
    await world.stock(offerRow('c'), offerRow('d', { category: 'Office' }))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 0', 'SKU-b': '12.00 x 5', 'SKU-d': '12.00 x 5' })
    expect(await world.states()).toEqual({ 'SKU-a': 'synced: filtered', 'SKU-b': 'synced', 'SKU-d': 'synced' })
  })

  test('is missing when the supplier gives its SKU to another product', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    await world.stock(offerRow('a', { sku: 'NEW' }))
    await world.settle()
    expect(world.sold()).toEqual({ NEW: '12.00 x 5', 'SKU-a': '12.00 x 0' })
    expect(await world.states()).toEqual({ NEW: 'synced', 'SKU-a': 'held: missing' })
  })

  test('is pushed at once when a person asks for it, even to a store that is left alone', async () => {
    const world = await publishWorld()
    world.shop.answerNext(503)
    await world.stock(offerRow('a'))
    await world.settle()
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'retry' })
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 5' })
  })
})

describe('an ignored listing', () => {
  test('that was linked is not taken back into sale by taking back its link', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'), offerRow('b', { costMinor: 1_100 }))
    await world.settle()
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'link', productId: 'b' })
    await world.settle()
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'ignore', reason: 'own stock' })
    const pushes = world.pushed().length
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'unlink' })
    await world.settle()
    expect(world.pushed()).toHaveLength(pushes)
    expect(await world.row('SKU-a')).toMatchObject({ state: 'ignored', productId: null, linkedBy: 'sku' })
  })
})

describe('a released price', () => {
  test('does not wait any more before it is pushed', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    await world.stock(offerRow('a', { costMinor: 3_000 }))
    await world.settle()
    await changeListing(world.linking, world.asked('SKU-a'), { change: 'release', price: '36.00', reason: 'confirmed' })
    expect(await world.row('SKU-a')).toMatchObject({ state: 'pending', reason: null, wantedPriceMinor: null })
  })
})

describe('a release', () => {
  test('does not let a price pass that came to wait after the person was shown another one', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    await world.stock(offerRow('a', { costMinor: 2_000 }))
    await world.settle()
    world.configure({ pricing: { markup: { percent: '400' } } })
    await world.settle()
    const shown = { price: '24.00', reason: 'the supplier confirmed it' }
    await expect(
      changeListing(world.linking, world.asked('SKU-a'), { change: 'release', ...shown }),
    ).rejects.toMatchObject({
      reason: 'changed',
      message: expect.stringContaining('waits now is 100.00 EUR, not 24.00'),
    })
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 0' })
    expect(await world.row('SKU-a')).toMatchObject({ approvedPriceMinor: null, wantedPriceMinor: 10_000 })
  })
})
