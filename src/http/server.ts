/**
 * The HTTP server for deliveries, the API and the probes. It knows limits, statuses and the shape of answers; the flows
 * that its routers call decide what a request does.
 *
 * Every answer carries our own request id and repeats nothing of the request. Slow, silent, oversized and malformed senders
 * get a short answer or no answer, and are then disconnected.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { type AddressInfo, isIP, isIPv4, isIPv6, type Socket } from 'node:net'
import express, { type Express, type Request, type RequestHandler, type Router } from 'express'
import type { Log } from '../log.ts'
import { type ApiError, answerError, answerFailure, errorBody, notFound } from './answers.ts'

/** Limits of the server. Each limit stops one way to keep the server busy. */
export const serverLimits = {
  /** The largest size of the request line and the headers together. Genuine deliveries have less than 1 KiB. */
  headerMaxBytes: 16 * 1024,
  /** A sender that has not finished its headers within this time is answered 408. */
  headersTimeoutMs: 10_000,
  /** The time for a whole request: 256 KiB in 15 s is slower than the line of any supplier. */
  requestTimeoutMs: 15_000,
  /** How often the two timeouts above are checked. Node's default of 30 s would make these timeouts useless. */
  checkIntervalMs: 2_000,
  /** The most connections. A silent socket lives for 12 s and takes some 10 KiB, so 8,192 of them take some 80 MiB. */
  connectionsMax: 8_192,
  /** How long running requests may take after `drain`. The time is shorter than the 10 s after which Docker kills the process. */
  drainMs: 8_000,
}

export type ServerLimits = typeof serverLimits

export interface HttpOptions {
  /** Routes of deliveries, and the pages of keys, served at their own full paths. */
  webhooks?: RequestHandler
  /** Routers that are mounted under `/api/v1`. */
  api?: RequestHandler[]
  /** The probes, which are also served while the server drains. */
  health?: Router
  /** Pages for people. These pages answer every path, so they need a server of their own. */
  pages?: Router
  /** Addresses and networks of the proxies whose `X-Forwarded-For` is believed. */
  proxies?: string[]
  /** Headers that every answer has besides those of `headersOf`. */
  headers?: Record<string, string>
  log: Log
  newId: () => string
  /** Returns milliseconds of a clock that never jumps. */
  monotonic: () => number
  /** Counts an answered request; `route` is a pattern, never a path that came in. */
  count?: (route: string, status: number) => void
  limits?: Partial<ServerLimits>
}

export function createHttpServer(options: HttpOptions) {
  const limits = { ...serverLimits, ...options.limits }
  let drainingSince: number | undefined
  const app = application(options, () => drainingSince !== undefined)
  const server = createServer(
    {
      maxHeaderSize: limits.headerMaxBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      // `isFramed` refuses a request without a host, so that the answer has our shape and an id.
      requireHostHeader: false,
    },
    app,
  )
  // Without these handlers Node would answer `Expect` with 417 or 100 before `app` has checked the request.
  server.on('checkExpectation', app)
  server.on('checkContinue', app)
  // Keeps a connection whose sender has closed its half after the request: the sender still reads the answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.maxConnections = limits.connectionsMax
  const sockets = trackSockets(server, options)

  const drain = (): number => {
    drainingSince ??= options.monotonic()
    return drainingSince
  }
  return {
    /** Answers every new request but a probe with 503 from now on. Running requests are finished. */
    drain: () => void drain(),
    /** Starts to listen. @returns the address of the server; with port 0, the system has chosen the port in this address */
    listen: (host: string, port: number): Promise<AddressInfo> =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.off('error', reject)
          resolve(server.address() as AddressInfo)
        })
      }),
    /**
     * Drains and stops listening. Closes idle sockets now, and busy sockets after their answer or at the deadline. The
     * deadline counts from `drain`.
     */
    close: (): Promise<void> =>
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
  app.set('trust proxy', options.proxies ?? false)
  app.use(admit(options))
  app.use((request, response, next) => {
    if (!draining()) return next()
    const refuse = () => {
      response.set('connection', 'close')
      // What comes next may listen at the same address, and the page then asks there.
      if (options.pages) response.set('refresh', '1')
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

/** Notes where the next router is mounted, because Express has forgotten the mount path after an error. */
const mounted: RequestHandler = (request, response, next) => {
  response.locals.mount = request.baseUrl
  next()
}

/**
 * The form of a path that servers and proxies read alike. The path begins at the root, without a host, a second slash, a
 * fragment or a backslash. In another form, Express and a proxy may take the same text for two different paths.
 */
export const PATH_FORM = /^\/(?!\/)[!\x22\x24-\x5b\x5d-\x7e]*$/

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
    // A sender that gets a final answer instead of a 100 sends no body. Its next request would be read as the missing body.
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
 * Returns false for requests that Node accepts and proxies may read differently: another major version, no host or several
 * hosts, an absurd length, or an expectation that this server does not fulfil.
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

/** Tracks which sockets wait for an answer. The other sockets may be closed at any time. */
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
    // The parser reports the same error again for every further byte.
    if (broken.has(socket)) return
    broken.add(socket)
    const gone = error.code === 'ECONNRESET'
    const end = (isCut: boolean): void => {
      const isAnswered = !isCut && error.code !== 'HPE_INVALID_EOF_STATE' && socket.writable
      hangUp(socket, isAnswered ? refusalOf(error.code, options) : '')
    }
    // Requests that were read whole, or whose answer has begun, came before the faulty bytes. They are answered first.
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
 * Writes the last bytes and ends the connection. Bytes that the sender still writes are read and dropped for a moment: if
 * the connection were cut with unread bytes, the sender would lose the answer that is on its way.
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

/** Answers to requests that the HTTP parser refuses, by the code of its error. Any other code is answered as `MALFORMED`. */
const refusals: Record<string, ApiError & { status: number }> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: 'headers_too_large',
    message: `the request line and the headers are larger than ${serverLimits.headerMaxBytes / 1024} KiB`,
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, code: 'too_large', message: 'the extensions of a chunk are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: 'too_slow', message: 'the request did not come in time' },
}

/** Writes the answer to a request that no handler sees, with the headers and the log line of any other answer. */
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

/* Where requests come from: the network of a sender, what is kept of it, and how many wrong tokens it has sent. */

/** Returns an IPv4 address as it is, and the /64 network of an IPv6 address: one sender has all addresses of such a network. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(address)) return address
  const [left = [], right = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''))
  const zeros: string[] = Array(8 - left.length - right.length).fill('0')
  return [...left, ...zeros, ...right].slice(0, 4).join(':')
}

/** Names a network and no person: of an IPv4 address three numbers are kept, of an IPv6 address 48 bits. */
export function truncated(address: string): string {
  if (isIP(address) === 0) return 'unknown'
  const network = networkOf(address)
  return isIPv4(network)
    ? `${network.split('.').slice(0, 3).join('.')}.0/24`
    : `${network.split(':').slice(0, 3).join(':')}::/48`
}

const GUESSES_MAX = 20
const GUESSES_MS = 10 * 60_000
/** The most networks that are counted one by one. The networks after them are counted as one. */
const NETWORKS_MAX = 10_000

/** Counts wrong tokens by network. */
export function createGuesses(monotonic: () => number) {
  /** The network that was counted first stands first. */
  const networks = new Map<string, { since: number; count: number }>()
  const forget = (now: number): void => {
    for (const [network, { since }] of networks) {
      if (now - since < GUESSES_MS) return
      networks.delete(network)
    }
  }
  return {
    /** @returns whether the network has sent too many wrong tokens */
    count: (network: string): boolean => {
      const now = monotonic()
      forget(now)
      const name = networks.has(network) || networks.size < NETWORKS_MAX ? network : 'others'
      const mark = networks.get(name) ?? { since: now, count: 0 }
      mark.count += 1
      networks.set(name, mark)
      return mark.count > GUESSES_MAX
    },
  }
}
