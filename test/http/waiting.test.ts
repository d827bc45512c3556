/** Customers who wait, over the API: each cause in a real world, who is not counted, and what the buttons of the queue do. */
import { expect, test } from 'vitest'
import { waitCauses } from '../../src/domain/waiting.ts'
import { waitingLines } from '../../src/ordering/waiting.ts'
import { openApi } from '../support/api-world.ts'
import { auditOf } from '../support/console-data.ts'
import { openShopApp } from '../support/shop-app.ts'
import { causesIn, openWaiting } from '../support/waiting-world.ts'

const MINUTE = 60_000

test('each cause that the flows lead to is answered with the money, the time and what helps', async () => {
  const world = await openWaiting()
  const { inShop, ask } = world
  expect(await causesIn(world)).toEqual({
    '1001-review': 'review',
    [inShop.failed]: 'failed',
    [inShop.held]: 'held_by_store',
    [inShop.added]: 'added',
    '1005-dead': 'undeliverable',
    '1006-coming': 'coming',
    '1007-stock': 'out_of_stock',
    '1008-ceiling': 'ceiling',
    '1009-balance': 'balance',
    '1010-cap': 'spend_cap',
    '1011-unread': 'offer_unreadable',
    '1012-away': 'store_away',
    '1013-lost': 'unknown',
  })
  const { body } = await ask('GET', '/waiting')
  const { items, ...whole } = body.data
  expect(whole).toMatchObject({ customers: 13, forPerson: 8, longestSince: items[0]?.since })
  expect(items.map(({ since }) => since)).toEqual(items.map(({ since }) => since).toSorted())
  const sum = (name: string) => items.reduce((total, item) => total + Number(item[name] ?? 0), 0).toFixed(2)
  expect(whole.money).toEqual([{ currency: 'EUR', paid: sum('paid'), charged: sum('charged') }])
  expect(items.find(({ reference }) => reference === '1012-away')).toMatchObject({
    missing: 1,
    units: 1,
    forPerson: false,
    detail: 'the key is here; answered 500',
    help: 'send_again',
    actsAtOnce: true,
  })
  const { body: status } = await ask('GET', '/status')
  expect(status.data.waiting).toMatchObject({ customers: 13, forPerson: 8 })
})

test('a list of one cause, of one order or of one store keeps the counts of all', async () => {
  const { ask } = await openWaiting()
  const items = async (query: string) => {
    const { body } = await ask('GET', `/waiting?${query}`)
    return body.data.items.map(({ reference }) => reference)
  }
  expect(await items('cause=balance')).toEqual(['1009-balance'])
  expect(await items('order=1008-ceiling')).toEqual(['1008-ceiling'])
  expect(await items('order=1002-fine')).toEqual([])
  expect((await ask('GET', '/waiting?order=none')).status).toBe(404)
  expect((await ask('GET', '/waiting?cause=hunger')).status).toBe(400)
  const { body } = await ask('GET', '/waiting?cause=frozen')
  expect([body.data.items.length, body.data.customers]).toEqual([0, 13])
  expect(Object.keys(body.data.causes as object).every((cause) => waitCauses.some((one) => one === cause))).toBe(true)
})

test('a failed order of a shop waits until the shop has refunded it', async () => {
  const app = await openShopApp()
  const [one] = await app.sell()
  app.app.sandbox.faults.add({ fault: 'failed-order' })
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0, quantity: 1 }] })
  await app.pass(10 * MINUTE)
  const causes = async () => (await waitingLines(app.ordering)).map(({ cause }) => cause)
  expect(await causes()).toEqual(['failed'])
  app.shop.setStatus(Number(reference), 'refunded')
  await app.pass(5 * MINUTE)
  expect(await causes()).toEqual([])
})

test('a failed order of a backend waits until the backend has confirmed that it failed', async () => {
  const world = await openApi()
  world.sandbox.faults.add({ fault: 'failed-order' })
  // `line.failed` and `order.closed`, twice each.
  world.shop.answerNext(500, 4)
  await world.buy('1001')
  await world.pass(3 * MINUTE, 1_000)
  expect(await causesIn(world)).toEqual({ 1001: 'failed' })
  await world.pass(15 * MINUTE)
  expect(await causesIn(world)).toEqual({})
})

test('a fresh order is not counted in its first minute, and one that is frozen or without a supplier is', async () => {
  const world = await openApi()
  const { sku } = await world.offer()
  await world.supplierDown()
  await world.order('1001', [{ sku }])
  await world.pass(30_000, 5_000)
  expect(await causesIn(world)).toEqual({})
  await world.pass(5 * MINUTE)
  expect(await causesIn(world)).toEqual({ 1001: 'supplier_away' })
  await world.supplierUp()
  await world.ask('POST', '/freeze', { body: { reason: 'checking' } })
  await world.pass(5 * MINUTE)
  expect(await causesIn(world)).toEqual({ 1001: 'frozen' })
  const { body } = await world.ask('GET', '/status')
  const { causes } = body.data.freeze as { causes: { id: string }[] }
  await world.ask('POST', '/unfreeze', { body: { causes: causes.map(({ id }) => id) } })
  await world.pass(5 * MINUTE)
  expect(await causesIn(world)).toEqual({})
})

test('trying a held purchase again buys it once the cause is gone, and lifts no rule', async () => {
  const world = await openWaiting()
  const { ask } = world
  const purchaseOf = async (reference: string) => {
    const { body } = await ask('GET', `/waiting?order=${reference}`)
    return String(body.data.items[0]?.purchaseId)
  }
  const check = async (reference: string) => ask('POST', `/purchases/${await purchaseOf(reference)}/check`, {})
  const stock = await purchaseOf('1007-stock')
  expect((await check('1007-stock')).status).toBe(200)
  await world.settle()
  expect((await causesIn(world))['1007-stock'], 'there is still none').toBe('out_of_stock')
  await check('1008-ceiling')
  await world.settle()
  expect((await causesIn(world))['1008-ceiling'], 'the ceiling stays').toBe('ceiling')
  expect((await check(String(world.inShop.held))).body.error.code).toBe('order_held')
  expect((await check(String(world.inShop.failed))).body.error.code).toBe('ended')
  const checks = (await auditOf(world)).filter(({ action }) => action === 'purchase.check')
  expect(checks.map(({ subject }) => subject)).toContain(stock)
})

test('a hundred customers are counted, and more stand for more', async () => {
  const world = await openApi()
  await world.ask('POST', '/freeze', { body: { reason: 'checking' } })
  const { sku } = await world.offer()
  for (let count = 0; count < 103; count += 1) await world.order(`o${count}`, [{ sku }, { sku, id: '2' }])
  await world.pass(MINUTE)
  const { body } = await world.ask('GET', '/waiting')
  expect(body.data).toMatchObject({ customers: 100, upTo: 100, causes: { frozen: 100 } })
  expect(body.data.items).toHaveLength(200)
})
