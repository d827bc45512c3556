import { type Dialect, type EventName, eventNames, type OrderStatus, valueAt } from '../dialect/dialect.ts'
import type { OfferFilter } from './offers.ts'
import type { OrderFilter, OrderRequest } from './orders.ts'
import { Refusal } from './refusal.ts'

/* Reads requests strictly. An unknown name is refused, so that a misspelt filter never goes unnoticed. */

export interface ApiCall {
  query: URLSearchParams
  /** Every value of a header, by its name in lower case. */
  headers: NodeJS.Dict<string[]>
  body: Buffer
  /** The identifier in the path; empty when the path has no identifier. */
  id: string
}

/** The length of the longest idempotency key, a usual limit in this field. */
export const idempotencyKeyMax = 255
export const urlMax = 2048

const invalid = (message: string): Refusal => new Refusal('invalid', message)

export function readIdempotencyKey({ headers }: Dialect, call: ApiCall): string {
  const [key, ...others] = call.headers[headers.idempotencyKey] ?? []
  if (!key || others.length > 0) throw invalid(`${headers.idempotencyKey}: one header of that name is required`)
  if (key.length > idempotencyKeyMax)
    throw invalid(`${headers.idempotencyKey}: at most ${idempotencyKeyMax} characters`)
  return key
}

export function readOrderRequest(dialect: Dialect, call: ApiCall): OrderRequest {
  const { orderRequest: names, orderRequired } = dialect
  const body = readBody(call, Object.values(names))
  for (const field of orderRequired) if (body[names[field]] === undefined) throw invalid(`${names[field]}: is required`)
  const productId = body[names.productId]
  if (typeof productId !== 'string' || !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(productId))
    throw invalid(`${names.productId}: must be a UUID`)
  const quantity = body[names.quantity] ?? 1
  if (typeof quantity !== 'number' || !Number.isSafeInteger(quantity) || quantity < 1)
    throw invalid(`${names.quantity}: must be a whole number of at least 1`)
  const externalOrderId = body[names.externalOrderId] ?? null
  const max = dialect.externalOrderIdMax
  if (
    externalOrderId !== null &&
    (typeof externalOrderId !== 'string' || !externalOrderId || externalOrderId.length > max)
  )
    throw invalid(`${names.externalOrderId}: must be a text of 1 to ${max} characters`)
  return { productId: productId.toLowerCase(), quantity, externalOrderId }
}

export function readWebhookRequest(dialect: Dialect, call: ApiCall): { url: string; events: EventName[] } {
  const { webhookRequest: paths, event } = dialect
  const body = readBody(
    call,
    Object.values(paths).map((path) => path.split('.')[0] ?? ''),
  )
  const url = valueAt(body, paths.url)
  if (typeof url !== 'string' || url.length > urlMax || !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw invalid(`${paths.url}: must be an http or https address`)
  const words = valueAt(body, paths.events)
  const known = eventNames.map((name) => event.names[name]).filter((word) => word !== null)
  if (!Array.isArray(words) || words.length === 0 || !words.every((word) => known.includes(word)))
    throw invalid(`${paths.events}: must be a list of one or more of ${known.join(', ')}`)
  return { url, events: eventNames.filter((name) => event.names[name] !== null && words.includes(event.names[name])) }
}

/**
 * Reads which page is requested, as offset and length.
 *
 * @param most the most rows of a page: a request for more rows is cut to this number, without an error
 */
export function readPage({ paging }: Dialect, { query }: ApiCall, most = Number.POSITIVE_INFINITY) {
  const page = readWhole(query, paging.page, paging.first, paging.first, 1_000_000_000)
  const limit = Math.min(most, readWhole(query, paging.limit, paging.limitDefault, 1, paging.limitMax))
  return { offset: (page - paging.first) * (['offset', 'cursor'].includes(paging.kind ?? '') ? 1 : limit), limit }
}

export function readProductFilter({ products, paging, flags }: Dialect, { query }: ApiCall): OfferFilter {
  refuseUnknown(query, [paging.page, paging.limit, ...Object.values(products)])
  const get = (name: string | null) => (name === null ? null : query.get(name))
  const word = get(products.inStock)
  const words: Record<string, boolean> = flags.inStock ?? { true: true, false: false }
  if (word !== null && !Object.hasOwn(words, word))
    throw invalid(`${products.inStock}: must be one of ${Object.keys(words).join(', ')}`)
  return {
    search: get(products.search) || undefined,
    category: get(products.category) || undefined,
    inStock: word !== null && words[word] === true,
  }
}

/** Reads the filters. The time filter includes both of its ends, at the precision in which the dialect writes instants. */
export function readOrderFilter(dialect: Dialect, { query }: ApiCall): OrderFilter {
  const { orders, paging, orderStatuses } = dialect
  refuseUnknown(query, [paging.page, paging.limit, ...Object.values(orders)])
  const get = (name: string | null) => (name === null ? undefined : (query.get(name) ?? undefined))
  const word = get(orders.status)
  const status: OrderStatus | undefined =
    word !== undefined && Object.hasOwn(orderStatuses, word) ? orderStatuses[word] : undefined
  if (word !== undefined && !status)
    throw invalid(`${orders.status}: must be one of ${Object.keys(orderStatuses).join(', ')}`)
  const instant = (name: string | null) => {
    const text = get(name)
    return text === undefined ? undefined : readInstant(dialect, name ?? '', text)
  }
  const to = instant(orders.to)
  const before = to === undefined ? undefined : to + (dialect.instants === 'epoch_s' ? 1000 : 1)
  return { externalOrderId: get(orders.externalOrderId), status, from: instant(orders.from), before }
}

export const refuseQuery = ({ query }: ApiCall): void => refuseUnknown(query, [])

function refuseUnknown(query: URLSearchParams, known: (string | null)[]): void {
  for (const name of new Set(query.keys())) {
    if (!known.includes(name)) throw invalid(`${name}: no such parameter`)
    if (query.getAll(name).length > 1) throw invalid(`${name}: given more than once`)
  }
}

function readWhole(query: URLSearchParams, name: string, standard: number, min: number, max: number): number {
  const text = query.get(name)
  if (text === null) return standard
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= min && value <= max)) throw invalid(`${name}: must be a whole number from ${min} to ${max}`)
  return value
}

/** @returns epoch milliseconds */
function readInstant({ instants }: Dialect, name: string, text: string): number {
  if (instants !== 'iso') {
    if (!/^\d{1,14}$/.test(text)) throw invalid(`${name}: must be a whole number of ${instants}`)
    return instants === 'epoch_ms' ? Number(text) : Number(text) * 1000
  }
  const complete = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text)
  const at = complete ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at)) throw invalid(`${name}: must be an instant such as 2026-01-31T12:00:00Z`)
  return at
}

function readBody(call: ApiCall, known: string[]): Record<string, unknown> {
  const type = call.headers['content-type']?.[0] ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type))
    throw new Refusal('invalid', 'content-type: must be application/json', 415)
  const body = readObject(call.body)
  if (!body) throw invalid('The body must be a JSON object.')
  for (const name of Object.keys(body)) if (!known.includes(name)) throw invalid(`${name}: no such field`)
  return body
}

export function readObject(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
