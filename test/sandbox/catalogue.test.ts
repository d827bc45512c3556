import { describe, expect, it } from 'vitest'
import { generatedCatalogue, shippedCatalogue } from '../../src/sandbox/catalogue.ts'
import { openSandbox } from '../support/sandbox-caller.ts'

describe('the shipped catalogue', () => {
  const catalogue = shippedCatalogue()
  const products = Array.from({ length: catalogue.size }, (_, index) => catalogue.at(index))

  it('has distinct ids and SKUs, some products out of stock, prices under the base price', () => {
    expect(new Set(products.map(({ id }) => id)).size).toBe(products.length)
    expect(new Set(products.map(({ sku }) => sku)).size).toBe(products.length)
    expect(products.filter(({ localStock, providerStock }) => localStock + providerStock === 0).length).toBeGreaterThan(
      2,
    )
    expect(products.every(({ priceMinor, basePriceMinor }) => priceMinor < basePriceMinor)).toBe(true)
    expect(products.some(({ priceMinor }) => priceMinor % 10 === 7)).toBe(true)
  })
})

describe('a generated catalogue', () => {
  it('is the same for the same seed and different for a different one', () => {
    expect(generatedCatalogue(10, 5).at(3)).toEqual(generatedCatalogue(1_000_000, 5).at(3))
    expect(generatedCatalogue(10, 5).at(3)).not.toEqual(generatedCatalogue(10, 6).at(3))
  })

  it('finds each product by its id, and no unknown one', () => {
    const catalogue = generatedCatalogue(100_000, 3)
    for (let index = 0; index < catalogue.size; index += 997) expect(catalogue.find(catalogue.at(index).id)).toBe(index)
    expect(catalogue.find('00000000-0000-4000-8000-000000000000')).toBeUndefined()
    expect(generatedCatalogue(5, 3).find(catalogue.at(6).id)).toBeUndefined()
    expect(new Set(Array.from({ length: 100_000 }, (_, index) => catalogue.at(index).id)).size).toBe(100_000)
  })

  it('of a million products reads any page in milliseconds, without being kept in memory', async () => {
    const sandbox = await openSandbox({ offers: 1_000_000 })
    try {
      const before = process.memoryUsage().heapUsed
      const startedAt = performance.now()
      const pages = [1, 5_000, 10_000]
      const replies = []
      for (const page of pages) replies.push(await sandbox.get(`/products?page=${page}&limit=100`))
      const items = replies.flatMap((reply) => reply.at('data.items') as { sku: string }[])
      expect(replies.map((reply) => reply.at('data.total'))).toEqual([1_000_000, 1_000_000, 1_000_000])
      expect(new Set(items.map(({ sku }) => sku)).size).toBe(300)
      expect(((await sandbox.get('/products?page=10001&limit=100')).at('data.items') as unknown[]).length).toBe(0)
      // Far above the need, far below what a million products would take.
      expect(performance.now() - startedAt).toBeLessThan(2_000)
      expect(process.memoryUsage().heapUsed - before).toBeLessThan(100_000_000)
    } finally {
      await sandbox.close()
    }
  })

  it('omits withdrawn products anywhere, and each page follows the previous one', async () => {
    const sandbox = await openSandbox({ offers: 1_000_000 })
    const catalogue = generatedCatalogue(1_000_000, 1)
    const hidden = [0, 1, 150, 151, 152, 299, 999_998]
    const idsOf = (from: number, count: number) =>
      sandbox.world.offers.list({}, from, count).items.map(({ id }) => catalogue.find(id))
    try {
      for (const place of hidden) sandbox.world.offers.change(catalogue.at(place).id, { withdrawn: true })
      const shown = Array.from({ length: 320 }, (_, place) => place).filter((place) => !hidden.includes(place))
      const pages = [0, 100, 200].flatMap((from) => idsOf(from, 100))
      expect(pages).toEqual(shown.slice(0, 300))
      expect(idsOf(999_990, 100)).toEqual([999_996, 999_997, 999_999])
      expect(sandbox.world.offers.list({}, 0, 1).total).toBe(1_000_000 - hidden.length)
      sandbox.world.offers.change(catalogue.at(1).id, { withdrawn: false })
      expect(idsOf(0, 2)).toEqual([1, 2])
    } finally {
      await sandbox.close()
    }
  })

  it('changes a share of its prices through the control API, and no others', async () => {
    const sandbox = await openSandbox({ offers: 1_000 })
    try {
      const prices = () => sandbox.world.offers.list({}, 0, 1_000).items.map(({ priceMinor }) => priceMinor)
      const before = prices()
      expect((await sandbox.control('POST', '/offers', { every: 100 })).body).toEqual({ changed: 10 })
      expect(prices()).toEqual(before.map((price, place) => (place % 100 === 0 ? price + 1 : price)))
      expect((await sandbox.control('POST', '/offers', { every: 0 })).status).toBe(400)
    } finally {
      await sandbox.close()
    }
  })

  it('sells, and shows what is left', async () => {
    const sandbox = await openSandbox({ offers: 1_000 })
    try {
      const [offer] = sandbox.world.offers.list({ inStock: true }, 0, 1).items
      if (!offer) throw new Error('nothing in stock')
      expect((await sandbox.order('k', { productId: offer.id })).status).toBe(201)
      const after = await sandbox.get(`/products/${offer.id}`)
      const left = (after.at('data.local_stock') as number) + (after.at('data.provider_stock') as number)
      expect(left).toBe(offer.localStock + offer.providerStock - 1)
    } finally {
      await sandbox.close()
    }
  })
})
