/** The first checks of a request: it must be for an address of ours, and an action must come from a page of ours. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/**
 * Returns the addresses under which people reach the console, by the Host header of each: loopback with our port, and the
 * configured address. Any other Host means that a foreign page called its own domain, which was made to lead to this machine.
 *
 * @param port the port at which the console listens
 * @param url the URL of the console in the configuration
 */
export function originsOf(port: number, url: string | null): ReadonlyMap<string, string> {
  const near = ['127.0.0.1', 'localhost', '[::1]'].map((host) => `http://${host}:${port}`)
  const urls = [...near, ...(url === null ? [] : [url])].map((one) => new URL(one))
  return new Map(urls.map(({ host, origin }) => [host, origin]))
}

/** Whether a page of the same origin sent the request. Browsers that send no `sec-fetch-site` name the origin of the page. */
export function isFromOwnPage(headers: IncomingHttpHeaders, origin: string): boolean {
  const site = headers['sec-fetch-site']
  return site === undefined ? headers.origin === origin : site === 'same-origin'
}

/**
 * Whether a page of another site caused the request, other than by a link that a person followed, which opens a page and changes nothing.
 * Such a request has no session, even if the browser sent the cookie.
 */
export function isFromElsewhere({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  const isFollowed = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  return headers['sec-fetch-site'] === 'cross-site' && !(isFollowed && (method === 'GET' || method === 'HEAD'))
}

/**
 * Whether a person asked for a file on a page of the same origin, or by typing its address: the audit has an entry for it in the person's
 * name, which no link of another site may cause. Browsers that send no `sec-fetch-site` name the page.
 */
export function isDownload({ 'sec-fetch-site': site, referer = '' }: IncomingHttpHeaders, origin: string): boolean {
  return site === undefined ? referer.startsWith(`${origin}/`) : site === 'same-origin' || site === 'none'
}
