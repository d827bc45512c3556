import { createHmac } from 'node:crypto'
import { Agent, type Dispatcher, request } from 'undici'
import { leadsTo } from '../../domain/free-text.ts'
import type { Secret } from '../../secret.ts'
import {
  answeredAt,
  beforeWrite,
  causeOfNoAnswer,
  deadlineSignal,
  jsonIn,
  TOO_LATE,
  TooLong,
  textOf,
} from '../connection.ts'
import type { NotConfirmed } from '../store.ts'

export interface ShopClientOptions {
  /** The shop's address, with the folder that WordPress is in. */
  url: string
  consumerKey: Secret
  consumerSecret: Secret
  /** Epoch milliseconds. */
  now: () => number
  /** For the nonce of a signature. */
  newId: () => string
  /** Connections to the shop. Default: those of this machine. */
  connections?: Dispatcher | undefined
  /** Ends a request after so many milliseconds. Default: a timer of this machine. */
  timeout?: ((ms: number) => AbortSignal) | undefined
}

export interface ShopCall {
  method: 'GET' | 'POST' | 'PUT'
  /** Below `/wp-json/wc/v3`. */
  path: string
  query?: Record<string, string>
  body?: object
}

/**
 * How a call ended. `body`: parsed JSON, nothing of it checked. `answeredAt`: the shop's clock, epoch milliseconds; null when
 * it did not say. `code`: WooCommerce's name of an error, by which callers decide; null where it gave none. `fix`: what to do
 * about a failure, which its detail says too.
 */
export type ShopAnswer =
  | { ok: true; body: unknown; headers: Record<string, string | string[] | undefined>; answeredAt: number | null }
  | ShopFailure

export interface ShopFailure {
  ok: false
  failure: NotConfirmed
  code: string | null
  /** `data` of the error, nothing of it checked. */
  data: unknown
  cause: string
  fix: string | null
  answeredAt: number | null
}

export interface ShopClient {
  /** Sends one request, and a second one where the first shows that the shop's server removes the header with the key. */
  call: (call: ShopCall) => Promise<ShopAnswer>
  /** The same client, which sends nothing that writes from this instant on. */
  writingUntil: (until: number) => ShopClient
  close: () => Promise<void>
}

/** Where the key travels: over plain http it signs each request instead. */
type KeyPlace = 'header' | 'query' | 'signature'

/** WordPress works in the request: a hundred products with slow plug-ins need most of this. `settleMs` is longer. */
const WRITE_DEADLINE_MS = 60_000
const READ_DEADLINE_MS = 30_000
/** Requests to one shop at once: shared hosting runs a handful of PHP processes, which its customers need too. */
const CONNECTIONS_MAX = 4

/** Connections to a shop. An idle socket is not used again after a second: a server closes those, and the request is lost. */
const openConnections = () =>
  new Agent({ connections: CONNECTIONS_MAX, keepAliveTimeout: 1_000, keepAliveMaxTimeout: 1_000 })

/** Requests to the REST API of one WooCommerce shop. It repeats none, follows no redirect, and quotes nothing of an answer but where it leads. */
export function shopClient(options: ShopClientOptions): ShopClient {
  const { url, consumerKey, consumerSecret, now, newId } = options
  const { connections = openConnections(), timeout = deadlineSignal } = options
  const root = new URL(`${url.replace(/\/+$/, '')}/wp-json/wc/v3`)
  let keyPlace: KeyPlace = root.protocol === 'https:' ? 'header' : 'signature'

  /** What a request must carry. The key appears here only. */
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
    return { query, headers: place === 'header' ? { authorization } : {} }
  }

  async function send(call: ShopCall, place: KeyPlace, until: number): Promise<ShopAnswer> {
    const target = new URL(root)
    target.pathname += call.path
    const { query, headers } = authenticated(place, call, target)
    target.search = query.map(([name, value]) => `${percent(name)}=${percent(value)}`).join('&')
    const isWrite = call.method !== 'GET'
    if (isWrite && now() >= until) {
      return failed({ outcome: 'unavailable', mayHaveLeft: false, detail: TOO_LATE }, { cause: TOO_LATE })
    }
    const deadlineMs = isWrite ? WRITE_DEADLINE_MS : READ_DEADLINE_MS
    const signal = timeout(deadlineMs)
    let hasLeft = false
    const dispatcher = beforeWrite(connections, () => {
      hasLeft = true
    })
    try {
      const answer = await request(target, {
        dispatcher,
        method: call.method,
        signal,
        body: call.body === undefined ? null : JSON.stringify(call.body),
        headers: {
          ...headers,
          accept: 'application/json',
          'user-agent': 'quayside',
          ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
        },
      })
      const text = await textOf(answer.body)
      return readAnswer(
        { status: answer.statusCode, headers: answer.headers, text },
        { isWrite, host: target.host, isSigned: place === 'signature' },
      )
    } catch (error) {
      const cause = error instanceof TooLong ? error.message : causeOfNoAnswer(error, target.host, deadlineMs)
      return failed({ outcome: 'unavailable', mayHaveLeft: isWrite && hasLeft, detail: cause }, { cause })
    }
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
    close: () => connections.destroy(),
  })
  return writingUntil(Number.POSITIVE_INFINITY)
}

/** A count that WordPress gives of a list, such as `x-wp-total`; undefined where the shop does not say. */
export function countIn({ headers }: Extract<ShopAnswer, { ok: true }>, name: string): number | undefined {
  const count = Number(headers[name] ?? Number.NaN)
  return Number.isSafeInteger(count) ? count : undefined
}

/** No key arrived, or an unknown one: WooCommerce answers both alike. */
const isUnauthenticated = ({ failure, code }: ShopFailure): boolean =>
  failure.outcome === 'refused' && failure.status === 401 && (code?.startsWith('woocommerce_rest_cannot_') ?? false)

export interface RawAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

/** Of the request that was answered. */
interface Asked {
  /** The shop may have acted although its answer says nothing. */
  isWrite: boolean
  host: string
  /** The key signed it, over plain http. */
  isSigned?: boolean
}

/** Says what an answer means. */
export function readAnswer(answer: RawAnswer, { isWrite, host, isSigned = false }: Asked): ShopAnswer {
  const { status, headers, text } = answer
  const at = answeredAt(headers)
  const body = jsonIn(text)
  if (status >= 200 && status < 300 && body !== undefined) return { ok: true, body, headers, answeredAt: at }
  const error = (body ?? {}) as { code?: unknown; data?: unknown }
  const code = typeof error?.code === 'string' ? error.code : null
  const meaning = meaningOf({ status, code, isPage: body === undefined && /^\s*</.test(text), isSigned })
  const cause = meaning.cause + (status < 400 ? leadsTo(headers.location, `https://${host}`) : '')
  const detail = `${host} answered ${status}: ${cause}${meaning.fix ? `. ${meaning.fix}` : ''}`
  const isTaken = status < 300 || status >= 500 || [408, 425, 429].includes(status)
  const failure: NotConfirmed = isTaken
    ? { outcome: 'unavailable', mayHaveLeft: isWrite, detail }
    : { outcome: 'refused', status, detail }
  return failed(failure, {
    ...meaning,
    cause: `it answered ${status}: ${cause}`,
    code,
    data: error?.data,
    answeredAt: at,
  })
}

const failed = (failure: NotConfirmed, known: Partial<ShopFailure> & { cause: string }): ShopFailure => ({
  ok: false,
  failure,
  code: null,
  data: null,
  fix: null,
  answeredAt: null,
  ...known,
})

/** What an answer most often means, and what the merchant does about it. Nothing of the answer is repeated. */
function meaningOf(answer: { status: number; code: string | null; isPage: boolean; isSigned: boolean }): {
  cause: string
  fix: string | null
} {
  const { status, code, isPage, isSigned } = answer
  if (status >= 300 && status < 400) {
    return { cause: 'it redirects', fix: 'Configure the address that it leads to: redirects are not followed.' }
  }
  if (status === 401 && isSigned && code?.startsWith('woocommerce_rest_authentication_')) {
    // By http WooCommerce has one code for an unknown key, a wrong secret and a key that may only read.
    return {
      cause: 'it does not accept the key and its signature',
      fix: 'Compare the consumer key and the consumer secret, give the key read and write permission, and set the clocks of both machines right.',
    }
  }
  if (status === 401 && code?.startsWith('woocommerce_rest_authentication_')) {
    return {
      cause: 'it knows the consumer key and does not accept the request',
      fix: 'Compare the consumer secret, give the key read and write permission, and set the clocks of both machines right.',
    }
  }
  if (status === 401 && code?.startsWith('woocommerce_rest_cannot_')) {
    return {
      cause: 'it did not see the consumer key, or does not know it',
      fix: 'Compare the consumer key. Behind a proxy, make it pass on that the request came by https.',
    }
  }
  if (status === 401) {
    return {
      cause: 'something in front of WooCommerce asks for a password',
      fix: 'Exempt /wp-json/wc/ from the password of the website.',
    }
  }
  if (status === 403 && code === null) {
    return {
      cause: 'a firewall or a security plug-in blocked the request',
      fix: 'Allow requests of this machine to /wp-json/wc/.',
    }
  }
  if (status === 403) {
    return {
      cause: 'the user of the consumer key may not do this',
      fix: 'Make the key for a user with the role administrator or shop manager.',
    }
  }
  if (status === 404 && (code === null || code === 'rest_no_route')) {
    return {
      cause: 'there is no WooCommerce API at this address',
      fix: 'Check the address, activate WooCommerce, and set permalinks to anything but plain.',
    }
  }
  if (status === 413) return { cause: 'the request is too large for it', fix: null }
  if (status === 429) return { cause: 'it wants fewer requests', fix: null }
  if (status === 503) return { cause: 'it is under maintenance or overloaded', fix: null }
  if (status >= 500) return { cause: 'it failed', fix: 'Look into the log of the shop.' }
  if (isPage) {
    return {
      cause: 'a page for people came in place of data, such as a login or a maintenance page',
      fix: 'Exempt /wp-json/wc/ from it.',
    }
  }
  if (status < 300) return { cause: 'its answer broke off or is no JSON', fix: 'Look into the log of the shop.' }
  return { cause: code ? `it refused the request${named(code)}` : 'it refused the request', fix: null }
}

/** WooCommerce's own name of an error, in brackets; nothing where another program chose it. */
export const named = (code: unknown): string =>
  typeof code === 'string' && /^(woocommerce|rest|product|term)_[a-z_]{1,60}$/.test(code) ? ` (${code})` : ''

/** The encoding of RFC 3986, which both the query and the signature use. */
const percent = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)

export interface OauthRequest {
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
 * The parameters that authenticate a request over plain http, where no secret may travel.
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
