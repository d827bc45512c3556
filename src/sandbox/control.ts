import { type ErrorRequestHandler, json, type RequestHandler, Router } from 'express'
import { z } from 'zod'
import type { Dialect } from '../dialect/dialect.ts'
import { parseDecimal } from '../domain/money.ts'
import { type Faults, faultShape } from './faults.ts'
import type { Order } from './orders.ts'
import { Refusal } from './refusal.ts'
import type { World } from './world.ts'

/** Most records in a list, newest first; larger tests read the ledger. */
const listedMax = 10_000

const stock = z.number().int().min(0).max(1_000_000_000)

/**
 * The control API for tests and demonstrations, on loopback only.
 *
 * It shows licence keys and moves money without an API key: it must never be reachable from outside.
 */
export function createControl({ world, faults, dialect }: { world: World; faults: Faults; dialect: Dialect }): Router {
  const { currency } = dialect.money
  const amount = z.string().transform((text, context) => {
    const minor = parseDecimal(text, currency)
    if (minor !== undefined && minor > 0) return minor
    context.addIssue({ code: 'custom', message: `must be a positive amount of ${currency}, as decimal text` })
    return z.NEVER
  })
  const offerChange = z.strictObject({
    stock: stock.optional(),
    localStock: stock.optional(),
    providerStock: stock.optional(),
    price: amount.optional(),
    available: z.boolean().optional(),
    withdrawn: z.boolean().optional(),
  })
  const repricing = z.strictObject({ every: z.number().int().min(1) })
  const balanceChange = z.strictObject({ add: amount })

  const router = Router()
  router.use(onlyLoopback, json())
  router.get('/ledger', (_request, response) => void response.json({ currency, ...world.report() }))
  router.get('/orders', (_request, response) => {
    const orders = world.orders.known(listedMax)
    response.json({ orders: orders.map((order) => ({ ...order, keys: world.orders.keysOf(order.id) })) })
  })
  router.get('/deliveries', (_request, response) => {
    response.json({ deliveries: world.webhooks.newest(listedMax).map(({ body: _body, ...delivery }) => delivery) })
  })

  router.get('/faults', (_request, response) => void response.json({ faults: faults.list() }))
  router.post('/faults', (request, response) => {
    response.status(201).json(faults.add(faultShape.parse(request.body)))
  })
  router.delete('/faults', (_request, response) => {
    faults.clear()
    response.status(204).end()
  })

  router.post('/offers', (request, response) => {
    response.json({ changed: world.offers.reprice(repricing.parse(request.body).every) })
  })
  router.post('/offers/:id', (request, response) => {
    const { price, ...change } = offerChange.parse(request.body)
    const offer = world.offers.change(request.params.id, { ...change, priceMinor: price })
    response.json(offer ?? missing())
  })
  router.post('/balance', (request, response) => {
    world.topUp(balanceChange.parse(request.body).add)
    response.json({ currency, balanceMinor: world.balanceMinor() })
  })

  const decide =
    (change: (order: Order) => Order | undefined): RequestHandler<{ id: string }> =>
    (request, response) => {
      const changed = change(world.orders.get(request.params.id) ?? missing())
      if (!changed) throw new Refusal('invalid', 'The money of that order went back already.', 409)
      response.json(changed)
    }
  router.post('/orders/:id/complete', decide(world.orders.complete))
  router.post('/orders/:id/refund', decide(world.orders.refund))
  router.post(
    '/orders/:id/fail',
    decide((order) => world.orders.fail(order, 'The order was failed by hand.')),
  )
  router.post('/deliveries/:id/resend', (request, response) => {
    if (!world.webhooks.resend(request.params.id)) missing()
    response.status(204).end()
  })
  router.use(() => missing())
  router.use(answerError)
  return router
}

function missing(): never {
  throw new Refusal('not_found', 'There is no such thing.', 404)
}

const onlyLoopback: RequestHandler = ({ socket: { remoteAddress = '' } }, _response, next) => {
  if (!/^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/.test(remoteAddress))
    throw new Refusal('forbidden', 'The control API answers on loopback only.', 403)
  next()
}

const answerError: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
  if (error instanceof Refusal) response.status(error.status ?? 400).json({ error: error.message })
  else if (error instanceof z.ZodError) response.status(400).json({ error: z.prettifyError(error) })
  else if (error instanceof SyntaxError) response.status(400).json({ error: 'The body is not JSON.' })
  else response.status(500).json({ error: error instanceof Error ? error.message : 'An internal error.' })
}
