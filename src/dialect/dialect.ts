/**
 * The dialect: every fact that the Reseller API v1.1 leaves open, as data.
 *
 * A file in `config/dialects` fits Quayside to a supplier; code never does. Paths are dotted (`data.order_id`); an empty path is
 * the value itself. `null` means that the supplier has no such thing.
 */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { type EventName, eventNames, type OrderStatus, orderStatuses } from '../domain/supplier.ts'
import { Failure, messageOf } from '../errors.ts'

export const path = z.string().regex(/^$|^[^.]+(\.[^.]+)*$/, 'a dotted path')
export const parameter = z.string().min(1)
export const header = z.string().regex(/^[a-z0-9-]+$/, 'a header name in lower case')
export const seconds = z.number().int().positive()
/** The supplier's words for yes and no; a number is written as text. Null: the supplier writes JSON true and false. */
const flagWords = z.record(z.string().min(1), z.boolean()).nullable()

const errorStatus = z
  .number()
  .int()
  .min(200)
  .max(599)
  .refine((status) => status < 300 || status >= 400, 'must be 200 to 299 or 400 to 599')

/**
 * How amounts are written. `decimal`: text "12.99"; `number`: 12.99; `minor`: 1299.
 *
 * If the supplier writes an object with a whole amount and an exponent, this setting has the two paths in the object. It also says
 * what the exponent counts. `decimals`: 15270 and 3 are 15.27. `power_of_ten`: 15270 and -3 are 15.27.
 */
const moneyRepresentation = z.union([
  z.enum(['decimal', 'number', 'minor']),
  z.strictObject({ amount: path.min(1), exponent: path.min(1), counts: z.enum(['decimals', 'power_of_ten']) }),
])

/** The error kinds that Quayside distinguishes; `supplier/classify` says what each means for money. */
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

/** Words that Quayside and a dialect share: the events, and the states of a supplier order. */
export { type EventName, eventNames, type OrderStatus }

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
    /** The separator in the signature header. Null: a comma if the header has the timestamp too, else there is one signature. */
    separator: z.enum([',', ';', ' ']).nullish(),
    /** Where the timestamp is: a header of its own, or a `name=value` pair inside the signature header. */
    timestamp: z.discriminatedUnion('in', [
      z.strictObject({ in: z.literal('header'), header }),
      z.strictObject({ in: z.literal('signature'), field: z.string().regex(/^[a-z]+$/) }),
    ]),
    timestampUnit: z.enum(['s', 'ms']),
    toleranceSeconds: seconds,
    /** Header of the delivery ID. Null: the ID of the event is used, or else the digest of the signed bytes. */
    deliveryIdHeader: header.nullable(),
  }),
  /** Paths in the payload of an event. */
  event: z.strictObject({
    name: path,
    occurredAt: path.nullable(),
    /** One of these two identifies our order. */
    orderId: path.nullable(),
    externalOrderId: path.nullable(),
    status: path.nullable(),
    /** Null: events do not name the changed product. Quayside then ignores them, and the next sync run reads the change. */
    productId: path.nullable(),
    /** Our name of an event -> the supplier's name of it; null where the supplier sends no such event. */
    names: z.record(z.enum(eventNames), z.string().min(1).nullable()),
    /** Path of the licence keys in a payload, or null. Quayside takes no keys from there: it always reads the order by GET. */
    keys: path.nullable(),
  }),
  /** Path of an event's ID in its payload. It identifies a delivery without an ID header. Null: payloads have no ID. */
  eventId: path.nullable(),
  /** Envelope of a success: the path of its flag (null: it has no flag), and the path of its content. */
  envelope: z.strictObject({ success: path.nullable(), data: path }),
  error: z.strictObject({ success: path.nullable(), code: path, message: path, requestId: path }),
  /**
   * Error kind -> the supplier's codes for it (the sandbox answers the first code) and the HTTP status. The status is 200 when the
   * supplier refuses with an HTTP success and says so only in the body. Null: the supplier has no code for the kind.
   */
  errors: z.record(
    z.enum(errorKinds),
    z.strictObject({ codes: z.array(z.string().min(1)).min(1), status: errorStatus }).nullable(),
  ),
  money: z.strictObject({
    representation: moneyRepresentation,
    /** Currency of a record that names no currency, ISO 4217. */
    currency: z.string().regex(/^[A-Z]{3}$/),
  }),
  /** How yes-or-no fields are written: the supplier's word -> true or false. Null: JSON true and false. */
  flags: z.strictObject({
    /** How the fields `envelope.success` and `error.success` write yes and no. */
    success: flagWords,
    /** How the field `paging.more` writes yes and no. */
    more: flagWords,
    /** How the field `product.available` writes yes and no. */
    available: flagWords,
    /** How the parameter `products.inStock` writes yes and no; null sends `true` and `false`. */
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
    /** True: the count is of the filtered list. False: the count is of all records, whatever the filters. */
    totalFiltered: z.boolean(),
    /** How many records the supplier's lists show at most. Null: no limit is known. */
    listMax: z.number().int().positive().nullable(),
  }),
  lists: z.strictObject({
    /** Path of a page in the answer; empty for the answer itself. Null: a page is at `envelope.data`, as a record is. */
    data: path.nullable(),
    /** Path of the items of GET /webhooks; null when `paging.items` is the path in every list. */
    webhooks: path.nullable(),
  }),
  /** Names of the filter parameters of GET /products; null where there is no such filter. */
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
    /** A store that lacks the product creates it with these two fields. A dialect file may leave both out. */
    description: path.nullable().default(null),
    image: path.nullable().default(null),
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
  /** `promise`: the supplier never sells more units than its stock figures say. `hint`: it may sell more, but none at zero. */
  stock: z.enum(['promise', 'hint']),
  orderRequest: z.strictObject({ productId: parameter, quantity: parameter, externalOrderId: parameter }),
  /** Request fields that the supplier requires, by our names. Quayside always sends all three. */
  orderRequired: z.array(z.enum(['productId', 'quantity', 'externalOrderId'])),
  /** Most units in one order; a larger line is split into parts. */
  quantityMax: z.number().int().positive(),
  /** Longest external reference; a longer reference is shortened and ends in a digest. */
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
  orderStatuses: z.record(z.string(), z.enum(orderStatuses)),
  /** Names of the filters of GET /orders; null where there is no such filter: Quayside then reads the whole list. */
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
  /** How long the supplier remembers an idempotency key; 3600 where the supplier does not say. */
  idempotencyMemorySeconds: seconds,
  /** After this time, a sent request has run or never will. */
  settleSeconds: z.number().positive(),
  /** An order shows in GET /orders at most this long after its request ran. */
  listLagSeconds: z.number().positive(),
  /** The two scans that prove an order absent are this far apart. */
  scanGapSeconds: z.number().positive(),
})

const FLAGLESS = 'an error that comes as HTTP 200 needs error.success, the flag that marks it as an error'

/** Every field, and the rules between fields. */
export const dialectShape = shape.superRefine(({ error, errors, event, flags }, context) => {
  const fault = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message })
  const kinds = new Map<string, ErrorKind>()
  for (const kind of errorKinds) {
    for (const [index, code] of (errors[kind]?.codes ?? []).entries()) {
      const other = kinds.get(code)
      // The kind of an error decides about money: it must not depend on the order in which the kinds are tried.
      if (other !== undefined) fault(['errors', kind, 'codes', index], `the code ${code} is listed under ${other} too`)
      kinds.set(code, kind)
    }
    if ((errors[kind]?.status ?? 400) >= 300) continue
    if (kind === 'rate_limited') fault(['errors', kind, 'status'], 'the API says that the rate limit is HTTP 429')
    else if (error.success === null) fault(['errors', kind, 'status'], FLAGLESS)
  }
  for (const [place, name] of eventNames.entries()) {
    const word = event.names[name]
    const other = eventNames.slice(0, place).findLast((earlier) => event.names[earlier] === word)
    if (word !== null && other) fault(['event', 'names', name], `the name ${word} is that of ${other} too`)
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
 * @throws Failure `invalid` with every wrong field
 */
export function readDialect(file: string | URL): Dialect {
  let json: unknown
  try {
    json = JSON.parse(readFileSync(file, 'utf8').replace(/^\ufeff/, ''))
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw new Failure('invalid', messageOf(cause, String(file)), { cause })
    throw new Failure('invalid', `the dialect file ${String(file)} is not JSON: ${cause.message}`, { cause })
  }
  const result = dialectShape.safeParse(json)
  if (result.success) return result.data
  const fields = result.error.issues.map((issue) => ({ field: issue.path.join('.'), message: issue.message }))
  const list = fields.map((fault) => `${fault.field}: ${fault.message}`).join('; ')
  throw new Failure('invalid', `the dialect file ${String(file)} has faults: ${list}`, { fields })
}

/* Values at the dotted paths of a dialect, and its words for yes and no. */

/** The value at a dotted path; undefined when a part of the path is missing. Own properties only. */
export function valueAt(record: unknown, dotted: string): unknown {
  if (dotted === '') return record
  let value = record
  for (const key of dotted.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

/** The path of the object that contains a value; empty for a field of the record itself. */
export const parentOf = (dotted: string): string => dotted.slice(0, Math.max(0, dotted.lastIndexOf('.')))

/** Returns the supplier's word for yes or no: the first such word in the dialect. */
export function flagValue(words: Record<string, boolean> | null, flag: boolean): boolean | string {
  if (words === null) return flag
  return Object.keys(words).find((word) => words[word] === flag) ?? String(flag)
}

/** Writes a value at a dotted path and makes missing objects. The paths come from a dialect, never from input. */
export function putAt(record: Record<string, unknown>, dotted: string, value: unknown): void {
  const keys = dotted.split('.')
  const last = keys.pop() as string
  let parent = record
  for (const key of keys) {
    const next = Object.hasOwn(parent, key) ? parent[key] : undefined
    const inner = typeof next === 'object' && next !== null ? (next as Record<string, unknown>) : {}
    parent[key] = inner
    parent = inner
  }
  parent[last] = value
}
