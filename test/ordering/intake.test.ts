import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { parseDecimal } from '../../src/domain/money.ts'
import { readRate } from '../../src/domain/rates.ts'
import { viewOrder, viewTaken } from '../../src/ordering/order-view.ts'
import { offersByProduct, putOffer } from '../../src/storage/offers.ts'
import { listStoreOrders } from '../../src/storage/store-orders.ts'
import { defaultDialect, first, openTestApp } from '../support/test-app.ts'

describe('taking a store order', () => {
  test('buys the keys of every line once and hands them over', async () => {
    const app = await openTestApp()
    const [one, two] = await app.offers()
    const { orderId } = await app.order('1001', [
      { sku: one?.sku ?? '', quantity: 2 },
      { sku: two?.sku ?? '' },
      { sku: one?.sku ?? '' },
    ])
    await app.pass(10_000)
    const view = await viewOrder(app.ordering, orderId, { keys: true })
    expect(view.state).toBe('fulfilled')
    expect(view.lines.map((line) => [line.state, line.delivered, line.keys?.length])).toEqual([
      ['fulfilled', 2, 2],
      ['fulfilled', 1, 1],
      ['fulfilled', 1, 1],
    ])
    for (const line of view.lines) expect(line.keys).toEqual(app.shop.keys().get(`1001/${line.id}`))
    app.expectLedger({ charges: 3, keys: 4 })
  })

  test('refuses a price in a currency that the supplier does not sell in', async () => {
    const app = await openTestApp()
    const { sku } = await app.offer()
    const priced = { sku, unitPriceMinor: 2_050, currency: 'USD' }
    await expect(app.order('1001', [priced])).rejects.toThrow('lines.0.currency: must be EUR')
    await app.pass(10_000)
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('does not call an order fulfilled without the line that the supplier has dropped the product of', async () => {
    const app = await openTestApp()
    const [one, two] = await app.offers()
    if (!one || !two) throw new Error('there are offers')
    app.sandbox.world.offers.change(two.productId, { withdrawn: true })
    await app.db.commit([
      { statement: sql`update offers set gone_at = ${app.now()} where product_id = ${two.productId}`, rows: 1 },
    ])
    const { orderId } = await app.order('1001', [{ sku: one.sku }, { sku: two.sku }])
    await app.pass(10_000)
    const view = await viewOrder(app.ordering, orderId, { keys: false })
    expect([view.state, ...view.lines.map(({ state }) => state)]).toEqual(['open', 'fulfilled', 'held'])
    expect(app.callbacks('order.closed')).toEqual([])
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('shows an order that was just taken as it is read afterwards', async () => {
    const app = await openTestApp({ dialect: { ...defaultDialect(), quantityMax: 2 } })
    const { sku } = await app.offer()
    const { created, orderId } = await app.order('1001', [{ sku, quantity: 3 }, { sku: 'not-ours' }, { sku }])
    if (!created) throw new Error('the order was there before')
    const shown = await viewTaken(app.ordering, created, { keys: true })
    expect(shown).toEqual(await viewOrder(app.ordering, orderId, { keys: true }))
    expect(shown.lines.map(({ purchases }) => purchases.length)).toEqual([2, 0, 1])
  })

  test('takes a repeat for the order that it is', async () => {
    const app = await openTestApp()
    const { sku } = await app.offer()
    const taken = await app.order('1001', [{ sku }])
    const repeat = await app.order('1001', [{ sku }])
    await app.pass(10_000)
    const later = await app.order('1001', [{ sku }])
    expect(taken.created).toMatchObject({ order: { id: taken.orderId } })
    expect([repeat, later]).toEqual(Array(2).fill({ orderId: taken.orderId }))
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('refuses another order under a used reference', async () => {
    const app = await openTestApp()
    const { sku } = await app.offer()
    await app.order('1001', [{ sku }])
    await expect(app.order('1001', [{ sku, quantity: 2 }])).rejects.toMatchObject({
      code: 'conflict',
      reason: 'reference_reused',
    })
    await app.pass(10_000)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('stores one order of five that arrive at the same instant', async () => {
    const app = await openTestApp()
    const { sku } = await app.offer()
    const taken = await Promise.all(Array.from({ length: 5 }, () => app.order('1001', [{ sku, quantity: 3 }])))
    await app.pass(10_000)
    expect(new Set(taken.map(({ orderId }) => orderId)).size).toBe(1)
    expect(taken.filter(({ created }) => created)).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 3 })
  })

  test('splits a line above the quantity cap and counts its keys together', async () => {
    const app = await openTestApp({ dialect: { ...defaultDialect(), quantityMax: 3 } })
    const orderId = await app.buy('1001', { quantity: 7 })
    await app.pass(10_000)
    expect((await app.purchases(orderId)).map(({ part, quantity }) => [part, quantity])).toEqual([
      [1, 3],
      [2, 3],
      [3, 1],
    ])
    app.expectLedger({ charges: 3, keys: 7 })
    const callbacks = app.callbacks('line.fulfilled').map(({ data }) => [data.delivered, data.complete])
    expect(callbacks.at(-1), 'the store hears that the line is complete').toEqual([7, true])
  })

  test('leaves a line alone that is none of ours', async () => {
    const app = await openTestApp()
    const { sku } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }, { sku: 'T-SHIRT-XL' }])
    await app.pass(10_000)
    const view = await viewOrder(app.ordering, orderId, { keys: false })
    expect(view.lines.map(({ state }) => state)).toEqual(['fulfilled', 'not_ours'])
    expect(view.state).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('refuses an order without any line of ours, naming the lines', async () => {
    const app = await openTestApp()
    await expect(app.order('1001', [{ sku: 'T-SHIRT-XL' }])).rejects.toMatchObject({
      code: 'rejected',
      reason: 'no_known_sku',
      fields: [{ field: 'lines.0.sku' }],
    })
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('refuses a SKU that two products have', async () => {
    const app = await openTestApp()
    const [one, two] = await app.offers()
    const [double] = await app.db.query(offersByProduct([two?.productId ?? '']))
    if (!one || !double) throw new Error('the supplier sells two products')
    await app.db.commit([putOffer({ ...double, sku: one.sku })])
    await expect(app.order('1001', [{ sku: one.sku }])).rejects.toMatchObject({ reason: 'ambiguous_sku' })
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('lets a line cost its unit price less the margin, or its cost at intake plus a percentage', async () => {
    const app = await openTestApp({ policy: { minMarginPercent: '5', ceilingPercent: '10' } })
    const { sku, costMinor } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku, unitPriceMinor: 10_000 }, { sku }])
    const [priced, unpriced] = await app.purchases(orderId)
    expect(priced?.ceilingMinor).toBe(9_500)
    expect(unpriced?.ceilingMinor).toBe(Math.ceil(costMinor * 1.1))
  })

  test("turns a unit price in another currency into the supplier's by a rate, and refuses it without one", async () => {
    const rates = [readRate({ from: 'USD', to: 'EUR', rate: '0.8' })]
    const app = await openTestApp({ policy: { rates, minMarginPercent: '5' } })
    const { sku } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku, unitPriceMinor: 12_500, currency: 'USD' }])
    expect((await app.purchase(orderId)).ceilingMinor).toBe(9_500)
    await expect(app.order('1002', [{ sku }, { sku, unitPriceMinor: 9_900, currency: 'GBP' }])).rejects.toMatchObject({
      code: 'invalid',
      reason: 'other_currency',
      fields: [{ field: 'lines.1.currency', message: expect.stringContaining('a rate from GBP to EUR in `rates`') }],
    })
    expect((await app.db.query(listStoreOrders({ limit: 10 }))).length).toBe(1)
  })

  test('sends the bytes that were stored when the order came', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001', { quantity: 2 })
    const { body, externalOrderId, supplierProductId, ceilingMinor } = await app.purchase(orderId)
    await app.settle()
    expect(first(app.sent).body).toBe(body)
    expect(JSON.parse(body)).toEqual({ productId: supplierProductId, quantity: 2, external_order_id: externalOrderId })
    expect(ceilingMinor).toBeGreaterThan(parseDecimal('0.01', 'EUR') ?? 0)
  })
})
