import { type Request, type Response, Router } from 'express'
import type { Inbox } from '../inbox/receive.ts'
import { SUPPLIER_PATH } from '../inbox/sources.ts'
import { type ApiError, answerError, methodNotAllowed } from './answers.ts'
import { type BodyFault, createRawBodies, type RawBodies } from './bodies.ts'

/** The answer to every stored delivery, made once. It is a text, so that Node writes it together with its headers. */
const STORED = JSON.stringify({ success: true, data: { stored: true } })
const STORED_HEADERS = { 'content-type': 'application/json; charset=utf-8', 'content-length': STORED.length }

const NOT_AUTHENTIC: ApiError = { code: 'unauthenticated', message: 'the delivery is not authentic' }

const NO_BODY: Record<Exclude<BodyFault, 'aborted'>, [status: number, error: ApiError]> = {
  too_large: [413, { code: 'too_large', message: 'the body is larger than 256 KiB' }],
  too_slow: [408, { code: 'too_slow', message: 'the body did not come within 5 seconds' }],
  gave_way: [503, { code: 'unavailable', message: 'too many unfinished requests at once' }],
}

/**
 * The endpoints of deliveries: each source has a path of its own.
 *
 * An answer says as little as it can. It is 200 when the delivery is stored, now or before, and always the same 401 when the
 * delivery is not authentic or not fresh. It is never a redirect and never 410, because suppliers unsubscribe after these.
 *
 * Path and headers are judged before the body is read, so that a refused request holds no memory for a body.
 *
 * @param answersSupplierEmpty the supplier takes an answer with a body for a failure: a receipt is a 204
 * @see Reseller API v1.1, section 6
 */
export function webhookRouter(
  inbox: Pick<Inbox, 'judge' | 'receive' | 'countRefused'>,
  bodies: RawBodies = createRawBodies(),
  answersSupplierEmpty = false,
): Router {
  const router = Router({ strict: true, caseSensitive: true })

  async function take(request: Request, response: Response): Promise<void> {
    const encodings = request.headersDistinct['content-encoding'] ?? []
    if (encodings.length > 1 || encodings.some((encoding) => encoding.toLowerCase() !== 'identity')) {
      // Bodies are never decompressed: a compressed kilobyte may hold a gigabyte.
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
    const receipt = await inbox.receive({ path, headers, body })
    const { outcome } = receipt
    if (receipt.outcome === 'test') {
      response.status(200).json({ success: true, data: { stored: false, test: receipt.proof } })
      return
    }
    const isTaken = ['stored', 'duplicate', 'retired', 'ping'].includes(outcome)
    if (isTaken && answersSupplierEmpty && path.startsWith(SUPPLIER_PATH)) {
      response.writeHead(204).end()
      return
    }
    if (outcome === 'stored' || outcome === 'duplicate') {
      response.writeHead(200, STORED_HEADERS).end(STORED)
      return
    }
    if (outcome === 'retired' || outcome === 'ping') {
      // A ping or a delivery to a retired webhook is not stored. With a 200, the sender does not repeat the request.
      response.status(200).json({ success: true, data: { stored: false } })
      return
    }
    answerError(response, 401, NOT_AUTHENTIC)
  }

  const route = (path: string): void => {
    router.post(path, take)
    router.all(path, methodNotAllowed('POST'))
  }
  route(SUPPLIER_PATH)
  // Checks the last piece of the path before Express decodes it. Our addresses never have a piece of another form.
  router.all(NAMED_PATHS, (request, _response, next) => {
    next(/^[A-Za-z0-9_-]{1,64}$/.test(request.path.slice(request.path.lastIndexOf('/') + 1)) ? undefined : 'router')
  })
  NAMED_PATHS.forEach(route)
  return router
}

const NAMED_PATHS = [`${SUPPLIER_PATH}/:webhook`, '/webhooks/stores/:store']

/** The rest of the body stays unread, so that the connection cannot carry another request. */
function refuseUnread(response: Response, status: number, error: ApiError): void {
  response.set('connection', 'close')
  answerError(response, status, error)
}
