/**
 * The supplier: our client of the Reseller API v1.1.
 *
 * The dialect fills in what the API leaves open. Wire formats stay in this folder: callers see only domain types. Reads are
 * paced and are tried three times. POST /orders is sent once, and its outcome is a value (`classify`). A failed read is a
 * Failure `unavailable` or `rejected` that names the supplier's request id.
 */
import assert from 'node:assert/strict'
import { type Dialect, flagValue, type Placeholder, putAt } from '../dialect/dialect.ts'
import { formatDecimal, type Money } from '../domain/money.ts'
import type {
  EventName,
  ExpectedOrder,
  OrderStatus,
  Placement,
  SupplierBalance,
  SupplierOffer,
  SupplierOrder,
  SupplierWebhook,
} from '../domain/supplier.ts'
import { Failure } from '../errors.ts'
import { Secret } from '../secret.ts'
import { classify, differenceText, unreadIn } from './classify.ts'
import { createCredentials, withoutSecrets } from './credentials.ts'
import { parseOffer } from './offer-record.ts'
import { createPacer } from './rate-limit.ts'
import {
  type Answers,
  answerMaxBytes,
  createAnswers,
  get,
  judge,
  type Page,
  type QueryParameters,
  readOne,
  readPage,
  type SupplierLink,
  send,
  setAside,
  unreadable,
  watchOrder,
  watchPage,
  watchPlacement,
  watchRecord,
  withKeys,
} from './read.ts'
import { parseBalance, parseOrder, parseWebhook, type Read, unreadField, unwrap, writeInstant } from './records.ts'
import {
  ANSWER_MAX_BYTES,
  type Connections,
  createReach,
  type Exchange,
  exchange,
  type Network,
  openAgent,
  PAGE_MAX_BYTES,
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

export interface OfferQuery extends PageQuery {
  search?: string
  category?: string
  inStock?: boolean
}

/** A filter without a name in the dialect is not sent, nor is a status for which the supplier has several words. */
export interface OrderQuery extends PageQuery {
  externalOrderId?: string
  /** Epoch milliseconds. */
  from?: number
  to?: number
  status?: OrderStatus
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
    products: (query: OfferQuery) => readProducts(client, query),
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

function readProducts(client: Client, query: OfferQuery): Promise<Page<SupplierOffer>> {
  const { search, category, inStock, ...paged } = query
  const { answers, dialect } = client
  const names = dialect.products
  const stock = inStock === undefined ? undefined : String(flagValue(dialect.flags.inStock, inStock))
  const filters: QueryParameters = [
    [names.search, search],
    [names.category, category],
    [names.inStock, stock],
  ]
  const page = readPage(client, '/products', { ...paged, id: dialect.product.id, filters }, parseOffer)
  // A single unreadable offer is not noted here, because the sync run reports it.
  return watchPage(answers, 'GET /products', page, { all: isWhole(paged, filters), partly: false })
}

/** Whether a query asks for the first page of the whole list, without filters. */
const isWhole = ({ page }: PageQuery, filters: QueryParameters): boolean =>
  page === 1 && !filters.some(([, value]) => value)

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
  const { externalOrderId, from, to, status, ...paged } = query
  const { answers, dialect } = client
  const names = dialect.orders
  const instant = (ms: number | undefined) => (ms === undefined ? undefined : writeInstant(ms, dialect))
  const filters: QueryParameters = [
    [names.externalOrderId, externalOrderId],
    [names.from, instant(from)],
    [names.to, instant(to)],
    [names.status, status && onlyWordFor(status, dialect)],
  ]
  const items = dialect.lists.orders
  const own = items === undefined ? {} : { items, setting: 'lists.orders' }
  const page = readPage(client, '/orders', { ...paged, filters, ...own }, parseOrder)
  return watchPage(answers, 'GET /orders', page, { all: isWhole(paged, filters), partly: true })
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

function onlyWordFor(status: OrderStatus, { orderStatuses }: Dialect): string | undefined {
  const words = Object.keys(orderStatuses).filter((word) => orderStatuses[word] === status)
  return words.length === 1 ? words[0] : undefined
}

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
