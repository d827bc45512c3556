/**
 * `quayside/callbacks`: what a store's backend needs to receive callbacks. It needs nothing but Node, so that a backend can use it
 * without the rest of the program.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

interface OfOrder {
  /** Id of the store. */
  store: string
  /** The store's own number of the order. */
  reference: string
}

interface OfLine extends OfOrder {
  /** The store's own id of the line. */
  line: string
  /** As the store wrote it. */
  sku: string
  /** `line.fulfilled`: units of the line. Other types: the units that the callback is about. */
  quantity: number
}

export interface CallbackListing {
  id: string
  sku: string
  name: string
  category: string | null
  /** Amounts are decimal text, such as `24.90`. */
  price: string
  compareAt: string | null
  /** ISO 4217. */
  currency: string
  /** Null: the stock is not counted. */
  stock: number | null
  available: boolean
  /** The larger one is newer, in any order of arrival. */
  revision: number
}

/** The `data` of each type of callback. Later versions may add types, fields and words. */
export interface CallbackData {
  'line.fulfilled': OfLine & {
    /** The licence keys that this callback hands over. Each key is in one callback only. */
    keys: string[]
    /** Units of the line that have a key so far, these included. */
    delivered: number
    /** No more are to come. */
    complete: boolean
    /** The page on which the customer opens the keys. Absent where the service has no public address. */
    keysUrl?: string
    /** The keys come in place of keys that do not work, and bring no unit. */
    replaces?: true
  }
  'line.failed': OfLine & { state: 'failed' | 'cancelled'; code: string; message: string; advice: string }
  'line.held': OfLine & { reason: string; message: string; keysUrl?: string }
  'line.resumed': OfLine
  'order.closed': OfOrder & { state: 'fulfilled' | 'partly_fulfilled' | 'failed' | 'cancelled'; keysUrl?: string }
  'listings.changed': { listings: CallbackListing[] }
  /** `quayside stores test` sends it. */
  test: Record<string, never>
}

interface CallbackOf<Type extends keyof CallbackData> {
  /** The same at each repeat: keep the ids that you have seen. */
  id: string
  type: Type
  /** When the callback was made, ISO 8601 in UTC. */
  timestamp: string
  /** True for an example, of which nothing is to be stored. */
  test?: boolean
  data: CallbackData[Type]
}

export type Callback = { [Type in keyof CallbackData]: CallbackOf<Type> }[keyof CallbackData]

/** The callback is not from Quayside, or cannot be read. Answer 401. */
export class CallbackRefused extends Error {
  override name = 'CallbackRefused'
  /** `headers`: one is absent. `timestamp`: it is too old or too new. `signature`: none matches. `body`: it is no callback. */
  readonly reason: 'headers' | 'timestamp' | 'signature' | 'body'

  constructor(reason: CallbackRefused['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** Our own secrets have 32 bytes. Standard Webhooks takes 24 and more. */
const KEY_BYTES_MIN = 24

type Headers = { get(name: string): string | null } | Record<string, string | string[] | undefined>

/**
 * Verifies a callback and returns it.
 *
 * @param secret the text `whsec_…` of the store; several while the store takes a new secret into use
 * @param headers of the request: those of Node, or those of `fetch`
 * @param body the bytes of the body as they came, before any JSON is parsed
 * @param options.now epoch milliseconds; default: the clock of this machine
 * @param options.toleranceSeconds how far the timestamp may be off; default: 300
 * @throws CallbackRefused
 * @throws TypeError for a secret that is empty or too short, as of a variable that is not set: it is not the callback's fault
 */
export function verifyCallback(
  secret: string | readonly string[],
  headers: Headers,
  body: string | Uint8Array,
  { now = Date.now(), toleranceSeconds = 300 }: { now?: number; toleranceSeconds?: number } = {},
): Callback {
  const keys = [secret].flat().map((text) => Buffer.from(text.replace(/^whsec_/, ''), 'base64'))
  // With an empty key, as of a variable that is not set, anyone can sign.
  if (keys.length === 0 || keys.some(({ length }) => length < KEY_BYTES_MIN)) {
    throw new TypeError('the secret of callbacks is `whsec_` and at least 24 bytes in base64')
  }
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    headerOf(headers, name),
  )
  if (!id || !timestamp || !signatures) {
    throw new CallbackRefused('headers', 'webhook-id, webhook-timestamp or webhook-signature is absent')
  }
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > toleranceSeconds) {
    throw new CallbackRefused('timestamp', 'webhook-timestamp is too far from the clock of this machine')
  }
  const expected = keys.map((key) =>
    Buffer.from(`v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`),
  )
  const given = signatures.split(' ').map((one) => Buffer.from(one))
  const isGenuine = expected.some((one) =>
    given.some((other) => other.length === one.length && timingSafeEqual(other, one)),
  )
  if (!isGenuine) throw new CallbackRefused('signature', 'no signature is made with a secret of this store')
  return readBody(body, id)
}

function headerOf(headers: Headers, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined
  const value = (headers as Record<string, string | string[] | undefined>)[name]
  return typeof value === 'string' ? value : undefined
}

function readBody(body: string | Uint8Array, id: string): Callback {
  try {
    const read = JSON.parse(Buffer.from(body).toString('utf8')) as Callback
    if (typeof read.type === 'string' && typeof read.data === 'object' && read.data !== null) return { ...read, id }
  } catch {
    // The text is no JSON.
  }
  throw new CallbackRefused('body', 'the body has no type and data')
}
