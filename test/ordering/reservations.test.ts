import { describe, expect, test } from 'vitest'
import { cancelOrder, releasePurchase } from '../../src/ordering/actions.ts'
import { advance } from '../../src/ordering/advance.ts'
import { placeDue } from '../../src/ordering/place.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { reservedUnder } from '../../src/storage/purchases.ts'
import { defaultDialect, first, type HarbourOptions, openHarbour } from '../support/harbour.ts'
import { by, decide, HOUR, known, MINUTE } from '../support/reviews.ts'

/** A harbour whose offers cost less than their ceiling: what is reserved and what is spent can be told apart. */
async function openRoomy(options: HarbourOptions = {}) {
  const harbour = await openHarbour(options)
  const { costMinor } = await harbour.offer()
  const ceiling = Math.ceil(costMinor * 1.1)
  expect(ceiling).toBeGreaterThan(costMinor)
  return { harbour, costMinor, ceiling }
}
const orderCap = (order: number): HarbourOptions => ({ policy: { caps: { order, hour: null, day: null } } })
const hourCap = (hour: number): HarbourOptions => ({ policy: { caps: { order: null, hour, day: null } } })
/** The prices of a sandbox that every harbour has. */
const prices = async () => {
  const { costMinor, ceiling } = await openRoomy()
  return { costMinor, ceiling }
}

describe('what a purchase reserves', () => {
  test('is its ceiling times its quantity from the commit of its intent, and what it cost from its acceptance', async () => {
    const { harbour, costMinor, ceiling } = await openRoomy()
    const orderId = await harbour.buy('1001', { quantity: 3 })
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'planned', reservedMinor: 0 })
    harbour.crash.at = 'intended'
    await harbour.runUntilDeath()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'sending', reservedMinor: ceiling * 3 })
    await harbour.restart()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'unknown', reservedMinor: ceiling * 3 })
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled', reservedMinor: costMinor * 3 })
  })

  test('is nothing while it waits for another try', async () => {
    const { harbour } = await openRoomy()
    harbour.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 600 })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'waiting', reservedMinor: 0, firstSentAt: null })
  })

  test('is nothing once it was rejected, and nothing yet for the next try', async () => {
    const { harbour } = await openRoomy()
    harbour.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await harbour.buy('1001')
    await harbour.round()
    const purchases = await harbour.purchases(orderId)
    expect(purchases.map(({ state, reservedMinor }) => [state, reservedMinor])).toEqual([
      ['rejected', 0],
      ['planned', 0],
    ])
  })

  test('stays once its order failed, because that alone does not say that the money came back', async () => {
    const { harbour, costMinor } = await openRoomy()
    harbour.sandbox.faults.add({ fault: 'failed-order' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'failed', reservedMinor: costMinor })
  })

  test('is nothing once the supplier says that it was refunded', async () => {
    const { harbour } = await openRoomy()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.sandbox.world.orders.refund(first(known(harbour)))
    await harbour.pass(20 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'failed', reservedMinor: 0 })
    expect(first(await harbour.db.query(reservedUnder({ orderId })))).toEqual({ total: 0 })
  })

  test('stays while its outcome is unknown, and when no list showed its order: the list may lag', async () => {
    const { harbour, ceiling } = await openRoomy()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    await cancelOrder(harbour.ordering, orderId, 'shop')
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'unknown', reservedMinor: ceiling })
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'cancelled', reservedMinor: ceiling })
  })

  test('stays while an operator must decide, and stays beside that of the next generation', async () => {
    const { harbour, ceiling } = await openRoomy({ dialect: { ...defaultDialect(), idempotencyMemorySeconds: 600 } })
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.move(HOUR)
    await harbour.pass(10 * MINUTE)
    const { id, ...waiting } = await harbour.purchase(orderId)
    expect(waiting).toMatchObject({ state: 'review', reservedMinor: ceiling })
    await advance(harbour.ordering, id, () => ({ type: 'buy_again' }), { actor: 'ann' })
    harbour.crash.at = 'intended'
    await harbour.runUntilDeath()
    const purchases = await harbour.purchases(orderId)
    expect(purchases.map(({ state, reservedMinor }) => [state, reservedMinor])).toEqual([
      ['cancelled', ceiling],
      ['sending', ceiling],
    ])
  })
})

describe('a spend cap', () => {
  test('counts the ceiling of what is under way, and what it cost once that is known', async () => {
    const { costMinor, ceiling } = await prices()
    const { harbour } = await openRoomy(hourCap(costMinor + ceiling))
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    await harbour.buy('1001')
    await placeDue(harbour.ordering)
    const next = await harbour.buy('1002')
    await placeDue(harbour.ordering)
    expect(await harbour.purchase(next)).toMatchObject({ state: 'planned', holdReason: 'spend_cap' })
    expect(harbour.sent).toHaveLength(1)
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(next), 'the first one cost less than its ceiling').toMatchObject({
      state: 'fulfilled',
    })
    const third = await harbour.buy('1003')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(third)).toMatchObject({ holdReason: 'spend_cap' })
    harbour.expectLedger({ charges: 2, keys: 2 })
  })

  test('of an order is not exceeded by buying its part again four times', async () => {
    const { costMinor, ceiling } = await prices()
    const { harbour } = await openRoomy(orderCap(ceiling))
    harbour.sandbox.faults.add({ fault: 'hold-open', times: 5 })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    for (let time = 0; time < 4; time += 1) {
      await decide(harbour, orderId, { type: 'buy_again' }).catch(() => {})
      await harbour.pass(MINUTE)
    }
    const { chargesMinor } = harbour.sandbox.world.report()
    expect(chargesMinor).toBe(costMinor)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'spend_cap', generation: 2 })
  })

  test('is not exceeded by two workers that place at the same instant', async () => {
    const { ceiling } = await prices()
    const { harbour } = await openRoomy(hourCap(ceiling))
    for (const reference of ['1001', '1002']) await harbour.buy(reference)
    const beside = (await harbour.openProcess('beside')).ordering
    await Promise.all([placeDue(harbour.ordering), placeDue(beside)])
    expect(harbour.sent).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('may be overridden for one purchase that it holds, and the audit says so', async () => {
    const { costMinor, ceiling } = await prices()
    const { harbour } = await openRoomy(orderCap(ceiling))
    const { sku } = await harbour.offer()
    const { orderId } = await harbour.order('1001', [{ sku }, { sku }, { sku }])
    await harbour.pass(MINUTE)
    const held = (await harbour.purchases(orderId)).filter(({ holdReason }) => holdReason === 'spend_cap')
    expect(held).toHaveLength(2)
    const { id } = first(held)
    await releasePurchase(harbour.ordering, id, {}, 'ann')
    await harbour.pass(MINUTE)
    expect(harbour.sandbox.world.report().chargesMinor, 'a release alone does not override it').toBe(costMinor)
    await releasePurchase(harbour.ordering, id, { overrideSpendCap: true }, 'ann')
    await harbour.pass(HOUR)
    expect(harbour.sandbox.world.report().chargesMinor).toBe(costMinor * 2)
    expect(await harbour.db.query(auditOf(id))).toMatchObject([
      { action: 'purchase.release', detail: '' },
      { action: 'purchase.release', actor: 'ann', detail: 'spend caps overridden' },
    ])
  })

  test('may be overridden with the decision to buy again, also when the supplier refuses the first try', async () => {
    const { costMinor, ceiling } = await prices()
    const { harbour } = await openRoomy(orderCap(ceiling))
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    const { id } = await harbour.purchase(orderId)
    harbour.sandbox.faults.add({ fault: 'out-of-stock' })
    await decide(harbour, orderId, { type: 'buy_again', overrideSpendCap: true })
    await harbour.pass(HOUR)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled', generation: 3 })
    expect(harbour.sandbox.world.report().chargesMinor).toBe(costMinor * 2)
    expect(await harbour.db.query(auditOf(id))).toMatchObject([
      { action: 'purchase.buy_again', actor: by.actor, detail: `spend caps overridden: ${by.reason}` },
    ])
  })

  test('of an hour counts a purchase of unknown outcome however long ago it was sent', async () => {
    const { ceiling } = await prices()
    const { harbour } = await openRoomy(hourCap(ceiling))
    const { orders } = harbour.supplier
    harbour.ordering.supplier.orders = () => Promise.reject(new Error('the list is broken'))
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const first = await harbour.buy('1001')
    await harbour.settle()
    await harbour.pass(3 * HOUR, 10 * MINUTE)
    const second = await harbour.buy('1002')
    await harbour.settle()
    expect(await harbour.purchase(second)).toMatchObject({ holdReason: 'spend_cap' })
    harbour.ordering.supplier.orders = orders
    await harbour.pass(50 * MINUTE)
    expect(await harbour.purchase(first)).toMatchObject({ state: 'fulfilled', generation: 1 })
    harbour.expectLedger({ charges: 1, keys: 1 })
    await harbour.pass(HOUR)
    harbour.expectLedger({ charges: 2, keys: 2 })
  })

  test('has room again for what was rejected', async () => {
    const { ceiling } = await prices()
    const { harbour } = await openRoomy(hourCap(ceiling))
    harbour.sandbox.faults.add({ fault: 'insufficient-balance' })
    await harbour.buy('1001')
    await placeDue(harbour.ordering)
    const next = await harbour.buy('1002')
    await placeDue(harbour.ordering)
    expect(harbour.sent).toHaveLength(2)
    expect((await harbour.purchase(next)).holdReason).toBeNull()
  })

  test('has no room for what a person has not decided on', async () => {
    const { ceiling } = await prices()
    const dialect = { ...defaultDialect(), idempotencyMemorySeconds: 600 }
    const { harbour } = await openRoomy({ ...hourCap(ceiling), dialect })
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.move(30 * MINUTE)
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    const next = await harbour.buy('1002')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(next)).toMatchObject({ holdReason: 'spend_cap' })
    expect(harbour.sent).toHaveLength(1)
  })
})
