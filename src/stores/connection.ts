/** What adapters share of a request to a store: when its first byte is written, when it ends, and why no answer came. */
import type { Dispatcher } from 'undici'
import { messageOf } from '../errors.ts'

/** The same connections; `act` is called right before the first byte of a request is written, in the same turn. */
export const beforeWrite = (connections: Dispatcher, act: () => void): Dispatcher =>
  connections.compose(
    (dispatch) => (options, handler) =>
      dispatch(options, {
        onRequestStart: (controller, context) => {
          act()
          handler.onRequestStart?.(controller, context)
        },
        onResponseStart: (...given) => handler.onResponseStart?.(...given),
        onResponseData: (...given) => handler.onResponseData?.(...given),
        onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
        onResponseError: (...given) => handler.onResponseError?.(...given),
      }),
  )

/** Methods that are made for each call, so that each call can have an end of its own. */
export const madeForEachCall = <Methods extends object>(make: () => Methods): Methods =>
  Object.fromEntries(
    Object.keys(make()).map((name) => {
      const call = (given: unknown) => (make() as Record<string, (given: unknown) => unknown>)[name]?.(given)
      return [name, call]
    }),
  ) as Methods

/** What a write comes to that was not sent, because the push that it is of has lasted too long. */
export const TOO_LATE = 'it answered so slowly that the rest is left to the next try'

/** The largest answer of a store that is read: a hundred orders of a busy shop, each with dozens of lines. */
const ANSWER_MAX_BYTES = 32 * 1024 * 1024

/** An answer has more bytes than one of a shop ever has. */
export class TooLong extends Error {}

/** @throws TooLong */
export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > ANSWER_MAX_BYTES) throw new TooLong('its answer is too long to be one of a shop')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** JSON that says something; undefined for everything else, and for a null, which says as little as a page. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text) ?? undefined
  } catch {
    return undefined
  }
}

/** What a store's clock said when it answered, epoch milliseconds; null where it did not say. */
export function answeredAt(headers: Record<string, string | string[] | undefined>): number | null {
  const date = Date.parse(String(headers.date ?? ''))
  return Number.isNaN(date) ? null : date
}

export const deadlineSignal = (ms: number): AbortSignal => AbortSignal.timeout(ms)

/** Why a request had no answer, as a sentence. @param host the store's, with its port */
export function causeOfNoAnswer(error: unknown, host: string, deadlineMs: number): string {
  const { name, code = '' } = error as { name?: string; code?: string }
  if (name === 'TimeoutError' || code.endsWith('_TIMEOUT') || code === 'ETIMEDOUT') {
    return `${host} did not answer within ${deadlineMs / 1000} s`
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the name of ${host} cannot be resolved`
  if (code === 'ECONNREFUSED') return `nothing listens at ${host}`
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET') {
    return `${host} closed the connection without an answer`
  }
  if (/CERT|SIGNATURE|ISSUER|_TLS_|_SSL_/.test(code)) {
    return `the certificate of ${host} is not accepted (${code}): install a complete one there, or give its authority in NODE_EXTRA_CA_CERTS`
  }
  return `${host} cannot be reached: ${code || messageOf(error)}`
}
