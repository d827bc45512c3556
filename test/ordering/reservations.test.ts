import { describe, expect, test } from 'vitest'
import { formatDecimal } from '../../src/domain/money.ts'
import { cancelOrder, releasePurchase } from '../../src/ordering/actions.ts'
import { advance } from '../../src/ordering/advance.ts'
import { placeDue } from '../../src/ordering/place.ts'
import { latestBalance } from '../../src/storage/balance.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { reservedBeyondReading, reservedUnder } from '../../src/storage/purchases.ts'
import { buyBeside, by, decide, HOUR, known, MINUTE } from '../support/reviews.ts'
import { defaultDialect, first, openTestApp, type TestAppOptions } from '../support/test-app.ts'

/** A app whose offers cost less than their ceiling: what is reserved and what is spent can be distinguished. */
async function openRoomy(options: TestAppOptions = {}) {
  const app = await openTestApp(options)
  const { costMinor } = await app.offer()
  const ceiling = Math.ceil(costMinor * 1.1)
  expect(ceiling).toBeGreaterThan(costMinor)
  return { app, costMinor, ceiling }
}
const orderCap = (order: number): TestAppOptions => ({ policy: { caps: { order, hour: null, day: null } } })
const hourCap = (hour: number): TestAppOptions => ({ policy: { caps: { order: null, hour, day: null } } })
/** The prices of a sandbox that every app has. */
const prices = async () => {
  const { costMinor, ceiling } = await openRoomy()
  return { costMinor, ceiling }
}

describe('what a purchase reserves', () => {
  test('is its ceiling times its quantity from the commit of its intent, and what it cost from its acceptance', async () => {
    const { app, costMinor, ceiling } = await openRoomy()
    const orderId = await app.buy('1001', { quantity: 3 })
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', reservedMinor: 0 })
    app.crash.at = 'intended'
    await app.runUntilDeath()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'sending', reservedMinor: ceiling * 3 })
    await app.restart()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown', reservedMinor: ceiling * 3 })
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled', reservedMinor: costMinor * 3 })
  })

  test('may be sent again for 23 hours from its first send, at a supplier that remembers its key for a day', async () => {
    const { app } = await openRoomy()
    expect(app.dialect.idempotencyMemorySeconds).toBe(24 * 3_600)
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    const sentAt = app.now()
    await app.pass(5 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({
      sends: 2,
      firstSentAt: sentAt,
      keySafeUntil: sentAt + 23 * HOUR,
    })
  })

  test('counts once while its outcome is open, whether it was sent before an instant, at it or after it', async () => {
    const { app, ceiling } = await openRoomy()
    const orderId = await app.buy('1001')
    app.crash.at = 'intended'
    await app.runUntilDeath()
    const sentAt = (await app.purchase(orderId)).lastSentAt ?? 0
    for (const since of [sentAt - 1, sentAt, sentAt + 1]) {
      expect(await app.db.query(reservedUnder({ since }))).toEqual([{ total: ceiling }])
      expect(await app.db.query(reservedBeyondReading(since))).toEqual([{ total: ceiling }])
    }
  })

  test('is its ceiling until its order is completed, whatever an open order states', async () => {
    const { app, costMinor } = await openRoomy()
    const orderId = await app.buy('1001', { unitPriceMinor: 90_000 })
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'accepted',
      amountMinor: costMinor,
      reservedMinor: 90_000,
    })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled', reservedMinor: costMinor })
  })

  test('is nothing while it waits for another try', async () => {
    const { app } = await openRoomy()
    app.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 600 })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'waiting', reservedMinor: 0, firstSentAt: null })
  })

  test('is nothing once it was rejected, and nothing yet for the next try', async () => {
    const { app } = await openRoomy()
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await app.buy('1001')
    await app.round()
    const purchases = await app.purchases(orderId)
    expect(purchases.map(({ state, reservedMinor }) => [state, reservedMinor])).toEqual([
      ['rejected', 0],
      ['planned', 0],
    ])
  })

  test('stays once its order failed, because that alone does not say that the money came back', async () => {
    const { app, ceiling } = await openRoomy()
    app.sandbox.faults.add({ fault: 'failed-order' })
    const orderId = await app.buy('1001')
    await app.pass(2 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'failed', reservedMinor: ceiling })
  })

  test('is nothing once the supplier says that it was refunded', async () => {
    const { app } = await openRoomy()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.sandbox.world.orders.refund(first(known(app)))
    await app.pass(20 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'failed', reservedMinor: 0 })
    expect(first(await app.db.query(reservedUnder({ orderId })))).toEqual({ total: 0 })
  })

  test('stays while its outcome is unknown, and when no list showed its order: the list may lag', async () => {
    const { app, ceiling } = await openRoomy()
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    await cancelOrder(app.ordering, orderId, 'shop')
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown', reservedMinor: ceiling })
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'cancelled', reservedMinor: ceiling })
  })

  test('stays while an operator must decide, and stays beside that of the next generation', async () => {
    const { app, ceiling } = await openRoomy({ dialect: { ...defaultDialect(), idempotencyMemorySeconds: 600 } })
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.move(HOUR)
    await app.pass(10 * MINUTE)
    const { id, ...waiting } = await app.purchase(orderId)
    expect(waiting).toMatchObject({ state: 'review', reservedMinor: ceiling })
    await advance(app.ordering, id, { input: { type: 'buy_again' }, actor: 'ann' })
    app.crash.at = 'intended'
    await app.runUntilDeath()
    const purchases = await app.purchases(orderId)
    expect(purchases.map(({ state, reservedMinor }) => [state, reservedMinor])).toEqual([
      ['cancelled', ceiling],
      ['sending', ceiling],
    ])
  })
})

describe('a spend cap', () => {
  test('counts the ceiling of what is under way, and what it cost once that is known', async () => {
    const { costMinor, ceiling } = await prices()
    const { app } = await openRoomy(hourCap(costMinor + ceiling))
    app.sandbox.faults.add({ fault: 'answer-lost' })
    await app.buy('1001')
    await placeDue(app.ordering)
    const next = await app.buy('1002')
    await placeDue(app.ordering)
    expect(await app.purchase(next)).toMatchObject({ state: 'planned', holdReason: 'spend_cap' })
    expect(app.sent).toHaveLength(1)
    await app.pass(10 * MINUTE)
    expect(await app.purchase(next), 'the first one cost less than its ceiling').toMatchObject({
      state: 'fulfilled',
    })
    const third = await app.buy('1003')
    await app.pass(MINUTE)
    expect(await app.purchase(third)).toMatchObject({ holdReason: 'spend_cap' })
    app.expectLedger({ charges: 2, keys: 2 })
  })

  test('of an order is not exceeded by buying its part again four times', async () => {
    const { costMinor, ceiling } = await prices()
    const { app } = await openRoomy(orderCap(ceiling))
    app.sandbox.faults.add({ fault: 'hold-open', times: 5 })
    const orderId = await app.buy('1001')
    await app.settle()
    for (let time = 0; time < 4; time += 1) {
      await decide(app, orderId, { type: 'buy_again' }).catch(() => {})
      await app.pass(MINUTE)
    }
    const { chargesMinor } = app.sandbox.world.report()
    expect(chargesMinor).toBe(costMinor)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'spend_cap', generation: 2 })
  })

  test('is not exceeded by two workers that place at the same instant', async () => {
    const { ceiling } = await prices()
    const { app } = await openRoomy(hourCap(ceiling))
    for (const reference of ['1001', '1002']) await app.buy(reference)
    const beside = (await app.openProcess('beside')).ordering
    await Promise.all([placeDue(app.ordering), placeDue(beside)])
    expect(app.sent).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 0 })
  })

  test('may be overridden for one purchase that it holds, and the audit says so', async () => {
    const { costMinor, ceiling } = await prices()
    const { app } = await openRoomy(orderCap(ceiling))
    const { sku } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }, { sku }, { sku }])
    await app.pass(MINUTE)
    const held = (await app.purchases(orderId)).filter(({ holdReason }) => holdReason === 'spend_cap')
    expect(held).toHaveLength(2)
    const { id } = first(held)
    await releasePurchase(app.ordering, id, {}, 'ann')
    await app.pass(MINUTE)
    expect(app.sandbox.world.report().chargesMinor, 'a release alone does not override it').toBe(costMinor)
    await releasePurchase(app.ordering, id, { overrideSpendCap: true }, 'ann')
    await app.pass(HOUR)
    expect(app.sandbox.world.report().chargesMinor).toBe(costMinor * 2)
    expect(await app.db.query(auditOf(id))).toMatchObject([
      { action: 'purchase.release', detail: null },
      { action: 'purchase.release', actor: 'ann', detail: 'spend caps overridden' },
    ])
  })

  test('may be overridden with the decision to buy again, also when the supplier refuses the first try', async () => {
    const { costMinor, ceiling } = await prices()
    const { app } = await openRoomy(orderCap(ceiling))
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.settle()
    const { id } = await app.purchase(orderId)
    app.sandbox.faults.add({ fault: 'out-of-stock' })
    await decide(app, orderId, { type: 'buy_again', overrideSpendCap: true })
    await app.pass(HOUR)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled', generation: 3 })
    expect(app.sandbox.world.report().chargesMinor).toBe(costMinor * 2)
    expect(await app.db.query(auditOf(id))).toMatchObject([
      { action: 'purchase.buy_again', actor: by.actor, detail: `spend caps overridden: ${by.reason}` },
    ])
  })

  test('of an hour counts a purchase of unknown outcome however long ago it was sent', async () => {
    const { ceiling } = await prices()
    const { app } = await openRoomy(hourCap(ceiling))
    const { orders } = app.supplier
    app.ordering.supplier.orders = () => Promise.reject(new Error('the list is broken'))
    app.sandbox.faults.add({ fault: 'error-before' })
    const first = await app.buy('1001')
    await app.settle()
    await app.pass(3 * HOUR, 10 * MINUTE)
    const second = await app.buy('1002')
    await app.settle()
    expect(await app.purchase(second)).toMatchObject({ holdReason: 'spend_cap' })
    app.ordering.supplier.orders = orders
    await app.pass(50 * MINUTE)
    expect(await app.purchase(first)).toMatchObject({ state: 'fulfilled', generation: 1 })
    app.expectLedger({ charges: 1, keys: 1 })
    await app.pass(HOUR)
    app.expectLedger({ charges: 2, keys: 2 })
  })

  test('has room again for what was rejected', async () => {
    const { ceiling } = await prices()
    const { app } = await openRoomy(hourCap(ceiling))
    app.sandbox.faults.add({ fault: 'insufficient-balance' })
    await app.buy('1001')
    await placeDue(app.ordering)
    const next = await app.buy('1002')
    await placeDue(app.ordering)
    expect(app.sent).toHaveLength(2)
    expect((await app.purchase(next)).holdReason).toBeNull()
  })

  test('has no room for what a person has not decided on', async () => {
    const { ceiling } = await prices()
    const dialect = { ...defaultDialect(), idempotencyMemorySeconds: 600 }
    const { app } = await openRoomy({ ...hourCap(ceiling), dialect })
    app.sandbox.faults.add({ fault: 'error-before' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.move(30 * MINUTE)
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    const next = await app.buy('1002')
    await app.pass(MINUTE)
    expect(await app.purchase(next)).toMatchObject({ holdReason: 'spend_cap' })
    expect(app.sent).toHaveLength(1)
  })
})

describe('a spend cap where open orders do not state what they cost', () => {
  test.each([
    { states: '0.00', amount: '0.00' },
    { states: 'no amount', amount: undefined },
    { states: 'an amount of nothing', amount: null },
    { states: 'a cent', amount: '0.01' },
  ])('is not exceeded while the supplier states $states of each', async ({ amount }) => {
    const { ceiling } = await prices()
    const cap = ceiling * 2
    const app = await openTestApp({
      policy: { caps: { order: null, hour: null, day: cap } },
      stated: (order) => {
        if (order.status === 'completed') return
        if (amount === undefined) delete order.amount
        else order.amount = amount
      },
    })
    app.sandbox.faults.add({ fault: 'hold-open', times: 20 })
    for (let number = 0; number < 20; number += 1) {
      await app.buy(String(1_001 + number))
      await app.pass(MINUTE)
    }
    await app.pass(HOUR)
    expect(app.sandbox.world.report().chargesMinor).toBeLessThanOrEqual(cap)
    expect(app.sent).toHaveLength(2)
  })

  test('keeps what each may cost where the completed order states nothing either', async () => {
    const { ceiling } = await prices()
    const app = await openTestApp({
      policy: { caps: { order: null, hour: null, day: ceiling * 2 } },
      stated: (order) => {
        order.amount = '0.00'
      },
    })
    const orderIds: string[] = []
    for (let number = 0; number < 5; number += 1) {
      orderIds.push(await app.buy(String(1_001 + number)))
      await app.pass(5 * MINUTE)
    }
    expect(app.sent).toHaveLength(2)
    expect(await app.purchase(first(orderIds))).toMatchObject({ state: 'fulfilled', reservedMinor: ceiling })
  })

  test('counts the higher amount of an open order, and what it cost once that is completed', async () => {
    const { costMinor, ceiling } = await prices()
    const app = await openTestApp({
      policy: { caps: { order: null, hour: null, day: costMinor * 10 } },
      stated: (order) => {
        if (order.status !== 'completed') order.amount = formatDecimal({ minor: costMinor * 10, currency: 'EUR' })
      },
    })
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001', { unitPriceMinor: ceiling })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted', reservedMinor: costMinor * 10 })
    const other = first((await app.offers()).slice(1))
    const { orderId: next } = await app.order('1002', [{ sku: other.sku }])
    await app.pass(10 * MINUTE)
    expect(await app.purchase(next)).toMatchObject({ holdReason: 'spend_cap' })
    app.sandbox.world.orders.complete(first(known(app)))
    await app.pass(20 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled', reservedMinor: costMinor })
    expect(await app.state(next)).toBe('fulfilled')
  })
})

describe('purchases that are due together', () => {
  /** So many orders of an offer that was read just now, by a process whose first order was made long ago. */
  async function openTogether(orders: number, options: TestAppOptions = {}) {
    const { costMinor } = await prices()
    const app = await openTestApp({ balanceMinor: Math.ceil(costMinor * 2.5), ...options })
    const { sku, productId } = await app.offer()
    await app.ordering.refreshOffer(productId)
    app.ordering.pace.checked.set(productId, app.now())
    await app.ordering.checkBalance()
    app.ordering.pace.agreed = true
    const ids: string[] = []
    for (let number = 0; number < orders; number += 1) {
      ids.push((await app.order(String(1_001 + number), [{ sku }])).orderId)
    }
    const holds = async () => Promise.all(ids.map(async (id) => (await app.purchase(id)).holdReason))
    return { app, costMinor, holds }
  }

  test('are sent as far as the balance covers all of them', async () => {
    const { app, holds } = await openTogether(4)
    await placeDue(app.ordering)
    expect(app.sent).toHaveLength(2)
    expect(await holds()).toEqual([null, null, 'balance', 'balance'])
  })

  test('are held by the balance that is read again once the first was refused for it', async () => {
    const { app, costMinor, holds } = await openTogether(1)
    const { sku } = await app.offer()
    await buyBeside(
      app,
      (await app.purchase((await app.order('before', [{ sku, quantity: 2 }])).orderId)).body,
      'beside',
    )
    await cancelOrder(app.ordering, (await app.order('before', [{ sku, quantity: 2 }])).orderId, 'shop')
    await placeDue(app.ordering)
    expect(app.sent).toHaveLength(1)
    const [balance] = await app.db.query(latestBalance())
    expect(balance?.amountMinor, 'what is left of it').toBeLessThan(costMinor)
    expect(await holds()).toEqual(['balance'])
    const late = (await app.order('late', [{ sku }])).orderId
    await placeDue(app.ordering)
    expect(app.sent, 'it is not refused one by one').toHaveLength(1)
    expect(await app.purchase(late)).toMatchObject({ holdReason: 'balance' })
  })
})
