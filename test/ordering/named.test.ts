/** An answer that names an order and cannot be believed: the order is read by its id, and nothing is repeated for it. */
import { describe, expect, test } from 'vitest'
import { cancelOrder } from '../../src/ordering/actions.ts'
import type { Decision, Order, OrderRequest } from '../../src/sandbox/orders.ts'
import { attemptsOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import type { StatedOrder } from '../support/changed-answers.ts'
import { decide, HOUR, known, MINUTE } from '../support/reviews.ts'
import { defaultDialect, first, openTestApp, type TestApp } from '../support/test-app.ts'

type Place = (key: string, fingerprint: string, request: OrderRequest) => Decision

/** Stands between the supplier's endpoint and its decision on a request. */
function insteadOf(app: TestApp, make: (place: Place, ...request: Parameters<Place>) => Decision): void {
  const { orders } = app.sandbox.world
  const { place } = orders
  orders.place = ((...request: Parameters<Place>) => make(place, ...request)) as typeof place
}

const ordered = (order: Order): Decision => ({ kind: 'ordered', order })
const seen = async (app: TestApp, orderId: string) => (await app.purchase(orderId)).ordersSeen

/** A supplier that keeps the first characters of a reference alone, in its answers and in its list. */
const cutsReferences = (app: TestApp): void =>
  insteadOf(app, (place, key, fingerprint, request) =>
    place(key, fingerprint, { ...request, externalOrderId: request.externalOrderId?.slice(0, 24) ?? null }),
  )

describe('an answer that names an order and differs', () => {
  test('of a supplier that cuts the reference is not repeated 90 times: it goes to review with that order', async () => {
    const app = await openTestApp()
    cutsReferences(app)
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown', maybeChargedAt: app.now() })
    await app.pass(6 * HOUR, 5 * MINUTE)
    expect(app.sent).toHaveLength(1)
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'review',
      note: expect.stringContaining('differs from what was sent'),
    })
    const { id } = first(known(app))
    expect(await seen(app, orderId)).toEqual([id])
    expect(await app.alerts()).toContain('named_order_differs')
    await decide(app, orderId, { type: 'adopt', orderId: id })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sandbox.world.report().charges).toHaveLength(1)
  })

  test('is accepted within seconds when the order, read by its id, is as it was sent', async () => {
    const app = await openTestApp()
    app.ordering.supplier.orders = () => Promise.reject(new Error('the list is broken'))
    insteadOf(app, (place, ...request) => {
      const made = place(...request)
      return made.kind === 'ordered' ? ordered({ ...made.order, quantity: made.order.quantity + 1 }) : made
    })
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 2 })
  })

  test('that is of another purchase does not keep its own order from being found', async () => {
    const app = await openTestApp()
    const other = await app.buy('1001')
    await app.pass(MINUTE)
    const mixedUp = first(known(app))
    insteadOf(app, (place, ...request) => {
      place(...request)
      return ordered(mixedUp)
    })
    const orderId = await app.buy('1002')
    await app.pass(MINUTE)
    expect([await app.state(other), await app.state(orderId)]).toEqual(['fulfilled', 'fulfilled'])
    expect(await currentFreeze(app.db)).toBeUndefined()
    app.expectLedger({ charges: 2, keys: 2 })
  })

  test('that has the id of another purchase, and is else as it was sent, is looked up at once: it was an internal error', async () => {
    const app = await openTestApp()
    const other = await app.buy('1001')
    await app.pass(MINUTE)
    const { id } = first(known(app))
    insteadOf(app, (place, ...request) => {
      const made = place(...request)
      return made.kind === 'ordered' ? ordered({ ...made.order, id }) : made
    })
    const orderId = await app.buy('1002')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown', namedOrderId: id, errorCount: 0 })
    await app.pass(MINUTE)
    expect([await app.state(other), await app.state(orderId)]).toEqual(['fulfilled', 'fulfilled'])
    app.expectLedger({ charges: 2, keys: 2 })
  })

  test('that the supplier neither lists nor knows goes to review, and is not sent again, cancelled or not', async () => {
    for (const isCancelled of [false, true]) {
      const app = await openTestApp()
      const ghost = '01890000-0000-7000-8000-000000000000'
      insteadOf(app, (_place, _key, _fingerprint, request) =>
        ordered({
          ...request,
          id: ghost,
          status: 'open',
          amountMinor: 1,
          failureCode: null,
          failureMessage: null,
          externalOrderId: 'ghost',
          plan: { kind: 'complete' },
          dueAt: null,
          hiddenUntil: 0,
          createdAt: app.now(),
          updatedAt: app.now(),
        }),
      )
      const orderId = await app.buy('1001')
      await app.settle()
      if (isCancelled) await cancelOrder(app.ordering, orderId, 'shop')
      await app.pass(20 * MINUTE)
      expect(app.sent).toHaveLength(1)
      expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
      expect(await seen(app, orderId)).toEqual([ghost])
    }
  })
})

describe('a purchase that is never found', () => {
  test('is repeated three times at most, and then goes to review', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before', times: 100 })
    const orderId = await app.buy('1001')
    await app.pass(6 * HOUR, MINUTE)
    expect(app.sent).toHaveLength(4)
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'review',
      note: 'no order was found and it was repeated 3 times: it cannot be repeated safely',
    })
  })

  test('uses up none of its repeats while the supplier takes no request', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.sandbox.faults.add({ fault: 'rate-limit', times: 5, retryAfter: 1 })
    await app.pass(3 * HOUR, MINUTE)
    expect(app.sent).toHaveLength(7)
    expect(await app.state(orderId)).toBe('fulfilled')
    const attempts = await app.db.query(attemptsOf([(await app.purchase(orderId)).id]))
    expect(attempts.filter(({ status }) => status === 429)).toHaveLength(5)
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('the first order of a process', () => {
  const buyAll = async (app: TestApp, count: number): Promise<string[]> => {
    const { sku, productId } = await app.offer()
    app.sandbox.world.offers.change(productId, { stock: 1_000 })
    const orders = Array.from({ length: count }, (_, number) => app.order(String(number + 1), [{ sku }]))
    return (await Promise.all(orders)).map(({ orderId }) => orderId)
  }
  const statesOf = async (app: TestApp, orderIds: string[]) =>
    Promise.all(orderIds.map(async (id) => (await app.purchase(id)).state))

  test('goes alone: of eight orders that would all differ from what was sent, one is charged, and buying is not frozen', async () => {
    const dialect = defaultDialect()
    const app = await openTestApp({
      dialect: { ...dialect, order: { ...dialect.order, productId: 'id' } },
      sandboxDialect: dialect,
    })
    const orderIds = await buyAll(app, 8)
    await app.pass(HOUR, 30_000)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
    expect((await statesOf(app, orderIds)).filter((state) => state === 'review')).toHaveLength(1)
    expect(await currentFreeze(app.db)).toBeUndefined()
    const reviewed = orderIds[(await statesOf(app, orderIds)).indexOf('review')] ?? ''
    const { note, supplierProductId } = await app.purchase(reviewed)
    expect(note).toContain('order.productId of the dialect')
    expect(note).toContain(`and not "${supplierProductId}"; nothing more is bought until this is decided`)
    await decide(app, reviewed, { type: 'close' })
    await app.pass(10 * MINUTE, 30_000)
    expect(app.sandbox.world.report().charges).toHaveLength(2)
  })

  test('that agrees lets the others go side by side', async () => {
    const app = await openTestApp()
    const { placeOrder } = app.ordering.supplier
    let [now, most] = [0, [] as number[]]
    app.ordering.supplier.placeOrder = async (request) => {
      now += 1
      most.push(now)
      return placeOrder(request).finally(() => {
        now -= 1
      })
    }
    const orderIds = await buyAll(app, 6)
    await app.pass(MINUTE)
    expect(new Set(await statesOf(app, orderIds))).toEqual(new Set(['fulfilled']))
    expect(most.slice(0, 1)).toEqual([1])
    most = []
    await buyAll(app, 12)
    await app.pass(MINUTE)
    expect(Math.max(...most)).toBeGreaterThan(1)
  })
})

test('an order whose product id is in capitals, where the catalogue has small letters, is the order that was sent', async () => {
  const app = await openTestApp({
    stated: (order: StatedOrder & { product_id?: string }) => {
      order.product_id = order.product_id?.toUpperCase() ?? ''
    },
  })
  const orderId = await app.buy('1001')
  await app.pass(MINUTE)
  expect(await app.state(orderId)).toBe('fulfilled')
  expect(await app.alerts()).toEqual([])
})
