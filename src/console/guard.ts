/** What a request must be before anything of it is looked at: for an address of ours, and an action from a page of ours. */
import type { IncomingHttpHeaders } from 'node:http'

/**
 * The addresses under which people reach the console, by the Host header that each brings: loopback with our port, and the
 * configured one. Another host is a page elsewhere whose name leads to this machine.
 *
 * @param port where the console listens
 * @param url of the configuration
 */
export function originsOf(port: number, url: string | null): ReadonlyMap<string, string> {
  const near = ['127.0.0.1', 'localhost', '[::1]'].flatMap((host): [string, string][] => {
    const origin = `http://${host}:${port}`
    return [[new URL(origin).host, origin]]
  })
  return new Map([...near, ...(url === null ? [] : [[new URL(url).host, new URL(url).origin] as [string, string]])])
}

/** Whether a page of the same origin sent it. A browser that does not say so names the origin of the page. */
export function isFromOwnPage(headers: IncomingHttpHeaders, origin: string): boolean {
  const site = headers['sec-fetch-site']
  return site === undefined ? headers.origin === origin : site === 'same-origin'
}

/** Whether a page elsewhere caused it: then the session does not count, whatever the browser sent along. */
export const isFromElsewhere = (headers: IncomingHttpHeaders): boolean => headers['sec-fetch-site'] === 'cross-site'
