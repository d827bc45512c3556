/**
 * The console has pages for people, on a listener of its own. The pages call the operations of the API in process. So a page can
 * show and do exactly what its reader may see and do through the API.
 */
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createHttpServer } from '../http/server.ts'
import { originsOf } from './guard.ts'
import { consoleRouter, type RouterParts } from './router.ts'
import { pageStreams } from './streams.ts'

interface ConsoleParts extends Omit<RouterParts, 'origins' | 'address' | 'version' | 'streams'> {
  /** The address that people use behind TLS; null where they use loopback. */
  url: string | null
  /** Addresses and networks of the proxies whose `X-Forwarded-For` is believed. */
  proxies?: string[]
  count?: (route: string, status: number) => void
}

export type Console = ReturnType<typeof createConsole>

/** Headers of every answer. Browsers then load our own files alone, run no inline script, and give the page to no other site. */
const headers = {
  'content-security-policy': [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  // With `no-referrer`, browsers would send an action without its origin, and the console would refuse the action.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

export function createConsole({ url, proxies, count, ...needs }: ConsoleParts) {
  const { log, monotonic, access } = needs
  let listening: AddressInfo | undefined
  let origins: ReadonlyMap<string, string> = new Map()
  const streams = pageStreams(access.db)
  /** Returns the address at which people reach the console; null before the console listens. */
  const address = (): string | null => {
    if (!listening) return null
    const host = listening.address.includes(':') ? `[${listening.address}]` : listening.address
    return url === null ? `http://${host}:${listening.port}` : new URL(url).origin
  }
  const server = createHttpServer({
    pages: consoleRouter({ ...needs, streams, origins: () => origins, address, version }),
    headers,
    ...(proxies && { proxies }),
    log,
    newId: access.newId,
    monotonic,
    ...(count && { count }),
  })
  return {
    drain: (): void => {
      server.drain()
      streams.stop()
    },
    close: (): Promise<void> => {
      server.drain()
      streams.stop()
      return server.close()
    },
    /** How many pages are followed by a stream now. */
    streams: streams.count,
    listen: async (host: string, port: number): Promise<void> => {
      listening = await server.listen(host, port)
      origins = originsOf(listening.port, url)
    },
    address,
  }
}
