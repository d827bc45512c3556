/** Made-up suppliers of game keys, with the habits that the documents of real ones show. */
import {
  type Asked,
  afterCursor,
  type Card,
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

const refusal = (status: number, code: string, message: string): Reply => ({ status, body: { status, code, message } })

/* OAuth2 with its fields in the query, a continuation token, prices by quantity, codes of two types beside each other. */

const WHARF_PAGE = 10

const wharfProduct = ({ id, sku, name, costMinor, stock }: Product) => ({
  productId: id,
  identifier: sku,
  name,
  platform: 'Steam',
  quantity: stock,
  prices: [
    { value: euros(costMinor), from: 1, to: 9 },
    { value: euros(costMinor - 20), from: 10, to: null },
  ],
})

const wharfCode = ({ id, type, text }: Card) => ({
  codeId: id,
  codeType: type === 'image' ? 'CODE_IMAGE' : 'CODE_TEXT',
  code: text,
  filename: type === 'image' ? `${id}.png` : null,
})

const wharfOrder = ({ id, reference, amountMinor, at, product, cards, status }: Sold) => ({
  orderId: id,
  clientOrderId: reference,
  status: status === 'done' ? 'Completed' : 'Pending',
  totalPrice: euros(amountMinor),
  createdOn: iso(at),
  products: [{ productId: product.id, name: product.name, codes: status === 'done' ? cards.map(wharfCode) : [] }],
})

export const codewharf: Habits = {
  name: 'codewharf',
  like: 'CodesWholesale v2 and v3',
  base: '',
  apiKey: 'wharf-client:wharf-secret-0123456789',
  cards: ['text', 'image'],
  refuses: (asked, world) =>
    asked.path === '/oauth/token' || hasToken(asked, world)
      ? undefined
      : refusal(401, 'invalid_token', 'The token is not valid.'),
  routes: {
    'POST /oauth/token': ({ query }, world) => grantToken(world, codewharf.apiKey, Object.fromEntries(query)),
    'GET /v3/products': ({ query }, { products }) => {
      const { items, next } = afterCursor(products, query.get('continuationToken'), WHARF_PAGE)
      return { body: { items: items.map(wharfProduct), continuationToken: next ?? null } }
    },
    'GET /v3/products/{id}': (_, world, id) => {
      const product = world.product(id)
      return product ? { body: wharfProduct(product) } : refusal(404, 'product_not_found', 'No such product.')
    },
    'POST /v3/orders': ({ json }, world) => {
      const { allowPreOrder, orderId, products } = fields(json)
      const { productId, quantity, price } = firstIn(products)
      if (allowPreOrder !== false || typeof orderId !== 'string')
        return refusal(400, 'bad_request', 'allowPreOrder and orderId.')
      const product = world.product(productId)
      if (product && price !== euros(product.costMinor))
        return refusal(400, 'price_changed', 'The price is another one.')
      const sold = world.sell(productId, quantity, orderId)
      if (sold === 'stock') return refusal(409, 'not_enough_codes', 'Not enough codes.')
      if (sold === 'balance') return refusal(402, 'balance_too_low', 'The balance is too low.')
      return typeof sold === 'string' ? refusal(400, 'bad_request', sold) : { status: 201, body: wharfOrder(sold) }
    },
    // Filtered by time alone, and always whole.
    'GET /v3/orders': ({ query }, world) => {
      const since = Date.parse(query.get('startFrom') ?? iso(0))
      return {
        body: {
          items: newest(world)
            .filter(({ at }) => at >= since)
            .map(wharfOrder),
        },
      }
    },
    'GET /v3/orders/{id}': (_, world, id) => {
      const sold = world.read(id)
      return sold ? { body: wharfOrder(sold) } : refusal(404, 'order_not_found', 'No such order.')
    },
    'GET /v3/accounts/current': (_, world) => ({
      body: {
        fullName: 'Ours',
        currentBalance: euros(world.balanceMinor()),
        currentCredit: 0,
        totalToUse: euros(world.balanceMinor()),
      },
    }),
  },
  buys: 'POST /v3/orders',
}

/* Bearer, an envelope with success and data, a cursor beside the data, a reference that is taken once. */

const lineRefusal = (status: number, code: string): Reply => ({
  status,
  body: { success: false, error: { code, message: code } },
})

const lineProduct = ({ id, sku, name, costMinor, stock }: Product) => ({
  id: Number(id.replace(/\D/g, '')),
  sku,
  title: name,
  price: eurosText(costMinor),
  in_stock: stock > 0,
})

const lineOrder = ({ id, reference, amountMinor, at, product, quantity, cards, status }: Sold) => ({
  id: Number(id),
  external_id: reference,
  product_id: lineProduct(product).id,
  quantity,
  status: status === 'done' ? 'success' : 'in_progress',
  total: eurosText(amountMinor),
  created_at: Math.floor(at / 1_000),
  codes: status === 'done' ? cards.map(({ text }) => text) : [],
})

const linePage = <T>({ query }: Asked, list: T[]): Reply => {
  const size = Math.min(numberIn(query, 'per_page', 20), 20)
  const { items, next } = afterCursor(list, query.get('cursor'), size)
  return { body: { success: true, data: items, meta: { per_page: size, next_cursor: next ?? null } } }
}

const lineProductUnder = ({ products }: World, id: unknown): Product | undefined =>
  products.find((one) => String(lineProduct(one).id) === String(id))

export const giftline: Habits = {
  name: 'giftline',
  like: 'GiftAPI',
  base: '/api/v1',
  apiKey: 'giftline-token-0123456789abcdef',
  refuses: ({ headers }) =>
    headers.authorization === `Bearer ${giftline.apiKey}` ? undefined : lineRefusal(401, 'unauthenticated'),
  routes: {
    'GET /products': (asked, { products }) => linePage(asked, products.map(lineProduct)),
    'GET /products/{id}': (_, world, id) => {
      const product = lineProductUnder(world, id)
      return product ? { body: { success: true, data: lineProduct(product) } } : lineRefusal(404, 'not_found')
    },
    'POST /orders': ({ json }, world) => {
      const { product_id, quantity, external_id } = fields(json)
      if (typeof external_id !== 'string' || external_id.length > 64) return lineRefusal(422, 'validation_failed')
      if (world.under(external_id)) return lineRefusal(409, 'external_id_taken')
      const sold = world.sell(lineProductUnder(world, product_id)?.id, quantity, external_id)
      if (sold === 'stock') return lineRefusal(409, 'out_of_stock')
      if (sold === 'balance') return lineRefusal(402, 'no_money')
      return typeof sold === 'string'
        ? lineRefusal(422, 'validation_failed')
        : { status: 201, body: { success: true, data: lineOrder(sold) } }
    },
    'GET /orders': (asked, world) => linePage(asked, newest(world).filter(isAskedFor(asked)).map(lineOrder)),
    'GET /orders/{id}': (_, world, id) => {
      const sold = world.read(id)
      return sold ? { body: { success: true, data: lineOrder(sold) } } : lineRefusal(404, 'not_found')
    },
    'GET /balance': (_, world) => ({
      body: { success: true, data: { amount: eurosText(world.balanceMinor()), currency: 'EUR' } },
    }),
  },
  buys: 'POST /orders',
}

const isAskedFor =
  ({ query }: Asked, name = 'external_id') =>
  ({ reference }: Sold): boolean =>
    !query.has(name) || query.get(name) === reference

/* A static token without a word before it, the price in the body, one unit for each transaction, no list of orders but by the transaction. */

const dropRefusal = (status: number, code: string): Reply => ({ status, body: { error: code, message: `${code}.` } })

const dropOffer = ({ id, sku, name, costMinor, stock }: Product) => ({
  id: Number(id.replace(/\D/g, '')),
  code: sku,
  name,
  price: euros(costMinor),
  count: stock,
})

const dropOrder = ({ id, reference, amountMinor, product, cards, status }: Sold) => ({
  order_id: id,
  transaction_id: reference,
  offer_id: dropOffer(product).id,
  price: euros(amountMinor),
  status: { open: 'PROCESSING', done: 'COMPLETED', failed: 'CANCELED' }[status],
  keys: status === 'done' ? cards.map(({ text }) => text) : [],
})

export const dropgames: Habits = {
  name: 'dropgames',
  like: 'GamesDrop',
  base: '/api/v2',
  apiKey: 'abcdef1234567890abcdef1234567890',
  refuses: ({ headers }) =>
    headers.authorization === dropgames.apiKey ? undefined : dropRefusal(401, 'INVALID_TOKEN'),
  routes: {
    'GET /offers': ({ query }, { products }) => ({
      body: { offers: pageOf(products.map(dropOffer), numberIn(query, 'page', 1), 25), total: products.length },
    }),
    'GET /offers/{id}': (_, { products }, id) => {
      const offer = products.map(dropOffer).find((one) => String(one.id) === id)
      return offer ? { body: offer } : dropRefusal(404, 'OFFER_NOT_FOUND')
    },
    'POST /order/create': ({ json }, world) => {
      const { offer_id, price, transaction_id } = fields(json)
      const product = world.products.find((one) => dropOffer(one).id === offer_id)
      if (!product) return dropRefusal(404, 'OFFER_NOT_FOUND')
      if (price !== euros(product.costMinor)) return dropRefusal(400, 'WRONG_PRICE')
      if (world.under(transaction_id)) return dropRefusal(400, 'TRANSACTION_DUPLICATE')
      const sold = world.sell(product.id, 1, String(transaction_id))
      if (sold === 'stock') return dropRefusal(400, 'OFFER_EMPTY')
      if (sold === 'balance') return dropRefusal(400, 'LOW_BALANCE')
      return typeof sold === 'string' ? dropRefusal(400, 'INVALID') : { body: dropOrder(sold) }
    },
    // Only by a transaction: there is no list of all.
    'GET /orders': ({ query }, world) => {
      if (!query.has('transaction_id')) return dropRefusal(400, 'TRANSACTION_REQUIRED')
      const sold = world.under(query.get('transaction_id'))
      return { body: { offers: sold ? [dropOrder(sold)] : [], total: sold ? 1 : 0 } }
    },
    'GET /order/{id}': (_, world, id) => {
      const sold = world.read(id)
      return sold ? { body: dropOrder(sold) } : dropRefusal(404, 'ORDER_NOT_FOUND')
    },
    'GET /balance': (_, world) => ({ body: { balance: euros(world.balanceMinor()) } }),
  },
  buys: 'POST /order/create',
}

/* `Authorization: hash, key`; an order names a product and the most that it may cost, no number of units and no reference, and is paid later. */

const gateRefusal = (status: number, code: string, message: string): Reply => ({
  status,
  body: { status: 'ERROR', message, code },
})

const gateProduct = ({ id, sku, name, costMinor, stock }: Product) => ({
  id,
  sku,
  name,
  minPrice: euros(costMinor),
  qty: stock,
})

export const gatetwo: Habits = {
  name: 'gatetwo',
  like: 'G2A Integration',
  base: '/v1',
  apiKey: 'qdaiciDiyMaTjxMt:74026b3dc2c6db6a30a73e71cdb138b1',
  refuses: ({ headers }) =>
    headers.authorization === gatetwo.apiKey.replace(':', ', ')
      ? undefined
      : gateRefusal(401, 'AUTH02', 'Authorization failed'),
  routes: {
    'GET /products': ({ query }, { products }) => {
      const found = query.has('id') ? products.filter(({ id }) => id === query.get('id')) : products
      const page = numberIn(query, 'page', 1)
      return { body: { total: found.length, page, docs: pageOf(found.map(gateProduct), page, 20) } }
    },
    'POST /order': ({ json }, world) => {
      const { product_id, max_price } = fields(json)
      const product = world.product(product_id)
      if (!product) return gateRefusal(404, 'ORD01', 'Product not found')
      if (typeof max_price === 'number' && euros(product.costMinor) > max_price)
        return gateRefusal(402, 'ORD114', 'Too expensive')
      world.kept.set(String(world.kept.size + 1), {
        id: '',
        reference: '',
        product,
        quantity: 1,
        amountMinor: 0,
        at: 0,
        status: 'open',
        cards: [],
      })
      return { body: { order_id: String(world.kept.size), price: euros(product.costMinor), currency: 'EUR' } }
    },
    // Only this request takes money. It is a PUT, as the document has it.
    'PUT /order/pay/{id}': (_, world, id) => {
      const sold = world.sell(world.kept.get(id)?.product.id, 1, id)
      return typeof sold === 'string'
        ? gateRefusal(402, 'ORD05', sold)
        : { body: { status: true, transaction_id: sold.id } }
    },
    'GET /order/details/{id}': (_, world, id) =>
      world.kept.has(id)
        ? { body: { status: world.under(id) ? 'complete' : 'new' } }
        : gateRefusal(404, 'ORD03', 'No such order'),
    'GET /order/key/{id}': (_, world, id) => {
      const sold = world.under(id)
      return sold ? { body: { key: sold.cards[0]?.text } } : gateRefusal(404, 'ORD03', 'No such order')
    },
  },
  buys: 'POST /order',
}
