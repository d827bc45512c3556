import { describe, expect, test } from 'vitest'
import { cancelOrder, unfreeze } from '../../src/ordering/actions.ts'
import { advance } from '../../src/ordering/advance.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { keysOfPurchases } from '../../src/storage/licence-keys.ts'
import { hintPurchase } from '../../src/storage/purchases.ts'
import { defaultDialect, first, openTestApp, type TestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Buys from the supplier behind Quayside's back, under a reference of its choice. */
async function buyBeside(app: TestApp, { body }: { body: string }, key: string): Promise<void> {
  const answer = await fetch(`${app.sandbox.baseUrl}/orders`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': 'sk_test_0123456789abcdef',
      'idempotency-key': key,
    },
    body,
  })
  expect(answer.status).toBe(201)
}

const known = (app: TestApp) => first(app.sandbox.world.orders.known(1))

describe("the supplier's list", () => {
  test('may lag behind without a second order', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: 59_000 })
    const orderId = await app.buy('1001')
    await app.pass(10 * MINUTE, 5_000)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('may lag far beyond what is stated while keys are remembered', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: HOUR })
    const orderId = await app.buy('1001')
    await app.pass(20 * MINUTE, 10_000)
    expect(app.sent, 'the repeat brings the earlier result').toHaveLength(2)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('that lags while keys are forgotten leads to a second order, which is found within one sweep', async () => {
    const dialect = defaultDialect()
    const app = await openTestApp({ sandboxDialect: { ...dialect, idempotencyMemorySeconds: 60 } })
    app.sandbox.faults.add({ fault: 'answer-lost' })
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: HOUR })
    const orderId = await app.buy('1001')
    await app.pass(20 * MINUTE, 10_000)
    await app.pass(HOUR)
    await sweep(app.ordering)
    expect(await app.discrepancies()).toEqual(['double_charge'])
    expect(await currentFreeze(app.db)).toMatchObject({ actor: 'quayside' })
    await app.settle()
    expect(await app.alerts()).toEqual(['double_charge', 'freeze'])
    app.expectLedger({ charges: 2, keys: 1, perPart: 2 })
    // A person has looked and lifts the freeze: the same two orders are not found again and again.
    await unfreeze(app.ordering, 'ann')
    await sweep(app.ordering)
    expect(await currentFreeze(app.db)).toBeUndefined()
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('with two orders under one reference stops the purchase and all buying', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await app.buy('1001')
    await app.settle()
    await buyBeside(app, await app.purchase(orderId), 'somebody-else')
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review', supplierOrderId: null })
    expect(await currentFreeze(app.db)).toBeDefined()
    const next = await app.buy('1002')
    await app.pass(MINUTE)
    expect(await app.purchase(next)).toMatchObject({ holdReason: 'frozen' })
    expect(await app.discrepancies()).toEqual(['double_charge'])
    app.expectLedger({ charges: 2, keys: 0, perPart: 2 })
  })

  test('with an order that was refused brings it back, and the next attempt is cancelled', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await app.buy('1001')
    await app.settle()
    const [refused] = await app.purchases(orderId)
    if (!refused) throw new Error('there is a purchase')
    // The supplier said no and charged all the same.
    await buyBeside(app, refused, 'the-same-order')
    await sweep(app.ordering)
    await app.pass(5 * MINUTE)
    expect((await app.purchases(orderId)).map(({ state }) => state)).toEqual(['fulfilled', 'cancelled'])
    expect(app.callbacks('order.closed')).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('with an order of a purchase that was cancelled keeps its keys for a person', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    await cancelOrder(app.ordering, orderId, 'shop')
    await app.pass(10 * MINUTE)
    expect(app.callbacks('order.closed').map(({ data }) => data.state)).toEqual(['cancelled'])
    await buyBeside(app, await app.purchase(orderId), 'it-ran-after-all')
    await sweep(app.ordering)
    await app.pass(10 * MINUTE)
    const { id, state } = await app.purchase(orderId)
    expect(state).not.toBe('cancelled')
    expect(await app.db.query(keysOfPurchases([id]))).toHaveLength(1)
    expect(await app.state(orderId), 'it is open again until a person decides').toBe('open')
    expect(await app.alerts()).toContain('found_after_the_end')
    app.expectLedger({ charges: 1, keys: 0 })
    await advance(app.ordering, id, { input: { type: 'hand_over' }, actor: 'ann' })
    await app.pass(MINUTE)
    expect(app.callbacks('order.closed').map(({ data }) => data.state)).toEqual(['cancelled', 'fulfilled'])
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('finds by a sweep what deliveries and polling missed', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.pass(30 * MINUTE)
    app.sandbox.world.orders.complete(known(app))
    expect(await sweep(app.ordering)).toMatchObject({ orders: 1, matched: 1, refreshed: 1 })
    await app.settle()
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(await sweep(app.ordering)).toMatchObject({ matched: 1, refreshed: 0 })
  })

  test('is not asked about a purchase again and again when a hint is worth nothing', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    const { id } = await app.purchase(orderId)
    await app.db.commit([hintPurchase(id, app.now())])
    expect(await refreshDue(app.ordering)).toBe(1)
    expect(await refreshDue(app.ordering)).toBe(0)
  })
})
