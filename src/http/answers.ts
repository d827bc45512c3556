import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import type { Piece } from '../domain/html.ts'
import {
  codeOf,
  Failure,
  type FailureCode,
  type FieldFault,
  failureCodes,
  failureReasons,
  messageOf,
} from '../errors.ts'
import type { Log } from '../log.ts'

/** The HTTP status of the answer to each failure code. */
const statuses: Record<FailureCode, number> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  rejected: 422,
  internal: 500,
  unavailable: 503,
  unknown_outcome: 503,
}

/** Failure reasons with a status of their own, in place of the status of the failure's code. */
const finer: Record<string, number> = { evidence_changed: 412, too_large: 413, unsupported_media_type: 415 }

/** Seconds that a sender is asked to wait. A locked database is free again by then, and a restart is over. */
const RETRY_AFTER_SECONDS = 5
/** Seconds after which changed settings are in force. */
const SETTINGS_AFTER_SECONDS = 1

/** Codes of errors that are answered before any handler is asked. */
const httpCodes = {
  headers_too_large: 'the request line and the headers are too large',
  method_not_allowed: 'the path exists under another method; see the header Allow',
  too_slow: 'the request did not come in time',
} as const

export const errorCodes = { ...failureCodes, ...failureReasons, ...httpCodes }
export type ErrorCode = keyof typeof errorCodes

export interface ApiError {
  code: ErrorCode
  message: string
  fields?: FieldFault[]
}

/** Returns the error envelope of the Reseller API, so that clients of both APIs see one shape. */
export const errorBody = (error: ApiError, requestId: string | null) => ({
  success: false,
  error,
  request_id: requestId,
})

export function answerError(response: Response, status: number, error: ApiError): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  if (status === 503) {
    const seconds = error.code === 'settings_changing' ? SETTINGS_AFTER_SECONDS : RETRY_AFTER_SECONDS
    response.set('retry-after', String(seconds))
  }
  response.status(status).json(errorBody(error, response.get('x-request-id') ?? null))
}

/** Answers an error that a handler threw, and logs the error once. */
export const answerFailure =
  (log: Log) =>
  (thrown: unknown, _request: Request, response: Response, _next: NextFunction): void => {
    const { status, ...error } = errorOf(thrown, log, response.get('x-request-id'))
    answerError(response, status, error)
  }

/** Returns what callers see of a thrown error. An error that people must look at is logged under the id of the request. */
export function errorOf(thrown: unknown, log: Log, requestId: string | undefined): ApiError & { status: number } {
  const refused = refusalOf(thrown)
  if (refused) return refused
  const code = codeOf(thrown)
  const status = finer[(thrown instanceof Failure && thrown.reason) || ''] ?? statuses[code]
  if (status === 500) log.error('http.failed', { requestId, error: messageOf(thrown) })
  if (status === 503) log.warn('http.unavailable', { requestId, code, error: messageOf(thrown) })
  const fields = thrown instanceof Failure && thrown.fields.length > 0 ? { fields: thrown.fields } : {}
  const message = code === 'internal' ? 'internal error; the log has it under the request id' : messageOf(thrown)
  return { status, code: nameOf(thrown), message, ...fields }
}

/** Returns the reason of a failure if callers know that reason, else the failure's code. */
function nameOf(thrown: unknown): ErrorCode {
  const reason = thrown instanceof Failure ? thrown.reason : undefined
  return reason !== undefined && Object.hasOwn(failureReasons, reason) ? (reason as ErrorCode) : codeOf(thrown)
}

export const methodNotAllowed =
  (allow: string): RequestHandler =>
  (_request, response) => {
    response.set('allow', allow)
    answerError(response, 405, { code: 'method_not_allowed', message: `only ${allow} is served here` })
  }

/** Answers a path that does not exist, without repeating it. */
export const notFound: RequestHandler = (_request, response) => {
  answerError(response, 404, { code: 'not_found', message: 'there is nothing at this path' })
}

/** Answers API requests in a process of the role `worker`, which has no API. @param acts whether the process is the worker now */
export const noApi =
  (acts: () => boolean): RequestHandler =>
  (_request, response) => {
    const standing = acts() ? 'which acts now' : 'which stands by'
    answerError(response, 404, { code: 'no_api', message: `this process is a worker, ${standing}, and has no API` })
  }

/** Smaller answers fit into one packet as they are. */
const COMPRESSED_BYTES = 1_400

/** Compresses an answer where the browser takes gzip. */
export function sendCompressed(
  response: Response,
  bytes: Buffer,
  compressed: () => Buffer = () => gzipSync(bytes),
): void {
  response.vary('accept-encoding')
  const isSent = bytes.length > COMPRESSED_BYTES && response.req.acceptsEncodings('gzip') === 'gzip'
  if (isSent) response.set('content-encoding', 'gzip')
  response.send(isSent ? compressed() : bytes)
}

/** Reads a file that browsers keep for a year. Its path must have the digest, and so changes with its content. */
export function keptFile(file: URL, type: string): { digest: string; send: RequestHandler } {
  const bytes = readFileSync(file)
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 12)
  let compressed: Buffer | undefined
  const compressedOnce = () => {
    compressed ??= gzipSync(bytes, { level: 9 })
    return compressed
  }
  const send: RequestHandler = (_request, response) => {
    response.set('cache-control', 'public, max-age=31536000, immutable').type(type)
    sendCompressed(response, bytes, compressedOnce)
  }
  return { digest, send }
}

/** Answers errors that body parsers and the router throw at malformed requests. The words repeat nothing of the request. */
function refusalOf(error: unknown): (ApiError & { status: number }) | undefined {
  if (!(error instanceof Error) || error instanceof Failure || !('status' in error)) return undefined
  return refusals.find(({ status }) => status === error.status)
}

const refusals: readonly (ApiError & { status: number })[] = [
  { status: 400, code: 'invalid', message: 'the request is malformed' },
  { status: 413, code: 'too_large', message: 'the body is too large' },
  { status: 415, code: 'unsupported_media_type', message: 'the body must be plain JSON in UTF-8' },
]

/** With these reasons, an operation says that what it was asked for is not as it was any more. */
const CHANGED: readonly unknown[] = ['changed', 'not_held', 'evidence_changed', 'not_decidable']

/**
 * What became of one of several things. `why` says why it was refused, how it had changed, or why it is not known. Unknown is that which may
 * be done or not, because an answer was lost.
 */
export interface Outcome<R> {
  row: R
  is: 'done' | 'changed' | 'refused' | 'unknown'
  why?: Piece
}

/**
 * Acts on one thing after the other, and goes on where one is refused. What is not reached, because the process ends, is as it was.
 *
 * @param act acts on one. Where it returns `{ changed }`, it did nothing: the thing is not as it was shown, and `changed` says how
 * @throws what was thrown by a fault of ours, once all the others are done
 */
export async function outcomesOf<R>(rows: readonly R[], act: (row: R) => Promise<unknown>): Promise<Outcome<R>[]> {
  const outcomes: Outcome<R>[] = []
  const faults: unknown[] = []
  for (const row of rows) {
    try {
      const answer = await act(row)
      const isChanged = typeof answer === 'object' && answer !== null && 'changed' in answer
      outcomes.push(isChanged ? { row, is: 'changed', why: answer.changed as Piece } : { row, is: 'done' })
    } catch (error) {
      if (!(error instanceof Failure) || error.code === 'internal') faults.push(error)
      else {
        const isChanged = error.code === 'not_found' || CHANGED.includes(error.reason)
        const is = isChanged ? 'changed' : error.code === 'unknown_outcome' ? 'unknown' : 'refused'
        outcomes.push({ row, is, why: error.message })
      }
    }
  }
  if (faults.length > 0) throw faults[0]
  return outcomes
}
