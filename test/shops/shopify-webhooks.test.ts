import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import * as documents from '../../src/stores/shopify/documents.ts'
import { callerOf, codesOf } from '../support/shopify-caller.ts'
import { provenExchanges } from '../support/shopify-proof.ts'
import { validatedByShopify } from '../support/shopify-validator.ts'
import { createShopifyShop, shopifyApp, startShopifyShop } from './shopify-shop.ts'
import type { ShopifyDelivery } from './shopify-webhooks.ts'

const AT = Date.parse('2026-11-01T10:00:00Z')
const URI = 'https://quayside.test/webhooks/shop-1'
const topics = ['ORDERS_PAID', 'ORDERS_UPDATED', 'ORDERS_CANCELLED', 'ORDERS_EDITED', 'REFUNDS_CREATE']

/** A shop with a subscription of each topic, and a paid order of two units. */
function subscribed({ uri = URI, includeFields = {} as Record<string, string[]>, firstId = '6000000000000' } = {}) {
  const shop = createShopifyShop({ now: () => AT, onExchange: provenExchanges(), firstId })
  const ask = callerOf(shop)
  for (const topic of topics) {
    const webhook = { uri, includeFields: includeFields[topic] ?? [] }
    expect(codesOf(ask(documents.createWebhook, { topic, webhook }))).toEqual([])
  }
  const product = shop.addProduct({ title: 'Game A', sku: 'A', price: '9.00', stock: 5 })
  const order = shop.buy({ lines: [{ variant: product.variants[0]?.id ?? '', quantity: 2 }] })
  return { shop, ask, order, line: order.lines[0]?.id ?? '' }
}
const verdict = (delivery: ShopifyDelivery, secret = shopifyApp.secret) => validatedByShopify(secret, delivery)

test("Shopify's own library takes every delivery of the shop, and none that was altered", async () => {
  const { shop, order, line } = subscribed({ firstId: '9007199254740993000' })
  shop.refund(order.id, { lines: [{ id: line, quantity: 1 }] })
  shop.edit(order.id, { set: [{ id: line, quantity: 2 }] })
  shop.cancel(order.id)
  const deliveries = shop.takeDeliveries()
  expect(deliveries.map(({ topic }) => topic)).toEqual([
    'orders/paid',
    'orders/updated',
    'refunds/create',
    'orders/updated',
    'orders/edited',
    'orders/updated',
    'orders/cancelled',
    'orders/updated',
  ])
  for (const delivery of deliveries) {
    const topic = delivery.topic.toUpperCase().replace('/', '_')
    expect(await verdict(delivery)).toMatchObject({ valid: true, topic, domain: 'quayside-test.myshopify.com' })
    expect(delivery.body).toContain(order.id)
  }
  const [paid] = deliveries as [ShopifyDelivery]
  expect(paid.body).toContain(`"id":${order.id},"admin_graphql_api_id":"gid://shopify/Order/${order.id}"`)
  expect(await verdict({ ...paid, body: paid.body.replace('"A"', '"B"') })).toMatchObject({ valid: false })
  expect(await verdict(paid, 'another secret')).toMatchObject({ valid: false })
  expect(new Set(deliveries.map(({ headers }) => headers['x-shopify-webhook-id'])).size).toBe(deliveries.length)
  expect(shop.takeDeliveries()).toEqual([])
})

const captured = resolve(import.meta.dirname, '../fixtures/shopify')
test.each(readdirSync(captured).filter((name) => name.endsWith('.captured.json')))(
  'a body that Shopify sent, %s, verifies when the shop signs it',
  async (name) => {
    const { shop } = subscribed()
    const body = readFileSync(resolve(captured, name), 'utf8')
    expect(await verdict(shop.signed('ORDERS_PAID', URI, body))).toMatchObject({ valid: true })
  },
)

test('a delivery has the fields that its subscription includes, and no others', () => {
  const { shop, order } = subscribed({
    includeFields: {
      ORDERS_PAID: ['admin_graphql_api_id', 'updated_at', 'line_items.id'],
      ORDERS_EDITED: ['order_edit.order_id'],
    },
  })
  shop.edit(order.id, {})
  const bodyOf = (topic: string) => shop.takeDeliveries().find((one) => one.topic === topic)?.body
  shop.takeDeliveries()
  shop.edit(order.id, {})
  expect(bodyOf('orders/edited')).toBe(`{"order_edit":{"order_id":${order.id}}}`)
  shop.buy({ lines: [] })
  expect(Object.keys(JSON.parse(bodyOf('orders/paid') ?? ''))).toEqual([
    'admin_graphql_api_id',
    'updated_at',
    'line_items',
  ])
})

test('a secret that was replaced may sign for a while', async () => {
  const { shop, order } = subscribed()
  shop.takeDeliveries()
  shop.rotateSecret('new', shopifyApp.secret)
  shop.tag(order.id, 'a')
  const [before] = shop.takeDeliveries() as [ShopifyDelivery]
  expect(await verdict(before)).toMatchObject({ valid: true })
  shop.rotateSecret('new')
  shop.tag(order.id, 'b')
  const [after] = shop.takeDeliveries() as [ShopifyDelivery]
  expect(await verdict(after)).toMatchObject({ valid: false })
  expect(await verdict(after, 'new')).toMatchObject({ valid: true })
})

test('a subscription is one for each topic and address, can be changed, and goes with its eighth failure in a row', async () => {
  const statuses: number[] = []
  const bodies: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      bodies.push(body)
      response.writeHead(statuses.shift() ?? 500).end()
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  const uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const { shop, deliver, close } = await startShopifyShop({ now: () => AT })
  onTestFinished(close)
  const ask = callerOf(shop)
  const create = (to: string) =>
    ask(documents.createWebhook, { topic: 'ORDERS_UPDATED', webhook: { uri: to } }).data.webhookSubscriptionCreate
  const { webhookSubscription } = create(uri)
  expect(create(uri).userErrors).toEqual([{ field: ['webhookSubscription', 'uri'] }])
  expect(create('http://quayside.test/').userErrors).toHaveLength(1)
  ask(documents.updateWebhook, { id: webhookSubscription.id, webhook: { includeFields: ['id'] } })
  expect(ask(documents.webhooks).data.webhookSubscriptions.nodes).toMatchObject([
    { topic: 'ORDERS_UPDATED', uri, includeFields: ['id'] },
  ])
  const order = shop.buy({ lines: [] })
  const [delivery] = shop.takeDeliveries() as [ShopifyDelivery]
  statuses.push(500, 500, 500, 500, 500, 500, 500, 200)
  for (let attempt = 0; attempt < 15; attempt += 1) await deliver(delivery)
  expect(shop.webhooks.size).toBe(1)
  await deliver(delivery)
  expect(shop.webhooks.size).toBe(0)
  expect(new Set(bodies)).toEqual(new Set([`{"id":${order.id}}`]))
  shop.tag(order.id, 'a')
  expect(shop.takeDeliveries()).toEqual([])
})

test('a delivery that failed comes again with the same body and id, eight times within four hours, until it is taken', () => {
  const clock = { now: AT }
  const shop = createShopifyShop({ now: () => clock.now })
  const ask = callerOf(shop)
  for (const topic of ['ORDERS_PAID', 'ORDERS_UPDATED']) ask(documents.createWebhook, { topic, webhook: { uri: URI } })
  shop.buy({ lines: [] })
  const [taken, failed] = shop.takeDeliveries() as [ShopifyDelivery, ShopifyDelivery]
  shop.delivered(taken, 200)
  shop.delivered(failed, 503)
  expect(shop.takeDeliveries()).toEqual([])
  const repeats: number[] = []
  for (; clock.now < AT + 5 * 3_600_000; clock.now += 60_000) {
    for (const one of shop.takeDeliveries()) {
      expect(one).toEqual(failed)
      repeats.push(clock.now - AT)
      // Others that arrive between them keep the subscription.
      shop.delivered(one, null)
      shop.delivered({ ...taken, webhook: failed.webhook }, 200)
    }
  }
  expect(repeats).toHaveLength(8)
  expect(repeats.at(-1)).toBeLessThanOrEqual(4 * 3_600_000)
})

test('a topic is written with one slash, after the name of what it is about', () => {
  const shop = createShopifyShop({ now: () => AT })
  const topicOf = (topic: string) => shop.signed(topic, URI, '{}').topic
  expect(topicOf('ORDERS_PAID')).toBe('orders/paid')
  expect(topicOf('FULFILLMENT_HOLDS_RELEASED')).toBe('fulfillment_holds/released')
  expect(topicOf('FULFILLMENT_ORDERS_SCHEDULED_FULFILLMENT_ORDER_READY')).toBe(
    'fulfillment_orders/scheduled_fulfillment_order_ready',
  )
})
