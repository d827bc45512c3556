import { describe, expect, test } from 'vitest'
import { fetchBalance } from '../../src/reconciliation/balance.ts'
import { insertBalance } from '../../src/storage/balance.ts'
import { offersByProduct } from '../../src/storage/offers.ts'
import { sandboxWorld } from '../support/catalogue-world.ts'
import { openDeliveryEndpoint } from '../support/dialect-endpoint.ts'
import { bothDialects } from '../support/dialect-pair.ts'
import { first, openTestApp } from '../support/test-app.ts'

const MINUTE = 60_000

describe.each(bothDialects)('under the dialect $name', ({ dialect }) => {
  test('two lines are bought, once each, and their keys handed over', async () => {
    const app = await openTestApp({ dialect })
    const [one, other] = await app.offers()
    const { orderId } = await app.order('1001', [
      { sku: one?.sku ?? '', quantity: 2 },
      { sku: other?.sku ?? '', quantity: 1 },
    ])
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(2)
    const expected = [2 * (one?.costMinor ?? 0), other?.costMinor]
    const bought = (await app.purchases(orderId)).toSorted((a, b) => b.quantity - a.quantity)
    expect(bought.map(({ amountMinor }) => amountMinor)).toEqual(expected)
    expect(bought.map(({ currency }) => currency)).toEqual([dialect.money.currency, dialect.money.currency])
    app.expectLedger({ charges: 2, keys: 3 })
  })

  test('an order whose answer is lost is found, by its reference or by paging, and not sent again', async () => {
    const app = await openTestApp({ dialect })
    // Newer orders of strangers push it off the first page where there is no filter.
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
    const { id: productId } = first(app.sandbox.world.offers.list({}, 0, 100).items.filter((o) => o.localStock > 60))
    for (let n = 0; n < 60; n += 1) {
      const request = { productId, quantity: 1, externalOrderId: `stranger-${n}` }
      const decision = app.sandbox.world.orders.place(`stranger-${n}`, `${n}`, request)
      expect(decision.kind).toBe('ordered')
    }
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(1)
  })

  test('a server error before the charge is repeated with the same key, once nothing is found', async () => {
    const app = await openTestApp({ dialect })
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    const { settleSeconds, listLagSeconds } = dialect
    await app.pass((settleSeconds + listLagSeconds) * 1_000)
    expect(app.sent, 'nothing is repeated before its absence is proven').toHaveLength(1)
    await app.pass(20 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(new Set(app.sent.map(({ idempotencyKey, body }) => `${idempotencyKey} ${body}`)).size).toBe(1)
    expect(app.sent).toHaveLength(2)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('a server error after the charge is looked up and nothing is bought twice', async () => {
    const app = await openTestApp({ dialect })
    app.sandbox.faults.add({ fault: 'error-after', kind: 'unavailable' })
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('out of stock is held and bought under a new key after the restock', async () => {
    const app = await openTestApp({ dialect })
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({
      generation: 2,
      state: 'planned',
      holdReason: 'out_of_stock',
    })
    await app.pass(5 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(new Set(app.sent.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(2)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('a balance that does not cover it holds it until it does', async () => {
    const app = await openTestApp({ dialect })
    app.sandbox.faults.add({ fault: 'insufficient-balance' })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ generation: 2, holdReason: 'balance' })
    await app.pass(5 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test("a failed order is reported to the store with the supplier's code", async () => {
    const app = await openTestApp({ dialect })
    app.sandbox.faults.add({ fault: 'failed-order' })
    const orderId = await app.buy('1001')
    await app.pass(2 * MINUTE)
    expect(await app.state(orderId)).toBe('failed')
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'failed',
      failureCode: dialect.errors.out_of_stock?.codes[0],
      failureMessage: 'The provider could not fulfil the order.',
    })
    expect(app.callbacks('line.failed')).toHaveLength(1)
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('keys are handed over as they come', async () => {
    const app = await openTestApp({ dialect })
    app.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 2 * MINUTE })
    const orderId = await app.buy('1001', { quantity: 3 })
    await app.pass(MINUTE)
    expect(app.callbacks('line.fulfilled')).toHaveLength(1)
    expect(await app.state(orderId)).not.toBe('fulfilled')
    await app.pass(20 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 3 })
  })

  test('a line above the quantity cap is bought in parts', async () => {
    const app = await openTestApp({ dialect: { ...dialect, quantityMax: 3 } })
    const orderId = await app.buy('1001', { quantity: 7 })
    await app.pass(MINUTE)
    expect((await app.purchases(orderId)).map(({ quantity }) => quantity).sort()).toEqual([1, 3, 3])
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 3, keys: 7 })
  })

  test('a delivery that comes twice is stored once, and brings the order home before any poll', async () => {
    const app = await openTestApp({ dialect })
    const endpoint = await openDeliveryEndpoint(app)
    app.sandbox.faults.add({ fault: 'duplicate-delivery', times: 2, match: { event: 'order.completed' } })
    const orderId = await app.buy('1001')
    // Placed, and read once while it is still open; then it completes, and no poll reads it.
    while ((await app.round()) > 0);
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted' })
    app.move(1_000)
    app.sandbox.advance()
    expect(await app.sandbox.deliverDue()).toBe(2)
    expect(endpoint.received).toEqual(['stored', 'duplicate'])
    await endpoint.process()
    expect(await endpoint.states()).toEqual(['applied'])
    await app.settle()
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('all six events are read', async () => {
    const app = await openTestApp({ dialect, balanceMinor: 12_000 })
    const endpoint = await openDeliveryEndpoint(app)
    const [one, other] = await app.offers()
    const { offers, orders } = app.sandbox.world
    const change = { localStock: 0, providerStock: 0 }
    offers.change(one?.productId ?? '', change)
    offers.change(one?.productId ?? '', { localStock: 9 })
    offers.change(one?.productId ?? '', { priceMinor: 1_234 })
    const buy = (key: string) =>
      orders.place(key, key, { productId: other?.productId ?? '', quantity: 2, externalOrderId: key })
    for (let n = 0; app.sandbox.world.balanceMinor() >= 10_000 && n < 20; n += 1) buy(`stranger-${n}`)
    app.sandbox.faults.add({ fault: 'failed-order' })
    buy('stranger-last')
    app.move(1_000)
    app.sandbox.advance()
    await app.sandbox.deliverDue()
    await endpoint.process()
    expect((await endpoint.events()).sort()).toEqual([
      ...['balance.low', 'order.completed', 'order.failed'],
      ...['product.out_of_stock', 'product.price_changed', 'product.restocked'],
    ])
    expect([...new Set(await endpoint.states())].sort()).toEqual(['applied', 'orphan'])
    const [refreshed] = await app.db.query(offersByProduct([one?.productId ?? '']))
    expect(refreshed).toMatchObject({ costMinor: 1_234, available: true })
  })

  test('the catalogue is read in pages, whole, with prices, stock and instants', async () => {
    const world = await sandboxWorld({ dialect, offers: 230 })
    const run = await world.sync()
    const pages = Math.ceil(230 / Math.min(dialect.paging.limitMax, 250))
    expect(run).toMatchObject({ state: 'complete', offersSeen: 230, offersNew: 230, offersUnreadable: 0, pages })
    const known = world.sandbox.world.offers.list({}, 0, 1_000).items
    const stored = await world.offers()
    expect(stored).toHaveLength(230)
    for (const offer of known) {
      expect(stored.find(({ productId }) => productId === offer.id)).toMatchObject({
        sku: offer.sku,
        name: offer.name,
        category: offer.category,
        description: dialect.product.description === null ? null : `${offer.name}: one licence key.`,
        image: dialect.product.image === null ? null : `https://images.example/${offer.id}.png`,
        costMinor: offer.priceMinor,
        basePriceMinor: offer.basePriceMinor,
        cashbackMinor: offer.cashbackMinor,
        localStock: offer.localStock,
        providerStock: offer.providerStock,
        origin: offer.origin,
        currency: dialect.money.currency,
        asOf: offer.updatedAt,
      })
    }
  })

  test('another VIP tier asks for a sync run', async () => {
    const { catalogue, clock, db, syncsAsked } = await sandboxWorld({ dialect })
    const reading = await fetchBalance(catalogue)
    expect(reading).toMatchObject({ amountMinor: 250_000, currency: dialect.money.currency, tier: 'gold' })
    expect(reading.limits).toMatchObject({ quantityMax: dialect.quantityMax })
    clock.at += 1_000
    await db.commit([insertBalance({ ...reading, id: 'x', readAt: clock.at, tier: 'silver' })])
    clock.at += 1_000
    await fetchBalance(catalogue)
    expect(syncsAsked).toEqual(['tier_changed'])
  })
})
