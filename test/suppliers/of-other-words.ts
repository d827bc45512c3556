/** Made-up suppliers with the habits that no dialect is to say: GraphQL, signed requests, forms with the credentials in each. */
import { createHmac, generateKeyPairSync, verify } from 'node:crypto'
import { euros, fields, type Habits, newest, type Product, type Reply, type World } from './double.ts'

/* One route for everything, and 200 for everything: what is wanted is a text in a language of its own. */

const graph = (data: unknown): Reply => ({ body: { data } })
const graphError = (message: string, code: string): Reply => ({
  body: { errors: [{ message, extensions: { code } }], data: null },
})

const node = ({ id, name, costMinor, stock }: Product) => ({
  node: { id, name, price: { amount: costMinor, currency: 'EUR' }, stock },
})

/** Answers what the text asks for. It buys only by a mutation that names a product. */
function graphAct(json: unknown, world: World): Reply {
  const { query, variables } = fields(json)
  if (typeof query !== 'string') return graphError('Must provide query string.', 'BAD_REQUEST')
  const { productId, quantity, reference } = fields(variables)
  if (query.includes('mutation')) {
    const sold = world.sell(productId, quantity, String(reference))
    return typeof sold === 'string' ? graphError(sold, 'NOT_SOLD') : graph({ order: { id: sold.id, state: 'DONE' } })
  }
  if (query.includes('products'))
    return graph({ products: { edges: world.products.map(node), pageInfo: { hasNextPage: false } } })
  return graph({ orders: { edges: newest(world).map(({ id, reference: ref }) => ({ node: { id, reference: ref } })) } })
}

const graphQl = (name: string, like: string, base: string): Habits => ({
  name,
  like,
  base,
  apiKey: `${name}-client:${name}-secret-0123456789`,
  refuses: () => undefined,
  routes: {
    'POST /graphql': ({ json }, world) => graphAct(json, world),
    'GET /graphql': () => ({
      status: 400,
      body: { errors: [{ message: 'GET query missing.', extensions: { code: 'BAD_REQUEST' } }] },
    }),
  },
  buys: 'POST /graphql',
})

export const nebula = graphQl('nebula', 'Eneba', '')
export const keyworld = graphQl('keyworld', 'World of CD Keys', '/api')

/* Requests that are signed, each in its way. What is below is never reached without the right signature. */

const plain = (world: World): Record<string, () => Reply> => ({
  products: () => ({
    body: {
      data: world.products.map(({ id, name, costMinor, stock }) => ({ id, name, price: euros(costMinor), stock })),
    },
  }),
  balance: () => ({ body: { data: { balance: euros(world.balanceMinor()) } } }),
})

const signed = (name: string, like: string, refuses: Habits['refuses']): Habits => ({
  name,
  like,
  base: '/v1',
  apiKey: `${name}-key:${name}-secret-0123456789`,
  refuses,
  routes: {
    'GET /products': (_, world) => plain(world).products?.() ?? { body: null },
    'GET /balance': (_, world) => plain(world).balance?.() ?? { body: null },
    'GET /orders': (_, world) => ({ body: { data: newest(world).map(({ id, reference }) => ({ id, reference })) } }),
    'POST /orders': ({ json }, world) => {
      const { product_id, quantity, reference } = fields(json)
      const sold = world.sell(product_id, quantity, String(reference))
      return typeof sold === 'string'
        ? { status: 400, body: { code: sold } }
        : { status: 201, body: { data: { id: sold.id } } }
    },
  },
  buys: 'POST /orders',
})

const unsigned: Reply = {
  status: 401,
  body: { code: 'INVALID_SIGNATURE', message: 'The signature is missing or wrong.' },
}

const pair = generateKeyPairSync('ed25519')

/** Ed25519 over five lines: method, path, instant, idempotency key, digest of the body. */
export const sealmark = signed('sealmark', 'ODM', ({ method, path, headers, body }) => {
  const lines = [method, path, headers['x-timestamp'], headers['idempotency-key'] ?? '', body].join('\n')
  const given = Buffer.from(String(headers['x-signature'] ?? ''), 'base64')
  return verify(null, Buffer.from(lines), pair.publicKey, given) ? undefined : unsigned
})

const hmac = (text: string): string => createHmac('sha256', 'secret-0123456789').update(text).digest('hex')

/** A JWT for each request, and a MAC over the sorted fields of the body beside them. */
export const paperport = signed('paperport', 'AppotaPay cards', ({ headers, json }) => {
  const { signature, ...rest } = fields(json)
  const sorted = Object.entries(rest)
    .toSorted()
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
  return headers['x-paperport-auth'] !== undefined && signature === hmac(sorted) ? undefined : unsigned
})

/** A MAC over path, key, user and instant, in four headers. */
export const handmark = signed('handmark', 'G2G OpenAPI', ({ path, headers }) => {
  const { 'hm-api-key': key, 'hm-userid': user, 'hm-timestamp': at, 'hm-signature': signature } = headers
  return signature === hmac(`${path}${key}${user}${at}`) ? undefined : unsigned
})

/* Every request is a POST of a form with the credentials in it; every answer is 200, and says 1 or 0. */

export const jesters: Habits = {
  name: 'jesters',
  like: 'Joker game cards',
  base: '/online',
  apiKey: 'jester@shop.example:jester-secret-0123456789',
  refuses: ({ headers, body }) => {
    const form = new URLSearchParams(body)
    const isForm = String(headers['content-type']).startsWith('application/x-www-form-urlencoded')
    const isKnown = `${form.get('email')}:${form.get('password')}` === jesters.apiKey
    return isForm && isKnown ? undefined : { body: { response: 0, message: 'Wrong credentials' } }
  },
  routes: {
    'POST /products': (_, { products }) => ({
      body: { response: 1, data: products.map(({ id, name, costMinor }) => ({ id, name, price: euros(costMinor) })) },
    }),
    'POST /create_order': ({ body }, world) => {
      const form = new URLSearchParams(body)
      const sold = world.sell(form.get('productId'), Number(form.get('quantity')), String(form.get('referenceId')))
      return { body: typeof sold === 'string' ? { response: 0, message: sold } : { response: 1, orderId: sold.id } }
    },
    'POST /check_balance': (_, world) => ({ body: { response: 1, balance: euros(world.balanceMinor()) } }),
  },
  buys: 'POST /create_order',
}
