import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { cancelOrder } from '../../src/ordering/actions.ts'
import { decidePurchase } from '../../src/ordering/decide.ts'
import { viewEvidence } from '../../src/ordering/evidence.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { Secret } from '../../src/secret.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { START_ACTOR, setRestoreHold } from '../../src/storage/restores.ts'
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

  test('was said to give no key, and to lack every unit, where the order had taken all units back: it gives what came', async () => {
    const app = await openTestApp()
    const orderId = await keysShort(app, 3, 2)
    await app.db.commit([{ statement: sql`update purchases set surplus = quantity`, rows: 1 }])
    const { choices } = await viewEvidence(app.ordering, (await app.purchase(orderId)).id, { read: false })
    expect(choices.find(({ decision }) => decision === 'hand_over')?.does).toContain('Gives the store 2 of the 2 keys')
    await decide(app, orderId, { type: 'hand_over' })
    await app.pass(MINUTE)
    expect(app.callbacks('line.fulfilled').map(({ data }) => data.delivered)).toEqual([2])
    expect(app.callbacks('line.failed').map(({ data }) => data.quantity)).toEqual([1])
    app.expectLedger({ charges: 1, keys: 2 })
  })

  test.each([
    ['hand_over', 2, []],
    ['close', 0, [2]],
  ] as const)(
    'reported one unit too many as lost, where the order had taken that unit back (%s)',
    async (type, keys, lost) => {
      const app = await openTestApp()
      const orderId = await keysShort(app, 3, 2)
      await app.db.commit([{ statement: sql`update purchases set surplus = 1`, rows: 1 }])
      const { choices } = await viewEvidence(app.ordering, (await app.purchase(orderId)).id, { read: false })
      const said = Object.fromEntries(choices.map(({ decision, does }) => [decision, does]))
      expect(said.hand_over).not.toContain('will not come')
      expect(said.close).toContain('2 units will not come')
      expect(said.buy_again).toContain('buys 2 units again')
      await decide(app, orderId, { type })
      await app.pass(MINUTE)
      expect(app.callbacks('line.failed').map(({ data }) => data.quantity)).toEqual(lost)
      app.expectLedger({ charges: 1, keys })
    },
  )

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
  test('is refused while a worker is at the purchase, and carried out when that is over', async () => {
    const app = await openTestApp()
    const { orderId } = await orderedTwice(app)
    await app.db.commit([{ statement: sql`update purchases set lease_until = ${app.now() + 1}`, rows: 1 }])
    await expect(decide(app, orderId, { type: 'close' })).rejects.toMatchObject({ reason: 'busy' })
    app.move(1)
    await decide(app, orderId, { type: 'close' })
    expect(await app.purchase(orderId)).toMatchObject({ state: 'cancelled', note: 'closed by a person' })
  })

  test.each([undefined, false, true])(
    'to buy again lifts the spend caps only where it says so (%s)',
    async (overrides) => {
      const app = await openTestApp()
      const { orderId } = await orderedTwice(app)
      await decide(app, orderId, {
        type: 'buy_again',
        ...(overrides !== undefined && { overrideSpendCap: overrides }),
      })
      expect(await app.purchase(orderId)).toMatchObject({
        generation: 2,
        spendCapOverriddenAt: overrides ? app.now() : null,
      })
      const { id } = first(await app.purchases(orderId))
      expect((await app.db.query(auditOf(id)))[0]?.detail).toBe(
        overrides ? `spend caps overridden: ${by.reason}` : by.reason,
      )
    },
  )

  test('is refused that hands keys over while orders are reattached after a restore, and no other one', async () => {
    const app = await openTestApp()
    const { orderId, own } = await orderedTwice(app)
    await app.db.commit([setRestoreHold({ reason: 'a start', actor: START_ACTOR, at: app.now() }, app.now())])
    for (const decision of [{ type: 'hand_over' }, { type: 'adopt', orderId: own }] as const) {
      const isNoKey = decision.type === 'hand_over'
      await expect(decide(app, orderId, decision)).rejects.toMatchObject({
        reason: isNoKey ? 'no_keys' : 'restore_unfinished',
      })
    }
    await decide(app, orderId, { type: 'close' })
    const short = await openTestApp()
    const shortId = await keysShort(short, 2, 1)
    await short.db.commit([setRestoreHold({ reason: 'a start', actor: START_ACTOR, at: 1 }, 1)])
    await expect(decide(short, shortId, { type: 'hand_over' })).rejects.toMatchObject({ reason: 'restore_unfinished' })
  })

  test.each([
    ['its state', "state = 'accepted'"],
    ['its order', "supplier_order_id = 'another'"],
    ['the orders seen', `orders_seen = '["one"]'`],
    ['its cancellation', 'cancel_requested_at = 1'],
    ['the hand-over of its keys', 'hand_over_begun_at = 1'],
    ['what holds that', 'hand_over_held_at = 1'],
    ['what the supplier calls it', "supplier_status = 'gone'"],
    ['nothing that bears on it', 'refreshes = 99, refresh_at = 1'],
  ])('is refused where another one was shown: %s', async (what, sets) => {
    const app = await openTestApp()
    const { orderId } = await orderedTwice(app)
    const { id } = await app.purchase(orderId)
    const { evidenceVersion } = await viewEvidence(app.ordering, id, { read: false })
    await app.db.commit([{ statement: sql`update purchases set ${sql.raw(sets)}`, rows: 1 }])
    const decided = decidePurchase(app.ordering, id, { type: 'close' }, { ...by, evidenceVersion })
    if (what.startsWith('nothing')) await decided
    else await expect(decided).rejects.toMatchObject({ reason: 'evidence_changed' })
  })

  test('takes an order under another reference, or of another product, only where a person was shown it', async () => {
    const app = await openTestApp()
    const { orderId, second } = await orderedTwice(app)
    const { supplier } = app
    const { supplierProductId, externalOrderId } = await app.purchase(orderId)
    let is: object = {}
    app.ordering.supplier.order = async (id) => {
      const order = await supplier.order(second)
      return order && { ...order, id, ...is }
    }
    for (const strange of [
      { externalOrderId: 'of-another' },
      { externalOrderId: 'of-another', productId: supplierProductId },
      { externalOrderId: undefined, productId: 'another' },
    ]) {
      is = strange
      await expect(decide(app, orderId, { type: 'adopt', orderId: 'unseen' })).rejects.toMatchObject({
        reason: 'order_foreign',
      })
    }
    await decide(app, orderId, { type: 'adopt', orderId: second })
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted', supplierOrderId: second, externalOrderId })
  })
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
