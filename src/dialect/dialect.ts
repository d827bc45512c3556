/** Parts of the shape of a dialect: what a path, a header or an amount of it may be. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { Failure } from '../errors.ts'

export const path = z.string().regex(/^$|^[^.]+(\.[^.]+)*$/, 'a dotted path')
export const parameter = z.string().min(1)
export const header = z.string().regex(/^[a-z0-9-]+$/, 'a header name in lower case')
export const seconds = z.number().int().positive()
/** The supplier's words for yes and no, numbers as text. Null: JSON true and false. */
export const flagWords = z.record(z.string().min(1), z.boolean()).nullable()

export const errorStatus = z
  .number()
  .int()
  .min(200)
  .max(599)
  .refine((status) => status < 300 || status >= 400, 'must be 200 to 299 or 400 to 599')

/**
 * How amounts are written. `decimal`: text "12.99"; `number`: 12.99; `minor`: 1299.
 *
 * An object with a whole amount and an exponent: the paths of the two in it, and what the exponent counts. `decimals`:
 * 15270 and 3 are 15.27. `power_of_ten`: 15270 and -3 are.
 */
export const moneyRepresentation = z.union([
  z.enum(['decimal', 'number', 'minor']),
  z.strictObject({ amount: path.min(1), exponent: path.min(1), counts: z.enum(['decimals', 'power_of_ten']) }),
])

/**
 * The dialect: every fact that the Reseller API v1.1 leaves open, as data.
 *
 * A supplier is fitted by a file in `config/dialects`, never by code. Paths are dotted (`data.order_id`); an empty path
 * is the value itself. `null` says that the supplier has no such thing.
 */

/** The error kinds that Quayside tells apart; what each means for money is in `supplier/classify`. */
export const errorKinds = [
  'invalid',
  'unauthenticated',
  'forbidden',
  'not_found',
  'gone',
  'key_reused',
  'in_progress',
  'out_of_stock',
  'insufficient_balance',
  'limit_exceeded',
  'rate_limited',
  'internal',
  'unavailable',
] as const
export type ErrorKind = (typeof errorKinds)[number]

/** The six events of the API, by the names that Quayside uses. */
export const eventNames = [
  'order.completed',
  'order.failed',
  'product.restocked',
  'product.out_of_stock',
  'product.price_changed',
  'balance.low',
] as const
export type EventName = (typeof eventNames)[number]

/** An order of the supplier, in our words: money is still moving, keys are due, nothing was bought, or it came back. */
export type OrderStatus = 'open' | 'completed' | 'failed' | 'refunded'

const shape = z.strictObject({
  /** Name of the file without its ending. */
  name: z.string().min(1),
  /** What the file is for, in a sentence for people. */
  about: z.string().min(1),
  /** Header names, lower case. */
  headers: z.strictObject({
    apiKey: header,
    idempotencyKey: header,
    requestId: header,
    rateLimit: header,
    rateRemaining: header,
    rateReset: header,
    retryAfter: header,
  }),
  /** What the reset header counts: an instant in seconds or milliseconds, or the seconds that are left. */
  rateResetUnit: z.enum(['epoch_s', 'epoch_ms', 'left_s']),
  signature: z.strictObject({
    header,
    encoding: z.enum(['hex', 'base64', 'base64url']),
    /** Text before the signature, such as `v1=`; empty for none. */
    prefix: z.string(),
    /** What parts the pieces of the signature header. Null: one signature, or a comma with the timestamp inside. */
    separator: z.enum([',', ';', ' ']).nullish(),
    /** Where the timestamp is: a header of its own, or a `name=value` pair inside the signature header. */
    timestamp: z.discriminatedUnion('in', [
      z.strictObject({ in: z.literal('header'), header }),
      z.strictObject({ in: z.literal('signature'), field: z.string().regex(/^[a-z]+$/) }),
    ]),
    timestampUnit: z.enum(['s', 'ms']),
    toleranceSeconds: seconds,
    /** Header of the delivery ID; null when there is none: the digest of what was signed stands for it. */
    deliveryIdHeader: header.nullable(),
  }),
  /** Paths in the payload of an event. */
  event: z.strictObject({
    name: path,
    occurredAt: path.nullable(),
    /** One of the two joins an event to an order of ours. */
    orderId: path.nullable(),
    externalOrderId: path.nullable(),
    status: path.nullable(),
    /** Null: events do not say which product changed, and are ignored; the next sync run reads what changed. */
    productId: path.nullable(),
    /** Our event name -> the supplier's, null where it sends no such event. */
    names: z.record(z.enum(eventNames), z.string().min(1).nullable()),
    /** Where payloads carry licence keys, or null. Read by nobody: an order is always read again by GET. */
    keys: path.nullable(),
  }),
  /** Path of an event's ID in its payload: tells deliveries apart where no header does. Null where there is none. */
  eventId: path.nullable(),
  /** Envelope of a success: path of its flag (null: none) and of what it wraps. */
  envelope: z.strictObject({ success: path.nullable(), data: path }),
  /** Envelope of an error. */
  error: z.strictObject({ success: path.nullable(), code: path, message: path, requestId: path }),
  /**
   * Error kind -> the supplier's codes for it (the sandbox answers the first) and the HTTP status: 200 where the
   * supplier refuses with a success of HTTP and says so only in the body. Null where it has no code for it.
   */
  errors: z.record(
    z.enum(errorKinds),
    z.strictObject({ codes: z.array(z.string().min(1)).min(1), status: errorStatus }).nullable(),
  ),
  money: z.strictObject({
    representation: moneyRepresentation,
    /** Currency where a record names none, ISO 4217. */
    currency: z.string().regex(/^[A-Z]{3}$/),
  }),
  /** How fields that mean yes or no are written: the word of the supplier -> true or false. Null: JSON true and false. */
  flags: z.strictObject({
    /** At `envelope.success` and `error.success`. */
    success: flagWords,
    /** At `paging.more`. */
    more: flagWords,
    /** At `product.available`. */
    available: flagWords,
    /** In the parameter `products.inStock`; null sends `true` and `false`. */
    inStock: flagWords,
  }),
  /** How instants are written, in records and parameters alike. */
  instants: z.enum(['iso', 'epoch_s', 'epoch_ms']),
  paging: z.strictObject({
    page: parameter,
    limit: parameter,
    /** Number of the first page. */
    first: z.number().int().min(0),
    limitMax: z.number().int().positive(),
    limitDefault: z.number().int().positive(),
    /** Path of the items inside the page. */
    items: path,
    /** Path of the count of all items, or null. */
    total: path.nullable(),
    /** Path of a flag that says whether another page follows, or null. */
    more: path.nullable(),
    /** Whether the count is of the filtered list. False: of all records, whatever the filters are. */
    totalFiltered: z.boolean(),
    /** Where the supplier's lists end, in records: what is behind is not shown. Null: they are not known to end. */
    listMax: z.number().int().positive().nullable(),
  }),
  lists: z.strictObject({
    /** Where a page is, when `envelope.data` does not wrap it: its path, empty for the answer itself. Null: as records. */
    data: path.nullable(),
    /** Path of the items of GET /webhooks; null where `paging.items` is that of every list. */
    webhooks: path.nullable(),
  }),
  /** Names of the filter parameters of GET /products, or null. */
  products: z.strictObject({
    search: parameter.nullable(),
    category: parameter.nullable(),
    inStock: parameter.nullable(),
  }),
  product: z.strictObject({
    id: path,
    sku: path,
    name: path,
    category: path.nullable(),
    /** The API/VIP price: what a purchase costs us. */
    cost: path,
    basePrice: path.nullable(),
    cashback: path.nullable(),
    currency: path.nullable(),
    localStock: path.nullable(),
    providerStock: path.nullable(),
    available: path,
    origin: path.nullable(),
    updatedAt: path.nullable(),
  }),
  /** `promise`: more units than the stock figures say are never sold. `hint`: they are; only a figure of none means none. */
  stock: z.enum(['promise', 'hint']),
  orderRequest: z.strictObject({ productId: parameter, quantity: parameter, externalOrderId: parameter }),
  /** Request fields that the supplier insists on, by our names. Quayside always sends all three. */
  orderRequired: z.array(z.enum(['productId', 'quantity', 'externalOrderId'])),
  /** Most units in one order; a larger line is split into parts. */
  quantityMax: z.number().int().positive(),
  /** Longest external reference; a longer one ends in a digest. */
  externalOrderIdMax: z.number().int().min(64),
  order: z.strictObject({
    id: path,
    externalOrderId: path,
    productId: path.nullable(),
    quantity: path.nullable(),
    status: path,
    amount: path.nullable(),
    currency: path.nullable(),
    keys: path,
    /** Path of the text inside one key; null when a key is plain text. */
    keyText: path.nullable(),
    failureCode: path.nullable(),
    failureMessage: path.nullable(),
    createdAt: path.nullable(),
    updatedAt: path.nullable(),
  }),
  /** The supplier's status word -> ours. An unlisted word counts as open. */
  orderStatuses: z.record(z.string(), z.enum(['open', 'completed', 'failed', 'refunded'])),
  /** Names of the filters of GET /orders; null where there is none: Quayside then pages through. */
  orders: z.strictObject({
    externalOrderId: parameter.nullable(),
    status: parameter.nullable(),
    from: parameter.nullable(),
    to: parameter.nullable(),
  }),
  balance: z.strictObject({
    amount: path,
    currency: path.nullable(),
    tier: path.nullable(),
    requestsPerMinute: path.nullable(),
    quantityMax: path.nullable(),
  }),
  webhookRequest: z.strictObject({ url: path, events: path }),
  webhook: z.strictObject({ id: path, url: path, events: path, secret: path, createdAt: path.nullable() }),
  openapiNeedsKey: z.boolean(),
  /** How long an idempotency key is remembered. 3600 where the supplier does not say. */
  idempotencyMemorySeconds: seconds,
  /** A request that left us has run by then, or never will. */
  settleSeconds: z.number().positive(),
  /** An order shows in GET /orders by then after it ran. */
  listLagSeconds: z.number().positive(),
  /** Absence is believed from two scans this far apart. */
  scanGapSeconds: z.number().positive(),
})

const FLAGLESS = 'an error that comes as HTTP 200 needs error.success, the flag that tells it from a success'

/** Every field, and what fields say together. */
export const dialectShape = shape.superRefine(({ error, errors, event, flags }, context) => {
  const fault = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message })
  const kinds = new Map<string, ErrorKind>()
  for (const kind of errorKinds) {
    for (const [place, code] of (errors[kind]?.codes ?? []).entries()) {
      const other = kinds.get(code)
      // Which of the two it means decides about money: it must not hang on the order of a list.
      if (other !== undefined) fault(['errors', kind, 'codes', place], `the code ${code} is listed under ${other} too`)
      kinds.set(code, kind)
    }
    if ((errors[kind]?.status ?? 400) >= 300) continue
    if (kind === 'rate_limited') fault(['errors', kind, 'status'], 'the API says that the rate limit is HTTP 429')
    else if (error.success === null) fault(['errors', kind, 'status'], FLAGLESS)
  }
  const names = new Map<string, EventName>()
  for (const name of eventNames) {
    const word = event.names[name]
    if (word === null) continue
    const other = names.get(word)
    if (other !== undefined) fault(['event', 'names', name], `the name ${word} is that of ${other} too`)
    names.set(word, name)
  }
  const ofOrders = event.names['order.completed'] !== null || event.names['order.failed'] !== null
  if (ofOrders && event.orderId === null && event.externalOrderId === null) {
    fault(['event', 'orderId'], 'an event of an order needs this path, or that of its external reference')
  }
  for (const [field, words] of Object.entries(flags)) {
    for (const meaning of words === null ? [] : [true, false]) {
      if (!Object.values(words ?? {}).includes(meaning)) fault(['flags', field], `no word means ${meaning}`)
    }
  }
})

export type Dialect = z.infer<typeof dialectShape>
export type FlagWords = Dialect['flags']['success']

/**
 * Reads a dialect file.
 *
 * @throws Failure `invalid`, naming every field that is wrong
 */
export function readDialect(file: string | URL): Dialect {
  let json: unknown
  try {
    json = JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new Failure('invalid', `the dialect file ${String(file)} cannot be read`, { cause })
  }
  const result = dialectShape.safeParse(json)
  if (result.success) return result.data
  const fields = result.error.issues.map((issue) => ({ field: issue.path.join('.'), message: issue.message }))
  const list = fields.map((fault) => `${fault.field}: ${fault.message}`).join('; ')
  throw new Failure('invalid', `the dialect file ${String(file)} has faults: ${list}`, { fields })
}

/** Values at the dotted paths of a dialect, and yes or no in its words. */

/** The value at a dotted path; undefined where the way there ends. Own properties only. */
export function valueAt(record: unknown, dotted: string): unknown {
  if (dotted === '') return record
  let value = record
  for (const key of dotted.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

/** The path of the object that a value stands in; that of a record's own field is the record. */
export const parentOf = (dotted: string): string => dotted.slice(0, Math.max(0, dotted.lastIndexOf('.')))

/** How the supplier writes yes or no: the first word that the dialect lists. */
export function flagValue(words: Record<string, boolean> | null, flag: boolean): boolean | string {
  if (words === null) return flag
  return Object.keys(words).find((word) => words[word] === flag) ?? String(flag)
}

/** Writes a value at a dotted path, making the objects on the way. The paths come from a dialect, never from input. */
export function putAt(record: Record<string, unknown>, dotted: string, value: unknown): void {
  const keys = dotted.split('.')
  const last = keys.pop() as string
  let place = record
  for (const key of keys) {
    const next = Object.hasOwn(place, key) ? place[key] : undefined
    const inner = typeof next === 'object' && next !== null ? (next as Record<string, unknown>) : {}
    place[key] = inner
    place = inner
  }
  place[last] = value
}
