/** Deliveries as a supplier sends them, signed by a few lines of their own: they cannot agree with a bug of the reader. */
import { createHmac } from 'node:crypto'
import { type Dialect, readDialect } from '../../src/dialect/dialect.ts'
import { TEST_NOW } from './database.ts'

export const DIALECT: Dialect = readDialect(new URL('../../config/dialects/reseller-v1.1.json', import.meta.url))

export const SECRET = 'whsec_test_0123456789abcdef0123456789abcdef'

export type HeaderLine = [name: string, value: string]

export interface SignedDelivery {
  headers: HeaderLine[]
  body: Buffer
}

export interface DeliveryParts {
  dialect?: Dialect
  secret?: string
  /** The timestamp as it is written; that of TEST_NOW unless said. */
  timestamp?: string
  /** Payload: bytes, a text or what becomes JSON. */
  body?: Buffer | string | object
  /** null: without the header. */
  deliveryId?: string | null
}

/** A valid delivery of `order.completed` for `ord_1`, but for what is said. */
export function signedDelivery(parts: DeliveryParts = {}): SignedDelivery {
  const { dialect = DIALECT, secret = SECRET, body: payload = orderEvent(), deliveryId = 'dlv_1' } = parts
  const { signature: layout } = dialect
  const timestamp = parts.timestamp ?? timestampOf(TEST_NOW, dialect)
  const body = bytesOf(payload)
  const encoded = layout.prefix + mac(secret, timestamp, body).toString(layout.encoding)
  const headers: HeaderLine[] =
    layout.timestamp.in === 'header'
      ? [
          [layout.header, encoded],
          [layout.timestamp.header, timestamp],
        ]
      : [[layout.header, `${layout.timestamp.field}=${timestamp},${encoded}`]]
  if (layout.deliveryIdHeader !== null && deliveryId !== null) headers.push([layout.deliveryIdHeader, deliveryId])
  return { headers, body }
}

/** HMAC-SHA256 over `timestamp.body`. */
export const mac = (secret: string, timestamp: string, body: Buffer): Buffer =>
  createHmac('sha256', secret)
    .update(Buffer.from(`${timestamp}.`, 'latin1'))
    .update(body)
    .digest()

export const timestampOf = (ms: number, dialect: Dialect = DIALECT): string =>
  String(dialect.signature.timestampUnit === 's' ? Math.floor(ms / 1_000) : ms)

/** In every payload: must come back in no answer and no log line. */
export const MARKER = 'marker-5f1c9e'

export const orderEvent = (data: Record<string, unknown> = {}, event = 'order.completed') => ({
  event,
  created_at: '2023-11-14T22:13:20Z',
  data: { order_id: 'ord_1', external_order_id: 'ref_1', status: 'completed', note: MARKER, ...data },
})

export const bytesOf = (body: Buffer | string | object): Buffer =>
  Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
