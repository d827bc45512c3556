import { describe, expect, test } from 'vitest'
import { unfreeze } from '../../src/ordering/actions.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/settings.ts'
import { first, type Harbour, openHarbour } from '../support/harbour.ts'
import { buyBeside, decide, HOUR, keysShort, known, MINUTE, orderedTwice } from '../support/reviews.ts'

/** The supplier's next answers about one order say that it failed, whatever it is. */
function readsAsFailed({ ordering: { supplier } }: Harbour, times: number): void {
  const order = supplier.order.bind(supplier)
  let left = times
  supplier.order = async (id) => {
    const read = await order(id)
    left -= 1
    return read && left >= 0 ? { ...read, status: 'failed', statusWord: 'failed', keys: [] } : read
  }
}

/** A supplier whose order ids have blanks in them, where the sandbox's have hyphens. */
function withBlanksInIds({ ordering: { supplier } }: Harbour): void {
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
async function boughtByHand(harbour: Harbour) {
  const { supplier } = harbour.ordering
  const { orders } = supplier
  supplier.orders = () => Promise.reject(new Error('the list is broken'))
  harbour.sandbox.faults.add({ fault: 'error-before' })
  const orderId = await harbour.buy('1001')
  await harbour.pass(26 * HOUR, HOUR)
  supplier.orders = orders
  const { state, supplierProductId, body: sent } = await harbour.purchase(orderId)
  expect(state).toBe('review')
  const body = JSON.stringify({ ...JSON.parse(sent), external_order_id: undefined })
  expect(body).toContain(supplierProductId)
  return { orderId, byHand: await buyBeside(harbour, body, 'by-hand') }
}

describe('adopting an order', () => {
  test('of two that were found delivers it, and the other does not freeze buying again', async () => {
    const harbour = await openHarbour()
    const { orderId, second } = await orderedTwice(harbour)
    await decide(harbour, orderId, { type: 'adopt', orderId: second })
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled', supplierOrderId: second, note: null })
    expect(await currentFreeze(harbour.db), 'a decision does not lift the freeze').toBeDefined()
    await unfreeze(harbour.ordering, 'ann')
    await sweep(harbour.ordering)
    await harbour.pass(HOUR)
    await sweep(harbour.ordering)
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    expect(await harbour.discrepancies()).toEqual(['double_charge'])
    harbour.expectLedger({ charges: 2, keys: 1, perPart: 2 })
  })

  test.each(['adopt', 'close'] as const)(
    'whose id has blanks: after %s no sweep freezes buying again',
    async (type) => {
      const harbour = await openHarbour()
      withBlanksInIds(harbour)
      const { orderId, second } = await orderedTwice(harbour)
      await decide(harbour, orderId, { type, orderId: second.replaceAll('-', ' ') })
      await unfreeze(harbour.ordering, 'ann')
      for (let time = 0; time < 3; time += 1) {
        await sweep(harbour.ordering)
        await harbour.pass(20 * MINUTE)
        expect(await currentFreeze(harbour.db)).toBeUndefined()
      }
      expect(await harbour.purchase(orderId)).toMatchObject({ state: type === 'adopt' ? 'fulfilled' : 'cancelled' })
      expect(await harbour.discrepancies()).toEqual(['double_charge'])
      harbour.expectLedger({ charges: 2, keys: type === 'adopt' ? 1 : 0, perPart: 2 })
    },
  )

  test('in place of the one that is known does not freeze buying over the one before', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open', times: 2 })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    const { body, supplierOrderId } = await harbour.purchase(orderId)
    const other = await buyBeside(harbour, body, 'somebody-else')
    await sweep(harbour.ordering)
    expect(await currentFreeze(harbour.db)).toMatchObject({ purchaseId: (await harbour.purchase(orderId)).id })
    await decide(harbour, orderId, { type: 'adopt', orderId: other })
    await unfreeze(harbour.ordering, 'ann')
    await sweep(harbour.ordering)
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    harbour.sandbox.world.orders.complete(first(known(harbour).filter(({ id }) => id === other)))
    await harbour.pass(HOUR)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled', supplierOrderId: other })
    expect(supplierOrderId).not.toBe(other)
    harbour.expectLedger({ charges: 2, keys: 1, perPart: 2 })
  })

  test('anew takes the keys that came while it waited for a person', async () => {
    const harbour = await openHarbour()
    const orderId = await keysShort(harbour, 5, 2)
    const { supplierOrderId } = await harbour.purchase(orderId)
    await harbour.pass(20 * HOUR)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    await decide(harbour, orderId, { type: 'adopt', orderId: String(supplierOrderId) })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 5 })
  })

  test('is not the last word when the supplier calls it failed and then completes it after all', async () => {
    const harbour = await openHarbour()
    const { orderId, second } = await orderedTwice(harbour)
    await unfreeze(harbour.ordering, 'ann')
    readsAsFailed(harbour, 2)
    await decide(harbour, orderId, { type: 'adopt', orderId: second })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('failed')
    await sweep(harbour.ordering)
    await harbour.pass(HOUR)
    expect(await harbour.purchase(orderId), 'the store was told that it failed').toMatchObject({ state: 'review' })
    await decide(harbour, orderId, { type: 'hand_over' })
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'fulfilled', supplierOrderId: second })
    expect(harbour.shop.keys().get('1001/1')).toEqual(harbour.sandbox.world.orders.keysOf(second))
  })

  test('that the person bought by hand at the supplier hands its keys over', async () => {
    const harbour = await openHarbour()
    const { orderId, byHand } = await boughtByHand(harbour)
    await decide(harbour, orderId, { type: 'adopt', orderId: byHand })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.shop.keys().get('1001/1')).toEqual(harbour.sandbox.world.orders.keysOf(byHand))
  })

  test('that was bought by hand is compared by the sweep too, though it carries no reference', async () => {
    const harbour = await openHarbour()
    const { orderId, byHand } = await boughtByHand(harbour)
    readsAsFailed(harbour, 2)
    await decide(harbour, orderId, { type: 'adopt', orderId: byHand })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('failed')
    await sweep(harbour.ordering)
    await harbour.pass(HOUR)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review', supplierOrderId: byHand })
    expect(await harbour.discrepancies()).toEqual([])
  })

  test('is refused when it belongs to another purchase, is a stranger, or is not there', async () => {
    const harbour = await openHarbour()
    const other = await harbour.buy('1000')
    await harbour.pass(MINUTE)
    const { orderId } = await orderedTwice(harbour)
    const before = await harbour.purchase(orderId)
    const offers = await harbour.offers()
    const strange = { ...JSON.parse(before.body), external_order_id: 'of-somebody-else' }
    const foreign = await buyBeside(harbour, JSON.stringify(strange), 'foreign')
    const another = { ...JSON.parse(before.body), external_order_id: undefined, productId: offers[1]?.productId }
    const otherProduct = await buyBeside(harbour, JSON.stringify(another), 'other-product')
    const refused: [string, string][] = [
      [String((await harbour.purchase(other)).supplierOrderId), 'order_taken'],
      [foreign, 'order_foreign'],
      [otherProduct, 'order_foreign'],
      ['01890000-0000-7000-8000-000000000000', 'order_unknown'],
    ]
    for (const [id, reason] of refused) {
      await expect(decide(harbour, orderId, { type: 'adopt', orderId: id }), id).rejects.toMatchObject({ reason })
    }
    for (const id of ['', '.', '..', ' ', 'a\nb', 'x'.repeat(201)]) {
      const fields = [{ field: 'orderId', message: expect.any(String) }]
      await expect(decide(harbour, orderId, { type: 'adopt', orderId: id }), id).rejects.toMatchObject({ fields })
    }
    expect(await harbour.purchase(orderId)).toEqual(before)
    expect(await harbour.db.query(auditOf(before.id)), 'what was refused is no decision').toEqual([])
  })

  test('of another purchase that does not know it yet is refused by its reference', async () => {
    const harbour = await openHarbour()
    const { orderId } = await orderedTwice(harbour)
    await unfreeze(harbour.ordering, 'ann')
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    const other = await harbour.buy('1002')
    await harbour.round()
    expect(await harbour.purchase(other)).toMatchObject({ state: 'unknown', supplierOrderId: null })
    const theirs = first(known(harbour)).id
    await expect(decide(harbour, orderId, { type: 'adopt', orderId: theirs })).rejects.toMatchObject({
      reason: 'order_taken',
    })
  })

  test('that a person bought by hand goes to one purchase only', async () => {
    const harbour = await openHarbour()
    const { orderId } = await orderedTwice(harbour)
    const byHand = { ...JSON.parse((await harbour.purchase(orderId)).body), external_order_id: undefined }
    const adopt = { type: 'adopt', orderId: await buyBeside(harbour, JSON.stringify(byHand), 'by-hand') } as const
    await decide(harbour, orderId, adopt)
    await unfreeze(harbour.ordering, 'ann')
    const { orderId: other } = await orderedTwice(harbour, '1002')
    await expect(decide(harbour, other, adopt)).rejects.toMatchObject({ reason: 'order_taken' })
  })

  test('is refused while keys of another order are stored', async () => {
    const harbour = await openHarbour()
    const orderId = await keysShort(harbour, 5, 2)
    const other = await buyBeside(harbour, (await harbour.purchase(orderId)).body, 'somebody-else')
    await expect(decide(harbour, orderId, { type: 'adopt', orderId: other })).rejects.toMatchObject({
      reason: 'keys_of_another_order',
    })
  })

  test('that cannot be read now changes nothing, and the next try does', async () => {
    const harbour = await openHarbour()
    const { orderId, own } = await orderedTwice(harbour)
    harbour.sandbox.faults.add({ fault: 'rate-limit', times: 9, match: { path: `/orders/${own}` } })
    await expect(decide(harbour, orderId, { type: 'adopt', orderId: own })).rejects.toMatchObject({
      code: 'unavailable',
    })
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
    harbour.sandbox.faults.clear()
    harbour.move(MINUTE)
    await decide(harbour, orderId, { type: 'adopt', orderId: own })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
  })
})
