import { describe, expect, test } from 'vitest'
import { cancelOrder } from '../src/ordering/operate.ts'
import { refreshDue } from '../src/ordering/refresh.ts'
import { keysOfPurchases } from '../src/storage/licence-keys.ts'
import { requestCancellation } from '../src/storage/purchases.ts'
import { markCancelRequested } from '../src/storage/store-orders.ts'
import { first, type Harbour, openHarbour } from './harbour.ts'

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
