import { Router } from 'express'
import { type Authenticate, assertAllowed } from '../access/tokens.ts'
import type { Metrics } from '../observe/metrics.ts'
import { methodNotAllowed } from './answers.ts'

export interface Health {
  /** The reasons why no request should come here: `draining`, `database`. Empty when the process is ready. */
  reasons: string[]
  /** Troubles that people should look into: `clock_suspect`, `answers_unreadable`, `supplier_unreachable`, `no_worker`. */
  notes: string[]
}

export const notesOf = (notes: Record<string, boolean>): string[] => Object.keys(notes).filter((name) => notes[name])

export interface HealthOptions {
  status: () => Health | Promise<Health>
  /** True where several processes run and this process is a worker, which has no console. */
  isWorker?: boolean
}

/** A text for people who open the printed address. Strangers can read the text too, so it says nothing of the installation. */
const WELCOME =
  'This is Quayside, which connects online stores to a supplier of licence keys; `quayside console` prints the link to its console.\n'
const WELCOME_OF_WORKER =
  'This is a worker of Quayside, which connects online stores to a supplier of licence keys; another process of it has the console.\n'

/**
 * Serves the probes. A process that does not answer `/livez` needs a restart. `/readyz` answers 503 with the reasons while
 * requests should go to another process. A `degraded` process is ready: a restart would not help it. `/` is for people.
 */
export function healthRouter({ status, isWorker = false }: HealthOptions): Router {
  const router = Router({ strict: true, caseSensitive: true })
  router.get('/livez', (_request, response) => {
    response.json({ status: 'alive' })
  })
  router.get('/readyz', async (_request, response) => {
    const { reasons, notes } = await read(status)
    const word = reasons.length > 0 ? 'not_ready' : notes.length > 0 ? 'degraded' : 'ready'
    response.status(reasons.length > 0 ? 503 : 200)
    response.json({ status: word, reasons, notes })
  })
  router.get('/', (_request, response) => void response.type('text').send(isWorker ? WELCOME_OF_WORKER : WELCOME))
  router.all(['/', '/livez', '/readyz'], methodNotAllowed('GET, HEAD'))
  return router
}

/** Reads the status. A status that cannot be read counts as not ready. */
async function read(status: HealthOptions['status']): Promise<Health> {
  try {
    return await status()
  } catch {
    return { reasons: ['status_unreadable'], notes: [] }
  }
}

/** Serves `/metrics` to viewers only, because counts of orders and a balance are confidential. */
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
