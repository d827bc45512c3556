import { fileURLToPath } from 'node:url'
import { type Response, Router } from 'express'
import swagger from 'swagger-ui-dist/package.json' with { type: 'json' }
import { methodNotAllowed } from './answers.ts'

/**
 * Serves `/docs`: the description of the API as a page for people, drawn by Swagger UI from the installed package. The page
 * needs no token and cannot use a token. It sends no requests to the API, because a wrong click could buy something.
 */
export function referenceRouter(): Router {
  const router = Router({ strict: true, caseSensitive: true })
  router.get('/docs', (_request, response) => {
    response.set({ 'content-security-policy': policy, 'referrer-policy': 'no-referrer', 'x-frame-options': 'DENY' })
    send(response, 'html', page, own)
  })
  router.get(`/docs/${starter}`, (_request, response) => send(response, 'js', start, own))
  for (const name of assets) {
    router.get(`/docs/${swagger.version}/${name}`, (_request, response) => {
      response.set('cache-control', packaged)
      // With `root`, Express checks only the name for dots. So the page also works where a folder above has a dot in its name.
      response.sendFile(name, { root: folder })
    })
  }
  const files = [starter, ...assets.map((name) => `${swagger.version}/${name}`)]
  router.all(['/docs', ...files.map((name) => `/docs/${name}`)], methodNotAllowed('GET, HEAD'))
  return router
}

const folder = fileURLToPath(new URL('.', import.meta.resolve('swagger-ui-dist/package.json')))
/** The files of the package that the page needs. Other files of the package are not served. */
const assets = ['swagger-ui.css', 'swagger-ui-bundle.js'] as const
const starter = 'start.js'

/** Browsers ask for our own files each time, because these files are small and may change with an update. */
const own = 'no-cache'
/** Browsers keep the package's files for a year, the longest useful time: the version of the package is in the path. */
const packaged = 'public, max-age=31536000, immutable'

/** Allows only our own files and the icons inside the style sheet, and neither scripts nor styles in the page itself. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Addresses are relative, so that the page works behind a proxy that adds a path before ours. */
const page = `<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Quayside API</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="docs/${swagger.version}/swagger-ui.css">
  </head>
  <body>
    <noscript>This page needs JavaScript. The same, for machines: <a href="openapi.json">openapi.json</a></noscript>
    <div id="reference"></div>
    <script src="docs/${swagger.version}/swagger-ui-bundle.js"></script>
    <script src="docs/${starter}"></script>
  </body>
</html>
`

/** `validatorUrl: null` keeps Swagger UI from sending our address to a third party. The plugin hides the form for tokens. */
const start = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  supportedSubmitMethods: [],
  validatorUrl: null,
  plugins: [{ wrapComponents: { authorizeBtn: () => () => null, authorizeOperationBtn: () => () => null } }],
})
`

function send(response: Response, type: string, text: string, cacheControl: string): void {
  response.set('cache-control', cacheControl).type(type).send(text)
}
