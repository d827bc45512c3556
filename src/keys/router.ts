/**
 * Serves the page of keys on the public address. A GET shows no key, so that scanners of mail and previews of links open none: a
 * key is shown by a POST alone. The token is in no log, because the log names the route.
 */
import express, { type Request, type Response, Router } from 'express'
import type { Html } from '../domain/html.ts'
import { contentOf, needsPage } from '../domain/licence-key.ts'
import { keptFile, methodNotAllowed } from '../http/answers.ts'
import { createGuesses, networkOf, truncated } from '../http/server.ts'
import { nameOf, openLine, type Pages, pageOfToken } from './key-pages.ts'
import { keysPage, type PageShop, unknownPage } from './page.ts'

export interface KeysRouterParts extends Pages {
  /** Milliseconds of a clock that never jumps. */
  monotonic: () => number
  /** The shop of a store's id; undefined: the shop of a page that is not known. */
  shopOf: (store?: string) => PageShop
}

/** Browsers load our own files alone, run no inline script, send no referrer, and show the page in no frame. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex, nofollow',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

const assets = [
  { key: 'style', name: 'keys.css', type: 'text/css' },
  { key: 'script', name: 'copy.js', type: 'text/javascript' },
].map(({ key, name, type }) => {
  const { digest, send } = keptFile(new URL(name, import.meta.url), type)
  return { key, send, path: `files/${digest}/${name}` }
})
/** As seen from a page at `/k/<token>`, because the public address may have a path of its own before it. */
const pathOf = (key: string): string => assets.find((asset) => asset.key === key)?.path ?? ''
const files = { style: pathOf('style'), script: pathOf('script') }

const CSP = 'content-security-policy'

/** Sends a picture or a file as a download, under a name of ours. No browser shows it in the page's place, or guesses what it is. */
function sendFile(response: Response, base64: string, number: number): void {
  const { type, ending } = contentOf(base64)
  response.set({
    'content-disposition': `attachment; filename="key-${number}.${ending}"`,
    [CSP]: "default-src 'none'; sandbox",
  })
  response.status(200).type(type).send(Buffer.from(base64, 'base64'))
}

const PAGE = '/k/:token'
/** A line's id of a store has at most some hundred characters. */
const BODY_MAX = '4kb'

export function keysRouter({ monotonic, shopOf, ...pages }: KeysRouterParts): Router {
  const router = Router({ strict: true, caseSensitive: true })
  const guesses = createGuesses(monotonic)
  // Answers of other parts to such a path have the headers too, such as that of a body that is too large.
  router.use('/k', (_request, response, next) => {
    response.set(HEADERS)
    next()
  })
  for (const { path, send } of assets) router.get(`/k/${path}`, send)
  const send = (response: Response, status: number, page: Html) =>
    void response.status(status).type('html').send(page.toString())
  /** Wrong tokens of a network are refused after some of them. A right token is never refused, so that no guesser locks it out. */
  const refuse = (request: Request, response: Response) => {
    const isTooMany = guesses.count(networkOf(request.ip ?? ''))
    send(response, isTooMany ? 429 : 404, unknownPage(shopOf().language, files))
  }

  router.get(PAGE, async (request, response) => {
    const page = await pageOfToken(pages, request.params.token)
    if (page) send(response, 200, keysPage(page, shopOf(page.store), files))
    else refuse(request, response)
  })
  router.post(
    PAGE,
    express.urlencoded({ extended: false, inflate: false, limit: BODY_MAX }),
    async (request, response) => {
      const body = request.body as { line?: unknown; key?: unknown } | undefined
      const line = typeof body?.line === 'string' ? body.line : ''
      const opened = await openLine(pages, request.params.token ?? '', line, truncated(request.ip ?? ''))
      if (!opened) return refuse(request, response)
      const file = [...opened.keys].find(([key]) => needsPage(key) && nameOf(key) === body?.key)
      if (file) return sendFile(response, file[1], [...opened.keys.keys()].indexOf(file[0]) + 1)
      // A picture is in the answer itself, which alone may show it.
      if ([...opened.keys.keys()].some(({ type }) => type === 'image'))
        response.set(CSP, `${HEADERS[CSP]}; img-src data:`)
      send(response, 200, keysPage(opened.page, shopOf(opened.page.store), files, opened.keys))
    },
  )
  router.all(PAGE, methodNotAllowed('GET, POST'))
  return router
}
