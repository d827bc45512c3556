import { describe, expect, test } from 'vitest'
import { cancelOrder } from '../../src/ordering/actions.ts'
import { decidePurchase } from '../../src/ordering/decide.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { Secret } from '../../src/secret.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/settings.ts'
import { first, openHarbour } from '../support/harbour.ts'
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

describe('handing over what came', () => {
  test('gives the store at most the quantity when too many keys came', async () => {
    const harbour = await openHarbour()
    const { supplier } = harbour
    harbour.ordering.supplier.order = async (id) => {
      const order = await supplier.order(id)
      return order && order.keys.length > 0 ? { ...order, keys: [...order.keys, new Secret('ONE-TOO-MANY')] } : order
    }
    const orderId = await harbour.buy('1001', { quantity: 2 })
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    await decide(harbour, orderId, { type: 'hand_over' })
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled', note: null })
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.callbacks('line.failed')).toEqual([])
    harbour.expectLedger({ charges: 1, keys: 2 })
  })

  test('ends an order that is short, and tells the store how many units will not come', async () => {
    const harbour = await openHarbour()
    const orderId = await keysShort(harbour, 5, 2)
    await decide(harbour, orderId, { type: 'hand_over' })
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    expect(harbour.callbacks('line.fulfilled').map(({ data }) => [data.delivered, data.complete])).toEqual([[2, false]])
    expect(harbour.callbacks('line.failed').map(({ data }) => [data.quantity, data.code, data.state])).toEqual([
      [3, 'short', 'failed'],
    ])
    expect(closed(harbour)).toEqual(['partly_fulfilled'])
    harbour.expectLedger({ charges: 1, keys: 2 })
  })

  test('clears the cancellation that came after the keys', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001', { quantity: 2 })
    await harbour.settle()
    await cancelOrder(harbour.ordering, orderId, 'shop')
    harbour.sandbox.world.orders.complete(first(known(harbour)))
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    await decide(harbour, orderId, { type: 'hand_over' })
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled', cancelRequestedAt: null })
    expect(closed(harbour)).toEqual(['fulfilled'])
    harbour.expectLedger({ charges: 1, keys: 2 })
  })

  test('that waited for the decision does not wait any longer', async () => {
    const harbour = await openHarbour()
    const orderId = await cancelledBeforeHandOver(harbour)
    await decide(harbour, orderId, { type: 'hand_over' })
    await harbour.settle()
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('when the store has all that came already ends the purchase at once', async () => {
    const harbour = await openHarbour()
    const orderId = await failedAfterFirstKey(harbour, 3)
    await decide(harbour, orderId, { type: 'hand_over' })
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    await harbour.pass(MINUTE)
    expect(harbour.callbacks('line.failed').map(({ data }) => data.quantity)).toEqual([2])
    expect(closed(harbour)).toEqual(['partly_fulfilled'])
    harbour.expectLedger({ charges: 0, keys: 1 })
  })

  test('is refused when nothing came', async () => {
    const harbour = await openHarbour()
    const { orderId } = await orderedTwice(harbour)
    await expect(decide(harbour, orderId, { type: 'hand_over' })).rejects.toMatchObject({ reason: 'no_keys' })
  })
})

describe('a decision', () => {
  test('is in the audit with its actor and reason, in the commit that carries it out', async () => {
    const harbour = await openHarbour()
    const { orderId, own } = await orderedTwice(harbour)
    const { id } = await harbour.purchase(orderId)
    await decide(harbour, orderId, { type: 'adopt', orderId: own })
    expect(await harbour.db.query(auditOf(id))).toEqual([
      expect.objectContaining({ action: 'purchase.adopt', actor: 'ann', detail: `order ${own}: ${by.reason}` }),
    ])
  })

  test.each(['planned', 'completed', 'fulfilled', 'unknown', 'cancelled'] as const)(
    'is refused with what helps instead when the purchase is %s',
    async (state) => {
      const harbour = await openHarbour()
      if (state === 'unknown') harbour.sandbox.faults.add({ fault: 'answer-lost' })
      if (state === 'completed') harbour.shop.answerNext(500, 100)
      const orderId = await harbour.buy('1001')
      if (state === 'cancelled') await cancelOrder(harbour.ordering, orderId, 'shop')
      if (state === 'unknown') await harbour.settle()
      if (state === 'completed' || state === 'fulfilled') await harbour.pass(MINUTE)
      const before = await harbour.purchase(orderId)
      expect(before.state).toBe(state)
      for (const type of ['hand_over', 'close', 'buy_again'] as const) {
        const refused = { code: 'conflict', reason: 'not_decidable', message: expect.stringContaining(`is ${state}: `) }
        await expect(decide(harbour, orderId, { type })).rejects.toMatchObject(refused)
      }
      expect(await harbour.purchase(orderId)).toEqual(before)
    },
  )

  test('on a purchase that is not there is refused', async () => {
    const harbour = await openHarbour()
    await expect(decidePurchase(harbour.ordering, 'nowhere', { type: 'close' }, by)).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  test('of two people at the same instant counts once, and the other is told what happened', async () => {
    const harbour = await openHarbour()
    const { orderId, own, second } = await orderedTwice(harbour)
    const tries = await Promise.allSettled([
      decide(harbour, orderId, { type: 'adopt', orderId: own }),
      decide(harbour, orderId, { type: 'adopt', orderId: second }),
    ])
    const refused = tries.filter((one) => one.status === 'rejected')
    expect(refused.map(({ reason }) => reason)).toEqual([expect.objectContaining({ reason: 'evidence_changed' })])
    const { id } = await harbour.purchase(orderId)
    expect(await harbour.db.query(auditOf(id))).toHaveLength(1)
    await harbour.pass(MINUTE)
    harbour.expectLedger({ charges: 2, keys: 1, perPart: 2 })
  })

  test('of two people who want opposite things counts once', async () => {
    const harbour = await openHarbour()
    const orderId = await keysShort(harbour, 2, 1)
    const tries = await Promise.allSettled([
      decide(harbour, orderId, { type: 'buy_again' }),
      decide(harbour, orderId, { type: 'close' }),
      decide(harbour, orderId, { type: 'hand_over' }),
      decide(harbour, orderId, { type: 'buy_again' }),
    ])
    expect(tries.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected'])
    await harbour.pass(MINUTE)
    expect(await states(harbour, orderId)).toEqual([
      ['cancelled', 2],
      ['fulfilled', 2],
    ])
    harbour.expectLedger({ charges: 2, keys: 2, perPart: 2 })
  })

  test('meets a cancellation that comes at the same instant, and is asked for anew', async () => {
    const harbour = await openHarbour()
    const orderId = await keysShort(harbour, 2, 1)
    const { order } = harbour.ordering.supplier
    harbour.ordering.supplier.order = async (id) => {
      await cancelOrder(harbour.ordering, orderId, 'shop')
      return order(id)
    }
    const { supplierOrderId } = await harbour.purchase(orderId)
    await expect(decide(harbour, orderId, { type: 'adopt', orderId: String(supplierOrderId) })).rejects.toMatchObject({
      reason: 'evidence_changed',
    })
  })

  test('on an accepted purchase whose order never ends gives the store what it needs', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(25 * HOUR, HOUR)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'accepted' })
    await decide(harbour, orderId, { type: 'buy_again' })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.sandbox.world.orders.complete(first(known(harbour).filter(({ status }) => status === 'open')))
    await sweep(harbour.ordering)
    await harbour.pass(HOUR)
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    harbour.expectLedger({ charges: 2, keys: 1, perPart: 2 })
  })
})
