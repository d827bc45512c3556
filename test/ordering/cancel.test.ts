import { eq } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { cancelOrder, retryPurchase } from '../../src/ordering/actions.ts'
import { freeze } from '../../src/ordering/freeze.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { settleSoon } from '../../src/storage/entitlements.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { keysOfPurchases } from '../../src/storage/licence-keys.ts'
import { purchases } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { markCancelRequested, markReopened, requestCancellation } from '../../src/storage/store-orders.ts'
import { first, openTestApp, type TestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const cancel = (app: TestApp, orderId: string) => cancelOrder(app.ordering, orderId, 'shop')
const closed = (app: TestApp) => app.callbacks('order.closed').map(({ data }) => data.state)

describe('cancelling a store order', () => {
  test('before anything was sent ends it at once', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await cancel(app, orderId)
    await cancel(app, orderId)
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('cancelled')
    expect(app.callbacks('line.failed').map(({ data }) => [data.state, data.code])).toEqual([
      ['cancelled', 'cancelled'],
    ])
    expect(closed(app)).toEqual(['cancelled'])
    expect(app.sent).toEqual([])
    app.expectLedger({ charges: 0, keys: 0 })
  })

  // As two transactions at READ COMMITTED: neither sees what the other has not committed.
  test('at the instant in which a further try was planned, which misses the mark, buys nothing all the same', async () => {
    const app = await openTestApp({ balanceMinor: 0 })
    const orderId = await app.buy('1001')
    await app.settle()
    await cancel(app, orderId)
    await app.settle()
    await app.db.commit([
      {
        statement: build
          .update(purchases)
          .set({ state: 'waiting', cancelRequestedAt: null, note: null, holdReason: null })
          .where(eq(purchases.orderId, orderId)),
        rows: 1,
      },
      settleSoon(orderId, app.now()),
      markReopened(orderId),
    ])
    const failures = () => app.callbacks('line.failed').length
    const before = failures()
    app.sandbox.world.topUp(100_000)
    await app.pass(HOUR)
    expect(await app.state(orderId)).toBe('cancelled')
    expect(failures(), 'the store hears of this try as well').toBe(before + 1)
    expect(app.sent).toEqual([])
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('a second time, after a retry by an operator, ends what was planned since, and the audit says so', async () => {
    const app = await openTestApp({ balanceMinor: 0 })
    const orderId = await app.buy('1001')
    await app.settle()
    await cancel(app, orderId)
    const { id } = await app.purchase(orderId)
    await retryPurchase(app.ordering, id, 'operator')
    await cancel(app, orderId)
    await cancel(app, orderId)
    app.sandbox.world.topUp(100_000)
    await app.pass(HOUR)
    const generations = await app.purchases(orderId)
    expect(generations.map(({ state }) => state)).toEqual(['cancelled', 'cancelled'])
    expect(app.sent).toEqual([])
    expect(closed(app)).toEqual(['cancelled'])
    const entries = await app.db.query(auditOf(orderId))
    expect(entries.map(({ actor, action, detail }) => [actor, action, detail])).toEqual([
      ['shop', 'order.cancel', null],
      ['shop', 'order.cancel', expect.stringContaining(generations[1]?.externalOrderId ?? '')],
    ])
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('a second time keeps the keys of a retry that was bought meanwhile for an operator', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await cancel(app, orderId)
    await retryPurchase(app.ordering, (await app.purchase(orderId)).id, 'operator')
    app.sandbox.faults.add({ fault: 'hold-open' })
    await app.settle()
    await cancel(app, orderId)
    app.sandbox.world.orders.complete(first(app.sandbox.world.orders.known(1)))
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ generation: 2, state: 'review' })
    app.expectLedger({ charges: 1, keys: 0 })
  })

  test('while it is held ends it too', async () => {
    const app = await openTestApp({ balanceMinor: 0 })
    const orderId = await app.buy('1001')
    await app.settle()
    await cancel(app, orderId)
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('cancelled')
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('by a process that ends right after it was asked is finished by the next one', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await app.db.commit([markCancelRequested(orderId, app.now()), requestCancellation(orderId, app.now())])
    await app.restart()
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('cancelled')
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('while it is about to be sent is not overtaken by the request', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    app.ordering.at = (point) => {
      // Commits of one turn run in arrival order: this one comes before the intent.
      if (point === 'intending') void app.db.commit([requestCancellation(orderId, app.now())])
    }
    await app.settle()
    await app.pass(10_000)
    expect(await app.state(orderId), 'without a wait for the lease to end').toBe('cancelled')
    expect(app.sent).toEqual([])
  })

  test('whose outcome is unknown ends it once its absence is proven, without a repeat', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    await cancel(app, orderId)
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('cancelled')
    expect(app.sent).toHaveLength(1)
    expect(closed(app)).toEqual(['cancelled'])
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('whose absence is proven ends it at its next look, without a wait for the schedule', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    // Its absence is proven, and the freeze keeps it from being sent again.
    await freeze(app.ordering, 'a look at the books', 'operator')
    await app.pass(20 * MINUTE)
    const { state, refreshAt } = await app.purchase(orderId)
    expect(state).toBe('unknown')
    expect(refreshAt).toBeGreaterThan(app.now() + 3 * MINUTE)
    const woken: string[] = []
    app.ordering.wake = (pump) => woken.push(pump)
    await cancel(app, orderId)
    expect(woken).toContain('refresh')
    await app.settle()
    expect(await app.state(orderId)).toBe('cancelled')
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('whose outcome is unknown keeps the keys for a person when it was charged', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await app.buy('1001')
    await app.settle()
    await cancel(app, orderId)
    await app.pass(10 * MINUTE)
    const { id, state } = await app.purchase(orderId)
    expect(state).toBe('review')
    expect(await app.db.query(keysOfPurchases([id]))).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 0 })
  })

  test('after it was accepted keeps the keys for a person', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.settle()
    await cancel(app, orderId)
    app.sandbox.world.orders.complete(first(app.sandbox.world.orders.known(1)))
    await app.pass(10 * MINUTE)
    const { id, state, note } = await app.purchase(orderId)
    expect([state, note]).toEqual(['review', expect.stringContaining('cancelled after the keys had been bought')])
    expect(await app.db.query(keysOfPurchases([id]))).toHaveLength(2)
    expect(await app.alerts()).toContain('completed_and_cancelled')
    expect(await app.state(orderId)).toBe('open')
    app.expectLedger({ charges: 1, keys: 0 })
  })

  test('after some of its keys came stops the rest', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 30 * MINUTE })
    const orderId = await app.buy('1001', { quantity: 3 })
    await app.pass(MINUTE)
    await cancel(app, orderId)
    await app.pass(2 * HOUR)
    const { id, state } = await app.purchase(orderId)
    expect(state).toBe('review')
    expect(await app.db.query(keysOfPurchases([id]))).toHaveLength(3)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('after all its keys left while the order was open gives an operator nothing to decide', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'partial-keys', first: 2, status: 'open', delayMs: 30 * MINUTE })
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.pass(MINUTE)
    app.expectLedger({ charges: 1, keys: 2 })
    await cancel(app, orderId)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted' })
    await app.pass(2 * HOUR)
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'fulfilled',
      note: expect.stringContaining('cancelled after the hand-over began'),
    })
    expect(await app.alerts()).not.toContain('completed_and_cancelled')
    expect(closed(app)).toEqual(['fulfilled'])
    app.expectLedger({ charges: 1, keys: 2 })
  })

  test('after it was completed, before its keys left, keeps them for a person', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await app.settle()
    app.move(2_000)
    app.sandbox.advance()
    await refreshDue(app.ordering)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'completed', handOverBegunAt: null })
    // The process ends between the request and what follows from it.
    await app.db.commit([requestCancellation(orderId, app.now())])
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    app.expectLedger({ charges: 1, keys: 0 })
  })

  test('after its keys were handed over changes nothing', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await app.pass(10_000)
    await cancel(app, orderId)
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(closed(app)).toEqual(['fulfilled'])
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('the deadline of a purchase', () => {
  test('ends what could not be bought in time and tells the store so', async () => {
    const app = await openTestApp({ balanceMinor: 0, policy: { deadlineMs: HOUR } })
    const orderId = await app.buy('1001')
    await app.pass(59 * MINUTE)
    expect(await app.state(orderId)).toBe('open')
    await app.pass(2 * MINUTE)
    expect(await app.state(orderId)).toBe('cancelled')
    expect(app.callbacks('line.failed').map(({ data }) => data.code)).toEqual(['deadline'])
    expect(closed(app)).toEqual(['cancelled'])
    app.sandbox.world.topUp(100_000)
    await app.pass(HOUR)
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('does not end what may have been charged', async () => {
    const app = await openTestApp({ policy: { deadlineMs: MINUTE } })
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })
})
