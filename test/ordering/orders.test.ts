import { describe, expect, test } from 'vitest'
import { retryPurchase } from '../../src/ordering/actions.ts'
import { advance } from '../../src/ordering/advance.ts'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { keysOfPurchases } from '../../src/storage/licence-keys.ts'
import { databaseFile } from '../support/database.ts'
import { first, openTestApp, type TestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const known = (app: TestApp) => first(app.sandbox.world.orders.known(1))

describe('keys of an accepted order', () => {
  test('are handed over as they come', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'partial-keys', first: 2, status: 'open', delayMs: 10 * MINUTE })
    const orderId = await app.buy('1001', { quantity: 5 })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted' })
    app.expectLedger({ charges: 1, keys: 2 })
    await app.pass(30 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    const callbacks = app.callbacks('line.fulfilled').map(({ data }) => [data.delivered, data.complete])
    expect(callbacks).toEqual([
      [2, false],
      [5, true],
    ])
    app.expectLedger({ charges: 1, keys: 5 })
  })

  test('are waited for when an order says completed too early', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'partial-keys', first: 2, delayMs: 30 * MINUTE })
    const orderId = await app.buy('1001', { quantity: 5 })
    await app.pass(20 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted' })
    await app.pass(30 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 5 })
  })

  test('that stay short for an hour are stored and kept for a person', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'partial-keys', first: 2, delayMs: 20 * HOUR })
    const orderId = await app.buy('1001', { quantity: 5 })
    await app.pass(2 * HOUR)
    const { id, state, note } = await app.purchase(orderId)
    expect([state, note]).toEqual(['review', expect.stringContaining('only 2 of 5 keys')])
    expect(await app.db.query(keysOfPurchases([id]))).toHaveLength(2)
    expect(await app.alerts()).toContain('keys_short')
    app.expectLedger({ charges: 1, keys: 0 })
  })

  test('that the supplier lists twice are one key', async () => {
    const app = await openTestApp()
    const { supplier } = app
    app.ordering.supplier.order = async (id) => {
      const order = await supplier.order(id)
      return order && { ...order, keys: order.keys.map(() => first(order.keys)) }
    }
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.pass(2 * HOUR)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    app.expectLedger({ charges: 1, keys: 0 })
  })

  test('that two readers see at the same instant are stored once', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'partial-keys', first: 2, status: 'open', delayMs: HOUR })
    const orderId = await app.buy('1001', { quantity: 4 })
    await app.settle()
    const { id } = await app.purchase(orderId)
    const beside = await app.openProcess('beside')
    app.move(2_000)
    app.sandbox.advance()
    await Promise.all([refreshDue(app.ordering), refreshDue(beside.ordering)])
    expect(await app.db.query(keysOfPurchases([id]))).toHaveLength(2)
    await app.pass(2 * HOUR)
    app.expectLedger({ charges: 1, keys: 4 })
  })

  test('that another line was given are not handed over a second time', async () => {
    const app = await openTestApp()
    const orders = [await app.buy('1001'), await app.buy('1002')]
    await app.settle()
    const { supplier } = app
    const keys = new Map<string, Awaited<ReturnType<typeof supplier.order>>>()
    app.ordering.supplier.order = async (id) => {
      const order = await supplier.order(id)
      if (order && order.keys.length > 0 && keys.size === 0) keys.set(id, order)
      return order && { ...order, keys: order.keys.length > 0 ? ([...keys.values()][0]?.keys ?? []) : [] }
    }
    await app.pass(5 * MINUTE)
    const states = await Promise.all(orders.map(async (id) => (await app.purchase(id)).state))
    expect(states.sort()).toEqual(['fulfilled', 'review'])
    expect(app.shop.duplicates()).toEqual([])
  })
})

describe('the timeline of an order', () => {
  test('had four lines for one request, in their order within one millisecond', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await app.settle()
    const { timeline } = await viewOrder(app.ordering, orderId, { keys: false })
    expect(new Set(timeline.map(({ at }) => at)).size).toBe(1)
    expect(timeline.map(({ what }) => what)).toEqual(['order taken', 'purchase sent', 'purchase accepted'])
  })
})

describe('an accepted order that goes wrong', () => {
  test('tells the store its code and advice, and an operator may buy again', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'failed-order' })
    const orderId = await app.buy('1001')
    await app.pass(2 * MINUTE)
    expect(await app.state(orderId)).toBe('failed')
    expect(app.callbacks('line.failed').map(({ data }) => data)).toEqual([
      expect.objectContaining({ code: 'out_of_stock', state: 'failed', advice: expect.stringMatching(/.+/) }),
    ])
    const { id } = await app.purchase(orderId)
    await retryPurchase(app.ordering, id, 'ann')
    await expect(retryPurchase(app.ordering, id, 'bob')).rejects.toMatchObject({ reason: 'not_retriable' })
    await app.pass(MINUTE)
    const [failed, retried] = await app.purchases(orderId)
    expect(failed).toMatchObject({ state: 'failed', generation: 1 })
    expect(failed?.writtenOffAt, 'the status "failed" does not say that the money is back').not.toBeNull()
    expect(retried).toMatchObject({ state: 'fulfilled', generation: 2 })
    expect(app.callbacks('order.closed').map(({ data }) => data.state)).toEqual(['failed', 'fulfilled'])
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test.each(['first', 'last'])(
    'is bought again by a retry of its %s attempt, which writes the money of the first off',
    async (which) => {
      const app = await openTestApp()
      app.sandbox.faults.add({ fault: 'out-of-stock' })
      const orderId = await app.buy('1001', {})
      await app.settle()
      const [refused, next] = await app.purchases(orderId)
      if (!refused || !next) throw new Error('two generations were expected')
      const late = { id: 'ord_late', status: 'open', agrees: true, ofAnotherLine: false, decided: false } as const
      await advance(app.ordering, refused.id, { input: { type: 'found', orders: [late] } })
      const gone = { type: 'read', status: 'failed', keys: 0, newKeys: 0, keysElsewhere: false, areText: true } as const
      await advance(app.ordering, refused.id, { input: gone })
      await retryPurchase(app.ordering, which === 'first' ? refused.id : next.id, 'test')
      const states = (await app.purchases(orderId)).map(({ state, writtenOffAt }) => [state, writtenOffAt !== null])
      expect(states).toEqual([
        ['failed', true],
        ['cancelled', false],
        ['planned', false],
      ])
    },
  )

  test('is not retried twice by two operators at the same instant', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'failed-order' })
    const orderId = await app.buy('1001')
    await app.pass(2 * MINUTE)
    const { id } = await app.purchase(orderId)
    const tries = await Promise.allSettled([
      retryPurchase(app.ordering, id, 'ann'),
      retryPurchase(app.ordering, id, 'bob'),
    ])
    expect(tries.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    await app.pass(MINUTE)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('is reported once when the supplier knows it no more', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.ordering.supplier.order = async () => undefined
    await app.pass(2 * HOUR)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted' })
    expect(await app.discrepancies()).toEqual(['missing'])
    expect(await app.alerts()).toEqual(['missing'])
  })

  test('is reported once when it stays open for a day', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.pass(30 * HOUR, HOUR)
    expect(await app.discrepancies()).toEqual(['late'])
    expect(await app.alerts()).toEqual(['late'])
    app.sandbox.world.orders.complete(known(app))
    await app.pass(HOUR)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('is reported once when the money comes back after the hand-over', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    app.sandbox.world.orders.refund(known(app))
    for (let time = 0; time < 3; time += 1) {
      await sweep(app.ordering)
      await app.pass(MINUTE)
    }
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    expect(await app.discrepancies()).toEqual(['reversed'])
    expect(await app.alerts()).toEqual(['reversed'])
  })

  test('is read at its own pace when what it says disagrees', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    await app.buy('1001')
    await app.settle()
    const { supplier } = app
    let reads = 0
    app.ordering.supplier.order = async (id) => {
      reads += 1
      const order = await supplier.order(id)
      return order && { ...order, quantity: 99 }
    }
    await app.pass(MINUTE, 1_000)
    expect(reads).toBeGreaterThan(0)
    expect(reads).toBeLessThan(8)
  })

  test('is read ever more seldom while the supplier does not answer', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile() })
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.settle()
    await app.supplierDown()
    await app.pass(10 * MINUTE, 2_000)
    expect(app.lines.filter((line) => line.includes('purchase.error')).length).toBeLessThan(12)
    await app.supplierUp()
    app.sandbox.world.orders.complete(known(app))
    await app.pass(20 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
  })
})
