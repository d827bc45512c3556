import { describe, expect, test } from 'vitest'
import { advance } from '../../src/ordering/advance.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { attemptsOf } from '../../src/storage/evidence.ts'
import { distrustTimes, hintPurchase } from '../../src/storage/purchases.ts'
import { first, openTestApp, type TestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const charges = (app: TestApp) => app.sandbox.world.report().charges.length

describe('a lease', () => {
  test('keeps everybody else away from the row, and a hint that comes meanwhile is not lost', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 600 })
    const orderId = await app.buy('1001')
    const { id } = await app.purchase(orderId)
    const beside = await app.openProcess('beside')
    const { placeOrder } = app.ordering.supplier
    const seen: unknown[] = []
    app.ordering.supplier.placeOrder = async (request) => {
      const before = await app.purchase(orderId)
      await app.db.commit([hintPurchase(id, app.now())])
      seen.push(await advance(beside.ordering, id, { input: { type: 'lost' } }))
      seen.push(await refreshDue(beside.ordering))
      const after = await app.purchase(orderId)
      seen.push(after.state, after.version - before.version)
      return placeOrder(request)
    }
    await app.settle()
    expect(seen).toEqual([undefined, 0, 'sending', 0])
    expect(await app.purchase(orderId)).toMatchObject({ state: 'waiting' })
    const kinds = (await app.db.query(attemptsOf([id]))).map(({ kind }) => kind)
    expect(kinds, 'the supplier is asked although it said that nothing ran').toContain('look_up')
  })

  test('that the same process took for sending outlives a look-up that ends meanwhile', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    const { id } = await app.purchase(orderId)
    await app.db.commit([hintPurchase(id, app.now())])
    const { orders } = app.supplier
    const { placeOrder } = app.ordering.supplier
    const [sending, lookedUp] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let placing: Promise<unknown> | undefined
    let holder: string | null = null
    app.ordering.supplier.placeOrder = async (request) => {
      sending.resolve()
      await lookedUp.promise
      holder = (await app.purchase(orderId)).leaseOwner
      return placeOrder(request)
    }
    app.ordering.supplier.orders = async (query) => {
      const page = await orders(query)
      placing ??= app.round()
      await sending.promise
      return page
    }
    await refreshDue(app.ordering)
    lookedUp.resolve()
    await placing
    expect(holder).toBe('test')
    await app.pass(MINUTE)
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('that ended before the answer came leaves the answer as evidence only', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    const { id } = await app.purchase(orderId)
    const other = await app.openProcess('other')
    const { placeOrder } = app.ordering.supplier
    app.ordering.supplier.placeOrder = async (request) => {
      const placement = await placeOrder(request)
      app.move(200_000)
      await refreshDue(other.ordering)
      return placement
    }
    await app.round()
    const answered = (await app.db.query(attemptsOf([id]))).find(
      ({ stage, kind }) => stage === 'answered' && kind === 'place',
    )
    expect(answered).toMatchObject({ status: 201, supplierOrderId: expect.any(String) })
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('that a process slept through lets no byte leave', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    const { at } = app.ordering
    app.ordering.at = (point) => {
      if (point !== 'intended') return
      app.ordering.at = at
      app.move(200_000)
    }
    await app.round()
    expect(charges(app)).toBe(0)
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('two workers on one database', () => {
  test('buy each order once, whatever gets lost', async () => {
    const app = await openTestApp()
    const { sku } = await app.offer()
    app.sandbox.faults.add({ fault: 'answer-lost', times: 2 })
    app.sandbox.faults.add({ fault: 'error-before', times: 2 })
    app.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: MINUTE, times: 2 })
    const orders: string[] = []
    for (let number = 1; number <= 8; number += 1) {
      orders.push((await app.order(String(number), [{ sku, quantity: 2 }])).orderId)
    }
    const workers = [await app.openProcess('first'), await app.openProcess('second')]
    for (let step = 0; step < 40; step += 1) {
      await Promise.all(workers.map((worker) => worker.round()))
      app.sandbox.advance()
      app.move(step < 10 ? 2_000 : 30_000)
    }
    await app.pass(20 * MINUTE)
    for (const order of orders) expect(await app.state(order)).toBe('fulfilled')
    app.expectLedger({ charges: 8, keys: 16 })
  })

  test('take the same order once', async () => {
    const app = await openTestApp()
    const { sku } = await app.offer()
    const workers = [await app.openProcess('first'), await app.openProcess('second')]
    await Promise.all(workers.map(({ ordering }) => app.order('1001', [{ sku }], ordering)))
    await Promise.all(workers.map((worker) => worker.round()))
    await app.pass(MINUTE)
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('a clock that jumps', () => {
  test.each([-10 * MINUTE, HOUR])('by %i ms sends an open outcome to a person, not out again', async (jump) => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.move(jump)
    await app.db.commit([distrustTimes(app.now())])
    await app.pass(30 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 0, keys: 0 })
  })

  test('still finds the order that was charged', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.move(-10 * MINUTE)
    await app.db.commit([distrustTimes(app.now())])
    await app.pass(30 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(first(app.sent)).toBeDefined()
    app.expectLedger({ charges: 1, keys: 1 })
  })
})
