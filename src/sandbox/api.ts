import { createHash, timingSafeEqual } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { type ErrorRequestHandler, type Request, type RequestHandler, type Response, Router, raw } from 'express'
import type { Dialect } from '../dialect/dialect.ts'
import { idFrom } from './chance.ts'
import type { Answer, Route } from './endpoints.ts'
import type { FaultName, Faults, SandboxFault, Subject } from './faults.ts'
import { errorBody } from './records.ts'
import { Refusal, refusalFacts } from './refusal.ts'
import { type ApiCall, readObject } from './requests.ts'
import type { Exchange, ExchangeLog } from './stage.ts'

/** This limit is much larger than any request of the contract. */
const bodyMax = '64kb'
const slowMs = 1_000

interface ApiNeeds {
  dialect: Dialect
  routes: Route[]
  faults: Faults
  exchanges: ExchangeLog
  apiKey: string
  requestsPerMinute: number
  now: () => number
  random: () => number
  /** Resolves after this time, or never once the server is closed. */
  pause: (ms: number) => Promise<void>
}

/** Makes the API over HTTP: puts request ids, rate limit, key, faults and the error envelope around the endpoints. */
export function createApi(needs: ApiNeeds): Router {
  const router = Router({ strict: true, caseSensitive: true })
  router.use(admit(needs), raw({ type: () => true, limit: bodyMax }))
  const paths = Map.groupBy(needs.routes, ({ path }) => path)
  for (const [path, routes] of paths) {
    for (const route of routes)
      router[route.method](path, (request, response) => answer(needs, route, request, response))
    router.all(path, (_request, response) => {
      const allowed = routes.map(({ method }) => method.toUpperCase()).join(', ')
      response.set('allow', allowed)
      throw new Refusal('invalid', `This address answers ${allowed} only.`, 405)
    })
  }
  router.use(() => {
    throw new Refusal('not_found', 'There is no such address.')
  })
  router.use(answerError(needs))
  return router
}

/** Gives every request its id and takes a rate-limit token for it, before anything else. */
function admit({ dialect, apiKey, requestsPerMinute, now, random }: ApiNeeds): RequestHandler {
  const take = createBuckets(requestsPerMinute, now)
  const { headers } = dialect
  return (request, response, next) => {
    const presented = request.headersDistinct[headers.apiKey] ?? []
    const known = presented.length === 1 && isSame(presented[0] ?? '', apiKey)
    const allowance = take(known ? 'key' : 'others')
    response.locals.requestId = idFrom(random, 'req')
    response.locals.known = known
    response.set({
      [headers.requestId]: response.locals.requestId,
      [headers.rateLimit]: String(allowance.limit),
      [headers.rateRemaining]: String(allowance.remaining),
      [headers.rateReset]: resetText(dialect, allowance, now()),
    })
    if (allowance.allowed) return next()
    response.set(headers.retryAfter, String(Math.ceil(allowance.waitMs / 1000)))
    throw new Refusal('rate_limited', 'Too many requests.')
  }
}

async function answer(needs: ApiNeeds, route: Route, request: Request, response: Response): Promise<void> {
  const { faults, pause } = needs
  if (!route.open && !response.locals.known) throw new Refusal('unauthenticated', 'A valid API key is required.')
  const subject = subjectOf(needs, route, request)
  const take = (name: FaultName) => faults.take(name, subject)
  const exchange = route.about && noteExchange(needs, route, request, response)

  const limited = take('rate-limit')
  if (limited) {
    setRetryAfter(needs, limited, response)
    throw new Refusal('rate_limited', 'Too many requests.')
  }
  const slow = take('slow')
  if (slow?.stage === 'before') await pause(slow.delayMs ?? slowMs)
  const before = take('error-before')
  if (before) throw new Refusal(before.kind, 'The request could not be run.')

  const { status, body, orders } = run(needs, route, request, response)
  if (exchange && orders) exchange.orders = orders

  if (slow?.stage === 'after') await pause(slow.delayMs ?? slowMs)
  const after = take('error-after')
  if (after) throw new Refusal(after.kind, 'The answer could not be given.')
  if (take('answer-lost')) request.socket.destroy()
  else response.status(status).json(body)
}

/** Notes a request about orders, with what becomes of its answer. */
function noteExchange(needs: ApiNeeds, route: Route, request: Request, response: Response): Exchange {
  const { exchanges, dialect, now } = needs
  const filter = new URL(request.url, 'http://sandbox').searchParams.get(dialect.orders.externalOrderId ?? '')
  const asked = filter ?? subjectOf(needs, route, request).externalOrderId
  const exchange = exchanges.add({ kind: route.about ?? 'read', asked, orders: [], at: now() })
  response.once('close', () => {
    exchange.answeredAt = now()
    exchange.status = response.writableFinished ? response.statusCode : null
    exchange.refused = response.locals.refused
  })
  return exchange
}

/** Runs the endpoint. Returns a refusal as an answer too, so that later faults apply to successes and refusals. */
function run({ dialect }: ApiNeeds, { endpoint }: Route, request: Request, response: Response): Answer {
  const call: ApiCall = {
    query: new URL(request.url, 'http://sandbox').searchParams,
    headers: request.headersDistinct,
    body: bytesOf(request),
    id: String(request.params.id ?? ''),
  }
  try {
    return endpoint(call)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return refusalAnswer(dialect, error, response)
  }
}

const answerError =
  ({ dialect }: ApiNeeds): ErrorRequestHandler =>
  (error: unknown, _request, response, _next) => {
    const { status, body } = refusalAnswer(dialect, refusalOf(error), response)
    response.status(status).json(body)
  }

/** Turns an error into a refusal. Errors of the HTTP layer have their own status; any other error is a bug of the sandbox. */
function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  const status = error instanceof Error && 'status' in error ? error.status : undefined
  const ofCaller = typeof status === 'number' && status >= 400 && status < 500
  return ofCaller
    ? new Refusal('invalid', 'The request cannot be read.', status)
    : new Refusal('internal', 'An internal error.')
}

function refusalAnswer(dialect: Dialect, { kind, message, status }: Refusal, { locals }: Response): Answer {
  locals.refused = kind
  const body = errorBody(dialect, kind, message, String(locals.requestId))
  return { status: status ?? refusalFacts(dialect, kind).status, body }
}

/** The statuses for errors of the HTTP parser, by error code. The status for any other error is 400. */
const parserStatuses: Record<string, number> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** Writes the answer to a request that no handler sees. It has an envelope and a request id, as every other answer has. */
export function malformedAnswer({ dialect, random }: Pick<ApiNeeds, 'dialect' | 'random'>, cause = ''): string {
  const status = parserStatuses[cause] ?? 400
  const requestId = idFrom(random, 'req')
  const body = JSON.stringify(errorBody(dialect, 'invalid', 'The request cannot be read.', requestId))
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `${dialect.headers.requestId}: ${requestId}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    '',
    body,
  ].join('\r\n')
}

function subjectOf({ dialect }: ApiNeeds, route: Route, request: Request): Subject {
  const { orderRequest: names } = dialect
  const subject = { path: request.path, method: request.method }
  if (!route.createsOrder) return subject
  const body = readObject(bytesOf(request)) ?? {}
  const text = (name: string) => (typeof body[name] === 'string' ? body[name] : undefined)
  const [externalOrderId, productId] = [text(names.externalOrderId), text(names.productId)]
  return { ...subject, createsOrder: true, externalOrderId, productId }
}

function setRetryAfter(
  { dialect, now }: ApiNeeds,
  { retryAfter, retryAfterForm }: SandboxFault,
  response: Response,
): void {
  if (retryAfter === null) return
  const asDate = typeof retryAfter === 'number' && retryAfterForm === 'date'
  const text = asDate ? new Date(now() + retryAfter * 1000).toUTCString() : String(retryAfter)
  response.set(dialect.headers.retryAfter, text)
}

function resetText({ rateResetUnit }: Dialect, { fullAt }: { fullAt: number }, at: number): string {
  if (rateResetUnit === 'epoch_ms') return String(fullAt)
  return String(Math.ceil((rateResetUnit === 'epoch_s' ? fullAt : fullAt - at) / 1000))
}

const bytesOf = (request: Request): Buffer => (Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0))

/** Compares digests, so that the time taken shows neither the length nor the position of the first difference. */
const isSame = (left: string, right: string): boolean => timingSafeEqual(digest(left), digest(right))
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/**
 * Makes a token bucket for each caller. A bucket holds the tokens of one minute and is refilled evenly.
 *
 * There are only two callers, and so at most two buckets: the holder of the API key, and everyone else. `fullAt` is in epoch
 * milliseconds; `waitMs` is the time until the next request may run, and 0 when a request may run now.
 */
export function createBuckets(perMinute: number, now: () => number) {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const msPerToken = 60_000 / perMinute
  return (caller: string) => {
    const at = now()
    const bucket = buckets.get(caller) ?? { tokens: perMinute, at }
    // A clock that was set back neither refills nor empties a bucket.
    const filled = Math.min(perMinute, bucket.tokens + Math.max(0, at - bucket.at) / msPerToken)
    const allowed = filled >= 1
    const tokens = allowed ? filled - 1 : filled
    buckets.set(caller, { tokens, at })
    return {
      allowed,
      limit: perMinute,
      remaining: Math.floor(tokens),
      fullAt: at + Math.ceil((perMinute - tokens) * msPerToken),
      waitMs: tokens >= 1 ? 0 : Math.ceil((1 - tokens) * msPerToken),
    }
  }
}
