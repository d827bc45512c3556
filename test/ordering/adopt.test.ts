import { describe, expect, test } from 'vitest'
import { unfreeze } from '../../src/ordering/actions.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { changePurchase } from '../../src/storage/purchases.ts'
import { buyBeside, decide, HOUR, keysShort, known, MINUTE, orderedTwice } from '../support/reviews.ts'
import { first, openTestApp, STORE, type TestApp } from '../support/test-app.ts'

/** The supplier's next answers about one order say that it failed, whatever it is. */
function readsAsFailed({ ordering: { supplier } }: TestApp, times: number): void {
  const order = supplier.order.bind(supplier)
  let left = times
  supplier.order = async (id) => {
    const read = await order(id)
    left -= 1
    return read && left >= 0 ? { ...read, status: 'failed', statusWord: 'failed', keys: [] } : read
  }
}

/** A supplier whose order ids have blanks in them, where the sandbox's have hyphens. */
function withBlanksInIds({ ordering: { supplier } }: TestApp): void {
  const order = supplier.order.bind(supplier)
  const orders = supplier.orders.bind(supplier)
  const blanks = <T extends { id: string }>(one: T): T => ({ ...one, id: one.id.replaceAll('-', ' ') })
  supplier.order = async (id) => {
    const read = await order(id.replaceAll(' ', '-'))
    return read && blanks(read)
  }
  supplier.orders = async (query) => {
    const page = await orders(query)
    return { ...page, items: page.items.map(blanks) }
  }
}

/** A purchase in review because the list could not be read for a day, and an order for it that carries no reference. */
async function boughtByHand(app: TestApp) {
  const { supplier } = app.ordering
  const { orders } = supplier
  supplier.orders = () => Promise.reject(new Error('the list is broken'))
  app.sandbox.faults.add({ fault: 'error-before' })
  const orderId = await app.buy('1001')
  await app.pass(26 * HOUR, HOUR)
  supplier.orders = orders
  const { state, supplierProductId, body: sent } = await app.purchase(orderId)
  expect(state).toBe('review')
  const body = JSON.stringify({ ...JSON.parse(sent), external_order_id: undefined })
  expect(body).toContain(supplierProductId)
  return { orderId, byHand: await buyBeside(app, body, 'by-hand') }
}

describe('adopting an order', () => {
  test('of two that were found delivers it, and the other does not freeze buying again', async () => {
    const app = await openTestApp()
    const { orderId, second } = await orderedTwice(app)
    await decide(app, orderId, { type: 'adopt', orderId: second })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled', supplierOrderId: second, note: null })
    expect(await currentFreeze(app.db), 'a decision does not lift the freeze').toBeDefined()
    await unfreeze(app.ordering, 'ann')
    await sweep(app.ordering)
    await app.pass(HOUR)
    await sweep(app.ordering)
    expect(await currentFreeze(app.db)).toBeUndefined()
    expect(await app.discrepancies()).toEqual(['double_charge'])
    app.expectLedger({ charges: 2, keys: 1, perPart: 2 })
  })

  test.each(['adopt', 'close'] as const)(
    'whose id has blanks: after %s no sweep freezes buying again',
    async (type) => {
      const app = await openTestApp()
      withBlanksInIds(app)
      const { orderId, second } = await orderedTwice(app)
      await decide(app, orderId, { type, orderId: second.replaceAll('-', ' ') })
      await unfreeze(app.ordering, 'ann')
      for (let time = 0; time < 3; time += 1) {
        await sweep(app.ordering)
        await app.pass(20 * MINUTE)
        expect(await currentFreeze(app.db)).toBeUndefined()
      }
      expect(await app.purchase(orderId)).toMatchObject({ state: type === 'adopt' ? 'fulfilled' : 'cancelled' })
      expect(await app.discrepancies()).toEqual(['double_charge'])
      app.expectLedger({ charges: 2, keys: type === 'adopt' ? 1 : 0, perPart: 2 })
    },
  )

  test('in place of the one that is known does not freeze buying over the one before', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open', times: 2 })
    const orderId = await app.buy('1001')
    await app.settle()
    const { body, supplierOrderId } = await app.purchase(orderId)
    const other = await buyBeside(app, body, 'somebody-else')
    await sweep(app.ordering)
    expect(await currentFreeze(app.db)).toMatchObject({ purchaseId: (await app.purchase(orderId)).id })
    await decide(app, orderId, { type: 'adopt', orderId: other })
    await unfreeze(app.ordering, 'ann')
    await sweep(app.ordering)
    expect(await currentFreeze(app.db)).toBeUndefined()
    app.sandbox.world.orders.complete(first(known(app).filter(({ id }) => id === other)))
    await app.pass(HOUR)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled', supplierOrderId: other })
    expect(supplierOrderId).not.toBe(other)
    app.expectLedger({ charges: 2, keys: 1, perPart: 2 })
  })

  test('a second time takes the keys that came while it waited for a person', async () => {
    const app = await openTestApp()
    const orderId = await keysShort(app, 5, 2)
    const { supplierOrderId } = await app.purchase(orderId)
    await app.pass(20 * HOUR)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    await decide(app, orderId, { type: 'adopt', orderId: String(supplierOrderId) })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 5 })
  })

  test('is not the last word when the supplier calls it failed and then completes it after all', async () => {
    const app = await openTestApp()
    const { orderId, second } = await orderedTwice(app)
    await unfreeze(app.ordering, 'ann')
    readsAsFailed(app, 3)
    await decide(app, orderId, { type: 'adopt', orderId: second })
    await app.pass(2 * MINUTE)
    expect(await app.state(orderId)).toBe('failed')
    await sweep(app.ordering)
    await app.pass(HOUR)
    expect(await app.purchase(orderId), 'the store was notified of the failure').toMatchObject({ state: 'review' })
    await decide(app, orderId, { type: 'hand_over' })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled', supplierOrderId: second })
    expect(app.shop.keys().get('1001/1')).toEqual(app.sandbox.world.orders.keysOf(second))
  })

  test('that the person bought by hand at the supplier hands its keys over', async () => {
    const app = await openTestApp()
    const { orderId, byHand } = await boughtByHand(app)
    await decide(app, orderId, { type: 'adopt', orderId: byHand })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(app.shop.keys().get('1001/1')).toEqual(app.sandbox.world.orders.keysOf(byHand))
  })

  test('that was bought by hand is compared by the sweep too, though it carries no reference', async () => {
    const app = await openTestApp()
    const { orderId, byHand } = await boughtByHand(app)
    readsAsFailed(app, 3)
    await decide(app, orderId, { type: 'adopt', orderId: byHand })
    await app.pass(2 * MINUTE)
    expect(await app.state(orderId)).toBe('failed')
    await sweep(app.ordering)
    await app.pass(HOUR)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review', supplierOrderId: byHand })
    expect(await app.discrepancies()).toEqual([])
  })

  test('is refused when it belongs to another purchase, is a stranger, or is not there', async () => {
    const app = await openTestApp()
    const other = await app.buy('1000')
    await app.pass(MINUTE)
    const { orderId } = await orderedTwice(app)
    const before = await app.purchase(orderId)
    const offers = await app.offers()
    const strange = { ...JSON.parse(before.body), external_order_id: 'of-somebody-else' }
    const foreign = await buyBeside(app, JSON.stringify(strange), 'foreign')
    const another = { ...JSON.parse(before.body), external_order_id: undefined, productId: offers[1]?.productId }
    const otherProduct = await buyBeside(app, JSON.stringify(another), 'other-product')
    const refused: [string, string][] = [
      [String((await app.purchase(other)).supplierOrderId), 'order_taken'],
      [foreign, 'order_foreign'],
      [otherProduct, 'order_foreign'],
      ['01890000-0000-7000-8000-000000000000', 'order_unknown'],
    ]
    for (const [id, reason] of refused) {
      await expect(decide(app, orderId, { type: 'adopt', orderId: id }), id).rejects.toMatchObject({ reason })
    }
    for (const id of ['', '.', '..', ' ', 'a\nb', 'x'.repeat(201)]) {
      const fields = [{ field: 'orderId', message: expect.any(String) }]
      await expect(decide(app, orderId, { type: 'adopt', orderId: id }), id).rejects.toMatchObject({ fields })
    }
    expect(await app.purchase(orderId)).toEqual(before)
    expect(await app.db.query(auditOf(before.id)), 'what was refused is no decision').toEqual([])
  })

  test('of another purchase that does not know it yet is refused by its reference', async () => {
    const app = await openTestApp()
    const { orderId } = await orderedTwice(app)
    await unfreeze(app.ordering, 'ann')
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const other = await app.buy('1002')
    await app.round()
    expect(await app.purchase(other)).toMatchObject({ state: 'unknown', supplierOrderId: null })
    const theirs = first(known(app)).id
    await expect(decide(app, orderId, { type: 'adopt', orderId: theirs })).rejects.toMatchObject({
      reason: 'order_taken',
    })
  })

  test('that was seen for it is refused where it carries the reference of another order of ours, also without a purchase', async () => {
    const app = await openTestApp()
    const { orderId } = await orderedTwice(app)
    const purchase = await app.purchase(orderId)
    const theirs = { ...JSON.parse(purchase.body), external_order_id: `q1.${STORE}.2000.1.1.1` }
    const seen = await buyBeside(app, JSON.stringify(theirs), 'elsewhere')
    await app.db.commit([changePurchase(purchase, { ordersSeen: [...purchase.ordersSeen, seen] }, app.now())])
    await expect(decide(app, orderId, { type: 'adopt', orderId: seen })).rejects.toMatchObject({
      reason: 'order_taken',
      message: expect.stringContaining(`q1.${STORE}.2000.1.1.1`),
    })
  })

  test('that a person bought by hand goes to one purchase only', async () => {
    const app = await openTestApp()
    const { orderId } = await orderedTwice(app)
    const byHand = { ...JSON.parse((await app.purchase(orderId)).body), external_order_id: undefined }
    const adopt = { type: 'adopt', orderId: await buyBeside(app, JSON.stringify(byHand), 'by-hand') } as const
    await decide(app, orderId, adopt)
    await unfreeze(app.ordering, 'ann')
    const { orderId: other } = await orderedTwice(app, '1002')
    await expect(decide(app, other, adopt)).rejects.toMatchObject({ reason: 'order_taken' })
  })

  test('is refused while keys of another order are stored', async () => {
    const app = await openTestApp()
    const orderId = await keysShort(app, 5, 2)
    const other = await buyBeside(app, (await app.purchase(orderId)).body, 'somebody-else')
    await expect(decide(app, orderId, { type: 'adopt', orderId: other })).rejects.toMatchObject({
      reason: 'keys_of_another_order',
    })
  })

  test('is allowed when its keys are the stored ones, although the purchase is under another id', async () => {
    const app = await openTestApp()
    const orderId = await keysShort(app, 5, 2)
    const purchase = await app.purchase(orderId)
    const own = purchase.supplierOrderId ?? ''
    // As after a list that showed the order under a second id, which the supplier now denies.
    await app.db.commit([changePurchase(purchase, { supplierOrderId: 'a-copy' }, app.now())])
    await decide(app, orderId, { type: 'adopt', orderId: own })
    expect(await app.purchase(orderId)).toMatchObject({ supplierOrderId: own })
  })

  test('that cannot be read now changes nothing, and the next try does', async () => {
    const app = await openTestApp()
    const { orderId, own } = await orderedTwice(app)
    app.sandbox.faults.add({ fault: 'rate-limit', times: 9, match: { path: `/orders/${own}` } })
    await expect(decide(app, orderId, { type: 'adopt', orderId: own })).rejects.toMatchObject({
      code: 'unavailable',
    })
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    app.sandbox.faults.clear()
    app.move(MINUTE)
    await decide(app, orderId, { type: 'adopt', orderId: own })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
  })
})
