/**
 * Reads the bodies of requests that are not verified yet, in a bounded number of places.
 *
 * A sender that begins bodies and ends none must not keep a genuine delivery out. A new body is therefore always let in:
 * where no place is free, the oldest unfinished body gives way. A genuine body arrives within a moment, so that the oldest
 * one is hardly ever genuine, also where a flood and the supplier come through the address of one proxy.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIPv6 } from 'node:net'
import getRawBody from 'raw-body'

export const bodyLimits = {
  /** 256 KiB: a hundred times what a delivery needs. */
  bytesMax: 256 * 1024,
  /** A genuine body needs one round trip; 256 KiB in 5 s are 420 kbit/s. */
  timeoutMs: 5_000,
  /** Unfinished bodies of one remote address. A supplier and a proxy have one each: room for a burst, a quarter of the total. */
  perAddress: 250,
  /** Unfinished bodies of all addresses: 256 MiB when all of them are as large as they may be. */
  total: 1_000,
}

export type BodyLimits = typeof bodyLimits

/** Why there is no body. `aborted`: the sender disconnected. */
export type NoBody = 'too_large' | 'too_slow' | 'gave_way' | 'aborted'

export interface RawBodies {
  read(request: IncomingMessage, response: ServerResponse): Promise<Buffer | NoBody>
  /** How many bodies are unfinished. */
  waiting(): number
}

interface Place {
  network: string
  giveWay: () => void
}

export function createRawBodies(changed: Partial<BodyLimits> = {}): RawBodies {
  const { bytesMax, timeoutMs, perAddress, total } = { ...bodyLimits, ...changed }
  /** Oldest first, as in each set of `byNetwork`. */
  const places = new Set<Place>()
  const byNetwork = new Map<string, Set<Place>>()

  function free(place: Place): void {
    places.delete(place)
    const own = byNetwork.get(place.network)
    own?.delete(place)
    if (own?.size === 0) byNetwork.delete(place.network)
  }

  function take(place: Place): void {
    const own = byNetwork.get(place.network)
    const full = own && own.size >= perAddress ? own : places.size >= total ? places : []
    for (const oldest of full) {
      free(oldest)
      oldest.giveWay()
      break
    }
    places.add(place)
    byNetwork.set(place.network, (byNetwork.get(place.network) ?? new Set<Place>()).add(place))
  }

  return {
    waiting: () => places.size,
    read: (request, response) =>
      new Promise((resolve) => {
        const place = { network: networkOf(request.socket.remoteAddress ?? ''), giveWay: () => end('gave_way') }
        const timer = setTimeout(() => end('too_slow'), timeoutMs)
        function end(outcome: Buffer | NoBody): void {
          clearTimeout(timer)
          free(place)
          resolve(outcome)
        }
        take(place)
        inviteBody(request, response, bytesMax)
        getRawBody(request, { limit: bytesMax, length: request.headers['content-length'] ?? null }).then(
          end,
          (error: unknown) => end(isTooLarge(error) ? 'too_large' : 'aborted'),
        )
      }),
  }
}

/**
 * Answers `Expect: 100-continue`: only now, when nothing but the body can decide, and not for one that is too large. Where
 * the body is never read, the sender has its final answer before it has sent any of it.
 */
export function inviteBody(request: IncomingMessage, response: ServerResponse, bytesMax: number): void {
  const { expect, 'content-length': length = '0' } = request.headers
  if (expect !== undefined && request.httpVersionMinor > 0 && Number(length) <= bytesMax) response.writeContinue()
}

const isTooLarge = (error: unknown): boolean => error instanceof Error && 'status' in error && error.status === 413

/** The remote address, or of an IPv6 address the /64: one sender has all addresses of such a network. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(address)) return address
  const [left = [], right = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''))
  const zeros: string[] = Array(8 - left.length - right.length).fill('0')
  return [...left, ...zeros, ...right].slice(0, 4).join(':')
}
