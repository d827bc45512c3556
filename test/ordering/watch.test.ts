/** How many requests an accepted order costs until its keys are there: counted as the supplier's client is asked. */
import { describe, expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { noteAnnounced } from '../../src/ordering/context.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { hintPurchase, purchasesInState } from '../../src/storage/purchases.ts'
import { openTestApp, type TestApp } from '../support/test-app.ts'

const SECOND = 1_000

/** Accepted orders of one unit each, and what is read of them from now on. @param aheadMs of our clock, before the supplier's */
async function openAccepted(count: number, aheadMs = 0) {
  const app = await openTestApp()
  app.jump(aheadMs)
  const { sku, productId } = await app.offer()
  app.sandbox.world.offers.change(productId, { stock: 1_000 })
  await app.ordering.refreshOffer(productId)
  const orders: string[] = []
  for (let number = 1; number <= count; number += 1) {
    orders.push((await app.order(String(number), [{ sku }])).orderId)
  }
  await app.settle()
  const asked = { lists: 0, orders: 0 }
  const { order, orders: list } = app.ordering.supplier
  app.ordering.supplier.order = (id) => {
    asked.orders += 1
    return order(id)
  }
  app.ordering.supplier.orders = (query) => {
    asked.lists += 1
    return list(query)
  }
  return { app, orders, asked }
}

const states = async (app: TestApp, orders: string[]) =>
  Promise.all(orders.map(async (id) => (await app.purchase(id)).state))

async function announce(app: TestApp, orderId: string): Promise<void> {
  const { id } = await app.purchase(orderId)
  noteAnnounced(app.ordering, id)
  await app.db.commit([hintPurchase(id, app.now())])
}

describe('accepted orders', () => {
  test('that are open together are looked at through one page of the list, and read by their ids once they are over', async () => {
    const { app, orders, asked } = await openAccepted(6)
    app.move(2 * SECOND)
    expect(await refreshDue(app.ordering)).toBe(6)
    expect(asked).toEqual({ lists: 1, orders: 0 })
    expect(new Set(await states(app, orders))).toEqual(new Set(['accepted']))
    app.sandbox.advance()
    app.move(5 * SECOND)
    await refreshDue(app.ordering)
    expect(asked).toEqual({ lists: 2, orders: 6 })
    expect(new Set(await states(app, orders))).toEqual(new Set(['completed']))
  })

  test('were read one every two seconds where the list of orders alone was broken: all are read by their ids', async () => {
    const { app, asked } = await openAccepted(6)
    app.move(2 * SECOND)
    const { orders: list } = app.ordering.supplier
    app.ordering.supplier.orders = (query) => {
      const broken = app.sandbox.faults.add({ fault: 'error-before', match: { path: '/orders' }, times: 10 })
      return list(query).finally(() => app.sandbox.faults.remove(broken.id))
    }
    expect(await refreshDue(app.ordering)).toBe(6)
    expect(asked).toEqual({ lists: 1, orders: 6 })
  })

  test('are found in the list of a supplier whose clock is four minutes behind ours', async () => {
    const { app, asked } = await openAccepted(6, 240 * SECOND)
    app.move(2 * SECOND)
    expect(await refreshDue(app.ordering)).toBe(6)
    expect(asked).toEqual({ lists: 1, orders: 0 })
  })

  test('cost one page where all are on it, also twelve minutes apart, and more than a page is counted with', async () => {
    const { app, asked } = await openAccepted(0)
    const { sku } = await app.offer()
    app.sandbox.faults.add({ fault: 'hold-open', times: 10 })
    await app.order('early', [{ sku }])
    await app.settle()
    app.move(12 * 60 * SECOND)
    for (const reference of 'abcdefghi') await app.order(reference, [{ sku }])
    await app.settle()
    for (const { id } of await app.db.query(purchasesInState('accepted', 100))) {
      await app.db.commit([hintPurchase(id, app.now())])
    }
    Object.assign(asked, { lists: 0, orders: 0 })
    expect(await refreshDue(app.ordering)).toBe(10)
    expect(asked).toEqual({ lists: 1, orders: 0 })
  })

  test.each([
    [2, 2],
    [10, 5],
    [60, 30],
    [600, 300],
  ])('that are open at an age of %d s are looked at again after some %d s', async (age, wait) => {
    const { app, orders } = await openAccepted(4)
    app.move(age * SECOND)
    await refreshDue(app.ordering)
    const again = ((await app.purchase(orders[0] ?? '')).refreshAt ?? 0) - app.now()
    expect(again).toBeGreaterThanOrEqual(wait * SECOND)
    expect(again).toBeLessThan((wait + 5) * SECOND)
  })

  test('that are few are read by their ids, which brings their keys as well', async () => {
    const { app, orders, asked } = await openAccepted(3)
    app.move(2 * SECOND)
    app.sandbox.advance()
    await refreshDue(app.ordering)
    expect(asked).toEqual({ lists: 0, orders: 3 })
    expect(new Set(await states(app, orders))).toEqual(new Set(['completed']))
  })

  test('that the list lacks, or that a delivery named, are read by their ids', async () => {
    const { app, orders, asked } = await openAccepted(6)
    const { orders: list } = app.ordering.supplier
    app.ordering.supplier.orders = async (query) => {
      const page = await list(query)
      return { ...page, items: page.items.slice(1) }
    }
    await announce(app, orders[0] ?? '')
    app.move(2 * SECOND)
    await refreshDue(app.ordering)
    expect(asked.lists).toBe(1)
    expect(asked.orders, 'the announced one, and the one that the list lacks').toBeGreaterThanOrEqual(1)
    expect(asked.orders).toBeLessThanOrEqual(2)
  })

  test('that differ in the list from what was ordered are read by their ids, and held against that', async () => {
    const { app, orders, asked } = await openAccepted(5)
    const { orders: list } = app.ordering.supplier
    app.ordering.supplier.orders = async (query) => {
      const page = await list(query)
      return { ...page, items: page.items.map((order) => ({ ...order, quantity: 9 })) }
    }
    app.move(2 * SECOND)
    await refreshDue(app.ordering)
    expect(asked.orders).toBe(5)
    expect(new Set(await states(app, orders))).toEqual(new Set(['accepted']))
  })

  test('are read one by one where the list cannot be read', async () => {
    const { app, orders, asked } = await openAccepted(5)
    app.ordering.supplier.orders = () => Promise.reject(new Error('503'))
    app.move(2 * SECOND)
    app.sandbox.advance()
    await refreshDue(app.ordering)
    expect(asked.orders).toBe(5)
    expect(new Set(await states(app, orders))).toEqual(new Set(['completed']))
  })

  test('that stay open in a list which lags behind are read by their ids within an hour', async () => {
    const { app, orders } = await openAccepted(5)
    const { orders: list } = app.ordering.supplier
    const stale = await list({ page: 1 })
    app.ordering.supplier.orders = () => Promise.resolve(stale)
    app.move(2 * SECOND)
    app.sandbox.advance()
    for (let minute = 0; minute < 60; minute += 1) {
      app.move(60 * SECOND)
      await refreshDue(app.ordering)
    }
    expect(new Set(await states(app, orders))).toEqual(new Set(['completed']))
  })

  test('that were looked at in pages for a while are read by their ids soon after they are not in a page any more', async () => {
    const { app, orders } = await openAccepted(6)
    const passes = async (seconds: number): Promise<void> => {
      for (let second = 0; second < seconds; second += 1) {
        app.move(SECOND)
        await refreshDue(app.ordering)
      }
    }
    await passes(15)
    const { orders: list } = app.ordering.supplier
    app.ordering.supplier.orders = async (query) => ({ ...(await list(query)), items: [] })
    await passes(15)
    app.sandbox.advance()
    await passes(20)
    expect(new Set(await states(app, orders))).toEqual(new Set(['completed']))
  })
})

describe('a delivery that comes while its order is read', () => {
  /** The supplier answers a read as the order was, and then the order is over and its delivery comes. */
  async function openCrossed(count: number) {
    const { app, orders, asked } = await openAccepted(count)
    const { order: read } = app.ordering.supplier
    app.ordering.supplier.order = async (id) => {
      const answer = await read(id)
      app.ordering.supplier.order = read
      app.sandbox.advance()
      app.move(20)
      await announce(app, orders[0] ?? '')
      return answer
    }
    return { app, orders, asked }
  }

  test('has it read once more at once', async () => {
    const { app, orders } = await openCrossed(1)
    app.move(2 * SECOND)
    await refreshDue(app.ordering)
    expect(await states(app, orders)).toEqual(['accepted'])
    await refreshDue(app.ordering)
    expect(await states(app, orders)).toEqual(['completed'])
  })

  test('has it read by its id, and not through a list that lags behind', async () => {
    const { app, orders } = await openCrossed(5)
    const stale = await app.supplier.orders({ page: 1 })
    app.ordering.supplier.orders = () => Promise.resolve(stale)
    app.move(2 * SECOND)
    await announce(app, orders[0] ?? '')
    await refreshDue(app.ordering)
    await refreshDue(app.ordering)
    expect((await states(app, orders))[0]).toBe('completed')
  })
})

describe('while deliveries arrive', () => {
  test('an order is read when one names it, and by the schedule from 15 s on', async () => {
    const { app, orders, asked } = await openAccepted(1)
    const [first = ''] = orders
    app.move(SECOND)
    app.sandbox.advance()
    await announce(app, first)
    await refreshDue(app.ordering)
    expect(asked).toEqual({ lists: 0, orders: 1 })
    expect(await states(app, orders)).toEqual(['completed'])
    const next = await app.buy('next')
    await app.settle()
    app.move(14 * SECOND)
    expect(await refreshDue(app.ordering)).toBe(0)
    app.move(SECOND)
    app.sandbox.advance()
    expect(await refreshDue(app.ordering)).toBe(1)
    expect(await states(app, [next])).toEqual(['completed'])
  })

  test('three orders that end without one bring the quick schedule back, until one arrives again', async () => {
    const { app, orders } = await openAccepted(1)
    app.move(2 * SECOND)
    app.sandbox.advance()
    await announce(app, orders[0] ?? '')
    await refreshDue(app.ordering)
    const waits: number[] = []
    for (const reference of ['a', 'b', 'c', 'd']) {
      const orderId = await app.buy(reference)
      await app.settle()
      waits.push(((await app.purchase(orderId)).refreshAt ?? 0) - app.now())
      app.move(15 * SECOND)
      app.sandbox.advance()
      await refreshDue(app.ordering)
      expect(await states(app, [orderId])).toEqual(['completed'])
    }
    expect(waits).toEqual([15, 15, 15, 2].map((seconds) => seconds * SECOND))
    const last = await app.buy('e')
    await app.settle()
    await announce(app, last)
    const next = await app.buy('f')
    await app.settle()
    expect(((await app.purchase(next)).refreshAt ?? 0) - app.now()).toBe(15 * SECOND)
  })
})

describe('three orders that end together', () => {
  type Read = TestApp['ordering']['supplier']['order']
  /** When their deliveries come; each has its purchases read once, or a second time. */
  const deliveries: Record<string, (app: TestApp, announceAll: () => Promise<void>, read: Read) => Promise<Read>> = {
    'before they are read': async (_app, announceAll, read) => {
      await announceAll()
      return read
    },
    'while they are read': async (_app, announceAll, read) => {
      let started = 0
      const all = Promise.withResolvers<void>()
      return async (id) => {
        started += 1
        if (started === 3) await announceAll().then(all.resolve)
        await all.promise
        return read(id)
      }
    },
    'before they are read, which fails': async (app, announceAll, read) => {
      await announceAll()
      app.ordering.supplier.order = () => Promise.reject(new Failure('unavailable', 'the supplier answers 503'))
      await refreshDue(app.ordering)
      app.move(15 * SECOND)
      return read
    },
  }

  test.each(Object.keys(deliveries))('and whose deliveries come %s leave the slow schedule in force', async (when) => {
    const { app, orders } = await openAccepted(3)
    const { order: read } = app.supplier
    const announceAll = async (): Promise<void> => {
      for (const orderId of orders) await announce(app, orderId)
    }
    app.move(2 * SECOND)
    app.sandbox.advance()
    const next = await deliveries[when]?.(app, announceAll, read)
    if (next) app.ordering.supplier.order = next
    await refreshDue(app.ordering)
    expect(await states(app, orders)).toEqual(['completed', 'completed', 'completed'])
    const later = await app.buy('later')
    await app.settle()
    expect(((await app.purchase(later)).refreshAt ?? 0) - app.now()).toBe(15 * SECOND)
  })
})
