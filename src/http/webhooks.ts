import type { IncomingMessage } from 'node:http'
import { type Request, type Response, Router } from 'express'
import getRawBody from 'raw-body'
import type { Inbox } from '../inbox/receive.ts'
import { answerError, methodNotAllowed } from './answers.ts'

/** 256 KiB: a hundred times what a delivery needs, and small enough to hold in memory many times over. */
const BODY_MAX_BYTES = 256 * 1024

/** Bodies read at once: 256 MiB when all of them are as large as they may be. Whoever comes then is asked to come again. */
const BODIES_MAX = 1_000

/** The one answer to whatever is stored. Written as it is: it is what this server says most often. */
const STORED = Buffer.from(JSON.stringify({ success: true, data: { stored: true } }))
const STORED_HEADERS = { 'content-type': 'application/json; charset=utf-8', 'content-length': STORED.length }

/**
 * The door of the supplier's deliveries.
 *
 * An answer says as little as it can: 200 once the delivery is stored, now or before; one and the same 401 for anything
 * that is not authentic or not fresh. Never a redirect and never 410: suppliers unsubscribe at that.
 *
 * @see Reseller API v1.1, section 6
 */
export function webhookRouter(inbox: Pick<Inbox, 'receive'>): Router {
  const router = Router({ strict: true, caseSensitive: true })
  let reading = 0

  async function take(request: Request, response: Response): Promise<void> {
    const encodings = request.headersDistinct['content-encoding'] ?? []
    if (encodings.length > 1 || encodings.some((encoding) => encoding.toLowerCase() !== 'identity')) {
      // Never inflated: a kilobyte may hold a gigabyte.
      refuseUnread(response, 415, 'unsupported_encoding', 'the body must not be compressed')
      return
    }
    if (reading >= BODIES_MAX) {
      refuseUnread(response, 503, 'unavailable', 'too many requests at once')
      return
    }
    reading += 1
    const body = await readBody(request).finally(() => {
      reading -= 1
    })
    if (body === 'too_large') refuseUnread(response, 413, 'too_large', 'the body is larger than 256 KiB')
    if (!Buffer.isBuffer(body)) return

    const path = typeof request.params.path === 'string' ? request.params.path : ''
    const { outcome } = await inbox.receive({ path, headers: request.headersDistinct, body })
    if (outcome === 'stored' || outcome === 'duplicate') {
      response.writeHead(200, STORED_HEADERS).end(STORED)
      return
    }
    if (outcome === 'retired') {
      // Signed with a secret that is out of use. The supplier is to stop repeating it, and hears nothing else.
      response.status(200).json({ success: true, data: { stored: false } })
      return
    }
    answerError(response, 401, { code: 'unauthenticated', message: 'the delivery is not authentic' })
  }

  // Judged as it came, not as it decodes: a piece of any other shape was never handed out.
  router.all('/webhooks/supplier/:path', (request, _response, next) => {
    next(/^[A-Za-z0-9_-]{1,64}$/.test(request.path.slice('/webhooks/supplier/'.length)) ? undefined : 'router')
  })
  for (const path of ['/webhooks/supplier', '/webhooks/supplier/:path']) {
    router.post(path, take)
    router.all(path, methodNotAllowed('POST'))
  }
  return router
}

/** @returns `aborted` when the sender went away: there is nobody to answer */
async function readBody(request: IncomingMessage): Promise<Buffer | 'too_large' | 'aborted'> {
  try {
    return await getRawBody(request, { limit: BODY_MAX_BYTES, length: request.headers['content-length'] ?? null })
  } catch (error) {
    return error instanceof Error && 'status' in error && error.status === 413 ? 'too_large' : 'aborted'
  }
}

/** The rest of the body stays unread, so that the connection cannot carry another request. */
function refuseUnread(response: Response, status: number, code: string, message: string): void {
  response.set('connection', 'close')
  answerError(response, status, { code, message })
}
