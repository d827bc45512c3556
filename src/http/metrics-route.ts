import { Router } from 'express'
import type { Metrics } from '../metrics.ts'
import { methodNotAllowed } from './answers.ts'
import { type Authenticate, assertAllowed } from './auth.ts'

/** `/metrics`, for viewers: counts of orders and a balance are nobody else's business. */
export function metricsRouter(authenticate: Authenticate, metrics: Metrics): Router {
  const router = Router({ strict: true, caseSensitive: true })
  router.get('/metrics', async (request, response) => {
    assertAllowed(await authenticate(request.headersDistinct.authorization), { people: 'viewer' })
    const { contentType, text } = await metrics.scrape()
    response.set('content-type', contentType).end(text)
  })
  router.all('/metrics', methodNotAllowed('GET, HEAD'))
  return router
}
