import { describe, expect, it, test } from 'vitest'
import { mattersToListings, type PublishedOffer, passesFilter } from '../../src/domain/listing.ts'
import { codeOf } from '../../src/errors.ts'
import { changeListing } from '../../src/listings/actions.ts'
import { listingBySku, listListings, viewListing } from '../../src/listings/listings.ts'
import { TEST_NOW } from '../support/database.ts'
import { offerRow, publishWorld } from '../support/publish-world.ts'
import { sellingPolicy } from '../support/selling.ts'

const offerOf = (fields: Partial<PublishedOffer> = {}): PublishedOffer => ({
  sku: 'OS-1',
  name: 'Desktop Pro',
  category: 'operating-systems',
  costMinor: 1_000,
  currency: 'EUR',
  localStock: 2,
  providerStock: 5,
  available: true,
  basePriceMinor: null,
  costFault: null,
  ...fields,
})

describe('a listing', () => {
  it('may look different when units move between the two stocks: a store may show one of them alone', () => {
    expect(mattersToListings(offerOf(), offerOf())).toBe(false)
    const moved = { localStock: 4, providerStock: 3 }
    for (const change of [
      moved,
      { costMinor: 1 },
      { localStock: 3 },
      { available: false },
      { name: 'x' },
      { sku: 'x' },
      { costFault: 'zero' as const },
      { basePriceMinor: 1 },
      { currency: 'USD' },
      { category: null },
      { providerStock: 3 },
    ])
      expect(mattersToListings(offerOf(), offerOf(change))).toBe(true)
  })
})

describe('the filters of a store', () => {
  type Settings = NonNullable<Parameters<typeof sellingPolicy>[0]>['listings']
  const cases: [string, Settings, boolean][] = [
    ['nothing', {}, true],
    ['linked alone', { mode: 'linked' }, false],
    ['its category', { categories: ['games', 'operating-systems'] }, true],
    ['other categories', { categories: ['games'] }, false],
    ['a piece of its name, however it is written', { text: 'desktop p' }, true],
    ['a piece of its SKU', { text: 'os-' }, true],
    ['another text', { text: 'laptop' }, false],
    ['its cost as the least', { costMin: '10.00' }, true],
    ['a cent more as the least', { costMin: '10.01' }, false],
    ['its cost as the most', { costMax: '10.00' }, true],
    ['a cent less as the most', { costMax: '9.99' }, false],
    ['stock, of which there is some', { inStockOnly: true }, true],
  ]
  test.each(cases)('with %s', (_what, listings, passes) => {
    expect(passesFilter(offerOf(), sellingPolicy({ listings }).filter)).toBe(passes)
  })

  test('with stock, of which there is none', () => {
    const { filter } = sellingPolicy({ listings: { inStockOnly: true } })
    expect(passesFilter(offerOf({ localStock: 0, providerStock: null }), filter)).toBe(false)
    expect(passesFilter(offerOf({ localStock: null, providerStock: null }), filter)).toBe(true)
    const gone = offerOf({ available: false, category: null })
    expect(passesFilter(gone, sellingPolicy().filter)).toBe(true)
    expect(passesFilter(gone, sellingPolicy({ listings: { categories: ['games'] } }).filter)).toBe(false)
  })
})

describe('what a store can sell', () => {
  const record = (productId: string, fields: object = {}) => ({
    id: `SKU-${productId}`,
    sku: `SKU-${productId}`,
    name: `Product ${productId}`,
    category: 'Games',
    price: '12.00',
    compareAt: null,
    currency: 'EUR',
    stock: 5,
    available: true,
    ...fields,
  })

  it('comes in pages by product, with prices as decimal text, before and after it was published', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'), offerRow('b'), offerRow('c'), offerRow('d', { costFault: 'zero' }), offerRow('e'))
    await world.vanish('e')
    await changeListing(world.linking, world.asked('z1'), { change: 'link', productId: 'b' })
    const pages = async () => {
      const first = await listListings(world.db, world.store, { limit: 2 }, TEST_NOW)
      return [first, await listListings(world.db, world.store, { after: first.next, limit: 5 }, TEST_NOW)]
    }
    const expected = [
      { listings: [record('a'), record('b'), record('b', { id: 'z1', sku: 'z1' })], next: 'b' },
      { listings: [record('c')], next: undefined },
    ]
    expect(await pages()).toEqual(expected)
    await world.settle()
    expect(await pages()).toEqual(expected)
  })

  it('is found by variant and by SKU, and refused when two offers share it', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'), offerRow('b', { sku: 'TWICE' }), offerRow('c', { sku: 'TWICE' }))
    await changeListing(world.linking, world.asked('v1'), { change: 'link', productId: 'a', sku: 'OURS' })
    const found = (sku: string) => listingBySku(world.db, world.store, sku, TEST_NOW)
    expect(await found('SKU-a')).toEqual(record('a'))
    expect(await found('v1')).toEqual(record('a', { id: 'v1', sku: 'OURS' }))
    expect(await found('OURS')).toEqual(record('a', { id: 'v1', sku: 'OURS' }))
    expect(await found('SKU-x')).toBeUndefined()
    const error = await found('TWICE').catch((thrown: unknown) => thrown)
    expect(codeOf(error)).toBe('conflict')
    expect(String(error)).toContain('b, c')
  })

  it('is shown with what it has, what it is to have and its prices', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    await world.stock(offerRow('a', { costMinor: 1_100 }))
    const view = await viewListing(world.db, world.store, 'SKU-a', TEST_NOW)
    expect(view).toMatchObject({ row: { knownPriceMinor: 1_200 }, wanted: { priceMinor: 1_320 } })
    expect(view.prices).toMatchObject([{ priceMinor: 1_200, cause: 'first' }])
    await expect(viewListing(world.db, world.store, 'absent', TEST_NOW)).rejects.toThrow('no listing absent')
  })
})
