import { describe, expect, test } from 'vitest'
import { cancelOrder } from '../../src/ordering/actions.ts'
import { decidePurchase } from '../../src/ordering/decide.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { Secret } from '../../src/secret.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { isOnPostgres } from '../support/postgres.ts'
import {
  by,
  cancelledBeforeHandOver,
  closed,
  decide,
  failedAfterFirstKey,
  HOUR,
  keysShort,
  known,
  MINUTE,
  orderedTwice,
  states,
} from '../support/reviews.ts'
import { first, openTestApp } from '../support/test-app.ts'

describe('handing over what came', () => {
  test('gives the store at most the quantity when too many keys came', async () => {
    const app = await openTestApp()
    const { supplier } = app
    app.ordering.supplier.order = async (id) => {
      const order = await supplier.order(id)
      return order && order.keys.length > 0 ? { ...order, keys: [...order.keys, new Secret('ONE-TOO-MANY')] } : order
    }
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    await decide(app, orderId, { type: 'hand_over' })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled', note: null })
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.callbacks('line.failed')).toEqual([])
    app.expectLedger({ charges: 1, keys: 2 })
  })

  test('ends an order that is short, and tells the store how many units will not come', async () => {
    const app = await openTestApp()
    const orderId = await keysShort(app, 5, 2)
    await decide(app, orderId, { type: 'hand_over' })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    expect(app.callbacks('line.fulfilled').map(({ data }) => [data.delivered, data.complete])).toEqual([[2, false]])
    expect(app.callbacks('line.failed').map(({ data }) => [data.quantity, data.code, data.state])).toEqual([
      [3, 'short', 'failed'],
    ])
    expect(closed(app)).toEqual(['partly_fulfilled'])
    app.expectLedger({ charges: 1, keys: 2 })
  })

  test('clears the cancellation that came after the keys', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.settle()
    await cancelOrder(app.ordering, orderId, 'shop')
    app.sandbox.world.orders.complete(first(known(app)))
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    await decide(app, orderId, { type: 'hand_over' })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled', cancelRequestedAt: null })
    expect(closed(app)).toEqual(['fulfilled'])
    app.expectLedger({ charges: 1, keys: 2 })
  })

  test('that waited for the decision does not wait any longer', async () => {
    const app = await openTestApp()
    const orderId = await cancelledBeforeHandOver(app)
    await decide(app, orderId, { type: 'hand_over' })
    await app.settle()
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('when the store has all that came already ends the purchase at once', async () => {
    const app = await openTestApp()
    const orderId = await failedAfterFirstKey(app, 3)
    await decide(app, orderId, { type: 'hand_over' })
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    await app.pass(MINUTE)
    expect(app.callbacks('line.failed').map(({ data }) => data.quantity)).toEqual([2])
    expect(closed(app)).toEqual(['partly_fulfilled'])
    app.expectLedger({ charges: 0, keys: 1 })
  })

  test('is refused when nothing came', async () => {
    const app = await openTestApp()
    const { orderId } = await orderedTwice(app)
    await expect(decide(app, orderId, { type: 'hand_over' })).rejects.toMatchObject({ reason: 'no_keys' })
  })
})

describe('a decision', () => {
  test('is in the audit with its actor and reason, in the commit that carries it out', async () => {
    const app = await openTestApp()
    const { orderId, own } = await orderedTwice(app)
    const { id } = await app.purchase(orderId)
    await decide(app, orderId, { type: 'adopt', orderId: own })
    expect(await app.db.query(auditOf(id))).toEqual([
      expect.objectContaining({ action: 'purchase.adopt', actor: 'ann', detail: `order ${own}: ${by.reason}` }),
    ])
  })

  test.each(['planned', 'completed', 'fulfilled', 'unknown', 'cancelled'] as const)(
    'is refused with what helps instead when the purchase is %s',
    async (state) => {
      const app = await openTestApp()
      if (state === 'unknown') app.sandbox.faults.add({ fault: 'answer-lost' })
      if (state === 'completed') app.shop.answerNext(500, 100)
      const orderId = await app.buy('1001')
      if (state === 'cancelled') await cancelOrder(app.ordering, orderId, 'shop')
      if (state === 'unknown') await app.settle()
      if (state === 'completed' || state === 'fulfilled') await app.pass(MINUTE)
      const before = await app.purchase(orderId)
      expect(before.state).toBe(state)
      for (const type of ['hand_over', 'close', 'buy_again'] as const) {
        const refused = { code: 'conflict', reason: 'not_decidable', message: expect.stringContaining(`is ${state}: `) }
        await expect(decide(app, orderId, { type })).rejects.toMatchObject(refused)
      }
      expect(await app.purchase(orderId)).toEqual(before)
    },
  )

  test('on a purchase that is not there is refused', async () => {
    const app = await openTestApp()
    await expect(decidePurchase(app.ordering, 'nowhere', { type: 'close' }, by)).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  test('of two people at the same instant counts once, and the other person is shown what happened', async () => {
    const app = await openTestApp()
    const { orderId, own, second } = await orderedTwice(app)
    const tries = await Promise.allSettled([
      decide(app, orderId, { type: 'adopt', orderId: own }),
      decide(app, orderId, { type: 'adopt', orderId: second }),
    ])
    const refused = tries.filter((one) => one.status === 'rejected')
    expect(refused.map(({ reason }) => reason)).toEqual([expect.objectContaining({ reason: 'evidence_changed' })])
    const { id } = await app.purchase(orderId)
    expect(await app.db.query(auditOf(id))).toHaveLength(1)
    await app.pass(MINUTE)
    app.expectLedger({ charges: 2, keys: 1, perPart: 2 })
  })

  test.skipIf(isOnPostgres)('of two people who want opposite things counts once', async () => {
    const app = await openTestApp()
    const orderId = await keysShort(app, 2, 1)
    const tries = await Promise.allSettled([
      decide(app, orderId, { type: 'buy_again' }),
      decide(app, orderId, { type: 'close' }),
      decide(app, orderId, { type: 'hand_over' }),
      decide(app, orderId, { type: 'buy_again' }),
    ])
    expect(tries.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected'])
    await app.pass(MINUTE)
    expect(await states(app, orderId)).toEqual([
      ['cancelled', 2],
      ['fulfilled', 2],
    ])
    app.expectLedger({ charges: 2, keys: 2, perPart: 2 })
  })

  test('meets a cancellation that comes at the same instant, and is asked for again', async () => {
    const app = await openTestApp()
    const orderId = await keysShort(app, 2, 1)
    const { order } = app.ordering.supplier
    app.ordering.supplier.order = async (id) => {
      await cancelOrder(app.ordering, orderId, 'shop')
      return order(id)
    }
    const { supplierOrderId } = await app.purchase(orderId)
    await expect(decide(app, orderId, { type: 'adopt', orderId: String(supplierOrderId) })).rejects.toMatchObject({
      reason: 'evidence_changed',
    })
  })

  test('on an accepted purchase whose order never ends gives the store what it needs', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.pass(25 * HOUR, HOUR)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted' })
    await decide(app, orderId, { type: 'buy_again' })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.sandbox.world.orders.complete(first(known(app).filter(({ status }) => status === 'open')))
    await sweep(app.ordering)
    await app.pass(HOUR)
    expect(await currentFreeze(app.db)).toBeUndefined()
    app.expectLedger({ charges: 2, keys: 1, perPart: 2 })
  })
})
