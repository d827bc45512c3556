/** Faults that the simulation found first, in a few steps each. */
import { expect, test } from 'vitest'
import { retryPurchase } from '../../src/ordering/actions.ts'
import { decidePurchase } from '../../src/ordering/decide.ts'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { afterClockJump } from '../../src/ordering/recover.ts'
import { takeByHand } from '../../src/ordering/shop-orders.ts'
import { wooKey } from '../shops/woocommerce-shop.ts'
import { shopifyThatChanges, wooCommerceThatChanges } from '../support/changing-shop.ts'
import { openDeliveryEndpoint } from '../support/dialect-endpoint.ts'
import { openShopApp, SHOP } from '../support/shop-app.ts'
import { openShopifyApp, SHOP as SHOPIFY } from '../support/shopify-app.ts'
import { openTestApp, type TestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** The supplier says of an order a few times that it failed, without keys, and keeps the money. */
function saysFailed({ sandbox }: Pick<TestApp, 'sandbox'>, times: number): void {
  const { orders } = sandbox.world
  const { get, keysOf } = orders
  let left = times
  orders.get = (id) => {
    const order = get(id)
    if (left === 0) return order
    left -= 1
    orders.keysOf = () => {
      orders.keysOf = keysOf
      return []
    }
    return order && { ...order, status: 'failed' }
  }
}

test('an order that a person gave up is not bought again for the tag that was set before, and that the shop does not give up', async () => {
  const app = await openShopifyApp()
  const variant = await app.sell()
  app.sandbox.faults.add({ fault: 'hold-open' })
  const { id } = app.shop.buy({ lines: [{ variant }] })
  await app.settle()
  app.shop.strike({ kind: 'RemoveTags', fault: 'refused', status: 503, times: Number.POSITIVE_INFINITY })
  app.shop.tag(id, 'quayside-retry')
  await app.pass(2 * MINUTE)
  const [bought] = await app.purchases((await app.orderOf(id))?.id ?? '')
  await decidePurchase(app.ordering, bought?.id ?? '', { type: 'close' }, { actor: 'test', reason: 'given up' })
  await app.pass(60 * MINUTE)
  expect(app.sandbox.world.report().charges).toHaveLength(1)
})

test('keys that came short are put before a person after an hour, also while the shop holds the delivery of the others back', async () => {
  const app = await openShopifyApp()
  const variant = await app.sell()
  app.sandbox.faults.add({ fault: 'partial-keys', first: 2, status: 'completed', delayMs: 20 * HOUR })
  const { id } = app.shop.buy({ lines: [{ variant, quantity: 3 }] })
  await app.pass(3 * MINUTE)
  const line = app.shop.orders.get(id)?.lines[0]
  app.shop.setFulfilmentStatus(id, 'SCHEDULED')
  app.shop.refund(id, { lines: [{ id: line?.id ?? '', quantity: 1 }] })
  const purchase = async () => (await app.purchases((await app.orderOf(id))?.id ?? '')).at(0)
  await app.pass(50 * MINUTE)
  expect(await purchase()).toMatchObject({ state: 'accepted', surplus: 1 })
  await app.pass(30 * MINUTE)
  expect(await purchase()).toMatchObject({ state: 'review', note: expect.stringContaining('only 2 of 3 keys came') })
})

test('what the supplier failed without giving the money back is not bought again by itself once the order is set back to paid', async () => {
  const app = await openShopApp()
  const [one] = await app.sell()
  app.sandbox.faults.add({ fault: 'hold-open' })
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
  saysFailed(app, 2)
  await app.pass(5 * MINUTE)
  const { id = '' } = (await app.orderOf(reference)) ?? {}
  expect((await app.purchases(id)).map(({ state, refundedAt }) => [state, refundedAt])).toEqual([['failed', null]])
  app.shop.setStatus(Number(reference), 'on-hold')
  await app.pass(3 * MINUTE)
  app.shop.setStatus(Number(reference), 'processing')
  await app.pass(10 * MINUTE)
  expect(app.sandbox.world.report().charges).toHaveLength(1)
  expect(await app.alertsAbout(reference)).not.toEqual([])
})

/** An order that a delivery said is completed, and that is read as failed so many times. */
async function announcedAndReadAsFailed(times: number) {
  const app = await openTestApp()
  const endpoint = await openDeliveryEndpoint(app)
  const orderId = await app.buy('1001')
  while ((await app.round()) > 0);
  app.move(1_000)
  app.sandbox.advance()
  await app.sandbox.deliverDue()
  saysFailed(app, times)
  await endpoint.process()
  expect(await endpoint.events()).toEqual(['order.completed'])
  return { app, orderId }
}

test('an order that a delivery said is completed is not given up for one reading that says failed', async () => {
  const { app, orderId } = await announcedAndReadAsFailed(1)
  await app.pass(5 * MINUTE)
  expect(app.callbacks('line.failed')).toEqual([])
  app.expectLedger({ charges: 1, keys: 1 })
  expect(await app.state(orderId)).toBe('fulfilled')
})

test('an order that a delivery said is completed is not given up for two readings that say failed, a minute apart', async () => {
  const { app, orderId } = await announcedAndReadAsFailed(3)
  await app.pass(10 * MINUTE)
  expect(app.callbacks('line.failed')).toEqual([])
  app.expectLedger({ charges: 1, keys: 1 })
  expect(await app.state(orderId)).toBe('fulfilled')
})

test('an order that a delivery said is completed fails once all readings of an hour say so', async () => {
  const { app, orderId } = await announcedAndReadAsFailed(1_000)
  await app.pass(50 * MINUTE)
  expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted' })
  await app.pass(20 * MINUTE)
  expect(await app.purchase(orderId)).toMatchObject({ state: 'failed' })
})

test('an order is not given up, and not bought again for a tag, for one reading that says failed where no delivery says so', async () => {
  const app = await openShopifyApp()
  const variant = await app.sell()
  app.sandbox.faults.add({ fault: 'hold-open' })
  const { id } = app.shop.buy({ lines: [{ variant }] })
  await app.settle()
  saysFailed(app, 1)
  await app.pass(2 * MINUTE)
  app.shop.tag(id, 'quayside-retry')
  await app.pass(10 * MINUTE)
  expect(app.sandbox.world.report().charges).toHaveLength(1)
  expect((await app.purchases((await app.orderOf(id))?.id ?? '')).map(({ state }) => state)).toEqual(['accepted'])
})

test('no key leaves a line because an earlier request of ours acts after a later one, when its answer is not waited for any more', async () => {
  const app = await openShopApp()
  const [one] = await app.sell()
  app.sandbox.faults.add({ fault: 'partial-keys', first: 1, delayMs: 20_000, status: 'open' })
  let late: { path: string; body: string } | undefined
  app.shop.strike({
    fault: 'lost_before',
    kind: 'orders.update',
    matches: ({ path, fields }) => {
      late = { path, body: JSON.stringify(fields) }
      return true
    },
  })
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0, quantity: 2 }] })
  await app.pass(MINUTE, 1_000)
  expect(late).toBeDefined()
  const authorization = `Basic ${Buffer.from(`${wooKey.key}:${wooKey.secret}`).toString('base64')}`
  const answer = app.shop.handle({
    method: 'PUT',
    url: `${new URL(app.running.url).origin}${late?.path}`,
    headers: { authorization, 'content-type': 'application/json' },
    body: late?.body ?? '',
  })
  expect(answer.status).toBe(200)
  await app.pass(30 * MINUTE)
  const issued = Object.values(app.sandbox.world.report().keysIssued).flat()
  expect(issued.map((key) => app.shop.mailsWith(key).length)).toEqual([1, 1])
  expect(app.statusOf(reference)).toBe('completed')
})

test('a shop that holds the fulfilment of an order of two lines back is asked at most once a minute for each of them', async () => {
  const shop = await shopifyThatChanges()
  const reference = shop.buys(1, 1)
  shop.shop.setFulfilmentStatus(reference, 'ON_HOLD')
  await shop.pass(5 * MINUTE)
  const asked = (): number => shop.shop.requests().filter(({ kind }) => kind === 'HandOverOrder').length
  const before = asked()
  await shop.pass(15 * MINUTE, 1_000)
  expect(asked() - before).toBeLessThanOrEqual(2 * 15)
  shop.shop.setFulfilmentStatus(reference, 'OPEN')
  await shop.pass(3 * MINUTE)
  expect(shop.keysIn(reference)).toHaveLength(2)
})

test('an order that was refunded by amount, grows and is paid again waits for a person, and an alert says how to have it go on', async () => {
  const shop = await shopifyThatChanges({ delayMinutes: 60 })
  const reference = shop.buys(1)
  await shop.pass(2 * MINUTE)
  shop.refundsMoneyOf(reference, 0)
  await shop.pass(3 * MINUTE)
  expect((await shop.alertsAbout(reference)).join()).not.toContain('orders release')
  const [line] = shop.shop.orders.get(reference)?.lines ?? []
  shop.shop.edit(reference, { set: [{ id: line?.id ?? '', quantity: 2 }] })
  shop.paysAgain(reference)
  await shop.pass(10 * MINUTE)
  expect((await shop.alertsAbout(reference)).join()).toContain(`quayside orders release ${reference}`)
})

test('an order that was closed here while its shop had it as cancelled, and that is paid again, is asked of a person', async () => {
  const shop = await wooCommerceThatChanges()
  shop.sandbox.faults.add({ fault: 'hold-open' })
  const reference = shop.buys(2)
  await shop.pass(2 * MINUTE)
  shop.cancels(reference)
  await shop.pass(2 * MINUTE)
  shop.completesOpen()
  await shop.pass(5 * MINUTE)
  const { id = '' } = (await shop.orderOf(reference)) ?? {}
  const [bought] = await shop.purchases(id)
  await decidePurchase(shop.ordering, bought?.id ?? '', { type: 'close' }, { actor: 'ann', reason: 'cancelled' })
  await shop.pass(5 * MINUTE)
  const before = await shop.alertsAbout(reference)

  shop.paysAgain(reference)
  await shop.pass(HOUR)
  expect(shop.unitsBought(), 'what a person closed is not bought again by itself').toBe(2)
  const line = String(shop.shop.orders.get(Number(reference))?.lines[0]?.id)
  const alerts = (await shop.alertsAbout(reference)).filter((one) => !before.includes(one))
  expect(alerts).toEqual([expect.stringContaining(`quayside orders take ${reference} --line ${line}`)])

  await takeByHand(shop.ordering, SHOP, reference, { take: { line } }, 'ann')
  await shop.pass(HOUR)
  expect(shop.unitsBought()).toBe(4)
  expect(shop.keysIn(reference)).toHaveLength(2)
  expect(shop.isDone(reference)).toBe(true)
})

test('units that Shopify took off, that a person then closed, and that are paid once more are asked of a person', async () => {
  const shop = await shopifyThatChanges()
  shop.sandbox.faults.add({ fault: 'hold-open' })
  const reference = shop.buys(1, 1)
  await shop.pass(2 * MINUTE)
  const [line] = shop.shop.orders.get(reference)?.lines ?? []
  shop.shop.edit(reference, { set: [{ id: line?.id ?? '', quantity: 0 }] })
  await shop.pass(2 * MINUTE)
  shop.completesOpen()
  await shop.pass(5 * MINUTE)
  const { id = '' } = (await shop.orderOf(reference)) ?? {}
  const kept = (await shop.purchases(id)).find(({ state }) => state === 'review')
  await decidePurchase(shop.ordering, kept?.id ?? '', { type: 'close' }, { actor: 'ann', reason: 'taken off' })
  await shop.pass(5 * MINUTE)
  shop.raises(reference, 0, 1)
  await shop.pass(HOUR)
  expect(shop.unitsBought()).toBe(2)
  expect(await shop.alertsAbout(reference)).toContainEqual(expect.stringMatching(/orders take .* --line/))
})

test('a unit of Shopify that is paid once more, after a person handed over the keys beside it, was bought although its key was charged and had not come', async () => {
  const shop = await shopifyThatChanges()
  shop.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'completed', delayMs: 20 * HOUR })
  const reference = shop.buys(2)
  const [line] = shop.shop.orders.get(reference)?.lines ?? []
  await shop.pass(MINUTE)
  shop.shop.refund(reference, { lines: [{ id: line?.id ?? '', quantity: 1 }] })
  await shop.pass(90 * MINUTE)
  const { id = '' } = (await shop.orderOf(reference)) ?? {}
  const [bought] = await shop.purchases(id)
  expect(bought).toMatchObject({ quantity: 2, surplus: 1, state: 'review' })
  await decidePurchase(
    shop.ordering,
    bought?.id ?? '',
    { type: 'hand_over' },
    { actor: 'ann', reason: 'one is enough' },
  )
  await shop.pass(5 * MINUTE)
  expect(shop.keysIn(reference)).toHaveLength(1)

  shop.raises(reference, 0, 2)
  await shop.pass(HOUR)
  expect(shop.unitsBought()).toBe(2)
  expect(await shop.alertsAbout(reference)).toContainEqual(
    expect.stringMatching(/1 unit of line .* is ordered and not bought .*orders take .* --line/),
  )

  await takeByHand(shop.ordering, SHOPIFY, reference, { take: { line: line?.id ?? '' } }, 'ann')
  await shop.pass(HOUR)
  expect(shop.unitsBought()).toBe(3)
  expect(shop.keysIn(reference)).toHaveLength(2)
  expect(shop.isDone(reference)).toBe(true)
})

test('a single key of WooCommerce that a note has brought while another one was bought is not mailed again once that one is refunded', async () => {
  const app = await openShopApp()
  const [one] = await app.sell()
  app.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 10 * MINUTE })
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0, quantity: 2 }] })
  app.shop.strike({ fault: 'lost_after', kind: 'notes.create' })
  await app.pass(6 * MINUTE)
  const [key = ''] = Object.values(app.sandbox.world.report().keysIssued).flat()
  expect(app.shop.mailsWith(key).map(({ kind }) => kind)).toEqual(['customer_note'])
  const [line] = app.shop.orders.get(Number(reference))?.lines ?? []
  app.shop.refund(Number(reference), { amount: '99.00', lines: [{ id: line?.id ?? 0, quantity: 1, total: '99.00' }] })
  await app.pass(2 * HOUR)
  expect(app.shop.orders.get(Number(reference))?.status).toBe('completed')
  // The mail of the refund is WooCommerce's own, and prints the lines as they are.
  expect(app.shop.mailsWith(key).map(({ kind }) => kind)).toEqual(['customer_note', 'refunded'])
})

test('a single key that a note has brought to an order which its merchant had completed is not mailed again once the order is set back to processing', async () => {
  const app = await openShopApp()
  const [one] = await app.sell()
  app.sandbox.faults.add({ fault: 'hold-open' })
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
  await app.pass(2 * MINUTE)
  app.shop.setStatus(Number(reference), 'completed')
  app.shop.strike({ fault: 'lost_after', kind: 'notes.create' })
  const { orders } = app.sandbox.world
  for (const order of orders.known(10)) orders.complete(order)
  const [key = ''] = Object.values(app.sandbox.world.report().keysIssued).flat()
  for (let second = 0; second < 600 && app.shop.mailsWith(key).length === 0; second += 1) await app.pass(1_000)
  expect(app.shop.mailsWith(key).map(({ kind }) => kind)).toEqual(['customer_note'])
  app.shop.setStatus(Number(reference), 'processing')
  await app.pass(HOUR)
  expect(app.statusOf(reference)).toBe('completed')
  expect(app.shop.mailsWith(key).map(({ kind }) => kind)).toEqual(['customer_note'])
})

test('a key that was released for a unit paid once more stayed in its line and was never mailed, where the order was set back to processing', async () => {
  const shop = await wooCommerceThatChanges()
  shop.sandbox.faults.add({ fault: 'hold-open' })
  const reference = shop.buys(2)
  await shop.pass(MINUTE)
  shop.refundsUnits(reference, 0, 1)
  shop.completesOpen()
  await shop.pass(5 * MINUTE)
  expect([shop.isDone(reference), shop.keysIn(reference).length]).toEqual([true, 1])
  shop.paysAgain(reference)
  shop.shop.edit(Number(reference), ({ lines: [line] }) => line && Object.assign(line, { quantity: 3, total: 29_700 }))
  await shop.pass(HOUR)
  const { id = '' } = (await shop.orderOf(reference)) ?? {}
  expect(await shop.purchases(id)).toMatchObject([{ quantity: 2, surplus: 0, state: 'fulfilled' }])
  // The mail of the order that is completed again prints both keys.
  const mails = shop.keysIn(reference).map((key) => shop.shop.mailsWith(key).at(-1)?.kind)
  expect(mails).toEqual(['completed', 'completed'])
  expect(shop.isDone(reference)).toBe(true)
})

test('an order of WooCommerce that was bought after all gets no remark that says to refund it, and its key by one mail', async () => {
  const app = await openShopApp()
  const [one] = await app.sell()
  app.sandbox.faults.add({ fault: 'failed-order', times: 1 })
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0 }] })
  // The shop takes no remark before the key waits in its line.
  app.shop.strike({
    ...{ fault: 'refused', status: 503, code: 'away', kind: 'notes.create', times: Number.POSITIVE_INFINITY },
    matches: ({ fields }) => fields.customer_note === false && app.keysOf(reference).length === 0,
  })
  app.shop.strike({ fault: 'lost_after', kind: 'notes.create', matches: ({ fields }) => fields.customer_note === true })
  await app.pass(5 * MINUTE)
  const order = await app.orderOf(reference)
  expect(order?.closedState).toBe('failed')
  const [failed] = await app.purchases(order?.id ?? '')
  await retryPurchase(app.ordering, failed?.id ?? '', 'ann')
  await app.pass(3 * HOUR)
  expect(app.statusOf(reference)).toBe('completed')
  const [key = ''] = Object.values(app.sandbox.world.report().keysIssued).flat()
  expect(app.shop.mailsWith(key).map(({ kind }) => kind)).toEqual(['completed'])
  const { notes = [] } = app.shop.orders.get(Number(reference)) ?? {}
  expect(JSON.stringify(notes)).not.toMatch(/no licence key of this order will come|will not come/)
  const { timeline: entries } = await viewOrder(app.ordering, order?.id ?? '', { keys: false })
  const timeline = entries.map(({ what }) => what)
  expect(timeline).toContain('line.failed left out')
  expect(timeline).not.toContain('line.failed confirmed by the store')
  expect(timeline).toContain('line.fulfilled confirmed by the store')
})

test('an order of WooCommerce of which a part is bought again brings the keys that wait, and no remark that the others will not come', async () => {
  const app = await openShopApp()
  const [one, two] = await app.sell(2)
  const offer = (await app.offers()).find(({ sku }) => sku === two?.sku)
  const ofTwo = { match: { productId: offer?.productId } }
  app.sandbox.faults.add({ fault: 'failed-order', times: 1, ...ofTwo })
  let isAway = true
  app.shop.strike({
    ...{ fault: 'refused', status: 503, code: 'away', kind: 'notes.create', times: Number.POSITIVE_INFINITY },
    matches: () => isAway,
  })
  const reference = app.customerBuys({ lines: [one, two].map((sold) => ({ product: sold?.product ?? 0 })) })
  await app.pass(5 * MINUTE)
  const order = await app.orderOf(reference)
  expect(order?.closedState).toBe('partly_fulfilled')
  const failed = (await app.purchases(order?.id ?? '')).find(({ state }) => state === 'failed')
  app.sandbox.faults.add({ fault: 'hold-open', ...ofTwo })
  await retryPurchase(app.ordering, failed?.id ?? '', 'ann')
  isAway = false
  await app.pass(HOUR)
  const [key = ''] = Object.values(app.sandbox.world.report().keysIssued).flat()
  expect(app.shop.mailsWith(key).map(({ kind }) => kind)).toEqual(['customer_note'])
  const { notes = [] } = app.shop.orders.get(Number(reference)) ?? {}
  expect(JSON.stringify(notes)).not.toMatch(/will not come/)
})

test('an order whose request was lost, and of which a unit went and came back unpaid meanwhile, waits for a person', async () => {
  const app = await wooCommerceThatChanges()
  const reference = app.buys(2)
  app.sandbox.faults.add({ fault: 'error-before' })
  await app.settle()
  const resize = (quantity: number) =>
    app.shop.edit(Number(reference), ({ lines }) => {
      for (const line of lines) {
        line.total = (line.total / line.quantity) * quantity
        line.subtotal = (line.subtotal / line.quantity) * quantity
        line.quantity = quantity
      }
    })
  const purchase = async () => (await app.purchases((await app.orderOf(reference))?.id ?? '')).at(0)
  expect(await purchase()).toMatchObject({ state: 'unknown', quantity: 2 })
  resize(1)
  await app.pass(3 * MINUTE)
  expect(await purchase()).toMatchObject({ state: 'unknown', surplus: 1 })
  resize(2)
  await app.pass(30 * MINUTE)
  expect(await purchase()).toMatchObject({ state: 'review', note: expect.stringContaining('would buy too many') })
  expect(app.unitsBought()).toBe(0)
  const { id = '' } = (await purchase()) ?? {}
  await decidePurchase(app.ordering, id, { type: 'close' }, { actor: 'test', reason: 'the supplier has no such order' })
  await retryPurchase(app.ordering, id, 'test')
  await app.pass(5 * MINUTE)
  expect(app.keysIn(reference)).toHaveLength(2)
})

test('a clock that is put back by days keeps no keys from their shop for days, where two tries of one order had hung before', async () => {
  const app = await openShopApp()
  const sold = await app.sell(2)
  app.shop.strike({ fault: 'lost_before', kind: 'orders.update', times: 2 })
  const reference = app.customerBuys({ lines: sold.map(({ product }) => ({ product })) })
  const tries = () => app.shop.requests().filter(({ kind }) => kind === 'orders.update').length
  for (let left = 600; tries() < 2 && left > 0; left -= 1) await app.pass(1_000, 1_000)
  app.jump(-48 * HOUR)
  await afterClockJump(app.ordering)
  await app.pass(2 * HOUR)
  expect(app.statusOf(reference)).toBe('completed')
})
