/** Reads bodies: JSON, CSV and forms from callers with a token, and deliveries, whose senders are not verified yet. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import getRawBody from 'raw-body'
import { Failure, type FailureReason } from '../errors.ts'
import { networkOf } from './server.ts'

/** 256 KiB: a hundred order lines with the longest texts take less than 150 KiB. */
const JSON_MAX = 256 * 1024

/**
 * Reads a JSON body. An absent body is read as `{}`.
 *
 * @throws Failure `invalid` for a body that is not JSON, is too large or has another type
 * @throws raw-body's own error for a body that was cut off
 */
export async function readJson(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
  const { 'content-length': length, 'transfer-encoding': transfer } = request.headers
  if (length === '0' || (length === undefined && transfer === undefined)) return {}
  const bytes = await readWhole(request, response, {
    type: /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i,
    wanted: 'send JSON in UTF-8, not compressed, with Content-Type: application/json',
    bytesMax: JSON_MAX,
    tooLarge: 'the body is larger than 256 KiB',
  })
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    const position = /at position \d+( \(line \d+ column \d+\))?/.exec(String(cause))?.[0]
    throw new Failure('invalid', `the body is not JSON in UTF-8${position ? `: see ${position.slice(3)}` : ''}`, {
      cause,
    })
  }
}

/** Reads the fields of a form. @throws Failure `invalid`, and raw-body's own error, as `readJson` does */
export async function readForm(request: IncomingMessage, response: ServerResponse): Promise<URLSearchParams> {
  if (request.headers['content-length'] === '0') return new URLSearchParams()
  const bytes = await readWhole(request, response, {
    type: /^application\/x-www-form-urlencoded\s*(;\s*charset="?utf-8"?\s*)?$/i,
    wanted: 'send the fields of a form, not compressed',
    bytesMax: JSON_MAX,
    tooLarge: 'the form is larger than 256 KiB',
  })
  return new URLSearchParams(Buffer.from(bytes).toString('utf8'))
}

/** Reads a CSV file. @throws Failure `invalid`, and raw-body's own error, as `readJson` does */
export const readCsv = (request: IncomingMessage, response: ServerResponse, bytesMax: number): Promise<Uint8Array> =>
  readWhole(request, response, {
    type: /^text\/csv\s*(;\s*(charset="?utf-8"?|header=present)\s*)*$/i,
    wanted: 'send CSV in UTF-8, not compressed, with Content-Type: text/csv',
    bytesMax,
    tooLarge: `the file is larger than ${Math.floor(bytesMax / 1024 / 1024)} MiB: divide it`,
  })

interface Expected {
  /** The header Content-Type must match this pattern. */
  type: RegExp
  wanted: string
  bytesMax: number
  tooLarge: string
}

async function readWhole(
  request: IncomingMessage,
  response: ServerResponse,
  { type, wanted, bytesMax, tooLarge }: Expected,
): Promise<Uint8Array> {
  const refuse = (reason: FailureReason, message: string): never => {
    // The rest of the body stays unread, so that the connection cannot carry another request.
    response.setHeader('connection', 'close')
    throw new Failure('invalid', message, { reason })
  }
  const { 'content-type': given = '', 'content-encoding': encoding = 'identity' } = request.headers
  if (encoding !== 'identity' || !type.test(given)) refuse('unsupported_media_type', wanted)
  inviteBody(request, response, bytesMax)
  const length = request.headers['content-length'] ?? null
  return getRawBody(request, { limit: bytesMax, length }).catch((error: unknown) => {
    if (isTooLarge(error)) refuse('too_large', tooLarge)
    throw error
  })
}

/** Bounds for bodies of requests that are not verified yet. */
const bodyLimits = {
  /** 256 KiB: a hundred times the size of a usual delivery. */
  bytesMax: 256 * 1024,
  /** The time for a whole body. A genuine body takes much less: even a line of 420 kbit/s carries 256 KiB in 5 s. */
  timeoutMs: 5_000,
  /** The most unfinished bodies of one remote address, a quarter of `total`: a proxy may send all deliveries from one address. */
  perAddress: 250,
  /** The most unfinished bodies of all addresses: 256 MiB when each body has the largest size. */
  total: 1_000,
}

export type BodyLimits = typeof bodyLimits

/** The reasons for which a body was not read. `aborted`: the sender disconnected. */
export type BodyFault = 'too_large' | 'too_slow' | 'gave_way' | 'aborted'

export type RawBodies = ReturnType<typeof createRawBodies>

interface Slot {
  network: string
  giveWay: () => void
}

/**
 * Reads the bodies of requests that are not verified yet, in a bounded number of slots.
 *
 * A sender that begins bodies and never ends them must not keep a genuine delivery out. So a new body is always let in: when
 * no slot is free, the oldest unfinished body is dropped. A genuine body arrives within a moment, so the oldest body is
 * hardly ever genuine, even when a flood and the supplier come through the address of one proxy.
 */
export function createRawBodies(changed: Partial<BodyLimits> = {}) {
  const { bytesMax, timeoutMs, perAddress, total } = { ...bodyLimits, ...changed }
  /** All slots, the oldest first. Each set of `byNetwork` has the same order. */
  const slots = new Set<Slot>()
  const byNetwork = new Map<string, Set<Slot>>()

  function free(slot: Slot): void {
    slots.delete(slot)
    const own = byNetwork.get(slot.network)
    own?.delete(slot)
    if (own?.size === 0) byNetwork.delete(slot.network)
  }

  function take(slot: Slot): void {
    const own = byNetwork.get(slot.network)
    const full = own && own.size >= perAddress ? own : slots.size >= total ? slots : []
    for (const oldest of full) {
      free(oldest)
      oldest.giveWay()
      break
    }
    slots.add(slot)
    byNetwork.set(slot.network, (byNetwork.get(slot.network) ?? new Set<Slot>()).add(slot))
  }

  return {
    /** Returns the number of unfinished bodies. */
    waiting: () => slots.size,
    read: (request: IncomingMessage, response: ServerResponse): Promise<Buffer | BodyFault> =>
      new Promise((resolve) => {
        const slot = { network: networkOf(request.socket.remoteAddress ?? ''), giveWay: () => end('gave_way') }
        const timer = setTimeout(() => end('too_slow'), timeoutMs)
        function end(outcome: Buffer | BodyFault): void {
          clearTimeout(timer)
          free(slot)
          resolve(outcome)
        }
        take(slot)
        inviteBody(request, response, bytesMax)
        getRawBody(request, { limit: bytesMax, length: request.headers['content-length'] ?? null }).then(
          end,
          (error: unknown) => end(isTooLarge(error) ? 'too_large' : 'aborted'),
        )
      }),
  }
}

/**
 * Answers `Expect: 100-continue` once all other checks have passed, and only if the body is small enough. A sender that fails
 * a check gets its final answer without having sent the body.
 */
function inviteBody(request: IncomingMessage, response: ServerResponse, bytesMax: number): void {
  const { expect, 'content-length': length = '0' } = request.headers
  if (expect !== undefined && request.httpVersionMinor > 0 && Number(length) <= bytesMax) response.writeContinue()
}

const isTooLarge = (error: unknown): boolean => error instanceof Error && 'status' in error && error.status === 413
