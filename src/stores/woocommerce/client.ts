import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { leadsTo } from '../../domain/free-text.ts'
import { type Connecting, jsonIn } from '../connection.ts'
import {
  ASKS_JSON,
  answeredAt,
  asRead,
  failureOf,
  isPage,
  type RawAnswer,
  type Read,
  type ShopFailure,
  shopRequests,
} from '../shop-client.ts'
import type { NotConfirmed } from '../store.ts'
import type { ShopCredentials } from '../store-kind.ts'
import type { Refunded } from './orders.ts'

export interface ShopOptions extends Connecting {
  /** The shop's address, with the folder that WordPress is in. */
  url: string
  /** The consumer key and the consumer secret. */
  credentials: ShopCredentials
  /** Makes the nonce of a signature. */
  newId: () => string
}

/** The facts about a shop that were learned from its answers. All copies of a `Shop` share one such object. */
interface Known {
  /** Where a request carries the key. Over plain http the key is not sent: it signs each request. */
  keyPlace: 'header' | 'query' | 'signature'
  /** How many items the next batch has. */
  batchSize: number
  /** The one currency that the shop sells in. Products do not name it. */
  currency?: { code: string; readAt: number }
  /** The ids of categories by their names. */
  categories: { ids: Map<string, number>; readAt: number }
  /** By the id of an order: the refunds that were read, and the list of refunds in the order at that time. */
  refunds: Map<number, { listed: string; refunded: Refunded }>
  /** By the id of an order: the shop's answer when Quayside last wrote to the order. */
  written: Map<number, string>
}

/** A shop of WooCommerce, the first parameter of each function that calls the shop. */
export type Shop = ReturnType<typeof openShop>

export function openShop({ url, credentials, newId, ...connecting }: ShopOptions) {
  const { now } = connecting
  const root = new URL(`${url.replace(/\/+$/, '')}/wp-json/wc/v3`)
  const known: Known = {
    keyPlace: root.protocol === 'https:' ? 'header' : 'signature',
    batchSize: ITEMS_MAX,
    categories: { ids: new Map(), readAt: now() },
    refunds: new Map(),
    written: new Map(),
  }
  /** `until`: no request that writes is sent from this instant on. */
  const requests = shopRequests(connecting)
  return { credentials, newId, now, root, requests, known, until: Number.POSITIVE_INFINITY }
}

interface ShopCall {
  method: 'GET' | 'POST' | 'PUT'
  /** The path below `/wp-json/wc/v3`. */
  path: string
  query?: Record<string, string>
  body?: object
}

/** How a call ended. `body`: parsed JSON, not checked. `answeredAt`: the time of the shop's clock; null if the shop did not say. */
export type ShopAnswer = Answered | Failed
interface Answered {
  ok: true
  body: unknown
  headers: RawAnswer['headers']
  answeredAt: number | null
}
/** `code`: WooCommerce's name of an error, which callers compare. `data`: the data of the error, not checked. */
interface Failed extends ShopFailure {
  code?: string | null
  data?: unknown
}

/** To write a hundred products, WordPress with slow plug-ins needs most of this time. The `settleMs` of the store is longer. */
const WRITE_DEADLINE_MS = 60_000
const READ_DEADLINE_MS = 30_000

/**
 * Sends a request. Some servers remove the header with the key. If the shop answers that it saw no key, the request is sent again
 * with the key in the query. A failure quotes from an answer only the address that a redirect leads to.
 */
export async function call(shop: Shop, given: ShopCall): Promise<ShopAnswer> {
  const { known } = shop
  const first = await send(shop, given, known.keyPlace)
  if (known.keyPlace !== 'header' || first.ok || !isUnauthenticated(first)) return first
  const second = await send(shop, given, 'query')
  if (!second.ok && isUnauthenticated(second)) return first
  known.keyPlace = 'query'
  return second
}

async function send(shop: Shop, given: ShopCall, place: Known['keyPlace']): Promise<ShopAnswer> {
  const { method, path, body } = given
  const target = new URL(shop.root)
  target.pathname += path
  const { query, headers } = authenticated(shop, given, place, target)
  target.search = query.map(([name, value]) => `${percent(name)}=${percent(value)}`).join('&')
  const isWrite = method !== 'GET'
  const answer = await shop.requests.send(target, {
    method,
    headers: { ...ASKS_JSON, ...headers, ...(body && { 'content-type': 'application/json' }) },
    body: body === undefined ? null : JSON.stringify(body),
    isWrite,
    until: shop.until,
    deadlineMs: isWrite ? WRITE_DEADLINE_MS : READ_DEADLINE_MS,
  })
  return 'ok' in answer ? answer : readAnswer(answer, { isWrite, host: target.host, isSigned: place === 'signature' })
}

/** Returns the query and headers that a request must carry. The key appears here only. */
function authenticated(
  { credentials, newId, now }: Shop,
  { method, query: asked = {} }: ShopCall,
  place: Known['keyPlace'],
  url: URL,
) {
  const [key, secret] = [credentials.key.reveal(), credentials.secret.reveal()]
  const query = Object.entries(asked)
  if (place === 'query') query.push(['consumer_key', key], ['consumer_secret', secret])
  if (place === 'signature') {
    const at = { nonce: newId(), timestamp: Math.floor(now() / 1000) }
    query.push(...oauthParameters({ method, url, query: asked, key, secret, ...at }))
  }
  const authorization = `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`
  return { query, headers: { ...(place === 'header' && { authorization }) } }
}

/** Reads an answer by a schema. @param unreadable the outcome where the answer is something else */
export function readAs<Value>(answer: ShopAnswer, schema: z.ZodType<Value>, unreadable: NotConfirmed): Read<Value> {
  if (!answer.ok) return answer.failure
  const { success, data } = schema.safeParse(answer.body)
  return success ? asRead(data) : unreadable
}

/** The most items that WordPress gives on a page. */
export const PAGE_SIZE = 100
/** The most items that WooCommerce takes in a batch. */
export const ITEMS_MAX = 100

/**
 * Reads a page of a list. `total`: how many items the list has, on all its pages; undefined where the shop does not say.
 *
 * @param unreadable the outcome where the answer is something else
 */
export async function readList<Item>(
  shop: Shop,
  path: string,
  query: Record<string, string>,
  item: z.ZodType<Item>,
  unreadable: NotConfirmed,
) {
  const answer = await call(shop, { method: 'GET', path, query: { per_page: String(PAGE_SIZE), ...query } })
  if (!answer.ok) return answer.failure
  const { data: items } = z.array(item).safeParse(answer.body)
  if (items === undefined) return unreadable
  const [total, pages] = ['x-wp-total', 'x-wp-totalpages'].map((name) => {
    const count = Number(answer.headers[name] ?? Number.NaN)
    return Number.isSafeInteger(count) ? count : undefined
  })
  const isLast = pages === undefined ? items.length < PAGE_SIZE : Number(query.page) >= pages
  return { outcome: 'read', items, isLast, total, answeredAt: answer.answeredAt } as const
}

/** Whether the shop saw no key, or an unknown key. WooCommerce has one answer for these two cases. */
const isUnauthenticated = ({ failure, code = null }: Failed): boolean =>
  failure.outcome === 'refused' && isUnseen({ status: failure.status, code })

/**
 * Says what an answer means.
 *
 * @param asked.isWrite true: the shop may have acted although its answer does not say so
 * @param asked.isSigned true: the key signed the request, over plain http
 */
export function readAnswer(
  answer: RawAnswer,
  { isSigned = false, ...asked }: { isWrite: boolean; host: string; isSigned?: boolean },
): ShopAnswer {
  const { status, headers, text } = answer
  const body = jsonIn(text)
  if (status >= 200 && status < 300 && body !== undefined) {
    return { ok: true, body, headers, answeredAt: answeredAt(answer) }
  }
  const error = (body ?? {}) as { code?: unknown; data?: unknown }
  const code = typeof error.code === 'string' ? error.code : null
  const seen = { status, code, isPage: isPage(answer), isSigned }
  const [, said, fix] = MEANINGS.find(([fits]) => fits(seen)) ?? [undefined, `it refused the request${named(code)}`]
  const cause = said + (status < 400 ? leadsTo(headers.location, `https://${asked.host}`) : '')
  const isTaken = status < 300 || status >= 500 || [408, 425, 429].includes(status) ? 'unknown' : 'no'
  return { ...failureOf(answer, { cause, fix, isTaken }, asked), code, data: error.data }
}

interface Seen {
  status: number
  code: string | null
  isPage: boolean
  isSigned: boolean
}
const isDenied = (why: string) => (seen: Pick<Seen, 'status' | 'code'>) =>
  seen.status === 401 && (seen.code?.startsWith(`woocommerce_rest_${why}_`) ?? false)
const isUnaccepted = isDenied('authentication')
const isUnseen = isDenied('cannot')

/** The most frequent meanings of answers, and what the merchant does about them. The first row that fits counts. */
const MEANINGS: [fits: (seen: Seen) => boolean, cause: string, fix?: string][] = [
  [
    ({ status }) => status >= 300 && status < 400,
    'it redirects',
    'Configure the address that it leads to: redirects are not followed.',
  ],
  [
    // Over plain http WooCommerce has one code for an unknown key, a wrong secret and a key that may only read.
    (seen) => seen.isSigned && isUnaccepted(seen),
    'it does not accept the key and its signature',
    'Compare the consumer key and the consumer secret, give the key read and write permission, and set the clocks of both machines right.',
  ],
  [
    isUnaccepted,
    'it knows the consumer key and does not accept the request',
    'Compare the consumer secret, give the key read and write permission, and set the clocks of both machines right.',
  ],
  [
    isUnseen,
    'it did not see the consumer key, or does not know it',
    'Compare the consumer key. Behind a proxy, make it pass on that the request came by https.',
  ],
  [
    ({ status }) => status === 401,
    'something in front of WooCommerce asks for a password',
    'Exempt /wp-json/wc/ from the password of the website.',
  ],
  [
    ({ status, code }) => status === 403 && code === null,
    'a firewall or a security plug-in blocked the request',
    'Allow requests of this machine to /wp-json/wc/.',
  ],
  [
    ({ status }) => status === 403,
    'the user of the consumer key may not do this',
    'Make the key for a user with the role administrator or shop manager.',
  ],
  [
    ({ status, code }) => status === 404 && (code === null || code === 'rest_no_route'),
    'there is no WooCommerce API at this address',
    'Check the address, activate WooCommerce, and set permalinks to anything but plain.',
  ],
  [({ status }) => status === 413, 'the request is too large for it'],
  [({ status }) => status === 429, 'it wants fewer requests'],
  [({ status }) => status === 503, 'it is under maintenance or overloaded'],
  [({ status }) => status >= 500, 'it failed', 'Look into the log of the shop.'],
  [
    (seen) => seen.isPage,
    'a page for people came in place of data, such as a login or a maintenance page',
    'Exempt /wp-json/wc/ from it.',
  ],
  [({ status }) => status < 300, 'its answer broke off or is no JSON', 'Look into the log of the shop.'],
]

/** Returns WooCommerce's own name of an error, in brackets; an empty text where another program chose the name. */
export const named = (code: unknown): string =>
  typeof code === 'string' && /^(woocommerce|rest|product|term)_[a-z_]{1,60}$/.test(code) ? ` (${code})` : ''

/** Encodes a text by RFC 3986, as both the query and the signature need it. */
const percent = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)

interface OauthRequest extends Record<'method' | 'key' | 'secret' | 'nonce', string> {
  url: URL
  query: Record<string, string>
  timestamp: number
}

/**
 * Returns the parameters that authenticate a request over plain http, where no secret may travel.
 *
 * @param request.timestamp seconds since 1970
 * @see RFC 5849, 3.4: HMAC over method, address and sorted parameters, without a token
 */
export function oauthParameters({ method, url, query, key, secret, nonce, timestamp }: OauthRequest) {
  const own: [string, string][] = [
    ['oauth_consumer_key', key],
    ['oauth_nonce', nonce],
    ['oauth_signature_method', 'HMAC-SHA256'],
    ['oauth_timestamp', String(timestamp)],
  ]
  const pairs = [...Object.entries(query), ...own].map(([name, value]) => [percent(name), percent(value)] as const)
  const sorted = pairs.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}=${value}`)
  const base = [method, `${url.origin}${url.pathname}`, sorted.join('&')].map(percent).join('&')
  const signature = createHmac('sha256', `${percent(secret)}&`)
    .update(base)
    .digest('base64')
  return [...own, ['oauth_signature', signature] satisfies [string, string]]
}
