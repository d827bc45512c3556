/** What an order of WooCommerce entitles its customer to, whatever its merchant does after it was paid. */
import { describe, expect, test } from 'vitest'
import { changeListing } from '../../src/listings/actions.ts'
import { alertHeld } from '../../src/ordering/late.ts'
import { takeByHand } from '../../src/ordering/shop-orders.ts'
import { wooCommerceThatChanges } from '../support/changing-shop.ts'
import { openShopApp, SHOP } from '../support/shop-app.ts'
import { wooCommerceWorld } from '../support/store-worlds.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

describe('a paid order of WooCommerce', () => {
  test('with a status of the merchant that Quayside does not know is not bought, and people are alerted of the status once', async () => {
    const shop = await wooCommerceThatChanges()
    const references = [shop.buys(1), shop.buys(1)]
    for (const reference of references) shop.shop.setStatus(Number(reference), 'fraud-check')
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(0)
    expect((await shop.alerts()).filter((type) => type === 'order_refused')).toHaveLength(1)
    expect((await shop.alertsAbout(references[0] ?? '')).join()).toMatch(/fraud-check.*stores\[\]\.statuses/)
    shop.shop.setStatus(Number(references[0]), 'processing')
    await shop.pass(5 * MINUTE)
    expect(shop.keysIn(references[0] ?? '')).toHaveLength(1)
  })

  test('that is put on hold when its key is bought gets it within a minute after it is set back to paid', async () => {
    const shop = await wooCommerceThatChanges()
    shop.sandbox.faults.add({ fault: 'hold-open' })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    shop.shop.setStatus(Number(reference), 'on-hold')
    await shop.pass(2 * MINUTE)
    shop.completesOpen()
    await shop.pass(HOUR, 5 * MINUTE)
    expect(shop.unitsBought()).toBe(1)
    expect(shop.keysIn(reference)).toEqual([])
    shop.paysAgain(reference)
    await shop.pass(2 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(shop.isDone(reference)).toBe(true)
  })

  test('that goes to the trash before it is bought is not bought', async () => {
    const shop = await wooCommerceThatChanges({ delayMinutes: 10 })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    shop.shop.trash(Number(reference))
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(0)
  })

  test('that goes to the trash just before its key is written gets no key, and gets it once it is taken out of the trash', async () => {
    const shop = await wooCommerceThatChanges()
    const reference = shop.buys(1)
    const isTrashed = shop.beforeHandOver(reference, 1, () => shop.shop.trash(Number(reference)))
    await shop.pass(30 * MINUTE)
    expect(isTrashed()).toBe(true)
    expect(shop.keysIn(reference)).toEqual([])
    shop.shop.untrash(Number(reference))
    await shop.pass(10 * MINUTE)
    expect(shop.unitsBought()).toBe(1)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(shop.isDone(reference)).toBe(true)
  })

  test('that goes to the trash while its key is written is mailed once it is taken out of the trash', async () => {
    const shop = await wooCommerceThatChanges()
    const reference = shop.buys(1)
    let isTrashed = false
    shop.shop.strike({
      fault: 'echo',
      matches: ({ method, path }) => {
        if (!isTrashed && method === 'PUT' && path.endsWith(`/orders/${reference}`)) shop.shop.trash(Number(reference))
        isTrashed ||= method === 'PUT'
        return false
      },
      change: (json) => json,
    })
    await shop.pass(30 * MINUTE)
    const [key = ''] = shop.keysIn(reference)
    expect(key, 'the key stands in the order').not.toBe('')
    expect(shop.shop.mailsWith(key)).toEqual([])
    shop.shop.untrash(Number(reference))
    await shop.pass(10 * MINUTE)
    expect(shop.isDone(reference)).toBe(true)
    expect(shop.shop.mailsWith(key)).toHaveLength(1)
    expect(shop.unitsBought()).toBe(1)
  })

  test('that is deleted for good before it is bought is not bought', async () => {
    const shop = await wooCommerceThatChanges({ delayMinutes: 10 })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    shop.shop.removeOrder(Number(reference))
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(0)
  })

  test('with a small amount refunded is bought, and people are alerted once', async () => {
    const shop = await wooCommerceThatChanges({ delayMinutes: 10 })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    shop.shop.refund(Number(reference), { amount: '0.50' })
    await shop.pass(30 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(await shop.alertsAbout(reference)).toEqual([expect.stringContaining('0.50 EUR')])
  })
})

describe('an order of WooCommerce that is bought', () => {
  test('and moves to a status that Quayside does not know gets no key, and people are alerted once with the setting that counts it as paid', async () => {
    const shop = await wooCommerceThatChanges()
    shop.sandbox.faults.add({ fault: 'hold-open' })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    shop.shop.setStatus(Number(reference), 'fraud-check')
    await shop.pass(2 * MINUTE)
    shop.completesOpen()
    for (let hour = 0; hour < 3; hour += 1) {
      await shop.pass(HOUR, 5 * MINUTE)
      await alertHeld(shop.ordering)
    }
    expect(shop.keysIn(reference)).toEqual([])
    expect(await shop.alertsAbout(reference)).toEqual([
      expect.stringMatching(/the order has the status fraud-check in the shop.*stores\[\]\.statuses/),
    ])
    shop.paysAgain(reference)
    await shop.pass(2 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(1)
  })

  test('and is released in the shop gets its key by the webhook, before any poll', async () => {
    const shop = await wooCommerceThatChanges()
    const deliver = await shop.connectWebhook()
    const reference = shop.buys(1)
    shop.beforeHandOver(reference, 1, () => shop.shop.setStatus(Number(reference), 'on-hold'))
    await shop.pass(HOUR, 5 * MINUTE)
    expect(shop.keysIn(reference)).toEqual([])
    shop.paysAgain(reference)
    const polls = shop.shop.counts()['orders.list']
    await deliver()
    expect(shop.shop.counts()['orders.list'], 'no poll').toBe(polls)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(shop.isDone(reference)).toBe(true)
  })

  test('and is on hold when its mail is due has that mail sent within two minutes of its release', async () => {
    const shop = await wooCommerceThatChanges()
    const reference = shop.buys(1)
    shop.shop.strike({
      fault: 'lost_before',
      matches: ({ kind, fields }) => {
        const isCompletion = kind === 'orders.update' && fields.status === 'completed'
        if (isCompletion) shop.shop.setStatus(Number(reference), 'on-hold')
        return isCompletion
      },
    })
    await shop.pass(6 * HOUR, 5 * MINUTE)
    expect([shop.keysIn(reference).length, shop.statusOf(reference)]).toEqual([1, 'on-hold'])
    shop.paysAgain(reference)
    await shop.pass(2 * MINUTE)
    expect(shop.isDone(reference)).toBe(true)
    const mailed = shop.keysIn(reference).map((key) => shop.shop.mailsWith(key).map(({ kind }) => kind))
    // WooCommerce prints the lines in the mail of each status; that of the completed order is ours.
    expect(mailed).toEqual([['on_hold', 'processing', 'completed']])
  })

  test('and has the price of a unit refunded by amount just before the key of that unit is written gets no more keys', async () => {
    const shop = await wooCommerceThatChanges()
    const reference = shop.buys(1, 1)
    const isRefunded = shop.beforeHandOver(reference, 2, () => shop.refundsMoneyOf(reference, 1))
    await shop.pass(30 * MINUTE)
    expect(isRefunded()).toBe(true)
    expect(shop.keysIn(reference)).toEqual([])
    expect(await shop.alertsAbout(reference)).not.toEqual([])
    await takeByHand(shop.ordering, SHOP, reference, 'release', 'ann')
    await shop.pass(10 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(2)
  })

  test('and has less than a unit refunded just before its key is written gets it within minutes', async () => {
    const shop = await wooCommerceThatChanges()
    const reference = shop.buys(1)
    shop.beforeHandOver(reference, 1, () => void shop.shop.refund(Number(reference), { amount: '0.50' }))
    await shop.pass(5 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(shop.isDone(reference)).toBe(true)
  })

  test('gets a key that stayed here for a refund once that refund is deleted, without another purchase', async () => {
    const shop = await wooCommerceThatChanges()
    shop.sandbox.faults.add({ fault: 'hold-open' })
    const reference = shop.buys(2)
    await shop.pass(2 * MINUTE)
    shop.refundsUnits(reference, 0, 1)
    await shop.pass(2 * MINUTE)
    shop.completesOpen()
    await shop.pass(10 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(1)
    const [refund] = shop.shop.orders.get(Number(reference))?.refunds ?? []
    shop.shop.deleteRefund(Number(reference), refund?.id ?? 0)
    // Its page shows no change of date by itself.
    shop.shop.edit(Number(reference), () => {})
    await shop.pass(10 * MINUTE)
    expect(shop.keysIn(reference)).toHaveLength(2)
    expect(shop.unitsBought()).toBe(2)
  })
})

test('a unit that is added a second time is asked of people again: the first answer was for the first one', async () => {
  const shop = await wooCommerceThatChanges()
  const reference = shop.buys(1)
  await shop.pass(5 * MINUTE)
  shop.shop.edit(Number(reference), ({ lines }) => {
    const { product = 0, sku = '' } = shop.products[1] ?? {}
    if (lines[0]) lines.push({ ...lines[0], id: 9_001, productId: product, sku, meta: [] })
  })
  const asked = async () => (await shop.alerts()).filter((type) => type === 'order_changed').length
  await shop.pass(5 * MINUTE)
  expect(await asked()).toBe(1)
  await takeByHand(shop.ordering, SHOP, reference, { take: { line: '9001' } }, 'ann')
  await shop.pass(5 * MINUTE)
  shop.shop.edit(Number(reference), ({ lines }) => {
    const added = lines.find(({ id }) => id === 9_001)
    if (added) added.quantity += 1
  })
  await shop.pass(5 * MINUTE)
  expect(await asked()).toBe(2)
})

describe('an order of WooCommerce of which units are refunded', () => {
  test('while its refunds are read has those units again once that refund is deleted', async () => {
    const world = await wooCommerceWorld()
    const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 3 }])
    const id = Number(reference)
    const unit = { amount: '5.00', lines: [{ id: Number(lines[0]), quantity: 1, total: '5.00' }] }
    const units = async () => {
      const read = await world.store.order?.(reference)
      return read?.outcome === 'order' ? read.order.lines.map(({ quantity }) => quantity) : read
    }
    world.shop.refund(id, unit)
    let second = 0
    world.shop.strike({
      fault: 'echo',
      kind: 'orders.get',
      change: (json) => {
        second = world.shop.refund(id, unit).id
        return json
      },
    })
    expect(await units()).toEqual([1])
    world.shop.deleteRefund(id, second)
    expect(await units()).toEqual([2])
  })

  test('has its refunds read once, and again where there are others', async () => {
    const world = await wooCommerceWorld()
    const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 3 }])
    const unit = { amount: '5.00', lines: [{ id: Number(lines[0]), quantity: 1, total: '5.00' }] }
    const refund = world.shop.refund(Number(reference), unit)
    for (let time = 0; time < 3; time += 1) await world.store.ordersNow?.([reference])
    expect(world.shop.counts()['refunds.list']).toBe(1)
    world.shop.deleteRefund(Number(reference), refund.id)
    world.shop.refund(Number(reference), unit)
    await world.store.ordersNow?.([reference])
    expect(world.shop.counts()['refunds.list']).toBe(2)
  })
})

test.each([HOUR, 26 * HOUR])(
  'an order that is refunded after the clock of its shop was put back by %d ms is not bought',
  async (ahead) => {
    const shop = await wooCommerceThatChanges({ delayMinutes: 10 })
    shop.shop.setClockError(ahead)
    const reference = shop.buys(2)
    await shop.pass(3 * MINUTE)
    shop.shop.setClockError(0)
    shop.refundsUnits(reference, 0, 1)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(1)
    expect(shop.keysIn(reference)).toHaveLength(1)
    shop.cancels(reference)
    await shop.pass(5 * MINUTE)
    expect(await shop.alertsAbout(reference)).toHaveLength(1)
  },
)

test('keys that left by note are known, although the merchant took their line out of the order', async () => {
  const handOver = { by: 'note', complete: true, label: 'Licence key' } as const
  const world = await wooCommerceWorld({ settings: { handOver } })
  const { reference, lines } = world.buy([
    { id: world.sell('A'), quantity: 1 },
    { id: world.sell('B'), quantity: 1 },
  ])
  const update = {
    type: 'line.fulfilled',
    order: { store: 'demo-1', reference },
    line: { id: lines[0] ?? '', sku: 'A', quantity: 1 },
    delivered: 1,
    complete: true,
  } as const
  const fulfil = () => world.store.fulfil({ id: 'u1', at: 0, ...update, keys: ['AAAA-1'] })
  world.shop.strike({ fault: 'lost_before', kind: 'orders.update' })
  expect(await fulfil()).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
  world.shop.edit(Number(reference), (order) => {
    order.lines.shift()
  })
  expect(await fulfil()).toEqual({ outcome: 'confirmed' })
  expect(world.keysOf(reference, ['AAAA-1'])).toHaveLength(1)
})

test('an order that is paid on delivery is not bought, a note in the shop says why once, and so does what keeps it', async () => {
  const app = await openShopApp()
  const [one] = await app.sell()
  await app.settle()
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }], payment: 'on_delivery' })
  await app.pass(10 * MINUTE)
  expect(app.sandbox.world.report().charges).toEqual([])
  await expect(takeByHand(app.ordering, SHOP, reference, { take: 'all' }, 'ann')).rejects.toThrow(
    'is processing in the shop without a payment, as one that is paid on delivery',
  )
  await app.pass(30 * MINUTE)
  const notes = app.notesOf(reference).filter(({ note }) => note.startsWith('Quayside'))
  expect(notes).toMatchObject([{ note: expect.stringContaining('without a payment'), isForCustomer: false }])
  expect(await app.alerts()).toEqual([])
})

describe('what the shop is asked for before an order is bought', () => {
  const ofGuard = ({ query }: { query: URLSearchParams }) => query.has('include')

  test('is nothing more for an order that was just read, and one list for one that waited', async () => {
    for (const [delayMinutes, more] of [
      [0, 0],
      [30, 1],
    ] as const) {
      const shop = await wooCommerceThatChanges({ delayMinutes })
      await shop.settle()
      const before = shop.shop.requests().length
      const reference = shop.buys(1)
      await shop.pass(15 * MINUTE)
      // From then on no poll lists the first one any more.
      shop.customerBuys({ lines: [{ product: shop.products[0]?.product ?? 0 }], payment: 'pending' })
      await shop.pass(20 * MINUTE)
      const asked = shop.shop.requests().slice(before)
      expect(shop.isDone(reference)).toBe(true)
      expect(asked.filter(ofGuard)).toHaveLength(more)
      // To hand over: read, write the key, read, complete.
      expect(asked.filter(({ kind }) => kind === 'orders.get' || kind === 'orders.update')).toHaveLength(4)
    }
  })

  test('is at most a tenth of a request for each of a burst of 200 that waited', async () => {
    const shop = await wooCommerceThatChanges({ delayMinutes: 10 })
    shop.stocks(0, 1_000)
    shop.sandbox.world.topUp(10_000_000)
    await shop.settle()
    const references = Array.from({ length: 200 }, () => shop.buys(1))
    await shop.pass(3 * MINUTE)
    const before = shop.shop.requests().length
    shop.sandbox.faults.add({ fault: 'hold-open', times: 200 })
    await shop.pass(8 * MINUTE, 8 * MINUTE)
    await shop.pass(12 * MINUTE, 10_000)
    const asked = shop.shop.requests().slice(before)
    expect(shop.unitsBought()).toBe(references.length)
    expect(asked.filter(ofGuard).length).toBeLessThanOrEqual(references.length / 10)
    expect(asked.filter(({ kind }) => kind === 'orders.get')).toEqual([])
  })

  test('is little where the shop gives no refunds: two orders are asked for, and the others are read by their ids', async () => {
    const world = await wooCommerceWorld()
    const product = { id: world.sell('A'), quantity: 2 }
    const references = Array.from({ length: 5 }, () => world.buy([product]).reference)
    for (const reference of references) world.shop.refund(Number(reference), { amount: '1.00' })
    world.shop.strike({ fault: 'refused', kind: 'refunds.list', status: 500, code: 'internal', times: 1_000 })
    expect(await world.store.ordersNow?.(references)).toEqual({ outcome: 'read', orders: [] })
    expect(world.shop.counts()['refunds.list']).toBe(2)
  })
})

describe('an order of a product whose SKU the merchant has changed', () => {
  const world = async ({ sku }: { sku?: string } = {}) => {
    const shop = await wooCommerceThatChanges()
    await shop.settle()
    const another = (await shop.offers())[4]
    const [one] = shop.products
    if (!one || !another) throw new Error('the shop has products, and the supplier other ones')
    shop.shop.editProduct(one.product, { sku: sku ?? another.sku })
    return { shop, one, another }
  }

  test('waits for a person, who reads why, and its product is read again at that instant and has no stock', async () => {
    const { shop, one } = await world({ sku: 'CHANGED-1' })
    const reference = shop.buys(1)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(0)
    expect(await shop.alertsAbout(reference)).toEqual([
      expect.stringMatching(new RegExp(`CHANGED-1.*${one.sku}.*quayside orders take ${reference}`)),
    ])
    expect(shop.notesOf(reference).filter(({ note }) => note.includes('CHANGED-1'))).toHaveLength(1)
    expect(shop.shop.products.get(one.product)?.stockQuantity).toBe(0)
  })

  test('has its other line bought, and this one once a person takes it', async () => {
    const { shop, one } = await world({ sku: 'CHANGED-1' })
    const reference = shop.buys(1, 1)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(1)
    expect(shop.keysIn(reference)).toHaveLength(1)
    expect(await shop.alertsAbout(reference)).toEqual([
      expect.stringMatching(/CHANGED-1.* is ordered and not bought.*quayside orders take \d+ --line \d+/),
    ])
    const said = shop.notesOf(reference).filter(({ note }) => note.includes('nothing is bought'))
    expect(said, 'the other line is').toEqual([])
    const line = String(shop.shop.orders.get(Number(reference))?.lines[0]?.id)
    const linking = { ...shop.ordering, wake: () => shop.ordering.wake('publish') }
    await changeListing(
      linking,
      { store: SHOP, variant: String(one.product), actor: 'cli' },
      { change: 'link', offerSku: one.sku },
    )
    await takeByHand(shop.ordering, SHOP, reference, { take: { line } }, 'cli')
    await shop.pass(5 * MINUTE)
    expect(shop.unitsBought()).toBe(2)
    expect(shop.keysIn(reference)).toHaveLength(2)
  })

  test('is not bought by itself where the new SKU is that of another offer, either', async () => {
    const { shop } = await world()
    const reference = shop.buys(1)
    await shop.pass(30 * MINUTE)
    expect(shop.unitsBought()).toBe(0)
    expect(await shop.alertsAbout(reference)).toHaveLength(1)
  })
})
