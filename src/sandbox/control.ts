import { type ErrorRequestHandler, json, type Request, type RequestHandler, Router } from 'express'
import { z } from 'zod'
import { type ControlParts, controls, missing } from './control-table.ts'
import { Refusal } from './refusal.ts'

/**
 * Makes the control API for tests and demonstrations, on loopback only.
 *
 * The control API shows licence keys and moves money without an API key, so it must never be reachable from outside.
 */
export function createControl(parts: ControlParts): Router {
  const router = Router()
  router.use(onlyLoopback, json())
  for (const { call, run, status = 200 } of controls) {
    const [method = '', path = ''] = call.split(' ')
    router[method.toLowerCase() as 'get' | 'post' | 'delete'](path.replace('{id}', ':id'), (request, response) => {
      const answer = run(parts, { id: String(request.params.id), body: request.body })
      if (answer === undefined) response.status(204).end()
      else response.status(status).json(answer)
    })
  }
  router.use(() => missing())
  router.use(answerError)
  return router
}

export const isFromThisMachine = ({ socket: { remoteAddress = '' } }: Request): boolean =>
  /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/.test(remoteAddress)

const onlyLoopback: RequestHandler = (request, _response, next) => {
  if (!isFromThisMachine(request)) throw new Refusal('forbidden', 'The control API answers on loopback only.', 403)
  next()
}

const answerError: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
  if (error instanceof Refusal) response.status(error.status ?? 400).json({ error: error.message })
  else if (error instanceof z.ZodError) response.status(400).json({ error: z.prettifyError(error) })
  else if (error instanceof SyntaxError) response.status(400).json({ error: 'The body is not JSON.' })
  else response.status(500).json({ error: error instanceof Error ? error.message : 'An internal error.' })
}
