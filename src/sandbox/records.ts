import {
  type Dialect,
  type ErrorKind,
  type EventName,
  errorKinds,
  eventNames,
  type FlagWords,
  flagValue,
  type OrderStatus,
  putAt,
} from '../dialect/dialect.ts'
import { decimalsOf, formatDecimal } from '../domain/money.ts'
import { type Offer, sellable } from './offers.ts'
import type { Order } from './orders.ts'
import { refusalFacts } from './refusal.ts'
import type { EventSubject, Webhook } from './webhooks.ts'

/* The supplier's records in a dialect. One table says how a record is described and how it is written. */

type Body = Record<string, unknown>

/** A JSON Schema of a request or an answer, by the dialect's paths. */
export type Schema = Record<string, unknown>

/**
 * One field of a record: its dotted path (null or empty: the supplier has no such field), its schema, its value, and whether it
 * can be missing. An undefined value is not written.
 */
type Field<T> = [path: string | null, schema: Schema, value: (of: T) => unknown, presence?: 'optional']

interface Records {
  product: Field<Offer>[]
  order: Field<Order & { keys: string[] }>[]
  balance: Field<{ balanceMinor: number; requestsPerMinute: number }>[]
  webhook: Field<Webhook>[]
  /** The answer that creates a webhook. It alone has the secret. */
  newWebhook: Field<Webhook>[]
  error: Field<{ kind: ErrorKind; message: string; requestId: string }>[]
  /** The body of a delivery. An id and licence keys are in the body only when the dialect has paths for them. */
  event: (name: EventName) => Field<EventSubject & { id: string; at: number }>[]
}

const made = new WeakMap<Dialect, Records>()

export function recordsOf(dialect: Dialect): Records {
  const records = made.get(dialect) ?? makeRecords(dialect)
  made.set(dialect, records)
  return records
}

function makeRecords(dialect: Dialect): Records {
  const { product, order, balance, webhook, event, error, flags } = dialect
  const codes = new Set(errorKinds.map((kind) => refusalFacts(dialect, kind).code))
  const money = moneySchema(dialect)
  const moneyOf = (minor: number) => moneyValue(dialect, minor)
  const instant = instantSchema(dialect)
  const instantOf = (at: number) => instantValue(dialect, at)
  const currency = { ...text, const: dialect.money.currency }
  const currencyOf = () => dialect.money.currency
  const status = statusSchema(dialect)
  const keyList = { type: 'array', items: keySchema(dialect) }
  const keysOf = (keys: string[] | undefined) => keys?.map((key) => keyValue(dialect, key))
  const wordsOf = (names: EventName[]) => names.map((name) => event.names[name]).filter((word) => word !== null)
  const ofWebhook = (secret: Field<Webhook>[]): Field<Webhook>[] => [
    [webhook.id, text, ({ id }) => id],
    [webhook.url, { ...text, format: 'uri' }, ({ url }) => url],
    [webhook.events, eventsSchema(dialect), ({ events }) => wordsOf(events)],
    ...secret,
    [webhook.createdAt, instant, ({ createdAt }) => instantOf(createdAt)],
  ]
  return {
    product: [
      [product.id, uuid, ({ id }) => id],
      [product.sku, { ...text, description: 'Stable.' }, ({ sku }) => sku],
      [product.name, text, ({ name }) => name],
      [product.category, text, ({ category }) => category],
      [product.description, text, ({ name }) => `${name}: one licence key.`],
      [product.image, { ...text, format: 'uri' }, ({ id }) => `https://images.example/${id}.png`],
      [
        product.cost,
        { ...money, title: 'The API/VIP price: what an order costs, each' },
        ({ priceMinor }) => moneyOf(priceMinor),
      ],
      [product.basePrice, money, ({ basePriceMinor }) => moneyOf(basePriceMinor)],
      [product.cashback, money, ({ cashbackMinor }) => moneyOf(cashbackMinor)],
      [product.currency, currency, currencyOf],
      [product.localStock, count, ({ localStock }) => localStock],
      [product.providerStock, count, ({ providerStock }) => providerStock],
      [product.available, flagSchema(flags.available), (offer) => flagValue(flags.available, sellable(offer) > 0)],
      [product.origin, { ...text, description: 'Who fulfils.', enum: ['local', 'provider'] }, ({ origin }) => origin],
      [product.updatedAt, instant, ({ updatedAt }) => instantOf(updatedAt)],
    ],
    order: [
      [order.id, uuid, ({ id }) => id],
      [order.externalOrderId, nullableText, ({ externalOrderId }) => externalOrderId],
      [order.productId, uuid, ({ productId }) => productId],
      [order.quantity, { type: 'integer', minimum: 1 }, ({ quantity }) => quantity],
      [order.status, status, (placed) => statusWord(dialect, placed.status)],
      [order.amount, money, ({ amountMinor }) => moneyOf(amountMinor)],
      [order.currency, currency, currencyOf],
      [order.keys, { ...keyList, description: 'Licence keys, as far as they are issued.' }, ({ keys }) => keysOf(keys)],
      [order.failureCode, text, ({ failureCode }) => failureCode ?? undefined, 'optional'],
      [order.failureMessage, text, ({ failureMessage }) => failureMessage ?? undefined, 'optional'],
      [order.createdAt, instant, ({ createdAt }) => instantOf(createdAt)],
      [order.updatedAt, instant, ({ updatedAt }) => instantOf(updatedAt)],
    ],
    balance: [
      [balance.amount, money, ({ balanceMinor }) => moneyOf(balanceMinor)],
      [balance.currency, currency, currencyOf],
      [balance.tier, text, () => 'gold'],
      [balance.requestsPerMinute, count, ({ requestsPerMinute }) => requestsPerMinute],
      [balance.quantityMax, count, () => dialect.quantityMax],
    ],
    webhook: ofWebhook([]),
    newWebhook: ofWebhook([[webhook.secret, { ...text, description: 'Shown this once.' }, ({ secret }) => secret]]),
    error: [
      [error.success, { const: flagValue(flags.success, false) }, () => flagValue(flags.success, false)],
      [error.code, { ...text, enum: [...codes] }, ({ kind }) => refusalFacts(dialect, kind).code],
      [error.message, text, ({ message }) => message],
      [error.requestId, text, ({ requestId }) => requestId],
    ],
    event: (name) => {
      const ofOrder = name.startsWith('order.')
      return [
        [event.name, { const: event.names[name] }, () => event.names[name]],
        [dialect.eventId, { ...text, description: 'The same in every delivery of the event.' }, ({ id }) => id],
        [event.occurredAt, instant, ({ at }) => instantOf(at)],
        [ofOrder ? event.orderId : null, uuid, (subject) => subject.order?.id],
        [ofOrder ? event.externalOrderId : null, nullableText, (subject) => subject.order?.externalOrderId],
        [
          ofOrder ? event.status : null,
          status,
          (subject) => subject.order && statusWord(dialect, subject.order.status),
        ],
        [name.startsWith('product.') ? event.productId : null, uuid, ({ productId }) => productId],
        [name === 'order.completed' ? event.keys : null, keyList, ({ keys }) => keysOf(keys)],
      ]
    },
  }
}

export const recordOf = <T>(fields: Field<T>[], of: T): Body =>
  bodyOf(fields.map(([path, , value]) => [path, path && value(of)]))

/** Writes the pairs that have a path in the dialect and a value. */
function bodyOf(pairs: [path: string | null, value: unknown][]): Body {
  const body: Body = {}
  for (const [path, value] of pairs) {
    if (!path || value === undefined) continue
    // Most paths are plain names, and a page has a hundred products.
    if (path.includes('.')) putAt(body, path, value)
    else body[path] = value
  }
  return body
}

export const errorBody = (dialect: Dialect, kind: ErrorKind, message: string, requestId: string): Body =>
  recordOf(recordsOf(dialect).error, { kind, message, requestId })

const pageFields = ({ paging, flags }: Dialect, items: string, item: Schema): Field<Page>[] => [
  [items, { type: 'array', items: item }, ({ list }) => list],
  [paging.total, { ...count, description: 'How many there are on all pages.' }, ({ total }) => total],
  [
    paging.more,
    { ...flagSchema(flags.more), description: 'Whether another page follows.' },
    ({ more }) => flagValue(flags.more, more),
  ],
  [paging.next ?? null, { ...count, description: 'The cursor of the next page.' }, ({ next }) => next, 'optional'],
]

export interface Page {
  list: Body[]
  total: number
  more: boolean
  /** The number of the record that the next page begins with; undefined on the last page. */
  next?: number | undefined
}

/** Writes a page of records. With an empty path for the items, the page is the bare list and has no other fields. */
export const pageRecord = (dialect: Dialect, page: Page, items = dialect.paging.items): unknown =>
  items === '' ? page.list : recordOf(pageFields(dialect, items, {}), page)

export const pageSchema = (dialect: Dialect, item: Schema, items: string): Schema =>
  items === '' ? { type: 'array', items: item } : objectOf(pageFields(dialect, items, item))

/** Wraps the answer of a success. @param path the path of the content; the dialect may give pages another path than records */
export function successBody({ envelope, flags }: Dialect, data: unknown, path = envelope.data): unknown {
  const { success } = envelope
  const yes = flagValue(flags.success, true)
  if (path !== '')
    return bodyOf([
      [success, yes],
      [path, data],
    ])
  return Array.isArray(data) ? data : { ...bodyOf([[success, yes]]), ...(data as Body) }
}

/** Returns the schema of a success with its envelope. A bare list has no flag. */
export function successSchema({ envelope, flags }: Dialect, data: Schema, path: string): Schema {
  const flagField: Described = [envelope.success, { const: flagValue(flags.success, true) }]
  if (path !== '') return objectOf([flagField, [path, data]])
  return envelope.success === null || data.type === 'array' ? data : { allOf: [objectOf([flagField]), data] }
}

const text: Schema = { type: 'string' }
const nullableText: Schema = { type: ['string', 'null'] }
const count: Schema = { type: 'integer', minimum: 0 }
export const uuid: Schema = { type: 'string', format: 'uuid' }
/** The schema of yes or no, in the dialect's words. */
export const flagSchema = (words: FlagWords): Schema =>
  words === null ? { type: 'boolean' } : typeof words === 'string' ? count : { ...text, enum: Object.keys(words) }

/** The supplier's words for the states of an order. */
export const statusSchema = ({ orderStatuses }: Dialect): Schema => ({ ...text, enum: Object.keys(orderStatuses) })

/** Returns the first word of the dialect for a status. Without a word for `refunded`, returns the word for `failed`. */
function statusWord(dialect: Dialect, status: OrderStatus): string {
  const wordFor = (wanted: OrderStatus) =>
    Object.entries(dialect.orderStatuses).find(([, meaning]) => meaning === wanted)?.[0]
  return wordFor(status) ?? (status === 'refunded' ? wordFor('failed') : undefined) ?? status
}

function moneySchema({ money }: Dialect): Schema {
  const { representation } = money
  if (typeof representation === 'object') {
    const { amount, exponent, counts } = representation
    const description =
      counts === 'decimals' ? 'Decimals of the amount.' : 'The amount is times ten to the power of this.'
    return objectOf([
      [amount, { type: 'integer', description: 'To be read with its exponent.' }],
      [exponent, { type: 'integer', description }],
    ])
  }
  if (representation === 'minor') return { type: 'integer', description: `Minor units of ${money.currency}.` }
  if (representation === 'number') return { type: 'number' }
  const decimals = decimalsOf(money.currency)
  return { ...text, pattern: decimals === 0 ? '^-?\\d+$' : `^-?\\d+\\.\\d{${decimals}}$` }
}

function moneyValue({ money }: Dialect, minor: number): unknown {
  const { representation } = money
  if (representation === 'minor') return minor
  if (typeof representation === 'object') {
    // The amount has one digit more than its currency, so that a reader that ignores the exponent errs by a factor of ten.
    const decimals = decimalsOf(money.currency) + 1
    const exponent = representation.counts === 'decimals' ? decimals : -decimals
    return bodyOf([
      [representation.amount, minor * 10],
      [representation.exponent, exponent],
    ])
  }
  const text = formatDecimal({ minor, currency: money.currency })
  return representation === 'decimal' ? text : Number(text)
}

export function instantSchema({ instants }: Dialect): Schema {
  if (instants === 'iso') return { type: 'string', format: 'date-time' }
  const unit = instants === 'epoch_s' ? 'seconds' : 'milliseconds'
  return { type: 'integer', format: 'int64', description: `Unix time in ${unit}.` }
}

/** The instant that was written last, and its text. Offers that never changed share one instant, so most use this text again. */
const lastInstant = { at: Number.NaN, text: '' }

function instantValue({ instants }: Dialect, at: number): string | number {
  if (instants === 'iso') {
    if (lastInstant.at !== at) Object.assign(lastInstant, { at, text: new Date(at).toISOString() })
    return lastInstant.text
  }
  return instants === 'epoch_ms' ? at : Math.floor(at / 1000)
}

const keySchema = ({ order }: Dialect): Schema => (order.keyText === null ? text : objectOf([[order.keyText, text]]))

const keyValue = ({ order }: Dialect, text: string): unknown =>
  order.keyText === null ? text : bodyOf([[order.keyText, text]])

export const eventsSchema = ({ event }: Dialect): Schema => ({
  type: 'array',
  minItems: 1,
  items: { ...text, enum: eventNames.map((name) => event.names[name]).filter((word) => word !== null) },
})

/** A field without its value. */
type Described = [path: string | null, schema: Schema, value?: unknown, presence?: 'optional']

/** Nests the fields by their paths. An object is required when any field in the object is required. */
export function objectOf(fields: Described[]): Schema {
  const groups = new Map<string, Described[]>()
  for (const [path, schema, , presence] of fields) {
    if (!path) continue
    const [head = '', ...rest] = path.split('.')
    groups.set(head, [...(groups.get(head) ?? []), [rest.join('.'), schema, undefined, presence]])
  }
  const properties: Record<string, Schema> = {}
  const required: string[] = []
  for (const [name, inner] of groups) {
    const leaf = inner.find(([path]) => path === '')
    const others = inner.filter(([path]) => path !== '')
    // An amount with its exponent may have further fields, such as its currency.
    properties[name] = !leaf ? objectOf(inner) : others.length === 0 ? leaf[1] : { allOf: [leaf[1], objectOf(others)] }
    if (inner.some(([, , , presence]) => presence !== 'optional')) required.push(name)
  }
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) }
}
