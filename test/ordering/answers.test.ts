import { describe, expect, test } from 'vitest'
import { attemptsOf, insertBalance } from '../../src/storage/evidence.ts'
import { databaseFile } from '../support/database.ts'
import { defaultDialect, first, type Harbour, openHarbour, until } from '../support/harbour.ts'

const MINUTE = 60_000

/** Requests time out after 100 ms of real time, so that a slow answer is cheap to wait for. */
const hasty = () => ({ ...defaultDialect(), settleSeconds: 0.3, listLagSeconds: 1, scanGapSeconds: 1 })

const placed = (harbour: Harbour) => harbour.sent.map(({ idempotencyKey, body }) => `${idempotencyKey} ${body}`)

describe('an order whose answer is lost', () => {
  test('is found by a look-up and not sent again', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await harbour.buy('1001', { quantity: 2 })
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'unknown', supplierOrderId: null })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.sent).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 2 })
  })

  test('is found when the supplier charged and answered with a fault', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-after', kind: 'unavailable' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.sent).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('is sent again with the same key and bytes once two scans have not found it', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001', { quantity: 2 })
    await harbour.settle()
    // Requests settle within 90 s and show within another 60 s; then two scans 60 s apart.
    await harbour.pass(200_000)
    expect(harbour.sent, 'nothing is repeated before its absence is proven').toHaveLength(1)
    await harbour.pass(10 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.sent).toHaveLength(2)
    expect(new Set(placed(harbour)).size).toBe(1)
    const { id, sends, maybeChargedAt } = await harbour.purchase(orderId)
    const digests = (await harbour.db.query(attemptsOf([id]))).filter((attempt) => attempt.stage === 'sent')
    expect(digests.map((attempt) => attempt.requestDigest)).toEqual(Array(2).fill(first(digests).requestDigest))
    expect(sends).toBe(2)
    expect(maybeChargedAt).not.toBeNull()
    harbour.expectLedger({ charges: 1, keys: 2 })
  })

  test('goes to a person when even its repeat is refused', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    harbour.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(20 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review', lastClass: 'refused', generation: 1 })
    expect(harbour.sent).toHaveLength(2)
    harbour.expectLedger({ charges: 0, keys: 0 })
  })

  test.each(['before', 'after'] as const)('is found when it came after the deadline (slow %s)', async (stage) => {
    const harbour = await openHarbour({ dialect: hasty() })
    harbour.sandbox.faults.add({ fault: 'slow', stage, delayMs: 200 })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'unknown' })
    await until(() => harbour.sandbox.world.report().charges.length === 1)
    await harbour.pass(30_000)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.sent).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('goes to a person when the key may be forgotten before absence is proven', async () => {
    const harbour = await openHarbour({ dialect: { ...defaultDialect(), idempotencyMemorySeconds: 120 } })
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(20 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review', supplierOrderId: null })
    expect(harbour.sent).toHaveLength(1)
    expect(await harbour.alerts()).toContain('absent_and_not_safe')
    harbour.expectLedger({ charges: 0, keys: 0 })
  })

  test('goes to a person when the list cannot be read for a day', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.sandbox.faults.add({ fault: 'error-before', match: { path: '/orders', method: 'GET' }, times: 10_000 })
    await harbour.pass(25 * 60 * MINUTE, 30 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    harbour.sandbox.faults.clear()
    await harbour.pass(30 * MINUTE, 5 * MINUTE)
    expect(await harbour.state(orderId), 'and goes on by itself when the order shows after all').toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('an order that did not leave', () => {
  test('waits while the supplier is away, and is bought when it is back', async () => {
    const harbour = await openHarbour({ sandboxFile: databaseFile() })
    const orderId = await harbour.buy('1001')
    // The offer was confirmed a moment ago, so that only the order itself is refused.
    harbour.ordering.pace.checked.set((await harbour.offer()).productId, harbour.now())
    await harbour.supplierDown()
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({
      state: 'waiting',
      lastClass: 'not_executed',
      maybeChargedAt: null,
    })
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'waiting', maybeChargedAt: null })
    await harbour.supplierUp()
    await harbour.pass(10 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect((await harbour.purchase(orderId)).maybeChargedAt).toBeNull()
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('has its key remembered from the first request that may have run', async () => {
    const harbour = await openHarbour({ sandboxFile: databaseFile() })
    const orderId = await harbour.buy('1001')
    harbour.ordering.pace.checked.set((await harbour.offer()).productId, harbour.now())
    await harbour.supplierDown()
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'waiting' })
    await harbour.pass(24 * 60 * MINUTE, 60 * MINUTE)
    await harbour.supplierUp()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    await harbour.pass(60 * MINUTE, MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(new Set(placed(harbour)).size).toBe(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test.each([
    { form: 'seconds' as const, retryAfter: 40 },
    { form: 'date' as const, retryAfter: 40 },
  ])('waits as long as a 429 asks for in $form', async ({ form, retryAfter }) => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'rate-limit', retryAfter, retryAfterForm: form })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'waiting', maybeChargedAt: null })
    await harbour.pass(38_000)
    expect(harbour.sent).toHaveLength(1)
    await harbour.pass(20_000)
    expect(harbour.sent).toHaveLength(2)
    expect(new Set(placed(harbour)).size).toBe(1)
    await harbour.pass(20_000)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('is not sent while the API key is refused, and people hear of it once an hour', async () => {
    const harbour = await openHarbour({ apiKey: 'sk_test_revoked' })
    const { productId, sku } = await harbour.offer()
    const { orderId } = await harbour.order('1001', [{ sku }])
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'planned', maybeChargedAt: null })
    expect(await harbour.alerts()).toEqual(['unauthorized'])
    // The same when offer and balance need no request, so that the order itself is refused.
    harbour.move(2 * MINUTE)
    const reading = { id: 'b1', readAt: harbour.now(), amountMinor: 100_000, currency: 'EUR' }
    await harbour.db.commit([insertBalance(reading)])
    harbour.ordering.pace.checked.set(productId, harbour.now())
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'waiting', maybeChargedAt: null })
    expect(harbour.sent).toHaveLength(1)
    await harbour.pass(50_000)
    expect(harbour.sent, 'a refused key is not tried every second').toHaveLength(1)
    expect(await harbour.alerts()).toEqual(['unauthorized'])
    await harbour.pass(60 * MINUTE, 5 * MINUTE)
    expect((await harbour.alerts()).length).toBeLessThanOrEqual(3)
    harbour.expectLedger({ charges: 0, keys: 0 })
  })
})

describe('an order that was refused', () => {
  test('is planned anew under another key when it was out of stock', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ generation: 2, holdReason: 'out_of_stock' })
    expect(await harbour.state(orderId)).toBe('open')
    await harbour.pass(5 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect((await harbour.purchases(orderId)).map(({ state }) => state)).toEqual(['rejected', 'fulfilled'])
    expect(new Set(harbour.sent.map((request) => request.idempotencyKey)).size).toBe(2)
    expect(harbour.callbacks('line.failed')).toEqual([])
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('is planned anew when the balance did not cover it, and bought after a top-up', async () => {
    const harbour = await openHarbour()
    const { sku, costMinor } = await harbour.offer()
    // The balance that was read last is not the one that the supplier finds.
    harbour.sandbox.faults.add({ fault: 'insufficient-balance' })
    const { orderId } = await harbour.order('1001', [{ sku }])
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ generation: 2, holdReason: 'balance' })
    harbour.sandbox.world.topUp(costMinor)
    await harbour.pass(5 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('fails with its code, and the store is told what to do', async () => {
    const harbour = await openHarbour()
    const offer = await harbour.offer()
    const { orderId } = await harbour.order('1001', [{ sku: offer.sku }])
    harbour.sandbox.world.offers.change(offer.productId, { withdrawn: true })
    await harbour.pass(10_000)
    expect(await harbour.state(orderId)).toBe('failed')
    expect(harbour.callbacks('line.failed').map(({ data }) => data)).toEqual([
      expect.objectContaining({ line: '1', code: 'gone', advice: expect.stringContaining('refund') }),
    ])
    expect(harbour.callbacks('order.closed').map(({ data }) => data.state)).toEqual(['failed'])
    harbour.expectLedger({ charges: 0, keys: 0 })
  })
})
