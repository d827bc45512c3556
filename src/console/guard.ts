/** The first checks of a request: it must be for an address of ours, and an action must come from a page of ours. */
import type { IncomingHttpHeaders } from 'node:http'

/**
 * Returns the addresses under which people reach the console, by the Host header of each: loopback with our port, and the
 * configured address. With any other host, the request is from a page elsewhere whose name leads to this machine.
 *
 * @param port the port at which the console listens
 * @param url the URL of the console in the configuration
 */
export function originsOf(port: number, url: string | null): ReadonlyMap<string, string> {
  const near = ['127.0.0.1', 'localhost', '[::1]'].map((host) => `http://${host}:${port}`)
  const urls = [...near, ...(url === null ? [] : [url])].map((one) => new URL(one))
  return new Map(urls.map(({ host, origin }) => [host, origin]))
}

/** Whether a page of the same origin sent the request. A browser without `sec-fetch-site` names the origin of the page. */
export function isFromOwnPage(headers: IncomingHttpHeaders, origin: string): boolean {
  const site = headers['sec-fetch-site']
  return site === undefined ? headers.origin === origin : site === 'same-origin'
}

/** Whether a page elsewhere caused the request. Then the session does not count, whatever the browser sent along. */
export const isFromElsewhere = (headers: IncomingHttpHeaders): boolean => headers['sec-fetch-site'] === 'cross-site'
