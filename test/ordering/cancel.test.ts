import { describe, expect, test } from 'vitest'
import { cancelOrder, freeze, retryPurchase } from '../../src/ordering/actions.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { keysOfPurchases, markCancelRequested, requestCancellation } from '../../src/storage/store-orders.ts'
import { first, type Harbour, openHarbour } from '../support/harbour.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const cancel = (harbour: Harbour, orderId: string) => cancelOrder(harbour.ordering, orderId, 'shop')
const closed = (harbour: Harbour) => harbour.callbacks('order.closed').map(({ data }) => data.state)

describe('cancelling a store order', () => {
  test('before anything was sent ends it at once', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    await cancel(harbour, orderId)
    await cancel(harbour, orderId)
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('cancelled')
    expect(harbour.callbacks('line.failed').map(({ data }) => [data.state, data.code])).toEqual([
      ['cancelled', 'cancelled'],
    ])
    expect(closed(harbour)).toEqual(['cancelled'])
    expect(harbour.sent).toEqual([])
    harbour.expectLedger({ charges: 0, keys: 0 })
  })

  test('a second time, after a retry by an operator, ends what was planned since, and the audit says so', async () => {
    const harbour = await openHarbour({ balanceMinor: 0 })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    await cancel(harbour, orderId)
    const { id } = await harbour.purchase(orderId)
    await retryPurchase(harbour.ordering, id, 'operator')
    await cancel(harbour, orderId)
    await cancel(harbour, orderId)
    harbour.sandbox.world.topUp(100_000)
    await harbour.pass(HOUR)
    const generations = await harbour.purchases(orderId)
    expect(generations.map(({ state }) => state)).toEqual(['cancelled', 'cancelled'])
    expect(harbour.sent).toEqual([])
    expect(closed(harbour)).toEqual(['cancelled'])
    const entries = await harbour.db.query(auditOf(orderId))
    expect(entries.map(({ actor, action, detail }) => [actor, action, detail])).toEqual([
      ['shop', 'order.cancel', null],
      ['shop', 'order.cancel', expect.stringContaining(generations[1]?.externalOrderId ?? '')],
    ])
    harbour.expectLedger({ charges: 0, keys: 0 })
  })

  test('a second time keeps the keys of a retry that was bought meanwhile for an operator', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    await cancel(harbour, orderId)
    await retryPurchase(harbour.ordering, (await harbour.purchase(orderId)).id, 'operator')
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    await harbour.settle()
    await cancel(harbour, orderId)
    harbour.sandbox.world.orders.complete(first(harbour.sandbox.world.orders.known(1)))
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ generation: 2, state: 'review' })
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('while it is held ends it too', async () => {
    const harbour = await openHarbour({ balanceMinor: 0 })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    await cancel(harbour, orderId)
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('cancelled')
    harbour.expectLedger({ charges: 0, keys: 0 })
  })

  test('by a process that ends right after it was asked is finished by the next one', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    await harbour.db.commit([markCancelRequested(orderId, harbour.now()), requestCancellation(orderId, harbour.now())])
    await harbour.restart()
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('cancelled')
    harbour.expectLedger({ charges: 0, keys: 0 })
  })

  test('while it is about to be sent is not overtaken by the request', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    harbour.ordering.at = (point) => {
      // Commits of one turn run in arrival order: this one comes before the intent.
      if (point === 'intending') void harbour.db.commit([requestCancellation(orderId, harbour.now())])
    }
    await harbour.settle()
    await harbour.pass(10_000)
    expect(await harbour.state(orderId), 'nobody waits for the lease to end').toBe('cancelled')
    expect(harbour.sent).toEqual([])
  })

  test('whose outcome is unknown ends it once its absence is proven, without a repeat', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    await cancel(harbour, orderId)
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'unknown' })
    await harbour.pass(10 * MINUTE)
    expect(await harbour.state(orderId)).toBe('cancelled')
    expect(harbour.sent).toHaveLength(1)
    expect(closed(harbour)).toEqual(['cancelled'])
    harbour.expectLedger({ charges: 0, keys: 0 })
  })

  test('whose absence is proven ends it at its next look, without a wait for the schedule', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    // Its absence is proven, and the freeze keeps it from being sent again.
    await freeze(harbour.ordering, 'a look at the books', 'operator')
    await harbour.pass(20 * MINUTE)
    const { state, refreshAt } = await harbour.purchase(orderId)
    expect(state).toBe('unknown')
    expect(refreshAt).toBeGreaterThan(harbour.now() + 3 * MINUTE)
    const woken: string[] = []
    harbour.ordering.wake = (pump) => woken.push(pump)
    await cancel(harbour, orderId)
    expect(woken).toContain('refresh')
    await harbour.settle()
    expect(await harbour.state(orderId)).toBe('cancelled')
    expect(harbour.sent).toHaveLength(1)
    harbour.expectLedger({ charges: 0, keys: 0 })
  })

  test('whose outcome is unknown keeps the keys for a person when it was charged', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    await cancel(harbour, orderId)
    await harbour.pass(10 * MINUTE)
    const { id, state } = await harbour.purchase(orderId)
    expect(state).toBe('review')
    expect(await harbour.db.query(keysOfPurchases([id]))).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('after it was accepted keeps the keys for a person', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001', { quantity: 2 })
    await harbour.settle()
    await cancel(harbour, orderId)
    harbour.sandbox.world.orders.complete(first(harbour.sandbox.world.orders.known(1)))
    await harbour.pass(10 * MINUTE)
    const { id, state, note } = await harbour.purchase(orderId)
    expect([state, note]).toEqual(['review', expect.stringContaining('cancelled by the store')])
    expect(await harbour.db.query(keysOfPurchases([id]))).toHaveLength(2)
    expect(await harbour.alerts()).toContain('completed_and_cancelled')
    expect(await harbour.state(orderId)).toBe('open')
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('after some of its keys came stops the rest', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 30 * MINUTE })
    const orderId = await harbour.buy('1001', { quantity: 3 })
    await harbour.pass(MINUTE)
    await cancel(harbour, orderId)
    await harbour.pass(2 * HOUR)
    const { id, state } = await harbour.purchase(orderId)
    expect(state).toBe('review')
    expect(await harbour.db.query(keysOfPurchases([id]))).toHaveLength(3)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('after all its keys left while the order was open gives an operator nothing to decide', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'partial-keys', first: 2, status: 'open', delayMs: 30 * MINUTE })
    const orderId = await harbour.buy('1001', { quantity: 2 })
    await harbour.pass(MINUTE)
    harbour.expectLedger({ charges: 1, keys: 2 })
    await cancel(harbour, orderId)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'accepted' })
    await harbour.pass(2 * HOUR)
    expect(await harbour.purchase(orderId)).toMatchObject({
      state: 'fulfilled',
      note: expect.stringContaining('cancelled by the store after the hand-over began'),
    })
    expect(await harbour.alerts()).not.toContain('completed_and_cancelled')
    expect(closed(harbour)).toEqual(['fulfilled'])
    harbour.expectLedger({ charges: 1, keys: 2 })
  })

  test('after it was completed, before its keys left, keeps them for a person', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.move(2_000)
    harbour.sandbox.advance()
    await refreshDue(harbour.ordering)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'completed', handOverBegunAt: null })
    // The process ends between the request and what follows from it.
    await harbour.db.commit([requestCancellation(orderId, harbour.now())])
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('after its keys were handed over changes nothing', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    await harbour.pass(10_000)
    await cancel(harbour, orderId)
    await harbour.pass(10 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(closed(harbour)).toEqual(['fulfilled'])
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('the deadline of a purchase', () => {
  test('ends what could not be bought in time and tells the store so', async () => {
    const harbour = await openHarbour({ balanceMinor: 0, policy: { deadlineMs: HOUR } })
    const orderId = await harbour.buy('1001')
    await harbour.pass(59 * MINUTE)
    expect(await harbour.state(orderId)).toBe('open')
    await harbour.pass(2 * MINUTE)
    expect(await harbour.state(orderId)).toBe('cancelled')
    expect(harbour.callbacks('line.failed').map(({ data }) => data.code)).toEqual(['deadline'])
    expect(closed(harbour)).toEqual(['cancelled'])
    harbour.sandbox.world.topUp(100_000)
    await harbour.pass(HOUR)
    harbour.expectLedger({ charges: 0, keys: 0 })
  })

  test('does not end what may have been charged', async () => {
    const harbour = await openHarbour({ policy: { deadlineMs: MINUTE } })
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(10 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})
