/**
 * The supplier: our client of the Reseller API v1.1.
 *
 * The dialect fills in what the API leaves open. Wire formats stay in this folder: callers see only domain types. Reads are
 * paced and are tried three times. POST /orders is sent once, and its outcome is a value (`classify`). A failed read is a
 * Failure `unavailable` or `rejected` that names the supplier's request id.
 */
import assert from 'node:assert/strict'
import pRetry from 'p-retry'
import { type Dialect, listAt, type Placeholder, putAt, valueAt } from '../dialect/dialect.ts'
import { leadsTo } from '../domain/free-text.ts'
import { formatDecimal, type Money } from '../domain/money.ts'
import {
  type EventName,
  type ExpectedOrder,
  followCursors,
  isNamed,
  type Placement,
  type SupplierBalance,
  type SupplierKey,
  type SupplierOffer,
  type SupplierOrder,
  type SupplierWebhook,
} from '../domain/supplier.ts'
import { Failure, type FailureReason } from '../errors.ts'
import { Secret } from '../secret.ts'
import { classify, unreadIn } from './classify.ts'
import { type Access, type Credentials, createCredentials, withoutSecrets } from './credentials.ts'
import { parseOffer } from './offer-record.ts'
import { createPacer, type Pacer, rateHint, rateLimited, retryAfterMs } from './rate-limit.ts'
import {
  asCount,
  asCursor,
  asFlag,
  differenceText,
  errorAnswer,
  NO_JSON,
  parseBalance,
  parseKey,
  parseOrder,
  parseWebhook,
  type Read,
  readJson,
  refusalUnder2xx,
  requestIdOf,
  textAt,
  type UnreadField,
  unreadField,
  unwrap,
  writeInstant,
} from './records.ts'
import {
  ANSWER_MAX_BYTES,
  type Connections,
  createReach,
  type Exchange,
  exchange,
  headerText,
  type Network,
  noAnswerText,
  openAgent,
  PAGE_MAX_BYTES,
  type Place,
  type Request,
  requestTo,
  sockets,
} from './request.ts'

type Given = Pick<SupplierLink, 'dialect' | 'apiKey' | 'now' | 'sleep' | 'random'>

export interface SupplierSettings extends Given {
  /** An http or https address; it ends in `/v1` where the dialect states no paths. One slash at its end is removed. */
  baseUrl: string
  /** Milliseconds of a clock that does not jump, for the age of a token. Default: `now`. */
  monotonic?: () => number
  /** Default: 15 s. */
  fetchDeadlineMs?: number
  /** Default: the sockets of this machine. */
  network?: Network
  /** Called when a request has ended, with its name (`GET /orders/{id}`), the class of its status (`2xx`), and how long it took. */
  onRequest?: (request: string, status: string, ms: number) => void
}

/** Pages count from 1, also where the supplier counts from 0; `limit` is at most, and by default, the dialect's largest page. */
export interface PageQuery {
  page: number
  limit?: number
  /** `next` of the page before it, in the same walk. With cursors, no page but the first can be asked for without it. */
  cursor?: string
}

/** A filter without a name in the dialect is not sent. */
export interface OrderQuery extends PageQuery {
  externalOrderId?: string
  /** Epoch milliseconds. */
  from?: number
  to?: number
}

export interface OrderRequest {
  /** The stored bytes, made by `orderBody`. */
  body: string
  idempotencyKey: string
  expected: ExpectedOrder
  /** An earlier attempt with this key may have been charged. */
  maybeCharged: boolean
  deadlineMs: number
  /** Called right before the first byte is written; false gives `not_executed`, cause `held_back`. */
  beforeWrite?: () => boolean
}

export type Supplier = ReturnType<typeof createSupplier>

/** This is much longer than the largest page takes, and much shorter than a person would wait. */
const FETCH_DEADLINE_MS = 15_000

/** Most orders in flight at once; the caller sends two to four. */
const ORDER_CONNECTIONS = 4

/** Look-ups, pages and refreshes run in parallel; more connections would only reach the rate limit sooner. */
const READ_CONNECTIONS = 8

/** An OpenAPI description of nine endpoints has some ten kilobytes; a generous description has some hundred. */
const OPENAPI_MAX_BYTES = 4 * 1024 * 1024

/**
 * Opens the client. Nothing is sent before the first call.
 *
 * @throws Failure `invalid`, naming `supplier.baseUrl` or `supplier.apiKey`
 */
export function createSupplier(settings: SupplierSettings) {
  const { dialect, apiKey, now, fetchDeadlineMs = FETCH_DEADLINE_MS, network = sockets } = settings
  const base = readBaseUrl(settings.baseUrl, dialect)
  if (!/^[\x21-\x7e]{1,500}$/.test(apiKey.reveal())) {
    throw invalid('supplier.apiKey', 'must be 1 to 500 visible ASCII characters, no spaces')
  }
  const pacer = createPacer(settings)
  const answers = createAnswers(now)
  const reach = createReach(now)
  const agent = network.open(READ_CONNECTIONS)
  const { monotonic = now } = settings
  const client: Client = {
    ...settings,
    base,
    credentials: createCredentials({ ...settings, base, monotonic, agent, after: network.after, fetchDeadlineMs }),
    fetchDeadlineMs,
    network,
    pacer,
    answers,
    note: (ended, ms, request) => {
      reach.note(ended, ms)
      settings.onRequest?.(request, statusClassOf(ended), ms)
    },
    isAway: reach.isAway,
    orderAgent: network.open(ORDER_CONNECTIONS),
    agent,
  }
  return {
    products: (query: PageQuery) => readProducts(client, query),
    /** Undefined when the supplier knows no such product. */
    product: (productId: string) => readProduct(client, productId),
    balance: () => readBalance(client),
    /** Sends one POST /orders, only once. Never throws for a failure of the supplier or the network. */
    placeOrder: (request: OrderRequest) => placeOrder(client, request),
    orders: (query: OrderQuery) => readOrders(client, query),
    /** Undefined when the supplier does not know the order, or no longer knows it. */
    order: (orderId: string) => readOrder(client, orderId),
    /** Describes for people the first field of an order that is not as ordered; undefined: the order agrees. */
    differs: (order: SupplierOrder, expected: ExpectedOrder) => differenceText(order, expected, dialect),
    webhooks: () => readWebhooks(client),
    /** @throws Failure `unknown_outcome` when the webhook may have been made: list the webhooks before another try */
    createWebhook: (wanted: { url: string; events: EventName[] }) => createWebhook(client, wanted),
    openapi: () => readOpenapi(client),
    /** The kinds of answers that cannot be read at present. */
    unreadable: () => answers.unreadable,
    /** Notes that a person has decided on an order whose keys cannot be read: the order no longer pauses buying. */
    setAside: (orderId: string) => setAside(answers, orderId),
    /** Whether this process already knows if answers to a request, such as `GET /orders`, can be read. */
    isJudged: (request: string) => answers.judged.has(request),
    reach: reach.read,
    /** The present window of the rate limit, as the supplier last stated it; undefined when no such window is known. */
    quota: pacer.quota,
    /** Until when the API key is paused after a 429, epoch milliseconds; undefined when the key is not paused. */
    pausedUntil: pacer.pausedUntil,
    /** Closes the connections. Ends when all open exchanges have ended; each exchange has its deadline. */
    close: async (): Promise<void> => {
      await Promise.all([client.agent.close(), client.orderAgent.close()])
    },
  }
}

/** The deadline of a single request is short, because a person waits for the check. */
const PROBE_DEADLINE_MS = 10_000

/**
 * Sends single GETs over a connection of its own, for checks that look at whole answers. Nothing is paced or repeated.
 *
 * @returns `get` takes a path, as `requestTo` has it, and the header for the API key: by default as the dialect says, null for none.
 *   `renew` fetches the next token, as after a 401, and returns how long that lasts; null: none came
 */
export function createProbe(given: Pick<SupplierSettings, 'baseUrl' | 'dialect' | 'apiKey' | 'now'>) {
  const { dialect, apiKey, now } = given
  const place = { dialect, base: readBaseUrl(given.baseUrl, dialect) }
  const agent = openAgent(1)
  const timing = { monotonic: now, after: sockets.after, fetchDeadlineMs: PROBE_DEADLINE_MS }
  const credentials = createCredentials({ ...place, ...timing, apiKey, agent })
  const bounds = { deadlineMs: PROBE_DEADLINE_MS, bodyMaxBytes: PAGE_MAX_BYTES }
  return {
    get: async (path: string, header: string | null = dialect.headers.apiKey): Promise<Exchange> => {
      const other = { headers: header === null ? {} : { [header]: apiKey.reveal() } }
      const access = header === dialect.headers.apiKey ? await credentials.access(0) : other
      if ('stage' in access) return access
      const request = requestTo(place, { method: 'GET', path, headers: access.headers, ...bounds })
      return withoutSecrets(await exchange(agent, request), credentials)
    },
    renew: async (): Promise<number | null> => {
      const before = await credentials.access(0)
      const next = 'stage' in before ? before : await credentials.refused(before.token ?? '', false)
      return next === undefined || 'stage' in next ? null : (next.lifeMs ?? Number.POSITIVE_INFINITY)
    },
    close: () => agent.destroy(),
  }
}

interface Client extends SupplierLink {
  answers: Answers
  orderAgent: Connections
}

function readProducts(client: Client, query: PageQuery): Promise<Page<SupplierOffer>> {
  const { answers, dialect } = client
  const page = readPage(client, '/products', { ...query, id: dialect.product.id, filters: [] }, parseOffer)
  // A single unreadable offer is not noted here, because the sync run reports it.
  return watchPage(answers, 'GET /products', page, { all: query.page === 1, partly: false })
}

async function readProduct(client: Client, productId: string): Promise<SupplierOffer | undefined> {
  const { answers, dialect } = client
  const reading = readOne(client, `/products/${segment(productId)}`, (record) =>
    only(productId, parseOffer(record, dialect), 'product.id', dialect.product.id, (offer) => offer.productId),
  )
  return watchRecord(answers, 'GET /products/{id}', reading, productId)
}

async function readBalance(client: Client): Promise<SupplierBalance> {
  const balance = await watchRecord(client.answers, 'GET /balance', readOne(client, '/balance', parseBalance))
  if (!balance) throw new Failure('unavailable', 'the supplier knows no balance', { reason: 'not_found' })
  return balance
}

async function placeOrder(client: Client, request: OrderRequest): Promise<Placement> {
  const { answers, dialect, pacer, now } = client
  const pausedUntil = pacer.pausedUntil()
  if (pausedUntil !== undefined) {
    const evidence = { detail: 'nothing was sent: the API key is paused after a 429' }
    return { outcome: 'not_executed', cause: 'rate_limited', retryAfterMs: pausedUntil - now(), evidence }
  }
  const { maybeCharged, expected, beforeWrite, idempotencyKey } = request
  const ended = await send(client, client.orderAgent, {
    method: 'POST',
    path: '/orders',
    headers: (dialect.idempotency ?? 'header') === 'header' ? { [dialect.headers.idempotencyKey]: idempotencyKey } : {},
    body: request.body,
    deadlineMs: request.deadlineMs,
    bodyMaxBytes: answerMaxBytes(dialect),
    beforeWrite,
  })
  const placement = classify(ended, { dialect, maybeCharged, expected, nowMs: now() })
  watchPlacement(answers, placement, () => unreadIn(ended, dialect))
  return placement
}

function readOrders(client: Client, query: OrderQuery): Promise<Page<SupplierOrder>> {
  const { externalOrderId, from, to, ...paged } = query
  const { answers, dialect } = client
  const names = dialect.orders
  const instant = (ms: number | undefined) => (ms === undefined ? undefined : writeInstant(ms, dialect))
  const filters: QueryParameters = [
    [names.externalOrderId, externalOrderId],
    [names.from, instant(from)],
    [names.to, instant(to)],
  ]
  const items = dialect.lists.orders
  const own = items === undefined ? {} : { items, setting: 'lists.orders' }
  const page = readPage(client, '/orders', { ...paged, filters, ...own }, parseOrder)
  const isWhole = query.page === 1 && !filters.some(([, value]) => value)
  return watchPage(answers, 'GET /orders', page, { all: isWhole, partly: true })
}

async function readOrder(client: Client, orderId: string): Promise<SupplierOrder | undefined> {
  const { answers, dialect } = client
  const reading = readOne(client, `/orders/${segment(orderId)}`, (record) =>
    only(orderId, parseOrder(record, dialect), 'order.id', dialect.order.id, (order) => order.id),
  )
  const whole = reading.then((order) => order && withKeys(client, order, segment(order.id)))
  return watchOrder(answers, whole, orderId, dialect)
}

function readWebhooks(client: Client): Promise<Page<SupplierWebhook>> {
  const { answers, dialect } = client
  const items = dialect.lists.webhooks ?? dialect.paging.items
  const page = readPage(client, '/webhooks', { filters: [], items }, parseWebhook)
  return watchPage(answers, 'GET /webhooks', page, { all: true, partly: false })
}

async function readOpenapi(client: Client): Promise<unknown> {
  const got = await get(client, '/openapi', OPENAPI_MAX_BYTES, client.dialect.openapiNeedsKey)
  if (got !== 'absent') return got.json
  throw new Failure('unavailable', 'the supplier serves no OpenAPI description', { reason: 'not_found' })
}

/** Returns the class of a status, such as `2xx`. `none`: no whole answer came. A 429 is a class of its own. */
function statusClassOf(ended: Exchange): string {
  if (ended.stage !== 'answered') return 'none'
  return ended.status === 429 ? '429' : `${Math.floor(ended.status / 100)}xx`
}

/** What `orderBody` of a dialect may name beside the order: the idempotency key, and the price of one unit, as the offer states it. */
export interface OrderTerms {
  idempotencyKey?: string
  price?: Money
}

/**
 * Returns the exact bytes of an order request, stored before they are sent; the order of the fields is fixed.
 *
 * @returns empty where the dialect's `orderBody` names a price that is not given, or asks for an id as a number that is none
 */
export function orderBody(dialect: Dialect, expected: ExpectedOrder, terms: OrderTerms = {}): string {
  const { quantity } = expected
  assert(Number.isSafeInteger(quantity) && quantity > 0, 'a quantity is a whole number above zero')
  if (dialect.orderBody) return filled(dialect.orderBody, valuesOf(dialect, expected, terms))
  const written = (['productId', 'quantity', 'externalOrderId'] as const).map(
    (field) => `${JSON.stringify(dialect.orderRequest[field])}:${JSON.stringify(expected[field])}`,
  )
  return `{${written.join(',')}}`
}

/** Returns each value of an order as JSON; undefined where it cannot be written. No value ever is a floating-point number. */
function valuesOf(
  { money: { representation } }: Dialect,
  { productId, quantity, externalOrderId }: ExpectedOrder,
  { idempotencyKey, price }: OrderTerms,
): Record<Placeholder, string | undefined> {
  const text = (value: string | undefined) => value && JSON.stringify(value)
  const amount = price && (representation === 'minor' ? String(price.minor) : formatDecimal(price))
  return {
    '{productId}': text(productId),
    '{productId:number}': /^(0|[1-9]\d*)$/.test(productId) ? productId : undefined,
    '{quantity}': String(quantity),
    '{quantity:text}': text(String(quantity)),
    '{price}': representation === 'decimal' ? text(amount) : amount,
    '{price:text}': text(amount),
    '{price:number}': amount,
    '{currency}': text(price?.currency),
    '{reference}': text(externalOrderId),
    '{key}': text(idempotencyKey),
  }
}

/** Fills a template, field by field in its order. Returns an empty text if a value that the template names is undefined. */
function filled(template: unknown, values: Record<string, string | undefined>): string {
  let isWhole = true
  const text = JSON.stringify(template, (_, value: unknown) => {
    if (typeof value !== 'string' || !Object.hasOwn(values, value)) return value
    isWhole &&= values[value] !== undefined
    return rawJson(values[value] ?? 'null')
  })
  return isWhole ? text : ''
}

/** A text that `JSON.stringify` writes as it is. TypeScript does not know it yet. */
const { rawJSON: rawJson } = JSON as unknown as { rawJSON: (text: string) => unknown }

/** Treats a record that has another id than the requested one as unreadable. */
const only = <T>(id: string, record: Read<T>, setting: string, path: string, idOf: (value: T) => string): Read<T> =>
  record.ok && idOf(record.value) !== id ? unreadField(setting, path, idOf(record.value)) : record

/** Writes an id as one segment of a path; `.` and `..` would lead to another path. */
function segment(id: string): string {
  if (!/^[^\p{C}]{1,200}$/u.test(id) || /^\.{1,2}$/.test(id)) throw invalid('id', 'must be 1 to 200 characters')
  return encodeURIComponent(id)
}

/** @throws Failure `invalid`, naming `supplier.baseUrl` */
export function readBaseUrl(text: string, { paths }: Pick<Dialect, 'paths'>): SupplierLink['base'] {
  const wrong = (message: string) => invalid('supplier.baseUrl', message)
  if (!URL.canParse(text)) throw wrong('must be an address such as https://supplier.example/api/v1')
  const url = new URL(text)
  const path = url.pathname.replace(/\/$/, '')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw wrong('must begin with https:// or http://')
  if (url.username !== '' || url.password !== '') throw wrong('must not carry a user name or password')
  if (text.includes('?') || text.includes('#')) throw wrong('must not have a query or fragment')
  if (paths === undefined && !path.endsWith('/v1')) throw wrong('must end in /v1')
  return { origin: url.origin, path }
}

const invalid = (field: string, message: string): Failure =>
  new Failure('invalid', `${field} ${message}`, { fields: [{ field, message }] })

/**
 * Registers a webhook with one request, which is never repeated. With a second webhook, every delivery would come twice, once
 * signed with a secret that Quayside does not know.
 *
 * @returns the wanted events for which the supplier has a name, and the secret, which it shows only this once
 * @throws Failure `unknown_outcome` when the webhook may have been made and its secret was not received
 * @see Reseller API v1.1, section 4, POST /webhooks
 */
async function createWebhook(link: SupplierLink, wanted: { url: string; events: EventName[] }) {
  const { dialect } = link
  const { names } = dialect.event
  const known = wanted.events.filter((event) => names[event] !== null)
  if (known.length === 0) throw new Failure('invalid', `the dialect ${dialect.name} names no event to be sent`)
  const body: Record<string, unknown> = {}
  const words = known.map((event) => names[event])
  putAt(body, dialect.webhookRequest.url, wanted.url)
  putAt(body, dialect.webhookRequest.events, words)
  await link.pacer.turn()
  const ended = await send(link, link.agent, {
    method: 'POST',
    path: '/webhooks',
    headers: {},
    body: JSON.stringify(body),
    deadlineMs: link.fetchDeadlineMs,
    bodyMaxBytes: ANSWER_MAX_BYTES,
  })
  const answer = judge(link, ended)
  if ('failure' in answer) {
    const { code, reason } = answer.failure
    const refused =
      ended.stage === 'not_sent' ||
      (ended.stage === 'answered' && ended.status >= 400 && ended.status < 500 && ended.status !== 408) ||
      // Under 2xx, only the envelope can say that the request was refused.
      (ended.stage === 'answered' && ended.status < 300 && (code === 'rejected' || reason === 'unauthorized'))
    throw refused ? answer.failure : unknownWebhook(answer.failure)
  }
  const data = unwrap(answer.json, dialect)
  const webhook = data.ok ? parseWebhook(data.value, dialect) : data
  if (!webhook.ok) throw unknownWebhook(unreadable(webhook, answer.requestId))
  const { secret, ...rest } = webhook.value
  const noSecret = unreadField('webhook.secret', dialect.webhook.secret, undefined)
  if (!secret) throw unknownWebhook(unreadable(noSecret, answer.requestId))
  return { webhook: rest, events: known, secret: new Secret(secret.reveal()) }
}

const unknownWebhook = (cause: Failure): Failure =>
  new Failure('unknown_outcome', `the webhook may have been made: ${cause.message}`, { cause })

/* Requests and reads: the tries of a read, what an answer says, and the answers that cannot be read. */

/** What every request to one supplier needs. */
export interface SupplierLink extends Place {
  apiKey: Secret
  credentials: Credentials
  now: () => number
  sleep: (ms: number) => Promise<void>
  random: () => number
  fetchDeadlineMs: number
  pacer: Pacer
  /** Called after every exchange. `request` is a name such as `GET /orders/{id}`. */
  note: (ended: Exchange, ms: number, request: string) => void
  /** Connections for everything but orders, so that look-ups are never starved. */
  agent: Connections
  network: Network
  /** Whether the supplier has answered nothing for a minute. */
  isAway: () => boolean
}

/** One page of a list. Records that cannot be read are in `unreadable`; the others are still in `items`. */
export interface Page<T> {
  items: T[]
  unreadable: ({ index: number; id?: string; requestId: string | undefined } & UnreadField)[]
  /** The length of the requested list, where the supplier counts it. */
  total?: number
  /** The supplier's flag for another page; undefined where the supplier has no such flag. A count is not a flag, a cursor is. */
  more: boolean | undefined
  /** What the query for the next page of the same walk needs as its `cursor`; undefined: a page is asked for by its number. */
  next?: string
  requestId: string | undefined
}

interface Got {
  json: unknown
  requestId: string | undefined
}

/** Query parameters in the order in which they are sent; undefined values are not sent. */
export type QueryParameters = [name: string | null, value: string | number | undefined][]

/** A query for one page of one list. `items`: the path of the items in the answer, in the setting `setting`; else `paging.items`. */
export interface ListQuery {
  page?: number
  limit?: number
  /** `next` of the page before. It goes before the number of the page. */
  cursor?: string
  filters: QueryParameters
  items?: string
  setting?: string
  /** The path of a record's id, by which a record that cannot be read is named. */
  id?: string
}

/** Two more tries. A failure that outlasts three tries usually lasts for minutes: the caller's next run repeats the read. */
const RETRIES = 2
const BACKOFF_MS = 250

/** A Retry-After up to this is waited for within the read. A longer one fails the read, because a caller waits for the answer. */
const RETRY_AFTER_WAITED_MS = 5_000

/** The longest answer about one record: with keys that are pictures, it may be as long as a page. */
export const answerMaxBytes = ({ keys }: Dialect): number => (keys === undefined ? ANSWER_MAX_BYTES : PAGE_MAX_BYTES)

/**
 * Reads one record.
 *
 * @returns undefined when the supplier's error envelope says that there is no such record
 * @throws Failure `unavailable` or `rejected`, see `get`; `unavailable` naming the first field that cannot be read
 */
export async function readOne<T>(
  link: SupplierLink,
  path: string,
  read: (record: unknown, dialect: Dialect) => Read<T>,
): Promise<T | undefined> {
  const got = await get(link, path, answerMaxBytes(link.dialect))
  if (got === 'absent') return undefined
  const data = unwrap(got.json, link.dialect)
  const record = data.ok ? read(data.value, link.dialect) : data
  if (!record.ok) throw unreadable(record, got.requestId)
  return record.value
}

/**
 * Reads one page of a list.
 *
 * @param page counts from 1; undefined for a list without pages, whose answer may also be the bare list
 * @throws Failure `unavailable` or `rejected`, see `get`; `unavailable` when the page itself cannot be read
 */
export async function readPage<T>(
  link: SupplierLink,
  path: string,
  { page, limit, cursor, filters, items = link.dialect.paging.items, setting = 'paging.items', id: idPath }: ListQuery,
  read: (record: unknown, dialect: Dialect) => Read<T>,
): Promise<Page<T>> {
  const { paging, lists, envelope, flags } = link.dialect
  const size = Math.min(limit ?? paging.limitMax, paging.limitMax)
  const place = page === undefined ? undefined : (cursor ?? placeOf(paging, page, size))
  const paged: QueryParameters = [
    [paging.page, place],
    [paging.limit, page && size],
  ]
  const got = await get(link, `${path}${queryText([...paged, ...filters])}`, PAGE_MAX_BYTES)
  if (got === 'absent') {
    const what = cursor === undefined ? path : `page of ${path} at the cursor that it named`
    throw new Failure('unavailable', `the supplier knows no ${what}`, { reason: 'not_found' })
  }
  const { json, requestId } = got
  const data = unwrap(json, link.dialect, lists.data ?? envelope.data)
  if (!data.ok) throw unreadable(data, requestId)
  const bare = page === undefined && Array.isArray(data.value)
  const records = bare ? data.value : listAt(data.value, items)
  if (!Array.isArray(records)) throw unreadable(unreadField(setting, items, records), requestId)

  const result: Page<T> = { items: [], unreadable: [], more: undefined, requestId }
  for (const [index, record] of records.entries()) {
    const item = read(record, link.dialect)
    if (item.ok) {
      result.items.push(item.value)
      continue
    }
    const id = textAt(record, idPath ?? null)
    const { field, setting, seen } = item
    result.unreadable.push({ index, ...(id === undefined ? {} : { id }), field, setting, seen, requestId })
  }
  if (page === undefined) return { ...result, more: false }
  const isFiltered = filters.some(([name, value]) => name !== null && value !== undefined)
  const counts = paging.totalFiltered || !isFiltered
  const fieldAt = <F>(setting: string, path: string, readField: (value: unknown) => F | undefined): F => {
    const value = valueAt(data.value, path)
    const field = readField(value)
    if (field === undefined) throw unreadable(unreadField(setting, path, value), requestId)
    return field
  }
  if (counts && paging.total !== null && valueAt(data.value, paging.total) !== undefined)
    result.total = fieldAt('paging.total', paging.total, asCount)
  if (paging.more !== null) result.more = fieldAt('paging.more', paging.more, asFlag(flags.more))
  if (paging.kind === 'offset') result.next = String(Number(place) + records.length)
  if (paging.next !== undefined) {
    const next = fieldAt('paging.next', paging.next, asCursor)
    result.more = next !== ''
    if (result.more) result.next = next
  }
  return result
}

/** Returns what the parameter of the page takes. Undefined: it is not sent, for the first page of a list with cursors. */
function placeOf({ kind, first }: Dialect['paging'], page: number, size: number): number | undefined {
  if (kind !== 'cursor') return first + (page - 1) * (kind === 'offset' ? size : 1)
  if (page === 1) return undefined
  throw new Failure('internal', `page ${page} can only be asked for by the cursor that the page before it names`)
}

/** The most pages of keys that are read of one order: the list of a supplier may have no end. */
const KEY_PAGES_MAX = 1_000

/** No keys came: people hear of it as of a completed order without keys. */
const REFUSALS = ['not_found', 'supplier_rejected', 'unexpected_status', 'unauthorized', 'redirect']

/**
 * Reads the keys of an order where a second read brings them. An open order is not asked for, so that one request is enough for
 * most orders. A failed one may have some: it was cancelled half delivered. All or nothing: one unreadable key or page makes the
 * order unreadable.
 *
 * @param id the id of the order as one segment of a path
 * @returns the order with the keys that the supplier shows: none where it knows none yet, or refuses to show them
 * @throws Failure as `readPage` does; `unavailable` naming the first key that cannot be read
 */
export async function withKeys(link: SupplierLink, order: SupplierOrder, id: string): Promise<SupplierOrder> {
  const { path = null, paged = false, items = '' } = link.dialect.keys ?? {}
  if (path === null || order.status === 'open') return order
  const hasCursors = link.dialect.paging.kind === 'cursor'
  const comesAgain = followCursors()
  const keys = new Map<string, SupplierKey>()
  const own = path.replace('{id}', () => id)
  let cursor: string | undefined
  for (let page = 1; page <= KEY_PAGES_MAX; page += 1) {
    const at = paged ? { page, ...(cursor !== undefined && { cursor }) } : {}
    const reading = readPage(link, own, { ...at, filters: [], items, setting: 'keys.items' }, parseKey)
    const read = await reading.catch((error: unknown) => {
      const reason = error instanceof Failure ? error.reason : undefined
      if (REFUSALS.includes(reason ?? '')) return undefined
      const isBroken = reason === 'server_error' && order.status === 'completed'
      throw isBroken ? unreadable({ field: path, setting: 'keys.path', seen: NO_KEYS }, undefined) : error
    })
    const [unread] = read?.unreadable ?? []
    if (unread) throw unreadable(unread, unread.requestId)
    cursor = read?.next
    const known = keys.size
    for (const key of read?.items ?? []) keys.set(key.reveal(), key)
    if (!read || read.more === false || keys.size >= (order.quantity ?? Number.POSITIVE_INFINITY)) break
    // A supplier that knows no pages answers the first one again. A page that names the next one may bring nothing new.
    if (hasCursors ? comesAgain(cursor ?? '') : keys.size === known) break
  }
  return { ...order, keys: [...keys.values()] }
}

/**
 * GETs a document in at most three tries. It tries again after no connection, no whole answer, a 5xx, a body that is no JSON,
 * and a 429 whose Retry-After is short.
 *
 * @returns `absent` when an error envelope says that the document does not exist, or no longer exists
 * @throws Failure `unavailable`, its reason one of unreachable, no_answer, server_error, rate_limited, unauthorized,
 *   redirect, unreadable, unexpected_status; or `rejected`, its reason the supplier's code
 */
export function get(link: SupplierLink, path: string, bodyMaxBytes: number, withKey = true): Promise<Got | 'absent'> {
  let waitMs: number | undefined
  const once = async (): Promise<Got | 'absent'> => {
    waitMs = undefined
    await link.pacer.turn()
    const bounds = { deadlineMs: link.fetchDeadlineMs, bodyMaxBytes }
    const ended = await send(link, link.agent, { method: 'GET', path, headers: {}, ...bounds, keyless: !withKey })
    const answer = judge(link, ended)
    if (!('failure' in answer)) return answer
    if (answer.failure.reason === 'not_found') return 'absent'
    waitMs = answer.againMs
    throw answer.failure
  }
  // We wait here, because the clock is the caller's. The library only counts the tries.
  const shouldRetry = async ({ retriesConsumed }: { retriesConsumed: number }) => {
    if (waitMs === undefined || link.isAway()) return false
    if (waitMs > 0) await link.sleep(Math.ceil(waitMs * 2 ** retriesConsumed * (1 + link.random())))
    return true
  }
  return pRetry(once, { retries: RETRIES, minTimeout: 0, shouldRetry })
}

/** A request by its path in the Reseller API v1.1, see `requestTo`. `keyless`: it carries no credentials. */
type Sent = Omit<Request, 'origin'> & { keyless?: boolean }

/**
 * Performs one exchange with this supplier. The pacer sees the rate-limit headers and the 429 of every request.
 *
 * After a 401 to a token, the token is renewed once. A GET is then repeated once; a POST never is, and its answer says by
 * `renewal` that there is another token. Without a token nothing is sent.
 */
export async function send(link: SupplierLink, agent: Connections, request: Sent): Promise<Exchange> {
  const { credentials } = link
  const name = nameOf(request)
  const whole = requestTo(link, request)
  const isPost = request.method === 'POST'
  const access = request.keyless ? { headers: {} } : await credentials.access(isPost ? request.deadlineMs : 0)
  if ('stage' in access) {
    link.note(access, 0, name)
    return access
  }
  const [ended, ms] = await once(link, agent, whole, access)
  const { token } = access
  const isRefused = ended.stage === 'answered' && ended.status === 401 && token !== undefined
  const next = isRefused ? await credentials.refused(token, isPost) : undefined
  if (next === undefined || ended.stage !== 'answered') {
    link.note(ended, ms, name)
    return ended
  }
  const isAway = 'stage' in next
  const answer: Exchange = { ...ended, renewal: isAway ? 'away' : 'done' }
  link.note(answer, ms, name)
  if (isAway) link.note(next, 0, name)
  if (isPost) return answer
  if (isAway) return next
  const [again, againMs] = await once(link, agent, whole, next)
  link.note(again, againMs, name)
  return again
}

async function once(
  link: SupplierLink,
  agent: Connections,
  request: Request,
  { headers, token }: Access,
): Promise<[ended: Exchange, ms: number]> {
  const { credentials, pacer, dialect } = link
  const sentAt = link.now()
  const answer = await exchange(agent, { ...request, headers: { ...request.headers, ...headers } }, link.network.after)
  const ended = withoutSecrets(answer, credentials)
  const ms = link.now() - sentAt
  if (ended.stage === 'not_sent' || ended.status === undefined || ended.headers === undefined) return [ended, ms]
  if (token !== undefined && ended.status !== 401 && ended.status < 500)
    credentials.taken(token, request.method === 'POST')
  pacer.observe(rateHint(ended.headers, dialect, link.now()))
  if (ended.status === 429) pacer.pause(askedWaitMs(link, ended.headers))
  else pacer.resumed()
  return [ended, ms]
}

/** A request without its ids and filters: `GET /orders/{id}`. */
function nameOf({ method, path }: Pick<Request, 'method' | 'path'>): string {
  const [, first = '', id] = (path.split('?')[0] ?? '').split('/')
  return `${method} /${first}${id === undefined ? '' : '/{id}'}`
}

/**
 * Judges what the answer to any request but POST /orders means.
 *
 * @returns the parsed document, or the failure and the wait before another try; without a wait, there is no other try
 */
export function judge(link: SupplierLink, ended: Exchange): Got | { failure: Failure; againMs?: number } {
  if (ended.stage === 'not_sent') {
    if (ended.refused) return { failure: unavailable('unauthorized', `refused the API key: ${ended.cause}`) }
    return { failure: unavailable('unreachable', noAnswerText(ended)), againMs: BACKOFF_MS }
  }
  const requestId = headerText(ended.headers, link.dialect.headers.requestId)
  if (ended.stage === 'lost') {
    return { failure: unavailable('no_answer', noAnswerText(ended), requestId), againMs: BACKOFF_MS }
  }
  const { status, headers, body } = ended
  const json = ended.unreadable === undefined ? readJson(body) : undefined
  const refusal = status >= 200 && status <= 299 ? refusalUnder2xx(json, link.dialect) : undefined
  if (status >= 200 && status <= 299 && !refusal) {
    if (json !== undefined) return { json, requestId }
    const failure = unavailable('unreadable', 'answered with something that is no JSON', requestId)
    return { failure, againMs: BACKOFF_MS }
  }
  const error = errorAnswer(json, link.dialect)
  const named = requestId ?? requestIdOf(json, link.dialect)
  if (status === 429) {
    const wait = askedWaitMs(link, headers)
    const failure = rateLimited((link.pacer.pausedUntil() ?? link.now()) - link.now())
    // The pacer holds the next try until the pause is over.
    return wait !== undefined && wait <= RETRY_AFTER_WAITED_MS ? { failure, againMs: 0 } : { failure }
  }
  const broke = status >= 500 || refusal?.kind === 'internal' || refusal?.kind === 'unavailable'
  if (broke) return { failure: unavailable('server_error', `answered ${status}`, named), againMs: BACKOFF_MS }
  if (status < 400 && !refusal) {
    const answered = `answered ${status}${leadsTo(headers.location, link.base.origin)}`
    return { failure: unavailable('redirect', `${answered}; redirects are refused`, named) }
  }
  const failed = (code: 'rejected' | 'unavailable', text: string, reason?: FailureReason) => ({
    failure: new Failure(code, idText(`the supplier ${text}`, named), reason && { reason }),
  })
  if (error?.kind === 'not_found' || error?.kind === 'gone')
    return failed('rejected', 'knows no such record', 'not_found')
  // Only a POST comes here with it: a GET was repeated.
  if (ended.renewal !== undefined) return failed('unavailable', 'refused a token that had ended; try again')
  if (status === 401 || status === 403 || error?.kind === 'unauthenticated' || error?.kind === 'forbidden') {
    return { failure: unavailable('unauthorized', `refused the API key with ${status}`, named) }
  }
  if (!error)
    return { failure: unavailable('unexpected_status', `answered ${status} without an error envelope`, named) }
  const text = `rejected the request: ${error.code}${error.message === '' ? '' : `: ${error.message}`}`
  return failed('rejected', text, 'supplier_rejected')
}

export const unreadable = (unread: UnreadField, requestId: string | undefined): Failure => {
  const { field, setting, seen } = unread
  const what = `the supplier's answer cannot be read at ${field} (${setting} of the dialect): it has ${seen} there`
  return new Unreadable(unread, idText(what, requestId), requestId)
}

const unavailable = (reason: FailureReason, what: string, requestId?: string): Failure =>
  new Failure('unavailable', idText(`the supplier ${what}`, requestId), { reason })

const idText = (text: string, requestId: string | undefined): string =>
  requestId === undefined ? text : `${text} (request ${requestId})`

const askedWaitMs = (
  link: SupplierLink,
  headers: Exclude<Exchange, { stage: 'not_sent' }>['headers'],
): number | undefined => retryAfterMs(headerText(headers, link.dialect.headers.retryAfter), link.now())

function queryText(query: QueryParameters): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of query) {
    if (name !== null && value !== undefined) parameters.append(name, String(value))
  }
  return parameters.size === 0 ? '' : `?${parameters}`
}

/** One kind of answer that cannot be read at present. */
export interface UnreadableAnswer extends UnreadField {
  /** Method and path, ids left out: `GET /orders/{id}`. */
  request: string
  /** When the first of its kind came, epoch milliseconds. */
  since: number
  /** The supplier's id of the first such request. */
  requestId: string | undefined
  /** Other records of the same answer could be read. */
  partly: boolean
  /** The last requested id, where the request has one. */
  id?: string | undefined
}

/** One sentence for people. */
export const unreadableText = ({ request, field, setting, seen }: UnreadableAnswer): string =>
  `the answer to ${request} cannot be read: ${field} (${setting} of the dialect) has ${seen} there`

/** The failure of a record or page whose field cannot be read. */
export class Unreadable extends Failure {
  readonly unread: UnreadField

  constructor(unread: UnreadField, message: string, requestId: string | undefined) {
    const { field } = unread
    const fields = [{ field, message: 'missing, or not as the dialect says' }]
    super('unavailable', message, { reason: 'unreadable', fields, requestId })
    this.unread = unread
  }
}

/** A completed order has keys. If none is found, the dialect has a wrong path of the keys. */
export const NO_KEYS = 'no key of a completed order'

/** The settings of keys: only an order with keys shows that keys can be read. */
export const OF_KEYS = /^(order\.key|keys\.)/

/** Most orders without keys that are remembered. When more come, all are forgotten. The only harm is one more pause of buying. */
const ALONE_MAX = 1_000

/** Settings of fields around the records: a page without records proves only that these fields can be read. */
const AROUND = /^(envelope|lists|paging)/

/** Remembers which kinds of answers cannot be read, until an answer of the kind can be read. */
export interface Answers {
  now: () => number
  unreadable: readonly UnreadableAnswer[]
  /** Requests of which this process knows whether their answers can be read. */
  judged: Set<string>
  /** Orders whose keys could not be read while the keys of another order could: the fault is in these orders alone. */
  keylessAlone: Set<string>
}

export const createAnswers = (now: () => number): Answers => ({
  now,
  unreadable: [],
  judged: new Set(),
  keylessAlone: new Set(),
})

function note(
  answers: Answers,
  request: string,
  { field, setting, seen }: UnreadField,
  answer: Pick<UnreadableAnswer, 'requestId' | 'partly' | 'id'>,
): void {
  const { now, judged, keylessAlone, unreadable } = answers
  judged.add(request)
  if (OF_KEYS.test(setting) && answer.id !== undefined && keylessAlone.has(answer.id)) return
  const earlier = unreadable.find((one) => one.request === request && one.setting === setting)
  const { since = now(), requestId = answer.requestId } = earlier ?? {}
  const rest = unreadable.filter((one) => one !== earlier)
  // A page with some readable records proves that the kind as a whole can be read.
  const left = answer.partly ? rest.filter((one) => one.request !== request || one.partly) : rest
  answers.unreadable = [...left, { ...answer, request, field, setting, seen, since, requestId }]
}

function clear(answers: Answers, request: string, which?: (answer: UnreadableAnswer) => boolean): void {
  if (!which) answers.judged.add(request)
  answers.unreadable = answers.unreadable.filter((one) => one.request !== request || (which && !which(one)))
}

async function watched<T>(answers: Answers, request: string, reading: Promise<T>, id?: string): Promise<T> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof Failure && error.reason === 'unreadable') {
      const { unread, requestId } = error instanceof Unreadable ? error : { unread: NO_JSON, requestId: undefined }
      note(answers, request, unread, { requestId, partly: false, id })
    }
    throw error
  }
}

/** Notes that no keys of this order are expected any more. */
export function setAside(answers: Answers, id: string): void {
  answers.keylessAlone.add(id)
  answers.unreadable = answers.unreadable.filter((one) => one.id !== id || !OF_KEYS.test(one.setting))
}

/** Notes whether one record could be read. @param id the id of the record, where the request names a record */
export async function watchRecord<T>(
  answers: Answers,
  request: string,
  reading: Promise<T | undefined>,
  id?: string,
): Promise<T | undefined> {
  const record = await watched(answers, request, reading, id)
  // A record that is gone will never be read again, so what was noted about it is dropped.
  clear(answers, request, record === undefined ? (answer) => answer.id === id : undefined)
  return record
}

/** Notes whether an order and its keys could be read; only a read by id brings keys. */
export async function watchOrder(
  answers: Answers,
  reading: Promise<SupplierOrder | undefined>,
  id: string,
  { order: { keys: inOrder }, keys }: Dialect,
): Promise<SupplierOrder | undefined> {
  const request = 'GET /orders/{id}'
  const { judged, keylessAlone } = answers
  const order = await watched(answers, request, reading, id)
  if (!order || order.keys.length > 0) {
    if (keylessAlone.size >= ALONE_MAX) keylessAlone.clear()
    const others = order ? answers.unreadable.filter((one) => OF_KEYS.test(one.setting) && one.id !== id) : []
    for (const one of others) if (one.id !== undefined) keylessAlone.add(one.id)
    clear(answers, request, order ? undefined : (answer) => answer.id === id)
    return order
  }
  judged.add(request)
  clear(answers, request, ({ setting }) => !OF_KEYS.test(setting))
  const [setting, at] = keys?.path == null ? (['order.keys', inOrder] as const) : (['keys.items', keys.items] as const)
  const unread = { ...unreadField(setting, at, undefined), seen: NO_KEYS }
  if (order.status === 'completed') note(answers, request, unread, { requestId: undefined, partly: false, id })
  return order
}

/** Notes whether a page could be read. @param all the page begins the whole list: if it is empty, nothing is unreadable */
export async function watchPage<T>(
  answers: Answers,
  request: string,
  reading: Promise<Page<T>>,
  { all, partly }: { all: boolean; partly: boolean },
): Promise<Page<T>> {
  const page = await watched(answers, request, reading)
  const [first] = page.unreadable
  const none = page.items.length === 0
  if (!first) clear(answers, request, none && !all ? ({ setting }) => AROUND.test(setting) : undefined)
  else if (none || partly) note(answers, request, first, { requestId: first.requestId, partly: !none })
  else clear(answers, request)
  return page
}

/** Notes whether the answer to POST /orders could be read. @param unread finds the unreadable field, only when needed */
export function watchPlacement(answers: Answers, placement: Placement, unread: () => UnreadField | undefined): void {
  const request = 'POST /orders'
  const { outcome, evidence } = placement
  if (outcome === 'accepted') clear(answers, request)
  // A readable refusal says nothing about the records of orders.
  else if (outcome === 'rejected') clear(answers, request, ({ setting }) => !setting.startsWith('order.'))
  else if (outcome === 'unknown' && (placement.cause === 'disagrees' || isNamed(placement))) clear(answers, request)
  const found = outcome === 'unknown' && placement.cause === 'unreadable' ? unread() : undefined
  if (found) note(answers, request, found, { requestId: evidence.requestId, partly: false })
}
