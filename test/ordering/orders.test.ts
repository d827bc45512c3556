import { describe, expect, test } from 'vitest'
import { retryPurchase } from '../../src/ordering/actions.ts'
import { advance } from '../../src/ordering/advance.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { keysOfPurchases } from '../../src/storage/store-orders.ts'
import { databaseFile } from '../support/database.ts'
import { first, type Harbour, openHarbour } from '../support/harbour.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const known = (harbour: Harbour) => first(harbour.sandbox.world.orders.known(1))

describe('keys of an accepted order', () => {
  test('are handed over as they come', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'partial-keys', first: 2, status: 'open', delayMs: 10 * MINUTE })
    const orderId = await harbour.buy('1001', { quantity: 5 })
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'accepted' })
    harbour.expectLedger({ charges: 1, keys: 2 })
    await harbour.pass(30 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    const told = harbour.callbacks('line.fulfilled').map(({ data }) => [data.delivered, data.complete])
    expect(told).toEqual([
      [2, false],
      [5, true],
    ])
    harbour.expectLedger({ charges: 1, keys: 5 })
  })

  test('are waited for when an order says completed too early', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'partial-keys', first: 2, delayMs: 30 * MINUTE })
    const orderId = await harbour.buy('1001', { quantity: 5 })
    await harbour.pass(20 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'accepted' })
    await harbour.pass(30 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 5 })
  })

  test('that stay short for an hour are stored and kept for a person', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'partial-keys', first: 2, delayMs: 20 * HOUR })
    const orderId = await harbour.buy('1001', { quantity: 5 })
    await harbour.pass(2 * HOUR)
    const { id, state, note } = await harbour.purchase(orderId)
    expect([state, note]).toEqual(['review', expect.stringContaining('only 2 of 5 keys')])
    expect(await harbour.db.query(keysOfPurchases([id]))).toHaveLength(2)
    expect(await harbour.alerts()).toContain('keys_short')
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('that the supplier lists twice are one key', async () => {
    const harbour = await openHarbour()
    const { supplier } = harbour
    harbour.ordering.supplier.order = async (id) => {
      const order = await supplier.order(id)
      return order && { ...order, keys: order.keys.map(() => first(order.keys)) }
    }
    const orderId = await harbour.buy('1001', { quantity: 2 })
    await harbour.pass(2 * HOUR)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('that two readers see at the same instant are stored once', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'partial-keys', first: 2, status: 'open', delayMs: HOUR })
    const orderId = await harbour.buy('1001', { quantity: 4 })
    await harbour.settle()
    const { id } = await harbour.purchase(orderId)
    const beside = await harbour.openProcess('beside')
    harbour.move(2_000)
    harbour.sandbox.advance()
    await Promise.all([refreshDue(harbour.ordering), refreshDue(beside.ordering)])
    expect(await harbour.db.query(keysOfPurchases([id]))).toHaveLength(2)
    await harbour.pass(2 * HOUR)
    harbour.expectLedger({ charges: 1, keys: 4 })
  })

  test('that another line was given are not handed over a second time', async () => {
    const harbour = await openHarbour()
    const orders = [await harbour.buy('1001'), await harbour.buy('1002')]
    await harbour.settle()
    const { supplier } = harbour
    const keys = new Map<string, Awaited<ReturnType<typeof supplier.order>>>()
    harbour.ordering.supplier.order = async (id) => {
      const order = await supplier.order(id)
      if (order && order.keys.length > 0 && keys.size === 0) keys.set(id, order)
      return order && { ...order, keys: order.keys.length > 0 ? ([...keys.values()][0]?.keys ?? []) : [] }
    }
    await harbour.pass(5 * MINUTE)
    const states = await Promise.all(orders.map(async (id) => (await harbour.purchase(id)).state))
    expect(states.sort()).toEqual(['fulfilled', 'review'])
    expect(harbour.shop.duplicates()).toEqual([])
  })
})

describe('an accepted order that goes wrong', () => {
  test('tells the store its code and advice, and an operator may buy anew', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'failed-order' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('failed')
    expect(harbour.callbacks('line.failed').map(({ data }) => data)).toEqual([
      expect.objectContaining({ code: 'out_of_stock', state: 'failed', advice: expect.stringMatching(/.+/) }),
    ])
    const { id } = await harbour.purchase(orderId)
    await retryPurchase(harbour.ordering, id, 'ann')
    await expect(retryPurchase(harbour.ordering, id, 'bob')).rejects.toMatchObject({ reason: 'not_retriable' })
    await harbour.pass(MINUTE)
    const [failed, retried] = await harbour.purchases(orderId)
    expect(failed).toMatchObject({ state: 'failed', generation: 1 })
    expect(failed?.writtenOffAt, 'the status "failed" does not say that the money is back').not.toBeNull()
    expect(retried).toMatchObject({ state: 'fulfilled', generation: 2 })
    expect(harbour.callbacks('order.closed').map(({ data }) => data.state)).toEqual(['failed', 'fulfilled'])
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('is bought anew only after a decision on the generation that may have been charged', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await harbour.buy('1001', {})
    await harbour.settle()
    const [refused, next] = await harbour.purchases(orderId)
    if (!refused || !next) throw new Error('two generations were expected')
    const late = { id: 'ord_late', status: 'open', agrees: true, ofAnotherLine: false, decided: false } as const
    await advance(harbour.ordering, refused.id, () => ({ type: 'found', orders: [late] }))
    const gone = { type: 'read', status: 'failed', keys: 0, newKeys: 0, keysElsewhere: false } as const
    await advance(harbour.ordering, refused.id, () => gone)
    await expect(retryPurchase(harbour.ordering, next.id, 'test')).rejects.toThrow('generation 1 of it')
    await retryPurchase(harbour.ordering, refused.id, 'test')
    const states = (await harbour.purchases(orderId)).map(({ state, writtenOffAt }) => [state, writtenOffAt !== null])
    expect(states).toEqual([
      ['failed', true],
      ['cancelled', false],
      ['planned', false],
    ])
  })

  test('is not retried twice by two operators at the same instant', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'failed-order' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    const { id } = await harbour.purchase(orderId)
    const tries = await Promise.allSettled([
      retryPurchase(harbour.ordering, id, 'ann'),
      retryPurchase(harbour.ordering, id, 'bob'),
    ])
    expect(tries.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    await harbour.pass(MINUTE)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('is reported once when the supplier knows it no more', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.ordering.supplier.order = async () => undefined
    await harbour.pass(2 * HOUR)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'accepted' })
    expect(await harbour.discrepancies()).toEqual(['missing'])
    expect(await harbour.alerts()).toEqual(['missing'])
  })

  test('is reported once when it stays open for a day', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(30 * HOUR, HOUR)
    expect(await harbour.discrepancies()).toEqual(['late'])
    expect(await harbour.alerts()).toEqual(['late'])
    harbour.sandbox.world.orders.complete(known(harbour))
    await harbour.pass(HOUR)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('is reported once when the money comes back after the hand-over', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    harbour.sandbox.world.orders.refund(known(harbour))
    for (let time = 0; time < 3; time += 1) {
      await sweep(harbour.ordering)
      await harbour.pass(MINUTE)
    }
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    expect(await harbour.discrepancies()).toEqual(['reversed'])
    expect(await harbour.alerts()).toEqual(['reversed'])
  })

  test('is read at its own pace when what it says disagrees', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    await harbour.buy('1001')
    await harbour.settle()
    const { supplier } = harbour
    let reads = 0
    harbour.ordering.supplier.order = async (id) => {
      reads += 1
      const order = await supplier.order(id)
      return order && { ...order, quantity: 99 }
    }
    await harbour.pass(MINUTE, 1_000)
    expect(reads).toBeGreaterThan(0)
    expect(reads).toBeLessThan(8)
  })

  test('is read ever more seldom while the supplier does not answer', async () => {
    const harbour = await openHarbour({ sandboxFile: databaseFile() })
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    await harbour.supplierDown()
    await harbour.pass(10 * MINUTE, 2_000)
    expect(harbour.lines.filter((line) => line.includes('purchase.error')).length).toBeLessThan(12)
    await harbour.supplierUp()
    harbour.sandbox.world.orders.complete(known(harbour))
    await harbour.pass(20 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
  })
})
