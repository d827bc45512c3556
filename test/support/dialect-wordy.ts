/** A dialect that has each word which the Reseller API v1.1 does not need. Its values are of no supplier. */
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { standard } from './dialect-pair.ts'

const { webhook: _, webhookRequest: __, orderRequest: ___, ...usual } = standard
const { idempotencyKey: ____, apiKey: _____, ...headers } = standard.headers
const { name: ______, ...event } = standard.event
const { keys: _______, ...order } = standard.order

/** As a person writes it: what a supplier does not have is left out. */
export const wordy = {
  ...usual,
  name: 'wordy',
  about: 'For tests: has each word.',
  paths: {
    products: '/v1/products?withText=yes',
    product: '/v1/products/{id}',
    placeOrder: '/v2/order',
    orders: '/v1/order',
    order: '/v1/order/{id}',
    balance: '/v1/balance',
    webhooks: '/v1/hooks',
    openapi: null,
  },
  headers,
  constantHeaders: { accept: 'application/vnd.shelf.v2+json' },
  auth: {
    kind: 'oauth2_client_credentials',
    token: '/oauth/token',
    send: 'query',
    credentials: 'basic',
    scope: 'orders',
    fields: { audience: 'https://api.example' },
    accessToken: 'access_token',
    expiresIn: 'expires_in',
    renewBeforeSeconds: 60,
  },
  signature: {
    ...standard.signature,
    string: '{id}.{timestamp}.{body}',
    mac: 'sha512',
    secret: 'base64',
    encoding: 'base64',
    timestampUnit: 'ms',
    deliveryIdHeader: 'x-message-id',
  },
  event: { ...event, header: 'x-event-name' },
  order,
  flags: { ...standard.flags, available: 'quantity' },
  paging: { ...standard.paging, kind: 'cursor', next: 'next_cursor' },
  orderBody: {
    channel: 'wholesale',
    products: [{ code: '{productId}', qty: '{quantity:text}', price: '{price:number}' }],
    ref: '{reference}',
  },
  orderAnswer: 'id',
  idempotency: 'reference',
  quantityMax: 10,
  keys: {
    path: '/v2/order/{id}/keys',
    paged: true,
    items: 'list',
    text: 'serial',
    type: { path: 'kind', words: { 'text/plain': 'text', 'image/png': 'image' } },
    second: { path: 'pin', labels: ['Serial', 'PIN'] },
  },
  webhook: standard.webhook,
  webhookRequest: standard.webhookRequest,
  settleSeconds: 90,
}

/** The same as it is read. */
export const wordyDialect: Dialect = dialectShape.parse(wordy)
