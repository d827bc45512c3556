/**
 * The dialect: every fact that the Reseller API v1.1 leaves open, as data.
 *
 * A file in `config/dialects` fits Quayside to a supplier; code never does. Paths are dotted (`data.order_id`); an empty path is
 * the value itself. `null` means that the supplier has no such thing.
 */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { type KeyType, keyTypes } from '../domain/licence-key.ts'
import { type EventName, eventNames, type OrderStatus, orderStatuses } from '../domain/supplier.ts'
import { Failure, messageOf } from '../errors.ts'
import { didYouMean, faultsOf, jsonLines, type PlacedFault, sayWhatIsRight } from './file-faults.ts'

export const path = z.string().regex(/^$|^[^.]+(\.[^.]+)*$/, 'a dotted path')
export const parameter = z.string().min(1)
export const header = z.string().regex(/^[a-z0-9-]+$/, 'a header name in lower case')
export const seconds = z.number().int().positive()
/** A path below the base address, such as `/v2/orders`. It may have a constant query, such as `/products?withText=yes`. */
const operation = z.string().regex(/^(\/[^/?#{}]+)+(\?[^?#{}]+)?$/, 'a path that begins with /, without {}')
/** The path of one record: `{id}` is where its id goes. */
const record = z
  .string()
  .regex(/^(\/([^/?#{}]+|\{id\}))+(\?[^?#{}]+)?$/, 'a path that begins with /, with {id} in place of the id')
  .refine((text) => text.split('{id}').length === 2, 'must have {id} once')
/** What people call a part of a key. */
const label = z.string().regex(/^[^:\p{C}]{1,40}$/u, 'a short name without a colon')
const currency = z.string().regex(/^[A-Z]{3}$/)
/** The supplier's words for yes and no; a number is written as text. Null: the supplier writes JSON true and false. */
const flagWords = z.record(z.string().min(1), z.boolean()).nullable()

const errorStatus = z
  .number()
  .int()
  .min(200)
  .max(599)
  .refine((status) => status < 300 || status >= 400, 'must be 200 to 299 or 400 to 599')

/**
 * How amounts are written. `decimal`: text "12.99"; `number`: 12.99; `number_or_decimal`: both alike; `minor`: 1299. Of an object
 * with a whole amount and an exponent: both paths. `decimals`: 15270 and 3 are 15.27. `power_of_ten`: 15270 and -3 are 15.27.
 */
const moneyRepresentation = z.union([
  z.enum(['decimal', 'number', 'number_or_decimal', 'minor']),
  z.strictObject({ amount: path.min(1), exponent: path.min(1), counts: z.enum(['decimals', 'power_of_ten']) }),
])

/** The credentials of a request. A template has `{apiKey}`, the whole API key, or the parts of an `id:secret`: `{id}`, `{secret}`. */
const auth = z.discriminatedUnion('kind', [
  /** Constant headers, such as `"authorization": "Bearer {apiKey}"`. */
  z.strictObject({ kind: z.literal('header'), headers: z.record(header, z.string().min(1)) }),
  /** HTTP Basic. The API key is `user:password`. */
  z.strictObject({ kind: z.literal('basic') }),
  /** OAuth2: the API key, `id:secret`, is exchanged for a token that ends. */
  z.strictObject({
    kind: z.literal('oauth2_client_credentials'),
    /** The address of the token: a path below the base address, or a whole https address. */
    token: z.union([operation, z.url().regex(/^https:|^http:\/\/(127\.|localhost\b)/, 'a path, or an https address')]),
    /** How the request carries its fields. */
    send: z.enum(['form', 'json', 'query']).default('form'),
    /** Where the client's id and secret are: among the fields, or in a header of HTTP Basic. */
    credentials: z.enum(['fields', 'basic']).default('fields'),
    scope: z.string().min(1).nullable().default(null),
    /** Further constant fields of the request, such as `audience`. */
    fields: z.record(parameter, z.string()).default({}),
    /** Paths of the token, and of how many seconds it lasts, in the answer. */
    accessToken: path.default('access_token'),
    expiresIn: path.default('expires_in'),
    /** A token is renewed so long before it ends. */
    renewBeforeSeconds: z.number().int().min(0).default(60),
  }),
])

/** The values of an order in `orderBody`. The price is that of one unit, as the offer states it, written as `money` says. */
export const placeholders = [
  ...(['{productId}', '{productId:number}', '{quantity}', '{quantity:text}', '{price}'] as const),
  ...(['{price:text}', '{price:number}', '{currency}', '{reference}', '{key}'] as const),
] as const
export type Placeholder = (typeof placeholders)[number]

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

const errorFacts = z.strictObject({ codes: z.array(z.string().min(1)).min(1), status: errorStatus }).nullable()

/** Words that Quayside and a dialect share: the events, and the states of a supplier order. */
export { type EventName, eventNames, type OrderStatus }

/** What `signature.string` is where nothing is signed, and the header has the secret itself. */
export const SECRET_ALONE = 'secret'

const shape = z.strictObject({
  /** Name of the file without its ending. */
  name: z.string().min(1),
  /** What the file is for, in a sentence for people. */
  about: z.string().min(1),
  /** Where each operation is, below the base address. Left out: as in the Reseller API v1.1, and the base address ends in `/v1`. */
  paths: z
    .strictObject({
      products: operation,
      product: record,
      placeOrder: operation,
      orders: operation,
      order: record,
      balance: operation,
      /** Null: webhooks are made in the supplier's dashboard. */
      webhooks: operation.nullable(),
      openapi: operation.nullable(),
    })
    .optional(),
  /** Header names, lower case. */
  headers: z.strictObject({
    /** Left out where `auth` says how a request carries the credentials. */
    apiKey: header.default(''),
    /** Left out where `idempotency` is not `header`. */
    idempotencyKey: header.default(''),
    requestId: header,
    rateLimit: header,
    rateRemaining: header,
    rateReset: header,
    retryAfter: header,
  }),
  /** Headers of every request with their values, such as the version of the API. */
  constantHeaders: z.record(header, z.string().regex(/^[\x20-\x7e]{1,500}$/, 'visible ASCII')).optional(),
  /** How a request carries the credentials. Left out: the API key alone, in `headers.apiKey`. */
  auth: auth.optional(),
  /** What the reset header counts: an instant in seconds or milliseconds, or the seconds that are left. */
  rateResetUnit: z.enum(['epoch_s', 'epoch_ms', 'left_s']),
  signature: z.strictObject({
    header,
    /** What is signed; left out: `{timestamp}.{body}`. `secret`: nothing is, the header has the secret itself. */
    string: z.enum(['{timestamp}.{body}', '{body}', '{id}.{timestamp}.{body}', SECRET_ALONE]).optional(),
    /** The digest of the MAC; left out: SHA-256. */
    mac: z.enum(['sha256', 'sha512']).optional(),
    /** How the secret is written; left out: its UTF-8 bytes are the key. `base64`: its decoded bytes are, a `whsec_` before it left out. */
    secret: z.enum(['utf8', 'base64']).optional(),
    encoding: z.enum(['hex', 'base64', 'base64url']),
    /** Text before the signature, such as `v1=`; empty for none. */
    prefix: z.string(),
    /** The separator in the signature header. Null: a comma if the header has the timestamp too, else there is one signature. */
    separator: z.enum([',', ';', ' ']).nullish(),
    /** A header of its own, or a `name=value` pair inside the signature header. An empty header: no timestamp is signed. */
    timestamp: z
      .discriminatedUnion('in', [
        z.strictObject({ in: z.literal('header'), header: header.or(z.literal('')) }),
        z.strictObject({ in: z.literal('signature'), field: z.string().regex(/^[a-z]+$/) }),
      ])
      .default({ in: 'header', header: '' }),
    timestampUnit: z.enum(['s', 'ms', 'iso']),
    toleranceSeconds: seconds,
    /** Header of the delivery ID. Null: the ID of the event is used, or else the digest of the signed bytes. */
    deliveryIdHeader: header.nullable(),
  }),
  /** Paths in the payload of an event. */
  event: z.strictObject({
    name: path.default(''),
    /** The header that has the event's name; left out: it is in the payload, at `name`. */
    header: header.optional(),
    occurredAt: path.nullable(),
    /** One of these two identifies our order. */
    orderId: path.nullable(),
    externalOrderId: path.nullable(),
    status: path.nullable(),
    /** Null: events do not name the changed product. Quayside then ignores them, and the next sync run reads the change. */
    productId: path.nullable(),
    /** Our name of an event -> the supplier's name of it; null where the supplier sends no such event. */
    names: z.record(z.enum(eventNames), z.string().min(1).nullable()),
    /** What the supplier takes for a receipt; left out: any 2xx. `empty`: only a 2xx without a body, so 204 is answered. */
    answer: z.literal('empty').optional(),
    /** Path of the licence keys in a payload, or null. Quayside takes no keys from there: it always reads the order by GET. */
    keys: path.nullable(),
  }),
  /** Path of an event's ID in its payload. It identifies a delivery without an ID header. Null: payloads have no ID. */
  eventId: path.nullable(),
  /** Envelope of a success: the path of its flag (null: it has no flag), and the path of its content. */
  envelope: z.strictObject({ success: path.nullable(), data: path }),
  error: z.strictObject({ success: path.nullable(), code: path, message: path, requestId: path }),
  /** Error kind -> the supplier's codes for it (the sandbox answers the first), and the HTTP status. Null: it has no such code. */
  errors: z.record(z.enum(errorKinds), errorFacts),
  money: z.strictObject({
    representation: moneyRepresentation,
    /** Currency of a record that names no currency, ISO 4217. */
    currency,
  }),
  /** How yes-or-no fields are written: the supplier's word -> true or false. Null: JSON true and false. */
  flags: z.strictObject({
    /** How the fields `envelope.success` and `error.success` write yes and no. */
    success: flagWords,
    /** How the field `paging.more` writes yes and no. */
    more: flagWords,
    /** How the field `product.available` writes yes and no. `quantity`: it has a number of units, and above zero is yes. */
    available: z.union([flagWords, z.literal('quantity')]),
    /** How the parameter `products.inStock` writes yes and no; null sends `true` and `false`. */
    inStock: flagWords,
  }),
  /** How instants are written, in records and parameters alike. */
  instants: z.enum(['iso', 'epoch_s', 'epoch_ms']),
  paging: z.strictObject({
    /** What the parameter `page` takes. Left out: the number of a page. `offset`: how many records are before it; `cursor`: see `next`. */
    kind: z.enum(['page', 'offset', 'cursor']).optional(),
    /** Path of the cursor of the next page; a page without one is the last. */
    next: path.optional(),
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
    /** Path of the items of the orders; left out when it is `paging.items`. */
    orders: path.optional(),
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
  /** The three fields of POST /orders. Left out where `orderBody` is the whole body. */
  orderRequest: z
    .strictObject({ productId: parameter, quantity: parameter, externalOrderId: parameter })
    .default({ productId: '', quantity: '', externalOrderId: '' }),
  /** The whole body of POST /orders, with constants. A text that is exactly one of `placeholders` stands for that value. */
  orderBody: z.record(parameter, z.json()).optional(),
  /** What the answer to POST /orders has. Left out: the order. `id`: only its id, and the order is read before it counts as placed. */
  orderAnswer: z.enum(['order', 'id']).optional(),
  /** What keeps a repeat from buying twice; left out: the key in a header. `none`: nothing is repeated, and a person decides. */
  idempotency: z.enum(['header', 'field', 'reference', 'none']).optional(),
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
    /** Left out where `keys.path` is the second read that brings them. A path leads through lists: `items.cards`. */
    keys: path.default(''),
    /** Path of the text inside one key; null when a key is plain text. */
    keyText: path.nullable(),
    failureCode: path.nullable(),
    failureMessage: path.nullable(),
    createdAt: path.nullable(),
    updatedAt: path.nullable(),
  }),
  /** The licence keys. Left out: texts at `order.keys`. */
  keys: z
    .strictObject({
      /** The path of the second read that brings the keys of an order; null: the order has them, at `order.keys`. */
      path: record.nullable(),
      /** Whether that read takes the parameters of a page; the keys are then read page by page. */
      paged: z.boolean().default(false),
      /** Path of the keys in the answer of that read. */
      items: path.default(''),
      /** Path of the text, address or content of one key. `order.keyText` is left at null then. */
      text: path.default(''),
      /** What every key is, or where a key says what it is, in the supplier's words. A word that is not listed is unreadable. */
      type: z
        .union([z.enum(keyTypes), z.strictObject({ path, words: z.record(z.string().min(1), z.enum(keyTypes)) })])
        .default('text'),
      /** The second part of a key that is a text, such as a PIN: its path in one key, and what people call the two parts. */
      second: z
        .strictObject({ path, labels: z.tuple([label, label]) })
        .nullable()
        .default(null),
    })
    .optional(),
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
  /** These two groups are left out where webhooks are made in the supplier's dashboard. */
  webhookRequest: z.strictObject({ url: path, events: path }).default({ url: '', events: '' }),
  webhook: z
    .strictObject({ id: path, url: path, events: path, secret: path, createdAt: path.nullable() })
    .default({ id: '', url: '', events: '', secret: '', createdAt: null }),
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

/** The paths of the Reseller API v1.1, for a dialect that states none. */
const V1_PATHS = {
  products: '/products',
  product: '/products/{id}',
  placeOrder: '/orders',
  orders: '/orders',
  order: '/orders/{id}',
  balance: '/balance',
  webhooks: '/webhooks',
  openapi: '/openapi',
} satisfies z.infer<typeof shape>['paths']

/** Where each operation is, below the base address. */
export const pathsOf = ({ paths }: Pick<z.infer<typeof shape>, 'paths'>): Exclude<typeof paths, undefined> =>
  paths ?? V1_PATHS

/** The two parts of an API key that is written as `id:secret`. */
export function keyParts(apiKey: string): { id: string; secret: string } {
  const colon = apiKey.indexOf(':')
  return colon < 0 ? { id: '', secret: '' } : { id: apiKey.slice(0, colon), secret: apiKey.slice(colon + 1) }
}

/** Says what is wrong with an API key that must have two parts; undefined when it is right. */
export function keyFault({ name, auth }: Pick<Dialect, 'name' | 'auth'>, apiKey: string): string | undefined {
  const templates = auth?.kind === 'header' ? Object.values(auth.headers).join() : ''
  const isPair = auth !== undefined && (auth.kind !== 'header' || /\{(id|secret)\}/.test(templates))
  const { id, secret } = keyParts(apiKey)
  if (!isPair || (id !== '' && secret !== '')) return undefined
  return `must be id:secret, as auth of the dialect ${name} needs it`
}

/** Headers that say how a request is framed. */
const WRITTEN = ['accept-encoding', 'connection', 'content-length', 'content-type', 'host', 'transfer-encoding']

/** What the keys of a supplier may be. */
export const keyTypesOf = ({ keys }: Pick<z.infer<typeof shape>, 'keys'>): KeyType[] =>
  typeof keys?.type === 'object' ? Object.values(keys.type.words) : [keys?.type ?? 'text']

/** Finds what a file must have instead of the words that it leaves out, and the words that contradict each other. */
function contradictions(dialect: z.infer<typeof shape>, fault: (at: string, message: string) => void): void {
  const { headers, auth, idempotency = 'header', orderRequest, orderBody, paging, webhook, webhookRequest } = dialect
  const { signature, event, money, keys, order, constantHeaders = {} } = dialect
  const templates = auth?.kind === 'header' ? auth.headers : {}
  if ((headers.apiKey === '') === (auth === undefined))
    fault('headers.apiKey', 'needs this header or auth, and not both')
  const stated = idempotency === 'header' ? 'stated' : 'left out'
  if ((headers.idempotencyKey === '') === (idempotency === 'header'))
    fault('headers.idempotencyKey', `must be ${stated} where idempotency is ${idempotency}`)
  for (const [name, text] of Object.entries(templates))
    if (/[{}]/.test(text.replaceAll(/\{(apiKey|id|secret)\}/g, '')))
      fault(`auth.headers.${name}`, 'may have {apiKey}, {id} and {secret}')
  const ofCredentials = auth?.kind === 'header' ? Object.keys(templates) : [auth ? 'authorization' : headers.apiKey]
  const written = [...ofCredentials, headers.idempotencyKey, ...WRITTEN]
  for (const name of Object.keys(constantHeaders).filter((one) => written.includes(one)))
    fault(`constantHeaders.${name}`, 'is written by Quayside')

  const placed = [...textsIn(orderBody ?? {}, 'orderBody')]
  const has = (name: string) => placed.some(([, text]) => text === `{${name}}` || text.startsWith(`{${name}:`))
  const needed = ['productId', 'reference', ...(dialect.quantityMax === 1 ? [] : ['quantity'])]
  if ((orderRequest.productId === '') === (orderBody === undefined))
    fault('orderRequest', 'needs this or orderBody, not both')
  if (has('key') !== (idempotency === 'field')) fault('orderBody', 'needs {key} exactly where idempotency is field')
  if (has('price') && typeof money.representation === 'object') fault('orderBody', 'cannot have a price of two fields')
  for (const name of orderBody === undefined ? [] : needed) if (!has(name)) fault('orderBody', `needs {${name}}`)
  for (const [at, text] of placed)
    if (/[{}]/.test(text) && !placeholders.some((one) => one === text))
      fault(at, `must be exactly one of ${placeholders.join(', ')}${didYouMean(text, placeholders)}`)

  if ((paging.kind === 'cursor') !== (paging.next !== undefined))
    fault('paging.next', 'is for the kind cursor, which needs it')
  if (paging.kind === 'cursor' && paging.more !== null) fault('paging.more', 'must be null: the cursor says it')

  const ofWebhooks = [webhook.id, webhookRequest.url].filter((path) => path !== '').length
  if ((pathsOf(dialect).webhooks === null) !== (ofWebhooks === 0) || ofWebhooks === 1)
    fault('webhook', 'and webhookRequest must be left out exactly where paths.webhooks is null')
  const { string = '{timestamp}.{body}', timestamp, deliveryIdHeader, mac, secret } = signature
  if (string.includes('{timestamp}') !== (timestamp.in === 'signature' || timestamp.header !== ''))
    fault('signature.timestamp', `does not agree with signature.string, ${string}`)
  if (string.includes('{id}') && deliveryIdHeader === null)
    fault('signature.deliveryIdHeader', 'is part of the signed string')
  if (string === SECRET_ALONE && (mac ?? secret) !== undefined)
    fault('signature.string', 'is secret, where nothing is signed: leave signature.mac and signature.secret out')
  if (string === SECRET_ALONE && [event.header, deliveryIdHeader].includes(signature.header))
    fault('signature.header', 'has the secret: an event or an id in the same header would be stored with it')
  if ((event.name === '') === (event.header === undefined))
    fault('event.name', 'needs this path or event.header, and not both')

  if ((order.keys === '') === (keys?.path == null)) fault('order.keys', 'needs this path or keys.path, and not both')
  if (keys === undefined) return
  const isText = keyTypesOf(dialect).includes('text')
  if (keys.path === null && (keys.paged || keys.items !== ''))
    fault('keys.path', 'is needed for keys.paged and keys.items')
  if (keys.second !== null && (!isText || keys.second.path === keys.text))
    fault('keys.second', 'needs keys that are texts, and another path than keys.text')
  if (typeof keys.type === 'object' && [keys.text, keys.second?.path].includes(keys.type.path))
    fault('keys.type', 'has the path of the key itself')
  if (order.keyText !== null) fault('order.keyText', 'must be null beside keys.text')
}

function* textsIn(value: unknown, at: string): Generator<[at: string, text: string]> {
  if (typeof value === 'string') yield [at, value]
  else if (typeof value === 'object' && value !== null)
    for (const [name, inner] of Object.entries(value)) yield* textsIn(inner, `${at}.${name}`)
}

const FLAGLESS = 'an error that comes as HTTP 200 needs error.success, the flag that marks it as an error'

/** Every field, and the rules between fields. */
export const dialectShape = shape.superRefine((dialect, context) => {
  const { error, errors, event, flags } = dialect
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
  contradictions(dialect, (at, message) => fault(at.split('.'), message))
  for (const [field, words] of Object.entries(flags)) {
    if (words === 'quantity' || words === null) continue
    for (const meaning of [true, false])
      if (!Object.values(words).includes(meaning)) fault(['flags', field], `no word means ${meaning}`)
  }
})

export type Dialect = z.infer<typeof dialectShape>
export type KeyWords = NonNullable<Dialect['keys']>
export type FlagWords = Dialect['flags']['available']

/** Reads a dialect file. @throws Failure `invalid` with every fault in the order of the file, each with its line */
export function readDialect(file: string | URL): Dialect {
  let text: string
  let json: unknown
  try {
    text = readFileSync(file, 'utf8').replace(/^\ufeff/, '')
    json = JSON.parse(text)
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw new Failure('invalid', messageOf(cause, String(file)), { cause })
    throw new Failure('invalid', `the dialect file ${String(file)} is not JSON: ${cause.message}`, { cause })
  }
  const { lineOf, twice } = jsonLines(text)
  const result = dialectShape.safeParse(json, { error: sayWhatIsRight })
  if (result.success && twice.length === 0) return result.data
  const faults = [...twice, ...faultsIn(json, result.error?.issues ?? [])]
    .map(({ path, message }) => ({ field: path.join('.'), message, line: lineOf(path) }))
    .toSorted((one, other) => one.line - other.line)
  const list = faults.map(({ line, field, message }) => `line ${line}: ${field}: ${message}`).join(';\n')
  throw new Failure('invalid', `the dialect file ${String(file)} has faults:\n${list}`, { fields: faults })
}

/** A misspelt word breaks rules between fields too. So these rules are checked again with the words that are meant. */
function faultsIn(json: unknown, issues: readonly z.core.$ZodIssue[]): PlacedFault[] {
  const of = (some: readonly z.core.$ZodIssue[], file: unknown) =>
    some.flatMap((issue) => faultsOf(dialectShape, issue, file))
  const unruled = issues.filter(({ code }) => code !== 'custom')
  const ofFields = of(unruled, json)
  if (ofFields.length === 0 || ofFields.some(({ message }) => !message.startsWith('unknown'))) return of(issues, json)
  const corrected = structuredClone(json)
  for (const { path, meant } of ofFields) {
    const name = String(path.at(-1))
    const place = valueAt(corrected, path.slice(0, -1).join('.')) as Record<string, unknown>
    if (meant !== undefined) place[meant] = place[name]
    delete place[name]
  }
  const again = dialectShape.safeParse(corrected, { error: sayWhatIsRight }).error?.issues ?? []
  return [...ofFields, ...of(again, corrected)]
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

/**
 * The value at a dotted path that leads through lists: of a list on the way, what all its items have there, in one list. An item
 * without a value adds nothing. A number names one item of a list.
 */
export function listAt(record: unknown, dotted: string): unknown {
  const [name = '', ...rest] = dotted.split('.')
  if (dotted === '' || typeof record !== 'object' || record === null) return dotted === '' ? record : undefined
  if (Array.isArray(record) && !Object.hasOwn(record, name))
    return record.flatMap((item) => (listAt(item, dotted) ?? []) as unknown[])
  return Object.hasOwn(record, name) ? listAt((record as Record<string, unknown>)[name], rest.join('.')) : undefined
}

/** The path of the object that contains a value; empty for a field of the record itself. */
export const parentOf = (dotted: string): string => dotted.slice(0, Math.max(0, dotted.lastIndexOf('.')))

/** Returns the supplier's word for yes or no: the first such word in the dialect. */
export function flagValue(words: FlagWords, flag: boolean): boolean | string | number {
  if (words === null) return flag
  if (words === 'quantity') return flag ? 1 : 0
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
