/** The JSON Schemas of everything the API sends and takes, laid out by the dialect's paths. */
import { decimalsOf } from '../domain/money.ts'
import { type Dialect, type EventName, errorKinds, eventNames, type FlagWords, flagValue } from '../supplier/dialect.ts'
import { refusalFacts } from './refusal.ts'
import { urlMax } from './requests.ts'

export type Schema = Record<string, unknown>

/** One field: its dotted path (null: the supplier has none), its schema, and whether it can be missing. */
type Field = [path: string | null, schema: Schema, presence?: 'optional']

const text: Schema = { type: 'string' }
const count: Schema = { type: 'integer', minimum: 0 }
/** Yes or no, as the dialect writes it. */
export const flagSchema = (words: FlagWords): Schema =>
  words === null ? { type: 'boolean' } : { ...text, enum: Object.keys(words) }
const uuid: Schema = { type: 'string', format: 'uuid' }

export const reference = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

export function schemasOf(dialect: Dialect): Record<string, Schema> {
  return {
    Product: productSchema(dialect),
    OrderRequest: orderRequestSchema(dialect),
    Order: orderSchema(dialect),
    Balance: balanceSchema(dialect),
    WebhookRequest: webhookRequestSchema(dialect),
    Webhook: webhookSchema(dialect, false),
    NewWebhook: webhookSchema(dialect, true),
    Error: errorSchema(dialect),
    ...Object.fromEntries(eventNames.map((name) => [eventSchemaName(name), eventSchema(dialect, name)])),
  }
}

/** `order.completed` is described by `OrderCompletedEvent`. */
export const eventSchemaName = (name: EventName): string =>
  `${name.replace(/(^|[._])(.)/g, (_match, _separator, letter: string) => letter.toUpperCase())}Event`

/** The answer of a success around some data. A bare list has no room for the flag. */
export function successSchema({ envelope, flags }: Dialect, data: Schema, path: string): Schema {
  const flagField: Field = [envelope.success, { const: flagValue(flags.success, true) }]
  if (path !== '') return objectOf([flagField, [path, data]])
  return envelope.success === null || data.type === 'array' ? data : { allOf: [objectOf([flagField]), data] }
}

/** A page of items, inside the envelope. */
export function pageSchema({ paging, flags }: Dialect, item: Schema, path: string): Schema {
  const items = { type: 'array', items: item }
  if (path === '') return items
  return objectOf([
    [path, items],
    [paging.total, { ...count, description: 'How many there are on all pages.' }],
    [paging.more, { ...flagSchema(flags.more), description: 'Whether another page follows.' }],
  ])
}

export function instantSchema({ instants }: Dialect): Schema {
  if (instants === 'iso') return { type: 'string', format: 'date-time' }
  const unit = instants === 'epoch_s' ? 'seconds' : 'milliseconds'
  return { type: 'integer', format: 'int64', description: `Unix time in ${unit}.` }
}

/** The supplier's words for the states of an order. */
export const statusSchema = ({ orderStatuses }: Dialect): Schema => ({ ...text, enum: Object.keys(orderStatuses) })

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

const currencySchema = ({ money }: Dialect): Schema => ({ ...text, const: money.currency })

function productSchema(dialect: Dialect): Schema {
  const { product } = dialect
  const money = moneySchema(dialect)
  return objectOf([
    [product.id, uuid],
    [product.sku, { ...text, description: 'Stable.' }],
    [product.name, text],
    [product.category, text],
    [product.cost, { ...money, title: 'The API/VIP price: what an order costs, each' }],
    [product.basePrice, money],
    [product.cashback, money],
    [product.currency, currencySchema(dialect)],
    [product.localStock, count],
    [product.providerStock, count],
    [product.available, flagSchema(dialect.flags.available)],
    [product.origin, { ...text, description: 'Who fulfils.', enum: ['local', 'provider'] }],
    [product.updatedAt, instantSchema(dialect)],
  ])
}

function orderRequestSchema({ orderRequest: names, orderRequired, quantityMax, externalOrderIdMax }: Dialect): Schema {
  return {
    type: 'object',
    additionalProperties: false,
    required: orderRequired.map((field) => names[field]),
    properties: {
      [names.productId]: uuid,
      [names.quantity]: { type: ['integer', 'null'], minimum: 1, maximum: quantityMax, default: 1 },
      [names.externalOrderId]: { type: ['string', 'null'], minLength: 1, maxLength: externalOrderIdMax },
    },
  }
}

function orderSchema(dialect: Dialect): Schema {
  const { order } = dialect
  return objectOf([
    [order.id, uuid],
    [order.externalOrderId, { type: ['string', 'null'] }],
    [order.productId, uuid],
    [order.quantity, { type: 'integer', minimum: 1 }],
    [order.status, statusSchema(dialect)],
    [order.amount, moneySchema(dialect)],
    [order.currency, currencySchema(dialect)],
    [order.keys, { type: 'array', items: keySchema(dialect), description: 'Licence keys, as far as they are issued.' }],
    [order.failureCode, text, 'optional'],
    [order.failureMessage, text, 'optional'],
    [order.createdAt, instantSchema(dialect)],
    [order.updatedAt, instantSchema(dialect)],
  ])
}

const keySchema = ({ order }: Dialect): Schema => (order.keyText === null ? text : objectOf([[order.keyText, text]]))

function balanceSchema(dialect: Dialect): Schema {
  const { balance } = dialect
  return objectOf([
    [balance.amount, moneySchema(dialect)],
    [balance.currency, currencySchema(dialect)],
    [balance.tier, text],
    [balance.requestsPerMinute, count],
    [balance.quantityMax, count],
  ])
}

const eventsSchema = ({ event }: Dialect): Schema => ({
  type: 'array',
  minItems: 1,
  items: { ...text, enum: eventNames.map((name) => event.names[name]).filter((word) => word !== null) },
})

function webhookRequestSchema(dialect: Dialect): Schema {
  const { webhookRequest } = dialect
  const url = { ...text, format: 'uri', maxLength: urlMax }
  const fields: Field[] = [
    [webhookRequest.url, url],
    [webhookRequest.events, eventsSchema(dialect)],
  ]
  return { ...objectOf(fields), additionalProperties: false }
}

function webhookSchema(dialect: Dialect, isNew: boolean): Schema {
  const { webhook } = dialect
  return objectOf([
    [webhook.id, text],
    [webhook.url, { ...text, format: 'uri' }],
    [webhook.events, eventsSchema(dialect)],
    [isNew ? webhook.secret : null, { ...text, description: 'Shown this once.' }],
    [webhook.createdAt, instantSchema(dialect)],
  ])
}

function errorSchema(dialect: Dialect): Schema {
  const { error, flags } = dialect
  const codes = [...new Set(errorKinds.map((kind) => refusalFacts(dialect, kind).code))]
  return objectOf([
    [error.success, { const: flagValue(flags.success, false) }],
    [error.code, { ...text, enum: codes }],
    [error.message, text],
    [error.requestId, text],
  ])
}

function eventSchema(dialect: Dialect, name: EventName): Schema {
  const { event } = dialect
  const ofOrder = name.startsWith('order.')
  const ofProduct = name.startsWith('product.')
  const keys = name === 'order.completed' ? event.keys : null
  return objectOf([
    [event.name, { const: event.names[name] }],
    [dialect.eventId, { ...text, description: 'The same in every delivery of the event.' }],
    [event.occurredAt, instantSchema(dialect)],
    [ofOrder ? event.orderId : null, uuid],
    [ofOrder ? event.externalOrderId : null, { type: ['string', 'null'] }],
    [ofOrder ? event.status : null, statusSchema(dialect)],
    [ofProduct ? event.productId : null, uuid],
    [keys, { type: 'array', items: keySchema(dialect) }],
  ])
}

/** Nests the fields by their paths; an object is required when any field in it is. */
function objectOf(fields: Field[]): Schema {
  const groups = new Map<string, Field[]>()
  for (const [path, schema, presence] of fields) {
    if (!path) continue
    const [head = '', ...rest] = path.split('.')
    groups.set(head, [...(groups.get(head) ?? []), [rest.join('.'), schema, presence]])
  }
  const properties: Record<string, Schema> = {}
  const required: string[] = []
  for (const [name, inner] of groups) {
    const leaf = inner.find(([path]) => path === '')
    const others = inner.filter(([path]) => path !== '')
    // An amount with its exponent may have more fields beside the two, such as its currency.
    properties[name] = !leaf ? objectOf(inner) : others.length === 0 ? leaf[1] : { allOf: [leaf[1], objectOf(others)] }
    if (inner.some(([, , presence]) => presence !== 'optional')) required.push(name)
  }
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) }
}
