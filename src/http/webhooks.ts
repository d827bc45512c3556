import { type Request, type Response, Router } from 'express'
import type { Inbox } from '../inbox/receive.ts'
import { SUPPLIER_PATH } from '../inbox/sources.ts'
import { type ApiError, answerError, methodNotAllowed } from './answers.ts'
import { createRawBodies, type NoBody, type RawBodies } from './bodies.ts'

/** The one answer to a stored delivery, made once: this server gives it most often. */
const STORED = Buffer.from(JSON.stringify({ success: true, data: { stored: true } }))
const STORED_HEADERS = { 'content-type': 'application/json; charset=utf-8', 'content-length': STORED.length }

const NOT_AUTHENTIC: ApiError = { code: 'unauthenticated', message: 'the delivery is not authentic' }

const NO_BODY: Record<Exclude<NoBody, 'aborted'>, [status: number, error: ApiError]> = {
  too_large: [413, { code: 'too_large', message: 'the body is larger than 256 KiB' }],
  too_slow: [408, { code: 'too_slow', message: 'the body did not come within 5 seconds' }],
  gave_way: [503, { code: 'unavailable', message: 'too many unfinished requests at once' }],
}

/**
 * The endpoints of deliveries: each source has a path of its own.
 *
 * An answer says as little as it can: 200 once the delivery is stored, now or before; one and the same 401 for anything
 * that is not authentic or not fresh. Never a redirect and never 410: suppliers unsubscribe at that.
 *
 * Path and headers are judged before the body is read, so that a refused request holds no memory for a body.
 *
 * @see Reseller API v1.1, section 6
 */
export function webhookRouter(
  inbox: Pick<Inbox, 'judge' | 'receive' | 'countRefused'>,
  bodies: RawBodies = createRawBodies(),
): Router {
  const router = Router({ strict: true, caseSensitive: true })

  async function take(request: Request, response: Response): Promise<void> {
    const encodings = request.headersDistinct['content-encoding'] ?? []
    if (encodings.length > 1 || encodings.some((encoding) => encoding.toLowerCase() !== 'identity')) {
      // Never inflated: a kilobyte may hold a gigabyte.
      inbox.countRefused('compressed')
      refuseUnread(response, 415, { code: 'unsupported_media_type', message: 'the body must not be compressed' })
      return
    }
    const { path, headersDistinct: headers } = request
    if (inbox.judge({ path, headers })) {
      refuseUnread(response, 401, NOT_AUTHENTIC)
      return
    }
    const body = await bodies.read(request, response)
    if (!Buffer.isBuffer(body)) {
      if (body === 'aborted') return
      inbox.countRefused(body)
      refuseUnread(response, ...NO_BODY[body])
      return
    }
    const { outcome } = await inbox.receive({ path, headers, body })
    if (outcome === 'stored' || outcome === 'duplicate') {
      response.writeHead(200, STORED_HEADERS).end(STORED)
      return
    }
    if (outcome === 'retired' || outcome === 'ping') {
      // Nothing to keep, and nothing for the sender to repeat.
      response.status(200).json({ success: true, data: { stored: false } })
      return
    }
    answerError(response, 401, NOT_AUTHENTIC)
  }

  // Matched as it came, not as it decodes: a piece of any other shape was never handed out.
  router.all(NAMED_PATHS, (request, _response, next) => {
    next(/^[A-Za-z0-9_-]{1,64}$/.test(request.path.slice(request.path.lastIndexOf('/') + 1)) ? undefined : 'router')
  })
  for (const path of [SUPPLIER_PATH, ...NAMED_PATHS]) {
    router.post(path, take)
    router.all(path, methodNotAllowed('POST'))
  }
  return router
}

const NAMED_PATHS = [`${SUPPLIER_PATH}/:webhook`, '/webhooks/stores/:store']

/** The rest of the body stays unread, so that the connection cannot carry another request. */
function refuseUnread(response: Response, status: number, error: ApiError): void {
  response.set('connection', 'close')
  answerError(response, status, error)
}
