import { request } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { startWooCommerceShop, type WooShopOptions, wooKey } from '../../src/demo/woocommerce-shop.ts'

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
