import { describe, expect, test } from 'vitest'
import { cancelOrder, unfreeze } from '../../src/ordering/actions.ts'
import { advance } from '../../src/ordering/advance.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { hintPurchase } from '../../src/storage/purchases.ts'
import { currentFreeze } from '../../src/storage/settings.ts'
import { keysOfPurchases } from '../../src/storage/store-orders.ts'
import { defaultDialect, first, type Harbour, openHarbour } from '../support/harbour.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Buys from the supplier behind Quayside's back, under a reference of its choice. */
async function buyBeside(harbour: Harbour, { body }: { body: string }, key: string): Promise<void> {
  const answer = await fetch(`${harbour.sandbox.baseUrl}/orders`, {
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

const known = (harbour: Harbour) => first(harbour.sandbox.world.orders.known(1))

describe("the supplier's list", () => {
  test('may lag behind without a second order', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    harbour.sandbox.faults.add({ fault: 'list-lag', delayMs: 59_000 })
    const orderId = await harbour.buy('1001')
    await harbour.pass(10 * MINUTE, 5_000)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.sent).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('may lag far beyond what is stated while keys are remembered', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    harbour.sandbox.faults.add({ fault: 'list-lag', delayMs: HOUR })
    const orderId = await harbour.buy('1001')
    await harbour.pass(20 * MINUTE, 10_000)
    expect(harbour.sent, 'the repeat brings the earlier result').toHaveLength(2)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('that lags while keys are forgotten leads to a second order, which is found within one sweep', async () => {
    const dialect = defaultDialect()
    const harbour = await openHarbour({ sandboxDialect: { ...dialect, idempotencyMemorySeconds: 60 } })
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    harbour.sandbox.faults.add({ fault: 'list-lag', delayMs: HOUR })
    const orderId = await harbour.buy('1001')
    await harbour.pass(20 * MINUTE, 10_000)
    await harbour.pass(HOUR)
    await sweep(harbour.ordering)
    expect(await harbour.discrepancies()).toEqual(['double_charge'])
    expect(await currentFreeze(harbour.db)).toMatchObject({ actor: 'quayside' })
    await harbour.settle()
    expect(await harbour.alerts()).toEqual(['double_charge', 'freeze'])
    harbour.expectLedger({ charges: 2, keys: 1, perPart: 2 })
    // A person has looked and lifts the freeze: the same two orders are not found again and again.
    await unfreeze(harbour.ordering, 'ann')
    await sweep(harbour.ordering)
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    expect(await harbour.state(orderId)).toBe('fulfilled')
  })

  test('with two orders under one reference stops the purchase and all buying', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    await buyBeside(harbour, await harbour.purchase(orderId), 'somebody-else')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review', supplierOrderId: null })
    expect(await currentFreeze(harbour.db)).toBeDefined()
    const next = await harbour.buy('1002')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(next)).toMatchObject({ holdReason: 'frozen' })
    expect(await harbour.discrepancies()).toEqual(['double_charge'])
    harbour.expectLedger({ charges: 2, keys: 0, perPart: 2 })
  })

  test('with an order that was refused brings it back, and the next attempt is cancelled', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    const [refused] = await harbour.purchases(orderId)
    if (!refused) throw new Error('there is a purchase')
    // The supplier said no and charged all the same.
    await buyBeside(harbour, refused, 'the-same-order')
    await sweep(harbour.ordering)
    await harbour.pass(5 * MINUTE)
    expect((await harbour.purchases(orderId)).map(({ state }) => state)).toEqual(['fulfilled', 'cancelled'])
    expect(harbour.callbacks('order.closed')).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('with an order of a purchase that was cancelled keeps its keys for a person', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    await cancelOrder(harbour.ordering, orderId, 'shop')
    await harbour.pass(10 * MINUTE)
    expect(harbour.callbacks('order.closed').map(({ data }) => data.state)).toEqual(['cancelled'])
    await buyBeside(harbour, await harbour.purchase(orderId), 'it-ran-after-all')
    await sweep(harbour.ordering)
    await harbour.pass(10 * MINUTE)
    const { id, state } = await harbour.purchase(orderId)
    expect(state).not.toBe('cancelled')
    expect(await harbour.db.query(keysOfPurchases([id]))).toHaveLength(1)
    expect(await harbour.state(orderId), 'it is open again until a person decides').toBe('open')
    expect(await harbour.alerts()).toContain('found_after_the_end')
    harbour.expectLedger({ charges: 1, keys: 0 })
    await advance(harbour.ordering, id, () => ({ type: 'hand_over' }), { actor: 'ann' })
    await harbour.pass(MINUTE)
    expect(harbour.callbacks('order.closed').map(({ data }) => data.state)).toEqual(['cancelled', 'fulfilled'])
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('finds by a sweep what deliveries and polling missed', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(30 * MINUTE)
    harbour.sandbox.world.orders.complete(known(harbour))
    expect(await sweep(harbour.ordering)).toMatchObject({ orders: 1, matched: 1, hinted: 1 })
    await harbour.settle()
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(await sweep(harbour.ordering)).toMatchObject({ matched: 1, hinted: 0 })
  })

  test('is not asked about a purchase again and again when a hint is worth nothing', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    const { id } = await harbour.purchase(orderId)
    await harbour.db.commit([hintPurchase(id, harbour.now())])
    expect(await refreshDue(harbour.ordering)).toBe(1)
    expect(await refreshDue(harbour.ordering)).toBe(0)
  })
})
