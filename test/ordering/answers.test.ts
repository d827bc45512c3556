import { describe, expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { insertBalance } from '../../src/storage/balance.ts'
import { attemptsOf } from '../../src/storage/evidence.ts'
import { databaseFile, memoryDatabase } from '../support/database.ts'
import { defaultDialect, first, openTestApp, type TestApp, until } from '../support/test-app.ts'

const MINUTE = 60_000

/** Requests time out after half a second of real time, so that a slow answer is cheap to wait for. */
const hasty = () => ({ ...defaultDialect(), settleSeconds: 1.5, listLagSeconds: 1, scanGapSeconds: 1 })

const placed = (app: TestApp) => app.sent.map(({ idempotencyKey, body }) => `${idempotencyKey} ${body}`)

describe('an answer that the database does not take', () => {
  test('leaves its purchase in sending no longer than until a commit succeeds again', async () => {
    const db = memoryDatabase()
    let isFull = false
    const commit: typeof db.commit = (changes) =>
      isFull ? Promise.reject(new Failure('unavailable', 'no space left on device')) : db.commit(changes)
    const app = await openTestApp({ database: { ...db, commit } })
    app.ordering.at = (point) => {
      if (point === 'answered') isFull = true
    }
    const orderId = await app.buy('1001')
    await app.settle()
    expect((await app.purchase(orderId)).state).toBe('sending')
    isFull = false
    app.ordering.at = () => undefined
    await app.pass(5_000)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(1)
    const { id } = await app.purchase(orderId)
    const answered = (await app.db.query(attemptsOf([id]))).filter(
      ({ kind, stage }) => kind === 'place' && stage === 'answered',
    )
    expect(answered).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('an order whose answer is lost', () => {
  test('is found by a look-up and not sent again', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown', supplierOrderId: null })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 2 })
  })

  test('is found when the supplier charged and answered with a fault', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-after', kind: 'unavailable' })
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('is sent again with the same key and bytes once two scans have not found it', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.settle()
    // Requests settle within 90 s and show within another 60 s; then two scans 60 s apart.
    await app.pass(200_000)
    expect(app.sent, 'nothing is repeated before its absence is proven').toHaveLength(1)
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(2)
    expect(new Set(placed(app)).size).toBe(1)
    const { id, sends, maybeChargedAt } = await app.purchase(orderId)
    const digests = (await app.db.query(attemptsOf([id]))).filter((attempt) => attempt.stage === 'sent')
    expect(digests.map((attempt) => attempt.requestDigest)).toEqual(Array(2).fill(first(digests).requestDigest))
    expect(sends).toBe(2)
    expect(maybeChargedAt).not.toBeNull()
    app.expectLedger({ charges: 1, keys: 2 })
  })

  test('goes to a person when even its repeat is refused', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before' })
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await app.buy('1001')
    await app.pass(20 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review', lastClass: 'refused', generation: 1 })
    expect(app.sent).toHaveLength(2)
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test.each(['before', 'after'] as const)('is found when it came after the deadline (slow %s)', async (stage) => {
    const app = await openTestApp({ dialect: hasty() })
    app.sandbox.faults.add({ fault: 'slow', stage, delayMs: 1_000 })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
    await until(() => app.sandbox.world.report().charges.length === 1)
    await app.pass(30_000)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('goes to a person when the key may be forgotten before absence is proven', async () => {
    const app = await openTestApp({ dialect: { ...defaultDialect(), idempotencyMemorySeconds: 120 } })
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.pass(20 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review', supplierOrderId: null })
    expect(app.sent).toHaveLength(1)
    expect(await app.alerts()).toContain('absent_and_not_safe')
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('goes to a person when the list cannot be read for a day', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.sandbox.faults.add({ fault: 'error-before', match: { path: '/orders', method: 'GET' }, times: 10_000 })
    await app.pass(25 * 60 * MINUTE, 30 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    app.sandbox.faults.clear()
    await app.pass(30 * MINUTE, 5 * MINUTE)
    expect(await app.state(orderId), 'and goes on by itself when the order shows after all').toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('an order that did not leave', () => {
  test('waits while the supplier is away, and is bought when it is back', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile() })
    const orderId = await app.buy('1001')
    // The offer was confirmed a moment ago, so that only the order itself is refused.
    app.ordering.pace.checked.set((await app.offer()).productId, app.now())
    await app.supplierDown()
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'waiting',
      lastClass: 'not_executed',
      maybeChargedAt: null,
    })
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'waiting', maybeChargedAt: null })
    await app.supplierUp()
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect((await app.purchase(orderId)).maybeChargedAt).toBeNull()
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('has its key remembered from the first request that may have run', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile() })
    const orderId = await app.buy('1001')
    app.ordering.pace.checked.set((await app.offer()).productId, app.now())
    await app.supplierDown()
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'waiting' })
    await app.pass(24 * 60 * MINUTE, 60 * MINUTE)
    await app.supplierUp()
    app.sandbox.faults.add({ fault: 'error-before' })
    await app.pass(60 * MINUTE, MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(new Set(placed(app)).size).toBe(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test.each([
    { form: 'seconds' as const, retryAfter: 40 },
    { form: 'date' as const, retryAfter: 40 },
  ])('waits as long as a 429 asks for in $form', async ({ form, retryAfter }) => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'rate-limit', retryAfter, retryAfterForm: form })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'waiting', maybeChargedAt: null })
    await app.pass(38_000)
    expect(app.sent).toHaveLength(1)
    await app.pass(20_000)
    expect(app.sent).toHaveLength(2)
    expect(new Set(placed(app)).size).toBe(1)
    await app.pass(20_000)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('is not sent while the API key is refused, and people hear of it once an hour', async () => {
    const app = await openTestApp({ apiKey: 'sk_test_revoked' })
    const { productId, sku } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }])
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', maybeChargedAt: null })
    expect(await app.alerts()).toEqual(['unauthorized'])
    // The same when offer and balance need no request, so that the order itself is refused.
    app.move(2 * MINUTE)
    const reading = { id: 'b1', readAt: app.now(), amountMinor: 100_000, currency: 'EUR' }
    await app.db.commit([insertBalance(reading)])
    app.ordering.pace.checked.set(productId, app.now())
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'waiting', maybeChargedAt: null })
    expect(app.sent).toHaveLength(1)
    await app.pass(50_000)
    expect(app.sent, 'a refused key is not tried every second').toHaveLength(1)
    expect(await app.alerts()).toEqual(['unauthorized'])
    await app.pass(60 * MINUTE, 5 * MINUTE)
    expect((await app.alerts()).length).toBeLessThanOrEqual(3)
    app.expectLedger({ charges: 0, keys: 0 })
  })
})

describe('an order that was refused', () => {
  test('is planned again under another key when it was out of stock', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ generation: 2, holdReason: 'out_of_stock' })
    expect(await app.state(orderId)).toBe('open')
    await app.pass(5 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect((await app.purchases(orderId)).map(({ state }) => state)).toEqual(['rejected', 'fulfilled'])
    expect(new Set(app.sent.map((request) => request.idempotencyKey)).size).toBe(2)
    expect(app.callbacks('line.failed')).toEqual([])
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('is planned again when the balance did not cover it, and bought after a top-up', async () => {
    const app = await openTestApp()
    const { sku, costMinor } = await app.offer()
    // The balance that was read last is not the one that the supplier finds.
    app.sandbox.faults.add({ fault: 'insufficient-balance' })
    const { orderId } = await app.order('1001', [{ sku }])
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ generation: 2, holdReason: 'balance' })
    app.sandbox.world.topUp(costMinor)
    await app.pass(5 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('fails with its code, and the store gets advice', async () => {
    const app = await openTestApp()
    const offer = await app.offer()
    const { orderId } = await app.order('1001', [{ sku: offer.sku }])
    app.sandbox.world.offers.change(offer.productId, { withdrawn: true })
    await app.pass(10_000)
    expect(await app.state(orderId)).toBe('failed')
    expect(app.callbacks('line.failed').map(({ data }) => data)).toEqual([
      expect.objectContaining({ line: '1', code: 'gone', advice: expect.stringContaining('refund') }),
    ])
    expect(app.callbacks('order.closed').map(({ data }) => data.state)).toEqual(['failed'])
    app.expectLedger({ charges: 0, keys: 0 })
  })
})
