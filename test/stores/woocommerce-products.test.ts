/** How a shop of WooCommerce gets its products, and what it is asked for them. */
import { describe, expect, test } from 'vitest'
import type { NewVariant } from '../../src/stores/store.ts'
import { TEST_NOW } from '../support/database.ts'
import { newVariant } from '../support/new-variant.ts'
import { storeListing } from '../support/store-listing.ts'
import { type WooWorld, wooCommerceWorld } from '../support/store-worlds.ts'

const create = async ({ store }: WooWorld, ...variants: NewVariant[]) => {
  const result = await store.create?.(variants)
  return result?.outcome === 'answered' ? result.answers : []
}
const productOf = ({ shop }: WooWorld, sku: string) => [...shop.products.values()].find((one) => one.sku === sku)
const publish = ({ store }: WooWorld, ids: string[]) =>
  store.publish({ id: 'p1', at: TEST_NOW, listings: ids.map((id) => storeListing(id)) })

describe('a product that a WooCommerce shop lacks', () => {
  test.each([
    ['publish', true, 'publish'],
    ['publish', false, 'draft'],
    ['draft', true, 'draft'],
  ] as const)('is made, with create "%s" and published: %s, as %s', async (setting, isPublished, status) => {
    const world = await wooCommerceWorld({ settings: { create: setting } })
    const [made] = await create(world, newVariant('A', { isPublished }))
    const product = productOf(world, 'A')
    expect(made).toEqual({ sku: 'A', id: String(product?.id), isNew: true })
    expect(product).toMatchObject({ status, virtual: true, downloadable: false, manageStock: true, stockQuantity: 0 })
    expect(product?.regularPrice).toBe('')
  })

  test('has its words as the supplier wrote them, and no markup of them', async () => {
    const world = await wooCommerceWorld()
    await create(world, newVariant('A', { name: 'A < B', description: '<b>Tom & Jerry</b>' }))
    expect(productOf(world, 'A')).toMatchObject({
      name: 'A &lt; B',
      description: '&lt;b&gt;Tom &amp; Jerry&lt;/b&gt;',
    })
  })

  test('is in the category of its name, whatever its case, which is made once', async () => {
    const world = await wooCommerceWorld()
    const inCategory = (sku: string, category: string) => newVariant(sku, { category })
    await create(world, inCategory('A', 'Tom & Jerry'), inCategory('B', 'Games'))
    await create(world, inCategory('C', 'Tom & Jerry'), inCategory('D', 'games'), newVariant('E'))
    const categories = ['A', 'B', 'C', 'D', 'E'].map((sku) => productOf(world, sku)?.categories[0])
    const [a, b] = categories
    expect(categories).toEqual([a, b, a, b, 15])
    expect(new Set([a, b, 15]).size).toBe(3)
    expect(world.shop.counts()['categories.create']).toBe(2)
    await create(world, inCategory('H', 'Game'))
    expect(productOf(world, 'H')?.categories).not.toEqual([b])
    const asked = world.shop.counts()['categories.list']
    await create(world, inCategory('F', 'Games'))
    expect(world.shop.counts()['categories.list']).toBe(asked)
    world.clock.now += 3_600_000
    await create(world, inCategory('G', 'Games'))
    expect(world.shop.counts()['categories.list']).toBe((asked ?? 0) + 1)
    expect(productOf(world, 'G')?.categories).toEqual([b])
  })

  test('is in a category whose name the shop writes with entities', async () => {
    const world = await wooCommerceWorld()
    await create(world, newVariant('A', { category: 'Tom & Jerry' }))
    world.clock.now += 3_600_000
    const change = (json: unknown) => JSON.parse(JSON.stringify(json).replaceAll('Tom & Jerry', 'Tom &amp; Jerry'))
    world.shop.strike({ kind: 'categories.list', fault: 'echo', change })
    await create(world, newVariant('B', { category: 'Tom & Jerry' }))
    expect(productOf(world, 'B')?.categories).toEqual(productOf(world, 'A')?.categories)
    expect(world.shop.counts()['categories.create']).toBe(1)
  })

  test('is in a category that someone made meanwhile, and is not made where the shop makes none', async () => {
    const world = await wooCommerceWorld()
    await create(world, newVariant('A', { category: 'Games' }))
    world.clock.now += 3_600_000
    world.shop.strike({ kind: 'categories.list', fault: 'echo', change: () => [] })
    await create(world, newVariant('B', { category: 'Games' }))
    expect(productOf(world, 'B')?.categories).toEqual(productOf(world, 'A')?.categories)
    const code = 'woocommerce_rest_cannot_create'
    world.shop.strike({ kind: 'categories.create', fault: 'refused', status: 403, code })
    expect(await world.store.create?.([newVariant('C', { category: 'Films' })])).toMatchObject({
      outcome: 'refused',
      status: 403,
    })
    expect(productOf(world, 'C')).toBeUndefined()
  })

  test('is made twenty at a time, because the shop fetches a picture for each', async () => {
    const world = await wooCommerceWorld()
    const made = await create(world, ...Array.from({ length: 45 }, (_, index) => newVariant(`S${index}`)))
    expect(made).toHaveLength(45)
    const sizes = world.shop
      .requests()
      .flatMap(({ kind, fields }) => (kind === 'products.batch' ? [(fields.create as unknown[]).length] : []))
    expect(sizes).toEqual([20, 20, 5])
  })

  test('is none where the shop has its SKU: a variation is named with its product, and what consists of others is refused', async () => {
    const world = await wooCommerceWorld()
    const simple = world.sell('A')
    const [variation] = world.sellVariants(['B', 'C'])
    const before = world.shop.products.size
    const made = await create(world, ...['A', 'B', 'SUITE-B-C', 'NEW'].map((sku) => newVariant(sku)))
    expect(Object.fromEntries(made.map(({ sku, ...one }) => [sku, one]))).toEqual({
      A: { id: simple, isNew: false },
      B: { id: variation, isNew: false },
      'SUITE-B-C': { refusal: expect.stringContaining('consists of others') },
      NEW: { id: expect.any(String), isNew: true },
    })
    expect(world.shop.products.size).toBe(before + 1)
    const asked = world.shop
      .requests()
      .flatMap(({ kind, fields }) => (kind === 'products.batch' ? [fields.create] : []))
    expect(asked).toMatchObject([[{ sku: 'NEW' }]])
  })

  test('that was made a moment ago is taken, unless the shop takes its SKU for another one', async () => {
    const world = await wooCommerceWorld()
    const id = world.sell('A')
    // The list lags behind.
    world.shop.strike({ kind: 'products.list', fault: 'echo', change: () => [], times: 3 })
    expect(await create(world, newVariant('A'))).toEqual([{ sku: 'A', id, isNew: false }])
    world.shop.strike({ kind: 'products.get', fault: 'echo', change: (json) => ({ ...(json as object), sku: 'a' }) })
    const refusal = `the shop takes it for the SKU of product ${id}, which is another one`
    expect(await create(world, newVariant('A'))).toEqual([{ sku: 'A', refusal }])
    world.shop.strike({ kind: 'products.get', fault: 'maintenance' })
    expect(await create(world, newVariant('A'))).toEqual([
      { sku: 'A', refusal: expect.stringContaining('cannot be read') },
    ])
  })

  test('has its picture, and is named where the shop refuses it for a reason of its own', async () => {
    const world = await wooCommerceWorld()
    await create(world, newVariant('A', { image: 'https://pictures.test/a.png' }))
    expect(productOf(world, 'A')?.images).toMatchObject([{ src: expect.stringContaining('a.png') }])
    for (const code of ['woocommerce_rest_cannot_create', 'product_invalid_sku']) {
      world.shop.strike({ kind: 'products.batch', fault: 'items', fails: () => true, code })
      expect(await create(world, newVariant('B'))).toEqual([{ sku: 'B', refusal: `the shop refused it (${code})` }])
    }
  })

  test('is answered for apart from those that were made before the shop failed', async () => {
    const world = await wooCommerceWorld()
    let batches = 0
    const isSecond = ({ kind }: { kind: string }) => kind === 'products.batch' && ++batches === 2
    world.shop.strike({ fault: 'maintenance', matches: isSecond })
    const result = await world.store.create?.(Array.from({ length: 30 }, (_, index) => newVariant(`S${index}`)))
    expect(result).toMatchObject({ outcome: 'answered', failure: { outcome: 'unavailable', mayHaveLeft: true } })
    expect(result?.outcome === 'answered' && result.answers).toHaveLength(20)
    world.shop.strike({ kind: 'products.batch', fault: 'maintenance' })
    expect(await world.store.create?.([newVariant('NEW')])).toMatchObject({ outcome: 'unavailable' })
    world.shop.strike({ kind: 'products.list', fault: 'maintenance' })
    expect(await world.store.create?.([newVariant('NEW')])).toMatchObject({
      outcome: 'unavailable',
      mayHaveLeft: false,
    })
  })
})

describe('the prices and the stock of a WooCommerce shop', () => {
  test('cost one question for its currency an hour', async () => {
    const world = await wooCommerceWorld()
    const id = world.sell('A')
    const asked = async (after: number) => {
      world.clock.now += after
      await publish(world, [id])
      return world.shop.counts()['settings.get']
    }
    expect([await asked(0), await asked(3_599_999), await asked(1), await asked(1)]).toEqual([1, 1, 2, 2])
  })

  test.each([
    ['is slow', { fault: 'slow', ms: 21_000 }, [40, 40, 25, 15]],
    ['gives no answer', { fault: 'maintenance' }, [40, 40, 25, 15]],
    ['takes its time', { fault: 'slow', ms: 19_000 }, [40, 40, 40]],
    ['refuses', { fault: 'refused', status: 400, code: 'rest_invalid_param' }, [40, 40, 40]],
  ] as const)('come in smaller batches after two at which the shop %s', async (_, fault, sizes) => {
    const world = await wooCommerceWorld()
    const ids = Array.from({ length: 40 }, (_id, index) => world.sell(`S${index}`))
    world.shop.strike({ ...fault, kind: 'products.batch', times: 2 })
    for (const _of of [1, 2, 3]) await publish(world, ids)
    const batches = world.shop.requests().filter(({ kind }) => kind === 'products.batch')
    expect(batches.map(({ fields }) => (fields.update as unknown[]).length)).toEqual(sizes)
  })

  test('are said of those that were written before the shop failed, and for nothing where none was', async () => {
    const world = await wooCommerceWorld()
    const ids = [world.sell('A'), ...world.sellVariants(['B'])]
    world.shop.strike({ kind: 'variations.batch', fault: 'maintenance' })
    const result = await publish(world, ids)
    expect(result).toMatchObject({
      outcome: 'answered',
      answers: [{ id: ids[0], ok: true }],
      failure: { mayHaveLeft: true },
    })
    world.shop.strike({ kind: 'products.batch', fault: 'maintenance' })
    expect(await publish(world, ids)).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
    world.shop.strike({ kind: 'products.batch', fault: 'echo', change: () => ({}) })
    expect(await publish(world, ids)).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
  })

  test('are not said of a product under whose parent a batch was refused for another reason than that it is gone', async () => {
    const world = await wooCommerceWorld()
    const [id = ''] = world.sellVariants(['A'])
    world.shop.strike({
      kind: 'variations.batch',
      fault: 'refused',
      status: 403,
      code: 'woocommerce_rest_cannot_batch',
    })
    expect(await publish(world, [id])).toMatchObject({ outcome: 'refused', status: 403 })
  })

  test('are not sent without the currency of the shop', async () => {
    const world = await wooCommerceWorld()
    const id = world.sell('A')
    world.shop.strike({ kind: 'settings.get', fault: 'maintenance' })
    expect(await publish(world, [id])).toMatchObject({ outcome: 'unavailable' })
    world.shop.strike({ kind: 'settings.get', fault: 'echo', change: () => ({ value: 'euro' }) })
    expect(await publish(world, [id])).toMatchObject({ outcome: 'unavailable', mayHaveLeft: false })
    expect(world.shelf(id)?.price).toBe('9.00')
  })
})

test('a product of a WooCommerce shop is listed with its name, SKU and price, a variation with that of its product', async () => {
  const world = await wooCommerceWorld()
  const id = String(world.shop.addProduct({ name: 'Tom &amp; Jerry', sku: '', regular_price: '9.00' }).id)
  const [variation] = world.sellVariants(['B'])
  for (const type of ['grouped', 'external'] as const) world.shop.addProduct({ name: type, type, sku: type })
  const first = await world.store.variants?.(null)
  if (first?.outcome !== 'read') throw new Error('the shop has products')
  expect(first.items).toEqual([{ id, sku: null, name: 'Tom & Jerry', price: '9.00' }])
  const second = await world.store.variants?.(first.next)
  expect(second).toMatchObject({ items: [{ id: variation, sku: 'B', price: '9.00' }], next: null })
  expect(JSON.stringify(second)).toContain('"Suite - ')
})

test('the variations of all products on the last page of a WooCommerce shop are listed', async () => {
  const world = await wooCommerceWorld()
  const sold = [...world.sellVariants(['A', 'B']), ...world.sellVariants(['C']), ...world.sellVariants(['D'])]
  const listed: string[] = []
  for (let cursor: string | null = null, pages = 0; pages < 9; pages += 1) {
    const page: Awaited<ReturnType<NonNullable<typeof world.store.variants>>> | undefined =
      await world.store.variants?.(cursor)
    if (page?.outcome !== 'read') throw new Error('the shop has products')
    listed.push(...page.items.map(({ id }) => id))
    cursor = page.next
    if (cursor === null) break
  }
  expect(listed).toEqual(sold)
})
