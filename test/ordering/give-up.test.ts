import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { retryPurchase, unfreeze } from '../../src/ordering/actions.ts'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { currentFreeze } from '../../src/storage/settings.ts'
import { keysOfPurchases } from '../../src/storage/store-orders.ts'
import { openHarbour } from '../support/harbour.ts'
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

describe('closing', () => {
  test('tells the store, keeps the keys, and the order that is charged does not come back', async () => {
    const harbour = await openHarbour()
    const orderId = await keysShort(harbour, 5, 2)
    await decide(harbour, orderId, { type: 'close' })
    await harbour.pass(MINUTE)
    expect(harbour.callbacks('line.failed').map(({ data }) => [data.quantity, data.code, data.state])).toEqual([
      [5, 'closed', 'cancelled'],
    ])
    const shown = await viewOrder(harbour.ordering, orderId, { keys: true })
    expect(JSON.stringify([harbour.shop.received(), shown]), 'the reason is not for stores').not.toContain(by.reason)
    expect(closed(harbour)).toEqual(['cancelled'])
    await harbour.pass(24 * HOUR)
    await sweep(harbour.ordering)
    const { chargesMinor } = harbour.sandbox.world.report()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'cancelled', reservedMinor: chargesMinor })
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('what was charged twice does not hide a third order that shows later: it is reported and buying stops', async () => {
    const harbour = await openHarbour()
    const { orderId } = await orderedTwice(harbour)
    await decide(harbour, orderId, { type: 'close' })
    await unfreeze(harbour.ordering, 'ann')
    expect(await harbour.discrepancies()).toEqual(['double_charge'])
    const third = await buyBeside(harbour, (await harbour.purchase(orderId)).body, 'third')
    await sweep(harbour.ordering)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'accepted', supplierOrderId: third })
    expect(await harbour.discrepancies()).toEqual(['double_charge', 'double_charge'])
    expect(await currentFreeze(harbour.db)).toMatchObject({ actor: 'quayside' })
    await harbour.settle()
    expect(harbour.callbacks('line.fulfilled'), 'a person decides about its keys').toEqual([])
    harbour.expectLedger({ charges: 3, keys: 0, perPart: 3 })
  })

  test('takes back a hand-over that has not begun', async () => {
    const harbour = await openHarbour()
    const orderId = await cancelledBeforeHandOver(harbour)
    await decide(harbour, orderId, { type: 'close' })
    await harbour.pass(2 * HOUR)
    expect(await harbour.state(orderId)).toBe('cancelled')
    expect(await harbour.db.query(listOutbox({ state: 'due', limit: 10 })), 'nothing waits for ever').toEqual([])
    expect(harbour.callbacks('line.fulfilled')).toEqual([])
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('leaves keys that were leaving on their way, and the store is told of the others', async () => {
    const harbour = await openHarbour()
    harbour.shop.answerNext(500, 3)
    const orderId = await failedAfterFirstKey(harbour, 3)
    await decide(harbour, orderId, { type: 'close' })
    await harbour.pass(HOUR)
    expect(harbour.callbacks('line.failed').map(({ data }) => data.quantity)).toEqual([2])
    expect(harbour.callbacks('line.fulfilled').map(({ data }) => data.delivered)).toEqual([1])
    expect(closed(harbour)).toEqual(['partly_fulfilled'])
    harbour.expectLedger({ charges: 0, keys: 1 })
  })

  test('meets a hand-over that begins at the same instant: one of the two happens', async () => {
    const harbour = await openHarbour()
    const orderId = await cancelledBeforeHandOver(harbour)
    const { id } = await harbour.purchase(orderId)
    const { commit } = harbour.ordering.db
    let begins = true
    harbour.ordering.db.commit = (changes) => {
      // Right before the decision is stored another process begins to hand over.
      if (begins && changes.length > 3) {
        begins = false
        void harbour.db.commit([
          { statement: sql`update licence_keys set begun_at = ${harbour.now()} where purchase_id = ${id}`, rows: 1 },
        ])
      }
      return commit(changes)
    }
    await expect(decide(harbour, orderId, { type: 'close' })).rejects.toMatchObject({ reason: 'all_handed_over' })
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    expect((await harbour.db.query(keysOfPurchases([id]))).map(({ handOverId }) => handOverId)).not.toContain(null)
  })

  test('is refused when the store has all keys, and so is buying again', async () => {
    const harbour = await openHarbour()
    const orderId = await failedAfterFirstKey(harbour, 1)
    for (const type of ['close', 'buy_again'] as const) {
      await expect(decide(harbour, orderId, { type })).rejects.toMatchObject({ reason: 'all_handed_over' })
    }
    await decide(harbour, orderId, { type: 'hand_over' })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.callbacks('line.failed')).toEqual([])
  })

  test('and a retry after it buys the units that the store has no keys of', async () => {
    const harbour = await openHarbour()
    const orderId = await failedAfterFirstKey(harbour, 2)
    await decide(harbour, orderId, { type: 'close' })
    await retryPurchase(harbour.ordering, (await harbour.purchase(orderId)).id, 'ann')
    await harbour.pass(MINUTE)
    expect(await states(harbour, orderId)).toEqual([
      ['cancelled', 2],
      ['fulfilled', 1],
    ])
  })
})

describe('buying again', () => {
  test('writes the purchase off and delivers by the next generation', async () => {
    const harbour = await openHarbour()
    const orderId = await keysShort(harbour, 2, 1)
    await decide(harbour, orderId, { type: 'buy_again' })
    await harbour.pass(MINUTE)
    const [before, after] = await harbour.purchases(orderId)
    expect(before).toMatchObject({ state: 'cancelled', writtenOffAt: expect.any(Number) })
    expect(after).toMatchObject({ state: 'fulfilled', generation: 2, quantity: 2 })
    expect(closed(harbour)).toEqual(['fulfilled'])
    await harbour.pass(24 * HOUR, HOUR)
    await sweep(harbour.ordering)
    expect(await currentFreeze(harbour.db), 'what was written off is no second order').toBeUndefined()
    harbour.expectLedger({ charges: 2, keys: 2, perPart: 2 })
  })

  test('buys only the units that the store has no keys of', async () => {
    const harbour = await openHarbour()
    const orderId = await failedAfterFirstKey(harbour, 3)
    await decide(harbour, orderId, { type: 'buy_again' })
    await harbour.pass(MINUTE)
    expect(await states(harbour, orderId)).toEqual([
      ['cancelled', 3],
      ['fulfilled', 2],
    ])
    expect(harbour.callbacks('line.fulfilled').map(({ data }) => [data.delivered, data.complete])).toEqual([
      [1, false],
      [3, true],
    ])
    expect(closed(harbour)).toEqual(['fulfilled'])
    harbour.expectLedger({ charges: 1, keys: 3 })
  })

  test('while buying is frozen waits for the end of the freeze', async () => {
    const harbour = await openHarbour()
    const { orderId } = await orderedTwice(harbour)
    await decide(harbour, orderId, { type: 'buy_again' })
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ generation: 2, state: 'planned', holdReason: 'frozen' })
    await unfreeze(harbour.ordering, 'ann')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ generation: 2, state: 'fulfilled' })
    await sweep(harbour.ordering)
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    harbour.expectLedger({ charges: 3, keys: 1, perPart: 3 })
  })

  test('after it was closed is a retry of what has ended', async () => {
    const harbour = await openHarbour()
    const orderId = await keysShort(harbour, 2, 1)
    await decide(harbour, orderId, { type: 'close' })
    await harbour.pass(MINUTE)
    await expect(decide(harbour, orderId, { type: 'buy_again' })).rejects.toThrow('quayside purchases retry')
    await retryPurchase(harbour.ordering, (await harbour.purchase(orderId)).id, 'ann')
    await harbour.pass(MINUTE)
    const [before, after] = await harbour.purchases(orderId)
    expect(before).toMatchObject({ state: 'cancelled', writtenOffAt: expect.any(Number) })
    expect(after).toMatchObject({ state: 'fulfilled', generation: 2 })
    expect(closed(harbour)).toEqual(['cancelled', 'fulfilled'])
    harbour.expectLedger({ charges: 2, keys: 2, perPart: 2 })
  })
})
