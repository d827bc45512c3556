/** Requests that are right, for those that go wrong from there: deliveries, store orders, and what people and probes read. */
import { type HeaderLine, orderEvent, signedDelivery, timestampOf } from './delivery.ts'

/** A request before it is written down. */
export interface Template {
  method: string
  target: string
  headers: HeaderLine[]
  body: Buffer
}

/** What requests are signed with and let in by: the true ones, or others. */
export interface Keys {
  secret: string
  store: string
  viewer: string
  /** What orders are for. */
  sku: string
}

export const WEBHOOK_PATH = '/webhooks/supplier/fuzz'
export const ORDERS = '/api/v1/orders'

/** A delivery that nothing is wrong with, other than perhaps its secret; its body is like no other. */
export function delivery({ secret }: Keys, id: string): Template {
  const timestamp = timestampOf(Date.now())
  const { headers, body } = signedDelivery({ secret, timestamp, deliveryId: id, body: orderEvent({ order_id: id }) })
  return { method: 'POST', target: WEBHOOK_PATH, headers: [...CLOSING, ...headers], body }
}

/** A store order that nothing is wrong with, other than perhaps its token; its reference is like no other. */
export function order({ store, sku }: Keys, reference: string): Template {
  const body = Buffer.from(JSON.stringify({ reference, lines: [{ id: '1', sku, quantity: 1 }] }))
  const headers: HeaderLine[] = [...bearer(store), ['content-type', 'application/json']]
  return { method: 'POST', target: ORDERS, headers: [...CLOSING, ...headers], body }
}

/** Half of them deliveries, a quarter orders, the rest what people and probes read. */
export function templateOf(random: () => number, keys: Keys, id: string): Template {
  if (random() < 0.5) return delivery(keys, id)
  if (random() < 0.5) return order(keys, id)
  const target = READS[Math.floor(random() * READS.length)] ?? '/'
  const token = target.includes('listings') || target.includes('cancel') ? keys.store : keys.viewer
  const method = target.includes('cancel') ? 'POST' : 'GET'
  return { method, target, headers: [...CLOSING, ...bearer(token)], body: Buffer.alloc(0) }
}

const CLOSING: HeaderLine[] = [
  ['host', 'quayside.test'],
  ['connection', 'close'],
]
const bearer = (token: string): HeaderLine[] => [['authorization', `Bearer ${token}`]]
const READS = [
  '/livez',
  '/readyz',
  '/metrics',
  `${ORDERS}?limit=10`,
  `${ORDERS}/1`,
  `${ORDERS}/1/cancel`,
  '/api/v1/listings?limit=10',
  '/api/v1/status',
  '/api/v1/purchases?state=planned',
  '/api/v1/deliveries?limit=1',
  '/api/v1/outbox',
  '/api/v1/sync/runs',
  '/api/v1/openapi.json',
]
