import { Agent, type Dispatcher, request } from 'undici'
import { z } from 'zod'
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
import type { ShopDocument } from './documents.ts'

export interface ShopClientOptions {
  /** The shop's address at myshopify.com. */
  url: string
  /** Of the Admin API, such as `2026-07`. */
  apiVersion: string
  /** Client id and client secret of an app, or an admin token and the API secret key of its app. */
  credentials: { key: Secret; secret: Secret }
  /** Epoch milliseconds. */
  now: () => number
  /** Default: a timer of this machine. */
  sleep?: ((ms: number) => Promise<void>) | undefined
  /** Connections to the shop. Default: those of this machine. */
  connections?: Dispatcher | undefined
  /** Ends a request after so many milliseconds. Default: a timer of this machine. */
  timeout?: ((ms: number) => AbortSignal) | undefined
}

/**
 * How a call ended. `data`: nothing of it checked. `answeredAt`: the shop's clock; null when it did not say. `version`: of the
 * API that answered. `fix`: what to do about a failure, which its detail says too.
 */
export type ShopAnswer = { ok: true; data: unknown; answeredAt: number | null; version: string | null } | ShopFailure

export interface ShopFailure {
  ok: false
  failure: NotConfirmed
  cause: string
  fix: string | null
  answeredAt: number | null
}

export type Read<Value> = { outcome: 'read'; value: Value } | NotConfirmed

export interface CallOptions {
  /** Work that can wait: it leaves a part of what the shop allows to orders. */
  canWait?: boolean
}

export interface ShopClient {
  /** Sends one request, and again where the shop wanted fewer of them or a new token. */
  call: (document: ShopDocument, variables?: object, options?: CallOptions) => Promise<ShopAnswer>
  /** The same, read by a schema. */
  ask: <Value>(
    document: ShopDocument,
    variables: object,
    schema: z.ZodType<Value>,
    options?: CallOptions,
  ) => Promise<Read<Value>>
  /** The same client, which sends nothing that writes from this instant on. */
  writingUntil: (until: number) => ShopClient
  /**
   * Sends a request to an address that the shop named, without a token: of https, or the shop's own. Undefined where it has no
   * whole answer, or must not be sent.
   */
  transfer: (
    url: string,
    given: { method: 'GET' | 'POST'; headers?: Record<string, string>; body?: Buffer },
  ) => Promise<{ status: number; text: string } | undefined>
  close: () => Promise<void>
}

const DEADLINE_MS = 30_000
/** Requests to one shop at once. */
const CONNECTIONS_MAX = 4
/** An access token is renewed so long before its end. */
const RENEWAL_MS = 300_000
/** Requests that the shop did not take because it wanted fewer, before it counts as unavailable. */
const THROTTLED_MAX = 3
const THROTTLED_WAIT_MS = 1_000
/** Longest wait for what the shop allows: a larger bucket fills within it. */
const WAIT_MAX_MS = 30_000

/** What Shopify allows an app to ask of a shop: points that are used up and come back with time. */
export interface Bucket {
  available: number
  maximum: number
  /** Points that come back in a second. */
  restoreRate: number
  /** When `available` was true. */
  at: number
}

/**
 * How long to wait until a request fits.
 *
 * @param cost points that the request costs at most
 * @param reserved points that are to be left for others
 */
export function waitFor(bucket: Bucket, { cost, reserved, now }: { cost: number; reserved: number; now: number }) {
  const need = Math.min(cost + reserved, bucket.maximum)
  const missing = need - availableAt(bucket, now)
  return missing <= 0 ? 0 : Math.min(WAIT_MAX_MS, Math.ceil((missing / bucket.restoreRate) * 1000))
}

export const availableAt = ({ available, maximum, restoreRate, at }: Bucket, now: number): number =>
  Math.min(maximum, available + (restoreRate * Math.max(0, now - at)) / 1000)

/** An idle socket is not used again after a second: a server closes those, and the request is lost. */
const openConnections = () =>
  new Agent({ connections: CONNECTIONS_MAX, keepAliveTimeout: 1_000, keepAliveMaxTimeout: 1_000 })

export const wait = (ms: number): Promise<void> => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Where a token of an app that a merchant made in the shop begins; everything else is a client id. */
const isToken = (key: string): boolean => /^shp[a-z]{2}_/.test(key)

const accessToken = z.object({ access_token: z.string().min(1), expires_in: z.number().positive().catch(3_600) })

/** Requests to the Admin API of one shop of Shopify. It follows no redirect, and quotes nothing of an answer. */
export function shopClient(options: ShopClientOptions): ShopClient {
  const { url, apiVersion, credentials, now, sleep = wait } = options
  const { connections = openConnections(), timeout = deadlineSignal } = options
  const { origin, host } = new URL(url)
  const costs = new Map<string, number>()
  let bucket: Bucket | undefined
  let token: { text: string; renewAt: number } | undefined
  let renewal: Promise<ShopFailure | undefined> | undefined

  async function send(path: string, given: { headers: Record<string, string>; body: string; isWrite: boolean }) {
    let hasLeft = false
    const dispatcher = beforeWrite(connections, () => {
      hasLeft = true
    })
    try {
      const answer = await request(`${origin}${path}`, {
        dispatcher,
        method: 'POST',
        signal: timeout(DEADLINE_MS),
        body: given.body,
        headers: { accept: 'application/json', 'user-agent': 'quayside', ...given.headers },
      })
      return { status: answer.statusCode, headers: answer.headers, text: await textOf(answer.body) }
    } catch (error) {
      const cause = error instanceof TooLong ? error.message : causeOfNoAnswer(error, host, DEADLINE_MS)
      return failed(
        { outcome: 'unavailable', mayHaveLeft: given.isWrite && hasLeft, detail: cause },
        { cause, fix: NO_ANSWER_FIX },
      )
    }
  }

  /** Gets a new access token, once for all callers that need one. */
  function renew(): Promise<ShopFailure | undefined> {
    renewal ??= fetchToken().finally(() => {
      renewal = undefined
    })
    return renewal
  }

  async function fetchToken(): Promise<ShopFailure | undefined> {
    const answer = await send('/admin/oauth/access_token', {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: credentials.key.reveal(),
        client_secret: credentials.secret.reveal(),
      }).toString(),
      isWrite: false,
    })
    if ('ok' in answer) return answer
    const read = accessToken.safeParse(jsonIn(answer.text))
    if (answer.status !== 200 || !read.success) return tokenFailure(answer, host)
    token = { text: read.data.access_token, renewAt: now() + read.data.expires_in * 1000 - RENEWAL_MS }
    return undefined
  }

  /** What a request is let in with. The secrets appear here and in `fetchToken` only. */
  async function authorised(): Promise<string | ShopFailure> {
    const key = credentials.key.reveal()
    if (isToken(key)) return key
    if (!token || now() >= token.renewAt) {
      const failure = await renew()
      // One that is still valid for a few minutes will do.
      if (failure && !(token && now() < token.renewAt + RENEWAL_MS)) return failure
    }
    return token?.text ?? ''
  }

  async function sendDocument(
    document: ShopDocument,
    variables: object,
    until: number,
  ): Promise<{ answer: ShopAnswer; isThrottled: boolean }> {
    const isWrite = /^\s*mutation/.test(document.text)
    for (let isAgain = false; ; isAgain = true) {
      const access = await authorised()
      if (typeof access !== 'string') return { answer: access, isThrottled: false }
      if (isWrite && now() >= until) {
        const failure: NotConfirmed = { outcome: 'unavailable', mayHaveLeft: false, detail: TOO_LATE }
        return { answer: failed(failure, { cause: TOO_LATE }), isThrottled: false }
      }
      const answer = await send(`/admin/api/${apiVersion}/graphql.json`, {
        headers: { 'content-type': 'application/json', 'x-shopify-access-token': access },
        body: JSON.stringify({ query: document.text, operationName: document.name, variables }),
        isWrite,
      })
      if ('ok' in answer) return { answer, isThrottled: false }
      if (answer.status === 401 && !isAgain && !isToken(credentials.key.reveal())) {
        token = token?.text === access ? undefined : token
        continue
      }
      const read = readAnswer(answer, { isWrite, host })
      if (read.cost) {
        costs.set(document.name, read.cost.requested)
        if (read.cost.bucket) bucket = { ...read.cost.bucket, at: now() }
      }
      return read
    }
  }

  async function callUntil(
    until: number,
    document: ShopDocument,
    variables: object = {},
    { canWait = false }: CallOptions = {},
  ) {
    for (let tries = 1; ; tries += 1) {
      const cost = costs.get(document.name) ?? COST_UNKNOWN
      if (bucket) {
        const reserved = canWait ? bucket.maximum / 4 : 0
        const ms = waitFor(bucket, { cost, reserved, now: now() })
        if (ms > 0) await sleep(ms)
        // Taken off at once: other requests may leave before this one is answered.
        bucket = { ...bucket, available: Math.max(0, availableAt(bucket, now()) - cost), at: now() }
      }
      const { answer, isThrottled } = await sendDocument(document, variables, until)
      if (!isThrottled || tries === THROTTLED_MAX) return answer
      await sleep(throttledWait(costs.get(document.name) ?? cost))
    }
  }

  function throttledWait(cost: number): number {
    const ms = bucket ? waitFor(bucket, { cost, reserved: 0, now: now() }) : 0
    return Math.max(ms, THROTTLED_WAIT_MS)
  }

  const transfer: ShopClient['transfer'] = async (to, given) => {
    const address = URL.parse(to)
    if (address === null || (address.protocol !== 'https:' && address.origin !== origin)) return undefined
    try {
      const answer = await request(address, { dispatcher: connections, signal: timeout(DEADLINE_MS), ...given })
      return { status: answer.statusCode, text: await textOf(answer.body) }
    } catch {
      return undefined
    }
  }

  const writingUntil = (until: number): ShopClient => ({
    call: (...given) => callUntil(until, ...given),
    transfer,
    ask: async (document, variables, schema, options) => {
      const answer = await callUntil(until, document, variables, options)
      if (!answer.ok) return answer.failure
      const read = schema.safeParse(answer.data)
      if (read.success) return { outcome: 'read', value: read.data }
      const mayHaveLeft = /^\s*mutation/.test(document.text)
      return { outcome: 'unavailable', mayHaveLeft, detail: `${host} answered with something that Shopify does not` }
    },
    writingUntil,
    close: () => connections.destroy(),
  })
  return writingUntil(Number.POSITIVE_INFINITY)
}

/** What a request is taken to cost that was never sent. */
const COST_UNKNOWN = 50

const NO_ANSWER_FIX = 'Compare the address of the shop, and see that this machine reaches it.'
const TOO_MANY = 'it wants fewer requests'
const SCOPES_FIX =
  'Where `stores test` names missing access scopes, release a version of the app with them, and accept it in the shop.'

interface RawAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

const graphAnswer = z.object({
  data: z.unknown().optional(),
  /** Shopify has answered a throttled request with the message alone. */
  errors: z
    .array(
      z
        .object({
          message: z.unknown().optional(),
          extensions: z.object({ code: z.string().catch('') }).catch({ code: '' }),
        })
        .transform(({ message, extensions }) => (message === 'Throttled' ? 'THROTTLED' : extensions.code)),
    )
    .optional(),
  extensions: z
    .object({
      cost: z.object({
        requestedQueryCost: z.number(),
        throttleStatus: z
          .object({
            maximumAvailable: z.number().positive(),
            currentlyAvailable: z.number(),
            restoreRate: z.number().positive(),
          })
          .optional(),
      }),
    })
    .optional()
    .catch(undefined),
})

export interface AnswerCost {
  requested: number
  bucket: Omit<Bucket, 'at'> | undefined
}

/** Says what an answer means. @param isWrite whether the shop may have acted although its answer says nothing */
export function readAnswer(
  raw: RawAnswer,
  { isWrite, host }: { isWrite: boolean; host: string },
): { answer: ShopAnswer; cost: AnswerCost | undefined; isThrottled: boolean } {
  const at = answeredAt(raw.headers)
  const body = jsonIn(raw.text)
  const read = graphAnswer.safeParse(body)
  const isOk = raw.status >= 200 && raw.status < 300
  const graph = read.success ? read.data : undefined
  const cost = costOf(graph)
  const codes = graph?.errors ?? []
  if (isOk && graph && graph.data != null && codes.length === 0) {
    const version = raw.headers['x-shopify-api-version']
    return {
      answer: { ok: true, data: graph.data, answeredAt: at, version: typeof version === 'string' ? version : null },
      cost,
      isThrottled: false,
    }
  }
  const isPage = body === undefined && /^\s*</.test(raw.text)
  const meaning = isOk && codes.length > 0 ? meaningOfCodes(codes) : meaningOfStatus(raw.status, isPage)
  const { status = raw.status, isTaken } = meaning
  const detail = `${host} answered ${status}: ${meaning.cause}${meaning.fix ? `. ${meaning.fix}` : ''}`
  const failure: NotConfirmed =
    isTaken === 'unknown'
      ? { outcome: 'unavailable', mayHaveLeft: isWrite, detail }
      : isTaken === 'later'
        ? { outcome: 'unavailable', mayHaveLeft: false, detail }
        : { outcome: 'refused', status, detail }
  const cause = `it answered ${status}: ${meaning.cause}`
  return { answer: failed(failure, { cause, fix: meaning.fix, answeredAt: at }), cost, isThrottled: status === 429 }
}

function costOf(graph: z.infer<typeof graphAnswer> | undefined): AnswerCost | undefined {
  const cost = graph?.extensions?.cost
  if (!cost) return undefined
  const { requestedQueryCost: requested, throttleStatus: status } = cost
  return {
    requested,
    bucket: status && {
      available: status.currentlyAvailable,
      maximum: status.maximumAvailable,
      restoreRate: status.restoreRate,
    },
  }
}

const failed = (failure: NotConfirmed, known: Partial<ShopFailure> & { cause: string }): ShopFailure => ({
  ok: false,
  failure,
  fix: null,
  answeredAt: null,
  ...known,
})

/** `isTaken`: the shop may have acted, will not, or does not now. `status`: what HTTP would have said. */
interface Meaning {
  cause: string
  fix: string | null
  isTaken: 'unknown' | 'no' | 'later'
  status?: number
}

/** What the codes of GraphQL errors mean. A shop answers 200 with them. */
function meaningOfCodes(codes: string[]): Meaning {
  if (codes.includes('THROTTLED')) return { cause: TOO_MANY, fix: null, isTaken: 'later', status: 429 }
  if (codes.includes('ACCESS_DENIED')) {
    return {
      cause: 'the app may not do this',
      fix: SCOPES_FIX,
      isTaken: 'no',
      status: 403,
    }
  }
  if (codes.includes('SHOP_INACTIVE')) {
    return { cause: 'the shop is not active', fix: 'Look into the plan of the shop.', isTaken: 'later', status: 402 }
  }
  if (codes.some((code) => code === 'INTERNAL_SERVER_ERROR' || code === 'TIMEOUT')) {
    return { cause: 'it failed', fix: null, isTaken: 'unknown', status: 500 }
  }
  if (codes.includes('MAX_COST_EXCEEDED')) {
    return { cause: 'the request costs more than it allows', fix: null, isTaken: 'no', status: 400 }
  }
  return {
    cause: 'it does not understand the request',
    fix: 'Configure an API version that Shopify supports.',
    isTaken: 'no',
    status: 400,
  }
}

function meaningOfStatus(status: number, isPage: boolean): Meaning {
  if (status >= 300 && status < 400) {
    return {
      cause: 'it redirects',
      fix: 'Configure the address at myshopify.com: redirects are not followed.',
      isTaken: 'no',
    }
  }
  if (status === 401) {
    return {
      cause: 'it does not accept the access token',
      fix: 'Compare the credentials, and see that the app is installed in the shop.',
      isTaken: 'no',
    }
  }
  // Shops that are locked were once answered with 420.
  if (status === 402 || status === 420 || status === 423) {
    return { cause: 'the shop is frozen or locked', fix: 'Look into the plan of the shop.', isTaken: 'later' }
  }
  if (status === 403) {
    return {
      cause: 'an IP allowlist of the app leaves this machine out, or the app may not do this',
      fix: `In the Dev Dashboard, Settings of the app, see whether its IP allowlist has the address of this machine. ${SCOPES_FIX}`,
      isTaken: 'no',
    }
  }
  if (status === 404) {
    return {
      cause: 'there is no shop of Shopify at this address',
      fix: 'Configure the address that ends in .myshopify.com.',
      isTaken: 'no',
    }
  }
  if (status === 429) return { cause: TOO_MANY, fix: null, isTaken: 'later' }
  if (status === 430) return { cause: 'it takes the request for an attack', fix: null, isTaken: 'later' }
  if (status === 409) return { cause: 'something else is changing the same', fix: null, isTaken: 'later' }
  if (status === 503) return { cause: 'it is under maintenance or overloaded', fix: null, isTaken: 'unknown' }
  if (status >= 500 || status === 408 || status === 425) return { cause: 'it failed', fix: null, isTaken: 'unknown' }
  if (isPage) {
    return {
      cause: 'a page for people came in place of data, such as a login page',
      fix: 'Configure the address that ends in .myshopify.com.',
      isTaken: 'unknown',
    }
  }
  if (status < 300) return { cause: 'its answer broke off or is no JSON', fix: null, isTaken: 'unknown' }
  return { cause: 'it refused the request', fix: null, isTaken: 'no' }
}

/** Why Shopify gives an app no access token, by the code that it names. */
const tokenRefusals: Record<string, { cause: string; fix: string }> = {
  application_cannot_be_found: {
    cause: 'it knows no app with this client id',
    fix: 'Compare the client id with that in the settings of the app in the Dev Dashboard.',
  },
  invalid_client: {
    cause: 'it does not accept the client secret of the app',
    fix: 'Compare the client secret with that in the settings of the app in the Dev Dashboard.',
  },
  app_not_installed: {
    cause: 'the app is not installed in the shop',
    fix: 'Install it: in the Dev Dashboard, on the page of the app.',
  },
  shop_not_permitted: {
    cause: 'the app belongs to another organisation than the shop',
    fix: 'Make the app in the Dev Dashboard of the organisation that owns the shop.',
  },
}

/** The code is a field of JSON, or a word on a page. */
const refusalCode = (text: string): string | undefined => Object.keys(tokenRefusals).find((code) => text.includes(code))

/** Why no access token came. Without one nothing was asked of the shop. */
function tokenFailure({ status, headers, text }: RawAnswer, host: string): ShopFailure {
  const isPage = jsonIn(text) === undefined && /^\s*</.test(text)
  const code = refusalCode(text)
  const isWrong = status === 400 || status === 401 || (status === 403 && code !== undefined)
  const refusal = tokenRefusals[code ?? ''] ?? {
    cause: 'it gives no access token for the client id and its secret',
    fix: 'Compare both, and see that the app is installed in the shop and belongs to the same organisation.',
  }
  const meaning: Meaning = isWrong ? { ...refusal, isTaken: 'no' } : meaningOfStatus(status, isPage)
  const cause = `it answered ${status}: ${meaning.cause}`
  const detail = `${host} answered ${status}: ${meaning.cause}${meaning.fix ? `. ${meaning.fix}` : ''}`
  const failure: NotConfirmed =
    meaning.isTaken === 'no'
      ? { outcome: 'refused', status, detail }
      : { outcome: 'unavailable', mayHaveLeft: false, detail }
  return failed(failure, { cause, fix: meaning.fix, answeredAt: answeredAt(headers) })
}
