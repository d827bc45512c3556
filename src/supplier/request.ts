/**
 * One HTTP exchange with the supplier, and the stage at which it ended.
 *
 * Money depends on whether a request can have left. A request is `not_sent` only while undici has not started to write it;
 * after that point, everything but a whole answer is `lost`. Nothing here is repeated.
 */
import { Agent, type Dispatcher } from 'undici'
import { type Dialect, pathsOf } from '../dialect/dialect.ts'
import { Failure } from '../errors.ts'

/** Response headers by lower-case name; a repeated header is a list. */
export type Headers = Record<string, string | string[] | undefined>

export type Exchange =
  /** Not one byte of the request was written. `heldBack`: the caller's own check said no. `refused`: there is no token for the key. */
  | { stage: 'not_sent'; cause: string; heldBack: boolean; refused?: boolean }
  /**
   * A whole answer came. `unreadable`: why its body must not be read. `renewal`: the answer is a 401 to a token, and now there is
   * another token, or the token endpoint is away.
   */
  | {
      stage: 'answered'
      status: number
      headers: Headers
      body: Buffer
      unreadable?: string
      renewal?: 'done' | 'away'
    }
  /** The request was sent, at least in part, and no whole answer came. Status and headers are set when they came. */
  | { stage: 'lost'; cause: string; status?: number; headers?: Headers }

export interface Request {
  method: 'GET' | 'POST'
  /** Scheme, host and port. */
  origin: string
  /** Path and query. */
  path: string
  headers: Record<string, string>
  body?: string
  /** The deadline of the whole exchange: connecting, sending, and reading the answer. */
  deadlineMs: number
  /** Longest body that is read; a longer body ends the exchange. */
  bodyMaxBytes: number
  /** Called right before the first byte is written; false holds the request back. */
  beforeWrite?: (() => boolean) | undefined
}

/** A supplier: how it is spoken to, and the base address, without a slash at its end. */
export interface Place {
  dialect: Dialect
  base: { origin: string; path: string }
}

/**
 * The request as this supplier takes it: at the dialect's path, with the constant headers behind those of the request.
 *
 * @param request its path is that of the Reseller API v1.1, with ids and parameters: `/orders/o1`, `/products?page=2`. Any other
 *   path stays as it is
 * @throws Failure `rejected` where the supplier has no such operation
 */
export const requestTo = ({ dialect, base }: Place, request: Omit<Request, 'origin'>): Request => ({
  ...request,
  origin: base.origin,
  // A path of the dialect may have a constant query before ours.
  path: base.path + (dialect.paths === undefined ? request.path : pathAt(dialect, request)).replace(/(\?.*)\?/s, '$1&'),
  headers: {
    accept: 'application/json',
    'user-agent': 'quayside',
    ...dialect.constantHeaders,
    ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
    ...request.headers,
  },
})

const OURS = Object.entries(pathsOf({})) as [keyof ReturnType<typeof pathsOf>, string][]

const NONE = {
  webhooks:
    "webhooks are made in the supplier's dashboard; `quayside webhooks add --secret-file` takes the secret of one",
  openapi: 'the supplier serves no OpenAPI description',
}

function pathAt(dialect: Dialect, { method, path }: Pick<Request, 'method' | 'path'>): string {
  const [, at = '', query] = /^([^?]*)\??(.*)$/s.exec(path) ?? []
  const [, list, id, more] = at.split('/')
  const own = `/${list}${id === undefined ? '' : '/{id}'}`
  const places = method === 'POST' && own === '/orders'
  const [operation] = OURS.find(([name, ours]) => ours === own && (name === 'placeOrder') === places) ?? []
  if (operation === undefined || more !== undefined) return path
  const theirs = pathsOf(dialect)[operation]
  if (theirs === null) throw new Failure('rejected', NONE[operation as keyof typeof NONE])
  return theirs.replace('{id}', () => id ?? '') + (query ? `?${query}` : '')
}

/** Longest answer about one record; a thousand licence keys take a tenth of it. */
export const ANSWER_MAX_BYTES = 1024 * 1024

/** Longest list page: the largest page of a few hundred records at tens of kilobytes each. */
export const PAGE_MAX_BYTES = 16 * 1024 * 1024

/** The two methods of an undici Agent that exchanges use. */
export type Connections = Pick<Agent, 'dispatch' | 'close'>

/** How the supplier is reached, and the timer of an exchange. Only tests use another network than `sockets`. */
export interface Network {
  /** @param connections most sockets at once */
  open: (connections: number) => Connections
  /** Calls `act` after `ms` milliseconds; the returned function cancels it. */
  after: (ms: number, act: () => void) => () => void
}

/** A host that does not complete a handshake in this time counts as unreachable. */
const CONNECT_TIMEOUT_MS = 5_000

/** Most bytes in the headers of an answer; a supplier needs about one kilobyte. */
const HEADERS_MAX_BYTES = 16 * 1024

/**
 * Connections to the supplier. A socket that was idle for more than a second is not used again: a server closes idle sockets, and a
 * request on a closing socket is lost. HTTP/2 is off, because undici may move its requests to another connection.
 */
export const openAgent = (connections: number): Agent =>
  new Agent({
    connections,
    pipelining: 1,
    keepAliveTimeout: 1_000,
    // A server's own Keep-Alive header may shorten this one second, not prolong it.
    keepAliveMaxTimeout: 1_000,
    allowH2: false,
    maxHeaderSize: HEADERS_MAX_BYTES,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    // The deadline of each exchange replaces both timeouts.
    headersTimeout: 0,
    bodyTimeout: 0,
  })

export const sockets: Network = {
  open: openAgent,
  after: (ms, act) => {
    const timer = setTimeout(act, ms)
    return () => clearTimeout(timer)
  },
}

/** Performs one exchange; redirects are answers like any other. Never throws: the value says how it ended. */
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
        // undici calls this right before it writes, so that an exception here keeps every byte back. With a second call, undici
        // would send the request again over another socket: the second call is refused, and the exchange stays `lost`.
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

/** The code of a network error: `ECONNREFUSED`, `UND_ERR_SOCKET`. Where several addresses fail, it is the first error's code. */
function codeText(error: unknown): string {
  const first = error instanceof AggregateError ? (error.errors[0] ?? error) : error
  const code = first instanceof Error && 'code' in first ? first.code : undefined
  return typeof code === 'string' && code !== '' ? code : 'network_error'
}

/** The only value of a header; undefined when the header is absent, repeated, or not 1 to 200 printable ASCII characters. */
export function headerText(headers: Headers | undefined, name: string): string | undefined {
  const value = headers && Object.hasOwn(headers, name) ? headers[name] : undefined
  return typeof value === 'string' && /^[\x20-\x7e]{1,200}$/.test(value) ? value : undefined
}

/** Whether the supplier answers, as the requests of this process show. Instants in epoch milliseconds. */
export interface Reach {
  /** The answers since the last failure, or since the start; undefined before the first answer. */
  answered: { since: number; lastAt: number } | undefined
  /** The unanswered requests since the last answer; undefined when the last request was answered. */
  unanswered: { since: number; lastAt: number; error: string } | undefined
  /** The last answer was 401 or 403, and another token did not help. */
  refusesKey: boolean
  /** How long the last answers took, in milliseconds; 200 at most. */
  answerMs: readonly number[]
}

/** What the supplier did when no whole answer came. */
export const noAnswerText = ({ stage, cause }: Exclude<Exchange, { stage: 'answered' }>): string =>
  stage === 'not_sent' ? `cannot be reached: ${cause}` : `gave no whole answer: ${cause}`

/** Why an exchange is no answer; undefined for an answer. A 5xx is no answer: most outages show as a 5xx from a proxy. */
function failureText(ended: Exchange): string | undefined {
  if (isRefused(ended)) return undefined
  if (ended.stage !== 'answered') return noAnswerText(ended)
  return ended.status >= 500 ? `answered ${ended.status}` : undefined
}

/** Whether the API key was refused: by a 401 or 403 to a request, which another token does not help, or where its tokens are. */
const isRefused = (ended: Exchange): boolean =>
  ended.stage === 'answered'
    ? (ended.status === 401 || ended.status === 403) && ended.renewal === undefined
    : ended.stage === 'not_sent' && ended.refused === true

/** How many answer times are remembered: about those of a quiet day, or of one minute of a sync run. */
const LATELY_MAX = 200

/** A restart of the supplier is over by then. From then on a read is tried once: the next probe notices the return. */
const AWAY_MS = 60_000

/** Remembers the last answer, and what has failed since that answer. */
export function createReach(now: () => number) {
  let reach: Omit<Reach, 'answerMs'> = { answered: undefined, unanswered: undefined, refusesKey: false }
  const lately: number[] = []
  return {
    /** Takes every exchange with the supplier into account. @param ms how long it took */
    note(ended: Exchange, ms: number): void {
      // The caller held the request back: that says nothing about the supplier.
      if (ended.stage === 'not_sent' && ended.heldBack) return
      const at = now()
      const error = failureText(ended)
      const { answered, unanswered } = reach
      if (error === undefined) {
        lately.push(Math.max(0, ms))
        if (lately.length > LATELY_MAX) lately.shift()
        const since = unanswered ? at : (answered?.since ?? at)
        reach = { answered: { since, lastAt: at }, unanswered: undefined, refusesKey: isRefused(ended) }
      } else reach = { ...reach, unanswered: { since: unanswered?.since ?? at, lastAt: at, error } }
    },
    read: (): Reach => ({ ...reach, answerMs: lately }),
    /** Whether requests have failed for so long that another try in a moment finds the same. */
    isAway: () => reach.unanswered !== undefined && reach.unanswered.lastAt - reach.unanswered.since >= AWAY_MS,
  }
}
