/** Prices of many products at once: Shopify's bulk operation, what fails of it, and what an earlier one may still be writing. */
import { describe, expect, test } from 'vitest'
import { answersIn } from '../../src/stores/shopify/bulk.ts'
import type { StoreListing } from '../../src/stores/store.ts'
import type { ShopifyFault } from '../shops/shopify-shop.ts'
import { TEST_NOW } from '../support/database.ts'
import { type ShopifyWorld, shopifyWorld } from '../support/store-worlds.ts'

const COUNT = 260

let pushes = 0
async function stocked(given: Parameters<typeof shopifyWorld>[0] = {}) {
  const world = await shopifyWorld({ ...given, shop: { bulkMs: 60_000, ...given.shop } })
  const ids = Array.from({ length: COUNT }, (_, index) => world.sell(`S${index}`))
  const listings = (price: string): StoreListing[] =>
    ids.map((id, index) => ({
      id,
      sku: `S${index}`,
      name: `Game S${index}`,
      category: null,
      price,
      compareAt: null,
      currency: 'EUR',
      stock: 7,
      available: true,
      revision: 1,
    }))
  const publish = (price: string, store = world.store) => {
    pushes += 1
    return store.publish({ id: `b${pushes}`, at: TEST_NOW, listings: listings(price) })
  }
  const has = () => new Set(ids.map((id) => `${world.shelf(id)?.price} x ${world.shelf(id)?.stock}`))
  return { ...world, ids, publish, has }
}

const taken = (result: Awaited<ReturnType<ShopifyWorld['store']['publish']>>) => {
  const answers = result.outcome === 'answered' && result.answers !== 'all' ? result.answers : []
  return {
    taken: answers.filter(({ ok }) => ok).length,
    refused: answers.flatMap((one) => (one.ok ? [] : [one.id])),
    failure: result.outcome === 'answered' ? result.failure : result,
  }
}
const ALL = { taken: COUNT, refused: [], failure: undefined }

describe('prices of many products of Shopify', () => {
  test('are written by one bulk operation, and their stock in requests of 250', async () => {
    const world = await stocked()
    expect(taken(await world.publish('12.50'))).toEqual(ALL)
    expect(world.has()).toEqual(new Set(['12.50 x 7']))
    expect(world.shop.counts()).toMatchObject({ StageUpload: 1, upload: 1, RunBulk: 1, result: 1, SetStock: 2 })
    expect(world.shop.counts().UpdateVariants).toBeUndefined()
    expect(taken(await world.publish('12.50'))).toEqual(ALL)
    expect(world.shop.counts()).toMatchObject({ RunBulk: 1, SetStock: 2 })
  })

  test('that the shop refuses are named, and the others are written', async () => {
    const world = await stocked()
    const [refused = '', changed = ''] = world.ids
    world.shop.removeProduct(world.shop.variants.get(refused)?.product.id ?? '')
    const act = () => world.shop.removeProduct(world.shop.variants.get(changed)?.product.id ?? '')
    world.shop.strike({ kind: 'StageUpload', fault: 'meanwhile', act })
    const result = taken(await world.publish('12.50'))
    expect(result).toEqual({
      taken: COUNT - 2,
      refused: expect.arrayContaining([refused, changed]),
      failure: undefined,
    })
  })

  test('that an app of the shop keeps are answered as the shop has them', async () => {
    const world = await stocked()
    const kept = `"id":"gid://shopify/ProductVariant/${world.ids[3]}","price":"`
    const act = () => {
      for (const one of world.shop.bulkOperations.values()) {
        one.result = one.result.replace(`${kept}12.50"`, `${kept}9.99"`)
      }
    }
    world.shop.strike({ kind: 'result', fault: 'meanwhile', act })
    const result = await world.publish('12.50')
    const answers = result.outcome === 'answered' && result.answers !== 'all' ? result.answers : []
    expect(answers.filter(({ price }) => price !== '12.50')).toEqual([
      { id: world.ids[3], ok: true, price: '9.99', stock: 7 },
    ])
  })

  test('are answered with what the shop has of each', () => {
    const text = '{"data":{"a":1},"__lineNumber":1}\n{"data":null,"__lineNumber":0}\nno JSON\n{"__lineNumber":"2"}\n'
    expect([...answersIn(text)]).toEqual([
      [1, { a: 1 }],
      [0, null],
    ])
  })

  const troubles: [string, ShopifyFault | 'FAILED' | 'EXPIRED'][] = [
    ['has no place for the file', { kind: 'StageUpload', fault: 'user_error' }],
    ['does not take the file', { kind: 'upload', fault: 'refused', status: 403 }],
    ['redirects the file', { kind: 'upload', fault: 'redirect', to: 'https://elsewhere.test/' }],
    ['gives no answer about the file', { kind: 'upload', fault: 'lost_after' }],
    ['runs too many of them', { kind: 'RunBulk', fault: 'user_error', code: 'OPERATION_IN_PROGRESS' }],
    ['has had enough of them', { kind: 'RunBulk', fault: 'user_error', code: 'LIMIT_REACHED' }],
    ['fails at it', 'FAILED'],
    ['lets it expire', 'EXPIRED'],
    ['does not give its result', { kind: 'result', fault: 'refused', status: 403 }],
    ['redirects to its result', { kind: 'result', fault: 'redirect', to: 'https://elsewhere.test/' }],
    ['breaks off its result', { kind: 'result', fault: 'truncated' }],
    ['loses its result', { kind: 'result', fault: 'lost_after' }],
  ]
  test.each(troubles)(
    'are all written where the shop %s, those without an answer by themselves',
    async (_what, fault) => {
      const world = await stocked()
      if (typeof fault === 'string') world.shop.failBulk(fault, null)
      else world.shop.strike(fault)
      expect(taken(await world.publish('12.50'))).toEqual(ALL)
      expect(world.has()).toEqual(new Set(['12.50 x 7']))
      expect(world.shop.counts().UpdateVariants).toBeGreaterThan(0)
    },
  )

  test('are sent to no address that is neither of https nor of the shop, and without a token', async () => {
    const world = await stocked()
    const plain = (json: unknown) =>
      JSON.parse(JSON.stringify(json).replace(/"url":"https:[^"]*"/, '"url":"http://elsewhere.test/up"'))
    world.shop.strike({ kind: 'StageUpload', fault: 'echo', change: plain })
    expect(taken(await world.publish('12.50'))).toEqual(ALL)
    expect(world.shop.counts().upload).toBeUndefined()
    // The shop refuses an upload and a download that carry a token.
    expect(taken(await world.publish('13.00'))).toEqual(ALL)
    expect(world.shop.counts()).toMatchObject({ upload: 1, result: 1 })
  })
})

describe('a bulk operation of Shopify that runs on', () => {
  const LATE = { shop: { bulkMs: 3_600_000 } }

  test('is cancelled after ten minutes, and its prices are written one by one', async () => {
    const world = await stocked(LATE)
    expect(taken(await world.publish('12.50'))).toEqual(ALL)
    expect([...world.shop.bulkOperations.values()].map(({ status }) => status)).toEqual(['CANCELED'])
    world.clock.now += 3_600_000
    await world.store.test()
    expect(world.has()).toEqual(new Set(['12.50 x 7']))
  })

  test.each([
    ['its start', { kind: 'RunBulk', fault: 'lost_after' }],
    ['its state', { kind: 'BulkOperation', fault: 'maintenance' }],
    ['its end', { kind: 'CancelBulk', fault: 'lost_after' }],
  ] as const)('writes no older price over a newer one, where the answer about %s was lost', async (_what, fault) => {
    const world = await stocked(LATE)
    world.shop.strike(fault)
    expect(taken(await world.publish('12.50'))).toMatchObject({ taken: 0, failure: { outcome: 'unavailable' } })
    expect(taken(await world.publish('13.00'))).toEqual(ALL)
    world.clock.now += 3_600_000
    await world.store.test()
    expect(world.has()).toEqual(new Set(['13.00 x 7']))
  })

  test('writes no older price over a newer one of the process that comes after it', async () => {
    const world = await stocked(LATE)
    world.shop.strike({ kind: 'BulkOperation', fault: 'lost_before' })
    expect(taken(await world.publish('12.50'))).toMatchObject({ taken: 0 })
    const next = world.another()
    expect(taken(await world.publish('13.00', next))).toEqual(ALL)
    world.clock.now += 3_600_000
    await next.test()
    expect(world.has()).toEqual(new Set(['13.00 x 7']))
  })

  test('has nothing else written while it cannot be ended', async () => {
    const world = await stocked(LATE)
    world.shop.strike({ kind: 'BulkOperation', fault: 'lost_before' })
    await world.publish('12.50')
    world.shop.strike({ kind: 'CancelBulk', fault: 'user_error', times: 9 })
    expect(taken(await world.publish('13.00'))).toMatchObject({
      taken: 0,
      failure: { outcome: 'unavailable', detail: 'the shop is still writing earlier prices' },
    })
    expect(world.shop.counts().UpdateVariants).toBeUndefined()
  })
})
