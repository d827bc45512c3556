import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { listingBySku, listListings, renderListings } from '../src/catalogue/listings.ts'
import { COST_MAX_MINOR, type ListedOffer, listingOf, mattersToListings } from '../src/domain/listing.ts'
import { codeOf } from '../src/errors.ts'
import { putOffer } from '../src/storage/offers.ts'
import { memoryDatabase, TEST_NOW } from './database.ts'

const offerOf = (fields: Partial<ListedOffer> = {}): ListedOffer => ({
  ...{ sku: 'OS-1', name: 'Desktop Pro', category: 'operating-systems', costMinor: 1_000, currency: 'EUR' },
  ...{ localStock: 2, providerStock: 5, available: 1, ...fields },
})

const stocks = fc.option(fc.nat({ max: 1_000 }), { nil: null })
const percents = fc.tuple(fc.nat({ max: 9_999 }), fc.nat({ max: 9_999 })).map(([whole, part]) => ({
  text: `${whole}.${String(part).padStart(4, '0')}`,
  scaled: BigInt(whole * 10_000 + part),
}))

describe('a listing', () => {
  it('costs the cost plus the markup, exactly, rounded up, and never less than the cost', () => {
    fc.assert(
      fc.property(fc.nat({ max: COST_MAX_MINOR }), percents, (costMinor, percent) => {
        const price = BigInt(listingOf(offerOf({ costMinor }), percent.text)?.priceMinor ?? -1)
        const exact = BigInt(costMinor) * (1_000_000n + percent.scaled)
        expect(price >= BigInt(costMinor)).toBe(true)
        expect(price * 1_000_000n >= exact && (price - 1n) * 1_000_000n < exact).toBe(true)
        expect(Number.isSafeInteger(Number(price))).toBe(true)
      }),
    )
  })

  it('has the known stocks together while it is available, and none otherwise', () => {
    fc.assert(
      fc.property(stocks, stocks, fc.boolean(), (localStock, providerStock, available) => {
        const listing = listingOf(offerOf({ localStock, providerStock, available: available ? 1 : 0 }), '20')
        const known = [localStock, providerStock].filter((stock) => stock !== null)
        const sum = known.reduce((total, stock) => total + stock, 0)
        if (!available) expect(listing).toMatchObject({ stock: 0, available: false })
        else if (known.length === 0) expect(listing).toMatchObject({ stock: null, available: true })
        else expect(listing).toMatchObject({ stock: sum, available: sum > 0 })
      }),
    )
  })

  it.each([
    ['1000', 'EUR', '20', 1_200],
    ['999', 'EUR', '12.5', 1_124],
    ['1', 'JPY', '0.0001', 2],
    ['1000', 'KWD', '0', 1_000],
  ])('of %s minor units of %s plus %s %% costs %i', (cost, currency, percent, price) => {
    expect(listingOf(offerOf({ costMinor: Number(cost), currency }), percent)?.priceMinor).toBe(price)
  })

  it('does not exist for a cost that no price can be exact for', () => {
    expect(listingOf(offerOf({ costMinor: COST_MAX_MINOR + 1 }), '20')).toBeUndefined()
  })

  it('looks the same when units only moved between the two stocks', () => {
    expect(mattersToListings(offerOf(), offerOf({ localStock: 4, providerStock: 3 }))).toBe(false)
    for (const change of [{ costMinor: 1 }, { localStock: 3 }, { available: 0 }, { name: 'x' }, { sku: 'x' }])
      expect(mattersToListings(offerOf(), offerOf(change))).toBe(true)
  })
})

describe('the listings of a store', () => {
  const store = { id: 'demo-ab12cd34', markupPercent: '20' }
  const row = (productId: string, fields: Partial<ListedOffer> & { goneAt?: number } = {}) =>
    putOffer({
      ...{ productId, ...offerOf({ sku: `SKU-${productId}` }), ...fields },
      ...{ asOf: TEST_NOW, changedAt: TEST_NOW },
    })
  const record = (productId: string) => ({
    ...{ sku: `SKU-${productId}`, name: 'Desktop Pro', category: 'operating-systems', price: '12.00' },
    ...{ currency: 'EUR', stock: 7, available: true },
  })

  it('come in pages, with prices as decimal text', async () => {
    const db = memoryDatabase()
    await db.commit([row('a'), row('b'), row('c'), row('d', { goneAt: TEST_NOW })])
    const first = await listListings(db, store, { limit: 2 })
    expect(first).toEqual({ listings: [record('a'), record('b')], next: 'b' })
    expect(await listListings(db, store, { after: 'b', limit: 2 })).toEqual({
      listings: [record('c')],
      next: undefined,
    })
    expect(await renderListings(db, store, ['c', 'a', 'nobody'])).toEqual([record('a'), record('c')])
    expect(await renderListings(db, store, [])).toEqual([])
  })

  it('are found by SKU, and refused when two offers share it', async () => {
    const db = memoryDatabase()
    await db.commit([row('a'), row('b', { sku: 'TWICE' }), row('c', { sku: 'TWICE' })])
    expect(await listingBySku(db, store, 'SKU-a')).toEqual(record('a'))
    expect(await listingBySku(db, store, 'SKU-x')).toBeUndefined()
    const error = await listingBySku(db, store, 'TWICE').catch((thrown: unknown) => thrown)
    expect(codeOf(error)).toBe('conflict')
    expect(String(error)).toMatch(/b and c|c and b/)
  })
})
