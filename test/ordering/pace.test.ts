import { describe, expect, test } from 'vitest'
import { cancelOrder, retryPurchase, unfreeze } from '../../src/ordering/actions.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { changePurchase, purchasesInState } from '../../src/storage/purchases.ts'
import { databaseFile } from '../support/database.ts'
import { first, openTestApp, type TestApp } from '../support/test-app.ts'

const MINUTE = 60_000

/** Takes that many orders of one line, with stock and balance for all of them. */
async function buyMany(app: TestApp, count: number): Promise<{ orders: string[]; sku: string }> {
  const { sku, productId } = await app.offer()
  app.sandbox.world.offers.change(productId, { stock: 1_000 })
  app.sandbox.world.topUp(10_000_000)
  await app.ordering.checkBalance()
  await app.ordering.refreshOffer(productId)
  // Confirmed for good: this is about orders, not about offers.
  app.ordering.pace.checked.set(productId, app.now())
  const orders: string[] = []
  for (let number = 1; number <= count; number += 1) {
    orders.push((await app.order(String(number), [{ sku }])).orderId)
  }
  return { orders, sku }
}

describe('a supplier whose answers are ambiguous', () => {
  test('is sent nothing more after three in a row, then one order at a time, then all', async () => {
    const app = await openTestApp({ policy: { inFlight: 1 } })
    app.sandbox.faults.add({ fault: 'answer-lost', times: 6 })
    await buyMany(app, 8)
    await app.settle()
    expect(app.sent).toHaveLength(3)
    expect(app.ordering.pace.breaker.phase).toBe('open')
    app.sandbox.faults.add({ fault: 'error-before', match: { path: '/orders', method: 'GET' }, times: 9 })
    await app.pass(2_000)
    expect(app.sent, 'no look-up has succeeded').toHaveLength(3)
    await app.pass(5_000)
    expect(app.sent, 'two look-ups each let one go, whose answer was lost too').toHaveLength(5)
    expect(app.ordering.pace.breaker.phase).toBe('open')
    await app.pass(2 * MINUTE)
    expect(app.ordering.pace.breaker.phase).toBe('closed')
    app.expectLedger({ charges: 8, keys: 8 })
  })

  test('is sent new orders again when a sweep, not a look-up, has found all that were ambiguous', async () => {
    const app = await openTestApp({ policy: { inFlight: 1 } })
    app.sandbox.faults.add({ fault: 'answer-lost', times: 3 })
    const { orders } = await buyMany(app, 4)
    await app.settle()
    const states = () => Promise.all(orders.map(async (orderId) => (await app.purchase(orderId)).state))
    expect(await states()).toEqual(['unknown', 'unknown', 'unknown', 'planned'])
    await sweep(app.ordering)
    expect(await states()).toEqual(['accepted', 'accepted', 'accepted', 'planned'])
    await app.pass(2 * MINUTE)
    app.expectLedger({ charges: 4, keys: 4 })
  })

  test('does not count as healthy because no request reached it', async () => {
    const app = await openTestApp({ policy: { inFlight: 1 }, sandboxFile: databaseFile() })
    app.sandbox.faults.add({ fault: 'answer-lost', times: 2 })
    const { sku } = await buyMany(app, 2)
    await app.settle()
    expect(app.ordering.pace.breaker).toMatchObject({ phase: 'closed', ambiguousInRow: 2 })
    await app.supplierDown()
    await app.order('3', [{ sku }])
    await app.settle()
    expect(app.sent).toHaveLength(3)
    expect(app.ordering.pace.breaker.ambiguousInRow).toBe(2)
  })
})

describe('repeats', () => {
  test('stay under their budget, and new orders pass them by', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile(), policy: { inFlight: 4 } })
    const { orders, sku } = await buyMany(app, 60)
    await app.supplierDown()
    await app.settle()
    expect(app.sent).toHaveLength(60)
    await app.supplierUp()
    app.move(5_000)
    const fresh = (await app.order('fresh', [{ sku }])).orderId
    await app.settle()
    expect(await app.purchase(fresh)).toMatchObject({ state: 'accepted' })
    expect(app.sent.length - 61).toBeLessThanOrEqual(6)
    await app.pass(MINUTE - 6_000, 3_000)
    expect(app.sent.length - 61).toBeLessThanOrEqual(6)
    await app.pass(12 * MINUTE, 10_000)
    for (const order of orders) expect(await app.state(order)).toBe('fulfilled')
    app.expectLedger({ charges: 61, keys: 61 })
  })
})

describe('a purchase that fails inside Quayside', () => {
  test('goes to a person after eight equal errors, while the others go on', async () => {
    const app = await openTestApp()
    const bad = await app.buy('1001')
    await app.settle()
    const good = await app.buy('1002')
    const { vault } = app
    let poison: string | undefined
    const reads: number[] = []
    app.ordering.vault = {
      ...vault,
      blindIndex: (text) => {
        poison ??= text
        if (text !== poison) return vault.blindIndex(text)
        reads.push(app.now())
        throw new Error('this key is poison')
      },
    }
    await app.pass(5 * MINUTE, 2_000)
    const states = [(await app.purchase(bad)).state, (await app.purchase(good)).state].sort()
    expect(states).toEqual(['fulfilled', 'review'])
    expect(reads.length, 'a review is read again only now and then').toBeLessThan(12)
    expect(await app.alerts()).toContain('poisoned')
    app.expectLedger({ charges: 2, keys: 1 })
  })

  test('goes to a person when it must not be sent because an earlier attempt may have been charged', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'failed-order' })
    const orderId = await app.buy('1001')
    await app.pass(2 * MINUTE)
    const { id } = await app.purchase(orderId)
    await retryPurchase(app.ordering, id, 'ann')
    // As a bug would leave it: planned again although no operator has written the first one off.
    const [failed] = await app.purchases(orderId)
    if (!failed) throw new Error('there is a first attempt')
    await app.db.commit([changePurchase(failed, { writtenOffAt: null }, app.now())])
    const other = await app.buy('1002')
    await app.pass(5 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ generation: 2, state: 'review' })
    expect(await app.state(other)).toBe('fulfilled')
    expect(app.sent).toHaveLength(2)
    expect(first(await app.alerts())).toBe('poisoned')
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('many reviews', () => {
  /** Orders that end in review: each failed at the supplier after its first key. */
  async function reviews(app: TestApp, references: string[]): Promise<void> {
    for (const reference of references) {
      app.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 30 * MINUTE })
      await app.buy(reference, { quantity: 2 })
    }
    await app.pass(10_000)
    const { orders } = app.sandbox.world
    for (const order of orders.known(references.length)) orders.fail(order, 'no more of them')
    await app.pass(2 * MINUTE)
  }

  test('that cancellations caused stop nothing, however many come: what was bought and paid is known', async () => {
    const app = await openTestApp()
    await reviews(app, ['1', '2', '3'])
    for (const reference of ['4', '5', '6', '7']) {
      const orderId = await app.buy(reference)
      await app.settle()
      await cancelOrder(app.ordering, orderId, 'shop')
    }
    await app.pass(10_000)
    expect(await app.db.query(purchasesInState('review', 10))).toHaveLength(7)
    expect(await currentFreeze(app.db)).toBeUndefined()
    expect(await app.alerts()).not.toContain('freeze')
    await reviews(app, ['8'])
    expect(await currentFreeze(app.db)).toMatchObject({ reason: expect.stringMatching(/^4 purchases within/) })
  })

  test('more than three within an hour stop all buying until a person lets it go on', async () => {
    const app = await openTestApp()
    await reviews(app, ['1', '2', '3'])
    expect(await currentFreeze(app.db)).toBeUndefined()
    await reviews(app, ['4'])
    expect(await currentFreeze(app.db)).toMatchObject({ actor: 'quayside', reason: expect.stringContaining('4') })
    expect(await app.alerts()).toContain('freeze')
    const next = await app.buy('5')
    await app.pass(MINUTE)
    expect(await app.purchase(next)).toMatchObject({ holdReason: 'frozen' })
    await unfreeze(app.ordering, 'ann')
    await reviews(app, ['6'])
    expect(await currentFreeze(app.db), 'a new count begins').toBeUndefined()
  })

  test('five of the last hundred purchases stop it too, however slowly they come', async () => {
    const app = await openTestApp()
    for (const reference of ['1', '2', '3', '4', '5']) {
      expect(await currentFreeze(app.db)).toBeUndefined()
      await reviews(app, [reference])
      app.move(61 * MINUTE)
    }
    expect(await currentFreeze(app.db)).toMatchObject({ reason: expect.stringContaining('5 of the last 100') })
  })
})
