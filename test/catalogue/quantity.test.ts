/** Suppliers that state how many units they have and no flag, and amounts as text and as numbers in one list. */
import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { idAt, listWorld, openCatalogue, sandboxWorld } from '../support/catalogue-world.ts'
import { standard } from '../support/dialect-pair.ts'
import { openTestApp } from '../support/test-app.ts'

/** Kinguin's API names it `qty` and has no flag: github.com/kinguinltdhk/Kinguin-eCommerce-API. */
const byQuantity = {
  flags: { available: 'quantity' as const },
  product: { available: 'qty', localStock: 'qty', providerStock: null },
}

describe('availability from a quantity', () => {
  it.each([
    [0, false],
    [1, true],
    [149, true],
  ])('of %i is %s', async (qty, available) => {
    const { list, sync, offer } = await listWorld(1, byQuantity)
    Object.assign(list.records[0] ?? {}, { qty, available: !available })
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersUnreadable: 0 })
    expect(await offer(idAt(0))).toMatchObject({ available, localStock: qty })
  })

  it.each([-1, 1.5, '149', 'many', null, undefined, true, { qty: 3 }, [1]])(
    'of %j is reported as unreadable, and the offer is not taken for available',
    async (qty) => {
      const { list, sync, offer, logged } = await listWorld(2, byQuantity)
      Object.assign(list.records[0] ?? {}, { qty: 5 })
      Object.assign(list.records[1] ?? {}, { qty })
      const run = await sync()
      expect(run).toMatchObject({ offersSeen: 1, offersUnreadable: 1 })
      expect(run.firstUnreadable).toMatchObject({ field: 'product.available', path: 'qty' })
      expect(await offer(idAt(1))).toBeUndefined()
      expect(logged('sync.unreadable')).toHaveLength(1)
    },
  )

  it('that becomes unreadable leaves the offer as it was, and is reported in each run', async () => {
    const { list, sync, offer } = await listWorld(2, byQuantity)
    for (const record of list.records) Object.assign(record, { qty: 0 })
    await sync()
    Object.assign(list.records[1] ?? {}, { qty: -1 })
    for (let runs = 0; runs < 3; runs += 1) expect(await sync()).toMatchObject({ offersUnreadable: 1 })
    expect(await offer(idAt(1))).toMatchObject({ available: false, goneAt: null })
  })

  it('sells what there is, and holds what there is not', async () => {
    const dialect = { ...standard, flags: { ...standard.flags, available: 'quantity' as const } }
    const app = await openTestApp({ dialect, sandboxDialect: dialect })
    const orderId = await app.buy('1001')
    await app.pass(60_000)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
    const world = await sandboxWorld({ dialect })
    await world.sync()
    const stocked = new Set((await world.offers()).map(({ available }) => available))
    expect(stocked).toEqual(new Set([true, false]))
  })
})

describe('amounts as text and as numbers', () => {
  const written = async (representation: Dialect['money']['representation'], prices: unknown[]) => {
    const { list, baseUrl, dialect } = await listWorld(prices.length)
    for (const [place, price] of prices.entries()) Object.assign(list.records[place] ?? {}, { api_price: price })
    const world = openCatalogue({ baseUrl, dialect: { ...dialect, money: { currency: 'EUR', representation } } })
    await world.sync()
    return (await world.offers()).map(({ costMinor, costFault }) => costFault ?? costMinor)
  }

  it('are read alike, and exactly, under number_or_decimal', async () => {
    const prices = ['12.99', 12.99, 0.29, '7', 7, 1_000_000.1]
    expect(await written('number_or_decimal', prices)).toEqual([1_299, 1_299, 29, 700, 700, 100_000_010])
  })

  it.each([[12.999], ['12.999'], ['1e3'], ['12,99'], [true], [null], [{ amount: 12 }]])(
    'have no cost that can be believed where one is %j',
    async (price) => {
      expect(await written('number_or_decimal', [price, 12.99])).toEqual(['missing', 1_299])
    },
  )

  it('are half unreadable under each form alone', async () => {
    expect(await written('decimal', ['12.99', 12.99])).toEqual([1_299, 'missing'])
    expect(await written('number', ['12.99', 12.99])).toEqual(['missing', 1_299])
  })
})
