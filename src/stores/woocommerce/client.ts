import { createHmac } from 'node:crypto'
import type { z } from 'zod'
import { leadsTo } from '../../domain/free-text.ts'
import type { Secret } from '../../secret.ts'
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

export interface ShopClientOptions extends Connecting {
  /** The shop's address, with the folder that WordPress is in. */
  url: string
  consumerKey: Secret
  consumerSecret: Secret
  /** Makes the nonce of a signature. */
  newId: () => string
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
/** `code`: WooCommerce's name of an error, by which callers decide. `data`: the data of the error, not checked. */
interface Failed extends ShopFailure {
  code?: string | null
  data?: unknown
}

export interface ShopClient {
  /** Sends one request, and a second one where the first shows that the shop's server removes the header with the key. */
  call: (call: ShopCall) => Promise<ShopAnswer>
  /** Returns this client, which sends no request that writes from this instant on. */
  writingUntil: (until: number) => ShopClient
  close: () => Promise<void>
}

/** Where the key travels. Over plain http the key does not travel, but signs each request. */
type KeyPlace = 'header' | 'query' | 'signature'

/** WordPress works within the request: a hundred products with slow plug-ins need most of this time. `settleMs` is longer. */
const WRITE_DEADLINE_MS = 60_000
const READ_DEADLINE_MS = 30_000
/** Makes requests to the REST API of one WooCommerce shop. Of an answer it quotes only the address that a redirect leads to. */
export function shopClient(options: ShopClientOptions): ShopClient {
  const { url, consumerKey, consumerSecret, now, newId } = options
  const requests = shopRequests(options)
  const root = new URL(`${url.replace(/\/+$/, '')}/wp-json/wc/v3`)
  let keyPlace: KeyPlace = root.protocol === 'https:' ? 'header' : 'signature'

  /** Returns the query and headers that a request must carry. The key appears here only. */
  function authenticated(place: KeyPlace, call: ShopCall, target: URL) {
    const [key, secret] = [consumerKey.reveal(), consumerSecret.reveal()]
    const query = Object.entries(call.query ?? {})
    if (place === 'query') query.push(['consumer_key', key], ['consumer_secret', secret])
    if (place === 'signature') {
      const at = { nonce: newId(), timestamp: Math.floor(now() / 1000) }
      const { method } = call
      query.push(...oauthParameters({ method, url: target, query: call.query ?? {}, key, secret, ...at }))
    }
    const authorization = `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`
    return { query, headers: { ...(place === 'header' && { authorization }) } }
  }

  async function send(call: ShopCall, place: KeyPlace, until: number): Promise<ShopAnswer> {
    const target = new URL(root)
    target.pathname += call.path
    const { query, headers } = authenticated(place, call, target)
    target.search = query.map(([name, value]) => `${percent(name)}=${percent(value)}`).join('&')
    const isWrite = call.method !== 'GET'
    const answer = await requests.send(target, {
      method: call.method,
      headers: { ...ASKS_JSON, ...headers, ...(call.body && { 'content-type': 'application/json' }) },
      body: call.body === undefined ? null : JSON.stringify(call.body),
      isWrite,
      until,
      deadlineMs: isWrite ? WRITE_DEADLINE_MS : READ_DEADLINE_MS,
    })
    return 'ok' in answer ? answer : readAnswer(answer, { isWrite, host: target.host, isSigned: place === 'signature' })
  }

  const writingUntil = (until: number): ShopClient => ({
    call: async (call) => {
      const first = await send(call, keyPlace, until)
      if (keyPlace !== 'header' || first.ok || !isUnauthenticated(first)) return first
      const second = await send(call, 'query', until)
      if (!second.ok && isUnauthenticated(second)) return first
      keyPlace = 'query'
      return second
    },
    writingUntil,
    close: requests.close,
  })
  return writingUntil(Number.POSITIVE_INFINITY)
}

/** Reads an answer by a schema. @param unreadable the outcome where the answer is something else */
export function readAs<Value>(answer: ShopAnswer, schema: z.ZodType<Value>, unreadable: NotConfirmed): Read<Value> {
  if (!answer.ok) return answer.failure
  const { success, data } = schema.safeParse(answer.body)
  return success ? asRead(data) : unreadable
}

/** Returns a count that WordPress gives of a list, such as `x-wp-total`; undefined where the shop does not say. */
export function countIn({ headers }: Answered, name: string): number | undefined {
  const count = Number(headers[name] ?? Number.NaN)
  return Number.isSafeInteger(count) ? count : undefined
}

/** The most items that WordPress gives on a page. */
export const PAGE_SIZE = 100

/** Whether a page is the last one of its list. */
export function isLastPage(answer: Answered, page: number, items: number): boolean {
  const pages = countIn(answer, 'x-wp-totalpages')
  return pages === undefined ? items < PAGE_SIZE : page >= pages
}

/** Whether no key arrived, or an unknown key: WooCommerce answers both alike. */
const isUnauthenticated = ({ failure, code }: Failed): boolean =>
  failure.outcome === 'refused' && failure.status === 401 && (code?.startsWith('woocommerce_rest_cannot_') ?? false)

/** The request that was answered. */
interface Asked {
  /** True: the shop may have acted although its answer says nothing. */
  isWrite: boolean
  host: string
  /** True: the key signed the request, over plain http. */
  isSigned?: boolean
}

/** Says what an answer means. */
export function readAnswer(answer: RawAnswer, { isWrite, host, isSigned = false }: Asked): ShopAnswer {
  const { status, headers, text } = answer
  const body = jsonIn(text)
  if (status >= 200 && status < 300 && body !== undefined) {
    return { ok: true, body, headers, answeredAt: answeredAt(answer) }
  }
  const error = (body ?? {}) as { code?: unknown; data?: unknown }
  const code = typeof error.code === 'string' ? error.code : null
  const seen = { status, code, isPage: isPage(answer), isSigned }
  const [, said, fix] = MEANINGS.find(([fits]) => fits(seen)) ?? [undefined, `it refused the request${named(code)}`]
  const cause = said + (status < 400 ? leadsTo(headers.location, `https://${host}`) : '')
  const isTaken = status < 300 || status >= 500 || [408, 425, 429].includes(status) ? 'unknown' : 'no'
  return { ...failureOf(answer, { cause, fix, isTaken }, { host, isWrite }), code, data: error.data }
}

interface Seen {
  status: number
  code: string | null
  isPage: boolean
  isSigned: boolean
}
const isUnaccepted = ({ status, code }: Seen) =>
  status === 401 && (code?.startsWith('woocommerce_rest_authentication_') ?? false)

/** The most frequent meanings of answers, and what the merchant does about them. The first row that fits counts. */
const MEANINGS: [fits: (seen: Seen) => boolean, cause: string, fix?: string][] = [
  [
    ({ status }) => status >= 300 && status < 400,
    'it redirects',
    'Configure the address that it leads to: redirects are not followed.',
  ],
  [
    // By http WooCommerce has one code for an unknown key, a wrong secret and a key that may only read.
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
    ({ status, code }) => status === 401 && (code?.startsWith('woocommerce_rest_cannot_') ?? false),
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

interface OauthRequest {
  method: string
  url: URL
  query: Record<string, string>
  key: string
  secret: string
  nonce: string
  /** Seconds since 1970. */
  timestamp: number
}

/**
 * Returns the parameters that authenticate a request over plain http, where no secret may travel.
 *
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
