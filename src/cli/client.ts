import { Failure, type FailureCode, type FieldFault, messageOf } from '../errors.ts'
import { asRow, asRows, plain, type Row } from './cell.ts'
import type { Connection } from './connection.ts'
import { NOT_RUNNING } from './exit-codes.ts'

/** Query values; those that are undefined are left out. */
export type Query = Record<string, string | number | boolean | undefined>

export interface Client {
  origin: string
  /** @param path its segments after `/api/v1`, each of which is encoded here */
  get(path: string[], query?: Query): Promise<unknown>
  /** @param deadlineMs 30 s unless told */
  post(path: string[], body?: object, query?: Query, deadlineMs?: number): Promise<unknown>
  delete(path: string[]): Promise<unknown>
  /** Sends a CSV file. */
  upload(path: string[], file: Uint8Array<ArrayBuffer>, query?: Query): Promise<unknown>
  /** Asks for events and gives each as it comes; throws when they break off. */
  events(path: string[], query?: Query): Promise<AsyncIterable<Row>>
  /** Gets a file, piece by piece; throws when it breaks off. */
  download(path: string[]): Promise<AsyncIterable<Uint8Array>>
}

/** A file of the largest size takes seconds; slow lines and busy machines take longer. */
const FILE_DEADLINE_MS = 600_000

/** As long as a large catalogue takes at a slow rate limit; whoever watches may stop it. */
const EVENTS_DEADLINE_MS = 24 * 3_600_000

interface Sent {
  type: string
  bytes: string | Uint8Array<ArrayBuffer>
}

const jsonOf = (body: object | undefined): Sent | undefined =>
  body && { type: 'application/json', bytes: JSON.stringify(body) }

/** The service answers in milliseconds; a call to the supplier on the way, as for a new webhook, has 15 s itself. */
const DEADLINE_MS = 30_000

/**
 * Speaks to the running service. Each call gives the `data` of its answer.
 *
 * A refusal is a Failure with the service's code, message, fields and request id. Nothing is tried twice: a person sits
 * at the other end.
 */
export function createClient({ origin, token, tokenFile }: Connection): Client {
  const request = async (
    method: string,
    path: string[],
    body: Sent | undefined,
    query: Query = {},
    deadlineMs = DEADLINE_MS,
  ): Promise<Response> => {
    const url = new URL(`/api/v1/${path.map(segment).join('/')}`, origin)
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value))
    }
    return fetch(url, {
      method,
      headers: {
        accept: 'application/json',
        ...(token ? { authorization: `Bearer ${token.reveal()}` } : {}),
        ...(body ? { 'content-type': body.type } : {}),
      },
      ...(body ? { body: body.bytes } : {}),
      redirect: 'manual',
      signal: AbortSignal.timeout(deadlineMs),
    }).catch((error: unknown) => {
      throw unreachable(origin, error, deadlineMs)
    })
  }
  const call = async (...sent: Parameters<typeof request>): Promise<unknown> => {
    const response = await request(...sent)
    if (response.status === 204) return {}
    return dataOf(response)
  }
  const dataOf = async (response: Response): Promise<unknown> => {
    const answer = asRow(await response.json().catch(() => undefined))
    if (response.ok && answer.success === true) return answer.data
    throw refusal(origin, response.status, answer, token ? undefined : tokenFile)
  }
  return {
    origin,
    get: (path, query) => call('GET', path, undefined, query),
    post: (path, body, query, deadlineMs) => call('POST', path, jsonOf(body), query, deadlineMs),
    delete: (path) => call('DELETE', path, undefined),
    upload: (path, bytes, query) => call('POST', path, { type: 'text/csv', bytes }, query, FILE_DEADLINE_MS),
    async events(path, query) {
      const response = await request('POST', path, undefined, query, EVENTS_DEADLINE_MS)
      const isTold = response.ok && response.headers.get('content-type')?.startsWith('application/x-ndjson')
      if (isTold && response.body) return linesOf(piecesOf(response.body, origin, EVENTS_DEADLINE_MS))
      await dataOf(response)
      throw refusal(origin, response.status, {})
    },
    async download(path) {
      const response = await request('GET', path, undefined, {}, FILE_DEADLINE_MS)
      const isFile = response.ok && response.headers.get('content-type')?.startsWith('text/csv')
      if (isFile && response.body) return piecesOf(response.body, origin, FILE_DEADLINE_MS)
      await dataOf(response)
      throw refusal(origin, response.status, {})
    },
  }
}

async function* piecesOf(
  body: AsyncIterable<Uint8Array>,
  origin: string,
  deadlineMs: number,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    throw unreachable(origin, error, deadlineMs)
  }
}

/** Each line of JSON as a record, however the pieces cut it. */
async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Row> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield asRow(JSON.parse(line))
  }
}

/** Whether nothing listens there, by the name of the network error. */
const ABSENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/

function unreachable(origin: string, error: unknown, deadlineMs: number): Failure {
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (ABSENT.test(code)) {
    const start = 'Start it with `npm start` or `npx quayside serve`; an address elsewhere goes into --url.'
    return new Failure('unavailable', `Quayside is not running at ${origin} (${code}).\n${start}`, {
      cause: error,
      reason: NOT_RUNNING,
    })
  }
  const why =
    error instanceof Error && error.name === 'TimeoutError'
      ? `no answer in ${deadlineMs / 1_000} s`
      : code || messageOf(error)
  return new Failure('unavailable', `Quayside at ${origin} did not answer (${why}).\nSee its log, then try again.`, {
    cause: error,
  })
}

const codes: Record<number, FailureCode> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  422: 'rejected',
  503: 'unavailable',
}

/** What helps next, where the service's own words do not say it. */
const next: Record<number, string> = {
  403: 'This token may not do that: use the owner token, or one of a higher role (`npx quayside tokens create`).',
  404: 'The list command of the same group shows what there is.',
  503: 'Try again in a few seconds; `npx quayside status` and the log say more.',
}

/** @param absentTokenFile where an owner token was looked for in vain */
function refusal(origin: string, status: number, answer: Record<string, unknown>, absentTokenFile?: string): Failure {
  const { code, message, fields } = asRow(answer.error)
  if (answer.success !== false || typeof code !== 'string') {
    const text = `what answers at ${origin} is not Quayside (HTTP ${status}).\nGive its address by --url.`
    return new Failure('unavailable', text)
  }
  const faults: FieldFault[] = asRows(fields).map((fault) => ({
    field: plain(String(fault.field ?? '')),
    message: plain(String(fault.message ?? '')),
  }))
  const request = typeof answer.request_id === 'string' ? `, request ${plain(answer.request_id)}` : ''
  const said = `${plain(typeof message === 'string' ? message : 'refused')} (${plain(code)}${request})`
  const hint = status === 401 ? tokenHint(absentTokenFile) : next[status]
  return new Failure(codes[status] ?? (status >= 500 ? 'internal' : 'rejected'), hint ? `${said}\n${hint}` : said, {
    fields: faults,
    reason: plain(code),
  })
}

const tokenHint = (absentTokenFile: string | undefined): string =>
  absentTokenFile === undefined
    ? 'The token is unknown, revoked or expired: give another by --token or QUAYSIDE_TOKEN.'
    : `No token was sent: there is no ${absentTokenFile}. If another Quayside answers here, such as the demo, stop it; else use --token or QUAYSIDE_TOKEN.`

/** One segment of a path. Empty, `.` and `..` would be another path. */
function segment(text: string): string {
  if (text === '' || text === '.' || text === '..') throw new Failure('invalid', `not an id: '${text}'`)
  return encodeURIComponent(text)
}
