/** What ordering and the listings of a store have to do with each other. */
import { describe, expect, test } from 'vitest'
import { assess, newListing } from '../../src/listings/assess.ts'
import { offersOfLines } from '../../src/ordering/intake.ts'
import { type ListingRow, putListings } from '../../src/storage/listings.ts'
import { offersByProduct, putOffer } from '../../src/storage/offers.ts'
import { nextPublications } from '../../src/storage/publications.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'
import { offerRow } from '../support/publish-world.ts'
import { sellingPolicy } from '../support/selling.ts'
import { openTestApp, STORE } from '../support/test-app.ts'

const listing = (variant: string, fields: Partial<ListingRow>): ListingRow => ({
  ...newListing(STORE, { variant, sku: variant, linkedBy: 'person' }, TEST_NOW),
  state: 'synced',
  version: 1,
  ...fields,
})

describe('a purchase that finds its offer out of stock', () => {
  test('queues its offer for every store, in the commit that finds it', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    await app.round()
    const purchase = await app.purchase(orderId)
    expect(purchase).toMatchObject({ generation: 2, holdReason: 'out_of_stock' })
    const [queued] = await app.db.query(nextPublications(STORE, 10))
    expect(queued?.productIds).toEqual([purchase.supplierProductId])
    const offers = await app.db.query(offersByProduct([purchase.supplierProductId]))
    const store = { id: STORE, policy: sellingPolicy() }
    const [assessed] = await assess(app.db, store, { offers }, app.now())
    expect(assessed?.decision.content).toMatchObject({ stock: 0, available: false })
  })
})

describe('the line of an order', () => {
  /** Offers a and b, two that share a SKU, and some that the supplier has dropped; what the store has linked and ignored. */
  async function world(rows: ListingRow[]) {
    const db = memoryDatabase()
    const twins = [offerRow('c', { sku: 'TWICE' }), offerRow('d', { sku: 'TWICE' })]
    const dropped = [
      ['e', 'DROPPED'] as const,
      ['f', 'SKU-b'] as const,
      ...['g', 'h'].map((id) => [id, 'TWICE-DROPPED'] as const),
    ]
    const gone = dropped.map(([id, sku]) => offerRow(id, { sku, goneAt: TEST_NOW, available: false }))
    const offers = [offerRow('a'), offerRow('b', { category: 'Office' }), ...twins, ...gone]
    await db.commit([...offers.map((offer) => putOffer(offer)), ...putListings(rows)])
    return async (reference: string, policy?: ReturnType<typeof sellingPolicy>) => {
      const stores = [{ id: STORE, ...(policy ? { policy } : {}) }]
      return (await offersOfLines({ db, stores }, STORE, [{ variant: reference, sku: reference }]))[0]?.productId
    }
  }

  test('means the offer under its SKU', async () => {
    const meant = await world([])
    expect(await meant('SKU-a')).toBe('a')
    expect(await meant('NOTHING')).toBeUndefined()
    await expect(meant('TWICE')).rejects.toMatchObject({ reason: 'ambiguous_sku' })
  })

  test('means an offer that the supplier has dropped, unless another has its SKU, and is not guessed where two were dropped', async () => {
    const meant = await world([])
    expect(await meant('DROPPED')).toBe('e')
    expect(await meant('SKU-b')).toBe('b')
    await expect(meant('TWICE-DROPPED')).rejects.toMatchObject({ reason: 'ambiguous_sku' })
    expect(await meant('DROPPED', sellingPolicy({ listings: { mode: 'linked' } }))).toBeUndefined()
  })

  test('means what its variant is linked to, whatever its SKU says', async () => {
    const meant = await world([
      listing('v1', { productId: 'a' }),
      listing('SKU-a', { productId: 'b' }),
      listing('v3', { productId: 'b', sku: 'OURS' }),
      listing('TWICE', { productId: 'd' }),
    ])
    expect(await meant('v1')).toBe('a')
    expect(await meant('SKU-a')).toBe('b')
    expect(await meant('OURS')).toBe('b')
    expect(await meant('TWICE')).toBe('d')
  })

  test('means no offer where two variants under its SKU are linked to two offers', async () => {
    const meant = await world([
      listing('v1', { productId: 'a', sku: 'OURS' }),
      listing('v2', { productId: 'b', sku: 'OURS' }),
    ])
    await expect(meant('OURS')).rejects.toMatchObject({ reason: 'ambiguous_sku' })
    expect(await meant('v2')).toBe('b')
  })

  test('is none of ours while its variant is ignored', async () => {
    const meant = await world([listing('SKU-a', { state: 'ignored', linkedBy: 'sku' })])
    expect(await meant('SKU-a')).toBeUndefined()
    expect(await meant('SKU-b')).toBe('b')
  })

  test('is none of ours where the store does not list the offer, unless it once did', async () => {
    const meant = await world([listing('SKU-b', { linkedBy: 'sku', productId: 'b', reason: 'filtered' })])
    const games = sellingPolicy({ listings: { categories: ['Software'] } })
    expect(await meant('SKU-a', games)).toBeUndefined()
    expect(await meant('SKU-b', games)).toBe('b')
    expect(await meant('SKU-a', sellingPolicy({ listings: { mode: 'linked' } }))).toBeUndefined()
  })
})
