/**
 * One HTTP exchange with the supplier, told apart by the stage at which it ended.
 *
 * What money depends on is whether a request can have left: `not_sent` is claimed only while undici has not yet started
 * to write it, and everything after that point which is no whole answer is `lost`. Nothing here is ever repeated.
 */
import { Agent, type Dispatcher } from 'undici'

/** Response headers by lower-case name; a repeated one is a list. */
export type Headers = Record<string, string | string[] | undefined>

export type Exchange =
  /** Not one byte of the request was written. `heldBack`: the caller's own check said no. */
  | { stage: 'not_sent'; cause: string; heldBack: boolean }
  /** A whole answer. `unreadable` says why its body must not be read, if so. */
  | { stage: 'answered'; status: number; headers: Headers; body: Buffer; unreadable?: string }
  /** Sent, at least in part, and no whole answer came. Status and headers are there when they came. */
  | { stage: 'lost'; cause: string; status?: number; headers?: Headers }

export interface Request {
  method: 'GET' | 'POST'
  /** Scheme, host and port. */
  origin: string
  /** Path and query. */
  path: string
  headers: Record<string, string>
  body?: string
  /** For the whole exchange: connecting, sending, reading the answer. */
  deadlineMs: number
  /** Longest body that is read; a longer one ends the exchange. */
  bodyMaxBytes: number
  /** Asked right before the first byte is written; false holds the request back. */
  beforeWrite?: () => boolean
}

/** Longest answer about one record; a thousand licence keys take a tenth of it. */
export const ANSWER_MAX_BYTES = 1024 * 1024

/** Longest list page: the largest page of a few hundred records at tens of kilobytes each. */
export const PAGE_MAX_BYTES = 16 * 1024 * 1024

/** What exchanges go over: the two things of an undici Agent that they use. */
export type Connections = Pick<Agent, 'dispatch' | 'close'>

/** How the supplier is reached and how long an answer is waited for; another than `sockets` only in tests. */
export interface Network {
  /** @param connections most sockets at once */
  open: (connections: number) => Connections
  /** Does something that much later, in milliseconds; what it returns calls it off. */
  after: (ms: number, act: () => void) => () => void
}

/** A host that does not complete a handshake in this time is taken for unreachable. */
const CONNECT_TIMEOUT_MS = 5_000

/** Headers of an answer; a supplier needs about one kilobyte. */
const HEADERS_MAX_BYTES = 16 * 1024

/**
 * Connections to the supplier.
 *
 * Sockets that were idle for more than a second are not used again: a server closes idle sockets, and a request written
 * to one that it is just closing is lost, which for an order means a look-up. HTTP/2 stays off, because there a request
 * may be moved to another connection unseen.
 *
 * @param connections most sockets at once
 */
export const openAgent = (connections: number): Agent =>
  new Agent({
    connections,
    pipelining: 1,
    keepAliveTimeout: 1_000,
    // A server's own Keep-Alive header may shorten the second, not prolong it.
    keepAliveMaxTimeout: 1_000,
    allowH2: false,
    maxHeaderSize: HEADERS_MAX_BYTES,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    // The deadline of each exchange replaces both.
    headersTimeout: 0,
    bodyTimeout: 0,
  })

/** The network of this machine. */
export const sockets: Network = {
  open: openAgent,
  after: (ms, act) => {
    const timer = setTimeout(act, ms)
    return () => clearTimeout(timer)
  },
}

/** Performs one exchange; redirects are answers like any other. Never throws: how it ended is the value. */
export function exchange(
  agent: Pick<Connections, 'dispatch'>,
  request: Request,
  after: Network['after'] = sockets.after,
): Promise<Exchange> {
  return new Promise((resolve) => {
    let settled = false
    let started = false
    let heldBack = false
    let controller: Dispatcher.DispatchController | undefined
    let answer: { status: number; headers: Headers } | undefined
    const chunks: Buffer[] = []
    let received = 0

    const settle = (result: Exchange) => {
      if (settled) return
      settled = true
      stopTimer()
      resolve(result)
    }
    const fail = (cause: string) =>
      settle(started ? { stage: 'lost', cause, ...answer } : { stage: 'not_sent', cause, heldBack })
    const abort = (cause: string) => {
      fail(cause)
      controller?.abort(new Error(cause))
    }
    const stopTimer = after(request.deadlineMs, () => abort('timeout'))

    agent.dispatch(
      {
        origin: request.origin,
        path: request.path,
        method: request.method,
        headers: { ...request.headers, 'accept-encoding': 'identity' },
        body: request.body ?? null,
      },
      {
        // undici calls this right before it writes, in the same turn; throwing here keeps every byte back. A second call
        // would be undici sending the request anew over another socket: refused, and the first stays lost.
        onRequestStart(given) {
          if (settled || started) throw new Error('the request is over')
          if (request.beforeWrite && !request.beforeWrite()) {
            heldBack = true
            throw new Error('held back')
          }
          started = true
          controller = given
        },
        onResponseStart(_, status, headers) {
          if (status < 200) return
          answer = { status, headers }
          if (Number(headers['content-length'] ?? 0) > request.bodyMaxBytes) abort('answer_too_large')
        },
        onResponseData(_, chunk) {
          received += chunk.length
          if (received > request.bodyMaxBytes) return abort('answer_too_large')
          chunks.push(chunk)
        },
        onResponseEnd() {
          if (!answer) return fail('no_answer')
          const encoding = String(answer.headers['content-encoding'] ?? 'identity')
          const unreadable = encoding.toLowerCase() === 'identity' ? {} : { unreadable: 'content_encoding' }
          settle({ stage: 'answered', ...answer, body: Buffer.concat(chunks), ...unreadable })
        },
        onResponseError(_, error) {
          fail(codeText(error))
        },
      },
    )
  })
}

/** The machine-readable name of a network error: `ECONNREFUSED`, `UND_ERR_SOCKET`. Several addresses fail as one. */
function codeText(error: unknown): string {
  const first = error instanceof AggregateError ? (error.errors[0] ?? error) : error
  const code = first instanceof Error && 'code' in first ? first.code : undefined
  return typeof code === 'string' && code !== '' ? code : 'network_error'
}

/** The only value of a header; undefined when it is absent, repeated or longer than 200 visible ASCII characters. */
export function headerText(headers: Headers | undefined, name: string): string | undefined {
  const value = headers && Object.hasOwn(headers, name) ? headers[name] : undefined
  return typeof value === 'string' && /^[\x20-\x7e]{1,200}$/.test(value) ? value : undefined
}
