/**
 * The HTTP server for deliveries, the API and the probes. It knows limits, statuses and the shape of answers; the flows
 * that its routers call decide what a request does.
 *
 * Every answer carries an id of ours and repeats nothing of the request. Slow, silent, oversized and malformed senders
 * get a short answer or none, and are then disconnected.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import express, { type Express, type Request, type RequestHandler, type Router } from 'express'
import type { Log } from '../log.ts'
import { type ApiError, answerError, answerFailure, errorBody, notFound } from './answers.ts'

/** Limits of the server, each against one way to keep it busy. */
export const serverLimits = {
  /** Request line and headers. Genuine deliveries have under 1 KiB. */
  headerMaxBytes: 16 * 1024,
  /** A sender that has not finished its headers by then is answered 408. */
  headersTimeoutMs: 10_000,
  /** The time for a whole request: 256 KiB in 15 s is slower than the line of any supplier. */
  requestTimeoutMs: 15_000,
  /** How often the two above are checked; Node's default of 30 s would make them useless. */
  checkIntervalMs: 2_000,
  /** Silent sockets live for 12 s and cost some 10 KiB each: 8,192 of them fit in 80 MiB and leave room for the rest. */
  connectionsMax: 8_192,
  /** How long running requests may take after `drain`. Less than the 10 s after which Docker kills. */
  drainMs: 8_000,
}

export type ServerLimits = typeof serverLimits

export interface HttpOptions {
  /** Served at their own full paths. */
  webhooks?: Router
  /** Mounted under `/api/v1`. */
  api?: RequestHandler[]
  /** Served while draining too. */
  health?: Router
  /** Pages for people, which answer every path: on a server of their own. */
  pages?: Router
  /** Headers of every answer, beside the usual ones. */
  headers?: Record<string, string>
  log: Log
  newId: () => string
  /** Milliseconds of a clock that never jumps. */
  monotonic: () => number
  /** Counts an answered request; `route` is a pattern, never a path that came in. */
  count?: (route: string, status: number) => void
  limits?: Partial<ServerLimits>
}

export interface HttpServer {
  /** @returns the address it listens on: with port 0, the one it was given */
  listen(host: string, port: number): Promise<AddressInfo>
  /** From now on every request but a probe is answered 503; running requests are finished. */
  drain(): void
  /**
   * Drains, stops listening, closes idle sockets now and the busy ones after their answer or at the deadline, which
   * counts from `drain`.
   */
  close(): Promise<void>
}

export function createHttpServer(options: HttpOptions): HttpServer {
  const limits = { ...serverLimits, ...options.limits }
  let drainingSince: number | undefined
  const app = application(options, () => drainingSince !== undefined)
  const server = createServer(
    {
      maxHeaderSize: limits.headerMaxBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      // Refused by `isFramed`, so that its answer has our shape and an id.
      requireHostHeader: false,
    },
    app,
  )
  // Node would answer 417 and 100 by itself, before anything is judged.
  server.on('checkExpectation', app)
  server.on('checkContinue', app)
  // A sender that ends its side after a whole request still reads its answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.maxConnections = limits.connectionsMax
  const sockets = trackSockets(server, options)

  const drain = (): number => {
    drainingSince ??= options.monotonic()
    return drainingSince
  }
  return {
    drain: () => void drain(),
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.off('error', reject)
          resolve(server.address() as AddressInfo)
        })
      }),
    close: () =>
      new Promise((resolve) => {
        const leftMs = drain() + limits.drainMs - options.monotonic()
        const deadline = setTimeout(() => server.closeAllConnections(), Math.max(0, leftMs))
        server.close(() => {
          clearTimeout(deadline)
          resolve()
        })
        sockets.closeIdle()
      }),
  }
}

function application(options: HttpOptions, draining: () => boolean): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.enable('strict routing')
  app.enable('case sensitive routing')
  app.set('query parser', 'simple')
  app.use(admit(options))
  app.use((request, response, next) => {
    if (!draining()) return next()
    const refuse = () => {
      response.set('connection', 'close')
      answerError(response, 503, { code: 'unavailable', message: 'the service is being stopped' })
    }
    if (options.health) options.health(request, response, refuse)
    else refuse()
  })
  if (options.webhooks) app.use(options.webhooks)
  if (options.health) app.use(options.health)
  for (const router of options.api ?? []) app.use(API, mounted, router)
  if (options.pages) app.use(options.pages)
  app.use(notFound)
  app.use(answerFailure(options.log))
  return app
}

const API = '/api/v1'

/** Notes where the router that follows is mounted: after an error Express has forgotten it. */
const mounted: RequestHandler = (request, response, next) => {
  response.locals.mount = request.baseUrl
  next()
}

/**
 * A path as servers and proxies agree on it: from the root, without a host before it, a second slash, a fragment or a
 * backslash. Express would read some of the others as a different path.
 */
const PATH_FORM = /^\/(?!\/)[!\x22\x24-\x5b\x5d-\x7e]*$/

/** Headers that every answer has. */
const headersOf = (requestId: string, more: Record<string, string> = {}) => ({
  'x-request-id': requestId,
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  ...more,
})

const MALFORMED: ApiError = { code: 'invalid', message: 'the request is malformed' }

function admit({ log, newId, monotonic, count, headers }: HttpOptions): RequestHandler {
  return (request, response, next) => {
    const startedAt = monotonic()
    const requestId = newId()
    response.set(headersOf(requestId, headers))
    response.once('finish', () => {
      const route = request.route ? `${response.locals.mount ?? ''}${String(request.route.path)}` : 'none'
      const { statusCode: status } = response
      count?.(route, status)
      const durationMs = Math.round(monotonic() - startedAt)
      log.info('http.request', { requestId, method: request.method, path: route, status, durationMs })
    })
    // A sender that has its final answer instead of a 100 sends no body: what it sends next would be read as one.
    if (request.headers.expect !== undefined) response.set('connection', 'close')
    if (!isFramed(request)) {
      response.set('connection', 'close')
      answerError(response, 400, MALFORMED)
      return
    }
    if (!PATH_FORM.test(request.url)) return notFound(request, response, next)
    next()
  }
}

/**
 * Refuses what Node accepts and proxies may read otherwise: no version, no host or several, an absurd length, an
 * expectation that this server does not fulfil.
 */
const isFramed = ({ httpVersionMajor, httpVersionMinor, headers, headersDistinct }: Request): boolean => {
  const hosts = headersDistinct.host?.length ?? 0
  return (
    httpVersionMajor === 1 &&
    (hosts === 1 || (hosts === 0 && httpVersionMinor === 0)) &&
    /^\d{1,15}$/.test(headers['content-length'] ?? '0') &&
    (headers.expect ?? '100-continue').toLowerCase() === '100-continue'
  )
}

/** Knows which sockets wait for an answer: the others may be closed at any time. */
function trackSockets(server: Server, options: HttpOptions): { closeIdle(): void } {
  const pending = new Map<Socket, Set<ServerResponse>>()
  const broken = new WeakSet<Socket>()
  let closing = false
  server.on('connection', (socket: Socket) => {
    pending.set(socket, new Set())
    socket.once('close', () => pending.delete(socket))
  })
  const track = (request: IncomingMessage, response: ServerResponse): void => {
    const answers = pending.get(request.socket)
    answers?.add(response)
    response.once('close', () => {
      answers?.delete(response)
      if (closing && answers?.size === 0) request.socket.destroySoon()
    })
  }
  for (const event of ['request', 'checkExpectation', 'checkContinue']) server.on(event, track)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // The parser reports the same for every further byte.
    if (broken.has(socket)) return
    broken.add(socket)
    const gone = error.code === 'ECONNRESET'
    const end = (isCut: boolean): void => {
      const isAnswered = !isCut && error.code !== 'HPE_INVALID_EOF_STATE' && socket.writable
      hangUp(socket, isAnswered ? refusalOf(error.code, options) : '')
    }
    // Requests that were read whole get their answers first, and so does one whose answer has begun: the error is what
    // came after it.
    const first = [...(pending.get(socket) ?? [])].filter(({ req, headersSent }) => req.complete || headersSent)
    const begun = first.some(({ req }) => !req.complete)
    let waited = first.length
    if (gone) socket.destroy()
    else if (waited === 0) end(false)
    for (const response of first) {
      response.once('close', () => {
        waited -= 1
        if (waited === 0) end(begun)
      })
    }
  })
  return {
    closeIdle: () => {
      closing = true
      for (const [socket, answers] of pending) if (answers.size === 0) socket.destroySoon()
    },
  }
}

/** How long a sender may take to read its answer before the connection is cut. */
const LINGER_MS = 1_000

/**
 * Ends a connection after its last bytes. What the sender still writes is read and dropped for a moment: a connection that
 * is cut with unread bytes loses the answer that is on its way.
 */
function hangUp(socket: Socket, text: string): void {
  if (!socket.writable) {
    socket.destroySoon()
    return
  }
  socket.end(text)
  const cut = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(cut))
}

/** What the HTTP parser refuses, by the code of its error; anything else is malformed. */
const refusals: Record<string, ApiError & { status: number }> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: 'headers_too_large',
    message: `the request line and the headers are larger than ${serverLimits.headerMaxBytes / 1024} KiB`,
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, code: 'too_large', message: 'the extensions of a chunk are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: 'too_slow', message: 'the request did not come in time' },
}

/** The answer to a request that no handler ever sees, as bytes: the same headers, body and log line as every other. */
function refusalOf(cause: string | undefined, { log, newId, count, headers: more }: HttpOptions): string {
  const { status, ...error } = refusals[cause ?? ''] ?? { status: 400, ...MALFORMED }
  const requestId = newId()
  count?.('none', status)
  log.info('http.request', { requestId, path: 'none', status })
  const body = JSON.stringify(errorBody(error, requestId))
  const headers = {
    ...headersOf(requestId, more),
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}
