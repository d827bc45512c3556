/** A supplier whose answers about orders cannot be read: people are alerted at once, and nothing more is bought. */
import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { cancelOrder } from '../../src/ordering/actions.ts'
import { endPause } from '../../src/ordering/unreadable-answers.ts'
import { type AlertEffect, listOutbox } from '../../src/storage/outbox.ts'
import type { UnreadableAnswer } from '../../src/supplier/client.ts'
import { openApi } from '../support/api-world.ts'
import type { StatedOrder } from '../support/changed-answers.ts'
import { decide } from '../support/reviews.ts'
import { defaultDialect, openTestApp, type TestApp } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** A dialect that looks for the quantity of an order where the supplier has the amount, until it is fixed. */
async function openUnreadable(policy = {}) {
  const sandboxDialect = defaultDialect()
  const order: Dialect['order'] = { ...sandboxDialect.order, quantity: sandboxDialect.order.amount }
  const app = await openTestApp({ dialect: { ...sandboxDialect, order }, sandboxDialect, policy })
  const { sku, productId } = await app.offer()
  app.sandbox.world.offers.change(productId, { stock: 1_000 })
  return {
    app,
    buy: (count: number, from = 1): Promise<string[]> =>
      Promise.all(
        Array.from({ length: count }, async (_, n) => (await app.order(String(from + n), [{ sku }])).orderId),
      ),
    fix: (): void => {
      order.quantity = sandboxDialect.order.quantity
    },
  }
}

const charges = ({ sandbox }: TestApp): number => sandbox.world.report().charges.length
const alertsOf = async ({ db }: TestApp, type: string) =>
  (await db.query(listOutbox({ kind: 'alert', limit: 100 })))
    .filter((row) => row.type === type)
    .map(({ payload }) => payload as AlertEffect['payload'])

test('status names the answers that cannot be read, until they are', async () => {
  const sandboxDialect = defaultDialect()
  const order: Dialect['order'] = { ...sandboxDialect.order, quantity: sandboxDialect.order.amount }
  const world = await openApi({ dialect: { ...sandboxDialect, order }, sandboxDialect })
  const unreadable = async () =>
    (await world.ask('GET', '/status', { token: world.tokens.viewer })).body.data.unreadable
  expect(await unreadable()).toEqual([])
  await world.buy('1')
  await world.pass(5 * SECOND)
  expect(await unreadable()).toEqual(
    ['POST /orders', 'GET /orders/{id}', 'GET /orders'].map((request) => ({
      request,
      field: 'amount',
      setting: 'order.quantity',
      value: expect.stringMatching(/^"\d/),
      requestId: expect.any(String),
      since: expect.any(String),
      pausesBuying: true,
    })),
  )
  order.quantity = sandboxDialect.order.quantity
  await world.pass(10 * MINUTE, 10 * SECOND)
  expect(await unreadable()).toMatchObject([{ request: 'POST /orders' }])
  await world.buy('2')
  await world.pass(5 * SECOND)
  expect(await unreadable()).toEqual([])
})

describe('answers of the supplier that cannot be read', () => {
  test('alert at the first one of a kind, with the request, the field and the value', async () => {
    const { app, buy } = await openUnreadable()
    await buy(1)
    await app.pass(5 * SECOND)
    const alerts = await alertsOf(app, 'unreadable_answer')
    expect(alerts.map(({ request }) => request).sort()).toEqual(['GET /orders', 'GET /orders/{id}', 'POST /orders'])
    for (const alert of alerts) {
      expect(alert).toMatchObject({ field: 'amount', setting: 'order.quantity', value: expect.stringMatching(/^"\d/) })
      expect(alert.note).toMatch(
        /^the answer to (GET|POST) \/orders(\/\{id\})? cannot be read: amount \(order\.quantity of the dialect\) has "\d/,
      )
      expect(alert.requestId).toMatch(/^req/)
    }
    await app.pass(30 * MINUTE, MINUTE)
    expect(await alertsOf(app, 'unreadable_answer')).toHaveLength(3)
  })

  test('pause buying: of 22 orders no more are charged than were under way', async () => {
    const { app, buy } = await openUnreadable()
    await buy(22)
    await app.pass(10 * MINUTE, 10 * SECOND)
    expect(charges(app)).toBeGreaterThan(0)
    expect(charges(app)).toBeLessThanOrEqual(app.ordering.policy.inFlight)
  })

  test('pause buying until one is read, and then all is bought once', async () => {
    const { app, buy, fix } = await openUnreadable()
    await buy(8)
    await app.pass(5 * MINUTE, 10 * SECOND)
    expect(app.ordering.supplier.unreadable()).not.toEqual([])
    fix()
    await app.pass(20 * MINUTE, 10 * SECOND)
    app.expectLedger({ charges: 8, keys: 8 })
    expect(app.ordering.supplier.unreadable()).toEqual([])
  })

  test('pause buying no longer once the order in doubt was read by its id, although no order is listed', async () => {
    const { app, buy, fix } = await openUnreadable()
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: 24 * 60 * MINUTE })
    const [orderId = ''] = await buy(1)
    await app.settle()
    fix()
    await cancelOrder(app.ordering, orderId, 'test')
    await app.pass(20 * MINUTE, 10 * SECOND)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    const [next = ''] = await buy(1, 2)
    await app.pass(MINUTE, 10 * SECOND)
    expect(await app.state(next)).toBe('fulfilled')
  })
})

describe('keys of a completed order that cannot be read', () => {
  /** The dialect leads to `licences`; the supplier has its keys at `keys`, and this there once an order is completed. */
  const forms: [what: string, there: string | undefined][] = [
    ['is not there', undefined],
    ['is no list', 'a text with every key'],
  ]
  async function openKeyless(there: string | undefined) {
    const sandboxDialect = defaultDialect()
    const order: Dialect['order'] = { ...sandboxDialect.order, keys: 'licences' }
    const stated = (one: StatedOrder & { licences?: string }): void => {
      if (one.external_order_id.includes(OPEN)) one.status = 'pending'
      if (there !== undefined && one.status === 'completed') one.licences = there
    }
    const app = await openTestApp({ dialect: { ...sandboxDialect, order }, sandboxDialect, stated })
    const { sku, productId } = await app.offer()
    app.sandbox.world.offers.change(productId, { stock: 1_000 })
    const buy = async (reference: string) => (await app.order(reference, [{ sku }])).orderId
    const fix = (): void => {
      order.keys = sandboxDialect.order.keys
    }
    return { app, buy, fix }
  }

  test('stop first sends no longer once a person has decided on the only order without keys', async () => {
    const { app, buy } = await openKeyless(undefined)
    const orderId = await buy('1')
    await app.pass(5 * MINUTE, 5 * SECOND)
    await buy('2')
    await app.pass(60 * MINUTE, MINUTE)
    expect(charges(app)).toBe(1)
    await decide(app, orderId, { type: 'close' })
    await app.pass(5 * MINUTE, 5 * SECOND)
    expect(charges(app)).toBe(2)
  })

  test('stop first sends no longer once a person has decided on the only order whose second read has none', async () => {
    const sandboxDialect = defaultDialect()
    const { order } = sandboxDialect
    // The second read goes to the address of the order, where `licences` has its keys.
    const keys = { path: '/orders/{id}', items: 'licences' }
    const dialect = dialectShape.parse({ ...sandboxDialect, order: { ...order, keys: '', keyText: null }, keys })
    const stated = (one: StatedOrder & { licences?: string[] }): void => {
      one.licences = one.external_order_id.includes(BROKEN) ? [] : one.keys
    }
    const app = await openTestApp({ dialect, sandboxDialect, stated })
    const { sku } = await app.offer()
    const { orderId } = await app.order(BROKEN, [{ sku }])
    await app.pass(61 * MINUTE, MINUTE)
    expect(await alertsOf(app, 'unreadable_answer')).toMatchObject([{ setting: 'keys.items' }])
    const next = await app.order('2', [{ sku }])
    await app.pass(5 * MINUTE, 5 * SECOND)
    expect(charges(app)).toBe(1)
    await decide(app, orderId, { type: 'close' })
    await app.pass(5 * MINUTE, 5 * SECOND)
    expect(await app.state(next.orderId)).toBe('fulfilled')
  })

  test.each(forms)('alert within five minutes and stop first sends: the list %s', async (_, there) => {
    const { app, buy } = await openKeyless(there)
    await buy('1')
    await app.pass(5 * MINUTE, 5 * SECOND)
    expect(charges(app)).toBe(1)
    const alerts = await alertsOf(app, 'unreadable_answer')
    expect(alerts).toMatchObject([
      {
        request: 'GET /orders/{id}',
        field: 'licences',
        setting: 'order.keys',
        note: expect.stringContaining('nothing new is bought'),
      },
    ])
    await buy('2')
    await buy('3')
    await app.pass(26 * 60 * MINUTE, 10 * MINUTE)
    expect(charges(app)).toBe(1)
  })

  test.each(forms)('buying goes on once such an order is read with keys: the list %s', async (_, there) => {
    const { app, buy, fix } = await openKeyless(there)
    const bought = [await buy('1')]
    await app.pass(5 * MINUTE, 5 * SECOND)
    bought.push(await buy('2'), await buy('3'))
    fix()
    await app.pass(30 * MINUTE, 10 * SECOND)
    expect(await Promise.all(bought.map(app.state))).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    expect(app.ordering.supplier.unreadable()).toEqual([])
    app.expectLedger({ charges: 3, keys: 3 })
  })

  test.each(forms)(
    'stop first sends also while other orders are read that are still open: the list %s',
    async (_, there) => {
      const { app, buy } = await openKeyless(there)
      await buy('1')
      await buy(OPEN)
      await app.pass(5 * MINUTE, 5 * SECOND)
      await buy('3')
      await app.pass(5 * MINUTE, 5 * SECOND)
      expect(charges(app)).toBe(2)
      expect(app.ordering.supplier.unreadable()).toMatchObject([{ request: 'GET /orders/{id}', setting: 'order.keys' }])
    },
  )

  test('stop nothing where one order alone has none and another is read with keys', async () => {
    const app = await openTestApp({
      stated: (order) => {
        if (order.external_order_id.includes(BROKEN) && order.status === 'completed') order.keys = []
      },
    })
    const { sku } = await app.offer()
    await app.order('1', [{ sku }])
    await app.pass(MINUTE, SECOND)
    await app.order(BROKEN, [{ sku }])
    await app.pass(5 * MINUTE, 5 * SECOND)
    const after = await app.order('3', [{ sku }])
    await app.pass(5 * MINUTE, 5 * SECOND)
    expect(await app.state(after.orderId)).toBe('fulfilled')
    expect(await alertsOf(app, 'unreadable_answer')).toEqual([])
  })
})

const BROKEN = 'broken'
const OPEN = 'open'

describe('answers that pause buying', () => {
  const unread = {
    field: 'status',
    setting: 'order.status',
    seen: '"x"',
    requestId: undefined,
    partly: false,
    since: 0,
  }

  test('are asked for again a minute after they came and then each minute, until they are read', async () => {
    const { ordering, move } = await openTestApp()
    const asked: string[] = []
    const one = { ...unread, request: 'GET /orders/{id}', id: 'order-1' }
    let standing: UnreadableAnswer[] = [one, { ...unread, request: 'GET /orders' }]
    const supplier = {
      ...ordering.supplier,
      unreadable: () => standing,
      order: async (id: string) => void asked.push(id),
      orders: async () => {
        asked.push('the list')
        throw new Error('it cannot be read')
      },
    }
    const looks = async (ms: number) => {
      move(ms)
      await endPause({ ...ordering, supplier })
      return asked.splice(0)
    }
    expect(await looks(0), 'other reads may succeed before').toEqual([])
    expect(await looks(MINUTE - 1)).toEqual([])
    expect(await looks(1)).toEqual(['order-1', 'the list'])
    expect(await looks(MINUTE - 1)).toEqual([])
    expect(await looks(1)).toEqual(['order-1', 'the list'])
    standing = [{ ...unread, request: 'GET /products' }]
    expect(await looks(MINUTE), 'others pause nothing').toEqual([])
    standing = [one]
    expect(await looks(MINUTE), 'it is a new one').toEqual([])
    expect(await looks(MINUTE)).toEqual(['order-1'])
  })

  test('to an order pause it until no purchase is in doubt', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await app.buy('1001')
    await app.round()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
    const { pace } = app.ordering
    pace.breaker = { phase: 'open', ambiguousInRow: 1, unread: true }
    await endPause(app.ordering)
    expect(pace.breaker).toMatchObject({ phase: 'open' })
    await app.db.commit([{ statement: sql`update purchases set state = 'fulfilled'`, rows: 1 }])
    await endPause(app.ordering)
    expect(pace.breaker).toMatchObject({ phase: 'probing' })
  })
})
