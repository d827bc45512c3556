/** The parts of a request that all adapters share: a hook before its first byte, its deadline, and why no answer came. */
import type { Dispatcher } from 'undici'
import { messageOf } from '../errors.ts'

/** How an adapter reaches its store. */
export interface Connecting {
  /** Epoch milliseconds. */
  now: () => number
  /** Default: connections of the adapter's own. */
  connections?: Dispatcher | undefined
  /** Returns a signal that ends a request after so many milliseconds. Default: a timer of this machine. */
  timeout?: ((ms: number) => AbortSignal) | undefined
}

/** Makes these connections call `act` synchronously, right before they write the first byte of a request. */
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

/** Says that an answer has more bytes than its reader takes. */
export class TooLong extends Error {}

/** Reads a body as text. @throws TooLong where it has more than `bytesMax` bytes */
export async function textOf(body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > bytesMax) throw new TooLong()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Reads the body of an answer of which only the status is used, 8 KiB at most, and drops it: the connection can be used again. */
export const discard = (body: Dispatcher.ResponseData['body'], signal: AbortSignal): Promise<void> =>
  body.dump({ limit: 8_192, signal }).catch(() => {})

/** Returns the value of a JSON text; undefined for `null` and for a text that is no JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text) ?? undefined
  } catch {
    return undefined
  }
}

export const deadlineSignal = (ms: number): AbortSignal => AbortSignal.timeout(ms)

/** Returns why a request had no answer, as a sentence. @param host the host of the store, with its port */
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
  if (/^ERR_SSL_(WRONG_VERSION|PACKET_LENGTH)/.test(code)) {
    return `there is no TLS at ${host}: that port speaks plain HTTP, so its address begins with http://, or has another port`
  }
  if (/CERT|SIGNATURE|ISSUER|_TLS_|_SSL_/.test(code)) {
    return `the certificate of ${host} is not accepted (${code}): install a complete one there, or give its authority in NODE_EXTRA_CA_CERTS`
  }
  return `${host} cannot be reached: ${code || messageOf(error)}`
}
