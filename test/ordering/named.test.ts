/** An answer that names an order and cannot be believed: the order is read by its id, and nothing is repeated for it. */
import { describe, expect, test } from 'vitest'
import { cancelOrder } from '../../src/ordering/actions.ts'
import type { Decision, Order, OrderRequest } from '../../src/sandbox/orders.ts'
import { attemptsOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/settings.ts'
import { first, type Harbour, openHarbour } from '../support/harbour.ts'
import { decide, HOUR, known, MINUTE } from '../support/reviews.ts'

type Place = (key: string, fingerprint: string, request: OrderRequest) => Decision

/** Stands between the supplier's endpoint and its decision on a request. */
function insteadOf(harbour: Harbour, make: (place: Place, ...request: Parameters<Place>) => Decision): void {
  const { orders } = harbour.sandbox.world
  const { place } = orders
  orders.place = ((...request: Parameters<Place>) => make(place, ...request)) as typeof place
}

const ordered = (order: Order): Decision => ({ kind: 'ordered', order })
const seen = async (harbour: Harbour, orderId: string) => (await harbour.purchase(orderId)).ordersSeen

/** A supplier that keeps the first characters of a reference alone, in its answers and in its list. */
const cutsReferences = (harbour: Harbour): void =>
  insteadOf(harbour, (place, key, fingerprint, request) =>
    place(key, fingerprint, { ...request, externalOrderId: request.externalOrderId?.slice(0, 24) ?? null }),
  )

describe('an answer that names an order and differs', () => {
  test('of a supplier that cuts the reference is not repeated 90 times: it goes to review with that order', async () => {
    const harbour = await openHarbour()
    cutsReferences(harbour)
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'unknown', maybeChargedAt: harbour.now() })
    await harbour.pass(6 * HOUR, 5 * MINUTE)
    expect(harbour.sent).toHaveLength(1)
    expect(await harbour.purchase(orderId)).toMatchObject({
      state: 'review',
      note: expect.stringContaining('differs from what was sent'),
    })
    const { id } = first(known(harbour))
    expect(await seen(harbour, orderId)).toEqual([id])
    expect(await harbour.alerts()).toContain('named_order_differs')
    await decide(harbour, orderId, { type: 'adopt', orderId: id })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.sandbox.world.report().charges).toHaveLength(1)
  })

  test('is accepted within seconds when the order, read by its id, is as it was sent', async () => {
    const harbour = await openHarbour()
    harbour.ordering.supplier.orders = () => Promise.reject(new Error('the list is broken'))
    insteadOf(harbour, (place, ...request) => {
      const made = place(...request)
      return made.kind === 'ordered' ? ordered({ ...made.order, quantity: made.order.quantity + 1 }) : made
    })
    const orderId = await harbour.buy('1001', { quantity: 2 })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.sent).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 2 })
  })

  test('that is of another purchase does not keep its own order from being found', async () => {
    const harbour = await openHarbour()
    const other = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    const mixedUp = first(known(harbour))
    insteadOf(harbour, (place, ...request) => {
      place(...request)
      return ordered(mixedUp)
    })
    const orderId = await harbour.buy('1002')
    await harbour.pass(MINUTE)
    expect([await harbour.state(other), await harbour.state(orderId)]).toEqual(['fulfilled', 'fulfilled'])
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    harbour.expectLedger({ charges: 2, keys: 2 })
  })

  test('that the supplier neither lists nor knows goes to review, and is not sent again, cancelled or not', async () => {
    for (const isCancelled of [false, true]) {
      const harbour = await openHarbour()
      const ghost = '01890000-0000-7000-8000-000000000000'
      insteadOf(harbour, (_place, _key, _fingerprint, request) =>
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
          createdAt: harbour.now(),
          updatedAt: harbour.now(),
        }),
      )
      const orderId = await harbour.buy('1001')
      await harbour.settle()
      if (isCancelled) await cancelOrder(harbour.ordering, orderId, 'shop')
      await harbour.pass(20 * MINUTE)
      expect(harbour.sent).toHaveLength(1)
      expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
      expect(await seen(harbour, orderId)).toEqual([ghost])
    }
  })
})

describe('a purchase that is never found', () => {
  test('is repeated three times at most, and then goes to review', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-before', times: 100 })
    const orderId = await harbour.buy('1001')
    await harbour.pass(6 * HOUR, MINUTE)
    expect(harbour.sent).toHaveLength(4)
    expect(await harbour.purchase(orderId)).toMatchObject({
      state: 'review',
      note: 'no order was found and it was repeated 3 times: it cannot be repeated safely',
    })
  })

  test('uses up none of its repeats while the supplier takes no request', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.sandbox.faults.add({ fault: 'rate-limit', times: 5, retryAfter: 1 })
    await harbour.pass(3 * HOUR, MINUTE)
    expect(harbour.sent).toHaveLength(7)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    const attempts = await harbour.db.query(attemptsOf([(await harbour.purchase(orderId)).id]))
    expect(attempts.filter(({ status }) => status === 429)).toHaveLength(5)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})
