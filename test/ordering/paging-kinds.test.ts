/** Look-ups, sweeps and restores where the supplier's orders are paged by an offset or by a cursor. */
import { describe, expect, test } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { pagesSince, scanFor } from '../../src/ordering/scan.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { Secret } from '../../src/secret.ts'
import { createSupplier } from '../../src/supplier/client.ts'
import { readLists } from '../../src/supplier/lists.ts'
import { API_KEY, type Habit, habitDialect } from '../support/catalogue-parties.ts'
import { TEST_NOW } from '../support/database.ts'
import { cursorAfter, pagedSupplier } from '../support/paged-supplier.ts'
import { openRestoreWorld } from '../support/restore-world.ts'
import { defaultDialect, openTestApp, type TestApp } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

const kinds: Partial<Dialect['paging']>[] = [
  { kind: 'offset', page: 'offset', first: 0 },
  { kind: 'cursor', page: 'cursor', next: 'meta.next_cursor', more: null, total: null },
]

/** Pages of two orders, and no filter by reference. */
function pagedBy(paging: Partial<Dialect['paging']>): Dialect {
  const base = defaultDialect()
  return {
    ...base,
    orders: { ...base.orders, externalOrderId: null },
    paging: { ...base.paging, limitMax: 2, limitDefault: 2, ...paging },
  }
}

/** The supplier forgets its keys of idempotency at once: what is sent again is charged again. */
const openPaged = (paging: Partial<Dialect['paging']>) =>
  openTestApp({ dialect: pagedBy(paging), sandboxDialect: { ...pagedBy(paging), idempotencyMemorySeconds: 1 } })

/** Orders of another customer, placed at the supplier directly. */
async function placeOthers(app: TestApp, count: number): Promise<void> {
  const { productId } = await app.offer()
  for (let placed = 0; placed < count; placed += 1) {
    app.move(1)
    const key = `other.shop.${placed}`
    app.sandbox.world.orders.place(key, key, { productId, quantity: 1, externalOrderId: key })
  }
}

async function buyUnknown(app: TestApp, fault: 'answer-lost' | 'error-before') {
  app.sandbox.faults.add({ fault })
  const orderId = await app.buy('1001')
  await app.settle()
  expect((await app.purchase(orderId)).state).toBe('unknown')
  return orderId
}

describe.each(kinds)('a purchase whose answer was lost, at a supplier of the kind $kind', (paging) => {
  test('is found on page 3 and bought once', async () => {
    const app = await openPaged(paging)
    const orderId = await buyUnknown(app, 'answer-lost')
    await placeOthers(app, 5)
    expect(await scanFor(app.ordering, await app.purchase(orderId), { proves: true })).toHaveLength(1)
    await app.pass(20 * MINUTE, 30 * SECOND)
    expect(app.sent).toHaveLength(1)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 6, keys: 1 })
  })

  test('is proven absent from a list of several pages, and bought then', async () => {
    const app = await openPaged(paging)
    const orderId = await buyUnknown(app, 'error-before')
    await placeOthers(app, 5)
    await app.pass(20 * MINUTE, 30 * SECOND)
    expect(app.sent).toHaveLength(2)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 6, keys: 1 })
  })

  test('is proven absent from a list without an order, and from one with a single order', async () => {
    for (const others of [0, 1]) {
      const app = await openPaged(paging)
      const orderId = await buyUnknown(app, 'error-before')
      await placeOthers(app, others)
      await app.pass(20 * MINUTE, 30 * SECOND)
      expect(await app.state(orderId)).toBe('fulfilled')
      app.expectLedger({ charges: others + 1, keys: 1 })
    }
  })

  test('is not bought again while the list breaks behind its first page', async () => {
    const app = await openPaged(paging)
    const orderId = await buyUnknown(app, 'answer-lost')
    await placeOthers(app, 5)
    const { orders } = app.supplier
    app.ordering.supplier.orders = async (query) => {
      if (query.cursor !== undefined) throw new Error('the supplier broke off')
      return orders(query)
    }
    await app.pass(20 * MINUTE, 30 * SECOND)
    expect(app.sent).toHaveLength(1)
    expect((await app.purchase(orderId)).state).toBe('unknown')
    app.ordering.supplier.orders = orders
    await app.pass(20 * MINUTE, 30 * SECOND)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 6, keys: 1 })
  })

  test('is swept: each order of the supplier is compared once', async () => {
    const app = await openPaged(paging)
    const orderId = await buyUnknown(app, 'answer-lost')
    await placeOthers(app, 5)
    app.move(MINUTE)
    expect(await sweep(app.ordering, 0)).toMatchObject({ pages: 3, orders: 6, matched: 1, foreign: 5, errors: 0 })
    expect((await app.purchase(orderId)).state).not.toBe('unknown')
  })
})

describe.each(kinds)('a restore, at a supplier of the kind $kind', (paging) => {
  test('reads every page of the orders, and buys nothing twice', async () => {
    const world = await openRestoreWorld({ dialect: pagedBy(paging), sandboxDialect: pagedBy(paging) })
    const { app } = world
    const orders = []
    for (const reference of ['1001', '1002', '1003', '1004', '1005']) orders.push(await app.buy(reference))
    const backup = world.backUp()
    await world.pass(5 * MINUTE, MINUTE)
    const charges = app.sandbox.world.orders.list({}, 0, 100).total
    expect(charges).toBe(5)
    await world.restore(backup)
    await world.pass(3 * 60 * MINUTE, 5 * MINUTE)
    for (const orderId of orders) expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sandbox.world.orders.list({}, 0, 100).total).toBe(charges)
  })
})

describe('a list of orders with cursors that breaks', () => {
  const orderRow = (id: string) => ({ id, external_order_id: `ref-${id}`, status: 'completed' })
  async function listOf(count: number, habit: Habit = 'cursor', paging: Partial<Dialect['paging']> = {}) {
    const supplier = await pagedSupplier(habit)
    supplier.lists.orders.push(...Array.from({ length: count }, (_, place) => orderRow(`o${place}`)))
    const base = habitDialect(habit, 3, paging)
    const dialect = { ...base, orders: { ...base.orders, externalOrderId: null, from: null } }
    const client = createSupplier({
      ...{ baseUrl: supplier.baseUrl, dialect, apiKey: new Secret(API_KEY), random: () => 0 },
      ...{ now: () => TEST_NOW, sleep: () => Promise.resolve() },
    })
    const app = await openTestApp({ dialect })
    const ordering = { ...app.ordering, supplier: client }
    const scan = async (): Promise<string[]> => {
      const seen: string[] = []
      for await (const some of pagesSince(ordering, 0)) seen.push(...some.map(({ id }) => id))
      return seen
    }
    const doctor = async (): Promise<string[]> => {
      const said: string[] = []
      await readLists(client, dialect, TEST_NOW, (level, message) => void said.push(`${level}: ${message}`))
      return said
    }
    return { ...supplier, ordering, scan, doctor }
  }

  test.each(['token', 'cursor', 'offset'] as const)('is read whole before (%s)', async (habit) => {
    const { scan, doctor, lists } = await listOf(8, habit)
    expect(await scan()).toEqual(lists.orders.map(({ id }) => id))
    expect(await doctor()).toEqual([expect.stringMatching(/^ok: /)])
  })

  test.each(['token', 'cursor', 'offset'] as const)('is no proof where page 2 is page 1 again (%s)', async (habit) => {
    const { scan, hooks, heard, lists, doctor } = await listOf(8, habit)
    hooks.tamper = (answer, _place, list) => {
      if (list === 'products') return
      answer.rows = lists.orders.slice(0, 3)
      if (habit !== 'offset') answer.next = cursorAfter('o2')
    }
    await expect(scan()).rejects.toThrow(/the same orders page after page|names a cursor again/)
    expect(heard.length).toBeLessThan(5)
    expect((await doctor()).filter((line) => line.includes('orders'))).toEqual([
      'fail: page 2 of the orders is page 1 again',
    ])
  })

  test('is no proof where the cursors lead in a circle', async () => {
    const { scan, hooks, heard } = await listOf(30)
    hooks.tamper = (answer, place) => {
      if (place === 24) answer.next = cursorAfter('o11')
    }
    await expect(scan()).rejects.toThrow("the supplier's order list names a cursor again: it never ends")
    expect(heard.length).toBeLessThan(30)
  })

  test.each([400, 410])('is no proof where a cursor expires with HTTP %i', async (status) => {
    const { scan, hooks } = await listOf(8)
    hooks.tamper = (answer, place) => {
      if (place === 3) answer.status = status
    }
    await expect(scan()).rejects.toThrow(status === 400 ? 'invalid_request' : 'no page of /orders at the cursor')
  })

  test('is read on behind empty pages that name a cursor', async () => {
    const { scan, hooks } = await listOf(15)
    hooks.tamper = (answer, place) => {
      if (place > 0 && place < 12) answer.rows = []
    }
    expect(await scan()).toEqual(['o0', 'o1', 'o2', 'o12', 'o13', 'o14'])
  })

  test('is no proof where its head left the first page meanwhile', async () => {
    const { scan, hooks, lists } = await listOf(8)
    hooks.tamper = (_, place) => {
      if (place === 6) lists.orders.unshift(...['n1', 'n2', 'n3'].map(orderRow))
    }
    await expect(scan()).rejects.toThrow('moved by more than a page')
  })

  test('is no proof where the dialect has a wrong path of the cursor, and the doctor says so', async () => {
    const { scan, doctor } = await listOf(8, 'cursor', { next: 'meta.following' })
    await expect(scan()).rejects.toThrow('names no cursor at paging.next (meta.following)')
    expect(await doctor()).toEqual([
      expect.stringMatching(/^fail: the first of several pages of orders names no cursor$/),
    ])
  })

  test('is a proof with few orders on one page, once a page of one order has named a cursor', async () => {
    const { scan, ordering, heard } = await listOf(2)
    expect(await scan()).toEqual(['o0', 'o1'])
    expect(ordering.pace.cursorNamed).toBe(true)
    const asked = heard.length
    await scan()
    expect(heard.length - asked).toBe(1)
  })
})
