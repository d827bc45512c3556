import { request } from 'undici'
import { describe, expect, onTestFinished, test } from 'vitest'
import * as documents from '../../src/stores/shopify/documents.ts'
import { bodyOf, callerOf, codesOf, graphqlHeaders as headers, graphqlUrl as url } from '../support/shopify-caller.ts'
import { faultsOfExchange, provenExchanges } from '../support/shopify-proof.ts'
import { shopDocuments } from '../support/shopify-schema.ts'
import type { Fields } from './shopify-graphql.ts'
import { keysInMails } from './shopify-mails.ts'
import {
  createShopifyShop,
  type ShopifyShop,
  type ShopifyShopOptions,
  shopifyApp,
  startShopifyShop,
} from './shopify-shop.ts'

const AT = Date.parse('2026-11-01T10:00:00Z')

function opened(options: ShopifyShopOptions = {}) {
  const clock = { now: AT }
  const pass = (ms: number) => {
    clock.now += ms
  }
  const shop = createShopifyShop({ now: () => clock.now, pass, onExchange: provenExchanges(), ...options })
  return { shop, clock, ask: callerOf(shop) }
}

const gid = (type: string, id: string) => `gid://shopify/${type}/${id}`

test('answers an https address without TLS, on the same port after a stop', async () => {
  const running = await startShopifyShop({ now: () => AT, onExchange: provenExchanges() })
  onTestFinished(running.close)
  const { connections, shop, stop, start } = running
  const post = (path: string, body: string, more: Record<string, string>) =>
    request(`${running.url}${path}`, { method: 'POST', dispatcher: connections, body, headers: more })
  const path = '/admin/api/2026-07/graphql.json'
  const credentials = {
    grant_type: 'client_credentials',
    client_id: shopifyApp.clientId,
    client_secret: shopifyApp.secret,
  }
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const granted = await post('/admin/oauth/access_token', String(new URLSearchParams(credentials)), form)
  const { access_token: token, expires_in } = (await granted.body.json()) as {
    access_token: string
    expires_in: number
  }
  expect(expires_in).toBe(86_399)
  const answer = await post(path, bodyOf(documents.shop), { ...headers, 'x-shopify-access-token': token })
  expect(answer.headers['x-shopify-api-version']).toBe('2026-07')
  expect(await answer.body.json()).toMatchObject({ data: { shop: { currencyCode: 'EUR' } } })
  await stop()
  await expect(post(path, bodyOf(documents.shop), headers)).rejects.toThrow()
  await start()
  expect((await post(path, bodyOf(documents.shop), headers)).statusCode).toBe(200)
  expect(shop.counts()).toEqual({ token: 1, Shop: 2 })
})

test('a token of client credentials ends after a day, and a wrong secret gets none', () => {
  const { shop, clock } = opened()
  const grant = (secret: string, client_id = shopifyApp.clientId) => {
    const form = { grant_type: 'client_credentials', client_id, client_secret: secret }
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const to = 'https://quayside-test.myshopify.com/admin/oauth/access_token'
    return shop.handle({ method: 'POST', url: to, headers: type, body: String(new URLSearchParams(form)) })
  }
  expect(grant('wrong')).toMatchObject({ status: 400, body: expect.stringContaining('Oauth error invalid_client') })
  expect(grant(shopifyApp.secret, 'other').body).toContain('Oauth error application_cannot_be_found')
  const { access_token: token } = JSON.parse(grant(shopifyApp.secret).body)
  const ask = () =>
    shop.handle({
      method: 'POST',
      url,
      headers: { ...headers, 'x-shopify-access-token': token },
      body: bodyOf(documents.shop),
    }).status
  expect(ask()).toBe(200)
  clock.now += 86_399_000
  expect(ask()).toBe(401)
  const again = JSON.parse(grant(shopifyApp.secret).body).access_token
  expect(again).not.toBe(token)
  shop.withholdTokens('shop_not_permitted')
  expect(grant(shopifyApp.secret).body).toContain('Oauth error shop_not_permitted')
  shop.withholdTokens(null)
  expect(grant(shopifyApp.secret).status).toBe(200)
})

test('an expired version is answered by the oldest that is served', () => {
  const { shop } = opened()
  const served = (version: string) =>
    shop.handle({ method: 'POST', url: url.replace('2026-07', version), headers, body: bodyOf(documents.shop) })
  expect(served('2025-01').headers['x-shopify-api-version']).toBe('2026-04')
  expect(served('2026-10').headers['x-shopify-api-version']).toBe('2026-10')
  expect(served('latest').status).toBe(404)
})

test('a missing scope is an error of the field, and leaves out what may be null', () => {
  const { ask } = opened({ app: { scopes: ['read_products'] } })
  const denied = [{ extensions: { code: 'ACCESS_DENIED' } }]
  expect(ask(documents.order, { id: gid('Order', '1'), namespace: 'a' })).toMatchObject({
    data: { order: null },
    errors: denied,
  })
  const changed = ask(documents.changedOrders, { query: "updated_at:>='2026-01-01T00:00:00Z'" })
  expect(changed).toMatchObject({ data: null, errors: denied })
  expect(ask(documents.variantPage)).toMatchObject({ data: { productVariants: { nodes: [] } } })
})

test('answers cost points, which come back with time', () => {
  const { shop, ask, clock } = opened({ bucket: { maximum: 1000, restoreRate: 50 } })
  for (let number = 0; number < 300; number += 1) shop.addProduct({ sku: `K-${number}` })
  expect(ask(documents.variantPage).extensions).toEqual({
    cost: {
      requestedQueryCost: 502,
      actualQueryCost: 500,
      throttleStatus: { maximumAvailable: 1000, currentlyAvailable: 500, restoreRate: 50 },
    },
  })
  const throttled = ask(documents.variantPage)
  expect(throttled).toMatchObject({
    status: 200,
    errors: [{ message: 'Throttled', extensions: { code: 'THROTTLED' } }],
  })
  expect(throttled.data).toBeUndefined()
  clock.now += 1000
  expect(ask(documents.variantPage).errors).toBeUndefined()
})

test('pages a list by cursors that hold while items come and go', () => {
  const { shop, ask } = opened()
  for (let number = 0; number < 260; number += 1) shop.addProduct({ sku: `K-${number}` })
  const page = (
    after: string | null,
  ): { nodes: { sku: string }[]; pageInfo: { hasNextPage: boolean; endCursor: string } } =>
    ask(documents.variantPage, { after }).data.productVariants
  const first = page(null)
  expect([first.nodes.length, first.pageInfo.hasNextPage]).toEqual([250, true])
  shop.removeProduct([...shop.products.keys()][0] ?? '')
  const second = page(first.pageInfo.endCursor)
  expect(second.nodes.map(({ sku }) => sku)).toEqual(Array.from({ length: 10 }, (_, index) => `K-${250 + index}`))
  expect(second.pageInfo.hasNextPage).toBe(false)
})

/** A variant with 5 units, and what names it. */
function stocked(shop: ShopifyShop) {
  const product = shop.addProduct({ title: 'Game A', sku: 'A', price: '9.00', stock: 5 })
  const [variant] = product.variants
  if (!variant) throw new Error('The product has no variant.')
  const [location = ''] = shop.locations.keys()
  return {
    variant,
    product,
    location,
    ids: { item: gid('InventoryItem', variant.item.id), location: gid('Location', location) },
    set: (quantity: number, changeFromQuantity: number | null | undefined) => ({
      name: 'available',
      reason: 'correction',
      referenceDocumentUri: 'gid://quayside/Publish/1',
      quantities: [
        {
          inventoryItemId: gid('InventoryItem', variant.item.id),
          locationId: gid('Location', location),
          quantity,
          ...(changeFromQuantity === undefined ? {} : { changeFromQuantity }),
        },
      ],
    }),
  }
}
test('sets stock by comparison, once for each key', () => {
  const { shop, ask } = opened()
  const { variant, set } = stocked(shop)
  expect(codesOf(ask(documents.setStock, { input: set(7, 4), key: 'a' }))).toEqual(['CHANGE_FROM_QUANTITY_STALE'])
  expect(codesOf(ask(documents.setStock, { input: set(7, 4), key: 'a' }))).toEqual([
    'IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED',
  ])
  expect(codesOf(ask(documents.setStock, { input: set(7, 5), key: 'b' }))).toEqual([])
  shop.setStock(variant.id, 3)
  expect(codesOf(ask(documents.setStock, { input: set(7, 5), key: 'b' }))).toEqual([])
  expect(shop.stockOf(variant.id)).toBe(3)
  expect(codesOf(ask(documents.setStock, { input: set(8, 3), key: 'b' }))).toEqual([
    'IDEMPOTENCY_KEY_PARAMETER_MISMATCH',
  ])
  expect(ask(documents.setStock, { input: set(8, undefined), key: 'c' }).errors).toMatchObject([
    { extensions: { code: 'INVALID_FIELD_ARGUMENTS' } },
  ])
  expect(codesOf(ask(documents.setStock, { input: set(8, null), key: 'd' }))).toEqual([])
  expect(shop.stockOf(variant.id)).toBe(8)
  const withoutKey = documents.setStock.text.replace('@idempotent(key: $key)', '').replace(', $key: String!', '')
  expect(ask({ name: 'SetStock', text: withoutKey }, { input: set(9, 8) }).errors).toMatchObject([
    { message: 'The @idempotent directive is required for this mutation but was not provided.' },
  ])
})

test('sells what all locations have that serve online orders, of one of them where it has enough', () => {
  const { shop, ask } = opened()
  const { variant, location } = stocked(shop)
  const second = shop.addLocation({ name: 'Second' }).id
  const till = shop.addLocation({ name: 'Till', fulfillsOnlineOrders: false }).id
  shop.stockAt(variant.id, second, 7)
  shop.stockAt(variant.id, till, 90)
  const there = () => [location, second, till].map((one) => shop.stockOf(variant.id, one))
  const answered = () => {
    const ids = [gid('ProductVariant', variant.id)]
    return ask(documents.variantsById, { ids, location: gid('Location', location) }).data.nodes[0]
  }
  expect(answered()).toMatchObject({ sellableOnlineQuantity: 12, inventoryItem: { locationsCount: { count: 3 } } })
  const buy = (quantity: number) => shop.buy({ lines: [{ variant: variant.id, quantity }] })
  buy(6)
  expect(there()).toEqual([5, 1, 90])
  const { id } = buy(6)
  expect(there()).toEqual([0, 0, 90])
  expect(answered().sellableOnlineQuantity).toBe(0)
  shop.cancel(id)
  expect(there().reduce((sum = 0, one = 0) => sum + one)).toBe(96)
})

test('an item is stocked at a location first', () => {
  const { shop, ask } = opened()
  const { ids, set, variant } = stocked(shop)
  const other = shop.addLocation({ name: 'Second' })
  const input = set(7, null)
  const quantities = input.quantities.map((one) => ({ ...one, locationId: gid('Location', other.id) }))
  const write = (key: string) => codesOf(ask(documents.setStock, { input: { ...input, quantities }, key }))
  expect(write('a')).toEqual(['ITEM_NOT_STOCKED_AT_LOCATION'])
  const activate = { item: ids.item, location: gid('Location', other.id), key: 'b' }
  expect(codesOf(ask(documents.activateStock, activate))).toEqual([])
  expect(write('c')).toEqual([])
  expect([shop.stockOf(variant.id), shop.stockOf(variant.id, other.id)]).toEqual([5, 7])
  const read = ask(documents.variantsById, {
    ids: [gid('ProductVariant', variant.id), gid('ProductVariant', '1')],
    location: ids.location,
  })
  expect(read.data.nodes).toMatchObject([
    { price: '9.00', inventoryItem: { inventoryLevel: { quantities: [{ name: 'available', quantity: 5 }] } } },
    null,
  ])
})

test('prices of a product are written in part, and the others say why not', () => {
  const { shop, ask } = opened()
  const { id, variants } = shop.addProduct({ variants: [{ sku: 'A' }, { sku: 'B' }] })
  const inputs = [
    {
      id: gid('ProductVariant', variants[0]?.id ?? ''),
      price: '6.2',
      compareAtPrice: '8.00',
      inventoryItem: { tracked: true },
    },
    { id: gid('ProductVariant', variants[1]?.id ?? ''), price: '-1.00' },
    { id: gid('ProductVariant', '1'), price: '1.00' },
  ]
  const answer = ask(documents.updateVariants, { product: gid('Product', id), variants: inputs })
  expect(answer.data).toMatchObject({
    productVariantsBulkUpdate: {
      productVariants: [{ price: '6.20', compareAtPrice: '8.00' }],
      userErrors: [
        { code: 'NEGATIVE_PRICE_VALUE', field: ['variants', '1', 'price'] },
        { code: 'PRODUCT_VARIANT_DOES_NOT_EXIST', field: ['variants', '2', 'id'] },
      ],
    },
  })
  const many = Array.from({ length: 251 }, () => inputs[0])
  expect(ask(documents.updateVariants, { product: gid('Product', id), variants: many }).errors).toMatchObject([
    { extensions: { code: 'MAX_INPUT_SIZE_EXCEEDED' } },
  ])
})

test('a product of the API has one handle, is found late by its SKU and at once by its handle', () => {
  const { shop, ask, clock } = opened({ searchLagMs: 60_000 })
  const input = {
    handle: 'a-1234abcd',
    title: 'Game A',
    descriptionHtml: '<p>x</p>',
    productType: 'Games',
    status: 'ACTIVE',
    files: [{ originalSource: 'https://pictures.test/a.jpg', contentType: 'IMAGE' }],
    productOptions: [{ name: 'Title', values: [{ name: 'Default Title' }] }],
    variants: [
      {
        sku: 'A',
        inventoryPolicy: 'DENY',
        optionValues: [{ optionName: 'Title', name: 'Default Title' }],
        inventoryItem: { tracked: true, requiresShipping: false },
      },
    ],
  }
  expect(codesOf(ask(documents.createProduct, { input }))).toEqual([])
  expect(codesOf(ask(documents.createProduct, { input }))).toEqual(['HANDLE_NOT_UNIQUE'])
  const bySku = () => ask(documents.variantsBySku, { query: `sku:"a"` }).data.productVariants
  expect(bySku().nodes).toEqual([])
  expect(ask(documents.productByHandle, { handle: 'a-1234abcd' }).data).toMatchObject({
    productByIdentifier: { variants: { nodes: [{ sku: 'A' }] } },
  })
  clock.now += 60_000
  expect(bySku().nodes).toHaveLength(1)
  const [product] = shop.products.values()
  expect([product?.publications.size, product?.images]).toEqual([0, ['https://pictures.test/a.jpg']])
  const channels = ask(documents.publications).data as unknown as {
    publications: { nodes: { id: string; catalog: { apps: { nodes: { handle: string }[] } } }[] }
  }
  const online = channels.publications.nodes.find(({ catalog }) => catalog.apps.nodes[0]?.handle === 'online_store')
  const published = { product: gid('Product', product?.id ?? ''), publication: online?.id }
  expect(codesOf(ask(documents.publishProduct, published))).toEqual([])
  expect(product?.publications.size).toBe(1)
  expect(codesOf(ask(documents.updateProduct, { product: { id: published.product, status: 'DRAFT' } }))).toEqual([])
  expect(product?.status).toBe('DRAFT')
})

test('an order shows what was paid for a unit, refunds, risk and a number beyond 2^53', () => {
  const { shop, ask, clock } = opened({ firstId: '9007199254740993000' })
  const { variant } = stocked(shop)
  const bought = shop.buy({ lines: [{ variant: variant.id, quantity: 3, discount: '1.50' }], payment: 'authorized' })
  const read = () => ask(documents.order, { id: gid('Order', bought.id), namespace: '$app:quayside' }).data
  expect(BigInt(bought.id)).toBeGreaterThan(BigInt(Number.MAX_SAFE_INTEGER))
  expect(read().order).toMatchObject({
    displayFinancialStatus: 'AUTHORIZED',
    fullyPaid: false,
    risk: { recommendation: 'ACCEPT' },
    lineItems: {
      nodes: [
        {
          sku: 'A',
          currentQuantity: 3,
          discountedUnitPriceAfterAllDiscountsSet: { shopMoney: { amount: '8.5', currencyCode: 'EUR' } },
        },
      ],
    },
  })
  expect(shop.stockOf(variant.id)).toBe(2)
  clock.now += 60_000
  shop.pay(bought.id)
  expect(read().order).toMatchObject({
    displayFinancialStatus: 'PAID',
    fullyPaid: true,
    transactions: [
      { kind: 'AUTHORIZATION' },
      { kind: 'CAPTURE', status: 'SUCCESS', processedAt: '2026-11-01T10:01:00Z' },
    ],
  })
  shop.refund(bought.id, { lines: [{ id: bought.lines[0]?.id ?? '', quantity: 1 }] })
  expect(read().order).toMatchObject({
    displayFinancialStatus: 'PARTIALLY_REFUNDED',
    fullyPaid: true,
    totalRefundedSet: { shopMoney: { amount: '8.5' } },
    lineItems: { nodes: [{ currentQuantity: 2 }] },
  })
  shop.cancel(bought.id)
  expect(read().order).toMatchObject({ displayFinancialStatus: 'REFUNDED', cancelledAt: '2026-11-01T10:01:00Z' })
  clock.now += 61 * 86_400_000
  expect(read().order).toBeNull()
})

test('refunds say for which units they are, or that they are for none', () => {
  const { shop, ask } = opened()
  const { variant } = stocked(shop)
  const bought = shop.buy({ lines: [{ variant: variant.id, quantity: 3 }] })
  const line = bought.lines[0]?.id ?? ''
  shop.refund(bought.id, { lines: [{ id: line, quantity: 1 }] })
  shop.refund(bought.id, { amount: '2.50' })
  shop.edit(bought.id, { set: [{ id: line, quantity: 1 }] })
  const { order } = ask(documents.orderRefunds, { id: gid('Order', bought.id) }).data
  expect(order.refunds).toEqual(
    ['9.0', null, '9.0'].map((amount) => ({
      refundLineItems: {
        nodes: amount === null ? [] : [{ subtotalSet: money(amount), totalTaxSet: money('0.0') }],
      },
    })),
  )
})

const money = (amount: string) => ({ shopMoney: { amount, currencyCode: 'EUR' } })

test('a deposit is no full payment, also once a part of it went back', () => {
  const { shop } = opened()
  const { variant } = stocked(shop)
  const { id } = shop.buy({ lines: [{ variant: variant.id, quantity: 2 }], deposit: '1.00' })
  expect(shop.financialStatus(id)).toBe('PARTIALLY_PAID')
  shop.refund(id, { amount: '0.50' })
  expect(shop.financialStatus(id)).toBe('PARTIALLY_REFUNDED')
})

describe('a shop that is set up so', () => {
  test('captures the money once it is fulfilled', () => {
    const { shop } = opened({ policy: { captures: 'when_fulfilled' } })
    const { variant } = stocked(shop)
    const { id } = shop.buy({ lines: [{ variant: variant.id }] })
    expect(shop.financialStatus(id)).toBe('AUTHORIZED')
    shop.fulfilByHand(id)
    expect(shop.financialStatus(id)).toBe('PAID')
  })

  test('fulfils what is paid by itself, and tells the customer', () => {
    const { shop } = opened({ policy: { fulfilsByItself: true } })
    const { variant } = stocked(shop)
    const later = shop.buy({ lines: [{ variant: variant.id }], payment: 'pending' })
    expect(later.fulfilments).toEqual([])
    shop.pay(later.id)
    expect(later.fulfilments).toHaveLength(1)
    expect(shop.mails().map(({ kind }) => kind)).toEqual(['confirmation', 'shipping_confirmation'])
  })

  test('holds what is paid while its customer looks at an offer, which is an edit that is paid for', () => {
    const { shop } = opened({ policy: { offersAfterPurchase: true } })
    const { variant } = stocked(shop)
    const order = shop.buy({ lines: [{ variant: variant.id }] })
    const holds = () => order.fulfilmentOrders.map(({ status, holds }) => [status, holds.map(({ reason }) => reason)])
    expect(holds()).toEqual([['ON_HOLD', ['ONLINE_STORE_POST_PURCHASE_CROSS_SELL']]])
    shop.endOffer(order.id, [{ variant: variant.id }])
    expect(holds()).toEqual([
      ['OPEN', []],
      ['OPEN', []],
    ])
    expect(shop.financialStatus(order.id)).toBe('PAID')
    expect(order.lines).toHaveLength(2)
  })
})

test('a clock that is put right dates the next change earlier than the one before', () => {
  const { shop, clock } = opened()
  const { variant } = stocked(shop)
  const order = shop.buy({ lines: [{ variant: variant.id }] })
  clock.now += 1_000
  shop.correctClock(-3_600_000)
  shop.tag(order.id, 'a')
  expect(order.updatedAt).toBe(order.createdAt + 1_000 - 3_600_000)
})

test('the search for changed orders lags: it sorts by what it knew, and shows what is true', () => {
  const { shop, ask, clock } = opened({ searchLagMs: 5_000 })
  const { variant } = stocked(shop)
  const [first, second] = [1, 2].map(() => {
    clock.now += 60_000
    return shop.buy({ lines: [{ variant: variant.id }] }).id
  })
  clock.now += 60_000
  const changed = () => {
    const since = new Date(AT).toISOString()
    const { data } = ask(documents.changedOrders, { query: `updated_at:>='${since}'` })
    const nodes: { id: string; updatedAt: string }[] = data.orders.nodes
    return nodes.map(({ id, updatedAt }) => [id.split('/').at(-1), updatedAt.slice(14, 16)])
  }
  shop.tag(first ?? '', 'retry')
  expect(changed()).toEqual([
    [first, '03'],
    [second, '02'],
  ])
  clock.now += 5_000
  expect(changed()).toEqual([
    [second, '02'],
    [first, '03'],
  ])
})

/** A paid order of two units, and what hands it over. */
function handedOver(options: ShopifyShopOptions = {}) {
  const world = opened(options)
  const { shop, ask } = world
  const { variant } = stocked(shop)
  const bought = shop.buy({ lines: [{ variant: variant.id, quantity: 2 }] })
  const id = gid('Order', bought.id)
  const line = gid('LineItem', bought.lines[0]?.id ?? '')
  const put = (set: Fields) => {
    const field = {
      ownerId: id,
      namespace: '$app:quayside',
      type: 'multi_line_text_field',
      compareDigest: null,
      ...set,
    }
    return codesOf(ask(documents.putKeys, { metafields: [field] }))
  }
  const open = (): { id: string; status: string }[] =>
    ask(documents.orderFulfillments, { id }).data.order.fulfillmentOrders.nodes
  const linesOf = (ids: string[]) => {
    const { data } = ask(documents.fulfillmentOrderLines, { ids })
    const nodes: { lineItems: { nodes: { id: string; remainingQuantity: number }[] } }[] = data.nodes
    return nodes.flatMap(({ lineItems }) => lineItems.nodes)
  }
  const fulfil = (quantity: number, notifyCustomer = true) => {
    const lineItemsByFulfillmentOrder = open().map(({ id: fulfillmentOrderId }) => ({
      fulfillmentOrderId,
      fulfillmentOrderLineItems: linesOf([fulfillmentOrderId]).map((one) => ({ id: one.id, quantity })),
    }))
    return codesOf(ask(documents.createFulfillment, { fulfillment: { lineItemsByFulfillmentOrder, notifyCustomer } }))
  }
  return { ...world, bought, id, line, put, open, linesOf, fulfil }
}

test('keys are written once, and the mail of a fulfilment prints them', () => {
  const { shop, ask, clock, bought, id, line, put, open, linesOf, fulfil } = handedOver({ fulfilmentDelayMs: 1_000 })
  const definition = {
    namespace: '$app:quayside',
    key: 'keys_1',
    name: 'Keys',
    ownerType: 'ORDER',
    type: 'multi_line_text_field',
    pin: true,
  }
  const access = { admin: 'MERCHANT_READ', customerAccount: 'READ' }
  expect(codesOf(ask(documents.defineKeys, { definition: { ...definition, access } }))).toEqual([])
  expect(codesOf(ask(documents.defineKeys, { definition: { ...definition, access } }))).toEqual(['TAKEN'])
  const merchants = { ...definition, namespace: 'custom', access }
  expect(codesOf(ask(documents.defineKeys, { definition: merchants }))).toEqual(['ADMIN_ACCESS_INPUT_NOT_ALLOWED'])

  expect(put({ key: 'keys_1', value: 'Game A\nAAAA-BBBB' })).toEqual([])
  expect(put({ key: 'keys_1', value: 'Game A\nCCCC-DDDD' })).toEqual(['STALE_OBJECT'])
  expect(put({ key: 'keys_2', value: '' })).toEqual(['BLANK'])
  expect(put({ key: 'units', type: 'json', value: '{' })).toEqual(['INVALID_VALUE'])
  expect(ask(documents.handOverOrder, { id, line, namespace: '$app:quayside' }).data).toMatchObject({
    order: { note: null, metafields: { nodes: [{ key: 'keys_1', value: 'Game A\nAAAA-BBBB' }] } },
    node: { name: 'Game A', sku: 'A', quantity: 2 },
  })
  expect(shop.metafieldsOf(bought.id).map(({ namespace }) => namespace)).toEqual(['app--580111--quayside'])

  expect(open()).toEqual([])
  expect(fulfil(1)).toEqual(['fulfillment'])
  clock.now += 1_000
  expect(linesOf(open().map((one) => one.id))).toMatchObject([{ remainingQuantity: 2 }])
})

test('a fulfilment takes what remains, no more, and sends a mail only when asked', () => {
  const { shop, ask, id, bought, put, open, linesOf, fulfil } = handedOver({ policy: keysInMails() })
  put({ key: 'keys_1', value: 'Game A\nAAAA-BBBB' })
  expect(fulfil(1)).toEqual([])
  expect(shop.mailsWith('AAAA-BBBB').map(({ kind, to }) => [kind, to])).toEqual([
    ['shipping_confirmation', 'guest@buyer.test'],
  ])
  expect(open()).toMatchObject([{ status: 'IN_PROGRESS' }])
  expect(fulfil(2)).toEqual(['fulfillment'])
  shop.setFulfilmentStatus(bought.id, 'ON_HOLD')
  expect(fulfil(1)).toEqual(['fulfillment'])
  shop.setFulfilmentStatus(bought.id, 'OPEN')
  expect(fulfil(1, false)).toEqual([])
  expect(open()).toMatchObject([{ status: 'CLOSED' }])
  expect(linesOf(open().map((one) => one.id))).toMatchObject([{ remainingQuantity: 0 }])
  expect(shop.mailsWith('AAAA-BBBB')).toHaveLength(1)
  const [made] = bought.fulfilments
  const fulfilled = ask(documents.fulfilledLines, { ids: bought.fulfilments.map((one) => gid('Fulfillment', one.id)) })
  expect(fulfilled.data.nodes).toMatchObject([
    { fulfillmentLineItems: { nodes: [{ quantity: 1 }] } },
    { fulfillmentLineItems: { nodes: [{ quantity: 1 }] } },
  ])
  const again = { id: gid('Fulfillment', made?.id ?? ''), tracking: {} }
  expect(codesOf(ask(documents.notifyAgain, again))).toEqual([])
  expect(ask(documents.fulfillmentTracking, { id: again.id }).data).toMatchObject({ node: { trackingInfo: [] } })
  expect(shop.mailsWith('AAAA-BBBB').map(({ kind }) => kind)).toEqual(['shipping_confirmation', 'shipping_update'])
  expect(codesOf(ask(documents.putNote, { id, note: 'For staff' }))).toEqual([])
  expect(ask(documents.orderNote, { id }).data).toMatchObject({ order: { note: 'For staff' } })
  expect(codesOf(ask(documents.addTags, { id, tags: ['Quayside-Released'] }))).toEqual([])
  expect(codesOf(ask(documents.removeTags, { id, tags: ['quayside-released'] }))).toEqual([])
  expect(bought.tags).toEqual([])
})

test('units that the merchant split or refunded are in their own fulfilment orders, or in none', () => {
  const { shop, bought, open, linesOf, fulfil } = handedOver()
  const line = bought.lines[0]?.id ?? ''
  shop.splitFulfilment(bought.id, line, 1)
  expect(linesOf(open().map(({ id }) => id)).map(({ remainingQuantity }) => remainingQuantity)).toEqual([1, 1])
  expect(fulfil(1)).toEqual([])
  expect(bought.fulfilments).toHaveLength(1)
  shop.cancelFulfilment(bought.fulfilments[0]?.id ?? '')
  shop.refund(bought.id, { lines: [{ id: line, quantity: 1 }] })
  const remaining = linesOf(open().map(({ id }) => id)).map(({ remainingQuantity }) => remainingQuantity)
  expect(remaining.reduce((sum, one) => sum + one, 0)).toBe(1)
  shop.fulfilByHand(bought.id)
  expect(open().map(({ status }) => status)).toEqual(['CLOSED', 'CLOSED', 'CLOSED'])
})

test('without the scope the list of fulfilment orders is empty', () => {
  const { shop, open } = handedOver()
  shop.setScopes(shopifyApp.scopes.filter((scope) => !scope.includes('merchant_managed')))
  expect(open()).toEqual([])
})

test('every fault passes', () => {
  const { shop, ask, clock } = opened()
  const { variant, set } = stocked(shop)
  const body = bodyOf(documents.setStock, { input: set(7, 5), key: 'k' })
  const push = () => shop.handle({ method: 'POST', url, headers, body })
  shop.strike({ fault: 'lost_before' })
  shop.strike({ fault: 'maintenance' })
  shop.strike({ fault: 'login_page' })
  shop.strike({ fault: 'refused', status: 403 })
  shop.strike({ fault: 'redirect', to: 'https://elsewhere.test/' })
  shop.strike({ fault: 'throttled', status: 429 })
  shop.strike({ fault: 'error', code: 'INTERNAL_SERVER_ERROR' })
  shop.strike({ fault: 'user_error', code: 'IDEMPOTENCY_CONCURRENT_REQUEST' })
  const [lost, maintenance, login, refused, redirect, throttled, error, userError] = Array.from({ length: 8 }, push)
  expect(lost?.isLost).toBe(true)
  expect([maintenance?.status, login?.status, refused?.status, redirect?.status]).toEqual([503, 200, 403, 301])
  expect(login?.headers['content-type']).toBe('text/html; charset=utf-8')
  expect([throttled?.status, JSON.parse(throttled?.body ?? '').errors[0].extensions.code]).toEqual([429, 'THROTTLED'])
  expect(JSON.parse(error?.body ?? '').errors[0].extensions.code).toBe('INTERNAL_SERVER_ERROR')
  expect(JSON.parse(userError?.body ?? '').data.inventorySetQuantities.userErrors).toEqual([
    { code: 'IDEMPOTENCY_CONCURRENT_REQUEST', field: [] },
  ])
  expect(shop.stockOf(variant.id)).toBe(5)
  clock.now += 60_000
  shop.strike({ fault: 'meanwhile', act: () => shop.setStock(variant.id, 4) })
  expect(codesOf(JSON.parse(push().body))).toEqual(['CHANGE_FROM_QUANTITY_STALE'])
  shop.strike({ fault: 'items', fails: () => true, code: 'INVALID_INVENTORY_ITEM' })
  expect(codesOf(ask(documents.setStock, { input: set(7, 4), key: 'l' }))).toEqual(['INVALID_INVENTORY_ITEM'])
  shop.strike({ fault: 'lost_after', kind: 'SetStock' })
  shop.strike({ fault: 'truncated' })
  shop.strike({ fault: 'slow', ms: 21_000 })
  shop.strike({ fault: 'echo', change: () => ({ data: null }) })
  const write = { method: 'POST', url, headers, body: bodyOf(documents.setStock, { input: set(7, 4), key: 'm' }) }
  expect(shop.handle(write).isLost).toBe(true)
  expect(shop.stockOf(variant.id)).toBe(7)
  expect(() => JSON.parse(shop.handle(write).body)).toThrow()
  const before = clock.now
  expect([shop.handle(write).status, clock.now - before]).toEqual([200, 21_000])
  expect(shop.handle(write).body).toBe('{"data":null}')
  expect(shop.counts()).toEqual({ SetStock: 14 })
})

test('the proof names an exchange that does not fit the schema', () => {
  const exchanged: Parameters<typeof faultsOfExchange>[0][] = []
  const { shop } = opened({ onExchange: (exchange) => void exchanged.push(exchange) })
  const ask = callerOf(shop)
  stocked(shop)
  ask(documents.variantPage)
  ask(documents.updateProduct, { product: { id: gid('Product', '1'), colour: 'red' } })
  const [page, update] = exchanged
  if (!page || !update) throw new Error('There were not two exchanges.')
  expect(faultsOfExchange(page)).toEqual([])
  expect(faultsOfExchange(update)).toEqual([expect.stringMatching(/^UpdateProduct \(2026-07\): .*colour/)])
  const text = JSON.stringify(page.answer)
  const altered = (from: string, to: string) =>
    faultsOfExchange({ ...page, answer: JSON.parse(text.replace(from, to)) })
  expect(altered('"title":"Game A"', '"title":null')).toEqual([expect.stringContaining('Cannot return null')])
  expect(altered('"sku":"A"', '"sku":"A","colour":"red"')).toEqual([expect.stringContaining('instead of')])
  expect(faultsOfExchange({ ...page, document: page.document.replace('sku', 'colour') })).toEqual([
    expect.stringContaining('colour'),
    expect.stringContaining('npm run shopify-schema'),
  ])
})

/** What each document is given; a new document needs its line here. */
const given: Record<string, Fields> = {
  ActivateStock: { item: gid('InventoryItem', '1'), location: gid('Location', '1'), key: 'k' },
  AddTags: { id: gid('Order', '1'), tags: ['a'] },
  BulkOperation: { id: gid('BulkOperation', '1') },
  BulkOperations: {},
  CancelBulk: { id: gid('BulkOperation', '1') },
  ChangedOrders: { query: "updated_at:>='2026-01-01T00:00:00Z'" },
  CreateFulfillment: { fulfillment: { lineItemsByFulfillmentOrder: [] } },
  CreateProduct: { input: { title: 'Game B' } },
  CreateWebhook: { topic: 'ORDERS_PAID', webhook: { uri: 'https://quayside.test/' } },
  DefineKeys: { definition: { key: 'keys_1', name: 'Keys', ownerType: 'ORDER', type: 'multi_line_text_field' } },
  FulfilledLines: { ids: [gid('Fulfillment', '1')] },
  FulfillmentOrderLines: { ids: [gid('FulfillmentOrder', '1')] },
  FulfillmentTracking: { id: gid('Fulfillment', '1') },
  HandOverOrder: { id: gid('Order', '1'), line: gid('LineItem', '1'), namespace: '$app:quayside' },
  Locations: {},
  NotifyAgain: { id: gid('Fulfillment', '1'), tracking: {} },
  Order: { id: gid('Order', '1'), namespace: '$app:quayside' },
  OrderFulfillments: { id: gid('Order', '1') },
  OrderLines: { id: gid('Order', '1'), after: 'WzFd' },
  OrderNote: { id: gid('Order', '1') },
  OrderOfFulfillment: { id: gid('FulfillmentOrder', '1') },
  OrderRefunds: { id: gid('Order', '1') },
  OrdersNow: { ids: [gid('Order', '1')], namespace: '$app:quayside' },
  ProductByHandle: { handle: 'game-a' },
  Publications: {},
  PublishProduct: { product: gid('Product', '1'), publication: gid('Publication', '1') },
  PutKeys: { metafields: [{ ownerId: gid('Order', '1'), key: 'keys_1', type: 'json', value: '1' }] },
  PutNote: { id: gid('Order', '1'), note: 'a' },
  RemoveTags: { id: gid('Order', '1'), tags: ['a'] },
  RunBulk: { mutation: documents.updateVariants.text, path: 'tmp/none' },
  SetStock: { input: { name: 'available', reason: 'correction', quantities: [] }, key: 'k' },
  Shop: {},
  StageUpload: {
    input: [{ resource: 'BULK_MUTATION_VARIABLES', filename: 'a.jsonl', mimeType: 'text/jsonl', httpMethod: 'POST' }],
  },
  StockElsewhere: { ids: [gid('InventoryItem', '1')] },
  UpdateProduct: { product: { id: gid('Product', '1') } },
  UpdateVariants: { product: gid('Product', '1'), variants: [] },
  UpdateWebhook: { id: gid('WebhookSubscription', '1'), webhook: {} },
  VariantPage: {},
  VariantsById: { ids: [gid('ProductVariant', '1')], location: gid('Location', '1') },
  VariantsBySku: { query: "sku:'A'" },
  Webhooks: {},
}

test.each([...shopDocuments])('answers %s, within the cost of one document', (name, text) => {
  // Ids end in 1 here: those of a shop that has nothing yet but what it came with.
  const { shop, ask } = opened({ firstId: '0' })
  shop.addProduct({ title: 'Game A', sku: 'A' })
  const variables = given[name]
  if (!variables) throw new Error(`Say what ${name} is given.`)
  const answer = ask({ name, text }, variables)
  expect(answer.errors).toBeUndefined()
  expect(answer.data).toBeTypeOf('object')
})
