/** The filter by reference: an empty answer proves that an order is absent only after the filter has found one. */
import { describe, expect, test } from 'vitest'
import { scanFor } from '../../src/ordering/scan.ts'
import type { OrderQuery } from '../../src/supplier/client.ts'
import { defaultDialect, type Harbour, openHarbour } from '../support/harbour.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** The filter lets no order pass, as if the supplier compared it with a field that no order of ours has. */
const misses = { fault: 'filter-misses' as const, times: 10_000, match: { path: '/orders' } }

/** A supplier with a filter by reference that forgets its idempotency keys at once. */
const openForgetful = () => openHarbour({ sandboxDialect: { ...defaultDialect(), idempotencyMemorySeconds: 1 } })

/** An order of somebody else, placed at the supplier directly. */
async function placeForeign(harbour: Harbour, externalOrderId: string | null): Promise<void> {
  harbour.move(1)
  const { productId } = await harbour.offer()
  const key = externalOrderId ?? 'nameless'
  harbour.sandbox.world.orders.place(key, key, { productId, quantity: 1, externalOrderId })
}

/** What each request for orders asks from now on: a page of the list, or a reference. */
function asked({ ordering, supplier }: Harbour): (number | string)[] {
  const queries: (number | string)[] = []
  ordering.supplier.orders = (query: OrderQuery) => {
    queries.push(query.externalOrderId ?? query.page)
    return supplier.orders(query)
  }
  return queries
}

/** A purchase that is unknown, because its answer was lost or because the supplier broke before it ran the request. */
async function buyUnknown(harbour: Harbour, fault: 'answer-lost' | 'error-before', reference = '1001') {
  harbour.sandbox.faults.add({ fault })
  const orderId = await harbour.buy(reference)
  await harbour.settle()
  const purchase = await harbour.purchase(orderId)
  expect(purchase.state).toBe('unknown')
  return { orderId, purchase }
}

describe('a supplier whose filter by reference finds no order', () => {
  test('does not charge twice for a purchase whose answer was lost', async () => {
    const harbour = await openForgetful()
    harbour.sandbox.faults.add(misses)
    const { orderId } = await buyUnknown(harbour, 'answer-lost')
    await placeForeign(harbour, 'other.shop.1')
    await harbour.pass(20 * MINUTE, 30 * SECOND)
    expect(harbour.sent).toHaveLength(1)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 2, keys: 1 })
  })

  test('does not charge twice where the lost order is its only one', async () => {
    const harbour = await openForgetful()
    harbour.sandbox.faults.add(misses)
    const { orderId } = await buyUnknown(harbour, 'answer-lost')
    await harbour.pass(20 * MINUTE, 30 * SECOND)
    expect(harbour.sent).toHaveLength(1)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('still gets a purchase again that its list does not have, and the log names the setting once', async () => {
    const harbour = await openForgetful()
    harbour.sandbox.faults.add(misses)
    const { orderId } = await buyUnknown(harbour, 'error-before')
    await placeForeign(harbour, 'other.shop.1')
    await harbour.pass(20 * MINUTE, 30 * SECOND)
    expect(harbour.sent).toHaveLength(2)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    const warned = harbour.lines.filter((line) => line.includes('supplier.filter_misses'))
    expect(warned).toHaveLength(1)
    expect(warned[0]).toContain('orders.externalOrderId')
  })
})

describe('an empty answer of the filter by reference', () => {
  const look = async ({ ordering }: Harbour, purchase: Awaited<ReturnType<Harbour['purchase']>>) =>
    (await scanFor(ordering, purchase, { proves: true })).length

  test('counts after the filter has found an order of the list, which is asked for once in a process', async () => {
    const harbour = await openForgetful()
    const { purchase } = await buyUnknown(harbour, 'error-before')
    await placeForeign(harbour, 'other.shop.1')
    await placeForeign(harbour, null)
    const queries = asked(harbour)
    const { externalOrderId: ours } = purchase
    expect(await look(harbour, purchase)).toBe(0)
    expect(queries.splice(0)).toEqual([ours, 1, 'other.shop.1'])
    expect(await look(harbour, purchase)).toBe(0)
    expect(queries).toEqual([ours])
  })

  test('counts after the filter has found an order of ours', async () => {
    const harbour = await openForgetful()
    const { purchase: lost } = await buyUnknown(harbour, 'answer-lost', '1001')
    const { purchase } = await buyUnknown(harbour, 'error-before', '1002')
    const queries = asked(harbour)
    expect(await look(harbour, lost)).toBe(1)
    expect(await look(harbour, purchase)).toBe(0)
    expect(queries).toEqual([lost.externalOrderId, purchase.externalOrderId])
  })

  test.each([
    ['there is no order', []],
    ['no order carries a reference', [null]],
  ])('does not count while %s: the list is read', async (_, orders) => {
    const harbour = await openForgetful()
    const { purchase } = await buyUnknown(harbour, 'error-before')
    for (const reference of orders) await placeForeign(harbour, reference)
    const queries = asked(harbour)
    expect(await look(harbour, purchase)).toBe(0)
    expect(queries.slice(0, 3)).toEqual([purchase.externalOrderId, 1, 1])
  })

  test('does not count where the trial of the filter brings another order', async () => {
    const harbour = await openForgetful()
    const { purchase } = await buyUnknown(harbour, 'answer-lost')
    await placeForeign(harbour, 'other.shop.1')
    const { supplier } = harbour
    harbour.ordering.supplier.orders = async ({ externalOrderId, ...query }) => {
      const page = await supplier.orders(query)
      if (externalOrderId === undefined) return page
      const items = page.items.slice(1).filter(() => externalOrderId !== purchase.externalOrderId)
      return { ...page, items, total: items.length }
    }
    expect(await look(harbour, purchase)).toBe(1)
  })

  test('does not count while the trial of the filter fails', async () => {
    const harbour = await openForgetful()
    const { purchase } = await buyUnknown(harbour, 'error-before')
    await placeForeign(harbour, 'other.shop.1')
    const { supplier } = harbour
    harbour.ordering.supplier.orders = (query) => {
      if (query.externalOrderId !== 'other.shop.1') return supplier.orders(query)
      return supplier.orders({ ...query, page: -1 })
    }
    await expect(look(harbour, purchase)).rejects.toThrow('rejected the request')
  })
})

describe('a supplier whose filter by time lets no order pass', () => {
  test('does not charge twice for a purchase whose answer was lost', async () => {
    const dialect = defaultDialect()
    const without = { ...dialect, orders: { ...dialect.orders, externalOrderId: null } }
    const harbour = await openHarbour({
      dialect: without,
      sandboxDialect: { ...without, idempotencyMemorySeconds: 1 },
    })
    const { supplier } = harbour
    harbour.ordering.supplier.orders = async (query) => {
      const page = await supplier.orders(query)
      return query.from === undefined ? page : { ...page, items: [], total: 0 }
    }
    const { orderId } = await buyUnknown(harbour, 'answer-lost')
    await harbour.pass(20 * MINUTE, 30 * SECOND)
    expect(harbour.sent).toHaveLength(1)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'unknown' })
    const { ordering } = harbour
    await expect(scanFor(ordering, await harbour.purchase(orderId), { proves: true })).rejects.toThrow('orders.from')
  })
})
