import { describe, expect, test } from 'vitest'
import { cancelOrder, retryPurchase, unfreeze } from '../../src/ordering/actions.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { changePurchase, purchasesInState } from '../../src/storage/purchases.ts'
import { currentFreeze } from '../../src/storage/settings.ts'
import { databaseFile } from '../support/database.ts'
import { first, type Harbour, openHarbour } from '../support/harbour.ts'

const MINUTE = 60_000

/** Takes that many orders of one line, with stock and balance for all of them. */
async function buyMany(harbour: Harbour, count: number): Promise<{ orders: string[]; sku: string }> {
  const { sku, productId } = await harbour.offer()
  harbour.sandbox.world.offers.change(productId, { stock: 1_000 })
  harbour.sandbox.world.topUp(10_000_000)
  await harbour.ordering.readBalance()
  await harbour.ordering.refreshOffer(productId)
  // Confirmed for ever: this is about orders, not about offers.
  harbour.ordering.pace.checked.set(productId, Number.MAX_SAFE_INTEGER)
  const orders: string[] = []
  for (let number = 1; number <= count; number += 1) {
    orders.push((await harbour.order(String(number), [{ sku }])).orderId)
  }
  return { orders, sku }
}

describe('a supplier whose answers are ambiguous', () => {
  test('is sent nothing more after three in a row, then one order at a time, then all', async () => {
    const harbour = await openHarbour({ policy: { inFlight: 1 } })
    harbour.sandbox.faults.add({ fault: 'answer-lost', times: 4 })
    await buyMany(harbour, 8)
    await harbour.settle()
    expect(harbour.sent).toHaveLength(3)
    expect(harbour.ordering.pace.breaker.phase).toBe('open')
    harbour.sandbox.faults.add({ fault: 'error-before', match: { path: '/orders', method: 'GET' }, times: 9 })
    await harbour.pass(2_000)
    expect(harbour.sent, 'no look-up has succeeded').toHaveLength(3)
    await harbour.pass(5_000)
    expect(harbour.sent, 'one was tried, and its answer was lost too').toHaveLength(4)
    expect(harbour.ordering.pace.breaker.phase).toBe('open')
    await harbour.pass(2 * MINUTE)
    expect(harbour.ordering.pace.breaker.phase).toBe('closed')
    harbour.expectLedger({ charges: 8, keys: 8 })
  })

  test('is sent new orders again when a sweep, not a look-up, has found all that were ambiguous', async () => {
    const harbour = await openHarbour({ policy: { inFlight: 1 } })
    harbour.sandbox.faults.add({ fault: 'answer-lost', times: 3 })
    const { orders } = await buyMany(harbour, 4)
    await harbour.settle()
    const states = () => Promise.all(orders.map(async (orderId) => (await harbour.purchase(orderId)).state))
    expect(await states()).toEqual(['unknown', 'unknown', 'unknown', 'planned'])
    await sweep(harbour.ordering)
    expect(await states()).toEqual(['accepted', 'accepted', 'accepted', 'planned'])
    await harbour.pass(2 * MINUTE)
    harbour.expectLedger({ charges: 4, keys: 4 })
  })

  test('is not taken for well because nobody could reach it', async () => {
    const harbour = await openHarbour({ policy: { inFlight: 1 }, sandboxFile: databaseFile() })
    harbour.sandbox.faults.add({ fault: 'answer-lost', times: 2 })
    const { sku } = await buyMany(harbour, 2)
    await harbour.settle()
    expect(harbour.ordering.pace.breaker).toMatchObject({ phase: 'closed', ambiguousInRow: 2 })
    await harbour.supplierDown()
    await harbour.order('3', [{ sku }])
    await harbour.settle()
    expect(harbour.sent).toHaveLength(3)
    expect(harbour.ordering.pace.breaker.ambiguousInRow).toBe(2)
  })
})

describe('repeats', () => {
  test('stay under their budget, and new orders pass them by', async () => {
    const harbour = await openHarbour({ sandboxFile: databaseFile(), policy: { inFlight: 4 } })
    const { orders, sku } = await buyMany(harbour, 60)
    await harbour.supplierDown()
    await harbour.settle()
    expect(harbour.sent).toHaveLength(60)
    await harbour.supplierUp()
    harbour.move(5_000)
    const fresh = (await harbour.order('fresh', [{ sku }])).orderId
    await harbour.settle()
    expect(await harbour.purchase(fresh)).toMatchObject({ state: 'accepted' })
    expect(harbour.sent.length - 61).toBeLessThanOrEqual(6)
    await harbour.pass(MINUTE - 6_000, 3_000)
    expect(harbour.sent.length - 61).toBeLessThanOrEqual(6)
    await harbour.pass(12 * MINUTE, 10_000)
    for (const order of orders) expect(await harbour.state(order)).toBe('fulfilled')
    harbour.expectLedger({ charges: 61, keys: 61 })
  })
})

describe('a purchase that fails inside Quayside', () => {
  test('goes to a person after eight equal errors, while the others go on', async () => {
    const harbour = await openHarbour()
    const bad = await harbour.buy('1001')
    await harbour.settle()
    const good = await harbour.buy('1002')
    const { vault } = harbour
    let poison: string | undefined
    const reads: number[] = []
    harbour.ordering.vault = {
      ...vault,
      blindIndex: (text) => {
        poison ??= text
        if (text !== poison) return vault.blindIndex(text)
        reads.push(harbour.now())
        throw new Error('this key is poison')
      },
    }
    await harbour.pass(5 * MINUTE, 2_000)
    const states = [(await harbour.purchase(bad)).state, (await harbour.purchase(good)).state].sort()
    expect(states).toEqual(['fulfilled', 'review'])
    expect(reads.length, 'a review is read again only now and then').toBeLessThan(12)
    expect(await harbour.alerts()).toContain('poisoned')
    harbour.expectLedger({ charges: 2, keys: 1 })
  })

  test('goes to a person when it must not be sent because an earlier attempt may have been charged', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'failed-order' })
    const orderId = await harbour.buy('1001')
    await harbour.pass(10_000)
    const { id } = await harbour.purchase(orderId)
    await retryPurchase(harbour.ordering, id, 'ann')
    // As a bug would leave it: planned anew although nobody has written the first one off.
    const [failed] = await harbour.purchases(orderId)
    if (!failed) throw new Error('there is a first attempt')
    await harbour.db.commit([changePurchase(failed, { writtenOffAt: null }, harbour.now())])
    const other = await harbour.buy('1002')
    await harbour.pass(5 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ generation: 2, state: 'review' })
    expect(await harbour.state(other)).toBe('fulfilled')
    expect(harbour.sent).toHaveLength(2)
    expect(first(await harbour.alerts())).toBe('poisoned')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('many reviews', () => {
  /** Orders that end in review: each failed at the supplier after its first key. */
  async function reviews(harbour: Harbour, references: string[]): Promise<void> {
    for (const reference of references) {
      harbour.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 30 * MINUTE })
      await harbour.buy(reference, { quantity: 2 })
    }
    await harbour.pass(10_000)
    const { orders } = harbour.sandbox.world
    for (const order of orders.known(references.length)) orders.fail(order, 'no more of them')
    await harbour.pass(MINUTE)
  }

  test('that cancellations caused stop nothing, however many come: what was bought and paid is known', async () => {
    const harbour = await openHarbour()
    await reviews(harbour, ['1', '2', '3'])
    for (const reference of ['4', '5', '6', '7']) {
      const orderId = await harbour.buy(reference)
      await harbour.settle()
      await cancelOrder(harbour.ordering, orderId, 'shop')
    }
    await harbour.pass(10_000)
    expect(await harbour.db.query(purchasesInState('review', 10))).toHaveLength(7)
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    expect(await harbour.alerts()).not.toContain('freeze')
    await reviews(harbour, ['8'])
    expect(await currentFreeze(harbour.db)).toMatchObject({ reason: expect.stringMatching(/^4 purchases within/) })
  })

  test('more than three within an hour stop all buying until a person lets it go on', async () => {
    const harbour = await openHarbour()
    await reviews(harbour, ['1', '2', '3'])
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    await reviews(harbour, ['4'])
    expect(await currentFreeze(harbour.db)).toMatchObject({ actor: 'quayside', reason: expect.stringContaining('4') })
    expect(await harbour.alerts()).toContain('freeze')
    const next = await harbour.buy('5')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(next)).toMatchObject({ holdReason: 'frozen' })
    await unfreeze(harbour.ordering, 'ann')
    await reviews(harbour, ['6'])
    expect(await currentFreeze(harbour.db), 'a new count begins').toBeUndefined()
  })

  test('five of the last hundred purchases stop it too, however slowly they come', async () => {
    const harbour = await openHarbour()
    for (const reference of ['1', '2', '3', '4', '5']) {
      expect(await currentFreeze(harbour.db)).toBeUndefined()
      await reviews(harbour, [reference])
      harbour.move(61 * MINUTE)
    }
    expect(await currentFreeze(harbour.db)).toMatchObject({ reason: expect.stringContaining('5 of the last 100') })
  })
})
