import { type Node, type OpenapiDocument, readOpenapi, valuesOf } from '../dialect/description.ts'
import { type Dialect, errorKinds, eventNames } from '../dialect/dialect.ts'
import { below } from './answer-parts.ts'
import type { Judged } from './check.ts'

/**
 * Compares a dialect with the exact statements of the supplier's OpenAPI document: listed names of parameters and fields,
 * listed values, and bounds. Titles and descriptions are for people and are not read.
 *
 * A name that is missing from a list gets the verdict `differs`. Without a list there is no finding.
 *
 * @param document the parsed answer of GET /openapi; anything else gives no findings
 */
export function checkDocument(dialect: Dialect, document: unknown): Judged[] {
  const openapi = readOpenapi(document)
  return [
    ...queryFacts(dialect, openapi),
    ...orderFacts(dialect, openapi),
    ...answerFacts(dialect, openapi),
    ...eventFacts(dialect, openapi),
  ]
}

const NAMED_MAX = 6

/** Compares names of the dialect with the names that the document lists. */
function namesAmong(names: [fact: string, name: string | null][], listed: Iterable<string> | undefined): Judged[] {
  const known = [...(listed ?? [])]
  if (known.length === 0) return []
  const free = known.filter((one) => !names.some(([, name]) => name === one))
  return names.flatMap(([fact, name]): Judged[] => {
    if (name === null) return []
    if (known.includes(name)) return [{ fact, verdict: 'documented', value: 'the document lists it' }]
    if (free.length === 0) return [{ fact, verdict: 'differs', value: 'the document does not list it' }]
    const more = free.length > NAMED_MAX ? ', …' : ''
    const value = `the document lists ${free.slice(0, NAMED_MAX).join(', ')}${more}`
    return [{ fact, verdict: 'differs', value }]
  })
}

/** Compares a value of the dialect with the value of the document; undefined: the document states no value. */
function stated(fact: string, dialect: unknown, document: unknown): Judged[] {
  if (document === undefined) return []
  const value = `the document says ${JSON.stringify(document)}`
  return [{ fact, verdict: document === dialect ? 'documented' : 'differs', value }]
}

const factsIn = (group: string, names: Record<string, string | null>): [string, string | null][] =>
  Object.entries(names).map(([key, name]) => [`${group}.${key}`, name])

function queryFacts({ paging, products, orders }: Dialect, openapi: OpenapiDocument): Judged[] {
  const ofProducts = openapi.operation('get', '/products')?.query
  const pages = { page: paging.page, limit: paging.limit }
  const size = ofProducts?.get(paging.limit)
  const number = ofProducts?.get(paging.page)
  return [
    ...namesAmong([...factsIn('paging', pages), ...factsIn('products', products)], ofProducts?.keys()),
    ...namesAmong(
      [...factsIn('orders', orders), ...factsIn('paging', pages)],
      openapi.operation('get', '/orders')?.query.keys(),
    ).filter(({ fact }) => fact.startsWith('orders.')),
    ...stated('paging.limitMax', paging.limitMax, size?.maximum),
    ...stated('paging.limitDefault', paging.limitDefault, size?.default),
    ...stated('paging.first', paging.first, number?.minimum ?? number?.default),
  ]
}

/** Checks the requests: an order and a webhook. */
function orderFacts(dialect: Dialect, openapi: OpenapiDocument): Judged[] {
  const { headers, orderRequest, orderRequired, quantityMax, externalOrderIdMax, webhookRequest } = dialect
  const order = openapi.operation('post', '/orders')
  const fields = openapi.fields(order?.body)
  const inHeaders = [...(order?.headers.keys() ?? [])].filter((name) => name !== headers.apiKey)
  const hook = openapi.operation('post', '/webhooks')
  return [
    ...namesAmong([['headers.idempotencyKey', headers.idempotencyKey]], inHeaders),
    ...namesAmong(factsIn('orderRequest', orderRequest), fields.keys()),
    ...requiredFacts(order?.body, orderRequest, orderRequired),
    ...stated('quantityMax', quantityMax, fields.get(orderRequest.quantity)?.maximum),
    ...stated('externalOrderIdMax', externalOrderIdMax, fields.get(orderRequest.externalOrderId)?.maxLength),
    ...namesAmong(factsIn('webhookRequest', webhookRequest), openapi.fields(hook?.body).keys()),
  ]
}

function requiredFacts(
  body: Node | undefined,
  names: Dialect['orderRequest'],
  ours: Dialect['orderRequired'],
): Judged[] {
  if (!body || !Array.isArray(body.required)) return []
  const wanted = body.required.map(String)
  const same = wanted.length === ours.length && ours.every((field) => wanted.includes(names[field]))
  const value = `the document requires ${wanted.join(', ') || 'none'}`
  return [{ fact: 'orderRequired', verdict: same ? 'documented' : 'differs', value }]
}

/** Checks the answers: statuses of orders, codes of errors, and the secret in the answer to POST /webhooks. */
function answerFacts(dialect: Dialect, openapi: OpenapiDocument): Judged[] {
  const { envelope, order, orderStatuses, error, errors, webhook } = dialect
  const orders = openapi.fields(openapi.operation('get', '/orders/{}')?.success)
  const statuses = wordsOf(orders.get(below(envelope.data, order.status)))
  const hooks = openapi.fields(openapi.operation('post', '/webhooks')?.success)
  const failures = openapi.operation('post', '/orders')?.failures ?? []
  const codes = [...new Set(failures.flatMap((schema) => wordsOf(openapi.fields(schema).get(error.code))))]
  const ours = errorKinds.flatMap((kind) => errors[kind]?.codes ?? [])
  const unknownCodes = codes.filter((code) => !ours.includes(code))
  const value = 'a word of the document that is not mapped'
  const unmapped = statuses
    .filter((word) => !Object.hasOwn(orderStatuses, word))
    .map((word): Judged => ({ fact: `orderStatuses.${word}`, verdict: 'differs', value }))
  return [
    ...namesAmong([['webhook.secret', below(envelope.data, webhook.secret)]], hooks.keys()),
    ...namesAmong(
      Object.keys(orderStatuses).map((word) => [`orderStatuses.${word}`, word]),
      statuses,
    ),
    ...unmapped,
    ...errorKinds.flatMap((kind): Judged[] => {
      const own = errors[kind]?.codes ?? []
      const fact = `errors.${kind}.codes`
      if (codes.length === 0 || own.length === 0) return []
      if (own.some((code) => codes.includes(code)))
        return [{ fact, verdict: 'documented', value: 'the document lists it' }]
      // The supplier may lack errors of this kind. So it is a fault only if the document lists a code that belongs to no kind.
      return unknownCodes.length === 0
        ? []
        : [{ fact, verdict: 'differs', value: `the document lists ${unknownCodes.slice(0, NAMED_MAX).join(', ')}` }]
    }),
  ]
}

const wordsOf = (schema: Node | undefined): string[] => valuesOf(schema).filter((value) => typeof value === 'string')

/** Checks the deliveries: names of events, their headers and the fields of their payloads. */
function eventFacts({ signature, event, eventId }: Dialect, openapi: OpenapiDocument): Judged[] {
  const { events } = openapi
  const operations = [...events.values()]
  const headers = new Set(operations.flatMap((one) => [...one.headers.keys()]))
  const fields = new Set(operations.flatMap((one) => [...openapi.fields(one.body).keys()]))
  const { names, ...paths } = event
  const timestamp: [string, string][] =
    signature.timestamp.in === 'header' ? [['signature.timestamp', signature.timestamp.header]] : []
  return [
    ...namesAmong(
      [
        ['signature.header', signature.header],
        ...timestamp,
        ['signature.deliveryIdHeader', signature.deliveryIdHeader],
      ],
      headers,
    ),
    ...namesAmong([...factsIn('event', paths), ['eventId', eventId]], fields),
    ...namesAmong(
      eventNames.map((name) => [`event.names.${name}`, names[name]]),
      events.keys(),
    ),
  ]
}
