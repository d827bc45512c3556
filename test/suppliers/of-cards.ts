/** Made-up suppliers of gift cards, with the habits that the documents of real ones show. A card is ordered by what is printed on it. */
import {
  type Asked,
  afterCursor,
  euros,
  eurosText,
  fields,
  firstIn,
  grantToken,
  type Habits,
  hasToken,
  iso,
  newest,
  numberIn,
  type Product,
  pageOf,
  type Reply,
  type Sold,
  type World,
} from './double.ts'

/* OAuth2 with an audience as JSON, a version in the Accept header, pages as Spring writes them, floats, cards by a second read. */

const springRefusal = (status: number, errorCode: string, message: string): Reply => ({
  status,
  body: { timeStamp: '2026-01-01 00:00:00', message, path: '/', errorCode, details: [] },
})

const springId = ({ id }: Product): number => Number(id.replace(/\D/g, ''))

const springProduct = (product: Product) => ({
  productId: springId(product),
  productName: product.name,
  denominationType: 'FIXED',
  status: product.stock > 0 ? 'ACTIVE' : 'INACTIVE',
  senderFee: 0,
  senderCurrencyCode: 'EUR',
  recipientCurrencyCode: 'EUR',
  fixedRecipientDenominations: [euros(product.faceMinor)],
  fixedSenderDenominations: [euros(product.costMinor)],
  brand: { brandId: 3, brandName: product.name },
})

const springOrder = ({ id, reference, amountMinor, product, quantity, status }: Sold) => ({
  transactionId: Number(id),
  amount: euros(amountMinor),
  currencyCode: 'EUR',
  fee: 0,
  recipientEmail: 'orders@shop.example',
  customIdentifier: reference,
  status: status === 'done' ? 'SUCCESSFUL' : 'PENDING',
  product: { productId: springId(product), productName: product.name, quantity, unitPrice: euros(product.faceMinor) },
})

const springPage = <T>({ query }: Asked, list: T[]): Reply => {
  const [page, size] = [numberIn(query, 'page', 1), Math.min(numberIn(query, 'size', 200), 200)]
  const content = pageOf(list, page, size)
  return {
    body: {
      content,
      pageable: { pageNumber: page - 1 },
      totalElements: list.length,
      last: page * size >= list.length,
      size,
    },
  }
}

export const cardspring: Habits = {
  name: 'cardspring',
  like: 'Reloadly gift cards',
  base: '',
  apiKey: 'spring-client:spring-secret-0123456789',
  refuses: (asked, world) => {
    if (asked.path === '/oauth/token') return undefined
    if (asked.headers.accept !== 'application/com.cardspring.giftcards-v1+json')
      return springRefusal(406, 'NOT_ACCEPTABLE', 'The version is not acceptable.')
    return hasToken(asked, world) ? undefined : springRefusal(401, 'INVALID_TOKEN', 'The token has ended.')
  },
  routes: {
    'POST /oauth/token': ({ json }, world) =>
      fields(json).audience === 'https://giftcards.cardspring.example'
        ? grantToken(world, cardspring.apiKey, fields(json))
        : springRefusal(401, 'INVALID_AUDIENCE', 'No such audience.'),
    'GET /products': (asked, { products }) => springPage(asked, products.map(springProduct)),
    'GET /products/{id}': (_, { products }, id) => {
      const product = products.find((one) => String(springId(one)) === id)
      return product ? { body: springProduct(product) } : springRefusal(404, 'PRODUCT_NOT_FOUND', 'No such product.')
    },
    'POST /orders': ({ json }, world) => {
      const { productId, quantity, unitPrice, customIdentifier, senderName, recipientEmail } = fields(json)
      const product = world.products.find((one) => springId(one) === productId)
      if (!product) return springRefusal(404, 'PRODUCT_NOT_FOUND', 'No such product.')
      if (typeof senderName !== 'string' || typeof recipientEmail !== 'string')
        return springRefusal(400, 'INVALID_REQUEST', 'Who sends it to whom?')
      if (unitPrice !== euros(product.faceMinor))
        return springRefusal(400, 'INVALID_UNIT_PRICE', 'No such denomination.')
      const sold = world.sell(product.id, quantity, String(customIdentifier))
      if (sold === 'stock') return springRefusal(400, 'OUT_OF_STOCK', 'None left.')
      if (sold === 'balance') return springRefusal(400, 'INSUFFICIENT_BALANCE', 'Insufficient balance.')
      return typeof sold === 'string' ? springRefusal(400, 'INVALID_REQUEST', sold) : { body: springOrder(sold) }
    },
    'GET /reports/transactions': (asked, world) => {
      const name = asked.query.get('customIdentifier')
      return springPage(
        asked,
        newest(world)
          .filter(({ reference }) => name === null || name === reference)
          .map(springOrder),
      )
    },
    'GET /reports/transactions/{id}': (_, world, id) => {
      const sold = world.read(id)
      return sold ? { body: springOrder(sold) } : springRefusal(404, 'TRANSACTION_NOT_FOUND', 'No such transaction.')
    },
    'GET /orders/transactions/{id}/cards': (_, world, id) => {
      const sold = world.order(id)
      if (!sold) return springRefusal(404, 'TRANSACTION_NOT_FOUND', 'No such transaction.')
      return { body: sold.cards.map(({ text, pin }) => ({ cardNumber: text, pinCode: pin })) }
    },
    'GET /accounts/balance': (_, world) => ({ body: { balance: euros(world.balanceMinor()), currencyCode: 'EUR' } }),
  },
  buys: 'POST /orders',
}

/* Bearer, an order inside `order`, one reward for each order, a reference that gives the first order again with 201, links instead of codes. */

const bountyRefusal = (status: number, message: string): Reply => ({
  status,
  body: { errors: { message, payload: {} } },
})

const bountyProduct = ({ id, name, faceMinor, stock }: Product) => ({
  id,
  name,
  category: stock > 0 ? 'merchant_card' : 'retired',
  currency_codes: ['EUR'],
  skus: [{ min: euros(faceMinor), max: euros(faceMinor) }],
})

const bountyOrder = ({ id, reference, amountMinor, at, product, cards, status }: Sold) => ({
  id,
  external_id: reference,
  created_at: iso(at),
  status: status === 'done' ? 'EXECUTED' : 'CART',
  payment: { total: euros(amountMinor), currency_code: 'EUR' },
  rewards: cards.map((card) => ({
    id: card.id,
    order_id: id,
    products: [product.id],
    value: { denomination: euros(product.faceMinor), currency_code: 'EUR' },
    delivery: { method: 'LINK', status: 'SUCCEEDED', link: card.text },
  })),
})

export const bounty: Habits = {
  name: 'bounty',
  like: 'Tremendous',
  base: '/api/v2',
  apiKey: 'PROD_bounty_0123456789abcdef',
  cards: ['url'],
  refuses: ({ headers }) =>
    headers.authorization === `Bearer ${bounty.apiKey}` ? undefined : bountyRefusal(401, 'Unauthorized'),
  routes: {
    'GET /products': ({ query }, { products }) => ({
      body: { products: offsetPage(query, products.map(bountyProduct)), total_count: products.length },
    }),
    'GET /products/{id}': (_, world, id) => {
      const product = world.product(id)
      return product ? { body: { product: bountyProduct(product) } } : bountyRefusal(404, 'Not Found')
    },
    'POST /orders': ({ json }, world) => {
      const { external_id, payment, reward } = fields(json)
      const { value, delivery, products } = fields(reward)
      if (fields(payment).funding_source_id !== 'balance') return bountyRefusal(400, 'Which funding source?')
      if (fields(delivery).method !== 'LINK' || !Array.isArray(products)) return bountyRefusal(400, 'Bad Request')
      const known = world.under(external_id)
      if (known) return { status: 201, body: { order: bountyOrder(known) } }
      const product = world.product(products[0])
      if (product && fields(value).denomination !== euros(product.faceMinor))
        return bountyRefusal(400, 'Bad denomination')
      const sold = world.sell(products[0], 1, String(external_id))
      if (sold === 'stock') return bountyRefusal(400, 'Out of stock')
      if (sold === 'balance') return bountyRefusal(402, 'Insufficient funds')
      return typeof sold === 'string' ? bountyRefusal(400, 'Bad Request') : { body: { order: bountyOrder(sold) } }
    },
    'GET /orders': ({ query }, world) => {
      const wanted = newest(world).filter(
        ({ reference }) => !query.has('external_id') || query.get('external_id') === reference,
      )
      return { body: { orders: offsetPage(query, wanted.map(bountyOrder)), total_count: wanted.length } }
    },
    'GET /orders/{id}': (_, world, id) => {
      const sold = world.read(id)
      return sold ? { body: { order: bountyOrder(sold) } } : bountyRefusal(404, 'Not Found')
    },
    'GET /funding_sources/balance': (_, world) => ({
      body: { funding_source: { id: 'balance', available: euros(world.balanceMinor()) } },
    }),
  },
  buys: 'POST /orders',
}

const offsetPage = <T>(query: URLSearchParams, list: T[]): T[] => {
  const offset = numberIn(query, 'offset', 0)
  return list.slice(offset, offset + Math.min(numberIn(query, 'limit', 10), 100))
}

/* A key, an idempotency key and two constant headers; 202 with id and status alone; a cursor; the reference as a description. */

const runeRefusal = (status: number, type: string): Reply => ({
  status,
  body: { type, message: `${type}.`, help: null },
})

const runeProduct = ({ id, name, faceMinor, stock }: Product) => ({
  code: id,
  name,
  currency: 'EUR',
  state: 'LIVE',
  is_orderable: stock > 0,
  denominations: { type: 'fixed', minimum_value: eurosText(faceMinor), available_list: [eurosText(faceMinor)] },
})

/** An order that is not complete tells no more than its id and its status. */
const runeOrder = ({ id, reference, amountMinor, at, product, cards, status }: Sold) =>
  status === 'open'
    ? { id: `O-${id}`, status: 'PROCESSING', message: 'The order is being processed.' }
    : {
        id: `O-${id}`,
        status: status === 'done' ? 'COMPLETED' : 'FAILED',
        created_at: iso(at),
        description: reference,
        currency: 'EUR',
        total_price: eurosText(amountMinor),
        items: cards.map((card) => ({
          id: card.id,
          face_value: eurosText(product.faceMinor),
          products: { type: 'SINGLE', value: product.id },
          payout: { status: 'ACTIVE', url: card.text },
        })),
      }

const runePage = <T>({ query }: Asked, name: string, list: T[]): Reply => {
  const { items, next } = afterCursor(list, query.get('after'), Math.min(numberIn(query, 'limit', 20), 20))
  return {
    body: {
      [name]: items,
      pagination: { cursors: { after: next ?? null, before: null }, page: { has_next: next !== undefined } },
    },
  }
}

export const runestone: Habits = {
  name: 'runestone',
  like: 'Runa, formerly WeGift',
  base: '/v2',
  apiKey: 'rune-key-0123456789abcdef',
  cards: ['url'],
  readsUntilDone: 1,
  refuses: ({ headers, method }) => {
    if (headers['x-api-key'] !== runestone.apiKey) return runeRefusal(401, 'unauthorized')
    if (headers['x-api-version'] !== '2024-02-05') return runeRefusal(400, 'invalid_version')
    return method === 'POST' && headers['x-execution-mode'] !== 'async'
      ? runeRefusal(400, 'invalid_execution_mode')
      : undefined
  },
  routes: {
    'GET /product': (asked, { products }) => runePage(asked, 'catalog', products.map(runeProduct)),
    'GET /product/{id}': (_, world, id) => {
      const product = world.product(id)
      return product ? { body: runeProduct(product) } : runeRefusal(404, 'not_found')
    },
    'POST /order': ({ headers, json, body }, world) => {
      const { items, description, payment_method } = fields(json)
      const { face_value, products, distribution_method } = firstIn(items)
      const key = headers['x-idempotency-key']
      if (typeof key !== 'string' || fields(payment_method).type !== 'ACCOUNT_BALANCE')
        return runeRefusal(422, 'validation_error')
      if (fields(distribution_method).type !== 'PAYOUT_LINK') return runeRefusal(422, 'validation_error')
      const known = world.kept.get(key)
      if (known) return { status: 202, body: { id: `O-${known.id}`, status: 'PROCESSING' } }
      const product = world.product(fields(products).value)
      if (product && face_value !== euros(product.faceMinor)) return runeRefusal(400, 'product_validation_error')
      const sold = world.sell(fields(products).value, 1, String(description))
      if (sold === 'balance') return runeRefusal(400, 'insufficient_funds')
      if (typeof sold === 'string') return runeRefusal(400, 'product_validation_error')
      world.kept.set(key, sold)
      return {
        status: 202,
        body: { id: `O-${sold.id}`, status: 'PROCESSING' },
        headers: { 'x-seen-bytes': String(body.length) },
      }
    },
    'GET /order': (asked, world) => runePage(asked, 'items', newest(world).map(runeOrder)),
    'GET /order/{id}': (_, world, id) => {
      const sold = world.read(id.replace(/^O-/, ''))
      return sold ? { body: runeOrder(sold) } : runeRefusal(404, 'not_found')
    },
    'GET /balance': (_, world) => ({ body: { balance: eurosText(world.balanceMinor()), currency: 'EUR' } }),
  },
  buys: 'POST /order',
}

/* Basic, a version in each path, products grouped by brand and found by the query, a request id that must be a GUID, which is all that is answered. */

const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const reedRefusal = (status: number, Reason: string): Reply => ({ status, body: { Reason, message: `${Reason}.` } })

const reedId = ({ id }: Product): number => Number(id.replace(/\D/g, ''))

const reedProduct = (product: Product) => ({
  id: reedId(product),
  name: product.name,
  minFaceValue: euros(product.faceMinor),
  maxFaceValue: euros(product.faceMinor),
  count: product.stock,
  price: { min: euros(product.costMinor), max: euros(product.costMinor), currencyCode: 'EUR' },
  isDeleted: false,
})

const BRAND = 3

const reedBrands = (products: Product[]) =>
  Array.from({ length: Math.ceil(products.length / BRAND) }, (_, place) => ({
    internalId: `brand-${place}`,
    name: `Brand ${place}`,
    products: products.slice(place * BRAND, (place + 1) * BRAND).map(reedProduct),
  }))

export const reedcard: Habits = {
  name: 'reedcard',
  like: 'Bamboo',
  base: '/api/integration',
  apiKey: 'reed-client:reed-secret-0123456789',
  refuses: ({ headers }) =>
    headers.authorization === `Basic ${Buffer.from(reedcard.apiKey).toString('base64')}`
      ? undefined
      : reedRefusal(401, 'Unauthorized'),
  routes: {
    'GET /v2.0/catalog': ({ query }, { products }) => {
      const wanted = query.has('ProductId')
        ? products.filter((one) => String(reedId(one)) === query.get('ProductId'))
        : products
      const brands = reedBrands(wanted)
      const [index, size] = [numberIn(query, 'PageIndex', 0), numberIn(query, 'PageSize', 100)]
      return {
        body: { pageIndex: index, pageSize: size, count: brands.length, items: pageOf(brands, index + 1, size) },
      }
    },
    'POST /v1.0/orders/checkout': ({ json }, world) => {
      const { RequestId, AccountId, Products } = fields(json)
      if (typeof RequestId !== 'string' || !GUID.test(RequestId)) return reedRefusal(400, 'InvalidRequestId')
      if (AccountId !== 555) return reedRefusal(400, 'InvalidAccount')
      if (world.under(RequestId)) return reedRefusal(400, 'DuplicateRequestId')
      const { ProductId, Quantity, Value } = firstIn(Products)
      const product = world.products.find((one) => reedId(one) === ProductId)
      if (product && Value !== euros(product.faceMinor)) return reedRefusal(400, 'InvalidValue')
      const sold = world.sell(product?.id, Quantity, RequestId)
      return typeof sold === 'string'
        ? reedRefusal(400, sold)
        : { body: `"${RequestId}"`, headers: { 'content-type': 'application/json' } }
    },
    'GET /v1.0/orders/{id}': (_, world, id) => {
      const sold = world.under(id)
      return sold
        ? {
            body: {
              orderId: Number(sold.id),
              requestId: sold.reference,
              status: 'Succeeded',
              items: [
                {
                  productId: reedId(sold.product),
                  quantity: sold.quantity,
                  cards: sold.cards.map(({ id: serialNumber, text, pin }) => ({
                    serialNumber,
                    cardCode: text,
                    pin,
                    status: 'Sold',
                  })),
                },
              ],
            },
          }
        : reedRefusal(404, 'OrderNotFound')
    },
    // A report of the days between two dates, flat and whole.
    'GET /v1/orders': (_, world) => ({
      body: newest(world).map(({ id, reference, quantity, amountMinor }) => ({
        orderNumber: id,
        clientReferenceNumber: reference,
        quantity,
        total: euros(amountMinor),
        status: 'Succeeded',
      })),
    }),
    'GET /v1.0/accounts': (_, world) => ({
      body: {
        accounts: [
          { id: 555, currency: 'EUR', balance: euros(world.balanceMinor()), isActive: true, sandboxMode: false },
        ],
      },
    }),
  },
  buys: 'POST /v1.0/orders/checkout',
}

/* A pair of keys, transactions instead of orders, bare lists, one unit for each transaction, one pin that is no list, errors with numbers. */

const digitRefusal = (status: number, code: number, message: string): Reply => ({
  status,
  body: { errors: [{ code, message }] },
})

const digitId = ({ id }: Product): number => Number(id.replace(/\D/g, ''))

const digitProduct = (product: Product) => ({
  id: digitId(product),
  name: product.name,
  type: 'FIXED_VALUE_PIN_PURCHASE',
  prices: {
    wholesale: { amount: euros(product.costMinor), fee: 0, unit: 'EUR', unit_type: 'CURRENCY' },
    retail: { amount: euros(product.faceMinor), fee: 0, unit: 'EUR', unit_type: 'CURRENCY' },
  },
})

const digitTransaction = ({ id, reference, amountMinor, at, product, cards, status }: Sold) => ({
  id: Number(id),
  external_id: reference,
  creation_date: iso(at),
  status: {
    id: 70_000,
    message: 'COMPLETED',
    class: status === 'done' ? { id: 7, message: 'COMPLETED' } : { id: 5, message: 'SUBMITTED' },
  },
  product: { id: digitId(product), name: product.name },
  prices: { wholesale: { amount: euros(amountMinor), unit: 'EUR' } },
  pin: status === 'done' ? { code: cards[0]?.text, serial: cards[0]?.id } : null,
})

const digitPage = <T>({ query }: Asked, list: T[]): Reply => {
  const [page, size] = [numberIn(query, 'page', 1), Math.min(numberIn(query, 'per_page', 50), 100)]
  return { body: pageOf(list, page, size), headers: { 'x-total': String(list.length), 'x-page': String(page) } }
}

const digitUnder = ({ products }: World, id: unknown): Product | undefined =>
  products.find((one) => String(digitId(one)) === String(id))

export const digitone: Habits = {
  name: 'digitone',
  like: 'DT One DVS',
  base: '/v1',
  apiKey: 'digit-key:digit-secret-0123456789',
  refuses: ({ headers }) =>
    headers.authorization === `Basic ${Buffer.from(digitone.apiKey).toString('base64')}`
      ? undefined
      : digitRefusal(401, 1_000_401, 'Unauthorized'),
  routes: {
    'GET /products': (asked, { products }) => digitPage(asked, products.map(digitProduct)),
    'GET /products/{id}': (_, world, id) => {
      const product = digitUnder(world, id)
      return product ? { body: digitProduct(product) } : digitRefusal(404, 1_003_404, 'Product not found')
    },
    'POST /async/transactions': ({ json }, world) => {
      const { external_id, product_id, auto_confirm } = fields(json)
      if (auto_confirm !== true || typeof external_id !== 'string') return digitRefusal(400, 1_000_400, 'Bad Request')
      if (world.under(external_id)) return digitRefusal(400, 1_003_001, 'External id has already been used')
      const sold = world.sell(digitUnder(world, product_id)?.id, 1, external_id)
      return typeof sold === 'string'
        ? digitRefusal(400, 1_006_001, sold)
        : { status: 201, body: digitTransaction(sold) }
    },
    'GET /transactions': (asked, world) => {
      const name = asked.query.get('external_id')
      return digitPage(
        asked,
        newest(world)
          .filter(({ reference }) => name === null || name === reference)
          .map(digitTransaction),
      )
    },
    'GET /transactions/{id}': (_, world, id) => {
      const sold = world.read(id)
      return sold ? { body: digitTransaction(sold) } : digitRefusal(404, 1_003_404, 'Transaction not found')
    },
    'GET /balances': (_, world) => ({
      body: [{ id: 1, unit: 'EUR', unit_type: 'CURRENCY', available: euros(world.balanceMinor()), holding: 0 }],
    }),
  },
  buys: 'POST /async/transactions',
}
