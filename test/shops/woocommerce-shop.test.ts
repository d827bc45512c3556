import { createHmac } from 'node:crypto'
import { request } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { createWooCommerceShop, startWooCommerceShop, type WooShopOptions, wooKey } from './woocommerce-shop.ts'
import { isSafeAddress } from './woocommerce-webhooks.ts'

async function started(options: WooShopOptions = {}) {
  const running = await startWooCommerceShop(options)
  onTestFinished(running.close)
  return running
}

const basic = `Basic ${Buffer.from(`${wooKey.key}:${wooKey.secret}`).toString('base64')}`

test('answers an https address without TLS, on the same port after a stop', async () => {
  const { url, shop, connections, stop, start } = await started()
  shop.addProduct({ name: 'Key', sku: 'K-1', regular_price: '5.00' })
  const list = () =>
    request(`${url}/wp-json/wc/v3/products`, { dispatcher: connections, headers: { authorization: basic } })
  const { statusCode, headers, body } = await list()
  expect(statusCode).toBe(200)
  expect(headers).toMatchObject({ 'x-wp-total': '1', 'x-wp-totalpages': '1' })
  expect(await body.json()).toMatchObject([{ id: 10, sku: 'K-1', price: '5.00' }])
  await stop()
  await expect(list()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await start()
  expect((await list()).statusCode).toBe(200)
  expect(shop.counts()).toEqual({ 'products.list': 2 })
})

/** Filters of WordPress by which a shop delivers to this machine. */
const loopback = { httpRequestHostIsExternal: true, httpAllowedSafePorts: 'any' } as const

const answered = (shop: ReturnType<typeof createWooCommerceShop>, method: string, path: string, fields?: unknown) => {
  const url = `https://shop.test/wp-json/wc/v3${path}`
  const body = fields === undefined ? {} : { body: JSON.stringify(fields) }
  return shop.handle({ method, url, headers: { authorization: basic }, ...body })
}

test('over http it takes an OAuth signature once, and no Basic key', () => {
  const shop = createWooCommerceShop({ scheme: 'http', now: () => 1_800_000_000_000 })
  const parameters = [
    `oauth_consumer_key=${wooKey.key}`,
    'oauth_nonce=n1',
    'oauth_signature_method=HMAC-SHA256',
    'oauth_timestamp=1800000000',
    'sku=a%2Cb',
  ].join('&')
  const address = 'http://shop.test/wp-json/wc/v3/products'
  const base = `GET&${encodeURIComponent(address)}&${encodeURIComponent(parameters)}`
  const signature = createHmac('sha256', `${wooKey.secret}&`).update(base).digest('base64')
  const ask = (given: string) => {
    const url = `${address}?${parameters}&oauth_signature=${encodeURIComponent(given)}`
    const { status, body } = shop.handle({ method: 'GET', url, headers: {} })
    return [status, JSON.parse(body).message]
  }
  expect(ask(`A${signature}`)).toEqual([401, 'Invalid signature - provided signature does not match.'])
  expect(ask(signature)).toEqual([200, undefined])
  expect(ask(signature)).toEqual([401, 'Invalid nonce - nonce has already been used.'])
  const { status } = shop.handle({ method: 'GET', url: address, headers: { authorization: basic } })
  expect(status).toBe(401)
})

test('a host that hides the header leaves keys in the query alone', () => {
  const shop = createWooCommerceShop({ hidesAuthorization: true })
  expect(answered(shop, 'GET', '/products').status).toBe(401)
  expect(answered(shop, 'GET', `/products?consumer_key=${wooKey.key}&consumer_secret=${wooKey.secret}`).status).toBe(
    200,
  )
})

test('an answer that is lost was acted upon, and the mail that completes an order prints visible meta once', () => {
  const shop = createWooCommerceShop()
  const { id } = shop.addProduct({ name: 'Key', sku: 'K-1', regular_price: '5.00', virtual: true })
  const order = shop.buy({
    lines: [{ product: id, quantity: 2 }],
    coupon: { code: 'c', discount: '1.01' },
    taxPercent: 20,
  })
  expect(JSON.parse(answered(shop, 'GET', `/orders/${order.id}`).body)).toMatchObject({
    total: '10.79',
    discount_total: '1.01',
    line_items: [{ subtotal: '10.00', total: '8.99', total_tax: '1.80' }],
  })
  shop.strike({ kind: 'orders.update', fault: 'lost_after' })
  const meta_data = [
    { key: 'Licence key', value: 'AAAA' },
    { key: '_hidden', value: 'BBBB' },
  ]
  const put = () => {
    const line_items = [{ id: order.lines[0]?.id, meta_data }]
    return answered(shop, 'PUT', `/orders/${order.id}`, { status: 'completed', line_items })
  }
  expect(put().isLost).toBe(true)
  expect(put().isLost).toBeUndefined()
  expect(shop.mailsWith('AAAA').map(({ kind }) => kind)).toEqual(['completed'])
  expect(shop.mailsWith('BBBB')).toEqual([])
  expect(order.lines[0]?.meta).toHaveLength(2)
})

test('the price of a product on sale is its sale price, which stays until a write leaves it not below the regular one', () => {
  const shop = createWooCommerceShop()
  const { id } = shop.addProduct({ name: 'Key', sku: 'K-1', regular_price: '500.00', sale_price: '55.00' })
  const written = (fields: object) => {
    const { body } = answered(shop, 'POST', '/products/batch', { update: [{ id, ...fields }] })
    const { price, regular_price, sale_price } = JSON.parse(body).update[0]
    return [price, regular_price, sale_price]
  }
  expect(written({ regular_price: '81.20' })).toEqual(['55.00', '81.20', '55.00'])
  expect(written({ manage_stock: true, stock_quantity: 0 })).toEqual(['55.00', '81.20', '55.00'])
  expect(written({ regular_price: '55.00' })).toEqual(['55.00', '55.00', ''])
  expect(written({ regular_price: '84.00' })).toEqual(['84.00', '84.00', ''])
})

test('a refund names the line that its units come from', () => {
  const shop = createWooCommerceShop()
  const { id } = shop.addProduct({ name: 'Key', sku: 'K-1', regular_price: '5.00' })
  const order = shop.buy({ lines: [{ product: id, quantity: 2 }] })
  const line = order.lines[0]?.id ?? 0
  shop.refund(order.id, { amount: '5.00', lines: [{ id: line, quantity: 1, total: '5.00' }] })
  const [refund] = JSON.parse(answered(shop, 'GET', `/orders/${order.id}/refunds`).body)
  expect(refund.line_items).toMatchObject([
    { quantity: -1, total: '-5.00', meta_data: [{ key: '_refunded_item_id', value: String(line) }] },
  ])
  expect(order.status).toBe('processing')
  shop.refund(order.id, { amount: '5.00' })
  expect(order.status).toBe('refunded')
})

test('an order in the trash is in no list, is read by its id, and comes back as it was; the topics are those of the trash', () => {
  const shop = createWooCommerceShop({ ...loopback, wpCronLockTimeoutMs: 0 })
  const { id: product } = shop.addProduct({ name: 'Key', sku: 'K-1', regular_price: '5.00' })
  for (const topic of ['order.updated', 'order.deleted', 'order.restored'])
    answered(shop, 'POST', '/webhooks', { topic, delivery_url: 'http://127.0.0.1:1/' })
  const { id } = shop.buy({ lines: [{ product }] })
  const listed = () => JSON.parse(answered(shop, 'GET', `/orders?include=${id}`).body)
  shop.takeDeliveries()
  shop.trash(id)
  expect(listed()).toEqual([])
  expect(JSON.parse(answered(shop, 'GET', `/orders/${id}`).body)).toMatchObject({ id, status: 'trash' })
  expect(shop.takeDeliveries().map(({ topic }) => topic)).toEqual(['order.deleted'])
  shop.untrash(id)
  expect(listed()).toMatchObject([{ id, status: 'processing' }])
  expect(shop.takeDeliveries().map(({ topic }) => topic)).toEqual(['order.restored'])
})

test("a merchant's own status is listed and may be asked for, and a corrected clock dates an order before its last change", () => {
  let at = Date.parse('2026-11-20T12:00:00Z')
  const shop = createWooCommerceShop({ now: () => at })
  const { id: product } = shop.addProduct({ name: 'Key', sku: 'K-1', regular_price: '5.00' })
  shop.setClockError(3_600_000)
  const { id } = shop.buy({ lines: [{ product }] })
  shop.setStatus(id, 'fraud-check')
  const [listed] = JSON.parse(answered(shop, 'GET', '/orders?status=fraud-check').body)
  expect(listed).toMatchObject({ id, status: 'fraud-check', date_modified_gmt: '2026-11-20T13:00:00' })
  shop.setClockError(0)
  at += 1_500
  shop.setStatus(id, 'processing')
  const [now] = JSON.parse(answered(shop, 'GET', '/orders').body)
  expect(now).toMatchObject({ status: 'processing', date_modified_gmt: '2026-11-20T12:00:01' })
})

test('a refund that is deleted returns its units, changes no date and fires nothing', () => {
  let at = Date.parse('2026-11-20T12:00:00Z')
  const shop = createWooCommerceShop({ now: () => at, wpCronLockTimeoutMs: 0 })
  const { id: product } = shop.addProduct({ name: 'Key', sku: 'K-1', regular_price: '5.00' })
  answered(shop, 'POST', '/webhooks', { topic: 'order.updated', delivery_url: 'http://127.0.0.1:1/' })
  const order = shop.buy({ lines: [{ product, quantity: 2 }] })
  const lines = [{ id: order.lines[0]?.id ?? 0, quantity: 1, total: '5.00' }]
  const refund = shop.refund(order.id, { amount: '5.00', lines })
  shop.takeDeliveries()
  at += 60_000
  const before = order.modifiedAt
  shop.deleteRefund(order.id, refund.id)
  expect(JSON.parse(answered(shop, 'GET', `/orders/${order.id}`).body).refunds).toEqual([])
  expect([order.modifiedAt, shop.takeDeliveries()]).toEqual([before, []])
})

test('items of a batch fail alone, and every fault passes', () => {
  let at = 0
  const pass = (ms: number) => {
    at += ms
  }
  const shop = createWooCommerceShop({ now: () => at, pass })
  for (const sku of ['A', 'B']) shop.addProduct({ name: sku, sku, regular_price: '1.00' })
  const push = () =>
    answered(shop, 'POST', '/products/batch', { update: [{ id: 10, regular_price: '2.00' }, { id: 11 }] })
  shop.strike({ fault: 'items', fails: ({ id }) => id === 10 })
  expect(JSON.parse(push().body).update).toMatchObject([{ id: 10, error: { data: { status: 500 } } }, { id: 11 }])
  expect(shop.products.get(10)?.regularPrice).toBe('1.00')
  shop.strike({ fault: 'too_many', retryAfter: 30 })
  shop.strike({ fault: 'maintenance' })
  shop.strike({ fault: 'login_page' })
  shop.strike({ fault: 'lost_before' })
  shop.strike({ fault: 'truncated' })
  shop.strike({ fault: 'slow', ms: 21_000 })
  const [tooMany, maintenance, login, lost, truncated, slow] = Array.from({ length: 6 }, push)
  expect([tooMany?.status, tooMany?.headers['retry-after']]).toEqual([429, '30'])
  expect([maintenance?.status, maintenance?.headers['content-type']]).toEqual([503, 'text/html; charset=UTF-8'])
  expect([login?.status, login?.headers['content-type']]).toEqual([200, 'text/html; charset=UTF-8'])
  expect(lost?.isLost).toBe(true)
  expect(() => JSON.parse(truncated?.body ?? '')).toThrow()
  expect([slow?.status, at]).toEqual([200, 21_000])
  shop.strike({ fault: 'echo', change: () => ({ update: [] }) })
  expect(push().body).toBe('{"update":[]}')
  expect(shop.counts()).toEqual({ 'products.batch': 8 })
})

test('a delivery goes to no private host and no port but 80, 443 and 8080, unless a filter of WordPress lets it, and fails', () => {
  const home = 'https://127.0.0.1:8443'
  const reached = (url: string, allowed = {}) => isSafeAddress(url, home, allowed)
  expect(reached('https://quayside.test/webhooks')).toBe(true)
  expect(reached('http://quayside.test:8080/')).toBe(true)
  expect(reached('https://quayside.test:47210/')).toBe(false)
  for (const host of ['localhost', '10.0.0.1', '192.168.1.2', '172.20.0.1', '[::1]'])
    expect(reached(`http://${host}/`), host).toBe(false)
  expect(reached('https://172.40.0.1/')).toBe(true)
  expect([reached('http://127.0.0.1/'), reached('http://127.0.0.1:8443/')], 'the shop itself').toEqual([true, true])
  expect(reached('http://127.0.0.1:47210/')).toBe(false)
  expect(reached('http://localhost:47210/', loopback)).toBe(true)

  const shop = createWooCommerceShop()
  const hook = { topic: 'order.updated', delivery_url: 'http://127.0.0.1:47210/' }
  expect(answered(shop, 'POST', '/webhooks', hook).status).toBe(201)
  shop.buy({ lines: [{ product: shop.addProduct({ name: 'Key', regular_price: '5.00' }).id }] })
  expect(shop.takeDeliveries()).toEqual([])
  expect(shop.webhooks.get(1)).toMatchObject({ status: 'active', failures: 1 })
})

test('deliveries go once a minute, at the next request to the shop after that', () => {
  let at = 0
  const shop = createWooCommerceShop({ now: () => at })
  answered(shop, 'POST', '/webhooks', { topic: 'order.updated', delivery_url: 'https://quayside.test/' })
  expect(shop.takeDeliveries().map(({ body }) => body)).toEqual(['webhook_id=1'])
  const { id } = shop.addProduct({ name: 'Key', regular_price: '5.00' })
  const buy = () => shop.buy({ lines: [{ product: id }] })
  buy()
  expect(shop.takeDeliveries()).toHaveLength(1)
  at += 15_000
  buy()
  at += 44_999
  expect(answered(shop, 'GET', '/orders').status).toBe(200)
  expect(shop.takeDeliveries()).toEqual([])
  at += 60_000
  expect(shop.takeDeliveries(), 'a quiet shop').toEqual([])
  answered(shop, 'GET', '/orders')
  expect(shop.takeDeliveries()).toHaveLength(1)
})

test('each write of the REST API to an order comes back as a delivery, which says what the write was answered', () => {
  const shop = createWooCommerceShop({ wpCronLockTimeoutMs: 0 })
  answered(shop, 'POST', '/webhooks', { topic: 'order.updated', delivery_url: 'https://quayside.test/' })
  const order = shop.buy({ lines: [{ product: shop.addProduct({ name: 'Key', regular_price: '5.00' }).id }] })
  shop.takeDeliveries()
  for (const fields of [{ meta_data: [{ key: 'a', value: 'b' }] }, { status: 'completed' }]) {
    const { body } = answered(shop, 'PUT', `/orders/${order.id}`, fields)
    const [echo, ...others] = shop.takeDeliveries()
    expect(others).toEqual([])
    const { _links: _, ...said } = JSON.parse(echo?.body ?? '')
    expect(JSON.parse(body)).toMatchObject(said)
  }
})

test('a product in the trash is in no list, and takes what is written to it', () => {
  const shop = createWooCommerceShop()
  const { id } = shop.addProduct({ name: 'Key', sku: 'KEY', regular_price: '5.00' })
  shop.trashProduct(id)
  expect(JSON.parse(answered(shop, 'GET', '/products').body)).toEqual([])
  const written = answered(shop, 'POST', '/products/batch', { update: [{ id, regular_price: '6.00' }] })
  expect(JSON.parse(written.body)).toMatchObject({ update: [{ id, status: 'trash', price: '6.00' }] })
  expect(shop.addProduct({ name: 'Key', sku: 'KEY' }).id, 'its SKU is free').not.toBe(id)
})

test('a webhook is disabled by its seventh failure in a row, and what failed is not sent again', async () => {
  const { shop, deliverDue } = await started({ now: () => 5000, ...loopback, wpCronLockTimeoutMs: 0 })
  const created = answered(shop, 'POST', '/webhooks', { topic: 'order.updated', delivery_url: 'http://127.0.0.1:1/' })
  expect(JSON.parse(created.body)).toMatchObject({ id: 1, status: 'active' })
  expect(await deliverDue()).toEqual([null])
  const { id } = shop.addProduct({ name: 'Key', regular_price: '5.00' })
  const order = shop.buy({ lines: [{ product: id }] })
  const ids = new Set<string | undefined>()
  for (let count = 0; count < 7; count += 1) {
    expect(shop.webhooks.get(1)?.status).toBe('active')
    shop.edit(order.id, () => {})
    shop.edit(order.id, () => {})
    const [delivery, ...others] = shop.takeDeliveries()
    expect(others).toEqual([])
    ids.add(delivery?.headers['x-wc-webhook-delivery-id'])
    if (delivery) shop.delivered(delivery, 500)
  }
  expect(ids.size).toBe(1)
  expect(shop.webhooks.get(1)?.status).toBe('disabled')
  shop.edit(order.id, () => {})
  expect(shop.takeDeliveries()).toEqual([])
})
