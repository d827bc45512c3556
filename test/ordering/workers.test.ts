import { describe, expect, test } from 'vitest'
import { advance } from '../../src/ordering/advance.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { attemptsOf } from '../../src/storage/evidence.ts'
import { distrustTimes, hintPurchase } from '../../src/storage/purchases.ts'
import { first, type Harbour, openHarbour } from '../support/harbour.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const charges = (harbour: Harbour) => harbour.sandbox.world.report().charges.length

describe('a lease', () => {
  test('keeps everybody else away from the row, and a hint that comes meanwhile is not lost', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 600 })
    const orderId = await harbour.buy('1001')
    const { id } = await harbour.purchase(orderId)
    const beside = await harbour.openProcess('beside')
    const { placeOrder } = harbour.ordering.supplier
    const seen: unknown[] = []
    harbour.ordering.supplier.placeOrder = async (request) => {
      const before = await harbour.purchase(orderId)
      await harbour.db.commit([hintPurchase(id, harbour.now())])
      seen.push(await advance(beside.ordering, id, () => ({ type: 'lost' })))
      seen.push(await refreshDue(beside.ordering))
      const after = await harbour.purchase(orderId)
      seen.push(after.state, after.version - before.version)
      return placeOrder(request)
    }
    await harbour.settle()
    expect(seen).toEqual([undefined, 0, 'sending', 0])
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'waiting' })
    const kinds = (await harbour.db.query(attemptsOf([id]))).map(({ kind }) => kind)
    expect(kinds, 'the supplier is asked although it said that nothing ran').toContain('look_up')
  })

  test('that the same process took for sending outlives a look-up that ends meanwhile', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    const { id } = await harbour.purchase(orderId)
    await harbour.db.commit([hintPurchase(id, harbour.now())])
    const { orders } = harbour.supplier
    const { placeOrder } = harbour.ordering.supplier
    const [sending, lookedUp] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let placing: Promise<unknown> | undefined
    let holder: string | null = null
    harbour.ordering.supplier.placeOrder = async (request) => {
      sending.resolve()
      await lookedUp.promise
      holder = (await harbour.purchase(orderId)).leaseOwner
      return placeOrder(request)
    }
    harbour.ordering.supplier.orders = async (query) => {
      const page = await orders(query)
      placing ??= harbour.round()
      await sending.promise
      return page
    }
    await refreshDue(harbour.ordering)
    lookedUp.resolve()
    await placing
    expect(holder).toBe('test')
    await harbour.pass(MINUTE)
    expect(harbour.sent).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('that ended before the answer came leaves the answer as evidence only', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    const { id } = await harbour.purchase(orderId)
    const other = await harbour.openProcess('other')
    const { placeOrder } = harbour.ordering.supplier
    harbour.ordering.supplier.placeOrder = async (request) => {
      const placement = await placeOrder(request)
      harbour.move(200_000)
      await refreshDue(other.ordering)
      return placement
    }
    await harbour.round()
    const answered = (await harbour.db.query(attemptsOf([id]))).find(
      ({ stage, kind }) => stage === 'answered' && kind === 'place',
    )
    expect(answered).toMatchObject({ status: 201, supplierOrderId: expect.any(String) })
    await harbour.pass(10 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.sent).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('that a process slept through lets no byte leave', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    const { at } = harbour.ordering
    harbour.ordering.at = (point) => {
      if (point !== 'intended') return
      harbour.ordering.at = at
      harbour.move(200_000)
    }
    await harbour.round()
    expect(charges(harbour)).toBe(0)
    await harbour.pass(10 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('two workers on one database', () => {
  test('buy each order once, whatever gets lost', async () => {
    const harbour = await openHarbour()
    const { sku } = await harbour.offer()
    harbour.sandbox.faults.add({ fault: 'answer-lost', times: 2 })
    harbour.sandbox.faults.add({ fault: 'error-before', times: 2 })
    harbour.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: MINUTE, times: 2 })
    const orders: string[] = []
    for (let number = 1; number <= 8; number += 1) {
      orders.push((await harbour.order(String(number), [{ sku, quantity: 2 }])).orderId)
    }
    const workers = [await harbour.openProcess('first'), await harbour.openProcess('second')]
    for (let step = 0; step < 40; step += 1) {
      await Promise.all(workers.map((worker) => worker.round()))
      harbour.sandbox.advance()
      harbour.move(step < 10 ? 2_000 : 30_000)
    }
    await harbour.pass(20 * MINUTE)
    for (const order of orders) expect(await harbour.state(order)).toBe('fulfilled')
    harbour.expectLedger({ charges: 8, keys: 16 })
  })

  test('take the same order once', async () => {
    const harbour = await openHarbour()
    const { sku } = await harbour.offer()
    const workers = [await harbour.openProcess('first'), await harbour.openProcess('second')]
    await Promise.all(workers.map(({ ordering }) => harbour.order('1001', [{ sku }], ordering)))
    await Promise.all(workers.map((worker) => worker.round()))
    await harbour.pass(MINUTE)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('a clock that jumps', () => {
  test.each([-10 * MINUTE, HOUR])('by %i ms sends an open outcome to a person, not out again', async (jump) => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.move(jump)
    await harbour.db.commit([distrustTimes(harbour.now())])
    await harbour.pass(30 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    expect(harbour.sent).toHaveLength(1)
    harbour.expectLedger({ charges: 0, keys: 0 })
  })

  test('still finds the order that was charged', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.move(-10 * MINUTE)
    await harbour.db.commit([distrustTimes(harbour.now())])
    await harbour.pass(30 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(first(harbour.sent)).toBeDefined()
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})
