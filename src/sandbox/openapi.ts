import { type Dialect, type ErrorKind, type EventName, errorKinds, eventNames, valueAt } from '../dialect/dialect.ts'
import {
  eventsSchema,
  flagSchema,
  instantSchema,
  objectOf,
  pageSchema,
  recordsOf,
  type Schema,
  statusSchema,
  successSchema,
  uuid,
} from './records.ts'
import { refusalFacts } from './refusal.ts'
import { idempotencyKeyMax, urlMax } from './requests.ts'

/** Returns the OpenAPI 3.1 description of the API in this dialect, which is served at `/openapi`. */
export function openapiOf(dialect: Dialect): Schema {
  const { headers } = dialect
  return {
    openapi: '3.1.0',
    info: {
      title: 'Reseller API',
      version: '1.1',
      description: 'Catalogue, balance, orders and signed webhooks of a wholesaler of digital licence keys.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/v1' }],
    security: [{ apiKey: [] }],
    paths: pathsOf(dialect),
    webhooks: Object.fromEntries(
      eventNames.flatMap((name) => {
        const word = dialect.event.names[name]
        return word === null ? [] : [[word, { post: eventOperation(dialect, name) }]]
      }),
    ),
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: headers.apiKey } },
      headers: headerComponents(dialect),
      schemas: schemasOf(dialect),
    },
  }
}

const everywhere: ErrorKind[] = ['invalid', 'rate_limited', 'internal', 'unavailable']
const withKey: ErrorKind[] = [...everywhere, 'unauthenticated', 'forbidden']
const ofOrdering: ErrorKind[] = ['key_reused', 'in_progress', 'out_of_stock', 'insufficient_balance', 'limit_exceeded']

function pathsOf(dialect: Dialect): Schema {
  const { lists, envelope, paging } = dialect
  const wrapped = (data: Schema) => successSchema(dialect, data, envelope.data)
  const page = (name: string, items = paging.items) =>
    successSchema(dialect, pageSchema(dialect, reference(name), items), lists.data ?? envelope.data)
  const operation = (id: string, summary: string, rest: Parts) => operationOf(dialect, id, summary, rest)
  return {
    '/products': {
      get: operation('listProducts', 'A page of the catalogue', {
        parameters: [...pageParameters(dialect), ...productParameters(dialect)],
        answer: page('Product'),
      }),
    },
    '/products/{id}': {
      get: operation('getProduct', 'One product with price and availability', {
        parameters: [idParameter],
        answer: wrapped(reference('Product')),
        kinds: ['not_found', 'gone'],
      }),
    },
    '/balance': {
      get: operation('getBalance', 'API balance, VIP tier and limits', { answer: wrapped(reference('Balance')) }),
    },
    '/orders': {
      get: operation('listOrders', 'A page of the order history, newest first', {
        parameters: [...pageParameters(dialect), ...orderParameters(dialect)],
        answer: page('Order'),
      }),
      post: operation('createOrder', 'The order that was placed; an exact repeat gives the earlier result', {
        parameters: [idempotencyParameter(dialect)],
        requestBody: bodyOf('OrderRequest'),
        status: '201',
        answer: wrapped(reference('Order')),
        kinds: ['not_found', 'gone', ...ofOrdering],
      }),
    },
    '/orders/{id}': {
      get: operation('getOrder', 'Status, keys, amounts and reference of one order', {
        parameters: [idParameter],
        answer: wrapped(reference('Order')),
        kinds: ['not_found'],
      }),
    },
    '/webhooks': {
      get: operation('listWebhooks', 'The configured webhooks, without their secrets', {
        answer: page('Webhook', lists.webhooks ?? paging.items),
      }),
      post: operation('createWebhook', 'The webhook that was made, with its secret', {
        requestBody: bodyOf('WebhookRequest'),
        status: '201',
        answer: wrapped(reference('NewWebhook')),
        kinds: ['limit_exceeded'],
      }),
    },
    '/openapi': {
      get: operation('getOpenapi', 'This description', {
        description: 'OpenAPI 3.1',
        ...(dialect.openapiNeedsKey ? {} : { always: everywhere, security: [] }),
        answer: { type: 'object' },
      }),
    },
  }
}

type Parts = {
  status?: string
  description?: string
  answer: Schema
  always?: ErrorKind[]
  kinds?: ErrorKind[]
} & Schema

function operationOf(dialect: Dialect, id: string, summary: string, parts: Parts): Schema {
  const { status = '200', description = summary, answer, always = withKey, kinds = [], ...more } = parts
  return {
    operationId: id,
    summary,
    ...more,
    responses: withSuccess(
      status,
      { description, headers: answerHeaders(dialect, false), content: jsonOf(answer) },
      { ...httpErrors(dialect, more.requestBody !== undefined), ...errors(dialect, [...always, ...kinds]) },
    ),
  }
}

/** Adds the response of a success to those of the errors. Where both have the same status, its schema allows either response. */
function withSuccess(status: string, success: Schema, failures: Schema): Schema {
  if (!(status in failures)) return { [status]: success, ...failures }
  const schemaOf = (response: unknown) => valueAt(response, 'content.application/json.schema')
  const either = { anyOf: [schemaOf(success), schemaOf(failures[status])] }
  return { ...failures, [status]: { ...success, content: jsonOf(either) } }
}

/** Returns the error responses by status. Several kinds may share a status, and its response then names all their codes. */
function errors(dialect: Dialect, kinds: ErrorKind[]): Schema {
  const byStatus = Map.groupBy(kinds, (kind) => refusalFacts(dialect, kind).status)
  const response = (shared: ErrorKind[]) => {
    const codes = shared.map((kind) => refusalFacts(dialect, kind).code)
    return errorResponse(dialect, codes.join(', '), shared.includes('rate_limited'))
  }
  return Object.fromEntries([...byStatus].map(([status, shared]) => [String(status), response(shared)]))
}

/** Returns the errors of HTTP itself, in any dialect. They have the code of an invalid request. */
const httpErrors = (dialect: Dialect, withBody: boolean): Schema => ({
  400: errorResponse(dialect, 'The request cannot be read'),
  ...(withBody && {
    413: errorResponse(dialect, 'The body is larger than 64 KiB'),
    415: errorResponse(dialect, 'The body is not declared as JSON, or is compressed in an unknown way'),
  }),
})

const errorResponse = (dialect: Dialect, description: string, withRetry = false): Schema => ({
  description,
  headers: answerHeaders(dialect, withRetry),
  content: jsonOf(reference('Error')),
})

function eventOperation(dialect: Dialect, name: EventName): Schema {
  const { signature } = dialect
  const header = (headerName: string, description: string) => ({
    name: headerName,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  })
  const unit = signature.timestampUnit === 's' ? 'seconds' : 'milliseconds'
  const { timestamp } = signature
  const inside = timestamp.in === 'signature' ? `${timestamp.field}=<unix ${unit}>,` : ''
  const layout = `${inside}${signature.prefix}<signature>`
  const parameters = [
    header(
      signature.header,
      `${layout}: ${signature.encoding} of the HMAC-SHA256 of timestamp.body, keyed with the secret.`,
    ),
    ...(timestamp.in === 'header' ? [header(timestamp.header, `Unix time in ${unit}.`)] : []),
    ...(signature.deliveryIdHeader === null ? [] : [header(signature.deliveryIdHeader, 'The same at every attempt.')]),
  ]
  return {
    operationId: `on${eventSchemaName(name)}`,
    summary: dialect.event.names[name],
    security: [],
    parameters,
    requestBody: bodyOf(eventSchemaName(name)),
    responses: { '2XX': { description: 'Received. Anything else is tried again later.' } },
  }
}

function headerComponents(dialect: Dialect): Schema {
  const { rateResetUnit } = dialect
  const whole = { type: 'integer', minimum: 0 }
  const statusOf = (kind: ErrorKind) => refusalFacts(dialect, kind).status
  const sharing = errorKinds.filter((kind) => statusOf(kind) === statusOf('rate_limited'))
  const always = (description: string, schema: Schema) => ({ required: true, description, schema })
  const units = { epoch_s: 'Unix time in seconds', epoch_ms: 'Unix time in milliseconds', left_s: 'Seconds until then' }
  return {
    RequestId: always('Identifies the request.', { type: 'string' }),
    RateLimit: always('Requests a minute.', whole),
    RateRemaining: always('Requests that may run at once.', whole),
    RateReset: always(`When all of them are back. ${units[rateResetUnit]}.`, whole),
    // This header is promised only when the rate limit has a status of its own.
    RetryAfter: { ...always('Seconds, or an HTTP date.', { type: 'string' }), required: sharing.length === 1 },
  }
}

function answerHeaders({ headers }: Dialect, withRetry: boolean): Schema {
  const at = (name: string) => ({ $ref: `#/components/headers/${name}` })
  return {
    [headers.requestId]: at('RequestId'),
    [headers.rateLimit]: at('RateLimit'),
    [headers.rateRemaining]: at('RateRemaining'),
    [headers.rateReset]: at('RateReset'),
    ...(withRetry ? { [headers.retryAfter]: at('RetryAfter') } : {}),
  }
}

const jsonOf = (schema: Schema): Schema => ({ 'application/json': { schema } })
const bodyOf = (name: string): Schema => ({ required: true, content: jsonOf(reference(name)) })

const idParameter = { name: 'id', in: 'path', required: true, schema: { type: 'string' } }

const query = (name: string | null, schema: Schema, description: string): Schema[] =>
  name === null ? [] : [{ name, in: 'query', required: false, description, schema }]

const pageParameters = ({ paging }: Dialect): Schema[] => [
  ...query(paging.page, { type: 'integer', minimum: paging.first, default: paging.first }, 'Which page.'),
  ...query(
    paging.limit,
    { type: 'integer', minimum: 1, maximum: paging.limitMax, default: paging.limitDefault },
    'Page size.',
  ),
]

const productParameters = ({ products, flags }: Dialect): Schema[] => [
  ...query(products.search, { type: 'string' }, 'Part of the name or the SKU.'),
  ...query(products.category, { type: 'string' }, 'Category.'),
  ...query(products.inStock, flagSchema(flags.inStock), 'With yes, only what can be bought now.'),
]

const orderParameters = (dialect: Dialect): Schema[] => [
  ...query(dialect.orders.externalOrderId, { type: 'string' }, 'External reference, whole.'),
  ...query(dialect.orders.status, statusSchema(dialect), 'Status.'),
  ...query(dialect.orders.from, instantSchema(dialect), 'Placed then or later.'),
  ...query(dialect.orders.to, instantSchema(dialect), 'Placed then or earlier.'),
]

const idempotencyParameter = ({ headers, idempotencyMemorySeconds }: Dialect): Schema => ({
  name: headers.idempotencyKey,
  in: 'header',
  required: true,
  description: `Chosen by the caller; remembered for ${idempotencyMemorySeconds} seconds.`,
  schema: { type: 'string', minLength: 1, maxLength: idempotencyKeyMax },
})

const reference = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

function schemasOf(dialect: Dialect): Record<string, Schema> {
  const { product, order, balance, webhook, newWebhook, error, event } = recordsOf(dialect)
  return {
    Product: objectOf(product),
    OrderRequest: orderRequestSchema(dialect),
    Order: objectOf(order),
    Balance: objectOf(balance),
    WebhookRequest: webhookRequestSchema(dialect),
    Webhook: objectOf(webhook),
    NewWebhook: objectOf(newWebhook),
    Error: objectOf(error),
    ...Object.fromEntries(eventNames.map((name) => [eventSchemaName(name), objectOf(event(name))])),
  }
}

/** Returns the name of an event's schema: `OrderCompletedEvent` describes `order.completed`. */
const eventSchemaName = (name: EventName): string =>
  `${name.replace(/(^|[._])(.)/g, (_match, _separator, letter: string) => letter.toUpperCase())}Event`

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

function webhookRequestSchema(dialect: Dialect): Schema {
  const { webhookRequest } = dialect
  const url = { type: 'string', format: 'uri', maxLength: urlMax }
  const fields: Parameters<typeof objectOf>[0] = [
    [webhookRequest.url, url],
    [webhookRequest.events, eventsSchema(dialect)],
  ]
  return { ...objectOf(fields), additionalProperties: false }
}
