import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { retryPurchase, unfreeze } from '../../src/ordering/actions.ts'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { keysOfPurchases } from '../../src/storage/licence-keys.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { insertPurchase } from '../../src/storage/purchases.ts'
import {
  buyBeside,
  by,
  cancelledBeforeHandOver,
  closed,
  decide,
  failedAfterFirstKey,
  HOUR,
  keysShort,
  MINUTE,
  orderedTwice,
  states,
} from '../support/reviews.ts'
import { openTestApp } from '../support/test-app.ts'

describe('closing', () => {
  test('tells the store, keeps the keys, and the order that is charged does not come back', async () => {
    const app = await openTestApp()
    const orderId = await keysShort(app, 5, 2)
    await decide(app, orderId, { type: 'close' })
    await app.pass(MINUTE)
    expect(app.callbacks('line.failed').map(({ data }) => [data.quantity, data.code, data.state])).toEqual([
      [5, 'closed', 'cancelled'],
    ])
    const shown = await viewOrder(app.ordering, orderId, { keys: true })
    expect(JSON.stringify([app.shop.received(), shown]), 'the reason is not for stores').not.toContain(by.reason)
    expect(closed(app)).toEqual(['cancelled'])
    await app.pass(24 * HOUR)
    await sweep(app.ordering)
    const { chargesMinor } = app.sandbox.world.report()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'cancelled', reservedMinor: chargesMinor })
    expect(await currentFreeze(app.db)).toBeUndefined()
    app.expectLedger({ charges: 1, keys: 0 })
  })

  test('what was charged twice does not hide a third order that shows later: it is reported and buying stops', async () => {
    const app = await openTestApp()
    const { orderId } = await orderedTwice(app)
    await decide(app, orderId, { type: 'close' })
    await unfreeze(app.ordering, 'ann')
    expect(await app.discrepancies()).toEqual(['double_charge'])
    const third = await buyBeside(app, (await app.purchase(orderId)).body, 'third')
    await sweep(app.ordering)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted', supplierOrderId: third })
    expect(await app.discrepancies()).toEqual(['double_charge', 'double_charge'])
    expect(await currentFreeze(app.db)).toMatchObject({ actor: 'quayside' })
    await app.settle()
    expect(app.callbacks('line.fulfilled'), 'a person decides about its keys').toEqual([])
    app.expectLedger({ charges: 3, keys: 0, perPart: 3 })
  })

  test('takes back a hand-over that has not begun', async () => {
    const app = await openTestApp()
    const orderId = await cancelledBeforeHandOver(app)
    await decide(app, orderId, { type: 'close' })
    await app.pass(2 * HOUR)
    expect(await app.state(orderId)).toBe('cancelled')
    expect(await app.db.query(listOutbox({ state: 'due', limit: 10 })), 'nothing waits without an end').toEqual([])
    expect(app.callbacks('line.fulfilled')).toEqual([])
    app.expectLedger({ charges: 1, keys: 0 })
  })

  test('leaves keys that were leaving on their way, and the store is notified of the others', async () => {
    const app = await openTestApp()
    app.shop.answerNext(500, 3)
    const orderId = await failedAfterFirstKey(app, 3)
    await decide(app, orderId, { type: 'close' })
    await app.pass(HOUR)
    expect(app.callbacks('line.failed').map(({ data }) => data.quantity)).toEqual([2])
    expect(app.callbacks('line.fulfilled').map(({ data }) => data.delivered)).toEqual([1])
    expect(closed(app)).toEqual(['partly_fulfilled'])
    app.expectLedger({ charges: 0, keys: 1 })
  })

  test('meets a hand-over that begins at the same instant: one of the two happens', async () => {
    const app = await openTestApp()
    const orderId = await cancelledBeforeHandOver(app)
    const { id } = await app.purchase(orderId)
    const { commit } = app.ordering.db
    let begins = true
    app.ordering.db.commit = (changes) => {
      // Right before the decision is stored another process begins to hand over.
      if (begins && changes.length > 3) {
        begins = false
        void app.db.commit([
          { statement: sql`update licence_keys set begun_at = ${app.now()} where purchase_id = ${id}`, rows: 1 },
        ])
      }
      return commit(changes)
    }
    await expect(decide(app, orderId, { type: 'close' })).rejects.toMatchObject({ reason: 'all_handed_over' })
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    expect((await app.db.query(keysOfPurchases([id]))).map(({ handOverId }) => handOverId)).not.toContain(null)
  })

  test('is refused when the store has all keys, and so is buying again', async () => {
    const app = await openTestApp()
    const orderId = await failedAfterFirstKey(app, 1)
    for (const type of ['close', 'buy_again'] as const) {
      await expect(decide(app, orderId, { type })).rejects.toMatchObject({ reason: 'all_handed_over' })
    }
    await decide(app, orderId, { type: 'hand_over' })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.callbacks('line.failed')).toEqual([])
  })

  test('and a retry after it buys the units that the store has no keys of', async () => {
    const app = await openTestApp()
    const orderId = await failedAfterFirstKey(app, 2)
    await decide(app, orderId, { type: 'close' })
    await retryPurchase(app.ordering, (await app.purchase(orderId)).id, 'ann')
    await app.pass(MINUTE)
    expect(await states(app, orderId)).toEqual([
      ['cancelled', 2],
      ['fulfilled', 1],
    ])
  })
})

test('keys that wait for a person are not shown: their order may be cancelled', async () => {
  const app = await openTestApp()
  const orderId = await cancelledBeforeHandOver(app)
  expect((await viewOrder(app.ordering, orderId, { keys: true })).lines.map(({ keys }) => keys)).toEqual([[]])
})

describe('buying again', () => {
  test('writes the purchase off and delivers by the next generation', async () => {
    const app = await openTestApp()
    const orderId = await keysShort(app, 2, 1)
    await decide(app, orderId, { type: 'buy_again' })
    await app.pass(MINUTE)
    const [before, after] = await app.purchases(orderId)
    expect(before).toMatchObject({ state: 'cancelled', writtenOffAt: expect.any(Number) })
    expect(after).toMatchObject({ state: 'fulfilled', generation: 2, quantity: 2 })
    expect(closed(app)).toEqual(['fulfilled'])
    await app.pass(24 * HOUR, HOUR)
    await sweep(app.ordering)
    expect(await currentFreeze(app.db), 'what was written off is no second order').toBeUndefined()
    app.expectLedger({ charges: 2, keys: 2, perPart: 2 })
  })

  test('buys only the units that the store has no keys of', async () => {
    const app = await openTestApp()
    const orderId = await failedAfterFirstKey(app, 3)
    await decide(app, orderId, { type: 'buy_again' })
    await app.pass(MINUTE)
    expect(await states(app, orderId)).toEqual([
      ['cancelled', 3],
      ['fulfilled', 2],
    ])
    expect(app.callbacks('line.fulfilled').map(({ data }) => [data.delivered, data.complete])).toEqual([
      [1, false],
      [3, true],
    ])
    expect(closed(app)).toEqual(['fulfilled'])
    app.expectLedger({ charges: 1, keys: 3 })
  })

  test('by two people at once for the one unit of a line is done by one of them', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    const one = await app.purchase(orderId)
    const other = { ...one, id: `${one.id}-2`, part: 2, idempotencyKey: 'second', externalOrderId: 'second' }
    const ended = { statement: sql`update purchases set state = 'rejected', not_before = null`, rows: 2 }
    await app.db.commit([insertPurchase(other), ended])
    const both = await Promise.allSettled([one, other].map(({ id }) => retryPurchase(app.ordering, id, 'ann')))
    expect(both.filter((done) => done.status === 'fulfilled')).toHaveLength(1)
    expect(both.find((done) => done.status === 'rejected')?.reason).toMatchObject({ reason: 'beyond_order' })
    await app.pass(MINUTE)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('while buying is frozen waits for the end of the freeze', async () => {
    const app = await openTestApp()
    const { orderId } = await orderedTwice(app)
    await decide(app, orderId, { type: 'buy_again' })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ generation: 2, state: 'planned', holdReason: 'frozen' })
    await unfreeze(app.ordering, 'ann')
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ generation: 2, state: 'fulfilled' })
    await sweep(app.ordering)
    expect(await currentFreeze(app.db)).toBeUndefined()
    app.expectLedger({ charges: 3, keys: 1, perPart: 3 })
  })

  test.each([
    ['and may have been bought', 1, false],
    ['and was never sent', null, true],
  ])('is no retry of a purchase after which another one ended %s', async (_, firstSentAt, isRetried) => {
    const app = await openTestApp()
    const { orderId } = await orderedTwice(app)
    await decide(app, orderId, { type: 'buy_again' })
    const [before, again] = await app.purchases(orderId)
    await app.db.commit([
      {
        statement: sql`update purchases set state = 'cancelled', first_sent_at = ${firstSentAt} where id = ${again?.id}`,
        rows: 1,
      },
    ])
    const retried = retryPurchase(app.ordering, before?.id ?? '', 'ann')
    if (isRetried) await retried
    else await expect(retried).rejects.toMatchObject({ reason: 'not_retriable' })
    expect((await app.purchases(orderId)).map(({ generation }) => generation)).toEqual(isRetried ? [1, 2, 3] : [1, 2])
  })

  test('or a retry is refused while another generation of its part may have been charged', async () => {
    const app = await openTestApp()
    const { orderId } = await orderedTwice(app)
    await decide(app, orderId, { type: 'buy_again' })
    const [before, again] = await app.purchases(orderId)
    const becomes = (id: string | undefined, state: string) => ({
      statement: sql`update purchases set state = ${state}, written_off_at = null where id = ${id}`,
      rows: 1,
    })
    await app.db.commit([becomes(again?.id, 'rejected'), becomes(before?.id, 'review')])
    await expect(retryPurchase(app.ordering, again?.id ?? '', 'ann')).rejects.toMatchObject({
      reason: 'not_retriable',
      message: `generation 1 of it, purchase ${before?.id}, may have been charged: decide on that one`,
    })
    await app.db.commit([becomes(before?.id, 'failed'), becomes(again?.id, 'review')])
    await expect(decide(app, orderId, { type: 'buy_again' })).rejects.toMatchObject({ reason: 'not_retriable' })
  })

  test('after it was closed is a retry of what has ended', async () => {
    const app = await openTestApp()
    const orderId = await keysShort(app, 2, 1)
    await decide(app, orderId, { type: 'close' })
    await app.pass(MINUTE)
    await expect(decide(app, orderId, { type: 'buy_again' })).rejects.toThrow('quayside purchases retry')
    await retryPurchase(app.ordering, (await app.purchase(orderId)).id, 'ann')
    await app.pass(MINUTE)
    const [before, after] = await app.purchases(orderId)
    expect(before).toMatchObject({ state: 'cancelled', writtenOffAt: expect.any(Number) })
    expect(after).toMatchObject({ state: 'fulfilled', generation: 2 })
    expect(closed(app)).toEqual(['cancelled', 'fulfilled'])
    app.expectLedger({ charges: 2, keys: 2, perPart: 2 })
  })
})
