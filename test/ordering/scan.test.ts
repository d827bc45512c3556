import { describe, expect, test } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { pagesSince, scanFor } from '../../src/ordering/scan.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import type { OrderQuery } from '../../src/supplier/client.ts'
import { defaultDialect, openTestApp, type TestApp } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

test('a scan that is to prove something looks back two days more than one that can prove nothing yet', async () => {
  const dialect = { ...defaultDialect(), orders: { ...defaultDialect().orders, externalOrderId: null } }
  const app = await openTestApp({ dialect, sandboxDialect: dialect })
  app.sandbox.faults.add({ fault: 'error-before' })
  const { orders } = app.ordering.supplier
  const before: number[] = []
  const orderId = await app.buy('1001')
  const sentAt = app.now()
  app.ordering.supplier.orders = (query) => {
    if (query.from !== undefined) before.push((sentAt - query.from) / MINUTE)
    return orders(query)
  }
  await app.settle()
  await app.pass(10 * MINUTE, 2 * SECOND)
  expect((await app.purchase(orderId)).sends, 'it was proven absent').toBe(2)
  expect([...new Set(before)]).toEqual([10, 50 * 60])
})

describe("a scan of the supplier's orders", () => {
  const paged = () => ({ ...defaultDialect(), paging: { ...defaultDialect().paging, limitMax: 2 } })

  /** Orders of others, placed at the supplier directly. */
  async function openShelf() {
    const app = await openTestApp({ dialect: paged() })
    const { productId } = await app.offer()
    const place = async (count: number, from: number) => {
      for (let number = from; number < from + count; number += 1) {
        app.move(1)
        const answer = await fetch(`${app.sandbox.baseUrl}/orders`, {
          method: 'POST',
          headers: {
            'x-api-key': 'sk_test_0123456789abcdef',
            'idempotency-key': `other-${number}`,
            'content-type': 'application/json',
          },
          body: JSON.stringify({ productId, quantity: 1, external_order_id: `other-${number}` }),
        })
        expect(answer.status).toBe(201)
      }
    }
    return { app, place }
  }

  test('reads every order once, over all its pages', async () => {
    const { app, place } = await openShelf()
    await place(5, 1)
    const seen: (string | undefined)[] = []
    for await (const page of pagesSince(app.ordering, 0)) seen.push(...page.map((order) => order.externalOrderId))
    expect(seen.toSorted()).toEqual(['other-1', 'other-2', 'other-3', 'other-4', 'other-5'])
  })

  test('still counts when some orders came while it was read', async () => {
    const { app, place } = await openShelf()
    await place(4, 1)
    const seen: (string | undefined)[] = []
    for await (const page of pagesSince(app.ordering, 0)) {
      if (seen.length === 0) await place(1, 5)
      seen.push(...page.map((order) => order.externalOrderId))
    }
    expect(seen).toEqual(expect.arrayContaining(['other-1', 'other-2', 'other-3', 'other-4']))
  })

  test('does not count when more orders came than a page holds', async () => {
    const { app, place } = await openShelf()
    await place(4, 1)
    const scan = async () => {
      let pages = 0
      for await (const _page of pagesSince(app.ordering, 0)) {
        pages += 1
        if (pages === 1) await place(3, 5)
      }
    }
    await expect(scan()).rejects.toThrow('moved by more than a page')
  })
})

/** Up to four orders on a page; no filter by reference, and a supplier that forgets its idempotency keys at once. */
function forgetful(paging: Partial<Dialect['paging']> = {}): Dialect {
  const dialect = defaultDialect()
  const orders = { ...dialect.orders, externalOrderId: null }
  return { ...dialect, orders, paging: { ...dialect.paging, limitMax: 4, ...paging } }
}

interface Lost {
  /** What Quayside believes of the supplier. */
  dialect?: Dialect
  /** What the supplier does instead. */
  supplier?: Partial<Dialect>
}

/** A purchase whose answer was lost, and four younger orders of others in the supplier's list. */
async function loseAnAnswer({ dialect = forgetful(), supplier = {} }: Lost = {}) {
  const sandboxDialect = { ...dialect, idempotencyMemorySeconds: 1, ...supplier }
  const app = await openTestApp({ dialect, sandboxDialect })
  app.sandbox.faults.add({ fault: 'answer-lost' })
  const orderId = await app.buy('1001')
  await app.settle()
  expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
  for (const number of [1, 2, 3, 4]) await placeForeign(app, `other.shop.${number}`)
  return { app, orderId }
}

async function placeForeign(app: TestApp, externalOrderId: string): Promise<void> {
  app.move(1)
  const { productId } = await app.offer()
  app.sandbox.world.orders.place(externalOrderId, externalOrderId, { productId, quantity: 1, externalOrderId })
}

/** Every page of the supplier's orders that is asked for from now on. */
function asked({ ordering, supplier }: TestApp): OrderQuery[] {
  const queries: OrderQuery[] = []
  ordering.supplier.orders = (query) => {
    queries.push(query)
    return supplier.orders(query)
  }
  return queries
}

const onOrders = { times: 10_000, match: { path: '/orders' } }

describe('a purchase whose answer was lost is not bought again', () => {
  const bent: [name: string, lost: Lost, fault: Parameters<TestApp['sandbox']['faults']['add']>[0] | undefined][] = [
    ['behind pages that are shorter than was asked for', {}, { fault: 'short-pages', most: 2, ...onOrders }],
    ['behind a page that is shorter than was asked for', {}, { fault: 'short-pages', most: 3, ...onOrders }],
    ['behind the highest count that the supplier tells', {}, { fault: 'capped-total', most: 3, ...onOrders }],
    [
      'behind the end of lists that end before their count',
      { supplier: { paging: forgetful({ listMax: 4 }).paging } },
      undefined,
    ],
    [
      'behind the end of lists that end, where nothing counts them and the dialect says where',
      { dialect: forgetful({ total: null, listMax: 4 }) },
      undefined,
    ],
    [
      'behind the end of lists that end, where a flag says that no more follows',
      { dialect: forgetful({ total: null, more: 'more', listMax: 4 }) },
      undefined,
    ],
  ]
  test.each(bent)('%s', async (_name, lost, fault) => {
    const { app, orderId } = await loseAnAnswer(lost)
    if (fault) app.sandbox.faults.add(fault)
    await app.pass(20 * MINUTE, 30 * SECOND)
    expect(app.sent).toHaveLength(1)
    expect(['unknown', 'review', 'fulfilled']).toContain((await app.purchase(orderId)).state)
    app.expectLedger({ charges: 5, keys: fault ? 1 : 0 })
  })

  test('but is found where the list has it, and bought where the list has all the others', async () => {
    const { app, orderId } = await loseAnAnswer()
    app.sandbox.faults.add({ fault: 'error-before' })
    const gone = await app.buy('1002')
    await app.pass(20 * MINUTE, 30 * SECOND)
    expect([await app.state(orderId), await app.state(gone)]).toEqual(['fulfilled', 'fulfilled'])
    expect(app.sent).toHaveLength(3)
    app.expectLedger({ charges: 6, keys: 2 })
  })
})

describe('a purchase that no look-up can settle', () => {
  const alerted = async ({ db }: TestApp) =>
    (await db.query(listOutbox({ kind: 'alert', limit: 100 }))).filter(({ type }) => type === 'look_ups_fail')

  test('alerts people after ten minutes, and says why', async () => {
    const { app, orderId } = await loseAnAnswer({ dialect: forgetful({ total: null }) })
    const { supplier } = app
    // The supplier's list ignores the number of the page: the first four orders come again and again.
    app.ordering.supplier.orders = (query) => supplier.orders({ ...query, page: 1 })
    await app.pass(9 * MINUTE, 10 * SECOND)
    expect(await alerted(app)).toEqual([])
    await app.pass(2 * MINUTE, 10 * SECOND)
    const { id } = await app.purchase(orderId)
    const note = expect.stringMatching(
      /no look-up could tell for ten minutes: .*brings the same orders page after page$/,
    )
    expect(await alerted(app)).toMatchObject([{ payload: { purchaseId: id, note } }])
    await app.pass(3 * 60 * MINUTE, MINUTE)
    expect(await alerted(app)).toHaveLength(1)
    expect(app.sent).toHaveLength(1)
  })

  test('is not alerted while the supplier is away: that is an alert of its own', async () => {
    const { app } = await loseAnAnswer()
    await app.supplierDown()
    await app.pass(30 * MINUTE, 10 * SECOND)
    expect(await app.alerts()).toEqual(['supplier_unreachable'])
  })
})

describe('a supplier that ignores the filter by reference', () => {
  /** It answers with the orders of all. */
  async function openDeaf() {
    const app = await openTestApp()
    const { supplier } = app
    app.ordering.supplier.orders = ({ externalOrderId: _, ...query }) => supplier.orders(query)
    return app
  }

  test('is asked for its list: orders of others are not taken for ours', async () => {
    const app = await openDeaf()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await app.buy('1001')
    await app.settle()
    for (const number of [1, 2]) await placeForeign(app, `other.shop.${number}`)
    const found = await scanFor(app.ordering, await app.purchase(orderId), { proves: true })
    expect(found.map((order) => order.externalOrderId)).toEqual([(await app.purchase(orderId)).externalOrderId])
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(await app.discrepancies()).toEqual([])
  })

  test('does not hand its orders to a purchase that was never charged', async () => {
    const app = await openDeaf()
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    await placeForeign(app, 'other.shop.1')
    await app.pass(2 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown', supplierOrderId: null })
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(await app.discrepancies()).toEqual([])
    app.expectLedger({ charges: 2, keys: 1 })
  })
})

describe('a second order for a part', () => {
  test('is seen behind pages that are shorter than was asked for, and freezes', async () => {
    const app = await openTestApp({ dialect: forgetful() })
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    await placeForeign(app, (await app.purchase(orderId)).externalOrderId)
    for (const number of [1, 2, 3]) await placeForeign(app, `other.shop.${number}`)
    app.sandbox.faults.add({ fault: 'short-pages', most: 3, ...onOrders })
    expect(await sweep(app.ordering, 0)).toMatchObject({ orders: 5, matched: 2 })
    expect(await app.discrepancies()).toEqual(['double_charge'])
    expect(await app.alerts()).toEqual(['double_charge', 'freeze'])
    expect(await currentFreeze(app.db)).toBeDefined()
  })
})

describe("a count of the supplier's", () => {
  const seenOf = async (app: TestApp, from: number) => {
    const seen: (string | undefined)[] = []
    for await (const page of pagesSince(app.ordering, from)) seen.push(...page.map((one) => one.externalOrderId))
    return seen
  }

  test('that is higher than the rows that came makes the list invalid', async () => {
    const app = await openTestApp({ dialect: forgetful() })
    for (const number of [1, 2, 3]) await placeForeign(app, `other.shop.${number}`)
    const { supplier } = app
    app.ordering.supplier.orders = async (query) => {
      const page = await supplier.orders(query)
      return { ...page, items: page.items.filter(({ externalOrderId }) => externalOrderId !== 'other.shop.1') }
    }
    await expect(seenOf(app, 0)).rejects.toThrow('counts 3 orders and listed 2')
  })

  test('that goes up while the list is read changes nothing', async () => {
    const app = await openTestApp({ dialect: forgetful() })
    for (const number of [1, 2, 3, 4, 5]) await placeForeign(app, `other.shop.${number}`)
    const { supplier } = app
    app.ordering.supplier.orders = async (query) => {
      const page = await supplier.orders(query)
      return { ...page, total: (page.total ?? 0) + query.page - 1 }
    }
    expect(await seenOf(app, 0)).toHaveLength(5)
  })

  test('of all orders says nothing of a window, and the dialect tells', async () => {
    const dialect = forgetful({ totalFiltered: false })
    const app = await openTestApp({ dialect })
    await placeForeign(app, 'other.shop.1')
    app.move(10 * MINUTE)
    await placeForeign(app, 'other.shop.2')
    expect(await app.supplier.orders({ page: 1 })).toMatchObject({ total: 2 })
    expect(await app.supplier.orders({ page: 1, from: app.now() })).not.toHaveProperty('total')
    expect(await seenOf(app, app.now() - MINUTE)).toEqual(['other.shop.2'])
  })

  test('of all orders, where the dialect believes it to be of the window, proves nothing', async () => {
    const sandboxDialect = forgetful({ totalFiltered: false })
    const app = await openTestApp({ dialect: forgetful(), sandboxDialect })
    await placeForeign(app, 'other.shop.1')
    app.move(10 * MINUTE)
    await placeForeign(app, 'other.shop.2')
    await expect(seenOf(app, app.now() - MINUTE)).rejects.toThrow('counts 2 orders and listed 1')
  })
})

describe('the requests of a look-up', () => {
  const looked = async (dialect: Dialect, { isThere, isProven = false }: { isThere: boolean; isProven?: boolean }) => {
    const app = await openTestApp({ dialect })
    app.sandbox.faults.add({ fault: isThere ? 'answer-lost' : 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    await placeForeign(app, 'other.shop.1')
    if (isProven) app.ordering.pace.referenceFilter = 'finds'
    const queries = asked(app)
    const found = await scanFor(app.ordering, await app.purchase(orderId), { proves: true })
    expect(found).toHaveLength(isThere ? 1 : 0)
    return queries.map(({ page, externalOrderId }) => (externalOrderId === undefined ? page : 'by reference'))
  }

  test('are one for an order that is found, by reference or not', async () => {
    expect(await looked(defaultDialect(), { isThere: true })).toEqual(['by reference'])
    expect(await looked(forgetful(), { isThere: true })).toEqual([1])
  })

  test('are one more for one that is not there, unless an empty page of a proven filter says so', async () => {
    expect(await looked(defaultDialect(), { isThere: false, isProven: true })).toEqual(['by reference'])
    expect(await looked(defaultDialect(), { isThere: false })).toEqual(['by reference', 1, 'by reference'])
    expect(await looked(forgetful(), { isThere: false })).toEqual([1, 2])
    expect(await looked(forgetful({ total: null, more: 'more' }), { isThere: false })).toEqual([1])
  })
})
