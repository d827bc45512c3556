import { expect, test } from 'vitest'
import { previewPrices } from '../../src/listings/price-preview.ts'
import { offerRow, publishWorld } from '../support/publish-world.ts'
import { sellingPolicy } from '../support/selling.ts'

const all = { whole: true, kind: 'all', skip: 0, limit: 1_000 } as const

test('what is previewed is what publishing does, listing by listing', async () => {
  const pricing = {
    bands: [{ upTo: '12', percent: '30' }, { percent: '15' }],
    categories: { Office: { percent: '90' } },
    products: { 'SKU-p3': { fixed: '1.00' } },
    rounding: { endings: ['.99'] },
  }
  const world = await publishWorld()
  const offers = Array.from({ length: 120 }, (_, index) =>
    offerRow(`p${index}`, { costMinor: 500 + index * 13, category: index % 7 === 0 ? 'Office' : 'Games' }),
  )
  await world.stock(
    ...offers,
    offerRow('zero', { costMinor: 0 }),
    offerRow('x', { sku: 'TWO' }),
    offerRow('y', { sku: 'TWO' }),
  )
  await world.settle()
  const before = await world.rows()
  const { totals, listings } = await previewPrices(world.db, world.store, sellingPolicy({ pricing }), all, world.now())
  expect(await world.rows(), 'nothing is changed').toEqual(before)
  expect(totals).toMatchObject({ listings: 121, unpriced: 1, rungs: { product: 1, category: 18 } })
  expect(totals.changed.held).toBeGreaterThan(10)
  expect(totals.changed.floor).toBe(1)

  world.configure({ pricing })
  await world.settle()
  const after = new Map((await world.rows()).map((row) => [row.variant, row]))
  for (const { id, priceMinor, heldBy } of listings) {
    const { knownPriceMinor, wantedPriceMinor, reason } = after.get(id) ?? {}
    expect([id, reason, heldBy ? wantedPriceMinor : knownPriceMinor]).toEqual([id, heldBy, priceMinor])
  }
  const touched = before.filter(({ variant, knownPriceMinor, state }) => {
    const row = after.get(variant)
    return row?.knownPriceMinor !== knownPriceMinor || row?.state !== state
  })
  expect(touched.map(({ variant }) => variant).sort()).toEqual(listings.map(({ id }) => id).sort())
})

test('a page of the listings of one kind follows another, and the counts are of all', async () => {
  const world = await publishWorld()
  await world.stock(...Array.from({ length: 9 }, (_, index) => offerRow(`p${index}`, { costMinor: 1_000 + index })))
  await world.settle()
  const after = sellingPolicy({ pricing: { bands: [{ upTo: '10.04', percent: '25' }, { percent: '10' }] } })
  const pageOf = (skip: number) =>
    previewPrices(world.db, world.store, after, { whole: true, kind: 'higher', skip, limit: 3 }, world.now())
  const [first, second] = [await pageOf(0), await pageOf(3)]
  expect([...first.listings, ...second.listings].map(({ sku, priceMinor }) => `${sku} ${priceMinor}`)).toEqual([
    ...['SKU-p0 1250', 'SKU-p1 1252', 'SKU-p2 1253'],
    ...['SKU-p3 1254', 'SKU-p4 1255', 'SKU-p5 1255'],
  ])
  expect(first.totals.changed).toEqual(second.totals.changed)
})

test('a sample looks across the whole catalogue, and at the products that have rules of their own', async () => {
  const world = await publishWorld()
  const offers = Array.from({ length: 400 }, (_, index) => offerRow(`p${String(index).padStart(3, '0')}`))
  await world.stock(...offers)
  await world.settle()
  const after = sellingPolicy({ pricing: { products: { 'SKU-p333': { fixed: '13.00' } }, markup: { percent: '21' } } })
  const { totals, listings } = await previewPrices(world.db, world.store, after, { ...all, whole: false }, world.now())
  expect(totals.listings).toBe(81)
  expect(listings.map(({ sku }) => sku)).toEqual(expect.arrayContaining(['SKU-p333', 'SKU-p000', 'SKU-p367']))
})
