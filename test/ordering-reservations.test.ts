import { describe, expect, test } from 'vitest'
import { advance } from '../src/ordering/advance.ts'
import { cancelOrder } from '../src/ordering/operate.ts'
import { placeDue } from '../src/ordering/place.ts'
import { reservedForOrder } from '../src/storage/purchases.ts'
import { defaultDialect, first, type HarbourOptions, openHarbour } from './harbour.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** A harbour whose offers cost less than their ceiling: what is reserved and what is spent can be told apart. */
async function openRoomy(options: HarbourOptions = {}) {
  const harbour = await openHarbour(options)
  const { costMinor } = await harbour.offer()
  const ceiling = Math.ceil(costMinor * 1.1)
  expect(ceiling).toBeGreaterThan(costMinor)
  return { harbour, costMinor, ceiling }
}
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

  test('is nothing once its order failed', async () => {
    const { harbour } = await openRoomy()
    harbour.sandbox.faults.add({ fault: 'failed-order' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'failed', reservedMinor: 0 })
    expect(first(await harbour.db.query(reservedForOrder(orderId)))).toEqual({ total: 0 })
  })

  test('stays while nobody knows its outcome, and is nothing once it is proven absent and cancelled', async () => {
    const { harbour, ceiling } = await openRoomy()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    await cancelOrder(harbour.ordering, orderId, 'shop')
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'unknown', reservedMinor: ceiling })
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'cancelled', reservedMinor: 0 })
  })

  test('stays while a person must decide, and goes over to the next generation', async () => {
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
      ['cancelled', 0],
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
