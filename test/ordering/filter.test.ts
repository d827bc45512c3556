/** The filter by reference: an empty answer proves that an order is absent only after the filter has found one. */
import { describe, expect, test } from 'vitest'
import { scanFor } from '../../src/ordering/scan.ts'
import type { OrderQuery } from '../../src/supplier/client.ts'
import { defaultDialect, openTestApp, type TestApp } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** The filter lets no order pass, as if the supplier compared it with a field that no order of ours has. */
const misses = { fault: 'filter-misses' as const, times: 10_000, match: { path: '/orders' } }

/** A supplier with a filter by reference that forgets its idempotency keys at once. */
const openForgetful = () => openTestApp({ sandboxDialect: { ...defaultDialect(), idempotencyMemorySeconds: 1 } })

/** An order of another customer, placed at the supplier directly. */
async function placeForeign(app: TestApp, externalOrderId: string | null): Promise<void> {
  app.move(1)
  const { productId } = await app.offer()
  const key = externalOrderId ?? 'nameless'
  app.sandbox.world.orders.place(key, key, { productId, quantity: 1, externalOrderId })
}

/** What each request for orders asks from now on: a page of the list, or a reference. */
function asked({ ordering, supplier }: TestApp): (number | string)[] {
  const queries: (number | string)[] = []
  ordering.supplier.orders = (query: OrderQuery) => {
    queries.push(query.externalOrderId ?? query.page)
    return supplier.orders(query)
  }
  return queries
}

/** A purchase that is unknown, because its answer was lost or because the supplier broke before it ran the request. */
async function buyUnknown(app: TestApp, fault: 'answer-lost' | 'error-before', reference = '1001') {
  app.sandbox.faults.add({ fault })
  const orderId = await app.buy(reference)
  await app.settle()
  const purchase = await app.purchase(orderId)
  expect(purchase.state).toBe('unknown')
  return { orderId, purchase }
}

describe('a supplier whose filter by reference finds no order', () => {
  test('does not charge twice for a purchase whose answer was lost', async () => {
    const app = await openForgetful()
    app.sandbox.faults.add(misses)
    const { orderId } = await buyUnknown(app, 'answer-lost')
    await placeForeign(app, 'other.shop.1')
    await app.pass(20 * MINUTE, 30 * SECOND)
    expect(app.sent).toHaveLength(1)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 2, keys: 1 })
  })

  test('does not charge twice where the lost order is its only one', async () => {
    const app = await openForgetful()
    app.sandbox.faults.add(misses)
    const { orderId } = await buyUnknown(app, 'answer-lost')
    await app.pass(20 * MINUTE, 30 * SECOND)
    expect(app.sent).toHaveLength(1)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('still gets a purchase again that its list does not have, and the log names the setting once', async () => {
    const app = await openForgetful()
    app.sandbox.faults.add(misses)
    const { orderId } = await buyUnknown(app, 'error-before')
    await placeForeign(app, 'other.shop.1')
    await app.pass(20 * MINUTE, 30 * SECOND)
    expect(app.sent).toHaveLength(2)
    expect(await app.state(orderId)).toBe('fulfilled')
    const warned = app.lines.filter((line) => line.includes('supplier.filter_misses'))
    expect(warned).toHaveLength(1)
    expect(warned[0]).toContain('orders.externalOrderId')
  })
})

describe('an empty answer of the filter by reference', () => {
  const look = async ({ ordering }: TestApp, purchase: Awaited<ReturnType<TestApp['purchase']>>) =>
    (await scanFor(ordering, purchase, { proves: true })).length

  test('counts after the filter has found an order of the list, which is asked for once in a process', async () => {
    const app = await openForgetful()
    const { purchase } = await buyUnknown(app, 'error-before')
    await placeForeign(app, 'other.shop.1')
    await placeForeign(app, null)
    const queries = asked(app)
    const { externalOrderId: ours } = purchase
    expect(await look(app, purchase)).toBe(0)
    expect(queries.splice(0)).toEqual([ours, 1, 'other.shop.1'])
    expect(await look(app, purchase)).toBe(0)
    expect(queries).toEqual([ours])
  })

  test('counts after the filter has found an order of ours', async () => {
    const app = await openForgetful()
    const { purchase: lost } = await buyUnknown(app, 'answer-lost', '1001')
    const { purchase } = await buyUnknown(app, 'error-before', '1002')
    const queries = asked(app)
    expect(await look(app, lost)).toBe(1)
    expect(await look(app, purchase)).toBe(0)
    expect(queries).toEqual([lost.externalOrderId, purchase.externalOrderId])
  })

  test.each([
    ['there is no order', []],
    ['no order carries a reference', [null]],
  ])('does not count while %s: the list is read', async (_, orders) => {
    const app = await openForgetful()
    const { purchase } = await buyUnknown(app, 'error-before')
    for (const reference of orders) await placeForeign(app, reference)
    const queries = asked(app)
    expect(await look(app, purchase)).toBe(0)
    expect(queries.slice(0, 3)).toEqual([purchase.externalOrderId, 1, 1])
  })

  test('does not count where the trial of the filter brings another order', async () => {
    const app = await openForgetful()
    const { purchase } = await buyUnknown(app, 'answer-lost')
    await placeForeign(app, 'other.shop.1')
    const { supplier } = app
    app.ordering.supplier.orders = async ({ externalOrderId, ...query }) => {
      const page = await supplier.orders(query)
      if (externalOrderId === undefined) return page
      const items = page.items.slice(1).filter(() => externalOrderId !== purchase.externalOrderId)
      return { ...page, items, total: items.length }
    }
    expect(await look(app, purchase)).toBe(1)
  })

  test('does not count while the trial of the filter fails', async () => {
    const app = await openForgetful()
    const { purchase } = await buyUnknown(app, 'error-before')
    await placeForeign(app, 'other.shop.1')
    const { supplier } = app
    app.ordering.supplier.orders = (query) => {
      if (query.externalOrderId !== 'other.shop.1') return supplier.orders(query)
      return supplier.orders({ ...query, page: -1 })
    }
    await expect(look(app, purchase)).rejects.toThrow('rejected the request')
  })
})

describe('a supplier whose filter by time lets no order pass', () => {
  test('does not charge twice for a purchase whose answer was lost', async () => {
    const dialect = defaultDialect()
    const without = { ...dialect, orders: { ...dialect.orders, externalOrderId: null } }
    const app = await openTestApp({
      dialect: without,
      sandboxDialect: { ...without, idempotencyMemorySeconds: 1 },
    })
    const { supplier } = app
    app.ordering.supplier.orders = async (query) => {
      const page = await supplier.orders(query)
      return query.from === undefined ? page : { ...page, items: [], total: 0 }
    }
    const { orderId } = await buyUnknown(app, 'answer-lost')
    await app.pass(20 * MINUTE, 30 * SECOND)
    expect(app.sent).toHaveLength(1)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
    const { ordering } = app
    await expect(scanFor(ordering, await app.purchase(orderId), { proves: true })).rejects.toThrow('orders.from')
  })
})
